/*
 * tests/unit/test_claim.c - claims of several processes on one target: by its pidfd and, as on
 * an older kernel, by its executable.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "target/write/claim.h"

enum { PROCESSES = 12, ROUNDS = 40, LONG_MS = 60000 };

struct common {
	volatile int inside, most, entered;
};

static pid_t waiting_child(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static struct claims *open_claims(struct target *t, unsigned what, bool exe)
{
	struct claims *c;
	struct err e = { "" };

	if (claims_open(t, what, exe, &c, &e))
		fail_msg("%s", e.msg);
	return c;
}

static uint64_t others(struct claims *c)
{
	uint64_t v = 77;
	struct err e = { "" };

	if (claims_others(c, 0, NULL, &v, &e))
		fail_msg("%s", e.msg);
	return v;
}

static void seen_by_others_and_dropped(bool exe)
{
	pid_t pid = waiting_child(), pid2 = waiting_child();
	struct target *t, *t2;
	struct claims *a, *b, *block, *of_another;
	struct err e = { "" };

	assert_int_equal(target_open(pid, &t, &e), 0);
	assert_int_equal(target_open(pid2, &t2, &e), 0);
	a = open_claims(t, CLAIM_HEAP_RATE, exe);
	b = open_claims(t, CLAIM_HEAP_RATE, exe);
	block = open_claims(t, CLAIM_BLOCK_RATE, exe);
	of_another = open_claims(t2, CLAIM_HEAP_RATE, exe);
	assert_int_equal(others(a), 0);
	assert_int_equal(claims_take(a, 524288, &e), 0);
	assert_int_equal(others(a), 0); /* one's own claim is not reported as another's */
	assert_int_equal(others(b), 524288);
	assert_int_equal(others(block), 0);
	assert_int_equal(others(of_another), 0);
	assert_int_equal(claims_take(b, 524288, &e), 0);
	claims_drop(a);
	assert_int_equal(others(a), 524288);
	assert_int_equal(others(b), 0);
	claims_free(b);
	assert_int_equal(others(a), 0);
	assert_int_equal(claims_take(a, CLAIM_VALUE_MAX, &e), 0);
	b = open_claims(t, CLAIM_HEAP_RATE, exe);
	assert_int_equal(others(b), CLAIM_VALUE_MAX);
	assert_int_equal(others(block), 0);
	claims_free(a);
	claims_free(b);
	claims_free(block);
	claims_free(of_another);
	target_free(t);
	target_free(t2);
	end(pid);
	end(pid2);
}

static void by_pidfd(void **state)
{
	(void)state;
	seen_by_others_and_dropped(false);
}

static void by_executable(void **state)
{
	(void)state;
	seen_by_others_and_dropped(true);
}

static void all_slots(void **state)
{
	pid_t pid = waiting_child();
	struct claims *c[CLAIM_SLOTS + 1];
	struct target *t;
	struct err e = { "" };

	(void)state;
	assert_int_equal(target_open(pid, &t, &e), 0);
	for (int i = 0; i <= CLAIM_SLOTS; i++)
		c[i] = open_claims(t, CLAIM_HEAP_RATE, i % 2);
	claims_free(c[0]);
	for (int i = 0; i <= CLAIM_SLOTS; i++)
		if (i)
			claims_free(c[i]);
	for (int i = 0; i <= CLAIM_SLOTS; i++) {
		c[i] = open_claims(t, CLAIM_HEAP_RATE, false);
		assert_int_equal(claims_take(c[i], 7, &e), i < CLAIM_SLOTS ? 0 : -E2BIG);
	}
	for (int i = 0; i <= CLAIM_SLOTS; i++)
		claims_free(c[i]);
	target_free(t);
	end(pid);
}

