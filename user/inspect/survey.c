/*
 * user/inspect/survey.c - walks /proc: cheap questions come first, and each file is looked at
 * once.
 */
#include "inspect/survey_priv.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "base/sys/caps.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "go/image/gobin.h"
#include "target/write/claim.h"
#include "target/handover.h"
#include "target/write/poke.h"

/* What one look at a process needs. */
struct process_look {
	struct survey *s;
	const struct survey_rights *rights;
	pid_t pid;
	int dir_fd; /* of /proc/PID: it stays with this process, whatever happens to its number */
	struct target *t;
	struct err denied; /* why t is NULL */
	/* owned: for survey_proc.command and .cgroups; NULL: they could not be read */
	char *command, *cgroups;
	bool command_cut;
	bool ended; /* while its file was examined */
};

static void look_fini(struct process_look *l)
{
	target_free(l->t);
	free(l->command);
	free(l->cgroups);
	closep(&l->dir_fd);
}

/* ---- files ---- */

static struct survey_key key_of(const struct stat *st)
{
	return (struct survey_key){ .dev = st->st_dev,
				    .ino = st->st_ino,
				    .size = (uint64_t)st->st_size,
				    .mtime_ns = st->st_mtim.tv_sec * 1000000000ll +
						st->st_mtim.tv_nsec };
}

/* Hashes can be made to collide, keys cannot. */
const struct survey_file *survey_known(const struct survey *s, const struct survey_key *k)
{
	uint64_t i;

	if (!map_get(&s->by_key, hash_bytes(k, sizeof(*k)), &i))
		return NULL;
	return memcmp(&s->files.at[i].key, k, sizeof(*k)) ? NULL : &s->files.at[i];
}

struct survey_file *survey_remember(struct survey *s, const struct survey_key *k,
				    struct survey_build *build, bool dynamic, int copy)
{
	struct survey_file *f = vec_add(&s->files, LIMIT_SURVEY);

	if (!f) {
		free(build);
		closep(&copy);
		return NULL;
	}
	*f = (struct survey_file){
		.key = *k, .build = build, .dynamic = dynamic, .copy = copy, .used = ++s->uses
	};
	map_put(&s->by_key, hash_bytes(k, sizeof(*k)), s->files.n - 1);
	return f;
}

/* A process of it may be handed over, and whoever takes it must not wait for a file system. */
static void copy_foreign(struct process_look *l, int fd, struct survey_file *f)
{
	struct err e = { "" };

	if (l->s->hold && f->build && !f->build->library && handover_is_foreign(fd) &&
	    handover_copy(fd, &f->copy, &e))
		keep_why(f->no_copy, e.msg);
}

/* It ended, or became another program. */
static bool has_gone(const struct process_look *l)
{
	return l->t && target_alive(l->t, NULL) == -ESRCH;
}

/* *b: what is found out of it; NULL: it is not Go's. False: that is not known. */
static bool examine(struct process_look *l, int fd, const char *name, uint64_t bias,
		    struct survey_build **b)
{
	*b = malloc(sizeof(**b));
	if (!*b)
		return false;
	if (survey_understand(fd, name, l->t, bias, l->s->wants, *b)) {
		free(*b);
		*b = NULL;
	}
	/* A part of it was read of the process: of one that has gone it says nothing of others that run the file. */
	l->ended = has_gone(l);
	if (l->ended)
		free(TAKE(*b));
	return !l->ended;
}

/* The file behind @fd, which is examined when it is new. NULL: no room, no memory; or the process ended meanwhile. */
static const struct survey_file *file_of(struct process_look *l, int fd, const char *name,
					 uint64_t bias, bool library)
{
	uint64_t began = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	const struct survey_file *old;
	struct survey_build *b = NULL;
	struct survey_file *f;
	struct survey_key k;
	bool dynamic = false;
	struct stat st;

	if (fstat(fd, &st))
		return NULL;
	k = key_of(&st);
	old = survey_known(l->s, &k);
	if (old)
		return old;
	if (S_ISREG(st.st_mode) && gobin_may_be_go(fd, &dynamic) && !examine(l, fd, name, bias, &b))
		return NULL;
	if (b)
		b->library = library;
	f = survey_remember(l->s, &k, b, dynamic, -1);
	if (f)
		copy_foreign(l, fd, f);
	l->s->files_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - began;
	return f;
}

