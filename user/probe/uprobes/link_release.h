/*
 * user/probe/uprobes/link_release.h - closes multi links, without waiting until the kernel has freed them.
 *
 * close() of the last descriptor of a multi link takes its breakpoints out, and then waits in
 * uprobe_unregister_sync() for two grace periods, after which nobody can be in what is freed: some 60 ms as a
 * rule, and up to 6 s on a machine that had been up for hours (Linux 6.18). Source: bpf_uprobe_unregister() in
 * kernel/trace/bpf_trace.c, Linux 6.12 and newer; older ones do not wait there.
 *
 * So each link is closed by a thread of its own, and what it is waited for is only that its breakpoints are
 * out: its kernel stack tells. Where that cannot be read (it takes CAP_SYS_ADMIN), the end of close() is waited for.
 */
#ifndef PROBE_UPROBES_LINK_RELEASE_H
#define PROBE_UPROBES_LINK_RELEASE_H

#include <stddef.h>
#include <stdint.h>

/* So many links can be closing at once; more wait for the first of them. */
enum { LINK_RELEASES_MAX = 32 };

/* Zeroed: none. */
struct link_releases {
	struct link_release *at[LINK_RELEASES_MAX]; /* private */
	size_t n;
	uint64_t cpu_ns; /* private: not told yet */
};

/* Begins to close @fd, which it owns from now on; negative: nothing is to be closed. */
void link_release(struct link_releases *r, int fd);
/*
 * On return the breakpoints of all of them are out. Returns the CPU time that this took, ns: of those that were begun since this
 * was last called, without what this thread itself took.
 */
uint64_t link_releases_out(struct link_releases *r);
/* On return all of them are closed, however long that takes. */
void link_releases_over(struct link_releases *r);

#endif
