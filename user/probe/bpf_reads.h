/*
 * user/probe/bpf_reads.h - keeps libbpf from changing how our programs read the target's memory.
 *
 * libbpf tries whether the kernel knows bpf_probe_read_kernel. One that refuses it, as with
 * lockdown=confidentiality, passes for older than 5.5, and in each program libbpf puts
 * bpf_probe_read, which is refused there, in the place of bpf_probe_read_user, which is not. So
 * these calls are put back right before the load. Source: bpf_object__sanitize_prog() in libbpf.c,
 * 1.1; bpf_tracing_func_proto() in kernel/trace/bpf_trace.c, Linux 6.12.
 */
#ifndef PROBE_BPF_READS_H
#define PROBE_BPF_READS_H

#include <linux/bpf.h>
#include <stddef.h>

/* To be called before objects are opened; more than once does no harm. */
void bpf_reads_keep(void);

/* Puts bpf_probe_read_user in the place of bpf_probe_read; returns how often. */
size_t bpf_reads_restore(struct bpf_insn *insns, size_t n);

#endif
