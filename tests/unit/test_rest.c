/*
 * tests/unit/test_rest.c - targets that rest, and those that a child opened for its parent: few descriptors, no read that
 * waits for others. The processes are real children of this test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/limits.h"
#include "target/handover.h"
#include "target/target_priv.h"

enum { PAGE = 4096, PAGES = 5, WORD = 0x5eed };

/* [0] and [2] are there; [1] and [4] never were; [3] has to be brought by somebody who does not come. */
static uint8_t *pages;
static uint8_t unused[64 * PAGE]; /* .bss; nobody writes to it, but to the end of a page in it */

static uint8_t *used(void)
{
	return unused + 41 * PAGE - (uintptr_t)unused % PAGE - sizeof(uint32_t);
}

static pid_t child;
static int go;

/* Between two pages without rights: right behind the variables of a library, they would be its .bss. */
static uint8_t *fenced(void)
{
	uint8_t *all = mmap(NULL, (PAGES + 2) * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);

	if (all == MAP_FAILED || mprotect(all + PAGE, PAGES * PAGE, PROT_READ | PROT_WRITE) ||
	    madvise(all + PAGE, PAGES * PAGE, MADV_NOHUGEPAGE))
		return NULL;
	return all + PAGE;
}

static void bring_never(uint8_t *page)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .range = { (uintptr_t)page, PAGE },
				       .mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &reg))
		_exit(3); /* nobody may read page [3] then */
}

static void child_main(int ready, int wait)
{
	uint32_t word = WORD;
	char c = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	memcpy(pages, &word, sizeof(word));
	memcpy(pages + 2 * PAGE, &word, sizeof(word));
	memcpy(used(), &word, sizeof(word));
	bring_never(pages + 3 * PAGE);
	if (write(ready, &c, 1) != 1 || read(wait, &c, 1) != 1)
		_exit(0);
	execl("/bin/sleep", "sleep", "60", NULL);
	_exit(7);
}

static int setup(void **state)
{
	int ready[2], wait[2];
	char c;

	(void)state;
	pages = fenced();
	if (!pages || pipe2(ready, O_CLOEXEC) || pipe2(wait, O_CLOEXEC))
		return -1;
	child = fork();
	if (!child) {
		close(wait[1]);
		child_main(ready[1], wait[0]);
	}
	close(ready[1]);
	close(wait[0]);
	go = wait[1];
	alarm(20); /* a read that waits for a page ends the test */
	if (read(ready[0], &c, 1) != 1)
		return -1;
	close(ready[0]);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(go);
	munmap(pages - PAGE, (PAGES + 2) * PAGE);
	alarm(0);
	return 0;
}

static size_t descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static uint64_t at(size_t page)
{
	return (uintptr_t)pages + page * PAGE;
}

static struct target *opened(void)
{
	struct target *t = NULL;
	struct err e = { "" };

	if (target_open(child, &t, &e))
		fail_msg("%s", e.msg);
	return t;
}

/* What begins as zero, and was never written to, is zero, though it is not there. */
static void reads_bss(struct target *t)
{
	struct {
		uint32_t before, word;
	} one = { 1, 1 }, all = { 1, 1 };
	struct mem_piece v = { .addr = (uintptr_t)used(), .buf = &all, .n = 8 };
	uint32_t word = 1;

	assert_int_equal(mem_u32(t->mem, (uintptr_t)unused + 20 * PAGE, &word, NULL), 0);
	assert_int_equal(word, 0);
	assert_int_equal(mem_read(t->mem, v.addr, &one, sizeof(one), NULL), 0);
	assert_true(one.before == WORD && one.word == 0);
	assert_int_equal(mem_readv(t->mem, &v, 1, NULL), 0);
	assert_true(v.ok && all.before == WORD && all.word == 0);
}

