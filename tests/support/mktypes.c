/* tests/support/mktypes.c - see mktypes.h. Written twice: the first time finds out where types are. */
#include "mktypes.h"

#include <elf.h>
#include <string.h>

struct buf {
	uint8_t at[4096];
	size_t n;
};

static struct buf info, abbrev, loc, symtab, strtab;

/* Types, by the offset of their entries. */
enum {
	INT,
	BYTE,
	WORD,
	BYTE_PTR,
	NODE,
	NODE_PTR,
	NODE_ALIAS,
	PAIR,
	STRING,
	INTS,
	INT_PTR,
	EFACE,
	ANY,
	ANY_ALIAS,
	FUNC,
	ARRAY,
	HEAD,
	HEAD_PTR,
	BUCKET,
	BUCKET_PTR,
	TABLE,
	TABLE_PTR,
	TABLE_PTRS,
	GROUPS,
	MAP,
	HCHAN,
	HCHAN_PTR,
	CHAN,
	LOOP,
	TYPES,
};
static uint32_t type_at[TYPES];

static void put(struct buf *b, const void *p, size_t n)
{
	memcpy(b->at + b->n, p, n);
	b->n += n;
}

static void put8(struct buf *b, uint8_t v)
{
	put(b, &v, 1);
}

static void put16(struct buf *b, uint16_t v)
{
	put(b, &v, 2);
}

static void put32(struct buf *b, uint32_t v)
{
	put(b, &v, 4);
}

static void put64(struct buf *b, uint64_t v)
{
	put(b, &v, 8);
}

static void put_name(struct buf *b, const char *s)
{
	put(b, s, strlen(s) + 1);
}

static void put_uleb(struct buf *b, uint64_t v)
{
	do {
		put8(b, (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0)));
		v >>= 7;
	} while (v);
}

/* ---- abbreviations ---- */

enum {
	UNIT = 1,
	BASE_TYPE,
	POINTER_TYPE,
	STRUCT_TYPE,
	SLICE_TYPE,
	MEMBER,
	ARRAY_TYPE,
	RANGE,
	KIND_TYPEDEF,
	ELEM_TYPEDEF,
	PLAIN_TYPEDEF,
	FUNC_TYPE,
	FUNCTION,
	GLOBAL,
	LOCAL,
	CAPTURED,
};

/* Attributes. */
enum {
	NAME = 0x03,
	LOCATION = 0x02,
	SIZE = 0x0b,
	LANGUAGE = 0x13,
	TYPE = 0x49,
	OFFSET = 0x38,
	COUNT = 0x37,
	LOW = 0x11,
	HIGH = 0x12,
	FRAME_BASE = 0x40,
	GO_KIND = 0x2900,
	GO_ELEM = 0x2902,
	GO_TYPE = 0x2904,
	GO_CAPTURED = 0x2907
};
/* Forms. */
enum { ADDR = 0x01, DATA1 = 0x0b, BLOCK1 = 0x0a, STR = 0x08, UDATA = 0x0f, REF = 0x10, SEC = 0x17 };

static void abbreviation(int code, int tag, int children, const int *pairs)
{
	put_uleb(&abbrev, (uint64_t)code);
	put_uleb(&abbrev, (uint64_t)tag);
	put8(&abbrev, (uint8_t)children);
	for (; *pairs; pairs++)
		put_uleb(&abbrev, (uint64_t)*pairs);
	put16(&abbrev, 0);
}
#define ABBREV(code, tag, children, ...) \
	abbreviation(code, tag, children, (const int[]){ __VA_ARGS__, 0 })

