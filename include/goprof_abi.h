/*
 * include/goprof_abi.h - the one contract between bpf/ and user/.
 *
 * Fixed-width fields, explicit padding, no pointers, no bool, no bare enum.
 */
#ifndef GOPROF_ABI_H
#define GOPROF_ABI_H

#include <linux/types.h>

#define GPB_TARGETS	64  /* processes one loaded BPF object can follow */
#define GPB_IMAGES	8   /* files with Go code in one process: the program and its plugins */
#define GPB_MAX_USER	128 /* user frames of one sample, all segments together */
#define GPB_MAX_KERNEL	64  /* kernel frames */
#define GPB_MAX_PCS	(GPB_MAX_USER + GPB_MAX_KERNEL)
#define GPB_TOP_WORDS	1024 /* words of stack kept where a rule is missing: 8 KiB */
#define GPB_MAX_LABELS	32
#define GPB_LABEL_KEY	128
#define GPB_LABEL_VALUE 256
#define GPB_STACKS	4096 /* distinct stacks aggregated in the kernel; more go through the ring */
#define GPB_RULES	65536
#define GPB_LABELSETS	4096
#define GPB_RING_BYTES	(1024 * 1024) /* mapped twice, and resident */

/* What the BPF side can lose. user/collect maps each to one of profile/loss.h. */
#define GPB_LOSSES(X)                                                             \
	X(DROPPED)    /* a whole sample: ring full */                             \
	X(UNREADABLE) /* part of a stack could not be read */                     \
	X(CUT)	      /* deeper than GPB_MAX_USER */                              \
	X(CALLER)     /* the leaf's return address made no sense */               \
	X(LABELS)     /* labels cut or unreadable */                              \
	X(NO_TARGET)  /* hit for a process that is not in the table */            \
	X(WAITS)      /* a goroutine that found no place in the table of waits */ \
	X(OBJECTS)    /* a sampled object that could not be told of: ring full */

#define GPB_ENUM(id) GPB_LOSS_##id,
enum gpb_loss { GPB_LOSSES(GPB_ENUM) GPB_LOSS_COUNT };
#undef GPB_ENUM

/* How g.labels is stored. */
enum { GPB_LABELS_NONE, GPB_LABELS_MAP /* to Go 1.23 */, GPB_LABELS_SLICE /* 1.24+ */ };

/* gpb_target.flags */
enum {
	GPB_TARGET_REGABI = 1, /* arguments in registers, g in r14 (amd64 from Go 1.17) */
	GPB_TARGET_KERNEL = 2, /* keep kernel frames */
	GPB_TARGET_GOID = 4,   /* samples are told apart by goroutine */
	GPB_TARGET_LABELS = 8, /* ... and by label set */
	GPB_TARGET_TYPES = 16, /* heap samples are told apart by the type allocated */
	GPB_TARGET_LIVE = 32,  /* ... and each is told to user space, which follows the object */
};

/*
 * Go code of one file, live addresses: [lo, hi) of all and of what the walker must know. User space
 * adds images while programs run, which see the entry as it is written, from its beginning on (the
 * kernel copies upwards): lo before hi, so that half a range is empty; nimages last.
 */
struct gpb_image {
	__u64 text_lo, text_hi;
	__u64 mcall_lo, mcall_hi;   /* runtime.mcall: a stack ends here */
	__u64 stub_lo, stub_hi;	    /* runtime.gcWriteBarrier1..8: frameless, called and calling */
	__u64 switch_lo, switch_hi; /* runtime.systemstack_switch: the faked pc of a goroutine */
	__u64 callback_lo,
		callback_hi; /* runtime.cgocallback: frame pointers end, stacks need not */
};

/*
 * One target: live addresses and the offsets of its Go version. An offset of -1 means that
 * this Go has no such field.
 */
