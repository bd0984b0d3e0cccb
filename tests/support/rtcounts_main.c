/*
 * tests/support/rtcounts_main.c - do the runtime's counters, read from outside, agree with what
 * the program's own runtime says of them?
 *
 * 	rtcounts PROGRAM [ARG...]	testdata/programs/counters, in one of its builds
 *
 * Prints a line for each comparison, "ok ..." or "wrong ...":
 * 	exact	while the program stands still: every size class, and the total, as MemStats has it
 * 	between	while all Ps allocate, GCs run and runtime/metrics rotates the statistics: every class
 * 		lies between the MemStats before and those after, slack included
 * 	switches	how often goroutines began to run agrees with what the program knows of it
 * and "time" lines. The exit status is 1 when something was wrong.
 */
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "subject/subject.h"
#include "go/runtime/counters/rtcounters.h"

enum { EXACT_ROUNDS = 12, BETWEEN_ROUNDS = 40, TIMED = 200, CLASSES = 128, QUIET_MS = 3000 };

struct program {
	pid_t pid;
	FILE *to, *from;
	char line[8192];
};

struct stats {
	uint64_t mallocs;
	uint32_t n;
	uint32_t size[CLASSES];
	uint64_t count[CLASSES];
};

static bool wrong;

static _Noreturn void die(struct program *p, const char *what)
{
	fprintf(stderr, "rtcounts: %s\n", what);
	if (p->pid > 0)
		kill(p->pid, SIGKILL);
	exit(2);
}

