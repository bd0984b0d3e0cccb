/*
 * tests/unit/test_rtvar.c - runtime variables recognized by the functions that use them, in
 * functions made by hand, and the values that they can have.
 *
 * The binary is a fake: the few gobin functions that go/runtime/vars/rtvar.c calls are below.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "go/runtime/vars/rtvar_priv.h"

enum {
	TEXT = 0x401000,
	FUNC_BYTES = 256,
	FUNCS = 16,
	NOPTRDATA = 0x500000,
	BSS = 0x520000,
	NOPTRBSS = 0x560000,
	A = BSS + 0x40,
	B = BSS + 0x80,
	C = BSS + 0xc0,
};

/* ---- the fake binary -------------------------------------------------------------------------- */

struct gobin {
	struct mem mem; /* first */
	struct gobin_info info;
	struct gomodule module;
	uint8_t text[FUNC_BYTES * FUNCS];
	const char *names[FUNCS];
	size_t n, at; /* functions; bytes of the one being written */
	const char *symbol;
	uint64_t symbol_addr;
	unsigned asked;
	uint64_t kept[1 << 11];
};

static struct gobin bin;

const struct gobin_info *gobin_info(const struct gobin *b)
{
	return &b->info;
}

const struct gomodule *gobin_module(const struct gobin *b)
{
	return &b->module;
}

void *gobin_keep(struct gobin *b, size_t bytes)
{
	assert_true(bytes <= sizeof(b->kept));
	return b->kept;
}

struct mem *gobin_mem(struct gobin *b)
{
	return &b->mem;
}

static int fake_read(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	struct gobin *b = (struct gobin *)m;

	if (addr < TEXT || addr - TEXT > sizeof(b->text) || n > sizeof(b->text) - (addr - TEXT))
		return err_set(e, -EFAULT, "no text at 0x%llx", (unsigned long long)addr);
	memcpy(buf, b->text + (addr - TEXT), n);
	return 0;
}

int gobin_funcs_named(struct gobin *b, const char *const *names, size_t n, struct gofunc *out,
		      struct err *e)
{
	int found = 0;

	(void)e;
	b->asked++;
	memset(out, 0, n * sizeof(*out));
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < b->n; k++)
			if (!strcmp(names[i], b->names[k])) {
				out[i].entry = TEXT + k * FUNC_BYTES;
				out[i].end = out[i].entry + FUNC_BYTES;
				found++;
			}
	return found;
}

int gobin_symbol(struct gobin *b, const char *name, uint64_t *addr, uint64_t *size, struct err *e)
{
	if (!b->symbol || strcmp(name, b->symbol))
		return err_set(e, -ENOENT, "no symbol %s", name);
	*addr = b->symbol_addr;
	*size = 8;
	return 0;
}

static int setup(void **state)
{
	(void)state;
	memset(&bin, 0, sizeof(bin));
	bin.mem.read = fake_read;
	bin.info = (struct gobin_info){
		.minor = 22, .arch = ARCH_AMD64, .text = TEXT, .etext = TEXT + sizeof(bin.text)
	};
	bin.module = (struct gomodule){ .noptrdata = NOPTRDATA,
					.enoptrdata = NOPTRDATA + 0x10000,
					.data = NOPTRDATA + 0x10000,
					.edata = BSS,
					.bss = BSS,
					.ebss = NOPTRBSS,
					.noptrbss = NOPTRBSS,
					.enoptrbss = NOPTRBSS + 0x10000 };
	return 0;
}

/* ---- its functions, instruction by instruction ------------------------------------------------ */

static void func(const char *name)
{
	assert_true(bin.n < FUNCS);
	bin.names[bin.n++] = name;
	bin.at = 0;
	memset(bin.text + (bin.n - 1) * FUNC_BYTES, 0xcc, FUNC_BYTES);
}

static size_t emit(const void *code, size_t n)
{
	size_t at = bin.at;

	assert_true(bin.n && at + n <= FUNC_BYTES);
	memcpy(bin.text + (bin.n - 1) * FUNC_BYTES + at, code, n);
	bin.at += n;
	return at;
}
#define EMIT(...) emit((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

