/*
 * tests/support/corrupt_main.c - damages a real Go executable, and asks everything of the result.
 *
 * 	corrupt copy FILE OUT AREA SEED		one damaged copy, for a script to run or to open
 * 	corrupt try FILE SEED N			N damaged versions in turn, in this process
 *
 * AREA: ehdr phdr shdr pcheader functab pcdata module buildinfo code debug tail any. The damage
 * depends on SEED alone. "try" takes the areas in turn and says how many versions were understood
 * and how many refused. Anything else (a crash, a case that takes longer than CASE_SECONDS, a
 * refusal without a reason) ends it with the case's seed on stderr, so that "corrupt copy" can
 * make that file again.
 */
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "go/image/elf/elfimg.h"
#include "go/layout/layout.h"
#include "go/sites/probesite.h"
#include "go/runtime/vars/rtvar.h"

enum { CASE_SECONDS = 20, FUNCS = 200, CACHE_BLOCKS = 64, SPOTS_MAX = 6 };

enum area {
	EHDR,
	PHDR,
	SHDR,
	PCHEADER,
	FUNCTAB,
	PCDATA,
	MODULE,
	BUILDINFO,
	CODE,
	DEBUG,
	TAIL,
	ANY,
	AREAS
};

static const char *const area_names[AREAS] = { "ehdr",	  "phdr",   "shdr",   "pcheader",
					       "functab", "pcdata", "module", "buildinfo",
					       "code",	  "debug",  "tail",   "any" };

struct file {
	uint8_t *at; /* the undamaged bytes */
	size_t n;
	uint64_t off[AREAS], len[AREAS]; /* 0: the file has no such area */
};

/* ---- random numbers: the same everywhere ---- */

