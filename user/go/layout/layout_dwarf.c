/*
 * user/go/layout/layout_dwarf.c - struct offsets from a binary's DWARF, through libdw.
 *
 * The linker puts all types into the unit of package runtime
 * (Source: cmd/link/internal/ld/dwarf.go, Go 1.16-1.27), which is thus looked at first.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>

#include "base/limits.h"
#include "base/vec.h"
#include "go/image/elf/apart.h"
#include "go/image/elf/dwarfimg.h"
#include "go/layout/layout_priv.h"

enum {
	TYPEDEF_DEPTH = 8,
	UNITS_MAX = 1 << 20,
	/* No offset that is asked for is larger: heapArena is 2 MiB (go1.16), mheap 80 KiB. */
	OFFSET_MAX = 1 << 24,
};

static const char *const wanted[] = { "debug_info", "debug_abbrev", "debug_str", "debug_line_str",
				      "debug_str_offsets" };

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

/* ---- the fields ------------------------------------------------------------------------------ */

struct field {
	const char *strct, *name; /* name NULL: the size of the struct */
};

static const struct field fields[LAYOUT_COUNT] = {
#define LAYOUT_FIELD(id, s, f) { s, f },
	LAYOUT_FIELDS(LAYOUT_FIELD)
#undef LAYOUT_FIELD
};

/*
 * What a field was called elsewhere. Source: runtime/type.go to 1.20, internal/abi/type.go;
 * sudog.elem is a pointer to Go 1.25, then a maybeTraceablePtr, whose second word is the one
 * that always holds the address (runtime2.go, "source of truth").
 */
static const struct {
	enum layout_field id;
	struct field also;
} renamed[] = {
	{ LAYOUT_type_size, { "internal/abi.Type", "Size_" } },
	{ LAYOUT_type_ptrdata, { "internal/abi.Type", "PtrBytes" } },
	{ LAYOUT_type_tflag, { "internal/abi.Type", "TFlag" } },
	{ LAYOUT_type_kind, { "internal/abi.Type", "Kind_" } },
	{ LAYOUT_type_str, { "internal/abi.Type", "Str" } },
	{ LAYOUT_type_sizeof, { "internal/abi.Type", NULL } },
	{ LAYOUT_uncommon_pkgpath, { "internal/abi.UncommonType", "PkgPath" } },
	{ LAYOUT_sudog_elem, { "runtime.sudog", "elem" } },
};

struct search {
	int32_t *off;
	uint32_t *header_over;
	bool found[LAYOUT_COUNT]; /* the struct was seen */
	bool span_found;
	size_t left;
};

static bool peel(Dwarf_Die *die, Dwarf_Die *type)
{
	Dwarf_Attribute at;

	if (!dwarf_attr(die, DW_AT_type, &at) || !dwarf_formref_die(&at, type))
		return false;
	for (int i = 0; i < TYPEDEF_DEPTH && dwarf_tag(type) == DW_TAG_typedef; i++) {
		Dwarf_Die next;

		if (!dwarf_attr(type, DW_AT_type, &at) || !dwarf_formref_die(&at, &next))
			return false;
		*type = next;
	}
	return dwarf_tag(type) == DW_TAG_structure_type;
}

static bool member_offset(Dwarf_Die *m, uint64_t *off)
{
	Dwarf_Attribute at;
	Dwarf_Word v;
	Dwarf_Op *op;
	size_t n;

	if (!dwarf_attr(m, DW_AT_data_member_location, &at))
		return false;
	if (!dwarf_formudata(&at, &v)) {
		*off = v;
		return true;
	}
	if (dwarf_getlocation(&at, &op, &n) || n != 1 || op[0].atom != DW_OP_plus_uconst)
		return false;
	*off = op[0].number;
	return true;
}

static bool find_member(Dwarf_Die *strct, const char *name, size_t len, Dwarf_Die *out)
{
	int n = 0;

	if (dwarf_child(strct, out))
		return false;
	do {
		const char *have = dwarf_tag(out) == DW_TAG_member ? dwarf_diename(out) : NULL;

		if (have && !strncmp(have, name, len) && !have[len])
			return true;
	} while (++n < LIMIT_NAME && !dwarf_siblingof(out, out));
	return false;
}

/* Offset of the dotted @path in @strct, -1 when there is no such field. */
static int32_t path_offset(const Dwarf_Die *strct, const char *path)
{
	Dwarf_Die die = *strct, m;
	uint64_t sum = 0, off;

	for (;;) {
		size_t len = strcspn(path, ".");

		if (!find_member(&die, path, len, &m) || !member_offset(&m, &off) ||
		    off > OFFSET_MAX)
			return -1;
		sum += off;
		if (sum > OFFSET_MAX)
			return -1;
		if (!path[len])
			return (int32_t)sum;
		path += len + 1;
		if (!peel(&m, &die))
			return -1;
	}
}

