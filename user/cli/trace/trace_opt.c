/* user/cli/trace/trace_opt.c - options of trace, and their help. */
#include "cli/trace/trace_opt.h"

#include <getopt.h>

#include "cli/cmd.h"
#include "cli/opt.h"
#include "cli/tell.h"

static const char help[] =
	"Usage: goprof-bpf trace FILE [options]\n"
	"\n"
	"Reads an execution trace that a Go program wrote with runtime/trace, a flight\n"
	"recorder, /debug/pprof/trace or `go test -trace`, of any version since Go 1.5, and\n"
	"tells what its goroutines did, what they waited for, and what collections took.\n"
	"FILE may be - for stdin, or a pipe: it is copied to a file in TMPDIR (or /tmp)\n"
	"that has no name. Memory does not grow with the trace.\n"
	"\n"
	"What to write (without any of these: a summary on stdout):\n"
	"      --pprof KIND[=OUT]\n"
	"                      a profile; without OUT on stdout; may be repeated. The first\n"
	"                      four are those of `go tool trace -pprof=KIND`. KIND is\n"
	"                      net: waits for the network\n"
	"                      sync: waits for channels, select, sync\n"
	"                      syscall: time in system calls\n"
	"                      sched: time runnable, but without a P\n"
	"                      wait: all of these waits and all others, with a label: reason\n"
	"                      cpu: the CPU samples in the trace\n"
	"      --perfetto OUT  for ui.perfetto.dev: what ran where and when, what waited, and\n"
	"                      who woke whom; collections, tasks, regions; heap, goroutines\n"
	"      --events        a line for each event, on stdout\n"
	"      --json          the summary for programs, on stdout\n"
	"  -o, --output OUT    the trace itself, without what is before --from, after --to,\n"
	"                      or (of Go 1.22 and newer) damaged\n"
	"\n"
	"How:\n"
	"      --from TIME     only what is later; from the first event on: 1.5s, 20ms,\n"
	"                      1.000123456\n"
	"      --to TIME       only what is not later\n"
	"      --exe BINARY    the program that wrote a trace of Go 1.5 or 1.6: it has the names\n"
	"                      of the trace's addresses; newer traces have them themselves\n"
	"      --format FORMAT\n"
	"                      of profiles: pprof (default), folded, text, or flame, a page\n"
	"                      for a browser\n"
	"      --mode MODE     who may read the files: 0600, their owner alone (default),\n"
	"                      0644, everybody\n"
	"  -h, --help          this text\n"
	"\n"
	"A file that exists is replaced only by a whole one. An OUT of - is stdout.\n"
	"\n"
	"Examples:\n"
	"  goprof-bpf trace server.trace\n"
	"  goprof-bpf trace server.trace --pprof sync=sync.pb.gz\n"
	"  goprof-bpf trace server.trace --from 12s --to 14s --perfetto slow.pftrace\n"
	"\n"
	"Exit status: 0 done, 1 failed, 2 wrong usage, 3 the trace is damaged or cut: what\n"
	"came before that was read.\n";

enum {
	O_PPROF = 256,
	O_PERFETTO,
	O_EVENTS,
	O_JSON,
	O_FROM,
	O_TO,
	O_EXE,
	O_FORMAT,
	O_MODE,
};

static const struct option table[] = {
	{ "pprof", required_argument, NULL, O_PPROF },
	{ "perfetto", required_argument, NULL, O_PERFETTO },
	{ "events", no_argument, NULL, O_EVENTS },
	{ "json", no_argument, NULL, O_JSON },
	{ "output", required_argument, NULL, 'o' },
	{ "from", required_argument, NULL, O_FROM },
	{ "to", required_argument, NULL, O_TO },
	{ "exe", required_argument, NULL, O_EXE },
	{ "format", required_argument, NULL, O_FORMAT },
	{ "mode", required_argument, NULL, O_MODE },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static int complain(const char *what, const char *word)
{
	tell("trace: %s '%s' (try trace --help)", what, word);
	return EXIT_USAGE;
}

static int set_output(const char **to, const char *word)
{
	if (!*word)
		return complain("no name for a file:", word);
	*to = strcmp(word, "-") ? word : "/dev/stdout";
	return -1;
}

static int set_profile(struct trace_opts *o, const char *word)
{
	size_t n = strcspn(word, "=");

	for (int k = 0; k < TRACE_PROFILE_KINDS; k++) {
		const char *name = trace_profile_name(k);

		if (strlen(name) == n && !strncmp(name, word, n))
			return set_output(&o->pprof[k], word[n] ? word + n + 1 : "-");
	}
	return complain("--pprof: not net, sync, syscall, sched, wait or cpu:", word);
}

/* ---- times ---- */

static bool digits(const char **s, unsigned max, uint64_t *v, unsigned *n)
{
	*v = 0;
	for (*n = 0; **s >= '0' && **s <= '9'; ++*n, ++*s) {
		if (*n == max)
			return false;
		*v = *v * 10 + (uint64_t)(**s - '0');
	}
	return true;
}

static bool unit_of(const char *s, uint64_t *ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = { { "", 1000000000 }, { "s", 1000000000 }, { "ms", 1000000 },
		      { "us", 1000 },	  { "ns", 1 },	       { "m", 60000000000 } };

	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		if (!strcmp(s, units[i].name)) {
			*ns = units[i].ns;
			return true;
		}
	}
	return false;
}

