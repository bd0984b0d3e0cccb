/* user/cli/cmd_heapdump.c - read what runtime/debug.WriteHeapDump wrote. */
#include <fcntl.h>
#include <libgen.h>
#include <malloc.h>
#include <sys/stat.h>

#include "base/loop/cancel.h"
#include "base/err.h"
#include "base/sys/spill.h"
#include "cli/cmd.h"
#include "cli/heapdump/dump_input.h"
#include "cli/heapdump/heap_growth.h"
#include "cli/heapdump/heap_holders.h"
#include "cli/heapdump/heap_path.h"
#include "cli/heapdump/heap_summary.h"
#include "cli/heapdump/heap_to_hprof.h"
#include "cli/heapdump/heapdump_opt.h"
#include "cli/input.h"
#include "cli/run/outdir.h"
#include "cli/stop.h"
#include "cli/tell.h"
#include "go/image/gobin.h"
#include "ingest/heapdump/graph/classes.h"
#include "ingest/heapdump/graph/sites.h"
#include "ingest/typing/typing.h"

/* All memory that is taken: this part of the dump's size, or so many bytes. */
enum { MEMORY_PART = 4, MEMORY_MIN = 32 << 20 };

/* How often the graph and the classes of objects have the file read, and how often types do. */
enum { GRAPH_PASSES = 3, OBJECT_PASSES = 1, TYPING_PASSES = 1 };

struct run {
	const struct heapdump_opts *o;
	struct output_access access;
	struct dump_input in;
	struct dumpgraph graph;
	struct classes classes;
	int exe; /* the dumped program's file; -1: not told */
	struct typing typing;
	struct heap_path path;
	struct holdings holdings;
	struct dumpsites *sites;
	bool cut;   /* the dump breaks off */
	int status; /* EXIT_LOSSES when something is missing */
};

static void run_fini(struct run *r)
{
	holdings_fini(&r->holdings);
	heap_path_fini(&r->path);
	typing_fini(&r->typing);
	classes_fini(&r->classes);
	dumpgraph_fini(&r->graph);
	dumpsites_freep(&r->sites);
	dump_input_fini(&r->in);
	closep(&r->exe);
}

/* ---- files ---- */

struct profile_file {
	struct prof *prof;
	const struct output_format *format;
};

static int write_profile(void *arg, FILE *f, struct err *e)
{
	struct profile_file *x = arg;

	return x->format->write(x->prof, f, e);
}

struct checked {
	const struct dump_input *in;
	output_writer *write;
	void *arg;
};

static int write_checked(void *arg, FILE *f, struct err *e)
{
	struct checked *x = arg;
	int ret = x->write(x->arg, f, e);

	return ret ? ret : dump_input_unchanged(x->in, e);
}

/* While a file is written the first Ctrl-C ends reading and writing, and leaves nothing behind. */
static int put_file(struct run *r, const char *path, output_writer *write, void *arg, struct err *e)
{
	struct checked x = { &r->in, write, arg };
	int ret;

	tell_bar(0, 0);
	stop_at_once(false);
	ret = output_file(path, &r->access, write_checked, &x, e);
	if (!ret)
		stop_at_once(true);
	if (!ret && r->access.kept && !r->access.told) {
		tell("%s: stays root's, since the directory is another user's", path);
		r->access.told = true;
	}
	return ret;
}

static int put_profile(struct run *r, struct prof *p, const char *path, struct err *e)
{
	struct profile_file x = { p, r->o->format };
	const struct loss *l = prof_loss(p);

	for (int k = 0; k < LOSS_COUNT; k++)
		if (l->n[k]) {
			tell("%s: loss: %llu %s", r->in.name, (unsigned long long)l->n[k],
			     loss_text(k));
			r->status = EXIT_LOSSES;
		}
	return put_file(r, path, write_profile, &x, e);
}

