/*
 * tests/unit/enable_world.h - a program whose rates are switched on and off, for tests of --source=enable: one word of its memory,
 * who writes there, and what was done in which order. The guardian, clock and timers, and what is known of the
 * program's variables are replaced by functions of these names; the guardian decides as collect/ratewrite/guardian.h says.
 */
#ifndef TESTS_UNIT_ENABLE_WORLD_H
#define TESTS_UNIT_ENABLE_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>

#include "base/clock.h"
#include "collect/ratewrite/enable.h"
#include "symbolize/subject_logical.h"
#include "symbolize/subject_prof.h"

#define MS NS_PER_MS

/* Where the rate is by symbol, and how far the program was loaded from there. */
enum { RATE_ADDR = 0x5000, BIAS = 0x700000, GUARDIAN_PID = 4711 };

struct guardian {
	struct guardian_job job;
	uint64_t value;
	bool ended;
};

static struct {
	uint64_t now;
	char log[4096];	 /* what was done, in its order: "write read end " */
	char said[8192]; /* what a person was told, line by line */
	/* The target: the word, a claim on it that others hold (0: none), and whether it has exited. */
	uint64_t word, claimed;
	bool gone;
	void (*meanwhile)(
		void); /* what the program does while it is given time to settle; NULL: nothing */
	/* The guardian. */
	struct guardian guardian;
	int guardians; /* that are there and have not ended */
	bool exposed, by_itself,
		imitated; /* by_itself: it has restored, as nobody had asked in time */
	unsigned checks;
	uint64_t answer_ns; /* between its write and its answer */
	int end_fails;	    /* what guardian_end() returns; 0: it works */
	/* The binary. */
	uint64_t decoded; /* the link-time address that the code shows; 0: it shows none */
	/* The timer. */
	uint64_t pause; /* ns: as it was set last; 0: not since that was cleared */
	/* Of all that can fail, the @fault_at-th does; 0: none. */
	unsigned steps, fault_at;
} w;

/* ---- what is done, and what fails ---- */

static void did(const char *what)
{
	size_t n = strlen(w.log);

	snprintf(w.log + n, sizeof(w.log) - n, "%s ", what);
}

/* To be asked in each step that can fail. */
static bool fails_here(void)
{
	return ++w.steps == w.fault_at;
}

static int may_fail(struct err *e)
{
	return fails_here() ? err_set(e, -EFAULT, "step %u fails", w.steps) : 0;
}

/* ---- clock and timers ---- */

/* What CLOCK_REALTIME is ahead of CLOCK_MONOTONIC. */
#define UNIX_NS (1800000000 * NS_PER_S)

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	uint64_t ns = w.now + (clock == CLOCK_REALTIME ? UNIX_NS : 0);

	*ts = (struct timespec){ (time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S) };
	return 0;
}

int usleep(useconds_t us)
{
	did("pause");
	w.now += us * 1000ull;
	if (w.meanwhile)
		w.meanwhile();
	return 0;
}

int timerfd_settime(int fd, int flags, const struct itimerspec *t, struct itimerspec *old)
{
	assert_true(fd >= 0 && !flags && !old);
	if (fails_here()) {
		errno = EFAULT;
		return -1;
	}
	w.pause = (uint64_t)t->it_value.tv_sec * NS_PER_S + (uint64_t)t->it_value.tv_nsec;
	return 0;
}

/* Could that be read now, as whoever polls it is told? */
static inline bool readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

/* The time is over for which @timer was set. */
static inline void ring(int timer)
{
	const struct itimerspec t = { .it_value.tv_nsec = 1 };
	struct pollfd p = { .fd = timer, .events = POLLIN };

	assert_true(w.pause > 0);
	w.now += w.pause;
	w.pause = 0;
	assert_int_equal(syscall(SYS_timerfd_settime, timer, 0, &t, NULL), 0);
	assert_int_equal(poll(&p, 1, 1000), 1);
}

