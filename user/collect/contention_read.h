/*
 * user/collect/contention_read.h - a block or mutex profile from the runtime's own buckets, as
 * the target's /debug/pprof/block or /mutex would give it at this moment.
 */
#ifndef COLLECT_CONTENTION_READ_H
#define COLLECT_CONTENTION_READ_H

#include "collect/contention.h"
#include "collect/subject_priv.h"
#include "collect/ticks.h"
#include "go/rtcontention.h"

/* The names of what is written and read: "runtime.blockprofilerate", and RTVAR_ of it. */
const char *contention_rate_name(enum contention c);
enum rtvar contention_rate_var(enum contention c);

/*
 * Where this target keeps its buckets, live addresses. Once per target: it may decode
 * instructions. -ENOENT when a variable cannot be found, -EBADMSG when what stands there
 * cannot be its value, -ENOTSUP when this Go's buckets cannot be verified.
 */
int contention_read_find(struct subject *s, enum contention c, struct rtcontention_vars *out,
			 struct err *e);

/* The rate now: block cputicks, mutex 1 in N; 0: the target does not record. */
int contention_read_rate(struct subject *s, const struct rtcontention_vars *v, uint64_t *rate,
			 struct err *e);

/* All buckets, verified where the layout is not sure. */
int contention_read_buckets(struct subject *s, const struct rtcontention_vars *v,
			    struct rtcontentions *out, struct err *e);

/*
 * Is what the buckets of that version hold multiplied by the fraction in force when it is read?
 * Mutex profiles up to Go 1.19: with another fraction than it was sampled with, they are wrong.
 */
bool contention_scales_at_read(const struct rtcontention_vars *v);

/* Sample types and period, as Go has them; once per profile. */
int contention_add_types(struct prof *p, struct err *e);

/*
 * @b as samples of @p: stacks expanded and values scaled by the rules of that Go version, in the
 * order in which Go writes them. The losses of the reading are added to @p. @b may be a
 * difference of two readings.
 * Source: runtime/pprof/pprof.go, printCountCycleProfile, Go 1.16 to 1.27.
 */
int contention_add_samples(struct subject *s, const struct rtcontention_vars *v,
			   const struct rtcontentions *b, const struct ticks *t, struct prof *p,
			   struct err *e);

/* The rate as people say it: "every wait", "waits of 10000 ns and, in proportion, shorter ones". */
enum { CONTENTION_RATE_TEXT = 96 };
void contention_rate_text(enum contention c, uint64_t rate, const struct ticks *t,
			  char out[CONTENTION_RATE_TEXT]);

/* A comment where that Go version does not correct its block profile for the rate. */
int contention_comment_bias(const struct rtcontention_vars *v, uint64_t rate, struct prof *p,
			    struct err *e);

/*
 * All of it into @p, which has no sample types yet, with comments on window, rate and clock.
 * @measured: ticks_measure().
 */
int contention_read_profile(struct subject *s, const struct rtcontention_vars *v, double measured,
			    struct prof *p, struct err *e);

#endif