static void reads_only_what_is_there(struct target *t)
{
	struct err e = { "" };
	char want[32], buf[8];
	uint32_t word = 0;

	assert_int_equal(mem_u32(t->mem, at(0), &word, &e), 0);
	assert_int_equal(word, WORD);
	assert_int_equal(mem_u32(t->mem, at(2), &word, &e), 0);
	assert_int_equal(mem_u32(t->mem, at(1), &word, &e), -EFAULT);
	assert_int_equal(mem_u32(t->mem, at(3), &word, &e), -EFAULT);
	assert_int_equal(mem_read(t->mem, at(3) - 4, buf, sizeof(buf), &e), -EFAULT);
	snprintf(want, sizeof(want), "0x%llx", (unsigned long long)at(3));
	assert_non_null(strstr(e.msg, want));
	assert_int_equal(mem_u32(t->mem, 8, &word, &e), -EFAULT);
	assert_int_equal(mem_u32(t->mem, UINT64_MAX - 8, &word, &e), -EFAULT);
	reads_bss(t);
}

enum { MANY = 2500 };

/*
 * More pieces than one call takes, some of which are not there, or in part, or nowhere: nobody waits, and each is told by
 * itself.
 */
static void reads_many_pieces(struct target *t)
{
	static const struct {
		int64_t off; /* from the first page */
		bool there;
	} kinds[] = { { 0, true },	   { 2 * PAGE, true }, { PAGE, false },
		      { 3 * PAGE, false }, { 2 * PAGE, true }, { 3 * PAGE - 2, false },
		      { 0, true },	   { -1, false } };
	static struct mem_piece v[MANY];
	static uint32_t words[MANY];

	memset(words, 0, sizeof(words));
	for (size_t i = 0; i < MANY; i++) {
		int64_t off = kinds[i % ARRAY_LEN(kinds)].off;

		v[i] = (struct mem_piece){ .addr = off < 0 ? UINT64_MAX - 1 : at(0) + (uint64_t)off,
					   .buf = &words[i],
					   .n = sizeof(words[i]) };
	}
	assert_int_equal(mem_readv(t->mem, v, MANY, NULL), 0);
	for (size_t i = 0; i < MANY; i++) {
		bool there = kinds[i % ARRAY_LEN(kinds)].there;

		assert_int_equal(v[i].ok, there);
		assert_true(!there || words[i] == WORD);
	}
}

/* Each of these is so, too, where a thread asks for us. */
static struct worker *worker;
static bool by_worker;

static void rest(struct target *t)
{
	target_rest(t);
	if (by_worker)
		target_by_worker(t, &worker);
}

static void many_pieces_are_read_asleep_and_awake(void **state)
{
	struct target *t = opened();

	(void)state;
	rest(t);
	reads_many_pieces(t);
	assert_int_equal(target_wake(t, NULL), 0);
	reads_many_pieces(t);
	rest(t);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(mem_readv(t->mem, &(struct mem_piece){ .addr = at(0), .n = 1 }, 1, NULL),
			 -ESRCH);
	target_free(t);
}