static void abbreviations(void)
{
	ABBREV(UNIT, 0x11, 1, NAME, STR, LANGUAGE, DATA1);
	ABBREV(BASE_TYPE, 0x24, 0, NAME, STR, SIZE, UDATA, GO_KIND, DATA1, GO_TYPE, ADDR);
	ABBREV(POINTER_TYPE, 0x0f, 0, NAME, STR, TYPE, REF, GO_KIND, DATA1, GO_TYPE, ADDR);
	ABBREV(STRUCT_TYPE, 0x13, 1, NAME, STR, SIZE, UDATA, GO_KIND, DATA1, GO_TYPE, ADDR);
	ABBREV(SLICE_TYPE, 0x13, 1, NAME, STR, SIZE, UDATA, GO_KIND, DATA1, GO_ELEM, REF);
	ABBREV(MEMBER, 0x0d, 0, NAME, STR, OFFSET, UDATA, TYPE, REF);
	ABBREV(ARRAY_TYPE, 0x01, 1, NAME, STR, TYPE, REF, SIZE, UDATA);
	ABBREV(RANGE, 0x21, 0, COUNT, UDATA);
	ABBREV(KIND_TYPEDEF, 0x16, 0, NAME, STR, TYPE, REF, GO_KIND, DATA1, GO_TYPE, ADDR);
	ABBREV(ELEM_TYPEDEF, 0x16, 0, NAME, STR, TYPE, REF, GO_KIND, DATA1, GO_ELEM, REF);
	ABBREV(PLAIN_TYPEDEF, 0x16, 0, NAME, STR, TYPE, REF);
	ABBREV(FUNC_TYPE, 0x15, 0, NAME, STR, SIZE, UDATA, GO_KIND, DATA1);
	ABBREV(FUNCTION, 0x2e, 1, NAME, STR, LOW, ADDR, HIGH, ADDR, FRAME_BASE, BLOCK1);
	ABBREV(GLOBAL, 0x34, 0, NAME, STR, LOCATION, BLOCK1, TYPE, REF);
	ABBREV(LOCAL, 0x34, 0, NAME, STR, LOCATION, SEC, TYPE, REF);
	ABBREV(CAPTURED, 0x34, 0, NAME, STR, TYPE, REF, GO_CAPTURED, UDATA);
	put8(&abbrev, 0);
}

/* ---- types ---- */

static void begin(int code, int type, const char *name)
{
	if (type < TYPES)
		type_at[type] = (uint32_t)info.n;
	put_uleb(&info, (uint64_t)code);
	put_name(&info, name);
}

static void refer(int type)
{
	put32(&info, type_at[type]);
}

static void base(int type, const char *name, uint64_t size, uint64_t descriptor)
{
	begin(BASE_TYPE, type, name);
	put_uleb(&info, size);
	put8(&info, 2);
	put64(&info, descriptor);
}

static void pointer(int type, const char *name, int to, uint64_t descriptor)
{
	begin(POINTER_TYPE, type, name);
	refer(to);
	put8(&info, 22);
	put64(&info, descriptor);
}

static void open_struct(int type, const char *name, uint64_t size, uint8_t kind,
			uint64_t descriptor)
{
	begin(STRUCT_TYPE, type, name);
	put_uleb(&info, size);
	put8(&info, kind);
	put64(&info, descriptor);
}

static void member(const char *name, uint64_t offset, int type)
{
	begin(MEMBER, TYPES, name);
	put_uleb(&info, offset);
	refer(type);
}

static void close_children(void)
{
	put8(&info, 0);
}

static void elem_typedef(int type, const char *name, int to, uint8_t kind, int elem)
{
	begin(ELEM_TYPEDEF, type, name);
	refer(to);
	put8(&info, kind);
	refer(elem);
}

static void plain_types(void)
{
	base(INT, "int", 8, 0x1000);
	base(BYTE, "uint8", 1, MKTYPES_TYPES + 0x1100); /* told as an address */
	base(WORD, "uintptr", 8, 0);
	pointer(BYTE_PTR, "*uint8", BYTE, 0);
	pointer(INT_PTR, "*int", INT, 0);
	pointer(NODE_PTR, "*main.node", NODE_ALIAS, 0x2100);
	open_struct(STRING, "string", 16, 24, 0x2200);
	member("str", 0, BYTE_PTR);
	member("len", 8, INT);
	close_children();
	begin(SLICE_TYPE, INTS, "[]int");
	put_uleb(&info, 24);
	put8(&info, 23);
	refer(INT);
	member("array", 0, INT_PTR);
	close_children();
	open_struct(EFACE, "runtime.eface", 16, 25, 0);
	close_children();
	begin(KIND_TYPEDEF, ANY, "interface {}");
	refer(EFACE);
	put8(&info, 20);
	put64(&info, 0x2300);
	begin(PLAIN_TYPEDEF, ANY_ALIAS, "interface {}");
	refer(ANY);
	begin(FUNC_TYPE, FUNC, "func()");
	put_uleb(&info, 8);
	put8(&info, 19);
	begin(ARRAY_TYPE, ARRAY, "[3]*main.node");
	refer(NODE_PTR);
	put_uleb(&info, 24);
	put_uleb(&info, RANGE);
	put_uleb(&info, 3);
	close_children();
}

