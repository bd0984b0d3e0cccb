/*
 * tests/unit/test_leftovers.c - breakpoints in a child's code are found where they are, and nothing
 * else is taken for one. That they are freed, and others' stay, tests/e2e/heal.sh shows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <elf.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "arch/breakpoint.h"
#include "base/loop/cancel.h"
#include "base/limits.h"
#include "probe/uprobes/leftovers.h"
#include "probe/uprobes/uprobes.h"

#ifdef __aarch64__
static const uint8_t brk_insn[4] = { 0xa0, 0x00, 0x20, 0xd4 };
enum { BARRED = 0 };
#else
static const uint8_t brk_insn[1] = { 0xcc };
enum { BARRED = 1 }; /* a jump over eight bytes is no place for a probe */
#endif

enum { PAGE = 4096, PAGES = 16, OFFSET = 2 * PAGE, INSN = sizeof(brk_insn) };

static const uint8_t jump_over_eight[2] = { 0xeb, 0x08 };

static void breakpoints_are_those_that_are_new(void **state)
{
	uint8_t was[64] = { 0 }, now[64] = { 0 };

	(void)state;
	assert_int_equal(breakpoint_find(now, was, 64, 0), 64);
	memcpy(now + 8, brk_insn, INSN);
	memcpy(now + 60, brk_insn, INSN);
	memcpy(now + 16, brk_insn, INSN);
	memcpy(was + 16, brk_insn, INSN); /* the compiler's own */
	now[24] = 0x90;
	assert_int_equal(breakpoint_find(now, was, 64, 0), 8);
	assert_int_equal(breakpoint_find(now, was, 64, 9), 60);
	assert_int_equal(breakpoint_find(now, was, 60, 9), 60);
	assert_int_equal(breakpoint_find(now, was, 64, 61), 64);
	assert_int_equal(breakpoint_find(now, was, 0, 0), 0);
}

static ino_t code_ino; /* the file that was made last */
static bool jumps;     /* new files have a jump over eight bytes where the last of changes[] is */

/* Code of a program without section headers, which may be Go's; a copy is mapped from OFFSET on. */
static int new_file(const char *magic)
{
	char name[] = "/tmp/leftoversXXXXXX";
	uint8_t bytes[OFFSET + PAGES * PAGE];
	Elf64_Ehdr h = { .e_phentsize = sizeof(Elf64_Phdr) };
	int fd = mkstemp(name);
	struct stat st;

	assert_true(fd >= 0);
	unlink(name);
	memset(bytes, 0x90, sizeof(bytes));
	memcpy(h.e_ident, magic, SELFMAG);
	h.e_ident[EI_CLASS] = ELFCLASS64;
	memcpy(bytes, &h, sizeof(h));
	memcpy(bytes + OFFSET + 5 * PAGE + 16, brk_insn, INSN);
	if (jumps)
		memcpy(bytes + OFFSET + 9 * PAGE + 4, jump_over_eight, sizeof(jump_over_eight));
	assert_int_equal(write(fd, bytes, sizeof(bytes)), sizeof(bytes));
	assert_int_equal(fstat(fd, &st), 0);
	code_ino = st.st_ino;
	return fd;
}

/* What the child has written into its code, by offset in the mapping. */
static const struct change {
	size_t at;
	bool breakpoint;
} changes[] = { { 8, true },
		{ 3 * PAGE + PAGE - 4, true },
		{ 5 * PAGE + 20, false },
		{ 9 * PAGE, true },
		{ 9 * PAGE + 4, true } };

static void __attribute__((noreturn)) child_main(int fd, uint64_t *addr, bool write_it)
{
	uint8_t *m = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, OFFSET);

	prctl(PR_SET_PDEATHSIG, SIGKILL); /* also when a test fails */
	if (m == MAP_FAILED)
		_exit(1);
	for (size_t i = 0; write_it && i < sizeof(changes) / sizeof(*changes); i++)
		if (changes[i].breakpoint)
			memcpy(m + changes[i].at, brk_insn, INSN);
		else
			m[changes[i].at] = 0x55;
	for (size_t i = 0; i < PAGES; i++)
		*(volatile uint8_t *)(m + i * PAGE); /* pages of the file, present */
	mprotect(m, PAGES * PAGE, PROT_READ | PROT_EXEC);
	__atomic_store_n(addr, (uint64_t)(uintptr_t)m, __ATOMIC_RELEASE);
	for (;;)
		pause();
}

