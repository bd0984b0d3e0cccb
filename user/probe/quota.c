/* user/probe/quota.c - one half in equal parts, the other for whoever comes. */
#include "probe/quota.h"

struct gpb_quota quota_of(uint64_t room, uint64_t slack, size_t n)
{
	uint64_t half = (slack < room / 2 ? room - slack : room / 2) / 2;

	return (struct gpb_quota){ .part = half / (n ? n : 1) ?: 1, .free = half };
}
