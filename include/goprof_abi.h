/*
 * include/goprof_abi.h - the one contract between bpf/ and user/.
 *
 * Fixed-width fields, explicit padding, no pointers, no bool, no bare enum.
 */
#ifndef GOPROF_ABI_H
#define GOPROF_ABI_H

#include <linux/types.h>

#include "goprof_hash.h"

#define GPB_TARGETS	64  /* processes that the programs of one loaded object can follow, */
#define GPB_CPU_TARGETS 512 /* and those of cpu, heap, sched and wait.bpf.c */
#define GPB_SETS	GPB_TARGETS /* files that probes of one loaded object can be in, of many targets */
#define GPB_PRICED \
	0 /* the slot, and of many targets the set, by which the price of a hit is measured */
#define GPB_IMAGES	8   /* files with Go code in one process: the program and its plugins */
#define GPB_MAX_USER	128 /* user frames of one sample, all segments together */
#define GPB_MAX_KERNEL	64  /* kernel frames */
#define GPB_MAX_PCS	(GPB_MAX_USER + GPB_MAX_KERNEL)
#define GPB_TOP_WORDS	1024 /* words of stack kept where a rule is missing: 8 KiB */
#define GPB_MAX_LABELS	32
#define GPB_LABEL_KEY	128
#define GPB_LABEL_VALUE 256
/* distinct stacks that the kernel counts in its table; more go through the ring */
#define GPB_STACKS	 4096
#define GPB_UNWIND_RULES 65536
#define GPB_LABELSETS	 4096
#define GPB_RING_BYTES	 (1024 * 1024) /* mapped twice into our memory, and resident */

/* What the BPF side can lose. user/collect maps each to one of profile/loss.h. */
#define GPB_LOSSES(X)                                                             \
	X(DROPPED)    /* a whole sample: ring full */                             \
	X(UNREADABLE) /* part of a stack could not be read */                     \
	X(CUT)	      /* deeper than GPB_MAX_USER */                              \
	X(CALLER)     /* the leaf's return address could not be right */          \
	X(LABELS)     /* labels cut or unreadable */                              \
	X(NO_TARGET)  /* hit for a process that is not in the table */            \
	X(WAITS)      /* a goroutine that found no place in the table of waits */ \
	X(OBJECTS)    /* a sampled object that could not be told of: ring full */

#define GPB_ENUM(id) GPB_LOSS_##id,
enum gpb_loss { GPB_LOSSES(GPB_ENUM) GPB_LOSS_COUNT };
#undef GPB_ENUM

/*
 * A slot: the index of a target in all tables, and in the upper half its generation, because an
 * index is used again. A table that is indexed takes the lower half.
 */
#define GPB_SLOT_GENERATION 16

/*
 * What the BPF side counts of one target. It only ever adds, so user space keeps what it saw last
 * and subtracts.
 */
struct gpb_tally {
	__u64 lost[GPB_LOSS_COUNT];
	__u64 samples; /* by a CPU clock, whatever became of them */
	/* These are counted where many targets share table and ring. */
	__u64 taken_ns; /* that sampling took of its CPU time, without what the kernel does around it */
	__u64 stacks; /* entries put into the table of stacks */
	__u64 sent;   /* bytes put into the ring, headers included */
};

/* What the kernel charged a process that has ended, in its whole life. Read through .bss. */
struct gpb_charge {
	__u64 ns; /* of CPU time; 0: none is known */
	__u32 slot, unused;
};

/*
 * How a table or ring is shared by many targets (bpf/quota.bpf.h), in entries or bytes.
 */
struct gpb_quota {
	__u64 part; /* what each target may always have */
	__u64 free; /* it may have more while all have less than this together */
};

/* May a target that has @mine, where all have @all, have @more? */
static inline int gpb_quota_allows(const struct gpb_quota *q, __u64 mine, __u64 all, __u64 more)
{
	return mine + more <= q->part || all + more <= q->free;
}

/* What user space has taken out again, of each target: it alone writes this. */
struct gpb_taken {
	__u64 stacks, bytes;
};

