/* user/collect/ratewrite/guardian.c - the guardian's own process, and the collector's side of it. */
#include "collect/ratewrite/guardian.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/sys/oom.h"
#include "base/sys/process.h"

enum {
	ENTER_MS = 10000,  /* for the lock, which others may hold for a moment */
	ANSWER_MS = 17000, /* more, and for looking whose locks are in the way, twice */
	GRACE_MS = 10000,  /* after the window, until it restores by itself */
	STALL_MS = 30000,  /* without a sign of life, the collector counts as stopped or hanging */
	LOOK_MS = 250,	   /* how soon it notices an exec */
	/*
	 * pause between looks whether it is alone, doubled each time: where others seem to be
	 * there, a look goes through the processes of this kernel
	 */
	LINGER_MIN_MS = 1000,
	LINGER_MAX_MS = 8000,
	RETRY_MIN_MS = 10, /* after an error of the kernel's, doubled each time */
	RETRY_MAX_MS = 1000,
	SETTLE_READS = 4,
	SETTLE_US = 500,
};

/* Words that go over the socket; its end of file tells either side that the other one is dead. */
enum word {
	WORD_WRITING, /* it is about to write: from here on there may be something to restore */
	WORD_BEGUN,
	WORD_FAILED, /* code and text say why; nothing is switched on */
	WORD_ENDED,
};

struct msg {
	int32_t word, code;
	struct guardian_said said;
	struct err err;
};

/* Both sides have one; after the fork each has its own. */
struct restorer {
	const struct guardian_job *job;
	struct poke *poke;
	struct claims *claims;
	int sock;
	uint64_t value; /* the value in force, when there is something to restore; else 0 */
	bool exposed;	/* the guardian's own: the OOM killer does not spare it */
	/* shared: how often the collector has checked in; only the collector writes */
	uint64_t *beats;
};

struct guardian {
	struct guardian_job job;
	struct restorer k; /* for standing in for the guardian */
	pid_t pid;
	bool dead;	/* the guardian is dead, and the collector stands in for it */
	bool may_write; /* the guardian has announced a write */
	bool ended;
	/* the guardian is dead, and another one restores what could not be restored yet */
	bool heir;
	/* the guardian outlives the collector, because others use the switch */
	bool lingers;
	struct guardian_said said; /* its answer, when it ended by itself */
};

/* ---- what either process does to the target ---- */

/*
 * Reads a value that is the same in several looks, so that it is neither half written nor just
 * being changed.
 */
static int read_settled(struct restorer *k, uint64_t *v, struct err *e)
{
	uint64_t first, again;
	int ret = poke_get(k->poke, &first, e);

	for (int i = 1; !ret && i < SETTLE_READS; i++) {
		usleep(SETTLE_US);
		ret = poke_get(k->poke, &again, e);
		if (!ret && again != first)
			return err_set(e, -EBUSY, "%s changes by itself (%llu, then %llu)",
				       k->job->name, (unsigned long long)first,
				       (unsigned long long)again);
	}
	if (!ret)
		*v = first;
	return ret;
}

/*
 * Decides, under the lock, what is to be done about the value @v, when others have claimed
 * @others.
 */
static int decide(const struct restorer *k, uint64_t v, uint64_t others, int *how, struct err *e)
{
	if (!v && others)
		return err_set(e, -EBUSY,
			       "%s is 0, but a lock on the target says that another goprof-bpf has "
			       "switched it on: the program took it back, or somebody else holds "
			       "that lock",
			       k->job->name);
	*how = !v ? GUARDIAN_WROTE : v == others ? GUARDIAN_SHARES : GUARDIAN_FOUND;
	return 0;
}

/* The value is ours to restore only while it is the one in force: any other value was set by the program. */
static int put_back(struct restorer *k, uint64_t *left, int *how, struct err *e)
{
	int ret = poke_get(k->poke, left, e);

	if (ret)
		return ret;
	*how = GUARDIAN_CHANGED;
	if (*left != k->value)
		return 0;
	ret = poke_put(k->poke, k->value, 0, e);
	if (ret == -EAGAIN) /* it changed at this very moment */
		return poke_get(k->poke, left, e);
	*left = 0;
	*how = GUARDIAN_RESTORED;
	return ret;
}

