/* user/collect/trust.h - may this target's offsets be used, when they are not sure? */
#ifndef COLLECT_TRUST_H
#define COLLECT_TRUST_H

#include "collect/subject_priv.h"
#include "go/layout_check.h"

/*
 * To be asked by a collector before it hands offsets to the BPF side. Nothing to do for
 * offsets from DWARF or an exact row of the table; others are compared with the binary's code
 * and the live goroutines (go/layout_check.h), and s->layout is set to what was found.
 */
int trust_structs(struct subject *s, enum layout_use use, struct err *e);

/*
 * The same for the heap profile's buckets, before every reading. @mbuckets: live address of
 * the variable that the list hangs off.
 */
int trust_buckets(struct subject *s, uint64_t mbuckets, struct err *e);

/* And for those of the block or mutex profile. */
int trust_contention(struct subject *s, enum bucket_kind kind, uint64_t buckets, struct err *e);

#endif
