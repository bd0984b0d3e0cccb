/*
 * user/inspect/survey_all.c - a child looks at one process after the other, and its parent listens.
 *
 * A process may have mapped a file, or may run one, whose file system does not answer. Whoever reads
 * it waits, and there are waits that not even SIGKILL ends (a FUSE request that its server has
 * taken). So a child does that. After each process it sends what is new: it began as a copy of the parent, so
 * both have the same lists. Processes that survey.hold wants it hands over with their descriptors. When it falls
 * silent it is killed, at once or whenever its wait is over, and a new child goes on with the next process. After a look it
 * waits for the next one.
 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "base/loop/cancel.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/sys/nofile.h"
#include "inspect/ability.h"
#include "inspect/survey_run_priv.h"

enum {
	POLL_MS = 100,
	EXE_MAX = 4096,
	REAP_TRIES = 10,
	REAP_US = 1000,
	CHILD_FDS =
		8, /* that it needs beside ours: a pair of sockets, and some that it opens before it closes ours */
	SPARE_FDS =
		24, /* no process is taken in without these: others are read, and files are written, while it is profiled */
	FRAME_MAX = 256 << 20, /* bytes about one process: its maps, and the rest */
};

/* ---- the parent: what is in a frame ---- */

static bool get(void *arg, void *buf, size_t n)
{
	struct survey_parcel *p = arg;

	if (n > p->n - p->at)
		return false;
	memcpy(buf, p->data + p->at, n);
	p->at += n;
	return true;
}

/* So many descriptors, which are the caller's now; NULL: there are not so many. */
static const int *get_fds(struct survey_parcel *p, size_t n)
{
	const int *at = p->fds + p->fds_at;

	if (n > p->nfds - p->fds_at)
		return NULL;
	p->fds_at += n;
	return at;
}

static void parcel_drop(struct survey_parcel *p)
{
	for (size_t i = p->fds_at; i < p->nfds; i++)
		close(p->fds[i]);
	free(p->data);
	*p = (struct survey_parcel){ 0 };
}

static bool get_file(struct survey *s, struct survey_parcel *p)
{
	CLEANUP(freep) struct survey_build *b = NULL;
	struct survey_file f, *at;
	const int *copy = NULL;

	if (!get(p, &f, sizeof(f)))
		return false;
	if (f.build) {
		b = malloc(sizeof(*b));
		if (!b || !get(p, b, sizeof(*b)))
			return false;
	}
	if (f.copy >= 0) {
		copy = get_fds(p, 1);
		if (!copy)
			return false;
	}
	at = survey_remember(s, &f.key, TAKE(b), f.dynamic, copy ? *copy : -1);
	if (at)
		keep_why(at->no_copy, f.no_copy);
	return at != NULL;
}

/* @file: the one that it runs. */
static struct target *get_target(struct survey_parcel *p, const struct survey_file *file)
{
	CLEANUP(target_freep) struct target *t = handover_receive(get, p);
	const int *fds = t ? get_fds(p, handover_fds(t)) : NULL;

	if (!fds)
		return NULL;
	handover_adopt(t, fds);
	if (t->exe_fd < 0 && file->copy >= 0)
		t->exe_fd = fcntl(file->copy, F_DUPFD_CLOEXEC, 0);
	return t->exe_fd < 0 ? NULL : TAKE(t);
}

static bool get_proc(struct survey *s, struct survey_parcel *p, struct survey_proc *proc,
		     struct survey_link *k)
{
	CLEANUP(freep) char *exe = NULL;

	if (!get(p, proc, sizeof(*proc)) || !get(p, k, sizeof(*k)) || k->exe > EXE_MAX)
		return false;
	exe = k->exe ? calloc(1, k->exe + 1) : NULL;
	if (k->exe && (!exe || !get(p, exe, k->exe)))
		return false;
	proc->build = k->file < s->files.n ? s->files.at[k->file].build : NULL;
	proc->target = NULL;
	proc->exe = TAKE(exe);
	return true;
}

