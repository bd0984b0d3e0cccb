/* user/cli/heapdump/heap_summary.c - finds what is worth saying of a heap, and says it. */
#include "cli/heapdump/heap_summary.h"

#include <stdarg.h>

#include "cli/report.h"
#include "cli/tell.h"

/* What retains this share of all that can be reached is worth a look, ... */
#define SUSPECT_SHARE 0.1
/* ... and the chain is followed to what has this share of the one above. */
#define CHAIN_SHARE 0.5

enum { TOP_TYPES = 20, TOP_GROUPS = 10, TOP_FRAMES = 12 };

/* ---- finding ---- */

static uint64_t reached(const struct heap_summary *s)
{
	return heapgraph_retained(&s->graph->heap, s->graph->heap.program);
}

static int find_suspects(struct heap_summary *s, struct err *e)
{
	const struct heapgraph *h = &s->graph->heap;
	int ret = 0;

	for (size_t i = 0; !ret && i < s->nheld && s->nsuspects < HEAP_SUSPECTS; i++) {
		struct heap_suspect *to = &s->suspects[s->nsuspects];
		uint32_t thing = s->held[i].example;

		if ((double)heapgraph_retained(h, thing) < SUSPECT_SHARE * (double)reached(s))
			continue;
		ret = heapgraph_descend(h, thing, CHAIN_SHARE, to->chain, HEAP_CHAIN, &to->n, e);
		s->nsuspects++;
	}
	return ret;
}

int heap_summary_make(struct heap_summary *s, const struct heapdump *d, const struct dumpgraph *g,
		      const struct classes *c, struct err *e)
{
	int ret;

	*s = (struct heap_summary){ .dump = d, .graph = g, .classes = c };
	ret = classes_sums(c, &s->types, &s->ntypes, e);
	if (!ret)
		ret = goroutine_groups(&g->heap, &s->groups, &s->ngroups, e);
	if (!ret)
		ret = held_groups(&g->heap, c, s->held, HEAP_TOP, &s->nheld, e);
	return ret ? ret : find_suspects(s, e);
}

void heap_summary_fini(struct heap_summary *s)
{
	free(s->types);
	free(s->groups);
}

/* ---- text ---- */

static void heading(const char *what)
{
	printf("\n%s\n", what);
}

