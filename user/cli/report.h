/* user/cli/report.h - what ps and doctor share: their options, and JSON that cannot be broken. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <jansson.h>

struct report_opts {
	bool json, wide;
};

/*
 * Reads the options of a command that takes no others. Returns -1 to go on, else the exit status:
 * then --help was answered, or the complaint was printed.
 */
int report_options(int argc, char **argv, const char *help, struct report_opts *o);

/* A string of foreign bytes: what is not UTF-8 becomes U+FFFD. NULL when there is no memory. */
json_t *report_string(const char *s);
/* The same, and null for "". */
json_t *report_maybe(const char *s);

/*
 * Prints @root (ASCII only, indented) and frees it; a NULL @root means no memory. Returns the
 * exit status.
 */
int report_print(json_t *root, int status);

#endif
