/*
 * tests/bpfhost/test_heap_program.c - heap.bpf.c as a whole, over a made-up program that allocates as
 * Go's does: what is counted, sampled and said of the objects' places is compared with what was
 * allocated.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "heap.bpf.c"

#include "program.h"

enum {
	SLOT = 2,
	GOROUTINES = 12,
	PS = 64,
	ALLOCATIONS = 60000,
	PAGE = 8192,
	MAX_SMALL = 32768 - 8
};
enum { CLASSES = 20, SPANS = 16384, SPAN_BYTES = 128, BITS_BYTES = 144, HEADER_OVER = 512 };
#define TEXT   0x400000ull
#define GS     0x10000ull
#define MS     0x20000ull
#define P_BASE 0x30000ull
#define CACHES 0x40000ull
#define SWEEP  0x50000ull
#define TYPES  0x60000ull /* one without pointers, one with */
#define SPAN_S 0x1000000ull
#define BITS   0x2000000ull
#define TLS    0x70000ull
#define STACK  0xc000010000ull
#define HEAP   0xd000000000ull
#define PC(i)  (TEXT + 0x100 + 16 * (uint64_t)(i)) /* the caller of goroutine i, always */
#define EMPTY  (SPAN_S + SPANS * SPAN_BYTES)	   /* runtime.emptymspan */

/* Offsets are ours to choose. */
enum {
	G_LO = 0,
	G_HI = 8,
	G_GUARD = 16,
	G_M = 24,
	G_CREDIT = 32,
	M_P = 8,
	M_CURG = 16,
	P_MCACHE = 0
};
enum { TINY = 0, TINY_OFF = 8, ALLOC = 16, PTRDATA = 8, GEN = 0, BLACKEN = 8 };
enum {
	S_START = 0,
	S_FREE = 8,
	S_N = 10,
	S_CACHE = 16,
	S_BITS = 24,
	S_COUNT = 32,
	S_BEFORE = 34,
	S_SIZE = 40,
	S_MARKS = 48
};

static const struct gpb_target target = {
	.nimages = 1,
	.image = { { .text_lo = TEXT, .text_hi = TEXT + 0x10000 } },
	.flags = GPB_TARGET_REGABI | GPB_TARGET_LIVE,
	.g_stack_lo = G_LO,
	.g_stack_hi = G_HI,
	.g_m = G_M,
	.g_atomicstatus = -1,
	.g_goid = -1,
	.g_labels = -1,
	.m_g0 = 0,
	.m_curg = M_CURG,
	.m_ncgo = 24,
	.m_vdsosp = 32,
	.m_preemptoff = -1,
	.m_p = M_P,
	.p_mcache = P_MCACHE,
	.mcache_tiny = TINY,
	.mcache_tinyoffset = TINY_OFF,
	.type_ptrdata = PTRDATA,
};
static const struct gpb_live live = {
	.sweepgen = SWEEP + GEN,
	.blacken = SWEEP + BLACKEN,
	.mcache_alloc = ALLOC,
	.span_start = S_START,
	.span_freeindex = S_FREE,
	.span_nelems = S_N,
	.span_cache = S_CACHE,
	.span_bits = S_BITS,
	.span_marks = S_MARKS,
	.span_count = S_COUNT,
	.span_before = S_BEFORE,
	.span_elemsize = S_SIZE,
	.index_bytes = 2,
	.g_credit = G_CREDIT,
};
static const uint16_t class_size[CLASSES] = { 0,    8,	  16,	24,   32,    48,   64,
					      80,   96,	  128,	192,  256,   512,  576,
					      1024, 1152, 2048, 8192, 16384, 32768 };

static uint8_t g_mem[GOROUTINES][64], m_mem[PS][64], p_mem[PS][64],
	caches[PS][ALLOC + 16 * CLASSES];