struct gpb_target {
	struct gpb_image image[GPB_IMAGES]; /* the first has the runtime; unused ones are empty */
	__u64 start_stack; /* mm.start_stack of this program: another one after exec */
	__s32 tls_g;	   /* of g from the thread pointer */
	__s32 g_m, g_stack_lo, g_stack_hi;
	__s32 g_sched_sp, g_sched_pc, g_sched_bp;
	__s32 g_syscallsp, g_syscallpc, g_syscallbp;
	__s32 g_goid, g_labels, g_atomicstatus;
	__s32 m_g0, m_curg, m_ncgo, m_vdsosp, m_vdsopc, m_preemptoff, m_p;
	__s32 p_mcache, mcache_tiny, mcache_tinyoffset, type_ptrdata;
	__u32 labels_kind;
	__u32 flags;
	__s32 seam; /* sp delta inside runtime.systemstack */
	__u32 nimages;
};
_Static_assert(sizeof(struct gpb_target) == GPB_IMAGES * 80 + 8 + 28 * 4, "ABI layout");

/*
 * What is known of one pc: where its frame ends. From pclntab's sp delta and the kind of
 * function; user space tells the BPF side when the pc is first met.
 */
enum {
	GPB_RULE_END = 1,   /* nothing above is shown: a root, or sp is not to be trusted */
	GPB_RULE_SEAM = 2,  /* on the system stack: the goroutine's stack goes on */
	GPB_RULE_EXACT = 4, /* the pc above was interrupted, not called from (sigpanic) */
	/*
	 * The function ends right behind this pc. A return address there was made up (a saved
	 * systemstack_switch, to Go 1.20) and means the function that begins there.
	 */
	GPB_RULE_LAST = 8,
};

struct gpb_rule {
	__s32 delta; /* bytes from sp to the return address; SEAM: -1 for morestack */
	__u32 flags;
};

/* gpb_stack.flags */
enum {
	GPB_STACK_UNRULED = 1, /* a rule is missing: gpb_rec_raw carries what is needed */
	GPB_STACK_CUT = 2,
	GPB_STACK_FAULT = 4,
	GPB_STACK_NO_G = 8,	/* a thread that Go does not know */
	GPB_STACK_OUTSIDE = 16, /* the leaf is not Go text (C code, vdso without a Go caller) */
	GPB_STACK_GC = 32,	/* m.preemptoff was set: Go files such a leaf under runtime._GC */
	GPB_STACK_CALLER = 64,	/* the leaf's caller could not be told */
};

/*
 * One distinct stack and how often it was seen. pc[] holds nkernel kernel addresses, then
 * nfirst frames of the stack the thread ran on, then nsecond frames of its goroutine when
 * it ran on the system stack. User frames are return addresses; an interrupted pc is stored
 * plus one, as Go does, so that all are looked up at pc - 1.
 *
 * The bytes from slot to the last pc used are what is hashed: equal bytes, equal sample.
 */
struct gpb_stack {
	__u64 count; /* waits: in units of 1 / GPB_COUNT_ONE */
	__u64 delay; /* waits: nanoseconds of all of them */
	__u32 slot;  /* of the target */
	__u32 flags;
	__u16 nkernel, nfirst, nsecond;
	__u16 hints;  /* gpb_rec_raw only: pcs behind the frames, as frame pointers have them */
	__u64 goid;   /* 0 unless GPB_TARGET_GOID */
	__u64 labels; /* gpb_labelset.id, 0: none */
	/* heap: slot bytes of the object; waits: GPB_WAIT_KIND << 8 | wait reason */
	__u64 size;
	/* heap: live address of the runtime's _type, and GPB_TYPE_MAKER; 0: none */
	__u64 type;
	__u64 pc[GPB_MAX_PCS];
};
_Static_assert(sizeof(struct gpb_stack) == 64 + 8 * GPB_MAX_PCS, "ABI layout");

/* In gpb_stack.type: the one that growslice, makechan or makeslicecopy was called with. */
#define GPB_TYPE_MAKER 1

struct gpb_hash {
	__u64 lo, hi;
};

