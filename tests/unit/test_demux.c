/*
 * tests/unit/test_demux.c - many targets behind one ring and one table: whose a sample is, whose a loss is, and that what
 * one floods is lost to it alone. This file's libbpf has the ring and the table.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdlib.h>

#include "probe/demux.h"

enum { STACKS = 1, LABELSETS = 2, TABLE = 8, CPUS = 2 };

/* ---- libbpf ---- */

static ring_buffer_sample_fn on_record;
static void *on_record_arg;
static struct gpb_stack table[TABLE];
static size_t ntable;
static uint32_t ring_size;

struct ring_buffer *ring_buffer__new(int fd, ring_buffer_sample_fn fn, void *arg,
				     const struct ring_buffer_opts *opts)
{
	(void)fd;
	(void)opts;
	on_record = fn;
	on_record_arg = arg;
	return (struct ring_buffer *)&on_record;
}

void ring_buffer__free(struct ring_buffer *rb)
{
	(void)rb;
}

int ring_buffer__consume(struct ring_buffer *rb)
{
	(void)rb;
	return 0;
}

int bpf_map__fd(const struct bpf_map *map)
{
	return (int)(uintptr_t)map;
}

int bpf_map__set_max_entries(struct bpf_map *map, uint32_t n)
{
	if (!map)
		ring_size = n;
	return 0;
}

int libbpf_num_possible_cpus(void)
{
	return CPUS;
}

/* The key's hash is the index of the entry. */
int bpf_map_get_next_key(int fd, const void *key, void *next)
{
	struct gpb_stack_key k = {
		.hash.lo = key ? ((const struct gpb_stack_key *)key)->hash.lo + 1 : 0
	};

	if (fd != STACKS || k.hash.lo >= ntable)
		return -ENOENT;
	memcpy(next, &k, sizeof(k));
	return 0;
}

int bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	assert_int_equal(fd, STACKS);
	memcpy(value, &table[((const struct gpb_stack_key *)key)->hash.lo], sizeof(table[0]));
	return 0;
}

int bpf_map_delete_elem(int fd, const void *key)
{
	(void)fd;
	(void)key;
	return 0;
}

/* ---- targets ---- */

static struct demux d;
static struct gpb_rounds rounds;
static struct gpb_taken taken[GPB_CPU_TARGETS];
static __u64 put_all, taken_all;
static struct gpb_quota stacks_quota, ring_quota;
static struct {
	struct demux_target t;
	struct loss loss;
	uint64_t samples, key; /* key: the last sample's; 0: it had none */
	uint64_t others;       /* records that are no samples; of what type the last one was: */
	uint64_t other;
	bool fails;
} who[3];

static int add(void *arg, struct demux_target *t, const struct gpb_hash *key,
	       const struct gpb_stack *st)
{
	assert_ptr_equal(arg, &d);
	for (size_t i = 0; i < ARRAY_LEN(who); i++)
		if (t->owner == &who[i]) {
			who[i].samples += st->count;
			who[i].key = key ? key->lo + 1 : 0;
			return who[i].fails ? -ENOMEM : 0;
		}
	fail();
	return 0;
}

static void other(void *arg, struct demux_target *t, const void *rec, size_t len)
{
	assert_ptr_equal(arg, &d);
	assert_true(len >= sizeof(uint64_t));
	for (size_t i = 0; i < ARRAY_LEN(who); i++)
		if (t->owner == &who[i]) {
			who[i].others++;
			who[i].other = *(const uint64_t *)rec;
		}
}

static void enter(size_t i, uint32_t index, uint32_t generation)
{
	memset(&who[i], 0, sizeof(who[i]));
	who[i].t = (struct demux_target){ .slot = generation << GPB_SLOT_GENERATION | index,
					  .s = (void *)&who[i],
					  .loss = &who[i].loss,
					  .owner = &who[i] };
	demux_put(&d, &who[i].t);
}

