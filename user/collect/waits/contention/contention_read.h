/*
 * user/collect/waits/contention/contention_read.h - a block or mutex profile from the runtime's own buckets, as
 * the target's /debug/pprof/block or /mutex would give it at this moment.
 */
#ifndef COLLECT_WAITS_CONTENTION_CONTENTION_READ_H
#define COLLECT_WAITS_CONTENTION_CONTENTION_READ_H

#include "collect/waits/contention/contention.h"
#include "collect/waits/contention/ticks.h"
#include "go/runtime/rtcontention.h"
#include "profile/profile.h"
#include "subject/subject.h"

/*
 * The name of the variable that is read and written, "runtime.blockprofilerate", and its RTVAR_.
 */
const char *contention_rate_name(enum contention c);
enum rtvar contention_rate_var(enum contention c);

/*
 * Finds where this target keeps its buckets, as live addresses. To be called once for each
 * target, because it may decode instructions. -ENOENT when a variable cannot be found, -EBADMSG
 * when what stands there cannot be its value, -ENOTSUP when this Go's buckets cannot be verified.
 */
int contention_read_find(struct subject *s, enum contention c, struct rtcontention_vars *out,
			 struct err *e);

/* The present rate: for block in cputicks, for mutex 1 in N; 0: the target does not record. */
int contention_read_rate(struct subject *s, const struct rtcontention_vars *v, uint64_t *rate,
			 struct err *e);

/* Reads all buckets, which are verified where the layout is not certain. */
int contention_read_buckets(struct subject *s, const struct rtcontention_vars *v,
			    struct rtcontentions *out, struct err *e);

/*
 * Are the contents of that version's buckets multiplied, when they are read, by the fraction in
 * force? This is so for mutex profiles up to Go 1.19: with another fraction than they were
 * sampled with, they are wrong.
 */
bool contention_scales_at_read(const struct rtcontention_vars *v);

/* Adds sample types and period as Go has them; once for each profile. */
int contention_add_types(struct prof *p, struct err *e);

/*
 * Adds @b to @p as samples: stacks are expanded and values scaled by the rules of that Go
 * version, in the order in which Go writes them. The losses of the reading are added to @p. @b
 * may be a difference of two readings. Source: runtime/pprof/pprof.go, printCountCycleProfile, Go
 * 1.16 to 1.27.
 */
int contention_add_samples(struct subject *s, const struct rtcontention_vars *v,
			   const struct rtcontentions *b, const struct ticks *t, struct prof *p,
			   struct err *e);

/* The rate in words: "every wait", "waits of 10000 ns and, in proportion, shorter ones". */
enum { CONTENTION_RATE_TEXT = 96 };
void contention_rate_text(enum contention c, uint64_t rate, const struct ticks *t,
			  char out[CONTENTION_RATE_TEXT]);

/* Adds a comment where that Go version does not correct its block profile for the rate. */
int contention_comment_bias(const struct rtcontention_vars *v, uint64_t rate, struct prof *p,
			    struct err *e);

/*
 * Puts everything into @p, which has no sample types yet, with comments on window, rate and
 * clock. @measured: from ticks_measure().
 */
int contention_read_profile(struct subject *s, const struct rtcontention_vars *v, double measured,
			    struct prof *p, struct err *e);

#endif
