/*
 * user/collect/site_errors.h - how certain the estimates of a profile's sites are: lines of its
 * comments. A site is the innermost line that a sample shows outside of the runtime and of the
 * packages that waits are made of (sync, internal). Where there is no such line, it is the
 * innermost line.
 */
#ifndef COLLECT_SITE_ERRORS_H
#define COLLECT_SITE_ERRORS_H

#include "base/map.h"
#include "base/vec.h"
#include "profile/profile.h"

struct site_error {
	uint32_t loc;	     /* location id */
	uint32_t line;	     /* index of the line among those inlined at the location */
	uint32_t name, file; /* string ids: the same place may be at several locations */
	int64_t number;	     /* of the line in the file */
	double value, variance;
	bool unknown; /* the variance is not known */
};

struct site_errors {
	VEC(struct site_error) sites;
	struct map by_loc;
	double value, variance;
	bool unknown;
	bool told; /* all_variance is that of all sites together; < 0: not known */
	double all_variance;
};

/* Is a function of this name a part of how a program waits or allocates, and not of why? */
bool site_is_machinery(const char *func);

/*
 * Adds the value and the variance of the sample that @p was given last. @variance < 0: not known.
 */
int site_errors_add(struct site_errors *s, const struct prof *p, double value, double variance,
		    struct err *e);
/*
 * For sites whose sum is known better than each of them: adds a part of the variance of all sites
 * together, which is then the one that is written. < 0: not known.
 */
void site_errors_all(struct site_errors *s, double variance);
/*
 * Writes a line for all sites together, for each of the 16 largest, and for the rest. A function,
 * file and line are one site, at however many locations the compiler put that line: their values
 * and, because how their errors depend on each other is not kept, their standard errors are added
 * up. @type: the sample type of the values. To be called once, at the end.
 */
int site_errors_comment(struct site_errors *s, struct prof *p, const char *type, struct err *e);
void site_errors_fini(struct site_errors *s);

#endif