/* An instruction whose four bytes before the last @tail are the distance to @addr. */
static void emit_rip(const uint8_t *op, size_t n, uint64_t addr, size_t tail)
{
	uint64_t end = TEXT + (bin.n - 1) * FUNC_BYTES + bin.at + n + 4 + tail;
	int32_t rel = (int32_t)(addr - end);

	emit(op, n);
	emit(&rel, 4);
	emit("\0\0\0\0", tail);
}

static void load(uint64_t addr) /* mov addr(%rip),%rax */
{
	emit_rip((const uint8_t[]){ 0x48, 0x8b, 0x05 }, 3, addr, 0);
}

static void load4(uint64_t addr)
{
	emit_rip((const uint8_t[]){ 0x8b, 0x05 }, 2, addr, 0);
}

static void lea(uint64_t addr)
{
	emit_rip((const uint8_t[]){ 0x48, 0x8d, 0x05 }, 3, addr, 0);
}

static void load16(uint64_t addr) /* movups addr(%rip),%xmm0 */
{
	emit_rip((const uint8_t[]){ 0x0f, 0x10, 0x05 }, 3, addr, 0);
}

static void test_byte(uint64_t addr) /* cmpb $0,addr(%rip) */
{
	emit_rip((const uint8_t[]){ 0x80, 0x3d }, 2, addr, 1);
}

static void store0(uint64_t addr) /* movq $0,addr(%rip) */
{
	emit_rip((const uint8_t[]){ 0x48, 0xc7, 0x05 }, 3, addr, 4);
}

static void ret(void)
{
	EMIT(0xc3);
}

static void uses(const char *name, uint64_t addr)
{
	func(name);
	load(addr);
	ret();
}

/*
 * stkbucket's choice: cmp $first,%rcx; jne; lea mem; jmp; cmp $second,%rcx; jne; lea mutex; jmp;
 * lea block; ret. With @je the arms change places.
 */
static void choice(uint8_t first, uint8_t second, uint64_t mem, uint64_t mutex, uint64_t block)
{
	EMIT(0x48, 0x83, 0xf9, first); /* cmp */
	EMIT(0x75, 9);		       /* jne over lea and jmp */
	lea(mem);
	EMIT(0xeb, 4 + 2 + 7 + 2 + 7);
	EMIT(0x48, 0x83, 0xf9, second);
	EMIT(0x75, 9);
	lea(mutex);
	EMIT(0xeb, 7);
	lea(block);
}

static void heads(void)
{
	func("runtime.stkbucket");
	EMIT(0x90);
	choice(1, 3, A, C, B);
	ret();
}

/* ---- answers ---------------------------------------------------------------------------------- */

static void expect(enum rtvar v, uint64_t want)
{
	struct err e = { "" };
	uint64_t at = 0;

	if (rtvar_decode(&bin, v, &at, &e))
		fail_msg("%s", e.msg);
	assert_int_equal(at, want);
}

static void expect_none(enum rtvar v, const char *why)
{
	struct err e = { "" };
	uint64_t at = 77;

	assert_int_equal(rtvar_decode(&bin, v, &at, &e), -ENOENT);
	assert_int_equal(at, 77);
	if (!strstr(e.msg, why) || !strstr(e.msg, rtvar_name(v)))
		fail_msg("\"%s\" without \"%s\"", e.msg, why);
}

static void most_votes(void **state)
{
	(void)state;
	uses("runtime.stkbucket", A);
	expect_none(RTVAR_MBUCKETS, "1 votes of 2");
	func("runtime.mProf_FlushLocked");
	load(A);
	load(B);
	ret();
	expect(RTVAR_MBUCKETS, A);
}

static void a_tie_is_no_answer(void **state)
{
	(void)state;
	func("runtime.stkbucket");
	load(A);
	load(B);
	ret();
	func("runtime.mProf_FlushLocked");
	load(B);
	load(A);
	ret();
	expect_none(RTVAR_MBUCKETS, "next 2");
	uses("runtime.BlockProfile", B); /* now another function uses B */
	expect(RTVAR_MBUCKETS, A);
}

