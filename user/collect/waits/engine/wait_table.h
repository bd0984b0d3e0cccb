/*
 * user/collect/waits/engine/wait_table.h - the BPF side's table of goroutines, which many targets share by a quota (bpf/wait.bpf.c,
 * bpf/sched.bpf.c): takes out what those left in it that have gone. Without that it would be full in time.
 */
#ifndef COLLECT_WAITS_ENGINE_WAIT_TABLE_H
#define COLLECT_WAITS_ENGINE_WAIT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "goprof_abi.h"

struct wait_table {
	int fd;
	size_t bytes;				 /* of a goroutine */
	uint64_t (*last)(const void *goroutine); /* when something was last seen of it */
	__u64 *of,
		*all; /* how many goroutines are in it: by slot, and of all; the BPF side adds to them meanwhile */
};

/* For @last. */
uint64_t wait_table_standing(const void *goroutine); /* struct gpb_standing */
uint64_t wait_table_wait(const void *goroutine);     /* struct gpb_wait */

/*
 * @gone: has the target gone whose goroutine in @slot was last seen so? A slot may have another one by now. What cannot
 * be read now is left to the next time.
 */
void wait_table_sweep(const struct wait_table *t,
		      bool (*gone)(void *arg, uint32_t slot, uint64_t last), void *arg);

/* Counts, by slot, those of which @is is true; @n has GPB_CPU_TARGETS. False: it could not be read. */
bool wait_table_count(const struct wait_table *t,
		      bool (*is)(void *arg, uint32_t slot, const void *goroutine), void *arg,
		      uint64_t *n);

#endif