static int32_t field_value(Dwarf_Die *strct, const char *path)
{
	int size;

	if (path)
		return path_offset(strct, path);
	size = dwarf_bytesize(strct);
	return size >= 0 && size <= OFFSET_MAX ? size : -1;
}

static void take_struct(struct search *s, Dwarf_Die *die, const char *name)
{
	for (size_t i = 0; i < LAYOUT_COUNT; i++) {
		if (s->found[i] || strcmp(fields[i].strct, name))
			continue;
		s->found[i] = true;
		s->left--;
		s->off[i] = field_value(die, fields[i].name);
	}
	for (size_t i = 0; i < ARRAY_LEN(renamed); i++) {
		enum layout_field id = renamed[i].id;

		if (s->off[id] >= 0 || strcmp(renamed[i].also.strct, name))
			continue;
		s->left -= !s->found[id];
		s->found[id] = true;
		s->off[id] = field_value(die, renamed[i].also.name);
	}
	if (!s->span_found && !strcmp(name, "runtime.mspan")) {
		s->span_found = true;
		/*
		 * The type of a large object moved into its span when malloc headers came, in
		 * go1.22.
		 */
		*s->header_over = path_offset(die, "largeType") >= 0 ? 512 : 0;
	}
}

static bool complete(const struct search *s)
{
	return !s->left && s->span_found;
}

static void search_unit(struct search *s, Dwarf_Die *unit)
{
	Dwarf_Die die;
	const char *name;

	if (dwarf_child(unit, &die))
		return;
	do {
		if (dwarf_tag(&die) != DW_TAG_structure_type)
			continue;
		name = dwarf_diename(&die);
		if (name && (!strncmp(name, "runtime.", 8) || !strncmp(name, "internal/abi.", 13)))
			take_struct(s, &die, name);
	} while (!complete(s) && !dwarf_siblingof(&die, &die));
}

/* Searches all units: either the ones of package runtime or all others. */
static void search_units(struct search *s, Dwarf *dw, bool runtime)
{
	Dwarf_Off off = 0, next;
	size_t head;
	int n = 0;

	while (!complete(s) && n++ < UNITS_MAX &&
	       !dwarf_nextcu(dw, off, &next, &head, NULL, NULL, NULL)) {
		Dwarf_Die unit;
		const char *name;

		if (dwarf_offdie(dw, off + head, &unit)) {
			name = dwarf_diename(&unit);
			if (runtime == (name && !strcmp(name, "runtime")))
				search_unit(s, &unit);
		}
		off = next;
	}
}

/* libdw's own handler would write to stderr. */
__attribute__((noreturn)) static void out_of_memory(void)
{
	_exit(APART_NO_MEMORY);
}

static int search_image(const struct dwarfimg *im, int32_t *off, uint32_t *header_over,
			struct err *e)
{
	struct search s = { .off = off, .header_over = header_over, .left = LAYOUT_COUNT };
	Elf *elf CLEANUP(elf_endp) = elf_memory((char *)im->bytes, im->len);
	Dwarf *dw CLEANUP(dwarf_endp) = elf ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;

	if (!dw)
		return err_set(e, -EBADMSG, "unreadable DWARF: %s",
			       elf ? dwarf_errmsg(-1) : elf_errmsg(-1));
	dwarf_new_oom_handler(dw, out_of_memory);
	search_units(&s, dw, true);
	search_units(&s, dw, false);
	if (off[LAYOUT_g_m] < 0 || off[LAYOUT_m_curg] < 0 || off[LAYOUT_bucket_sizeof] < 0)
		return err_set(e, -ENOENT, "the DWARF does not describe runtime.%s",
			       off[LAYOUT_g_m] < 0    ? "g" :
			       off[LAYOUT_m_curg] < 0 ? "m" :
							"bucket");
	return 0;
}

int layout_dwarf_bytes(int fd, uint64_t *bytes, struct err *e)
{
	return dwarfimg_bytes(fd, bytes, e);
}

int layout_dwarf_read(int fd, int32_t off[LAYOUT_COUNT], uint32_t *header_over, struct err *e)
{
	CLEANUP(dwarfimg_fini) struct dwarfimg im = { 0 };
	int rc = dwarfimg_read(fd, wanted, ARRAY_LEN(wanted), &im, e);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < LAYOUT_COUNT; i++)
		off[i] = -1;
	*header_over = 0;
	return search_image(&im, off, header_over, e);
}
