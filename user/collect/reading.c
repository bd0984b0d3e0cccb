/* user/collect/reading.c - a collector that reads, for each of many targets. */
#include "collect/reading.h"

#include "collect/collect.h"

struct reading {
	const struct collector *c;
	struct collect_opts o;
};

static int reading_open(const struct engine_kind *kind, const struct collect_opts *o,
			unsigned expected, void **state, struct err *e)
{
	struct reading *r = calloc(1, sizeof(*r));

	(void)expected;
	if (!r)
		return err_set(e, -ENOMEM, "no memory");
	r->c = kind->arg;
	r->o = *o;
	r->o.source = SOURCE_READ;
	r->o.say = NULL;
	*state = r;
	return 0;
}

static void reading_free(void *state)
{
	free(state);
}

static int reading_fd(void *state)
{
	(void)state;
	return -1;
}

static int nothing(void *state, struct err *e)
{
	(void)state;
	(void)e;
	return 0;
}

static int reading_tick(void *state, size_t targets, struct err *e)
{
	(void)targets;
	return nothing(state, e);
}

static int reading_put(void *state, struct engine_target *t, void **kept, struct err *e)
{
	struct reading *r = state;

	return *kept ? 0 : r->c->start(t->subject, &r->o, kept, e);
}

/* What has gone cannot be read any more, and what was read of it is kept. */
static void reading_remove(void *state, struct engine_target *t)
{
	(void)state;
	(void)t;
}

static void reading_forget(void *state, struct engine_target *t, void *kept)
{
	struct reading *r = state;

	(void)t;
	r->c->free(kept);
}

static void reading_stop(void *state)
{
	(void)state;
}

static int reading_profile(void *state, struct engine_target *t, void *kept, struct prof **out,
			   struct err *e)
{
	CLEANUP(prof_freep) struct prof *p = NULL;
	struct reading *r = state;
	int ret = r->c->stop(kept, &p, e);

	if (!ret && p)
		ret = engine_tell_identity(t, p, e);
	if (!ret)
		*out = TAKE(p);
	return ret;
}

static const struct prof *reading_first(void *state, const void *kept)
{
	const struct reading *r = state;

	return r->c->first ? r->c->first(kept) : NULL;
}

#define READING(kind, collector)                                                                 \
	{                                                                                        \
		.name = kind, .reads = true, .open = reading_open, .free = reading_free,         \
		.fd = reading_fd, .poll = nothing, .put = reading_put, .remove = reading_remove, \
		.forget = reading_forget, .begin = nothing, .tick = reading_tick,                \
		.stop = reading_stop, .drain = nothing, .profile = reading_profile,              \
		.first = reading_first, .done = nothing, .arg = collector,                       \
	}

const struct engine_kind engine_heap_read = READING("heap", &collector_heap);
const struct engine_kind engine_block_read = READING("block", &collector_block);
const struct engine_kind engine_mutex_read = READING("mutex", &collector_mutex);
const struct engine_kind engine_goroutine = READING("goroutine", &collector_goroutine);
