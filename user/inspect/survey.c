/*
 * user/inspect/survey.c - walks /proc: cheap questions come first, and each file is looked at
 * once.
 */
#include "inspect/survey_priv.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/caps.h"
#include "base/hash.h"
#include "base/limits.h"
#include "go/image/gobin.h"
#include "target/claim.h"
#include "target/poke.h"

/* What one look at a process needs. */
struct look {
	struct survey *s;
	const struct survey_rights *rights;
	pid_t pid;
	int dir_fd; /* of /proc/PID: it stays with this process, whatever happens to its number */
	struct target *t;
	struct err denied; /* why t is NULL */
};

/* ---- files ---- */

static struct survey_key key_of(const struct stat *st)
{
	return (struct survey_key){ .dev = st->st_dev,
				    .ino = st->st_ino,
				    .size = (uint64_t)st->st_size,
				    .mtime_ns = st->st_mtim.tv_sec * 1000000000ll +
						st->st_mtim.tv_nsec };
}

/* The file with this key, or NULL. Hashes can be made to collide, keys cannot. */
static const struct survey_file *known(const struct survey *s, const struct survey_key *k)
{
	uint64_t i;

	if (!map_get(&s->by_key, hash_bytes(k, sizeof(*k)), &i))
		return NULL;
	return memcmp(&s->files.at[i].key, k, sizeof(*k)) ? NULL : &s->files.at[i];
}

const struct survey_file *survey_remember(struct survey *s, const struct survey_key *k,
					  struct survey_build *build, bool dynamic)
{
	struct survey_file *f = vec_add(&s->files, LIMIT_SURVEY);

	if (!f) {
		free(build);
		return NULL;
	}
	*f = (struct survey_file){ .key = *k, .build = build, .dynamic = dynamic };
	map_put(&s->by_key, hash_bytes(k, sizeof(*k)), s->files.n - 1);
	return f;
}

/* The file behind @fd, which is examined when it is new. NULL: no room, no memory. */
static const struct survey_file *file_of(struct look *l, int fd, const char *name, uint64_t bias,
					 bool library)
{
	const struct survey_file *f;
	struct survey_build *b = NULL;
	struct survey_key k;
	bool dynamic = false;
	struct stat st;

	if (fstat(fd, &st))
		return NULL;
	k = key_of(&st);
	f = known(l->s, &k);
	if (f)
		return f;
	if (S_ISREG(st.st_mode) && gobin_may_be_go(fd, &dynamic)) {
		b = malloc(sizeof(*b));
		if (!b)
			return NULL;
		if (survey_understand(fd, name, l->t, bias, l->s->cpu_only, b)) {
			free(b);
			b = NULL;
		} else {
			b->library = library;
		}
	}
	return survey_remember(l->s, &k, b, dynamic);
}

/* ---- one process ---- */

static void read_text(struct look *l, const char *name, char *buf, size_t cap, size_t *len)
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
}

/*
 * The effective user. The directory's owner is no answer: it is root where a program may not be
 * dumped. The name in the first line cannot imitate this line, because the kernel escapes its
 * newlines.
 */
static void fill_user(struct look *l, struct survey_proc *p)
{
	char text[4096], *at;
	size_t len;

	read_text(l, "status", text, sizeof(text), &len);
	at = strstr(text, "\nUid:\t");
	/* the real one comes first, then the effective one */
	at = at ? strchr(at + 6, '\t') : NULL;
	p->uid = at ? (uid_t)strtoul(at, NULL, 10) : (uid_t)-1;
}

static void fill_command(struct look *l, struct survey_proc *p)
{
	size_t len;

	read_text(l, "cmdline", p->command, sizeof(p->command), &len);
	while (len && !p->command[len - 1])
		len--;
	for (size_t i = 0; i < len; i++)
		if (!p->command[i])
			p->command[i] = ' ';
}

