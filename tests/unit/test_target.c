/*
 * tests/unit/test_target.c - one process, held: real children of this test, in every state that a
 * process can be in when somebody names its pid.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "target/target_priv.h"

/* ---- a program as small as possible: one page of headers, one of code that waits ---- */

#if defined(__x86_64__)
static const uint8_t wait_code[] = {
	0xb8, 34,   0, 0, 0, /* mov $SYS_pause, %eax */
	0x0f, 0x05,	     /* syscall */
	0xeb, 0xf7,	     /* again */
};
enum { MACHINE = EM_X86_64 };
#else
static const uint32_t wait_code[] = {
	0xd2800000, 0xd2800001, 0xd2800002, 0xd2800003, /* x0 to x3 = 0 */
	0xd2800928, 0xd4000001, 0x17fffffa,		/* x8 = SYS_ppoll; svc; again */
};
enum { MACHINE = EM_AARCH64 };
#endif

enum { PAGE = 4096, TEXT_OFF = 0x10000, TEXT_IN = 0x40, MARK_OFF = TEXT_OFF + 0x100 };
static const char mark[] = "goprof-bpf was here";

/* @base: link-time address of the file's first byte; 0x400000 is what Go uses, also for PIE. */
static void write_program(const char *path, uint16_t type, uint64_t base)
{
	static uint8_t file[TEXT_OFF + PAGE];
	Elf64_Ehdr eh = {
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = type,
		.e_machine = MACHINE,
		.e_version = EV_CURRENT,
		.e_entry = base + TEXT_OFF + TEXT_IN,
		.e_phoff = sizeof(eh),
		.e_ehsize = sizeof(eh),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 2,
	};
	Elf64_Phdr ph[2] = {
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R,
		  .p_vaddr = base,
		  .p_filesz = PAGE,
		  .p_memsz = PAGE,
		  .p_align = 0x10000 },
		/* Starts inside a page, as linkers that save space do. */
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R | PF_X,
		  .p_offset = TEXT_OFF + TEXT_IN,
		  .p_vaddr = base + TEXT_OFF + TEXT_IN,
		  .p_filesz = PAGE - TEXT_IN,
		  .p_memsz = PAGE - TEXT_IN,
		  .p_align = 0x10000 },
	};
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

	memset(file, 0, sizeof(file));
	memcpy(file, &eh, sizeof(eh));
	memcpy(file + sizeof(eh), ph, sizeof(ph));
	memcpy(file + TEXT_OFF + TEXT_IN, wait_code, sizeof(wait_code));
	memcpy(file + MARK_OFF, mark, sizeof(mark));
	assert_true(fd >= 0);
	assert_int_equal(write(fd, file, sizeof(file)), sizeof(file));
	assert_int_equal(close(fd), 0);
}

/* ---- children ---- */

struct child {
	pid_t pid;
	int go;	   /* writing a byte here lets it go on */
	int ready; /* readable when it wrote a byte, called exec, or died */
};

static void no_more(struct child *c)
{
	if (c->pid > 0) {
		kill(c->pid, SIGKILL);
		waitpid(c->pid, NULL, 0);
	}
	closep(&c->go);
	closep(&c->ready);
	c->pid = -1;
}

static void wait_ready(struct child *c)
{
	char b;

	while (read(c->ready, &b, 1) < 0 && errno == EINTR)
		;
}

/* @body runs in the child; it must not return. */
static struct child spawn(void (*body)(int go, int ready, void *arg), void *arg)
{
	int go[2], ready[2];
	struct child c;

	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	c.pid = fork();
	assert_true(c.pid >= 0);
	if (c.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(go[1]);
		close(ready[0]);
		body(go[0], ready[1], arg);
		_exit(9);
	}
	close(go[0]);
	close(ready[1]);
	c.go = go[1];
	c.ready = ready[0];
	return c;
}

static void say_and_wait(int go, int ready)
{
	char b = 0;

	if (write(ready, &b, 1) != 1 || read(go, &b, 1) != 1)
		_exit(8);
}

static void body_wait(int go, int ready, void *arg)
{
	(void)arg;
	say_and_wait(go, ready);
	_exit(0);
}

