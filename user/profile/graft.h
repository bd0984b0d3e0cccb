/* user/profile/graft.h - the samples of one profile in another one, below a root of their own. */
#ifndef PROFILE_GRAFT_H
#define PROFILE_GRAFT_H

#include "profile/profile.h"

/*
 * Adds all samples of @from to @to: each stack gets the function @root
 * as its outermost frame. Labels are left out, and losses are added up. Of types only those of @to are taken; where @from
 * lacks one, a comment on @to says so. -ENOMEM.
 */
int prof_graft(struct prof *to, const struct prof *from, const struct loss *lost, const char *root,
	       struct err *e);

#endif
