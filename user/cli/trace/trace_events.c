/* user/cli/trace/trace_events.c - one line: when, where, what. */
#include "cli/trace/trace_events.h"

#include <inttypes.h>

#include "base/limits.h"
#include "profile/utf8.h"

static const char *const gstates[] = { "undetermined", "none",	  "runnable",
				       "running",      "syscall", "waiting" };
static const char *const pstates[] = { "undetermined", "none", "running", "idle" };
static const char *const kinds[] = {
	[TRACE_SYNC] = "sync",
	[TRACE_METRIC] = "metric",
	[TRACE_LABEL] = "label",
	[TRACE_CPU_SAMPLE] = "cpu-sample",
	[TRACE_RANGE_BEGIN] = "range-begin",
	[TRACE_RANGE_ACTIVE] = "range-active",
	[TRACE_RANGE_END] = "range-end",
	[TRACE_TASK_BEGIN] = "task-begin",
	[TRACE_TASK_END] = "task-end",
	[TRACE_REGION_BEGIN] = "region-begin",
	[TRACE_REGION_END] = "region-end",
	[TRACE_LOG] = "log",
	[TRACE_GOROUTINE] = "goroutine",
	[TRACE_PROC] = "proc",
	[TRACE_EXPERIMENTAL] = "experimental",
};

/* What a terminal should not have of a text, and quotes, are escaped as in C. */
static void put_text(FILE *f, struct trace_text text)
{
	const char *s = text.at;
	size_t left = text.len, len;
	bool shown;

	for (; left; left -= len, s += len) {
		len = utf8_next(s, left, &shown);
		if (shown && (*s == '"' || *s == '\\'))
			putc_unlocked('\\', f);
		if (shown)
			fwrite_unlocked(s, 1, len, f);
		for (size_t i = 0; !shown && i < len; i++)
			fprintf(f, "\\x%02x", (unsigned char)s[i]);
	}
}

static void put_quoted(FILE *f, const char *name, struct trace_text text)
{
	fprintf(f, " %s=\"", name);
	put_text(f, text);
	putc_unlocked('"', f);
}

static void put_name(FILE *f, const char *name, struct trace_text text)
{
	put_quoted(f, name, trace_text_cut(text, LIMIT_TRACE_NAME));
}

static void put_frame(FILE *f, const struct trace_frame *fr)
{
	if (fr->func.len)
		put_text(f, trace_text_cut(fr->func, LIMIT_TRACE_NAME));
	else
		fprintf(f, "0x%" PRIx64, fr->pc);
	if (!fr->file.len)
		return;
	putc_unlocked(' ', f);
	put_text(f, trace_text_cut(fr->file, LIMIT_TRACE_NAME));
	fprintf(f, ":%" PRIu64, fr->line);
}

/* From the innermost frame on. What is too long for a line is only counted. */
static void put_stack(FILE *f, const char *name, const struct exectrace *t, uint32_t stack)
{
	size_t n = exectrace_stack(t, stack), bytes = 0;

	if (!n)
		return;
	fprintf(f, " %s=\"", name);
	for (size_t i = 0; i < n; i++) {
		struct trace_frame fr = exectrace_frame(t, stack, i);

		if (i)
			fputs(" < ", f);
		if (bytes > LIMIT_TRACE_STACK) {
			fprintf(f, "... %zu more", n - i);
			break;
		}
		put_frame(f, &fr);
		bytes += trace_text_cut(fr.func, LIMIT_TRACE_NAME).len +
			 trace_text_cut(fr.file, LIMIT_TRACE_NAME).len + 1;
	}
	putc_unlocked('"', f);
}

static void put_id(FILE *f, char what, int64_t id)
{
	if (id == TRACE_NONE)
		fprintf(f, " %c=-", what);
	else
		fprintf(f, " %c=%" PRId64, what, id);
}