/* ---- one process ---- */

/* False: it could not be read, or only its beginning could. */
static bool read_text(struct process_look *l, const char *name, char *buf, size_t cap, size_t *len)
{
	CLEANUP(closep) int fd = openat(l->dir_fd, name, O_RDONLY | O_CLOEXEC);
	ssize_t got = 0;

	*len = 0;
	while (fd >= 0 && *len + 1 < cap) {
		got = read(fd, buf + *len, cap - 1 - *len);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		*len += (size_t)got;
	}
	buf[*len] = 0;
	return fd >= 0 && got >= 0;
}

/* The first @max bytes of it; NULL: it cannot be read. The caller frees it. */
static char *read_long(struct process_look *l, const char *name, size_t max, size_t *len)
{
	CLEANUP(freep) char *text = malloc(max + 1);

	*len = 0;
	return text && read_text(l, name, text, max + 1, len) ? TAKE(text) : NULL;
}

/*
 * The effective user. The directory's owner is no answer: it is root where a program may not be
 * dumped. The name in the first line cannot imitate this line, because the kernel escapes its
 * newlines.
 */
static void fill_user(struct process_look *l, struct survey_proc *p)
{
	char text[4096], *at;
	size_t len;

	read_text(l, "status", text, sizeof(text), &len);
	at = strstr(text, "\nUid:\t");
	/* the real one comes first, then the effective one */
	at = at ? strchr(at + 6, '\t') : NULL;
	p->uid = at ? (uid_t)strtoul(at, NULL, 10) : (uid_t)-1;
}

static void read_command(struct process_look *l)
{
	char *text;
	size_t len;

	l->command = read_long(l, "cmdline", LIMIT_COMMAND, &len);
	if (!l->command && faccessat(l->dir_fd, "stat", F_OK, 0))
		l->command = strdup(""); /* it has ended */
	text = l->command;
	l->command_cut = len == LIMIT_COMMAND;
	while (len && !text[len - 1])
		len--;
	for (size_t i = 0; text && i < len; i++)
		if (!text[i])
			text[i] = ' ';
}

/* On kernels that know none there are none, and what has ended has none. */
static void read_cgroups(struct process_look *l, struct container *where)
{
	size_t len;

	l->cgroups = read_long(l, "cgroup", LIMIT_CGROUP, &len);
	if (!l->cgroups && faccessat(l->dir_fd, "cgroup", F_OK, 0))
		l->cgroups = strdup("");
	if (!l->cgroups)
		return;
	container_parse(l->cgroups, len, where);
	container_paths(l->cgroups);
}

/* What the kernel knows without touching the process' memory. */
static void fill_names(struct process_look *l, struct survey_proc *p)
{
	size_t len;

	read_text(l, "comm", p->comm, sizeof(p->comm), &len);
	if (len && p->comm[len - 1] == '\n')
		p->comm[len - 1] = 0;
	fill_user(l, p);
	read_cgroups(l, &p->where);
}

/* Its arguments lie in its memory, which may be silent. */
static void judge(struct process_look *l, struct survey_proc *p)
{
	struct survey *s = l->s;

	if (!s->judge)
		return;
	if (!p->silent)
		read_command(l);
	p->command = l->command;
	p->command_cut = l->command_cut;
	p->cgroups = l->cgroups;
	p->judged = s->judge(s->arg, p);
}

static void forget_texts(struct survey_proc *p)
{
	p->command = p->cgroups = NULL;
}

static void answer(struct survey_answer *a, const char *why)
{
	a->yes = !*why;
	keep_why(a->why, why);
}

static __attribute__((format(printf, 2, 3))) void refuse(struct survey_answer *a, const char *fmt,
							 ...)
{
	va_list ap;

	a->yes = false;
	va_start(ap, fmt);
	vsnprintf(a->why, sizeof(a->why), fmt, ap);
	va_end(ap);
}