static uint64_t next(uint64_t *s)
{
	uint64_t z = *s += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static uint64_t below(uint64_t *s, uint64_t n)
{
	return n ? next(s) % n : 0;
}

/* ---- the file, and where its areas are ---- */

static void put_area(struct file *f, enum area a, uint64_t off, uint64_t len)
{
	f->off[a] = off < f->n ? off : 0;
	f->len[a] = off < f->n && len < f->n - off ? len : off < f->n ? f->n - off : 0;
}

static void put_section(struct file *f, struct elfimg *img, enum area a, const char *name)
{
	const struct elf_sec *s = elfimg_sec(img, name);

	if (s && s->type != SHT_NOBITS)
		put_area(f, a, s->off, s->size);
}

static int find_areas(struct file *f, int fd, const char *path, struct err *e)
{
	CLEANUP(elfimg_freep) struct elfimg *img = NULL;
	CLEANUP(gobin_freep) struct gobin *b = NULL;
	const char *const decoded[] = { "runtime.mallocgc" }; /* and the bytes behind it */
	struct gofunc f0;
	Elf64_Ehdr h;
	uint64_t off = 0;
	int ret;

	ret = elfimg_open(fd, path, CACHE_BLOCKS, &img, e);
	if (!ret)
		ret = gobin_open(fd, path, NULL, 0, &b, e);
	if (ret)
		return ret;
	memcpy(&h, f->at, sizeof(h));
	put_area(f, EHDR, 0, sizeof(h));
	put_area(f, PHDR, h.e_phoff, (uint64_t)h.e_phnum * h.e_phentsize);
	put_area(f, SHDR, h.e_shoff, (uint64_t)h.e_shnum * h.e_shentsize);
	put_section(f, img, PCDATA, ".gopclntab");
	if (!f->len[PCDATA])
		put_section(f, img, PCDATA, ".data.rel.ro.gopclntab");
	put_area(f, PCHEADER, f->off[PCDATA], 72);
	put_area(f, FUNCTAB, f->off[PCDATA] + 72, 1 << 16);
	put_section(f, img, BUILDINFO, ".go.buildinfo");
	put_section(f, img, DEBUG, ".debug_info");
	if (!f->len[DEBUG])
		put_section(f, img, DEBUG, ".zdebug_info");
	if (gobin_module(b)->addr && !gobin_file_offset(b, gobin_module(b)->addr, &off, NULL))
		put_area(f, MODULE, off, 46 * 8);
	if (gobin_funcs_named(b, decoded, 1, &f0, NULL) == 1 &&
	    !gobin_file_offset(b, f0.entry, &off, NULL))
		put_area(f, CODE, off, 1 << 14);
	put_area(f, TAIL, 0, f->n);
	put_area(f, ANY, 0, f->n);
	return 0;
}

static int load(const char *path, struct file *f, struct err *e)
{
	CLEANUP(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || st.st_size < (off_t)sizeof(Elf64_Ehdr))
		return err_sys(e, "%s", path);
	f->n = (size_t)st.st_size;
	f->at = malloc(f->n);
	if (!f->at)
		return err_set(e, -ENOMEM, "no memory for %s", path);
	if (pread(fd, f->at, f->n, 0) != (ssize_t)f->n)
		return err_sys(e, "%s", path);
	return find_areas(f, fd, path, e);
}

/* ---- the damage ---- */

struct spot {
	uint64_t off;
	size_t n;
};

struct damage {
	struct spot spots[SPOTS_MAX]; /* the bytes that were there before */
	size_t n, size;		      /* size: the present size of the file */
};

/* Numbers that arithmetic overflows on. */
static uint64_t nasty(const struct file *f, uint64_t *s, uint64_t was)
{
	const uint64_t values[] = { 0,
				    1,
				    UINT64_MAX,
				    INT64_MAX,
				    1ull << 63,
				    UINT32_MAX,
				    INT32_MAX,
				    1ull << 31,
				    f->n,
				    f->n - 1,
				    f->n + 1,
				    was + 1,
				    was - 1,
				    was << 1,
				    was >> 1,
				    was + f->n,
				    was ^ 1ull << below(s, 64),
				    ~was,
				    -was,
				    next(s),
				    1ull << below(s, 64) };

	return values[below(s, ARRAY_LEN(values))];
}

static void spoil_spot(const struct file *f, uint8_t *b, enum area a, uint64_t *s, struct spot *out)
{
	uint64_t how = below(s, 8), len = f->len[a], width, at, v = 0;

	/* Whole words where the fields are words; else bytes and blocks. */
	width = how < 5 ? 1ull << below(s, 4) : how == 5 ? 1 : 1 + below(s, len < 256 ? len : 256);
	if (width > len)
		width = len;
	at = below(s, len - width + 1);
	if (width <= 8 && how < 5)
		at -= at % width;
	at += f->off[a];
	*out = (struct spot){ at, width };
	if (how <= 5) {
		memcpy(&v, b + at, width < 8 ? width : 8);
		v = nasty(f, s, v);
		memcpy(b + at, &v, width < 8 ? width : 8);
	} else {
		for (uint64_t i = 0; i < width; i++)
			b[at + i] = how == 6 ? 0 : (uint8_t)next(s);
	}
}

static void spoil(const struct file *f, uint8_t *b, enum area a, uint64_t *s, struct damage *d)
{
	*d = (struct damage){ .size = f->n };
	if (a == TAIL)
		d->size = below(s, 2) ? below(s, f->n) : f->n - 1 - below(s, 4096);
	if (a == TAIL || !f->len[a])
		return;
	d->n = 1 + below(s, SPOTS_MAX);
	for (size_t i = 0; i < d->n; i++)
		spoil_spot(f, b, a, s, &d->spots[i]);
}

/* ---- asking everything ---- */

/*
 * The damaged file's bytes at the addresses where the good file's segments put them: a process as
 * it would run.
 */
struct as_loaded {
	struct mem mem; /* first */
	const struct file *f;
	const uint8_t *b;
};

static int loaded_read(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	const struct as_loaded *l = (const struct as_loaded *)m;
	Elf64_Ehdr h;
	Elf64_Phdr p;

	memcpy(&h, l->f->at, sizeof(h));
	for (unsigned i = 0; i < h.e_phnum; i++) {
		memcpy(&p, l->f->at + h.e_phoff + i * sizeof(p), sizeof(p));
		if (p.p_type != PT_LOAD || addr < p.p_vaddr || addr - p.p_vaddr >= p.p_filesz ||
		    n > p.p_filesz - (addr - p.p_vaddr))
			continue;
		memcpy(buf, l->b + p.p_offset + (addr - p.p_vaddr), n);
		return 0;
	}
	return err_set(e, -EFAULT, "0x%llx", (unsigned long long)addr);
}

static void reasoned(int ret, const struct err *e)
{
	BUG_ON(ret < 0 && (!e->msg[0] || strchr(e->msg, '\n')));
}

static void ask_pc(struct gobin *b, const struct gofunc *f, uint64_t pc)
{
	struct goframe frames[32];
	struct err e = { "" };
	int32_t delta;
	int n = gobin_frames(b, pc, frames, ARRAY_LEN(frames), &e);

	reasoned(n, &e);
	BUG_ON(n == 0 || n > (int)ARRAY_LEN(frames));
	for (int k = 0; k < n; k++)
		BUG_ON(!frames[k].func || !frames[k].file);
	gobin_spdelta(b, pc, &delta, NULL);
	gobin_func_name(b, f);
}

static void ask_functions(struct gobin *b)
{
	size_t n = gobin_nfuncs(b);
	struct gofunc f;

	for (size_t i = 0; i < FUNCS && i < n; i++) {
		/*
		 * Takes the first functions, where the damaged part of the table is, and some of
		 * the rest.
		 */
		size_t at = i < FUNCS / 2 ? i : n / FUNCS * i;

		if (gobin_func_index(b, at < n ? at : n - 1, &f, NULL))
			continue;
		BUG_ON(f.end < f.entry);
		ask_pc(b, &f, f.entry);
		ask_pc(b, &f, f.entry + (f.end - f.entry) / 2);
	}
}

static bool ask(int fd, struct mem *live, bool dwarf)
{
	CLEANUP(gobin_freep) struct gobin *b = NULL;
	CLEANUP(freep) struct alloc_entry *a = calloc(ALLOC_ENTRIES_MAX, sizeof(*a));
	struct sizeclasses sc;
	struct golayout l;
	struct err e = { "" };
	uint64_t addr, size;
	int ret;

	BUG_ON(!a);
	ret = gobin_open(fd, "spoilt", live, 0, &b, &e);
	reasoned(ret, &e);
	if (ret)
		return false;
	ask_functions(b);
	reasoned(alloc_entries(b, a, &e), &e);
	for (int v = 0; v < RTVAR_COUNT; v++)
		reasoned(rtvar_find(b, (enum rtvar)v, &addr, &e), &e);
	gobin_symbol(b, "runtime.mbuckets", &addr, &size, NULL);
	if (dwarf)
		reasoned(layout_find(b, &l, &e), &e);
	reasoned(layout_sizeclasses(b, &sc, &e), &e);
	return true;
}

static void too_long(int sig)
{
	static const char text[] = "corrupt: a case takes too long\n";

	(void)sig;
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(2);
	abort();
}

/* The seed of case @i, and its area. */
static enum area plan(uint64_t seed, uint64_t i, uint64_t *s)
{
	*s = seed + i;
	return (enum area)(i % AREAS);
}

static int write_all(int fd, const uint8_t *b, size_t n, uint64_t off, struct err *e)
{
	while (n) {
		ssize_t w = pwrite(fd, b, n, (off_t)off);

		if (w <= 0)
			return err_sys(e, "write");
		b += w;
		off += (uint64_t)w;
		n -= (size_t)w;
	}
	return 0;
}

/*
 * Writes the damage into the file, or takes it out again: @b are the bytes that should be there.
 */
static int store(int fd, const struct damage *d, const uint8_t *b, size_t n, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) || ftruncate(fd, (off_t)n))
		return err_sys(e, "truncate");
	for (size_t i = 0; i < d->n; i++) {
		int ret = write_all(fd, b + d->spots[i].off, d->spots[i].n, d->spots[i].off, e);

		if (ret)
			return ret;
	}
	if ((size_t)st.st_size < n)
		return write_all(fd, b + st.st_size, n - (size_t)st.st_size, (uint64_t)st.st_size,
				 e);
	return 0;
}

