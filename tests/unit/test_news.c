/*
 * tests/unit/test_news.c - programs that start while others are observed. What tells of them, what looks at them, the engine
 * and the clocks are this file's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "host/news.h"
#include "target/target.h"

enum { MS = 1000000, SURVEY_FD = 7, WATCH_FD = 8, MANY = 64 };

static struct world {
	uint64_t now;
	uint64_t own, children, staying; /* CPU time */
	struct exec_seen heard[MANY];
	size_t nheard;
	bool looking;
	pid_t asked[MANY]; /* by the last look */
	size_t nasked, looks;
	bool over;	    /* the look tells all at its next step */
	int look_fails;	    /* so survey_begin() answers */
	int step_fails;	    /* and survey_step() */
	uint64_t opened_ns; /* when targets that are found were opened */
	size_t nadded, nwatched, rested;
	int engine_says;
	struct engine_target target[MANY];
	/* what the owner was told */
	int ret[MANY];
	bool became[MANY];
	size_t ntold, nlooked;
	char said[128];
} w;
static struct survey_build build;

/* ---- in place of the others ---- */

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	uint64_t ns = clock == CLOCK_MONOTONIC ? w.now : w.own;

	*ts = (struct timespec){ (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
	return 0;
}

int getrusage(__rusage_who_t who, struct rusage *r)
{
	(void)who;
	*r = (struct rusage){ .ru_utime.tv_usec = (suseconds_t)(w.children / 1000) };
	return 0;
}

int exec_watch_open(pid_t root, struct exec_watch **out, struct err *e)
{
	(void)root;
	(void)e;
	*out = (struct exec_watch *)&w;
	return 0;
}

int exec_watch_fd(const struct exec_watch *f)
{
	(void)f;
	return WATCH_FD;
}

bool exec_watch_next(struct exec_watch *f, struct exec_seen *out)
{
	(void)f;
	if (!w.nheard)
		return false;
	*out = w.heard[0];
	memmove(w.heard, w.heard + 1, --w.nheard * sizeof(w.heard[0]));
	return true;
}

uint64_t exec_watch_lost(const struct exec_watch *f)
{
	(void)f;
	return 3;
}

void exec_watch_free(struct exec_watch *f)
{
	(void)f;
}

int loop_watch(struct loop *l, int fd, int (*ready)(void *arg), void *arg, struct err *e)
{
	(void)l;
	(void)ready;
	(void)arg;
	(void)e;
	assert_true(fd == SURVEY_FD || fd == WATCH_FD);
	w.nwatched++;
	return 0;
}

void loop_unwatch(struct loop *l, int fd)
{
	(void)l;
	assert_true(fd == SURVEY_FD || fd == WATCH_FD);
	w.nwatched--;
}

int survey_begin(struct survey *s, const pid_t *pids, size_t n, struct err *e)
{
	(void)s;
	w.looks++;
	w.nasked = n;
	memcpy(w.asked, pids, n * sizeof(*pids));
	if (w.look_fails)
		return err_set(e, w.look_fails, "no child");
	w.looking = true;
	return 0;
}

int survey_fd(const struct survey *s)
{
	(void)s;
	return w.looking ? SURVEY_FD : -1;
}

size_t survey_to_come(const struct survey *s)
{
	(void)s;
	return w.nasked - 3;
}

/* Each that was asked for is a Go program, but for those with odd numbers, which have ended. */
int survey_step(struct survey *s, struct err *e)
{
	if (w.step_fails)
		return err_set(e, w.step_fails, "the child died");
	if (!w.over)
		return 0;
	for (size_t i = 0; i < w.nasked; i++) {
		struct survey_proc *p = w.asked[i] % 2 ? NULL : vec_add(&s->at, MANY);

		if (!p)
			continue;
		*p = (struct survey_proc){ .pid = w.asked[i], .build = &build };
		p->target = calloc(1, sizeof(*p->target));
		p->target->pid = p->pid;
		p->target->opened_ns = w.opened_ns;
		s->seen++;
	}
	return 1;
}

void survey_stop(struct survey *s)
{
	(void)s;
	w.looking = false;
}

void survey_rest(struct survey *s)
{
	survey_stop(s);
	w.rested++;
}

uint64_t survey_child_ns(const struct survey *s)
{
	(void)s;
	return w.staying;
}

void survey_forget(struct survey *s)
{
	for (size_t i = 0; i < s->at.n; i++)
		free(s->at.at[i].target);
	s->at.n = 0;
}

void survey_fini(struct survey *s)
{
	survey_forget(s);
	vec_fini(&s->at);
}

int engine_add(struct engine *en, struct target *t, const struct golayout *known,
	       const struct engine_target **out, struct err *e)
{
	struct engine_target *at = &w.target[w.nadded];

	(void)en;
	(void)known;
	at->id.pid = t->pid;
	at->slot = (uint32_t)w.nadded;
	at->since_ns = w.now;
	free(t);
	*out = at;
	if (w.engine_says)
		return err_set(e, w.engine_says, "no room");
	w.nadded++;
	return 0;
}

static size_t nexecs;
void engine_exec(struct engine *en, pid_t pid, uint64_t when_ns)
{
	(void)en;
	(void)pid;
	(void)when_ns;
	nexecs++;
}

/* ---- the owner ---- */

static void looked(void *arg, struct survey *s)
{
	(void)arg;
	w.nlooked += s->at.n;
}

static void added(void *arg, int ret, const struct err *e, pid_t pid, const char *comm, bool became)
{
	(void)arg;
	(void)e;
	(void)pid;
	(void)comm;
	w.ret[w.ntold] = ret;
	w.became[w.ntold++] = became;
}

static void told(void *arg, const char *what)
{
	(void)arg;
	snprintf(w.said, sizeof(w.said), "%s", what);
}

static struct host_news begin(unsigned own_ppm)
{
	struct host_news n = { .looked = looked, .added = added, .say = told, .own_ppm = own_ppm };

	w = (struct world){ .now = 1000ull * MS, .over = true, .opened_ns = 2000ull * MS };
	nexecs = 0;
	assert_int_equal(host_news_open(&n, 0, NULL), 0);
	host_news_step(&n, true);
	return n;
}

static void starts(pid_t pid)
{
	w.heard[w.nheard++] = (struct exec_seen){ pid, w.now };
}

static void end(struct host_news *n)
{
	host_news_fini(n);
	assert_int_equal(w.nwatched, 0);
}

/* ---- what is looked at, and when ---- */

static void what_starts_is_taken_in_at_once(void **state)
{
	struct host_news n = begin(0);
	uint64_t ns;

	(void)state;
	starts(10);
	w.now += 5 * MS;
	host_news_step(&n, false);
	assert_int_equal(w.looks, 1);
	assert_int_equal(w.nadded, 1);
	assert_int_equal(w.target[0].id.pid, 10);
	assert_int_equal(w.ret[0], 0);
	assert_int_equal(nexecs, 1);
	assert_true(host_news_begun(&n, &w.target[0], &ns));
	assert_int_equal(ns, 5 * MS);
	host_news_forget(&n, &w.target[0]);
	assert_false(host_news_begun(&n, &w.target[0], &ns));
	assert_int_equal(host_news_unheard(&n), 3);
	end(&n);
}

static bool even_tens(void *arg, const struct exec_seen *x)
{
	(void)arg;
	return x->pid % 20 == 0;
}

static void what_nobody_wants_is_not_looked_at(void **state)
{
	struct host_news n = begin(0);

	(void)state;
	n.wants = even_tens;
	starts(10);
	host_news_step(&n, true);
	assert_int_equal(w.looks, 0);
	assert_int_equal(nexecs, 1); /* it may have been a target */
	starts(20);
	host_news_step(&n, true);
	assert_int_equal(w.looks, 1);
	end(&n);
}

/* Those that start while a look goes on are the next one's, all together. */
static void one_look_at_a_time(void **state)
{
	struct host_news n = begin(0);

	(void)state;
	w.over = false;
	starts(10);
	host_news_step(&n, false);
	for (pid_t p = 20; p < 60; p += 10)
		starts(p);
	host_news_step(&n, true);
	assert_int_equal(w.looks, 1);
	assert_int_equal(w.nadded, 0);
	w.over = true;
	host_news_step(&n, false);
	assert_int_equal(w.nadded, 1);
	host_news_step(&n, false);
	assert_int_equal(w.looks, 2);
	assert_int_equal(w.nasked, 4);
	assert_int_equal(w.nadded, 5);
	end(&n);
}

/* After a look at many, the next waits for the tick. */
static void after_many_the_next_waits(void **state)
{
	struct host_news n = begin(0);

	(void)state;
	for (pid_t p = 10; p < 26; p += 2)
		starts(p);
	host_news_step(&n, false);
	assert_int_equal(w.nadded, 8);
	starts(40);
	host_news_step(&n, false);
	assert_int_equal(w.looks, 1);
	host_news_step(&n, true);
	assert_int_equal(w.looks, 2);
	assert_false(n.put_off);
	end(&n);
}

/* The child goes when nothing has started for two seconds; at the end of the window, too, whatever it is at. */
static void the_child_rests(void **state)
{
	struct host_news n = begin(0);

	(void)state;
	starts(10);
	host_news_step(&n, false);
	for (int i = 0; i < 19; i++)
		host_news_step(&n, true);
	assert_int_equal(w.rested, 0);
	host_news_step(&n, true);
	assert_true(w.rested > 0);
	w.over = false;
	starts(20);
	starts(30);
	host_news_step(&n, false);
	starts(40);
	w.rested = w.asked[0] = 0;
	host_news_step(&n, false);
	assert_int_equal(w.rested, 0);
	w.nasked = 5; /* of which the world has told three */
	host_news_rest(&n);
	assert_int_equal(w.rested, 1);
	assert_int_equal(n.unknown, 2 + 1);
	end(&n);
}

/* 2 % of a CPU: 100 ms may be taken at once, by us or by children, of which one may stay. */
static void above_the_bound_looks_are_apart(void **state)
{
	struct host_news n = begin(20000);

	(void)state;
	w.children = 49 * MS;
	w.staying = 50 * MS;
	starts(10);
	host_news_step(&n, false);
	assert_int_equal(w.looks, 1);
	w.children = 51 * MS;
	for (int i = 0; i < 3; i++) {
		starts(20 + 2 * i);
		host_news_step(&n, false);
		assert_int_equal(w.looks, 1);
		host_news_step(&n, true);
		assert_int_equal(w.looks, i == 2 ? 2 : 1);
	}
	assert_int_equal(w.nasked, 3);
	assert_true(n.put_off);
	/* What files took that nobody knew is no part of it: that is only put off. */
	n.survey.files_ns = 2 * MS;
	starts(36);
	host_news_step(&n, false);
	assert_int_equal(w.looks, 3);
	n.survey.files_ns = 0;
	starts(38);
	host_news_step(&n, false);
	assert_int_equal(w.looks, 3);
	host_news_step(&n, true);
	host_news_step(&n, true);
	host_news_step(&n, true);
	assert_int_equal(w.looks, 4);
	/* As time passes, it is allowed. */
	w.now += 10000ull * MS;
	starts(40);
	host_news_step(&n, false);
	assert_int_equal(w.looks, 5);
	end(&n);
}

/* ---- what may go wrong ---- */

static void what_has_ended_is_counted(void **state)
{
	struct host_news n = begin(0);

	(void)state;
	starts(11);
	starts(12);
	host_news_step(&n, false);
	assert_int_equal(w.nadded, 1);
	assert_int_equal(n.unknown, 1);
	assert_false(n.lossy);
	end(&n);
}

/* It calls exec once more, after it was opened and before the engine has it. */
static void another_program_meanwhile_is_looked_at_next(void **state)
{
	struct host_news n = begin(0);

	(void)state;
	w.over = false;
	w.opened_ns = w.now;
	starts(10);
	host_news_step(&n, false);
	w.now += 5 * MS;
	starts(10);
	w.over = true;
	host_news_step(&n, false);
	assert_int_equal(w.ntold, 1);
	assert_int_equal(w.ret[0], -ESRCH);
	assert_true(w.became[0]);
	assert_int_equal(w.nadded, 0);
	w.opened_ns = w.now;
	host_news_step(&n, false);
	assert_int_equal(w.looks, 2);
	assert_int_equal(w.nadded, 1);
	assert_false(w.became[1]);
	end(&n);
}

static void what_the_engine_refuses_is_told(void **state)
{
	struct host_news n = begin(0);
	uint64_t ns;

	(void)state;
	w.engine_says = -E2BIG;
	starts(10);
	host_news_step(&n, false);
	assert_int_equal(w.ret[0], -E2BIG);
	assert_false(host_news_begun(&n, &w.target[0], &ns));
	end(&n);
}

static void a_look_that_fails_is_a_loss(void **state)
{
	struct host_news n = begin(0);

	(void)state;
	w.look_fails = -EAGAIN;
	starts(10);
	host_news_step(&n, false);
	assert_true(n.lossy);
	assert_string_equal(w.said, "no child");
	assert_int_equal(n.missed, 1);
	w.said[0] = '\0';
	starts(12);
	host_news_step(&n, true);
	assert_string_equal(w.said, ""); /* for the same reason */
	assert_int_equal(n.missed, 2);
	w.look_fails = -EMFILE;
	starts(14);
	host_news_step(&n, true);
	assert_string_equal(w.said, "no child");
	end(&n);

	n = begin(0);
	w.step_fails = -EPIPE;
	for (int i = 10; i < 15; i++)
		starts(i);
	host_news_step(&n, false);
	assert_true(n.lossy);
	assert_int_equal(n.missed, 2); /* it told of three */
	assert_string_equal(w.said, "the child died");
	assert_false(w.looking);
	assert_int_equal(n.unknown, 0); /* nobody knows */
	end(&n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_starts_is_taken_in_at_once),
		cmocka_unit_test(what_nobody_wants_is_not_looked_at),
		cmocka_unit_test(one_look_at_a_time),
		cmocka_unit_test(after_many_the_next_waits),
		cmocka_unit_test(above_the_bound_looks_are_apart),
		cmocka_unit_test(the_child_rests),
		cmocka_unit_test(what_has_ended_is_counted),
		cmocka_unit_test(another_program_meanwhile_is_looked_at_next),
		cmocka_unit_test(what_the_engine_refuses_is_told),
		cmocka_unit_test(a_look_that_fails_is_a_loss),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