/* The first of these strings that is not empty. */
static const char *first_of(const char *a, const char *b, const char *c)
{
	return *a ? a : *b ? b : c;
}

/* How sentences name each of them. */
static const struct {
	const char *var, *samples;
	unsigned claim;
} kinds[SURVEY_RATES] = {
	[SURVEY_RATE_HEAP] = { "MemProfileRate", "its heap", CLAIM_HEAP_RATE },
	[SURVEY_RATE_BLOCK] = { "blockprofilerate", "its waits", CLAIM_BLOCK_RATE },
	[SURVEY_RATE_MUTEX] = { "mutexprofilerate", "its locks", CLAIM_MUTEX_FRACTION },
};

/*
 * Were waits recorded before recording was switched off? (The heap's records cannot be scaled
 * then.)
 */
static bool has_older(struct process_look *l, const struct survey_build *b, enum survey_rate r,
		      uint64_t bias)
{
	uint64_t first = 0;

	return r != SURVEY_RATE_HEAP &&
	       !mem_u64(l->t->mem, b->buckets[r].addr + bias, &first, NULL) && first;
}

static void fill_read(struct process_look *l, struct survey_proc *p, uint64_t bias,
		      enum survey_rate r, const char *common)
{
	struct survey_answer *out = &p->sources[r].read;
	const struct survey_build *b = p->build;
	const struct survey_value *rate = &p->rate[r];

	if (*common)
		answer(out, common);
	else if (!rate->known)
		answer(out, rate->why);
	else if (!b->buckets[r].found)
		answer(out, b->buckets[r].why);
	else if (r == SURVEY_RATE_HEAP && !b->mprofcycle.found)
		answer(out, b->mprofcycle.why);
	else if (rate->value <= 0 && !has_older(l, b, r, bias))
		refuse(out, "it keeps no records (runtime.%s is 0)", kinds[r].var);
	else if (rate->value && claims_any(l->t, kinds[r].claim))
		refuse(out, "a lock on it says that another goprof-bpf has it sample %s now",
		       kinds[r].samples);
	else
		answer(out, "");
}

/* Opens the memory for writing as the profile would, and closes it again: nothing is written. */
static void fill_enable(struct process_look *l, struct survey_proc *p, uint64_t bias,
			enum survey_rate r, const char *common)
{
	struct survey_answer *out = &p->sources[r].enable;
	const struct survey_value *rate = &p->rate[r];
	CLEANUP(poke_freep) struct poke *poke = NULL;
	struct err e = { "" };

	if (*common)
		answer(out, common);
	else if (!rate->known)
		answer(out, rate->why);
	else if (rate->value && !claims_any(l->t, kinds[r].claim))
		refuse(out, "nothing to switch on: it samples %s already", kinds[r].samples);
	else if (p->build->layout_guessed)
		answer(out, "nothing is written in a Go that is not known here");
	else if (poke_open(l->t, p->build->rate[r].addr + bias, &poke, &e))
		answer(out, e.msg);
	else
		answer(out, "");
}

/* One kind: its rate, and which sources would work. */
static void fill_sources(struct process_look *l, struct survey_proc *p, uint64_t bias,
			 enum survey_rate r, const char *common)
{
	const struct survey_build *b = p->build;
	const struct survey_answer *sites = r == SURVEY_RATE_HEAP  ? &b->alloc :
					    r == SURVEY_RATE_BLOCK ? &b->park :
								     &b->queue;

	if (l->t)
		survey_read_rate(l->t, bias, b, r, &p->rate[r]);
	else
		keep_why(p->rate[r].why, l->denied.msg);
	fill_read(l, p, bias, r, common);
	if (l->s->wants & SURVEY_ENABLE)
		fill_enable(l, p, bias, r, common);
	answer(&p->sources[r].probe,
	       first_of(common, sites->yes ? "" : sites->why, l->rights->probe.msg));
}

