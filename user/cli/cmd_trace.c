/* user/cli/cmd_trace.c - read what runtime/trace wrote. */
#include <fcntl.h>
#include <libgen.h>
#include <sys/stat.h>

#include "base/loop/cancel.h"
#include "base/err.h"
#include "base/version.h"
#include "cli/cmd.h"
#include "cli/run/outdir.h"
#include "cli/stop.h"
#include "cli/tell.h"
#include "cli/trace/trace_events.h"
#include "cli/trace/trace_input.h"
#include "cli/trace/trace_opt.h"
#include "cli/trace/trace_text.h"
#include "cli/trace/trace_to_perfetto.h"
#include "ingest/exectrace/ticks.h"

enum { LOOK_EVERY = 1 << 12 }; /* events between two looks at whether somebody waits */

struct run {
	const struct trace_opts *o;
	struct output_access access;
	struct trace_input in;
	/* What is made of each event; NULL: it is not asked for. */
	struct trace_profile *profiles[TRACE_PROFILE_KINDS];
	struct trace_profile *asked[TRACE_PROFILE_KINDS]; /* those that are there */
	size_t nasked;
	struct trace_summary *summary;
	bool cuts;   /* a part of the trace is written while it is read */
	bool passed; /* all of it was read then */
	struct trace_to_perfetto *perfetto;
	/* Times are those of the trace. */
	bool begun, over; /* over: the trace goes on behind --to */
	bool told;	  /* and nothing that comes says what was until then */
	int64_t start_ns, from_ns, to_ns, last_ns, unix_ns;
	int64_t read_ns;  /* of the last event, before that time as well */
	uint64_t counted; /* events in the time that is asked for */
	struct err damage;
	unsigned writing; /* files that are open */
	int status;	  /* EXIT_LOSSES when something is missing */
};

static void run_fini(struct run *r)
{
	for (int k = 0; k < TRACE_PROFILE_KINDS; k++)
		trace_profile_freep(&r->profiles[k]);
	trace_summary_freep(&r->summary);
	trace_input_fini(&r->in);
}

/* ---- one pass over the trace ---- */

static void begin(struct run *r, const struct trace_event *ev)
{
	r->begun = true;
	r->start_ns = ev->time_ns;
	r->from_ns = ticks_add(ev->time_ns, r->o->from_ns);
	r->to_ns = r->o->has_to ? ticks_add(ev->time_ns, r->o->to_ns) : INT64_MAX;
	if (ev->kind == TRACE_SYNC && ev->sync.has_clock)
		r->unix_ns = ev->sync.unix_ns + (ev->time_ns - ev->sync.trace_ns);
}

static int profile_event(struct run *r, const struct trace_event *ev, bool before, struct err *e)
{
	int ret = 0;

	if (before && ev->kind == TRACE_CPU_SAMPLE)
		return 0;
	for (size_t i = 0; !ret && i < r->nasked; i++)
		ret = trace_profile_event(r->asked[i], r->in.trace, ev, e);
	return ret;
}

/* What is before the time that is asked for has its beginning as its own time: it has no length. */
static int take(struct run *r, struct trace_event *ev, struct err *e)
{
	bool before = ev->time_ns < r->from_ns;
	int ret;

	r->read_ns = ev->time_ns;
	if (!before && r->o->events)
		trace_events_put(stdout, r->in.trace, ev, r->start_ns);
	if (before)
		ev->time_ns = r->from_ns;
	r->counted += !before;
	r->last_ns = ev->time_ns;
	ret = profile_event(r, ev, before, e);
	if (!ret && r->summary)
		ret = trace_summary_event(r->summary, r->in.trace, ev, before, e);
	if (!ret && r->perfetto)
		ret = trace_to_perfetto_event(r->perfetto, r->in.trace, ev, r->start_ns, before, e);
	return ret;
}

