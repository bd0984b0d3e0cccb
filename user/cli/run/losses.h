/* user/cli/run/losses.h - what a profile lost, on stderr. */
#ifndef CLI_RUN_LOSSES_H
#define CLI_RUN_LOSSES_H

#include <stdbool.h>

#include "engine/engine.h"
#include "profile/loss.h"

/* A line for each, beginning with @whose. False: there is none. */
bool losses_tell(const struct loss *l, const char *whose);

/* What several processes lost together in the @kind-th kind is told once, and not of each; as engine_shared(). */
bool losses_tell_shared(const struct engine *en, size_t kind);

#endif
