/*
 * user/go/sites/rtbox.c - finds what the code puts in front of a boxed value, and whether that can be
 * its type.
 */
#include "go/sites/rtbox.h"

#include "arch/pair.h"

enum { CODE = 16384 }; /* bytes of the function that are looked at, around the call */

struct box {
	struct gobin *b;
	uint64_t bias;
	const struct rttypes *types;
	enum made_box box;
	uint64_t type; /* the last type that fitted */
};

/* Source: dataWordFuncName. */
static bool has_shape(const struct box *x, uint64_t type)
{
	struct rttype_shape s;

	if (!rttype_linked(x->types, type) || rttype_shape(x->types, type, &s, NULL))
		return false;
	switch (x->box) {
	case BOX_2:
		return s.size == 2 && !s.ptrdata;
	case BOX_4:
		return s.size == 4 && !s.ptrdata;
	case BOX_8:
		return s.size == 8 && !s.ptrdata;
	case BOX_STRING:
		return s.kind == RTTYPE_STRING;
	case BOX_SLICE:
		return s.kind == RTTYPE_SLICE;
	default:
		return false;
	}
}

/* The type of the itab whose first two words are @word. */
static uint64_t of_itab(const struct box *x, const uint64_t word[2], uint64_t bias)
{
	struct rttype_shape s;

	if (!rttype_linked(x->types, word[0] + bias) ||
	    rttype_shape(x->types, word[0] + bias, &s, NULL) || s.kind != RTTYPE_INTERFACE)
		return 0;
	return has_shape(x, word[1] + bias) ? word[1] + bias : 0;
}

/*
 * Read from the file, which stays when the process ends; a PIE's words are there only at run
 * time.
 */
static bool fits(void *arg, uint64_t addr)
{
	struct box *x = arg;
	uint64_t word[2];

	x->type = has_shape(x, addr + x->bias) ? addr + x->bias : 0;
	if (!x->type && !mem_read(gobin_mem(x->b), addr, word, sizeof(word), NULL))
		x->type = of_itab(x, word, x->bias);
	if (!x->type && !mem_read(x->types->live, addr + x->bias, word, sizeof(word), NULL))
		x->type = of_itab(x, word, 0);
	return x->type != 0;
}

uint64_t rtbox_type(struct gobin *b, uint64_t bias, const struct rttypes *t, uint64_t ret,
		    enum made_box box)
{
	struct arch *a CLEANUP(arch_freep) = NULL;
	struct box x = { .b = b, .bias = bias, .types = t, .box = box };
	uint64_t at = ret - bias, from, to;
	uint8_t code[CODE];
	struct gofunc f;

	if (gobin_func_at(b, at - 1, &f, NULL) || f.end <= at ||
	    arch_open(gobin_info(b)->arch, &a, NULL))
		return 0;
	from = at - f.entry > CODE / 2 ? at - CODE / 2 : f.entry;
	to = f.end - from > CODE ? from + CODE : f.end;
	if (mem_read(gobin_mem(b), from, code, (size_t)(to - from), NULL))
		return 0;
	return arch_pair(a, code, (size_t)(to - from), from, at, fits, &x) ? x.type : 0;
}
