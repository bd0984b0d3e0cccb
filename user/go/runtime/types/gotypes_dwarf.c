/*
 * user/go/runtime/types/gotypes_dwarf.c - types and variables from DWARF, through libdw.
 *
 * All units of Go are read once, from the first to the last entry. References to types are kept as
 * offsets of their entries until all have been seen, and then become numbers (gotypes_link.c).
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <string.h>

#include "base/limits.h"
#include "go/image/elf/apart.h"
#include "go/image/elf/dwarfimg.h"
#include "go/runtime/types/gotypes_dwarf_priv.h"

/* Source: cmd/internal/dwarf/dwarf.go, DW_AT_go_kind and the next ones; Go 1.7 to 1.27. */
enum {
	AT_GO_KIND = 0x2900,
	AT_GO_ELEM = 0x2902,
	AT_GO_RUNTIME_TYPE = 0x2904,
	AT_GO_CLOSURE_OFFSET = 0x2907, /* from Go 1.23 on */
};

/* Source: reflect.Kind. */
enum {
	KIND_CHAN = 18,
	KIND_FUNC = 19,
	KIND_INTERFACE = 20,
	KIND_MAP = 21,
	KIND_SLICE = 23,
	KIND_STRING = 24,
	KIND_UNSAFE = 26
};

enum { UNITS_MAX = 1 << 20, BLOCK_DEPTH = 64 };

static const char *const wanted[] = { "debug_info",	"debug_abbrev",	     "debug_str",
				      "debug_line_str", "debug_str_offsets", "debug_loc",
				      "debug_loclists", "debug_addr" };

struct reader {
	Dwarf *dw;
	const struct gotypes_want *want;
	struct gotypes_made *m;
	struct gotypes_refs *refs;
	bool full; /* no memory, or more than is kept */
};

static void elf_endp(Elf **elf)
{
	if (*elf)
		elf_end(*elf);
}

static void dwarf_endp(Dwarf **dw)
{
	if (*dw)
		dwarf_end(*dw);
}

/* ---- attributes ---- */

/* The offset of the entry that an attribute refers to; 0: none. */
static uint32_t reference(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute at;
	Dwarf_Die to;

	if (!dwarf_attr_integrate(die, name, &at) || !dwarf_formref_die(&at, &to))
		return 0;
	return (uint32_t)dwarf_dieoffset(&to); /* the image is smaller than 4 GiB */
}

static bool number(Dwarf_Die *die, unsigned name, uint64_t *out)
{
	Dwarf_Attribute at;
	Dwarf_Word v;
	Dwarf_Addr addr;

	if (!dwarf_attr(die, name, &at))
		return false;
	if (!dwarf_formudata(&at, &v))
		*out = v;
	else if (!dwarf_formaddr(&at, &addr))
		*out = addr;
	else
		return false;
	return true;
}

/*
 * Go's linkers write expressions as blocks, which libdw refuses in DWARF 4. Up to 127 bytes, a block1
 * and an exprloc are the same bytes.
 */
static bool expression(Dwarf_Die *die, unsigned name, Dwarf_Attribute *at)
{
	Dwarf_Block block;

	if (!dwarf_attr_integrate(die, name, at))
		return false;
	if (at->form == DW_FORM_block1 && !dwarf_formblock(at, &block) && block.length < 0x80)
		at->form = DW_FORM_exprloc;
	return true;
}

/* DW_AT_go_elem: a reference, or an offset in the section. */
static uint32_t go_elem(struct reader *r, Dwarf_Die *die)
{
	uint32_t to = reference(die, AT_GO_ELEM);
	uint64_t off;
	Dwarf_Die found;

	if (!to && number(die, AT_GO_ELEM, &off) && dwarf_offdie(r->dw, off, &found))
		to = (uint32_t)off;
	return to;
}

static bool member_offset(Dwarf_Die *m, uint64_t *off)
{
	Dwarf_Attribute at;
	Dwarf_Op *op;
	size_t n;

	if (number(m, DW_AT_data_member_location, off))
		return true;
	if (!expression(m, DW_AT_data_member_location, &at) || dwarf_getlocation(&at, &op, &n) ||
	    n != 1 || op[0].atom != DW_OP_plus_uconst)
		return false;
	*off = op[0].number;
	return true;
}

