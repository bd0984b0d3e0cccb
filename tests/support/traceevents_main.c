/*
 * traceevents FILE events|frames|cost - one line per event of an execution trace, as the tests' judges print what
 * Go's readers make of it: time, thread, P, goroutine, kind, what the kind has, stacks; or one per frame of each
 * event's stack; or what reading cost. The last line says how it ended.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "ingest/exectrace/exectrace.h"

static const char *const kinds[] = { "sync",	    "metric",	    "label",	   "sample",
				     "range-begin", "range-active", "range-end",   "task-begin",
				     "task-end",    "region-begin", "region-end",  "log",
				     "goroutine",   "proc",	    "experimental" };

static void text(struct trace_text t)
{
	putchar(' ');
	putchar('"');
	for (size_t i = 0; i < t.len; i++)
		putchar(t.at[i] > 0x20 && t.at[i] < 0x7f ? t.at[i] : '.');
	putchar('"');
}

static void stack(const struct exectrace *t, uint32_t number)
{
	size_t n = exectrace_stack(t, number);

	putchar(' ');
	putchar('[');
	for (size_t i = 0; i < n; i++) {
		struct trace_frame f = exectrace_frame(t, number, i);

		printf("%s%" PRIx64, i ? "," : "", f.pc);
	}
	putchar(']');
}

static void frames(const struct exectrace *t, uint32_t number)
{
	size_t n = exectrace_stack(t, number);

	for (size_t i = 0; i < n; i++) {
		struct trace_frame f = exectrace_frame(t, number, i);

		printf("frame %" PRIx64 " %.*s %.*s %" PRIu64 "\n", f.pc, (int)f.func.len,
		       f.func.at, (int)f.file.len, f.file.at, f.line);
	}
}

static void details(const struct exectrace *t, const struct trace_event *ev)
{
	static const char
		*const gs[] = { "?", "none", "runnable", "running", "syscall", "waiting" },
		       *const ps[] = { "?", "none", "running", "idle" };
	const struct trace_transition *tr = &ev->transition;

	switch (ev->kind) {
	case TRACE_SYNC:
		if (ev->sync.has_clock)
			printf(" %" PRId64 " %" PRId64 " %" PRId64, ev->sync.trace_ns,
			       ev->sync.mono_ns, ev->sync.unix_ns);
		break;
	case TRACE_METRIC:
		printf(" %s %" PRIu64, ev->metric.name, ev->metric.value);
		break;
	case TRACE_LABEL:
		text(ev->label.label);
		break;
	case TRACE_RANGE_BEGIN:
	case TRACE_RANGE_ACTIVE:
	case TRACE_RANGE_END:
		text(ev->range.name);
		printf(" %d %" PRId64 " %" PRIu64 " %" PRIu64, ev->range.scope, ev->range.id,
		       ev->range.swept, ev->range.reclaimed);
		break;
	case TRACE_TASK_BEGIN:
	case TRACE_TASK_END:
		printf(" %" PRIu64 " %" PRId64, ev->task.id, ev->task.parent);
		text(ev->task.type);
		break;
	case TRACE_REGION_BEGIN:
	case TRACE_REGION_END:
		printf(" %" PRIu64, ev->region.task);
		text(ev->region.type);
		break;
	case TRACE_LOG:
		printf(" %" PRIu64, ev->log.task);
		text(ev->log.category);
		text(ev->log.message);
		break;
	case TRACE_GOROUTINE:
		printf(" %" PRId64 " %s>%s", tr->id, gs[tr->from], gs[tr->to]);
		text(tr->reason);
		stack(t, tr->stack);
		break;
	case TRACE_PROC:
		printf(" %" PRId64 " %s>%s", tr->id, ps[tr->from], ps[tr->to]);
		break;
	case TRACE_EXPERIMENTAL:
		printf(" %s", ev->experimental.name);
		for (unsigned i = 0; i < ev->experimental.nargs; i++)
			printf(" %" PRIu64, ev->experimental.args[i]);
		break;
	default:
		break;
	}
}

static void print(const struct exectrace *t, const struct trace_event *ev)
{
	printf("%" PRId64 " M%" PRId64 " P%" PRId64 " G%" PRId64 " %s", ev->time_ns, ev->m, ev->p,
	       ev->g, kinds[ev->kind]);
	details(t, ev);
	stack(t, ev->stack);
	putchar('\n');
}

/* What it costs, for `make bench`. */
static void cost(uint64_t events)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	printf("%" PRIu64 " events, %ld ms, %ld KiB\n", events,
	       u.ru_utime.tv_sec * 1000 + u.ru_utime.tv_usec / 1000 + u.ru_stime.tv_sec * 1000 +
		       u.ru_stime.tv_usec / 1000,
	       u.ru_maxrss);
}

int main(int argc, char **argv)
{
	CLEANUP(exectrace_freep) struct exectrace *t = NULL;
	CLEANUP(closep) int fd = argc == 3 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
	struct trace_event ev;
	struct err e = { "" };
	uint64_t events = 0;
	int ret;

	if (fd < 0) {
		fprintf(stderr, "usage: traceevents FILE events|frames|cost\n");
		return 2;
	}
	ret = exectrace_open(fd, &t, &e);
	for (; !ret && (ret = exectrace_next(t, &ev, &e)) > 0; ret = 0, events++) {
		if (argv[2][0] == 'e')
			print(t, &ev);
		if (argv[2][0] == 'f')
			frames(t, ev.stack);
	}
	if (argv[2][0] == 'c')
		cost(events);
	printf("end%s%s\n", ret ? ": " : "", ret ? e.msg : "");
	return 0;
}