static uint8_t spans[SPANS + 1][SPAN_BYTES], bits[SPANS][BITS_BYTES], sweep[16], types[2][16];
static uint64_t stack_words[GOROUTINES][64], tls_g;
static uint32_t next_span;
static uint32_t cookie_slot = SLOT; /* of many targets: the set */
static struct gpb_heap heap;

/* What was allocated: of each class, and where each object lies. */
static struct {
	uint64_t n[CLASSES], bytes, large;
	double by_size, var; /* number of objects, and the variance of what samples tell of it */
} truth;
static struct object {
	uint64_t base, size;
	uint32_t index;
	int told;
} objects[ALLOCATIONS];
static size_t nobjects;
static int miss_refills; /* one in so many returns of refill is missed, */
static int alone;	 /* and each goroutine has a P of its own, */
static int turn;	 /* another one from time to time */
static int split;	 /* each kind of object has an entry of its own, as from Go 1.24 on */

static void put(uint8_t *to, int off, uint64_t v, size_t n)
{
	memcpy(to + off, &v, n);
}

static uint64_t get(const uint8_t *from, int off, size_t n)
{
	uint64_t v = 0;

	memcpy(&v, from + off, n);
	return v;
}

static uint32_t class_of(uint64_t size)
{
	uint32_t c = 1;

	while (class_size[c] < size)
		c++;
	return c;
}

static void heap_init(void)
{
	heap = (struct gpb_heap){ .rate = 1,
				  .header_over = HEADER_OVER,
				  .max_small = MAX_SMALL,
				  .page = PAGE,
				  .round = 1 };
	memcpy(heap.class_size, class_size, sizeof(class_size));
	for (uint32_t i = 0; i < GPB_SIZE8; i++)
		heap.class8[i] = (uint8_t)class_of(8 * i);
	for (uint32_t i = 0; i < GPB_SIZE128; i++)
		heap.class128[i] = (uint8_t)class_of(GPB_SIZE_SMALL + 128 * i);
}

static void empty_caches(void)
{
	for (int p = 0; p < PS; p++) {
		put(caches[p], TINY, 0, 8);
		for (int c = 0; c < 2 * CLASSES; c++)
			put(caches[p], ALLOC + 8 * c, EMPTY, 8);
	}
}

static int reset(void **state)
{
	uint32_t slot = SLOT;

	(void)state;
	program_reset();
	memset(&truth, 0, sizeof(truth));
	memset(g_mem, 0, sizeof(g_mem));
	memset(m_mem, 0, sizeof(m_mem));
	memset(spans, 0, sizeof(spans));
	memset(sweep, 0, sizeof(sweep));
	nplacing[SLOT] = 0;
	memset(object_counts, 0, sizeof(object_counts));
	nobjects = next_span = 0;
	miss_refills = alone = turn = split = 0;
	host_now_ns = 1000000;
	host_cpu = 0;
	for (int i = 0; i < GOROUTINES; i++) {
		uint64_t stack = STACK + sizeof(stack_words[0]) * (uint64_t)i;

		put(g_mem[i], G_LO, stack, 8);
		put(g_mem[i], G_HI, stack + sizeof(stack_words[0]), 8);
		put(g_mem[i], G_GUARD, stack + 64, 8);
		stack_words[i][8] = PC(i); /* the return address at the allocator's entry */
	}
	for (int p = 0; p < PS; p++) {
		put(m_mem[p], M_P, P_BASE + 64 * (uint64_t)p, 8);
		put(p_mem[p], P_MCACHE, CACHES + sizeof(caches[0]) * (uint64_t)p, 8);
	}
	put(types[0], PTRDATA, 0, 8);
	put(types[1], PTRDATA, 8, 8);
	put(sweep, GEN, 10, 4);
	empty_caches();
	host_map(GS, g_mem, sizeof(g_mem));
	host_map(MS, m_mem, sizeof(m_mem));
	host_map(P_BASE, p_mem, sizeof(p_mem));
	host_map(CACHES, caches, sizeof(caches));
	host_map(SPAN_S, spans, sizeof(spans));
	host_map(BITS, bits, sizeof(bits));
	host_map(SWEEP, sweep, sizeof(sweep));
	host_map(TYPES, types, sizeof(types));
	host_map(TLS, &tls_g, sizeof(tls_g));
	host_map(STACK, stack_words, sizeof(stack_words));
	heap_init();
	open_for[SLOT] = (struct gpb_open){ .bits = GPB_OPEN };
	assert_int_equal(bpf_map_update_elem(&targets, &slot, &target, BPF_ANY), 0);
	return (int)bpf_map_update_elem(&lives, &slot, &live, BPF_ANY);
}

