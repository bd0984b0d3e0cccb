/* user/cli/cmd_heapdump.c - read what runtime/debug.WriteHeapDump wrote. */
#include <fcntl.h>
#include <getopt.h>

#include "base/err.h"
#include "cli/cmd.h"
#include "cli/heap_summary.h"
#include "cli/tell.h"
#include "ingest/dumpclasses.h"

static const char help[] =
	"Usage: goprof-bpf heapdump FILE [options]\n"
	"\n"
	"Reads a heap dump that a Go program wrote with runtime/debug.WriteHeapDump, of\n"
	"any version since Go 1.3, and tells which types use the heap, who holds it, and\n"
	"how much each retains.\n"
	"\n"
	"      --json      the same for programs: all types, all stacks\n"
	"  -h, --help      this text\n"
	"\n"
	"Exit status: 0 done, 1 failed, 2 wrong usage, 3 the dump is damaged or cut: what\n"
	"came before that was read.\n";

struct options {
	const char *file;
	bool json;
};

static int complain(const char *what, const char *word)
{
	tell("heapdump: %s '%s' (try heapdump --help)", what, word);
	return EXIT_USAGE;
}

/* -1 to go on, else the exit status. */
static int parse(int argc, char **argv, struct options *o)
{
	static const struct option table[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int opt;

	optind = 0;
	opterr = 0;
	while ((opt = getopt_long(argc, argv, ":h", table, NULL)) != -1) {
		if (opt == 'h') {
			fputs(help, stdout);
			return EXIT_DONE;
		}
		if (opt == ':')
			return complain("a value is missing after", argv[optind - 1]);
		if (opt != 'j')
			return complain("unknown option", argv[optind - 1]);
		o->json = true;
	}
	if (optind == argc) {
		tell("heapdump: which file? (try heapdump --help)");
		return EXIT_USAGE;
	}
	o->file = argv[optind++];
	return optind < argc ? complain("unexpected argument", argv[optind]) : -1;
}

struct read {
	int fd;
	struct heapdump *dump;
	struct dumpgraph graph;
	struct classes classes;
};

static void read_fini(struct read *r)
{
	classes_fini(&r->classes);
	dumpgraph_fini(&r->graph);
	heapdump_freep(&r->dump);
	closep(&r->fd);
}

static int read_dump(struct read *r, const char *file, struct err *e)
{
	int ret;

	r->fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (r->fd < 0)
		return err_sys(e, "opening it");
	ret = heapdump_open(r->fd, &r->dump, e);
	if (!ret)
		ret = dumpgraph_read(&r->graph, r->dump, e);
	return ret ? ret : dumpclasses_read(&r->classes, &r->graph, r->dump, e);
}

static int summary(const struct read *r, const struct options *o, struct err *e)
{
	CLEANUP(heap_summary_fini) struct heap_summary s;
	int ret = heap_summary_make(&s, r->dump, &r->graph, &r->classes, e);
	int status = r->graph.whole ? EXIT_DONE : EXIT_LOSSES;

	if (ret)
		return ret;
	if (o->json)
		return heap_summary_json(&s, o->file, status);
	heap_summary_text(&s, o->file);
	return status;
}

int cmd_heapdump(int argc, char **argv)
{
	CLEANUP(read_fini) struct read r = { .fd = -1 };
	struct options o = { 0 };
	struct err e = { "" };
	int status = parse(argc, argv, &o);

	if (status >= 0)
		return status;
	status = read_dump(&r, o.file, &e);
	if (!status && !r.graph.whole)
		tell("%s: %s", o.file, r.graph.damage.msg);
	if (!status)
		status = summary(&r, &o, &e);
	if (status >= 0)
		return status;
	tell("%s: %s", o.file, e.msg);
	return EXIT_FAILED;
}
