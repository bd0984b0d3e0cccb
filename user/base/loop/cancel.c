/* user/base/loop/cancel.c - one question, and who answers it. */
#include "base/loop/cancel.h"

#include <stddef.h>
#include <time.h>
#include "base/clock.h"

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
	uint64_t since = stop_since ? stop_since() : 0, now = now_ns() / NS_PER_MS;

	return since && now > since ? now - since : 0;
}
