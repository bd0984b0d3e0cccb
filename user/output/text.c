/*
 * user/output/text.c - the functions of a profile as tables for people, by sample type, or the
 * profile's own text where it has some. After the functions come the types that were allocated,
 * where samples have them.
 *
 * Rows, order, values and units are those of `go tool pprof -top`. A function is known by its
 * name, whatever the file; flat counts samples whose innermost frame it is; cum counts samples
 * that have it anywhere, once each.
 */
#include <inttypes.h>
#include <math.h>
#include <time.h>

#include "base/map.h"
#include "base/vec.h"
#include "output/format.h"

enum { STACKS_SHOWN = 10, TYPES_SHOWN = 30 };

struct node {
	const char *name;
	bool is_file; /* pcs without function: the name of their file */
	int64_t flat, cum;
	size_t seen; /* number of the last sample that has it */
};

struct table {
	const struct prof *p;
	size_t type;
	VEC(struct node) nodes;
	struct map by_name; /* string id, bit 32 for files -> index in nodes */
	uint64_t total;
};

/* ---- values for people ---- */

struct unit {
	const char *name;
	double factor;
};

/* Smallest first. */
static const struct unit byte_units[] = {
	{ "B", 1 },	  { "kB", 0x1p10 }, { "MB", 0x1p20 },
	{ "GB", 0x1p30 }, { "TB", 0x1p40 }, { "PB", 0x1p50 },
};
static const struct unit time_units[] = {
	{ "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 }, { "hrs", 3600e9 },
};
static const struct unit no_unit = { "", 1 };

/* The largest unit in which @value is at least 1. */
static const struct unit *auto_unit(const char *sample_unit, double value)
{
	bool bytes = !strcmp(sample_unit, "bytes");
	const struct unit *units = bytes ? byte_units : time_units, *best = units;
	size_t n = bytes ? ARRAY_LEN(byte_units) : ARRAY_LEN(time_units);

	if (!bytes && strcmp(sample_unit, "nanoseconds"))
		return &no_unit;
	for (size_t i = 1; i < n; i++)
		if (value / units[i].factor >= 1)
			best = &units[i];
	return best;
}

static double magnitude(int64_t v)
{
	return fabs((double)v);
}

/*
 * The unit for the whole table: such that the smallest value keeps a digit, as far as that is
 * reasonable.
 */
static const struct unit *table_unit(const struct table *t, const char *sample_unit)
{
	double min = 0, total = (double)t->total;
	const struct unit *small, *large;

	for (size_t i = 0; i < t->nodes.n; i++) {
		const struct node *n = &t->nodes.at[i];
		double v = magnitude(n->flat ? n->flat : n->cum);

		if (v > 0 && (min == 0 || v < min))
			min = v;
	}
	if (min == 0)
		min = total;
	small = auto_unit(sample_unit, min);
	large = auto_unit(sample_unit, total);
	return small != large && min * 100 < total ? auto_unit(sample_unit, 100 * min) : small;
}

struct cell {
	char s[48];
};

static struct cell cell_value(double v, const struct unit *u)
{
	struct cell c;
	char number[40];
	size_t n = (size_t)snprintf(number, sizeof(number), "%.2f", v / u->factor);

	if (n > 3 && n < sizeof(number) && !strcmp(number + n - 3, ".00"))
		number[n - 3] = 0;
	if (!strcmp(number, "0") || !strcmp(number, "-0"))
		return (struct cell){ "0" };
	snprintf(c.s, sizeof(c.s), "%s%s", number, u->name);
	return c;
}

static struct cell cell_percent(double v, double total)
{
	double percent = total > 0 ? fabs(v / total) * 100 : 0;
	struct cell c;

	if (percent >= 99.95 && percent <= 100.05)
		return (struct cell){ "  100%" };
	snprintf(c.s, sizeof(c.s), percent >= 1 ? "%5.2f%%" : "%5.2g%%", percent);
	return c;
}

void output_amount(double v, const char *unit, char *buf, size_t cap)
{
	snprintf(buf, cap, "%s", cell_value(v, auto_unit(unit, fabs(v))).s);
}

void output_percent(double v, double total, char *buf, size_t cap)
{
	snprintf(buf, cap, "%s", cell_percent(v, total).s);
}

/* ---- collecting ---- */

static void table_fini(struct table *t)
{
	vec_fini(&t->nodes);
	map_fini(&t->by_name);
}

static int64_t add(int64_t a, int64_t b)
{
	int64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return b < 0 ? INT64_MIN : INT64_MAX;
	return sum;
}

static const char *string(const struct table *t, uint32_t id)
{
	return strtab_get(prof_strings(t->p), id);
}

static struct node *node_keyed(struct table *t, uint64_t key, const char *name)
{
	struct node *n;
	uint64_t at;

	if (map_get(&t->by_name, key, &at))
		return &t->nodes.at[at];
	n = map_put(&t->by_name, key, t->nodes.n) ? vec_add(&t->nodes, SIZE_MAX) : NULL;
	if (n)
		n->name = name;
	return n;
}

/* The node of one line of a location; @func 0: of a pc without function. */
static struct node *node_of(struct table *t, uint32_t mapping, uint32_t func)
{
	uint32_t name = func ? prof_function_at(t->p, func - 1).name : 0;
	uint64_t key = name;
	struct node *n;

	if (!name) {
		name = mapping ? prof_mapping_at(t->p, mapping - 1).filename : 0;
		key = name | 1ULL << 32;
	}
	n = node_keyed(t, key, string(t, name));
	if (n)
		n->is_file = key >> 32;
	return n;
}

static void add_total(struct table *t, int64_t v)
{
	if (__builtin_add_overflow(t->total, v < 0 ? 0 - (uint64_t)v : (uint64_t)v, &t->total))
		t->total = UINT64_MAX;
}

/* Adds the sample to every function on the stack. The last visited is the innermost. */
static int add_sample(struct table *t, size_t i, struct err *e)
{
	struct prof_sample_view s = prof_sample_at(t->p, i);
	int64_t v = s.values[t->type];
	struct node *n = NULL;

	for (size_t k = s.nlocs; v && k-- > 0;) {
		struct prof_location_view l = prof_location_at(t->p, s.locs[k] - 1);

		for (size_t line = l.nlines ? l.nlines : 1; line-- > 0;) {
			n = node_of(t, l.mapping, l.nlines ? l.func[line] : 0);
			if (!n)
				return err_set(e, -ENOMEM, "no memory for the table");
			if (n->seen != i + 1)
				n->cum = add(n->cum, v);
			n->seen = i + 1;
		}
	}
	if (n)
		n->flat = add(n->flat, v);
	add_total(t, v);
	return 0;
}

/* Adds the sample to the type that it allocated. */
static int add_typed(struct table *t, size_t i, struct err *e)
{
	struct prof_sample_view s = prof_sample_at(t->p, i);
	uint32_t type = output_type(t->p, &s);
	int64_t v = s.values[t->type];
	struct node *n;

	if (!type || !v)
		return 0;
	n = node_keyed(t, type, string(t, type));
	if (!n)
		return err_set(e, -ENOMEM, "no memory for the table");
	n->flat = add(n->flat, v);
	add_total(t, v);
	return 0;
}

static int compare_magnitude(int64_t a, int64_t b)
{
	uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a;
	uint64_t y = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;

	return (x < y) - (x > y); /* larger first */
}

static int compare_nodes(const void *pa, const void *pb)
{
	const struct node *a = pa, *b = pb;
	int r = compare_magnitude(a->flat, b->flat);

	if (!r)
		r = strcmp(a->name, b->name);
	return r ? r : compare_magnitude(a->cum, b->cum);
}

/* Makes the rows of one sample type, largest first; rows whose value is 0 are left out. */
static int table_make(struct table *t, const struct prof *p, size_t type,
		      int (*take)(struct table *, size_t, struct err *), struct err *e)
{
	size_t kept = 0;
	int r = 0;

	t->p = p;
	t->type = type;
	for (size_t i = 0; r >= 0 && i < prof_nsamples(p); i++)
		r = take(t, i, e);
	for (size_t i = 0; i < t->nodes.n; i++)
		if (t->nodes.at[i].flat || t->nodes.at[i].cum)
			t->nodes.at[kept++] = t->nodes.at[i];
	t->nodes.n = kept;
	if (kept)
		qsort(t->nodes.at, kept, sizeof(*t->nodes.at), compare_nodes);
	return r;
}

/* ---- printing ---- */

static void put_name(const struct node *n, FILE *f)
{
	const char *slash = strrchr(n->name, '/');

	if (!n->is_file)
		output_clean(n->name, 0, f);
	else if (!*n->name)
		fputs("<unknown>", f);
	else {
		putc('[', f);
		output_clean(slash ? slash + 1 : n->name, 0, f);
		putc(']', f);
	}
	putc('\n', f);
}

static void put_rows(const struct table *t, size_t n, const struct unit *u, FILE *f)
{
	double total = (double)t->total;
	int64_t sum = 0;

	fprintf(f, "%10s %5s%% %5s%% %10s %5s%%\n", "flat", "flat", "sum", "cum", "cum");
	for (size_t i = 0; i < n; i++) {
		const struct node *r = &t->nodes.at[i];
		double flat = (double)r->flat, cum = (double)r->cum;

		sum = add(sum, r->flat);
		fprintf(f, "%10s %s %s %10s %s  ", cell_value(flat, u).s,
			cell_percent(flat, total).s, cell_percent((double)sum, total).s,
			cell_value(cum, u).s, cell_percent(cum, total).s);
		put_name(r, f);
	}
}

static int put_table(const struct prof *p, size_t type, size_t max, FILE *f, struct err *e)
{
	CLEANUP(table_fini) struct table t = {};
	struct prof_header_view h = prof_header(p);
	const struct unit *u;
	size_t n, all;
	int r = table_make(&t, p, type, add_sample, e);

	if (r < 0)
		return r;
	all = t.nodes.n;
	n = all < max ? all : max;
	t.nodes.n = n; /* the unit fits the rows that are shown */
	u = table_unit(&t, string(&t, h.types[type].unit));
	output_clean(output_noun(p, type), 0, f);
	fprintf(f, ": %s in total, ", cell_value((double)t.total, u).s);
	if (n < all)
		fprintf(f, "the %zu largest of ", n);
	fprintf(f, "%zu functions\n", all);
	put_rows(&t, n, u, f);
	return output_check(f, e);
}

static void put_type_rows(const struct table *t, const struct unit *u, FILE *f)
{
	int64_t sum = 0;

	fprintf(f, "%10s %5s%% %5s%%\n", "flat", "flat", "sum");
	for (size_t i = 0; i < t->nodes.n; i++) {
		const struct node *r = &t->nodes.at[i];

		sum = add(sum, r->flat);
		fprintf(f, "%10s %s %s  ", cell_value((double)r->flat, u).s,
			cell_percent((double)r->flat, (double)t->total).s,
			cell_percent((double)sum, (double)t->total).s);
		output_clean(r->name, 0, f);
		putc('\n', f);
	}
}

/* Writes nothing where no sample has a type. */
static int put_types(const struct prof *p, size_t type, FILE *f, struct err *e)
{
	CLEANUP(table_fini) struct table t = {};
	struct prof_header_view h = prof_header(p);
	int r = table_make(&t, p, type, add_typed, e);
	size_t all = t.nodes.n;

	if (r < 0 || !all)
		return r;
	t.nodes.n = all < TYPES_SHOWN ? all : TYPES_SHOWN;
	putc('\n', f);
	output_clean(output_noun(p, type), 0, f);
	fputs(": by type, ", f);
	if (t.nodes.n < all)
		fprintf(f, "the %zu largest of ", t.nodes.n);
	fprintf(f, "%zu types\n", all);
	put_type_rows(&t, table_unit(&t, string(&t, h.types[type].unit)), f);
	return output_check(f, e);
}

int output_top(struct prof *p, size_t n, FILE *f, struct err *e)
{
	if (!prof_header(p).ntypes)
		return output_check(f, e);
	return put_table(p, output_main_type(p), n, f, e);
}

static void put_mapping(struct prof *p, FILE *f)
{
	struct prof_mapping_view m;
	const char *path, *slash, *id;

	if (!prof_nmappings(p))
		return;
	m = prof_mapping_at(p, 0);
	path = strtab_get(prof_strings(p), m.filename);
	slash = strrchr(path, '/');
	id = strtab_get(prof_strings(p), m.build_id);
	if (*path) {
		fputs("File: ", f);
		output_clean(slash ? slash + 1 : path, 0, f);
		putc('\n', f);
	}
	if (*id) {
		fputs("Build ID: ", f);
		output_clean(id, 0, f);
		putc('\n', f);
	}
}

static void put_time(struct prof *p, FILE *f)
{
	struct prof_header_view h = prof_header(p);
	time_t s = (time_t)(h.time_ns / 1000000000);
	double d = (double)h.duration_ns;
	char buf[64];
	struct tm tm;

	if (h.time_ns && gmtime_r(&s, &tm) &&
	    strftime(buf, sizeof(buf), "%Y-%m-%d %H:%M:%S UTC", &tm))
		fprintf(f, "Time: %s\n", buf);
	if (h.duration_ns)
		fprintf(f, "Duration: %s\n", cell_value(d, auto_unit("nanoseconds", d)).s);
}

static void put_header(struct prof *p, FILE *f)
{
	struct prof_header_view h = prof_header(p);
	char loss[160];

	put_mapping(p, f);
	put_time(p, f);
	for (size_t i = 0; i < h.ncomments; i++) {
		output_clean(strtab_get(prof_strings(p), h.comments[i]), 0, f);
		putc('\n', f);
	}
	for (int k = 0; k < LOSS_COUNT; k++)
		if (output_loss(p, k, loss, sizeof(loss)))
			fprintf(f, "%s\n", loss);
}

/* Writes the profile's text instead of tables. */
static int put_text(const struct prof *p, FILE *f, struct err *e)
{
	putc('\n', f);
	for (size_t i = 0; i < prof_ntext(p); i++) {
		const char *line = prof_text_at(p, i);

		for (; *line == '\t'; line++)
			putc('\t', f);
		output_clean(line, 0, f);
		putc('\n', f);
	}
	return output_check(f, e);
}

/* Waits have stacks instead of a table, because their innermost function says little. */
static bool is_of_waits(const struct prof *p)
{
	struct prof_header_view h = prof_header(p);

	return h.ntypes && !strcmp(strtab_get(prof_strings(p), h.types[0].type), "contentions");
}

int text_write(struct prof *p, FILE *f, struct err *e)
{
	int r = 0;

	put_header(p, f);
	if (prof_ntext(p))
		return put_text(p, f, e);
	if (is_of_waits(p)) {
		putc('\n', f);
		r = stacks_write(p, STACKS_SHOWN, f, e);
	}
	for (size_t i = 0; r >= 0 && i < prof_header(p).ntypes; i++) {
		putc('\n', f);
		r = put_table(p, i, SIZE_MAX, f, e);
		if (r >= 0)
			r = put_types(p, i, f, e);
	}
	return r < 0 ? r : output_check(f, e);
}