static uint32_t name_of(struct reader *r, Dwarf_Die *die)
{
	const char *name = dwarf_diename(die);

	return name ? gotypes_add_text(r->m, name) : 0;
}

/*
 * The linker writes it as an offset from runtime.types, but for a few types, of which it writes the
 * address. Types of which the program has no descriptor have 0.
 */
static uint64_t runtime_type(const struct reader *r, Dwarf_Die *die)
{
	uint64_t v = 0;

	if (!number(die, AT_GO_RUNTIME_TYPE, &v) || !v)
		return 0;
	return v < r->want->etypes - r->want->types ? r->want->types + v : v;
}

/* ---- types ---- */

static void read_members(struct reader *r, Dwarf_Die *die, struct gotype *t)
{
	Dwarf_Die m;

	t->first = (uint32_t)r->m->fields.n;
	if (dwarf_child(die, &m))
		return;
	do {
		uint64_t offset;
		struct gofield *f;

		if (dwarf_tag(&m) != DW_TAG_member || !member_offset(&m, &offset))
			continue;
		f = vec_add(&r->m->fields, LIMIT_TYPE_FIELDS);
		if (!f) {
			r->full = true;
			return;
		}
		*f = (struct gofield){ offset, name_of(r, &m), reference(&m, DW_AT_type) };
		t->nfields++;
	} while (!dwarf_siblingof(&m, &m));
}

static uint64_t array_count(Dwarf_Die *die)
{
	Dwarf_Die range;
	uint64_t n = 0;

	if (dwarf_child(die, &range) || dwarf_tag(&range) != DW_TAG_subrange_type)
		return 0;
	if (number(&range, DW_AT_count, &n))
		return n;
	return number(&range, DW_AT_upper_bound, &n) ? n + 1 : 0;
}

static void struct_type(struct reader *r, Dwarf_Die *die, uint64_t kind, struct gotype *t)
{
	int size = dwarf_bytesize(die);

	t->size = size > 0 ? (uint64_t)size : 0;
	if (kind == KIND_STRING) {
		t->kind = GOTYPE_STRING;
		return;
	}
	t->kind = kind == KIND_SLICE ? GOTYPE_SLICE : GOTYPE_STRUCT;
	t->elem = kind == KIND_SLICE ? go_elem(r, die) : 0;
	read_members(r, die, t);
}

static void typedef_type(struct reader *r, Dwarf_Die *die, uint64_t kind, struct gotype *t)
{
	t->elem = reference(die, DW_AT_type);
	t->size = r->want->word;
	if (kind == KIND_INTERFACE) {
		t->kind = GOTYPE_EFACE; /* or GOTYPE_IFACE: by what it stands for */
		t->size = 2 * r->want->word;
	} else if (kind == KIND_MAP) {
		t->kind = GOTYPE_MAP;
	} else if (kind == KIND_CHAN) {
		t->kind = GOTYPE_CHAN;
		t->of = go_elem(r, die);
	} else {
		t->kind = GOTYPES_ALIAS;
	}
}

static bool describe(struct reader *r, Dwarf_Die *die, struct gotype *t)
{
	uint64_t kind = 0;
	int size = dwarf_bytesize(die);

	number(die, AT_GO_KIND, &kind);
	t->size = size > 0 ? (uint64_t)size : 0;
	switch (dwarf_tag(die)) {
	case DW_TAG_base_type:
		t->kind = GOTYPE_PLAIN;
		return true;
	case DW_TAG_pointer_type:
		t->elem = reference(die, DW_AT_type);
		t->kind = t->elem && kind != KIND_UNSAFE ? GOTYPE_POINTER : GOTYPE_UNSAFE;
		t->size = r->want->word;
		return true;
	case DW_TAG_subroutine_type:
		t->kind = GOTYPE_FUNC;
		t->size = r->want->word;
		return true;
	case DW_TAG_array_type:
		t->kind = GOTYPE_ARRAY;
		t->elem = reference(die, DW_AT_type);
		t->count = array_count(die);
		return true;
	case DW_TAG_structure_type:
		struct_type(r, die, kind, t);
		return true;
	case DW_TAG_typedef:
		typedef_type(r, die, kind, t);
		return true;
	default:
		return false;
	}
}

