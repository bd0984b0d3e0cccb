/* user/go/image/gobin.c - open an executable and learn what all questions need. */
#include "go/image/gobin.h"

#include <elf.h>

#include "go/image/gobin_priv.h"
#include "go/image/tables/module.h"

enum { PHDRS_MAX = 64 };
enum { GO_MINOR_MIN = 16 };  /* the oldest Go whose function table we read */
enum { CACHE_BLOCKS = 768 }; /* of ELFIMG_BLOCK bytes: 3 MB over the file */

static const char *keep_n(struct gobin *b, const char *s, size_t n)
{
	uint32_t id = strtab_put(b->strings, s, n);

	return id == UINT32_MAX ? NULL : strtab_get(b->strings, id);
}

/* Splits "go1.25.1 X:nodwarf5": the experiments end where the next word starts. */
static int fill_version(struct gobin *b, const struct buildinfo *bi, struct err *e)
{
	const char *version = bi->version[0] ? bi->version : "unknown";
	const char *x = buildinfo_version(version, &b->info.minor, &b->info.patch);

	b->info.version = keep_n(b, version, strlen(version));
	b->info.experiments = keep_n(b, x, strcspn(x, " "));
	b->info.path = keep_n(b, bi->path, strlen(bi->path));
	b->info.module = keep_n(b, bi->module, strlen(bi->module));
	b->info.module_version = keep_n(b, bi->module_version, strlen(bi->module_version));
	b->info.race = bi->race;
	if (!b->info.version || !b->info.experiments || !b->info.path || !b->info.module ||
	    !b->info.module_version)
		return err_set(e, -ENOMEM, "no memory for build info");
	return 0;
}

/* runtime.text, go:func.* and runtime.etext by symbols, for a module that was not found. */
static int module_by_symbols(struct gobin *b, struct err *e)
{
	static const char *const names[] = { "runtime.text", "runtime.etext", "go:func.*",
					     "go.func.*" };
	const struct elf_sec *text = elfimg_sec(b->img, ".text");
	struct elf_sym sym[ARRAY_LEN(names)];
	int ret = elfimg_symbols(b->img, names, ARRAY_LEN(names), sym, e);

	if (ret < 0)
		return ret;
	b->pcln.text = sym[0].found ? sym[0].value : b->pcln.text_start;
	if (!b->pcln.text && b->pcln.shape != PCLN_116) {
		if (!text)
			return err_set(e, -ENOENT,
				       "no moduledata, no runtime.text, no .text: "
				       "where Go code starts is unknown");
		b->pcln.text = text->addr;
	}
	b->pcln.gofunc = sym[2].found ? sym[2].value : sym[3].found ? sym[3].value : 0;
	b->info.text = b->pcln.text;
	b->info.etext = sym[1].found ? sym[1].value : 0;
	return 0;
}

static int fill_module(struct gobin *b, struct mem *live, uint64_t bias, struct err *e)
{
	int ret = module_find(b->img, &b->pcln, live, bias, &b->module, e);

	if (ret && ret != -ENOENT)
		return ret;
	if (ret) {
		ret = module_by_symbols(b, e);
	} else {
		b->info.text = b->pcln.text = b->module.text;
		b->info.etext = b->module.etext;
		b->pcln.gofunc = b->module.gofunc;
	}
	if (ret)
		return ret;
	if (!b->info.text)
		ret = pclntab_entry(&b->pcln, 0, &b->info.text, e);
	if (!ret && !b->info.etext)
		ret = pclntab_entry(&b->pcln, b->pcln.nfunc, &b->info.etext, e);
	return ret;
}

static bool has_section(const struct gobin *b, const char *name)
{
	return elfimg_sec(b->img, name) != NULL;
}

/*
 * Programs for which cgo was only allowed do not contain runtime/cgo. Shared libraries name no
 * interpreter, so that cannot be asked.
 */
static int fill_cgo(struct gobin *b, const struct buildinfo *bi, struct err *e)
{
	const struct elf_seg *tls = elfimg_seg(b->img, PT_TLS);
	int ret;

	if (bi->cgo == 0 ||
	    (!elfimg_is_dyn(b->img) && !elfimg_seg(b->img, PT_INTERP) && !(tls && tls->memsz > 8)))
		return 0;
	/*
	 * This is assembly of runtime/cgo that every version has; the Go functions of that
	 * package vary.
	 */
	ret = gobin_has_prefix(b, "crosscall2", e);
	b->info.cgo = ret > 0;
	return ret < 0 ? ret : 0;
}

