/*
 * user/collect/ability.h - what this kernel and our privileges allow, found out by trying.
 *
 * Never by version: a program is loaded, a clock opened, a probe set on ourselves and dropped.
 * What may not be tried is UNKNOWN, not absent. Which capability is for what was tried one by
 * one on Linux 6.18 (tests/e2e/caps.sh).
 */
#ifndef COLLECT_ABILITY_H
#define COLLECT_ABILITY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum ability_is {
	ABILITY_YES,
	ABILITY_NO,
	ABILITY_UNKNOWN, /* it could not be tried; found says why */
	ABILITY_INFO,	 /* neither good nor bad: found is what there is */
};

enum ability_group {
	ABILITY_PROFILES, /* what one can do now */
	ABILITY_KERNEL,
	ABILITY_PRIVILEGES,
	ABILITY_SETTINGS,
	ABILITY_GROUPS
};

struct ability {
	enum ability_group group;
	const char *id;	     /* stable, for machines: "btf" */
	const char *title;   /* for people */
	const char *purpose; /* what it is for */
	bool needed;	     /* every profile of our own processes must have it */
	enum ability_is is;
	char found[384];  /* what was seen */
	char remedy[512]; /* what to do when it is missing; "" nothing */
};

enum { ABILITIES_MAX = 40 };

struct abilities {
	struct ability at[ABILITIES_MAX];
	size_t n;
};

/* All of it. Takes a few hundred milliseconds. */
void abilities_test(struct abilities *out);

/* Everything that is needed is there. */
bool abilities_enough(const struct abilities *a);

/*
 * One thing each, quickly: what CPU profiles and heap probes stand on, with programs of two
 * instructions. -EPERM names the capability.
 */
int ability_cpu(struct err *e);
int ability_uprobe(struct err *e);

#endif
