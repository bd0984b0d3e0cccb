/* user/cli/trace/trace_to_perfetto.c - which event is what, and on which track. */
#include "cli/trace/trace_to_perfetto.h"

#include <inttypes.h>
#include <stdarg.h>

#include "base/limits.h"
#include "base/map.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "cli/trace/trace_tracks.h"

/* A track is known by what it is of, in the lowest bits, and which: small numbers take few bytes. */
enum { OF_BITS = 4 };

enum of {
	OF_PROGRAM = 1, /* with the numbers of enum program_track */
	OF_P,
	OF_P_GC, /* below a P: what the collector does on it */
	OF_M,
	OF_G,
	OF_G_REGIONS, /* below a goroutine */
	OF_G_GC,
	OF_TASK,
};

enum program_track {
	PROGRAM_ROOT = 1,
	PROGRAM_HEAP,
	PROGRAM_GOAL,
	PROGRAM_GOROUTINES,
	PROGRAM_RUNNING,
	PROGRAM_PROCS,
	PROGRAM_GC,
	PROGRAM_STW,
	PROGRAM_PS,
	PROGRAM_TASKS,
	PROGRAM_GOROUTINE_GROUP,
	PROGRAM_THREADS,
	PROGRAM_OTHERS, /* instants that are of nobody */
	PROGRAM_TRACKS,
};

static const struct {
	const char *name;
	enum perfetto_unit unit;
} program_tracks[PROGRAM_TRACKS] = {
	[PROGRAM_HEAP] = { "heap", PERFETTO_BYTES },
	[PROGRAM_GOAL] = { "heap goal", PERFETTO_BYTES },
	[PROGRAM_GOROUTINES] = { "goroutines", PERFETTO_COUNT },
	[PROGRAM_RUNNING] = { "running goroutines", PERFETTO_COUNT },
	[PROGRAM_PROCS] = { "GOMAXPROCS", PERFETTO_COUNT },
	[PROGRAM_GC] = { "garbage collection", PERFETTO_NO_COUNTER },
	[PROGRAM_STW] = { "the world is stopped", PERFETTO_NO_COUNTER },
	[PROGRAM_PS] = { "Ps", PERFETTO_NO_COUNTER },
	[PROGRAM_TASKS] = { "user tasks", PERFETTO_NO_COUNTER },
	[PROGRAM_GOROUTINE_GROUP] = { "goroutines by number", PERFETTO_NO_COUNTER },
	[PROGRAM_THREADS] = { "threads", PERFETTO_NO_COUNTER },
	[PROGRAM_OTHERS] = { "runtime", PERFETTO_NO_COUNTER },
};

/* A goroutine that exists. */
struct shown_goroutine {
	unsigned state;
	uint32_t name; /* in names: the function that it starts in */
	int64_t p, m;  /* where it has a slice; TRACE_NONE: nowhere */
	uint64_t flow; /* that ends when it runs; 0: none */
};

struct trace_to_perfetto {
	struct perfetto *out;
	struct trace_tracks tracks;
	struct strtab *names;
	const char *title; /* borrowed */
	bool begun;
	int64_t start_ns; /* of the trace: times are told from there on */
	uint64_t from_ns; /* from there on: where the time that is asked for begins */
	uint64_t flows;	  /* how many there were */
	struct map by_g;  /* in goroutines */
	struct map
		holders; /* the track of a P or a thread -> the goroutine whose slice is open there */
	VEC(struct shown_goroutine) goroutines;
	VEC(uint32_t) free_goroutines;
	/* Counters: as they are, and as they were told last. */
	uint64_t now[PROGRAM_TRACKS], told[PROGRAM_TRACKS];
	bool has[PROGRAM_TRACKS];
	VEC(char) text; /* scratch: a stack */
};

static int no_memory(struct err *e)
{
	return err_set(e, -ENOMEM, "no memory for the Perfetto trace");
}

static uint64_t track_of(enum of of, int64_t id)
{
	return (uint64_t)id << OF_BITS | of;
}

