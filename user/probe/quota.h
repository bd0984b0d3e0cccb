/* user/probe/quota.h - how many targets share a table or a ring: bpf/quota.bpf.h. */
#ifndef PROBE_QUOTA_H
#define PROBE_QUOTA_H

#include <stddef.h>
#include <stdint.h>

#include "goprof_abi.h"

/* How @n targets share @room entries or bytes, where @slack may be overdrawn: no more than half of @room is kept for that. */
struct gpb_quota quota_of(uint64_t room, uint64_t slack, size_t n);

#endif
