/* user/heapgraph/classes.c - layouts have a hash of their own, and a name that tells them. */
#include "heapgraph/classes.h"

#include <zlib.h>

#include "base/cleanup.h"
#include "base/hash.h"

/* Pointers of all classes together. */
enum { FIELDS_MAX = 1 << 24 };

int classes_init(struct classes *c, struct strtab *names, uint32_t nobjects, uint64_t bytes,
		 struct err *e)
{
	struct heap_class *other;

	*c = (struct classes){ .names = names, .nobjects = nobjects, .other_bytes = bytes };
	c->of = spill_alloc((size_t)nobjects + 1, sizeof(*c->of));
	c->cap = nobjects;
	other = vec_add(&c->all, CLASSES_MAX);
	if (!c->of || !other)
		return err_set(e, -ENOMEM, "no memory for the classes of %u objects", nobjects);
	other->name = strtab_puts(names, "other");
	other->count = nobjects;
	return 0;
}

void classes_fini(struct classes *c)
{
	vec_fini(&c->all);
	vec_fini(&c->fields);
	map_fini(&c->keys);
	spill_free(c->of);
	*c = (struct classes){};
}

uint16_t classes_typed(struct classes *c, uint64_t key, uint64_t size,
		       enum heap_certainty certainty, bool *made)
{
	struct heap_class *class;
	uint64_t id;

	*made = false;
	if (map_get(&c->keys, key, &id))
		return (uint16_t)id;
	class = vec_add(&c->all, CLASSES_MAX);
	id = c->all.n - 1;
	if (!class)
		return 0;
	if (!map_put(&c->keys, key, id)) {
		c->all.n--;
		return 0;
	}
	*class = (struct heap_class){ .size = size,
				      .certainty = certainty,
				      .first = (uint32_t)c->fields.n };
	*made = true;
	return (uint16_t)id;
}

bool classes_field(struct classes *c, uint16_t class, uint32_t offset, uint32_t name)
{
	struct heap_field *f = vec_add(&c->fields, FIELDS_MAX);

	if (!f) {
		c->untold = true;
		return false;
	}
	*f = (struct heap_field){ offset, name };
	c->all.at[class].nfields++;
	return true;
}

/* ---- layouts ---- */

/*
 * The shortest stretch that repeats itself to the end of the object, if there is one: then it
 * is an array. Offsets rise.
 */
static uint32_t period(uint64_t size, const uint32_t *at, size_t n, size_t *pointers)
{
	for (size_t k = 1; k < n; k++) {
		uint32_t p = at[k] - at[0];
		/* One more would not fit, but for what the size class has beyond the array. */
		bool all = n % k == 0 && at[0] < p && at[n - k] + 2ull * p > size - size / 8;

		for (size_t i = k; all && i < n; i++)
			all = at[i] - at[i - k] == p;
		if (all) {
			*pointers = k;
			return p;
		}
		if (k == 16)
			break;
	}
	return 0;
}

static void add_offsets(char *to, size_t room, const uint32_t *at, size_t n)
{
	size_t len = strlen(to);
	uLong sum = crc32(0, (const Bytef *)at, (uInt)(n * sizeof(*at)));

	for (size_t i = 0; i < n && i < 8 && len < room; i++)
		len += (size_t)snprintf(to + len, room - len, " %u", at[i]);
	if (n > 8 && len < room)
		snprintf(to + len, room - len, " ... (%zu, layout %08lx)", n, sum);
}

static uint32_t layout_name(struct classes *c, uint64_t size, const uint32_t *at, size_t n)
{
	char text[256];
	size_t k = n;
	uint32_t p = n ? period(size, at, n, &k) : 0;

	if (!n)
		snprintf(text, sizeof(text), "%llu B without pointers", (unsigned long long)size);
	else if (p)
		snprintf(text, sizeof(text), "%llu B, every %u B pointers at",
			 (unsigned long long)size, p);
	else
		snprintf(text, sizeof(text), "%llu B, pointers at", (unsigned long long)size);
	add_offsets(text, sizeof(text), at, p ? k : n);
	return strtab_puts(c->names, text);
}