static struct perfetto_text text_of(const char *s)
{
	return (struct perfetto_text){ s, strlen(s) };
}

/* What is longer than that nobody reads. */
static struct perfetto_text text(struct trace_text t)
{
	return (struct perfetto_text){ t.at, trace_text_cut(t, LIMIT_TRACE_NAME).len };
}

static uint64_t time_of(const struct trace_to_perfetto *p, const struct trace_event *ev)
{
	return ev->time_ns > p->start_ns ? (uint64_t)(ev->time_ns - p->start_ns) : 0;
}

/* ---- tracks ---- */

static int32_t rank_of(uint64_t id)
{
	return id > INT32_MAX ? INT32_MAX : (int32_t)id;
}

static struct shown_goroutine *find(const struct trace_to_perfetto *p, int64_t g)
{
	uint64_t at;

	return map_get(&p->by_g, (uint64_t)g, &at) ? &p->goroutines.at[at] : NULL;
}

static const char *function_of(const struct trace_to_perfetto *p, int64_t g)
{
	const struct shown_goroutine *of = find(p, g);

	return of ? strtab_get(p->names, of->name) : "";
}

static int tell_program(struct trace_to_perfetto *p, uint64_t id, struct err *e)
{
	bool root = id == PROGRAM_ROOT;
	const struct perfetto_track track = {
		.id = track_of(OF_PROGRAM, (int64_t)id),
		.parent = root ? 0 : track_of(OF_PROGRAM, PROGRAM_ROOT),
		.name = text_of(root ? p->title : program_tracks[id].name),
		.counter = program_tracks[id].unit,
		.rank = rank_of(id),
	};

	return perfetto_track(p->out, &track, e);
}

/* What a track is called, and what it is below. */
static int tell_track(void *arg, uint64_t id, struct perfetto_text first, struct err *e)
{
	struct trace_to_perfetto *p = arg;
	enum of of = id & ((1 << OF_BITS) - 1);
	int64_t which = (int64_t)(id >> OF_BITS);
	struct perfetto_track track = { .id = id, .rank = rank_of((uint64_t)which) };
	char name[512];
	int ret = 0;

	switch (of) {
	case OF_PROGRAM:
		return 0; /* told at the start */
	case OF_P:
		snprintf(name, sizeof(name), "P %" PRId64, which);
		track.parent = track_of(OF_PROGRAM, PROGRAM_PS);
		break;
	case OF_M:
		snprintf(name, sizeof(name), "thread %" PRId64, which);
		track.parent = track_of(OF_PROGRAM, PROGRAM_THREADS);
		break;
	case OF_G:
		snprintf(name, sizeof(name), "G %" PRId64 "%s%s", which,
			 *function_of(p, which) ? " " : "", function_of(p, which));
		track.parent = track_of(OF_PROGRAM, PROGRAM_GOROUTINE_GROUP);
		break;
	case OF_TASK:
		snprintf(name, sizeof(name), "task %" PRId64 " %.*s", which,
			 first.len > 400 ? 400 : (int)first.len, first.at ? first.at : "");
		track.parent = track_of(OF_PROGRAM, PROGRAM_TASKS);
		break;
	default: /* below another one */
		snprintf(name, sizeof(name), "%s",
			 of == OF_G_REGIONS ? "regions" : "garbage collection");
		track.parent = track_of(of == OF_P_GC ? OF_P : OF_G, which);
		track.rank = of == OF_G_REGIONS ? 0 : 1;
		ret = trace_tracks_need(&p->tracks, track.parent, text_of(""), e);
		break;
	}
	if (ret)
		return ret;
	track.name = text_of(name);
	return perfetto_track(p->out, &track, e);
}

