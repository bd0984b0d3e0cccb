/*
 * user/probe/bpf_old.h - kernels before 5.15: for these all BPF programs are compiled a second time, from the
 * same source (bpf/old.bpf.h). This decides which are loaded, and stands in for what such kernels lack.
 */
#ifndef PROBE_BPF_OLD_H
#define PROBE_BPF_OLD_H

#include <bpf/libbpf.h>

#include "probe/uprobes/uprobes.h"

/* Is it such a kernel, without bpf_get_attach_cookie()? What cannot be tried is taken to be newer. */
bool bpf_is_old(void);

/*
 * Opens the skeleton @kind with the programs that fit this kernel; NULL and errno. The other ones are not
 * looked at.
 */
#define bpf_open(kind)                                                                \
	({                                                                            \
		struct kind##_bpf *open_ = calloc(1, sizeof(*open_));                 \
		if (open_ && (kind##_bpf__create_skeleton(open_) ||                   \
			      bpf_open_fitting(open_->skeleton, kind##_old_bytes))) { \
			kind##_bpf__destroy(open_);                                   \
			open_ = NULL;                                                 \
		}                                                                     \
		open_;                                                                \
	})
int bpf_open_fitting(struct bpf_object_skeleton *s, const void *(*old_bytes)(size_t *n));

/* The programs of each kind for such kernels, as an object file. */
const void *cpu_old_bytes(size_t *n);
const void *exec_watch_old_bytes(size_t *n);
const void *heap_old_bytes(size_t *n);
const void *sched_old_bytes(size_t *n);
const void *wait_old_bytes(size_t *n);

/* For programs of uprobes, before they are loaded: which pid namespace their table of cookies is of. */
#define bpf_prepare_cookies(skel, e) bpf_old_pidns(&(skel)->rodata->pidns_ino, e)
int bpf_old_pidns(volatile const uint32_t *ino, struct err *e);

/* How large a thread's stack in the kernel is, in bytes. */
uint32_t bpf_old_kernel_stack(void);

/* Is this a kernel on which our programs must read its memory, and may not? */
bool bpf_old_blind(void);

/* May RLIMIT_MEMLOCK be why the kernel refuses a BPF table? */
bool bpf_old_memlock(void);

/*
 * Waits until every program has seen what was written, and we see what it wrote. On newer kernels programs
 * do that themselves, by atomic operations that are barriers.
 */
void bpf_old_barrier(void);

/*
 * Puts a program on a perf event, with a cookie: *@link is their link, or -1 where there are none and the
 * program ends with the event.
 */
int bpf_put_on(int prog_fd, int event_fd, uint64_t cookie, int *link, struct err *e);

/*
 * Before probes are put in: what each of them is, in the table of @prog's object, which has them as long as it lives. NULL,
 * and a program for kernels that have cookies: does nothing.
 */
int cookies_put(const struct bpf_program *prog, pid_t pid, const struct uprobe_site *sites,
		size_t n, struct err *e);

#endif