static void what_strangers_name(void **state)
{
	(void)state;
	uses("runtime.stkbucket", A);
	uses("runtime.mProf_FlushLocked", A);
	uses("runtime.mutexProfileInternal", A);
	expect_none(RTVAR_MBUCKETS, "refused 2");
}

static void places_and_widths(void **state)
{
	static const char *const users[] = { "runtime.chansend", "runtime.chanrecv",
					     "runtime.selectgo" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(users); i++) {
		func(users[i]);
		load(BSS + 0x100);	/* the GC looks there: no counter */
		load4(NOPTRBSS + 0x18); /* half a word */
		load(NOPTRBSS + 0x24);	/* not aligned */
		load(NOPTRDATA + 0x10);
		load(TEXT);
		lea(NOPTRBSS + 0x30); /* only its address */
		ret();
	}
	expect_none(RTVAR_BLOCKPROFILERATE, "0 votes of 3");
	for (size_t i = 0; i < ARRAY_LEN(users); i++) {
		bin.n = i;
		uses(users[i], NOPTRBSS + 0x40);
	}
	expect(RTVAR_BLOCKPROFILERATE, NOPTRBSS + 0x40);
	uses("sync.event", NOPTRBSS + 0x40);
	expect_none(RTVAR_BLOCKPROFILERATE, "refused 3");
}

static void block_and_mutex_rates(void **state)
{
	enum { BLOCK = NOPTRBSS + 8, MUTEX = NOPTRBSS + 16 };

	(void)state;
	uses("runtime.chansend", BLOCK);
	uses("runtime.chanrecv", BLOCK);
	uses("sync.event", MUTEX);
	func("runtime.semacquire1");
	load(MUTEX);
	load(BLOCK);
	ret();
	expect(RTVAR_BLOCKPROFILERATE, BLOCK);
	expect(RTVAR_MUTEXPROFILERATE, MUTEX);
}

static void an_address_alone_is_no_use(void **state)
{
	(void)state;
	func("runtime.allgadd");
	lea(NOPTRBSS + 8);
	lea(NOPTRBSS + 16);
	ret();
	func("runtime.forEachGRace");
	lea(NOPTRBSS + 16);
	load(NOPTRBSS + 8);
	ret();
	expect(RTVAR_ALLGLEN, NOPTRBSS + 8);
}

static void slices_have_a_length(void **state)
{
	(void)state;
	func("runtime.allgadd");
	load(A);
	load(A + 8);
	load(B);
	ret();
	func("runtime.forEachG");
	load16(A); /* both words at once */
	load(B);
	ret();
	expect(RTVAR_ALLGS, A);
}

static void fields_count_for_their_struct(void **state)
{
	(void)state;
	func("runtime.ticksPerSecond");
	lea(NOPTRBSS + 0x40);
	lea(NOPTRBSS + 0x50);
	ret();
	func("runtime.schedinit"); /* this function says nothing without the first */
	lea(NOPTRBSS + 0x80);
	ret();
	expect(RTVAR_TICKS, NOPTRBSS + 0x40);
	bin.names[0] = "main.main";
	expect_none(RTVAR_TICKS, "0 votes of 1");
}

static void parts_count_for_their_whole(void **state)
{
	static const struct {
		int minor;
		uint64_t part;
	} in[] = { { 16, 6024 }, { 18, 5960 }, { 19, 0 }, { 27, 0 }, { -1, 0 } };
	static const char *const users[] = { "runtime.schedinit", "runtime.pollWork",
					     "runtime.sysmon" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(users); i++)
		uses(users[i], A + 8); /* sched.lastpoll */
	expect(RTVAR_SCHED, A);
	for (size_t i = 0; i < ARRAY_LEN(in); i++) {
		setup(state);
		bin.info.minor = in[i].minor;
		func("runtime.(*mcache).refill");
		lea(NOPTRBSS + in[i].part);
		ret();
		func("runtime.(*mcache).allocLarge");
		lea(NOPTRBSS + in[i].part);
		ret();
		expect(RTVAR_MEMSTATS, NOPTRBSS);
	}
	bin.info.minor = 18; /* the whole variable would begin before its section */
	expect_none(RTVAR_MEMSTATS, "would begin");
}