int trace_to_perfetto_new(FILE *f, const char *name, struct trace_to_perfetto **out, struct err *e)
{
	CLEANUP(trace_to_perfetto_freep) struct trace_to_perfetto *p = calloc(1, sizeof(*p));
	int ret;

	if (!p)
		return no_memory(e);
	p->title = name;
	ret = perfetto_new(f, &p->out, e);
	if (!ret)
		ret = strtab_new(&p->names, e);
	p->tracks.out = p->out;
	p->tracks.names = p->names;
	p->tracks.tell = tell_track;
	p->tracks.arg = p;
	for (uint64_t id = PROGRAM_ROOT; !ret && id < PROGRAM_TRACKS; id++)
		ret = tell_program(p, id, e);
	if (!ret)
		*out = TAKE(p);
	return ret;
}

void trace_to_perfetto_free(struct trace_to_perfetto *p)
{
	if (!p)
		return;
	trace_tracks_fini(&p->tracks);
	perfetto_free(p->out);
	strtab_free(p->names);
	map_fini(&p->by_g);
	map_fini(&p->holders);
	vec_fini(&p->goroutines);
	vec_fini(&p->free_goroutines);
	vec_fini(&p->text);
	free(p);
}

/* ---- stacks ---- */

static bool add(struct trace_to_perfetto *p, const char *at, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char *to = vec_add(&p->text, LIMIT_TRACE_STACK);

		if (!to)
			return p->text.n >=
			       LIMIT_TRACE_STACK; /* cut, where it is longer than that */
		*to = at[i];
	}
	return true;
}

static bool add_frame(struct trace_to_perfetto *p, const struct trace_frame *f)
{
	struct perfetto_text func = text(f->func), file = text(f->file);
	char line[64];

	if (f->func.len)
		snprintf(line, sizeof(line), ":%" PRIu64 "\n", f->line);
	else
		snprintf(line, sizeof(line), "0x%" PRIx64 "\n", f->pc);
	return add(p, func.at, func.len) && (!file.len || add(p, "  ", 2)) &&
	       add(p, file.at, file.len) && add(p, line, strlen(line));
}

/* A note with the frames, from the innermost on; each stack of a generation is told once. */
static bool note_stack(struct trace_to_perfetto *p, const struct exectrace *t, uint32_t stack,
		       struct perfetto_event *ev)
{
	struct perfetto_note *note = &ev->notes[ev->nnotes];
	size_t n = exectrace_stack(t, stack);

	if (!n || !p->tracks.shown)
		return true;
	*note = (struct perfetto_note){ .name = "stack", .text = text_of(""), .key = stack };
	ev->nnotes++;
	if (perfetto_knows(p->out, stack))
		return true;
	p->text.n = 0;
	for (size_t i = 0; i < n && p->text.n < LIMIT_TRACE_STACK; i++) {
		struct trace_frame f = exectrace_frame(t, stack, i);

		if (!add_frame(p, &f))
			return false;
	}
	note->text = (struct perfetto_text){ p->text.at, p->text.n };
	return true;
}

static void note_number(struct perfetto_event *ev, const char *name, int64_t v)
{
	if (v != TRACE_NONE)
		ev->notes[ev->nnotes++] = (struct perfetto_note){ .name = name, .number = v };
}

static void note_text(struct perfetto_event *ev, const char *name, struct perfetto_text t)
{
	ev->notes[ev->nnotes++] = (struct perfetto_note){ .name = name, .text = t };
}

/* ---- counters ---- */

static int count(struct trace_to_perfetto *p, enum program_track what, uint64_t now_ns,
		 struct err *e)
{
	const struct perfetto_event ev = { .type = PERFETTO_COUNTER,
					   .time_ns = now_ns,
					   .track = track_of(OF_PROGRAM, what),
					   .value = (int64_t)p->now[what] };

	if (!p->tracks.shown || (p->has[what] && p->told[what] == p->now[what]))
		return 0;
	p->has[what] = true;
	p->told[what] = p->now[what];
	return trace_tracks_put(&p->tracks, &ev, e);
}

static int count_all(struct trace_to_perfetto *p, uint64_t now_ns, struct err *e)
{
	int ret = count(p, PROGRAM_GOROUTINES, now_ns, e);

	return ret ? ret : count(p, PROGRAM_RUNNING, now_ns, e);
}