static bool get_open(struct survey *s, struct survey_parcel *p)
{
	struct survey_proc proc, *at;
	struct survey_link k;

	if (!get_proc(s, p, &proc, &k))
		return false;
	if (proc.build && k.held)
		proc.target = get_target(p, &s->files.at[k.file]);
	if (proc.build)
		s->files.at[k.file].used = ++s->uses;
	at = proc.build && (proc.target || !k.held) ? vec_add(&s->at, LIMIT_SURVEY) : NULL;
	if (at) {
		*at = proc;
		return true;
	}
	free(proc.exe);
	target_free(proc.target);
	return false;
}

static bool get_closed(struct survey *s, struct survey_parcel *p)
{
	struct survey_proc proc, *at;
	struct survey_link k;

	if (!get_proc(s, p, &proc, &k))
		return false;
	at = vec_add(&s->closed, LIMIT_SURVEY);
	if (at)
		*at = proc;
	else
		free(proc.exe);
	return at != NULL;
}

static bool get_news(struct survey *s, struct survey_parcel *p)
{
	struct survey_news n;
	bool ok = get(p, &n, sizeof(n));

	for (size_t i = 0; ok && i < n.files; i++)
		ok = get_file(s, p);
	for (size_t i = 0; ok && i < n.procs; i++)
		ok = get_open(s, p);
	for (size_t i = 0; ok && i < n.closed; i++)
		ok = get_closed(s, p);
	if (!ok)
		return false;
	s->seen = n.seen;
	s->denied = n.denied;
	s->left_out = n.left_out;
	s->files_ns = n.files_ns;
	memcpy(s->denied_why, n.denied_why, sizeof(s->denied_why));
	return true;
}

/* ---- the parent: the child, and frames ---- */

/* Those that could not be killed at once may have died since. */
static void reap(struct survey *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->dying.n; i++)
		if (!waitpid(s->dying.at[i], NULL, WNOHANG))
			s->dying.at[n++] = s->dying.at[i];
	s->dying.n = n;
}

/* One that cannot be killed now is waited for later, or left to the first process of this machine. */
static void end_child(struct survey_run *r)
{
	pid_t *at;

	if (!r->child)
		return;
	kill(r->child, SIGKILL);
	at = vec_add(&r->s->dying, INT32_MAX);
	if (at)
		*at = r->child;
	reap(r->s);
	for (int i = 0; i < REAP_TRIES && r->s->dying.n; i++) {
		usleep(REAP_US);
		reap(r->s);
	}
	close(r->fd);
	r->child = 0;
	r->head_n = 0;
	parcel_drop(&r->in);
}

static int no_room(struct err *e)
{
	return err_set(
		e, -EMFILE,
		"no more file descriptors for processes that are to be profiled: raise the hard limit (ulimit -Hn), or mean fewer of them");
}

static int start_child(struct survey_run *r, struct err *e)
{
	struct epoll_event ev = { .events = EPOLLIN };
	pid_t parent = getpid(), pid;
	int pair[2];

	/* The child begins with as many as we have, until it has closed them. */
	if (!nofile_room(CHILD_FDS + SPARE_FDS))
		return no_room(e);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return err_sys(e, "a socket for a survey");
	pid = fork();
	if (!pid)
		survey_child(r, pair[1], parent);
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return err_sys(e, "a process for a survey");
	}
	r->child = pid;
	r->fd = pair[0];
	r->still = (struct still){ 0 };
	r->began_ns = r->polled_ns = now_ns();
	if (epoll_ctl(r->ep, EPOLL_CTL_ADD, r->fd, &ev))
		return err_sys(e, "waiting for a survey");
	return 0;
}

/* The next one is looked at by another child. */
static int give_up_one(struct survey_run *r, struct err *e)
{
	pid_t *one = vec_add(&r->s->unanswered, LIMIT_UNANSWERED);

	end_child(r);
	if (!one) {
		r->s->left_out += r->pids.n - r->next;
		r->next = r->pids.n;
		return 0;
	}
	*one = r->pids.at[r->next++];
	survey_add_unanswered(r->s, *one);
	return r->next < r->pids.n ? start_child(r, e) : 0;
}