/* Objects of one layout lie side by side: no hash is needed then. */
static bool is_layout(const struct classes *c, uint16_t class, uint64_t size,
		      const uint32_t *offsets, size_t n)
{
	const struct heap_class *k = &c->all.at[class];
	const struct heap_field *f = n && k->nfields == n ? &c->fields.at[k->first] : NULL;

	if (!class || k->size != size || k->nfields != n || c->untold)
		return false;
	for (size_t i = 0; i < n; i++)
		if (f[i].offset != offsets[i])
			return false;
	return true;
}

uint16_t classes_layout(struct classes *c, uint64_t size, const uint32_t *offsets, size_t n)
{
	uint16_t *recent = &c->recent[(size / 8 + n) % LAYOUTS_RECENT], class;
	uint64_t hash;
	bool made;

	if (is_layout(c, *recent, size, offsets, n))
		return *recent;
	hash = hash_pair(size, hash_bytes(offsets, n * sizeof(*offsets)));
	*recent = class = classes_typed(c, hash, size, HEAP_LAYOUT, &made);
	if (!made)
		return class;
	c->all.at[class].name = layout_name(c, size, offsets, n);
	for (size_t i = 0; i < n; i++)
		if (!classes_field(c, class, offsets[i], 0)) {
			c->all.at[class].nfields = 0;
			break;
		}
	return class;
}

/* ---- objects ---- */

bool classes_grow(struct classes *c)
{
	uint64_t cap = c->cap ? 2ull * c->cap : 1024;
	uint16_t *of;

	cap = cap < UINT32_MAX ? cap : UINT32_MAX;
	of = cap > c->cap ? spill_realloc(c->of, cap, sizeof(*of)) : NULL;
	if (!of)
		return false;
	c->of = of;
	c->cap = (uint32_t)cap;
	return true;
}

void classes_put(struct classes *c, uint32_t index, uint16_t class)
{
	uint16_t before = c->of[index];

	c->all.at[before].count--;
	if (!before)
		c->other_bytes -= c->all.at[class].size;
	c->of[index] = class;
	c->all.at[class].count++;
}

void classes_sampled(struct classes *c, uint16_t class, uint32_t site, uint64_t objects)
{
	struct heap_class *to = &c->all.at[class];

	if (!class || objects < to->sampled)
		return;
	to->site = site;
	to->sampled = objects;
}

static int by_name(const void *a, const void *b)
{
	const struct class_sum *x = a, *y = b;

	return (x->name > y->name) - (x->name < y->name);
}

static int by_bytes(const void *a, const void *b)
{
	const struct class_sum *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return by_name(a, b);
}

int classes_sums(const struct classes *c, struct class_sum **out, size_t *n, struct err *e)
{
	struct class_sum *sums = calloc(c->all.n, sizeof(*sums));
	size_t to = 0;

	if (!sums)
		return err_set(e, -ENOMEM, "no memory for %zu classes", c->all.n);
	for (size_t i = 0; i < c->all.n; i++) {
		const struct heap_class *class = &c->all.at[i];

		sums[i] = (struct class_sum){ .name = class->name,
					      .certainty = class->certainty,
					      .site = class->site,
					      .objects = class->count,
					      .bytes = i ? class->count * class->size :
							   c->other_bytes };
		sums[i].by[class->certainty] = class->count;
	}
	qsort(sums, c->all.n, sizeof(*sums), by_name);
	for (size_t i = 1; i < c->all.n; i++) {
		if (sums[i].name != sums[to].name) {
			sums[++to] = sums[i];
			continue;
		}
		sums[to].objects += sums[i].objects;
		sums[to].bytes += sums[i].bytes;
		for (size_t k = 0; k < ARRAY_LEN(sums[to].by); k++)
			sums[to].by[k] += sums[i].by[k];
		if (sums[i].certainty < sums[to].certainty)
			sums[to].certainty = sums[i].certainty;
		if (!sums[to].site)
			sums[to].site = sums[i].site;
	}
	qsort(sums, to + 1, sizeof(*sums), by_bytes);
	*out = sums;
	*n = to + 1;
	return 0;
}
