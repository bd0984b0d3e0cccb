/* user/cli/report.c - options and JSON of ps and doctor. */
#include "cli/report.h"

#include <getopt.h>

#include "base/err.h"
#include "cli/cmd.h"
#include "cli/tell.h"
#include "profile/utf8.h"

static int complain(const char *command, const char *what, const char *word)
{
	tell("%s: %s '%s' (try %s --help)", command, what, word, command);
	return EXIT_USAGE;
}

int report_options(int argc, char **argv, const char *help, struct report_opts *o)
{
	static const struct option table[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "wide", no_argument, NULL, 'w' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int opt;

	*o = (struct report_opts){ 0 };
	optind = 0;
	opterr = 0;
	while ((opt = getopt_long(argc, argv, ":wh", table, NULL)) != -1) {
		if (opt == 'j') {
			o->json = true;
		} else if (opt == 'w') {
			o->wide = true;
		} else if (opt == 'h') {
			fputs(help, stdout);
			return EXIT_DONE;
		} else {
			return complain(argv[0], "unknown option", argv[optind - 1]);
		}
	}
	return optind < argc ? complain(argv[0], "unexpected argument", argv[optind]) : -1;
}

json_t *report_string(const char *s)
{
	CLEANUP(freep) char *fixed = malloc(strlen(s) * 3 + 1);

	if (!fixed)
		return NULL;
	utf8_fix(s, strlen(s), fixed);
	return json_string(fixed);
}

json_t *report_maybe(const char *s)
{
	return *s ? report_string(s) : json_null();
}

int report_print(json_t *root, int status)
{
	int ret = root ? json_dumpf(root, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII) : -1;

	if (!root)
		tell("no memory for JSON");
	else if (ret)
		tell("cannot write to stdout: %s", strerror(errno));
	json_decref(root);
	if (ret)
		return EXIT_FAILED;
	putchar('\n');
	return status;
}