static void fill_answers(struct process_look *l, struct survey_proc *p, uint64_t bias)
{
	const struct survey_build *b = p->build;
	const char *common, *bpf = l->rights->probe.msg;

	common = first_of(b->broken, l->t ? "" : l->denied.msg, b->layout.why);
	answer(&p->cpu, first_of(common, l->rights->cpu.msg, ""));
	for (int r = 0; r < SURVEY_RATES; r++)
		if (l->s->wants & 1u << r)
			fill_sources(l, p, bias, (enum survey_rate)r, common);
	if (l->s->wants & SURVEY_WAIT)
		answer(&p->wait, first_of(common, b->status.yes ? "" : b->status.why, bpf));
	if (l->s->wants & SURVEY_GOROUTINE)
		answer(&p->goroutine, first_of(common, b->allgs.found ? "" : b->allgs.why, ""));
}

/*
 * A file that may not answer stays behind: here, where waiting for its closing costs this process alone. f->copy stands
 * in for it, or a copy that is made for this process (of a program that is not Go's itself).
 */
static int leave_foreign(struct target *t, const struct survey_file *f, struct err *e)
{
	int copy = -1, ret = 0;

	if (f->copy < 0 && handover_is_foreign(t->exe_fd))
		ret = handover_copy(t->exe_fd, &copy, e);
	if (ret || (f->copy < 0 && copy < 0))
		return ret;
	close(t->exe_fd);
	t->exe_fd = copy;
	t->exe_local = false;
	return 0;
}

/* Nothing of it can be profiled. */
static void refuse_all(struct survey_proc *p, const char *why)
{
	answer(&p->cpu, why);
	answer(&p->wait, why);
	answer(&p->goroutine, why);
	for (int r = 0; r < SURVEY_RATES; r++) {
		answer(&p->sources[r].read, why);
		answer(&p->sources[r].probe, why);
		answer(&p->sources[r].enable, why);
	}
}

/* What a profile needs of the process goes with it. */
static void hold_it(struct process_look *l, struct survey_proc *p, const struct survey_file *f)
{
	struct err e = { "" };

	if (!l->s->hold || !l->t || !l->s->hold(l->s->arg, p))
		return;
	if (*f->no_copy || leave_foreign(l->t, f, &e)) {
		refuse_all(p, *f->no_copy ? f->no_copy : e.msg);
		return;
	}
	/* What is linked statically has none: whatever it maps as code is not opened. */
	if (f->dynamic || p->build->library)
		handover_libs(l->t, gobin_is_go);
	else
		l->t->libs_only = true;
	p->target = TAKE(l->t);
}

/* It ended while it was looked at: what was read of it last may be what a zombie says, as a command line without words. */
static bool has_ended(const struct process_look *l)
{
	return l->t && target_alive(l->t, NULL) == -ESRCH && !l->t->became;
}

static void add_proc(struct process_look *l, const struct survey_file *f, uint64_t bias,
		     const char *exe)
{
	struct survey_proc *p = vec_add(&l->s->at, LIMIT_SURVEY);

	if (!p) {
		l->s->left_out++;
		return;
	}
	p->pid = l->pid;
	p->build = f->build;
	p->exe = strdup(exe);
	p->exe_deleted = l->t ? l->t->exe_deleted : -1;
	fill_names(l, p);
	fill_answers(l, p, bias);
	judge(l, p);
	hold_it(l, p, f);
	forget_texts(p);
	if (!has_ended(l))
		return;
	free(p->exe);
	l->s->at.n--;
	l->s->seen--;
}

/* Finds a Go library that a C program has loaded: the first one, as profiles do. */
static void look_at_libraries(struct process_look *l)
{
	for (size_t i = 0; i < l->t->maps.n; i++) {
		const struct mapping *m = &l->t->maps.at[i];
		CLEANUP(closep) int fd = -1;
		const struct survey_file *f;
		uint64_t bias = 0;

		if (!m->exec || !m->inode || *m->name != '/' || !strncmp(m->name, "/dev/", 5))
			continue;
		if (target_open_mapped(l->t, m, &fd, NULL))
			continue;
		if (target_bias(l->t, fd, m->name, &bias, NULL))
			continue;
		f = file_of(l, fd, m->name, bias, true);
		if (f && f->build) {
			add_proc(l, f, bias, l->t->exe);
			return;
		}
	}
}

