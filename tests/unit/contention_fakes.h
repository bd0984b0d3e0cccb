/*
 * tests/unit/contention_fakes.h - what block and mutex profiles of test_contention_many.c are made of: the object, what is probed of a
 * target, and profiles that are read.
 */
#ifndef TESTS_UNIT_CONTENTION_FAKES_H
#define TESTS_UNIT_CONTENTION_FAKES_H

#include "collect/reading.h"
#include "collect/waits/contention/contention_probe.h"
#include "collect/waits/contention/sched_priv.h"
#include "collect/waits/engine/waits_many.h"
#include "waits_fakes.h"

enum { WAITS = KINDS_OWN, SEEN };
#define BLOCK (1u << GPB_WAIT_BLOCK)
#define MUTEX (1u << GPB_WAIT_MUTEX)

/* ---- the object ---- */

static struct sched_bpf__bss bss;
static struct sched_bpf__rodata rodata;
static int opens;
static struct bpf_program *const prog = (struct bpf_program *)&bss;

int sched_object_open(struct sched_bpf **out, bool multi, uint32_t slots, bool many, struct err *e)
{
	(void)e;
	assert_true(multi && many && slots == 128);
	opens++;
	memset(&bss, 0, sizeof(bss));
	*out = calloc(1, sizeof(**out));
	(*out)->bss = &bss;
	(*out)->rodata = &rodata;
	HAS_TABLES(*out);
	(*out)->maps.waits = MAP(WAITS);
	(*out)->maps.seen = MAP(SEEN);
	(*out)->progs.sched_probe = prog;
	return 0;
}

struct wait_object sched_object_of(struct sched_bpf *o, bool multi)
{
	return (struct wait_object){ .bss = o->maps.bss, .multi = multi };
}

/* ---- what is probed of a target ---- */

static int nscheds, new_fails, finds, add_fails;
static unsigned found_for, impossible, unchecked, uncounted; /* kinds */
static uint64_t added[GPB_CPU_TARGETS];			     /* by slot */
static int window_ends[GPB_CPU_TARGETS];

static int add_to(void *arg, const struct gpb_stack *st, struct err *e)
{
	const struct sched *c = arg;

	added[c->window.engine.slot] += st->count;
	return add_fails ? err_set(e, add_fails, "no") : 0;
}

static uint64_t since(const void *wait)
{
	return ((const struct gpb_wait *)wait)->since;
}

static const struct wait_kind wait_kind = { .name = "sched", .add = add_to, .since = since };

int sched_new(struct subject *s, const struct collect_opts *o, struct sched **out, struct err *e)
{
	struct sched *c;

	(void)o;
	if (new_fails)
		return err_set(e, new_fails, "its structs are not known");
	c = calloc(1, sizeof(*c));
	c->s = s;
	c->window.engine.kind = &wait_kind;
	c->window.engine.arg = c;
	c->window.engine.terms = &c->window.conf.terms;
	nscheds++;
	*out = c;
	return 0;
}

void sched_free(struct sched *c)
{
	nscheds -= c != NULL;
	free(c);
}

int sched_possible(struct gobin *b, const struct golayout *l, unsigned kind, struct err *e)
{
	assert_true(b && l);
	return impossible >> kind & 1 ? err_set(e, -ENOTSUP, "kind %u: not in its file", kind) : 0;
}

int sched_check(struct sched *c, unsigned kind, struct err *e)
{
	assert_non_null(c);
	return unchecked >> kind & 1 ? err_set(e, -ENOTSUP, "kind %u: not in it", kind) : 0;
}

int sched_count(struct sched *c, unsigned kind, bool on, struct err *e)
{
	c->kinds = on ? c->kinds | 1u << kind : c->kinds & ~(1u << kind);
	return on && uncounted >> kind & 1 ? err_set(e, -ENOSPC, "kind %u: no room", kind) : 0;
}

int sched_sites_in(const struct sched *c, size_t i, unsigned kinds, uint32_t of,
		   struct uprobe_site out[SCHED_PLACES], struct err *e)
{
	int n = kinds == MUTEX ? 2 : 3;

	(void)e;
	assert_true(!i && c->obj);
	finds++;
	found_for = kinds;
	for (int k = 0; k < n; k++)
		out[k] = (struct uprobe_site){ .file_off = (uint64_t)k, .cookie = of };
	return n;
}

void sched_window_end(struct sched_window *w)
{
	window_ends[w->engine.slot]++;
}

/* ---- profiles that are probed ---- */

struct contention_probe {
	struct prof *prof;
};
static int nprofiles;

/* What it is told of its window is in comments. */
int contention_probe_finish(struct sched *sched, enum contention kind, int64_t start_unix_ns,
			    struct contention_probe **out, struct err *e)
{
	struct contention_probe *c = calloc(1, sizeof(*c));

	assert_int_equal(window_ends[sched->window.engine.slot], 1);
	assert_int_equal(prof_new(&c->prof, e), 0);
	*out = c;
	nprofiles++;
	return prof_comment(c->prof, e,
			    "%s: from %llu (unix %lld) to %llu, %llu waiting, %llu left",
			    kind == CONTENTION_BLOCK ? "block" : "mutex",
			    (unsigned long long)sched->start_ns[kind == CONTENTION_MUTEX],
			    (long long)start_unix_ns, (unsigned long long)sched->end_ns,
			    (unsigned long long)sched->waiting, (unsigned long long)sched->left);
}

struct prof *contention_probe_prof(struct contention_probe *c)
{
	return c->prof;
}

struct prof *contention_probe_take(struct contention_probe *c)
{
	return TAKE(c->prof);
}

void contention_probe_free(struct contention_probe *c)
{
	if (!c)
		return;
	prof_free(c->prof);
	free(c);
	nprofiles--;
}

/* ---- profiles that are read ---- */

static int records, asked, read_fails, read_opens, open_fails, nread;
static struct prof *first_read;

int contention_records(struct subject *s, enum contention what, struct err *e)
{
	(void)what;
	assert_non_null(s);
	asked++;
	return records ? err_set(e, records, "it records nothing") : 0;
}

static int read_open(const struct engine_kind *kind, const struct collect_opts *o,
		     unsigned expected, void **state, struct err *e)
{
	(void)o;
	assert_int_equal(expected, 10);
	if (open_fails)
		return err_set(e, open_fails, "no reading");
	*state = (void *)(uintptr_t)kind;
	read_opens++;
	return 0;
}

static void read_free(void *state)
{
	assert_non_null(state);
	read_opens--;
}

static int read_put(void *state, struct engine_target *t, void **kept, struct err *e)
{
	assert_non_null(state);
	if (read_fails)
		return err_set(e, read_fails, "its memory cannot be read");
	*kept = t;
	nread++;
	return 0;
}

static void read_forget(void *state, struct engine_target *t, void *kept)
{
	assert_non_null(state);
	assert_ptr_equal(kept, t);
	nread--;
}

static int read_profile(void *state, struct engine_target *t, void *kept, struct prof **out,
			struct err *e)
{
	int ret = prof_new(out, e);

	assert_ptr_equal(kept, t);
	return ret ? ret : prof_comment(*out, e, "read: %s", ((struct engine_kind *)state)->name);
}

static const struct prof *read_first(void *state, const void *kept)
{
	assert_true(state && kept);
	return first_read;
}

#define READ(what)                                                                   \
	{                                                                            \
		.name = what, .open = read_open, .free = read_free, .put = read_put, \
		.forget = read_forget, .profile = read_profile, .first = read_first, \
	}
const struct engine_kind engine_block_read = READ("block"), engine_mutex_read = READ("mutex");

#endif
