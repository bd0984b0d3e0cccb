/* user/probe/uprobes/uprobe_link.c - the raw link-create call, for which libbpf 1.1 has no function. */
#include "probe/uprobes/uprobe_link.h"

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "probe/uprobes/uprobes.h"

/* Source: include/uapi/linux/bpf.h, Linux 6.6, enum bpf_attach_type. */
#define ATTACH_UPROBE_MULTI 48

/* The part of union bpf_attr that BPF_LINK_CREATE reads for a multi uprobe; same source. */
struct link_create_uprobe_multi {
	uint32_t prog_fd, target_fd, attach_type, flags;
	uint64_t path, offsets, ref_ctr_offsets, cookies;
	uint32_t cnt, multi_flags, pid, pad;
};
_Static_assert(sizeof(struct link_create_uprobe_multi) == 64, "kernel ABI");

int uprobe_link_create(int prog_fd, pid_t pid, const char *path, const uint64_t *offsets,
		       const uint64_t *cookies, size_t n)
{
	struct link_create_uprobe_multi a = {
		.prog_fd = (uint32_t)prog_fd,
		.attach_type = ATTACH_UPROBE_MULTI,
		.path = (uint64_t)(uintptr_t)path,
		.offsets = (uint64_t)(uintptr_t)offsets,
		.cookies = (uint64_t)(uintptr_t)cookies,
		.cnt = (uint32_t)n,
		.pid = (uint32_t)pid,
	};

	return (int)syscall(SYS_bpf, BPF_LINK_CREATE, &a, sizeof(a));
}

int uprobe_empty_program(void)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = ATTACH_UPROBE_MULTI);
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, NULL, "GPL", insns, 2, &opts);
}

/* The errno of an attempt that cannot succeed: "/" is not a file that can be probed. */
static int attempt(int prog, pid_t pid)
{
	uint64_t off = 0;
	int fd = uprobe_link_create(prog, pid, "/", &off, NULL, 1);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

/*
 * A kernel that knows the link type gets as far as checking the path. The first such kernels
 * filtered by thread where a process was asked for; those in which that is mended also refuse a
 * negative pid. Source: bpf_uprobe_multi_link_attach in kernel/trace/bpf_trace.c, Linux 6.6 and
 * 6.10.
 */
bool uprobes_have_multi(void)
{
	CLEANUP(closep) int prog = uprobe_empty_program();

	return prog >= 0 && attempt(prog, 0) == EBADF && attempt(prog, -1) == EINVAL;
}

void uprobes_prepare(struct bpf_program *prog, bool multi)
{
	if (multi)
		bpf_program__set_expected_attach_type(prog, ATTACH_UPROBE_MULTI);
}
