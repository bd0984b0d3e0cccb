/* user/cli/heapdump/dump_input.h - the dump that is read: a file, a pipe, or a pipe's copy in a file. */
#ifndef CLI_HEAPDUMP_DUMP_INPUT_H
#define CLI_HEAPDUMP_DUMP_INPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "cli/input.h"
#include "ingest/heapdump/heapdump.h"

struct dump_input {
	int fd;
	const char *name; /* for messages; borrowed */
	struct heapdump *dump;
	struct stat was; /* as it was opened */
	/* Of the bar. */
	uint64_t size; /* 0: not known */
	unsigned passes, pass;
	uint64_t last, began_ns;
	struct input_stall stall;
};

/*
 * Opens @file ("-": stdin) as a heap dump. @passes: how often it will be read; what can be read only
 * once is copied first when that is more than one: to a file without a name in TMPDIR, or /tmp.
 * One sentence in @e, without the file's name.
 */
int dump_input_open(struct dump_input *in, const char *file, unsigned passes, struct err *e);
void dump_input_fini(struct dump_input *in);

/* -EIO: the file has another size or time than when it was opened. Of a pipe's copy it has not. */
int dump_input_unchanged(const struct dump_input *in, struct err *e);

#endif
