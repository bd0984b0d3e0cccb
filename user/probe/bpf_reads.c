/* user/probe/bpf_reads.c - a callback of libbpf's, for the sections that our programs lie in. */
#include "probe/bpf_reads.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "probe/bpf_old.h"
#include "target/host/pidns.h"

size_t bpf_reads_restore(struct bpf_insn *insns, size_t n)
{
	size_t calls = 0;

	for (size_t i = 0; i < n; i++) {
		struct bpf_insn *in = &insns[i];

		if (in->code != (BPF_JMP | BPF_CALL) || in->src_reg ||
		    in->imm != BPF_FUNC_probe_read)
			continue;
		in->imm = BPF_FUNC_probe_read_user;
		calls++;
	}
	return calls;
}

/*
 * Has numbers[] of struct pid no length, so that programs read it without a helper? It has none from
 * Linux 6.5 on; see bpf/pidns.bpf.h.
 */
static bool pids_are_typed(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	int id = btf ? btf__find_by_name_kind(btf, "pid", BTF_KIND_STRUCT) : -1;
	const struct btf_type *pid = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
	bool typed = false;

	for (int i = 0; pid && i < btf_vlen(pid); i++) {
		const struct btf_member *m = btf_members(pid) + i;
		const struct btf_type *t = btf__type_by_id(btf, m->type);

		if (t && btf_is_array(t) &&
		    !strcmp(btf__name_by_offset(btf, m->name_off), "numbers"))
			typed = !btf_array(t)->nelems;
	}
	btf__free(btf);
	return typed;
}

/* May a program call bpf_probe_read_kernel, which libbpf has changed as well? */
static bool reads_kernel(void)
{
	uint32_t pidns;

	if (bpf_is_old())
		return true;
	return pidns_inode(&pidns, NULL) || (pidns && !pids_are_typed());
}

/*
 * No program of ours calls bpf_probe_read by itself. Where one may call bpf_probe_read_kernel all
 * is left as it is, and the kernel refuses it: that call must not become one that always fails.
 */
static int before_load(struct bpf_program *prog, struct bpf_prog_load_opts *opts, long cookie)
{
	size_t n = bpf_program__insn_cnt(prog);
	CLEANUP(freep) struct bpf_insn *insns = calloc(n ? n : 1, sizeof(*insns));

	(void)opts;
	(void)cookie;
	if (!insns)
		return -ENOMEM;
	memcpy(insns, bpf_program__insns(prog), n * sizeof(*insns));
	if (!bpf_reads_restore(insns, n) || reads_kernel())
		return 0;
	return bpf_program__set_insns(prog, insns, n);
}

void bpf_reads_keep(void)
{
	LIBBPF_OPTS(libbpf_prog_handler_opts, opts, .prog_prepare_load_fn = before_load);
	static bool kept;

	if (kept)
		return;
	kept = true;
	/* Refused for want of memory only: then a kernel in lockdown refuses our programs. */
	(void)libbpf_register_prog_handler("uprobe", BPF_PROG_TYPE_KPROBE, 0, &opts);
	(void)libbpf_register_prog_handler("perf_event", BPF_PROG_TYPE_PERF_EVENT, 0, &opts);
}
