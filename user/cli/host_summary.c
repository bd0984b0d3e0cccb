/* user/cli/host_summary.c - sums over the samples of finished profiles, as a table. */
#include "cli/host_summary.h"

#include <string.h>

#include "cli/tell.h"

enum { CPU_TYPE = 1 }; /* sample types of a CPU profile: samples, cpu */

/* The innermost function of a sample: its id, 0 when it has none. */
static uint32_t leaf_func(const struct prof *p, const struct prof_sample_view *s)
{
	struct prof_location_view l;

	if (!s->nlocs)
		return 0;
	l = prof_location_at(p, s->locs[0] - 1);
	return l.nlines ? l.func[0] : 0;
}

static void keep_name(char to[SUMMARY_NAME], const char *from)
{
	snprintf(to, SUMMARY_NAME, "%s", from);
	tell_clean(to);
}

/* Keeps the largest ones in order. */
static void rank(struct summary_row *r, const struct prof *p, uint32_t func, double share)
{
	struct prof_function_view f = prof_function_at(p, func - 1);
	size_t i = r->ntop;

	while (i && r->top[i - 1].share < share)
		i--;
	if (i == SUMMARY_TOP)
		return;
	r->ntop += r->ntop < SUMMARY_TOP;
	memmove(&r->top[i + 1], &r->top[i], (r->ntop - i - 1) * sizeof(r->top[0]));
	r->top[i].share = share;
	keep_name(r->top[i].func, strtab_get(prof_strings(p), f.name));
}

static bool find_top(struct summary_row *r, const struct prof *p)
{
	size_t n = prof_nfunctions(p);
	CLEANUP(freep) int64_t *flat = calloc(n + 1, sizeof(*flat));
	int64_t all = 0;

	if (!flat)
		return false;
	for (size_t i = 0; i < prof_nsamples(p); i++) {
		struct prof_sample_view s = prof_sample_at(p, i);

		flat[leaf_func(p, &s)] += s.values[CPU_TYPE];
		all += s.values[CPU_TYPE];
	}
	for (size_t f = 1; all && f <= n; f++)
		if (flat[f])
			rank(r, p, (uint32_t)f, (double)flat[f] / (double)all);
	return true;
}

static int by_cpu(const void *a, const void *b)
{
	const struct summary_row *x = a, *y = b;

	if (x->cpu_ns != y->cpu_ns)
		return x->cpu_ns < y->cpu_ns ? 1 : -1;
	return (x->pid > y->pid) - (x->pid < y->pid);
}

static void fold(struct summary *s)
{
	qsort(s->rows.at, s->rows.n, sizeof(*s->rows.at), by_cpu);
	for (size_t i = SUMMARY_ROWS; i < s->rows.n; i++) {
		s->gone++;
		s->gone_busy += s->rows.at[i].cpu_ns != 0;
		s->gone_ns += s->rows.at[i].cpu_ns;
	}
	s->rows.n = SUMMARY_ROWS;
}

bool summary_add(struct summary *s, const struct summary_row *row, const struct prof *p)
{
	struct summary_row *r;

	if (s->rows.n == SUMMARY_KEPT)
		fold(s);
	r = vec_add(&s->rows, SUMMARY_KEPT);
	if (!r)
		return false;
	*r = *row;
	r->ntop = 0;
	tell_clean(r->name);
	return !p || find_top(r, p);
}

static void print_row(const struct summary_row *r, double all, double window, FILE *f)
{
	double cpu = (double)r->cpu_ns;

	fprintf(f, "%8.2f s  %5.1f%%  %6.1f%%  %7d  %s%s%s%s\n", cpu / 1e9, 100 * cpu / all,
		100 * cpu / window, r->pid, r->name, r->note ? ", " : "", r->note ? r->note : "",
		r->lost ? ", with losses" : "");
	for (size_t i = 0; i < r->ntop; i++)
		fprintf(f, "%19.1f%%  %s\n", 100 * r->top[i].share, r->top[i].func);
}

void summary_print(struct summary *s, uint64_t window_ns, FILE *f)
{
	double all = (double)s->gone_ns, rest = all, window = window_ns ? (double)window_ns : 1;
	size_t busy = 0, shown, others;

	if (s->rows.n)
		qsort(s->rows.at, s->rows.n, sizeof(*s->rows.at), by_cpu);
	for (size_t i = 0; i < s->rows.n; i++) {
		all += (double)s->rows.at[i].cpu_ns;
		busy += s->rows.at[i].cpu_ns != 0;
	}
	fprintf(f, "%.2f s of CPU time in %.2f s, by %zu of %zu Go processes\n", all / 1e9,
		window / 1e9, busy + s->gone_busy, s->rows.n + s->gone);
	if (!busy)
		return;
	fprintf(f, "%10s  %6s  %7s  %7s  %s\n", "CPU", "SHARE", "OF 1 CPU", "PID", "PROGRAM");
	for (shown = 0; shown < busy && shown < SUMMARY_ROWS; shown++) {
		const struct summary_row *r = &s->rows.at[shown];

		if ((double)r->cpu_ns < SUMMARY_LEAST * all)
			break;
		print_row(r, all, window, f);
	}
	for (size_t i = shown; i < busy; i++)
		rest += (double)s->rows.at[i].cpu_ns;
	others = busy - shown + s->gone_busy;
	if (others)
		fprintf(f, "%8.2f s  %5.1f%%  %6.1f%%  %7s  %zu others\n", rest / 1e9,
			100 * rest / all, 100 * rest / window, "", others);
}

void summary_fini(struct summary *s)
{
	vec_fini(&s->rows);
}