static void body_exec(int go, int ready, void *path)
{
	char *argv[] = { path, NULL }, *envp[] = { NULL };

	(void)go;
	(void)ready;
	execve(path, argv, envp);
	_exit(7);
}

/* Calls exec when it gets a byte. */
static void body_exec_later(int go, int ready, void *path)
{
	say_and_wait(go, ready);
	body_exec(go, ready, path);
}

static char dir[64];

static const char *in_dir(const char *name)
{
	static char path[4][512];
	static unsigned next;
	char *p = path[next++ % 4];

	snprintf(p, sizeof(path[0]), "%s/%s", dir, name);
	return p;
}

static int make_dir(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/test_target.XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int drop_dir(void **state)
{
	(void)state;
	unlink(in_dir("prog"));
	unlink(in_dir("new"));
	unlink(in_dir("odd (deleted)"));
	return rmdir(dir);
}

static struct child spawn_prog(const char *path)
{
	struct child c = spawn(body_exec, (void *)(uintptr_t)path);

	wait_ready(&c);
	return c;
}

static struct target *opened(pid_t pid)
{
	struct target *t = NULL;
	struct err e = { "" };

	if (target_open(pid, &t, &e))
		fail_msg("target_open: %s", e.msg);
	return t;
}

static void refused(pid_t pid, int code, const char *words)
{
	struct target *t = NULL;
	struct err e = { "" };

	assert_int_equal(target_open(pid, &t, &e), code);
	assert_null(t);
	if (!strstr(e.msg, words))
		fail_msg("'%s' does not say '%s'", e.msg, words);
}

/* ---- tests ---- */

static int main_addr(struct dl_phdr_info *i, size_t size, void *arg)
{
	(void)size;
	*(uint64_t *)arg = i->dlpi_addr;
	return 1; /* the first is the program */
}

static void opens_itself(void **state)
{
	struct target *t = opened(getpid());
	uint64_t where = 0, v = 0;
	volatile uint64_t here = 0x1122334455667788;
	char exe[4096];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	(void)state;
	assert_true(n > 0);
	exe[n] = 0;
	assert_string_equal(t->exe, exe);
	assert_false(t->exe_deleted);
	dl_iterate_phdr(main_addr, &where);
	assert_true(t->bias == where);
	assert_int_equal(mem_u64(t->mem, (uintptr_t)&here, &v, NULL), 0);
	assert_true(v == here);
	assert_non_null(maps_find(&t->maps, (uintptr_t)&here));
	assert_int_equal(target_alive(t, NULL), 0);
	assert_int_equal(target_maps(t, NULL), 0);
	assert_int_equal(target_alive(t, NULL), 0);
	target_free(t);
	target_free(NULL);
}

static void no_process(void **state)
{
	struct child c = spawn(body_wait, NULL);
	pid_t pid = c.pid;

	(void)state;
	no_more(&c);
	refused(pid, -ESRCH, "no process with pid");
	refused(0, -ESRCH, "no process with pid 0");
	refused(-1, -ESRCH, "no process with pid -1");
	refused(INT32_MAX, -ESRCH, "no process with pid 2147483647");
}

static void zombie(void **state)
{
	struct child c = spawn(body_wait, NULL);
	siginfo_t si;

	(void)state;
	kill(c.pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)c.pid, &si, WEXITED | WNOWAIT), 0);
	refused(c.pid, -ENOENT, "is a zombie");
	no_more(&c);
}

static void kernel_thread(void **state)
{
	char link[8];

	(void)state;
	if (access("/proc/2/stat", R_OK) || readlink("/proc/2/exe", link, sizeof(link)) >= 0)
		skip();
	refused(2, -ENOENT, "pid 2 is a kernel thread");
}

static void *thread_body(void *arg)
{
	int *fds = arg;
	pid_t tid = (pid_t)syscall(SYS_gettid);
	char b;

	if (write(fds[1], &tid, sizeof(tid)) != sizeof(tid) || read(fds[2], &b, 1) < 0)
		abort();
	return NULL;
}

