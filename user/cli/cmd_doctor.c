/* user/cli/cmd_doctor.c - what works here, what is missing, what to do about it. */
#include "base/err.h"
#include "base/version.h"
#include "cli/cmd.h"
#include "cli/report.h"
#include "cli/tell.h"
#include "inspect/ability.h"

static const char help[] =
	"Usage: goprof-bpf doctor [--wide] [--json]\n"
	"\n"
	"Tells which profiles work here, what of the kernel and of our privileges they stand\n"
	"on, and what to do about what is missing. It tries each thing on itself: programs are\n"
	"loaded, clocks opened and a probe set, and all of it is dropped again. Runs without\n"
	"root, and then says what it could not try.\n"
	"\n"
	"  -w, --wide      what each thing is for, also where all is well\n"
	"      --json      for machines (docs/inspect.md names the fields)\n"
	"  -h, --help      this text\n"
	"\n"
	"Marks: ok works, no does not, ?? could not be tried, -- neither good nor bad.\n"
	"Exit status: 0 everything works that profiles of one's own processes need, 1 not.\n";

static const char *const groups[ABILITY_GROUPS] = {
	[ABILITY_PROFILES] = "Profiles",
	[ABILITY_KERNEL] = "Kernel",
	[ABILITY_PRIVILEGES] = "Privileges",
	[ABILITY_SETTINGS] = "Settings",
};

static const char *const marks[] = { "ok", "no", "??", "--" };
static const char *const statuses[] = { "yes", "no", "unknown", "info" };

/* @last: the advice that was given before; it is not repeated. */
static void print_row(const struct ability *b, bool wide, const char **last)
{
	char line[sizeof(b->found) + sizeof(b->remedy)];
	bool bad = b->is == ABILITY_NO || b->is == ABILITY_UNKNOWN;

	snprintf(line, sizeof(line), "%s", b->found);
	tell_clean(line);
	printf(*line ? "  %s  %-38s %s\n" : "  %s  %s\n", marks[b->is], b->title, line);
	if (wide || bad)
		printf("        for: %s\n", b->purpose);
	if (!bad || !*b->remedy || !strcmp(*last, b->remedy))
		return;
	*last = b->remedy;
	snprintf(line, sizeof(line), "%s", b->remedy);
	tell_clean(line);
	printf("        do:  %s\n", line);
}

static void print_text(const struct abilities *a, bool wide)
{
	const char *last = "";

	for (int g = 0; g < ABILITY_GROUPS; g++) {
		printf("%s%s\n", g ? "\n" : "", groups[g]);
		for (size_t i = 0; i < a->n; i++)
			if ((int)a->at[i].group == g)
				print_row(&a->at[i], wide, &last);
	}
	printf("\n%s\n",
	       abilities_enough(a) ?
		       "Profiles of one's own processes work." :
		       "Something that profiles need does not work: see the lines marked no and ??.");
}

static int print_json(const struct abilities *a, int status)
{
	json_t *checks = json_array();

	for (size_t i = 0; i < a->n; i++) {
		const struct ability *b = &a->at[i];

		json_array_append_new(checks,
				      json_pack("{s:s, s:s, s:s, s:s, s:s, s:b, s:o, s:o}", "id",
						b->id, "group", groups[b->group], "title", b->title,
						"for", b->purpose, "status", statuses[b->is],
						"needed", (int)b->needed, "found",
						report_maybe(b->found), "do",
						report_maybe(b->remedy)));
	}
	return report_print(json_pack("{s:s, s:b, s:o}", "version", GOPROF_VERSION, "works",
				      (int)abilities_enough(a), "checks", checks),
			    status);
}

int cmd_doctor(int argc, char **argv)
{
	struct report_opts o;
	struct abilities *a;
	int status = report_options(argc, argv, help, &o);

	if (status >= 0)
		return status;
	a = calloc(1, sizeof(*a));
	if (!a) {
		tell("no memory");
		return EXIT_FAILED;
	}
	abilities_test(a);
	status = abilities_enough(a) ? EXIT_DONE : EXIT_FAILED;
	if (o.json)
		status = print_json(a, status);
	else
		print_text(a, o.wide);
	free(a);
	return status;
}
