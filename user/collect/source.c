/* user/collect/source.c - hands a collector's calls to the source that was chosen. */
#include "collect/source.h"

#include "base/cleanup.h"

void sourced_fini(struct sourced *by)
{
	if (by->source)
		by->source->free(by->at);
	*by = (struct sourced){ 0 };
}

int sourced_new(struct sourced *by, void **state, struct err *e)
{
	struct sourced *new = malloc(sizeof(*new));

	if (!new)
		return err_set(e, -ENOMEM, "no memory");
	*new = *by;
	*by = (struct sourced){ 0 };
	*state = new;
	return 0;
}

int sourced_fd(void *state)
{
	struct sourced *by = state;

	return by->source->fd(by->at);
}

int sourced_poll(void *state, struct err *e)
{
	struct sourced *by = state;

	return by->source->poll(by->at, e);
}

int sourced_tick(void *state, struct err *e)
{
	struct sourced *by = state;

	return by->source->tick ? by->source->tick(by->at, e) : 0;
}

int sourced_begin(void *state, struct err *e)
{
	struct sourced *by = state;

	return by->source->begin ? by->source->begin(by->at, e) : 0;
}

int sourced_stop(void *state, struct prof **out, struct err *e)
{
	struct sourced *by = state;

	return by->source->stop(by->at, out, e);
}

const struct prof *sourced_first(const void *state)
{
	const struct sourced *by = state;

	return by->source->first ? by->source->first(by->at) : NULL;
}

void sourced_free(void *state)
{
	struct sourced *by = state;

	if (!by)
		return;
	sourced_fini(by);
	free(by);
}
