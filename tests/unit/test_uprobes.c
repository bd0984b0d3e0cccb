/*
 * tests/unit/test_uprobes.c - a probe's page is in the page cache whenever the kernel is asked for
 * the probe: a file's pages are thrown out of it, and the kernel that is asked is ours.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "probe/uprobes/uprobes.h"

enum { PAGE = 4096, STRIDE = 4 << 20, SITES = 6, SIZE = STRIDE * SITES };
/* Sites of the first of two groups: more than a few. */
enum { FIRST = 4 };

/* Shared with the attacher, which is this program once more and finds both files by the environment. */
#define WORLD_FILE "TEST_UPROBES_WORLD"
#define PROBED	   "TEST_UPROBES_PROBED"

static struct world {
	volatile int asked;	 /* how often for probes */
	volatile int missing;	 /* sites whose pages were not there then */
	volatile int kills;	 /* it is killed so many times when it asks */
	volatile int sites;	 /* how many probes were asked for */
	volatile int slow_ms;	 /* CPU time that a probe takes */
	volatile bool slow_once; /* only when the kernel is asked the next time */
} * w;
static int file;
static const uint8_t *view; /* the file, mapped: nothing of it is touched */

/* An instruction of two bytes or more lies on two pages there. */
static uint64_t offset_of(size_t site)
{
	return site * STRIDE + (site % 2 ? 17 * PAGE - 1 : 3 * PAGE + 8);
}

static bool resident(uint64_t off)
{
	unsigned char in[2] = { 0 };
	uint64_t last = off + 15;

	if (mincore((void *)(view + off / PAGE * PAGE), PAGE, &in[0]) ||
	    mincore((void *)(view + last / PAGE * PAGE), PAGE, &in[1]))
		return false;
	return in[0] & in[1] & 1;
}

static int count_missing(const uint64_t *off, size_t n)
{
	int missing = 0;

	for (size_t i = 0; i < n; i++)
		missing += !resident(off[i]);
	return missing;
}

static long cpu_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int kernel_asked(const uint64_t *off, size_t n)
{
	w->asked++;
	w->sites += (int)n;
	for (clock_t end = cpu_ms() + w->slow_ms * (int)n; cpu_ms() < end;)
		;
	if (w->slow_once)
		w->slow_ms = 0;
	w->missing += count_missing(off, n);
	if (w->kills > 0) {
		w->kills--;
		kill(getpid(), SIGKILL);
	}
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* In place of libc's: all that is asked of BPF, and of perf, comes by here. */
long syscall(long nr, ...)
{
	va_list ap;
	long a[6];

	va_start(ap, nr);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (nr == SYS_perf_event_open) {
		const struct perf_event_attr *attr = (const void *)a[0];

		return kernel_asked((const uint64_t[]){ attr->config2 }, 1);
	}
	if (nr == SYS_bpf && a[0] == BPF_LINK_CREATE) {
		const uint64_t *attr = (const void *)a[1]; /* path, offsets, ..., count */

		return kernel_asked((const void *)(uintptr_t)attr[3], ((const uint32_t *)attr)[12]);
	}
	if (nr == SYS_bpf)
		return open("/dev/null", O_RDONLY | O_CLOEXEC);
	errno = ENOSYS;
	return -1;
}

/* In place of libbpf's: no program is ever called here. */
int bpf_program__fd(const struct bpf_program *prog)
{
	static int fd = -1;

	(void)prog;
	if (fd < 0)
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return fd;
}

/* Maps both. */
static bool share(int world)
{
	w = mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE, MAP_SHARED, world, 0);
	view = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, file, 0);
	return w != MAP_FAILED && view != MAP_FAILED;
}

