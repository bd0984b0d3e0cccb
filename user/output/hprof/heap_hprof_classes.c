/* user/output/hprof/heap_hprof_classes.c - classes: names, sizes, fields. */
#include "base/cleanup.h"
#include "base/hash.h"
#include "output/hprof/heap_hprof_priv.h"

/* ROOM_MAX: pointers of an instance that the format has room for, with less than 2^31 bytes */
enum { ROOM_MAX = 1 << 27 };

/*
 * VisualVM's library looks for these when it computes sizes and what is retained: a java.lang.Object
 * that is larger than 0 makes it take all sizes as they are.
 */
static const struct {
	const char *name;
	enum java_class super;
	uint32_t size;
	const char *field; /* it is an object */
} java[JAVA_END] = {
	[JAVA_OBJECT] = { "java/lang/Object", JAVA_NONE, 16, NULL },
	[JAVA_CLASS] = { "java/lang/Class", JAVA_OBJECT, 0, NULL },
	[JAVA_STRING] = { "java/lang/String", JAVA_OBJECT, 0, "value" },
	[JAVA_THREAD] = { "java/lang/Thread", JAVA_OBJECT, 0, "name" },
	[JAVA_REFERENCE] = { "java/lang/ref/Reference", JAVA_OBJECT, 0, "referent" },
	[JAVA_SOFT] = { "java/lang/ref/SoftReference", JAVA_REFERENCE, 0, NULL },
	[JAVA_WEAK] = { "java/lang/ref/WeakReference", JAVA_REFERENCE, 0, NULL },
	[JAVA_FINAL] = { "java/lang/ref/FinalReference", JAVA_REFERENCE, 0, NULL },
	[JAVA_PHANTOM] = { "java/lang/ref/PhantomReference", JAVA_REFERENCE, 0, NULL },
	[JAVA_ARRAYS] = { "[Z", JAVA_OBJECT, 0, NULL },
	[JAVA_ARRAYS + 1] = { "[C", JAVA_OBJECT, 0, NULL },
	[JAVA_ARRAYS + 2] = { "[F", JAVA_OBJECT, 0, NULL },
	[JAVA_ARRAYS + 3] = { "[D", JAVA_OBJECT, 0, NULL },
	[JAVA_ARRAYS + 4] = { "[B", JAVA_OBJECT, 0, NULL },
	[JAVA_ARRAYS + 5] = { "[S", JAVA_OBJECT, 0, NULL },
	[JAVA_ARRAYS + 6] = { "[I", JAVA_OBJECT, 0, NULL },
	[JAVA_ARRAYS + 7] = { "[J", JAVA_OBJECT, 0, NULL },
	[JAVA_OBJECTS] = { "[Ljava/lang/Object;", JAVA_OBJECT, 0, NULL },
};

static uint64_t class_id(const struct heap_hprof *x, uint32_t number)
{
	return hprof_id(x, ID_CLASS, number);
}

void heap_hprof_load_class(struct heap_hprof *x, uint32_t number, const char *name)
{
	heap_hprof_name(x, hprof_id(x, ID_CLASS_NAME, number), name);
	hprof_load_class(x->w, number, class_id(x, number), hprof_id(x, ID_CLASS_NAME, number));
}

/* ---- what a class consists of ---- */

/* Classes of objects, and variants of them, alike. */
struct shape {
	uint32_t number; /* of the first of its classes */
	uint64_t size;
	const struct heap_field *fields; /* NULL: they are numbered */
	uint64_t n;
	bool contents; /* one field, for an array of bytes */
};

static struct shape class_shape(const struct heap_hprof *x, uint32_t class)
{
	const struct heap_class *c = &x->c->all.at[class];

	return (struct shape){ .number = x->number[class],
			       .size = c->size,
			       .fields = c->nfields ? x->c->fields.at + c->first : NULL,
			       .n = c->nfields,
			       .contents = x->opts.contents && !c->nfields };
}

static struct shape variant_shape(const struct heap_hprof *x, const struct variant *v)
{
	return (struct shape){ .number = v->number,
			       .size = v->size,
			       .n = v->room,
			       .contents = x->opts.contents && !v->room };
}

static uint32_t parts_of(uint64_t fields)
{
	return fields ? (uint32_t)((fields + HPROF_FIELDS_MAX - 1) / HPROF_FIELDS_MAX) : 1;
}

static uint64_t field_name(struct heap_hprof *x, const struct shape *s, uint64_t from, uint64_t i)
{
	const struct heap_field *f = s->fields ? &s->fields[from + i] : NULL;
	char text[32];

	if (s->contents)
		return heap_hprof_string(x, "contents", strlen("contents"));
	if (f && f->name)
		return heap_hprof_string(x, strtab_get(x->c->names, f->name),
					 strtab_len(x->c->names, f->name));
	/* Offsets in later parts count from their first one, so that there are not too many names. */
	if (f)
		snprintf(text, sizeof(text), "0x%02x",
			 f->offset - (from ? s->fields[from].offset : 0));
	else
		snprintf(text, sizeof(text), "pointer %u", (unsigned)i);
	return heap_hprof_string(x, text, strlen(text));
}

