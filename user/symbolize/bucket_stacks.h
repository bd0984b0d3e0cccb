/*
 * user/symbolize/bucket_stacks.h - turns stacks that the runtime's buckets of a live target hold
 * into locations of its profile.
 */
#ifndef SYMBOLIZE_BUCKET_STACKS_H
#define SYMBOLIZE_BUCKET_STACKS_H

#include "subject/subject.h"
#include "symbolize/stack_logical.h"

/*
 * To be called for each profile: names and mappings come from @s, locations go into @p; both are
 * borrowed. -ENOMEM.
 */
int bucket_stacks(struct subject *s, struct prof *p, struct logical **out, struct err *e);

#endif