/* It is killed without a chance to clean up. */
static void forgotten_with_the_process(void **state)
{
	pid_t pid = waiting_child(), holder;
	struct target *t;
	struct claims *c;
	struct err e = { "" };
	int ready[2];
	char byte;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	assert_int_equal(target_open(pid, &t, &e), 0);
	holder = fork();
	if (!holder) {
		struct claims *mine = open_claims(t, CLAIM_HEAP_RATE, false);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (claims_enter(mine, LONG_MS, NULL, NULL, &e) || claims_take(mine, 1000, &e))
			_exit(1);
		(void)!write(ready[1], "", 1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	c = open_claims(t, CLAIM_HEAP_RATE, false);
	assert_int_equal(others(c), 1000);
	assert_int_equal(claims_enter(c, 50, NULL, NULL, &e), -EBUSY);
	end(holder);
	assert_int_equal(claims_enter(c, 1000, NULL, NULL, &e), 0);
	assert_int_equal(others(c), 0);
	claims_free(c);
	target_free(t);
	end(pid);
	close(ready[0]);
	close(ready[1]);
}

static bool always(void *arg)
{
	(void)arg;
	return true;
}

static void gives_up_when_told(void **state)
{
	pid_t pid = waiting_child();
	struct claims *a, *b;
	struct target *t;
	struct err e = { "" };

	(void)state;
	assert_int_equal(target_open(pid, &t, &e), 0);
	a = open_claims(t, CLAIM_HEAP_RATE, false);
	b = open_claims(t, CLAIM_HEAP_RATE, false);
	assert_int_equal(claims_enter(a, LONG_MS, always, NULL, &e), 0);
	assert_int_equal(claims_enter(b, LONG_MS, always, NULL, &e), -EINTR);
	claims_leave(a);
	assert_int_equal(claims_enter(b, LONG_MS, always, NULL, &e), 0);
	claims_free(a);
	claims_free(b);
	target_free(t);
	end(pid);
}

/* A descriptor whose locks the kernel refuses; after some tries it is the right one again. */
struct refused {
	int fd, right, wrong, tries, until;
};

static void refuse(struct refused *r, struct claims *c, int until)
{
	*r = (struct refused){ .fd = claims_fd(c), .until = until };
	r->right = dup(r->fd);
	r->wrong = open("/", O_PATH | O_CLOEXEC);
	assert_true(r->right >= 0 && r->wrong >= 0);
	assert_int_equal(dup2(r->wrong, r->fd), r->fd);
}

static void accept_again(struct refused *r)
{
	dup2(r->right, r->fd);
}

static bool after_some(void *arg)
{
	struct refused *r = arg;

	if (++r->tries == r->until)
		accept_again(r);
	return false;
}

static uint64_t ms_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* The guardian enters to restore a value: one error of the kernel must not keep it from that. */
static void errors_are_tried_again(void **state)
{
	pid_t pid = waiting_child();
	struct claims *a, *b;
	struct refused r;
	struct target *t;
	struct err e = { "" };
	uint64_t from;

	(void)state;
	assert_int_equal(target_open(pid, &t, &e), 0);
	a = open_claims(t, CLAIM_HEAP_RATE, false);
	b = open_claims(t, CLAIM_HEAP_RATE, false);
	refuse(&r, a, 3);
	assert_int_equal(claims_enter(a, LONG_MS, after_some, &r, &e), 0);
	assert_int_equal(r.tries, 3);
	assert_int_equal(claims_enter(b, 20, NULL, NULL, &e), -EBUSY); /* it did enter */
	claims_leave(a);
	close(r.right);
	close(r.wrong);
	/* One that does not end is said, when the time is over. */
	refuse(&r, a, 0);
	from = ms_now();
	assert_int_equal(claims_enter(a, 30, after_some, &r, &e), -EBADF);
	assert_true(ms_now() - from >= 30 && r.tries > 1);
	accept_again(&r);
	close(r.right);
	close(r.wrong);
	claims_free(a);
	claims_free(b);
	target_free(t);
	end(pid);
}

static void contend(struct target *t, bool exe, struct common *all)
{
	struct claims *c = open_claims(t, CLAIM_HEAP_RATE, exe);

	for (int i = 0; i < ROUNDS; i++) {
		int now;

		if (claims_enter(c, LONG_MS, NULL, NULL, NULL))
			_exit(1);
		now = __atomic_add_fetch(&all->inside, 1, __ATOMIC_SEQ_CST);
		if (now > all->most)
			all->most = now;
		usleep((useconds_t)(i % 5) * 50);
		__atomic_add_fetch(&all->entered, 1, __ATOMIC_SEQ_CST);
		__atomic_sub_fetch(&all->inside, 1, __ATOMIC_SEQ_CST);
		claims_leave(c);
	}
	_exit(0);
}

static void one_at_a_time(bool exe)
{
	struct common *all = mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid = waiting_child(), who[PROCESSES];
	struct target *t;
	struct err e = { "" };

	assert_int_equal(target_open(pid, &t, &e), 0);
	for (int i = 0; i < PROCESSES; i++) {
		who[i] = fork();
		assert_true(who[i] >= 0);
		if (!who[i])
			contend(t, exe, all);
	}
	for (int i = 0; i < PROCESSES; i++) {
		int status;

		waitpid(who[i], &status, 0);
		assert_int_equal(status, 0);
	}
	assert_int_equal(all->entered, PROCESSES * ROUNDS);
	assert_int_equal(all->most, 1);
	munmap(all, sizeof(*all));
	target_free(t);
	end(pid);
}

static void alone_by_pidfd(void **state)
{
	(void)state;
	one_at_a_time(false);
}

static void alone_by_executable(void **state)
{
	(void)state;
	one_at_a_time(true);
}

/* ---- locks of others who mean harm ---- */

enum { NOBODY = 65534, SOMEBODY = 65533 };

static void become(uid_t real, uid_t uid)
{
	if (syscall(SYS_setresgid, NOBODY, NOBODY, NOBODY) ||
	    syscall(SYS_setresuid, real, uid, uid))
		_exit(1);
}

static void a_stranger(void)
{
	become(NOBODY, NOBODY);
}

static void of_the_targets_user(void)
{
	become(SOMEBODY, SOMEBODY);
}

/* It has all capabilities, but only there; where this is forbidden, it is a stranger as any. */
static void with_a_user_namespace(void)
{
	become(NOBODY, NOBODY);
	(void)!unshare(CLONE_NEWUSER);
}

/* As if NOBODY had started it: its descriptors may be NOBODY's. */
static void set_user_id(void)
{
	become(NOBODY, 0);
}

/* The lock is held by a descriptor that is in no process' table. */
static void hide(int fd)
{
	struct msghdr m = { 0 };
	union {
		struct cmsghdr h;
		char bytes[CMSG_SPACE(sizeof(int))];
	} u = { 0 };
	char byte = 0;
	struct iovec v = { &byte, 1 };
	int pair[2];

	m.msg_iov = &v;
	m.msg_iovlen = 1;
	m.msg_control = &u;
	m.msg_controllen = sizeof(u);
	u.h = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS,
				.cmsg_len = CMSG_LEN(sizeof(int)) };
	memcpy(CMSG_DATA(&u.h), &fd, sizeof(fd));
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) || sendmsg(pair[0], &m, 0) != 1)
		_exit(3);
	close(fd);
}

