/*
 * user/inspect/survey_all.c - a child looks at one process after the other, and its parent listens.
 *
 * A process may have mapped a file, or may run one, whose file system does not answer. Whoever reads
 * it waits, and there are waits that not even SIGKILL ends (a FUSE request that its server has
 * taken). So a child does that. After each process it sends what is new: it began as a copy of the parent, so
 * both have the same lists. When it falls silent it is killed, at once or whenever its wait is over, and a new
 * child goes on with the next process.
 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "base/limits.h"
#include "inspect/ability.h"
#include "inspect/survey_priv.h"

enum { POLL_MS = 100, OUT = 3, EXE_MAX = 4096, REAP_TRIES = 10, REAP_US = 1000 };

struct run {
	struct survey *s;
	VEC(pid_t) pids;
};

/* What follows are @files times a survey_file and its build, and @procs times a survey_proc, a link, its exe. */
struct news {
	size_t files, procs;
	size_t seen, denied, left_out;
	char denied_why[SURVEY_WHY];
};

/* What a pointer of a survey_proc stands for. */
struct link {
	size_t file; /* whose build it is */
	size_t exe;  /* bytes; 0: there is none */
};

/* ---- the child ---- */

static bool put(FILE *to, const void *p, size_t n)
{
	return !n || fwrite(p, n, 1, to) == 1;
}

static size_t file_with(const struct survey *s, const struct survey_build *b)
{
	size_t i = 0;

	while (i < s->files.n && s->files.at[i].build != b)
		i++;
	return i;
}

static bool put_proc(FILE *to, const struct survey *s, const struct survey_proc *p)
{
	struct link k = { .file = file_with(s, p->build), .exe = p->exe ? strlen(p->exe) : 0 };

	return put(to, p, sizeof(*p)) && put(to, &k, sizeof(k)) && put(to, p->exe, k.exe);
}

static bool put_file(FILE *to, const struct survey_file *f)
{
	return put(to, f, sizeof(*f)) && (!f->build || put(to, f->build, sizeof(*f->build)));
}

/* What came after the first @files and @procs. */
static bool put_news(FILE *to, const struct survey *s, size_t files, size_t procs)
{
	struct news n = { .files = s->files.n - files,
			  .procs = s->at.n - procs,
			  .seen = s->seen,
			  .denied = s->denied,
			  .left_out = s->left_out };
	bool ok;

	memcpy(n.denied_why, s->denied_why, sizeof(n.denied_why));
	ok = put(to, &n, sizeof(n));
	for (; ok && files < s->files.n; files++)
		ok = put_file(to, &s->files.at[files]);
	for (; ok && procs < s->at.n; procs++)
		ok = put_proc(to, s, &s->at.at[procs]);
	return ok && !fflush(to);
}

/* It may be left behind, so it holds nothing of others': no pipe's end, no locked file. */
static bool let_go(int out)
{
	int null = open("/dev/null", O_RDWR);

	for (int fd = 0; fd < OUT; fd++)
		if (null < 0 || dup2(null, fd) < 0)
			return false;
	if (out != OUT && dup2(out, OUT) < 0)
		return false;
	return !syscall(SYS_close_range, OUT + 1, ~0u, 0);
}

static _Noreturn void child(const struct run *r, size_t from, int out, pid_t parent)
{
	struct survey *s = r->s;
	FILE *to;
	int proc;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || !let_go(out))
		_exit(1);
	to = fdopen(OUT, "w");
	proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (; to && proc >= 0 && from < r->pids.n; from++) {
		size_t files = s->files.n, procs = s->at.n;

		survey_look(s, s->rights, proc, r->pids.at[from]);
		if (!put_news(to, s, files, procs))
			break;
	}
	_exit(from < r->pids.n);
}

/* ---- the parent ---- */

static uint64_t ns_of(clockid_t clock)
{
	struct timespec ts = { 0 };

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

struct line {
	int fd;
	clockid_t cpu;	   /* of the child */
	uint64_t began_ns; /* with the process that it looks at */
};

/* Waits until there is something to read. Who uses CPU time is at work. */
static bool answers(const struct line *l)
{
	uint64_t cpu = ns_of(l->cpu), now;

	for (unsigned quiet = 0; quiet < LIMIT_QUIET_MS; quiet += POLL_MS) {
		struct pollfd p = { .fd = l->fd, .events = POLLIN };

		if (poll(&p, 1, POLL_MS) > 0)
			return true;
		now = ns_of(l->cpu);
		if (now != cpu)
			quiet = 0;
		cpu = now;
		if (ns_of(CLOCK_MONOTONIC) - l->began_ns > LIMIT_LOOK_MS * 1000000ull)
			return false;
	}
	return false;
}

static bool get(const struct line *l, void *buf, size_t n)
{
	for (size_t done = 0; done < n;) {
		ssize_t got = answers(l) ? read(l->fd, (char *)buf + done, n - done) : 0;

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		done += (size_t)got;
	}
	return true;
}

static bool get_file(struct survey *s, const struct line *l)
{
	CLEANUP(freep) struct survey_build *b = NULL;
	struct survey_file f;

	if (!get(l, &f, sizeof(f)))
		return false;
	if (f.build) {
		b = malloc(sizeof(*b));
		if (!b || !get(l, b, sizeof(*b)))
			return false;
	}
	return survey_remember(s, &f.key, TAKE(b), f.dynamic) != NULL;
}

static bool get_proc(struct survey *s, const struct line *l)
{
	CLEANUP(freep) char *exe = NULL;
	struct survey_proc p, *at;
	struct link k;

	if (!get(l, &p, sizeof(p)) || !get(l, &k, sizeof(k)) || k.file >= s->files.n ||
	    !s->files.at[k.file].build || k.exe > EXE_MAX)
		return false;
	exe = k.exe ? calloc(1, k.exe + 1) : NULL;
	if (k.exe && (!exe || !get(l, exe, k.exe)))
		return false;
	at = vec_add(&s->at, LIMIT_SURVEY);
	if (!at)
		return false;
	p.build = s->files.at[k.file].build;
	p.exe = TAKE(exe);
	*at = p;
	return true;
}

static bool get_news(struct survey *s, const struct line *l)
{
	struct news n;
	bool ok = get(l, &n, sizeof(n));

	for (size_t i = 0; ok && i < n.files; i++)
		ok = get_file(s, l);
	for (size_t i = 0; ok && i < n.procs; i++)
		ok = get_proc(s, l);
	if (!ok)
		return false;
	s->seen = n.seen;
	s->denied = n.denied;
	s->left_out = n.left_out;
	memcpy(s->denied_why, n.denied_why, sizeof(s->denied_why));
	return true;
}

/* One that cannot be killed now is left to the first process of this machine. */
static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	for (int i = 0; i < REAP_TRIES && !waitpid(pid, NULL, WNOHANG); i++)
		usleep(REAP_US);
}