static int set_up(void **state)
{
	/* where we are: /tmp may have no disk behind it */
	static char name[] = "uprobes-XXXXXX", world_name[] = "uprobes-world-XXXXXX";
	static char buf[1 << 16];
	int world = mkostemp(world_name, O_CLOEXEC);

	(void)state;
	file = mkostemp(name, O_CLOEXEC);
	if (world < 0 || file < 0 || ftruncate(world, sizeof(*w)))
		return -1;
	for (size_t i = 0; i < SIZE / sizeof(buf); i++)
		if (write(file, buf, sizeof(buf)) != sizeof(buf))
			return -1;
	setenv(WORLD_FILE, world_name, 1);
	setenv(PROBED, name, 1);
	return share(world) ? fsync(file) : -1;
}

static int tear_down(void **state)
{
	(void)state;
	return unlink(getenv(WORLD_FILE)) | unlink(getenv(PROBED));
}

/* In an attacher: what its maker has. */
static void share_in_attacher(void)
{
	const char *world = getenv(WORLD_FILE), *probed = getenv(PROBED);

	if (!world || !probed)
		return;
	file = open(probed, O_RDONLY | O_CLOEXEC);
	if (!share(open(world, O_RDWR | O_CLOEXEC)))
		exit(1);
}

/* False where the file system keeps everything in memory. */
static bool evicted(void)
{
	uint64_t off[SITES];

	for (size_t i = 0; i < SITES; i++)
		off[i] = offset_of(i);
	posix_fadvise(file, 0, SIZE, POSIX_FADV_DONTNEED);
	return count_missing(off, SITES) == SITES;
}

static void put(bool multi, int kills)
{
	struct uprobe_site sites[SITES] = {};
	struct uprobes u = {};
	char path[64];

	*w = (struct world){ .kills = kills };
	for (size_t i = 0; i < SITES; i++)
		sites[i].file_off = offset_of(i);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	if (!evicted()) {
		print_message("pages cannot be evicted here\n");
		skip();
	}
	assert_int_equal(uprobes_put(&u, NULL, multi, getpid(), path, sites, SITES, NULL), 0);
	/* Taken out, and evicted, and put in again. */
	assert_int_equal(uprobes_detach(&u, NULL, NULL), 0);
	assert_true(evicted());
	assert_int_equal(uprobes_attach(&u, NULL), 0);
	assert_int_equal(u.deaths, kills);
	uprobes_free(&u);
	assert_int_equal(w->missing, 0);
}

static void pages_are_read_before_one_link_is_made(void **state)
{
	(void)state;
	put(true, 0);
	assert_int_equal(w->asked, 2);
}

static void pages_are_read_before_each_event_is_opened(void **state)
{
	(void)state;
	if (access("/sys/bus/event_source/devices/uprobe/type", R_OK))
		skip();
	put(false, 0);
	assert_int_equal(w->asked, 2 * SITES);
}

/* Each attacher that is killed at it is followed by one that frees what it left. */
static void a_attacher_that_is_killed_at_it_is_followed_by_another(void **state)
{
	(void)state;
	put(true, 3);
	/* Three killed at it; a fourth puts in and takes out; then what was asked for, twice. */
	assert_int_equal(w->asked, 3 + 1 + 2);
}

/* Killed while it holds them: whoever lets go of them frees what may be left. */
static void what_a_killed_attacher_left_is_freed_at_the_end(void **state)
{
	struct uprobe_site site = { .file_off = offset_of(0) };
	struct uprobes u = {};
	char path[64];

	(void)state;
	*w = (struct world){};
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	assert_int_equal(uprobes_put(&u, NULL, true, getpid(), path, &site, 1, NULL), 0);
	assert_false(uprobes_dead(&u));
	kill(u.attacher.pid, SIGKILL);
	for (int i = 0; !uprobes_dead(&u) && i < 10000; i++)
		usleep(1000);
	assert_true(uprobes_dead(&u));
	assert_int_equal(uprobes_attach(&u, NULL), -ECHILD);
	uprobes_free(&u);
	assert_int_equal(w->asked, 2);
	assert_int_equal(u.deaths, 1);
}