/* A process with a lock like a claim of @value, in every place for claims of heap rates. */
static pid_t imitator(pid_t target, void (*who)(void), uint64_t value, bool hidden)
{
	int ready[2];
	char byte = 1;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		int fd;

		who();
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fd = (int)syscall(SYS_pidfd_open, target, 0);
		for (uint64_t slot = 1; slot <= CLAIM_SLOTS; slot++) {
			struct flock l = { .l_type = F_RDLCK,
					   .l_start = (off_t)(1ull << 62 | slot << 31),
					   .l_len = (off_t)value };

			if (fcntl(fd, F_OFD_SETLK, &l))
				_exit(4);
		}
		if (hidden)
			hide(fd);
		(void)!write(ready[1], "", 1);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static pid_t child_of(uid_t uid)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		become(uid, uid);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return pid;
}

/* The locks are on a pidfd; without pidfs (before Linux 6.9) there is no file to imitate them on. */
static bool imitated(struct target *t)
{
	pid_t pid = imitator(t->pid, of_the_targets_user, 5, false);
	struct claims *c = open_claims(t, CLAIM_HEAP_RATE, false);
	bool yes = others(c) == 5;

	claims_free(c);
	end(pid);
	return yes;
}

/* Elsewhere a descriptor that is not found may be that of an unseen goprof-bpf. */
static bool in_initial_pidns(void)
{
	struct stat st;

	return !stat("/proc/self/ns/pid", &st) && st.st_ino == 0xEFFFFFFCu;
}