/* The linker makes this function only where Go code is linked dynamically. */
static int fill_plugin(struct gobin *b, struct err *e)
{
	static const char *const names[] = { "go:link.addmoduledata", "go.link.addmoduledata" };
	int ret = 0;

	for (size_t i = 0; elfimg_is_dyn(b->img) && !ret && i < ARRAY_LEN(names); i++)
		ret = gobin_has_prefix(b, names[i], e);
	b->info.plugin = ret > 0;
	return ret < 0 ? ret : 0;
}

static int fill_info(struct gobin *b, const struct buildinfo *bi, struct mem *live, uint64_t bias,
		     struct err *e)
{
	int ret;

	b->info.arch = elfimg_machine(b->img) == EM_X86_64 ? ARCH_AMD64 : ARCH_ARM64;
	b->info.pie = elfimg_is_dyn(b->img);
	b->info.dynamic = elfimg_seg(b->img, PT_INTERP) != NULL;
	b->info.has_symtab = has_section(b, ".symtab");
	b->info.has_dwarf = has_section(b, ".debug_info") || has_section(b, ".zdebug_info");
	ret = elfimg_build_id(b->img, b->info.build_id, e);
	if (!ret)
		ret = fill_cgo(b, bi, e);
	if (!ret)
		ret = fill_plugin(b, e);
	if (!ret)
		ret = gobin_find_tls(b, live, bias, &b->info.tls_g, e);
	return ret;
}

/* Finds build info and the function table: at least one of them makes the file a Go binary. */
static int find_parts(struct gobin *b, struct buildinfo *bi, const char *path, struct err *e)
{
	struct err first = { 0 };
	int info, table, minor, patch;

	*bi = (struct buildinfo){ .cgo = -1, .race = -1 };
	info = buildinfo_find(b->img, bi, e);
	if (info && info != -ENOENT)
		return info;
	table = module_find_pclntab(b->img, &b->pcln, &first);
	if (info == -ENOENT && table == -ENOENT)
		return err_set(e, -ENOENT,
			       "%s is not a Go binary: no build info, no function table", path);
	if (table == -ENOENT)
		table = -ENOTSUP; /* it is Go, but has nothing that we can read */
	buildinfo_version(bi->version, &minor, &patch);
	if (table && minor >= 0 && minor < GO_MINOR_MIN)
		return err_set(e, -ENOTSUP, "built with %s: Go 1.%d or newer is needed",
			       bi->version, GO_MINOR_MIN);
	if (table)
		return err_set(e, table, "built with %s: %s",
			       bi->version[0] ? bi->version : "an unknown Go", first.msg);
	if (!b->pcln.nfunc)
		return err_set(e, -EBADMSG, "the function table is empty");
	return 0;
}

static int open_parts(struct gobin *b, const char *path, struct mem *live, uint64_t bias,
		      struct err *e)
{
	struct buildinfo bi;
	int ret;

	ret = find_parts(b, &bi, path, e);
	if (!ret)
		ret = fill_version(b, &bi, e);
	if (ret)
		return ret;
	b->pcln.minor = b->info.minor;
	if (b->pcln.quantum != (elfimg_machine(b->img) == EM_X86_64 ? 1 : 4))
		return err_set(e, -EBADMSG, "function table for instructions of %u bytes",
			       b->pcln.quantum);
	ret = fill_module(b, live, bias, e);
	return ret ? ret : fill_info(b, &bi, live, bias, e);
}

void gobin_adopt_version(struct gobin *b, const struct gobin *host)
{
	const char *version;

	if (b->info.minor >= 0)
		return;
	version = keep_n(b, host->info.version, strlen(host->info.version));
	if (!version)
		return;
	b->info.version = version;
	b->info.minor = b->pcln.minor = host->info.minor;
	b->info.patch = host->info.patch;
}

static int bound(struct gobin *b, const char *path, uint64_t most_ns, struct err *e)
{
	elfimg_bound(b->img, most_ns);
	if (elfimg_bytes(b->img) > LIMIT_FILE_TABLES)
		return err_set(e, -E2BIG, "%s: its headers take more than %d MiB", path,
			       LIMIT_FILE_TABLES >> 20);
	return 0;
}

static int open_bound(int fd, const char *path, struct mem *live, uint64_t bias, uint64_t most_ns,
		      struct gobin **out, struct err *e)
{
	CLEANUP(gobin_freep) struct gobin *b = calloc(1, sizeof(*b));
	int ret;