/* What a record of @size bytes takes in the ring. Source: BPF_RINGBUF_HDR_SZ, Linux 5.8 to 6.18. */
#define GPB_RING_RECORD(size) ((((__u64)(size) + 7) & ~7ULL) + 8)

/* How g.labels is stored. */
enum { GPB_LABELS_NONE, GPB_LABELS_MAP /* to Go 1.23 */, GPB_LABELS_SLICE /* 1.24+ */ };

/* Bits of gpb_target.flags. */
enum {
	GPB_TARGET_REGABI =
		1, /* arguments in registers, g in r14 (amd64 from Go 1.17; arm64 1.18) */
	GPB_TARGET_KERNEL = 2, /* keep kernel frames */
	GPB_TARGET_GOID = 4,   /* samples are told apart by goroutine */
	GPB_TARGET_LABELS = 8, /* ... and by label set, too */
	GPB_TARGET_TYPES = 16, /* heap samples are told apart by the type that was allocated */
	GPB_TARGET_LIVE = 32,  /* ... and user space is told of each one, and follows the object */
	/*
	 * Frame pointers may lead to the place where a stack was before it grew (arm64 up to Go 1.20):
	 * every stack is walked by rules.
	 */
	GPB_TARGET_STALE_FP = 64,
};

/*
 * The Go code of one file, in live addresses. [lo, hi) is all of it; the other ranges are
 * functions that the stack walker must know. User space adds images while BPF programs run. They
 * see an entry while it is being written, from its beginning on, since the kernel copies upwards.
 * Therefore lo comes before hi, so that half a range is empty, and gpb_target.nimages is written
 * last.
 */
struct gpb_image {
	__u64 text_lo, text_hi;
	__u64 bias;		  /* live address = link-time address + bias */
	__u64 id;		  /* of the file, in the keys of rules: 16 bits */
	__u64 mcall_lo, mcall_hi; /* runtime.mcall: a stack ends here */
	/* runtime.gcWriteBarrier1..8: they have no frame, and they both call and are called */
	__u64 stub_lo, stub_hi;
	/* runtime.systemstack_switch: the saved pc of a goroutine that is on the system stack */
	__u64 switch_lo, switch_hi;
	__u64 callback_lo,
		/* runtime.cgocallback: frame pointers end here, though the stack may go on */
		callback_hi;
};

/*
 * One target: live addresses, and the offsets of struct fields in its Go version. An offset of -1
 * means that this Go has no such field.
 */
struct gpb_target {
	/* the first one has the runtime; unused ones are empty */
	struct gpb_image image[GPB_IMAGES];
	__u64 start_stack; /* mm.start_stack of this program; after exec it is another one */
	__s32 tls_g;	   /* offset of g from the thread pointer; arm64: 0, g is in x28 alone */
	__s32 g_m, g_stack_lo, g_stack_hi;
	__s32 g_sched_sp, g_sched_pc, g_sched_bp;
	__s32 g_syscallsp, g_syscallpc, g_syscallbp;
	__s32 g_goid, g_labels, g_atomicstatus;
	__s32 m_g0, m_curg, m_ncgo, m_vdsosp, m_vdsopc, m_preemptoff, m_p;
	__s32 p_mcache, mcache_tiny, mcache_tinyoffset, type_ptrdata;
	__u32 labels_kind;
	__u32 flags;
	/*
	 * sp delta inside of runtime.systemstack, where the walk changes from one stack to the
	 * other
	 */
	__s32 seam;
	__u32 nimages;
};
_Static_assert(sizeof(struct gpb_target) == GPB_IMAGES * 96 + 8 + 28 * 4, "ABI layout");

/*
 * An unwinding rule: what is known of one pc about where its frame ends. It comes from pclntab's
 * sp delta and the kind of function. User space tells the BPF side when the pc is first met.
 */