struct child {
	pid_t pid;
	uint64_t addr;
	struct target *t;
};

static struct child new_child(const char *magic, bool write_it)
{
	uint64_t *addr = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			      0);
	struct child c = {};
	int fd = new_file(magic);

	c.pid = fork();
	if (!c.pid)
		child_main(fd, addr, write_it);
	close(fd);
	for (int i = 0; !__atomic_load_n(addr, __ATOMIC_ACQUIRE) && i < 10000; i++)
		usleep(1000);
	c.addr = *addr;
	assert_int_not_equal(c.addr, 0);
	munmap(addr, PAGE);
	assert_int_equal(target_open(c.pid, &c.t, NULL), 0);
	return c;
}

static void end_child(struct child *c)
{
	target_free(c->t);
	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
}

static void finds_all_and_no_other(void **state)
{
	struct child c = new_child(ELFMAG, true);
	struct leftovers l = {};
	size_t n = 0;

	(void)state;
	assert_int_equal(leftovers_find(c.t, &l, NULL), 0);
	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
		if (!changes[i].breakpoint)
			continue;
		assert_true(n < l.at.n);
		assert_int_equal(l.at.at[n].addr, c.addr + changes[i].at);
		assert_int_equal(l.at.at[n].file_off, OFFSET + changes[i].at);
		n++;
	}
	assert_int_equal(l.at.n, n);
	assert_int_equal(l.files.n, 1);
	assert_int_equal(l.unseen, 0);
	leftovers_fini(&l);
	end_child(&c);
}

static void pages_of_its_own_are_those_it_wrote(void **state)
{
	struct child c = new_child(ELFMAG, true);
	const struct mapping *m = maps_find(&c.t->maps, c.addr);
	uint64_t *pages = NULL;
	size_t n = 0;

	(void)state;
	assert_non_null(m);
	assert_int_equal(target_own_pages(c.t, m, &pages, &n, NULL), 0);
	assert_int_equal(n, 4);
	assert_int_equal(pages[0], c.addr);
	assert_int_equal(pages[1], c.addr + 3 * PAGE);
	assert_int_equal(pages[2], c.addr + 5 * PAGE);
	assert_int_equal(pages[3], c.addr + 9 * PAGE);
	free(pages);
	end_child(&c);
}

static void untouched_code_and_code_that_is_not_gos_have_none(void **state)
{
	struct child clean = new_child(ELFMAG, false), other = new_child("#!/b", true);
	struct leftovers l = {};

	(void)state;
	assert_int_equal(leftovers_find(clean.t, &l, NULL), 0);
	assert_int_equal(l.at.n, 0);
	leftovers_fini(&l);
	assert_int_equal(leftovers_find(other.t, &l, NULL), 0);
	assert_int_equal(l.at.n, 0);
	leftovers_fini(&l);
	end_child(&clean);
	end_child(&other);
}

/* They may be the debugger's. */
static void one_that_is_traced_is_left_alone(void **state)
{
	struct child c = new_child(ELFMAG, true);
	struct leftovers l = {};
	struct err e = {};
	char want[64];

	(void)state;
	assert_int_equal(ptrace(PTRACE_SEIZE, c.pid, NULL, NULL), 0);
	assert_int_equal(leftovers_find(c.t, &l, NULL), 0);
	assert_int_equal(leftovers_heal(c.t, &l, &e), -EBUSY);
	snprintf(want, sizeof(want), "is being traced by %d", getpid());
	assert_non_null(strstr(e.msg, want));
	assert_int_equal(l.freed, 0);
	leftovers_fini(&l);
	end_child(&c);
}

/* ---- a process that maps much, to hold up whoever looks at it ---- */

enum { HOSTILE_MAPPINGS = 2000 };
static const size_t hostile_size = 1ull << 32;

static void map_often(int fd)
{
	for (int i = 0; i < HOSTILE_MAPPINGS; i++) /* neighbours do not become one mapping */
		if (mmap(NULL, hostile_size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_NORESERVE, fd,
			 i % 2 * PAGE) == MAP_FAILED)
			_exit(1);
}