static void node_type(void)
{
	open_struct(NODE, "main.node", 72, 25, 0x2000);
	member("next", 0, NODE_PTR);
	member("name", 8, STRING);
	member("ints", 24, INTS);
	member("any", 48, ANY_ALIAS);
	member("f", 64, FUNC);
	close_children();
	begin(PLAIN_TYPEDEF, NODE_ALIAS, "main.node");
	refer(NODE);
}

static void pair_type(void)
{
	open_struct(PAIR, "main.pair", 16, 25, 0);
	member("a", 0, NODE_PTR);
	member("b", 8, NODE_PTR);
	close_children();
}

static void map_types(void)
{
	pointer(HEAD_PTR, "*hash<int,*main.node>", HEAD, 0);
	pointer(BUCKET_PTR, "*bucket<int,*main.node>", BUCKET, 0);
	open_struct(HEAD, "hash<int,*main.node>", 48, 25, 0);
	member("count", 0, INT);
	member("buckets", 16, BUCKET_PTR);
	close_children();
	open_struct(BUCKET, "bucket<int,*main.node>", 144, 25, 0);
	member("keys", 8, INT);
	member("values", 72, ARRAY);
	member("overflow", 136, BUCKET_PTR);
	close_children();
}

static void swiss_types(void)
{
	pointer(HEAD_PTR, "*map<int,*main.node>", HEAD, 0);
	pointer(BUCKET_PTR, "*noalg.map.group[int]*main.node", BUCKET, 0);
	pointer(TABLE_PTR, "*table<int,*main.node>", TABLE, 0);
	pointer(TABLE_PTRS, "**table<int,*main.node>", TABLE_PTR, 0);
	open_struct(HEAD, "map<int,*main.node>", 48, 25, 0);
	member("used", 0, INT);
	member("dirPtr", 16, TABLE_PTRS);
	member("dirLen", 24, INT);
	close_children();
	open_struct(GROUPS, "groupReference<int,*main.node>", 16, 25, 0);
	member("data", 0, BUCKET_PTR);
	close_children();
	open_struct(TABLE, "table<int,*main.node>", 32, 25, 0);
	member("groups", 16, GROUPS);
	close_children();
	open_struct(BUCKET, "noalg.map.group[int]*main.node", 136, 25, 0x3000);
	member("ctrl", 0, INT);
	member("slots", 8, ARRAY);
	close_children();
}

static void chan_types(void)
{
	pointer(HCHAN_PTR, "*hchan<main.node>", HCHAN, 0);
	open_struct(HCHAN, "hchan<main.node>", 96, 25, 0);
	member("qcount", 0, INT);
	member("dataqsiz", 8, INT);
	member("buf", 16, BYTE_PTR);
	close_children();
	elem_typedef(CHAN, "chan main.node", HCHAN_PTR, 18, NODE);
}

static void cycles(void)
{
	begin(PLAIN_TYPEDEF, LOOP, "main.loop");
	refer(LOOP);
	open_struct(NODE, "main.node", 72, 25, 0x2000);
	member("self", 0, NODE);
	member("loop", 8, LOOP);
	member("all", 16, ARRAY);
	close_children();
	begin(PLAIN_TYPEDEF, NODE_ALIAS, "main.node");
	refer(NODE);
	begin(ARRAY_TYPE, ARRAY, "[9]main.node");
	refer(NODE);
	put_uleb(&info, 1ull << 39);
	put_uleb(&info, RANGE);
	put_uleb(&info, UINT64_MAX);
	close_children();
}

/* ---- variables ---- */

static void global(const char *name, uint64_t addr, int type)
{
	begin(GLOBAL, TYPES, name);
	put8(&info, 9);
	put8(&info, 0x03); /* DW_OP_addr */
	put64(&info, addr);
	refer(type);
}