static void read_type(struct reader *r, Dwarf_Die *die)
{
	struct gotype t = { 0 }, *to;

	if (!describe(r, die, &t))
		return;
	t.name = name_of(r, die);
	t.runtime = runtime_type(r, die);
	to = vec_add(&r->m->types, LIMIT_TYPES);
	if (!to || !map_put(&r->refs->by_offset, dwarf_dieoffset(die), r->m->types.n - 1))
		r->full = true;
	if (to)
		*to = t;
}

/* ---- variables ---- */

static void read_global(struct reader *r, Dwarf_Die *die)
{
	const struct gotypes_want *w = r->want;
	Dwarf_Attribute at;
	struct govar *v;
	Dwarf_Op *op;
	size_t n;

	if (!expression(die, DW_AT_location, &at) || dwarf_getlocation(&at, &op, &n) || n != 1 ||
	    op[0].atom != DW_OP_addr)
		return;
	if ((op[0].number < w->data || op[0].number >= w->edata) &&
	    (op[0].number < w->bss || op[0].number >= w->ebss))
		return;
	v = vec_add(&r->m->vars, LIMIT_TYPE_VARS);
	if (!v) {
		r->full = true;
		return;
	}
	*v = (struct govar){ .addr = op[0].number,
			     .name = name_of(r, die),
			     .type = reference(die, DW_AT_type) };
}

/* Where the parts of a variable are, told by a location's operations one after the other. */
struct var_place {
	bool known; /* it is in the frame */
	int64_t cfa;
	int64_t constant;
	uint64_t at; /* in the variable */
};

static void add_slot(struct reader *r, const struct goslot *like, const struct var_place *p,
		     uint64_t len)
{
	struct goslot *s = p->known ? vec_add(&r->m->slots, LIMIT_TYPE_VARS) : NULL;

	if (s) {
		*s = *like;
		s->offset = p->at;
		s->len = len;
		s->cfa = p->cfa;
	} else if (p->known) {
		r->full = true;
	}
}

/* False: an operation that says something else than a place in the frame. */
static bool step(const Dwarf_Op *op, struct var_place *p)
{
	switch (op->atom) {
	case DW_OP_call_frame_cfa:
		p->known = true;
		p->cfa = 0;
		return true;
	case DW_OP_fbreg: /* a Go function's frame base is its CFA */
		p->known = true;
		p->cfa = (int64_t)op->number;
		return true;
	case DW_OP_consts:
	case DW_OP_const1s:
	case DW_OP_const2s:
	case DW_OP_const4s:
		p->constant = (int64_t)op->number;
		return true;
	case DW_OP_plus:
	case DW_OP_plus_uconst:
		p->cfa = (int64_t)((uint64_t)p->cfa +
				   (op->atom == DW_OP_plus ? (uint64_t)p->constant : op->number));
		return p->known;
	default:
		p->known = false;
		return op->atom >= DW_OP_reg0 && op->atom <= DW_OP_reg31;
	}
}

static void read_place(struct reader *r, const struct goslot *like, const Dwarf_Op *op, size_t n)
{
	struct var_place p = { 0 };
	bool pieces = false;

	for (size_t i = 0; i < n && !r->full; i++) {
		if (op[i].atom == DW_OP_piece) {
			pieces = true;
			add_slot(r, like, &p, op[i].number);
			p = (struct var_place){ .at = p.at + op[i].number };
		} else if (!step(&op[i], &p)) {
			return;
		}
	}
	if (!pieces)
		add_slot(r, like, &p, UINT64_MAX); /* all of it */
}

/* The pcs that were asked for and lie in a function: [from, to) of them. */
struct pcs {
	size_t from, to;
};