static void threads_and_thread_ids(void **state)
{
	int up[2], down[2], fds[3];
	struct target *t = opened(getpid());
	pthread_t th[3];
	pid_t tid[3], *tids = NULL;
	size_t n = 0, seen = 0;

	(void)state;
	assert_int_equal(pipe(up), 0);
	assert_int_equal(pipe(down), 0);
	fds[1] = up[1];
	fds[2] = down[0];
	for (int i = 0; i < 3; i++) {
		assert_int_equal(pthread_create(&th[i], NULL, thread_body, fds), 0);
		assert_int_equal(read(up[0], &tid[i], sizeof(tid[i])), sizeof(tid[i]));
	}
	refused(tid[1], -ENOENT, "is a thread of the process");
	assert_int_equal(target_threads(t, &tids, &n, NULL), 0);
	assert_true(n >= 4);
	for (size_t i = 0; i < n; i++) {
		assert_true(i == 0 || tids[i] > tids[i - 1]);
		for (int k = 0; k < 3; k++)
			seen += tids[i] == tid[k];
	}
	assert_int_equal(seen, 3);
	free(tids);
	close(down[1]);
	for (int i = 0; i < 3; i++)
		pthread_join(th[i], NULL);
	close(down[0]);
	close(up[0]);
	close(up[1]);
	target_free(t);
}

static void all_gone(struct target *t, const char *words)
{
	struct err e = { "" };
	pid_t *tids;
	uint64_t v;
	size_t n;

	assert_int_equal(target_alive(t, &e), -ESRCH);
	if (!strstr(e.msg, words))
		fail_msg("'%s' does not say '%s'", e.msg, words);
	assert_int_equal(mem_u64(t->mem, t->start_stack, &v, &e), -ESRCH);
	if (!strcmp(words, "exited")) {
		assert_int_equal(target_maps(t, &e), -ESRCH);
		assert_int_equal(target_threads(t, &tids, &n, &e), -ESRCH);
		assert_int_equal(target_cpu_ns(t, &v, &e), -ESRCH);
	}
	assert_true(t->maps.n > 0); /* what was known stays */
}

static void exits_under_us(void **state)
{
	struct child c = spawn(body_wait, NULL);
	struct target *t;
	siginfo_t si;

	(void)state;
	wait_ready(&c);
	t = opened(c.pid);
	assert_int_equal(target_alive(t, NULL), 0);
	kill(c.pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)c.pid, &si, WEXITED | WNOWAIT), 0);
	assert_int_equal(target_alive(t, NULL), -ESRCH); /* while it is a zombie */
	no_more(&c);
	all_gone(t, "exited");
	target_free(t);
}

static void execs_under_us(const char *from, unsigned long persona)
{
	struct child c;
	struct target *t;

	(void)from;
	write_program(in_dir("prog"), ET_EXEC, 0x400000);
	assert_true(personality(persona) >= 0);
	c = spawn(body_exec_later, (void *)(uintptr_t)in_dir("prog"));
	personality(0);
	wait_ready(&c);
	t = opened(c.pid);
	assert_int_equal(target_alive(t, NULL), 0);
	assert_int_equal(write(c.go, "", 1), 1);
	wait_ready(&c);
	all_gone(t, "became another program (exec of prog)");
	target_free(t);

	/* And the new process can be opened under the same pid. */
	t = opened(c.pid);
	assert_string_equal(t->exe, in_dir("prog"));
	assert_string_equal(t->comm, "prog");
	target_free(t);
	no_more(&c);
}

static void exec_is_seen(void **state)
{
	(void)state;
	execs_under_us("random", 0);
	execs_under_us("fixed", ADDR_NO_RANDOMIZE);
}

static void body_exec_self(int go, int ready, void *arg)
{
	char *argv[] = { arg, (char[]){ "--again" }, NULL };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	say_and_wait(go, ready);
	execv("/proc/self/exe", argv);
	_exit(7);
}

