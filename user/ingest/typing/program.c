/* user/ingest/typing/program.c - a Go program of any age. */
#include "ingest/typing/program.h"

#include <elf.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/limits.h"

enum {
	CACHE_BLOCKS = 64, /* 1 MiB */
	/* In a descriptor: runtime/type.go, struct _type. */
	TYPE_SIZE = 0,
	TYPE_TFLAG = 20,
	TYPE_STR = 40,
	TYPE_HEAD = 48,
	FLAG_EXTRA_STAR = 2,
	NAME_MAX_BYTES = 1024,
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
			       "%s: of programs older than Go 1.16 the symbol table is needed, and "
			       "it has none",
			       path);
	return 0;
}

static int open_old(int fd, const char *path, struct typing_program *p, struct err *e)
{
	int ret = elfimg_open(fd, path, CACHE_BLOCKS, &p->img, e);

	if (ret)
		return ret;
	p->arch = elfimg_machine(p->img) == EM_X86_64 ? "amd64" : "arm64";
	return read_module(p, path, e);
}

int typing_program_open(int fd, const char *path, struct typing_program *p, struct err *e)
{
	struct err why;
	int ret = gobin_open(fd, path, NULL, 0, &p->bin, &why);

	if (ret == -ENOTSUP)
		return open_old(fd, path, p, e);
	if (ret)
		return err_set(e, ret == -ENOENT ? -EINVAL : ret, "%s", why.msg);
	p->module = *gobin_module(p->bin);
	p->arch = gobin_info(p->bin)->arch == GOARCH_AMD64 ? "amd64" : "arm64";
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
	char text[NAME_MAX_BYTES];
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

static bool read_text(struct typing_program *p, uint64_t addr, uint64_t n, char *to, size_t cap)
{
	if (!n || n >= cap || mem_read(elfimg_mem(p->img), addr, to, (size_t)n, NULL))
		return false;
	to[n] = '\0';
	return true;
}

/* Go 1.5 and 1.6: the address of a string. */
static bool read_string(struct typing_program *p, const uint8_t *head, char *to, size_t cap)
{
	uint64_t at, string[2];

	memcpy(&at, head + TYPE_STR, sizeof(at));
	return !mem_read(elfimg_mem(p->img), at, string, sizeof(string), NULL) &&
	       read_text(p, string[0], string[1], to, cap);
}

/*
 * From Go 1.7 on: where it stands behind the first descriptor; there, a flag, the length in two bytes
 * and the text.
 */
static bool read_name(struct typing_program *p, const uint8_t *head, char *to, size_t cap)
{
	bool star = head[TYPE_TFLAG] & FLAG_EXTRA_STAR;
	uint64_t at = p->module.types;
	uint8_t length[2];
	uint32_t str;

	memcpy(&str, head + TYPE_STR, sizeof(str));
	at += str;
	if (mem_read(elfimg_mem(p->img), at + 1, length, sizeof(length), NULL) ||
	    !read_text(p, at + 3, (uint64_t)length[0] << 8 | length[1], to, cap))
		return false;
	memmove(to, to + star, strlen(to + star) + 1);
	return true;
}

uint32_t typing_program_type(struct typing_program *p, uint64_t descriptor)
{
	uint8_t head[TYPE_HEAD];
	char name[NAME_MAX_BYTES];
	bool old = !p->module.types, read;
	uint64_t size, id;

	if (!p->img || (!old && (descriptor < p->module.types || descriptor >= p->module.etypes)) ||
	    mem_read(elfimg_mem(p->img), descriptor, head, sizeof(head), NULL))
		return GOTYPE_NONE;
	if (!p->names.n)
		index_names(p);
	memcpy(&size, head + TYPE_SIZE, sizeof(size));
	read = old ? read_string(p, head, name, sizeof(name)) :
		     read_name(p, head, name, sizeof(name));
	if (!read || !map_get(&p->names, name_key(name), &id) || id >= p->t->ntypes ||
	    p->t->types[id].size != size)
		return GOTYPE_NONE;
	return (uint32_t)id;
}