/* Names in it are the dumped program's. */
static void line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void line(const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	tell_clean(text);
	puts(text);
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void put_totals(const struct heap_summary *s, const char *path)
{
	const struct dumpgraph *g = s->graph;
	const struct heapdump_params *p = heapdump_params(s->dump);
	const struct objects *o = &g->heap.objects;
	uint64_t garbage = o->bytes - reached(s);
	char bytes[BYTES_TEXT];

	line("%s: %.*s%s%.*s, format go1.%u", path, (int)p->toolchain.len, p->toolchain.at,
	     p->toolchain.len ? " " : "", (int)p->arch.len, p->arch.at, heapdump_version(s->dump));
	line("%12u %-12s %12s%s", o->n, one_or(o->n, "object", "objects"),
	     bytes_text(o->bytes, bytes), !g->whole ? " before the dump breaks off" : "");
	if (g->whole && g->memstats.heap_objects == o->n && g->memstats.alloc == o->bytes)
		line("%12s              %12s as many as the runtime counted (memstats)", "", "");
	else if (g->whole)
		line("%12llu %-12s %12s by the runtime's count (memstats)",
		     (unsigned long long)g->memstats.heap_objects,
		     one_or(g->memstats.heap_objects, "object", "objects"),
		     bytes_text(g->memstats.alloc, bytes));
	if (garbage)
		line("%12s              %12s of them %s", "", bytes_text(garbage, bytes),
		     g->whole ? "cannot be reached: garbage not collected yet" :
				"are held by what comes after the damage, or garbage");
	if (g->behind)
		line("%12llu %-17s on stacks, named by the dump and not in it: what is only held there "
		     "seems garbage",
		     (unsigned long long)g->behind, one_or(g->behind, "pointer", "pointers"));
}

/* Of a layout alone nobody knows what it is. */
static void put_site(const struct heap_summary *s, enum heap_certainty certainty, uint32_t site,
		     int indent)
{
	if (site && certainty == HEAP_LAYOUT)
		line("%*s  allocated in %s", indent, "", strtab_get(s->graph->heap.names, site));
}

/* How much is known by how: objects and bytes, by enum heap_certainty. */
struct known {
	uint64_t objects[3], bytes[3];
};

static struct known how_known(const struct heap_summary *s)
{
	struct known k = {};

	for (size_t i = 0; i < s->classes->all.n; i++) {
		const struct heap_class *c = &s->classes->all.at[i];

		k.objects[c->certainty] += c->count;
		k.bytes[c->certainty] += i ? c->count * c->size : s->classes->other_bytes;
	}
	return k;
}

static void put_known(const struct heap_summary *s)
{
	static const struct {
		enum heap_certainty certainty;
		const char *text;
	} how[] = {
		{ HEAP_EXACT, "known exactly: by the object, or by an interface or finalizer" },
		{ HEAP_INFERRED, "inferred: by what points to them" },
		{ HEAP_LAYOUT, "not known: only their size, and where their pointers are" },
	};
	struct known k = how_known(s);
	char bytes[BYTES_TEXT];

	if (!s->typing) {
		line("%12s  (--exe BINARY, the program that wrote the dump, adds Go's types)", "");
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(how); i++)
		line("%12llu %12s %6.2f%%  %s", (unsigned long long)k.objects[how[i].certainty],
		     bytes_text(k.bytes[how[i].certainty], bytes),
		     percent(k.bytes[how[i].certainty], s->graph->heap.objects.bytes), how[i].text);
	if (s->typing->dwarf && s->typing->unknown)
		line("%12llu %s that the DWARF does not describe",
		     (unsigned long long)s->typing->unknown,
		     one_or(s->typing->unknown, "interface or object has a type",
			    "interfaces and objects have types"));
	if (s->typing->lost)
		line("%12llu %s not looked through, for want of room",
		     (unsigned long long)s->typing->lost,
		     one_or(s->typing->lost, "object was", "objects were"));
	puts("");
}

static void put_types(const struct heap_summary *s)
{
	uint64_t all = s->graph->heap.objects.bytes;
	char bytes[BYTES_TEXT];

	heading("Types, by bytes");
	put_known(s);
	line("%12s %12s %7s  %s", "objects", "bytes", "share", "type");
	for (size_t i = 0; i < s->ntypes && i < TOP_TYPES && s->types[i].objects; i++) {
		line("%12llu %12s %6.2f%%  %s", (unsigned long long)s->types[i].objects,
		     bytes_text(s->types[i].bytes, bytes), percent(s->types[i].bytes, all),
		     strtab_get(s->graph->heap.names, s->types[i].name));
		put_site(s, s->types[i].certainty, s->types[i].site, 35);
	}
}

static void put_thing(const struct heap_summary *s, uint32_t thing, const char *before)
{
	char what[DESCRIBE_BYTES], bytes[BYTES_TEXT];
	uint64_t retained = heapgraph_retained(&s->graph->heap, thing);

	describe_thing(&s->graph->heap, s->classes, thing, what);
	line("%12s %6.2f%%  %s%s", bytes_text(retained, bytes), percent(retained, reached(s)),
	     before, what);
}

static void put_class_site(const struct heap_summary *s, const struct object *o, int indent)
{
	const struct heap_class *class = &s->classes->all.at[s->classes->of[o->index]];

	put_site(s, class->certainty, class->site, indent);
}

static void put_held(const struct heap_summary *s, const struct held_group *g)
{
	char what[DESCRIBE_BYTES], bytes[BYTES_TEXT];
	struct object o;

	describe_thing(&s->graph->heap, s->classes, g->example, what);
	line("%12s %6.2f%% %9u  %s%s", bytes_text(g->retained, bytes),
	     percent(g->retained, reached(s)), g->count, g->count > 1 ? "such as " : "", what);
	if (heapgraph_object_of(&s->graph->heap, g->example, &o))
		put_class_site(s, &o, 34);
}

static void put_holders(const struct heap_summary *s)
{
	heading("Who holds most: what could be freed if they were gone");
	line("%12s %7s %9s  %s", "retained", "share", "how many", "what");
	for (size_t i = 0; i < s->nheld; i++)
		put_held(s, &s->held[i]);
}

static void put_group(const struct heap_summary *s, const struct goroutine_group *g)
{
	const struct heapgraph *h = &s->graph->heap;
	const struct holder *first = &h->holders.at[g->first];
	const char *why = first->state == 4 ? strtab_get(h->names, first->name) : "";
	char bytes[BYTES_TEXT];

	line("%12u  %s%s%s, %s %s", g->count, describe_state(first->state), *why ? ": " : "", why,
	     one_or(g->count, "retains", "retain"), bytes_text(g->retained, bytes));
	for (uint32_t i = 0; i < g->frames && i < TOP_FRAMES; i++)
		line("%12s      %s", "",
		     strtab_get(h->names, h->holders.at[g->first - g->frames + i].name));
	if (g->frames > TOP_FRAMES)
		line("%12s      ... %u more", "", g->frames - TOP_FRAMES);
}

static void put_groups(const struct heap_summary *s)
{
	uint64_t all = 0;

	for (size_t i = 0; i < s->ngroups; i++)
		all += s->groups[i].count;
	heading("Goroutines");
	line("%12llu  in all, with %zu %s", (unsigned long long)all, s->ngroups,
	     one_or(s->ngroups, "stack", "different stacks"));
	for (size_t i = 0; i < s->ngroups && i < TOP_GROUPS; i++)
		put_group(s, &s->groups[i]);
	if (s->ngroups > TOP_GROUPS)
		line("%12s  ... %zu more %s", "", s->ngroups - TOP_GROUPS,
		     one_or(s->ngroups - TOP_GROUPS, "stack", "stacks"));
}

static void put_suspects(const struct heap_summary *s)
{
	if (s->nsuspects)
		heading("Where much is held together: from the root to the last thing that "
			"retains half of it");
	for (size_t i = 0; i < s->nsuspects; i++)
		for (size_t k = 0; k < s->suspects[i].n; k++)
			put_thing(s, s->suspects[i].chain[k], k ? "  -> " : "");
}

void heap_summary_text(const struct heap_summary *s, const char *path)
{
	put_totals(s, path);
	put_types(s);
	put_holders(s);
	put_suspects(s);
	put_groups(s);
}

/* ---- JSON ---- */

static json_t *json_thing(const struct heap_summary *s, uint32_t thing)
{
	char what[DESCRIBE_BYTES];

	describe_thing(&s->graph->heap, s->classes, thing, what);
	return json_pack("{s:o, s:I}", "what", report_string(what), "retained_bytes",
			 (json_int_t)heapgraph_retained(&s->graph->heap, thing));
}

static json_t *json_types(const struct heap_summary *s)
{
	static const char *const certainty[] = { "layout", "inferred", "exact" };
	json_t *all = json_array();

	for (size_t i = 0; i < s->ntypes; i++)
		if (s->types[i].objects)
			json_array_append_new(
				all, json_pack("{s:o, s:s, s:o, s:I, s:I, s:I, s:I, s:I}", "type",
					       report_string(strtab_get(s->graph->heap.names,
									s->types[i].name)),
					       "known_by", certainty[s->types[i].certainty],
					       "allocated_in",
					       report_maybe(strtab_get(s->graph->heap.names,
								       s->types[i].site)),
					       "objects", (json_int_t)s->types[i].objects, "bytes",
					       (json_int_t)s->types[i].bytes, "exact_objects",
					       (json_int_t)s->types[i].by[HEAP_EXACT],
					       "inferred_objects",
					       (json_int_t)s->types[i].by[HEAP_INFERRED],
					       "layout_objects",
					       (json_int_t)s->types[i].by[HEAP_LAYOUT]));
	return all;
}

static json_t *json_held(const struct heap_summary *s)
{
	json_t *all = json_array();
	char what[DESCRIBE_BYTES];

	for (size_t i = 0; i < s->nheld; i++) {
		describe_thing(&s->graph->heap, s->classes, s->held[i].example, what);
		json_array_append_new(all, json_pack("{s:I, s:I, s:o}", "things",
						     (json_int_t)s->held[i].count, "retained_bytes",
						     (json_int_t)s->held[i].retained, "example",
						     report_string(what)));
	}
	return all;
}

static json_t *json_things(const struct heap_summary *s, const uint32_t *things, size_t n)
{
	json_t *all = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(all, json_thing(s, things[i]));
	return all;
}

static json_t *json_groups(const struct heap_summary *s)
{
	const struct heapgraph *h = &s->graph->heap;
	json_t *all = json_array();

	for (size_t i = 0; i < s->ngroups; i++) {
		const struct goroutine_group *g = &s->groups[i];
		const struct holder *first = &h->holders.at[g->first];
		json_t *stack = json_array();

		for (uint32_t k = g->first - g->frames; k < g->first; k++)
			json_array_append_new(stack,
					      report_string(
						      strtab_get(h->names, h->holders.at[k].name)));
		json_array_append_new(
			all, json_pack("{s:i, s:s, s:o, s:I, s:o}", "goroutines", (int)g->count,
				       "state", describe_state(first->state), "reason",
				       report_maybe(strtab_get(h->names, first->name)),
				       "retained_bytes", (json_int_t)g->retained, "stack", stack));
	}
	return all;
}

static json_t *json_suspects(const struct heap_summary *s)
{
	json_t *all = json_array();

	for (size_t i = 0; i < s->nsuspects; i++)
		json_array_append_new(all, json_things(s, s->suspects[i].chain, s->suspects[i].n));
	return all;
}

static json_t *json_known(const struct heap_summary *s)
{
	struct known k = how_known(s);
	json_t *typing = json_null();

	if (s->typing)
		typing = json_pack("{s:b, s:b, s:I, s:I, s:I}", "checked", !s->typing->unchecked,
				   "dwarf", s->typing->dwarf, "unknown_types",
				   (json_int_t)s->typing->unknown, "lost_objects",
				   (json_int_t)s->typing->lost, "cut_types",
				   (json_int_t)s->typing->cut);
	return json_pack("{s:{s:I, s:I}, s:{s:I, s:I}, s:{s:I, s:I}, s:o}", "exact", "objects",
			 (json_int_t)k.objects[HEAP_EXACT], "bytes",
			 (json_int_t)k.bytes[HEAP_EXACT], "inferred", "objects",
			 (json_int_t)k.objects[HEAP_INFERRED], "bytes",
			 (json_int_t)k.bytes[HEAP_INFERRED], "layout", "objects",
			 (json_int_t)k.objects[HEAP_LAYOUT], "bytes",
			 (json_int_t)k.bytes[HEAP_LAYOUT], "exe", typing);
}

static json_t *json_text(const struct heapdump_text *t)
{
	char text[256];

	snprintf(text, sizeof(text), "%.*s", (int)t->len, t->at);
	return report_maybe(text);
}

int heap_summary_json(const struct heap_summary *s, const char *path, int status)
{
	const struct dumpgraph *g = s->graph;
	const struct heapdump_params *p = heapdump_params(s->dump);
	json_t *memstats = g->whole ? json_pack("{s:I, s:I}", "objects",
						(json_int_t)g->memstats.heap_objects, "bytes",
						(json_int_t)g->memstats.alloc) :
				      json_null();

	return report_print(
		json_pack(
			"{s:o, s:o, s:o, s:i, s:b, s:o, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, "
			"s:o, s:I}",
			"file", report_string(path), "go", json_text(&p->toolchain), "arch",
			json_text(&p->arch), "format", (int)heapdump_version(s->dump), "whole",
			g->whole, "damage", report_maybe(g->damage.msg), "objects",
			(json_int_t)g->heap.objects.n, "bytes", (json_int_t)g->heap.objects.bytes,
			"reached_bytes", (json_int_t)reached(s), "stack_pointers_left_out",
			(json_int_t)g->behind, "memstats", memstats, "known", json_known(s),
			"types", json_types(s), "holders", json_held(s), "chains", json_suspects(s),
			"goroutines", json_groups(s), "bytes_behind_end", (json_int_t)g->left),
		status);
}