/* Of a new child; *i: the first process that it did not tell of. */
static int listen_to_one(struct run *r, size_t *i, struct err *e)
{
	struct line l = { 0 };
	pid_t parent = getpid(), pid;
	int pipefd[2];

	if (pipe2(pipefd, O_CLOEXEC))
		return err_sys(e, "a pipe for a survey");
	pid = fork();
	if (!pid)
		child(r, *i, pipefd[1], parent);
	close(pipefd[1]);
	if (pid < 0 || clock_getcpuclockid(pid, &l.cpu)) {
		close(pipefd[0]);
		return err_sys(e, "a process for a survey");
	}
	l.fd = pipefd[0];
	for (; *i < r->pids.n; ++*i) {
		l.began_ns = ns_of(CLOCK_MONOTONIC);
		if (!get_news(r->s, &l))
			break;
	}
	close(l.fd);
	end(pid);
	return 0;
}

static int all_of(struct run *r, struct err *e)
{
	size_t i = 0;
	int ret = listen_to_one(r, &i, e);

	while (!ret && i < r->pids.n) {
		pid_t *one = vec_add(&r->s->unanswered, LIMIT_UNANSWERED);

		if (!one) {
			r->s->left_out += r->pids.n - i;
			return 0;
		}
		*one = r->pids.at[i++];
		if (i < r->pids.n)
			ret = listen_to_one(r, &i, e);
	}
	return ret;
}

/* A pid is digits and nothing else; 0 is none. */
static pid_t pid_of(const char *name)
{
	uint64_t v = 0;

	for (; *name; name++) {
		if (*name < '0' || *name > '9' || v > INT32_MAX / 10)
			return 0;
		v = v * 10 + (uint64_t)(*name - '0');
	}
	return v <= INT32_MAX ? (pid_t)v : 0;
}

static void closedirp(DIR **d)
{
	if (*d)
		closedir(*d);
}

static int list_pids(struct run *r, struct err *e)
{
	CLEANUP(closedirp) DIR *proc = opendir("/proc");
	const struct dirent *d;

	if (!proc)
		return err_sys(e, "/proc");
	if (faccessat(dirfd(proc), "self/stat", R_OK, 0))
		return err_set(e, -ENOENT, "there is no /proc of this pid namespace here");
	/*
	 * With hidepid, /proc does not even name others' processes; otherwise pid 1 is always
	 * there.
	 */
	r->s->hidden = faccessat(dirfd(proc), "1", F_OK, 0) != 0;
	while ((d = readdir(proc)) != NULL) {
		pid_t pid = pid_of(d->d_name), *at;

		if (!pid || pid == getpid())
			continue;
		at = vec_add(&r->pids, INT32_MAX);
		if (!at)
			return err_set(e, -ENOMEM, "no memory for the list of processes");
		*at = pid;
	}
	return 0;
}

/* These are the same for all processes. */
static int find_rights(struct survey *s, struct err *e)
{
	if (s->rights)
		return 0;
	s->rights = calloc(1, sizeof(*s->rights));
	if (!s->rights)
		return err_set(e, -ENOMEM, "no memory for a survey");
	ability_cpu(&s->rights->cpu);
	if (!s->cpu_only)
		ability_uprobe(&s->rights->probe);
	return 0;
}

int survey_more(struct survey *s, const pid_t *pids, size_t n, struct err *e)
{
	struct run r = { .s = s };
	int ret = find_rights(s, e);

	for (size_t i = 0; !ret && i < n; i++) {
		pid_t *at = vec_add(&r.pids, INT32_MAX);

		if (at)
			*at = pids[i];
		else
			ret = err_set(e, -ENOMEM, "no memory for the list of processes");
	}
	if (!ret && n)
		ret = all_of(&r, e);
	vec_fini(&r.pids);
	return ret;
}

int survey_run(struct survey *out, struct err *e)
{
	struct survey s = { .cpu_only = out->cpu_only };
	struct run r = { .s = &s };
	int ret = list_pids(&r, e);

	if (!ret)
		ret = survey_more(&s, r.pids.at, r.pids.n, e);
	vec_fini(&r.pids);
	if (ret)
		survey_fini(&s);
	else
		*out = s;
	return ret;
}
