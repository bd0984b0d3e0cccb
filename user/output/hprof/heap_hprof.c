/* user/output/hprof/heap_hprof.c - roots, threads and objects, in the order that readers want. */
#include "output/hprof/heap_hprof.h"

#include <arpa/inet.h>

#include "base/cleanup.h"
#include "heapgraph/describe.h"
#include "output/hprof/heap_hprof_priv.h"

enum { NO_FRAME = -1 };
/* Before the bytes of an array. */
enum { ARRAY_BYTES = 1 + 8 + 2 * 4 + 1 };

/* ---- beginning ---- */

/*
 * Identifiers are unique among objects, classes, strings and frames, and readers take them as signed.
 * A Go heap begins far above all that are needed here, except on 32 bits and WebAssembly.
 */
static int choose_base(struct heap_hprof *x, struct err *e)
{
	const struct objects *o = &x->h->objects;
	uint64_t all = (ID_KINDS + 1ull) * ID_EACH;

	if (!o->n || o->low >= ID_EACH + all)
		x->base = ID_EACH;
	else if (o->end < (1ull << 62))
		x->base = (o->end + ID_EACH) & ~(ID_EACH - 1);
	else
		return err_set(e, -E2BIG, "objects from 0x%llx to 0x%llx leave no identifiers",
			       (unsigned long long)o->low, (unsigned long long)o->end);
	return 0;
}

/* Does a class tell where all the pointers of its objects are? Layouts do, if there was room. */
static bool is_unsure(const struct classes *c, uint32_t class)
{
	const struct heap_class *k = &c->all.at[class];

	return !class || k->certainty != HEAP_LAYOUT || k->nfields >= LAYOUT_POINTERS_MAX ||
	       (c->untold && !k->nfields);
}

static int prepare(struct heap_hprof *x, struct err *e)
{
	size_t n = x->c->all.n;
	int ret = strtab_new(&x->strings, e);

	if (ret)
		return ret;
	x->number = calloc(n, sizeof(*x->number));
	x->unsure = calloc(n, sizeof(*x->unsure));
	x->fields = malloc(HPROF_FIELDS_MAX * sizeof(*x->fields));
	if (!x->number || !x->unsure || !x->fields)
		return err_set(e, -ENOMEM, "no memory for %zu classes", n);
	for (uint32_t i = 0; i < n; i++)
		x->unsure[i] = x->c->all.at[i].count && is_unsure(x->c, i);
	for (size_t i = 0; i < x->h->holders.n; i++)
		x->nthreads += x->h->holders.at[i].kind == HOLDER_GOROUTINE;
	x->nclasses = JAVA_END - 1;
	return choose_base(x, e);
}

int heap_hprof_new(FILE *f, const struct heapgraph *h, const struct classes *c,
		   const struct heap_hprof_opts *opts, struct heap_hprof **out, struct err *e)
{
	CLEANUP(heap_hprof_freep) struct heap_hprof *x = calloc(1, sizeof(*x));
	int ret;

	if (!x)
		return err_set(e, -ENOMEM, "no memory");
	x->h = h;
	x->c = c;
	x->opts = *opts;
	ret = hprof_new(f, opts->time_ms, &x->w, e);
	if (!ret)
		ret = prepare(x, e);
	if (ret)
		return ret;
	/* The table has had it from the beginning. */
	heap_hprof_name(x, hprof_id(x, ID_STRING, 0), "");
	*out = TAKE(x);
	return 0;
}

void heap_hprof_free(struct heap_hprof *x)
{
	hprof_freep(&x->w);
	if (x->of) {
		free(x);
		return;
	}
	strtab_freep(&x->strings);
	free(x->text);
	free(x->number);
	free(x->unsure);
	free(x->fields);
	vec_fini(&x->variants);
	vec_fini(&x->stack);
	for (size_t i = 0; i < ARRAY_LEN(x->statics); i++)
		vec_fini(&x->statics[i].all);
	map_fini(&x->variant_of);
	map_fini(&x->packages);
	map_fini(&x->frames);
	map_fini(&x->sites);
	free(x);
}

/* ---- looks ---- */