enum {
	/* nothing above this frame is shown: it is a root, or its sp cannot be trusted */
	GPB_UNWIND_RULE_END = 1,
	/* it is on the system stack: the walk goes on with the goroutine's stack */
	GPB_UNWIND_RULE_SEAM = 2,
	/* the pc above this frame was interrupted, not called from (sigpanic) */
	GPB_UNWIND_RULE_EXACT = 4,
	/*
	 * The function ends right behind this pc. A return address there was made up by the
	 * runtime (a saved systemstack_switch, to Go 1.20) and means the function that begins
	 * there.
	 */
	GPB_UNWIND_RULE_LAST = 8,
};

struct gpb_unwind_rule {
	__s32 delta; /* bytes from sp to the return address (arm64: to the caller's sp); with SEAM: -1 for morestack */
	__u32 flags;
};

/* Bits of gpb_stack.flags. */
enum {
	/*
	 * the rule of a frame is missing: gpb_rec_raw carries what user space needs to finish. Where the
	 * ring had no room for that, the stack is counted so, and frame pointers must do.
	 */
	GPB_STACK_UNRULED = 1,
	GPB_STACK_CUT = 2,
	GPB_STACK_FAULT = 4,
	GPB_STACK_NO_G = 8,	/* a thread that Go does not know */
	GPB_STACK_OUTSIDE = 16, /* the leaf is not Go text (C code, vdso without a Go caller) */
	/* m.preemptoff was set: Go files a leaf of this kind under runtime._GC */
	GPB_STACK_GC = 32,
	GPB_STACK_CALLER = 64, /* the leaf's caller could not be determined */
	GPB_STACK_SECOND =
		128, /* with UNRULED, outside of gpb_rec_raw: the frame is in the second segment */
};

/*
 * One distinct stack and how often it was seen. pc[] holds nkernel kernel addresses, then nfirst
 * frames of the stack that the thread ran on, then nsecond frames of its goroutine when the
 * thread ran on the system stack. User frames are return addresses; an interrupted pc is stored
 * plus one, as Go does, so that all of them are looked up at pc - 1.
 *
 * The bytes from slot to the last used pc are hashed: equal bytes are an equal sample.
 */
struct gpb_stack {
	__u64 count; /* waits: in units of 1 / GPB_COUNT_ONE */
	__u64 delay; /* waits: sum of their delays, in nanoseconds */
	__u32 slot;  /* of the target, with its generation */
	__u32 flags;
	__u16 nkernel, nfirst, nsecond;
	__u16 hints;  /* with UNRULED: pcs behind the frames that frame pointers suggest */
	__u64 goid;   /* 0 unless GPB_TARGET_GOID */
	__u64 labels; /* gpb_labelset.id, 0: none */
	union {
		/* heap profiles: what was allocated */
		struct {
			__u64 size : 56; /* bytes of its slot */
			/* its size class. No size tells that: whole pages may be as large as a class's slots */
			__u64 class : 8;
			__u64 type; /* live address of the runtime's _type, and GPB_TYPE_MAKER; 0: none */
		} object;
		/* profiles of waits: what was waited for */
		struct {
			__u8 reason; /* g.waitreason; 0 where the goroutine was not parked */
			__u8 kind; /* GPB_WAIT_BLOCK, _MUTEX; wait profiles: the status, GPB_G_* */
			__u8 length; /* in windows: GPB_WAIT_SHORT, _LONG, _CALL */
			__u8 pad[13];
		} wait;
		__u64 of[2]; /* either, as it is hashed and compared; 0: CPU profiles */
	};
	__u64 pc[GPB_MAX_PCS];
};

/* Does it have frames, and no more than there can be? What takes stacks refuses others. */
static inline int gpb_stack_whole(const struct gpb_stack *st)
{
	return st->nfirst && st->nkernel <= GPB_MAX_KERNEL &&
	       st->nfirst + st->nsecond <= GPB_MAX_USER;
}
_Static_assert(sizeof(struct gpb_stack) == 64 + 8 * GPB_MAX_PCS, "ABI layout");

/*
 * Bit in gpb_stack.object.type: the type is the one that growslice, makechan or makeslicecopy was called
 * with.
 */
#define GPB_TYPE_MAKER 1

struct gpb_hash {
	__u64 lo, hi;
};

