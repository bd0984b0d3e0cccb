/* user/cli/cmd_heal.c - free the breakpoints that killed tracers left behind. */
#include <getopt.h>

#include "base/sys/caps.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/sys/priority.h"
#include "cli/cmd.h"
#include "cli/tell.h"
#include "probe/uprobes/leftovers.h"

static const char help[] =
	"Usage: goprof-bpf heal [-p PID]\n"
	"\n"
	"Frees breakpoints that were left in the code of Go programs. When a process that\n"
	"puts probes in is killed in the middle of it, the kernel leaves some where they\n"
	"are: they change nothing, but the program is slower each time it passes one.\n"
	"A probe that does nothing is put in at each and taken out again, and the kernel\n"
	"restores what nobody uses. Probes at work, anybody's, stay and miss nothing. A\n"
	"program under a debugger is left alone.\n"
	"\n"
	"  -p, --pid PID   this process only (default: all Go processes)\n"
	"  -h, --help      this text\n"
	"\n"
	"Needs what probes need: root, or CAP_BPF and CAP_PERFMON, and CAP_SYS_PTRACE for\n"
	"other users' processes. Each process with breakpoints is a line on stdout.\n"
	"Exit status: 0 none is left, 1 failed, 2 wrong usage, 3 some could not be freed, or\n"
	"some processes could not be looked at.\n";

struct options {
	pid_t pid;
};

static int complain(const char *what, const char *word)
{
	tell("heal: %s '%s' (try heal --help)", what, word);
	return EXIT_USAGE;
}

static pid_t pid_in(const char *word)
{
	char *end;
	long v = *word >= '0' && *word <= '9' ? strtol(word, &end, 10) : 0;

	return v > 0 && v <= INT32_MAX && !*end ? (pid_t)v : 0;
}

/* -1 to go on, else the exit status. */
static int parse(int argc, char **argv, struct options *o)
{
	static const struct option table[] = {
		{ "pid", required_argument, NULL, 'p' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int opt;

	optind = 0;
	opterr = 0;
	while ((opt = getopt_long(argc, argv, ":p:h", table, NULL)) != -1) {
		if (opt == 'h') {
			fputs(help, stdout);
			return EXIT_DONE;
		}
		if (opt == ':')
			return complain("a value is missing after", argv[optind - 1]);
		if (opt != 'p')
			return complain("unknown option", argv[optind - 1]);
		o->pid = pid_in(optarg);
		if (!o->pid)
			return complain("no process id:", optarg);
	}
	return optind < argc ? complain("unexpected argument", argv[optind]) : -1;
}

/* stdout is for what was found; what could not be looked at is counted at the end. */
static void one(void *arg, const struct heal_found *f)
{
	size_t live = f->found - f->freed - f->barred;

	(void)arg;
	if (!f->found)
		return;
	printf("%d %s: ", f->pid, f->comm);
	if (*f->why) {
		printf("%zu breakpoints, not freed: %s\n", f->found - f->freed, f->why);
		return;
	}
	printf("%zu breakpoints freed", f->freed);
	if (live)
		printf(", %zu in use by probes at work (or by some that end just now)", live);
	if (f->barred)
		printf(", %zu left alone on jumps over eight bytes, which some kernels overwrite",
		       f->barred);
	putchar('\n');
}

static void tell_denied(const struct heal_sum *sum)
{
	bool may = caps_have(CAP_SYS_PTRACE) && caps_initial_userns();
	char why[CAPS_DENIED];

	tell("heal: %zu processes could not be looked at%s%s", sum->denied, may ? "" : ": ",
	     may ? "" : caps_denied(CAP_SYS_PTRACE, why));
}

int cmd_heal(int argc, char **argv)
{
	struct options o = { 0 };
	struct heal_sum sum;
	const char *others;
	struct err e = { "" };
	int status = parse(argc, argv, &o);
	struct heal_opts h = { .pid = o.pid, .heal = true, .told = one };

	if (status >= 0)
		return status;
	priority_session_heal();
	if (heal_run(&h, &sum, &e)) {
		tell("heal: %s", e.msg);
		return EXIT_FAILED;
	}
	others = sum.denied ? "the other processes" : "Go processes";
	if (sum.denied)
		tell_denied(&sum);
	if (!sum.found)
		tell("heal: no breakpoints in the code of %s", o.pid ? "this process" : others);
	if (sum.left_out)
		tell("heal: %zu processes were left out: looking at the others took more than %d s",
		     sum.left_out, LIMIT_HEAL_MS / 1000);
	if (sum.unseen)
		tell("heal: %zu mappings of code could not be compared with their file",
		     sum.unseen);
	return sum.failed || sum.barred || sum.denied || sum.unseen || sum.left_out ? EXIT_LOSSES :
										      EXIT_DONE;
}
