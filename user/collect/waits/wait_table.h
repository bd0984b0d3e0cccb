/*
 * user/collect/waits/wait_table.h - the BPF side's table of goroutines, which many targets share by a quota (bpf/wait.bpf.c): takes
 * out what those left in it that have gone. Without that it would be full in time.
 */
#ifndef COLLECT_WAITS_WAIT_TABLE_H
#define COLLECT_WAITS_WAIT_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "goprof_abi.h"

struct wait_table {
	int fd;
	__u64 *of,
		*all; /* how many goroutines are in it: by slot, and of all; the BPF side adds to them meanwhile */
};

/*
 * @gone: has the target gone whose goroutine in @slot has stood so @since? A slot may have another one by now. What cannot
 * be read now is left to the next time.
 */
void wait_table_sweep(const struct wait_table *t,
		      bool (*gone)(void *arg, uint32_t slot, uint64_t since), void *arg);

#endif
