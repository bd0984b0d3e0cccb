/* user/cli/run/host/host_summary.c - sums over the samples of finished profiles, as a table. */
#include "cli/run/host/host_summary.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/map.h"
#include "cli/tell.h"

/* What is summed up: the sample type, and words. */
static const struct kind_words {
	size_t type;
	const char *head;
	const char *what; /* "1.2 s WHAT" */
	bool own_code;	  /* functions of the runtime and of sync only say how, not where */
	bool aside;	  /* where samples have a value aside, it is that of this moment */
} kinds[] = {
	[SUMMARY_CPU] = { 1, "CPU", "of CPU time", false, false },
	[SUMMARY_HEAP] = { 3, "IN USE", "in use on heaps", false, false },
	[SUMMARY_BLOCK] = { 1, "DELAY", "of blocking since they started", true, false },
	[SUMMARY_MUTEX] = { 1, "DELAY", "of waits for mutexes since they started", true, false },
	[SUMMARY_WAIT] = { 1, "DELAY", "of waits in the window", true, false },
	[SUMMARY_GOROUTINE] = { 0, "COUNT", "goroutines", true, false },
	[SUMMARY_ALLOC] = { 1, "ALLOCATED", "allocated in the window", false, true },
	[SUMMARY_BLOCK_PROBED] = { 1, "DELAY", "of blocking in the window", true, false },
	[SUMMARY_MUTEX_PROBED] = { 1, "DELAY", "of waits for mutexes in the window", true, false },
};

static const char *func_name(const struct prof *p, uint32_t func)
{
	return strtab_get(prof_strings(p), prof_function_at(p, func - 1).name);
}

static bool of_runtime(const char *name)
{
	static const char *const of[] = { "runtime.", "sync.", "internal/", "runtime/" };

	for (size_t i = 0; i < ARRAY_LEN(of); i++)
		if (!strncmp(name, of[i], strlen(of[i])))
			return true;
	return false;
}

/* The innermost function of a sample, of the program's own where that is wanted and there is one: its id; 0: there is none. */
static uint32_t inner_func(const struct prof *p, const struct prof_sample_view *s, bool own_code)
{
	uint32_t leaf = 0;

	for (size_t i = 0; i < s->nlocs; i++) {
		struct prof_location_view l = prof_location_at(p, s->locs[i] - 1);

		for (size_t k = 0; k < l.nlines; k++) {
			if (!own_code || !of_runtime(func_name(p, l.func[k])))
				return l.func[k];
			leaf = leaf ?: l.func[k];
		}
		if (!own_code)
			break;
	}
	return leaf;
}

static void keep_name(char to[SUMMARY_NAME], const char *from)
{
	snprintf(to, SUMMARY_NAME, "%s", from);
	tell_clean(to);
}

/* Keeps the largest ones in order. */
static void rank(struct summary_row *r, const struct prof *p, uint32_t func, double share)
{
	size_t i = r->ntop;

	while (i && r->top[i - 1].share < share)
		i--;
	if (i == SUMMARY_TOP)
		return;
	r->ntop += r->ntop < SUMMARY_TOP;
	memmove(&r->top[i + 1], &r->top[i], (r->ntop - i - 1) * sizeof(r->top[0]));
	r->top[i].share = share;
	keep_name(r->top[i].func, func_name(p, func));
}

/* What the samples of each function have, by its id; the caller frees. */
static int64_t *by_func(const struct kind_words *k, const struct prof *p, int64_t *all)
{
	int64_t *flat = calloc(prof_nfunctions(p) + 1, sizeof(*flat));

	*all = 0;
	for (size_t i = 0; flat && i < prof_nsamples(p); i++) {
		struct prof_sample_view s = prof_sample_at(p, i);

		int64_t value = k->aside && s.aside ? *s.aside : s.values[k->type];

		flat[inner_func(p, &s, k->own_code)] += value;
		*all += value;
	}
	return flat;
}

static uint64_t name_of(const struct prof *p, size_t func)
{
	const char *name = func_name(p, (uint32_t)func);

	return hash_bytes(name, strlen(name));
}