/* As new_child(), and @other_fd, which it takes over, is mapped as often as that. */
static struct child new_hostile(int other_fd)
{
	uint64_t *addr = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			      0);
	struct child c = {};
	int fd = new_file(ELFMAG);

	c.pid = fork();
	if (!c.pid) {
		map_often(other_fd);
		child_main(fd, addr, true);
	}
	close(fd);
	close(other_fd);
	for (int i = 0; !__atomic_load_n(addr, __ATOMIC_ACQUIRE) && i < 10000; i++)
		usleep(1000);
	c.addr = *addr;
	assert_int_not_equal(c.addr, 0);
	munmap(addr, PAGE);
	assert_int_equal(target_open(c.pid, &c.t, NULL), 0);
	return c;
}

static double cpu_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

/* 1 GiB and more of nothing, which could be Go's. */
static int new_hollow_file(void)
{
	int fd = new_file(ELFMAG);

	assert_int_equal(ftruncate(fd, 1ll << 40), 0);
	return fd;
}

/* The file has one page; what is mapped behind its end has none. */
static void mappings_longer_than_their_file_cost_nothing(void **state)
{
	int script = new_file("#!/b"), go = new_file(ELFMAG);

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct child c = new_hostile(i ? go : script);
		struct leftovers l = {};
		double before = cpu_s();

		assert_int_equal(leftovers_find(c.t, &l, NULL), 0);
		assert_true(cpu_s() - before < 1);
		assert_int_equal(l.at.n, 4);
		assert_int_equal(l.unseen, 0);
		leftovers_fini(&l);
		end_child(&c);
	}
}

/* The bound of pages ends it; what was not looked at is counted. */
static void large_files_that_are_mapped_often_are_counted(void **state)
{
	size_t pages = hostile_size / (size_t)sysconf(_SC_PAGESIZE);
	struct child c = new_hostile(new_hollow_file());
	struct leftovers l = {};
	double before = cpu_s();

	(void)state;
	assert_int_equal(leftovers_find(c.t, &l, NULL), 0);
	assert_true(cpu_s() - before < 1);
	assert_in_range(l.unseen, HOSTILE_MAPPINGS - LIMIT_LEFTOVERS_PAGES / pages,
			HOSTILE_MAPPINGS);
	leftovers_fini(&l);
	end_child(&c);
}

static uint64_t long_ago(void)
{
	return 1;
}

static void stops_when_it_is_asked_to(void **state)
{
	struct child c = new_child(ELFMAG, true);
	struct leftovers l = {};

	(void)state;
	cancel_when(long_ago);
	assert_int_equal(leftovers_find(c.t, &l, NULL), -ECANCELED);
	cancel_when(NULL);
	assert_int_equal(leftovers_find(c.t, &l, NULL), 0);
	cancel_when(long_ago);
	assert_int_equal(leftovers_heal(c.t, &l, NULL), -ECANCELED);
	cancel_when(NULL);
	leftovers_fini(&l);
	end_child(&c);
}

/* ---- how long it may take, by a clock that only pages and probes move on ---- */

#define SEC 1000000000ull

static struct slow {
	bool stands; /* the clock is this one */
	uint64_t now_ns, page_ns, put_ns;
	size_t puts, sites;
	off_t bad; /* the page of the file that cannot be read; 0: none */
} slow;

int clock_gettime(clockid_t id, struct timespec *ts);
int clock_gettime(clockid_t id, struct timespec *ts)
{
	if (!slow.stands)
		return (int)syscall(SYS_clock_gettime, id, ts);
	ts->tv_sec = (time_t)(slow.now_ns / SEC);
	ts->tv_nsec = (long)(slow.now_ns % SEC);
	return 0;
}

static bool is_code(int fd, off_t at)
{
	struct stat st;

	return at >= OFFSET && at < OFFSET + PAGES * PAGE && !fstat(fd, &st) &&
	       st.st_ino == code_ino;
}

/* Pages of the file: others are read of libraries, to tell what they are. */
ssize_t pread(int fd, void *buf, size_t n, off_t at)
{
	bool code = n == PAGE && is_code(fd, at);

	if (code)
		slow.now_ns += slow.page_ns;
	if (slow.bad && code && at == slow.bad) {
		errno = EIO;
		return -1;
	}
	return syscall(SYS_pread64, fd, buf, n, at);
}