/* The same program at the same addresses, with equal arguments: only the memory is new. */
static void exec_of_the_same_is_seen(void **state)
{
	struct child c;
	struct target *t, *t2;
	uint64_t stack;

	(void)state;
	assert_true(personality(ADDR_NO_RANDOMIZE) >= 0);
	c = spawn(body_exec_self, (void *)(uintptr_t) "test");
	personality(0);
	wait_ready(&c);
	assert_int_equal(write(c.go, "", 1), 1);
	wait_ready(&c); /* the first exec: now it is "--again", which execs itself once more */
	t = opened(c.pid);
	stack = t->start_stack;
	kill(c.pid, SIGUSR1);
	while (target_alive(t, NULL) == 0)
		usleep(1000);
	t2 = opened(c.pid);
	assert_true(t2->start_stack == stack); /* else this test shows nothing */
	assert_true(t2->start_ticks == t->start_ticks);
	all_gone(t, "became another program");
	target_free(t);
	target_free(t2);
	no_more(&c);
}

/*
 * What the child above becomes: it calls exec on itself at each signal, which stays blocked
 * across exec.
 */
static int again(char **argv)
{
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigwait(&set, &sig);
	execv("/proc/self/exe", argv);
	return 7;
}

static void body_exec_storm(int go, int ready, void *arg)
{
	char *argv[] = { arg, (char[]){ "--storm" }, NULL };

	say_and_wait(go, ready);
	execv("/proc/self/exe", argv);
	_exit(7);
}

/* It is opened at any moment of an exec: the result is one whole program, or an error message. */
static void opened_during_exec(void **state)
{
	struct child c = spawn(body_exec_storm, (void *)(uintptr_t) "test");
	unsigned whole = 0;

	(void)state;
	wait_ready(&c);
	assert_int_equal(write(c.go, "", 1), 1);
	wait_ready(&c);
	for (int i = 0; i < 200; i++) {
		struct target *t = NULL;
		struct err e = { "" };
		uint64_t v;
		int ret = target_open(c.pid, &t, &e);

		if (ret && ret != -ESRCH)
			fail_msg("%d %s", ret, e.msg);
		if (ret)
			continue;
		whole++;
		ret = mem_u64(t->mem, t->start_stack, &v, &e);
		if (ret && ret != -ESRCH)
			fail_msg("stack: %d %s", ret, e.msg);
		target_free(t);
	}
	if (whole == 0)
		fail_msg("never opened");
	no_more(&c);
}

static void bias_of(uint16_t type, uint64_t base, bool fixed)
{
	struct child c;
	struct target *t;
	char got[sizeof(mark)];

	write_program(in_dir("prog"), type, base);
	c = spawn_prog(in_dir("prog"));
	t = opened(c.pid);
	if (fixed)
		assert_true(t->bias == 0);
	else
		assert_true(t->bias != 0);
	assert_int_equal(mem_read(t->mem, t->bias + base + MARK_OFF, got, sizeof(got), NULL), 0);
	assert_memory_equal(got, mark, sizeof(mark));
	target_free(t);
	no_more(&c);
}

static void bias_is_found(void **state)
{
	(void)state;
	bias_of(ET_EXEC, 0x400000, true);
	bias_of(ET_EXEC, 0x10000000, true);
	bias_of(ET_DYN, 0, false);
	bias_of(ET_DYN, 0x400000, false);
}

/* bias_find with mappings that are made up. */
static void bias_of_odd_mappings(void **state)
{
	struct mapping at[3] = { 0 };
	struct maps m = { .at = at, .n = 3 };
	uint64_t bias = 1;
	struct stat st;
	struct err e;
	int fd;

	(void)state;
	write_program(in_dir("prog"), ET_DYN, 0x400000);
	fd = open(in_dir("prog"), O_RDONLY | O_CLOEXEC);
	assert_int_equal(fstat(fd, &st), 0);
	for (int i = 0; i < 3; i++)
		at[i].name = "";
	/* The program reads its own file through a mapping of its own, which is not its code. */
	at[0] = (struct mapping){ .start = 0x10000,
				  .end = 0x30000,
				  .inode = st.st_ino,
				  .dev_major = 0,
				  .dev_minor = 0,
				  .read = true,
				  .name = "/p" };
	/*
	 * The code, of which a part was unmapped: the mapping begins in the middle of the
	 * segment.
	 */
	at[2] = (struct mapping){ .start = 0x7f0000011000,
				  .end = 0x7f0000012000,
				  .offset = 0x10000,
				  .inode = 1,
				  .exec = true,
				  .name = "/p" };
	assert_int_equal(bias_find(fd, "/p", &m, &bias, &e), 0); /* by name: another device */
	assert_true(bias == 0x7f0000001000 - 0x400000);
	assert_int_equal(bias_find(fd, "/q", &m, &bias, &e), -ENOENT);
	at[2].start += 0x10;
	assert_int_equal(bias_find(fd, "/p", &m, &bias, &e), -EBADMSG);
	close(fd);
}

