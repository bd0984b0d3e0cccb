/*
 * user/collect/waits/engine/wait_left.h - which goroutines belong to the runtime, and who waits at this
 * moment.
 */
#ifndef COLLECT_WAITS_ENGINE_WAIT_LEFT_H
#define COLLECT_WAITS_ENGINE_WAIT_LEFT_H

#include "subject/subject.h"

enum { WAIT_REASONS = 256 };

/*
 * Numbers of the program's own goroutines that wait, by g.waitreason, that are in system calls,
 * and that are runnable.
 */
struct wait_left {
	uint64_t waiting[WAIT_REASONS];
	uint64_t syscall, runnable, sum;
};

/*
 * Reads every goroutine of the live target once, about a microsecond each, while it runs: so the
 * numbers are not those of one moment. -ENOENT, -EFAULT, -ESRCH when the list exists no more.
 */
int wait_left(struct subject *s, struct wait_left *out, struct err *e);

/*
 * Does a goroutine that began at the live address @start belong to the runtime? This follows Go's
 * own tools, except that the goroutines that run finalizers and cleanups belong to it here.
 * Source: isSystemGoroutine in runtime/traceback.go, Go 1.16 to 1.27.
 */
bool wait_by_runtime(struct subject *s, uint64_t start);

/* Go 1.@minor's name for that reason; "reason 47" in @buf for one that is not known. */
const char *wait_reason_text(int minor, unsigned reason, char buf[32]);

#endif