/* Records of the ring buffer; the first word tells which. */
enum { GPB_REC_STACK = 1, GPB_REC_RAW, GPB_REC_LABELS, GPB_REC_OBJECT, GPB_REC_CYCLE };

/*
 * GPB_REC_RAW: a stack of which a frame has no rule yet, with the words above its sp.
 * GPB_REC_STACK: a finished stack that found no room in the kernel's table; ends before top, and
 * pc and sp are the hash that it has there.
 */
struct gpb_rec_raw {
	__u64 type;
	__u64 pc, sp; /* the frame without a rule: looked up at pc; top[] starts at sp */
	__u32 second; /* it lies in the second segment */
	__u32 ntop;
	struct gpb_stack stack; /* without what lies above that frame */
	__u64 top[GPB_TOP_WORDS];
};

struct gpb_label {
	__u16 key_len, value_len; /* bytes kept */
	__u32 pad;
	__u8 key[GPB_LABEL_KEY];
	__u8 value[GPB_LABEL_VALUE];
};

struct gpb_rec_labels {
	__u64 type;
	__u64 id;
	__u32 n, pad;
	struct gpb_label label[GPB_MAX_LABELS];
};

#define GPB_FAMILY 65536 /* processes that --follow keeps in mind at once */

/* A descendant has called exec. */
struct gpb_rec_exec {
	__u64 when_ns; /* CLOCK_MONOTONIC */
	__u32 tgid, pad;
};

/* A thread that may have two clocks; all zero until its own has ticked. */
struct gpb_own_clock {
	__u64 start;  /* of the thread */
	__u64 ticked; /* its own one, since the other did */
};

/* Cookie of one heap probe: kind of entry, how to tell a call, its image, the target's slot. */
enum {
	GPB_COOKIE_KIND = 0xff,
	GPB_COOKIE_ENTRY = 0x100,    /* the probe sits at the entry: no flags to look at */
	GPB_COOKIE_NOT_FROM = 0x200, /* calls from gpb_heap.not_from are counted elsewhere */
	GPB_COOKIE_ASSISTS = 0x400,  /* between the probe and the allocation it may be preempted */
	GPB_COOKIE_MAKER = 0x800,    /* no entry: kind is the argument that has a type */
	GPB_COOKIE_IMAGE_SHIFT = 12, /* 4 bits: which of not_from */
	GPB_COOKIE_SLOT_SHIFT = 16,
};

/* What probes took from the target. Per CPU and target. */
struct gpb_spent {
	__u64 hits;    /* all, also those that came while nothing was open */
	__u64 counted; /* those that came while something was */
	__u64 samples; /* that took the long way: a stack was walked */
	__u64 ns;      /* what those took beyond an ordinary hit */
};

/*
 * How long a window is for each CPU, in time of the target's own: less what it spends in probes.
 * So a window is as long for a thread that hits probes all the time as for one that rarely does.
 */
struct gpb_own {
	__u64 ns;     /* 0: no limit */
	__u64 hit_ns; /* what a hit takes */
};
/* Per CPU: since which opening, and what probes have taken since. */
struct gpb_own_spent {
	__u64 since, ns;
};

/*
 * Which hits are counted, by target: bits of GPB_OPEN_*. The probes may be there before and after:
 * places are attached and detached one by one.
 */
enum {
	GPB_OPEN_BEGIN = 1, /* what begins now is followed: waits */
	GPB_OPEN_END = 2,   /* what ends now is counted; allocations have only this */
	GPB_OPEN = 3,
};
struct gpb_open {
	__u64 since; /* CLOCK_MONOTONIC, may be still to come: what began before is not known */
	__u64 until; /* from then on no CPU that hit something has time of its own left (gpb_own) */
	__u32 bits;
	__u32 pad;
};