/* Restores when nobody else needs it. *said is what is surely so: nothing is said of what failed. */
static int restore(struct restorer *k, struct guardian_said *said, struct err *e)
{
	uint64_t left = k->value, others = 0;
	int how = GUARDIAN_LEFT;
	/* If the claims cannot be read, there are taken to be none: the target comes first. */
	int unread = claims_others(k->claims, k->value, NULL, &others, NULL);
	int ret = unread || others != k->value ? put_back(k, &left, &how, e) : 0;

	if (ret)
		return ret;
	said->value = left;
	said->how = how;
	said->imitated = !unread && claims_imitated(k->claims);
	return 0;
}

/*
 * Does everything that ending takes. A target that is gone is no error. It gets the lock if it
 * can; but anybody can hold that lock for ever, so after some time it goes on without. The worst
 * result is that a collector which begins at this moment finds the value changed.
 */
static int leave(struct restorer *k, struct guardian_said *said, struct err *e)
{
	int ret;

	(void)claims_enter(k->claims, k->job->enter_ms ? k->job->enter_ms : ENTER_MS, NULL, NULL,
			   NULL);
	claims_drop(k->claims);
	ret = restore(k, said, e);
	claims_leave(k->claims);
	if (ret && ret != -ESRCH)
		return ret;
	said->at_ns = now_ns();
	if (ret) {
		said->how = GUARDIAN_GONE;
		said->value = 0;
	}
	return 0;
}

/* ---- the guardian's process ---- */

static void send_msg(struct restorer *k, struct msg *m)
{
	(void)!send(k->sock, m, sizeof(*m), MSG_NOSIGNAL);
}

static bool target_exits_within(const struct restorer *k, unsigned ms)
{
	struct pollfd p = { .fd = k->job->target->pidfd, .events = POLLIN };

	return poll(&p, 1, (int)ms) > 0;
}

/*
 * Tries again on any error of the kernel, until it is done or the process exists no more. Where
 * the target has given the page back, the errors end with the process.
 */
static int leave_surely(struct restorer *k, struct guardian_said *said, struct err *e)
{
	unsigned pause = RETRY_MIN_MS;
	int ret;

	while ((ret = leave(k, said, e)) && !target_exits_within(k, pause))
		if (pause < RETRY_MAX_MS)
			pause *= 2;
	if (ret)
		*said = (struct guardian_said){ .how = GUARDIAN_GONE, .at_ns = now_ns() };
	return 0;
}