static void started(struct program *p, char **argv)
{
	int to[2], from[2];

	if (pipe(to) || pipe(from))
		die(p, "pipe");
	p->pid = fork();
	if (!p->pid) {
		dup2(to[0], 0);
		dup2(from[1], 1);
		for (int i = 0; i < 2; i++) {
			close(to[i]);
			close(from[i]);
		}
		execv(argv[0], argv);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	p->to = fdopen(to[1], "w");
	p->from = fdopen(from[0], "r");
}

static void hear(struct program *p, const char *word)
{
	if (!fgets(p->line, sizeof(p->line), p->from) || strncmp(p->line, word, strlen(word)) != 0)
		die(p, "the program does not answer");
}

static void tell(struct program *p, char command, const char *answer)
{
	fputc(command, p->to);
	fflush(p->to);
	hear(p, answer);
}

static struct stats ask_stats(struct program *p)
{
	struct stats s = { .n = 0 };
	char *at = p->line + strlen("stats");

	tell(p, 's', "stats ");
	s.mallocs = strtoull(at, &at, 10);
	s.n = (uint32_t)strtoul(at, &at, 10);
	if (!s.n || s.n >= CLASSES)
		die(p, "no size classes");
	for (uint32_t i = 1; i <= s.n; i++) {
		s.size[i] = (uint32_t)strtoul(at, &at, 10);
		s.count[i] = strtoull(at, &at, 10);
	}
	return s;
}

/* n is 0 when the program changed them all the time. */
static struct rtalloc_counts read_counts(struct program *p, struct rtcounters *c)
{
	struct rtalloc_counts n = { .n = 0 };
	struct err e = { "" };
	int ret = rtcounters_allocs(c, &n, &e);

	if (ret && ret != -EAGAIN)
		die(p, e.msg);
	return n;
}

/*
 * The CPU time of this process alone, because others who use the machine lengthen the wall time.
 */
static int64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void say_wrong(const char *what, uint32_t class, uint64_t before, uint64_t have,
		      uint64_t slack, uint64_t after)
{
	printf("wrong %s: class %u: %llu +- %llu, the program says %llu to %llu\n", what, class,
	       (unsigned long long)have, (unsigned long long)slack, (unsigned long long)before,
	       (unsigned long long)after);
	wrong = true;
}

static uint64_t total(const struct rtalloc_counts *n)
{
	uint64_t sum = n->large + n->tiny;

	for (uint32_t i = 1; i < n->n; i++)
		sum += n->small[i];
	return sum;
}

static bool is_exact(const struct rtalloc_counts *n)
{
	uint64_t slack = n->tiny_slack;

	for (uint32_t i = 1; i < n->n; i++)
		slack += n->slack[i];
	return n->n && !slack;
}

/* The program stands still, but a GC may still be running. */
static struct rtalloc_counts read_quiet(struct program *p, struct rtcounters *c)
{
	struct rtalloc_counts n = read_counts(p, c);

	for (int i = 0; i < QUIET_MS && !is_exact(&n); i++) {
		usleep(1000);
		n = read_counts(p, c);
	}
	return n;
}

/*
 * What ReadMemStats itself allocates (a sudog, when it has to wait for a GC's end) falls between
 * the two readings around it. That is rare; otherwise both readings equal its answer. Go 1.16 has
 * no count of tiny allocations here, and MemStats.Mallocs includes them.
 */
static void exact(struct program *p, struct rtcounters *c, bool tiny)
{
	uint64_t same = 0, other = 0, objects = 0;

	for (int round = 0; round < EXACT_ROUNDS; round++) {
		struct rtalloc_counts n, after;
		struct stats s;

		tell(p, round % 4 == 3 ? 'g' : 'w', "done");
		n = read_quiet(p, c);
		s = ask_stats(p);
		after = read_quiet(p, c);
		for (uint32_t i = 1; i <= s.n; i++) {
			if (n.small[i] > s.count[i] || after.small[i] < s.count[i] || n.slack[i])
				say_wrong("exact", i, s.count[i], n.small[i], n.slack[i],
					  s.count[i]);
			same += n.small[i] == after.small[i];
			other += n.small[i] != after.small[i];
		}
		if (tiny && (total(&n) > s.mallocs || total(&after) < s.mallocs || n.tiny_slack))
			say_wrong("exact total", 0, s.mallocs, total(&n), n.tiny_slack, s.mallocs);
		objects = s.mallocs;
	}
	if (other > EXACT_ROUNDS)
		wrong = true;
	printf("%s exact: %d rounds, %llu counts the same and %llu not, %llu objects at last\n",
	       other > EXACT_ROUNDS ? "wrong" : "ok", EXACT_ROUNDS, (unsigned long long)same,
	       (unsigned long long)other, (unsigned long long)objects);
}

/*
 * Does the header allow this difference for Go before 1.19: rarely, the slots of one span? No
 * class has larger spans than that.
 */
static bool is_rare(const struct rtalloc_counts *n, uint32_t class, const struct stats *before,
		    const struct stats *after, uint64_t *rare)
{
	enum { SPAN_MAX = 10 * 8192, RARE_MAX = 4 };
	uint64_t off = n->small[class] < before->count[class] ?
			       before->count[class] - n->small[class] :
			       n->small[class] - after->count[class];

	return off <= n->slack[class] + SPAN_MAX / before->size[class] && ++*rare <= RARE_MAX;
}

static void between(struct program *p, struct rtcounters *c, bool old)
{
	uint64_t slack = 0, objects = 0, tries = 0, missed = 0, rare = 0;
	uint64_t rounds = BETWEEN_ROUNDS;

	tell(p, 'l', "done");
	for (int round = 0; round < BETWEEN_ROUNDS; round++) {
		struct stats before = ask_stats(p), after;
		struct rtalloc_counts n;

		usleep(2000);
		n = read_counts(p, c);
		after = ask_stats(p);
		missed += !n.n;
		if (!n.n)
			continue;
		tries += n.tries;
		for (uint32_t i = 1; i <= before.n; i++) {
			if ((n.small[i] + n.slack[i] < before.count[i] ||
			     n.small[i] > after.count[i] + n.slack[i]) &&
			    !(old && is_rare(&n, i, &before, &after, &rare)))
				say_wrong("between", i, before.count[i], n.small[i], n.slack[i],
					  after.count[i]);
			slack += n.slack[i];
			objects += after.count[i] - before.count[i];
		}
	}
	tell(p, 'q', "done");
	if (missed * 4 > BETWEEN_ROUNDS) {
		printf("wrong between: %llu of %d rounds without an answer\n",
		       (unsigned long long)missed, BETWEEN_ROUNDS);
		wrong = true;
		return;
	}
	rounds -= missed;
	printf("ok between: %llu rounds of %llu objects, slack %.1f, %.2f looks, %llu rare\n",
	       (unsigned long long)rounds, (unsigned long long)(objects / rounds),
	       (double)slack / (double)rounds, (double)tries / (double)rounds,
	       (unsigned long long)rare);
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void timed(struct program *p, struct rtcounters *c, const char *when)
{
	int64_t took[TIMED];

	for (int i = 0; i < TIMED; i++) {
		int64_t begin = cpu_ns();

		(void)read_counts(p, c);
		took[i] = cpu_ns() - begin;
	}
	qsort(took, TIMED, sizeof(*took), by_value);
	printf("time %s: %.1f us of CPU a reading, 90 of 100 below %.1f us\n", when,
	       (double)took[TIMED / 2] / 1e3, (double)took[TIMED * 9 / 10] / 1e3);
}

/*
 * What the program knows, and how far from that the count may be: tracked goroutines count in
 * eights, other goroutines switch as well, and some waits may be over before they began.
 */
static const struct {
	char command;
	const char *name;
	double low, high;
} switching[] = {
	{ 'c', "channels", 0.99, 1.01 },
	{ 'y', "gosched", 0.99, 1.01 },
	{ 't', "sleeps", 0.95, 1.15 },
	{ 'm', "conds", 0.99, 1.1 },
	/*
	 * A first run, and a wait that may be over before it began; the first run counts for
	 * 15/8.
	 */
	{ 'n', "births", 1.1, 1.5 },
};

static void switches(struct program *p, struct rtcounters *c)
{
	struct err e = { "" };
	uint64_t a, b;

	for (size_t i = 0; i < ARRAY_LEN(switching); i++) {
		double share;

		if (rtcounters_switches(c, &a, &e)) {
			printf("none switches: %s\n", e.msg);
			return;
		}
		tell(p, switching[i].command, "switches ");
		if (rtcounters_switches(c, &b, &e))
			die(p, e.msg);
		share = (double)(b - a) / strtod(p->line + strlen("switches"), NULL);
		if (share < switching[i].low || share > switching[i].high)
			wrong = true;
		printf("%s switches: by %s %llu, %.4f of what the program knows\n",
		       share < switching[i].low || share > switching[i].high ? "wrong" : "ok",
		       switching[i].name, (unsigned long long)(b - a), share);
	}
}

int main(int argc, char **argv)
{
	CLEANUP(subject_freep) struct subject *s = NULL;
	CLEANUP(rtcounters_freep) struct rtcounters *c = NULL;
	struct collect_opts o = { .source = SOURCE_READ };
	struct program p = { .pid = 0 };
	struct err e = { "" };

	if (argc < 2)
		die(&p, "usage: rtcounts PROGRAM [ARG...]");
	started(&p, argv + 1);
	hear(&p, "ready");
	if (subject_open(p.pid, &o, &s, &e) ||
	    rtcounters_open(s->bin, &s->layout, s->target->mem, s->bias, &c, &e))
		die(&p, e.msg);
	exact(&p, c, s->layout.off[LAYOUT_heapdelta_tinyalloccount] >= 0);
	timed(&p, c, "quiet");
	tell(&p, 'l', "done");
	timed(&p, c, "loaded");
	tell(&p, 'q', "done");
	between(&p, c, s->layout.off[LAYOUT_mspan_countbeforecache] < 0);
	exact(&p, c, s->layout.off[LAYOUT_heapdelta_tinyalloccount] >= 0);
	switches(&p, c);
	kill(p.pid, SIGKILL);
	waitpid(p.pid, NULL, 0);
	return wrong;
}