static int metric(struct trace_to_perfetto *p, const struct trace_event *ev, struct err *e)
{
	static const struct {
		const char *name;
		enum program_track track;
	} all[] = { { "/memory/classes/heap/objects:bytes", PROGRAM_HEAP },
		    { "/gc/heap/goal:bytes", PROGRAM_GOAL },
		    { "/sched/gomaxprocs:threads", PROGRAM_PROCS } };

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		if (strcmp(all[i].name, ev->metric.name))
			continue;
		p->now[all[i].track] = ev->metric.value;
		p->has[all[i].track] = false; /* told even if it is the same */
		return count(p, all[i].track, time_of(p, ev), e);
	}
	return 0;
}

/* ---- goroutines ---- */

static struct shown_goroutine *goroutine(struct trace_to_perfetto *p, int64_t id)
{
	struct shown_goroutine *g = find(p, id);
	uint64_t at;

	if (g)
		return g;
	at = p->free_goroutines.n ? p->free_goroutines.at[--p->free_goroutines.n] : p->goroutines.n;
	g = at < p->goroutines.n ? &p->goroutines.at[at] :
				   vec_add(&p->goroutines, LIMIT_GOROUTINES);
	if (!g || !map_put(&p->by_g, (uint64_t)id, at))
		return NULL;
	*g = (struct shown_goroutine){ .p = TRACE_NONE, .m = TRACE_NONE };
	return g;
}

/* Where stacks in a trace end, however deep they are. Source: runtime/tracestack.go, Go 1.27. */
enum { STACK_MAX = 128 };

static bool name_it(struct trace_to_perfetto *p, const struct exectrace *t,
		    const struct trace_event *ev, struct shown_goroutine *g)
{
	uint32_t stack = ev->transition.stack;
	struct trace_frame f;
	size_t n;

	if (g->name)
		return true;
	if (!stack && ev->g == ev->transition.id)
		stack = ev->stack;
	n = exectrace_stack(t, stack);
	if (!n || n >= STACK_MAX)
		return true;
	f = exectrace_frame(t, stack, n - 1);
	g->name = strtab_put(p->names, f.func.at, text(f.func).len);
	return g->name != UINT32_MAX;
}

/* The slice of a P or a thread ends, if it is that of this goroutine still; id TRACE_NONE: whose ever it is. */
static int vacate(struct trace_to_perfetto *p, uint64_t track, int64_t id, uint64_t now,
		  struct err *e)
{
	uint64_t holder;
	bool was;

	if (!map_get(&p->holders, track, &holder) || (id != TRACE_NONE && holder != (uint64_t)id))
		return 0;
	map_del(&p->holders, track);
	return trace_tracks_end(&p->tracks, track, now, &was, e);
}

/* Its slices end: its own, and those of the P and the thread that it had. */
static int leave(struct trace_to_perfetto *p, struct shown_goroutine *g,
		 const struct trace_event *ev, struct err *e)
{
	uint64_t now = time_of(p, ev);
	bool was;
	int ret = 0;

	if (g->state != TRACE_G_UNDETERMINED)
		ret = trace_tracks_end(&p->tracks, track_of(OF_G, ev->transition.id), now, &was, e);
	if (!ret && g->p != TRACE_NONE)
		ret = vacate(p, track_of(OF_P, g->p), ev->transition.id, now, e);
	if (!ret && g->m != TRACE_NONE)
		ret = vacate(p, track_of(OF_M, g->m), ev->transition.id, now, e);
	g->p = g->m = TRACE_NONE;
	return ret;
}

static struct perfetto_text state_name(const struct trace_transition *tr)
{
	static const char *const names[] = { "", "", "runnable", "running", "syscall", "waiting" };

	if (tr->to == TRACE_G_WAITING && tr->reason.len)
		return text(tr->reason);
	return text_of(names[tr->to]);
}