/* Kinds of allocator entry, as enum alloc_kind of user/go/probesite.h (asserted there). */
enum {
	GPB_ALLOC_ANY,
	GPB_ALLOC_TINY,
	GPB_ALLOC_NOSCAN,
	GPB_ALLOC_SCAN_NOHEADER,
	GPB_ALLOC_SCAN_HEADER,
	GPB_ALLOC_LARGE,
	/* No entry: where mcache.allocLarge returns the span it made for a large object. */
	GPB_ALLOC_PLACED,
	/* Nor these: where mcache.refill and gcAssistAlloc return. */
	GPB_ALLOC_REFILLED,
	GPB_ALLOC_ASSISTED,
};

#define GPB_SIZE_SMALL	1024  /* sizes to here are rounded through 8-byte steps, */
#define GPB_SIZE_MEDIUM 32768 /* to here through 128-byte steps */
#define GPB_SIZE8	(GPB_SIZE_SMALL / 8 + 1)
#define GPB_SIZE128	((GPB_SIZE_MEDIUM - GPB_SIZE_SMALL) / 128 + 1)
#define GPB_CLASSES	128 /* size classes; 0: large objects, of whole pages */
#define GPB_LOG_STEPS	1024

/* How one target's allocations are rounded and sampled. */
struct gpb_heap {
	__u64 rate; /* mean bytes between samples; <= 1: every allocation */
	/* The same of large objects, which then count also when nothing is open; 0: as all others. */
	__u64 large_rate;
	struct gpb_own own;
	struct {
		__u64 lo, hi;
	} not_from[GPB_IMAGES]; /* live addresses, for GPB_COOKIE_NOT_FROM */
	__u32 header_over; /* pointerful objects larger than this carry 8 more bytes; 0: none do */
	__u32 max_small;   /* larger ones take whole pages */
	__u32 page;
	__u32 round; /* a countdown drawn in another round is drawn again: the rate has changed */
	__u16 class_size[GPB_CLASSES]; /* slot bytes */
	__u8 class8[GPB_SIZE8 + 7];    /* classes by request; padded to a multiple of 8 bytes */
	__u8 class128[GPB_SIZE128 + 7];
};

/* Per CPU and target. */
struct gpb_countdown {
	__s64 left;	   /* bytes until the next sample */
	__u32 round;	   /* that left was drawn in; 0: never */
	__u32 large_drawn; /* large_left was */
	__s64 large_left;
	__u64 bytes; /* of what was seen */
	struct gpb_own_spent own;
	struct gpb_spent spent;
};

/* Per CPU and target: allocations seen, by class. */
struct gpb_classes {
	__u64 n[GPB_CLASSES];
};

/* ---- sampled objects that are followed: GPB_TARGET_LIVE ---- */

#define GPB_PLACING 1024 /* samples of all targets whose object is about to be placed */

/* Where one target's allocator will put an object. Live addresses; offsets of runtime structs. */
struct gpb_live {
	__u64 sweepgen; /* mheap_.sweepgen: uint32, grows by 2 with each GC cycle */
	__u64 blacken;	/* gcBlackenEnabled: uint32; 0: not known */
	__s32 mcache_alloc;
	__s32 span_start, span_freeindex, span_nelems, span_cache, span_bits, span_marks,
		span_count, span_before, span_elemsize;
	__u32 index_bytes; /* of freeindex and nelems: 8 up to Go 1.21, 2 from 1.22 */
	__s32 g_credit;	   /* g.gcAssistBytes; -1: not known */
};

/* GPB_REC_OBJECT: a sample's object lies in slot @index of a span. */
struct gpb_rec_object {
	__u64 type;
	struct gpb_hash stack; /* under which the sample is counted */
	__u64 size;	       /* of the slot */
	__u64 span;	       /* the runtime's mspan */
	__u64 base;	       /* of the span's memory */
	__u64 marks;	       /* its gcmarkBits */
	__u32 index;
	__u32 sweepgen; /* mheap_.sweepgen when it was allocated */
	__u64 window;	/* in which it was taken: gpb_open.since; 0: what is observed in full */
};

