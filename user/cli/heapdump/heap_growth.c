/* user/cli/heapdump/heap_growth.c - sums by name of two dumps, side by side. */
#include "cli/heapdump/heap_growth.h"

#include "cli/report.h"
#include "cli/tell.h"

enum {
	TOP = 12,
	FRAMES = 24,
	FRAMES_SHOWN = 8,
	STACK_BYTES = 1 << 13,
	SITE_OBJECTS = 2,
	SITE_BYTES
};

int growth_init(struct growth *g, int64_t rate, struct err *e)
{
	*g = (struct growth){ .rate = rate };
	return strtab_new(&g->names, e);
}

void growth_fini(struct growth *g)
{
	for (int k = 0; k < GROWTH_KINDS; k++) {
		vec_fini(&g->tables[k]);
		map_fini(&g->tables[k].keys);
	}
	strtab_free(g->names);
	*g = (struct growth){};
}

/* ---- adding ---- */

static int add(struct growth *g, enum growth_kind kind, int side, const char *name, uint64_t count,
	       uint64_t bytes, struct err *e)
{
	struct growth_table *t = &g->tables[kind];
	uint32_t id = strtab_puts(g->names, name);
	struct grown *to = NULL;
	uint64_t at;

	if (id != UINT32_MAX && map_get(&t->keys, id, &at)) {
		to = &t->at[at];
	} else if (id != UINT32_MAX) {
		to = vec_add(t, UINT32_MAX);
		if (to && !map_put(&t->keys, id, t->n - 1))
			to = NULL;
	}
	if (!to)
		return err_set(e, -ENOMEM, "no memory to compare dumps");
	to->name = id;
	to->count[side] += count;
	to->bytes[side] += bytes;
	return 0;
}

static int add_types(struct growth *g, int side, const struct classes *c, struct err *e)
{
	CLEANUP(freep) struct class_sum *sums = NULL;
	size_t n = 0;
	int ret = classes_sums(c, &sums, &n, e);

	for (size_t i = 0; !ret && i < n; i++)
		if (sums[i].objects)
			ret = add(g, GROWTH_TYPES, side, strtab_get(c->names, sums[i].name),
				  sums[i].objects, sums[i].bytes, e);
	return ret;
}

/* The objects that holders point to themselves, by root and type. */
static int add_below(struct growth *g, int side, const struct holdings *x, size_t i, struct err *e)
{
	const struct strtab *names = x->heap->names;
	uint32_t root = x->all.at[i].parent;
	char text[STACK_BYTES];

	if (!x->all.at[i].what || !root || x->all.at[root].what)
		return 0;
	while (x->all.at[root].parent)
		root = x->all.at[root].parent;
	snprintf(text, sizeof(text), "%s\n%s", strtab_get(names, x->all.at[root].name),
		 strtab_get(names, x->all.at[i].what));
	return add(g, GROWTH_BELOW, side, text, x->all.at[i].things, x->all.at[i].bytes, e);
}

static int add_holders(struct growth *g, int side, const struct holdings *x, struct err *e)
{
	int ret = 0;

	for (size_t i = 1; !ret && i < x->all.n; i++)
		ret = add_below(g, side, x, i, e);

	for (size_t i = 1; !ret && i < x->all.n; i++)
		if (!x->all.at[i].parent && x->all.at[i].bytes)
			ret = add(g, GROWTH_HOLDERS, side,
				  strtab_get(x->heap->names, x->all.at[i].name),
				  x->all.at[i].things, x->all.at[i].bytes, e);
	return ret;
}

/* A line to a stack; what does not fit is left out. */
static size_t append(char to[STACK_BYTES], size_t len, const char *text)
{
	int n = snprintf(to + len, STACK_BYTES - len, "%s%s", len ? "\n" : "", text);

	if (n < 0 || (size_t)n >= STACK_BYTES - len) {
		to[len] = 0;
		return len;
	}
	return len + (size_t)n;
}

static int add_group(struct growth *g, int side, const struct heapgraph *h,
		     const struct goroutine_group *group, struct err *e)
{
	const struct holder *first = &h->holders.at[group->first];
	const char *why = first->state == 4 ? strtab_get(h->names, first->name) : "";
	char stack[STACK_BYTES];
	size_t len = append(stack, 0, *why ? why : describe_state(first->state));

	for (uint32_t i = 0; i < group->frames && i < FRAMES; i++)
		len = append(stack, len,
			     strtab_get(h->names,
					h->holders.at[group->first - group->frames + i].name));
	return add(g, GROWTH_GOROUTINES, side, stack, group->count, group->retained, e);
}