bool uprobes_have_multi(void)
{
	return true;
}

int uprobes_put(struct uprobes *u, struct bpf_program *prog, bool multi, pid_t pid,
		const char *path, const struct uprobe_site *s, size_t n, struct err *e)
{
	(void)u;
	(void)prog;
	(void)multi;
	(void)pid;
	(void)path;
	(void)s;
	(void)e;
	slow.now_ns += slow.put_ns;
	slow.puts++;
	slow.sites += n;
	return 0;
}

void uprobes_free(struct uprobes *u)
{
	(void)u;
}

/* A process cannot hold up whoever is about to profile it by code that differs everywhere. */
static void a_search_takes_two_seconds(void **state)
{
	struct child c = new_child(ELFMAG, true);
	struct leftovers l = {};

	(void)state;
	/* It has written to four pages, of which the second holds up the rest. */
	slow = (struct slow){ .stands = true, .now_ns = SEC, .page_ns = 11 * SEC / 10 };
	assert_int_equal(leftovers_find(c.t, &l, NULL), 0);
	assert_int_equal(slow.now_ns, SEC + 2 * slow.page_ns);
	assert_int_equal(l.at.n, 2);
	assert_true(l.unseen > 0); /* the rest of this mapping, and those after it */
	leftovers_fini(&l);
	slow = (struct slow){ .stands = true, .now_ns = SEC, .page_ns = 4 * SEC / 10 };
	assert_int_equal(leftovers_find(c.t, &l, NULL), 0);
	assert_int_equal(l.at.n, 4);
	assert_int_equal(l.unseen, 0);
	leftovers_fini(&l);
	slow = (struct slow){ 0 };
	end_child(&c);
}

/* ---- pages that cannot be had ---- */

/* The second of the four pages that it has written to is bad on the disk: the others are searched, and it is said. */
static void a_page_that_the_file_does_not_give_is_unseen(void **state)
{
	struct child c = new_child(ELFMAG, true);
	struct leftovers l = {};

	(void)state;
	slow.bad = OFFSET + 3 * PAGE;
	assert_int_equal(leftovers_find(c.t, &l, NULL), 0);
	slow.bad = 0;
	assert_int_equal(l.at.n, 3);
	assert_int_equal(l.at.at[0].addr, c.addr + changes[0].at);
	assert_int_equal(l.at.at[1].addr, c.addr + changes[3].at);
	assert_int_equal(l.unseen, 1);
	leftovers_fini(&l);
	end_child(&c);
}

/* The memory of a process in which something happens just before one page is read. */
static struct meanwhile {
	struct mem mem, *under; /* mem first: casts back */
	struct child *c;
	uint64_t addr;
	bool ends; /* it ends; otherwise it has unmapped the page */
} meanwhile;

static int read_meanwhile(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	const struct meanwhile *w = (const struct meanwhile *)m;

	if (addr == w->addr && w->ends) {
		kill(w->c->pid, SIGKILL);
		waitpid(w->c->pid, NULL, 0);
	} else if (addr == w->addr) {
		return err_set(e, -EFAULT, "no memory at 0x%llx", (unsigned long long)addr);
	}
	return mem_read(w->under, addr, buf, n, e);
}

static void happens(struct child *c, uint64_t addr, bool ends)
{
	meanwhile = (struct meanwhile){ { .read = read_meanwhile }, c->t->mem, c, addr, ends };
	c->t->mem = &meanwhile.mem;
}

static void a_page_that_is_gone_has_none(void **state)
{
	struct child c = new_child(ELFMAG, true);
	struct leftovers l = {};

	(void)state;
	happens(&c, c.addr + 3 * PAGE, false);
	assert_int_equal(leftovers_find(c.t, &l, NULL), 0);
	assert_int_equal(l.at.n, 3);
	assert_int_equal(l.unseen, 0);
	leftovers_fini(&l);
	c.t->mem = meanwhile.under;
	end_child(&c);
}

/* Not "none were found". */
static void a_process_that_ends_meanwhile_is_an_error(void **state)
{
	struct child c = new_child(ELFMAG, true);
	struct leftovers l = {};
	struct err e = { "" };

	(void)state;
	happens(&c, c.addr + 3 * PAGE, true);
	assert_int_equal(leftovers_find(c.t, &l, &e), -ESRCH);
	assert_non_null(strstr(e.msg, "exited"));
	assert_int_equal(l.at.n, 0);
	c.t->mem = meanwhile.under;
	target_free(c.t);
}

