/*
 * user/probe/uprobes/hit_cost.h - what a hit of a probe costs the thread that hits it, measured on this
 * machine.
 */
#ifndef PROBE_UPROBES_HIT_COST_H
#define PROBE_UPROBES_HIT_COST_H

#include <bpf/libbpf.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

/* The price where nothing can be measured: that of the slower machines that were tried. */
#define HIT_COST_DEFAULT_NS 800.0

/*
 * And what a hit costs more where the kernel single-steps. Source: Linux 6.18 on x86-64, 2,000 to
 * 3,000 ns beside 350 to 500; 15,000 in a virtual machine whose host traps each step.
 */
#define HIT_COST_STEPPED_NS 2000.0

/* What goes on after a measurement: its probes are taken out. */
struct cost_probes;

struct hit_cost {
	double hit_ns;	   /* CPU ns of a hit at an instruction that the kernel emulates */
	double stepped_ns; /* what it costs more at one that the kernel single-steps */
};

/*
 * CPU ns that @prog takes from a thread at a Go function's stack check, the trap included, and
 * what it takes more where that function returns, which the kernel single-steps. A process of our
 * own is probed for that. @cookie: its target's slot must be one that @prog counts for. @prog must
 * stay until *rest is freed; on error there is none. @all: as uprobes.all.
 */
struct attacher_process;
int hit_cost_measure(struct bpf_program *prog, bool multi, uint64_t cookie,
		     struct attacher_process **all, struct hit_cost *out, struct cost_probes **rest,
		     struct err *e);
/* To be polled: readable when its probes are out. */
int cost_probes_fd(struct cost_probes *p);
/* Waits for that. */
void cost_probes_free(struct cost_probes *p);
DEFINE_FREEP(struct cost_probes, cost_probes)

#endif
