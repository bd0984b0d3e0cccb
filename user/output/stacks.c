/*
 * user/output/stacks.c - the stacks of a profile, the largest first, each with its frames.
 *
 * This is for waits: the innermost function of a wait is the runtime's or sync's own, so a table
 * of functions says little, and who waited for what stands one or two frames further out. Samples
 * that differ only in labels are one stack here, unless the label is the reason of the wait.
 */
#include <inttypes.h>

#include "base/vec.h"
#include "output/format.h"

enum { FRAMES_SHOWN = 16 };

struct stack {
	size_t sample;	 /* the first that has it */
	uint32_t reason; /* string id, 0 none */
	int64_t values[PROF_TYPES_MAX];
};

struct ctx {
	const struct prof *p;
	size_t type;
};

static int64_t add(int64_t a, int64_t b)
{
	int64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return b < 0 ? INT64_MIN : INT64_MAX;
	return sum;
}

static uint32_t label(const struct prof *p, const struct prof_sample_view *s, const char *key)
{
	for (size_t i = 0; i < s->nlabels; i++)
		if (s->labels[i].str != UINT32_MAX &&
		    !strcmp(strtab_get(prof_strings(p), s->labels[i].key), key))
			return s->labels[i].str;
	return 0;
}

uint32_t output_reason(const struct prof *p, const struct prof_sample_view *s)
{
	return label(p, s, "reason");
}

const char *output_noun(const struct prof *p, size_t type)
{
	struct prof_header_view h = prof_header(p);
	const char *name = strtab_get(prof_strings(p), h.types[type].type);
	bool wait = h.kind && !strcmp(h.kind, "wait");

	return wait && !strcmp(name, "contentions") ? "waits" : name;
}

/* Goroutines have labels too, and one of those may also be called "type". */
uint32_t output_type(const struct prof *p, const struct prof_sample_view *s)
{
	const char *of = strtab_get(prof_strings(p), prof_header(p).period_type.type);

	return strcmp(of, "space") ? 0 : label(p, s, "type");
}

/* Sorts equal stacks next to each other. */
static int by_frames(const void *pa, const void *pb, void *arg)
{
	const struct stack *sa = pa, *sb = pb;
	const struct ctx *c = arg;
	struct prof_sample_view a = prof_sample_at(c->p, sa->sample);
	struct prof_sample_view b = prof_sample_at(c->p, sb->sample);

	if (sa->reason != sb->reason)
		return sa->reason < sb->reason ? -1 : 1;
	if (a.nlocs != b.nlocs)
		return a.nlocs < b.nlocs ? -1 : 1;
	return memcmp(a.locs, b.locs, a.nlocs * sizeof(*a.locs));
}

static int by_value(const void *pa, const void *pb, void *arg)
{
	const struct stack *a = pa, *b = pb;
	const struct ctx *c = arg;

	if (a->values[c->type] != b->values[c->type])
		return a->values[c->type] > b->values[c->type] ? -1 : 1;
	return by_frames(pa, pb, arg);
}

/* Makes one entry for each stack; returns how many there are. */
static size_t merge(struct stack *at, size_t n, struct ctx *c)
{
	size_t ntypes = prof_header(c->p).ntypes, kept = 0;

	if (!n)
		return 0;
	qsort_r(at, n, sizeof(*at), by_frames, c);
	for (size_t i = 1; i < n; i++) {
		if (by_frames(&at[kept], &at[i], c)) {
			at[++kept] = at[i];
			continue;
		}
		for (size_t k = 0; k < ntypes; k++)
			at[kept].values[k] = add(at[kept].values[k], at[i].values[k]);
	}
	return kept + 1;
}

static void put_line(const struct prof *p, const struct prof_location_view *l, size_t line, FILE *f)
{
	const struct strtab *s = prof_strings(p);
	struct prof_function_view fn;
	const char *file, *slash;

	fputs("              ", f);
	if (!l->nlines) {
		fprintf(f, "0x%" PRIx64 "\n", l->address);
		return;
	}
	fn = prof_function_at(p, l->func[line] - 1);
	file = strtab_get(s, fn.file);
	slash = strrchr(file, '/');
	output_clean(strtab_get(s, fn.name), 0, f);
	fputs("  ", f);
	output_clean(slash ? slash + 1 : file, 0, f);
	fprintf(f, ":%" PRId64 "\n", l->line[line]);
}

static void put_frames(const struct prof *p, size_t sample, FILE *f)
{
	struct prof_sample_view s = prof_sample_at(p, sample);
	size_t shown = 0, all = 0;

	for (size_t k = 0; k < s.nlocs; k++) {
		struct prof_location_view l = prof_location_at(p, s.locs[k] - 1);
		size_t lines = l.nlines ? l.nlines : 1;

		for (size_t i = 0; i < lines && shown < FRAMES_SHOWN; i++, shown++)
			put_line(p, &l, i, f);
		all += lines;
	}
	if (all > shown)
		fprintf(f, "              and %zu callers\n", all - shown);
}

static void put_stack(const struct ctx *c, const struct stack *st, int64_t total, FILE *f)
{
	struct prof_header_view h = prof_header(c->p);
	const struct strtab *s = prof_strings(c->p);
	char value[48], percent[48];

	output_amount((double)st->values[c->type], strtab_get(s, h.types[c->type].unit), value,
		      sizeof(value));
	output_percent((double)st->values[c->type], (double)total, percent, sizeof(percent));
	fprintf(f, "%10s %s", value, percent);
	for (size_t i = 0; i < h.ntypes; i++) {
		if (i == c->type)
			continue;
		output_amount((double)st->values[i], strtab_get(s, h.types[i].unit), value,
			      sizeof(value));
		fprintf(f, "  %s ", value);
		output_clean(output_noun(c->p, i), 0, f);
	}
	if (st->reason) {
		fputs("  ", f);
		output_clean(strtab_get(s, st->reason), 0, f);
	}
	putc('\n', f);
	put_frames(c->p, st->sample, f);
}

int stacks_write(const struct prof *p, size_t max, FILE *f, struct err *e)
{
	size_t n = prof_nsamples(p), ntypes = prof_header(p).ntypes;
	CLEANUP(freep) struct stack *at = calloc(n ? n : 1, sizeof(*at));
	struct ctx c = { p, output_main_type(p) };
	int64_t total = 0;

	if (!at)
		return err_set(e, -ENOMEM, "no memory for %zu stacks", n);
	for (size_t i = 0; i < n; i++) {
		struct prof_sample_view s = prof_sample_at(p, i);

		at[i].sample = i;
		at[i].reason = output_reason(p, &s);
		memcpy(at[i].values, s.values, ntypes * sizeof(int64_t));
		total = add(total, at[i].values[c.type]);
	}
	n = merge(at, n, &c);
	if (n)
		qsort_r(at, n, sizeof(*at), by_value, &c);
	output_clean(output_noun(p, c.type), 0, f);
	fprintf(f, ": by stack, %s%zu\n", n > max ? "the largest of " : "", n);
	for (size_t i = 0; i < n && i < max; i++)
		put_stack(&c, &at[i], total, f);
	return output_check(f, e);
}