static void hit(int i, uint64_t kind, uint64_t arg0, uint64_t arg1)
{
	struct pt_regs regs = {
		.rip = TEXT + 0x10,
		.rsp = STACK + sizeof(stack_words[0]) * (uint64_t)i + 64,
		.rax = arg0,
		.rbx = arg1,
		.r14 = GS + sizeof(g_mem[0]) * (uint64_t)i,
	};

	host_cookie = kind | GPB_COOKIE_ENTRY | (uint64_t)cookie_slot << GPB_COOKIE_SLOT_SHIFT;
	host_task.thread.fsbase = TLS;
	tls_g = regs.r14;
	heap_alloc(&regs);
}

/* ---- the allocator ---------------------------------------------------------------------------- */

/* The goroutine runs on this P from now on. */
static void run_on(int i, int p)
{
	put(g_mem[i], G_M, MS + 64 * (uint64_t)p, 8);
	put(m_mem[p], M_CURG, GS + sizeof(g_mem[0]) * (uint64_t)i, 8);
	host_cpu = (uint32_t)p;
}

static uint8_t *span_at(uint64_t addr)
{
	return spans[(addr - SPAN_S) / SPAN_BYTES];
}

/* A span of slots of @size bytes, a part of which is taken; its address. */
static uint64_t make_span(uint64_t size)
{
	uint32_t k = next_span++ % SPANS, n = size >= PAGE ? 1 + below(3) : PAGE / (uint32_t)size;
	uint32_t used = 0;
	uint8_t *s = spans[k];

	for (uint32_t b = 0; b < BITS_BYTES; b++)
		bits[k][b] = b < 128 ? (uint8_t)(draw() & draw()) : 0;
	bits[k][n / 8] &= (uint8_t) ~(1u << n % 8);
	for (uint32_t b = 0; b < n; b++)
		used += bits[k][b / 8] >> b % 8 & 1;
	if (used == n)
		bits[k][0] &= 0xfe, used--;
	memset(s, 0, SPAN_BYTES);
	put(s, S_START, HEAP + (uint64_t)next_span * 0x100000, 8);
	put(s, S_N, n, 2);
	put(s, S_BITS, BITS + (uint64_t)k * BITS_BYTES, 8);
	put(s, S_CACHE, ~get(bits[k], 0, 8), 8);
	put(s, S_SIZE, size, 8);
	put(s, S_COUNT, used, 2);
	put(s, S_BEFORE, used, 2);
	return SPAN_S + (uint64_t)k * SPAN_BYTES;
}

/* The next free slot by its bits; -1: none. Source: nextFreeIndex in runtime/mbitmap.go, Go 1.27. */
static int next_slot(uint8_t *s)
{
	uint32_t n = (uint32_t)get(s, S_N, 2), at = (uint32_t)get(s, S_FREE, 2);
	const uint8_t *b = n ? bits[(get(s, S_BITS, 8) - BITS) / BITS_BYTES] : NULL;

	while (at < n && (b[at / 8] >> at % 8 & 1))
		at++;
	if (at >= n) {
		put(s, S_FREE, n, 2);
		return -1;
	}
	put(s, S_FREE, at + 1, 2);
	put(s, S_COUNT, get(s, S_COUNT, 2) + 1, 2);
	/* allocCache begins at freeindex, and is filled again at each 64th slot. */
	if ((at + 1) % 64 == 0)
		put(s, S_CACHE, at + 1 < n ? ~get(b, (int)(at + 1) / 8, 8) : 0, 8);
	else
		put(s, S_CACHE, ~get(b, (int)(at / 64 * 8), 8) >> (at + 1) % 64, 8);
	return (int)at;
}

