/* user/collect/heap/live/types.c - makes a label from a type's address and from who allocated. */
#include "collect/heap/live/types.h"

#include "base/limits.h"
#include "go/runtime/types/rttype.h"
#include "go/sites/rtbox.h"
#include "go/sites/rtmaker.h"

enum {
	LABEL_BYTES = LIMIT_NAME + 16, /* the longest name, and what stands before it */
	MAKER_FRAMES = 8,	       /* from the allocator's entry to its maker */
	INLINED = 32,		       /* calls inlined into one of them */
};

int types_init(struct types *t, struct subject *s, struct err *e)
{
	const struct gobin_info *info = gobin_info(s->bin);

	*t = (struct types){ .s = s };
	if (info->minor >= 0 && info->minor < RTTYPE_FIRST_MINOR)
		return err_set(e, -ENOTSUP, "types are told from go1.%d on, and this is %s",
			       RTTYPE_FIRST_MINOR, info->version);
	t->buf = malloc(LABEL_BYTES);
	if (!t->buf)
		return err_set(e, -ENOMEM, "no memory for types");
	return strtab_new(&t->text, e);
}

void types_fini(struct types *t)
{
	strtab_free(t->text);
	map_fini(&t->names);
	map_fini(&t->boxed);
	free(t->buf);
	*t = (struct types){};
}

/* ---- names ---- */

/* All type descriptors: those that the linker made, in @modules, and others. */
static struct rttypes all_types(const struct types *t, struct rttype_module modules[GPB_IMAGES])
{
	for (size_t i = 0; i < t->s->images.n; i++) {
		const struct image *img = &t->s->images.at[i];
		const struct gomodule *m = gobin_module(img->bin);

		modules[i] = (struct rttype_module){ .mem = gobin_mem(img->bin),
						     .types = m->types,
						     .etypes = m->etypes,
						     .bias = img->bias };
	}
	return (struct rttypes){ .layout = &t->s->layout,
				 .module = modules,
				 .n = t->s->images.n,
				 .live = t->s->target->mem };
}

/* The name of the type at @addr; NULL when it cannot be told. Each is looked up once. */
static const char *name_of(struct types *t, uint64_t addr)
{
	struct rttype_module modules[GPB_IMAGES];
	struct rttypes all;
	uint64_t have;
	uint32_t id;

	if (!addr)
		return NULL;
	if (map_get(&t->names, addr, &have))
		return have ? strtab_get(t->text, (uint32_t)have) : NULL;
	all = all_types(t, modules);
	if (rttype_name(&all, addr, t->buf, LIMIT_NAME, NULL)) {
		map_put(&t->names, addr, 0);
		return NULL;
	}
	rttype_hide_shapes(t->buf);
	id = strtab_puts(t->text, t->buf);
	if (id == UINT32_MAX)
		return NULL;
	map_put(&t->names, addr, id);
	return strtab_get(t->text, id);
}

static const char *joined(struct types *t, const char *a, const char *b)
{
	uint32_t id;

	snprintf(t->buf, LABEL_BYTES, "%s%s", a, b);
	id = strtab_puts(t->text, t->buf);
	return id == UINT32_MAX ? "?" : strtab_get(t->text, id);
}

/*
 * A map keeps its keys and elements in a type of its own that is named after the map's. Source:
 * cmd/compile/internal/reflectdata, MapBucketType (map.go; "map.bucket", up to Go 1.23) and
 * SwissMapGroupType ("map.group", since).
 */
static const char *map_name(struct types *t, const char *name)
{
	static const char *const within[] = { "map.bucket[", "map.group[" };

	for (size_t i = 0; i < ARRAY_LEN(within); i++)
		if (!strncmp(name, within[i], strlen(within[i])))
			return joined(t, "map[", name + strlen(within[i]));
	return NULL;
}

/* ---- which function made it ---- */

/*
 * The first function outside of the allocator decides; if it may be called by a maker of
 * channels, the next one, too.
 */