/* Its memory has gone, and its files are open: it is not one whose memory has no such page. */
static void one_that_ends_while_its_files_are_open(void **state)
{
	struct target *t = opened();
	siginfo_t info;
	uint32_t word;

	(void)state;
	rest(t);
	assert_int_equal(target_wake(t, NULL), 0);
	assert_int_equal(mem_u32(t->mem, at(0), &word, NULL), 0);
	assert_int_equal(mem_u32(t->mem, 1ull << 50, &word, NULL), -EFAULT);
	kill(child, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(mem_u32(t->mem, at(0), &word, NULL), -ESRCH);
	target_free(t);
}

static void one_that_rests_has_one_descriptor(void **state)
{
	size_t before = descriptors();
	struct target *t = opened();
	struct mem_piece piece[2] = { 0 };
	uint32_t word[2] = { 0 };
	pid_t *tids = NULL;
	char cgroup[512];
	size_t n;

	(void)state;
	assert_int_equal(mem_u32(t->mem, at(4), word, NULL), 0); /* who waits gets it */
	assert_true(descriptors() > before + 2);
	rest(t);
	assert_int_equal(descriptors(), before + 1);
	rest(t);
	reads_only_what_is_there(t);
	for (size_t i = 0; i < 2; i++)
		piece[i] = (struct mem_piece){ .addr = at(3 - i), .buf = &word[i], .n = 4 };
	assert_int_equal(mem_readv(t->mem, piece, 2, NULL), 0);
	assert_true(!piece[0].ok && piece[1].ok);
	assert_int_equal(word[1], WORD);
	assert_int_equal(target_alive(t, NULL), 0);
	assert_int_equal(target_maps(t, NULL), 0);
	assert_non_null(maps_find(&t->maps, at(0)));
	assert_int_equal(target_threads(t, &tids, &n, NULL), 0);
	assert_int_equal(tids[0], child);
	free(tids);
	target_cgroup(t, cgroup, sizeof(cgroup));
	assert_true(*cgroup == '/' || !*cgroup);
	assert_int_equal(descriptors(), before + 1);
	target_free(t);
	assert_int_equal(descriptors(), before);
}

static void its_end_and_its_exec_are_seen(void **state)
{
	struct target *t = opened();
	uint32_t word;
	char c = 0;

	(void)state;
	rest(t);
	assert_int_equal(write(go, &c, 1), 1);
	for (int i = 0; i < 1000 && !target_alive(t, NULL); i++)
		usleep(2000);
	assert_int_equal(target_alive(t, NULL), -ESRCH);
	assert_true(t->became);
	assert_int_equal(mem_u32(t->mem, at(0), &word, NULL), -ESRCH);
	target_free(t);

	t = opened();
	assert_string_equal(t->comm, "sleep");
	rest(t);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(target_alive(t, NULL), -ESRCH);
	assert_false(t->became);
	assert_int_equal(mem_u32(t->mem, at(0), &word, NULL), -ESRCH);
	target_free(t);
}

/* ---- handing over ---- */

static struct {
	char *data;
	size_t n, at;
} sent;

static bool get(void *arg, void *buf, size_t n)
{
	(void)arg;
	if (n > sent.n - sent.at)
		return false;
	memcpy(buf, sent.data + sent.at, n);
	sent.at += n;
	return true;
}

/* Not Go's, but everything else about it is the same. */
static bool is_go(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_size > 0;
}

static void send_it(struct target *t, int fds[HANDOVER_FDS], size_t *n)
{
	FILE *to = open_memstream(&sent.data, &sent.n);

	assert_true(handover_send(t, to, fds, n));
	assert_int_equal(fclose(to), 0);
	sent.at = 0;
	for (size_t i = 0; i < *n; i++)
		fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 0);
}

static void what_a_child_opened_its_parent_goes_on_with(void **state)
{
	size_t before = descriptors(), n;
	struct target *t = opened(), *got;
	int fds[HANDOVER_FDS], fd = -1;
	const struct mapping *lib = NULL;
	uint64_t lib_start;

	(void)state;
	for (size_t i = 0; i < t->maps.n && !lib; i++)
		if (t->maps.at[i].exec && strstr(t->maps.at[i].name, "libc"))
			lib = &t->maps.at[i];
	assert_non_null(lib);
	lib_start = lib->start;
	handover_libs(t, is_go);
	send_it(t, fds, &n);
	got = handover_receive(get, NULL);
	assert_non_null(got);
	assert_int_equal(handover_fds(got), n);
	handover_adopt(got, fds);
	assert_string_equal(got->comm, t->comm);
	assert_string_equal(got->exe, t->exe);
	assert_int_equal(got->maps.n, t->maps.n);
	assert_string_equal(got->maps.at[0].name, t->maps.at[0].name);
	assert_int_equal(target_open_mapped(got, lib, &fd, NULL), 0);
	close(fd);
	/* Others were looked at by the child, and are nobody's. */
	while (got->nlibs)
		close(got->libs[--got->nlibs].fd);
	assert_int_equal(target_open_mapped(got, lib, &fd, NULL), -ENOENT);
	target_free(t);
	reads_only_what_is_there(got);
	assert_int_equal(target_alive(got, NULL), 0);
	target_rest(got);
	assert_int_equal(target_open_mapped(got, maps_find(&got->maps, lib_start), &fd, NULL), 0);
	close(fd);
	target_free(got);
	free(sent.data);
	assert_int_equal(descriptors(), before);
}