/* Behind --to: what else was, and a cut may need what comes. */
static int take_late(struct run *r, const struct trace_event *ev, struct err *e)
{
	int ret = 0;

	if (ev->kind == TRACE_SYNC || exectrace_version(r->in.trace) < 22)
		r->told = true;
	if (!r->told && r->summary)
		ret = trace_summary_late(r->summary, r->in.trace, ev, e);
	if (!r->told && !ret && r->perfetto)
		ret = trace_to_perfetto_late(r->perfetto, r->in.trace, ev, e);
	return ret;
}

static bool is_enough(const struct run *r)
{
	bool told = r->told || (!r->summary && !r->perfetto);

	return r->over && told && (!r->cuts || exectrace_cut_is_over(r->in.trace));
}

/* What is damaged, or cut, has been read up to there. */
static int read_events(struct run *r, struct err *e)
{
	struct trace_event ev;
	int ret;

	for (unsigned n = 0;; n++) {
		ret = exectrace_next(r->in.trace, &ev, e);
		if (ret == -EBADMSG && r->begun) {
			r->damage = *e;
			return 0;
		}
		if (ret <= 0)
			return ret;
		if (!r->begun)
			begin(r, &ev);
		if (!r->over && ev.time_ns > r->to_ns)
			(void)exectrace_damage(r->in.trace, &r->damage);
		r->over = ev.time_ns > r->to_ns;
		ret = r->over ? take_late(r, &ev, e) : take(r, &ev, e);
		if (ret || is_enough(r))
			return ret;
		if (n % LOOK_EVERY == 0)
			trace_input_tick(&r->in);
		if (n % LOOK_EVERY == 0 && cancelled())
			return -ECANCELED;
	}
	return 0;
}

/* Nothing is known of it. Between two events all goes on as the first one left it. */
static int is_behind_the_trace(const struct run *r, struct err *e)
{
	return err_set(e, -ENOENT, "the trace has nothing of this time: it is %.9f s long",
		       (double)(r->read_ns - r->start_ns) / 1e9);
}

static int pass(struct run *r, struct err *e)
{
	int ret = read_events(r, e);

	tell_bar(0, 0);
	if (!ret)
		ret = trace_input_unchanged(&r->in, e);
	if (ret)
		return ret;
	if (r->damage.msg[0]) {
		tell("%s: loss: %s; what comes before that was read", r->in.name, r->damage.msg);
		r->status = EXIT_LOSSES;
	}
	if (!r->begun)
		return err_set(e, -ENOENT, "the trace has no events");
	if (!r->over)
		return r->counted ? 0 : is_behind_the_trace(r, e);
	r->last_ns = r->to_ns;
	for (size_t i = 0; !ret && i < r->nasked; i++)
		ret = trace_profile_stop(r->asked[i], r->in.trace, r->to_ns, e);
	if (!ret && r->perfetto)
		ret = trace_to_perfetto_stop(r->perfetto, r->to_ns, e);
	return ret;
}

/* ---- files ---- */

/*
 * While files are written, one within the other, the first Ctrl-C ends reading and writing, and leaves nothing
 * behind.
 */
static int put_file(struct run *r, const char *path, output_writer *write, void *arg, struct err *e)
{
	int ret;

	r->writing++;
	stop_at_once(false);
	ret = output_file(path, &r->access, write, arg, e);
	r->writing--;
	if (!ret && !r->writing)
		stop_at_once(true);
	if (!ret && r->access.kept && !r->access.told) {
		tell("%s: stays root's, since the directory is another user's", path);
		r->access.told = true;
	}
	return ret;
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
		return err_set(e, -EINVAL, "%s: that is the trace itself", path);
	if (input_is(r->in.exe_fd, path))
		return err_set(e, -EINVAL, "%s: that is the program of --exe", path);
	if (access(dirname(copy), W_OK | X_OK) && strncmp(path, "/dev/", 5))
		return err_sys(e, "%s: cannot write to its directory", path);
	return 0;
}

static bool is_text(const struct output_format *f)
{
	return strcmp(f->name, "pprof") != 0;
}