/*
 * The table of stacks is emptied while programs count into it. Samples are filed by round: user
 * space begins a new round, waits until nobody files under the old one, and takes that one's
 * entries, which nobody can change any more.
 */
struct gpb_stack_key {
	struct gpb_hash hash;
	__u64 round;
};
struct gpb_rounds {
	__u64 now;	 /* written by user space */
	__u64 filing[2]; /* programs that file now, by the lowest bit of their round */
	__u64 late;	 /* user space's: 1 + a round that it has waited for in vain; 0: none */
};

/* A place where a program makes up its sample: whose that is, and which round it files under. */
struct gpb_claim {
	__u64 busy, round;
	__u32 slot, pad;
};

/* Records of the ring buffer; the first word tells which kind it is. */
enum {
	GPB_REC_STACK = 1,
	GPB_REC_RAW,
	GPB_REC_LABELS,
	GPB_REC_OBJECT,
	GPB_REC_CYCLE,
	GPB_REC_CLOCK
};

/*
 * GPB_REC_RAW: a stack of which a frame has no rule yet, with the words above that frame's sp.
 * GPB_REC_STACK: a finished stack that found no room in the kernel's table. Such a record ends
 * before top, and its pc and sp are the hash that it would have in the table.
 */
struct gpb_rec_raw {
	__u64 type;
	/*
	 * The frame without a rule: it is looked up at pc, and top[] starts at sp. arm64: sp is 8 less
	 * than it was, and top[0] is x30 (0: it holds no return address), as if it had been pushed.
	 */
	__u64 pc, sp;
	__u32 second; /* 1: that frame lies in the second segment */
	__u32 ntop;
	/* what is known of the stack, without that frame and all above it */
	struct gpb_stack stack;
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
	__u32 n;
	__u32 slot; /* of the target that had it first */
	struct gpb_label label[GPB_MAX_LABELS];
};

#define GPB_FOLLOWED 65536 /* processes that --follow remembers at once */

/* A descendant has called exec. */
struct gpb_rec_exec {
	__u64 when_ns; /* CLOCK_MONOTONIC */
	__u32 tgid, pad;
};

/* GPB_REC_CLOCK: a clock asks for other steps, which it is best given now; or a thread was born. */
struct gpb_rec_clock {
	__u64 type;
	__u64 id;     /* of the clock, as the kernel numbers them; 0: a thread was born */
	__u64 coarse; /* it asks for long steps, or for short ones */
};

/*
 * A thread that may have two clocks, an inherited one and its own. Start is zero until its own
 * one has ticked.
 */
struct gpb_own_clock {
	__u64 start;  /* start time of the thread */
	__u64 ticked; /* ticks of its own clock since the other one ticked last */
	__u64 mark;   /* ns that its period is longer by, where clocks have no cookies */
};

/* Where the kernel has no cookies (before Linux 5.15): the key of a table that has them. */
struct gpb_cookie_key {
	__u64 addr; /* of the probed instruction, live */
	__u32 tgid; /* in our pid namespace */
	__u32 pad;
};
#define GPB_COOKIES 4096 /* sites of one target, in all of its images */

/*
 * The cookie of a heap probe: the kind of entry, how a call can be recognized, its image, and the
 * target's slot; of many targets, the set.
 */
enum {
	GPB_COOKIE_KIND = 0xff,
	/* the probe sits at the entry, where there are no flags to look at */
	GPB_COOKIE_ENTRY = 0x100,
	/* calls that come from gpb_heap.not_from are counted elsewhere */
	GPB_COOKIE_NOT_FROM = 0x200,
	/* between this probe and the allocation the goroutine may be preempted */
	GPB_COOKIE_ASSISTS = 0x400,
	/* this is no allocator: kind is the number of the argument that has a type */
	GPB_COOKIE_MAKER = 0x800,
	GPB_COOKIE_IMAGE_SHIFT = 12, /* 4 bits: index in gpb_heap.not_from */
	GPB_COOKIE_SLOT_SHIFT = 16,
};