/* @n of them in one place of @c, though only the first can be there. */
static struct leftovers many_leftovers(const struct child *c, size_t n)
{
	struct leftovers l = {};
	struct leftover_file *f = vec_add(&l.files, LIMIT_LEFTOVERS);

	assert_non_null(f);
	*f = (struct leftover_file){ .fd = new_file(ELFMAG), .n = n };
	for (size_t i = 0; i < n; i++) {
		struct leftover *one = vec_add(&l.at, LIMIT_LEFTOVERS);

		assert_non_null(one);
		*one = (struct leftover){ .addr = c->addr + 8, .file_off = OFFSET + 8 };
	}
	return l;
}

static void freeing_takes_twenty_seconds(void **state)
{
	struct child c = new_child(ELFMAG, true);
	struct leftovers l = many_leftovers(&c, 1000);
	struct err e = { "" };

	(void)state;
	slow = (struct slow){ .stands = true, .now_ns = SEC, .put_ns = 3 * SEC };
	assert_int_equal(leftovers_heal(c.t, &l, &e), -ETIMEDOUT);
	assert_non_null(strstr(e.msg, "20 s"));
	assert_int_equal(slow.puts, 7); /* the last one began after 18 s */
	leftovers_fini(&l);
	l = many_leftovers(&c, 300);
	slow = (struct slow){ .stands = true, .now_ns = SEC, .put_ns = 3 * SEC };
	assert_int_equal(leftovers_heal(c.t, &l, &e), 0);
	assert_int_equal(slow.puts, 5);
	leftovers_fini(&l);
	slow = (struct slow){ 0 };
	end_child(&c);
}

/* ---- a profile in windows beside what was left ---- */

enum { WINDOW_LOOKS = 20 };

/* Memory in which one breakpoint is not there from a look on, and the others as soon as they were probed. */
static struct windows {
	struct mem mem, *under; /* mem first: casts back */
	uint64_t addr;
	unsigned looks;
} windows;

static int read_in_windows(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	struct windows *w = (struct windows *)m;
	int ret = mem_read(w->under, addr, buf, n, e);

	if (n >= PAGE)
		return ret;
	if (addr == w->addr ? ++w->looks % WINDOW_LOOKS == 0 || slow.puts : slow.puts)
		memset(buf, 0x90, n);
	return ret;
}

static void windows_that_close_meanwhile_are_not_freed(void **state)
{
	struct child c = new_child(ELFMAG, true);
	struct leftovers l = {};

	(void)state;
	slow = (struct slow){ 0 };
	windows = (struct windows){ { .read = read_in_windows }, c.t->mem, c.addr + 9 * PAGE, 0 };
	c.t->mem = &windows.mem;
	assert_int_equal(leftovers_find(c.t, &l, NULL), 0);
	assert_int_equal(l.at.n, 4);
	assert_int_equal(leftovers_heal(c.t, &l, NULL), 0);
	assert_int_equal(slow.sites, 3); /* nor is it probed */
	assert_int_equal(l.freed, 3);
	assert_true(l.at.at[2].comes_and_goes);
	leftovers_fini(&l);
	c.t->mem = windows.under;
	end_child(&c);
}

/* Where the file's page ends behind the first byte of a jump, the second one is not known. */
static void jumps_over_eight_bytes_are_barred(void **state)
{
	static const uint8_t over_nine[2] = { 0xeb, 0x09 }, nop[2] = { 0x90, 0x08 };

	(void)state;
	assert_int_equal(breakpoint_is_barred(jump_over_eight, 2), BARRED);
	assert_int_equal(breakpoint_is_barred(jump_over_eight, 1), BARRED);
	assert_int_equal(breakpoint_is_barred(jump_over_eight, 0), 0);
	assert_int_equal(breakpoint_is_barred(over_nine, 2), 0);
	assert_int_equal(breakpoint_is_barred(nop, 2), 0);
}