bool heap_hprof_wants_looks(const struct heap_hprof *x)
{
	for (size_t i = 0; i < x->c->all.n; i++)
		if (x->unsure[i])
			return true;
	return false;
}

bool heap_hprof_must_look(const struct heap_hprof *x, const struct object *o)
{
	return x->unsure[x->c->of[o->index]];
}

static void begin_fields(struct heap_hprof *x, const struct heap_class *k)
{
	x->object.field = x->object.end = NULL;
	if (!k->nfields)
		return;
	x->object.field = x->c->fields.at + k->first;
	x->object.end = x->object.field + k->nfields;
}

void heap_hprof_look(struct heap_hprof *x, const struct object *o)
{
	const struct heap_class *k = &x->c->all.at[x->c->of[o->index]];

	begin_fields(x, k);
	x->object.n = 0;
	x->object.misses = !x->c->of[o->index] || k->size != o->size;
	x->looked = *o;
}

/* Passes the fields before this offset, and the one there. */
static bool at_field(struct heap_hprof *x, uint64_t offset)
{
	while (x->object.field < x->object.end && x->object.field->offset < offset)
		x->object.field++;
	if (x->object.field == x->object.end || x->object.field->offset != offset)
		return false;
	x->object.field++;
	return true;
}

void heap_hprof_look_pointer(struct heap_hprof *x, uint64_t offset)
{
	x->object.n++;
	if (!x->object.misses && !at_field(x, offset))
		x->object.misses = true;
}

/* After the beginning all classes are known, and there is nothing to add. */
int heap_hprof_looked(struct heap_hprof *x, struct err *e)
{
	bool add = x->object.misses && !x->heap;

	return add ? heap_hprof_add_variant(x, &x->looked, e) : 0;
}

/* ---- roots ---- */

static uint64_t class_id(const struct heap_hprof *x, uint32_t number)
{
	return hprof_id(x, ID_CLASS, number);
}

static void root_classes(struct heap_hprof *x)
{
	for (uint32_t i = JAVA_OBJECT; i < JAVA_END; i++)
		hprof_root_sticky(x->w, class_id(x, i));
	for (size_t k = 0; k < ARRAY_LEN(x->statics); k++)
		for (uint32_t i = 0; i < x->statics[k].classes; i++)
			hprof_root_sticky(x->w, class_id(x, x->statics[k].number + i));
}

int heap_hprof_roots(struct heap_hprof *x, struct err *e)
{
	int ret = heap_hprof_load_classes(x, e);

	if (!ret)
		ret = heap_hprof_load_threads(x, e);
	if (ret)
		return ret;
	x->heap = true;
	hprof_heap(x->w);
	root_classes(x);
	for (uint32_t i = 1; i <= x->nthreads; i++)
		hprof_root_thread(x->w, hprof_id(x, ID_THREAD, i), i, i);
	return hprof_check(x->w, e);
}

/* Counts goroutines on the way. */
static void go_to(struct heap_hprof *x, uint32_t holder)
{
	const struct holder *all = x->h->holders.at;

	for (; x->at.holder < holder; x->at.holder++) {
		const struct holder *next = &all[x->at.holder + 1];

		if (all[x->at.holder].kind == HOLDER_GOROUTINE)
			x->at.thread++;
		if (next->kind == HOLDER_FRAME &&
		    (all[x->at.holder].kind != HOLDER_FRAME || all[x->at.holder].up != next->up))
			x->at.frame = x->at.holder + 1;
	}
}

/* What a frame, or a goroutine itself, points to. */
static void root_local(struct heap_hprof *x, uint32_t holder, uint64_t object)
{
	const struct holder *r = &x->h->holders.at[holder];
	uint32_t frame = (uint32_t)NO_FRAME;

	go_to(x, holder);
	if (r->kind == HOLDER_FRAME && r->up >= x->h->holders.n) {
		hprof_root_unknown(x->w, object);
		return;
	}
	if (r->kind == HOLDER_FRAME && holder - x->at.frame < STACK_FRAMES_MAX)
		frame = holder - x->at.frame;
	hprof_root_frame(x->w, object, x->at.thread + 1, frame);
}

