/* tests/support/readhprof.c - all records of an HPROF file, and whether they fit together. */
#include "readhprof.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { STRING = 1, LOAD_CLASS, FRAME = 4, TRACE, SEGMENT = 0x1c, END = 0x2c };
enum { ROOT_FRAME = 3, ROOT_STICKY = 5, ROOT_THREAD = 8, CLASS = 0x20, INSTANCE, ARRAY = 0x23 };
enum { ROOT_UNKNOWN = 0xff, HEADER = 31, OBJECT = 2 };
#define MOST SIZE_MAX / 64

static bool wrong(struct readhprof *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static bool wrong(struct readhprof *r, const char *fmt, ...)
{
	size_t n;
	va_list ap;

	if (r->why[0])
		return false;
	snprintf(r->why, sizeof(r->why), "%zd: ", r->p - r->start);
	n = strlen(r->why);
	va_start(ap, fmt);
	vsnprintf(r->why + n, sizeof(r->why) - n, fmt, ap);
	va_end(ap);
	return false;
}

/* ---- numbers ---- */

static uint64_t value(const uint8_t *p, unsigned n)
{
	uint64_t v = 0;

	while (n--)
		v = v << 8 | *p++;
	return v;
}

static uint64_t take(struct readhprof *r, unsigned n)
{
	uint64_t v;

	if ((size_t)(r->end - r->p) < n) {
		wrong(r, "a record ends in a number");
		r->p = r->end;
		return 0;
	}
	v = value(r->p, n);
	r->p += n;
	return v;
}

static const uint8_t *skip(struct readhprof *r, uint64_t n)
{
	const uint8_t *at = r->p;

	if ((uint64_t)(r->end - r->p) < n) {
		wrong(r, "a record ends in %" PRIu64 " bytes", n);
		n = (uint64_t)(r->end - r->p);
	}
	r->p += n;
	return at;
}

static unsigned width(uint8_t type)
{
	static const uint8_t widths[] = {
		[2] = 8, [4] = 1, [5] = 2, [6] = 4, [7] = 8, [8] = 1, [9] = 2, [10] = 4, [11] = 8
	};

	return type < sizeof(widths) ? widths[type] : 0;
}

/* ---- looking up: identifiers rise within each kind, or are sorted when all are known ---- */

static const char *string(struct readhprof *r, uint64_t id)
{
	for (size_t low = 0, high = r->strings.n; low < high;) {
		size_t mid = low + (high - low) / 2;

		if (r->strings.at[mid].id == id)
			return r->strings.at[mid].text;
		if (r->strings.at[mid].id < id)
			low = mid + 1;
		else
			high = mid;
	}
	wrong(r, "no string %" PRIx64 " before it", id);
	return "?";
}

const struct rh_class *rh_class(const struct readhprof *r, uint64_t id)
{
	for (size_t i = 0; i < r->classes.n; i++)
		if (r->classes.at[i].id == id)
			return &r->classes.at[i];
	return NULL;
}

const struct rh_class *rh_class_named(const struct readhprof *r, const char *name)
{
	for (size_t i = 0; i < r->classes.n; i++)
		if (r->classes.at[i].dumped && !strcmp(r->classes.at[i].name, name))
			return &r->classes.at[i];
	return NULL;
}

const struct rh_object *rh_object(const struct readhprof *r, uint64_t id)
{
	for (size_t low = 0, high = r->objects.n; low < high;) {
		size_t mid = low + (high - low) / 2;

		if (r->objects.at[mid].id == id)
			return &r->objects.at[mid];
		if (r->objects.at[mid].id < id)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

const struct rh_trace *rh_trace(const struct readhprof *r, uint32_t serial)
{
	for (size_t i = 0; i < r->traces.n; i++)
		if (r->traces.at[i].serial == serial)
			return &r->traces.at[i];
	return NULL;
}

static const struct rh_frame *frame(const struct readhprof *r, uint64_t id)
{
	for (size_t i = 0; i < r->frames.n; i++)
		if (r->frames.at[i].id == id)
			return &r->frames.at[i];
	return NULL;
}

const struct rh_frame *rh_frame(const struct readhprof *r, const struct rh_trace *t, uint32_t i)
{
	return i < t->n ? frame(r, value(t->frames + 8 * (size_t)i, 8)) : NULL;
}

/* ---- records before the heap ---- */

static void new_id(struct readhprof *r, uint64_t id)
{
	if (!id || id > INT64_MAX)
		wrong(r, "the identifier %" PRIx64, id);
}

/* Of valid UTF-8 without control characters. */
static bool is_text(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned more = p[i] < 0x80 ? 0 : p[i] >= 0xf0 ? 3 : p[i] >= 0xe0 ? 2 : 1;

		if (p[i] < ' ' || p[i] == 0x7f || (p[i] >= 0x80 && p[i] < 0xc2) || p[i] > 0xf4)
			return false;
		for (; more; more--)
			if (++i == n || (p[i] & 0xc0) != 0x80)
				return false;
	}
	return true;
}

static void read_string(struct readhprof *r)
{
	struct rh_string new;
	size_t n, i;

	vec_add(&r->strings, MOST);
	new.id = take(r, 8);
	n = (size_t)(r->end - r->p);
	new_id(r, new.id);
	if (!is_text(r->p, n))
		wrong(r, "a string that is no UTF-8, or has control characters");
	new.text = calloc(1, n + 1);
	memcpy(new.text, skip(r, n), n);
	for (i = r->strings.n - 1; i && r->strings.at[i - 1].id >= new.id; i--) {
		if (r->strings.at[i - 1].id == new.id)
			wrong(r, "string %" PRIx64 " for a second time", new.id);
		r->strings.at[i] = r->strings.at[i - 1];
	}
	r->strings.at[i] = new;
}

static void read_load_class(struct readhprof *r)
{
	struct rh_class c = {};

	c.serial = (uint32_t)take(r, 4);
	c.id = take(r, 8);
	take(r, 4);
	c.name = string(r, take(r, 8));
	new_id(r, c.id);
	for (size_t i = 0; i < r->classes.n; i++)
		if (r->classes.at[i].serial == c.serial || r->classes.at[i].id == c.id)
			wrong(r, "class %u for a second time", c.serial);
	if (!c.serial)
		wrong(r, "a class with serial number 0");
	*(struct rh_class *)vec_add(&r->classes, MOST) = c;
}

static void read_frame(struct readhprof *r)
{
	struct rh_frame f = { .id = take(r, 8) };
	uint32_t serial;

	f.method = string(r, take(r, 8));
	string(r, take(r, 8));
	f.file = string(r, take(r, 8));
	serial = (uint32_t)take(r, 4);
	f.line = (int32_t)take(r, 4);
	new_id(r, f.id);
	for (size_t i = 0; i < r->classes.n; i++)
		if (r->classes.at[i].serial == serial)
			f.class = r->classes.at[i].name;
	if (!f.class || frame(r, f.id))
		wrong(r, "frame %" PRIx64 " of class %u", f.id, serial);
	*(struct rh_frame *)vec_add(&r->frames, MOST) = f;
}

static void read_trace(struct readhprof *r)
{
	struct rh_trace t = {};

	t.serial = (uint32_t)take(r, 4);
	t.thread = (uint32_t)take(r, 4);
	t.n = (uint32_t)take(r, 4);
	t.frames = skip(r, 8ull * t.n);
	if (!t.serial || rh_trace(r, t.serial))
		wrong(r, "trace %u", t.serial);
	for (uint32_t i = 0; !r->why[0] && i < t.n; i++)
		if (!rh_frame(r, &t, i))
			wrong(r, "trace %u: frame %u is not known", t.serial, i);
	*(struct rh_trace *)vec_add(&r->traces, MOST) = t;
}

/* ---- the heap ---- */

static void read_class(struct readhprof *r)
{
	uint64_t id = take(r, 8);
	struct rh_class *c = (struct rh_class *)rh_class(r, id);

	if (!c || c->dumped) {
		wrong(r, "class %" PRIx64 " was not loaded, or comes twice", id);
		return;
	}
	c->dumped = true;
	take(r, 4);
	c->super = take(r, 8);
	skip(r, 5 * 8);
	c->size = (uint32_t)take(r, 4);
	if (take(r, 2) || c->size > INT32_MAX)
		wrong(r, "constants, or a size of %u", c->size);
	c->nstatics = (uint16_t)take(r, 2);
	c->statics = skip(r, 17ull * c->nstatics);
	c->nfields = (uint16_t)take(r, 2);
	c->fields = skip(r, 9ull * c->nfields);
	if (c->nstatics > INT16_MAX || c->nfields > INT16_MAX)
		wrong(r, "%u static and %u other fields", c->nstatics, c->nfields);
	for (unsigned i = 0; !r->why[0] && i < c->nstatics; i++)
		if (c->statics[17 * i + 8] != OBJECT)
			wrong(r, "a static field of type %u", c->statics[17 * i + 8]);
	for (unsigned i = 0; !r->why[0] && i < c->nfields; i++)
		if (c->fields[9 * i + 8] != OBJECT)
			wrong(r, "a field of type %u", c->fields[9 * i + 8]);
	for (unsigned i = 0; !r->why[0] && i < c->nstatics; i++)
		string(r, value(c->statics + 17 * (size_t)i, 8));
	for (unsigned i = 0; !r->why[0] && i < c->nfields; i++)
		string(r, value(c->fields + 9 * (size_t)i, 8));
}

static void read_instance(struct readhprof *r)
{
	struct rh_object o = {};

	o.id = take(r, 8);
	o.trace = (uint32_t)take(r, 4);
	o.class = take(r, 8);
	o.n = (uint32_t)take(r, 4);
	o.at = skip(r, o.n);
	new_id(r, o.id);
	if (o.n > INT32_MAX)
		wrong(r, "an instance of %u bytes", o.n);
	*(struct rh_object *)vec_add(&r->objects, MOST) = o;
}

static void read_array(struct readhprof *r)
{
	struct rh_object o = {};

	o.id = take(r, 8);
	o.trace = (uint32_t)take(r, 4);
	o.n = (uint32_t)take(r, 4);
	o.type = (uint8_t)take(r, 1);
	o.at = skip(r, (uint64_t)o.n * width(o.type));
	new_id(r, o.id);
	if (o.n > INT32_MAX || !width(o.type) || o.type == OBJECT)
		wrong(r, "an array of %u elements of type %u", o.n, o.type);
	*(struct rh_object *)vec_add(&r->objects, MOST) = o;
}

/* Roots, then classes, then objects. */
static void in_phase(struct readhprof *r, unsigned phase)
{
	if (phase < r->phase)
		wrong(r, "a record that comes too late");
	r->phase = phase;
}

static void read_sub(struct readhprof *r)
{
	uint8_t tag = (uint8_t)take(r, 1);
	struct rh_root root = { .tag = tag };

	in_phase(r, tag == CLASS ? 1 : tag == INSTANCE || tag == ARRAY ? 2 : 0);
	switch (tag) {
	case ROOT_FRAME:
	case ROOT_THREAD:
		root.id = take(r, 8);
		root.a = (uint32_t)take(r, 4);
		root.b = (uint32_t)take(r, 4);
		break;
	case ROOT_STICKY:
	case ROOT_UNKNOWN:
		root.id = take(r, 8);
		break;
	case CLASS:
		read_class(r);
		return;
	case INSTANCE:
		read_instance(r);
		return;
	case ARRAY:
		read_array(r);
		return;
	default:
		wrong(r, "a record with tag %02x in a segment", tag);
		return;
	}
	*(struct rh_root *)vec_add(&r->roots, MOST) = root;
}

static void read_record(struct readhprof *r, uint8_t tag)
{
	if (r->segments && tag != SEGMENT && tag != END)
		wrong(r, "a record with tag %02x after a segment", tag);
	switch (tag) {
	case STRING:
		read_string(r);
		break;
	case LOAD_CLASS:
		read_load_class(r);
		break;
	case FRAME:
		read_frame(r);
		break;
	case TRACE:
		read_trace(r);
		break;
	case SEGMENT:
		r->segments++;
		if (r->p == r->end)
			wrong(r, "an empty segment");
		if (r->end - r->p > r->largest)
			r->largest = (uint32_t)(r->end - r->p);
		while (!r->why[0] && r->p < r->end)
			read_sub(r);
		break;
	default:
		wrong(r, "a record with tag %02x", tag);
	}
	if (r->p != r->end)
		wrong(r, "%zd bytes too many in a record with tag %02x", r->end - r->p, tag);
}

/* ---- the whole ---- */

static int by_id(const void *a, const void *b)
{
	const struct rh_object *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

static uint32_t all_fields(struct readhprof *r, struct rh_class *c)
{
	uint32_t n = 0, depth = 0;

	for (const struct rh_class *up = c; up; up = rh_class(r, up->super)) {
		n += up->nfields;
		if (!up->dumped || depth++ > 1 << 20)
			wrong(r, "class %s has no class above it", c->name);
		if (r->why[0] || !up->super)
			break;
		if (!rh_class(r, up->super))
			wrong(r, "class %s: no superclass", c->name);
	}
	return n;
}

static void check_java(struct readhprof *r)
{
	static const char *const names[] = {
		"java/lang/Object",
		"java/lang/Class",
		"java/lang/String",
		"java/lang/Thread",
		"java/lang/ref/Reference",
		"java/lang/ref/SoftReference",
		"java/lang/ref/WeakReference",
		"java/lang/ref/FinalReference",
		"java/lang/ref/PhantomReference",
		"[Z",
		"[C",
		"[F",
		"[D",
		"[B",
		"[S",
		"[I",
		"[J",
		"[Ljava/lang/Object;",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!rh_class_named(r, names[i])) {
			wrong(r, "no class %s", names[i]);
			return;
		}
	if (!rh_class_named(r, "java/lang/Object")->size)
		wrong(r, "java.lang.Object has no size");
	if (rh_class_named(r, "java/lang/ref/Reference")->nfields != 1)
		wrong(r, "no java.lang.ref.Reference.referent");
}

static void check_objects(struct readhprof *r)
{
	if (r->objects.n)
		qsort(r->objects.at, r->objects.n, sizeof(*r->objects.at), by_id);
	for (size_t i = 0; i < r->objects.n; i++) {
		const struct rh_object *o = &r->objects.at[i];
		const struct rh_class *c = o->class ? rh_class(r, o->class) : NULL;

		if (i && r->objects.at[i - 1].id == o->id)
			wrong(r, "object %" PRIx64 " for a second time", o->id);
		if (o->trace && !rh_trace(r, o->trace))
			wrong(r, "object %" PRIx64 ": no trace %u", o->id, o->trace);
		if (o->class && (!c || !c->dumped || 8ull * c->all != o->n))
			wrong(r, "object %" PRIx64 " of %u bytes: its class has %u fields", o->id,
			      o->n, c ? c->all : 0);
		if (rh_class(r, o->id) || frame(r, o->id))
			wrong(r, "object %" PRIx64 ": its identifier is taken", o->id);
		if (r->why[0])
			return;
	}
	for (size_t i = 0; i < r->strings.n; i++)
		if (rh_object(r, r->strings.at[i].id) || rh_class(r, r->strings.at[i].id))
			wrong(r, "string %" PRIx64 ": its identifier is taken",
			      r->strings.at[i].id);
}

static void check_values(struct readhprof *r)
{
	for (size_t i = 0; !r->why[0] && i < r->objects.n; i++)
		for (uint32_t k = 0; r->objects.at[i].class && k < r->objects.at[i].n / 8; k++) {
			uint64_t to = rh_value(&r->objects.at[i], k);

			if (to && !rh_object(r, to))
				wrong(r, "object %" PRIx64 " points to nothing, %" PRIx64,
				      r->objects.at[i].id, to);
		}
}

static void check_roots(struct readhprof *r)
{
	uint32_t threads = 0;

	for (size_t i = 0; !r->why[0] && i < r->roots.n; i++) {
		const struct rh_root *root = &r->roots.at[i];
		const struct rh_trace *t = rh_trace(r, root->a);

		if (root->tag == ROOT_STICKY ? !rh_class(r, root->id) : !rh_object(r, root->id))
			wrong(r, "root %" PRIx64 " is nothing", root->id);
		if (root->tag == ROOT_THREAD && (root->a != ++threads || root->b != root->a || !t))
			wrong(r, "thread %u with trace %u", root->a, root->b);
		if (root->tag == ROOT_FRAME &&
		    (!root->a || root->a > threads || (root->b != UINT32_MAX && root->b >= t->n)))
			wrong(r, "a root of frame %u of thread %u", root->b, root->a);
	}
}

static void check_whole(struct readhprof *r)
{
	for (size_t i = 0; !r->why[0] && i < r->classes.n; i++) {
		struct rh_class *c = &r->classes.at[i];

		c->all = c->dumped ? all_fields(r, c) : 0;
		for (unsigned k = 0; k < c->nstatics; k++)
			if (!rh_static(c, k))
				wrong(r, "an empty static field of %s", c->name);
	}
	if (!r->why[0])
		check_java(r);
	if (!r->why[0])
		check_objects(r);
	check_values(r);
	check_roots(r);
}

bool readhprof(struct readhprof *r, const uint8_t *bytes, size_t n)
{
	const uint8_t *end = bytes + n;
	bool ended = false;

	*r = (struct readhprof){ .start = bytes, .p = bytes, .end = end };
	if (n < HEADER || memcmp(bytes, "JAVA PROFILE 1.0.2", 19) || value(bytes + 19, 4) != 8)
		return wrong(r, "no header");
	r->p += HEADER;
	while (!r->why[0] && r->p < end) {
		uint8_t tag = (uint8_t)take(r, 1);
		uint64_t len;

		take(r, 4);
		len = take(r, 4);
		if (ended || len > (uint64_t)(end - r->p))
			return wrong(r, "%" PRIu64 " bytes in a record with tag %02x", len, tag);
		ended = tag == END && !len;
		r->end = r->p + len;
		if (!ended)
			read_record(r, tag);
		r->end = end;
	}
	if (!ended)
		wrong(r, "no end");
	if (!r->why[0])
		check_whole(r);
	return !r->why[0];
}

void readhprof_fini(struct readhprof *r)
{
	for (size_t i = 0; i < r->strings.n; i++)
		free(r->strings.at[i].text);
	vec_fini(&r->strings);
	vec_fini(&r->classes);
	vec_fini(&r->objects);
	vec_fini(&r->roots);
	vec_fini(&r->frames);
	vec_fini(&r->traces);
}

/* ---- asking ---- */

bool rh_is_go(const struct readhprof *r, const struct rh_object *o)
{
	const struct rh_class *c = o->class ? rh_class(r, o->class) : NULL;

	return c && strncmp(c->name, "java/lang/", 10) != 0;
}

const char *rh_field_name(const struct readhprof *r, const struct rh_object *o, uint32_t i)
{
	const struct rh_class *c = rh_class(r, o->class);

	while (c && i >= c->nfields) {
		i -= c->nfields;
		c = rh_class(r, c->super);
	}
	return c ? string((struct readhprof *)r, value(c->fields + 9 * (size_t)i, 8)) : NULL;
}

uint64_t rh_value(const struct rh_object *o, uint32_t i)
{
	return value(o->at + 8 * (size_t)i, 8);
}

const char *rh_static_name(const struct readhprof *r, const struct rh_class *c, uint32_t i)
{
	return string((struct readhprof *)r, value(c->statics + 17 * (size_t)i, 8));
}

uint64_t rh_static(const struct rh_class *c, uint32_t i)
{
	return value(c->statics + 17 * (size_t)i + 9, 8);
}
