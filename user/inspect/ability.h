/*
 * user/inspect/ability.h - what this kernel and our privileges allow, found out by trying.
 *
 * Nothing is decided by version: a program is loaded, a clock opened, a probe set on ourselves
 * and dropped. What must not be tried is UNKNOWN, not absent. Which capability each thing needs
 * was tried one by one on Linux 6.18 (tests/e2e/caps.sh).
 */
#ifndef INSPECT_ABILITY_H
#define INSPECT_ABILITY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum ability_is {
	ABILITY_YES,
	ABILITY_NO,
	ABILITY_UNKNOWN, /* it could not be tried; found says why */
	ABILITY_INFO,	 /* neither good nor bad: found has the value */
};

enum ability_group {
	ABILITY_PROFILES, /* what can be done now */
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
	bool needed;	     /* every profile of our own processes needs it */
	enum ability_is is;
	char found[384];  /* what was seen */
	char remedy[512]; /* what to do when it is missing; "" for nothing */
};

enum { ABILITIES_MAX = 48 };

struct abilities {
	struct ability at[ABILITIES_MAX];
	size_t n;
};

/* Makes all attempts. Takes a few hundred milliseconds. */
void abilities_test(struct abilities *out);

/* Is everything there that is needed? */
bool abilities_enough(const struct abilities *a);

/*
 * Each tries one thing quickly: what CPU profiles and heap probes depend on, with programs of two
 * instructions. -EPERM names the capability.
 */
int ability_cpu(struct err *e);
int ability_uprobe(struct err *e);

#endif
