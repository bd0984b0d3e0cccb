/* user/ingest/typing/program.c - a Go program of any age. */
#include "ingest/typing/program.h"

#include <elf.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/limits.h"

enum {
	CACHE_BLOCKS = 256, /* 1 MiB */
	FLAG_EXTRA_STAR = 2,
	KIND_MASK = 31, /* above it: flags, up to Go 1.25 */
	KIND_ARRAY = 17,
	KIND_POINTER = 22,
	KIND_STRUCT = 25,
	TYPE_HEAD_MOST = 48, /* of a descriptor: up to str, and that */
};

/* ---- opening ---- */

static int read_module(struct typing_program *p, const char *path, struct err *e)
{
	static const char *const names[] = { "runtime.data", "runtime.edata", "runtime.bss",
					     "runtime.ebss", "runtime.types", "runtime.etypes" };
	uint64_t *to[] = { &p->module.data, &p->module.edata, &p->module.bss,
			   &p->module.ebss, &p->module.types, &p->module.etypes };
	struct elf_sym sym[ARRAY_LEN(names)];
	int n = elfimg_symbols(p->img, names, ARRAY_LEN(names), sym, e);

	if (n < 0)
		return n;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		*to[i] = sym[i].found ? sym[i].value : 0;
	if (!p->module.data || !p->module.bss)
		return err_set(e, -ENOTSUP,
			       "%s: of programs older than Go 1.16, or for other processors than "
			       "amd64 and arm64, the symbol table is needed, and it has none",
			       path);
	return 0;
}

/* As Go calls it; NULL: not known. */
static const char *arch_of(const struct elfimg *img)
{
	bool big = elfimg_big_endian(img);

	switch (elfimg_machine(img)) {
	case EM_X86_64:
		return "amd64";
	case EM_AARCH64:
		return "arm64";
	case EM_386:
		return "386";
	case EM_ARM:
		return "arm";
	case EM_S390:
		return "s390x";
	case EM_PPC64:
		return big ? "ppc64" : "ppc64le";
	case EM_RISCV:
		return "riscv64";
	case EM_LOONGARCH:
		return "loong64";
	case EM_MIPS:
		if (elfimg_narrow(img))
			return big ? "mips" : "mipsle";
		return big ? "mips64" : "mips64le";
	default:
		return NULL;
	}
}

static int open_by_symbols(int fd, const char *path, struct typing_program *p, struct err *e)
{
	int ret = elfimg_open_any(fd, path, CACHE_BLOCKS, &p->img, e);

	if (ret)
		return ret;
	p->arch = arch_of(p->img);
	if (!p->arch)
		return err_set(e, -ENOTSUP, "%s: a program for the unknown machine %u", path,
			       elfimg_machine(p->img));
	p->word = elfimg_narrow(p->img) ? 4 : 8;
	p->big_endian = elfimg_big_endian(p->img);
	p->moves = elfimg_is_dyn(p->img);
	return read_module(p, path, e);
}

int typing_program_open(int fd, const char *path, struct typing_program *p, struct err *e)
{
	struct err why;
	int ret = gobin_open(fd, path, NULL, 0, &p->bin, &why);

	if (ret == -ENOTSUP)
		return open_by_symbols(fd, path, p, e);
	if (ret)
		return err_set(e, ret == -ENOENT ? -EINVAL : ret, "%s", why.msg);
	p->word = 8;
	p->moves = gobin_info(p->bin)->pie;
	p->module = *gobin_module(p->bin);
	p->arch = gobin_info(p->bin)->arch == ARCH_AMD64 ? "amd64" : "arm64";
	if (!p->module.data || !p->module.bss)
		return err_set(e, -ENOTSUP, "%s: its data segment is not found", path);
	return 0;
}

void typing_program_fini(struct typing_program *p)
{
	gobin_freep(&p->bin);
	elfimg_freep(&p->img);
	map_fini(&p->names);
}

/* ---- functions ---- */

bool typing_program_wants_functions(const struct typing_program *p)
{
	return !p->bin;
}

const char *typing_program_function(struct typing_program *p, uint64_t entry)
{
	struct gofunc f;

	if (!p->bin)
		return gotypes_function(p->t, entry);
	if (gobin_func_at(p->bin, entry, &f, NULL) || f.entry != entry)
		return NULL;
	return gobin_func_name(p->bin, &f);
}

/* ---- types by name ---- */

/* Descriptors have the name of the package, the DWARF its path: "*net/http.Request". */
static uint64_t name_key(const char *name)
{
	char text[TYPING_NAME_MAX];
	size_t n = 0, from = 0;

	for (; *name && n < sizeof(text); name++) {
		if (*name == '/')
			n = from;
		else
			text[n++] = *name;
		if (*name == '*' || *name == ']' || *name == '[' || *name == ' ' || *name == '(' ||
		    *name == ',')
			from = n;
	}
	return hash_bytes(text, n);
}

/* Two types with one name are none. */
static void index_names(struct typing_program *p)
{
	for (size_t i = 0; i < p->t->ntypes; i++) {
		uint64_t key = name_key(gotypes_text(p->t, p->t->types[i].name)), old;

		if (p->t->types[i].runtime || !p->t->types[i].size)
			continue;
		map_put(&p->names, key, map_get(&p->names, key, &old) ? GOTYPE_NONE : i);
	}
}

static struct mem *mem_of(const struct typing_program *p)
{
	return p->bin ? gobin_mem(p->bin) : elfimg_mem(p->img);
}

static bool read_text(struct typing_program *p, uint64_t addr, uint64_t n, char *to, size_t cap)
{
	if (!n || n >= cap || mem_read(mem_of(p), addr, to, (size_t)n, NULL))
		return false;
	to[n] = '\0';
	return true;
}

