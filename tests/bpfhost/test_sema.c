/*
 * tests/bpfhost/test_sema.c - compares what unlocks are charged with to the runtime's own
 * arithmetic, on queues of goroutines that come, go to the head and leave at random.
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

enum { GOROUTINES = 24, SUDOG = 104, ADDRS = 3, STEPS = 20000 };

#define G(i)	(0x10000ull + 0x1000ull * (uint64_t)(i))
#define S(i)	(0x900000ull + SUDOG * (uint64_t)(i))
#define ADDR(k) (0x500000ull + 4 * (uint64_t)(k))
#define ROOT	0x400000ull
#define SLOT	3

static struct gpb_wait table[GOROUTINES];
static bool known[GOROUTINES];

static struct gpb_wait *wait_of(__u32 slot, __u64 g)
{
	uint64_t i = (g - G(0)) / 0x1000;

	return slot == SLOT && i < GOROUTINES && g == G(i) && known[i] ? &table[i] : NULL;
}

/* Offsets of Go 1.27. */
static struct gpb_sched conf = {
	.sudog_g = 0,
	.sudog_next = 8,
	.sudog_prev = 16,
	.sudog_elem = 24,
	.sudog_waiters = 62,
	.sudog_waitlink = 72,
	.sudog_waittail = 80,
	.semaroot_treap = 8,
};

#include "go/sema.bpf.h"

static uint64_t charge(uint64_t head, uint64_t now)
{
	struct queue q;
	uint64_t delay;

	if (!queue_look(SLOT, &conf, head, 0, &q))
		return 0;
	queue_look_behind(SLOT, &conf, &q);
	delay = queue_charge(&q, 0, now);
	queue_stamp(&q, now, 0, 0, 0);
	return delay;
}

/* ---- the target ---- */

static uint8_t sudogs[GOROUTINES * SUDOG], root[16];

static uint64_t *word(int s, int off)
{
	return (uint64_t *)(void *)(sudogs + s * SUDOG + off);
}

static uint16_t *waiters(int s)
{
	return (uint16_t *)(void *)(sudogs + s * SUDOG + 62);
}

static uint64_t *treap(void)
{
	return (uint64_t *)(void *)(root + 8);
}

/* ---- the runtime, as in runtime/sema.go; one list of addresses instead of a treap ---- */

struct waitlist {
	int list[GOROUTINES]; /* head first */
	int n;
};

static struct waitlist queues[ADDRS];
static int64_t acquiretime[GOROUTINES];
static uint16_t go_waiters[GOROUTINES];

/* The queue of address @k as the target's memory has it. */
static void write_queue(int k)
{
	struct waitlist *q = &queues[k];
	uint64_t prev = 0;

	for (int i = 0; i < q->n; i++) {
		int s = q->list[i];

		*word(s, 0) = G(s);
		*word(s, 24) = ADDR(k);
		*word(s, 72) = i + 1 < q->n ? S(q->list[i + 1]) : 0;
		*word(s, 80) = !i && q->n > 1 ? S(q->list[q->n - 1]) : 0;
		*waiters(s) = go_waiters[s];
	}
	/* The heads of the queues form a chain, in the order of their addresses. */
	for (int i = 0; i < ADDRS; i++) {
		if (!queues[i].n)
			continue;
		*word(queues[i].list[0], 16) = prev;
		*word(queues[i].list[0], 8) = 0;
		prev = S(queues[i].list[0]);
	}
	*treap() = prev;
}

static void go_queue(int k, int s, bool lifo)
{
	struct waitlist *q = &queues[k];

	go_waiters[s] = 0;
	if (!q->n) {
		q->list[q->n++] = s;
	} else if (lifo) {
		int t = q->list[0];

		acquiretime[s] = acquiretime[t];
		go_waiters[s] = (uint16_t)(go_waiters[t] + 1);
		memmove(q->list + 1, q->list, (size_t)q->n * sizeof(int));
		q->list[0] = s;
		q->n++;
	} else {
		q->list[q->n++] = s;
		go_waiters[q->list[0]]++;
	}
	write_queue(k);
}