/*
 * A lock outlives its holder for as long as anybody reads the descriptor's fdinfo, which other
 * tests do at the same time.
 */
static void without_locks(struct claims *c)
{
	uint64_t end = ms_now() + LONG_MS;

	do
		assert_int_equal(others(c), 0);
	while (claims_imitated(c) && ms_now() < end);
	assert_false(claims_imitated(c));
}

static void only_who_may_write_can_claim(void **state)
{
	static const struct {
		void (*who)(void);
		bool hidden, counts;
	} cases[] = {
		{ a_stranger, false, false },
		{ a_stranger, true, false },
		{ with_a_user_namespace, false, false },
		{ set_user_id, false, false },
		{ of_the_targets_user, false, true },
	};
	pid_t pid, holder;
	struct target *t;
	struct claims *c, *ours;
	struct err e = { "" };
	uint64_t value;

	(void)state;
	if (geteuid())
		skip();
	pid = child_of(SOMEBODY);
	usleep(20000); /* until it has become that user */
	assert_int_equal(target_open(pid, &t, &e), 0);
	if (!imitated(t))
		skip();
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		if (cases[i].hidden && !in_initial_pidns())
			continue;
		c = open_claims(t, CLAIM_HEAP_RATE, false);
		holder = imitator(pid, cases[i].who, 7, cases[i].hidden);
		value = others(c);
		if (value != (cases[i].counts ? 7 : 0) || claims_imitated(c) == cases[i].counts)
			fail_msg("case %zu: %d, %d", i, (int)value, claims_imitated(c));
		end(holder);
		without_locks(c);
		claims_free(c);
	}
	/* A claim that such a lock hides is a claim. */
	ours = open_claims(t, CLAIM_HEAP_RATE, false);
	assert_int_equal(claims_take(ours, 1000, &e), 0);
	holder = imitator(pid, a_stranger, 7, false);
	c = open_claims(t, CLAIM_HEAP_RATE, false);
	assert_int_equal(others(c), 1000);
	assert_true(claims_imitated(c));
	end(holder);
	assert_int_equal(others(c), 1000);
	claims_free(c);
	claims_free(ours);
	target_free(t);
	end(pid);
}

static bool at_once(void)
{
	return true;
}

/* Whoever does not wait for the look gets what is known without: a lock may be a claim. */
static void a_look_that_is_stopped(void **state)
{
	pid_t pid = waiting_child(), holder;
	struct target *t;
	struct claims *c;
	struct err e = { "" };
	uint64_t v = 0;

	(void)state;
	if (geteuid())
		skip();
	assert_int_equal(target_open(pid, &t, &e), 0);
	holder = imitator(pid, a_stranger, 7, false);
	c = open_claims(t, CLAIM_HEAP_RATE, false);
	assert_int_equal(claims_others(c, 0, at_once, &v, &e), 0);
	if (v) /* it is 0 without pidfs */
		assert_int_equal(v, 7);
	assert_false(claims_imitated(c));
	end(holder);
	claims_free(c);
	target_free(t);
	end(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_pidfd),
		cmocka_unit_test(by_executable),
		cmocka_unit_test(all_slots),
		cmocka_unit_test(forgotten_with_the_process),
		cmocka_unit_test(gives_up_when_told),
		cmocka_unit_test(errors_are_tried_again),
		cmocka_unit_test(alone_by_pidfd),
		cmocka_unit_test(alone_by_executable),
		cmocka_unit_test(only_who_may_write_can_claim),
		cmocka_unit_test(a_look_that_is_stopped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