static void what_is_cut_off_is_no_target(void **state)
{
	size_t before = descriptors(), n, all;
	struct target *t = opened();
	int fds[HANDOVER_FDS];

	(void)state;
	send_it(t, fds, &n);
	all = sent.n;
	for (sent.n = 0; sent.n < all; sent.n += sent.n < sizeof(*t) ? 512 : 7) {
		sent.at = 0;
		assert_null(handover_receive(get, NULL));
	}
	for (size_t i = 0; i < n; i++)
		close(fds[i]);
	free(sent.data);
	target_free(t);
	assert_int_equal(descriptors(), before);
}

static void files_of_this_machine_are_told_from_others(void **state)
{
	int here = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), far, copy = -1;
	char a[64], b[64];

	(void)state;
	far = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	assert_false(handover_is_foreign(here));
	assert_true(handover_is_foreign(far)); /* procfs: not on the list */
	assert_int_equal(handover_copy(here, &copy, NULL), 0);
	assert_false(handover_is_foreign(copy));
	assert_int_equal(pread(here, a, sizeof(a), 4096), sizeof(a));
	assert_int_equal(pread(copy, b, sizeof(b), 4096), sizeof(b));
	assert_memory_equal(a, b, sizeof(a));
	close(here);
	close(far);
	close(copy);
}

/* ---- one that does not answer ---- */

/* As a lock of its memory that is not given back: no signal ends it. */
static void never_comes(struct worker_job *j)
{
	pid_t pid = vfork();

	(void)j;
	if (!pid) {
		usleep(2 * LIMIT_STUCK_MS * 1000);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

/* Nothing of it is asked again, and what the thread may still use is there until that is over. */
static void one_that_is_silent_is_left_alone(void **state)
{
	size_t before = descriptors(), left;
	struct target_job *j = calloc(1, sizeof(*j));
	struct target *t = opened();
	struct maps maps;
	struct err e;
	uint32_t word;

	(void)state;
	rest(t);
	j->job = (struct worker_job){ .run = never_comes, .drop = target_drop };
	assert_int_equal(target_ask(t, j, &e), -ETIMEDOUT);
	assert_non_null(strstr(e.msg, "do not answer"));
	assert_true(t->silent);
	assert_int_equal(mem_u32(t->mem, at(0), &word, NULL), -ETIMEDOUT);
	assert_int_equal(target_maps_now(t, &maps, NULL), -ETIMEDOUT);
	assert_int_equal(target_wake(t, NULL), -ETIMEDOUT);
	assert_int_equal(target_alive(t, NULL), -ETIMEDOUT);
	target_rest(t);
	left = descriptors();
	target_free(t);
	assert_int_equal(descriptors(), left);
	for (int i = 0; i < 100 && descriptors() != before; i++)
		usleep(100000);
	assert_int_equal(descriptors(), before);
}

static void ask(struct target *t)
{
	assert_int_equal(target_wake(t, NULL), 0);
	target_linger(t);
}

static size_t awake(struct target *const *t, size_t n)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++)
		k += !t[i]->resting;
	return k;
}

