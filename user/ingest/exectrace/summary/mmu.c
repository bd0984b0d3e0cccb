/* user/ingest/exectrace/summary/mmu.c - sliding windows over a step function. */
#include "ingest/exectrace/summary/mmu.h"

#include "base/limits.h"

/* A change, and the integral of the function up to it. */
struct step {
	int64_t time_ns;
	double util, sum_ns;
};

struct window {
	struct mmu_window out;
	bool given_up;
	/* Numbers of steps, from 0 on. */
	uint64_t left;	/* the first of which the window that begins there was not looked at */
	uint64_t right; /* the last that is not after the beginning of the window that ends now */
};

struct mmu {
	struct step *ring; /* owned; room for cap, which is a power of two */
	size_t cap;
	uint64_t first, n; /* numbers: the oldest step that is kept; how many there were */
	int64_t began_ns;
	double mean;
	struct window windows[MMU_WINDOWS];
};

static const int64_t lengths_ns[MMU_WINDOWS] = { 1000000, 10000000, 100000000, 1000000000 };

static struct step *step_at(const struct mmu *m, uint64_t i)
{
	return &m->ring[i & (m->cap - 1)];
}

int mmu_new(struct mmu **out, struct err *e)
{
	struct mmu *m = calloc(1, sizeof(*m));

	if (!m)
		return err_set(e, -ENOMEM, "no memory for the utilisation");
	m->mean = -1;
	for (size_t i = 0; i < MMU_WINDOWS; i++)
		m->windows[i].out = (struct mmu_window){ .ns = lengths_ns[i], .min = 1 };
	*out = m;
	return 0;
}

void mmu_free(struct mmu *m)
{
	if (m)
		free(m->ring);
	free(m);
}

/* The integral at a time that is not before step @s, and not after the next one. */
static double sum_at(const struct step *s, int64_t time_ns)
{
	return s->sum_ns + s->util * (double)(time_ns - s->time_ns);
}

static void consider(struct window *w, int64_t at_ns, double sum_ns)
{
	double mean = sum_ns / (double)w->out.ns;

	if (mean < 0)
		mean = 0; /* sums of doubles are rounded */
	if (!w->out.known || mean < w->out.min) {
		w->out.min = mean;
		w->out.at_ns = at_ns;
	}
	w->out.known = true;
}

/* The function goes on unchanged from the last step to @now_ns. */
static void slide(struct mmu *m, struct window *w, int64_t now_ns)
{
	const struct step *last = step_at(m, m->n - 1);
	int64_t begin_ns = now_ns - w->out.ns;

	for (; w->left < m->n; w->left++) {
		const struct step *s = step_at(m, w->left);

		if (s->time_ns > begin_ns)
			break;
		consider(w, s->time_ns, sum_at(last, s->time_ns + w->out.ns) - s->sum_ns);
	}
	while (w->right + 1 < m->n && step_at(m, w->right + 1)->time_ns <= begin_ns)
		w->right++;
	if (step_at(m, w->right)->time_ns <= begin_ns)
		consider(w, begin_ns,
			 sum_at(last, now_ns) - sum_at(step_at(m, w->right), begin_ns));
}

static void slide_all(struct mmu *m, int64_t now_ns)
{
	for (size_t i = 0; i < MMU_WINDOWS; i++)
		if (!m->windows[i].given_up)
			slide(m, &m->windows[i], now_ns);
}

/* What no window needs any more makes room. */
static void drop_old(struct mmu *m)
{
	uint64_t oldest = m->n - 1;

	for (size_t i = 0; i < MMU_WINDOWS; i++) {
		const struct window *w = &m->windows[i];

		if (!w->given_up && w->right < oldest)
			oldest = w->right;
		if (!w->given_up && w->left < oldest)
			oldest = w->left;
	}
	m->first = oldest;
}

static int grow(struct mmu *m, struct err *e)
{
	size_t cap = m->cap ? m->cap * 2 : 64;
	struct step *ring = calloc(cap, sizeof(*ring));

	if (!ring)
		return err_set(e, -ENOMEM, "no memory for the utilisation");
	for (uint64_t i = m->first; i < m->n; i++)
		ring[i & (cap - 1)] = *step_at(m, i);
	free(m->ring);
	m->ring = ring;
	m->cap = cap;
	return 0;
}

/* Room for one more. Where there may be no more of it, the longest window is given up. */
static int make_room(struct mmu *m, struct err *e)
{
	if (m->n - m->first < m->cap)
		return 0;
	if (m->n)
		drop_old(m);
	if (m->n - m->first > m->cap / 2 || !m->cap) {
		if (m->cap < LIMIT_TRACE_STEPS)
			return grow(m, e);
		for (size_t i = MMU_WINDOWS; i-- && m->n - m->first == m->cap;) {
			m->windows[i].given_up = true;
			m->windows[i].out.known = false;
			drop_old(m);
		}
	}
	return 0;
}

int mmu_set(struct mmu *m, int64_t time_ns, double util, struct err *e)
{
	struct step now = { time_ns, util, 0 };
	int ret;

	if (m->n && step_at(m, m->n - 1)->util == util)
		return 0;
	if (m->n) {
		slide_all(m, time_ns);
		now.sum_ns = sum_at(step_at(m, m->n - 1), time_ns);
	} else {
		m->began_ns = time_ns;
	}
	ret = make_room(m, e);
	if (ret)
		return ret;
	*step_at(m, m->n++) = now;
	return 0;
}

void mmu_end(struct mmu *m, int64_t time_ns)
{
	if (!m->n)
		return;
	slide_all(m, time_ns);
	if (time_ns > m->began_ns)
		m->mean = sum_at(step_at(m, m->n - 1), time_ns) / (double)(time_ns - m->began_ns);
}

struct mmu_window mmu_window(const struct mmu *m, size_t i)
{
	return m->windows[i].out;
}

double mmu_mean(const struct mmu *m)
{
	return m->mean;
}
