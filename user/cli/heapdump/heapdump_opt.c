/* user/cli/heapdump/heapdump_opt.c - options of heapdump, and their help. */
#include "cli/heapdump/heapdump_opt.h"

#include <getopt.h>
#include <libgen.h>
#include <sys/stat.h>

#include "cli/cmd.h"
#include "cli/opt.h"
#include "cli/tell.h"

static const char help[] =
	"Usage: goprof-bpf heapdump FILE [options]\n"
	"       goprof-bpf heapdump BEFORE AFTER [--exe BINARY] [--heap-rate BYTES]\n"
	"                                         [--json]\n"
	"\n"
	"Reads a heap dump that a Go program wrote with runtime/debug.WriteHeapDump, of\n"
	"any version since Go 1.3, and tells which types use the heap, who holds it, and\n"
	"how much each retains: what could be freed if it were gone. Of two dumps of one\n"
	"program it tells what grew: by type, by holder, by stack and by allocation site.\n"
	"FILE may be - for stdin, or a pipe: it is copied to a file in TMPDIR (or /tmp)\n"
	"that has no name, unless --pprof is all that is asked for.\n"
	"Memory: with --pprof alone less than 64 MB, else at most a quarter of the dump's\n"
	"size, or 32 MB. What that is too little for (very small objects, very many\n"
	"goroutines) lies in such files, too: up to 28 bytes for each object, and 24 for\n"
	"each frame, goroutine and word of a global variable.\n"
	"\n"
	"What to write (without any of these: a summary on stdout):\n"
	"      --pprof OUT     in use and allocated, by allocation site, as Go's heap\n"
	"                      profile; of a program with a memory profile, which is the\n"
	"                      default. One pass and little memory for any dump\n"
	"      --holders OUT   who holds what, as a profile: stacks lead from the root (a\n"
	"                      global, a goroutine and its function, a finalizer) over\n"
	"                      fields to objects, and what is below a frame is what it\n"
	"                      retains\n"
	"      --hprof OUT     the heap for tools that read Java's (HPROF): VisualVM,\n"
	"                      Eclipse MAT, LeakCanary's shark, hprof-slurp, Perfetto\n"
	"      --contents      with --hprof: also the bytes of objects that hold no pointers\n"
	"                      (strings, byte slices, numbers), which may be secret\n"
	"      --path ADDRESS  the shortest path from a root to the object that the\n"
	"                      address lies in, on stdout\n"
	"      --dot OUT       a graph for Graphviz: the largest holders, or with --path\n"
	"                      the path and what is around its end\n"
	"      --json          the summary, the path or what grew, for programs, on\n"
	"                      stdout\n"
	"\n"
	"How:\n"
	"      --exe BINARY    the program that wrote the dump, with its DWARF: adds Go's\n"
	"                      types, and names of fields and globals. Without it objects\n"
	"                      are told apart by size and by where their pointers are\n"
	"      --heap-rate BYTES\n"
	"                      runtime.MemProfileRate of the program, which the dump does\n"
	"                      not tell: 64k, 1 (default 512k, as Go's)\n"
	"      --format FORMAT\n"
	"                      of --pprof and --holders: pprof (default), folded, text, or\n"
	"                      flame, a page for a browser\n"
	"      --mode MODE     who may read the files: 0600, their owner alone (default),\n"
	"                      0644, everybody\n"
	"  -h, --help          this text\n"
	"\n"
	"A file that exists is replaced only by a whole one. An OUT of - is stdout.\n"
	"\n"
	"Examples:\n"
	"  goprof-bpf heapdump server.dump\n"
	"  goprof-bpf heapdump server.dump --holders out.html --format flame\n"
	"  ssh host cat server.dump | goprof-bpf heapdump - --pprof sites.pb.gz\n"
	"\n"
	"Exit status: 0 done, 1 failed, 2 wrong usage, 3 the dump is damaged or cut (what\n"
	"came before that was read), or it has more than there is room for.\n";

enum {
	O_JSON = 256,
	O_PPROF,
	O_HOLDERS,
	O_PATH,
	O_DOT,
	O_HPROF,
	O_CONTENTS,
	O_HEAP_RATE,
	O_FORMAT,
	O_MODE,
	O_EXE,
};