static void made(const uint8_t *s, uint32_t index)
{
	objects[nobjects++] = (struct object){ get(s, S_START, 8), get(s, S_SIZE, 8), index, 0 };
}

/* mallocgc() takes a slot of the P's span, or refills it. */
static void allocate_small(int i, int p, uint32_t class, int noscan)
{
	int at = ALLOC + 8 * (int)(class << 1 | (uint32_t)noscan), index;
	uint8_t *s = span_at(get(caches[p], at, 8));

	index = next_slot(s);
	if (index < 0) {
		put(caches[p], at, make_span(class_size[class]), 8);
		s = span_at(get(caches[p], at, 8));
		if (!miss_refills || below((uint32_t)miss_refills))
			hit(i, GPB_ALLOC_REFILLED, 0, 0);
		index = next_slot(s);
	}
	made(s, (uint32_t)index);
}

static void allocate_large(int i, uint64_t size)
{
	uint64_t span = make_span((size + PAGE - 1) / PAGE * PAGE);

	hit(i, GPB_ALLOC_PLACED, span, 0);
	made(span_at(span), 0);
}

/* Does the object go into the P's open tiny block? Source: mallocgc in runtime/malloc.go, Go 1.21. */
static int tiny_fits(int p, uint64_t size)
{
	uint64_t off = get(caches[p], TINY_OFF, 8),
		 align = size & 7 ? size & 3 ? size & 1 ? 1 : 2 : 4 : 8;

	off = (off + align - 1) & ~(align - 1);
	if (!get(caches[p], TINY, 8) || off + size > TINY_SIZE)
		return 0;
	put(caches[p], TINY_OFF, off + size, 8);
	return 1;
}

/* A new block; it becomes the open one if more is left in it than in the other. */
static void tiny_open(int p, uint64_t size)
{
	if (get(caches[p], TINY, 8) && size >= get(caches[p], TINY_OFF, 8))
		return;
	put(caches[p], TINY, HEAP, 8);
	put(caches[p], TINY_OFF, size, 8);
}

static void count_truth(uint32_t class, uint64_t bytes)
{
	double p = 1 - exp(-(double)bytes / (double)heap.rate);

	truth.n[class]++;
	truth.large += !class;
	truth.bytes += bytes;
	truth.by_size++;
	truth.var += 1 / p - 1;
}

static uint64_t entry_of(uint64_t size, int noscan)
{
	if (!split)
		return GPB_ALLOC_ANY | GPB_COOKIE_ASSISTS;
	if (size > MAX_SMALL)
		return GPB_ALLOC_LARGE;
	if (noscan)
		return size < TINY_SIZE ? GPB_ALLOC_TINY : GPB_ALLOC_NOSCAN;
	return size > HEADER_OVER ? GPB_ALLOC_SCAN_HEADER : GPB_ALLOC_SCAN_NOHEADER;
}

/* One call of mallocgc(). The collector may ask the goroutine to assist: then it may go on elsewhere. */
static void allocate(int i, uint64_t size, int noscan)
{
	int p = alone ? (i + turn) % PS : (int)below(4), tiny = noscan && size && size < TINY_SIZE,
	    marks = !split && below(2); /* before an entry of its own it has assisted */
	uint64_t bytes = size + (!noscan && size > HEADER_OVER ? 8 : 0);
	uint32_t class = size > MAX_SMALL ? 0 : class_of(tiny ? TINY_SIZE : bytes);

	bytes = class ? class_size[class] : (size + PAGE - 1) / PAGE * PAGE;
	run_on(i, p);
	put(sweep, BLACKEN, (uint64_t)marks, 4);
	put(g_mem[i], G_CREDIT, below(2) ? 1 << 30 : 0, 8);
	if (split && !size)
		return;
	hit(i, entry_of(size, noscan), size,
	    noscan && below(2) ? 0 : TYPES + 16 * (uint64_t)!noscan);
	if (!size)
		return;
	if (marks && !get(g_mem[i], G_CREDIT, 8)) {
		if (!tiny && !alone &&
		    !below(3)) /* it is preempted: others allocate meanwhile, on its P, too */
			allocate((i + 1) % GOROUTINES, 100, 1);
		if (!tiny && !alone)
			p = (int)below(4);
		run_on(i, p);
		hit(i, GPB_ALLOC_ASSISTED, 0, 0);
	}
	if (tiny && tiny_fits(p, size))
		return;
	count_truth(class, bytes);
	if (!class)
		allocate_large(i, size);
	else
		allocate_small(i, p, class, noscan);
	if (tiny)
		tiny_open(p, size);
}