static uint64_t number(const struct typing_program *p, const uint8_t *at, uint64_t n)
{
	uint64_t v = 0;

	for (uint64_t i = 0; i < n; i++)
		v = v << 8 | at[p->big_endian ? i : n - 1 - i];
	return v;
}

/*
 * A descriptor: size and ptrdata, a word each; hash, 4 bytes; tflag and three more; alg and gcdata, a
 * word each; str. Go 1.4 has two words of gc and no ptrdata, so str is at the same place. Source:
 * runtime/type.go, struct _type; runtime/type.h, struct Type, Go 1.4.
 */
static uint64_t tflag_at(const struct typing_program *p)
{
	return 2 * p->word + 4;
}

static uint64_t str_at(const struct typing_program *p)
{
	return 4 * p->word + 8;
}

/* Up to Go 1.6: the address of a string. */
static bool read_string(struct typing_program *p, const uint8_t *head, char *to, size_t cap)
{
	uint64_t at = number(p, head + str_at(p), p->word);
	uint8_t string[16];

	return !mem_read(mem_of(p), at, string, (size_t)(2 * p->word), NULL) &&
	       read_text(p, number(p, string, p->word), number(p, string + p->word, p->word), to,
			 cap);
}

/*
 * From Go 1.7 on: where it stands behind the first descriptor; there, a flag, the length and the text.
 * The length is two bytes, the upper one first, and from Go 1.17 on a varint.
 */
static bool read_name(struct typing_program *p, const uint8_t *head, char *to, size_t cap)
{
	bool star = head[tflag_at(p)] & FLAG_EXTRA_STAR;
	uint64_t at = p->module.types + number(p, head + str_at(p), 4);
	uint64_t n, head_bytes = 3;
	uint8_t length[2];

	if (mem_read(mem_of(p), at + 1, length, sizeof(length), NULL))
		return false;
	n = (uint64_t)length[0] << 8 | length[1];
	if (!p->names_long) {
		n = length[0] < 0x80 ? length[0] : (length[0] & 0x7f) | (uint64_t)length[1] << 7;
		head_bytes = length[0] < 0x80 ? 2 : 3;
	}
	if (!read_text(p, at + head_bytes, n, to, cap))
		return false;
	memmove(to, to + star, strlen(to + star) + 1);
	return true;
}

/* Its head and its name. */
static bool read_head(struct typing_program *p, uint64_t descriptor, uint8_t head[TYPE_HEAD_MOST],
		      char *name)
{
	bool old = !p->module.types;

	if ((!p->img && !p->bin) ||
	    (!old && (descriptor < p->module.types || descriptor >= p->module.etypes)) ||
	    mem_read(mem_of(p), descriptor, head, (size_t)(5 * p->word + 8), NULL))
		return false;
	if (!p->names.n)
		index_names(p);
	return old ? read_string(p, head, name, TYPING_NAME_MAX) :
		     read_name(p, head, name, TYPING_NAME_MAX);
}

uint32_t typing_program_type(struct typing_program *p, uint64_t descriptor)
{
	uint8_t head[TYPE_HEAD_MOST];
	char name[TYPING_NAME_MAX];
	uint64_t id;

	if (!read_head(p, descriptor, head, name) || !map_get(&p->names, name_key(name), &id) ||
	    id >= p->t->ntypes || p->t->types[id].size != number(p, head, p->word))
		return GOTYPE_NONE;
	return (uint32_t)id;
}

/* 0: it cannot be read. */
static uint64_t word_at(struct typing_program *p, uint64_t addr)
{
	uint8_t bytes[8];

	return mem_read(mem_of(p), addr, bytes, (size_t)p->word, NULL) ? 0 :
									 number(p, bytes, p->word);
}

/*
 * What a pointer leads to, which may be all of a struct or an array; 0: it is none. Right behind the
 * head the descriptor of a pointer or an array has that of its element, and one of a struct the
 * package's name and the address of fields: name, type and offset, a word each.
 * Source: runtime/type.go, Go 1.7 to 1.20; internal/abi/type.go, Go 1.21 to 1.27.
 */
static uint64_t leads_to(struct typing_program *p, uint64_t descriptor)
{
	for (int i = 0; descriptor && i < LIMIT_TYPE_DEPTH; i++) {
		uint64_t behind = descriptor + str_at(p) + 8;
		uint8_t head[TYPE_HEAD_MOST];

		if (mem_read(mem_of(p), descriptor, head, (size_t)str_at(p), NULL) ||
		    number(p, head, p->word) != p->word)
			return 0;
		switch (head[tflag_at(p) + 3] & KIND_MASK) {
		case KIND_POINTER:
			return word_at(p, behind);
		case KIND_ARRAY:
			descriptor = word_at(p, behind);
			break;
		case KIND_STRUCT:
			descriptor = word_at(p, behind + p->word);
			descriptor = descriptor ? word_at(p, descriptor + p->word) : 0;
			break;
		default:
			return 0;
		}
	}
	return 0;
}

bool typing_program_describe(struct typing_program *p, uint64_t descriptor,
			     struct typing_described *out)
{
	uint8_t head[TYPE_HEAD_MOST];
	uint64_t old;

	if (!p->module.types || !read_head(p, descriptor, head, out->name) ||
	    map_get(&p->names, name_key(out->name), &old))
		return false;
	out->size = number(p, head, p->word);
	out->ptrdata = number(p, head + p->word, p->word);
	out->kind = head[tflag_at(p) + 3] & KIND_MASK;
	out->elem = leads_to(p, descriptor);
	return out->size && out->ptrdata <= out->size && out->ptrdata % p->word == 0;
}
