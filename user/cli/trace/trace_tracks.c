/* user/cli/trace/trace_tracks.c - what is open on each track. */
#include "cli/trace/trace_tracks.h"

#include "base/limits.h"

static int no_memory(struct err *e)
{
	return err_set(e, -ENOMEM, "no memory for the tracks of the trace");
}

void trace_tracks_fini(struct trace_tracks *t)
{
	vec_fini(&t->slices);
	map_fini(&t->told);
	map_fini(&t->top);
}

/* ---- open slices ---- */

static struct open_slice *new_slice(struct trace_tracks *t, uint32_t *number)
{
	struct open_slice *s;

	*number = t->free_slices;
	if (*number) {
		s = &t->slices.at[*number - 1];
		t->free_slices = s->below;
		return s;
	}
	s = vec_add(&t->slices, LIMIT_TRACE_IDS);
	*number = (uint32_t)t->slices.n;
	return s;
}

static bool push(struct trace_tracks *t, const struct perfetto_event *ev)
{
	uint64_t below = 0;
	uint32_t number;
	struct open_slice *s = new_slice(t, &number);

	(void)map_get(&t->top, ev->track, &below);
	if (!s || !map_put(&t->top, ev->track, number))
		return false;
	*s = (struct open_slice){ .track = ev->track,
				  .order = t->order++,
				  .below = (uint32_t)below,
				  .category = ev->category,
				  .used = true };
	if (t->shown)
		return true;
	if (ev->nnotes && !ev->notes[0].text.at)
		s->note = ev->notes[0];
	s->name = strtab_put(t->names, ev->name.at, ev->name.len);
	return s->name != UINT32_MAX;
}

/* False: there is none. */
static bool pop(struct trace_tracks *t, uint64_t track)
{
	struct open_slice *s;
	uint64_t number;

	if (!map_get(&t->top, track, &number))
		return false;
	s = &t->slices.at[number - 1];
	if (s->below)
		(void)map_put(&t->top, track, s->below); /* it is there already */
	else
		map_del(&t->top, track);
	*s = (struct open_slice){ .below = t->free_slices };
	t->free_slices = (uint32_t)number;
	return true;
}

/* ---- events ---- */

int trace_tracks_need(struct trace_tracks *t, uint64_t track, struct perfetto_text first,
		      struct err *e)
{
	uint64_t v;
	int ret;

	if (map_get(&t->told, track, &v))
		return 0;
	ret = t->tell(t->arg, track, first, e);
	if (!ret && !map_put(&t->told, track, 0))
		ret = no_memory(e);
	return ret;
}

static int put(struct trace_tracks *t, const struct perfetto_event *ev, struct err *e)
{
	int ret = trace_tracks_need(t, ev->track, ev->name, e);

	return ret ? ret : perfetto_event(t->out, ev, e);
}

int trace_tracks_put(struct trace_tracks *t, const struct perfetto_event *ev, struct err *e)
{
	if (ev->type == PERFETTO_BEGIN && !push(t, ev))
		return no_memory(e);
	return t->shown ? put(t, ev, e) : 0;
}

int trace_tracks_end(struct trace_tracks *t, uint64_t track, uint64_t time_ns, bool *was,
		     struct err *e)
{
	const struct perfetto_event ev = { .type = PERFETTO_END,
					   .time_ns = time_ns,
					   .track = track };

	*was = pop(t, track);
	return *was && t->shown ? put(t, &ev, e) : 0;
}

int trace_tracks_close(struct trace_tracks *t, uint64_t track, uint64_t time_ns, struct err *e)
{
	bool was = true;
	int ret = 0;

	while (was && !ret)
		ret = trace_tracks_end(t, track, time_ns, &was, e);
	map_del(&t->told, track);
	return ret;
}

/* ---- the time begins ---- */

static int by_order(const void *a, const void *b)
{
	const struct open_slice *x = a, *y = b;

	return x->order < y->order ? -1 : x->order > y->order;
}

int trace_tracks_show(struct trace_tracks *t, uint64_t time_ns, struct err *e)
{
	CLEANUP(freep) struct open_slice *open = calloc(t->slices.n + 1, sizeof(*open));
	size_t n = 0;
	int ret = 0;

	if (!open)
		return no_memory(e);
	t->shown = true;
	for (size_t i = 0; i < t->slices.n; i++)
		if (t->slices.at[i].used)
			open[n++] = t->slices.at[i];
	qsort(open, n, sizeof(*open), by_order);
	for (size_t i = 0; !ret && i < n; i++) {
		const struct perfetto_event ev = { .type = PERFETTO_BEGIN,
						   .time_ns = time_ns,
						   .track = open[i].track,
						   .name = { strtab_get(t->names, open[i].name),
							     strtab_len(t->names, open[i].name) },
						   .category = open[i].category,
						   .nnotes = open[i].note.name != NULL,
						   .notes = { open[i].note } };

		ret = put(t, &ev, e);
	}
	return ret;
}
