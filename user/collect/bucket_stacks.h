/*
 * user/collect/bucket_stacks.h - stacks as the runtime's buckets hold them, of a live target, as
 * locations of its profile.
 */
#ifndef COLLECT_BUCKET_STACKS_H
#define COLLECT_BUCKET_STACKS_H

#include "collect/stack_logical.h"
#include "collect/subject_priv.h"

/* For one profile: names and mappings of @s, locations of @p; both borrowed. -ENOMEM. */
int bucket_stacks(struct subject *s, struct prof *p, struct logical **out, struct err *e);

#endif
