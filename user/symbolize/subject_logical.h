/*
 * user/symbolize/subject_logical.h - turns stacks of return addresses of a live target, as its runtime
 * keeps them, into locations of its profile.
 */
#ifndef SYMBOLIZE_SUBJECT_LOGICAL_H
#define SYMBOLIZE_SUBJECT_LOGICAL_H

#include "subject/subject.h"
#include "symbolize/stack_logical.h"

/*
 * To be called for each profile: names and mappings come from @s, locations go into @p; both are
 * borrowed. -ENOMEM.
 */
int subject_logical(struct subject *s, struct prof *p, struct logical **out, struct err *e);

#endif