static void deleted_and_replaced(void **state)
{
	struct child c, d;
	struct target *t;
	uint32_t magic = 0;

	(void)state;
	write_program(in_dir("prog"), ET_DYN, 0);
	write_program(in_dir("odd (deleted)"), ET_DYN, 0);
	c = spawn_prog(in_dir("prog"));
	d = spawn_prog(in_dir("odd (deleted)"));
	t = opened(c.pid);
	assert_false(t->exe_deleted);
	target_free(t);

	write_program(in_dir("new"), ET_DYN, 0);
	assert_int_equal(rename(in_dir("new"), in_dir("prog")), 0);
	t = opened(c.pid); /* replaced: another file is there now */
	assert_true(t->exe_deleted);
	assert_string_equal(t->exe, in_dir("prog"));
	target_free(t);

	unlink(in_dir("prog"));
	t = opened(c.pid);
	assert_true(t->exe_deleted);
	assert_string_equal(t->exe, in_dir("prog"));
	assert_int_equal(pread(t->exe_fd, &magic, 4, 0), 4);
	assert_memory_equal(&magic, ELFMAG, 4);
	target_free(t);

	t = opened(d.pid); /* that is its name */
	assert_false(t->exe_deleted);
	assert_string_equal(t->exe, in_dir("odd (deleted)"));
	target_free(t);
	unlink(in_dir("odd (deleted)"));
	t = opened(d.pid);
	assert_true(t->exe_deleted);
	assert_string_equal(t->exe, in_dir("odd (deleted)"));
	target_free(t);
	no_more(&c);
	no_more(&d);
}

static void body_hole(int go, int ready, void *pages)
{
	munmap((char *)pages + PAGE, PAGE);
	say_and_wait(go, ready);
	munmap(pages, PAGE);
	say_and_wait(go, ready);
	_exit(0);
}

static void names_the_first_bad_byte(struct mem *m, const char *pages)
{
	char buf[3 * PAGE], want[32];
	struct err e = { "" };

	snprintf(want, sizeof(want), "0x%llx", (unsigned long long)(uintptr_t)pages + PAGE);
	assert_int_equal(mem_read(m, (uintptr_t)pages, buf, PAGE, &e), 0);
	assert_true(buf[0] == 7 && buf[PAGE - 1] == 7);
	assert_int_equal(mem_read(m, (uintptr_t)pages + 100, buf, 2 * PAGE, &e), -EFAULT);
	assert_non_null(strstr(e.msg, want));
	assert_int_equal(mem_read(m, (uintptr_t)pages + PAGE, buf, 1, &e), -EFAULT);
	assert_int_equal(mem_read(m, (uintptr_t)pages + 2 * PAGE, buf, PAGE, &e), 0);
	assert_int_equal(mem_read(m, 0, buf, 1, &e), -EFAULT);
	assert_int_equal(mem_read(m, UINT64_MAX - 7, buf, 7, &e), -EFAULT);
	assert_int_equal(mem_read(m, UINT64_MAX - 7, buf, 9, &e), -EFAULT);
	assert_int_equal(mem_read(m, (uint64_t)INT64_MAX - 7, buf, 16, &e), -EFAULT);
}

