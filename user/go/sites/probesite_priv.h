/* user/go/sites/probesite_priv.h - the parts of go/sites/probesite.c that only need bytes, for its tests. */
#ifndef GO_SITES_PROBESITE_PRIV_H
#define GO_SITES_PROBESITE_PRIV_H

#include "arch/arch.h"
#include "go/sites/probesite.h"

/*
 * Finds the site in the function of @size bytes that begins at @entry; @code has the first @n of
 * them. The call of morestack stands at a function's end, perhaps beyond these bytes. 0,
 * -ENOTSUP.
 */
int probesite_decode(struct arch *a, const uint8_t *code, size_t n, uint64_t entry, uint64_t size,
		     enum site_kind *kind, uint64_t *addr, struct err *e);

/*
 * For a function without a stack check, all of it in @code: is a probe at its entry expensive,
 * and is its first branch a SITE_FRAMED_BRANCH? *addr: that branch.
 */
bool probesite_framed(struct arch *a, const uint8_t *code, size_t n, uint64_t entry,
		      uint64_t *addr);

/*
 * Does the code call, jump to or take the address of @target? *calls: it does so by a direct
 * call. True also where the code cannot be decoded, because then nobody knows.
 */
bool probesite_mentions(struct arch *a, const uint8_t *code, size_t n, uint64_t entry,
			uint64_t target, bool *calls);

/*
 * Finds the return instructions that control reaches from @entry; @code is the whole function of
 * @n bytes. Errors as for probesite_returns().
 */
int probesite_flow(struct arch *a, const uint8_t *code, size_t n, uint64_t entry, uint64_t *at,
		   size_t cap, struct err *e);

#endif