static void heads_by_bucket_type(void **state)
{
	(void)state;
	heads();
	expect(RTVAR_XBUCKETS, C);
	expect(RTVAR_BBUCKETS, B);
	uses("runtime.MutexProfile", B);
	expect_none(RTVAR_BBUCKETS, "another profile");
	expect(RTVAR_XBUCKETS, C);
}

static void heads_that_read_otherwise(void **state)
{
	static const struct {
		uint8_t first, second;
		uint64_t mem, mutex, block;
	} bad[] = {
		{ 1, 2, A, C, B }, /* another type */
		{ 2, 3, A, C, B }, /* and here */
		{ 1, 3, A, A, B }, /* two lists in one place */
		{ 1, 3, A, C, TEXT },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		bin.n = 0;
		func("runtime.stkbucket");
		choice(bad[i].first, bad[i].second, bad[i].mem, bad[i].mutex, bad[i].block);
		ret();
		expect_none(RTVAR_BBUCKETS, "0 places");
	}
	bin.n = 0;
	func("runtime.stkbucket");
	choice(1, 3, A, C, B);
	choice(1, 3, A, B, C);
	ret();
	expect_none(RTVAR_XBUCKETS, "2 places");
	bin.n = 0;
	expect_none(RTVAR_XBUCKETS, "0 places");
}

/* je: the arms change places. */
static void heads_with_the_other_branch(void **state)
{
	(void)state;
	func("runtime.stkbucket");
	EMIT(0x48, 0x83, 0xf9, 1); /* cmp $1 */
	EMIT(0x74, 4 + 2 + 7 + 1 + 7 + 1);
	EMIT(0x48, 0x83, 0xf9, 3);
	EMIT(0x74, 7 + 1);
	lea(B);
	ret();
	lea(C);
	ret();
	lea(A);
	ret();
	expect(RTVAR_BBUCKETS, B);
	expect(RTVAR_XBUCKETS, C);
}

static void words_of_arm64(void **state)
{
	/*
	 * cmp x1,#1; b.ne +12; adrp x0,BSS; add x0,x0,#0x40; [b.ne here] cmp x1,#3; b.ne +16;
	 * adrp x0,BSS; add x0,x0,#0xc0; ret; adrp x0,BSS; add x0,x0,#0x80; ret
	 */
	static const uint32_t code[] = { 0xf100043f, 0x54000081, 0,	    0x91010000, 0xd65f03c0,
					 0xf1000c3f, 0x54000081, 0,	    0x91030000, 0xd65f03c0,
					 0,	     0x91020000, 0xd65f03c0 };
	/* An atomic that decoders may not know: casal w1,w2,[x0]. */
	static const uint32_t casal = 0x88e1fc02;
	/* What the distance from TEXT's page to BSS makes of adrp x0. */
	uint32_t pages = (BSS - TEXT) >> 12,
		 adrp = 0x90000000 | (pages & 3) << 29 | pages >> 2 << 5;

	(void)state;
	bin.info.arch = ARCH_ARM64;
	func("runtime.stkbucket");
	emit(&casal, 4);
	for (size_t i = 0; i < ARRAY_LEN(code); i++)
		emit(code[i] ? &code[i] : &adrp, 4);
	expect(RTVAR_BBUCKETS, B);
	expect(RTVAR_XBUCKETS, C);
}

/* ---- the gate --------------------------------------------------------------------------------- */

enum { RATE = NOPTRDATA + 0x18, GATE = NOPTRDATA + 0x5 };

static void rate_users(void)
{
	uses("runtime.profilealloc", RATE);
	uses("runtime.allocmcache", RATE);
}