static int try_all(const struct file *f, uint64_t seed, uint64_t cases, struct err *e)
{
	CLEANUP(closep) int fd = memfd_create("spoilt", MFD_CLOEXEC);
	CLEANUP(freep) uint8_t *b = malloc(f->n);
	uint64_t understood = 0;
	int ret;

	if (fd < 0 || !b)
		return err_set(e, -ENOMEM, "no memory for a copy");
	memcpy(b, f->at, f->n);
	ret = write_all(fd, b, f->n, 0, e);
	signal(SIGALRM, too_long);
	for (uint64_t i = 0; !ret && i < cases; i++) {
		struct as_loaded live = { .mem = { .read = loaded_read }, .f = f, .b = b };
		struct damage d;
		uint64_t s;
		enum area a = plan(seed, i, &s);

		/* This line tells the case if nothing is printed after it. */
		fprintf(stderr, "\rcase %s %llu ", area_names[a], (unsigned long long)s);
		spoil(f, b, a, &s, &d);
		ret = store(fd, &d, b, d.size, e);
		alarm(CASE_SECONDS);
		if (!ret)
			understood += ask(fd, NULL, a == SHDR || a == DEBUG || a == EHDR);
		if (!ret && a != TAIL)
			ask(fd, &live.mem, false);
		alarm(0);
		for (size_t k = 0; k < d.n; k++)
			memcpy(b + d.spots[k].off, f->at + d.spots[k].off, d.spots[k].n);
		if (!ret)
			ret = store(fd, &d, b, f->n, e);
	}
	if (!ret)
		printf("%llu spoilt versions: %llu understood, %llu refused\n",
		       (unsigned long long)cases, (unsigned long long)understood,
		       (unsigned long long)(cases - understood));
	return ret;
}

