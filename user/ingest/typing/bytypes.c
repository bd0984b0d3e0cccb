/* user/ingest/typing/bytypes.c - types of a dump beside those of a program. */
#include "ingest/typing/bytypes.h"

#include <ctype.h>
#include <string.h>

enum {
	LOADED_AT = 0x1000, /* programs are moved by whole pages */
	TYPES_MAX = 1024,   /* of the dump: those that are looked at */
	FIRST_MAX = 64,	    /* of these: those that a place is searched for */
	PLACES_MAX = 1024,  /* that are tried for each */
};

struct check {
	const struct typing_index *ix;
	const struct strtab *names;
	const struct gotypes *t;
	struct map at; /* by address of a descriptor: its type */
};

/*
 * What a name ends in. The rest may differ: a dump has the path of the package or its name, and in the
 * DWARF some characters of paths are escaped, and types of functions are numbered: "main.local·1".
 */
static struct heapdump_text last_word(const char *name)
{
	const char *number = strstr(name, "·");
	size_t end = number ? (size_t)(number - name) : strlen(name), n = end;

	while (n && (isalnum((unsigned char)name[n - 1]) || name[n - 1] == '_'))
		n--;
	return (struct heapdump_text){ name + n, end - n };
}

/* Of a pointer's type the dump has the path of the package, and a dot. */
static bool same_name(const char *dump, const char *dwarf)
{
	struct heapdump_text a = last_word(dump), b = last_word(dwarf);
	size_t n = strlen(dump);

	if (n && dump[n - 1] == '.')
		return dwarf[0] == '*' && (strstr(dwarf, dump) || strchr(dwarf, '%'));
	return a.len == b.len && !memcmp(a.at, b.at, a.len);
}

static bool same(const struct check *x, const struct typing_desc *d, const struct gotype *g)
{
	return g->size == d->size &&
	       same_name(strtab_get(x->names, d->name), gotypes_text(x->t, g->name));
}

/* NULL: the DWARF has none there. */
static const struct gotype *type_at(const struct check *x, uint64_t descriptor)
{
	uint64_t id;

	return map_get(&x->at, descriptor, &id) ? &x->t->types[id] : NULL;
}

/* How many agree; 0 and *@other: one does not. */
static int agreeing(const struct check *x, uint64_t bias, const struct typing_desc **other)
{
	int n = 0;

	*other = NULL;
	for (size_t i = 0; i < x->ix->types.n && i < TYPES_MAX; i++) {
		const struct typing_desc *d = &x->ix->types.at[i];
		const struct gotype *g = type_at(x, d->addr - bias);

		if (g && !same(x, d, g)) {
			*other = d;
			return 0;
		}
		n += g != NULL;
	}
	return n;
}

/* Where the first type that the DWARF knows may be, tried one place after the other. */
static int search(const struct check *x, uint64_t *bias)
{
	const struct typing_desc *other;
	int best = 0;

	for (size_t i = 0; !best && i < x->ix->types.n && i < FIRST_MAX; i++) {
		const struct typing_desc *d = &x->ix->types.at[i];

		for (size_t k = 0, tried = 0; k < x->t->ntypes && tried < PLACES_MAX; k++) {
			const struct gotype *g = &x->t->types[k];
			uint64_t by = d->addr - g->runtime;
			int n;

			if (!g->runtime || by % LOADED_AT || !same(x, d, g))
				continue;
			tried++;
			n = agreeing(x, by, &other);
			if (n > best) {
				best = n;
				*bias = by;
			}
		}
	}
	return best;
}

static int check(struct check *x, bool moves, uint64_t *bias, struct err *e)
{
	const struct typing_desc *other = NULL;
	const struct gotype *g;
	int n;

	*bias = 0;
	n = moves ? search(x, bias) : agreeing(x, 0, &other);
	if (other) {
		g = type_at(x, other->addr);
		return err_set(
			e, -EINVAL,
			"the type %s of %llu bytes is at 0x%llx, where the program has %s of "
			"%llu bytes",
			strtab_get(x->names, other->name), (unsigned long long)other->size,
			(unsigned long long)other->addr, gotypes_text(x->t, g->name),
			(unsigned long long)g->size);
	}
	return n;
}

int bytypes_check(const struct typing_index *ix, const struct strtab *names,
		  const struct typing_program *p, uint64_t *bias, struct err *e)
{
	struct check x = { .ix = ix, .names = names, .t = p->t };
	uint64_t old;
	int ret = 0;

	for (size_t i = 0; !ret && i < p->t->ntypes; i++)
		if (p->t->types[i].runtime && !map_get(&x.at, p->t->types[i].runtime, &old) &&
		    !map_put(&x.at, p->t->types[i].runtime, i))
			ret = err_set(e, -ENOMEM, "no memory for %zu types", p->t->ntypes);
	if (!ret)
		ret = check(&x, p->moves, bias, e);
	map_fini(&x.at);
	return ret;
}