static struct survey_proc *add_closed(struct process_look *l)
{
	struct survey_proc *p = vec_add(&l->s->closed, LIMIT_SURVEY);

	if (p) {
		p->pid = l->pid;
		p->exe_deleted = -1;
		fill_names(l, p);
	}
	return p;
}

static void count_closed(struct process_look *l, const char *why, const char *exe)
{
	struct survey *s = l->s;
	struct survey_proc *p = add_closed(l);

	if (!s->denied++)
		snprintf(s->denied_why, sizeof(s->denied_why), "%s", why);
	if (p) {
		p->exe = *exe ? strdup(exe) : NULL;
		answer(&p->cpu, why);
		judge(l, p);
		forget_texts(p);
	}
	if (!faccessat(l->dir_fd, "stat", F_OK, 0))
		return;
	/* It ended meanwhile: what was read of it is of nobody. */
	s->denied--;
	s->seen--;
	if (p) {
		free(p->exe);
		s->closed.n--;
	}
}

void survey_add_unanswered(struct survey *s, pid_t pid)
{
	CLEANUP(look_fini) struct process_look l = { .s = s, .pid = pid };
	struct survey_proc *p;
	char name[32], exe[4096];
	ssize_t n;

	snprintf(name, sizeof(name), "/proc/%d", pid);
	l.dir_fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (l.dir_fd < 0)
		return;
	p = add_closed(&l);
	n = readlinkat(l.dir_fd, "exe", exe, sizeof(exe) - 1);
	if (!p)
		return;
	if (n > 0)
		p->exe = strndup(exe, (size_t)n);
	p->silent = true;
	answer(&p->cpu, "its files or its memory do not answer");
	judge(&l, p);
	forget_texts(p);
}

/*
 * Opens the executable of a process whose memory we may not read: -EACCES, -ENOENT (gone, a
 * kernel thread).
 */
