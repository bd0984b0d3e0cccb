/* user/cli/trace/trace_text.c - the summary of a trace, for people and for programs. */
#include "cli/trace/trace_text.h"

#include <inttypes.h>

#include "cli/report.h"
#include "cli/tell.h"
#include "ingest/exectrace/ticks.h"

enum { TOP_GROUPS = 20, TOP_WAITS = 4, TOP_KINDS = 15 };

static const char *name_of(const struct trace_report *r, uint32_t name)
{
	return name ? strtab_get(r->s->names, name) : "(not told)";
}

static int64_t length_ns(const struct trace_report *r)
{
	return r->s->to_ns - r->s->from_ns;
}

/* ---- sums over all goroutines ---- */

static const struct trace_spent *spent_of(const struct trace_group *g, uint32_t key)
{
	static const struct trace_spent none;

	for (size_t i = 0; i < g->spent.n; i++)
		if (g->spent.at[i].key == key)
			return &g->spent.at[i];
	return &none;
}

static int64_t waiting_ns(const struct trace_group *g)
{
	int64_t sum = 0;

	for (size_t i = 0; i < g->spent.n; i++)
		if (g->spent.at[i].key >= TRACE_SPENT_WAITING)
			sum = ticks_add(sum, g->spent.at[i].ns);
	return sum;
}

static int64_t running_ns(const struct trace_summary *s)
{
	int64_t sum = 0;

	for (size_t i = 0; i < s->groups.n; i++)
		sum = ticks_add(sum, spent_of(&s->groups.at[i], TRACE_SPENT_RUNNING)->ns);
	return sum;
}

static const char *reason_of(const struct trace_report *r, uint32_t key)
{
	return key == TRACE_SPENT_WAITING ? "(reason not told)" :
					    strtab_get(r->s->names, key - TRACE_SPENT_WAITING);
}

/* ---- text ---- */

static void heading(const char *what)
{
	printf("\n%s\n", what);
}

static void put_metric(const char *what, const struct trace_metric *m, bool bytes)
{
	char first[BYTES_TEXT], last[BYTES_TEXT], min[BYTES_TEXT], max[BYTES_TEXT];

	if (!m->known)
		return;
	if (!bytes)
		tell_out("%12" PRIu64 "  %s%s", m->last, what,
			 m->min < m->max ? ", and others before" : "");
	else
		tell_out("%12s  %s at the end; %s at the beginning, %s to %s",
			 bytes_text(m->last, last), what, bytes_text(m->first, first),
			 bytes_text(m->min, min), bytes_text(m->max, max));
}

static void put_totals(const struct trace_report *r)
{
	const struct trace_summary *s = r->s;
	char span[NS_TEXT], begin[NS_TEXT], run[NS_TEXT];

	tell_out("%s: execution trace, format go 1.%u%s", r->file, r->version,
		 *r->damage ? ", broken" : "");
	tell_out("%12s  long%s%s", span_text(length_ns(r), span), r->part ? ", from second " : "",
		 r->part ? span_text(s->from_ns - r->start_ns, begin) : "");
	tell_out("%12" PRIu64 "  events", s->events);
	put_metric("GOMAXPROCS", &s->procs, false);
	tell_out("%12" PRIu64 "  goroutines, at most %" PRIu64 " at a time", s->goroutines,
		 s->peak);
	tell_out("%12s  of running: %.2f Ps on average", span_text(running_ns(s), run),
		 length_ns(r) ? (double)running_ns(s) / (double)length_ns(r) : 0);
	put_metric("heap", &s->heap, true);
	put_metric("heap goal", &s->goal, true);
	if (s->samples)
		tell_out("%12" PRIu64 "  CPU samples (--pprof cpu)", s->samples);
	if (s->logs)
		tell_out("%12" PRIu64 "  log messages (--events)", s->logs);
}

