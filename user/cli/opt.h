/* user/cli/opt.h - the command line of a live profile, checked whole before anything is done. */
#ifndef CLI_OPT_H
#define CLI_OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "host/pick.h"
#include "collect/collect.h"
#include "output/output.h"

enum { OPT_FORMATS_MAX = 8, OPT_PIDS_MAX = 512 };

struct opts {
	pid_t pid;	/* the first one that is given; 0 with a command */
	char **command; /* what stands behind "--", borrowed from argv; NULL with a pid */
	bool follow;	/* its children too */
	/* many at once: all Go processes that pick wants, or these, none twice */
	bool all, dry_run;
	pid_t pids[OPT_PIDS_MAX];
	size_t npids;
	struct pick pick;
	bool cpu, heap, block, mutex, wait, goroutine; /* the kinds */
	bool verbose;
	uint64_t duration_ns;				      /* 0: until the command ends */
	mode_t mode;					      /* of the files */
	const char *dir;				      /* borrowed from argv */
	const struct output_format *formats[OPT_FORMATS_MAX]; /* as given, none twice */
	size_t nformats;
	struct collect_opts collect; /* say is left empty */
};

enum opt_what { OPT_RUN, OPT_HELP, OPT_VERSION };

/*
 * What was asked for, or -EINVAL with one sentence. *o is whole after OPT_RUN only. Uses
 * getopt_long, whose state is the process': not for two threads at once.
 */
int opt_parse(int argc, char **argv, struct opts *o, struct err *e);

/* Single values; false leaves *v alone. The whole of @s must be the value. */
bool opt_number(const char *s, uint64_t min, uint64_t max, uint64_t *v);
/* "10s", "500ms", "1.5m", "1h30m", "10" (seconds), in ns; false when it is none or overflows. */
bool opt_duration(const char *s, uint64_t *ns);
/* "10000ns", "10us", "1ms", "2s", in ns. */
bool opt_wait_time(const char *s, uint64_t *ns);
/* "5%", "0.5%", "0", in millionths; at most 100%. */
bool opt_share(const char *s, uint64_t *ppm);
/* "524288", "512k", "1M", "1G", in bytes, by 1024. */
bool opt_size(const char *s, uint64_t *bytes);

/* An octal number such as "0600", as chmod takes it. */
bool opt_mode(const char *s, mode_t *mode);
/* Who cannot read a file has no use for it, and nobody runs it. */
static inline bool opt_mode_fits(mode_t mode)
{
	return (mode & 0400) && !(mode & ~(mode_t)0666);
}

/* The help text. */
extern const char opt_help[];

#endif
