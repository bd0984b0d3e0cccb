/* user/probe/bpf_old_objects.c - the programs that are compiled for old kernels: once, and not in each skeleton. */
#include "probe/bpf_old.h"

#include "cpu_old.skel.h"
#include "exec_watch_old.skel.h"
#include "heap_old.skel.h"
#include "sched_old.skel.h"
#include "wait_old.skel.h"

#define BYTES_OF(kind)                           \
	const void *kind##_old_bytes(size_t *n)  \
	{                                        \
		return kind##_old__elf_bytes(n); \
	}

BYTES_OF(cpu)
BYTES_OF(exec_watch)
BYTES_OF(heap)
BYTES_OF(sched)
BYTES_OF(wait)