static void byte_before_the_rate(void **state)
{
	(void)state;
	rate_users();
	func("runtime.schedinit");
	test_byte(GATE + 1);
	test_byte(GATE);
	EMIT(0x74, 11);
	store0(RATE);
	ret();
	expect(RTVAR_MEMPROFILERATE, RATE);
	expect(RTVAR_DISABLEMEMORYPROFILING, GATE);
	bin.info.minor = 16;
	expect_none(RTVAR_DISABLEMEMORYPROFILING, "came with go1.17");
}

static void no_byte_before_the_rate(void **state)
{
	(void)state;
	rate_users();
	func("runtime.schedinit");
	test_byte(GATE);
	EMIT(0xe8, 0, 0, 0, 0); /* a call: what was read before is something else */
	store0(RATE);
	ret();
	expect_none(RTVAR_DISABLEMEMORYPROFILING, "no byte");
	bin.n--;
	func("runtime.schedinit");
	test_byte(GATE);
	store0(RATE);
	test_byte(GATE + 1);
	store0(RATE);
	ret();
	expect_none(RTVAR_DISABLEMEMORYPROFILING, "two bytes");
}

/* ---- symbols ---------------------------------------------------------------------------------- */

static void forget(void)
{
	memset(bin.kept, 0, sizeof(bin.kept));
}

static void symbols_first(void **state)
{
	struct err e = { "" };
	uint64_t at = 0;

	(void)state;
	rate_users();
	bin.symbol = "runtime.MemProfileRate";
	bin.symbol_addr = RATE + 8;
	assert_int_equal(rtvar_find(&bin, RTVAR_MEMPROFILERATE, &at, NULL), 0);
	assert_int_equal(at, RATE + 8);
	forget();
	bin.symbol_addr = TEXT; /* the symbol is wrong */
	assert_int_equal(rtvar_find(&bin, RTVAR_MEMPROFILERATE, &at, NULL), 0);
	assert_int_equal(at, RATE);
	forget();
	bin.info.plugin = true;
	assert_int_equal(rtvar_find(&bin, RTVAR_MEMPROFILERATE, &at, &e), -ENOENT);
	assert_non_null(strstr(e.msg, "plugin"));
}

/* Many processes run one binary. */
static void each_is_found_once(void **state)
{
	struct err e = { "" }, again = { "" };
	uint64_t at = 0;
	unsigned asked;

	(void)state;
	rate_users();
	assert_int_equal(rtvar_find(&bin, RTVAR_MEMPROFILERATE, &at, NULL), 0);
	asked = bin.asked;
	at = 0;
	assert_int_equal(rtvar_find(&bin, RTVAR_MEMPROFILERATE, &at, NULL), 0);
	assert_int_equal(at, RATE);
	assert_int_equal(bin.asked, asked);
	assert_int_equal(rtvar_find(&bin, RTVAR_ALLGS, &at, &e), -ENOENT);
	asked = bin.asked;
	assert_int_equal(rtvar_find(&bin, RTVAR_ALLGS, &at, &again), -ENOENT);
	assert_true(bin.asked == asked && at == RATE);
	assert_string_equal(e.msg, again.msg);
}

/* ---- what stands there ------------------------------------------------------------------------ */

enum { LIVE = 0x10000, LIVE_WORDS = 128 };

struct live {
	struct mem mem; /* first */
	uint64_t w[LIVE_WORDS];
};

static int live_read(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	struct live *l = (struct live *)m;

	if (addr < LIVE || addr - LIVE > sizeof(l->w) || n > sizeof(l->w) - (addr - LIVE))
		return err_set(e, -EFAULT, "0x%llx is not readable", (unsigned long long)addr);
	memcpy(buf, (uint8_t *)l->w + (addr - LIVE), n);
	return 0;
}

static int plausible(struct live *l, enum rtvar v, int minor, struct err *e)
{
	struct golayout layout = { .from = "test" };

	l->mem.read = live_read;
	layout.off[LAYOUT_g_stack_hi] = 8;
	layout.off[LAYOUT_g_m] = 48;
	layout.off[LAYOUT_bucket_typ] = 16;
	return rtvar_plausible(&l->mem, &layout, minor, v, LIVE, e);
}