bool trace_opt_time(const char *s, int64_t *ns)
{
	enum { WHOLE_DIGITS = 12, PART_DIGITS = 9 };
	uint64_t whole, part = 0, unit, scale = 1;
	unsigned n, behind = 0;
	__int128 all;

	if (!digits(&s, WHOLE_DIGITS, &whole, &n))
		return false;
	if (*s == '.') {
		s++;
		if (!digits(&s, PART_DIGITS, &part, &behind) || !behind)
			return false;
	}
	if (!n || !unit_of(s, &unit))
		return false;
	while (behind--)
		scale *= 10;
	all = (__int128)whole * unit + (__int128)part * unit / scale;
	if (all > INT64_MAX / 2)
		return false;
	*ns = (int64_t)all;
	return true;
}

static int set_time(int64_t *to, const char *option, const char *word)
{
	char what[64];

	if (trace_opt_time(word, to))
		return -1;
	snprintf(what, sizeof(what), "%s: not a time such as 1.5s or 20ms:", option);
	return complain(what, word);
}

/* ---- all of it ---- */

static int set(struct trace_opts *o, int opt, const char *word)
{
	switch (opt) {
	case O_PPROF:
		return set_profile(o, word);
	case O_PERFETTO:
		return set_output(&o->perfetto, word);
	case O_EVENTS:
		o->events = true;
		return -1;
	case O_JSON:
		o->json = true;
		return -1;
	case 'o':
		return set_output(&o->cut, word);
	case O_FROM:
		return set_time(&o->from_ns, "--from", word);
	case O_TO:
		o->has_to = true;
		return set_time(&o->to_ns, "--to", word);
	case O_EXE:
		o->exe = word;
		return -1;
	case O_FORMAT:
		o->format = output_find(word);
		return o->format ? -1 :
				   complain("--format: not pprof, folded, text or flame:", word);
	default:
		return opt_mode(word, &o->mode) && opt_mode_fits(o->mode) ?
			       -1 :
			       complain("--mode: not between 0400 and 0666:", word);
	}
}

bool trace_opt_summary(const struct trace_opts *o)
{
	for (int k = 0; k < TRACE_PROFILE_KINDS; k++)
		if (o->pprof[k])
			return o->json;
	return o->json || !(o->perfetto || o->cut || o->events);
}

/* Two outputs with one name would be one. */
static bool twice(const struct trace_opts *o)
{
	const char *all[TRACE_PROFILE_KINDS + 4] = { o->perfetto, o->cut,
						     o->events ? "/dev/stdout" : NULL,
						     o->json ? "/dev/stdout" : NULL };

	memcpy(all + 4, o->pprof, sizeof(o->pprof));
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		for (size_t k = 0; k < i; k++)
			if (all[i] && all[k] && !strcmp(all[i], all[k]))
				return true;
	return false;
}

static int check(const struct trace_opts *o)
{
	if (!o->file) {
		tell("trace: which file? (try trace --help)");
		return EXIT_USAGE;
	}
	if (o->has_to && o->to_ns <= o->from_ns) {
		tell("trace: --to is not after --from");
		return EXIT_USAGE;
	}
	if (twice(o)) {
		tell("trace: two outputs to the same file, or to stdout");
		return EXIT_USAGE;
	}
	return -1;
}

int trace_opt_parse(int argc, char **argv, struct trace_opts *o)
{
	int opt, status;

	*o = (struct trace_opts){ .format = output_find("pprof") };
	optind = 0;
	opterr = 0;
	while ((opt = getopt_long(argc, argv, ":o:h", table, NULL)) != -1) {
		if (opt == 'h') {
			fputs(help, stdout);
			return EXIT_DONE;
		}
		if (opt == ':')
			return complain("a value is missing after", argv[optind - 1]);
		if (opt == '?')
			return complain("unknown option", argv[optind - 1]);
		status = set(o, opt, optarg);
		if (status >= 0)
			return status;
	}
	for (; optind < argc; optind++) {
		if (o->file)
			return complain("unexpected argument", argv[optind]);
		o->file = argv[optind];
	}
	return check(o);
}
