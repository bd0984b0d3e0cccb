/*
 * user/base/sys/caps.h - what this process may do, and what is missing, in words.
 *
 * Capabilities are CAP_* of <linux/capability.h>. What needs which was tried out one by one
 * on Linux 6.18 (tests/e2e/caps.sh); docs/privileges.md has the table.
 */
#ifndef BASE_SYS_CAPS_H
#define BASE_SYS_CAPS_H

#include <linux/capability.h>
#include <stdbool.h>

#include "base/err.h"

/*
 * Is @cap effective? CAP_SYS_ADMIN stands for CAP_BPF and CAP_PERFMON, which were cut out of
 * it in Linux 5.8 (bpf_capable() and perfmon_capable(), include/linux/capability.h). True
 * when the kernel does not say.
 */
bool caps_have(int cap);

/*
 * Does this process live in the initial user namespace? In any other one its capabilities, also
 * root's, count for that namespace only, and not for BPF, perf or processes outside of it.
 */
bool caps_initial_userns(void);

/*
 * Writes "@what: run as root, or with CAP_A and CAP_B (missing: CAP_B)", or, when none of the @n
 * is missing, what else stands in the way; -EPERM. Only for the capabilities that this program
 * may need.
 */
int caps_refused(struct err *e, const char *what, const int *caps, size_t n);

/*
 * From this value of kernel.perf_event_paranoid on, kernels of Debian (3) and Ubuntu (4) refuse
 * perf_event_open() to all who have no CAP_SYS_ADMIN, CAP_PERFMON or not. Others know no more than 2.
 * Source: security-perf-allow-further-restriction-of-perf_event_open.patch of Debian's linux 5.10 to 6.1.
 */
enum { CAPS_PARANOIA_ADMIN = 3 };

/* The value of kernel.perf_event_paranoid; 0 when it cannot be read. */
int caps_paranoia(void);

/* caps_refused() for a CPU clock (perf_event_open), at this value of kernel.perf_event_paranoid. */
int caps_refused_clock(struct err *e, const char *what, int paranoia);

/* Why something that needs @cap was denied: "no CAP_A", or what else stands in the way. Returns @buf. */
enum { CAPS_DENIED = 80 };
const char *caps_denied(int cap, char buf[CAPS_DENIED]);

#endif
