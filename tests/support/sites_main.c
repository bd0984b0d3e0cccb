/*
 * tests/support/sites_main.c - where probes would sit in each function of a Go binary, for a judge that
 * reads the instructions itself (tests/support/sitejudge.py).
 *
 *	sites BINARY
 *
 * A line: KIND ADDR ENTRY END NAME. KIND is branch (of the stack check), framed (branch), entry, ret
 * (one line each), none (ADDR is 0), or use: one that is probed for a profile; it has a line of its kind, too.
 */
#include <fcntl.h>
#include <inttypes.h>

#include "go/image/gobin.h"
#include "go/layout/layout.h"
#include "go/sites/probesite.h"
#include "go/sites/rtmaker.h"
#include "go/sites/waitsite.h"

enum { RETURNS = 64 };

static const char *const kinds[] = { [SITE_STACK_BRANCH] = "branch",
				     [SITE_NOSPLIT_ENTRY] = "entry",
				     [SITE_FRAMED_BRANCH] = "framed" };

static void line(struct gobin *b, const char *kind, uint64_t addr, const struct gofunc *f)
{
	printf("%s 0x%" PRIx64 " 0x%" PRIx64 " 0x%" PRIx64 " %s\n", kind, addr, f->entry, f->end,
	       gobin_func_name(b, f));
}

static void function(struct gobin *b, const struct gofunc *f)
{
	struct probesite s, at[RETURNS];
	int n = probesite_returns(b, f, at, RETURNS, NULL);

	if (probesite_find_cheap(b, f, &s, NULL))
		line(b, "none", 0, f);
	else
		line(b, kinds[s.kind], s.addr, f);
	for (int i = 0; i < n; i++)
		line(b, "ret", at[i].addr, f);
}

static int all(struct gobin *b, struct err *e)
{
	struct gofunc f;
	int ret = 0;

	for (size_t i = 0; !ret && i < gobin_nfuncs(b); i++) {
		ret = gobin_func_index(b, i, &f, e);
		if (!ret)
			function(b, &f);
		if (ret == -ENOENT)
			ret = 0;
	}
	return ret;
}

static void use(const char *name, uint64_t addr)
{
	printf("use 0x%" PRIx64 " 0 0 %s\n", addr, name);
}

static int used(struct gobin *b, struct err *e)
{
	struct alloc_entry *a CLEANUP(freep) = calloc(ALLOC_ENTRIES_MAX, sizeof(*a));
	struct waitsite w[WAITSITES_MAX];
	struct golayout l;
	int n = a ? alloc_entries(b, a, e) : -ENOMEM;

	for (int i = 0; i < n; i++)
		use(a[i].name, a[i].site.addr);
	if (n >= 0)
		n = layout_find(b, &l, e);
	if (n >= 0)
		n = waitsites_find(b, l.off[LAYOUT_g_atomicstatus], w, e);
	for (int i = 0; i < n; i++)
		use(w[i].name, w[i].site.addr);
	return n < 0 ? n : 0;
}

int main(int argc, char **argv)
{
	struct gobin *b CLEANUP(gobin_freep) = NULL;
	struct err e = { "" };
	int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;

	if (fd < 0 || gobin_open(fd, argv[1], NULL, 0, &b, &e) < 0 || all(b, &e) < 0 ||
	    used(b, &e) < 0) {
		fprintf(stderr, "sites: %s\n", e.msg[0] ? e.msg : "usage: sites BINARY");
		return 1;
	}
	return fflush(stdout) || ferror(stdout);
}