/* ---- static fields ---- */

static void dump_statics(struct heap_hprof *x, struct statics *s)
{
	hprof_class(x->w, &(struct hprof_class){ .id = class_id(x, s->number++),
						 .super = class_id(x, JAVA_OBJECT),
						 .statics = s->all.at,
						 .nstatics = s->all.n });
	s->classes--;
	s->all.n = 0;
}

static int add_static(struct heap_hprof *x, uint32_t holder, uint64_t object, struct err *e)
{
	struct statics *s = &x->statics[x->h->holders.at[holder].kind];
	struct hprof_static *to;

	if (!s->classes)
		return err_set(e, -ESTALE, "the heap changed while it was read");
	if (s->all.n == HPROF_FIELDS_MAX)
		dump_statics(x, s);
	to = s->classes ? vec_add(&s->all, HPROF_FIELDS_MAX) : NULL;
	if (!to)
		return err_set(e, -ENOMEM, "no memory for roots");
	*to = (struct hprof_static){ hprof_id(x, ID_STATIC_NAME, x->told++), object };
	return 0;
}

/* Before the heap: strings come first. */
static void name_static(struct heap_hprof *x, uint32_t holder, uint64_t offset)
{
	const struct holder *r = &x->h->holders.at[holder];
	const char *name = strtab_get(x->h->names, r->name);
	char text[DESCRIBE_BYTES];

	describe_part(x->h, r, offset, text, sizeof(text));
	if (!*text && *name)
		snprintf(text, sizeof(text), "%s", name);
	else if (!*text)
		snprintf(text, sizeof(text), "0x%llx", (unsigned long long)r->addr);
	heap_hprof_name(x, hprof_id(x, ID_STATIC_NAME, x->named++), text);
	x->statics[r->kind].n++;
}

int heap_hprof_held(struct heap_hprof *x, uint32_t holder, uint64_t offset, uint64_t addr,
		    struct err *e)
{
	enum holder_kind kind;
	bool local;
	struct object o;

	if (holder >= x->h->holders.n)
		return err_set(e, -ESTALE, "the heap changed while it was read");
	kind = x->h->holders.at[holder].kind;
	local = kind == HOLDER_FRAME || kind == HOLDER_GOROUTINE;
	if (local == (x->classes || !x->heap) || !addr || !objects_find(&x->h->objects, addr, &o) ||
	    !o.addr)
		return 0;
	if (!x->heap) {
		name_static(x, holder, offset);
		return hprof_check(x->w, e);
	}
	if (!local)
		return add_static(x, holder, o.addr, e);
	root_local(x, holder, o.addr);
	return hprof_check(x->w, e);
}

int heap_hprof_classes(struct heap_hprof *x, struct err *e)
{
	x->classes = true;
	heap_hprof_dump_classes(x);
	return hprof_check(x->w, e);
}

/* ---- threads ---- */

static void dump_thread_name(struct heap_hprof *x, uint32_t thread, const char *name)
{
	uint32_t n = (uint32_t)strlen(name);

	hprof_array(x->w, hprof_id(x, ID_THREAD_CHARS, thread), 0, HPROF_CHAR, n);
	for (uint32_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)name[i];
		uint16_t v = htons(c >= ' ' && c < 0x7f ? c : '_');

		hprof_value_bytes(x->w, &v, sizeof(v));
	}
}

static void dump_thread(struct heap_hprof *x, uint32_t holder, uint32_t thread)
{
	char name[DESCRIBE_BYTES];

	describe_thing(x->h, x->c, heapgraph_thing_of_holder(x->h, holder), name);
	hprof_instance(x->w, hprof_id(x, ID_THREAD, thread), thread, class_id(x, JAVA_THREAD), 8);
	hprof_value_object(x->w, hprof_id(x, ID_THREAD_NAME, thread));
	hprof_instance(x->w, hprof_id(x, ID_THREAD_NAME, thread), 0, class_id(x, JAVA_STRING), 8);
	hprof_value_object(x->w, hprof_id(x, ID_THREAD_CHARS, thread));
	dump_thread_name(x, thread, name);
}