static int open_exe(struct process_look *l, char *name, size_t cap)
{
	ssize_t n = readlinkat(l->dir_fd, "exe", name, cap - 1);
	int fd;

	name[n > 0 ? n : 0] = 0;
	if (n < 0 && errno != ENAMETOOLONG)
		return -errno;
	fd = openat(l->dir_fd, "exe", O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/*
 * Kernel threads have no command line. By that they are told from processes that we may not look
 * at.
 */
static bool has_cmdline(struct process_look *l)
{
	CLEANUP(closep) int fd = openat(l->dir_fd, "cmdline", O_RDONLY | O_CLOEXEC);
	char c;

	return fd >= 0 && read(fd, &c, 1) == 1;
}

/* How many a directory of threads has beside "." and "..": its links, as proc_task_getattr() in fs/proc/base.c (Linux 6.18) counts. */
static bool has_other_threads(struct process_look *l)
{
	struct stat st;

	return !fstatat(l->dir_fd, "task", &st, 0) && st.st_nlink > 3;
}

static void closedirp(DIR **d)
{
	if (*d)
		closedir(*d);
}

/* The executable of any of its threads. False: none has one, as where all of them end. */
static bool exe_of_threads(struct process_look *l, char *exe, size_t cap)
{
	int fd = openat(l->dir_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(closedirp) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *d;

	if (!dir && fd >= 0)
		close(fd);
	while (dir && (d = readdir(dir))) {
		char name[sizeof(d->d_name) + 4];
		ssize_t n;

		snprintf(name, sizeof(name), "%s/exe", d->d_name);
		n = *d->d_name == '.' ? -1 : readlinkat(fd, name, exe, cap - 1);
		if (n > 0) {
			exe[n] = 0;
			return true;
		}
	}
	return false;
}

/* So long two looks at one that seems to be headless are apart: the threads of a process do not all end in the same moment. */
#define HEADLESS_NS 2000000

/*
 * The first thread has ended and the others have not: /proc has nothing of such a process in its own directory, and it goes on.
 */
static bool is_headless(struct process_look *l, char *exe, size_t cap)
{
	if (!has_other_threads(l) || !exe_of_threads(l, exe, cap))
		return false;
	nanosleep(&(struct timespec){ .tv_nsec = HEADLESS_NS }, NULL);
	return exe_of_threads(l, exe, cap);
}

/* Why the executable cannot be opened: those that live are counted. */
static void count_unopened(struct process_look *l, int why, char *exe, size_t cap)
{
	char denied[SURVEY_WHY] =
		"its first thread has ended, and others go on: such a process is not profiled";

	if ((why == -EACCES || why == -EPERM) && has_cmdline(l))
		caps_denied(*exe ? CAP_DAC_READ_SEARCH : CAP_SYS_PTRACE, denied);
	else if (why != -ENOENT || !is_headless(l, exe, cap))
		return;
	l->s->seen++;
	count_closed(l, denied, exe);
}

static void look_at(struct process_look *l)
{
	CLEANUP(closep) int fd = -1;
	const struct survey_file *f;
	char exe[4096];
	int ret = open_exe(l, exe, sizeof(exe));

	if (ret < 0) {
		count_unopened(l, ret, exe, sizeof(exe));
		return;
	}
	fd = ret;
	/*
	 * The pid may belong to another process by now. Then mostly its executable is another one
	 * too, and what is reported is true of one of the two.
	 */
	ret = target_open(l->pid, &l->t, &l->denied);
	if (ret == -ESRCH || ret == -ENOENT)
		return;
	l->s->seen++;
	f = file_of(l, l->t ? l->t->exe_fd : fd, exe, l->t ? l->t->bias : 0, false);
	if (!f && !l->ended)
		l->s->left_out++;
	else if (f && f->build)
		add_proc(l, f, l->t ? l->t->bias : 0, l->t ? l->t->exe : exe);
	else if (f && f->dynamic && l->t)
		look_at_libraries(l);
	l->s->seen -= l->ended;
}

/* The file, or what has become of the number, says why. */
static int find_go(struct process_look *l, struct err *e)
{
	CLEANUP(gobin_freep) struct gobin *b = NULL;
	CLEANUP(target_freep) struct target *t = NULL;
	int ret = target_open(l->pid, &t, e);

	if (ret)
		return ret;
	ret = gobin_open(t->exe_fd, t->exe, t->mem, t->bias, &b, e);
	return err_wrap(e, ret ? ret : -ESRCH, "pid %d is not a Go program", l->pid);
}

static void say_what_it_is(struct process_look *l)
{
	struct survey_proc *p = vec_add(&l->s->closed, LIMIT_SURVEY);
	struct err e = { "it became another one while it was looked at" };

	if (!p) {
		l->s->left_out++;
		return;
	}
	find_go(l, &e);
	p->pid = l->pid;
	p->no_go = true;
	answer(&p->cpu, e.msg);
}

static size_t told_of(const struct survey *s)
{
	return s->at.n + s->closed.n + s->left_out;
}

void survey_look(struct survey *s, const struct survey_rights *rights, int proc, pid_t pid)
{
	CLEANUP(look_fini) struct process_look l = { .s = s, .rights = rights, .pid = pid };
	size_t before = told_of(s);
	char name[16];

	snprintf(name, sizeof(name), "%d", pid);
	l.dir_fd = openat(proc, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (l.dir_fd >= 0)
		look_at(&l);
	if (s->named && told_of(s) == before)
		say_what_it_is(&l);
}

void survey_forget(struct survey *s)
{
	for (size_t i = 0; i < s->at.n; i++) {
		free(s->at.at[i].exe);
		target_free(s->at.at[i].target);
	}
	for (size_t i = 0; i < s->closed.n; i++)
		free(s->closed.at[i].exe);
	vec_fini(&s->at);
	vec_fini(&s->closed);
}

void survey_fini(struct survey *s)
{
	survey_rest(s);
	survey_forget(s);
	survey_age_files(s, 0);
	free(s->rights);
	vec_fini(&s->dying);
	vec_fini(&s->unanswered);
	vec_fini(&s->files);
	map_fini(&s->by_key);
}