/* Of all kinds: the kernel single-steps the instruction under the probe, which is dear. */
#define GPB_COOKIE_STEPPED (1ull << 40)

/* What probes took from the target, for each CPU and target. */
struct gpb_spent {
	__u64 hits;    /* all hits, also those that came while no window was open */
	__u64 counted; /* hits that came while a window was open */
	__u64 samples; /* hits of which a stack was walked */
	__u64 ns;      /* time that those took beyond an ordinary hit */
	__u64 stepped; /* hits at instructions that the kernel single-steps (GPB_COOKIE_STEPPED) */
};

/*
 * How long a window is for each CPU, in the target's own time: time without what the target
 * spends in probes. So a window is as long for a thread that hits probes all the time as for one
 * that rarely does.
 */
struct gpb_undilated {
	__u64 ns;     /* 0: no limit */
	__u64 hit_ns; /* what one hit takes */
	/* what a hit takes beyond that where the kernel single-steps */
	__u64 stepped_ns;
};
/* For each CPU: the opening that it counts from, and what probes have taken since. */
struct gpb_own_spent {
	__u64 since, ns;
};

/*
 * Which hits are counted, for each target: bits of GPB_OPEN_*. Probes may be in place before and
 * after a window, because sites are attached and detached one by one.
 */
enum {
	GPB_OPEN_BEGIN = 1, /* a wait that begins now is followed */
	GPB_OPEN_END = 2,   /* what ends now is counted; allocations have only this bit */
	GPB_OPEN = 3,
};
struct gpb_open {
	__u64 since; /* CLOCK_MONOTONIC, and may lie ahead; what began before is not followed */
	__u64 until; /* from then on no CPU that hit something has time of its own left (gpb_undilated) */
	__u32 bits;
	__u32 pad;
};

/* Kinds of allocator entry, equal to enum alloc_kind of user/go/sites/probesite.h (asserted there). */
enum {
	GPB_ALLOC_ANY,
	GPB_ALLOC_TINY,
	GPB_ALLOC_NOSCAN,
	GPB_ALLOC_SCAN_NOHEADER,
	GPB_ALLOC_SCAN_HEADER,
	GPB_ALLOC_LARGE,
	/*
	 * This is no entry: it is where mcache.allocLarge returns the span that it made for a
	 * large object.
	 */
	GPB_ALLOC_PLACED,
	/* Nor are these: they are where mcache.refill and gcAssistAlloc return. */
	GPB_ALLOC_REFILLED,
	GPB_ALLOC_ASSISTED,
};

#define GPB_SIZE_SMALL	1024  /* sizes up to here are rounded in steps of 8 bytes, */
#define GPB_SIZE_MEDIUM 32768 /* sizes up to here in steps of 128 bytes */
#define GPB_SIZE8	(GPB_SIZE_SMALL / 8 + 1)
#define GPB_SIZE128	((GPB_SIZE_MEDIUM - GPB_SIZE_SMALL) / 128 + 1)
#define GPB_CLASSES	128 /* size classes; class 0 is large objects, which take whole pages */
#define GPB_LOG_STEPS	1024

/* How the allocations of one target are rounded and sampled. */
struct gpb_heap {
	__u64 rate; /* mean bytes between samples; <= 1: every allocation */
	/*
	 * The same for large objects, which then count also when no window is open. 0: they are
	 * sampled like all others.
	 */
	__u64 large_rate;
	struct gpb_undilated own;
	struct {
		__u64 lo, hi;
	} not_from[GPB_IMAGES]; /* live addresses, for GPB_COOKIE_NOT_FROM */
	/* objects with pointers that are larger than this carry 8 more bytes; 0: none do */
	__u32 header_over;
	__u32 max_small; /* larger objects take whole pages */
	__u32 page;
	/* number of the rate in force: a countdown drawn in another round is drawn again */
	__u32 round;
	__u16 class_size[GPB_CLASSES]; /* slot bytes */
	/* classes by requested size; padded to a multiple of 8 bytes */
	__u8 class8[GPB_SIZE8 + 7];
	__u8 class128[GPB_SIZE128 + 7];
};