static bool is_stdout(const char *path)
{
	return path && !strcmp(path, "/dev/stdout");
}

static bool on_terminal(const char *path)
{
	return is_stdout(path) && isatty(STDOUT_FILENO);
}

/* Who starts us without a stdout hears of it now; main() sees to it that the number is not one of our files. */
static int check_stdout(const struct trace_opts *o, struct err *e)
{
	bool used = o->events || trace_opt_summary(o) || is_stdout(o->perfetto) ||
		    is_stdout(o->cut);
	int flags = fcntl(STDOUT_FILENO, F_GETFL);

	for (int k = 0; k < TRACE_PROFILE_KINDS; k++)
		used |= is_stdout(o->pprof[k]);
	if (!used || flags < 0 || (flags & O_ACCMODE) != O_RDONLY)
		return 0;
	return err_set(e, -EBADF, "stdout is closed, or cannot be written to");
}

static int check_outputs(const struct run *r, struct err *e)
{
	const struct trace_opts *o = r->o;
	int ret = check_stdout(o, e);

	if (!ret)
		ret = check_output(r, o->perfetto, e);

	if (!ret)
		ret = check_output(r, o->cut, e);
	if (!ret && (on_terminal(o->perfetto) || on_terminal(o->cut)))
		return err_set(e, -EINVAL, "a trace is no text for a terminal: name a file");
	for (int k = 0; !ret && k < TRACE_PROFILE_KINDS; k++) {
		ret = check_output(r, o->pprof[k], e);
		if (!ret && on_terminal(o->pprof[k]) && !is_text(o->format))
			return err_set(e, -EINVAL,
				       "--pprof %s: a profile is no text for a terminal: name a "
				       "file (--pprof %s=OUT), or take --format text",
				       trace_profile_name(k), trace_profile_name(k));
	}
	return ret;
}

struct profile_file {
	struct prof *prof;
	const struct output_format *format;
};

static int write_profile(void *arg, FILE *f, struct err *e)
{
	struct profile_file *x = arg;

	return x->format->write(x->prof, f, e);
}

static int describe(const struct run *r, struct prof *p, struct err *e)
{
	int64_t from = r->from_ns, length = r->last_ns - r->from_ns;
	int ret = prof_comment(p, e, "goprof-bpf %s", GOPROF_VERSION);

	prof_set_time(p, r->unix_ns ? r->unix_ns + (from - r->start_ns) : 0, length);
	if (!ret)
		ret = prof_comment(p, e, "source: execution trace, format go 1.%u",
				   exectrace_version(r->in.trace));
	if (!ret)
		ret = prof_comment(p, e, "window: %.9f s, from %.9f s on", (double)length / 1e9,
				   (double)(from - r->start_ns) / 1e9);
	if (!ret && r->damage.msg[0])
		ret = prof_comment(p, e, "loss: the trace is damaged: %s", r->damage.msg);
	return ret;
}

static int put_profile(struct run *r, int kind, struct err *e)
{
	CLEANUP(prof_freep) struct prof *p = NULL;
	struct profile_file x = { NULL, r->o->format };
	int ret = trace_profile_end(r->profiles[kind], &p, e);

	if (!ret)
		ret = describe(r, p, e);
	x.prof = p;
	return ret ? ret : put_file(r, r->o->pprof[kind], write_profile, &x, e);
}

static int put_profiles(struct run *r, struct err *e)
{
	int ret = 0;

	for (int k = 0; !ret && k < TRACE_PROFILE_KINDS; k++)
		if (r->profiles[k])
			ret = put_profile(r, k, e);
	return ret;
}

/* Two things are written while the trace is read. */
static int write_cut(void *arg, FILE *f, struct err *e)
{
	struct run *r = arg;
	int64_t from, to;
	int ret = exectrace_cut(r->in.trace, f, r->o->from_ns,
				r->o->has_to ? r->o->to_ns : INT64_MAX, e);

	r->cuts = !ret;
	if (!ret)
		ret = pass(r, e);
	r->passed = !ret;
	if (!ret)
		ret = exectrace_cut_finish(r->in.trace, &from, &to, e);
	if (!ret)
		tell("%s: has the events from %.9f s to %.9f s", r->o->cut,
		     (double)(from - r->start_ns) / 1e9, (double)(to - r->start_ns) / 1e9);
	return ret;
}