/* The last are of sizes around the largest class's: pages take as much as a slot of it. */
static void allocate_any(void)
{
	static const struct {
		uint32_t from, n;
	} sizes[] = { { 0, 16 },   { 0, 16 },	 { 0, 256 },	{ 0, 1024 },
		      { 0, 4096 }, { 0, 40000 }, { 0, 200000 }, { MAX_SMALL - 12, 24 } };
	uint32_t k = below(8);

	allocate((int)below(alone ? 4 : GOROUTINES - 1), sizes[k].from + below(sizes[k].n),
		 (int)below(2));
}

static void use_heap(void)
{
	uint32_t slot = SLOT;

	assert_int_equal(bpf_map_update_elem(&heaps, &slot, &heap, BPF_ANY), 0);
}

/* ---- what is told ----------------------------------------------------------------------------- */

static void expect_counted(void)
{
	uint64_t n[CLASSES] = { 0 }, bytes = 0;
	uint32_t slot = SLOT;

	for (host_cpu = 0; host_cpu < PS; host_cpu++) {
		const struct gpb_classes *c = bpf_map_lookup_elem(&classes, &slot);
		const struct gpb_countdown *d = bpf_map_lookup_elem(&countdowns, &slot);

		for (int i = 0; i < CLASSES; i++)
			n[i] += c->n[i];
		bytes += d->bytes;
	}
	for (int i = 0; i < CLASSES; i++)
		assert_int_equal(n[i], truth.n[i]);
	assert_int_equal(bytes, truth.bytes);
	assert_int_equal(lost_in_all(SLOT), 0);
}

/* Each record is of an object that was made there, and of none that was told before. */
static size_t match_objects(void)
{
	const struct host_rec *r = NULL;
	size_t n = 0, k;

	while ((r = host_ring_next(r))) {
		const struct gpb_rec_object *o = (const struct gpb_rec_object *)r->bytes;

		if (o->type != GPB_REC_OBJECT)
			continue;
		for (k = 0; k < nobjects; k++)
			if (objects[k].base == o->base && objects[k].index == o->index)
				break;
		if (k == nobjects || objects[k].told || objects[k].size != o->size)
			fail_msg("no such object: slot %u of %#llx, %llu bytes", o->index,
				 (unsigned long long)o->base, (unsigned long long)o->size);
		objects[k].told = 1;
		n++;
	}
	return n;
}

static uint64_t sampled[CLASSES];

static void add_class(const struct gpb_stack *s)
{
	assert_true(s->object.class < CLASSES);
	assert_true(!s->object.class || s->object.size == class_size[s->object.class]);
	sampled[s->object.class] += s->count;
}

/* Where each one is a sample: samples are of the classes that were counted. */
static void expect_classes(void)
{
	memset(sampled, 0, sizeof(sampled));
	each_sample(add_class);
	for (int i = 0; i < CLASSES; i++)
		assert_int_equal(sampled[i], truth.n[i]);
}

static double told_objects;

static void add_count(const struct gpb_stack *s)
{
	assert_true(s->nfirst == 2 && s->pc[1] >= PC(0) && s->pc[1] < PC(GOROUTINES));
	told_objects += (double)s->count / (1 - exp(-(double)s->object.size / (double)heap.rate));
}

