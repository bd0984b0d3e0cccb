/*
 * user/output/output.h - a profile as bytes. The front door of output/.
 */
#ifndef OUTPUT_OUTPUT_H
#define OUTPUT_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/err.h"
#include "profile/profile.h"

struct output_format {
	const char *name; /* "pprof", "folded", "text", "flame": as given to --format */
	const char *ext;  /* "pb.gz", "folded", "txt", "html" */
	/* Writes the whole profile to @f. The caller flushes, checks and closes. */
	int (*write)(struct prof *p, FILE *f, struct err *e);
};

/* NULL when there is no such format. */
const struct output_format *output_find(const char *name);
/* The i-th format, NULL after the last. */
const struct output_format *output_at(size_t i);

/*
 * The @n largest functions by the profile's default (else last) sample type, as a table with
 * flat and cumulative values: what `make demo` and --format text show.
 */
int output_top(struct prof *p, size_t n, FILE *f, struct err *e);

/*
 * Who may read a file. Profiles hold label values, names and goroutines of other people's programs,
 * and their writer is root mostly.
 */
struct output_access {
	mode_t mode; /* exact, the umask has no part in it; 0: 0600 */
	/*
	 * Who has asked root for it (sudo); 0: nobody. The file is theirs when the directory is, or
	 * when it is one that everybody can write to and nobody can take from others (/tmp).
	 */
	uid_t uid;
	gid_t gid;
	bool kept; /* out: a file stayed root's, for the directory is neither */
	bool told; /* for the caller: that has been said */
	const struct output_temp *volatile temp; /* private: the file that is not whole yet */
};

/*
 * Write atomically: to a temporary file in the same directory, then rename. A file that
 * exists is replaced only when the new one is complete. @access NULL: as if zeroed.
 */
int output_to_file(struct prof *p, const struct output_format *fmt, const char *path,
		   struct output_access *access, struct err *e);

/* Writes to @f, which the caller flushes, checks and closes. May seek, but on streams. */
typedef int output_writer(void *arg, FILE *f, struct err *e);

/*
 * The same for any contents, at a path that somebody named. To /dev/stdout, /dev/fd/N, a device and
 * a FIFO of our own it writes as it goes, since nothing there can be replaced.
 */
int output_file(const char *path, struct output_access *access, output_writer *write, void *arg,
		struct err *e);
/* Before the process ends in a signal handler: nothing is left of the file that is written with @access and is not whole. */
void output_abandon(const struct output_access *access);

#endif
