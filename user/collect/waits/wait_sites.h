/*
 * user/collect/waits/wait_sites.h - the place in a program that a wait belongs to; site_errors.h
 * defines it.
 */
#ifndef COLLECT_WAITS_WAIT_SITES_H
#define COLLECT_WAITS_WAIT_SITES_H

#include "goprof_abi.h"
#include "subject/subject.h"

/*
 * For struct tally.depth: number of the innermost frame outside of the runtime and of the
 * packages that waits are made of; 1 when there is none.
 */
size_t wait_site_depth(struct subject *s, const struct gpb_stack *st);

#endif