static void put_group(const struct trace_report *r, const struct trace_group *g)
{
	char all[NS_TEXT], run[NS_TEXT], able[NS_TEXT], call[NS_TEXT], wait[NS_TEXT];
	size_t waits = 0;

	tell_out("%10" PRIu64 " %10s %10s %10s %10s %10s  %s", g->goroutines,
		 span_text(g->total_ns, all), span_text(spent_of(g, TRACE_SPENT_RUNNING)->ns, run),
		 span_text(spent_of(g, TRACE_SPENT_RUNNABLE)->ns, able),
		 span_text(spent_of(g, TRACE_SPENT_SYSCALL)->ns, call),
		 span_text(waiting_ns(g), wait), name_of(r, g->name));
	for (size_t i = 0; i < g->spent.n && waits < TOP_WAITS; i++) {
		const struct trace_spent *w = &g->spent.at[i];

		if (w->key < TRACE_SPENT_WAITING || !w->ns)
			continue;
		tell_out("%54s %10s    %s, %" PRIu64 " time%s", "", span_text(w->ns, wait),
			 reason_of(r, w->key), w->count, w->count == 1 ? "" : "s");
		waits++;
	}
}

static void put_groups(const struct trace_report *r)
{
	const struct trace_summary *s = r->s;

	heading("Goroutines, by the function they start in");
	tell_out("%10s %10s %10s %10s %10s %10s", "goroutines", "existed", "running", "runnable",
		 "syscall", "waiting");
	for (size_t i = 0; i < s->groups.n && i < TOP_GROUPS; i++)
		put_group(r, &s->groups.at[i]);
	if (s->groups.n > TOP_GROUPS)
		tell_out("%10s  ... %zu more functions", "", s->groups.n - TOP_GROUPS);
}

static void put_quantiles(const struct quantiles *q, char *to, size_t n)
{
	char p50[NS_TEXT], p90[NS_TEXT], p99[NS_TEXT], max[NS_TEXT];

	if (!q->n) {
		snprintf(to, n, "%10s %10s %10s %10s", "-", "-", "-", "-");
		return;
	}
	snprintf(to, n, "%10s %10s %10s %10s", span_text((int64_t)quantiles_get(q, 0.5), p50),
		 span_text((int64_t)quantiles_get(q, 0.9), p90),
		 span_text((int64_t)quantiles_get(q, 0.99), p99), span_text((int64_t)q->max, max));
}

static void put_latency(const struct trace_report *r)
{
	const struct trace_summary *s = r->s;
	char text[160], ns[NS_TEXT];

	heading("Scheduler latency: from runnable to running");
	tell_out("%10s %10s %10s %10s %10s", "times", "median", "90 %", "99 %", "longest");
	put_quantiles(&s->latency, text, sizeof(text));
	tell_out("%10" PRIu64 " %s", s->latency.n, text);
	for (size_t i = 0; i < s->nlongest; i++) {
		const struct trace_latency *l = &s->longest[i];

		tell_out("%10s  at %.9f s: goroutine %lld, %s, %s", span_text(l->ns, ns),
			 (double)(l->at_ns - r->start_ns) / 1e9, (long long)l->g,
			 name_of(r, l->name), l->why);
	}
}

static void put_utilisation(const struct trace_report *r)
{
	double mean = mmu_mean(r->s->share.mmu);
	char ns[NS_TEXT];

	if (mean < 0)
		return;
	tell_out("%9.2f %%  of its Ps the program had for itself", 100 * mean);
	for (size_t i = 0; i < MMU_WINDOWS; i++) {
		struct mmu_window w = mmu_window(r->s->share.mmu, i);

		if (w.known)
			tell_out("%9.2f %%  of them in the worst %s, at %.9f s", 100 * w.min,
				 span_text(w.ns, ns), (double)(w.at_ns - r->start_ns) / 1e9);
	}
}

static void put_kind(const struct trace_report *r, const struct trace_kind_sum *k)
{
	char text[160], sum[NS_TEXT] = "-", more[64] = "", cut[64] = "";

	put_quantiles(&k->q, text, sizeof(text));
	if (k->q.n)
		span_text(k->q.sum > INT64_MAX ? INT64_MAX : (int64_t)k->q.sum, sum);
	if (k->earlier)
		snprintf(cut, sizeof(cut), " (%" PRIu64 " of them began earlier)", k->earlier);
	if (k->unfinished)
		snprintf(more, sizeof(more), " (%" PRIu64 " more had not ended)", k->unfinished);
	tell_out("%10" PRIu64 " %10s %s  %s%s%s", k->q.n, sum, text, name_of(r, k->name), cut,
		 more);
}

