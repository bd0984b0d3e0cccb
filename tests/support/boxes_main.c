/*
 * tests/support/boxes_main.c - which types a Go binary's code says it puts into interfaces.
 *
 *	boxes BINARY
 *
 * A line for each call of runtime.convT64 and its like: FUNCTION FILE:LINE TYPE (- where it cannot be told). The
 * binary is read alone and not run, so it must not be position-independent.
 */
#include <fcntl.h>
#include <inttypes.h>

#include "arch/arch.h"
#include "base/limits.h"
#include "go/image/gobin.h"
#include "go/layout/layout.h"
#include "go/sites/rtbox.h"

static const char *const boxers[] = { "runtime.convT16", "runtime.convT32", "runtime.convT64",
				      "runtime.convTslice", "runtime.convTstring" };

struct boxes {
	struct gobin *b;
	struct rttypes types;
	struct gofunc to[ARRAY_LEN(boxers)];
	uint8_t code[LIMIT_DECODE];
};

static void tell(struct boxes *x, uint64_t ret, const char *boxer)
{
	static struct goframe frames[LIMIT_INLINE_DEPTH + 1];
	int n = gobin_frames(x->b, ret - 1, frames, ARRAY_LEN(frames), NULL);
	uint64_t type = rtbox_type(x->b, 0, &x->types, ret, rtmaker_of(boxer).box);
	char name[LIMIT_NAME] = "-";

	if (type && rttype_name(&x->types, type, name, sizeof(name), NULL))
		snprintf(name, sizeof(name), "?");
	if (n > 0)
		printf("%s %s:%u %s\n", frames[n - 1].func, frames[0].file, frames[0].line, name);
}

static void function(struct boxes *x, struct arch *a, const struct gofunc *f)
{
	uint64_t size = f->end - f->entry;
	size_t n = size < sizeof(x->code) ? (size_t)size : sizeof(x->code);
	struct insn in;

	if (mem_read(gobin_mem(x->b), f->entry, x->code, n, NULL))
		return;
	for (size_t at = 0; at < n; at += in.len) {
		arch_decode(a, x->code + at, n - at, f->entry + at, &in);
		if (!in.len)
			return;
		for (size_t i = 0; i < ARRAY_LEN(boxers); i++)
			if (in.kind == INSN_CALL && in.target && in.target == x->to[i].entry)
				tell(x, in.addr + in.len, boxers[i]);
	}
}

static int run(struct boxes *x, struct err *e)
{
	struct arch *a CLEANUP(arch_freep) = NULL;
	struct rttype_module m = { .mem = gobin_mem(x->b),
				   .types = gobin_module(x->b)->types,
				   .etypes = gobin_module(x->b)->etypes };
	struct golayout l;
	struct gofunc f;
	int ret = layout_find(x->b, &l, e);

	x->types = (struct rttypes){ .layout = &l, .module = &m, .n = 1, .live = m.mem };
	if (ret >= 0)
		ret = gobin_funcs_named(x->b, boxers, ARRAY_LEN(boxers), x->to, e);
	if (ret >= 0)
		ret = arch_open(gobin_info(x->b)->arch, &a, e);
	for (size_t i = 0; ret >= 0 && i < gobin_nfuncs(x->b); i++)
		if (!gobin_func_index(x->b, i, &f, NULL))
			function(x, a, &f);
	return ret;
}

int main(int argc, char **argv)
{
	static struct boxes x;
	struct err e = { "" };
	int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;

	if (fd < 0 || gobin_open(fd, argv[1], NULL, 0, &x.b, &e) < 0 || run(&x, &e) < 0) {
		fprintf(stderr, "boxes: %s\n", e.msg[0] ? e.msg : "usage: boxes BINARY");
		return 1;
	}
	gobin_free(x.b);
	return fflush(stdout) || ferror(stdout);
}