static const struct option table[] = {
	{ "json", no_argument, NULL, O_JSON },
	{ "pprof", required_argument, NULL, O_PPROF },
	{ "holders", required_argument, NULL, O_HOLDERS },
	{ "path", required_argument, NULL, O_PATH },
	{ "dot", required_argument, NULL, O_DOT },
	{ "hprof", required_argument, NULL, O_HPROF },
	{ "contents", no_argument, NULL, O_CONTENTS },
	{ "heap-rate", required_argument, NULL, O_HEAP_RATE },
	{ "format", required_argument, NULL, O_FORMAT },
	{ "mode", required_argument, NULL, O_MODE },
	{ "exe", required_argument, NULL, O_EXE },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static int complain(const char *what, const char *word)
{
	tell("heapdump: %s '%s' (try heapdump --help)", what, word);
	return EXIT_USAGE;
}

static int set_output(const char **to, const char *word)
{
	if (!*word)
		return complain("no name for a file:", word);
	*to = strcmp(word, "-") ? word : "/dev/stdout";
	return -1;
}

/* As Go and this program print it, or without 0x. */
static int set_address(struct heapdump_opts *o, const char *word)
{
	const char *digits = strncmp(word, "0x", 2) ? word : word + 2;
	size_t n = strlen(digits);

	if (!n || n > 16 || strspn(digits, "0123456789abcdefABCDEF") != n)
		return complain("--path: not an address such as 0xc000012345:", word);
	o->address = strtoull(digits, NULL, 16);
	o->path = true;
	return -1;
}

static int set_rate(struct heapdump_opts *o, const char *word)
{
	uint64_t v;

	if (!opt_size(word, &v) || !v || v > INT64_MAX)
		return complain("--heap-rate: not a size such as 524288 or 512k:", word);
	o->heap_rate = (int64_t)v;
	return -1;
}

static int set(struct heapdump_opts *o, int opt, const char *word)
{
	switch (opt) {
	case O_JSON:
		o->json = true;
		return -1;
	case O_PPROF:
		return set_output(&o->pprof, word);
	case O_HOLDERS:
		return set_output(&o->holders, word);
	case O_EXE:
		o->exe = word;
		return -1;
	case O_DOT:
		return set_output(&o->dot, word);
	case O_HPROF:
		return set_output(&o->hprof, word);
	case O_CONTENTS:
		o->contents = true;
		return -1;
	case O_PATH:
		return set_address(o, word);
	case O_HEAP_RATE:
		return set_rate(o, word);
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

bool heapdump_opt_outputs(const struct heapdump_opts *o)
{
	return o->pprof || o->holders || o->dot || o->path || o->hprof;
}

bool heapdump_opt_graph(const struct heapdump_opts *o)
{
	return (!o->pprof && !o->hprof) || o->holders || o->dot || o->path || o->json;
}

/* Two names of one file: "x" and "./x", links, files that are there or will be. */
static bool same_file(const char *a, const char *b)
{
	CLEANUP(freep) char *da = strdup(a), *db = strdup(b);
	const char *na = strrchr(a, '/'), *nb = strrchr(b, '/');
	struct stat sa, sb;

	if (!strcmp(a, b))
		return true;
	if (!stat(a, &sa) && !stat(b, &sb))
		return sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino && !S_ISCHR(sa.st_mode);
	if (!da || !db || strcmp(na ? na + 1 : a, nb ? nb + 1 : b))
		return false;
	return !stat(dirname(da), &sa) && !stat(dirname(db), &sb) && sa.st_dev == sb.st_dev &&
	       sa.st_ino == sb.st_ino;
}

/* Of what is written, stdout included, two to one place would overwrite or mix each other. */
static bool twice(const struct heapdump_opts *o)
{
	const char *all[] = { o->pprof, o->holders, o->dot, o->hprof,
			      o->json || o->path ? "/dev/stdout" : NULL };

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		for (size_t k = 0; k < i; k++)
			if (all[i] && all[k] && same_file(all[i], all[k]))
				return true;
	return false;
}

static int check(const struct heapdump_opts *o)
{
	if (!o->nfiles) {
		tell("heapdump: which file? (try heapdump --help)");
		return EXIT_USAGE;
	}
	if (o->nfiles == 2 && heapdump_opt_outputs(o)) {
		tell("heapdump: of two dumps it tells what grew, and writes no files "
		     "(try heapdump --help)");
		return EXIT_USAGE;
	}
	if (o->nfiles == 2 && !strcmp(o->files[0], "-") && !strcmp(o->files[1], "-")) {
		tell("heapdump: only one dump can come from stdin");
		return EXIT_USAGE;
	}
	if (o->contents && !o->hprof) {
		tell("heapdump: --contents without --hprof (try heapdump --help)");
		return EXIT_USAGE;
	}
	if (o->format && !o->pprof && !o->holders) {
		tell("heapdump: --format is of --pprof and --holders, and neither is asked for "
		     "(try heapdump --help)");
		return EXIT_USAGE;
	}
	if (twice(o)) {
		tell("heapdump: two outputs to the same file");
		return EXIT_USAGE;
	}
	return -1;
}

int heapdump_opt_parse(int argc, char **argv, struct heapdump_opts *o)
{
	int opt, status;

	*o = (struct heapdump_opts){ .heap_rate = 512 << 10 };
	optind = 0;
	opterr = 0;
	while ((opt = getopt_long(argc, argv, ":h", table, NULL)) != -1) {
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
		if (o->nfiles == ARRAY_LEN(o->files))
			return complain("unexpected argument", argv[optind]);
		o->files[o->nfiles++] = argv[optind];
	}
	status = check(o);
	if (!o->format)
		o->format = output_find("pprof");
	return status;
}