static bool keep_fds(struct survey_run *r, struct msghdr *m)
{
	bool came = false;

	for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS || r->in.nfds)
			continue;
		r->in.nfds = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(r->in.fds, CMSG_DATA(h), r->in.nfds * sizeof(int));
		came = true;
	}
	return came;
}

/* The next bytes, of a frame's head or behind it. */
static ssize_t receive(struct survey_run *r, void *buf, size_t n)
{
	union survey_control control;
	struct iovec to = { .iov_base = buf, .iov_len = n };
	struct msghdr m = { .msg_iov = &to,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	ssize_t got = recvmsg(r->fd, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);

	if (got > 0 && keep_fds(r, &m))
		r->full |= !nofile_room(SPARE_FDS);
	r->full |= got > 0 && m.msg_flags & MSG_CTRUNC;
	return got;
}

/* The head is there: makes room for what follows. */
static bool begin_frame(struct survey_run *r)
{
	if (r->head.bytes > FRAME_MAX || r->head.fds != r->in.nfds)
		return false;
	r->in.data = malloc(r->head.bytes ? r->head.bytes : 1);
	return r->in.data != NULL;
}

/* 1: a whole frame is there. 0: not yet. -EPIPE: no more will come, or it contradicts itself. */
static int read_frame(struct survey_run *r)
{
	for (;;) {
		bool head = r->head_n < sizeof(r->head);
		uint8_t *to = head ? (uint8_t *)&r->head + r->head_n : r->in.data + r->in.n;
		size_t want = head ? sizeof(r->head) - r->head_n : r->head.bytes - r->in.n;
		ssize_t got = want ? receive(r, to, want) : 0;

		if (!want)
			return 1;
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 && errno == EAGAIN ? 0 : -EPIPE;
		if (head)
			r->head_n += (size_t)got;
		else
			r->in.n += (size_t)got;
		if (head && r->head_n == sizeof(r->head) && !begin_frame(r))
			return -EPIPE;
	}
}

static bool is_stuck(struct survey_run *r)
{
	uint64_t now = now_ns();

	if (now - r->polled_ns < POLL_MS * NS_PER_MS)
		return false;
	r->polled_ns = now;
	return process_still_ms(&r->still, r->child) >= LIMIT_STUCK_MS ||
	       now - r->began_ns > LIMIT_LOOK_MS * NS_PER_MS;
}

/* ---- the parent: steps ---- */

void survey_rest(struct survey *s)
{
	struct survey_run *r = TAKE(s->run);

	if (!r)
		return;
	r->s = s;
	end_child(r);
	closep(&r->ep);
	vec_fini(&r->pids);
	free(r);
}

/* What was not answered will not be; and a child knows of the copies that there were when it began. */
void survey_stop(struct survey *s)
{
	struct survey_run *r = s->run;

	if (!r || !r->on)
		return;
	r->on = false;
	if (survey_age_copies(s, LIMIT_SURVEY_COPIES, LIMIT_SURVEY_COPY_BYTES) ||
	    r->next < r->pids.n || r->full)
		survey_rest(s);
}

uint64_t survey_child_ns(const struct survey *s)
{
	return s->run && s->run->child ? process_cpu_ns(s->run->child) : 0;
}

int survey_fd(const struct survey *s)
{
	return s->run && s->run->on ? s->run->ep : -1;
}

size_t survey_to_come(const struct survey *s)
{
	return s->run && s->run->on ? s->run->pids.n - s->run->next : 0;
}

/* What there is of one process. 1: it is told of. 0: not yet. */
static int step(struct survey_run *r, struct err *e)
{
	int ret = read_frame(r);

	if (r->full)
		return no_room(e);
	if (ret > 0 && get_news(r->s, &r->in)) {
		parcel_drop(&r->in);
		r->head_n = 0;
		r->next++;
		r->began_ns = now_ns();
		return 1;
	}
	if (!ret && !is_stuck(r))
		return 0;
	ret = give_up_one(r, e);
	return ret ? ret : 1;
}

int survey_step(struct survey *s, struct err *e)
{
	int ret = 1;

	while (s->run && ret > 0 && s->run->next < s->run->pids.n)
		ret = step(s->run, e);
	return ret;
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
	if (s->wants & ~(unsigned)(SURVEY_GOROUTINE | SURVEY_LINKED))
		ability_uprobe(&s->rights->probe);
	return 0;
}

/* The child that waits gets the list. False: it does not, and a new one is to begin. */
static bool ask_child(struct survey_run *r)
{
	uint32_t n = (uint32_t)r->pids.n;
	struct iovec of[] = { { &n, sizeof(n) }, { r->pids.at, n * sizeof(*r->pids.at) } };
	const struct msghdr m = { .msg_iov = of, .msg_iovlen = ARRAY_LEN(of) };
	char any;

	if (!r->child || r->pids.n > SURVEY_ASK_MAX)
		return false;
	if (recv(r->fd, &any, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN)
		return false; /* it has ended */
	r->still = (struct still){ 0 };
	r->began_ns = r->polled_ns = now_ns();
	return sendmsg(r->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT) ==
	       (ssize_t)(of[0].iov_len + of[1].iov_len);
}

static int begin(struct survey_run *r, const pid_t *pids, size_t n, struct err *e)
{
	int ret = find_rights(r->s, e);

	r->next = r->pids.n = 0;
	for (size_t i = 0; !ret && i < n; i++) {
		pid_t *at = vec_add(&r->pids, INT32_MAX);

		if (at)
			*at = pids[i];
		else
			ret = err_set(e, -ENOMEM, "no memory for the list of processes");
	}
	if (ret || !n || ask_child(r))
		return ret;
	end_child(r);
	return start_child(r, e);
}

static int run_new(struct survey *s, struct err *e)
{
	struct survey_run *r = calloc(1, sizeof(*r));

	if (!r)
		return err_set(e, -ENOMEM, "no memory for a survey");
	r->ep = epoll_create1(EPOLL_CLOEXEC);
	if (r->ep < 0) {
		free(r);
		return err_sys(e, "epoll");
	}
	s->run = r;
	return 0;
}

int survey_begin(struct survey *s, const pid_t *pids, size_t n, struct err *e)
{
	int ret = 0;

	survey_stop(s);
	if (!s->at.n && s->files.n > LIMIT_SURVEY_KEPT) {
		survey_rest(s); /* it knows files by their place in the list */
		survey_age_files(s, LIMIT_SURVEY_KEPT);
	}
	if (!s->run)
		ret = run_new(s, e);
	if (ret)
		return ret;
	s->run->s = s;
	s->run->on = true;
	if (s->hold)
		nofile_raise();
	ret = begin(s->run, pids, n, e);
	if (ret)
		survey_rest(s);
	return ret;
}

int survey_more(struct survey *s, const pid_t *pids, size_t n, struct err *e)
{
	int ret = survey_begin(s, pids, n, e);

	while (!ret) {
		struct pollfd p = { .fd = survey_fd(s), .events = POLLIN };

		(void)poll(&p, 1, POLL_MS);
		ret = cancelled() ?
			      err_set(e, -ECANCELED, "stopped before anything was collected") :
			      survey_step(s, e);
	}
	survey_rest(s);
	return ret < 0 ? ret : 0;
}

/* ---- all processes ---- */

struct pids {
	VEC(pid_t) v;
};

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

static int list_pids(struct survey *s, struct pids *to, struct err *e)
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
	s->hidden = faccessat(dirfd(proc), "1", F_OK, 0) != 0;
	while ((d = readdir(proc)) != NULL) {
		pid_t pid = pid_of(d->d_name), *at;

		if (!pid || pid == getpid())
			continue;
		at = vec_add(&to->v, INT32_MAX);
		if (!at)
			return err_set(e, -ENOMEM, "no memory for the list of processes");
		*at = pid;
	}
	return 0;
}

int survey_run(struct survey *out, struct err *e)
{
	struct survey s = {
		.wants = out->wants, .hold = out->hold, .judge = out->judge, .arg = out->arg
	};
	struct pids all = { 0 };
	int ret = list_pids(&s, &all, e);

	if (!ret)
		ret = survey_more(&s, all.v.at, all.v.n, e);
	vec_fini(&all.v);
	if (ret)
		survey_fini(&s);
	else
		*out = s;
	return ret;
}