static void values(void **state)
{
	static const struct {
		enum rtvar v;
		int minor;
		uint64_t value;
		bool ok;
	} cases[] = {
		{ RTVAR_MEMPROFILERATE, 22, 0, true },
		{ RTVAR_MEMPROFILERATE, 22, 524288, true },
		{ RTVAR_MEMPROFILERATE, 22, (uint64_t)-1, true },
		{ RTVAR_MEMPROFILERATE, 22, 0xc000012000, false },
		{ RTVAR_MEMPROFILERATE, 22, 1ull << 63, false },
		{ RTVAR_MUTEXPROFILERATE, 22, 5, true },
		{ RTVAR_MUTEXPROFILERATE, 22, (uint64_t)-1, false },
		{ RTVAR_BLOCKPROFILERATE, 22, 1ull << 44, true },
		{ RTVAR_BLOCKPROFILERATE, 22, 0x7f0012345678, false },
		{ RTVAR_MPROFCYCLE, 22, (3ull << 26) - 1, true },
		{ RTVAR_MPROFCYCLE, 22, 3ull << 26, false },
		{ RTVAR_MPROFCYCLE, 18, 1ull << 32 | 7, true },
		{ RTVAR_MPROFCYCLE, 18, 2ull << 32 | 7, false },
		{ RTVAR_MPROFCYCLE, 18, 3ull << 25, false },
		{ RTVAR_DISABLEMEMORYPROFILING, 22, 1, true },
		{ RTVAR_DISABLEMEMORYPROFILING, 22, 2, false },
		{ RTVAR_ALLGLEN, 22, 100000, true },
		{ RTVAR_ALLGLEN, 22, LIVE * 65536ull, false },
		{ RTVAR_MBUCKETS, 22, 0, true },
		{ RTVAR_MBUCKETS, 22, LIVE + 1, false },
		{ RTVAR_XBUCKETS, 22, 8, false },
		{ RTVAR_ALLGPTR, 22, 0, true },
		{ RTVAR_ALLGPTR, 22, 8, false },
		{ RTVAR_ALLM, 22, 0, true },
		{ RTVAR_ALLM, 22, LIVE + 4, false },
		{ RTVAR_TICKS, 22, 0, true },
		{ RTVAR_MHEAP, 22, 0, true },
		{ RTVAR_MEMSTATS, 22, 2, true },
		{ RTVAR_MEMSTATS, 22, 3, false },
		{ RTVAR_SCHED, 22, 1, true },
		{ RTVAR_SCHED, 22, 2, false }, /* gcwaiting is at 0 in this layout */
		{ RTVAR_SCHED, 22, 1ull << 63, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct live l = { .w = { cases[i].value } };
		struct err e = { "" };
		int rc = plausible(&l, cases[i].v, cases[i].minor, &e);

		if (rc != (cases[i].ok ? 0 : -EBADMSG))
			fail_msg("case %zu: %d %s", i, rc, e.msg);
		if (rc && !strstr(e.msg, rtvar_name(cases[i].v)))
			fail_msg("case %zu: \"%s\"", i, e.msg);
	}
}

static uint64_t *word(struct live *l, uint64_t addr)
{
	return &l->w[(addr - LIVE) / 8];
}

static void heads_point_to_their_kind(void **state)
{
	static const enum rtvar v[] = { RTVAR_MBUCKETS, RTVAR_BBUCKETS, RTVAR_XBUCKETS };

	(void)state;
	for (uint64_t kind = 1; kind <= 3; kind++)
		for (uint64_t i = 0; i < 3; i++) {
			struct live l = { .w = { LIVE + 0x100 } };

			*word(&l, LIVE + 0x100 + 16) = kind;
			assert_int_equal(plausible(&l, v[i], 22, NULL),
					 kind == i + 1 ? 0 : -EBADMSG);
		}
}

static void lists_of_goroutines(void **state)
{
	enum { LIST = LIVE + 0x100, G = LIVE + 0x200 };
	struct live l = { .w = { LIST, 3, 4 } };

	(void)state;
	*word(&l, LIST) = G;
	*word(&l, G) = 0xc000000000;
	*word(&l, G + 8) = 0xc000000800;
	assert_int_equal(plausible(&l, RTVAR_ALLGS, 22, NULL), 0);
	assert_int_equal(plausible(&l, RTVAR_ALLGPTR, 22, NULL), 0);
	l.w[1] = 5; /* more than there is room for */
	assert_int_equal(plausible(&l, RTVAR_ALLGS, 22, NULL), -EBADMSG);
	l.w[1] = 3;
	*word(&l, G) = 0xc000001000; /* the low end above the high one */
	assert_int_equal(plausible(&l, RTVAR_ALLGS, 22, NULL), -EBADMSG);
	assert_int_equal(plausible(&l, RTVAR_ALLGPTR, 22, NULL), -EBADMSG);
	*word(&l, LIST) = 0;
	assert_int_equal(plausible(&l, RTVAR_ALLGS, 22, NULL), -EBADMSG);
	l.w[0] = l.w[1] = l.w[2] = 0; /* before the runtime began */
	assert_int_equal(plausible(&l, RTVAR_ALLGS, 22, NULL), 0);
}

static void first_p_and_first_m(void **state)
{
	enum { LIST = LIVE + 0x100, P = LIVE + 0x200, M = LIVE + 0x140, G0 = LIVE + 0x180 };
	struct live l = { .w = { LIST, 2, 2 } };

	(void)state;
	*word(&l, LIST) = P;
	assert_int_equal(plausible(&l, RTVAR_ALLP, 22, NULL), 0);
	*word(&l, P) = 1;
	assert_int_equal(plausible(&l, RTVAR_ALLP, 22, NULL), -EBADMSG);
	l.w[0] = M;
	*word(&l, M) = G0;
	*word(&l, G0 + 48) = M;
	assert_int_equal(plausible(&l, RTVAR_ALLM, 22, NULL), 0);
	*word(&l, G0 + 48) = P;
	assert_int_equal(plausible(&l, RTVAR_ALLM, 22, NULL), -EBADMSG);
}

static void unreadable(void **state)
{
	struct live l = { .mem = { .read = live_read } };
	struct golayout layout = { .from = "test" };

	(void)state;
	for (int v = 0; v < RTVAR_COUNT; v++) {
		struct err e = { "" };

		assert_int_equal(rtvar_plausible(&l.mem, &layout, 22, (enum rtvar)v, LIVE - 4096,
						 &e),
				 -EFAULT);
		assert_non_null(strstr(e.msg, rtvar_name((enum rtvar)v)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(most_votes, setup),
		cmocka_unit_test_setup(a_tie_is_no_answer, setup),
		cmocka_unit_test_setup(what_strangers_name, setup),
		cmocka_unit_test_setup(places_and_widths, setup),
		cmocka_unit_test_setup(block_and_mutex_rates, setup),
		cmocka_unit_test_setup(an_address_alone_is_no_use, setup),
		cmocka_unit_test_setup(slices_have_a_length, setup),
		cmocka_unit_test_setup(fields_count_for_their_struct, setup),
		cmocka_unit_test_setup(parts_count_for_their_whole, setup),
		cmocka_unit_test_setup(heads_by_bucket_type, setup),
		cmocka_unit_test_setup(heads_that_read_otherwise, setup),
		cmocka_unit_test_setup(heads_with_the_other_branch, setup),
		cmocka_unit_test_setup(words_of_arm64, setup),
		cmocka_unit_test_setup(byte_before_the_rate, setup),
		cmocka_unit_test_setup(no_byte_before_the_rate, setup),
		cmocka_unit_test_setup(symbols_first, setup),
		cmocka_unit_test_setup(each_is_found_once, setup),
		cmocka_unit_test(values),
		cmocka_unit_test(heads_point_to_their_kind),
		cmocka_unit_test(lists_of_goroutines),
		cmocka_unit_test(first_p_and_first_m),
		cmocka_unit_test(unreadable),
	};

	return cmocka_run_group_tests_name("rtvar", tests, NULL, NULL);
}