/* Returns what semrelease1 passes to mutexevent; 0 for nothing. */
static int64_t go_dequeue(int k, int64_t now, bool all)
{
	struct waitlist *q = &queues[k];
	int s = q->list[0];
	int64_t tailtime = acquiretime[s], dt0, dt;

	if (q->n > 1) {
		int t = q->list[1], tail = q->list[q->n - 1];

		go_waiters[t] = go_waiters[s];
		if (go_waiters[t] > 1)
			go_waiters[t]--;
		acquiretime[t] = now;
		tailtime = acquiretime[tail];
		if (all)
			acquiretime[tail] = now;
	}
	memmove(q->list, q->list + 1, (size_t)--q->n * sizeof(int));
	dt0 = dt = now - acquiretime[s];
	if (all && go_waiters[s])
		dt += (now - tailtime + dt0) / 2 * go_waiters[s];
	return dt ? dt : 1;
}

/* ---- both models ---- */

static bool idle[GOROUTINES];

static int some_idle(void)
{
	int first = rand() % GOROUTINES;

	for (int i = 0; i < GOROUTINES; i++)
		if (idle[(first + i) % GOROUTINES])
			return (first + i) % GOROUTINES;
	return -1;
}

static void enqueue(int64_t now)
{
	int s = some_idle(), k = rand() % ADDRS;
	bool lifo = rand() % 3 == 0;

	if (s < 0)
		return;
	idle[s] = false;
	/* Sometimes a goroutine that was woken finds the semaphore taken, and goes on waiting. */
	if (known[s] && rand() % 4 == 0) {
		lifo = table[s].sema & GPB_SEMA_LIFO;
	} else {
		acquiretime[s] = now;
		table[s].acquire = (uint64_t)now;
	}
	known[s] = true;
	table[s].queued = (uint64_t)now;
	table[s].sema = GPB_SEMA_MUTEX | (lifo ? GPB_SEMA_LIFO | GPB_SEMA_INHERITS : 0);
	go_queue(k, s, lifo);
}

static void release(int64_t now, bool all)
{
	int k = rand() % ADDRS, s;
	uint64_t head = sema_head(&conf, ROOT, ADDR(k));
	int64_t want;

	if (!queues[k].n) {
		assert_int_equal(head, 0);
		return;
	}
	s = queues[k].list[0];
	assert_int_equal(head, S(s));
	want = (int64_t)charge(head, (uint64_t)now);
	assert_int_equal(want, go_dequeue(k, now, all));
	write_queue(k);
	idle[s] = true;
}

static void run(bool all)
{
	int64_t now = 1000000;

	host_reset();
	host_map(S(0), sudogs, sizeof(sudogs));
	host_map(ROOT, root, sizeof(root));
	memset(queues, 0, sizeof(queues));
	memset(root, 0, sizeof(root));
	memset(known, 0, sizeof(known));
	memset(idle, true, sizeof(idle));
	conf.charge_all = all;
	srand(7);
	for (int i = 0; i < STEPS; i++) {
		now += 1 + rand() % 1000;
		if (rand() % 2)
			enqueue(now);
		else
			release(now, all);
	}
}

static void all_that_wait_are_charged(void **state)
{
	(void)state;
	run(true);
}

static void the_first_alone_is_charged(void **state)
{
	(void)state;
	run(false);
}

/* It has waited since before we watched, so nothing is known and nothing is charged. */
static void unknown_heads_are_free(void **state)
{
	(void)state;
	run(true);
	for (int k = 0; k < ADDRS; k++) {
		if (!queues[k].n)
			continue;
		known[queues[k].list[0]] = false;
		assert_int_equal(charge(S(queues[k].list[0]), 1ull << 40), 0);
	}
}

/* The walk of a treap that is a cycle must end. */
static void circles_end(void **state)
{
	(void)state;
	run(true);
	*treap() = S(0);
	*word(0, 24) = ADDR(9);
	*word(0, 16) = *word(0, 8) = S(0);
	assert_int_equal(sema_head(&conf, ROOT, ADDR(0)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_that_wait_are_charged),
		cmocka_unit_test(the_first_alone_is_charged),
		cmocka_unit_test(unknown_heads_are_free),
		cmocka_unit_test(circles_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
