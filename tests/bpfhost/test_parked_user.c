/*
 * tests/bpfhost/test_parked_user.c - gives the same bytes to the BPF side's readers and to those
 * of user space: stacks of goroutines that wait, and label sets with their ids, must be equal.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define GPB_HOST
#include "goprof_abi.h"
#include "host.h"

static struct gpb_unwind_rule *rule_of(const struct gpb_target *t, __u64 pc)
{
	(void)t, (void)pc;
	return NULL;
}

static __u64 random64(void)
{
	return 0;
}

#include "go/labels.bpf.h"
#include "parked.bpf.h"
#include "stacks.h"
#undef LABELS

#include "base/hash.h"
#include "probe/stacks/labels.h"
#include "collect/waits/looks/parked.h"

static int read_fake(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	(void)m;
	return user_read(buf, (__u32)n, addr) ? err_set(e, -EFAULT, "no memory") : 0;
}

static struct mem fake = { .read = read_fake };

static uint64_t random_word(uint64_t bp)
{
	static const uint64_t text[] = { TEXT + 0x10,  TEXT + 0x910,   TEXT + 0xa10,
					 TEXT + 0xb00, PLUGIN + 0x100, TEXT + 0xc10 };

	switch (rand() % 4) {
	case 0:
		return bp + 16 + (uint64_t)(rand() % 6) * 8;
	case 1:
		return (uint64_t)rand() << 32;
	default:
		return text[(size_t)rand() % (rand() % 8 ? 1 : sizeof(text) / sizeof(text[0]))];
	}
}

/* Mostly a chain of frames; @n words of it are in the copy. */
static void random_stack(int words)
{
	uint64_t at = WORDS - 1 - (uint64_t)(rand() % words), bp;

	for (size_t i = 0; i < WORDS; i++)
		stack_words[i] = random_word(STACK + 8 * i);
	g_words[3] = STACK + 8 * at;
	g_words[4] = TEXT + 0x20;
	bp = at + (uint64_t)(rand() % 4);
	g_words[5] = STACK + 8 * bp;
	while (bp + 2 < WORDS && rand() % 150) {
		uint64_t next = bp + 2 + (uint64_t)(rand() % 8);

		stack_words[bp] = STACK + 8 * next;
		stack_words[bp + 1] = rand() % 30 ? TEXT + 0x30 : random_word(0);
		bp = next;
	}
}

/* What g says, with the first @ncopy bytes copied; *deep: more was read. */
static struct parked_stack random_parked(struct parked *p, const struct gpb_target *t, size_t ncopy,
					 bool *deep)
{
	*p = (struct parked){ .stack_lo = g_words[0],
			      .stack_hi = g_words[1],
			      .sp = g_words[3],
			      .pc = g_words[4],
			      .bp = g_words[5] };
	if (ncopy > p->stack_hi - p->sp)
		ncopy = p->stack_hi - p->sp;
	*deep = false;
	return (struct parked_stack){ &fake, t,	  p, (const uint8_t *)stack_words + (p->sp - STACK),
				      ncopy, deep };
}

static void stacks_are_equal(void **state)
{
	static struct gpb_target t;
	static struct gpb_stack mine;
	static struct gpb_rec_raw raw;
	size_t deep = 0, cut = 0, callbacks = 0;

	(void)state;
	t = target;
	t.image[0].callback_lo = TEXT + 0xc00;
	t.image[0].callback_hi = TEXT + 0xc80;
	srand(1);
	for (int i = 0; i < 20000; i++) {
		size_t ncopy = (size_t)(rand() % 64) * 8;
		struct parked_stack k;
		struct parked p;
		bool callback, beyond;

		stacks_reset();
		random_stack(1000);
		k = random_parked(&p, &t, ncopy, &beyond);
		walk_parked(&walk, &st, &t, G);
		callback = needs_rules(&t, &st, &walk);
		assert_int_equal(parked_walk(&k, &mine, &raw), callback);
		if (callback) {
			walk_parked_by_rules(&walk, &st, &t, G);
			assert_true(st.flags & GPB_STACK_UNRULED);
			assert_int_equal(raw.pc, walk.pc);
			assert_int_equal(raw.sp, walk.sp);
			assert_int_equal(st.hints, 0);
			assert_int_equal(raw.stack.hints, 0);
			assert_int_equal(raw.stack.nfirst, st.nfirst);
			assert_memory_equal(raw.stack.pc, st.pc, 8 * (size_t)st.nfirst);
			callbacks++;
			continue;
		}
		assert_int_equal(mine.flags, st.flags);
		assert_int_equal(mine.nfirst, st.nfirst);
		assert_memory_equal(mine.pc, st.pc, 8 * (size_t)st.nfirst);
		assert_true(beyond || st.nfirst * 16 <= k.ncopy + 32);
		deep += st.nfirst > 20;
		cut += !!(st.flags & GPB_STACK_CUT);
	}
	assert_true(deep > 1000 && cut > 100 && callbacks > 100);
}