/* As something is when it is first seen it has been since the beginning. */
static uint64_t since(const struct trace_to_perfetto *p, const struct trace_event *ev,
		      uint64_t track)
{
	uint64_t v;
	bool first = ev->transition.from == TRACE_G_UNDETERMINED;

	return first && !map_get(&p->tracks.told, track, &v) ? p->from_ns : time_of(p, ev);
}

static int begin_own(struct trace_to_perfetto *p, const struct exectrace *t,
		     struct shown_goroutine *g, const struct trace_event *ev, struct err *e)
{
	const struct trace_transition *tr = &ev->transition;
	struct perfetto_event out = { .type = PERFETTO_BEGIN,
				      .track = track_of(OF_G, tr->id),
				      .name = state_name(tr),
				      .category = "goroutine" };
	bool executes = tr->to == TRACE_G_RUNNING || tr->to == TRACE_G_SYSCALL;

	out.time_ns = since(p, ev, out.track);
	if (executes) {
		note_number(&out, "P", ev->p);
		note_number(&out, "thread", ev->m);
	}
	if (tr->to == TRACE_G_RUNNING) {
		out.flow_in = g->flow;
		g->flow = 0;
	}
	if (tr->to != TRACE_G_RUNNING && tr->to != TRACE_G_RUNNABLE &&
	    !note_stack(p, t, tr->stack ? tr->stack : ev->stack, &out))
		return no_memory(e);
	return trace_tracks_put(&p->tracks, &out, e);
}

/*
 * On the P, or the thread, that it has now. A thread runs one goroutine at a time: before Go 1.22 a
 * thread whose system call lasted may be seen with its next goroutine before the event that ends the
 * call.
 */
static int begin_at(struct trace_to_perfetto *p, enum of of, int64_t id,
		    const struct shown_goroutine *g, const struct trace_event *ev, struct err *e)
{
	struct perfetto_event out = { .type = PERFETTO_BEGIN, .category = "goroutine" };
	int ret;

	if (id == TRACE_NONE)
		return 0;
	out.track = track_of(of, id);
	ret = vacate(p, out.track, TRACE_NONE, time_of(p, ev), e);
	if (ret)
		return ret;
	if (!map_put(&p->holders, out.track, (uint64_t)ev->transition.id))
		return no_memory(e);
	out.time_ns = since(p, ev, out.track);
	out.name = ev->transition.to == TRACE_G_SYSCALL ? text_of("syscall") :
		   g->name				? text_of(strtab_get(p->names, g->name)) :
							  text_of("goroutine");
	note_number(&out, "goroutine", ev->transition.id);
	return trace_tracks_put(&p->tracks, &out, e);
}

static int enter(struct trace_to_perfetto *p, const struct exectrace *t, struct shown_goroutine *g,
		 const struct trace_event *ev, struct err *e)
{
	unsigned to = ev->transition.to;
	int ret = begin_own(p, t, g, ev, e);

	g->state = to;
	if (!ret && to == TRACE_G_RUNNING) {
		g->p = ev->p;
		ret = begin_at(p, OF_P, g->p, g, ev, e);
	}
	if (!ret && (to == TRACE_G_RUNNING || to == TRACE_G_SYSCALL)) {
		g->m = ev->m;
		ret = begin_at(p, OF_M, g->m, g, ev, e);
	}
	return ret;
}

/* What happens on a goroutine, or else on a P or a thread. */
/* A CPU sample may come a moment after its goroutine has ended, whose track is closed. */
static bool has_goroutine(const struct trace_to_perfetto *p, const struct trace_event *ev)
{
	return ev->g != TRACE_NONE && (ev->kind != TRACE_CPU_SAMPLE || find(p, ev->g));
}

static uint64_t place_of(const struct trace_to_perfetto *p, const struct trace_event *ev)
{
	return has_goroutine(p, ev) ? track_of(OF_G, ev->g) :
	       ev->p != TRACE_NONE  ? track_of(OF_P, ev->p) :
	       ev->m != TRACE_NONE  ? track_of(OF_M, ev->m) :
				      track_of(OF_PROGRAM, PROGRAM_OTHERS);
}

