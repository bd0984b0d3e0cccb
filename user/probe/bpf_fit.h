/*
 * user/probe/bpf_fit.h - what differs between kernels in how a BPF object is loaded.
 */
#ifndef PROBE_BPF_FIT_H
#define PROBE_BPF_FIT_H

#include <stdbool.h>

struct bpf_object;

/*
 * To be called between open and load of @o. Its maps are allocated as this kernel requires; @whole:
 * hash maps as a whole from the start, see bpf_try_growing(). Where a global function may not hand
 * memory that it was given to a map as a value (up to Linux 6.1, which is tried), functions that do
 * become static ones: the verifier then knows what memory it is, and checks them at each call.
 *
 * Source: map_key_value_types in kernel/bpf/verifier.c, Linux 6.1 and newer.
 */
void bpf_fit(struct bpf_object *o, bool whole);

#endif
