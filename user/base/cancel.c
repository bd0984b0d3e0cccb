/* user/base/cancel.c - one question, and who answers it. */
#include "base/cancel.h"

#include <stddef.h>

static bool (*stop_asked)(void);

void cancel_when(bool (*asked)(void))
{
	stop_asked = asked;
}

bool cancelled(void)
{
	return stop_asked && stop_asked();
}
