/* user/inspect/survey_child.c - the child of a survey: it looks at one process after the other, and tells what is new. */
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/limits.h"
#include "inspect/survey_run_priv.h"

enum { OUT = 3 };

/* How many processes and files were told of. */
struct told {
	size_t files, procs, closed;
};

/* ---- what it tells ---- */

static bool put(FILE *to, const void *p, size_t n)
{
	return !n || fwrite(p, n, 1, to) == 1;
}

static bool put_fds(struct survey_parcel *to, const int *fds, size_t n)
{
	if (n > SURVEY_FDS_MAX - to->nfds)
		return false;
	memcpy(to->fds + to->nfds, fds, n * sizeof(*fds));
	to->nfds += n;
	return true;
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
	struct survey_link k = { .file = p->build ? file_with(s, p->build) : s->files.n,
				 .exe = p->exe ? strlen(p->exe) : 0,
				 .held = p->target != NULL };

	return put(to, p, sizeof(*p)) && put(to, &k, sizeof(k)) && put(to, p->exe, k.exe);
}

static bool put_target(FILE *to, struct survey_parcel *p, const struct target *t)
{
	int fds[HANDOVER_FDS];
	size_t n;

	return !t || (handover_send(t, to, fds, &n) && put_fds(p, fds, n));
}

static bool put_file(FILE *to, struct survey_parcel *p, const struct survey_file *f)
{
	return put(to, f, sizeof(*f)) && (!f->build || put(to, f->build, sizeof(*f->build))) &&
	       (f->copy < 0 || put_fds(p, &f->copy, 1));
}

/* What came after that. */
static bool put_news(FILE *to, struct survey_parcel *p, const struct survey *s, struct told was)
{
	struct survey_news n = { .files = s->files.n - was.files,
				 .procs = s->at.n - was.procs,
				 .closed = s->closed.n - was.closed,
				 .seen = s->seen,
				 .denied = s->denied,
				 .left_out = s->left_out,
				 .files_ns = s->files_ns };
	bool ok;

	memcpy(n.denied_why, s->denied_why, sizeof(n.denied_why));
	ok = put(to, &n, sizeof(n));
	for (size_t i = was.files; ok && i < s->files.n; i++)
		ok = put_file(to, p, &s->files.at[i]);
	for (size_t i = was.procs; ok && i < s->at.n; i++)
		ok = put_proc(to, s, &s->at.at[i]) && put_target(to, p, s->at.at[i].target);
	for (size_t i = was.closed; ok && i < s->closed.n; i++)
		ok = put_proc(to, s, &s->closed.at[i]);
	return ok;
}

static bool send_head(const struct survey_parcel *p)
{
	union survey_control control = { 0 };
	struct survey_frame f = { .bytes = p->n, .fds = (uint32_t)p->nfds };
	struct iovec one = { .iov_base = &f, .iov_len = sizeof(f) };
	struct msghdr m = { .msg_iov = &one, .msg_iovlen = 1 };

	if (p->nfds) {
		control.head = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
						 .cmsg_type = SCM_RIGHTS,
						 .cmsg_len = CMSG_LEN(sizeof(int) * p->nfds) };
		memcpy(CMSG_DATA(&control.head), p->fds, sizeof(int) * p->nfds);
		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(sizeof(int) * p->nfds);
	}
	return sendmsg(OUT, &m, 0) == sizeof(f);
}

static bool send_parcel(const struct survey_parcel *p)
{
	if (!send_head(p))
		return false;
	for (size_t done = 0; done < p->n;) {
		ssize_t sent = write(OUT, p->data + done, p->n - done);

		if (sent < 0 && errno != EINTR)
			return false;
		done += sent > 0 ? (size_t)sent : 0;
	}
	return true;
}

/* A child has as few descriptors as we have, so what was handed over is closed here. */
static bool tell_news(struct survey *s, struct told was)
{
	struct survey_parcel p = { 0 };
	char *data = NULL;
	FILE *to = open_memstream(&data, &p.n);
	bool ok = to && put_news(to, &p, s, was) && !fflush(to);

	p.data = (uint8_t *)data;
	ok = ok && send_parcel(&p);
	if (to)
		fclose(to);
	free(data);
	for (size_t i = was.procs; i < s->at.n; i++)
		target_free(TAKE(s->at.at[i].target));
	return ok;
}

/* ---- what it is ---- */

/* It may be left behind, so it holds nothing of others': no pipe's end, no locked file. */
static bool let_go(int out)
{
	const int keep[] = { 0, 1, 2, OUT };

	if (!process_null_fds(OUT) || (out != OUT && dup2(out, OUT) < 0))
		return false;
	process_keep_fds(keep, ARRAY_LEN(keep));
	return true;
}

/* What the limit counts of us already, with a sanitizer far more than all memory. Source: the sixth number of statm, proc(5). */
static rlim_t data_bytes(void)
{
	CLEANUP(closep) int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	char text[256] = "", *at = text;
	unsigned long long pages = 0;

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return 0;
	for (int i = 0; i < 6; i++)
		pages = strtoull(at, &at, 10);
	return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

/* A file that asks for more memory than this costs its process alone. */
static void bound_memory(void)
{
	rlim_t most = LIMIT_SURVEY_MEMORY + data_bytes();
	struct rlimit l = { most, most };

	setrlimit(RLIMIT_DATA, &l);
}

static bool look_at_all(struct survey_run *r, int proc)
{
	struct survey *s = r->s;

	for (size_t i = r->next; i < r->pids.n; i++) {
		struct told was = { s->files.n, s->at.n, s->closed.n };

		survey_look(s, s->rights, proc, r->pids.at[i]);
		if (!tell_news(s, was))
			return false;
	}
	return true;
}

static bool read_all(int fd, void *buf, size_t n)
{
	for (uint8_t *to = buf; n;) {
		ssize_t got = read(fd, to, n);

		if (!got || (got < 0 && errno != EINTR))
			return false;
		to += got > 0 ? got : 0;
		n -= got > 0 ? (size_t)got : 0;
	}
	return true;
}

/* Waits for it. False: the parent wants no more. */
static bool next_list(struct survey_run *r)
{
	pid_t *at;
	uint32_t n;

	survey_forget(r->s);
	r->next = r->pids.n = 0;
	if (!read_all(OUT, &n, sizeof(n)) || n > SURVEY_ASK_MAX)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		at = vec_add(&r->pids, INT32_MAX);
		if (!at || !read_all(OUT, at, sizeof(*at)))
			return false;
	}
	return true;
}

/* What the parent had taken over is closed here. */
static void forget_targets(struct survey *s)
{
	for (size_t i = 0; i < s->at.n; i++)
		s->at.at[i].target = NULL;
}

_Noreturn void survey_child(struct survey_run *r, int out, pid_t parent)
{
	int proc;

	process_dies_with(parent);
	process_block_signals(); /* Ctrl-C is for its parent, which goes on for a moment */
	prctl(PR_SET_NAME, "goprof-survey");
	if (!let_go(out))
		_exit(1);
	forget_targets(r->s);
	bound_memory();
	proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	while (proc >= 0 && look_at_all(r, proc) && next_list(r))
		;
	_exit(0);
}
