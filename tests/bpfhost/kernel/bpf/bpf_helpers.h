/*
 * tests/bpfhost/kernel/bpf/bpf_helpers.h - stands for libbpf's header of the same name when a whole
 * bpf/NAME.bpf.c is compiled as ordinary C: the target's memory is a few regions (host_mem.h), maps
 * are tables (host_maps.h), and what the ring is sent is kept.
 *
 * A test includes the program itself, sets host_now_ns, host_cookie and registers, and calls it as a
 * probe would.
 */
#ifndef BPFHOST_BPF_HELPERS_H
#define BPFHOST_BPF_HELPERS_H

#include "host_maps.h"
#include "host_mem.h"

#if defined(__x86_64__)
#define __TARGET_ARCH_x86
#elif defined(__aarch64__)
#define __TARGET_ARCH_arm64
#endif

#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define __noinline	__attribute__((noinline))
#define barrier_var(x)	asm volatile("" : "+r"(x))

/* Programs have no prototypes. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
/* Nor do programs of tracepoints use all that these have. */
#pragma GCC diagnostic ignored "-Wunused-parameter"
/* arch.bpf.h reads two bytes of a register, which are the only ones that the verifier lets it read. */
#pragma GCC diagnostic ignored "-Wstrict-aliasing"
/* clang's, for loops that the verifier wants without jumps */
#pragma GCC diagnostic ignored "-Wunknown-pragmas"

static inline long bpf_probe_read_user(void *to, uint32_t n, const void *from)
{
	return host_read(to, n, (uintptr_t)from);
}

static inline uint32_t bpf_get_smp_processor_id(void)
{
	return host_cpu;
}

static inline uint64_t bpf_get_current_pid_tgid(void)
{
	return (uint64_t)host_task.tgid << 32 | (uint32_t)host_task.pid;
}

/* Programs that are entered again on a CPU have a tail call that is never taken (uprobe.bpf.h). */
static inline long bpf_tail_call(void *ctx, const void *programs, uint32_t index)
{
	(void)ctx, (void)programs, (void)index;
	abort();
}

static inline long bpf_task_pt_regs(struct task_struct *task)
{
	(void)task;
	abort();
}

/* ---- the ring -------------------------------------------------------------------------------- */

enum { HOST_RING = 1 << 22 };

struct host_rec {
	uint64_t size;
	uint64_t bytes[];
};

static uint64_t host_ring[HOST_RING / 8];
static size_t host_ring_used; /* in words */
static uint64_t host_ring_max = HOST_RING;

static inline long bpf_ringbuf_output(const void *ring, const void *rec, uint64_t size,
				      uint64_t flags)
{
	struct host_rec *to = (struct host_rec *)&host_ring[host_ring_used];
	size_t words = 1 + (size + 7) / 8;

	(void)ring, (void)flags;
	if ((host_ring_used + words) * 8 > host_ring_max)
		return -EAGAIN;
	to->size = size;
	memcpy(to->bytes, rec, size);
	host_ring_used += words;
	return 0;
}

static inline uint64_t bpf_ringbuf_query(const void *ring, uint64_t what)
{
	(void)ring;
	return what == BPF_RB_RING_SIZE ? host_ring_max : host_ring_used * 8;
}

/* The next record behind @rec, the first one behind NULL; NULL at the end. */
__attribute__((unused)) static const struct host_rec *host_ring_next(const struct host_rec *rec)
{
	const uint64_t *at = rec ? rec->bytes + (rec->size + 7) / 8 : host_ring;

	return at < host_ring + host_ring_used ? (const struct host_rec *)at : NULL;
}

#endif