/* Each has one descriptor more than at rest. */
static void few_of_a_pool_stay_awake(void **state)
{
	enum { N = TARGET_AWAKE_MAX + 3 };
	struct target_pool pool = { .n = 0 };
	struct target *t[N];
	size_t at_rest, hits = 0, before = descriptors();

	(void)state;
	for (size_t i = 0; i < N; i++) {
		t[i] = opened();
		rest(t[i]);
		target_in_pool(t[i], &pool);
	}
	at_rest = descriptors();
	assert_int_equal(at_rest, before + N);
	for (size_t i = 0; i < N; i++)
		ask(t[i]);
	assert_int_equal(descriptors(), at_rest + TARGET_AWAKE_MAX);
	assert_int_equal(awake(t, N), TARGET_AWAKE_MAX);
	reads_only_what_is_there(t[0]);
	reads_only_what_is_there(t[N - 2]);
	assert_true(!t[0]->resting && t[N - 2]->resting);
	for (size_t i = 0; i < N; i++) { /* in turn: most were awake when they were asked */
		hits += !t[i]->resting;
		ask(t[i]);
	}
	assert_int_equal(hits, TARGET_AWAKE_MAX);
	target_rest(t[0]);
	assert_int_equal(pool.n, TARGET_AWAKE_MAX - 1);
	for (size_t i = 0; i < N; i++)
		target_free(t[i]);
	assert_true(!pool.n && descriptors() == before);
}

static void one_of_a_pool_that_nobody_asks_rests(void **state)
{
	enum { N = TARGET_AWAKE_MAX + 1 };
	struct target_pool pool = { .n = 0 };
	struct target *t[N];

	(void)state;
	for (size_t i = 0; i < N; i++) {
		t[i] = opened();
		rest(t[i]);
		target_in_pool(t[i], &pool);
		ask(t[i]);
	}
	assert_false(t[0]->resting);
	for (size_t k = 0; k <= TARGET_AWAKE_STALE; k++) /* all but the first one */
		ask(t[1 + k % (N - 1)]);
	assert_true(t[0]->resting);
	assert_int_equal(awake(t, N), TARGET_AWAKE_MAX);
	for (size_t i = 0; i < N; i++)
		target_free(t[i]);
}

/* A list without an end, for example. */
static void one_that_takes_too_long_is_not_asked_again(void **state)
{
	struct target *t = opened();
	uint32_t word;

	(void)state;
	rest(t);
	assert_int_equal(mem_u32(t->mem, at(0), &word, NULL), 0);
	assert_true(t->asked_ns > 0);
	t->asked_ns = (LIMIT_ASKED_MS + 3600000ull) * 1000000;
	t->opened_ns = now_ns();
	assert_int_equal(mem_u32(t->mem, at(0), &word, NULL), -E2BIG);
	t->opened_ns -= LIMIT_ASKED_SHARE * 3600000ull * 1000000;
	assert_int_equal(mem_u32(t->mem, at(0), &word, NULL), 0);
	target_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_that_rests_has_one_descriptor, setup, teardown),
		cmocka_unit_test_setup_teardown(many_pieces_are_read_asleep_and_awake, setup,
						teardown),
		cmocka_unit_test_setup_teardown(one_that_ends_while_its_files_are_open, setup,
						teardown),
		cmocka_unit_test_setup_teardown(few_of_a_pool_stay_awake, setup, teardown),
		cmocka_unit_test_setup_teardown(one_of_a_pool_that_nobody_asks_rests, setup,
						teardown),
		cmocka_unit_test_setup_teardown(its_end_and_its_exec_are_seen, setup, teardown),
		cmocka_unit_test_setup_teardown(what_a_child_opened_its_parent_goes_on_with, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_is_cut_off_is_no_target, setup, teardown),
		cmocka_unit_test(files_of_this_machine_are_told_from_others),
	};

	const struct CMUnitTest threads[] = {
		cmocka_unit_test_setup_teardown(one_that_is_silent_is_left_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(one_that_takes_too_long_is_not_asked_again, setup,
						teardown),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	by_worker = true;
	failed += cmocka_run_group_tests_name("by a worker", tests, NULL, NULL);
	return failed + cmocka_run_group_tests(threads, NULL, NULL);
}