int heap_hprof_objects(struct heap_hprof *x, struct err *e)
{
	uint32_t thread = 0;

	for (size_t k = 0; k < ARRAY_LEN(x->statics); k++)
		while (x->statics[k].classes)
			dump_statics(x, &x->statics[k]);
	for (uint32_t i = 0; i < x->h->holders.n; i++)
		if (x->h->holders.at[i].kind == HOLDER_GOROUTINE)
			dump_thread(x, i, ++thread);
	return hprof_check(x->w, e);
}

/* ---- objects ---- */

int heap_hprof_check(const struct heap_hprof *x, struct err *e)
{
	return hprof_check(x->w, e);
}

static uint32_t trace_of(const struct heap_hprof *x, uint64_t site)
{
	uint64_t serial = 0;

	if (site)
		map_get(&x->sites, site, &serial);
	return (uint32_t)serial;
}

bool heap_hprof_fits(const struct heap_hprof *x, uint16_t class, uint64_t size,
		     const uint16_t *offsets, uint32_t n)
{
	const struct heap_class *k = &x->c->all.at[class];
	const struct heap_field *f = n ? x->c->fields.at + k->first : NULL;

	if (!class || k->size != size || k->nfields != n)
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (f[i].offset != offsets[i] || (i && offsets[i] <= offsets[i - 1]))
			return false;
	return true;
}

void heap_hprof_whole(struct heap_hprof *x, const struct object *o, uint64_t site,
		      const uint64_t *addrs, uint32_t n)
{
	uint64_t ids[HEAP_HPROF_WHOLE_MAX];

	BUG_ON(n > ARRAY_LEN(ids) || !o->addr);
	objects_starts(&x->h->objects, addrs, n, ids);
	/* A nil pointer leads nowhere, even where an object begins at 0. */
	for (uint32_t i = 0; i < n; i++)
		ids[i] = addrs[i] ? ids[i] : 0;
	hprof_instance_of(x->w, o->addr, trace_of(x, site),
			  class_id(x, x->number[x->c->of[o->index]]), ids, n);
}

void heap_hprof_leaves(struct heap_hprof *x, uint16_t class, const uint64_t *addrs, size_t n)
{
	hprof_instances(x->w, addrs, n, class_id(x, x->number[class]));
}

/* Its bytes: an array with an identifier inside the object, if no other object is there. */
static void plan_contents(struct heap_hprof *x, const struct object *o)
{
	struct object there;

	if (o->size < 2 || !objects_find(&x->h->objects, o->addr + 1, &there) ||
	    there.index != o->index) {
		x->losses.contents += o->size;
		return;
	}
	x->object.bytes_id = o->addr + 1;
	x->object.bytes = o->size < HPROF_COUNT_MAX ? (uint32_t)o->size : HPROF_COUNT_MAX;
	x->losses.contents += o->size - x->object.bytes;
}

static int begin_usual(struct heap_hprof *x, const struct object *o, struct err *e)
{
	uint32_t class = x->c->of[o->index];
	const struct heap_class *k = &x->c->all.at[class];
	bool contents = x->opts.contents && !k->nfields;

	if (!x->number[class])
		return err_set(e, -ESTALE, "the heap changed while it was read");
	begin_fields(x, k);
	x->object.room = 0;
	hprof_instance(x->w, o->addr, x->object.trace, class_id(x, x->number[class]),
		       8 * (contents ? 1 : k->nfields));
	if (contents)
		plan_contents(x, o);
	if (contents)
		hprof_value_object(x->w, x->object.bytes_id);
	return 0;
}

static void begin_variant(struct heap_hprof *x, const struct object *o, const struct variant *v)
{
	bool contents = x->opts.contents && !v->room;

	x->object.field = x->object.end = NULL;
	x->object.room = v->room;
	hprof_instance(x->w, o->addr, x->object.trace, class_id(x, v->number),
		       8 * (contents ? 1 : v->room));
	if (contents)
		plan_contents(x, o);
	if (contents)
		hprof_value_object(x->w, x->object.bytes_id);
}

