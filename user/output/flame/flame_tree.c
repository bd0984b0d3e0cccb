/* user/output/flame/flame_tree.c - one tree of all samples, each frame, label set and string stored once. */
#include "output/flame/flame_tree.h"

#include <inttypes.h>

#define NONE UINT32_MAX

struct maker {
	struct flame_tree *t;
	const struct prof *p;
	/* by the profile's string id: the id in t->strings plus 1; 0: not asked for yet */
	uint32_t *string_of;
	size_t *first;	      /* by location: where its frames begin in frames */
	VEC(uint32_t) frames; /* of all locations, outermost first */
	VEC(uint32_t) labels; /* of one sample */
};

static int no_memory(struct err *e)
{
	return err_set(e, -ENOMEM, "no memory for the flame graph");
}

static int64_t add(int64_t a, int64_t b)
{
	int64_t sum;

	/* the sum saturates; neither is negative */
	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* ---- strings, functions, frames ---- */

static uint32_t string(struct maker *m, uint32_t id)
{
	if (!m->string_of[id]) {
		uint32_t mine = strtab_puts(m->t->strings, strtab_get(prof_strings(m->p), id));

		if (mine == NONE)
			return NONE;
		m->string_of[id] = mine + 1;
	}
	return m->string_of[id] - 1;
}

static uint32_t frame_of_line(struct maker *m, uint32_t func, int64_t line)
{
	struct prof_function_view v = prof_function_at(m->p, func - 1);
	struct flame_func fn = { string(m, v.name), string(m, v.file) };
	struct flame_frame f = { .line = line };

	if (fn.name == NONE || fn.file == NONE)
		return NONE;
	f.func = strtab_put(m->t->funcs, &fn, sizeof(fn));
	return f.func == NONE ? NONE : strtab_put(m->t->frames, &f, sizeof(f));
}

/* "[libc.so.6]" for a file, "[vdso]" as it is, "[unknown]" where there is none. */
static uint32_t name_of_file(struct maker *m, const char *path)
{
	const char *slash = strrchr(path, '/');
	CLEANUP(freep) char *name = NULL;

	if (*path == '[')
		return strtab_puts(m->t->strings, path);
	if (asprintf(&name, "[%s]", !*path ? "unknown" : slash ? slash + 1 : path) < 0)
		return NONE;
	return strtab_puts(m->t->strings, name);
}

static uint32_t frame_of_address(struct maker *m, const struct prof_location_view *l)
{
	const char *path = "";
	struct flame_func fn;
	struct flame_frame f = { 0 };
	char hex[20];

	if (l->mapping)
		path = strtab_get(prof_strings(m->p),
				  prof_mapping_at(m->p, l->mapping - 1).filename);
	snprintf(hex, sizeof(hex), "0x%" PRIx64, l->address);
	fn.name = name_of_file(m, path);
	fn.file = strtab_puts(m->t->strings, path);
	f.address = strtab_puts(m->t->strings, hex);
	if (fn.name == NONE || fn.file == NONE || f.address == NONE)
		return NONE;
	f.func = strtab_put(m->t->funcs, &fn, sizeof(fn));
	return f.func == NONE ? NONE : strtab_put(m->t->frames, &f, sizeof(f));
}

static uint32_t frame_of_nothing(struct maker *m)
{
	struct flame_func fn = { strtab_puts(m->t->strings, "[no stack]"), 0 };
	struct flame_frame f = { 0 };

	if (fn.name == NONE)
		return NONE;
	f.func = strtab_put(m->t->funcs, &fn, sizeof(fn));
	return f.func == NONE ? NONE : strtab_put(m->t->frames, &f, sizeof(f));
}

static bool push_frame(struct maker *m, uint32_t frame)
{
	uint32_t *at = frame == NONE ? NULL : vec_add(&m->frames, SIZE_MAX);

	if (at)
		*at = frame;
	return at != NULL;
}

static bool has_name(const struct maker *m, uint32_t func)
{
	return *strtab_get(prof_strings(m->p), prof_function_at(m->p, func - 1).name);
}

static bool frames_of_location(struct maker *m, size_t i)
{
	struct prof_location_view l = prof_location_at(m->p, i);

	m->first[i] = m->frames.n;
	if (!l.nlines)
		return push_frame(m, frame_of_address(m, &l));
	for (size_t k = l.nlines; k-- > 0;)
		if (!push_frame(m, has_name(m, l.func[k]) ? frame_of_line(m, l.func[k], l.line[k]) :
							    frame_of_address(m, &l)))
			return false;
	return true;
}

/* ---- labels ---- */

static uint32_t label_value(struct maker *m, const struct prof_label_view *l)
{
	const char *unit = l->num_unit ? strtab_get(prof_strings(m->p), l->num_unit) : "";
	CLEANUP(freep) char *text = NULL;

	if (l->str != UINT32_MAX)
		return string(m, l->str);
	if (asprintf(&text, "%" PRId64 "%s%s", l->num, *unit ? " " : "", unit) < 0)
		return NONE;
	return strtab_puts(m->t->strings, text);
}

/*
 * The id of a sample's label set; the profile keeps labels in one order, so equal sets are equal
 * bytes.
 */
static uint32_t labels_of(struct maker *m, const struct prof_sample_view *s)
{
	m->labels.n = 0;
	for (size_t i = 0; i < s->nlabels; i++) {
		uint32_t pair[2] = { string(m, s->labels[i].key), label_value(m, &s->labels[i]) };

		for (size_t k = 0; k < 2; k++) {
			uint32_t *at = pair[k] == NONE ? NULL : vec_add(&m->labels, SIZE_MAX);

			if (!at)
				return NONE;
			*at = pair[k];
		}
	}
	return m->labels.n ?
		       strtab_put(m->t->labels, m->labels.at, m->labels.n * sizeof(*m->labels.at)) :
		       0;
}

/* ---- the tree ---- */

static bool child(struct flame_tree *t, uint32_t *node, uint32_t frame)
{
	uint64_t key = (uint64_t)*node << 32 | frame, have;
	struct flame_node *n;
	uint32_t id = (uint32_t)t->nodes.n;

	if (map_get(&t->children, key, &have)) {
		*node = (uint32_t)have;
		return true;
	}
	n = map_put(&t->children, key, id) ? vec_add(&t->nodes, NONE) : NULL;
	if (!n)
		return false;
	n->frame = frame;
	n->parent = *node;
	n->next = t->nodes.at[*node].first;
	t->nodes.at[*node].first = id;
	*node = id;
	return true;
}

static struct flame_self *self_of(struct flame_tree *t, uint32_t node, uint32_t labels)
{
	uint64_t key = (uint64_t)node << 32 | labels, at;
	struct flame_self *s;

	if (map_get(&t->selves, key, &at))
		return &t->self.at[at];
	s = map_put(&t->selves, key, t->self.n) ? vec_add(&t->self, SIZE_MAX) : NULL;
	if (s) {
		s->node = node;
		s->labels = labels;
	}
	return s;
}

/* False when nothing in it can be drawn. */
static bool count_values(struct flame_tree *t, const int64_t *values, size_t ntypes)
{
	bool some = false;

	for (size_t i = 0; i < ntypes; i++) {
		t->negative[i] += values[i] < 0;
		some |= values[i] > 0;
	}
	return some;
}

static bool add_sample(struct maker *m, const struct prof_sample_view *s, size_t ntypes)
{
	uint32_t node = 0, labels;
	struct flame_self *self;
	bool ok = true;

	if (!count_values(m->t, s->values, ntypes))
		return true;
	for (size_t k = s->nlocs; ok && k-- > 0;) {
		size_t i = s->locs[k] - 1, end = m->first[i + 1];

		for (size_t at = m->first[i]; ok && at < end; at++)
			ok = child(m->t, &node, m->frames.at[at]);
	}
	if (!s->nlocs) {
		uint32_t frame = frame_of_nothing(m);

		ok = frame != NONE && child(m->t, &node, frame);
	}
	labels = ok ? labels_of(m, s) : NONE;
	self = labels == NONE ? NULL : self_of(m->t, node, labels);
	for (size_t i = 0; self && i < ntypes; i++) {
		if (s->values[i] <= 0)
			continue;
		self->values[i] = add(self->values[i], s->values[i]);
		m->t->total[i] = add(m->t->total[i], s->values[i]);
	}
	return self != NULL;
}

uint32_t flame_tree_next(const struct flame_tree *t, uint32_t node, unsigned *up)
{
	const struct flame_node *n = &t->nodes.at[node];

	*up = 0;
	if (n->first)
		return n->first;
	while (node && !t->nodes.at[node].next) {
		node = t->nodes.at[node].parent;
		++*up;
	}
	++*up;
	return node ? t->nodes.at[node].next : 0;
}

static int by_order(const void *pa, const void *pb, void *arg)
{
	const struct flame_self *a = pa, *b = pb;
	const struct flame_tree *t = arg;
	uint32_t x = t->nodes.at[a->node].order, y = t->nodes.at[b->node].order;

	if (x != y)
		return x < y ? -1 : 1;
	return a->labels < b->labels ? -1 : a->labels > b->labels;
}

static void put_in_order(struct flame_tree *t)
{
	uint32_t order = 0;
	unsigned up;

	for (uint32_t n = 0; (n = flame_tree_next(t, n, &up));)
		t->nodes.at[n].order = order++;
	if (t->self.n)
		qsort_r(t->self.at, t->self.n, sizeof(*t->self.at), by_order, t);
}

/* ---- life ---- */

static void maker_fini(struct maker *m)
{
	free(m->string_of);
	free(m->first);
	vec_fini(&m->frames);
	vec_fini(&m->labels);
}

static int start(struct maker *m, struct err *e)
{
	size_t nstrings = strtab_count(prof_strings(m->p)), nlocs = prof_nlocations(m->p);
	struct strtab **tabs[] = { &m->t->strings, &m->t->funcs, &m->t->frames, &m->t->labels };
	int r = 0;

	for (size_t i = 0; !r && i < ARRAY_LEN(tabs); i++)
		r = strtab_new(tabs[i], e);
	if (r)
		return r;
	m->string_of = calloc(nstrings + 1, sizeof(*m->string_of));
	m->first = calloc(nlocs + 1, sizeof(*m->first));
	if (!m->string_of || !m->first || !vec_add(&m->t->nodes, NONE))
		return no_memory(e);
	for (size_t i = 0; i < nlocs; i++)
		if (!frames_of_location(m, i))
			return no_memory(e);
	m->first[nlocs] = m->frames.n;
	return 0;
}

int flame_tree_make(struct flame_tree *t, const struct prof *p, struct err *e)
{
	CLEANUP(maker_fini) struct maker m = { .t = t, .p = p };
	size_t ntypes = prof_header(p).ntypes;
	int r = start(&m, e);

	for (size_t i = 0; !r && ntypes && i < prof_nsamples(p); i++) {
		struct prof_sample_view s = prof_sample_at(p, i);

		if (!add_sample(&m, &s, ntypes))
			r = no_memory(e);
	}
	if (r)
		return r;
	put_in_order(t);
	return 0;
}

void flame_tree_fini(struct flame_tree *t)
{
	strtab_free(t->strings);
	strtab_free(t->funcs);
	strtab_free(t->frames);
	strtab_free(t->labels);
	vec_fini(&t->nodes);
	vec_fini(&t->self);
	map_fini(&t->children);
	map_fini(&t->selves);
}