/* The collector has died or has asked: in both cases its end of the socket is closed. */
static bool asked(void *arg)
{
	struct restorer *k = arg;
	struct pollfd p = { .fd = k->sock, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

/*
 * To be called under the lock. The claim is made before the write, so that whoever sees the value
 * also sees the claim.
 */
static int switch_on(struct restorer *k, struct guardian_said *said, struct err *e)
{
	struct msg m = { .word = WORD_WRITING };
	uint64_t v = 0, others = 0;
	int ret;

	ret = claims_others(k->claims, k->job->value, NULL, &others, e);
	if (!ret)
		ret = read_settled(k, &v, e);
	if (!ret && v && v != others)
		ret = claims_others(k->claims, v, NULL, &others, e);
	if (!ret)
		ret = decide(k, v, others, &said->how, e);
	if (ret)
		return ret;
	said->value = said->how == GUARDIAN_WROTE ? k->job->value : v;
	if (said->how == GUARDIAN_FOUND)
		return 0;
	ret = claims_take(k->claims, said->value, e);
	if (ret)
		return ret;
	m.said = *said;
	send_msg(k, &m);
	if (asked(k))
		return err_set(e, -EINTR, "the collector is gone");
	k->value = said->value;
	if (said->how == GUARDIAN_WROTE)
		ret = poke_put(k->poke, 0, k->value, e);
	said->at_ns = now_ns();
	return ret;
}

static int begin(struct restorer *k, struct guardian_said *said, struct err *e)
{
	int ret = claims_enter(k->claims, ENTER_MS, asked, k, e);

	if (ret)
		return ret;
	ret = switch_on(k, said, e);
	claims_leave(k->claims);
	return ret;
}

/* Has the collector shown a sign of life lately? */
struct pulse {
	uint64_t beats, since_ns;
};

static bool stalls(struct restorer *k, struct pulse *p)
{
	uint64_t beats = __atomic_load_n(k->beats, __ATOMIC_RELAXED), now = now_ns();
	uint64_t stall_ms = k->job->stall_ms ? k->job->stall_ms : STALL_MS;

	if (beats != p->beats)
		*p = (struct pulse){ beats, now };
	return now - p->since_ns > stall_ms * NS_PER_MS;
}

/*
 * Waits until the collector asks or is dead, the target is gone, or the time is over. It is over
 * as well when the collector has been stopped (SIGSTOP, Ctrl-Z) for long.
 */
static bool wait_for_end(struct restorer *k)
{
	uint64_t grace = k->job->window_ns + GRACE_MS * NS_PER_MS, v;
	uint64_t end = k->job->window_ns ? now_ns() + grace : UINT64_MAX;
	struct pulse pulse = { .since_ns = now_ns() };
	struct pollfd p[] = { { .fd = k->sock, .events = POLLIN },
			      { .fd = k->job->target->pidfd, .events = POLLIN } };

	while (now_ns() < end && !stalls(k, &pulse)) {
		if (poll(p, ARRAY_LEN(p), LOOK_MS) > 0)
			return true;
		if (poke_get(k->poke, &v, NULL) == -ESRCH)
			return true;
	}
	return false;
}

/*
 * Others still use it, or seem to: a lock is no proof, because its holder may be another program, or
 * may not be seen from here. So it is not left to them. This waits until it is alone and has
 * restored, or the value is no longer ours, or the target is gone.
 */
static void linger(struct restorer *k)
{
	struct guardian_said said = { .how = GUARDIAN_LEFT };
	unsigned pause = LINGER_MIN_MS;
	uint64_t v;
	int ret;

	while (said.how == GUARDIAN_LEFT && !target_exits_within(k, pause)) {
		if (pause < LINGER_MAX_MS)
			pause *= 2;
		ret = poke_get(k->poke, &v, NULL);
		if (ret == -ESRCH || (!ret && v != k->value))
			return;
		leave_surely(k, &said, NULL);
	}
}

static void guard(struct restorer *k)
{
	struct msg m = { .word = WORD_BEGUN };
	bool lingers = false;

	m.code = begin(k, &m.said, &m.err);
	m.said.exposed = k->exposed;
	if (m.code && k->value) { /* it failed in the middle: whatever was done is undone */
		struct guardian_said ignored = { 0 };

		leave_surely(k, &ignored, NULL);
		if (ignored.how == GUARDIAN_LEFT)
			lingers = true;
	}
	if (m.code)
		m.word = WORD_FAILED;
	send_msg(k, &m);
	if (lingers)
		linger(k);
	if (m.code || m.said.how == GUARDIAN_FOUND)
		return;

	memset(&m, 0, sizeof(m));
	m.word = WORD_ENDED;
	m.said.late = !wait_for_end(k);
	leave_surely(k, &m.said, NULL);
	send_msg(k, &m);
	if (m.said.how == GUARDIAN_LEFT)
		linger(k);
}

/* Replaces a guardian that was killed, when the collector could not restore at once. */
static void inherit(struct restorer *k)
{
	struct guardian_said said = { .how = GUARDIAN_LEFT };

	leave_surely(k, &said, NULL);
	if (said.how == GUARDIAN_LEFT)
		linger(k);
}

static _Noreturn void guardian_main(struct restorer *k)
{
	bool heir = k->value != 0;
	int keep[] = { k->job->target->pidfd, k->job->target->proc_fd, poke_fd(k->poke),
		       claims_fd(k->claims), k->sock };
	size_t nkeep = ARRAY_LEN(keep) - heir; /* nobody asks an heir, so it has no socket */

	process_block_signals();
	setsid(); /* or the terminal would have one more process */
	prctl(PR_SET_NAME, CLAIM_HOLDER);
	(void)!chdir("/");
	k->exposed = oom_spare(OOM_FILE, oom_raised());
	process_keep_fds(keep, nkeep);
	if (heir)
		inherit(k);
	else
		guard(k);
	_exit(0);
}

/* ---- the collector's side ---- */

/* Returns 1 for a message, 0 when the guardian is dead, -EAGAIN for nothing in that time. */
static int next_msg(struct guardian *g, int timeout_ms, struct msg *m)
{
	uint64_t end = now_ns() + (uint64_t)timeout_ms * NS_PER_MS;

	for (;;) {
		struct pollfd p = { .fd = g->k.sock, .events = POLLIN };
		uint64_t now = now_ns();
		int left = now < end ? (int)((end - now) / NS_PER_MS) + 1 : 0;
		ssize_t n;

		if (!timeout_ms)
			left = 0;
		if (poll(&p, 1, left) > 0) {
			n = recv(g->k.sock, m, sizeof(*m), MSG_DONTWAIT);
			if (n == sizeof(*m))
				return 1;
			if (n >= 0 || (errno != EINTR && errno != EAGAIN))
				return 0;
		}
		if (!left)
			return -EAGAIN;
	}
}

static void reap(struct guardian *g)
{
	if (g->pid > 0)
		process_wait(g->pid);
	g->pid = 0;
}

/* The guardian was killed: from here on the collector does the restoring. */
static void stand_in(struct guardian *g)
{
	reap(g);
	g->dead = true;
}

/*
 * Its claim went with it, so we claim again; otherwise the next collector to leave would restore
 * too early. If one has left just now, the value is gone, and that is noticed as any other change
 * is.
 */
static void claim_again(struct guardian *g)
{
	uint64_t v;

	if (claims_enter(g->k.claims, ENTER_MS / 10, NULL, NULL, NULL))
		return;
	if (!poke_get(g->k.poke, &v, NULL) && v == g->k.value)
		(void)claims_take(g->k.claims, v, NULL);
	claims_leave(g->k.claims);
}

static int wait_begun(struct guardian *g, struct guardian_said *said, struct err *e)
{
	struct msg m;
	int got = next_msg(g, ANSWER_MS, &m);

	if (got > 0 && m.word == WORD_WRITING) {
		g->may_write = true;
		g->k.value = m.said.value;
		got = next_msg(g, ANSWER_MS, &m);
	}
	if (got < 0)
		return err_set(e, -EBUSY, "the guardian (pid %d) does not answer", g->pid);
	if (!got) {
		stand_in(g);
		return err_set(e, -EINTR, "the guardian was killed");
	}
	if (m.word == WORD_FAILED) {
		g->may_write = false; /* it has undone what it had begun, and exits */
		g->ended = true;
		return err_set(e, m.code, "%s", m.err.msg);
	}
	*said = m.said;
	return 0;
}

/* @sock -1: an heir, which is to restore @value. */
static int fork_guardian(struct guardian *g, int sock, uint64_t value, struct err *e)
{
	struct restorer k = {
		.job = &g->job, .poke = g->k.poke, .sock = sock, .value = value, .beats = g->k.beats
	};
	int ret = claims_open(g->job.target, g->job.what, g->job.force_exe, &k.claims, e);

	if (ret)
		return ret;
	fflush(NULL); /* otherwise buffered output would be written twice */
	g->pid = fork();
	if (!g->pid)
		guardian_main(&k);
	claims_free(k.claims); /* from now on only the child has its description */
	return g->pid < 0 ? err_sys(e, "cannot fork the guardian") : 0;
}

static int share_beats(struct guardian *g, struct err *e)
{
	void *p = mmap(NULL, sizeof(*g->k.beats), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return err_sys(e, "memory shared with the guardian");
	g->k.beats = p;
	return 0;
}

int guardian_start(const struct guardian_job *job, struct guardian **out,
		   struct guardian_said *said, struct err *e)
{
	CLEANUP(guardian_freep) struct guardian *g = calloc(1, sizeof(*g));
	CLEANUP(closep) int sock = -1;
	int pair[2], ret;

	if (!g)
		return err_set(e, -ENOMEM, "no memory for a guardian");
	BUG_ON(!job->value || job->value > CLAIM_VALUE_MAX);
	g->job = *job;
	g->k = (struct restorer){ .job = &g->job, .sock = -1 };
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return err_sys(e, "socketpair");
	g->k.sock = pair[0];
	sock = pair[1];
	ret = poke_open(job->target, job->addr, &g->k.poke, e);
	if (!ret)
		ret = claims_open(job->target, job->what, job->force_exe, &g->k.claims, e);
	if (!ret)
		ret = share_beats(g, e);
	if (!ret)
		ret = fork_guardian(g, sock, 0, e);
	if (ret)
		return ret;
	close(TAKE_FD(sock)); /* otherwise the end of the socket would never be seen */
	ret = wait_begun(g, said, e);
	if (ret)
		return ret;
	g->may_write = said->how != GUARDIAN_FOUND;
	g->ended = !g->may_write; /* there is nothing to guard, so it exits */
	if (g->may_write && said->exposed)
		(void)oom_above(OOM_FILE);
	*out = g->may_write ? TAKE(g) : NULL;
	return 0;
}

int guardian_check(struct guardian *g)
{
	struct msg m;
	int got;

	__atomic_fetch_add(g->k.beats, 1, __ATOMIC_RELAXED);
	if (g->dead || g->ended)
		return g->ended;
	got = next_msg(g, 0, &m);
	if (!got) {
		stand_in(g);
		claim_again(g);
	}
	if (got > 0 && m.word == WORD_ENDED && !m.code) {
		g->ended = true;
		g->said = m.said;
	}
	return g->ended;
}

/*
 * Its guardian is dead. What cannot be done now is left to another one, because the collector may
 * end before it becomes possible.
 */
static int leave_instead(struct guardian *g, struct guardian_said *said, struct err *e)
{
	int ret = leave(&g->k, said, e);

	if (!ret && said->how != GUARDIAN_LEFT)
		return 0;
	g->heir = !fork_guardian(g, -1, g->k.value, NULL);
	return ret && g->heir ? err_wrap(e, ret, "process %d goes on trying", g->pid) : ret;
}

static int wait_ended(struct guardian *g, struct guardian_said *said, struct err *e)
{
	struct msg m;
	int got;

	/*
	 * This is not done by a message: a message that is not read would reset the connection,
	 * and the answer would be lost.
	 */
	shutdown(g->k.sock, SHUT_WR);
	got = next_msg(g, ANSWER_MS, &m);
	if (got < 0)
		return err_set(e, -EBUSY,
			       "the guardian (pid %d) has not restored %s yet: it goes on trying",
			       g->pid, g->job.name);
	if (!got) {
		stand_in(g);
		return leave_instead(g, said, e);
	}
	if (m.code)
		return err_set(e, m.code, "%s", m.err.msg);
	*said = m.said;
	return 0;
}

int guardian_end(struct guardian *g, struct guardian_said *said, struct err *e)
{
	int ret = 0;

	BUG_ON(!g->may_write);
	if (guardian_check(g))
		*said = g->said;
	else if (g->dead)
		ret = leave_instead(g, said, e);
	else
		ret = wait_ended(g, said, e);
	if (ret)
		err_wrap(e, ret, "%s", g->job.name);
	g->may_write = false;
	g->ended |= !ret;
	g->lingers = g->heir || (!ret && !g->dead && said->how == GUARDIAN_LEFT);
	return ret;
}

pid_t guardian_pid(const struct guardian *g)
{
	return g->pid;
}

void guardian_free(struct guardian *g)
{
	struct guardian_said ignored;

	if (!g)
		return;
	if (g->may_write && g->k.claims)
		(void)guardian_end(g, &ignored, NULL);
	closep(&g->k.sock);
	/* A guardian that is still trying, or lingers, is left alone: init will reap it. */
	if (g->pid > 0 && waitpid(g->pid, NULL, WNOHANG) == 0 && g->ended && !g->lingers)
		reap(g);
	claims_free(g->k.claims);
	poke_free(g->k.poke);
	if (g->k.beats)
		munmap(g->k.beats, sizeof(*g->k.beats));
	free(g);
}