/* Profiles number their functions each for itself. */
static bool take_away(int64_t *flat, int64_t *all, const struct kind_words *k, const struct prof *p,
		      const struct prof *first)
{
	CLEANUP(map_fini) struct map had = { 0 };
	int64_t before;
	CLEANUP(freep) int64_t *old = by_func(k, first, &before);
	uint64_t n;

	for (size_t f = 1; old && f <= prof_nfunctions(first); f++) {
		n = 0;
		map_get(&had, name_of(first, f), &n);
		if (old[f] > 0 && !map_put(&had, name_of(first, f), n + (uint64_t)old[f]))
			return false;
	}
	for (size_t f = 1; f <= prof_nfunctions(p); f++)
		if (flat[f] && map_get(&had, name_of(p, f), &n)) {
			flat[f] -= (int64_t)n;
			map_put(&had, name_of(p, f), 0);
		}
	*all -= before;
	return old != NULL;
}

/* Finds the row's functions, and the sum of all samples. */
static bool sum_up(struct summary_row *r, const struct kind_words *k, const struct prof *p,
		   const struct prof *first, int64_t *all)
{
	size_t n = prof_nfunctions(p);
	CLEANUP(freep) int64_t *flat = by_func(k, p, all);

	if (!flat || (first && !take_away(flat, all, k, p, first)))
		return false;
	for (size_t f = 1; *all > 0 && f <= n; f++)
		if (flat[f] > 0)
			rank(r, p, (uint32_t)f, (double)flat[f] / (double)*all);
	return true;
}

static int by_value(const void *a, const void *b)
{
	const struct summary_row *x = a, *y = b;

	if (x->value != y->value)
		return x->value < y->value ? 1 : -1;
	return (x->pid > y->pid) - (x->pid < y->pid);
}

/* All that it had is lost: it would be in no row, and not be missed. */
static bool only_lost(const struct summary_row *r)
{
	return !r->value && r->lost;
}

/* Errors of processes are independent. */
static void add_error(const struct summary_row *r, double *variance, bool *unsure)
{
	if (!r->estimated)
		return;
	*unsure |= r->error < 0;
	*variance += r->error * r->error;
}

static void fold(struct summary *s)
{
	qsort(s->rows.at, s->rows.n, sizeof(*s->rows.at), by_value);
	for (size_t i = SUMMARY_ROWS; i < s->rows.n; i++) {
		s->gone++;
		s->gone_busy += s->rows.at[i].value != 0;
		s->gone_lost += only_lost(&s->rows.at[i]);
		s->gone_value += s->rows.at[i].value;
		add_error(&s->rows.at[i], &s->gone_variance, &s->gone_unsure);
	}
	s->rows.n = SUMMARY_ROWS;
}

bool summary_add(struct summary *s, const struct summary_row *row, const struct prof *p)
{
	return summary_add_since(s, row, p, NULL);
}

bool summary_add_since(struct summary *s, const struct summary_row *row, const struct prof *p,
		       const struct prof *first)
{
	struct summary_row *r;
	int64_t all = 0;
	bool done;

	if (s->rows.n == SUMMARY_KEPT)
		fold(s);
	r = vec_add(&s->rows, SUMMARY_KEPT);
	if (!r)
		return false;
	*r = *row;
	r->ntop = 0;
	tell_clean(r->name);
	done = !p || sum_up(r, &kinds[s->of], p, first, &all);
	r->estimated = p && s->of != SUMMARY_CPU && prof_error(p, kinds[s->of].type, &r->error);
	if (s->of != SUMMARY_CPU)
		r->value = all > 0 ? (uint64_t)all : 0;
	return done;
}

/* "12.34 s", "1.50 MB", "123" */
static const char *value_text(enum summary_of of, uint64_t value, char buf[BYTES_TEXT])
{
	if (of == SUMMARY_HEAP || of == SUMMARY_ALLOC)
		return bytes_text(value, buf);
	if (of == SUMMARY_GOROUTINE)
		snprintf(buf, BYTES_TEXT, "%llu", (unsigned long long)value);
	else
		snprintf(buf, BYTES_TEXT, "%.2f s", (double)value / 1e9);
	return buf;
}

