/* user/base/cancel.c - one question, and who answers it. */
#include "base/cancel.h"

#include <stddef.h>
#include <time.h>

static uint64_t (*stop_since)(void);

void cancel_when(uint64_t (*since_ms)(void))
{
	stop_since = since_ms;
}

bool cancelled(void)
{
	return stop_since && stop_since();
}

uint64_t cancelled_for_ms(void)
{
	uint64_t since = stop_since ? stop_since() : 0, now;
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	now = (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
	return since && now > since ? now - since : 0;
}