/* ---- the target ---- */

/* More of its memory; bytes of NULL end the list. */
static struct region {
	uint64_t at;
	const void *bytes;
	size_t n;
} regions[16];

static int memory_read(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	(void)m;
	if (w.gone)
		return err_set(e, -ESRCH, "it has exited");
	if (addr == BIAS + RATE_ADDR && n == sizeof(w.word)) {
		memcpy(buf, &w.word, n);
		return may_fail(e);
	}
	for (const struct region *r = regions; r->bytes; r++) {
		if (addr < r->at || addr - r->at > r->n || n > r->n - (addr - r->at))
			continue;
		memcpy(buf, (const uint8_t *)r->bytes + (addr - r->at), n);
		return 0;
	}
	return err_set(e, -EFAULT, "no memory at 0x%llx", (unsigned long long)addr);
}

static struct mem memory = { .read = memory_read };
static struct target target = { .pid = 123, .mem = &memory };
static struct subject subject;
static struct collect_opts opts;
static struct gobin_info binary;

const struct gobin_info *gobin_info(const struct gobin *b)
{
	(void)b;
	return &binary;
}

const char *rtvar_name(enum rtvar v)
{
	return v == RTVAR_MEMPROFILERATE   ? "runtime.MemProfileRate" :
	       v == RTVAR_BLOCKPROFILERATE ? "runtime.blockprofilerate" :
					     "runtime.mutexprofilerate";
}

int rtvar_decode(struct gobin *b, enum rtvar v, uint64_t *addr, struct err *e)
{
	(void)b;
	(void)v;
	did("decode");
	if (!w.decoded)
		return err_set(e, -ENOENT, "no code uses it");
	*addr = w.decoded;
	return may_fail(e);
}

void say(const struct collect_opts *o, const char *fmt, ...)
{
	size_t n = strlen(w.said);
	va_list ap;

	assert_ptr_equal(o, &opts);
	va_start(ap, fmt);
	vsnprintf(w.said + n, sizeof(w.said) - n, fmt, ap);
	va_end(ap);
	n = strlen(w.said);
	snprintf(w.said + n, sizeof(w.said) - n, "\n");
}

void say_exposed(struct subject *s, const struct collect_opts *o, const char *helper)
{
	assert_ptr_equal(s, &subject);
	say(o, "%s may be killed", helper);
}

/* ---- the guardian ---- */

int guardian_start(const struct guardian_job *job, struct guardian **out,
		   struct guardian_said *said, struct err *e)
{
	int ret = may_fail(e);

	if (ret)
		return ret;
	assert_int_equal(w.guardians, 0);
	assert_true(job->value > 0 && job->value <= CLAIM_VALUE_MAX);
	w.guardian = (struct guardian){ .job = *job, .value = w.word ?: job->value };
	*said = (struct guardian_said){ .value = w.guardian.value,
					.at_ns = w.now,
					.exposed = w.exposed };
	if (w.word && w.word != w.claimed) {
		said->how = GUARDIAN_FOUND;
		*out = NULL;
		return 0;
	}
	said->how = w.word ? GUARDIAN_SHARES : GUARDIAN_WROTE;
	did(w.word ? "share" : "write");
	w.word = w.guardian.value;
	w.now += w.answer_ns;
	w.guardians++;
	*out = &w.guardian;
	return 0;
}

/* What becomes of the word when it ends. */
static void guardian_restores(struct guardian *g, struct guardian_said *said)
{
	*said = (struct guardian_said){ .how = GUARDIAN_CHANGED, .at_ns = w.now, .value = w.word };
	if (w.gone) {
		said->how = GUARDIAN_GONE;
	} else if (w.claimed == g->value) {
		said->how = GUARDIAN_LEFT;
	} else if (w.word == g->value) {
		said->how = GUARDIAN_RESTORED;
		said->value = w.word = 0;
	}
	g->ended = true;
	w.guardians--;
}

