/* user/ingest/typing/named.c - types that the DWARF does not have, by what their descriptors say. */
#include "ingest/typing/flow_priv.h"

/* Source: reflect.Kind, Go 1.5 to 1.27. */
enum {
	KIND_ARRAY = 17,
	KIND_CHAN,
	KIND_FUNC,
	KIND_MAP = 21,
	KIND_POINTER,
	KIND_STRUCT = 25,
	KIND_UNSAFE
};

const struct flow_named *flow_described(struct flow *x, uint64_t descriptor, uint32_t *index)
{
	uint64_t at = descriptor - x->bias, known;
	struct typing_described d;
	struct flow_named *to;

	if (!map_get(&x->described, at, &known)) {
		known = GOTYPE_NONE;
		if (x->named.n < FLOW_NAMED_MAX && typing_program_describe(x->program, at, &d)) {
			uint32_t name = strtab_puts(x->c->names, d.name);

			to = name == UINT32_MAX ? NULL : vec_add(&x->named, FLOW_NAMED_MAX);
			if (to) {
				*to = (struct flow_named){ name, d.kind, d.size, d.ptrdata,
							   d.elem ? d.elem + x->bias : 0 };
				known = x->named.n - 1;
			}
		}
		if (x->described.n < FLOW_ANSWERS_MAX)
			map_put(&x->described, at, known);
	}
	*index = (uint32_t)known;
	return known < x->named.n ? &x->named.at[known] : NULL;
}

/* Is a value of this type in an interface the pointer itself? Source: types.IsDirectIface. */
static bool is_direct(const struct flow *x, const struct flow_named *n)
{
	switch (n->kind) {
	case KIND_CHAN:
	case KIND_FUNC:
	case KIND_MAP:
	case KIND_POINTER:
	case KIND_UNSAFE:
		return true;
	case KIND_ARRAY:
	case KIND_STRUCT:
		return n->size == x->t->word && n->ptrdata == x->t->word;
	default:
		return false;
	}
}

bool flow_named_fits(const struct flow *x, const struct object *o, const struct heap_class *l,
		     const struct flow_named *n)
{
	const struct heap_field *f = x->c->fields.at + l->first;
	uint64_t header = flow_header_of(x, o), last = header + n->ptrdata - x->t->word;

	if (!n->ptrdata || !o->node || !l->nfields)
		return !n->ptrdata == !o->node;
	/* Behind a header the dump tells of pointers up to the slot's end. */
	for (uint32_t i = l->nfields; i-- > 0 && f[i].offset >= last;)
		if (f[i].offset == last)
			return header || i + 1 == l->nfields;
	return false;
}

bool flow_named_value(struct flow *x, uint64_t addr, uint64_t descriptor,
		      enum heap_certainty certainty)
{
	/* Whatever fits and leads on is worth more than a name: runtime.m, which runtime.mPadded begins with. */
	struct flow_candidate c = { 0, FORM_NAMED, certainty, FLOW_FIT - 1 };
	const struct flow_named *n = flow_described(x, descriptor, &c.type);
	struct object o;
	uint64_t offset;

	if (!n || !flow_find(x, addr, &o, &offset) || offset || !flow_takes_up(x, &o, n->size) ||
	    flow_is_tiny(&o, n->size))
		return false;
	return flow_put(x, &o, &c);
}

bool flow_named_interface(struct flow *x, uint64_t descriptor, uint64_t data)
{
	uint32_t index, type;
	const struct flow_named *n = flow_described(x, descriptor, &index);
	uint64_t elem = n ? n->elem : 0;

	if (!n || !is_direct(x, n))
		return n && flow_named_value(x, data, descriptor, HEAP_EXACT);
	if (n->kind == KIND_FUNC) {
		flow_closure(x, data);
		return true;
	}
	if (!elem)
		return false;
	type = flow_type(x, elem);
	if (type == GOTYPE_NONE)
		return flow_named_value(x, data, elem, HEAP_INFERRED);
	flow_pointer(x, data, type);
	return true;
}