static size_t first_pc(const struct gotypes_want *w, uint64_t pc)
{
	size_t low = 0, high = w->npcs;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (w->pcs[mid] < pc)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static void read_local(struct reader *r, Dwarf_Die *die, const struct pcs *pcs)
{
	struct goslot like = { 0 };
	Dwarf_Attribute at;
	bool described = false;

	if (!expression(die, DW_AT_location, &at))
		return;
	for (size_t i = pcs->from; i < pcs->to && !r->full; i++) {
		Dwarf_Op *op;
		size_t n;

		if (dwarf_getlocation_addr(&at, r->want->pcs[i], &op, &n, 1) != 1 || !n)
			continue;
		if (!described)
			like = (struct goslot){ .name = name_of(r, die),
						.type = reference(die, DW_AT_type) };
		described = true;
		like.pc = (uint32_t)i;
		read_place(r, &like, op, n);
	}
}

static void read_captured(struct reader *r, Dwarf_Die *die, struct gotype *closure)
{
	struct gofield *f;
	uint64_t offset;

	if (!number(die, AT_GO_CLOSURE_OFFSET, &offset))
		return;
	f = vec_add(&r->m->fields, LIMIT_TYPE_FIELDS);
	if (!f) {
		r->full = true;
		return;
	}
	if (!closure->nfields++)
		closure->first = (uint32_t)r->m->fields.n - 1;
	*f = (struct gofield){ offset, name_of(r, die), reference(die, DW_AT_type) };
}

/* Where the method begins in "main.(*node).next" or, as it was written before, "main.(*node).(main.next)". */
static const char *method_of(const char *s, size_t len)
{
	const char *open = len && s[len - 1] == ')' ? memrchr(s, '(', len) : NULL;

	if (open)
		return open > s && open[-1] == '.' ? open - 1 : NULL;
	return memrchr(s, '.', len);
}

/* "main.(*node).next-fm" gives "*main.node"; "main.node.next-fm" and "main.(node).next-fm" "main.node". */
static bool receiver_name(const char *function, char out[LIMIT_NAME])
{
	size_t len = function ? strlen(function) : 0;
	const char *method = NULL, *open, *type;

	if (len > 3 && !strcmp(function + len - 3, "-fm"))
		method = method_of(function, len - 3);
	if (!method || method == function)
		return false;
	open = method[-1] == ')' ? memmem(function, (size_t)(method - function), ".(", 2) : NULL;
	type = open ? open + 2 + (open[2] == '*') : method;
	if (open)
		snprintf(out, LIMIT_NAME, "%s%.*s.%.*s", open[2] == '*' ? "*" : "",
			 (int)(open - function), function, (int)(method - 1 - type), type);
	else
		snprintf(out, LIMIT_NAME, "%.*s", (int)(method - function), function);
	return true;
}

/*
 * A method value is a closure of its code and the receiver. The DWARF does not describe that, or (of
 * programs built with -N) takes a receiver that is no pointer for one.
 * Source: cmd/compile, MethodValueType (Go 1.27), makepartialcall (Go 1.4): fields F and R.
 */
static void read_receiver(struct reader *r, Dwarf_Die *die, struct gotype *closure)
{
	char type[LIMIT_NAME];
	struct gotypes_receiver *to;
	struct gofield *f;

	if (r->full || !receiver_name(dwarf_diename(die), type))
		return;
	f = vec_add(&r->m->fields, LIMIT_TYPE_FIELDS);
	to = vec_add(&r->refs->receivers, LIMIT_TYPES);
	if (!f || !to) {
		r->full = true;
		return;
	}
	*f = (struct gofield){ r->want->word, gotypes_add_text(r->m, "R"), 0 };
	closure->first = (uint32_t)r->m->fields.n - 1;
	closure->nfields = 1;
	*to = (struct gotypes_receiver){ closure->first, gotypes_add_text(r->m, type) };
}

static void end_closure(struct reader *r, Dwarf_Die *die, struct gotype *t, uint64_t entry)
{
	const char *name = dwarf_diename(die);
	char text[LIMIT_NAME];
	struct goclosure *c;
	struct gotype *to;

	if (!t->nfields || r->full)
		return;
	snprintf(text, sizeof(text), "closure %s", name ? name : "?");
	t->name = gotypes_add_text(r->m, text);
	t->kind = GOTYPE_STRUCT;
	t->role = GOTYPE_CLOSURE;
	to = vec_add(&r->m->types, LIMIT_TYPES);
	c = vec_add(&r->m->closures, LIMIT_TYPES);
	if (!to || !c) {
		r->full = true;
		return;
	}
	*to = *t;
	*c = (struct goclosure){ entry, (uint32_t)(r->m->types.n - 1) };
}

/* To the next entry of a function; @enter: into the one that @at ends with. False: there is none. */
static bool next_entry(Dwarf_Die at[BLOCK_DEPTH], size_t *depth, bool enter)
{
	if (enter && *depth + 1 < BLOCK_DEPTH && !dwarf_child(&at[*depth], &at[*depth + 1])) {
		++*depth;
		return true;
	}
	for (; dwarf_siblingof(&at[*depth], &at[*depth]); --*depth)
		if (!*depth)
			return false;
	return true;
}

/* Its variables, those of its blocks, and those of calls that were inlined. */
static void read_function(struct reader *r, Dwarf_Die *die)
{
	Dwarf_Die at[BLOCK_DEPTH];
	struct gotype closure = { 0 };
	Dwarf_Addr low, high;
	struct pcs pcs;
	size_t depth = 0;
	bool block, more;

	if (dwarf_lowpc(die, &low) || dwarf_highpc(die, &high))
		return;
	pcs = (struct pcs){ first_pc(r->want, low), first_pc(r->want, high) };
	for (more = !dwarf_child(die, &at[0]); more && !r->full;) {
		int tag = dwarf_tag(&at[depth]);

		if (tag == DW_TAG_variable && !depth)
			read_captured(r, &at[0], &closure);
		if (tag == DW_TAG_variable || tag == DW_TAG_formal_parameter)
			read_local(r, &at[depth], &pcs);
		block = tag == DW_TAG_lexical_block || tag == DW_TAG_inlined_subroutine;
		more = next_entry(at, &depth, block && pcs.from < pcs.to);
	}
	read_receiver(r, die, &closure);
	end_closure(r, die, &closure, low);
}

/* ---- units ---- */

static void read_unit(struct reader *r, Dwarf_Die *unit)
{
	Dwarf_Die die;

	if (dwarf_srclang(unit) != DW_LANG_Go || dwarf_child(unit, &die))
		return;
	do {
		int tag = dwarf_tag(&die);

		if (tag == DW_TAG_subprogram)
			read_function(r, &die);
		else if (tag == DW_TAG_variable)
			read_global(r, &die);
		else
			read_type(r, &die);
	} while (!r->full && !dwarf_siblingof(&die, &die));
}

static void read_units(struct reader *r)
{
	Dwarf_Off off = 0, next;
	size_t head;
	int n = 0;

	while (!r->full && n++ < UNITS_MAX &&
	       !dwarf_nextcu(r->dw, off, &next, &head, NULL, NULL, NULL)) {
		Dwarf_Die unit;

		if (dwarf_offdie(r->dw, off + head, &unit))
			read_unit(r, &unit);
		off = next;
	}
}

/* libdw's own handler would write to stderr. */
__attribute__((noreturn)) static void out_of_memory(void)
{
	_exit(APART_NO_MEMORY);
}

static int read_image(const struct dwarfimg *im, struct reader *r, struct err *e)
{
	Elf *elf CLEANUP(elf_endp) = elf_memory((char *)im->bytes, im->len);
	Dwarf *dw CLEANUP(dwarf_endp) = elf ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;

	if (!dw)
		return err_set(e, -EBADMSG, "unreadable DWARF: %s",
			       elf ? dwarf_errmsg(-1) : elf_errmsg(-1));
	dwarf_new_oom_handler(dw, out_of_memory);
	r->dw = dw;
	read_units(r);
	return r->full ? err_set(e, -E2BIG, "the DWARF has more than %d types or %d fields",
				 LIMIT_TYPES, LIMIT_TYPE_FIELDS) :
			 0;
}

int gotypes_from_dwarf(int fd, const struct gotypes_want *want, struct gotypes_made *m,
		       struct err *e)
{
	CLEANUP(dwarfimg_fini) struct dwarfimg im = { 0 };
	CLEANUP(gotypes_refs_fini) struct gotypes_refs refs = { 0 };
	struct reader r = { .want = want, .m = m, .refs = &refs };
	int rc;

	elf_version(EV_CURRENT);
	rc = dwarfimg_read(fd, wanted, ARRAY_LEN(wanted), &im, e);
	if (!rc)
		rc = read_image(&im, &r, e);
	if (rc)
		return rc;
	rc = gotypes_link(m, &refs, want->word, e);
	m->dwarf = !rc;
	return rc;
}