/* Whoever makes a goroutine runnable has an instant, from which a flow goes to where it runs. */
static int wake(struct trace_to_perfetto *p, const struct exectrace *t, struct shown_goroutine *g,
		const struct trace_event *ev, struct err *e)
{
	const struct trace_transition *tr = &ev->transition;
	bool created = tr->from == TRACE_G_NOT_EXIST;
	struct perfetto_event out = { .type = PERFETTO_INSTANT,
				      .time_ns = time_of(p, ev),
				      .track = place_of(p, ev),
				      .name = text_of(created ? "create" : "unblock"),
				      .category = "wake" };

	if ((!created && tr->from != TRACE_G_WAITING) || tr->to != TRACE_G_RUNNABLE ||
	    !p->tracks.shown)
		return 0;
	g->flow = out.flow_out = ++p->flows;
	note_number(&out, "goroutine", tr->id);
	if (!note_stack(p, t, ev->stack, &out))
		return no_memory(e);
	return trace_tracks_put(&p->tracks, &out, e);
}

static int vanish(struct trace_to_perfetto *p, struct shown_goroutine *g,
		  const struct trace_event *ev, struct err *e)
{
	static const enum of all[] = { OF_G_REGIONS, OF_G_GC, OF_G };
	uint32_t *empty = vec_add(&p->free_goroutines, LIMIT_GOROUTINES);
	int ret = 0;

	if (!empty)
		return no_memory(e);
	for (size_t i = 0; !ret && i < ARRAY_LEN(all); i++)
		ret = trace_tracks_close(&p->tracks, track_of(all[i], ev->transition.id),
					 time_of(p, ev), e);
	*empty = (uint32_t)(g - p->goroutines.at);
	map_del(&p->by_g, (uint64_t)ev->transition.id);
	return ret;
}

static int transition(struct trace_to_perfetto *p, const struct exectrace *t,
		      const struct trace_event *ev, struct err *e)
{
	const struct trace_transition *tr = &ev->transition;
	struct shown_goroutine *g = goroutine(p, tr->id);
	unsigned was;
	int ret;

	if (!g || !name_it(p, t, ev, g))
		return no_memory(e);
	was = g->state;
	if (was == tr->to && tr->from == tr->to)
		return 0;
	ret = leave(p, g, ev, e);
	p->now[PROGRAM_RUNNING] += (tr->to == TRACE_G_RUNNING) - (was == TRACE_G_RUNNING);
	if (!ret && tr->to != TRACE_G_NOT_EXIST) {
		ret = wake(p, t, g, ev, e);
		if (!ret)
			ret = enter(p, t, g, ev, e);
	} else if (!ret) {
		ret = vanish(p, g, ev, e);
	}
	p->now[PROGRAM_GOROUTINES] = p->by_g.n;
	return ret ? ret : count_all(p, time_of(p, ev), e);
}

/* ---- ranges, tasks, regions ---- */

static uint64_t range_track(const struct trace_range *r)
{
	static const char stw[] = "stop-the-world";

	if (r->name.len >= sizeof(stw) - 1 && !memcmp(r->name.at, stw, sizeof(stw) - 1))
		return track_of(OF_PROGRAM, PROGRAM_STW);
	if (r->scope == TRACE_SCOPE_PROGRAM)
		return track_of(OF_PROGRAM, PROGRAM_GC);
	return track_of(r->scope == TRACE_SCOPE_PROC ? OF_P_GC : OF_G_GC, r->id);
}