int guardian_check(struct guardian *g)
{
	assert_ptr_equal(g, &w.guardian);
	w.checks++;
	if (w.by_itself && w.word == g->value)
		w.word = 0;
	return w.by_itself;
}

int guardian_end(struct guardian *g, struct guardian_said *said, struct err *e)
{
	assert_ptr_equal(g, &w.guardian);
	assert_false(g->ended);
	did("end");
	if (w.end_fails) {
		g->ended = true; /* whoever asked goes; it tries on */
		w.guardians--;
		return err_set(e, w.end_fails, "it goes on trying");
	}
	if (w.by_itself && !w.word) /* it has restored before, and is asked now what came of it */
		w.word = g->value;
	guardian_restores(g, said);
	said->late = w.by_itself;
	said->imitated = w.imitated;
	return 0;
}

pid_t guardian_pid(const struct guardian *g)
{
	assert_ptr_equal(g, &w.guardian);
	return GUARDIAN_PID;
}

void guardian_free(struct guardian *g)
{
	struct guardian_said ignored;

	if (!g)
		return;
	assert_ptr_equal(g, &w.guardian);
	did("free");
	if (!g->ended)
		guardian_restores(g, &ignored);
}

/* ---- the profile: each bucket has a stack of one pc, which is its location ---- */

int subject_prof(struct subject *s, const char *source, struct prof **out, struct err *e)
{
	int ret = may_fail(e);

	assert_ptr_equal(s, &subject);
	if (!ret)
		ret = prof_new(out, e);
	return ret ? ret : prof_comment(*out, e, "source: %s", source);
}

int subject_logical(struct subject *s, struct prof *p, struct logical **out, struct err *e)
{
	assert_ptr_equal(s, &subject);
	*out = (struct logical *)p;
	return may_fail(e);
}

void logical_free(struct logical *l)
{
	assert_non_null(l);
}

int logical_locations(struct logical *l, const uint64_t *pcs, size_t n, const uint32_t **locs,
		      size_t *nlocs, struct err *e)
{
	const struct prof_line line = { .func = "main.f", .file = "" };
	static uint32_t id;
	int ret = may_fail(e);

	assert_int_equal(n, 1);
	if (ret)
		return ret;
	ret = prof_location((struct prof *)l, 0, pcs[0], &line, 1, e);
	id = (uint32_t)ret;
	*locs = &id;
	*nlocs = 1;
	return ret < 0 ? ret : 0;
}

/* The values of the sample with that pc; NULL: there is none. */
static inline const int64_t *sampled(const struct prof *p, uint64_t pc)
{
	for (size_t i = 0; i < prof_nsamples(p); i++) {
		struct prof_sample_view v = prof_sample_at(p, i);

		if (prof_location_at(p, v.locs[0] - 1).address == pc)
			return v.values;
	}
	return NULL;
}

/* ---- for the tests ---- */

static void begin_world(void)
{
	memset(&w, 0, sizeof(w));
	memset(regions, 0, sizeof(regions));
	w.now = 1000 * NS_PER_S;
	w.decoded = RATE_ADDR;
	subject = (struct subject){ .target = &target, .bias = BIAS };
	for (size_t i = 0; i < LAYOUT_COUNT; i++)
		subject.layout.off[i] = -1;
	subject.layout.how = LAYOUT_TABLE;
	opts = (struct collect_opts){ .source = SOURCE_ENABLE, .window_ns = 10 * NS_PER_S };
	binary = (struct gobin_info){ .version = "go1.27.1", .minor = 27, .patch = 1 };
}

static inline bool was_said(const char *what)
{
	return strstr(w.said, what) != NULL;
}

/* Has the profile a comment with @what in it? */
static inline bool says(const struct prof *p, const char *what)
{
	struct prof_header_view v = prof_header(p);

	for (size_t i = 0; i < v.ncomments; i++)
		if (strstr(strtab_get(prof_strings(p), v.comments[i]), what))
			return true;
	return false;
}

#endif