/* What cannot be written is told before minutes are spent on reading. */
static int check_output(const struct run *r, const char *path, struct err *e)
{
	CLEANUP(freep) char *copy = path ? strdup(path) : NULL;
	struct stat st;

	if (!path)
		return 0;
	if (!copy)
		return err_set(e, -ENOMEM, "no memory");
	if (!stat(path, &st) && S_ISDIR(st.st_mode))
		return err_set(e, -EISDIR, "%s: it is a directory", path);
	if (input_is(r->in.fd, path))
		return err_set(e, -EINVAL, "%s: that is the dump itself", path);
	if (input_is(r->exe, path))
		return err_set(e, -EINVAL, "%s: that is the program of --exe", path);
	if (access(dirname(copy), W_OK | X_OK) && strncmp(path, "/dev/", 5))
		return err_sys(e, "%s: cannot write to its directory", path);
	return 0;
}

static int check_outputs(const struct run *r, struct err *e)
{
	const char *all[] = { r->o->pprof, r->o->holders, r->o->dot, r->o->hprof };
	int ret = 0;

	for (size_t i = 0; !ret && i < ARRAY_LEN(all); i++)
		ret = check_output(r, all[i], e);
	return ret;
}

/* ---- allocation sites ---- */

/* As where two dumps were put together. */
static void tell_left(struct run *r, uint64_t left, uint64_t at)
{
	if (!left)
		return;
	tell("%s: loss: the dump ends at offset %llu; not looked at: %llu %s behind it", r->in.name,
	     (unsigned long long)at, (unsigned long long)left, one_or(left, "byte", "bytes"));
	r->status = EXIT_LOSSES;
}

static int read_sites(struct run *r, struct err *e)
{
	struct err why = { "" };
	uint64_t at;
	int ret = dumpsites_new(&r->sites, e);

	if (!ret && r->o->nfiles && heapdump_offset(r->in.dump) > 0 && r->graph.heap.names)
		ret = heapdump_rewind(r->in.dump, e);
	if (ret)
		return ret;
	ret = dumpsites_read(r->sites, r->in.dump, &why);
	if (r->graph.heap.names) {
		ret = dumpgraph_damaged(&r->graph, r->in.dump, ret, &why);
	} else if (!ret) {
		at = heapdump_offset(r->in.dump);
		tell_left(r, heapdump_left(r->in.dump), at);
	} else if (ret == -EBADMSG) {
		tell("%s: %s", r->in.name, why.msg);
		r->cut = true;
		r->status = EXIT_LOSSES;
	}
	return ret && ret != -EBADMSG ? err_set(e, ret, "%s", why.msg) : 0;
}

/* @what: where the numbers are that are wrong. */
static void tell_rate(const struct run *r, const char *what)
{
	struct dumpsites_check c = dumpsites_check(r->sites);
	char inuse[BYTES_TEXT], heap[BYTES_TEXT];

	if (c.none)
		tell("%s: no allocation sites of the program: it ran with MemProfileRate 0, or links nothing "
		     "of runtime/pprof, and so keeps no memory profile",
		     r->in.name);
	if (c.wrong)
		tell("%s: the numbers in %s are wrong: with one sample in %lld bytes %s would be in use "
		     "of a heap of %s. Give the program's runtime.MemProfileRate (--heap-rate)",
		     r->in.name, what, (long long)r->o->heap_rate, bytes_text(c.inuse, inuse),
		     bytes_text(c.heap, heap));
}

static int put_sites(struct run *r, struct err *e)
{
	CLEANUP(prof_freep) struct prof *p = NULL;
	int ret = read_sites(r, e);

	if (ret)
		return ret;
	if (!dumpsites_count(r->sites) && r->cut) {
		if (!heapdump_opt_graph(r->o) && !r->o->hprof)
			return err_set(e, -ENOENT,
				       "the dump breaks off before its allocation sites");
		tell("%s: loss: no %s: the dump breaks off before its allocation sites", r->in.name,
		     r->o->pprof);
		return 0;
	}
	ret = dumpsites_profile(r->sites, r->o->heap_rate, !r->cut, &p, e);
	if (ret)
		return ret;
	tell_rate(r, r->o->pprof);
	return put_profile(r, p, r->o->pprof, e);
}

/* ---- the graph ---- */

