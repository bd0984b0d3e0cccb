/*
 * user/target/by_worker.c - questions about a process that a thread asks, since its memory or its files may not answer.
 *
 * The process may be in the middle of exec, and wait for a file server with what locks its memory against us; or it
 * may hold the lock of its memory itself. What a thread that was left behind uses stays as it is until that is over: the target is
 * freed by the last one who uses it, and nothing of it is changed after it was silent.
 */
#include "base/clock.h"
#include "base/limits.h"
#include "target/target_priv.h"

void target_by_worker(struct target *t, struct worker **w)
{
	BUG_ON(!t->resting);
	t->worker = w;
}

/* The thread that is left behind may be the one who frees it. */
static void give_up(struct target *t)
{
	t->silent = true;
	target_pool_leave(t);
	t->pool = NULL;
}

static int no_answer(struct err *e)
{
	return err_set(e, -ETIMEDOUT, "its memory or its files do not answer");
}

/* Other kernels' and other machines' locks are no fault of its own: it may take a good part of all time. */
bool target_may_ask(const struct target *t)
{
	return t->asked_ns <=
	       LIMIT_ASKED_MS * NS_PER_MS + (now_ns() - t->opened_ns) / LIMIT_ASKED_SHARE;
}

int target_ask(struct target *t, struct target_job *j, struct err *e)
{
	uint64_t begun = now_ns();

	__atomic_add_fetch(&t->refs, 1, __ATOMIC_RELAXED);
	j->t = t;
	j->job.asks = t->pid;
	if (t->silent || !target_may_ask(t)) {
		j->job.drop(&j->job);
		return t->silent ? no_answer(e) :
				   err_set(e, -E2BIG, "reading its memory takes more than %d s",
					   LIMIT_ASKED_MS / 1000);
	}
	if (!worker_do(t->worker, &j->job)) {
		give_up(t);
		return no_answer(e);
	}
	__atomic_sub_fetch(&t->refs, 1, __ATOMIC_RELAXED);
	t->asked_ns += now_ns() - begun;
	return 0;
}

void target_drop(struct worker_job *j)
{
	struct target *t = ((struct target_job *)j)->t;

	free(j);
	target_free(t);
}

/* ---- its files open ---- */

struct waking {
	struct target_job job; /* first, like in all that follow */
	struct target_files files;
	int ret;
	struct err e;
};

static void wake_up(struct worker_job *j)
{
	struct waking *w = (struct waking *)j;

	w->ret = target_files_open(w->job.t, &w->files, &w->e);
}

static void drop_waking(struct worker_job *j)
{
	target_files_close(&((struct waking *)j)->files);
	target_drop(j);
}

int target_files(struct target *t, struct target_files *out, struct err *e)
{
	CLEANUP(freep) struct waking *w = NULL;
	int ret;

	if (!t->worker)
		return target_files_open(t, out, e);
	w = calloc(1, sizeof(*w));
	if (!w)
		return err_set(e, -ENOMEM, "pid %d: no memory", t->pid);
	w->job.job = (struct worker_job){ .run = wake_up, .drop = drop_waking };
	w->files = TARGET_NO_FILES;
	ret = target_ask(t, &w->job, e);
	if (ret) {
		(void)TAKE(w);
		return ret;
	}
	*out = w->files;
	return w->ret ? err_set(e, w->ret, "%s", w->e.msg) : 0;
}

/* ---- a file of its directory ---- */

struct proc_text {
	struct target_job job;
	const char *name; /* constant */
	size_t max, len;
	char *text;
	int ret;
	struct err e;
};

static void read_text(struct worker_job *j)
{
	struct proc_text *p = (struct proc_text *)j;

	p->ret = target_read_here(p->job.t, p->name, p->max, &p->text, &p->len, &p->e);
}

static void drop_text(struct worker_job *j)
{
	free(((struct proc_text *)j)->text);
	target_drop(j);
}

int target_read(struct target *t, const char *name, size_t max, char **text, size_t *len,
		struct err *e)
{
	CLEANUP(freep) struct proc_text *p = NULL;
	int ret;

	if (!t->worker)
		return target_read_here(t, name, max, text, len, e);
	p = calloc(1, sizeof(*p));
	if (!p)
		return err_set(e, -ENOMEM, "pid %d: no memory", t->pid);
	p->job.job = (struct worker_job){ .run = read_text, .drop = drop_text };
	p->name = name;
	p->max = max;
	ret = target_ask(t, &p->job, e);
	if (ret) {
		(void)TAKE(p);
		return ret;
	}
	if (p->ret)
		return err_set(e, p->ret, "%s", p->e.msg);
	*text = p->text;
	*len = p->len;
	return 0;
}

/* ---- a file that it has mapped ---- */

struct opening {
	struct target_job job;
	struct mapping m; /* its name lies in the target's list */
	bool (*is_go)(int fd);
	int fd;
	int code; /* errno */
};

static void open_it(struct worker_job *j)
{
	struct opening *o = (struct opening *)j;

	o->fd = target_open_here(o->job.t, &o->m, o->is_go);
	o->code = errno;
}

static void drop_opening(struct worker_job *j)
{
	closep(&((struct opening *)j)->fd);
	target_drop(j);
}

int target_open_by_worker(struct target *t, const struct mapping *m, bool (*is_go)(int fd))
{
	CLEANUP(freep) struct opening *o = calloc(1, sizeof(*o));

	if (!o)
		return -1;
	*o = (struct opening){ .job.job = { .run = open_it, .drop = drop_opening },
			       .m = *m,
			       .is_go = is_go,
			       .fd = -1 };
	if (target_ask(t, &o->job, NULL)) {
		(void)TAKE(o);
		errno = ETIMEDOUT;
		return -1;
	}
	errno = o->code;
	return o->fd;
}

/* ---- pages of its own ---- */

struct owning {
	struct target_job job;
	struct mapping m;
	uint64_t *pages;
	size_t n;
	int ret;
	struct err e;
};

static void find_own(struct worker_job *j)
{
	struct owning *o = (struct owning *)j;

	o->ret = target_own_pages_here(o->job.t, &o->m, &o->pages, &o->n, &o->e);
}

static void drop_owning(struct worker_job *j)
{
	free(((struct owning *)j)->pages);
	target_drop(j);
}

int target_own_pages(struct target *t, const struct mapping *m, uint64_t **pages, size_t *n,
		     struct err *e)
{
	CLEANUP(freep) struct owning *o = NULL;
	int ret;

	if (!t->worker)
		return target_own_pages_here(t, m, pages, n, e);
	o = calloc(1, sizeof(*o));
	if (!o)
		return err_set(e, -ENOMEM, "pid %d: no memory", t->pid);
	o->job.job = (struct worker_job){ .run = find_own, .drop = drop_owning };
	o->m = *m;
	ret = target_ask(t, &o->job, e);
	if (ret) {
		(void)TAKE(o);
		return ret;
	}
	if (o->ret)
		return err_set(e, o->ret, "%s", o->e.msg);
	*pages = o->pages;
	*n = o->n;
	return 0;
}
