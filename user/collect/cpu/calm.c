/* user/collect/cpu/calm.c - the time without births, and how long it has to last. */
#include "collect/cpu/calm.h"

enum { FIRST_NS = 1000000000 };

void calm_begin(struct calm *c, uint64_t births, uint64_t now_ns)
{
	*c = (struct calm){ .births = births, .since_ns = now_ns, .least_ns = FIRST_NS };
}

bool calm_look(struct calm *c, uint64_t births, uint64_t now_ns)
{
	uint64_t lasted = now_ns - c->since_ns;

	if (births == c->births) {
		bool begins = !c->is && lasted >= c->least_ns;

		c->is |= begins;
		return begins;
	}
	c->births = births;
	c->since_ns = now_ns;
	if (!c->is)
		return false;
	c->is = false;
	c->least_ns *= 2;
	return true;
}