/* GPB_REC_CYCLE: mheap_.sweepgen is about to grow. */
struct gpb_rec_cycle {
	__u64 type;
	__u64 slot;
};

/* ---- waits: block, mutex and wait profiles ---- */

#define GPB_WAITS     262144 /* goroutines of all targets that have waited */
#define GPB_COUNT_ONE 65536  /* gpb_stack.count of one wait */
#define GPB_SHARE_ONE 65536

/* What gpb_stack.size of a wait says, above its reason. */
enum { GPB_WAIT_BLOCK, GPB_WAIT_MUTEX, GPB_WAIT_KINDS };

/* gpb_wait.sema: the first two as semaProfileFlags in runtime/sema.go, Go 1.9 to 1.27. */
enum {
	GPB_SEMA_BLOCK = 1,
	GPB_SEMA_MUTEX = 2,
	GPB_SEMA_LIFO = 4,	/* it goes to the head of the queue */
	GPB_SEMA_FRESH = 8,	/* it has not parked yet since it asked */
	GPB_SEMA_INHERITS = 16, /* it took over the oldest acquire of those behind it */
};

/*
 * One goroutine, from its first wait on. Kept when it has been woken: goroutines wait again,
 * and the runtime uses their structs again.
 */
struct gpb_wait {
	__u64 since;   /* when the wait began, CLOCK_MONOTONIC; 0: it does not, or of no interest */
	__u64 woken;   /* when it was last woken */
	__u64 asked;   /* when it asked for a semaphore */
	__u64 acquire; /* as sudog.acquiretime; 0: no mutex, or begun before we watched */
	__u64 queued;  /* when it last went into the queue of a semaphore */
	__u64 own;     /* gpb_sched_seen.clock.own of the CPU that it began to wait on */
	__u8 reason;   /* of the wait, g.waitreason */
	__u8 sema;     /* GPB_SEMA_* of what it asked for last */
	__u8 again;    /* woken for a semaphore that another one took: it waits on */
	__u8 chance;   /* GPB_CHANCE_*: to be counted */
	__u32 cpu;     /* of own */
};

/*
 * In windows: when a wait began. What other goroutines do is slowed down by probes, and waits for
 * that are counted by the target's own time. What a clock or the outside does is not, and waits for
 * that are counted by the clock. Which it is shows when it ends: the latter are longer.
 */
enum {
	GPB_CHANCE_OWN = 1,
	GPB_CHANCE_WALL = 2,
};
#define GPB_LONG_NS 200000 /* from here on it is the latter; and gpb_stack.type is 1 */

/* How one target waits, and what of that is counted. */
struct gpb_sched {
	__u64 block_rate;     /* ns: a wait this long is always a sample */
	__u64 mutex_fraction; /* one contention in so many is */
	__u64 reasons;	      /* bit by wait reason: in block profiles */
	__u64 sema_reasons;   /* those of semacquire1, which is told whether they count */
	struct gpb_own own;   /* how much of a window waits may begin in */
	__u64 own_share;      /* of a short time between two hits, in 1 / GPB_SHARE_ONE */
	__u64 short_ns;	      /* what is one */
	__u64 begin_ns;	      /* of a window: waits may begin in it */
	__u32 kinds;	      /* 1 << GPB_WAIT_*: wanted now */
	/* Go 1.22+: an unlock is charged with what all waiters waited, not the first alone. */
	__u32 charge_all;
	__s32 g_waitreason;
	__s32 sudog_g, sudog_next, sudog_prev, sudog_elem;
	__s32 sudog_waitlink, sudog_waittail, sudog_waiters;
	__s32 semaroot_treap;
	__u32 pad;
};

/*
 * A CPU's clock of the target's own time in a window. Between two hits that follow each other
 * closely most of the time is the probe's: which share of it is the target's is known well by how
 * much less there is of it without probes. Where hits are far apart the price of one is taken off.
 */
