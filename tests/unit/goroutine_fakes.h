/*
 * tests/unit/goroutine_fakes.h - the goroutines of test_goroutine.c, their stacks and the clock, and a profile of them.
 */
#ifndef TESTS_UNIT_GOROUTINE_FAKES_H
#define TESTS_UNIT_GOROUTINE_FAKES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"
#include "collect/collect.h"
#include "collect/goroutine/goroutine_stack.h"
#include "collect/goroutine/goroutine_text.h"
#include "go/runtime/rtgor.h"
#include "go/runtime/vars/rtvar.h"
#include "subject/verify.h"
#include "symbolize/subject_prof.h"

enum { PID = 7, ALLGLEN = 0x1000, ALLGPTR = 0x2000, MINOR = 24, SP = 0xc000010000 };

/* ---- a program ---- */

/* A goroutine, and what becomes of its stack. g.startpc is one of enum gorigin. */
struct person {
	struct rtgor g;
	const char *func; /* its only call */
	enum unwind_end ends;
	bool deep;	/* it has more calls than Go keeps */
	bool finalizer; /* it runs one of the program's */
	int nonsense;	/* so many readings of its stack make no sense */
};

static struct {
	uint64_t now, look_ns; /* a look takes that long */
	struct person at[8];
	size_t n;
	struct rtgors_seen seen;
	int alive, find, verify, read; /* what these return */
	unsigned looks, refreshed, stacks;
} w;

static const struct person *read_now;

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	uint64_t now = clock == CLOCK_REALTIME ? w.now + 1000 * NS_PER_S : w.now;

	*ts = (struct timespec){ (time_t)(now / NS_PER_S), (long)(now % NS_PER_S) };
	return 0;
}

static int failed(int code, struct err *e)
{
	return code ? err_set(e, code, "no luck") : 0;
}

int rtgors_read(struct mem *m, const struct golayout *l, const struct rtgor_vars *v,
		int (*each)(void *arg, const struct rtgor *g, struct err *e), void *arg,
		struct rtgors_seen *seen, struct err *e)
{
	assert_true(!m && l);
	assert_true(v->allglen == ALLGLEN && v->allgptr == ALLGPTR && v->minor == MINOR);
	w.looks++;
	*seen = w.seen;
	for (size_t i = 0; i < w.n; i++) {
		struct person p = w.at[i];
		int ret;

		read_now = &p;
		for (; (ret = each(arg, &p.g, e)) == -EAGAIN && !p.g.last; seen->again++) {
			p.nonsense--;
			p.g.last = p.nonsense <= 0;
		}
		if (ret)
			return ret;
	}
	w.now += w.look_ns;
	return failed(w.read, e);
}

int gstacks_init(struct gstacks *k, struct subject *s, struct prof *p, struct err *e)
{
	(void)e;
	*k = (struct gstacks){ .s = s, .p = p };
	w.stacks++;
	return 0;
}

void gstacks_fini(struct gstacks *k)
{
	w.stacks -= k->s != NULL;
}

int gstacks_unwind(struct gstacks *k, struct unwind *u, enum unwind_end *end, struct err *e)
{
	const struct rtgor *g = &read_now->g;

	(void)k;
	(void)e;
	assert_int_equal(g->what, RTGOR_SAVED);
	assert_true(u->arch == ARCH_AMD64 && u->minor == MINOR);
	assert_true(u->pc == g->pc && u->sp == g->sp && u->syscall == g->syscall);
	assert_true(u->stack == g->stack && u->n == g->nstack);
	*end = read_now->nonsense > 0 ? UNWIND_BROKEN : read_now->ends;
	return 0;
}

size_t gstacks_depth(const struct gstacks *k)
{
	(void)k;
	return 128;
}

static int location(struct prof *p, const char *func, const uint32_t **locs, size_t *nlocs)
{
	static uint32_t id;
	struct prof_line line = { .func = func, .file = "" };

	id = (uint32_t)prof_location(p, 0, 0x5000, &line, 1, NULL);
	*locs = &id;
	*nlocs = 1;
	return 0;
}

int gstacks_locations(struct gstacks *k, const uint32_t **locs, size_t *nlocs, bool *cut,
		      struct err *e)
{
	(void)e;
	*cut = read_now->deep;
	return location(k->p, read_now->func, locs, nlocs);
}

int gstacks_entry(struct gstacks *k, uint64_t pc, const uint32_t **locs, size_t *nlocs,
		  struct err *e)
{
	(void)e;
	assert_int_equal(pc, read_now->g.startpc);
	return location(k->p, "main.begun", locs, nlocs);
}

enum gorigin gstacks_origin(struct gstacks *k, uint64_t startpc)
{
	(void)k;
	return (enum gorigin)startpc;
}

bool gstacks_in_finalizer(const struct gstacks *k)
{
	(void)k;
	return read_now->finalizer;
}

/* What the text was told of each goroutine in the last look. */
static struct told {
	uint64_t goid, now_ns, seen_ns;
	enum unwind_end end;
} told[16];
static size_t ntold;
static size_t block_lines; /* of each goroutine */

