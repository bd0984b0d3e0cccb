/*
 * user/go/runtime/vars/rtvar.h - where the runtime keeps its variables in one binary.
 *
 * The address comes from .symtab where there is one. Else the instructions of runtime functions
 * are decoded that are known to use the variable (their names come from pclntab, which stripping
 * leaves in place). Where the evidence does not point to exactly one address there is no answer.
 * What is then read at the address is checked (rtvar_plausible) before it is believed.
 */
#ifndef GO_RUNTIME_VARS_RTVAR_H
#define GO_RUNTIME_VARS_RTVAR_H

#include <stdint.h>

#include "base/err.h"
#include "go/image/gobin.h"
#include "go/layout/layout.h"

enum rtvar {
	RTVAR_MEMPROFILERATE,	      /* runtime.MemProfileRate: int, bytes; 0 off */
	RTVAR_MBUCKETS,		      /* runtime.mbuckets: *bucket */
	RTVAR_MPROFCYCLE,	      /* go1.19+: runtime.mProfCycle (uint32: cycle<<1 | flushed);
			       * before: runtime.mProf {cycle uint32; flushed bool} */
	RTVAR_BBUCKETS,		      /* runtime.bbuckets: *bucket, block profile */
	RTVAR_XBUCKETS,		      /* runtime.xbuckets: *bucket, mutex profile */
	RTVAR_BLOCKPROFILERATE,	      /* runtime.blockprofilerate: uint64, cputicks; 0 off */
	RTVAR_MUTEXPROFILERATE,	      /* runtime.mutexprofilerate: uint64, 1 in N; 0 off */
	RTVAR_DISABLEMEMORYPROFILING, /* go1.17+: runtime.disableMemoryProfiling: bool */
	RTVAR_ALLGS,		      /* runtime.allgs: []*g */
	RTVAR_ALLGLEN,		      /* runtime.allglen: uintptr; read it before allgptr */
	RTVAR_ALLGPTR,		      /* runtime.allgptr: **g */
	RTVAR_ALLP,		      /* runtime.allp: []*p */
	RTVAR_ALLM,		      /* runtime.allm: *m, linked by m.alllink */
	RTVAR_MHEAP,		      /* runtime.mheap_: mheap */
	/*
	 * runtime.ticks. go1.22+: {lock 8 bytes; startTicks; startTime; val}; before go1.22
	 * val only, behind a lock, and only in programs that read block or mutex profiles.
	 */
	RTVAR_TICKS,
	RTVAR_MEMSTATS,		/* runtime.memstats: mstats */
	RTVAR_SCHED,		/* runtime.sched: schedt */
	RTVAR_GCBLACKENENABLED, /* runtime.gcBlackenEnabled: uint32, 1 while the GC marks */
	RTVAR_COUNT
};

/*
 * The link-time address; found once for each @b. -ENOENT with what was tried, also where this Go or this program has no
 * such variable; a plugin has none.
 */
int rtvar_find(struct gobin *b, enum rtvar v, uint64_t *addr, struct err *e);

/* The same without .symtab, by instructions only, to prove that both agree. */
int rtvar_decode(struct gobin *b, enum rtvar v, uint64_t *addr, struct err *e);

const char *rtvar_name(enum rtvar v);

/*
 * Can the value at @addr (live: bias added) of the running process @live be that of this
 * variable? This must be asked before the value is believed. @minor is the Go minor version, -1
 * unknown. For mheap_, and for ticks before go1.22, it is only checked that it can be read,
 * because their contents prove nothing. -EBADMSG with what was found; -EFAULT, -ESRCH when it
 * cannot be read.
 */
int rtvar_plausible(struct mem *live, const struct golayout *l, int minor, enum rtvar v,
		    uint64_t addr, struct err *e);

#endif