static int set_up(void **state)
{
	const struct demux_object o = { .stacks = (void *)STACKS,
					.labelsets = (void *)LABELSETS,
					.rounds = &rounds,
					.taken = taken,
					.put_all = &put_all,
					.taken_all = &taken_all,
					.stacks_quota = &stacks_quota,
					.ring_quota = &ring_quota };

	(void)state;
	memset(taken, 0, sizeof(taken));
	rounds = (struct gpb_rounds){ 0 };
	ntable = 0;
	demux_size(&d, NULL, (void *)STACKS, 3);
	assert_int_equal(demux_open(&d, o, add, &d, NULL), 0);
	d.other = other;
	demux_share(&d, 3);
	for (size_t i = 0; i < ARRAY_LEN(who); i++)
		enter(i, (uint32_t)i + 1, 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	demux_fini(&d);
	return 0;
}

static void sampled(uint32_t slot, uint64_t count, uint16_t frames)
{
	assert_true(ntable < TABLE);
	table[ntable++] = (struct gpb_stack){ .slot = slot, .count = count, .nfirst = frames };
}

static void labels(size_t i, uint64_t id)
{
	struct gpb_rec_labels *rec = calloc(1, sizeof(*rec));

	*rec = (struct gpb_rec_labels){
		.type = GPB_REC_LABELS, .id = id, .n = 1, .slot = who[i].t.slot
	};
	rec->label[0].key_len = rec->label[0].value_len = 1;
	rec->label[0].key[0] = rec->label[0].value[0] = 'x';
	assert_int_equal(on_record(on_record_arg, rec, offsetof(struct gpb_rec_labels, label[1])),
			 0);
	free(rec);
}

/* Has the label set come? */
static bool known(uint64_t id)
{
	struct prof_label out[GPB_MAX_LABELS];

	return labelsets_get(&d.reports.labels, id, out) == 1;
}

static void a_sample_is_of_who_has_the_slot_now(void **state)
{
	(void)state;
	sampled(who[0].t.slot, 3, 1);
	sampled(who[1].t.slot, 5, 1);
	demux_forget(&d, &who[0].t);
	enter(0, 1, 7);
	assert_int_equal(demux_take(&d, NULL), 0);
	assert_true(who[0].samples == 0 && who[1].samples == 5);
	ntable = 0;
	sampled(who[0].t.slot, 4, 1);
	assert_int_equal(demux_take(&d, NULL), 0);
	assert_true(who[0].samples == 4 && who[1].samples == 5);
	/* What was nobody's has left the table, too. */
	assert_true(taken_all == 3 && taken[1].stacks == 2);
}

static void a_loss_is_of_whose_stack_it_was(void **state)
{
	(void)state;
	who[2].fails = true;
	sampled(who[0].t.slot, 1, 0);
	sampled(who[1].t.slot, 5, 1);
	sampled(who[2].t.slot, 6, 1);
	assert_int_equal(demux_take(&d, NULL), 0);
	assert_int_equal(who[0].loss.n[LOSS_STACKS_UNREADABLE], 1);
	assert_int_equal(who[1].loss.n[LOSS_STACKS_UNREADABLE], 0);
	assert_int_equal(who[2].loss.n[LOSS_STACKS_UNREADABLE], 6);
}

static void record(const void *rec, size_t len)
{
	/* libbpf hands out memory that may be written */
	assert_int_equal(on_record(on_record_arg, (void *)(uintptr_t)rec, len), 0);
}

/* What is told beside samples is of the target that has the slot now, too, and takes room in the ring. */
static void records_of_objects_and_cycles_have_owners(void **state)
{
	struct gpb_rec_object object = { .type = GPB_REC_OBJECT, .slot = who[1].t.slot };
	struct gpb_rec_cycle cycle = { .type = GPB_REC_CYCLE, .slot = who[2].t.slot };

	(void)state;
	record(&object, sizeof(object));
	assert_true(who[1].others == 1 && who[1].other == GPB_REC_OBJECT);
	assert_int_equal(taken[2].bytes, GPB_RING_RECORD(sizeof(object)));
	record(&cycle, sizeof(cycle));
	assert_true(who[2].others == 1 && who[2].other == GPB_REC_CYCLE);
	assert_int_equal(taken[3].bytes, GPB_RING_RECORD(sizeof(cycle)));
	record(&cycle, sizeof(cycle) - 1);
	record(&object, sizeof(object) - 1);
	demux_forget(&d, &who[1].t);
	enter(1, 2, 7);
	record(&object, sizeof(object));
	assert_true(who[0].others == 0 && who[1].others == 0 && who[2].others == 1);
}

/* The key of a sample is what its object names: it is told of the table's, and of those that found no room in it. */
static void samples_have_the_keys_of_the_table(void **state)
{
	struct gpb_rec_raw *rec = calloc(1, sizeof(*rec));

	(void)state;
	*rec = (struct gpb_rec_raw){ .type = GPB_REC_STACK, .pc = 76, .sp = 5 };
	rec->stack = (struct gpb_stack){ .slot = who[0].t.slot, .count = 1, .nfirst = 1 };
	record(rec, offsetof(struct gpb_rec_raw, top));
	assert_true(who[0].samples == 1 && who[0].key == 77 && !who[0].others);
	sampled(who[1].t.slot, 3, 1);
	sampled(who[2].t.slot, 5, 1);
	assert_int_equal(demux_take(&d, NULL), 0);
	assert_true(who[1].key == 1 && who[2].key == 2);
	free(rec);
}

/* A round that is not over stays: of one that has gone, that is a loss, and of the others only until the next time. */
static void what_cannot_be_taken_is_told_of_each(void **state)
{
	(void)state;
	sampled(who[0].t.slot, 3, 1);
	sampled(who[1].t.slot, 5, 1);
	rounds.filing[0] = 1;
	d.o.scratches = NULL;
	assert_int_equal(demux_take(&d, NULL), 0);
	assert_int_equal(who[0].samples, 0);
	for (int i = 0; i < 2; i++) {
		(void)demux_drain(&d, NULL);
		assert_true(who[0].t.left == 3 && who[1].t.left == 5 && who[2].t.left == 0);
	}
	rounds.filing[0] = 0;
	assert_int_equal(demux_drain(&d, NULL), 0);
	assert_true(who[0].samples == 3 && who[0].t.left == 0);
}

uint32_t bpf_map__value_size(const struct bpf_map *map)
{
	(void)map;
	return sizeof(struct gpb_claim);
}

uint32_t bpf_map__max_entries(const struct bpf_map *map)
{
	(void)map;
	return 0;
}

/* One that floods leaves the others their parts; all together have no more than there is room for. */
static void label_sets_of_all_are_bounded_together(void **state)
{
	uint64_t id = 1, all;

	(void)state;
	for (int i = 0; i < 200000; i++)
		labels(0, id++);
	assert_false(known(id - 1));
	assert_true(d.reports.labels.sets.n > 10000);
	for (int i = 0; i < 1000; i++) {
		labels(1, ++id);
		assert_true(known(id));
		labels(1, id); /* the kernel sends it again: it takes no more room */
	}
	assert_int_equal(who[1].t.labels, 1000 * offsetof(struct gpb_rec_labels, label[1]));
	for (int g = 1; g < 100; g++) {
		demux_forget(&d, &who[2].t);
		enter(2, 3, (uint32_t)g);
		for (int i = 0; i < 2000; i++)
			labels(2, ++id);
	}
	all = d.reports.labels.sets.n * offsetof(struct gpb_rec_labels, label[1]);
	assert_true(all == d.labels && all <= 32 << 20);
	/* Those that are read from memory are bounded with them. */
	assert_false(demux_labels_fit(&d, &who[0].t, &(struct gpb_rec_labels){ .id = ++id }, 400));
	assert_true(demux_labels_fit(&d, &who[0].t, &(struct gpb_rec_labels){ .id = 1 }, 400));
	assert_int_equal(all, d.labels);
	assert_int_equal(demux_done(&d, NULL), 0);
	labels(0, 1);
	assert_true(known(1) && who[0].t.labels == d.labels);
}

static void stacks_in_profiles_are_bounded_together(void **state)
{
	uint64_t n = 0;

	(void)state;
	while (demux_has_room(&d, &who[0].t) && n < 1 << 20)
		demux_keeps(&d, &who[0].t, ++n);
	assert_true(n >= 1 << 15 && n < 1 << 16);
	for (uint64_t i = 0; i < 10000; i++) {
		assert_true(demux_has_room(&d, &who[1].t));
		demux_keeps(&d, &who[1].t, i + 1);
	}
	demux_forget(&d, &who[0].t);
	assert_int_equal(d.beyond, 0);
}

/* What targets keep within their parts takes nothing of the half that is for whoever comes. */
static void parts_leave_the_other_half_alone(void **state)
{
	uint64_t part = d.keep_quota.part;

	(void)state;
	for (int i = 1; i < 3; i++)
		demux_keeps(&d, &who[i].t, part);
	demux_keeps(&d, &who[0].t, part + d.keep_quota.free - 1);
	assert_true(demux_has_room(&d, &who[0].t));
	demux_keeps(&d, &who[0].t, part + d.keep_quota.free);
	assert_false(demux_has_room(&d, &who[0].t));
	assert_false(demux_has_room(&d, &who[1].t));
	demux_share(&d, 2); /* the parts are larger now */
	assert_int_equal(d.beyond, part + d.keep_quota.free - d.keep_quota.part);
	assert_true(demux_has_room(&d, &who[1].t));
}

/* Half of those that may come have room for a record with its memory each, however many CPUs may overdraw the ring. */
static void the_ring_grows_with_targets(void **state)
{
	(void)state;
	demux_size(&d, NULL, (void *)STACKS, 1);
	assert_int_equal(ring_size, 4 << 20);
	demux_size(&d, NULL, (void *)STACKS, 700);
	demux_share(&d, 350);
	assert_true(ring_quota.part >= GPB_RING_RECORD(sizeof(struct gpb_rec_raw)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_sample_is_of_who_has_the_slot_now, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(parts_leave_the_other_half_alone, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_loss_is_of_whose_stack_it_was, set_up, tear_down),
		cmocka_unit_test_setup_teardown(records_of_objects_and_cycles_have_owners, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(samples_have_the_keys_of_the_table, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_cannot_be_taken_is_told_of_each, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(label_sets_of_all_are_bounded_together, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(stacks_in_profiles_are_bounded_together, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(the_ring_grows_with_targets, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
