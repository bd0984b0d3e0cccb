/*
 * tests/bpfhost/kernel/bpf/bpf_core_read.h - stands for libbpf's header of the same name: nothing is
 * relocated, since the kernel's structs are those of kern.h.
 */
#ifndef BPFHOST_BPF_CORE_READ_H
#define BPFHOST_BPF_CORE_READ_H

#define bpf_core_field_exists(field)  1
#define HOST_READ_1(from, a)	      ((from)->a)
#define HOST_READ_2(from, a, b)	      ((from)->a->b)
#define HOST_PICK(a, b, c, name, ...) name
#define BPF_CORE_READ(...)	      HOST_PICK(__VA_ARGS__, HOST_READ_2, HOST_READ_1, 0)(__VA_ARGS__)

static inline long bpf_probe_read_kernel(void *to, uint32_t n, const void *from)
{
	memcpy(to, from, n);
	return 0;
}

#endif
