/* user/probe/uprobes/healing.c - probes that do nothing come and go where breakpoints were found. */
#include "probe/uprobes/healing.h"

#include "probe/uprobes/leftovers.h"

static void fail(struct healing *h, int ret, const struct err *why)
{
	h->failed = ret;
	h->why = *why;
}

static int hold(struct healing *h, struct err *e)
{
	int ret;

	if (h->held)
		return 0;
	h->u = (struct uprobes){ .all = h->attachers };
	h->last = 0;
	ret = uprobes_hold(&h->u, NULL, 0, h->multi, 0, NULL, e);
	h->held = !ret;
	return ret;
}

/* Those of one file. They are only told to the attacher: nothing is put in yet. */
static int add_file(struct healing *h, struct target *t, const struct leftovers *l,
		    const struct leftover_file *f, struct err *e)
{
	CLEANUP(freep) struct uprobe_site *sites = calloc(f->n, sizeof(*sites));
	struct uprobe_group g = { .sites = sites, .n = f->n };

	if (!sites)
		return err_set(e, -ENOMEM, "no memory for probes");
	if (f->n > HEALING_MOST)
		return err_set(e, -E2BIG, "pid %d: %zu breakpoints in a file", t->pid, f->n);
	for (size_t i = 0; i < f->n; i++)
		sites[i] = (struct uprobe_site){ .file_off = l->at.at[f->first + i].file_off,
						 .addr = l->at.at[f->first + i].addr };
	snprintf(g.path, sizeof(g.path), "/proc/self/fd/%d", f->fd);
	return uprobes_add(&h->u, &g, 1, t->pid, &h->last, e);
}

static int add(struct healing *h, struct target *t, const struct leftovers *l, struct err *e)
{
	pid_t tracer;
	int ret = target_tracer(t, &tracer, e);

	if (!ret && tracer)
		ret = err_set(e, -EBUSY, "pid %d is being traced by %d", t->pid, tracer);
	if (!ret)
		ret = hold(h, e);
	for (size_t i = 0; !ret && i < l->files.n; i++)
		ret = add_file(h, t, l, &l->files.at[i], e);
	return ret;
}

void healing_look(struct healing *h, struct target *t, struct healing_found *out)
{
	struct leftovers l = { 0 };
	struct err why = { "" };
	int ret = leftovers_find(t, &l, NULL);

	*out = (struct healing_found){ .n = l.at.n,
				       .not_searched = l.unseen || (ret && ret != -ESRCH) };
	if (l.at.n) {
		ret = add(h, t, &l, &why);
		if (ret)
			fail(h, ret, &why);
	}
	leftovers_fini(&l);
}

void healing_begin(struct healing *h)
{
	struct err why = { "" };
	int ret;

	if (!h->held || h->asked)
		return;
	ret = uprobes_come_and_go(&h->u, &why);
	if (ret)
		fail(h, ret, &why);
	h->asked = !ret;
}

int healing_fd(struct healing *h)
{
	return h->asked ? uprobes_fd(&h->u) : -1;
}

bool healing_over(struct healing *h)
{
	return h->asked && uprobes_answered(&h->u);
}

/* One that has gone took them along. */
static void hear(struct healing *h)
{
	struct uprobe_windowed none;
	struct err why = { "" };
	int ret = uprobes_windowed(&h->u, &none, &why);

	for (unsigned set = 1; !ret && set <= h->last; set++) {
		ret = uprobes_failed(&h->u, set, &why);
		if (ret == -ESRCH || ret == -ENOENT) /* or it was never added */
			ret = 0;
	}
	if (ret)
		fail(h, ret, &why);
}

void healing_end(struct healing *h)
{
	if (h->asked)
		hear(h);
	if (h->held)
		uprobes_free(&h->u);
	h->asked = h->held = false;
}