int goroutine_text(struct gstacks *k, const struct rtgor *g, enum unwind_end end, uint64_t now_ns,
		   uint64_t seen_ns, struct err *e)
{
	uint32_t id;

	assert_true(ntold < ARRAY_LEN(told));
	told[ntold++] = (struct told){ g->goid, now_ns, seen_ns, end };
	assert_int_equal(prof_text_line(k->p, "a goroutine", &id, e), 0);
	for (size_t i = 0; i < block_lines; i++)
		assert_int_equal(prof_text_add(k->p, id, e), 0);
	return 0;
}

int subject_prof(struct subject *s, const char *source, struct prof **out, struct err *e)
{
	(void)s;
	(void)source;
	return prof_new(out, e);
}

int subject_mapping(struct subject *s, struct prof *p, uint64_t pc, struct err *e)
{
	(void)s;
	(void)p;
	(void)pc;
	(void)e;
	return 0;
}

int subject_rtvar(struct subject *s, enum rtvar v, uint64_t *addr, struct err *e)
{
	(void)s;
	*addr = v == RTVAR_ALLGLEN ? ALLGLEN : ALLGPTR;
	return v == RTVAR_ALLGPTR ? failed(w.find, e) : 0;
}

int verify_structs(struct subject *s, enum layout_use use, struct err *e)
{
	(void)s;
	assert_int_equal(use, LAYOUT_USE_GOROUTINES);
	return failed(w.verify, e);
}

int target_alive(struct target *t, struct err *e)
{
	(void)t;
	return failed(w.alive, e);
}

void subject_refresh(struct subject *s)
{
	(void)s;
	w.refreshed++;
}

void say(const struct collect_opts *o, const char *fmt, ...)
{
	(void)o;
	(void)fmt;
}

const struct gobin_info *gobin_info(const struct gobin *b)
{
	static const struct gobin_info info = { .arch = ARCH_AMD64, .minor = MINOR };

	(void)b;
	return &info;
}

/* ---- a profile ---- */

static const struct collector *const c = &collector_goroutine;
static struct target target = { .pid = PID };
static struct subject subject = { .target = &target };
static struct collect_opts opts;
static void *state_of;
static struct prof *prof;
static struct err err;

static int set_up(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	w.now = 50 * NS_PER_S;
	opts = (struct collect_opts){ .text = true, .window_ns = 10 * NS_PER_S };
	ntold = 0;
	block_lines = 1;
	state_of = NULL;
	prof = NULL;
	err = (struct err){};
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	prof_free(prof);
	c->free(state_of);
	assert_int_equal(w.stacks, 0);
	return 0;
}

/* One that waits, of the program. */
static struct person *add(uint64_t goid)
{
	static const uint8_t stack[8];
	struct person *p = &w.at[w.n++];

	assert_true(w.n <= ARRAY_LEN(w.at));
	*p = (struct person){ .g = { .goid = goid,
				     .status = GSTATUS_WAITING,
				     .startpc = GORIGIN_USER,
				     .pc = 0x401000 + goid,
				     .sp = SP,
				     .stack = stack,
				     .nstack = sizeof(stack) },
			      .func = "main.wait" };
	return p;
}

static struct person *running(uint64_t goid)
{
	struct person *p = add(goid);

	p->g.status = GSTATUS_RUNNING;
	p->g.what = RTGOR_RUNNING;
	return p;
}

static void start(void)
{
	if (c->start(&subject, &opts, &state_of, &err))
		fail_msg("%s", err.msg);
}

static void stop(void)
{
	if (c->stop(state_of, &prof, &err))
		fail_msg("%s", err.msg);
	assert_non_null(prof);
}

static void tick_after(uint64_t ms)
{
	w.now += ms * NS_PER_MS;
	assert_int_equal(c->tick(state_of, NULL), 0);
}

/* A profile that is one look. */
static void look(void)
{
	opts.window_ns = 1;
	start();
	stop();
}

static bool says(const char *part)
{
	struct prof_header_view h = prof_header(prof);

	for (size_t i = 0; i < h.ncomments; i++)
		if (strstr(strtab_get(prof_strings(prof), h.comments[i]), part))
			return true;
	return false;
}

static const char *func_of(uint32_t location)
{
	struct prof_location_view v = prof_location_at(prof, location - 1);

	assert_int_equal(v.nlines, 1);
	return strtab_get(prof_strings(prof), prof_function_at(prof, v.func[0] - 1).name);
}

/* How many goroutines stand there: under @root when that is not NULL. */
static int64_t count_of(const char *leaf, const char *root)
{
	int64_t n = 0;

	for (size_t i = 0; i < prof_nsamples(prof); i++) {
		struct prof_sample_view s = prof_sample_at(prof, i);

		assert_int_equal(s.nlocs, root ? 2 : 1);
		if (!strcmp(func_of(s.locs[0]), leaf) &&
		    (!root || !strcmp(func_of(s.locs[1]), root)))
			n += s.values[0];
	}
	return n;
}

#endif
