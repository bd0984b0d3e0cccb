/* user/collect/wait_sites.h - which place in a program a wait is of: as site_errors.h has it. */
#ifndef COLLECT_WAIT_SITES_H
#define COLLECT_WAIT_SITES_H

#include "collect/subject_priv.h"
#include "goprof_abi.h"

/* For struct tally.depth: the innermost frame outside of the runtime and of what waits are made of, or 1. */
size_t wait_site_depth(struct subject *s, const struct gpb_stack *st);

#endif
