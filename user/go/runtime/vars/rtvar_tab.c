/*
 * user/go/runtime/vars/rtvar_tab.c - which functions use which runtime variable.
 *
 * Source: tests/support/rtwho_main.c over official builds of Go 1.16 to 1.27, amd64 and arm64, of
 * all build modes. In each of them enough of the witnesses name the variable, also in programs
 * that never ask for a profile.
 */
#include "go/runtime/vars/rtvar_priv.h"

#define BLOCK_READERS "runtime.BlockProfile", "runtime.blockProfileInternal"
#define MUTEX_READERS "runtime.MutexProfile", "runtime.mutexProfileInternal"
#define FLUSH	      "runtime.mProf_FlushLocked"

const struct rtvar_def rtvar_defs[RTVAR_COUNT] = {
	[RTVAR_MEMPROFILERATE] = {
		.name = "runtime.MemProfileRate",
		.symbols = { "runtime.MemProfileRate" },
		.size = 8,
		.width = 8,
		.sections = IN_NOPTRDATA | IN_NOPTRBSS,
		.quorum = 2,
		.witness = {
			{ "runtime.profilealloc" },
			{ "runtime.allocmcache" },
			{ "runtime.nextSample" },
			{ "runtime.schedinit", "runtime.init" },
			{ "runtime.parsedebugvars", "runtime.parsegodebug" },
			{ "runtime.mallocgc", "runtime.mallocgcLarge", "runtime.mallocgcSmallNoscan" },
		},
		.stranger = { "runtime.chansend", "runtime.semacquire1" },
	},
	[RTVAR_MBUCKETS] = {
		.name = "runtime.mbuckets",
		.symbols = { "runtime.mbuckets" },
		.size = 8,
		.width = 8,
		.sections = IN_BSS | IN_NOPTRBSS,
		.quorum = 2,
		.by_address = true,
		.witness = {
			{ "runtime.stkbucket" },
			{ FLUSH, "runtime.mProf_Flush" },
			{ "runtime.memProfileInternal", "runtime.MemProfile", "runtime.iterate_memprof" },
		},
		.stranger = { BLOCK_READERS, MUTEX_READERS },
	},
	[RTVAR_MPROFCYCLE] = {
		.name = "runtime.mProfCycle",
		.symbols = { "runtime.mProfCycle", "runtime.mProf" },
		.size = 4,
		.width = 4,
		.sections = IN_NOPTRBSS,
		.quorum = 2,
		.witness = {
			{ "runtime.mProf_Malloc" },
			{ "runtime.mProf_Free" },
			{ "runtime.mProf_Flush" },
			{ FLUSH },
			{ "runtime.mProf_NextCycle", "runtime.gcMarkTermination" },
			{ "runtime.mProf_PostSweep", "runtime.gcSweep" },
		},
	},
	[RTVAR_BBUCKETS] = {
		.name = "runtime.bbuckets",
		.symbols = { "runtime.bbuckets" },
		.rule = RULE_CASES,
		.size = 8,
		.sections = IN_BSS | IN_NOPTRBSS,
		.bucket = 2,
		.witness = { { "runtime.stkbucket" } },
		.stranger = { MUTEX_READERS, "runtime.MemProfile", "runtime.memProfileInternal", FLUSH },
	},
	[RTVAR_XBUCKETS] = {
		.name = "runtime.xbuckets",
		.symbols = { "runtime.xbuckets" },
		.rule = RULE_CASES,
		.size = 8,
		.sections = IN_BSS | IN_NOPTRBSS,
		.bucket = 3,
		.witness = { { "runtime.stkbucket" } },
		.stranger = { BLOCK_READERS, "runtime.MemProfile", "runtime.memProfileInternal", FLUSH },
	},
	[RTVAR_BLOCKPROFILERATE] = {
		.name = "runtime.blockprofilerate",
		.symbols = { "runtime.blockprofilerate" },
		.size = 8,
		.width = 8,
		.sections = IN_NOPTRBSS,
		.quorum = 3,
		.witness = {
			{ "runtime.chansend" },
			{ "runtime.chanrecv" },
			{ "runtime.selectgo" },
			{ "runtime.semacquire1" },
			{ "runtime.blockevent", "runtime.blocksampled" },
		},
		.stranger = { "sync.event", "runtime.mutexevent", "runtime.unlock2" },
	},
	[RTVAR_MUTEXPROFILERATE] = {
		.name = "runtime.mutexprofilerate",
		.symbols = { "runtime.mutexprofilerate" },
		.size = 8,
		.width = 8,
		.sections = IN_NOPTRBSS,
		.quorum = 2,
		.witness = {
			{ "sync.event", "runtime.mutexevent" },
			{ "runtime.semacquire1" },
			{ "runtime.unlock2", "runtime.(*lockTimer).begin" },
			{ "runtime.(*mLockProfile).storeSlow", "runtime.(*mLockProfile).store" },
		},
		.stranger = { "runtime.chansend", "runtime.chanrecv", "runtime.selectgo" },
	},
	[RTVAR_DISABLEMEMORYPROFILING] = {
		.name = "runtime.disableMemoryProfiling",
		.symbols = { "runtime.disableMemoryProfiling" },
		.rule = RULE_GATE,
		.size = 1,
		.sections = IN_ANY,
		.since = 17,
		.witness = { { "runtime.schedinit", "runtime.init" } },
	},
	[RTVAR_ALLGS] = {
		.name = "runtime.allgs",
		.symbols = { "runtime.allgs" },
		.shape = SHAPE_SLICE,
		.size = 24,
		.width = 8,
		.sections = IN_BSS,
		.quorum = 2,
		.witness = {
			{ "runtime.allgadd" },
			{ "runtime.forEachG" },
			{ "runtime.gcMarkRootPrepare", "runtime.gcPrepareMarkRoots", "runtime.gcMarkRootCheck" },
			{ "runtime.gcResetMarkState" },
			{ "runtime.markroot" },
			{ "runtime.allGsSnapshotSortedForGC" },
		},
		.stranger = { "runtime.retake", "runtime.procresize", "runtime.timeSleepUntil" },
	},
	[RTVAR_ALLGLEN] = {
		.name = "runtime.allglen",
		.symbols = { "runtime.allglen" },
		.size = 8,
		.width = 8,
		.sections = IN_NOPTRBSS, /* allgptr, which the same functions use, is not there */
		.quorum = 2,
		.by_address = true,
		.witness = {
			{ "runtime.allgadd" },
			{ "runtime.forEachGRace", "runtime.tracebackothers" },
		},
		.stranger = { "runtime.retake", "runtime.chansend" },
	},
	[RTVAR_ALLGPTR] = {
		.name = "runtime.allgptr",
		.symbols = { "runtime.allgptr" },
		.size = 8,
		.width = 8,
		.sections = IN_BSS,
		.quorum = 2,
		.by_address = true,
		.witness = {
			{ "runtime.allgadd" },
			{ "runtime.forEachGRace", "runtime.tracebackothers" },
		},
		.stranger = { "runtime.forEachG", "runtime.gcMarkRootPrepare", "runtime.gcPrepareMarkRoots",
			      "runtime.gcMarkRootCheck" },
	},
	[RTVAR_ALLP] = {
		.name = "runtime.allp",
		.symbols = { "runtime.allp" },
		.shape = SHAPE_SLICE,
		.size = 24,
		.width = 8,
		.sections = IN_BSS,
		.quorum = 4,
		.witness = {
			{ "runtime.procresize" },
			{ "runtime.retake" },
			{ "runtime.timeSleepUntil" },
			{ "runtime.preemptall" },
			{ "runtime.gcMark" },
			{ "runtime.gcMarkTinyAllocs" },
			{ "runtime.checkdead" },
			{ "runtime.schedtrace" },
			{ "runtime.(*gcControllerState).startCycle" },
		},
		.stranger = { "runtime.allgadd", "runtime.forEachG" },
	},
	[RTVAR_ALLM] = {
		.name = "runtime.allm",
		.symbols = { "runtime.allm" },
		.size = 8,
		.width = 8,
		.sections = IN_BSS,
		.quorum = 3,
		.by_address = true,
		.witness = {
			{ "runtime.mcommoninit" },
			{ "runtime.mexit" },
			{ "runtime.schedtrace" },
			{ "runtime.traceAdvance" },
		},
		/*
		 * The counts of Ms in runtime.sched are used where allm is used, and in these
		 * functions.
		 */
		.stranger = { "runtime.checkdead", "runtime.mput" },
	},
	[RTVAR_MHEAP] = {
		.name = "runtime.mheap_",
		.symbols = { "runtime.mheap_" },
		.shape = SHAPE_STRUCT,
		.size = 8,
		.sections = IN_BSS,
		.quorum = 5,
		.witness = {
			{ "runtime.mallocinit" },
			{ "runtime.allocmcache.func1" },
			{ "runtime.stackalloc" },
			{ "runtime.stackfree" },
			{ "runtime.freeStackSpans" },
			{ "runtime.gcSweep" },
			{ "runtime.gcResetMarkState" },
			{ "runtime.(*mcentral).grow" },
			{ "runtime.(*mcache).allocLarge" },
		},
	},
	[RTVAR_TICKS] = {
		.name = "runtime.ticks",
		.symbols = { "runtime.ticks" },
		.shape = SHAPE_STRUCT,
		.size = 24,
		.sections = IN_NOPTRBSS,
		.quorum = 1, /* up to go1.21 one function holds all of its users */
		.must = 1,
		.witness = {
			{ "runtime.(*ticksType).init", "runtime.ticksPerSecond", "runtime.tickspersecond" },
			{ "runtime.schedinit" },
		},
	},
	/* What all of them name is memstats.heapStats, which is at the start from go1.19 on. */
	[RTVAR_MEMSTATS] = {
		.name = "runtime.memstats",
		.symbols = { "runtime.memstats" },
		.shape = SHAPE_STRUCT,
		.size = 8,
		.sections = IN_NOPTRBSS,
		.quorum = 2,
		.part = { { 17, 6024 }, { 19, 5960 }, { 0, 0 } },
		.witness = {
			{ "runtime.(*mcache).refill" },
			{ "runtime.(*mcache).allocLarge" },
			{ "runtime.(*mcache).releaseAll" },
			{ "runtime.(*mheap).grow" },
			{ "runtime.(*mheap).allocSpan" },
			{ "runtime.(*mheap).freeSpanLocked" },
			{ "runtime.(*sweepLocked).sweep", "runtime.(*mspan).sweep" },
		},
		/*
		 * These use gcController and, up to go1.18, memstats.heap_live, and so do the
		 * witnesses above.
		 */
		.stranger = { "runtime.gcFlushBgCredit", "runtime.gcParkAssist", "runtime.gcMark",
			      "runtime.gcTrigger.test" },
	},
	/* They name sched.lastpoll. */
	[RTVAR_SCHED] = {
		.name = "runtime.sched",
		.symbols = { "runtime.sched" },
		.size = 8,
		.width = 8,
		.sections = IN_BSS,
		.quorum = 3,
		.by_address = true,
		.part = { { 0, 8 } },
		.witness = {
			{ "runtime.schedinit" },
			{ "runtime.pollWork" },
			{ "runtime.wakeNetPoller" },
			{ "runtime.sysmon" },
		},
	},
	[RTVAR_GCBLACKENENABLED] = {
		.name = "runtime.gcBlackenEnabled",
		.symbols = { "runtime.gcBlackenEnabled" },
		.size = 4,
		.width = 4,
		.sections = IN_NOPTRBSS,
		.quorum = 4,
		.witness = {
			{ "runtime.gcStart" },
			{ "runtime.gcMarkDone", "runtime.gcMarkDone.func2" },
			{ "runtime.gcAssistAlloc1" },
			{ "runtime.gdestroy", "runtime.goexit0" },
			{ "runtime.(*gcControllerState).findRunnableGCWorker" },
			{ "runtime.checkIdleGCNoP" },
			{ "runtime.mallocgc", "runtime.deductAssistCredit" },
			{ "runtime.findRunnable", "runtime.findrunnable" },
		},
		/* The switch of the write barrier is read where pointers are written. */
		.stranger = { "runtime.typedmemmove", "runtime.bulkBarrierPreWrite", "runtime.selectgo" },
	},
};