static void a_barred_place_is_not_probed(void **state)
{
	struct leftovers l = {};
	struct child c;

	(void)state;
	jumps = true;
	c = new_child(ELFMAG, true);
	jumps = false;
	slow = (struct slow){ 0 };
	windows = (struct windows){ { .read = read_in_windows }, c.t->mem, UINT64_MAX, 0 };
	c.t->mem = &windows.mem;
	assert_int_equal(leftovers_find(c.t, &l, NULL), 0);
	assert_int_equal(l.at.n, 4);
	assert_int_equal(l.barred, BARRED);
	assert_int_equal(l.at.at[3].barred, BARRED);
	assert_int_equal(leftovers_heal(c.t, &l, NULL), 0);
	assert_int_equal(slow.sites, 4 - BARRED);
	assert_int_equal(l.freed, 4 - BARRED);
	leftovers_fini(&l);
	c.t->mem = windows.under;
	end_child(&c);
}

/* Nobody waits for windows to close where all have. */
static void watching_ends_when_all_have_gone(void **state)
{
	struct child c = new_child(ELFMAG, false);
	struct leftovers l = many_leftovers(&c, 3);

	(void)state;
	slow = (struct slow){ 0 };
	windows = (struct windows){ { .read = read_in_windows }, c.t->mem, c.addr + 8, 0 };
	c.t->mem = &windows.mem;
	assert_int_equal(leftovers_heal(c.t, &l, NULL), 0);
	assert_int_equal(windows.looks, 3);
	assert_int_equal(slow.puts, 0);
	assert_int_equal(l.freed, 0);
	leftovers_fini(&l);
	c.t->mem = windows.under;
	end_child(&c);
}

enum { HEALED = 10 };

/* Each process with leftovers takes so long as it takes to tell of it. */
static void told_slowly(void *arg, const struct heal_found *f)
{
	(void)f;
	slow.now_ns += 7 * SEC;
	++*(unsigned *)arg;
}

/* The first process of a pid namespace: how many it has been told of, and how many were left out. */
static void __attribute__((noreturn)) heal_all(void)
{
	struct heal_opts o = { .told = told_slowly };
	struct heal_sum sum;
	unsigned told = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("proc", "/proc", "proc", 0, NULL))
		_exit(0);
	for (int i = 0; i < HEALED; i++)
		(void)new_child(ELFMAG, true);
	slow = (struct slow){ .stands = true, .now_ns = SEC };
	o.arg = &told;
	if (heal_run(&o, &sum, NULL))
		_exit(1);
	_exit((int)(told << 4 | sum.left_out));
}

static void healing_takes_thirty_seconds(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	if (geteuid())
		skip();
	pid = fork();
	if (!pid) {
		pid_t first;

		if (unshare(CLONE_NEWPID | CLONE_NEWNS))
			_exit(2);
		first = fork();
		if (!first)
			heal_all();
		if (waitpid(first, &status, 0) != first || !WIFEXITED(status))
			_exit(3);
		_exit(WEXITSTATUS(status));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status) >> 4, 5); /* the last one began after 28 s */
	assert_int_equal(WEXITSTATUS(status) & 15, HEALED - 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(breakpoints_are_those_that_are_new),
		cmocka_unit_test(finds_all_and_no_other),
		cmocka_unit_test(pages_of_its_own_are_those_it_wrote),
		cmocka_unit_test(untouched_code_and_code_that_is_not_gos_have_none),
		cmocka_unit_test(one_that_is_traced_is_left_alone),
		cmocka_unit_test(mappings_longer_than_their_file_cost_nothing),
		cmocka_unit_test(large_files_that_are_mapped_often_are_counted),
		cmocka_unit_test(stops_when_it_is_asked_to),
		cmocka_unit_test(a_search_takes_two_seconds),
		cmocka_unit_test(a_page_that_the_file_does_not_give_is_unseen),
		cmocka_unit_test(a_page_that_is_gone_has_none),
		cmocka_unit_test(a_process_that_ends_meanwhile_is_an_error),
		cmocka_unit_test(freeing_takes_twenty_seconds),
		cmocka_unit_test(windows_that_close_meanwhile_are_not_freed),
		cmocka_unit_test(jumps_over_eight_bytes_are_barred),
		cmocka_unit_test(a_barred_place_is_not_probed),
		cmocka_unit_test(watching_ends_when_all_have_gone),
		cmocka_unit_test(healing_takes_thirty_seconds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
