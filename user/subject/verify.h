/* user/subject/verify.h - may this target's offsets be used when they are not certain? */
#ifndef SUBJECT_VERIFY_H
#define SUBJECT_VERIFY_H

#include "go/layout/layout_check.h"
#include "subject/subject.h"

/*
 * A collector asks this before it hands offsets to the BPF side. For offsets from DWARF or from
 * an exact row of the table nothing is done; others are compared with the binary's code and the
 * live goroutines (go/layout/layout_check.h), and s->layout is set to what was found.
 */
int verify_structs(struct subject *s, enum layout_use use, struct err *e);

/*
 * The same for the heap profile's buckets, before every reading. @mbuckets: live address of the
 * variable that holds the head of the list.
 */
int verify_buckets(struct subject *s, uint64_t mbuckets, struct err *e);

/* The same for those of the block or mutex profile. */
int verify_contention(struct subject *s, enum bucket_kind kind, uint64_t buckets, struct err *e);

#endif