/* Of CPU time also how many CPUs that is. */
static void print_figures(enum summary_of of, uint64_t value, double all, double window, FILE *f)
{
	char text[BYTES_TEXT];

	fprintf(f, "%10s  %5.1f%%  ", value_text(of, value, text), 100 * (double)value / all);
	if (of == SUMMARY_CPU)
		fprintf(f, "%6.1f%%  ", 100 * (double)value / window);
}

enum { ERROR_TEXT = 32 };
#define ERROR_LEAST 0.01 /* smaller ones are not shown */

/* "", ", +- 12 %", ", +- not known" */
static const char *error_text(uint64_t value, double error, bool unsure, char buf[ERROR_TEXT])
{
	double part = value ? error / (double)value : 0;

	*buf = 0;
	if (unsure)
		snprintf(buf, ERROR_TEXT, ", +- not known");
	else if (part >= ERROR_LEAST)
		snprintf(buf, ERROR_TEXT, ", +- %.0f %%", fmin(100 * part, 1e6));
	return buf;
}

static void print_row(enum summary_of of, const struct summary_row *r, double all, double window,
		      FILE *f)
{
	bool unsure = r->estimated && r->error < 0;
	char error[ERROR_TEXT];

	print_figures(of, r->value, all, window, f);
	fprintf(f, "%7d  %s%s%s%s%s\n", r->pid, r->name, r->note ? ", " : "",
		r->note ? r->note : "",
		error_text(r->value, r->estimated ? r->error : 0, unsure, error),
		r->lost ? ", with losses" : "");
	for (size_t i = 0; i < r->ntop; i++)
		fprintf(f, "%19.1f%%  %s\n", 100 * r->top[i].share, r->top[i].func);
}

/* Of the sum of all rows. */
static const char *all_error(const struct summary *s, uint64_t all, char buf[ERROR_TEXT])
{
	double variance = s->gone_variance;
	bool unsure = s->gone_unsure;

	for (size_t i = 0; i < s->rows.n; i++)
		add_error(&s->rows.at[i], &variance, &unsure);
	return error_text(all, sqrt(variance), unsure, buf);
}

static void print_head(const struct summary *s, uint64_t all, size_t busy, double window, FILE *f)
{
	const struct kind_words *k = &kinds[s->of];
	char text[BYTES_TEXT], error[ERROR_TEXT];

	fprintf(f, "%s %s", value_text(s->of, all, text), k->what);
	if (s->of == SUMMARY_CPU)
		fprintf(f, " in %.2f s", window / 1e9);
	fprintf(f, "%s, by %zu of %zu Go processes\n", all_error(s, all, error), busy,
		s->rows.n + s->gone);
	if (busy)
		fprintf(f, "%10s  %6s  %s%7s  %s\n", k->head, "SHARE",
			s->of == SUMMARY_CPU ? "OF 1 CPU  " : "", "PID", "PROGRAM");
}

static void print_rows(const struct summary *s, size_t busy, uint64_t all, double window, FILE *f)
{
	uint64_t rest = s->gone_value;
	size_t shown, others;

	for (shown = 0; shown < busy; shown++) {
		const struct summary_row *r = &s->rows.at[shown];
		bool lone = shown + 1 == busy &&
			    !s->gone_busy; /* a name takes no more room than "1 other" */

		if (!lone &&
		    (shown >= SUMMARY_ROWS || (double)r->value < SUMMARY_LEAST * (double)all))
			break;
		print_row(s->of, r, (double)all, window, f);
	}
	for (size_t i = shown; i < busy; i++)
		rest += s->rows.at[i].value;
	others = busy - shown + s->gone_busy;
	if (!others)
		return;
	print_figures(s->of, rest, (double)all, window, f);
	fprintf(f, "%7s  %zu other%s\n", "", others, others == 1 ? "" : "s");
}

static void print_only_lost(const struct summary *s, FILE *f)
{
	const struct summary_row *first = NULL;
	size_t n = s->gone_lost;

	for (size_t i = s->rows.n; i-- > 0;)
		if (only_lost(&s->rows.at[i])) {
			first = &s->rows.at[i];
			n++;
		}
	if (n)
		fprintf(f, "Of %zu more there are only losses", n);
	if (n && first)
		fprintf(f, ": pid %d (%s)%s", first->pid, first->name, n > 1 ? " and others" : "");
	if (n)
		fputc('\n', f);
}