/*
 * A preempted goroutine: the memory that is sent to be settled may end below the root, and frame
 * pointers lead on.
 */
static void hints_are_equal(void **state)
{
	static struct gpb_stack mine;
	static struct gpb_rec_raw raw;
	size_t hinted = 0;

	(void)state;
	srand(3);
	for (int i = 0; i < 2000; i++) {
		struct parked_stack k;
		struct parked p;
		bool beyond, higher;

		stacks_reset();
		random_stack(3000);
		k = random_parked(&p, &target, 64, &beyond);
		memset(&mine, 0, sizeof(mine));
		walk_saved(&walk, &st, &target, G);
		assert_true(st.flags & GPB_STACK_UNRULED);
		assert_true(parked_walk_saved(&k, true, &mine, &raw));
		higher = p.stack_hi - p.sp > sizeof(raw.top);
		assert_int_equal(raw.stack.hints, higher ? st.hints : 0);
		assert_memory_equal(raw.stack.pc, st.pc, 8 * (1 + (size_t)raw.stack.hints));
		hinted += raw.stack.hints > 1;
	}
	assert_true(hinted > 500);
}

static bool nothing_fits(void *arg, const struct gpb_rec_labels *is, size_t len)
{
	(void)arg;
	assert_int_equal(len,
			 offsetof(struct gpb_rec_labels, label) + is->n * sizeof(is->label[0]));
	return false;
}

/* A slice of pairs at 0x1000, with the texts behind it. */
static void ids_of_label_sets(void **state)
{
	static struct gpb_rec_labels rec;
	static uint8_t bytes[1 << 16];

	(void)state;
	srand(2);
	for (int i = 0; i < 500; i++) {
		const struct labels_room any = { 0 }, none = { .fits = nothing_fits };
		struct prof_label out[GPB_MAX_LABELS];
		struct labelsets l;
		uint64_t n = (uint64_t)(rand() % 6), id = 1, at = 4096;
		uint64_t *head = (uint64_t *)bytes;
		bool cut, was_cut;

		memset(bytes, 'x', sizeof(bytes));
		head[0] = 0x100000 + 64;
		head[1] = n;
		for (size_t k = 0; k < 2 * n; k++) {
			uint64_t len = (uint64_t)(rand() % (rand() % 8 ? 20 : 400));

			head[8 + 2 * k] = 0x100000 + at;
			head[9 + 2 * k] = len;
			for (size_t c = 0; c < len; c++)
				bytes[at++] = (uint8_t)('a' + rand() % 26);
		}
		host_reset();
		host_map(0x100000, bytes, sizeof(bytes));
		memset(&rec, 0xee, sizeof(rec));
		rec.n = 0;
		hash_key = (struct gpb_hash_key){ (uint64_t)rand(), (uint64_t)rand() };
		hash_set_key(hash_key);
		was_cut = labels_slice(&rec, 0x100000);
		labels_hash(&rec);
		labels_hash(&rec);
		assert_int_equal(labelsets_init(&l, NULL), 0);
		assert_int_equal(labelsets_read(&l, &fake, 27, 0x100000, &none, &id, &cut, NULL),
				 0);
		assert_int_equal(id, n ? rec.id : 0);
		assert_int_equal(l.sets.n, 0);
		assert_int_equal(labelsets_read(&l, &fake, 27, 0x100000, &any, &id, &cut, NULL), 0);
		assert_int_equal(id, n ? rec.id : 0);
		assert_int_equal(cut, was_cut);
		if (n)
			assert_int_equal(labelsets_get(&l, id, out), n);
		labelsets_fini(&l);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stacks_are_equal),
		cmocka_unit_test(hints_are_equal),
		cmocka_unit_test(ids_of_label_sets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
