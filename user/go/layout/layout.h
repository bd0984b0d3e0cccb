/*
 * user/go/layout/layout.h - field offsets of runtime structs in one binary, and how we know.
 *
 * Sources, best first: the binary's DWARF; the generated table (go/layout/layout_tab.c) at the
 * exact point release, or between two releases of a minor that agree; the nearest release of
 * the same minor in the table. Where DWARF is large (LIMIT_DWARF_BYTES) and the table knows
 * the release, the table is used: it was generated from such releases' DWARF. A release newer
 * than the table, with no DWARF, gets the newest known row and layout.how = LAYOUT_GUESSED,
 * which callers must say aloud. What is nearest or guessed is checked before it is used
 * (go/layout/layout_check.h).
 */
#ifndef GO_LAYOUT_LAYOUT_H
#define GO_LAYOUT_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "go/image/gobin.h"

/* X(id, struct, field): offset of the (dotted) field, -1 where that Go has none. */
#define LAYOUT_FIELDS(X)                                                          \
	X(g_stack_lo, "runtime.g", "stack.lo")                                    \
	X(g_stack_hi, "runtime.g", "stack.hi")                                    \
	X(g_m, "runtime.g", "m")                                                  \
	X(g_sched_sp, "runtime.g", "sched.sp")                                    \
	X(g_sched_pc, "runtime.g", "sched.pc")                                    \
	X(g_sched_bp, "runtime.g", "sched.bp")                                    \
	X(g_syscallsp, "runtime.g", "syscallsp")                                  \
	X(g_syscallpc, "runtime.g", "syscallpc")                                  \
	X(g_syscallbp, "runtime.g", "syscallbp")                                  \
	X(g_goid, "runtime.g", "goid")                                            \
	X(g_labels, "runtime.g", "labels")                                        \
	X(g_atomicstatus, "runtime.g", "atomicstatus")                            \
	X(g_schedlink, "runtime.g", "schedlink")                                  \
	X(g_waitsince, "runtime.g", "waitsince")                                  \
	X(g_waitreason, "runtime.g", "waitreason")                                \
	X(g_lockedm, "runtime.g", "lockedm")                                      \
	X(g_parentgoid, "runtime.g", "parentGoid")                                \
	X(g_gopc, "runtime.g", "gopc")                                            \
	X(g_startpc, "runtime.g", "startpc")                                      \
	X(g_trackingseq, "runtime.g", "trackingSeq")                              \
	X(g_gcassistbytes, "runtime.g", "gcAssistBytes")                          \
	X(g_runningcleanups, "runtime.g", "runningCleanups")                      \
	X(g_bubble, "runtime.g", "bubble")                                        \
	X(bubble_id, "runtime.synctestBubble", "id")                              \
	X(m_g0, "runtime.m", "g0")                                                \
	X(m_gsignal, "runtime.m", "gsignal")                                      \
	X(m_curg, "runtime.m", "curg")                                            \
	X(m_p, "runtime.m", "p")                                                  \
	X(m_preemptoff, "runtime.m", "preemptoff")                                \
	X(m_ncgo, "runtime.m", "ncgo")                                            \
	X(m_vdsosp, "runtime.m", "vdsoSP")                                        \
	X(m_vdsopc, "runtime.m", "vdsoPC")                                        \
	X(m_procid, "runtime.m", "procid")                                        \
	X(m_alllink, "runtime.m", "alllink")                                      \
	X(p_mcache, "runtime.p", "mcache")                                        \
	X(p_id, "runtime.p", "id")                                                \
	X(p_status, "runtime.p", "status")                                        \
	X(p_m, "runtime.p", "m")                                                  \
	X(mcache_nextsample, "runtime.mcache", "nextSample")                      \
	X(mcache_alloc, "runtime.mcache", "alloc")                                \
	X(mcache_tiny, "runtime.mcache", "tiny")                                  \
	X(mcache_tinyoffset, "runtime.mcache", "tinyoffset")                      \
	X(mcache_tinyallocs, "runtime.mcache", "tinyAllocs")                      \
	X(mcache_flushgen, "runtime.mcache", "flushGen")                          \
	X(mspan_startaddr, "runtime.mspan", "startAddr")                          \
	X(mspan_npages, "runtime.mspan", "npages")                                \
	X(mspan_freeindex, "runtime.mspan", "freeindex")                          \
	X(mspan_nelems, "runtime.mspan", "nelems")                                \
	X(mspan_alloccache, "runtime.mspan", "allocCache")                        \
	X(mspan_allocbits, "runtime.mspan", "allocBits")                          \
	X(mspan_gcmarkbits, "runtime.mspan", "gcmarkBits")                        \
	X(mspan_sweepgen, "runtime.mspan", "sweepgen")                            \
	X(mspan_alloccount, "runtime.mspan", "allocCount")                        \
	X(mspan_spanclass, "runtime.mspan", "spanclass")                          \
	X(mspan_elemsize, "runtime.mspan", "elemsize")                            \
	X(mspan_freeindexforscan, "runtime.mspan", "freeIndexForScan")            \
	X(mspan_limit, "runtime.mspan", "limit")                                  \
	X(mspan_state, "runtime.mspan", "state")                                  \
	X(mspan_countbeforecache, "runtime.mspan", "allocCountBeforeCache")       \
	X(mspan_largetype, "runtime.mspan", "largeType")                          \
	X(mheap_sweepgen, "runtime.mheap", "sweepgen")                            \
	X(mheap_allspans, "runtime.mheap", "allspans")                            \
	X(mheap_arenas, "runtime.mheap", "arenas")                                \
	X(heaparena_spans, "runtime.heapArena", "spans")                          \
	X(mstats_heapstats, "runtime.mstats", "heapStats")                        \
	X(mstats_numgc, "runtime.mstats", "numgc")                                \
	X(heapstats_stats, "runtime.consistentHeapStats", "stats")                \
	X(heapstats_gen, "runtime.consistentHeapStats", "gen")                    \
	X(heapdelta_smallalloccount, "runtime.heapStatsDelta", "smallAllocCount") \
	X(heapdelta_smallfreecount, "runtime.heapStatsDelta", "smallFreeCount")   \
	X(heapdelta_largealloc, "runtime.heapStatsDelta", "largeAlloc")           \
	X(heapdelta_largealloccount, "runtime.heapStatsDelta", "largeAllocCount") \
	X(heapdelta_largefree, "runtime.heapStatsDelta", "largeFree")             \
	X(heapdelta_largefreecount, "runtime.heapStatsDelta", "largeFreeCount")   \
	X(heapdelta_tinyalloccount, "runtime.heapStatsDelta", "tinyAllocCount")   \
	X(heapdelta_sizeof, "runtime.heapStatsDelta", NULL)                       \
	X(sched_gcwaiting, "runtime.schedt", "gcwaiting")                         \
	X(sched_timetorun, "runtime.schedt", "timeToRun")                         \
	X(timehist_counts, "runtime.timeHistogram", "counts")                     \
	X(timehist_underflow, "runtime.timeHistogram", "underflow")               \
	X(timehist_overflow, "runtime.timeHistogram", "overflow")                 \
	X(timehist_sizeof, "runtime.timeHistogram", NULL)                         \
	X(sudog_g, "runtime.sudog", "g")                                          \
	X(sudog_next, "runtime.sudog", "next")                                    \
	X(sudog_prev, "runtime.sudog", "prev")                                    \
	X(sudog_elem, "runtime.sudog", "elem.vu")                                 \
	X(sudog_waitlink, "runtime.sudog", "waitlink")                            \
	X(sudog_waittail, "runtime.sudog", "waittail")                            \
	X(sudog_waiters, "runtime.sudog", "waiters")                              \
	X(semaroot_treap, "runtime.semaRoot", "treap")                            \
	X(type_ptrdata, "runtime._type", "ptrdata")                               \
	X(type_size, "runtime._type", "size")                                     \
	X(type_tflag, "runtime._type", "tflag")                                   \
	X(type_kind, "runtime._type", "kind")                                     \
	X(type_str, "runtime._type", "str")                                       \
	X(type_sizeof, "runtime._type", NULL)                                     \
	X(uncommon_pkgpath, "runtime.uncommontype", "pkgpath")                    \
	X(bucket_allnext, "runtime.bucket", "allnext")                            \
	X(bucket_typ, "runtime.bucket", "typ")                                    \
	X(bucket_hash, "runtime.bucket", "hash")                                  \
	X(bucket_size, "runtime.bucket", "size")                                  \
	X(bucket_nstk, "runtime.bucket", "nstk")                                  \
	X(bucket_sizeof, "runtime.bucket", NULL)                                  \
	X(memrecord_sizeof, "runtime.memRecord", NULL)                            \
	X(memcycle_sizeof, "runtime.memRecordCycle", NULL)