static void put_kinds(const struct trace_report *r, const struct trace_kinds *k)
{
	tell_out("%10s %10s %10s %10s %10s %10s", "times", "in all", "median", "90 %", "99 %",
		 "longest");
	for (size_t i = 0; i < k->all.n && i < TOP_KINDS; i++)
		put_kind(r, &k->all.at[i]);
	if (k->all.n > TOP_KINDS)
		tell_out("%10s  ... %zu more names", "", k->all.n - TOP_KINDS);
	if (k->others)
		tell_out("%10" PRIu64 "  of more names than there is room for", k->others);
}

void trace_text(const struct trace_report *r)
{
	const struct trace_summary *s = r->s;

	put_totals(r);
	if (!s->begun)
		return;
	put_groups(r);
	if (s->latency.n)
		put_latency(r);
	heading("Garbage collection, and stops of the world");
	put_utilisation(r);
	if (s->ranges.all.n)
		put_kinds(r, &s->ranges);
	if (s->tasks.all.n) {
		heading("User tasks");
		put_kinds(r, &s->tasks);
	}
	if (s->regions.all.n) {
		heading("User regions");
		put_kinds(r, &s->regions);
	}
}

/* ---- JSON ---- */

static json_t *json_metric(const struct trace_metric *m)
{
	if (!m->known)
		return json_null();
	return json_pack("{s:I, s:I, s:I, s:I}", "first", (json_int_t)m->first, "last",
			 (json_int_t)m->last, "min", (json_int_t)m->min, "max", (json_int_t)m->max);
}

static json_t *json_name(const struct trace_report *r, uint32_t name)
{
	return report_maybe(strtab_get(r->s->names, name));
}

static json_t *json_quantiles(const struct quantiles *q)
{
	static const struct {
		const char *name;
		double p;
	} each[] = {
		{ "p50_ns", 0.5 }, { "p90_ns", 0.9 }, { "p99_ns", 0.99 }, { "p999_ns", 0.999 }
	};
	json_t *o = json_pack("{s:I, s:I}", "count", (json_int_t)q->n, "total_ns",
			      (json_int_t)(q->sum > INT64_MAX ? INT64_MAX : q->sum));

	for (size_t i = 0; i < ARRAY_LEN(each); i++)
		json_object_set_new(o, each[i].name,
				    q->n ? json_integer((json_int_t)quantiles_get(q, each[i].p)) :
					   json_null());
	json_object_set_new(o, "min_ns", q->n ? json_integer((json_int_t)q->min) : json_null());
	json_object_set_new(o, "max_ns", q->n ? json_integer((json_int_t)q->max) : json_null());
	return o;
}

static json_t *json_group(const struct trace_report *r, const struct trace_group *g)
{
	json_t *waits = json_array();

	for (size_t i = 0; i < g->spent.n; i++) {
		const struct trace_spent *w = &g->spent.at[i];

		if (w->key >= TRACE_SPENT_WAITING)
			json_array_append_new(waits,
					      json_pack("{s:o, s:I, s:I}", "reason",
							json_name(r, w->key - TRACE_SPENT_WAITING),
							"count", (json_int_t)w->count, "ns",
							(json_int_t)w->ns));
	}
	return json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "function",
			 json_name(r, g->name), "goroutines", (json_int_t)g->goroutines, "created",
			 (json_int_t)g->created, "ended", (json_int_t)g->ended, "total_ns",
			 (json_int_t)g->total_ns, "running_ns",
			 (json_int_t)spent_of(g, TRACE_SPENT_RUNNING)->ns, "runnable_ns",
			 (json_int_t)spent_of(g, TRACE_SPENT_RUNNABLE)->ns, "syscall_ns",
			 (json_int_t)spent_of(g, TRACE_SPENT_SYSCALL)->ns, "waiting_ns",
			 (json_int_t)waiting_ns(g), "waits", waits);
}