static void put_range(FILE *f, const struct trace_event *ev)
{
	static const char *const scopes[] = { "program", "goroutine", "proc" };
	const struct trace_range *r = &ev->range;

	put_name(f, "name", r->name);
	fprintf(f, " of=%s", scopes[r->scope]);
	if (r->scope != TRACE_SCOPE_PROGRAM)
		fprintf(f, " id=%" PRId64, r->id);
	if (ev->kind == TRACE_RANGE_END && r->scope == TRACE_SCOPE_PROC)
		fprintf(f, " swept=%" PRIu64 " reclaimed=%" PRIu64, r->swept, r->reclaimed);
}

static void put_transition(FILE *f, const struct exectrace *t, const struct trace_event *ev)
{
	const struct trace_transition *tr = &ev->transition;
	const char *const *states = ev->kind == TRACE_GOROUTINE ? gstates : pstates;

	fprintf(f, " id=%" PRId64 " %s->%s", tr->id, states[tr->from], states[tr->to]);
	if (tr->reason.len)
		put_name(f, "reason", tr->reason);
	if (ev->kind == TRACE_GOROUTINE)
		put_stack(f, "its-stack", t, tr->stack);
}

static void put_experimental(FILE *f, const struct trace_event *ev)
{
	fprintf(f, " name=\"%s\"", ev->experimental.name);
	for (unsigned i = 0; i < ev->experimental.nargs; i++)
		fprintf(f, " arg=%" PRIu64, ev->experimental.args[i]);
}

static void put_arguments(FILE *f, const struct exectrace *t, const struct trace_event *ev)
{
	switch (ev->kind) {
	case TRACE_SYNC:
		if (ev->sync.has_clock)
			fprintf(f, " trace=%" PRId64 " mono=%" PRId64 " unix=%" PRId64,
				ev->sync.trace_ns, ev->sync.mono_ns, ev->sync.unix_ns);
		return;
	case TRACE_METRIC:
		fprintf(f, " name=\"%s\" value=%" PRIu64, ev->metric.name, ev->metric.value);
		return;
	case TRACE_LABEL:
		put_name(f, "label", ev->label.label);
		fprintf(f, " id=%" PRId64, ev->label.g);
		return;
	case TRACE_RANGE_BEGIN:
	case TRACE_RANGE_ACTIVE:
	case TRACE_RANGE_END:
		put_range(f, ev);
		return;
	case TRACE_TASK_BEGIN:
	case TRACE_TASK_END:
		fprintf(f, " task=%" PRIu64, ev->task.id);
		if (ev->task.parent != TRACE_NONE)
			fprintf(f, " parent=%" PRId64, ev->task.parent);
		put_name(f, "type", ev->task.type);
		return;
	case TRACE_REGION_BEGIN:
	case TRACE_REGION_END:
		fprintf(f, " task=%" PRIu64, ev->region.task);
		put_name(f, "type", ev->region.type);
		return;
	case TRACE_LOG:
		fprintf(f, " task=%" PRIu64, ev->log.task);
		put_name(f, "category", ev->log.category);
		put_quoted(f, "message", ev->log.message);
		return;
	case TRACE_GOROUTINE:
	case TRACE_PROC:
		put_transition(f, t, ev);
		return;
	case TRACE_EXPERIMENTAL:
		put_experimental(f, ev);
		return;
	case TRACE_CPU_SAMPLE:
		return;
	}
}

void trace_events_put(FILE *f, const struct exectrace *t, const struct trace_event *ev,
		      int64_t start_ns)
{
	int64_t at = ev->time_ns - start_ns;

	fprintf(f, "%" PRId64 ".%09" PRId64, at / 1000000000, at % 1000000000);
	put_id(f, 'M', ev->m);
	put_id(f, 'P', ev->p);
	put_id(f, 'G', ev->g);
	fprintf(f, " %s", kinds[ev->kind]);
	put_arguments(f, t, ev);
	put_stack(f, "stack", t, ev->stack);
	putc_unlocked('\n', f);
}