enum layout_field {
#define LAYOUT_ENUM(id, s, f) LAYOUT_##id,
	LAYOUT_FIELDS(LAYOUT_ENUM)
#undef LAYOUT_ENUM
		LAYOUT_COUNT
};

enum layout_how { LAYOUT_DWARF, LAYOUT_TABLE, LAYOUT_NEAREST, LAYOUT_GUESSED };

struct golayout {
	enum layout_how how;
	bool newer;		   /* a minor that the table does not know, or no release at all */
	char from[64];		   /* "DWARF", "table go1.22.12 amd64", ... for messages */
	int32_t off[LAYOUT_COUNT]; /* by enum layout_field; -1 absent */
};

/* 0; -ENOTSUP when no offsets are known (Go too old, another arch, no DWARF). */
int layout_find(struct gobin *b, struct golayout *out, struct err *e);

/* From DWARF only; -ENOENT when there is none. The table's generator uses it as well. */
int layout_from_dwarf(struct gobin *b, struct golayout *out, struct err *e);

/* The newest release in the table, "go1.27.4", for messages. */
enum { LAYOUT_RELEASE = 32 };
void layout_newest(char out[LAYOUT_RELEASE]);

const char *layout_field_name(enum layout_field f); /* "g_m" */

/*
 * Slot sizes of small objects. The allocator rounds a request up to one of these; a request
 * larger than max_small takes whole 8192-byte pages. From Go 1.22 on, an object with pointers of
 * more than 512 bytes carries an 8-byte header inside its slot (header_over = 512, else 0).
 * Source: runtime/sizeclasses.go (to 1.24), internal/runtime/gc/sizeclasses.go (1.25+);
 * runtime/malloc.go, heapBitsInSpan.
 */
enum { SIZECLASS_MAX = 128 };
struct sizeclasses {
	uint32_t n;
	uint32_t size[SIZECLASS_MAX]; /* ascending, size[0] the smallest (8) */
	uint32_t header_over;
	uint32_t page; /* 8192 */
};
int layout_sizeclasses(struct gobin *b, struct sizeclasses *out, struct err *e);

/* runtime.bucketType */
enum bucket_kind { BUCKET_MEM = 1, BUCKET_BLOCK = 2, BUCKET_MUTEX = 3, BUCKET_KINDS };

/* "memory", ...: for messages. */
const char *bucket_kind_name(enum bucket_kind k);

#endif
