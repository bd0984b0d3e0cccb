/* user/cli/heapdump/heap_path.c - fields along a path, and how it is shown. */
#include "cli/heapdump/heap_path.h"

#include "cli/heapdump/dot.h"
#include "cli/report.h"
#include "cli/tell.h"
#include "heapgraph/describe.h"
#include "heapgraph/holdings.h"

enum { FIELD_BYTES = 256 };

/* ---- finding ---- */

static void choose_steps(struct heap_path_view *v)
{
	const struct heap_things *t = &v->path->things;
	size_t n = t->n ? t->n - 1 : 0, gap = 0;

	v->nsteps = n;
	v->nshown = n < ARRAY_LEN(v->steps) ? n : ARRAY_LEN(v->steps);
	v->before = v->nshown < n ? HEAP_PATH_SHOWN : v->nshown;
	for (size_t i = 0; i < v->nshown; i++) {
		if (i == v->before)
			gap = n - v->nshown;
		v->steps[i] = (struct heap_step){
			.thing = t->at[1 + gap + i],
			.next = gap + i + 1 < n ? t->at[2 + gap + i] : GRAPH_NONE,
			.offset = UINT64_MAX,
		};
	}
}

static void other(struct heap_path_view *v, uint32_t thing, uint64_t offset)
{
	uint32_t last = v->nshown > 1 ? v->steps[v->nshown - 2].thing : GRAPH_NONE;

	if (thing == last)
		return;
	if (v->nothers < HEAP_PATH_AROUND)
		v->others[v->nothers] = (struct heap_step){ thing, GRAPH_NONE, offset };
	v->nothers++;
}

static int pointer(void *arg, uint32_t thing, uint64_t offset, uint64_t addr, struct err *e)
{
	struct heap_path_view *v = arg;
	const struct heapgraph *h = &v->graph->heap;
	struct object to;

	(void)e;
	for (size_t i = 0; i < v->nshown; i++) {
		struct heap_step *s = &v->steps[i];

		if (s->thing == thing && s->offset == UINT64_MAX &&
		    objects_find(&h->objects, addr, &to) && heapgraph_thing_of(h, &to) == s->next)
			s->offset = offset;
	}
	if (addr - v->path->object.addr < v->path->object.size)
		other(v, thing, offset);
	return 0;
}

int heap_path_view(struct heap_path_view *v, struct dumpgraph *g, const struct classes *c,
		   struct heapdump *d, struct err *e)
{
	const struct heap_path *path = g->heap.path;
	int ret;

	*v = (struct heap_path_view){ .graph = g, .classes = c, .path = path };
	if (!path->found)
		return err_set(e, -ENOENT, "no object lies at 0x%llx",
			       (unsigned long long)path->addr);
	choose_steps(v);
	ret = dumpgraph_pointers(g, d, pointer, v, e);
	if (!ret)
		v->nheld = heapgraph_heaviest(&g->heap, heapgraph_thing_of(&g->heap, &path->object),
					      v->held, HEAP_PATH_AROUND);
	return ret;
}

/* ---- words ---- */

/* Where in a thing the pointer is: "main.node.next", "+8"; of frames nothing is known. */
static void field_of(const struct heap_path_view *v, const struct heap_step *s,
		     char to[FIELD_BYTES])
{
	const struct heapgraph *h = &v->graph->heap;
	const struct holder *r = heapgraph_holder_of(h, s->thing);
	struct object o;

	*to = 0;
	if (s->offset != UINT64_MAX && r)
		describe_part(h, r, s->offset, to, FIELD_BYTES);
	else if (s->offset != UINT64_MAX && heapgraph_object_of(h, s->thing, &o))
		holdings_field(h, v->classes, v->classes->of[o.index], s->offset, to, FIELD_BYTES);
}

static void thing_of(const struct heap_path_view *v, uint32_t thing, char to[DESCRIBE_BYTES])
{
	describe_thing(&v->graph->heap, v->classes, thing, to);
}

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

/* ---- text ---- */

static void put_step(const struct heap_path_view *v, size_t i)
{
	const struct heapgraph *h = &v->graph->heap;
	char what[DESCRIBE_BYTES], field[FIELD_BYTES] = "", bytes[BYTES_TEXT];

	if (i && i != v->before)
		field_of(v, &v->steps[i - 1], field);
	thing_of(v, v->steps[i].thing, what);
	line("%12s  %s%s%s%s", bytes_text(heapgraph_retained(h, v->steps[i].thing), bytes),
	     i ? "-> " : "", field, *field ? " -> " : "", what);
}

static void put_others(const struct heap_path_view *v)
{
	char what[DESCRIBE_BYTES], field[FIELD_BYTES];

	if (!v->nothers)
		return;
	putchar('\n');
	line("Other pointers to it: %llu%s", (unsigned long long)v->nothers,
	     v->nothers > HEAP_PATH_AROUND ? ", such as" : "");
	for (size_t i = 0; i < v->nothers && i < HEAP_PATH_AROUND; i++) {
		thing_of(v, v->others[i].thing, what);
		field_of(v, &v->others[i], field);
		line("%12s  %s%s%s", "", what, *field ? ", " : "", field);
	}
}