/* The sampling countdown of the runtime's Poisson process, for each CPU and target. */
struct gpb_countdown {
	__s64 left;	   /* bytes until the next sample */
	__u32 round;	   /* the round in which left was drawn; 0: never */
	__u32 large_drawn; /* the round in which large_left was drawn */
	__s64 large_left;
	__u64 bytes; /* bytes of all allocations that were seen */
	struct gpb_own_spent own;
	struct gpb_spent spent;
};

/* For each CPU and target: how many allocations were seen of each class. */
struct gpb_classes {
	__u64 n[GPB_CLASSES];
};

/* ---- sampled objects that are followed: GPB_TARGET_LIVE ---- */

#define GPB_PLACING 1024 /* samples, of all targets, whose object is about to get its slot */

/* Its key in their table. One for a goroutine is enough: a goroutine allocates one object at a time. */
struct gpb_placing_key {
	__u64 g, slot; /* slot: with its generation */
};

/*
 * Where the allocator of one target will put an object. Live addresses, and offsets of runtime
 * structs.
 */
struct gpb_live {
	__u64 sweepgen; /* address of mheap_.sweepgen: uint32, grows by 2 with each GC cycle */
	__u64 blacken;	/* address of gcBlackenEnabled: uint32; 0: not known */
	__s32 mcache_alloc;
	__s32 span_start, span_freeindex, span_nelems, span_cache, span_bits, span_marks,
		span_count, span_before, span_elemsize;
	__u32 index_bytes; /* size of freeindex and nelems: 8 up to Go 1.21, 2 from 1.22 */
	__s32 g_credit;	   /* g.gcAssistBytes; -1: not known */
};

/* GPB_REC_OBJECT: the object of a sample lies in slot @index of a span. */
struct gpb_rec_object {
	__u64 type;
	struct gpb_hash stack; /* of the stack under which the sample is counted */
	__u64 size;	       /* of the slot */
	__u64 span;	       /* address of the runtime's mspan */
	__u64 base;	       /* of the span's memory */
	__u64 marks;	       /* address of its gcmarkBits */
	__u32 index;
	__u32 sweepgen; /* mheap_.sweepgen when it was allocated */
	__u64 window;	/* the window it was taken in, by gpb_open.since; 0: full observation */
	__u32 slot, pad;
};

/* For each target: how many objects' slots became known, and how. */
struct gpb_objects {
	__u64 told, waited, large; /* immediately, after a wait, by allocLarge */
	__u64 settled;		   /* at the goroutine's next allocation */
	__u64 unknown;
};

/* GPB_REC_CYCLE: mheap_.sweepgen is about to grow. */
struct gpb_rec_cycle {
	__u64 type;
	__u64 slot;
};

/* ---- waits: block, mutex and wait profiles ---- */

#define GPB_WAITS     262144 /* goroutines of all targets that have waited and are remembered */
#define GPB_COUNT_ONE 65536  /* gpb_stack.count of one wait */
#define GPB_SHARE_ONE 65536

/* gpb_stack.wait.kind of block and mutex profiles */
enum { GPB_WAIT_BLOCK, GPB_WAIT_MUTEX, GPB_WAIT_KINDS };

/*
 * Bits of gpb_wait.sema. The first two are as semaProfileFlags in runtime/sema.go, Go 1.9 to
 * 1.27.
 */
enum {
	GPB_SEMA_BLOCK = 1,
	GPB_SEMA_MUTEX = 2,
	GPB_SEMA_LIFO = 4,	/* it is put at the head of the queue */
	GPB_SEMA_FRESH = 8,	/* it has not parked yet since it asked for the semaphore */
	GPB_SEMA_INHERITS = 16, /* it inherited the oldest acquire time of those behind it */
};

/* A moment in a window, for what may be counted that began then. */
struct gpb_mark {
	__u64 own; /* gpb_sched_seen.clock.own of that CPU */
	__u32 cpu;
	__u8 chance; /* GPB_CHANCE_* */
	__u8 pad[3];
};