static int add_goroutines(struct growth *g, int side, const struct heapgraph *h, struct err *e)
{
	CLEANUP(freep) struct goroutine_group *groups = NULL;
	size_t n = 0;
	int ret = goroutine_groups(h, &groups, &n, e);

	for (size_t i = 0; !ret && i < n; i++)
		ret = add_group(g, side, h, &groups[i], e);
	return ret;
}

static int add_site(struct growth *g, int side, const struct prof *p, size_t i, struct err *e)
{
	struct prof_sample_view s = prof_sample_at(p, i);
	const struct strtab *strings = prof_strings(p);
	char stack[STACK_BYTES] = "", frame[1024];
	size_t len = 0;

	if (!s.values[SITE_BYTES])
		return 0;
	for (size_t k = 0; k < s.nlocs && k < FRAMES; k++) {
		struct prof_location_view l = prof_location_at(p, s.locs[k] - 1);
		struct prof_function_view f = prof_function_at(p, l.func[0] - 1);
		const char *file = strtab_get(strings, f.file), *slash = strrchr(file, '/');

		snprintf(frame, sizeof(frame), "%s %s:%lld", strtab_get(strings, f.name),
			 slash ? slash + 1 : file, (long long)l.line[0]);
		len = append(stack, len, frame);
	}
	return add(g, GROWTH_SITES, side, stack, (uint64_t)s.values[SITE_OBJECTS],
		   (uint64_t)s.values[SITE_BYTES], e);
}

int growth_add(struct growth *g, int side, const char *file, const struct heapdump *d,
	       const struct dumpgraph *graph, const struct classes *c, const struct holdings *x,
	       const struct prof *sites, struct err *e)
{
	const struct heapdump_params *p = heapdump_params(d);
	int ret = add_types(g, side, c, e);

	g->files[side] = file;
	snprintf(g->programs[side], sizeof(g->programs[side]), "%.*s %.*s", (int)p->toolchain.len,
		 p->toolchain.at, (int)p->arch.len, p->arch.at);
	g->objects[side] = graph->heap.objects.n;
	g->bytes[side] = graph->heap.objects.bytes;
	g->whole[side] = graph->whole;
	if (!ret)
		ret = add_holders(g, side, x, e);
	if (!ret)
		ret = add_goroutines(g, side, &graph->heap, e);
	for (size_t i = 0; !ret && sites && i < prof_nsamples(sites); i++)
		ret = add_site(g, side, sites, i, e);
	return ret;
}

/* ---- what only moved ---- */

static int64_t difference(const uint64_t v[2])
{
	return (int64_t)(v[1] - v[0]);
}

static struct grown *find(struct growth *g, enum growth_kind kind, const char *name)
{
	uint32_t id = strtab_puts(g->names, name);
	uint64_t at;

	return id != UINT32_MAX && map_get(&g->tables[kind].keys, id, &at) ?
		       &g->tables[kind].at[at] :
		       NULL;
}

#define SHARED "shared: "

/* As many objects of the type as before, of which more or fewer are held by several things. */
static bool shared_moved(struct growth *g, const struct grown *x)
{
	const char *name = strtab_get(g->names, x->name);
	const struct grown *type;

	if (strncmp(name, SHARED, sizeof(SHARED) - 1) || x->count[0] == x->count[1])
		return false;
	type = find(g, GROWTH_TYPES, name + sizeof(SHARED) - 1);
	return type && type->count[0] == type->count[1];
}

/* The other side of it: a root holds them alone no more, or alone now. */
static void give(struct growth *g, const struct grown *below)
{
	const char *name = strtab_get(g->names, below->name);
	size_t root = strcspn(name, "\n");
	char text[STACK_BYTES];
	struct grown *to;

	if (!name[root])
		return;
	snprintf(text, sizeof(text), SHARED "%s", name + root + 1);
	to = find(g, GROWTH_HOLDERS, text);
	if (!to || !to->moved)
		return;
	snprintf(text, sizeof(text), "%.*s", (int)root, name);
	to = find(g, GROWTH_HOLDERS, text);
	if (to)
		to->moved += difference(below->bytes);
}

/* But for a tenth. */
static bool nearly(int64_t part, int64_t all)
{
	double off = (double)part - (double)all;

	return all && (off < 0 ? -off : off) * 10 <= (all < 0 ? -(double)all : (double)all);
}

static bool moved(const struct grown *x)
{
	return x->moved && nearly(x->moved, difference(x->bytes));
}