/* The fields of one part of a shape, in x->fields. */
static size_t part_fields(struct heap_hprof *x, const struct shape *s, uint32_t part)
{
	uint64_t from = (uint64_t)part * HPROF_FIELDS_MAX, n = s->contents ? 1 : s->n - from;

	n = n < HPROF_FIELDS_MAX ? n : HPROF_FIELDS_MAX;
	for (uint64_t i = 0; i < n; i++)
		x->fields[i] = (struct hprof_field){ field_name(x, s, from, i), HPROF_OBJECT };
	return (size_t)n;
}

/* ---- names ---- */

static void load_shape(struct heap_hprof *x, struct shape *s, const char *name)
{
	uint32_t parts = parts_of(s->n);
	char text[768];

	s->number = x->nclasses + 1;
	x->nclasses += parts;
	for (uint32_t i = 0; i < parts; i++) {
		/* For readers, what begins with a bracket is an array of Java's. */
		snprintf(text, sizeof(text), "%s%s%s", *name == '[' ? "array " : "", name,
			 i ? ", its further fields" : "");
		heap_hprof_load_class(x, s->number + i, text);
		part_fields(x, s, i);
	}
}

/* What a class is called beyond its name, which others may have as well. */
struct suffix {
	bool size;	 /* objects of one type may have several */
	uint32_t number; /* among those of its name and size */
};

static int by_name_and_size(const void *a, const void *b, void *arg)
{
	const struct classes *c = arg;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	const struct heap_class *p = &c->all.at[i], *q = &c->all.at[k];

	if (p->name != q->name)
		return p->name < q->name ? -1 : 1;
	if (p->size != q->size)
		return p->size < q->size ? -1 : 1;
	return (i > k) - (i < k);
}

/* Those in @order from @from to @to have one name. */
static void set_suffixes(const struct classes *c, const uint32_t *order, size_t from, size_t to,
			 struct suffix *suffixes)
{
	uint64_t first = c->all.at[order[from]].size, last = c->all.at[order[to - 1]].size;

	for (size_t i = from; i < to; i++) {
		struct suffix *s = &suffixes[order[i]];

		s->size = first != last;
		s->number = 1;
		if (i > from && c->all.at[order[i]].size == c->all.at[order[i - 1]].size)
			s->number += suffixes[order[i - 1]].number;
	}
}

static int find_suffixes(const struct classes *c, struct suffix *suffixes, struct err *e)
{
	CLEANUP(freep) uint32_t *order = malloc(c->all.n * sizeof(*order));
	size_t n = 0, from = 0;

	if (!order)
		return err_set(e, -ENOMEM, "no memory for %zu classes", c->all.n);
	for (uint32_t i = 1; i < c->all.n; i++)
		if (c->all.at[i].count)
			order[n++] = i;
	qsort_r(order, n, sizeof(*order), by_name_and_size, (void *)c);
	for (size_t i = 1; i <= n; i++) {
		if (i < n && c->all.at[order[i]].name == c->all.at[order[from]].name)
			continue;
		set_suffixes(c, order, from, i, suffixes);
		from = i;
	}
	return 0;
}

static void class_name(const struct heap_hprof *x, uint32_t class, const struct suffix *s,
		       char *text, size_t cap)
{
	const struct heap_class *c = &x->c->all.at[class];
	int n = snprintf(text, cap, "%.400s", strtab_get(x->c->names, c->name));

	if (s->size)
		n += snprintf(text + n, cap - (size_t)n, " (%llu B)", (unsigned long long)c->size);
	if (s->number > 1)
		snprintf(text + n, cap - (size_t)n, " #%u", s->number);
}

static int load_heap_classes(struct heap_hprof *x, struct err *e)
{
	CLEANUP(freep) struct suffix *suffixes = calloc(x->c->all.n, sizeof(*suffixes));
	char text[512];
	int ret;

	if (!suffixes)
		return err_set(e, -ENOMEM, "no memory for %zu classes", x->c->all.n);
	ret = find_suffixes(x->c, suffixes, e);
	for (uint32_t i = 1; !ret && i < x->c->all.n; i++) {
		struct shape s = class_shape(x, i);

		if (!x->c->all.at[i].count)
			continue;
		class_name(x, i, &suffixes[i], text, sizeof(text));
		load_shape(x, &s, text);
		x->number[i] = s.number;
		ret = hprof_check(x->w, e);
	}
	return ret;
}

