/*
 * tests/bpfhost/kernel/bpf/bpf_core_read.h - stands for libbpf's header of the same name: nothing is
 * relocated, since the kernel's structs are those of kern.h.
 */
#ifndef BPFHOST_BPF_CORE_READ_H
#define BPFHOST_BPF_CORE_READ_H

#define bpf_core_field_exists(field) 1
#define BPF_CORE_READ(from, a, b)    ((from)->a->b)

static inline long bpf_probe_read_kernel(void *to, uint32_t n, const void *from)
{
	memcpy(to, from, n);
	return 0;
}

#endif