/*
 * Whether one thing holds an object or several share it may change from dump to dump, as when a timer
 * points to it for a moment: a root loses what "shared" wins, or the other way round. Such rows are
 * none of growth where their sum is nearly nothing.
 */
static void find_moved(struct growth *g)
{
	struct growth_table *t = &g->tables[GROWTH_HOLDERS], *below = &g->tables[GROWTH_BELOW];

	for (size_t i = 0; i < t->n; i++)
		t->at[i].moved = shared_moved(g, &t->at[i]) ? difference(t->at[i].bytes) : 0;
	for (size_t i = 0; i < below->n; i++)
		give(g, &below->at[i]);
	g->nmoved = 0;
	g->moved_up = g->moved_down = 0;
	for (size_t i = 0; i < t->n; i++) {
		int64_t by = difference(t->at[i].bytes);

		if (!moved(&t->at[i]))
			continue;
		g->nmoved++;
		*(by < 0 ? &g->moved_down : &g->moved_up) += by;
	}
	if (nearly(g->moved_up, -g->moved_down))
		return;
	for (size_t i = 0; i < t->n; i++)
		t->at[i].moved = 0;
	g->nmoved = 0;
}

/* ---- order ---- */

/* What grew most comes first, what shrank most comes last. */
static int by_bytes(const void *a, const void *b)
{
	const struct grown *x = a, *y = b;
	int64_t dx = difference(x->bytes), dy = difference(y->bytes);

	if (dx != dy)
		return dx < dy ? 1 : -1;
	dx = difference(x->count);
	dy = difference(y->count);
	if (dx != dy)
		return dx < dy ? 1 : -1;
	return (x->name > y->name) - (x->name < y->name);
}

static int by_count(const void *a, const void *b)
{
	const struct grown *x = a, *y = b;
	int64_t dx = difference(x->count), dy = difference(y->count);

	return dx != dy ? (dx < dy ? 1 : -1) : by_bytes(a, b);
}

static bool changed(const struct grown *x)
{
	return (x->count[0] != x->count[1] || x->bytes[0] != x->bytes[1]) && !moved(x);
}

static void sort(struct growth *g)
{
	find_moved(g);
	for (int k = 0; k < GROWTH_KINDS; k++)
		if (g->tables[k].n && k != GROWTH_BELOW)
			qsort(g->tables[k].at, g->tables[k].n, sizeof(*g->tables[k].at),
			      k == GROWTH_GOROUTINES ? by_count : by_bytes);
}

/* ---- text ---- */