static int range(struct trace_to_perfetto *p, const struct exectrace *t,
		 const struct trace_event *ev, struct err *e)
{
	struct perfetto_event out = { .type = PERFETTO_BEGIN,
				      .time_ns = time_of(p, ev),
				      .track = range_track(&ev->range),
				      .name = text(ev->range.name),
				      .category = "gc" };
	uint64_t open;
	bool was;

	if (ev->kind == TRACE_RANGE_END)
		return trace_tracks_end(&p->tracks, out.track, out.time_ns, &was, e);
	if (ev->kind == TRACE_RANGE_ACTIVE && map_get(&p->tracks.top, out.track, &open))
		return 0;
	if (ev->kind == TRACE_RANGE_ACTIVE && !map_get(&p->tracks.told, out.track, &open))
		out.time_ns = p->from_ns;
	note_number(&out, "goroutine", ev->g);
	return note_stack(p, t, ev->stack, &out) ? trace_tracks_put(&p->tracks, &out, e) :
						   no_memory(e);
}

/* What began before the trace has an instant at its end. */
static int ended(struct trace_to_perfetto *p, uint64_t track, const struct trace_event *ev,
		 struct trace_text type, struct err *e)
{
	struct perfetto_event out = { .type = PERFETTO_INSTANT,
				      .time_ns = time_of(p, ev),
				      .track = track,
				      .name = text_of("end"),
				      .category = "user" };
	bool was;
	int ret = trace_tracks_end(&p->tracks, track, out.time_ns, &was, e);

	if (ret || was)
		return ret;
	note_text(&out, "of", text(type));
	return trace_tracks_put(&p->tracks, &out, e);
}

static int task(struct trace_to_perfetto *p, const struct exectrace *t,
		const struct trace_event *ev, struct err *e)
{
	struct perfetto_event out = { .type = PERFETTO_BEGIN,
				      .time_ns = time_of(p, ev),
				      .track = track_of(OF_TASK, (int64_t)ev->task.id),
				      .name = text(ev->task.type),
				      .category = "user" };
	int ret;

	if (ev->kind == TRACE_TASK_END) {
		ret = ended(p, out.track, ev, ev->task.type, e);
		return ret ? ret : trace_tracks_close(&p->tracks, out.track, out.time_ns, e);
	}
	note_number(&out, "task", (int64_t)ev->task.id);
	note_number(&out, "parent", ev->task.parent);
	note_number(&out, "goroutine", ev->g);
	return note_stack(p, t, ev->stack, &out) ? trace_tracks_put(&p->tracks, &out, e) :
						   no_memory(e);
}

static int region(struct trace_to_perfetto *p, const struct exectrace *t,
		  const struct trace_event *ev, struct err *e)
{
	struct perfetto_event out = { .type = PERFETTO_BEGIN,
				      .time_ns = time_of(p, ev),
				      .track = track_of(OF_G_REGIONS, ev->g),
				      .name = text(ev->region.type),
				      .category = "user" };

	if (ev->kind == TRACE_REGION_END)
		return ended(p, out.track, ev, ev->region.type, e);
	if (ev->region.task)
		note_number(&out, "task", (int64_t)ev->region.task);
	return note_stack(p, t, ev->stack, &out) ? trace_tracks_put(&p->tracks, &out, e) :
						   no_memory(e);
}

static int instant(struct trace_to_perfetto *p, const struct exectrace *t,
		   const struct trace_event *ev, struct perfetto_text name, const char *category,
		   struct err *e)
{
	struct perfetto_event out = { .type = PERFETTO_INSTANT,
				      .time_ns = time_of(p, ev),
				      .track = place_of(p, ev),
				      .name = name,
				      .category = category };

	if (!p->tracks.shown)
		return 0;
	if (ev->kind == TRACE_LOG) {
		note_text(&out, "category", text(ev->log.category));
		note_text(&out, "message", text(ev->log.message));
		note_number(&out, "task", (int64_t)ev->log.task);
	}
	return note_stack(p, t, ev->stack, &out) ? trace_tracks_put(&p->tracks, &out, e) :
						   no_memory(e);
}

/* ---- all of it ---- */

int trace_to_perfetto_end(struct trace_to_perfetto *p, struct err *e)
{
	return perfetto_end(p->out, e);
}

