/*
 * tests/support/rtwho_main.c - which functions of a Go binary name which runtime variable: what
 * the tables of user/go/runtime/vars/rtvar_tab.c were made from, and are checked against for a new Go.
 *
 *	rtwho BINARY SYMBOL...		a line per symbol: SYMBOL ADDRESS BYTES SECTION
 *					a line per access: SYMBOL+OFFSET WIDTH r|w|& FUNCTION
 *
 * WIDTH 0 and "&": only the address is taken. SECTION is the part of moduledata it lies in.
 */
#include <fcntl.h>

#include "arch/arch.h"
#include "go/image/gobin.h"

enum { VARS_MAX = 64, CODE_MAX = 1 << 16 };

struct target {
	const char *name;
	uint64_t addr, size;
};

static void print_access(const struct target *t, size_t n, const struct insn *i, const char *func)
{
	for (size_t k = 0; k < n; k++)
		if (i->mem_addr >= t[k].addr && i->mem_addr - t[k].addr < t[k].size)
			printf("%s+%llu %u %c %s\n", t[k].name,
			       (unsigned long long)(i->mem_addr - t[k].addr), i->mem_width,
			       !i->mem_width ? '&' :
			       i->mem_write  ? 'w' :
					       'r',
			       func);
}

static void print_target(struct gobin *b, const struct target *t)
{
	const struct gomodule *m = gobin_module(b);
	const struct {
		const char *name;
		uint64_t lo, hi;
	} parts[] = { { "noptrdata", m->noptrdata, m->enoptrdata },
		      { "data", m->data, m->edata },
		      { "bss", m->bss, m->ebss },
		      { "noptrbss", m->noptrbss, m->enoptrbss } };
	const char *in = "?";

	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (t->addr >= parts[i].lo && t->addr < parts[i].hi)
			in = parts[i].name;
	printf("%s 0x%llx %llu %s\n", t->name, (unsigned long long)t->addr,
	       (unsigned long long)t->size, in);
}

static void print_func(struct gobin *b, struct arch *a, const struct gofunc *f,
		       const struct target *t, size_t n)
{
	static uint8_t code[CODE_MAX];
	const char *name = gobin_func_name(b, f);
	size_t len = f->end - f->entry < sizeof(code) ? (size_t)(f->end - f->entry) : sizeof(code);
	struct insn i;

	if (!name || mem_read(gobin_mem(b), f->entry, code, len, NULL))
		return;
	for (size_t at = 0; at < len; at += i.len) {
		arch_decode(a, code + at, len - at, f->entry + at, &i);
		if (i.kind == INSN_BAD)
			break;
		if (i.mem_addr)
			print_access(t, n, &i, name);
	}
}

static int run(int argc, char **argv, struct err *e)
{
	struct gobin *b CLEANUP(gobin_freep) = NULL;
	struct arch *a CLEANUP(arch_freep) = NULL;
	struct target t[VARS_MAX];
	size_t n = 0;
	int fd = argc > 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1, ret;

	if (fd < 0)
		return err_set(e, -EINVAL, "usage: rtwho BINARY SYMBOL...");
	ret = gobin_open(fd, argv[1], NULL, 0, &b, e);
	if (!ret)
		ret = arch_open(gobin_info(b)->arch, &a, e);
	for (int i = 2; !ret && i < argc && n < VARS_MAX; i++) {
		t[n].name = argv[i];
		if (!gobin_symbol(b, argv[i], &t[n].addr, &t[n].size, NULL))
			print_target(b, &t[n++]);
	}
	for (size_t i = 0; !ret && i < gobin_nfuncs(b); i++) {
		struct gofunc f;

		ret = gobin_func_index(b, i, &f, e);
		if (!ret)
			print_func(b, a, &f, t, n);
	}
	return ret;
}

int main(int argc, char **argv)
{
	struct err e = { "" };

	if (!run(argc, argv, &e))
		return 0;
	fprintf(stderr, "rtwho: %s\n", e.msg);
	return 1;
}