void summary_print(struct summary *s, uint64_t window_ns, FILE *f)
{
	uint64_t all = s->gone_value;
	double window = window_ns ? (double)window_ns : 1;
	size_t busy = 0;

	if (s->rows.n)
		qsort(s->rows.at, s->rows.n, sizeof(*s->rows.at), by_value);
	for (size_t i = 0; i < s->rows.n; i++) {
		all += s->rows.at[i].value;
		busy += s->rows.at[i].value != 0;
	}
	print_head(s, all, busy + s->gone_busy, window, f);
	if (busy)
		print_rows(s, busy, all, window, f);
	print_only_lost(s, f);
}

void summary_fini(struct summary *s)
{
	vec_fini(&s->rows);
}

/* ---- the receipt ---- */

enum { BOUND_TEXT = 64, SHARE_TEXT = 32, UNSEEN_TEXT = 128 };

static double percent(uint64_t part, uint64_t of)
{
	return of ? 100.0 * (double)part / (double)of : 0;
}

/* Of a number of percent: two digits of a small one. */
static int decimals(double v)
{
	return v >= 9.95 ? 0 : v >= 0.995 ? 1 : 2;
}

static void bound_text(const char *how, unsigned ppm, char buf[BOUND_TEXT])
{
	if (ppm)
		snprintf(buf, BOUND_TEXT, "%s %g %%", how, ppm / 1e4);
	else
		snprintf(buf, BOUND_TEXT, "no bound");
}

/* Of those that did not run at all it is no share. */
static void share_text(const struct engine_cost *c, char buf[SHARE_TEXT])
{
	double share = percent(c->taken_ns, c->cpu_ns);

	if (c->taken_ns && !c->cpu_ns)
		snprintf(buf, SHARE_TEXT, "? %%");
	else
		snprintf(buf, SHARE_TEXT, "%.*f %%", decimals(share), share);
}

/* Probes cost them, too. There are nearly always some, which are no Go programs: it is said where it may be why the bound was passed. */
static void unseen_text(const struct engine_cost *c, uint64_t unseen, unsigned ppm,
			char buf[UNSEEN_TEXT])
{
	char n[TEXT_COUNTED];

	*buf = '\0';
	if (unseen && ppm && (double)c->taken_ns > (double)c->cpu_ns * ppm / 1e6)
		snprintf(buf, UNSEEN_TEXT, "; the time of %s not looked at is not in that",
			 counted(unseen, "program that was", "programs that were", n));
}

/* What a few milliseconds have is the end of the beginning and the beginning of the end, and no share of anything. */
#define SHARE_FROM_NS (100 * NS_PER_MS)

static void own_text(const struct engine_cost *c, char buf[SHARE_TEXT])
{
	double part = percent(c->own_ns, c->lasted_ns);

	if (c->lasted_ns < SHARE_FROM_NS)
		snprintf(buf, SHARE_TEXT, "of %.1f ms", (double)c->lasted_ns / 1e6);
	else
		snprintf(buf, SHARE_TEXT, "%.*f %% of one CPU", decimals(part), part);
}

void summary_cost(struct engine_cost c, uint64_t unseen, bool put_off, const struct collect_opts *o)
{
	char own[BOUND_TEXT], part[SHARE_TEXT], taken[BOUND_TEXT], share[SHARE_TEXT],
		without[UNSEEN_TEXT];

	own_text(&c, part);
	share_text(&c, share);
	unseen_text(&c, unseen, o->host.taken_ppm, without);
	bound_text("reads less often above", o->host.own_ppm, own);
	bound_text("at most", o->host.taken_ppm, taken);
	tell("cost: goprof-bpf itself took %.2f s of CPU time in the window (%s; %s); sampling took "
	     "%.2f s of the processes' %.2f s (%s, %s%s)",
	     (double)c.own_ns / 1e9, part, own, (double)c.taken_ns / 1e9, (double)c.cpu_ns / 1e9,
	     share, taken, without);
	if (put_off)
		tell("cost: programs that started were looked at 0.3 s apart, to keep to --host-budget");
	if (c.slowed)
		tell("cost: samples were taken at 1/%u of the rate at the end, to keep to --host-budget",
		     1u << c.slowed);
}