/* One entry of a location list. */
static void place(const struct mktypes *how, uint64_t from, uint64_t to, const char *ops, size_t n)
{
	if (how->version >= 5) {
		put8(&loc, 0x07); /* DW_LLE_start_end */
		put64(&loc, from);
		put64(&loc, to);
		put_uleb(&loc, n);
	} else {
		put64(&loc, from);
		put64(&loc, to);
		put16(&loc, (uint16_t)n);
	}
	put(&loc, ops, n);
}

static void places_end(const struct mktypes *how)
{
	if (how->version >= 5) {
		put8(&loc, 0);
		return;
	}
	put64(&loc, 0);
	put64(&loc, 0);
}

static void local(const char *name, int type)
{
	begin(LOCAL, TYPES, name);
	put32(&info, (uint32_t)loc.n);
	refer(type);
}

static void function(const struct mktypes *how)
{
	begin(FUNCTION, TYPES, "main.f");
	put64(&info, MKTYPES_CODE);
	put64(&info, MKTYPES_CODE_END);
	put8(&info, 1);
	put8(&info, 0x9c); /* DW_OP_call_frame_cfa */
	local("here", NODE_PTR);
	place(how, MKTYPES_CODE, MKTYPES_CODE + 8, "\x50", 1);	       /* DW_OP_reg0 */
	place(how, MKTYPES_CODE + 8, MKTYPES_CODE_END, "\x91\x70", 2); /* DW_OP_fbreg -16 */
	places_end(how);
	local("text", STRING);
	place(how, MKTYPES_CODE + 8, MKTYPES_CODE_END, "\x9c\x11\x60\x22\x93\x08\x91\x50\x93\x08",
	      10); /* cfa - 32, cfa - 48 */
	places_end(how);
	local("whole", PAIR);
	place(how, MKTYPES_CODE + 8, MKTYPES_CODE_END, "\x91\x40", 2);
	places_end(how);
	local("parts", PAIR);
	place(how, MKTYPES_CODE + 8, MKTYPES_CODE_END, "\x91\x58\x93\x08\x91\x68\x93\x08", 8);
	places_end(how);
	local("half", PAIR);
	place(how, MKTYPES_CODE + 8, MKTYPES_CODE_END, "\x91\x78\x93\x08\x93\x08", 6);
	places_end(how);
	begin(CAPTURED, TYPES, "p");
	refer(NODE_PTR);
	put_uleb(&info, 8);
	close_children();
}

static void method_value(const char *name, uint64_t entry)
{
	begin(FUNCTION, TYPES, name);
	put64(&info, entry);
	put64(&info, entry + 16);
	put8(&info, 1);
	put8(&info, 0x9c); /* DW_OP_call_frame_cfa */
	close_children();
}

static void unit(const struct mktypes *how)
{
	uint32_t length;

	info.n = loc.n = 0;
	if (how->version >= 5) { /* the header of the lists */
		put32(&loc, 0);
		put16(&loc, 5);
		put8(&loc, 8);
		put8(&loc, 0);
		put32(&loc, 0);
	}
	put32(&info, 0);
	put16(&info, (uint16_t)how->version);
	if (how->version >= 5) {
		put8(&info, 1); /* DW_UT_compile */
		put8(&info, 8);
		put32(&info, 0);
	} else {
		put32(&info, 0);
		put8(&info, 8);
	}
	begin(UNIT, TYPES, "main");
	put8(&info, how->other ? 0x0c : 0x16);
	plain_types();
	if (how->cycle)
		cycles();
	else
		node_type();
	pair_type();
	if (how->swiss)
		swiss_types();
	else
		map_types();
	elem_typedef(MAP, "map[int]*main.node", HEAD_PTR, 21, NODE_PTR);
	chan_types();
	global("main.list", MKTYPES_DATA + 16, NODE_PTR);
	global("main.m", MKTYPES_DATA + 24, MAP);
	global("main.c", MKTYPES_BSS + 8, CHAN);
	global("main.elsewhere", 0x700000, CHAN);
	function(how);
	method_value("main.(*node).next-fm", MKTYPES_METHODS);
	method_value("main.pair.sum-fm", MKTYPES_METHODS + 16);
	method_value("main.(*gone).f-fm", MKTYPES_METHODS + 32);
	method_value("main.(pair).(main.sum)-fm", MKTYPES_METHODS + 48);
	method_value("-fm", MKTYPES_METHODS + 64);
	method_value(".(*)-fm", MKTYPES_METHODS + 80);
	method_value("().x-fm", MKTYPES_METHODS + 96);
	close_children();
	length = (uint32_t)info.n - 4;
	memcpy(info.at, &length, 4);
	length = (uint32_t)loc.n - 4;
	if (how->version >= 5)
		memcpy(loc.at, &length, 4);
}