static bool judge(const char *func, struct made *so_far)
{
	struct made m = rtmaker_of(func);

	if (m.kind == MADE_ALLOCATOR)
		return false;
	if (so_far->kind == MADE_ONE && m.kind != MADE_CHAN)
		return true;
	*so_far = m;
	return m.kind != MADE_ONE;
}

/*
 * False when no frame tells. *@ret: the address that its maker returns to; 0 where that is not
 * known.
 */
static bool maker_of(struct types *t, const struct gpb_stack *st, struct made *out, uint64_t *ret)
{
	struct made m = { .kind = MADE_ALLOCATOR };
	struct goframe f[INLINED];
	const __u64 *pc = st->pc + st->nkernel;

	for (size_t i = 0; i < MAKER_FRAMES && i < st->nfirst; i++) {
		int n = subject_frames(t->s, pc[i] - 1, f, INLINED, NULL);

		for (int k = 0; k < n; k++) {
			if (judge(f[k].func, &m)) {
				*out = m;
				*ret = k == n - 1 && i + 1 < st->nfirst ? pc[i + 1] : 0;
				return true;
			}
		}
		if (n < 1)
			break;
	}
	return false;
}

/* The type that was put into the interface by the call that returns to @ret. */
static const char *boxed(struct types *t, const struct made *m, uint64_t ret)
{
	struct rttype_module modules[GPB_IMAGES];
	struct rttypes all = all_types(t, modules);
	const struct image *img = images_at(&t->s->images, ret);
	const char *name;
	uint64_t type;

	if (!ret)
		return m->name;
	if (!map_get(&t->boxed, ret, &type)) {
		type = rtbox_type(img->bin, img->bias, &all, ret, m->box);
		map_put(&t->boxed, ret, type);
	}
	name = name_of(t, type);
	return name ? joined(t, "interface ", name) : m->name;
}

static const char *label(struct types *t, const struct gpb_stack *st)
{
	bool asked = st->object.type & GPB_TYPE_MAKER;
	const char *name = name_of(t, st->object.type & ~(uint64_t)GPB_TYPE_MAKER), *map;
	struct made m;
	uint64_t ret;

	if (!maker_of(t, st, &m, &ret))
		return "?";
	if (m.kind == MADE_KNOWN)
		return m.name;
	if (m.kind == MADE_BOXED)
		return boxed(t, &m, ret);
	if (m.kind == MADE_CHAN)
		return asked && name ? name : "chan ?";
	if (!name)
		return m.kind == MADE_SLICE ? "[]?" : "?";
	map = map_name(t, name);
	if (map)
		return map;
	return m.kind == MADE_SLICE ? joined(t, "[]", name) : name;
}

/*
 * Does the label have a '?' that means "unknown"? A struct's tags stand in quotes and may contain
 * anything.
 */
static bool is_vague(const char *is)
{
	size_t n = strcspn(is, "\"");
	const char *dots = strstr(is, "[...]");

	return strcspn(is, "?") < n || (dots && dots < is + n);
}

size_t types_add(struct types *t, const struct gpb_stack *st, struct prof_label *labels, size_t n)
{
	const char *is = label(t, st);

	t->samples += st->count;
	if (!strcmp(is, "?"))
		t->unknown += st->count;
	else if (is_vague(is))
		t->partly += st->count;
	for (size_t i = 0; i < n; i++)
		if (!strcmp(labels[i].key, "type"))
			labels[i].key = "type (label)";
	labels[n] = (struct prof_label){ .key = "type", .str = is };
	return n + 1;
}

int types_comment(const struct types *t, struct prof *p, struct err *e)
{
	if (!t->text && t->s)
		return prof_comment(p, e, "types: none: they are told from go1.%d on",
				    RTTYPE_FIRST_MINOR);
	if (!t->text)
		return 0;
	return prof_comment(
		p, e,
		"types: of %llu samples %llu with a type that is known in part (\"[]?\"), "
		"%llu with none (\"?\")",
		(unsigned long long)t->samples, (unsigned long long)t->partly,
		(unsigned long long)t->unknown);
}
