/*
 * bpf/sets.bpf.h - whose hit is it? Of one target the link of a probe is of its process alone, and the cookie has its
 * slot. Of many a link is of a file, and the cookie has its number (the set): whoever runs the file hits the probe, and
 * a process that is no target leaves at once.
 */
#ifndef BPF_SETS_BPF_H
#define BPF_SETS_BPF_H

#include "common.bpf.h"

#ifndef GPB_HOST

#include "clocks/percpu.bpf.h"
#include "quota.bpf.h"
#include "slots.bpf.h"

/* Of many targets, for each set: what its probes took from all processes, */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, GPB_SETS);
	__type(key, __u32);
	__type(value, struct gpb_spent);
} sets SEC(".maps");

/* and hits of processes that are none. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, GPB_SETS);
	__type(key, __u32);
	__type(value, struct gpb_spent);
} bystanders SEC(".maps");

/* Of many targets: the set of probes that each is of, whose windows are its own. User space writes it through .bss. */
__u32 set_of[SLOTS] = {};

/* Which of open_for is the target's. */
static __always_inline __u32 open_of(__u32 slot)
{
	return (many_targets ? *(volatile __u32 *)&set_of[slot & (SLOTS - 1)] : slot) &
	       (GPB_TARGETS - 1);
}

static __always_inline __u32 set_of_cookie(__u64 cookie)
{
	return (cookie >> GPB_COOKIE_SLOT_SHIFT) & (GPB_SETS - 1);
}

static __always_inline int bystander_hit(__u32 set, __u64 cookie)
{
	struct gpb_spent *s = bpf_map_lookup_elem(&bystanders, &set);

	if (s)
		spent_hit(s, cookie);
	return 0;
}

/*
 * Whose hit is it? 0: nobody's. *slot: with its generation; *at: where it is in tables. The process by which
 * prices are measured is no target and takes the same way, up to where one that is none leaves.
 *
 * The kernel knows one file where overlay mounts (containers of one image) show several. Where user space cannot prove that
 * (target/host/samefile.h) the links of all of their sets meet each hit of each target: only the one of the target's own set
 * may count it, and to the others it is no stranger's.
 */
static __always_inline int slot_of_hit(__u64 cookie, __u32 *slot, __u32 *at)
{
	__u32 of = set_of_cookie(cookie), *found;
	struct gpb_spent *s;

	*slot = *at = of;
	if (!many_targets)
		return 1;
	s = bpf_map_lookup_elem(&sets, &of);
	if (s)
		spent_hit(s, cookie);
	found = slot_of_current();
	if (found && open_of(*found) == of) {
		*slot = *found;
		*at = *slot & (SLOTS - 1);
		return 1;
	}
	return of == GPB_PRICED || (!found && bystander_hit(of, cookie));
}

/* Accounts for a walk of @ns, where many share the probes of @set. */
static __always_inline void set_walk(__u32 set, __u64 ns)
{
	struct gpb_spent *s = many_targets ? bpf_map_lookup_elem(&sets, &set) : NULL;

	if (s)
		spent_walk(s, ns);
}

#endif /* GPB_HOST */
#endif
