/* user/target/host/kallsyms.h - names of kernel functions, from /proc/kallsyms. */
#ifndef TARGET_KALLSYMS_H
#define TARGET_KALLSYMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct kallsyms;

/* Text symbols only. Addresses the kernel hides (all zero) give an empty table, not an error. */
int kallsyms_open(struct kallsyms **out, struct err *e);
void kallsyms_free(struct kallsyms *k);
DEFINE_FREEP(struct kallsyms, kallsyms)

/*
 * 0 when the kernel shows the addresses in its table to us; -EPERM with a sentence when not.
 * Source: kallsyms_show_value() in kernel/ksyms_common.c, Linux 6.18.
 */
int kallsyms_shown(struct err *e);

/* Name of the function that holds @addr, borrowed; NULL when unknown. */
const char *kallsyms_find(const struct kallsyms *k, uint64_t addr);

/* Parses one line "ADDR T name [module]"; for tests and fuzzing. False when it is no such line. */
struct kallsym_line {
	uint64_t addr;
	char type;
	const char *name;
	size_t name_len;
};
bool kallsyms_parse_line(const char *line, size_t len, struct kallsym_line *out);

#endif
