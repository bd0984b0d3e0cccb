/*
 * tests/support/gofacts_main.c - what we know of a Go binary, one fact a line, for scripts.
 *
 *	site NAME KIND OF ADDR FILE_OFFSET NOT_FROM_LO NOT_FROM_HI	(OF: branch or entry)
 *	go VERSION exe|pie|plugin c|go TEXT ETEXT MODULE	(c: there is C in it)
 *	var NAME SYMBOL DECODED		(addresses, "-" where there is none)
 *	layout FROM
 */
#include <fcntl.h>

#include "go/image/gobin.h"
#include "go/layout/layout.h"
#include "go/sites/probesite.h"
#include "go/runtime/vars/rtvar.h"

static const char *const kinds[] = { "any",	      "tiny",	     "noscan",
				     "scan-noheader", "scan-header", "large" };

static int print_sites(struct gobin *b, struct err *e)
{
	struct alloc_entry *a CLEANUP(freep) = calloc(ALLOC_ENTRIES_MAX, sizeof(*a));
	int n = a ? alloc_entries(b, a, e) : -ENOMEM;

	for (int i = 0; i < n; i++)
		printf("site %s %s %s 0x%llx 0x%llx 0x%llx 0x%llx\n", a[i].name, kinds[a[i].kind],
		       a[i].site.kind == SITE_STACK_BRANCH ? "branch" : "entry",
		       (unsigned long long)a[i].site.addr, (unsigned long long)a[i].site.file_off,
		       (unsigned long long)a[i].not_from_lo, (unsigned long long)a[i].not_from_hi);
	return n;
}

static void print_address(int rc, uint64_t addr)
{
	if (rc)
		printf(" -");
	else
		printf(" 0x%llx", (unsigned long long)addr);
}

static void print_go(struct gobin *b)
{
	const struct gobin_info *i = gobin_info(b);

	printf("go %s %s %s 0x%llx 0x%llx 0x%llx\n", i->version,
	       i->plugin ? "plugin" :
	       i->pie	 ? "pie" :
			   "exe",
	       i->cgo ? "c" : "go", (unsigned long long)i->text, (unsigned long long)i->etext,
	       (unsigned long long)gobin_module(b)->addr);
}

static void print_vars(struct gobin *b)
{
	for (int v = 0; v < RTVAR_COUNT; v++) {
		const char *name = rtvar_name((enum rtvar)v);
		uint64_t sym = 0, dec = 0, size;
		struct err e = { "" };
		int rs, rd;

		rs = gobin_symbol(b, name, &sym, &size, NULL);
		if (rs && v == RTVAR_MPROFCYCLE)
			rs = gobin_symbol(b, "runtime.mProf", &sym, &size, NULL);
		rd = rtvar_decode(b, (enum rtvar)v, &dec, &e);
		printf("var %s", name);
		print_address(rs, sym);
		print_address(rd, dec);
		printf("%s%s\n", rd ? " " : "", rd ? e.msg : "");
	}
}

int main(int argc, char **argv)
{
	struct gobin *b CLEANUP(gobin_freep) = NULL;
	struct golayout l;
	struct err e = { "" };
	int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;

	if (fd < 0 || gobin_open(fd, argv[1], NULL, 0, &b, &e) < 0 || print_sites(b, &e) < 0 ||
	    layout_find(b, &l, &e) < 0) {
		fprintf(stderr, "gofacts: %s\n", e.msg[0] ? e.msg : "usage: gofacts BINARY");
		return 1;
	}
	print_go(b);
	print_vars(b);
	printf("layout %s\n", l.from);
	return 0;
}
