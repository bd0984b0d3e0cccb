/* tests/fuzz/fuzz_exectrace.c - the bytes are an execution trace, read to its end, and for a profile. */
#include <sys/mman.h>
#include <unistd.h>

#include "ingest/exectrace/summary/trace_profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Of the sanitizers: bytes that are allocated now. */
size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

/*
 * What reading may take: windows, and so much for each byte of the trace. A name of 1 KiB is kept for
 * each task that begins, which takes 8 bytes.
 */
enum { MEMORY_FIXED = 16 << 20, MEMORY_TIMES = 512 };
/* An event of the trace takes a byte at least, and gives three at most. */
enum { EVENTS_TIMES = 4, EVENTS_FIXED = 16, FRAMES = 128 };

static size_t allocated(void)
{
	return __sanitizer_get_current_allocated_bytes ? __sanitizer_get_current_allocated_bytes() :
							 0;
}

static volatile char seen;

static void see(struct trace_text t)
{
	if (t.len)
		seen = (char)(t.at[0] + t.at[t.len - 1]);
}

static void see_stack(const struct exectrace *t, uint32_t stack)
{
	size_t n = exectrace_stack(t, stack);

	for (size_t i = 0; i < n && i < FRAMES; i++) {
		struct trace_frame f = exectrace_frame(t, stack, i);

		see(f.func);
		see(f.file);
	}
}

/* All that is promised of an event, whatever the bytes are. */
static void look(const struct exectrace *t, const struct trace_event *ev)
{
	see_stack(t, ev->stack);
	switch (ev->kind) {
	case TRACE_GOROUTINE:
		BUG_ON(ev->transition.from > TRACE_G_WAITING);
		BUG_ON(ev->transition.to > TRACE_G_WAITING || !ev->transition.to);
		see(ev->transition.reason);
		see_stack(t, ev->transition.stack);
		break;
	case TRACE_PROC:
		BUG_ON(ev->transition.from > TRACE_P_IDLE);
		BUG_ON(ev->transition.to != TRACE_P_RUNNING && ev->transition.to != TRACE_P_IDLE);
		break;
	case TRACE_RANGE_BEGIN:
	case TRACE_RANGE_ACTIVE:
	case TRACE_RANGE_END:
		see(ev->range.name);
		break;
	case TRACE_TASK_BEGIN:
	case TRACE_TASK_END:
		see(ev->task.type);
		break;
	case TRACE_REGION_BEGIN:
	case TRACE_REGION_END:
		see(ev->region.type);
		break;
	case TRACE_LOG:
		see(ev->log.category);
		see(ev->log.message);
		break;
	case TRACE_LABEL:
		see(ev->label.label);
		break;
	case TRACE_EXPERIMENTAL:
		BUG_ON(ev->experimental.nargs > TRACE_EXPERIMENTAL_ARGS);
		break;
	default:
		BUG_ON(ev->kind > TRACE_EXPERIMENTAL);
	}
}

static void read_trace(int fd, size_t size)
{
	CLEANUP(exectrace_freep) struct exectrace *t = NULL;
	CLEANUP(trace_profile_freep) struct trace_profile *p = NULL;
	size_t before = allocated(), events = 0;
	int64_t last = INT64_MIN;
	struct trace_event ev;
	struct prof *prof;
	struct err e = { "" };
	int ret = exectrace_open(fd, &t, &e);

	BUG_ON(ret < 0 && !e.msg[0]);
	if (ret || trace_profile_new(size % TRACE_PROFILE_KINDS, exectrace_version(t), &p, &e))
		return;
	while ((ret = exectrace_next(t, &ev, &e)) > 0) {
		BUG_ON(ev.time_ns < last || ++events > EVENTS_TIMES * size + EVENTS_FIXED);
		BUG_ON(exectrace_offset(t) > exectrace_size(t));
		last = ev.time_ns;
		look(t, &ev);
		if (trace_profile_event(p, t, &ev, &e))
			return;
	}
	BUG_ON(allocated() > before + MEMORY_FIXED + MEMORY_TIMES * size);
	BUG_ON(ret < 0 && !e.msg[0]);
	BUG_ON(exectrace_next(t, &ev, &e) != ret);
	if (!trace_profile_end(p, &prof, &e))
		prof_free(prof);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd CLEANUP(closep) = memfd_create("fuzz_exectrace", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return 0;
	read_trace(fd, size);
	return 0;
}