/* ---- the file ---- */

static void symbol(const char *name, uint8_t type, uint64_t addr, uint64_t size)
{
	Elf64_Sym s = { .st_name = (Elf64_Word)strtab.n,
			.st_info = ELF64_ST_INFO(STB_LOCAL, type),
			.st_shndx = 1,
			.st_value = addr,
			.st_size = size };

	put(&symtab, &s, sizeof(s));
	put_name(&strtab, name);
}

static void symbols(void)
{
	symtab.n = strtab.n = 0;
	put8(&strtab, 0);
	put(&symtab, &(Elf64_Sym){ 0 }, sizeof(Elf64_Sym));
	symbol("main.list", STT_OBJECT, MKTYPES_DATA + 16, 8);
	symbol("main.raw", STT_OBJECT, MKTYPES_BSS + 64, 8);
	symbol("runtime.bss", STT_OBJECT, MKTYPES_BSS, 0);
	symbol("main.f", STT_FUNC, MKTYPES_CODE, MKTYPES_CODE_END - MKTYPES_CODE);
	symbol("main.func.003", STT_FUNC, MKTYPES_CODE_END, 16);
	symbol("main.func.g", STT_FUNC, MKTYPES_CODE_END + 16, 16);
}

static size_t section(uint8_t *out, Elf64_Shdr *sh, size_t at, const char *names, const char *name,
		      uint32_t type, const struct buf *b)
{
	const char *found = memmem(names, 128, name, strlen(name) + 1);

	*sh = (Elf64_Shdr){ .sh_name = (Elf64_Word)(found - names),
			    .sh_type = type,
			    .sh_offset = at,
			    .sh_size = b->n,
			    .sh_addralign = 1 };
	memcpy(out + at, b->at, b->n);
	return at + b->n;
}

size_t mktypes(const struct mktypes *how, uint8_t out[MKTYPES_MAX])
{
	static const char names[128] = "\0.debug_info\0.debug_abbrev\0.debug_loc\0.debug_loclists\0"
				       ".symtab\0.strtab\0.names";
	struct buf text = { .n = sizeof(names) };
	Elf64_Ehdr eh = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			  .e_type = ET_EXEC,
			  .e_machine = EM_X86_64,
			  .e_version = EV_CURRENT,
			  .e_shoff = sizeof(eh),
			  .e_ehsize = sizeof(eh),
			  .e_shentsize = sizeof(Elf64_Shdr),
			  .e_shnum = 7,
			  .e_shstrndx = 6 };
	Elf64_Shdr sh[7] = { { 0 } };
	size_t at = sizeof(eh) + sizeof(sh);

	abbrev.n = 0;
	abbreviations();
	symbols();
	unit(how);
	unit(how);
	memcpy(text.at, names, sizeof(names));
	at = section(out, &sh[1], at, names, ".debug_info", SHT_PROGBITS, &info);
	at = section(out, &sh[2], at, names, ".debug_abbrev", SHT_PROGBITS, &abbrev);
	at = section(out, &sh[3], at, names, how->version >= 5 ? ".debug_loclists" : ".debug_loc",
		     SHT_PROGBITS, &loc);
	at = section(out, &sh[4], at, names, ".symtab", SHT_SYMTAB, &symtab);
	at = section(out, &sh[5], at, names, ".strtab", SHT_STRTAB, &strtab);
	at = section(out, &sh[6], at, names, ".names", SHT_STRTAB, &text);
	sh[4].sh_link = 5;
	sh[4].sh_entsize = sizeof(Elf64_Sym);
	memcpy(out, &eh, sizeof(eh));
	memcpy(out + sizeof(eh), sh, sizeof(sh));
	return at;
}
