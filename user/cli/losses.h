/* user/cli/losses.h - what a profile lost, on stderr. */
#ifndef CLI_LOSSES_H
#define CLI_LOSSES_H

#include <stdbool.h>

#include "profile/loss.h"

/* A line for each, beginning with @whose. False: there is none. */
bool losses_tell(const struct loss *l, const char *whose);

#endif