/*
 * One goroutine, from its first wait on. The entry is kept after the goroutine was woken:
 * goroutines wait again, and the runtime uses their structs again.
 */
struct gpb_wait {
	/*
	 * when the wait began, CLOCK_MONOTONIC; 0: it does not wait, or not for anything of
	 * interest
	 */
	__u64 since;
	__u64 woken;   /* when it was last woken */
	__u64 asked;   /* when it asked for the semaphore */
	__u64 acquire; /* as sudog.acquiretime; 0: no mutex, or it began before we watched */
	__u64 queued;  /* when it last entered the queue of a semaphore */
	struct gpb_mark began;	 /* the moment of since, or of woken where it was woken later */
	struct gpb_mark charged; /* the moment of acquire: what it is charged with began then */
	__u8 reason;		 /* of the wait, g.waitreason; 0: it was not seen to wait yet */
	__u8 sema;		 /* GPB_SEMA_* of what it asked for last */
	/* it was woken for a semaphore that another goroutine took first: it waits on */
	__u8 again;
	__u8 pad[5];
};

/*
 * In windows: when a wait began, on which of two clocks. Probes slow down what other goroutines
 * do (overhead dilation), so waits for other goroutines are counted by the target's own time.
 * Probes do not slow down a timer or the network, so waits for those are counted by the clock.
 * Which kind a wait is shows at its end: the second kind is longer.
 */
enum {
	GPB_CHANCE_OWN = 1,
	GPB_CHANCE_WALL = 2,
};
/* waits from this length on are of the second kind: GPB_WAIT_LONG */
#define GPB_LONG_NS 200000

/* The terms of a window of probed waits. */
struct gpb_wait_terms {
	struct gpb_undilated own; /* the part of a window in which waits may begin */
	/* the target's share of a short time between two hits, in 1 / GPB_SHARE_ONE */
	__u64 own_share;
	__u64 short_ns; /* up to which length such a time is short */
	__u64 begin_ns; /* length of the part of a window in which waits may begin */
	/* in windows: waits of this length and longer are counted by looks, all of them; 0: none */
	__u64 looked_ns;
	/*
	 * for how long a window goes on after begin_ns, so that what began sooner can end in it. A contention
	 * that began before the window counts when it ends in begin_ns behind that: then each one counts with the
	 * same chance, however long it is.
	 */
	__u64 last_ns;
};

/* How one target waits, and which of its waits are counted. */
struct gpb_sched {
	__u64 block_rate;     /* ns: a wait this long is always a sample */
	__u64 mutex_fraction; /* one contention in so many is a sample */
	__u64 reasons;	      /* one bit for each wait reason: those that block profiles have */
	/* the reasons of semacquire1, which is told by its caller whether its waits count */
	__u64 sema_reasons;
	__u64 mutex_reasons; /* those of mutexes alone; 0: this Go has no such reasons */
	__u64 from; /* CLOCK_MONOTONIC: what began before this time is not known, or another target's that had its slot */
	struct gpb_wait_terms terms;
	__u32 kinds; /* 1 << GPB_WAIT_*: the kinds that are wanted now */
	/*
	 * Go 1.22+: an unlock is charged with what all waiters waited, not with the first one's
	 * wait alone.
	 */
	__u32 charge_all;
	__s32 g_waitreason;
	__s32 sudog_g, sudog_next, sudog_prev, sudog_elem;
	__s32 sudog_waitlink, sudog_waittail, sudog_waiters;
	__s32 semaroot_treap;
	__u32 pad;
};

/*
 * A CPU's clock of the target's own time in a window. When two hits follow each other closely,
 * most of the time between them is the probe's. The target's share of it is known well, by
 * comparing how much of such time there is with probes and without. When hits are far apart, the
 * price of one hit is subtracted.
 */
struct gpb_wait_clock {
	__u64 since;	 /* the opening that it belongs to */
	__u64 last, own; /* time of the last hit, and the target's own time up to it */
	/* over all windows: number and sum of the short times between hits */
	__u64 shorts, short_ns;
	/*
	 * the same of the others, without those in which the CPU seems not to have run the target
	 */
	__u64 longs, long_ns;
	/* over all windows: how often goroutines parked, for whatever reason */
	__u64 parks;
};

