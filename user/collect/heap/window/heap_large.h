/*
 * user/collect/heap/window/heap_large.h - large objects are observed all the time while other objects are
 * seen only in windows.
 *
 * They are rare, and expensive to allocate: a probe that only they pass costs next to nothing,
 * and windows would hardly ever meet one. From go1.24 on they have an allocator entry of their
 * own (mallocgcLarge). Its probes are held apart from the others and stay attached as long as
 * they take no more than a part of the budget.
 */
#ifndef COLLECT_HEAP_WINDOW_HEAP_LARGE_H
#define COLLECT_HEAP_WINDOW_HEAP_LARGE_H

#include <time.h>

#include "probe/uprobes/uprobes.h"
#include "subject/subject.h"

struct heap_large {
	struct uprobes probes;
	bool apart;	   /* their probes are held here, and not with the others */
	bool always;	   /* they count also when no window is open */
	bool dear;	   /* they cost too much: they are not held here again */
	uint64_t attached; /* when they were attached last */
	clockid_t clock;
	/*
	 * at the last check: the time, the target's CPU time, and how many large objects there
	 * were
	 */
	uint64_t at, cpu, n;
};

/* From now on these probes are held here; the ones that were held before are detached. */
int heap_large_attach(struct heap_large *l, struct subject *s, const struct uprobe_group *g,
		      size_t n, struct err *e);
/*
 * Tells the attacher that we still run. To be called every second, or the attacher takes the probes
 * off; then they are attached again.
 */
int heap_large_hear(struct heap_large *l, struct err *e);
/*
 * @n large objects so far, which cost @hit_ns each. True when that is too much; it is checked
 * from time to time.
 */
bool heap_large_dear(struct heap_large *l, uint64_t n, double hit_ns, uint32_t budget_ppm);
void heap_large_detach(struct heap_large *l);

#endif
