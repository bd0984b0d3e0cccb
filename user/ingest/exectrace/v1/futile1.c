/* user/ingest/exectrace/v1/futile1.c - what a goroutine did since it was woken, until it waits again. */
#include "ingest/exectrace/v1/futile1.h"

#include "base/cleanup.h"
#include "base/limits.h"
#include "ingest/exectrace/v1/merge1.h"

/* A goroutine since it was woken. */
struct wakeup {
	bool in_vain;
	VEC(uint64_t) events; /* where they are */
};

struct futile1 {
	struct map events; /* offset -> 1 */
};

struct finding {
	struct futile1 *f;
	VEC(struct wakeup) wakeups;
	struct map by_g; /* index in wakeups */
	VEC(uint32_t) unused;
};

static int no_memory(struct err *e)
{
	return err_set(e, -ENOMEM, "no memory for wakeups in vain");
}

static struct wakeup *wakeup_of(struct finding *f, int64_t g)
{
	struct wakeup *w;
	uint64_t at;

	if (map_get(&f->by_g, (uint64_t)g, &at))
		return &f->wakeups.at[at];
	at = f->unused.n ? f->unused.at[--f->unused.n] : f->wakeups.n;
	w = at < f->wakeups.n ? &f->wakeups.at[at] : vec_add(&f->wakeups, LIMIT_TRACE_IDS);
	return w && map_put(&f->by_g, (uint64_t)g, at) ? w : NULL;
}

static int belongs(struct finding *f, int64_t g, const struct event1 *ev, struct err *e)
{
	struct wakeup *w = wakeup_of(f, g);
	uint64_t *to;

	if (!w)
		return no_memory(e);
	if (ev->type == EV1_GO_UNBLOCK || ev->type == EV1_GO_UNBLOCK_LOCAL)
		w->events.n = 0;
	w->in_vain |= ev->type == EV1_FUTILE_WAKEUP;
	to = vec_add(&w->events, LIMIT_TRACE_IDS);
	if (!to)
		return no_memory(e);
	*to = ev->off;
	return 0;
}

/* @ev: it waits again, so what it did since it was woken may have been in vain. */
static int decide(struct finding *f, int64_t g, const struct event1 *ev, struct err *e)
{
	struct wakeup *w;
	uint32_t *unused;
	bool fits = true;
	uint64_t at;

	if (!map_get(&f->by_g, (uint64_t)g, &at))
		return 0;
	w = &f->wakeups.at[at];
	w->in_vain &= ev != NULL;
	for (size_t i = 0; w->in_vain && i < w->events.n; i++)
		fits &= map_put(&f->f->events, w->events.at[i], 1);
	if (w->in_vain)
		fits &= map_put(&f->f->events, ev->off, 1);
	w->in_vain = false;
	vec_fini(&w->events);
	map_del(&f->by_g, (uint64_t)g);
	unused = vec_add(&f->unused, LIMIT_TRACE_IDS);
	if (!unused || !fits)
		return no_memory(e);
	*unused = (uint32_t)at;
	return 0;
}

static int look(struct finding *f, const struct merged1 *m, struct err *e)
{
	switch (m->ev.type) {
	case EV1_GO_UNBLOCK:
	case EV1_GO_UNBLOCK_LOCAL:
		return belongs(f, (int64_t)m->ev.args[1], &m->ev, e);
	case EV1_GO_START:
	case EV1_GO_START_LOCAL:
	case EV1_GO_PREEMPT:
	case EV1_FUTILE_WAKEUP:
		return belongs(f, m->g, &m->ev, e);
	case EV1_GO_BLOCK:
	case EV1_GO_BLOCK_SEND:
	case EV1_GO_BLOCK_RECV:
	case EV1_GO_BLOCK_SELECT:
	case EV1_GO_BLOCK_SYNC:
	case EV1_GO_BLOCK_COND:
		return decide(f, m->g, &m->ev, e);
	case EV1_GO_END: /* it never waits again */
		return decide(f, m->g, NULL, e);
	default:
		return 0;
	}
}

int futile1_find(const struct index1 *x, struct futile1 **out, struct err *e)
{
	CLEANUP(futile1_freep) struct futile1 *f = calloc(1, sizeof(*f));
	CLEANUP(merge1_freep) struct merge1 *merge = NULL;
	struct finding in = { .f = f };
	struct merged1 m;
	int ret = f ? merge1_new(x, &merge, e) : no_memory(e);

	while (!ret && merge1_next(merge, &m, NULL) > 0)
		ret = look(&in, &m, e);
	for (size_t i = 0; i < in.wakeups.n; i++)
		vec_fini(&in.wakeups.at[i].events);
	vec_fini(&in.wakeups);
	vec_fini(&in.unused);
	map_fini(&in.by_g);
	if (!ret)
		*out = TAKE(f);
	return ret;
}

void futile1_free(struct futile1 *f)
{
	if (!f)
		return;
	map_fini(&f->events);
	free(f);
}

bool futile1_has(const struct futile1 *f, uint64_t off)
{
	uint64_t one;

	return map_get(&f->events, off, &one);
}