void heap_path_text(const struct heap_path_view *v)
{
	const struct object *o = &v->path->object;
	uint32_t thing = heapgraph_thing_of(&v->graph->heap, o);
	char what[DESCRIBE_BYTES], bytes[BYTES_TEXT];

	thing_of(v, thing, what);
	line("%s", what);
	line("%12s  its size", bytes_text(o->size, bytes));
	if (v->path->addr != o->addr)
		line("%12llu  %s into it is 0x%llx", (unsigned long long)(v->path->addr - o->addr),
		     one_or(v->path->addr - o->addr, "byte", "bytes"),
		     (unsigned long long)v->path->addr);
	if (!v->nsteps) {
		line("No root leads to it: %s", v->graph->whole ?
							"it is garbage that was not collected yet" :
							"one may come after the damage");
		put_others(v);
		return;
	}
	putchar('\n');
	line("A shortest path from a root, of %zu %s, and what each retains", v->nsteps,
	     one_or(v->nsteps, "step", "steps"));
	for (size_t i = 0; i < v->nshown; i++) {
		if (i == v->before)
			line("%12s  ... %zu more %s", "", v->nsteps - v->nshown,
			     one_or(v->nsteps - v->nshown, "step", "steps"));
		put_step(v, i);
	}
	put_others(v);
}

/* ---- JSON ---- */

static json_t *json_step(const struct heap_path_view *v, const struct heap_step *s)
{
	char what[DESCRIBE_BYTES], field[FIELD_BYTES];

	thing_of(v, s->thing, what);
	field_of(v, s, field);
	return json_pack("{s:o, s:I, s:o}", "what", report_string(what), "retained_bytes",
			 (json_int_t)heapgraph_retained(&v->graph->heap, s->thing), "points_from",
			 report_maybe(field));
}

int heap_path_json(const struct heap_path_view *v, const char *file, int status)
{
	json_t *before = json_array(), *after = json_array(), *others = json_array();
	char what[DESCRIBE_BYTES];

	thing_of(v, heapgraph_thing_of(&v->graph->heap, &v->path->object), what);
	for (size_t i = 0; i < v->nshown; i++)
		json_array_append_new(i < v->before ? before : after, json_step(v, &v->steps[i]));
	for (size_t i = 0; i < v->nothers && i < HEAP_PATH_AROUND; i++)
		json_array_append_new(others, json_step(v, &v->others[i]));
	return report_print(json_pack("{s:o, s:b, s:o, s:I, s:b, s:I, s:o, s:I, s:o, s:I, s:o}",
				      "file", report_string(file), "whole", v->graph->whole,
				      "object", report_string(what), "bytes",
				      (json_int_t)v->path->object.size, "reached", v->nsteps > 0,
				      "steps", (json_int_t)v->nsteps, "path", before, "left_out",
				      (json_int_t)(v->nsteps - v->nshown), "path_end", after,
				      "other_pointers", (json_int_t)v->nothers, "others", others),
			    status);
}

/* ---- a graph ---- */

static void dot_thing(const struct heap_path_view *v, uint32_t thing, const char *attributes,
		      FILE *f)
{
	char what[DESCRIBE_BYTES], label[DESCRIBE_BYTES + 64], bytes[BYTES_TEXT];

	thing_of(v, thing, what);
	snprintf(label, sizeof(label), "%s\nretains %s\n", what,
		 bytes_text(heapgraph_retained(&v->graph->heap, thing), bytes));
	dot_node(f, thing, label, attributes);
}

static void dot_path(const struct heap_path_view *v, FILE *f)
{
	char field[FIELD_BYTES], gap[64];

	for (size_t i = 0; i < v->nshown; i++) {
		bool last = i + 1 == v->nshown, jump = i + 1 == v->before && !last;

		dot_thing(v, v->steps[i].thing,
			  last ? "style=filled, fillcolor=lightyellow, penwidth=2" : "penwidth=2",
			  f);
		if (last)
			break;
		field_of(v, &v->steps[i], field);
		snprintf(gap, sizeof(gap), "%zu more %s", v->nsteps - v->nshown,
			 one_or(v->nsteps - v->nshown, "step", "steps"));
		dot_edge(f, v->steps[i].thing, v->steps[i + 1].thing, jump ? gap : field,
			 jump ? "style=dashed" : "penwidth=2");
	}
}

static bool shown(const struct heap_path_view *v, uint32_t thing)
{
	for (size_t i = 0; i < v->nshown; i++)
		if (v->steps[i].thing == thing)
			return true;
	return false;
}

int heap_path_dot(const struct heap_path_view *v, FILE *f, struct err *e)
{
	uint32_t end = heapgraph_thing_of(&v->graph->heap, &v->path->object);
	char field[FIELD_BYTES];

	(void)e;
	dot_begin(f, "A shortest path from a root; dotted: what it retains, the largest parts");
	dot_path(v, f);
	if (!v->nsteps)
		dot_thing(v, end, "style=filled, fillcolor=lightyellow", f);
	for (size_t i = 0; i < v->nothers && i < HEAP_PATH_AROUND; i++) {
		if (!shown(v, v->others[i].thing))
			dot_thing(v, v->others[i].thing, "", f);
		field_of(v, &v->others[i], field);
		dot_edge(f, v->others[i].thing, end, field, "");
	}
	for (size_t i = 0; i < v->nheld; i++) {
		if (!shown(v, v->held[i]))
			dot_thing(v, v->held[i], "style=dotted", f);
		dot_edge(f, end, v->held[i], "", "style=dotted");
	}
	dot_end(f);
	return 0;
}