static void load_variants(struct heap_hprof *x)
{
	char text[512];

	for (size_t i = 0; i < x->variants.n; i++) {
		struct variant *v = &x->variants.at[i];
		struct shape s = variant_shape(x, v);
		int n = snprintf(text, sizeof(text), "%.*s (%llu B, ", 400,
				 strtab_get(x->c->names, x->c->all.at[v->class].name),
				 (unsigned long long)v->size);

		if (v->room)
			snprintf(text + n, sizeof(text) - (size_t)n, "up to %u pointers)", v->room);
		else
			snprintf(text + n, sizeof(text) - (size_t)n, "without pointers)");
		load_shape(x, &s, text);
		v->number = s.number;
	}
}

static const char *statics_name(enum holder_kind kind)
{
	switch (kind) {
	case HOLDER_GLOBAL:
		return "(globals)";
	case HOLDER_FINALIZER:
		return "(finalizers)";
	case HOLDER_QUEUED:
		return "(finalizers to run)";
	default:
		return "(other roots)";
	}
}

static void load_statics(struct heap_hprof *x)
{
	char text[128];

	for (int k = 0; k <= HOLDER_OTHER; k++) {
		struct statics *s = &x->statics[k];

		s->classes = s->n ? parts_of(s->n) : 0;
		s->number = x->nclasses + 1;
		x->nclasses += s->classes;
		for (uint32_t i = 0; i < s->classes; i++) {
			snprintf(text, sizeof(text), i ? "%s %u" : "%s",
				 statics_name((enum holder_kind)k), i + 1);
			heap_hprof_load_class(x, s->number + i, text);
		}
	}
}

int heap_hprof_load_classes(struct heap_hprof *x, struct err *e)
{
	int ret;

	for (uint32_t i = JAVA_OBJECT; i < JAVA_END; i++) {
		heap_hprof_load_class(x, i, java[i].name);
		if (java[i].field)
			heap_hprof_string(x, java[i].field, strlen(java[i].field));
	}
	ret = load_heap_classes(x, e);
	if (ret)
		return ret;
	load_variants(x);
	load_statics(x);
	return x->no_memory ? err_set(e, -ENOMEM, "no memory for names") : hprof_check(x->w, e);
}

/* ---- contents ---- */

static void dump_shape(struct heap_hprof *x, const struct shape *s)
{
	uint32_t parts = parts_of(s->n);

	for (uint32_t i = 0; i < parts; i++) {
		size_t n = part_fields(x, s, i);
		uint32_t super = i + 1 < parts ? s->number + i + 1 : JAVA_OBJECT;

		hprof_class(x->w,
			    &(struct hprof_class){
				    .id = class_id(x, s->number + i),
				    .super = class_id(x, super),
				    .size = s->size < INT32_MAX ? (uint32_t)s->size : INT32_MAX,
				    .fields = x->fields,
				    .nfields = n,
			    });
	}
}

void heap_hprof_dump_classes(struct heap_hprof *x)
{
	for (uint32_t i = JAVA_OBJECT; i < JAVA_END; i++) {
		struct hprof_field f = { .type = HPROF_OBJECT };
		struct hprof_class c = { .id = class_id(x, i), .size = java[i].size, .fields = &f };

		if (java[i].super)
			c.super = class_id(x, java[i].super);
		if (java[i].field) {
			f.name = heap_hprof_string(x, java[i].field, strlen(java[i].field));
			c.nfields = 1;
		}
		hprof_class(x->w, &c);
	}
	for (uint32_t i = 1; i < x->c->all.n; i++)
		if (x->number[i])
			dump_shape(x, &(struct shape[]){ class_shape(x, i) }[0]);
	for (size_t i = 0; i < x->variants.n; i++)
		dump_shape(x, &(struct shape[]){ variant_shape(x, &x->variants.at[i]) }[0]);
}

/* ---- variants ---- */

/* The next power of two, so that there are not too many. */
static uint32_t room_for(uint64_t pointers)
{
	uint32_t room = pointers ? 1 : 0;

	while (room && room < pointers && room < ROOM_MAX)
		room *= 2;
	return room;
}

static uint64_t variant_key(const struct heap_hprof *x, const struct object *o)
{
	return hash_pair(hash_pair(x->c->of[o->index], o->size), room_for(x->object.n));
}

const struct variant *heap_hprof_variant(const struct heap_hprof *x, const struct object *o)
{
	uint64_t i;

	if (!x->object.misses || !map_get(&x->variant_of, variant_key(x, o), &i))
		return NULL;
	return &x->variants.at[i];
}

int heap_hprof_add_variant(struct heap_hprof *x, const struct object *o, struct err *e)
{
	struct variant *v = heap_hprof_variant(x, o) ? NULL : vec_add(&x->variants, UINT32_MAX);

	if (heap_hprof_variant(x, o))
		return 0;
	if (!v || !map_put(&x->variant_of, variant_key(x, o), x->variants.n - 1))
		return err_set(e, -ENOMEM, "no memory for classes");
	*v = (struct variant){ .class = x->c->of[o->index],
			       .size = o->size,
			       .room = room_for(x->object.n) };
	return 0;
}
