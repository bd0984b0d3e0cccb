/*
 * user/collect/waits/looks/wait_sites.h - the place in a program that a wait belongs to; site_errors.h
 * defines it.
 */
#ifndef COLLECT_WAITS_LOOKS_WAIT_SITES_H
#define COLLECT_WAITS_LOOKS_WAIT_SITES_H

#include "goprof_abi.h"
#include "subject/subject.h"

/*
 * For struct tally.depth: number of the innermost frame outside of the runtime and of the
 * packages that waits are made of; 1 when there is none.
 */
size_t wait_site_depth(struct subject *s, const struct gpb_stack *st);

/*
 * Was this semaphore asked for by a package, and not by the runtime itself? Go's block profile has the waits of sync
 * and of poll alone, which enter through functions with names of their own (sync.runtime_Semacquire).
 * Source: the callers of semacquire1 in runtime/sema.go, Go 1.18 to 1.27.
 */
bool wait_site_asked(struct subject *s, const struct gpb_stack *st);

#endif