/* For each CPU and target: what the probes saw. */
struct gpb_sched_seen {
	__u64 ended[GPB_WAIT_KINDS];   /* waits that ended; of GPB_WAIT_MUTEX: contentions */
	__u64 sampled[GPB_WAIT_KINDS]; /* how many of these were sampled */
	__u64 capped_ns; /* of GPB_WAIT_BLOCK: sum of their lengths, of each at most block_rate */
	__u64 begun_before; /* waits that ended, and had begun before we watched */
	/* how often goroutines parked, for whatever reason, while beginning waits counted */
	__u64 parks;
	/* contentions that were counted, and began before their window: of these only a part is known */
	__u64 cut;
	/*
	 * in windows, of every unlock, what came after the window opened: what it was charged with, and what
	 * goroutines waited. The runtime's charge is more or less than that, depending on when they came.
	 */
	__u64 charged_ns, waited_ns;
	struct gpb_spent spent;
	struct gpb_wait_clock clock;
};

/* What a probe sits on: the GPB_COOKIE_KIND of its cookie. */
enum { GPB_AT_READY, GPB_AT_SEMA, GPB_AT_PARK, GPB_AT_DEQUEUE };

/* ---- wait profiles: every state in which a goroutine does not run ---- */

/*
 * Cookie of one probe: the goroutine whose status changes, from what to what. The rest is as
 * above.
 */
enum {
	GPB_STATUS_ARGS = 1, /* casgstatus(gp, old, new) */
	GPB_STATUS_ARG0,     /* the goroutine is the first argument */
	GPB_STATUS_CURRENT,  /* the goroutine is the current one */
	/* the frame is set up here: the return address lies above [bp] */
	GPB_COOKIE_FRAMED = 0x400,
	GPB_COOKIE_OLD_SHIFT = 32, /* 4 bits each, for the old and the new status */
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
	GPB_G_SCAN = 0x1000, /* this bit may be set in each of them */
};

/* One goroutine: its present status, the one before, and since when. */
struct gpb_standing {
	__u64 since; /* CLOCK_MONOTONIC */
	__u8 status, from;
	__u8 chance; /* GPB_CHANCE_* */
	/* 1: a clock paces what made it runnable, and so it paces its being runnable, too */
	__u8 paced;
	__u8 pad[4];
};

/*
 * In windows, how long a wait was: short, long, or a long system call. Long system calls
 * are counted in the whole of a window, whenever they began; the others when they began in its
 * first part.
 */
enum { GPB_WAIT_SHORT, GPB_WAIT_LONG, GPB_WAIT_CALL };

/* How the waits of one target are sampled. */
struct gpb_waiting {
	__u64 rate; /* ns: a wait this long is always a sample; 0: nothing counts */
	__u64 from; /* CLOCK_MONOTONIC: what began before this time is not known, or another target's that had its slot */
	struct gpb_wait_terms terms; /* waits begin to count GPB_LONG_NS after the window opened */
	/* one bit for each wait reason: a clock paces these waits, however short they are */
	__u64 clocked;
	__s32 g_waitreason;
	__u32 pad;
};

/* For each CPU and target, by status: what the probes saw. */
struct gpb_waiting_seen {
	__u64 ended[GPB_G_WAITING + 1];
	__u64 sampled[GPB_G_WAITING + 1];
	__u64 capped_ns; /* sum of the lengths of all that ended, of each at most the rate */
	__u64 begun_before[GPB_G_WAITING +
			   1]; /* waits that ended, and had begun before we watched */
	/* status changes that must have happened between two that we saw */
	__u64 unseen;
	__u64 lost; /* waits that ended in such an unseen change */
	/*
	 * How often goroutines began to run, as the runtime counts it, while waits could begin:
	 * after short waits, and after paced ones.
	 */
	__u64 runs, paced_runs;
	struct gpb_spent spent;
	struct gpb_wait_clock clock; /* its parks are the times that a goroutine began to run */
};

#endif