/* What is no Go program is told before minutes are spent on reading. */
static int open_exe(struct run *r, struct err *e)
{
	if (!r->o->exe)
		return 0;
	r->exe = open(r->o->exe, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (r->exe < 0)
		return err_sys(e, "--exe %s", r->o->exe);
	if (gobin_is_debug_only(r->exe))
		return err_set(e, -EINVAL,
			       "--exe %s: it has the debug data without the program: give the "
			       "program, or where that is stripped both as one file (eu-unstrip)",
			       r->o->exe);
	return gobin_is_go_any(r->exe) ?
		       0 :
		       err_set(e, -EINVAL, "--exe %s: not a Go program", r->o->exe);
}

/* @one, @many: the word for them. */
static void tell_lost(struct run *r, uint64_t n, const char *one, const char *many,
		      const char *what)
{
	if (!n)
		return;
	tell("%s: loss: %llu %s%s", r->in.name, (unsigned long long)n, one_or(n, one, many), what);
	r->status = EXIT_LOSSES;
}

static int open_types(struct run *r, struct err *e)
{
	return r->o->exe ? typing_open(&r->typing, &r->graph, r->in.dump, r->exe, r->o->exe, e) : 0;
}

static int read_types(struct run *r, struct err *e)
{
	int ret;

	if (!r->o->exe)
		return 0;
	ret = typing_flow(&r->typing, &r->classes, e);
	if (ret)
		return ret;
	tell_lost(r, r->typing.lost, "object", "objects",
		  " not looked through for types, for want of room or of the record");
	tell_lost(r, r->typing.cut, "type", "types",
		  " of which not all pointers are followed: more than 65,536 outside of arrays, or "
		  "too deep");
	if (r->typing.unchecked) {
		tell("%s: loss: no types: the dump breaks off before its global variables, by which "
		     "it is known that %s wrote it",
		     r->in.name, r->o->exe);
		r->status = EXIT_LOSSES;
	} else if (r->typing.by_types) {
		tell("%s: loss: the dump breaks off before its global variables: types start from objects "
		     "and stacks alone; that %s wrote it is known by %d types",
		     r->in.name, r->o->exe, r->typing.by_types);
		r->status = EXIT_LOSSES;
	} else if (!r->typing.dwarf)
		tell("%s: it has no DWARF (built with -ldflags=-w or -s, or stripped): only objects that "
		     "begin with their type have one",
		     r->o->exe);
	return 0;
}

static void bound_memory(const struct run *r)
{
	uint64_t part = r->in.size / MEMORY_PART;

	if (part < MEMORY_MIN)
		part = MEMORY_MIN;
	/* The bound is kept a bit late. */
	spill_bound(part - part / 8);
}

/* How the file is written that is not whole yet, for a signal handler. */
static const struct output_access *volatile writes;

/* In a signal handler. */
static void lose_graph(void)
{
	static const char text[] =
		"goprof-bpf: stopped: a file in TMPDIR (or /tmp) with a part of the graph failed "
		"while it was used: the disk is full, or it broke\n";

	output_abandon(writes);
	(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
	_exit(EXIT_FAILED);
}

static void tell_memory(const struct run *r)
{
	struct err why;

	if (spill_refused(&why))
		tell("%s: takes more memory than a quarter of its size: no file for a part of it: %s",
		     r->in.name, why.msg);
}

static int read_graph(struct run *r, struct err *e)
{
	struct heap_path *path = r->o->path ? &r->path : NULL;
	int ret;

	bound_memory(r);
	r->path.addr = r->o->address;
	ret = dumpgraph_begin(&r->graph, r->in.dump, heapdump_opt_graph(r->o), path, e);
	if (!ret)
		ret = open_types(r, e);
	if (!ret)
		ret = dumpgraph_finish(&r->graph, r->in.dump, e);
	if (!ret)
		ret = dumpclasses_read(&r->classes, &r->graph, r->in.dump, e);
	if (!ret)
		ret = read_types(r, e);
	if (!ret)
		ret = dump_input_unchanged(&r->in, e);
	tell_bar(0, 0);
	tell_memory(r);
	if (!ret && !r->graph.whole) {
		tell("%s: %s", r->in.name, r->graph.damage.msg);
		r->cut = true;
		r->status = EXIT_LOSSES;
	}
	if (!ret)
		tell_left(r, r->graph.left, heapdump_size(r->in.dump) - r->graph.left);
	return ret;
}

static int write_dot(void *arg, FILE *f, struct err *e)
{
	return heap_holders_dot(arg, f, e);
}

static int put_holders(struct run *r, struct err *e)
{
	CLEANUP(prof_freep) struct prof *p = NULL;
	struct holdings *x = &r->holdings;
	int ret = heap_holders_read(x, &r->graph, &r->classes, r->in.dump, e);

	if (!ret && r->o->holders)
		ret = heap_holders_profile(x, &r->graph, &p, e);
	if (!ret && r->o->holders)
		ret = put_profile(r, p, r->o->holders, e);
	if (ret || !r->o->dot || r->o->path)
		return ret;
	holdings_sum(x);
	return put_file(r, r->o->dot, write_dot, x, e);
}

static int write_path_dot(void *arg, FILE *f, struct err *e)
{
	return heap_path_dot(arg, f, e);
}

static int put_path(struct run *r, struct err *e)
{
	struct heap_path_view v;
	int ret = heap_path_view(&v, &r->graph, &r->classes, r->in.dump, e);

	if (!ret && r->o->dot)
		ret = put_file(r, r->o->dot, write_path_dot, &v, e);
	if (!ret)
		ret = dump_input_unchanged(&r->in, e);
	tell_bar(0, 0);
	if (!ret && r->o->json)
		r->status = heap_path_json(&v, r->in.name, r->status);
	else if (!ret)
		heap_path_text(&v);
	return ret;
}

static int put_hprof(struct run *r, struct err *e)
{
	struct heap_to_hprof x = { .dump = r->in.dump,
				   .fd = r->in.fd,
				   .graph = &r->graph,
				   .classes = &r->classes,
				   .opts = { .contents = r->o->contents } };
	struct stat st;
	int ret;

	if (!fstat(r->in.fd, &st))
		x.opts.time_ms = (uint64_t)st.st_mtim.tv_sec * 1000;
	ret = put_file(r, r->o->hprof, heap_to_hprof, &x, e);
	if (ret)
		return ret;
	tell_lost(r, x.losses.pointers, "pointer", "pointers",
		  " for which an instance has no room");
	tell_lost(r, x.losses.sizes, "object", "objects",
		  " of 2 GiB or more: HPROF cannot tell such sizes");
	tell_lost(r, x.losses.contents, "byte", "bytes", " of contents for which there is no room");
	tell_lost(r, x.losses.frames, "frame", "frames",
		  " of stacks that are deeper than a million");
	tell_lost(r, x.losses.unnamed, "object", "objects", " at address 0");
	tell_lost(r, x.samples, "allocation sample", "allocation samples",
		  " without a place in the heap");
	return 0;
}

static int summary(struct run *r, struct err *e)
{
	CLEANUP(heap_summary_fini) struct heap_summary s;
	int ret = heap_summary_make(&s, r->in.dump, &r->graph, &r->classes, e);

	if (ret)
		return ret;
	s.typing = r->o->exe ? &r->typing : NULL;
	if (r->o->json)
		return heap_summary_json(&s, r->in.name, r->status);
	heap_summary_text(&s, r->in.name);
	return r->status;
}

static bool asks_holders(const struct heapdump_opts *o)
{
	return o->holders || (o->dot && !o->path);
}

static unsigned passes(const struct heapdump_opts *o)
{
	return (heapdump_opt_graph(o) ? GRAPH_PASSES :
		o->hprof	      ? OBJECT_PASSES :
					0) +
	       (o->exe ? TYPING_PASSES : 0) + !!o->pprof +
	       (asks_holders(o) ? HEAP_HOLDERS_PASSES : 0) + (o->path ? HEAP_PATH_PASSES : 0) +
	       (o->hprof ? HEAP_TO_HPROF_PASSES : 0);
}

/* The exit status, or a negative errno. */
static int run(struct run *r, struct err *e)
{
	const struct heapdump_opts *o = r->o;
	int ret = dump_input_open(&r->in, o->files[0], passes(o), e);

	if (!ret)
		ret = open_exe(r, e);
	if (!ret)
		ret = check_outputs(r, e);
	if (!ret && (heapdump_opt_graph(o) || o->hprof))
		ret = read_graph(r, e);
	if (!ret && o->hprof)
		ret = put_hprof(r, e);
	if (!ret && asks_holders(o))
		ret = put_holders(r, e);
	if (!ret && o->pprof)
		ret = put_sites(r, e);
	if (!ret && o->path)
		ret = put_path(r, e);
	else if (!ret && (o->json || !heapdump_opt_outputs(o)))
		ret = summary(r, e);
	return ret ? ret : r->status;
}

/* ---- two dumps ---- */

/*
 * What has other names in each dump of one program: globals without a name, by their address where
 * the program lay in the first dump; and layouts, without the site that made most of them.
 */
static void name_alike(struct growth *g, int side, struct run *r)
{
	struct heapgraph *h = &r->graph.heap;
	uint64_t shift = 0;

	g->segment[side] = r->graph.segment.addr;
	g->segment_len[side] = r->graph.segment.len;
	if (side && g->segment_len[0] == g->segment_len[1])
		shift = g->segment[1] - g->segment[0];
	for (size_t i = 0; i < h->holders.n; i++)
		if (h->holders.at[i].kind == HOLDER_GLOBAL)
			h->holders.at[i].addr -= shift;
	for (size_t i = 0; i < r->classes.all.n; i++)
		r->classes.all.at[i].site = 0;
}

static int reduce(struct growth *g, int side, struct run *r, struct err *e)
{
	CLEANUP(prof_freep) struct prof *p = NULL;
	unsigned all = GRAPH_PASSES + HEAP_HOLDERS_PASSES + 1 + (r->o->exe ? TYPING_PASSES : 0);
	int ret = dump_input_open(&r->in, r->o->files[side], all, e);

	if (!ret)
		ret = open_exe(r, e);
	if (!ret)
		ret = read_graph(r, e);
	if (!ret) {
		name_alike(g, side, r);
		ret = heap_holders_read(&r->holdings, &r->graph, &r->classes, r->in.dump, e);
	}
	if (!ret)
		ret = read_sites(r, e);
	if (!ret)
		ret = dumpsites_profile(r->sites, r->o->heap_rate, r->graph.whole, &p, e);
	if (ret)
		return ret;
	tell_rate(r, "the table of allocation sites");
	holdings_sum(&r->holdings);
	return growth_add(g, side, r->in.name, r->in.dump, &r->graph, &r->classes, &r->holdings, p,
			  e);
}

static int compare(struct run *r, struct err *e)
{
	CLEANUP(growth_fini) struct growth g;
	int ret = growth_init(&g, r->o->heap_rate, e);

	for (int side = 0; !ret && side < 2; side++) {
		struct run one = { .o = r->o, .in = { .fd = -1 }, .exe = -1 };

		r->in.name = r->o->files[side];
		ret = reduce(&g, side, &one, e);
		if (one.status)
			r->status = one.status;
		if (one.in.name)
			r->in.name = one.in.name;
		run_fini(&one);
		malloc_trim(0); /* or the second graph comes on top of what the first one left */
	}
	tell_bar(0, 0);
	if (ret)
		return ret;
	if (strcmp(g.programs[0], g.programs[1]))
		tell("the dumps are of %s and of %s: hardly of one program", g.programs[0],
		     g.programs[1]);
	if (r->o->json)
		return growth_json(&g, r->status);
	growth_text(&g);
	return r->status;
}

int cmd_heapdump(int argc, char **argv)
{
	struct heapdump_opts o;
	CLEANUP(run_fini) struct run r = { .o = &o, .in = { .fd = -1 }, .exe = -1 };
	struct err e = { "" };
	int status = heapdump_opt_parse(argc, argv, &o);

	if (status >= 0)
		return status;
	r.access.mode = o.mode;
	outdir_asked_by(&r.access);
	r.in.name = o.files[0];
	status = stop_init(&e);
	if (!status) {
		cancel_when(stop_asked_ms);
		stop_at_once(true);
		writes = &r.access;
		spill_on_loss(lose_graph);
		status = o.nfiles == 2 ? compare(&r, &e) : run(&r, &e);
	}
	if (status >= 0)
		return status;
	if (status == -ECANCELED)
		snprintf(e.msg, sizeof(e.msg), "stopped before all was written");
	tell("%s: %s", r.in.name, e.msg);
	return EXIT_FAILED;
}