int heap_hprof_object(struct heap_hprof *x, const struct object *o, uint64_t site, struct err *e)
{
	const struct variant *v = NULL;
	int ret = hprof_check(x->w, e);

	x->object.bytes_id = x->object.bytes = 0;
	x->object.unnamed = !o->addr;
	if (ret || x->object.unnamed) {
		x->losses.unnamed += !ret;
		return ret;
	}
	x->object.trace = trace_of(x, site);
	x->losses.sizes += o->size > INT32_MAX;
	if (heap_hprof_must_look(x, o))
		v = heap_hprof_variant(x, o);
	if (!v)
		return begin_usual(x, o, e);
	begin_variant(x, o, v);
	return 0;
}

void heap_hprof_pointer(struct heap_hprof *x, uint64_t offset, uint64_t addr)
{
	uint64_t id = 0;

	if (addr)
		objects_starts(&x->h->objects, &addr, 1, &id);
	if (x->object.unnamed)
		return;
	if (x->object.room) {
		x->object.room--;
		hprof_value_object(x->w, id);
		return;
	}
	while (x->object.field < x->object.end && x->object.field->offset < offset) {
		x->object.field++;
		hprof_value_object(x->w, 0);
	}
	if (x->object.field == x->object.end || x->object.field->offset != offset) {
		x->losses.pointers += id != 0;
		return;
	}
	x->object.field++;
	hprof_value_object(x->w, id);
}

uint32_t heap_hprof_object_end(struct heap_hprof *x)
{
	uint64_t left = x->object.room + (uint64_t)(x->object.end - x->object.field);

	if (x->object.unnamed)
		return 0;
	for (; left; left--)
		hprof_value_object(x->w, 0);
	if (x->object.bytes)
		hprof_array(x->w, x->object.bytes_id, x->object.trace, HPROF_BYTE, x->object.bytes);
	return x->object.bytes;
}

void heap_hprof_bytes(struct heap_hprof *x, const void *bytes, size_t n)
{
	hprof_value_bytes(x->w, bytes, n);
}

/* ---- several writers ---- */

void heap_hprof_sections(struct heap_hprof *x)
{
	hprof_sections(x->w);
}

uint64_t heap_hprof_room(const struct heap_hprof *x, uint64_t n, uint64_t nodes, uint64_t size,
			 uint64_t word)
{
	uint64_t fields = 8 * (size / word),
		 contents = x->opts.contents ? 8 + ARRAY_BYTES + size : 0, all, of_nodes, of_leaves;

	if (__builtin_mul_overflow(nodes, fields, &of_nodes) ||
	    __builtin_mul_overflow(n - nodes, contents, &of_leaves) ||
	    __builtin_add_overflow(n * HPROF_INSTANCE_BYTES, of_nodes, &all) ||
	    __builtin_add_overflow(all, of_leaves, &all))
		return UINT64_MAX;
	return all;
}

int heap_hprof_beside(const struct heap_hprof *x, struct heap_hprof **out, struct err *e)
{
	CLEANUP(heap_hprof_freep) struct heap_hprof *new = calloc(1, sizeof(*new));
	int ret;

	if (!new)
		return err_set(e, -ENOMEM, "no memory");
	*new = *x;
	new->of = x;
	new->w = NULL;
	new->losses = (struct heap_hprof_losses){};
	ret = hprof_beside(x->w, &new->w, e);
	if (!ret)
		*out = TAKE(new);
	return ret;
}

void heap_hprof_join(struct heap_hprof *x, const struct heap_hprof *beside)
{
	const struct heap_hprof_losses *l = &beside->losses;

	x->losses.pointers += l->pointers;
	x->losses.sizes += l->sizes;
	x->losses.contents += l->contents;
	x->losses.frames += l->frames;
	x->losses.unnamed += l->unnamed;
}

void heap_hprof_section(struct heap_hprof *x, uint64_t n)
{
	hprof_section(x->w, n);
}

void heap_hprof_section_end(struct heap_hprof *x)
{
	hprof_section_end(x->w);
}

int heap_hprof_end(struct heap_hprof *x, struct heap_hprof_losses *losses, struct err *e)
{
	*losses = x->losses;
	return hprof_end(x->w, e);
}