static void step(void)
{
	allocate_any();
	turn += !below(4);
	if (!below(20)) { /* a GC cycle */
		empty_caches();
		put(sweep, GEN, get(sweep, GEN, 4) + 2, 4);
	}
}

static void all_are_counted_and_placed(void)
{
	use_heap();
	while (nobjects < 8000)
		step();
	expect_counted();
	expect_classes();
	assert_int_equal(match_objects(), nobjects);
	assert_int_equal(object_counts[SLOT].unknown, 0);
	assert_int_equal(object_counts[SLOT].large, truth.large);
	assert_true(object_counts[SLOT].told && object_counts[SLOT].waited &&
		    object_counts[SLOT].large);
}

static void every_object_is_counted_and_placed(void **state)
{
	(void)state;
	all_are_counted_and_placed();
}

static void also_by_entries_of_their_own(void **state)
{
	(void)state;
	split = 1;
	all_are_counted_and_placed();
}

/* What is not known is said; what is told is right. */
static void missed_hits_make_no_wrong_place(void **state)
{
	(void)state;
	use_heap();
	miss_refills = 3;
	alone = 1;
	while (nobjects < 8000)
		step();
	expect_counted();
	assert_int_equal(match_objects() + object_counts[SLOT].unknown + nplacing[SLOT], nobjects);
	assert_true(object_counts[SLOT].settled > 0);
}

static void samples_stand_for_all(void **state)
{
	double z;

	(void)state;
	heap.rate = 4096;
	for (int i = 0; i <= GPB_LOG_STEPS; i++)
		((uint32_t *)(uintptr_t)log2_table)[i] =
			(uint32_t)lround(log2(1.0 + (double)i / GPB_LOG_STEPS) * (1 << 26));
	use_heap();
	while (nobjects < ALLOCATIONS - 10)
		allocate_any();
	expect_counted();
	told_objects = 0;
	each_sample(add_count);
	z = (told_objects - truth.by_size) / sqrt(truth.var);
	if (fabs(z) > 4)
		fail_msg("%.0f objects, told %.0f: %.1f standard errors", truth.by_size,
			 told_objects, z);
}

/* ---- many targets ----------------------------------------------------------------------------- */

enum { PID = 77, OTHER = 78, SET = 5, NEXT = 9 };

/* One target in a slot of a second generation, whose probes are of a set. */
static void become_many(uint32_t index)
{
	uint32_t pid = PID, slot = 1u << GPB_SLOT_GENERATION | index;

	*(uint32_t *)(uintptr_t)&many_targets = 1;
	ring_quota = stacks_quota = (struct gpb_quota){ .part = 1 << 30, .free = 1 << 30 };
	set_of[index] = SET;
	open_for[SET] = (struct gpb_open){ .bits = GPB_OPEN };
	cookie_slot = SET;
	host_task.tgid = host_task.pid = PID;
	assert_int_equal(bpf_map_update_elem(&slot_of_tgid, &pid, &slot, BPF_ANY), 0);
	assert_int_equal(bpf_map_update_elem(&targets, &index, &target, BPF_ANY), 0);
	assert_int_equal(bpf_map_update_elem(&lives, &index, &live, BPF_ANY), 0);
}

static void become_one(void)
{
	*(uint32_t *)(uintptr_t)&many_targets = 0;
	cookie_slot = SLOT;
}

static uint64_t bystanders_hits(uint32_t set)
{
	uint64_t n = 0;

	for (host_cpu = 0; host_cpu < PS; host_cpu++)
		n += ((const struct gpb_spent *)bpf_map_lookup_elem(&bystanders, &set))->hits;
	return n;
}

static uint64_t sets_hits(uint32_t set)
{
	uint64_t n = 0;

	for (host_cpu = 0; host_cpu < PS; host_cpu++)
		n += ((const struct gpb_spent *)bpf_map_lookup_elem(&sets, &set))->hits;
	return n;
}