/* All else that is asked for is written even if nothing is left for the cut. */
static int cut_or_pass(struct run *r, struct err *e)
{
	const struct trace_opts *o = r->o;
	bool else_asked = o->perfetto || o->events || r->nasked || r->summary;
	int ret = o->cut ? put_file(r, o->cut, write_cut, r, e) : pass(r, e);

	if (ret != -ENOENT || !r->passed || !else_asked)
		return ret;
	tell("%s: loss: %s", r->in.name, e->msg);
	r->status = EXIT_LOSSES;
	return 0;
}

static int write_perfetto(void *arg, FILE *f, struct err *e)
{
	struct run *r = arg;
	int ret = trace_to_perfetto_new(f, r->in.name, &r->perfetto, e);

	if (!ret)
		ret = cut_or_pass(r, e);
	if (!ret)
		ret = trace_to_perfetto_end(r->perfetto, e);
	trace_to_perfetto_freep(&r->perfetto);
	r->perfetto = NULL;
	return ret;
}

/* ---- all of it ---- */

static int put_summary(struct run *r, struct err *e)
{
	struct trace_report report = {
		.s = r->summary,
		.file = r->in.name,
		.version = exectrace_version(r->in.trace),
		.start_ns = r->start_ns,
		.unix_ns = r->unix_ns,
		.damage = r->damage.msg,
		.part = r->o->from_ns || r->o->has_to,
	};
	int ret = trace_summary_end(r->summary, r->last_ns, e);

	if (ret)
		return ret;
	if (r->o->json)
		return trace_json(&report, r->status);
	trace_text(&report);
	return r->status;
}

static int prepare(struct run *r, struct err *e)
{
	const struct trace_opts *o = r->o;
	unsigned version = exectrace_version(r->in.trace);
	int ret = check_outputs(r, e);

	for (int k = 0; !ret && k < TRACE_PROFILE_KINDS; k++) {
		if (!o->pprof[k])
			continue;
		ret = trace_profile_new(k, version, &r->profiles[k], e);
		r->asked[r->nasked++] = r->profiles[k];
	}
	if (!ret && trace_opt_summary(o))
		ret = trace_summary_new(&r->summary, e);
	return ret;
}

/* The exit status, or a negative errno. */
static int run(struct run *r, struct err *e)
{
	int ret = trace_input_open(&r->in, r->o->file, r->o->exe, e);

	if (!ret)
		ret = prepare(r, e);
	if (!ret)
		ret = r->o->perfetto ? put_file(r, r->o->perfetto, write_perfetto, r, e) :
				       cut_or_pass(r, e);
	if (!ret)
		ret = put_profiles(r, e);
	if (!ret && r->summary)
		ret = put_summary(r, e);
	return ret ? ret : r->status;
}

int cmd_trace(int argc, char **argv)
{
	struct trace_opts o;
	CLEANUP(run_fini) struct run r = { .o = &o, .in = { .fd = -1, .exe_fd = -1 } };
	struct err e = { "" };
	int status = trace_opt_parse(argc, argv, &o);

	if (status >= 0)
		return status;
	r.access.mode = o.mode;
	outdir_asked_by(&r.access);
	r.in.name = strcmp(o.file, "-") ? o.file : "stdin";
	status = stop_init(&e);
	if (!status) {
		cancel_when(stop_asked_ms);
		stop_at_once(true);
		status = run(&r, &e);
	}
	if (status >= 0)
		return status;
	if (status == -ECANCELED)
		snprintf(e.msg, sizeof(e.msg), "stopped before all was written");
	tell("%s: %s", r.in.name, e.msg);
	return EXIT_FAILED;
}
