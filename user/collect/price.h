/*
 * user/collect/price.h - what a hit of a probe costs whoever hits it, measured on this machine.
 */
#ifndef COLLECT_PRICE_H
#define COLLECT_PRICE_H

#include <bpf/libbpf.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* Where nothing can be measured: of the machines that were tried the dearer ones. */
#define PRICE_DEFAULT_NS 800.0

/*
 * CPU ns that @prog takes from a thread at a Go function's stack check, the trap included. A
 * process of our own is probed for that, which takes some 0.1 s. @cookie: its target's slot must
 * be one that @prog counts for.
 */
int price_measure(struct bpf_program *prog, bool multi, uint64_t cookie, double *ns, struct err *e);

#endif