/* ---- one copy ---- */

static int area_named(const char *name)
{
	for (int a = 0; a < AREAS; a++)
		if (!strcmp(name, area_names[a]))
			return a;
	return -1;
}

static int copy(struct file *f, const char *out, const char *area, uint64_t seed, struct err *e)
{
	CLEANUP(closep) int fd = open(out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	CLEANUP(freep) uint8_t *b = malloc(f->n);
	int a = area_named(area);
	struct damage d;

	if (a < 0)
		return err_set(e, -EINVAL, "no area %s", area);
	if (fd < 0 || !b)
		return err_sys(e, "%s", out);
	memcpy(b, f->at, f->n);
	spoil(f, b, (enum area)a, &seed, &d);
	return write_all(fd, b, d.size, 0, e);
}

int main(int argc, char **argv)
{
	CLEANUP(freep) uint8_t *bytes = NULL;
	struct file f = { 0 };
	struct err e = { "" };
	int ret = -EINVAL;

	if (argc < 5) {
		fprintf(stderr, "usage: corrupt copy FILE OUT AREA SEED | try FILE SEED N\n");
		return 2;
	}
	ret = load(argv[2], &f, &e);
	bytes = f.at;
	if (!ret && !strcmp(argv[1], "copy") && argc == 6)
		ret = copy(&f, argv[3], argv[4], strtoull(argv[5], NULL, 0), &e);
	else if (!ret && !strcmp(argv[1], "try"))
		ret = try_all(&f, strtoull(argv[3], NULL, 0), strtoull(argv[4], NULL, 0), &e);
	else if (!ret)
		ret = err_set(&e, -EINVAL, "unknown command %s", argv[1]);
	if (ret)
		fprintf(stderr, "corrupt: %s\n", e.msg);
	return ret != 0;
}