/* Its slot is found by its process, and what is sent has that slot's generation. */
static void of_many_the_process_decides(void **state)
{
	const struct host_rec *r = NULL;

	(void)state;
	become_many(SLOT);
	use_heap();
	while (nobjects < 4000)
		step();
	expect_counted();
	while ((r = host_ring_next(r))) {
		const struct gpb_rec_object *o = (const struct gpb_rec_object *)r->bytes;

		if (o->type == GPB_REC_OBJECT)
			assert_int_equal(o->slot, 1u << GPB_SLOT_GENERATION | SLOT);
	}
	assert_int_equal(match_objects(), nobjects);
	assert_int_equal(bystanders_hits(SET), 0);
	become_one();
}

/* Another process that runs the same file is in no table but the one of bystanders. */
static void a_bystander_leaves_at_once(void **state)
{
	uint64_t hits = 0;

	(void)state;
	become_many(SLOT);
	use_heap();
	host_task.tgid = OTHER;
	for (int i = 0; i < 1000; i++, hits++)
		hit(i % GOROUTINES, GPB_ALLOC_ANY, 100, TYPES);
	expect_counted();
	assert_int_equal(host_ring_used, 0);
	assert_int_equal(*host_size(&stacks), 0);
	assert_int_equal(bystanders_hits(SET), hits);
	become_one();
}

/* Windows are the set's: it is closed, and that of the slot's number is open. */
static void windows_are_the_sets(void **state)
{
	(void)state;
	become_many(SLOT);
	use_heap();
	open_for[SET] = (struct gpb_open){ 0 };
	open_for[SLOT] = open_for[NEXT] = (struct gpb_open){ .bits = GPB_OPEN };
	for (int i = 0; i < 1000; i++)
		hit(i % GOROUTINES, GPB_ALLOC_ANY, 100, TYPES);
	expect_counted(); /* nothing */
	become_one();
}

/* Containers of one image: each has a set, and the kernel puts the probes of both into the one file below them. */
static void another_sets_probe_does_not_count(void **state)
{
	uint64_t hits = 0;

	(void)state;
	become_many(SLOT);
	use_heap();
	open_for[NEXT] = (struct gpb_open){ .bits = GPB_OPEN };
	cookie_slot = NEXT;
	for (int i = 0; i < 1000; i++, hits++)
		hit(i % GOROUTINES, GPB_ALLOC_ANY, 100, TYPES);
	expect_counted(); /* nothing, but what it takes; and it is profiled */
	assert_int_equal(sets_hits(NEXT), hits);
	assert_int_equal(bystanders_hits(NEXT), 0);
	become_one();
}

/* It has called exec, and user space does not know yet. */
static void another_program_is_not_counted(void **state)
{
	struct gpb_target t = target;
	struct mm_struct mm = { .start_stack = 2 };
	uint32_t at = SLOT;

	(void)state;
	become_many(SLOT);
	use_heap();
	t.start_stack = 1;
	host_task.mm = &mm;
	assert_int_equal(bpf_map_update_elem(&targets, &at, &t, BPF_ANY), 0);
	for (int i = 0; i < 1000; i++)
		hit(i % GOROUTINES, GPB_ALLOC_ANY, 100, TYPES);
	expect_counted();
	host_task.mm = NULL;
	become_one();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(every_object_is_counted_and_placed, reset),
		cmocka_unit_test_setup(also_by_entries_of_their_own, reset),
		cmocka_unit_test_setup(missed_hits_make_no_wrong_place, reset),
		cmocka_unit_test_setup(samples_stand_for_all, reset),
		cmocka_unit_test_setup(of_many_the_process_decides, reset),
		cmocka_unit_test_setup(a_bystander_leaves_at_once, reset),
		cmocka_unit_test_setup(windows_are_the_sets, reset),
		cmocka_unit_test_setup(another_sets_probe_does_not_count, reset),
		cmocka_unit_test_setup(another_program_is_not_counted, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