	if (!b)
		return err_set(e, -ENOMEM, "no memory for a Go binary");
	ret = strtab_new(&b->strings, e);
	if (!ret)
		ret = elfimg_open(fd, path, CACHE_BLOCKS, &b->img, e);
	if (ret)
		return ret;
	b->most_bytes = most_ns ? LIMIT_FILE_BYTES : SIZE_MAX;
	ret = most_ns ? bound(b, path, most_ns, e) : 0;
	if (!ret)
		ret = open_parts(b, path, live, bias, e);
	if (ret == -ENOENT)
		return ret;
	if (ret)
		return err_wrap(e, ret, "%s", path);
	*out = TAKE(b);
	return 0;
}

int gobin_open(int fd, const char *path, struct mem *live, uint64_t bias, struct gobin **out,
	       struct err *e)
{
	return open_bound(fd, path, live, bias, 0, out, e);
}

int gobin_open_shared(int fd, const char *path, struct mem *live, uint64_t bias, struct gobin **out,
		      struct err *e)
{
	return open_bound(fd, path, live, bias, LIMIT_FILE_WORK, out, e);
}

void gobin_one_more(struct gobin *b)
{
	elfimg_bound(b->img, LIMIT_FILE_WORK_EACH);
}

static bool is_go(int fd, int (*open)(int fd, const char *path, size_t blocks, struct elfimg **out,
				      struct err *e))
{
	static const char *const names[] = { ".note.go.buildid", ".go.buildinfo", ".gopclntab",
					     ".data.rel.ro.gopclntab" };
	CLEANUP(elfimg_freep) struct elfimg *img = NULL;

	if (open(fd, "a mapped file", 1, &img, NULL))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (elfimg_sec(img, names[i]))
			return true;
	return false;
}

bool gobin_is_go(int fd)
{
	return is_go(fd, elfimg_open);
}

bool gobin_is_go_any(int fd)
{
	return is_go(fd, elfimg_open_any);
}

bool gobin_is_debug_only(int fd)
{
	CLEANUP(elfimg_freep) struct elfimg *img = NULL;
	const struct elf_sec *text;

	if (elfimg_open_any(fd, "a file", 1, &img, NULL))
		return false;
	text = elfimg_sec(img, ".text");
	return text && text->type == SHT_NOBITS;
}

bool gobin_may_be_go(int fd, bool *dynamic)
{
	Elf64_Phdr ph[PHDRS_MAX];
	Elf64_Ehdr h;
	size_t n;

	*dynamic = false;
	if (pread(fd, &h, sizeof(h), 0) != sizeof(h) || memcmp(h.e_ident, ELFMAG, SELFMAG) ||
	    h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_phentsize != sizeof(*ph))
		return false;
	n = h.e_phnum < PHDRS_MAX ? h.e_phnum : PHDRS_MAX;
	if (pread(fd, ph, n * sizeof(*ph), (off_t)h.e_phoff) != (ssize_t)(n * sizeof(*ph)))
		return false;
	for (size_t i = 0; i < n; i++)
		*dynamic |= ph[i].p_type == PT_INTERP;
	return !h.e_shnum || gobin_is_go(fd);
}

void gobin_free(struct gobin *b)
{
	if (!b)
		return;
	elfimg_free(b->img);
	strtab_free(b->strings);
	free(b->kept);
	free(b->found);
	free(b);
}

void *gobin_keep(struct gobin *b, size_t bytes)
{
	if (!b->kept) {
		b->kept = calloc(1, bytes);
		b->kept_bytes = b->kept ? bytes : 0;
	}
	return b->kept;
}

size_t gobin_bytes(const struct gobin *b)
{
	return sizeof(*b) + elfimg_bytes(b->img) + strtab_bytes(b->strings) + b->kept_bytes;
}

void gobin_shrink(struct gobin *b)
{
	elfimg_shrink(b->img);
}

const struct gobin_info *gobin_info(const struct gobin *b)
{
	return &b->info;
}

struct mem *gobin_mem(struct gobin *b)
{
	return elfimg_mem(b->img);
}

int gobin_fd(const struct gobin *b)
{
	return elfimg_fd(b->img);
}

size_t gobin_nfuncs(const struct gobin *b)
{
	return (size_t)b->pcln.nfunc;
}

int gobin_symbol(struct gobin *b, const char *name, uint64_t *addr, uint64_t *size, struct err *e)
{
	struct elf_sym sym;
	int ret = elfimg_symbols(b->img, &name, 1, &sym, e);

	if (ret < 0)
		return ret;
	if (!ret)
		return err_set(e, -ENOENT, "no symbol %s", name);
	*addr = sym.value;
	if (size)
		*size = sym.size;
	return 0;
}

int gobin_file_offset(struct gobin *b, uint64_t vaddr, uint64_t *off, struct err *e)
{
	return elfimg_offset(b->img, vaddr, off, NULL, e);
}

const struct gomodule *gobin_module(const struct gobin *b)
{
	return &b->module;
}
