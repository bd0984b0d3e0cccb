/*
 * user/probe/price.h - what a hit of a probe costs the thread that hits it, measured on this
 * machine.
 */
#ifndef PROBE_PRICE_H
#define PROBE_PRICE_H

#include <bpf/libbpf.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

/* The price where nothing can be measured: that of the slower machines that were tried. */
#define PRICE_DEFAULT_NS 800.0

/*
 * And what a hit costs more where the kernel single-steps. Source: Linux 6.18 on x86-64, 2,000 to
 * 3,000 ns beside 350 to 500; 15,000 in a virtual machine whose host traps each step.
 */
#define PRICE_STEPPED_NS 2000.0

/* What goes on after a measurement: its probes are taken out. */
struct pricing;

struct price {
	double hit_ns;	   /* CPU ns of a hit at an instruction that the kernel emulates */
	double stepped_ns; /* what it costs more at one that the kernel single-steps */
};

/*
 * CPU ns that @prog takes from a thread at a Go function's stack check, the trap included, and
 * what it takes more where that function returns, which the kernel single-steps. A process of our
 * own is probed for that. @cookie: its target's slot must be one that @prog counts for. @prog must
 * stay until *rest is freed; on error there is none. @all: as uprobes.all.
 */
struct keeper_process;
int price_measure(struct bpf_program *prog, bool multi, uint64_t cookie,
		  struct keeper_process **all, struct price *out, struct pricing **rest,
		  struct err *e);
/* To be polled: readable when its probes are out. */
int pricing_fd(const struct pricing *p);
/* Waits for that. */
void pricing_free(struct pricing *p);
DEFINE_FREEP(struct pricing, pricing)

#endif