static json_t *json_groups(const struct trace_report *r)
{
	json_t *all = json_array();

	for (size_t i = 0; i < r->s->groups.n; i++)
		json_array_append_new(all, json_group(r, &r->s->groups.at[i]));
	return all;
}

static json_t *json_latency(const struct trace_report *r)
{
	json_t *all = json_array(), *o = json_quantiles(&r->s->latency);

	for (size_t i = 0; i < r->s->nlongest; i++) {
		const struct trace_latency *l = &r->s->longest[i];

		json_array_append_new(all,
				      json_pack("{s:I, s:I, s:I, s:o, s:s}", "at_ns",
						(json_int_t)(l->at_ns - r->start_ns), "ns",
						(json_int_t)l->ns, "goroutine", (json_int_t)l->g,
						"function", json_name(r, l->name), "why", l->why));
	}
	json_object_set_new(o, "longest", all);
	return o;
}

static json_t *json_kinds(const struct trace_report *r, const struct trace_kinds *k)
{
	json_t *all = json_array();

	for (size_t i = 0; i < k->all.n; i++) {
		const struct trace_kind_sum *at = &k->all.at[i];
		json_t *o = json_quantiles(&at->q);

		json_object_set_new(o, "name", json_name(r, at->name));
		json_object_set_new(o, "unfinished", json_integer((json_int_t)at->unfinished));
		json_object_set_new(o, "began_earlier", json_integer((json_int_t)at->earlier));
		json_array_append_new(all, o);
	}
	return json_pack("{s:o, s:I}", "kinds", all, "others", (json_int_t)k->others);
}

static json_t *json_utilisation(const struct trace_report *r)
{
	double mean = mmu_mean(r->s->share.mmu);
	json_t *windows = json_array();

	for (size_t i = 0; i < MMU_WINDOWS; i++) {
		struct mmu_window w = mmu_window(r->s->share.mmu, i);

		json_array_append_new(
			windows,
			json_pack("{s:I, s:o, s:o}", "window_ns", (json_int_t)w.ns, "min",
				  w.known ? json_real(w.min) : json_null(), "at_ns",
				  w.known ? json_integer((json_int_t)(w.at_ns - r->start_ns)) :
					    json_null()));
	}
	return json_pack("{s:o, s:o}", "mean", mean < 0 ? json_null() : json_real(mean), "windows",
			 windows);
}

int trace_json(const struct trace_report *r, int status)
{
	const struct trace_summary *s = r->s;
	json_t *root = json_pack("{s:o, s:i, s:b, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
				 "file", report_string(r->file), "version", (int)r->version,
				 "whole", !*r->damage, "damage", report_maybe(r->damage), "from_ns",
				 (json_int_t)(s->from_ns - r->start_ns), "to_ns",
				 (json_int_t)(s->to_ns - r->start_ns), "events",
				 (json_int_t)s->events, "goroutines", (json_int_t)s->goroutines,
				 "goroutines_peak", (json_int_t)s->peak, "running_ns",
				 (json_int_t)running_ns(s), "cpu_samples", (json_int_t)s->samples,
				 "logs", (json_int_t)s->logs);

	if (!root)
		return report_print(NULL, status);
	json_object_set_new(root, "start_unix_ns",
			    r->unix_ns ? json_integer((json_int_t)r->unix_ns) : json_null());
	json_object_set_new(root, "gomaxprocs", json_metric(&s->procs));
	json_object_set_new(root, "heap_bytes", json_metric(&s->heap));
	json_object_set_new(root, "heap_goal_bytes", json_metric(&s->goal));
	json_object_set_new(root, "groups", json_groups(r));
	json_object_set_new(root, "scheduler_latency", json_latency(r));
	json_object_set_new(root, "mutator_utilisation", json_utilisation(r));
	json_object_set_new(root, "ranges", json_kinds(r, &s->ranges));
	json_object_set_new(root, "tasks", json_kinds(r, &s->tasks));
	json_object_set_new(root, "regions", json_kinds(r, &s->regions));
	return report_print(root, status);
}