static void fill_where(struct look *l, struct survey_proc *p)
{
	CLEANUP(freep) char *text = malloc(LIMIT_CGROUP);
	size_t len;

	read_text(l, "comm", p->comm, sizeof(p->comm), &len);
	if (len && p->comm[len - 1] == '\n')
		p->comm[len - 1] = 0;
	fill_user(l, p);
	fill_command(l, p);
	if (!text)
		return;
	read_text(l, "cgroup", text, LIMIT_CGROUP, &len);
	container_parse(text, len, &p->where);
	container_path(text, p->cgroup, sizeof(p->cgroup));
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
static bool has_older(struct look *l, const struct survey_build *b, enum survey_rate r,
		      uint64_t bias)
{
	uint64_t first = 0;

	return r != SURVEY_RATE_HEAP &&
	       !mem_u64(l->t->mem, b->buckets[r].addr + bias, &first, NULL) && first;
}

static void fill_read(struct look *l, struct survey_proc *p, uint64_t bias, enum survey_rate r,
		      const char *common)
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
static void fill_enable(struct look *l, struct survey_proc *p, uint64_t bias, enum survey_rate r,
			const char *common)
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

static void fill_answers(struct look *l, struct survey_proc *p, uint64_t bias)
{
	const struct survey_build *b = p->build;
	const char *common, *bpf = l->rights->probe.msg;

	common = first_of(b->broken, l->t ? "" : l->denied.msg, b->layout.why);
	answer(&p->cpu, first_of(common, l->rights->cpu.msg, ""));
	if (l->s->cpu_only)
		return;

	for (int r = 0; r < SURVEY_RATES; r++) {
		if (l->t)
			survey_read_rate(l->t, bias, b, (enum survey_rate)r, &p->rate[r]);
		else
			keep_why(p->rate[r].why, l->denied.msg);
	}
	for (int r = 0; r < SURVEY_RATES; r++) {
		const struct survey_answer *sites = r == SURVEY_RATE_HEAP  ? &b->alloc :
						    r == SURVEY_RATE_BLOCK ? &b->park :
									     &b->queue;

		fill_read(l, p, bias, (enum survey_rate)r, common);
		fill_enable(l, p, bias, (enum survey_rate)r, common);
		answer(&p->sources[r].probe, first_of(common, sites->yes ? "" : sites->why, bpf));
	}
	answer(&p->wait, first_of(common, b->status.yes ? "" : b->status.why, bpf));
	answer(&p->goroutine, first_of(common, b->allgs.found ? "" : b->allgs.why, ""));
}

static void add_proc(struct look *l, const struct survey_build *b, uint64_t bias, const char *exe)
{
	struct survey_proc *p = vec_add(&l->s->at, LIMIT_SURVEY);

	if (!p) {
		l->s->left_out++;
		return;
	}
	p->pid = l->pid;
	p->build = b;
	p->exe = strdup(exe);
	p->exe_deleted = l->t ? l->t->exe_deleted : -1;
	fill_where(l, p);
	fill_answers(l, p, bias);
}

/* Finds a Go library that a C program has loaded: the first one, as profiles do. */
static void look_at_libraries(struct look *l)
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
			add_proc(l, f->build, bias, l->t->exe);
			return;
		}
	}
}

/* The first reason is shown for all. */
static void count_denied(struct survey *s, int cap)
{
	if (!s->denied++)
		caps_denied(cap, s->denied_why);
}

/*
 * Opens the executable of a process whose memory we may not read: -EACCES, -ENOENT (gone, a
 * kernel thread).
 */
static int open_exe(struct look *l, char *name, size_t cap)
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
static bool has_cmdline(struct look *l)
{
	CLEANUP(closep) int fd = openat(l->dir_fd, "cmdline", O_RDONLY | O_CLOEXEC);
	char c;

	return fd >= 0 && read(fd, &c, 1) == 1;
}

static void look_at(struct look *l)
{
	CLEANUP(closep) int fd = -1;
	const struct survey_file *f;
	char exe[4096];
	int ret = open_exe(l, exe, sizeof(exe));

	if ((ret == -EACCES || ret == -EPERM) && has_cmdline(l)) {
		l->s->seen++;
		count_denied(l->s, *exe ? CAP_DAC_READ_SEARCH : CAP_SYS_PTRACE);
	}
	if (ret < 0)
		return;
	fd = ret;
	l->s->seen++;
	/*
	 * The pid may belong to another process by now. Then mostly its executable is another one
	 * too, and what is reported is true of one of the two.
	 */
	ret = target_open(l->pid, &l->t, &l->denied);
	if (ret == -ESRCH || ret == -ENOENT)
		return;
	f = file_of(l, l->t ? l->t->exe_fd : fd, exe, l->t ? l->t->bias : 0, false);
	if (!f)
		l->s->left_out++;
	else if (f->build)
		add_proc(l, f->build, l->t ? l->t->bias : 0, l->t ? l->t->exe : exe);
	else if (f->dynamic && l->t)
		look_at_libraries(l);
}

void survey_look(struct survey *s, const struct survey_rights *rights, int proc, pid_t pid)
{
	struct look l = { .s = s, .rights = rights, .pid = pid };
	char name[16];

	snprintf(name, sizeof(name), "%d", pid);
	l.dir_fd = openat(proc, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (l.dir_fd < 0)
		return;
	look_at(&l);
	target_free(l.t);
	close(l.dir_fd);
}

void survey_forget(struct survey *s)
{
	for (size_t i = 0; i < s->at.n; i++)
		free(s->at.at[i].exe);
	s->at.n = 0;
}

void survey_fini(struct survey *s)
{
	survey_forget(s);
	for (size_t i = 0; i < s->files.n; i++)
		free(s->files.at[i].build);
	free(s->rights);
	vec_fini(&s->at);
	vec_fini(&s->unanswered);
	vec_fini(&s->files);
	map_fini(&s->by_key);
}
