/*
 * user/ingest/exectrace/ids.h - from numbers that a trace gives its things to ours.
 *
 * Nearly all such numbers are small, and each event has some of them: these are looked up in an array, and
 * only the others in a map, whose hash takes most of the time. Of those the last ones are remembered.
 */
#ifndef INGEST_EXECTRACE_IDS_H
#define INGEST_EXECTRACE_IDS_H

#include "base/map.h"
#include "base/vec.h"

enum { IDS_LOW = 1 << 18, IDS_RECENT = 256 };

struct recent_id {
	uint64_t id, val; /* id: 0: none, for it is at least IDS_LOW */
};

struct ids {
	uint64_t *low; /* value + 1 of each small number; 0: there is none */
	size_t nlow;
	struct map high;
	struct recent_id *recent; /* owned, IDS_RECENT; NULL: no number is large */
};

void ids_fini(struct ids *x);
/* As the functions of base/map.h; a value is less than UINT64_MAX. */
bool ids_put(struct ids *x, uint64_t id, uint64_t val);
void ids_del(struct ids *x, uint64_t id);

bool ids_get_high(const struct ids *x, uint64_t id, uint64_t *val);

static inline bool ids_get(const struct ids *x, uint64_t id, uint64_t *val)
{
	if (id >= IDS_LOW)
		return ids_get_high(x, id, val);
	if (id >= x->nlow || !x->low[id])
		return false;
	*val = x->low[id] - 1;
	return true;
}

#endif