static void line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void line(const char *fmt, ...)
{
	char text[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	tell_clean(text);
	puts(text);
}

static const char *signed_bytes(int64_t v, char to[BYTES_TEXT])
{
	char size[BYTES_TEXT];

	bytes_text(v < 0 ? -(uint64_t)v : (uint64_t)v, size);
	snprintf(to, BYTES_TEXT, "%s%.24s", v < 0 ? "-" : v ? "+" : "", size);
	return to;
}

static void put_name(const char *name)
{
	unsigned frames = 0, more = 0;

	for (; name; name = strchr(name, '\n')) {
		name += *name == '\n';
		if (frames++ <= FRAMES_SHOWN)
			line("%50s%.*s", frames > 1 ? "    " : "", (int)strcspn(name, "\n"), name);
		else
			more++;
	}
	if (more)
		line("%50s... %u more", "    ", more);
}

static void put_row(const struct growth *g, const struct grown *x)
{
	const char *name = strtab_get(g->names, x->name);
	size_t first = strcspn(name, "\n");
	char change[BYTES_TEXT], now[BYTES_TEXT];

	line("%+10lld %9llu  %12s %12s  %.*s", (long long)difference(x->count),
	     (unsigned long long)x->count[1], signed_bytes(difference(x->bytes), change),
	     bytes_text(x->bytes[1], now), (int)first, name);
	if (name[first])
		put_name(name + first + 1);
}

static void put_table(const struct growth *g, enum growth_kind kind, const char *title,
		      const char *count, const char *bytes)
{
	const struct growth_table *t = &g->tables[kind];
	char up[BYTES_TEXT], down[BYTES_TEXT];
	size_t grew = 0, shrank = 0;

	putchar('\n');
	line("%s", title);
	line("%10s %9s  %12s %12s", count, "now", bytes, "now");
	for (size_t i = 0; i < t->n; i++) {
		const struct grown *x = &t->at[i];
		bool less = difference(kind == GROWTH_GOROUTINES ? x->count : x->bytes) < 0;

		if (!changed(x))
			continue;
		/* Of those that shrank the last ones are the largest. */
		if (!less && grew++ < TOP)
			put_row(g, x);
		shrank += less;
	}
	for (size_t i = t->n > TOP / 2 ? t->n - TOP / 2 : 0; shrank && i < t->n; i++)
		if (changed(&t->at[i]) &&
		    difference(kind == GROWTH_GOROUTINES ? t->at[i].count : t->at[i].bytes) < 0)
			put_row(g, &t->at[i]);
	if (!grew && !shrank)
		line("%10s", "none");
	else if (grew > TOP || shrank > TOP / 2)
		line("%10s %zu grew, %zu shrank", "in all", grew, shrank);
	if (kind == GROWTH_HOLDERS && g->nmoved)
		line("%10zu more, %s and %s: one thing held before what several hold now, or the "
		     "other way round",
		     g->nmoved, signed_bytes(g->moved_up, up), signed_bytes(g->moved_down, down));
}

void growth_text(struct growth *g)
{
	char bytes[BYTES_TEXT], change[BYTES_TEXT], title[128];

	sort(g);
	for (int side = 0; side < 2; side++)
		line("%s: %s, %llu %s, %s%s", g->files[side], g->programs[side],
		     (unsigned long long)g->objects[side],
		     one_or(g->objects[side], "object", "objects"),
		     bytes_text(g->bytes[side], bytes),
		     g->whole[side] ? "" : " before the dump breaks off");
	line("%+lld %s, %s", (long long)difference(g->objects),
	     one_or((uint64_t)llabs(difference(g->objects)), "object", "objects"),
	     signed_bytes(difference(g->bytes), change));
	put_table(g, GROWTH_TYPES, "Types", "objects", "bytes");
	put_table(g, GROWTH_HOLDERS, "Holders: roots, and types that several of them share",
		  "things", "retained");
	put_table(g, GROWTH_GOROUTINES, "Goroutines, by why they wait and their stacks",
		  "goroutines", "retained");
	snprintf(
		title, sizeof(title),
		"Allocation sites: what is in use of them, by samples; one in %lld bytes is assumed "
		"(--heap-rate)",
		(long long)g->rate);
	put_table(g, GROWTH_SITES, title, "objects", "bytes");
}

/* ---- JSON ---- */

static json_t *json_name(const struct growth *g, enum growth_kind kind, uint32_t id)
{
	const char *name = strtab_get(g->names, id);
	char frame[1024];
	json_t *all;

	if (kind != GROWTH_GOROUTINES && kind != GROWTH_SITES)
		return report_string(name);
	all = json_array();
	for (; name; name = strchr(name, '\n')) {
		name += *name == '\n';
		snprintf(frame, sizeof(frame), "%.*s", (int)strcspn(name, "\n"), name);
		json_array_append_new(all, report_string(frame));
	}
	return all;
}

static json_t *json_table(const struct growth *g, enum growth_kind kind)
{
	const struct growth_table *t = &g->tables[kind];
	json_t *all = json_array();

	for (size_t i = 0; i < t->n; i++) {
		const struct grown *x = &t->at[i];

		json_array_append_new(all, json_pack("{s:o, s:I, s:I, s:I, s:I, s:b}", "name",
						     json_name(g, kind, x->name), "count_before",
						     (json_int_t)x->count[0], "count_after",
						     (json_int_t)x->count[1], "bytes_before",
						     (json_int_t)x->bytes[0], "bytes_after",
						     (json_int_t)x->bytes[1], "moved", moved(x)));
	}
	return all;
}

static json_t *json_side(const struct growth *g, int side)
{
	return json_pack("{s:o, s:o, s:b, s:I, s:I}", "file", report_string(g->files[side]), "go",
			 report_maybe(g->programs[side]), "whole", g->whole[side], "objects",
			 (json_int_t)g->objects[side], "bytes", (json_int_t)g->bytes[side]);
}

int growth_json(struct growth *g, int status)
{
	sort(g);
	return report_print(json_pack("{s:o, s:o, s:I, s:o, s:o, s:o, s:o}", "before",
				      json_side(g, 0), "after", json_side(g, 1),
				      "heap_rate_assumed", (json_int_t)g->rate, "types",
				      json_table(g, GROWTH_TYPES), "holders",
				      json_table(g, GROWTH_HOLDERS), "goroutines",
				      json_table(g, GROWTH_GOROUTINES), "sites",
				      json_table(g, GROWTH_SITES)),
			    status);
}