/* Numbers of stacks mean others from now on. */
static int begin_generation(struct trace_to_perfetto *p, const struct trace_event *ev,
			    struct err *e)
{
	int ret = perfetto_forget(p->out, e);

	if (ret || !ev->sync.has_clock || ev->sync.unix_ns < 0)
		return ret;
	if (ev->sync.trace_ns < p->start_ns)
		return 0;
	return perfetto_clock(p->out, (uint64_t)(ev->sync.trace_ns - p->start_ns),
			      (uint64_t)ev->sync.mono_ns, (uint64_t)ev->sync.unix_ns, e);
}

static int put(struct trace_to_perfetto *p, const struct exectrace *t, const struct trace_event *ev,
	       struct err *e)
{
	switch (ev->kind) {
	case TRACE_SYNC:
		return begin_generation(p, ev, e);
	case TRACE_METRIC:
		return metric(p, ev, e);
	case TRACE_LABEL:
		return instant(p, t, ev, text(ev->label.label), "label", e);
	case TRACE_CPU_SAMPLE:
		return instant(p, t, ev, text_of("CPU sample"), "cpu", e);
	case TRACE_LOG:
		return instant(p, t, ev, text_of("log"), "user", e);
	case TRACE_RANGE_BEGIN:
	case TRACE_RANGE_ACTIVE:
	case TRACE_RANGE_END:
		return range(p, t, ev, e);
	case TRACE_TASK_BEGIN:
	case TRACE_TASK_END:
		return task(p, t, ev, e);
	case TRACE_REGION_BEGIN:
	case TRACE_REGION_END:
		return region(p, t, ev, e);
	case TRACE_GOROUTINE:
		return transition(p, t, ev, e);
	case TRACE_PROC:
	case TRACE_EXPERIMENTAL:
		return 0;
	}
	return 0;
}

/* What is so when the time that is asked for begins. */
static int show(struct trace_to_perfetto *p, struct err *e)
{
	int ret = trace_tracks_show(&p->tracks, p->from_ns, e);

	for (size_t i = PROGRAM_HEAP; !ret && i <= PROGRAM_PROCS; i++)
		if (p->now[i])
			ret = count(p, i, p->from_ns, e);
	return ret;
}

/* On which P or thread it was meanwhile is not known. */
int trace_to_perfetto_late(struct trace_to_perfetto *p, const struct exectrace *t,
			   const struct trace_event *ev, struct err *e)
{
	const struct trace_transition *tr = &ev->transition;
	struct shown_goroutine *g;

	if (ev->kind != TRACE_GOROUTINE || tr->from != TRACE_G_UNDETERMINED ||
	    tr->to == TRACE_G_NOT_EXIST || find(p, tr->id))
		return 0;
	g = goroutine(p, tr->id);
	if (!g || !name_it(p, t, ev, g))
		return no_memory(e);
	g->state = tr->to;
	return begin_own(p, t, g, ev, e);
}

/* A slice that is open reaches to the last event, so there is one at the end: the counters. */
int trace_to_perfetto_stop(struct trace_to_perfetto *p, int64_t time_ns, struct err *e)
{
	int ret = p->tracks.shown ? 0 : show(p, e);

	p->has[PROGRAM_GOROUTINES] = p->has[PROGRAM_RUNNING] = false;
	return ret ? ret : count_all(p, (uint64_t)(time_ns - p->start_ns), e);
}

int trace_to_perfetto_event(struct trace_to_perfetto *p, const struct exectrace *t,
			    const struct trace_event *ev, int64_t start_ns, bool before,
			    struct err *e)
{
	int ret = 0;

	p->start_ns = start_ns;
	if (!p->begun)
		p->from_ns = time_of(p, ev);
	p->begun = true;
	if (perfetto_names(p->out) > LIMIT_TRACE_TOLD)
		ret = perfetto_forget(p->out, e);
	if (!ret && !before && !p->tracks.shown)
		ret = show(p, e);
	return ret ? ret : put(p, t, ev, e);
}