static int count_fds(pid_t pid)
{
	char path[64];
	int n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	d = opendir(path);
	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static struct uprobe_site slow_sites[SITES];

/* Holds them in two groups of one file; @prog: nothing calls it here. */
static void hold_slowly(struct uprobes *u, struct bpf_program *prog, int ms)
{
	struct uprobe_group g[] = {
		{ .prog = prog, .sites = slow_sites, .n = FIRST },
		{ .prog = prog, .sites = slow_sites + FIRST, .n = SITES - FIRST }
	};

	*w = (struct world){};
	w->slow_ms = ms;
	for (size_t i = 0; i < SITES; i++)
		slow_sites[i].file_off = offset_of(i);
	for (size_t i = 0; i < 2; i++)
		snprintf(g[i].path, sizeof(g[i].path), "/proc/self/fd/%d", file);
	*u = (struct uprobes){};
	assert_int_equal(uprobes_hold(u, g, 2, true, getpid(), NULL, NULL), 0);
}

/* How long a probe takes, by what is said: what it takes here, by a clock of whole ms, and more on a busy machine. */
static long told_ms(const struct err *e)
{
	const char *at = strstr(e->msg, "takes the kernel ");

	assert_non_null(at);
	return strtol(at + strlen("takes the kernel "), NULL, 10);
}

/* One probe that goes in alone tells so, twice, and then no other is put in: at first, and later. */
static void nothing_is_put_in_where_that_takes_the_kernel_long(void **state)
{
	struct bpf_program *prog = (struct bpf_program *)&slow_sites;
	struct err e = { "" };
	struct uprobes u;
	int fds;

	(void)state;
	hold_slowly(&u, prog, 40);
	fds = count_fds(u.attacher.pid);
	assert_int_equal(uprobes_attach(&u, &e), -EUSERS);
	assert_true(told_ms(&e) >= 39);
	assert_int_equal(w->sites, 2);
	assert_int_equal(count_fds(u.attacher.pid), fds);
	w->slow_ms = 2;
	assert_int_equal(uprobes_attach(&u, &e), 0);
	assert_int_equal(w->sites, 2 + SITES);
	assert_int_equal(uprobes_detach(&u, NULL, NULL), 0);
	w->slow_ms = 40; /* the file is mapped more often meanwhile */
	assert_int_equal(uprobes_attach(&u, &e), -EUSERS);
	assert_int_equal(w->sites, 2 + SITES + FIRST + 1);
	w->slow_ms = 210; /* so long that it is not tried twice */
	w->sites = 0;
	assert_int_equal(uprobes_attach(&u, &e), -EUSERS);
	assert_int_equal(w->sites, 1);
	assert_int_equal(count_fds(u.attacher.pid), fds);
	uprobes_free(&u);
}

/* As when a hypervisor takes our CPU away: at the first probe, and when they are put in again. */
static void one_slow_moment_refuses_nothing(void **state)
{
	struct uprobes u;
	int fds;

	(void)state;
	hold_slowly(&u, (struct bpf_program *)&slow_sites, 40);
	fds = count_fds(u.attacher.pid);
	w->slow_once = true;
	assert_int_equal(uprobes_attach(&u, NULL), 0);
	assert_int_equal(w->sites, 1 + SITES);
	assert_int_equal(uprobes_detach(&u, NULL, NULL), 0);
	w->slow_ms = 40;
	assert_int_equal(uprobes_attach(&u, NULL), 0);
	assert_int_equal(w->sites, 1 + SITES + FIRST + SITES);
	assert_int_equal(uprobes_detach(&u, NULL, NULL), 0);
	assert_int_equal(count_fds(u.attacher.pid), fds);
	uprobes_free(&u);
}

/* Nor does an attacher try alone what another one has just put in. */
static void what_another_has_tried_goes_in_at_once(void **state)
{
	struct uprobes u;
	int asked;

	(void)state;
	hold_slowly(&u, (struct bpf_program *)&slow_sites, 2);
	u.tried = true;
	asked = w->asked;
	assert_int_equal(uprobes_attach(&u, NULL), 0);
	assert_int_equal(w->asked - asked, 2); /* groups */
	uprobes_free(&u);
}

/* However long that takes. */
static void what_was_left_behind_is_freed_all_the_same(void **state)
{
	struct bpf_program *prog = (struct bpf_program *)&slow_sites;
	struct uprobes u;

	(void)state;
	hold_slowly(&u, NULL, 30);
	assert_int_equal(uprobes_attach(&u, NULL), 0);
	uprobes_free(&u);
	hold_slowly(&u, prog, 30);
	kill(u.attacher.pid, SIGKILL);
	assert_int_equal(uprobes_mend(&u, NULL), 0);
	assert_int_equal(w->sites, SITES);
	uprobes_free(&u);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

/* A window whose probes are to stay in for @ms at most. */
static void look_once(struct uprobes *u, unsigned ms, struct uprobe_windowed *done)
{
	const struct uprobe_window win = { .end = 1000000,
					   .keep_until = now_ns() + ms * 1000000ull };

	assert_int_equal(uprobes_window(u, &win, NULL), 0);
	assert_int_equal(uprobes_windowed(u, done, NULL), 0);
	assert_int_equal(done->detached, 0);
	assert_true(done->closed - done->opened >= win.end);
}

/* In shared memory, not at its beginning. */
enum { OPEN_OFF = 3 * PAGE + 64 };

static struct uprobe_open new_open(struct gpb_open **open)
{
	int fd = memfd_create("open", MFD_CLOEXEC);
	char *m;

	assert_int_equal(ftruncate(fd, OPEN_OFF + sizeof(**open)), 0);
	m = mmap(NULL, OPEN_OFF + sizeof(**open), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(m, MAP_FAILED);
	*open = (struct gpb_open *)(m + OPEN_OFF);
	return (struct uprobe_open){ .at = *open, .map_fd = fd, .off = OPEN_OFF };
}

/* Then they are in until somebody takes them out or, when nobody says anything, until a given time. */
static void probes_of_a_window_stay_in_for_a_limited_time(void **state)
{
	struct uprobe_group g = { .n = 1, .sites = &(struct uprobe_site){ .file_off = 8 } };
	struct gpb_open *open;
	struct uprobe_open where;
	struct uprobe_windowed done;
	struct uprobes u = {};
	uint64_t closed, work = 0;
	int fds;

	(void)state;
	*w = (struct world){};
	snprintf(g.path, sizeof(g.path), "/proc/self/fd/%d", file);
	where = new_open(&open);
	assert_int_equal(uprobes_hold(&u, &g, 1, true, getpid(), &where, NULL), 0);
	fds = count_fds(u.attacher.pid);
	look_once(&u, 60000, &done);
	assert_int_equal(open->since, done.opened);
	assert_int_equal(open->bits, 0);
	assert_int_equal(count_fds(u.attacher.pid), fds + 1);
	assert_int_equal(uprobes_detach(&u, &work, NULL), 0);
	assert_true(work > 0);
	assert_int_equal(count_fds(u.attacher.pid), fds);
	assert_int_equal(uprobes_let_go(&u), 0);
	look_once(&u, 100, &done);
	closed = done.closed;
	for (int i = 0; !uprobes_let_go(&u) && i < 10000; i++)
		usleep(1000);
	assert_true(uprobes_let_go(&u) > closed);
	for (int i = 0; count_fds(u.attacher.pid) > fds && i < 10000; i++)
		usleep(1000);
	assert_int_equal(count_fds(u.attacher.pid), fds);
	assert_int_equal(w->asked, 2);
	assert_int_equal(uprobes_attach(&u, NULL), 0);
	assert_int_equal(w->asked, 3);
	uprobes_leave(&u);
	uprobes_free(&u);
	assert_int_equal(u.deaths, 0);
	close(where.map_fd);
	munmap((char *)open - OPEN_OFF, OPEN_OFF + sizeof(*open));
}

/* Sets of other files come and go while those that are there stay; what fails, fails alone. */
static void sets_are_added_and_dropped(void **state)
{
	struct bpf_program *prog = (struct bpf_program *)&slow_sites;
	struct uprobe_group g = { .prog = prog, .sites = slow_sites, .n = 2 };
	struct err e = { "" };
	struct uprobes u;
	unsigned one, two;
	int fds;

	(void)state;
	hold_slowly(&u, prog, 2);
	snprintf(g.path, sizeof(g.path), "/proc/self/fd/%d", file);
	assert_int_equal(uprobes_add(&u, &g, 1, 0, &one, NULL), 0);
	assert_int_equal(w->sites, 0);
	fds = count_fds(u.attacher.pid);
	assert_int_equal(uprobes_attach(&u, NULL), 0);
	assert_int_equal(w->sites, SITES + 2);
	assert_int_equal(uprobes_add(&u, &g, 1, 0, &two, NULL), 0); /* it is put in at once */
	assert_int_equal(w->sites, SITES + 2 + 2);
	assert_int_equal(uprobes_drop(&u, two, NULL), 0);
	assert_int_equal(uprobes_failed(&u, two, NULL), -ENOENT);
	w->slow_ms = 30;
	assert_int_equal(uprobes_add(&u, &g, 1, 0, &two, &e), -EUSERS);
	assert_true(told_ms(&e) >= 29);
	snprintf(g.path, sizeof(g.path), "/nowhere/at/all");
	assert_int_equal(uprobes_add(&u, &g, 1, 0, &two, &e), -ENOENT);
	w->slow_ms = 2;
	w->sites = 0;
	assert_int_equal(uprobes_detach(&u, NULL, NULL), 0);
	assert_int_equal(count_fds(u.attacher.pid), fds);
	assert_int_equal(uprobes_attach(&u, NULL), 0);
	assert_int_equal(w->sites, SITES + 2);
	/* The next attacher is told of all of them, and only of them. */
	kill(u.attacher.pid, SIGKILL);
	assert_int_equal(uprobes_mend(&u, NULL), 0);
	assert_int_equal(w->sites, 2 * (SITES + 2));
	assert_int_equal(count_fds(u.attacher.pid), fds);
	uprobes_free(&u);
}

/* From then on: it is the file of an added set that is mapped too often. */
static void an_added_set_fails_alone(void **state)
{
	struct bpf_program *prog = (struct bpf_program *)&slow_sites;
	struct uprobe_group g = { .prog = prog, .sites = slow_sites, .n = SITES };
	struct err e = { "" };
	struct uprobes u;
	unsigned set;

	(void)state;
	hold_slowly(&u, NULL, 30); /* without a program none is refused */
	snprintf(g.path, sizeof(g.path), "/proc/self/fd/%d", file);
	assert_int_equal(uprobes_add(&u, &g, 1, 0, &set, NULL), 0);
	assert_int_equal(uprobes_attach(&u, NULL), 0);
	assert_int_equal(w->sites, SITES + 2);
	assert_int_equal(uprobes_failed(&u, set, &e), -EUSERS);
	assert_true(told_ms(&e) >= 29);
	assert_int_equal(uprobes_detach(&u, NULL, NULL), 0);
	assert_int_equal(uprobes_attach(&u, NULL), 0);
	assert_int_equal(w->sites, SITES + 2 + SITES);
	uprobes_free(&u);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_put_in_where_that_takes_the_kernel_long),
		cmocka_unit_test(one_slow_moment_refuses_nothing),
		cmocka_unit_test(what_another_has_tried_goes_in_at_once),
		cmocka_unit_test(what_was_left_behind_is_freed_all_the_same),
		cmocka_unit_test(pages_are_read_before_one_link_is_made),
		cmocka_unit_test(pages_are_read_before_each_event_is_opened),
		cmocka_unit_test(a_attacher_that_is_killed_at_it_is_followed_by_another),
		cmocka_unit_test(what_a_killed_attacher_left_is_freed_at_the_end),
		cmocka_unit_test(probes_of_a_window_stay_in_for_a_limited_time),
		cmocka_unit_test(sets_are_added_and_dropped),
		cmocka_unit_test(an_added_set_fails_alone),
	};

	share_in_attacher();
	uprobes_main(argc, argv);
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
