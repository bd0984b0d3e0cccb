/*
 * user/collect/heap_large.h - large objects are observed all the time while all others are seen in
 * windows only.
 *
 * They are rare and dear to allocate: a probe that only they pass costs next to nothing, and windows
 * would hardly ever meet one. From go1.24 on they have an entry of their own (mallocgcLarge). Its
 * probes are held apart from the others and stay where they are, as long as they take no more than a
 * part of the budget.
 */
#ifndef COLLECT_HEAP_LARGE_H
#define COLLECT_HEAP_LARGE_H

#include <time.h>

#include "collect/subject_priv.h"
#include "collect/uprobes.h"

struct heap_large {
	struct uprobes probes;
	bool apart;	   /* they are held here, and not with the others */
	bool always;	   /* they count also when nothing is open */
	bool dear;	   /* never again */
	uint64_t attached; /* when they were, last */
	clockid_t clock;
	uint64_t at, cpu, n; /* at the last look: when, the target's CPU time, how many so far */
};

/* They are held apart from now on. What was held before is let go. */
int heap_large_attach(struct heap_large *l, const struct subject *s, const struct uprobe_group *g,
		      size_t n, struct err *e);
/* We still run: to be said every second, or its keeper takes them off; then they are put on again. */
int heap_large_hear(struct heap_large *l, struct err *e);
/* @n so far, that cost @hit_ns each. True when that is too much: now and then asked. */
bool heap_large_dear(struct heap_large *l, uint64_t n, double hit_ns, uint32_t budget_ppm);
void heap_large_detach(struct heap_large *l);

#endif