static void unmapped_under_the_reader(void **state)
{
	char *pages = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			   0);
	struct child c;
	struct target *t;
	struct mem *by_pid = NULL;
	struct err e = { "" };
	char b;

	(void)state;
	assert_true(pages != MAP_FAILED);
	memset(pages, 7, 3 * PAGE);
	c = spawn(body_hole, pages);
	wait_ready(&c);
	t = opened(c.pid);
	names_the_first_bad_byte(t->mem, pages);

	/* The other way, for systems where /proc/PID/mem cannot be opened. */
	assert_int_equal(memproc_new(c.pid, -1, &by_pid, &e), 0);
	names_the_first_bad_byte(by_pid, pages);
	assert_true(memproc_alive(by_pid));

	assert_int_equal(write(c.go, "", 1), 1);
	wait_ready(&c);
	assert_int_equal(mem_read(t->mem, (uintptr_t)pages, &b, 1, &e), -EFAULT);
	assert_int_equal(mem_read(by_pid, (uintptr_t)pages, &b, 1, &e), -EFAULT);
	no_more(&c);
	assert_int_equal(mem_read(by_pid, (uintptr_t)pages, &b, 1, &e), -ESRCH);
	assert_false(memproc_alive(by_pid));
	memproc_free(by_pid);
	assert_int_equal(memproc_new(t->pid, -1, &by_pid, &e), -ESRCH);
	target_free(t);
	munmap(pages, 3 * PAGE);
}

static void body_rename(int go, int ready, void *name)
{
	prctl(PR_SET_NAME, name);
	say_and_wait(go, ready);
}

static void hostile_comm(void **state)
{
	struct child c = spawn(body_rename, (void *)(uintptr_t) "a) Z 1\n\033[2J\177\xc3");
	struct target *t;
	uint64_t ns;

	(void)state;
	wait_ready(&c);
	t = opened(c.pid);
	assert_string_equal(t->comm, "a) Z 1__[2J__");
	assert_int_equal(target_alive(t, NULL), 0);
	assert_int_equal(target_cpu_ns(t, &ns, NULL), 0);
	target_free(t);
	no_more(&c);
}

static uint64_t cpu_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void cpu_time_is_the_kernels(void **state)
{
	struct target *t = opened(getpid());
	uint64_t before, after, ns = 0, grain = 3 * 10000000;

	(void)state;
	do
		before = cpu_now_ns();
	while (before < 150000000);
	assert_int_equal(target_cpu_ns(t, &ns, NULL), 0);
	after = cpu_now_ns();
	assert_true(ns + grain >= before && ns <= after + grain);
	target_free(t);
}

static void body_nobody(int go, int ready, void *parent)
{
	struct target *t = NULL;
	struct err e = { "" };
	int ret;

	(void)go;
	if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		_exit(0);
	ret = target_open(*(pid_t *)parent, &t, &e);
	if (ret != -EPERM || !strstr(e.msg, "CAP_SYS_PTRACE"))
		dprintf(ready, "%d %s", ret, e.msg);
	_exit(0);
}

static void missing_privilege_is_named(void **state)
{
	pid_t me = getpid();
	char said[512] = "";
	struct child c;

	(void)state;
	if (geteuid() != 0)
		skip();
	c = spawn(body_nobody, &me);
	if (read(c.ready, said, sizeof(said) - 1) > 0)
		fail_msg("%s", said);
	no_more(&c);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opens_itself),
		cmocka_unit_test(no_process),
		cmocka_unit_test(zombie),
		cmocka_unit_test(kernel_thread),
		cmocka_unit_test(threads_and_thread_ids),
		cmocka_unit_test(exits_under_us),
		cmocka_unit_test(exec_is_seen),
		cmocka_unit_test(exec_of_the_same_is_seen),
		cmocka_unit_test(opened_during_exec),
		cmocka_unit_test(bias_is_found),
		cmocka_unit_test(bias_of_odd_mappings),
		cmocka_unit_test(deleted_and_replaced),
		cmocka_unit_test(unmapped_under_the_reader),
		cmocka_unit_test(hostile_comm),
		cmocka_unit_test(cpu_time_is_the_kernels),
		cmocka_unit_test(missing_privilege_is_named),
	};

	if (argc > 1 && !strcmp(argv[1], "--again"))
		return again(argv);
	if (argc > 1 && !strcmp(argv[1], "--storm")) {
		execv("/proc/self/exe", argv);
		return 7;
	}
	return cmocka_run_group_tests(tests, make_dir, drop_dir);
}