struct gpb_wait_clock {
	__u64 since;		/* which opening */
	__u64 last, own;	/* hit; the target's time up to it */
	__u64 shorts, short_ns; /* of all windows: how many times were short, and their sum */
	__u64 longs, long_ns;	/* the others, but for those when it did not run, it seems */
	__u64 parks;		/* of all windows, for whatever reason */
};

/* Per CPU and target: what was seen. */
struct gpb_sched_seen {
	__u64 ended[GPB_WAIT_KINDS];   /* waits; of GPB_WAIT_MUTEX: contentions */
	__u64 sampled[GPB_WAIT_KINDS]; /* of these */
	__u64 early;		       /* waits that ended and began before we watched */
	__u64 parks;		       /* for whatever reason, while what begins counted */
	struct gpb_spent spent;
	struct gpb_wait_clock clock;
};

/* What a probe sits on: GPB_COOKIE_KIND of its cookie. */
enum { GPB_AT_READY, GPB_AT_SEMA, GPB_AT_PARK, GPB_AT_DEQUEUE };

/* ---- wait profiles: every state that a goroutine does not run in ---- */

/* Cookie of one probe: whose status changes, from what to what; the rest as above. */
enum {
	GPB_STATUS_ARGS = 1,	   /* casgstatus(gp, old, new) */
	GPB_STATUS_ARG0,	   /* that of the first argument */
	GPB_STATUS_CURRENT,	   /* that of the current goroutine */
	GPB_COOKIE_FRAMED = 0x400, /* the frame is set up: the return address lies above [bp] */
	GPB_COOKIE_OLD_SHIFT = 32, /* 4 bits each */
	GPB_COOKIE_NEW_SHIFT = 36,
};

/* g.atomicstatus. Source: runtime/runtime2.go, Go 1.16 to 1.27. */
enum {
	GPB_G_IDLE,
	GPB_G_RUNNABLE,
	GPB_G_RUNNING,
	GPB_G_SYSCALL,
	GPB_G_WAITING,
	GPB_G_DEAD = 6,
	GPB_G_COPYSTACK = 8,
	GPB_G_DEADEXTRA = 11,
	GPB_G_SCAN = 0x1000, /* may be set in each */
};

/* One goroutine: the status it has, the one before, and since when. */
struct gpb_standing {
	__u64 since; /* CLOCK_MONOTONIC */
	__u8 status, from;
	__u8 chance; /* GPB_CHANCE_* */
	__u8 paced;  /* what made it runnable is paced by a clock, and so is that */
	__u8 pad[4];
};

/*
 * In windows, gpb_stack.type of a wait: short, long, or a long system call. Those are counted in
 * the whole of a window, whenever they began; others when they began in its first part.
 */
enum { GPB_WAIT_SHORT, GPB_WAIT_LONG, GPB_WAIT_CALL };

/* How one target's waits are sampled. gpb_stack.size is status << 8 | g.waitreason. */
struct gpb_waiting {
	__u64 rate;	    /* ns: a wait this long is always a sample; 0: nothing counts */
	struct gpb_own own; /* these as in gpb_sched */
	__u64 own_share, short_ns, begin_ns;
	__u64 clocked; /* bit by wait reason: a clock paces these, however short they are */
	__s32 g_waitreason;
	__u32 pad;
};

/* Per CPU and target, by status. */
struct gpb_waiting_seen {
	__u64 ended[GPB_G_WAITING + 1];
	__u64 sampled[GPB_G_WAITING + 1];
	__u64 early[GPB_G_WAITING + 1]; /* ended, and begun before we watched */
	__u64 unseen;			/* changes that must have been between two we saw */
	__u64 lost;			/* waits that ended in one of these */
	/* Beginnings to run, as the runtime counts them, while waits could begin: short, and paced ones. */
	__u64 runs, paced_runs;
	struct gpb_spent spent;
	struct gpb_wait_clock clock; /* parks: beginnings to run */
};

#endif
