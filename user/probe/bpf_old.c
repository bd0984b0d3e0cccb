/* user/probe/bpf_old.c - see probe/bpf_old.h. */
#include "probe/bpf_old.h"

#include <bpf/bpf.h>
#include <linux/membarrier.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/sys/caps.h"
#include "base/cleanup.h"
#include "target/host/pidns.h"

bool bpf_is_old(void)
{
	static int old = -1;

	if (old < 0)
		old = !libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_get_attach_cookie,
					       NULL);
	return old;
}

int bpf_open_fitting(struct bpf_object_skeleton *s, const void *(*old_bytes)(size_t *n))
{
	int ret;

	if (bpf_is_old())
		s->data = (void *)(uintptr_t)old_bytes(&s->data_sz);
	ret = bpf_object__open_skeleton(s, NULL);
	if (ret)
		errno = -ret;
	return ret;
}

int bpf_old_pidns(volatile const uint32_t *ino, struct err *e)
{
	return bpf_is_old() ? pidns_inode((uint32_t *)(uintptr_t)ino, e) : 0;
}

/*
 * THREAD_SIZE. With KASAN it is larger; such a kernel's registers are not found, which programs count. Source:
 * arch/x86/include/asm/page_64_types.h, arch/arm64/include/asm/memory.h, Linux 5.10.
 */
uint32_t bpf_old_kernel_stack(void)
{
	uint32_t page = (uint32_t)sysconf(_SC_PAGESIZE);

	return page > 16384 ? page : 16384;
}

bool bpf_old_blind(void)
{
	return bpf_is_old() &&
	       !libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_probe_read_kernel, NULL);
}

bool bpf_old_memlock(void)
{
	struct rlimit r = { .rlim_max = RLIM_INFINITY };

	(void)getrlimit(RLIMIT_MEMLOCK, &r);
	return r.rlim_max != RLIM_INFINITY && !caps_have(CAP_SYS_RESOURCE) && bpf_is_old();
}

/* A grace period of RCU, in which all programs end that run now. Source: kernel/sched/membarrier.c. */
void bpf_old_barrier(void)
{
	if (bpf_is_old())
		(void)syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
}

int bpf_put_on(int prog_fd, int event_fd, uint64_t cookie, int *link, struct err *e)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .perf_event.bpf_cookie = cookie);

	*link = -1;
	if (bpf_is_old())
		return ioctl(event_fd, PERF_EVENT_IOC_SET_BPF, prog_fd) ?
			       err_sys(e, "a program on a perf event") :
			       0;
	*link = bpf_link_create(prog_fd, event_fd, BPF_PERF_EVENT, &opts);
	return *link < 0 ? err_sys(e, "a program on a perf event") : 0;
}

/* ---- cookies ---- */

/*
 * The table that @prog looks into, or -1. libbpf does not tell of which object a program is, but its instructions have the
 * descriptors of its tables. Source: bpf_object__relocate_data() in libbpf.c, 1.1.
 */
static int table_of(const struct bpf_program *prog)
{
	const struct bpf_insn *in = bpf_program__insns(prog);
	size_t n = bpf_program__insn_cnt(prog);

	for (size_t i = 0; i < n; i++) {
		struct bpf_map_info map = { 0 };
		uint32_t len = sizeof(map);

		if (in[i].code == (BPF_LD | BPF_DW | BPF_IMM) &&
		    in[i].src_reg == BPF_PSEUDO_MAP_FD &&
		    !bpf_obj_get_info_by_fd(in[i].imm, &map, &len) && !strcmp(map.name, "cookies"))
			return in[i].imm;
	}
	return -1;
}

int cookies_put(const struct bpf_program *prog, pid_t pid, const struct uprobe_site *sites,
		size_t n, struct err *e)
{
	int table = prog ? table_of(prog) : -1;

	for (size_t i = 0; table >= 0 && i < n; i++) {
		struct gpb_cookie_key key = { .addr = sites[i].addr, .tgid = (uint32_t)pid };

		if (bpf_map_update_elem(table, &key, &sites[i].cookie, BPF_ANY))
			return err_sys(e, "the table of cookies");
	}
	return 0;
}
