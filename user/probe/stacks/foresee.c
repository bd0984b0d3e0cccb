/* user/probe/stacks/foresee.c - learns the rules of a program's return addresses before any of them is met. */
#include "arch/frame.h"
#include "base/limits.h"
#include "probe/stacks/unwind_rules.h"
#include "probe/stacks/unwinding.h"

/* Where the word at @at is a call, the rule of what it returns to: a walk looks it up one byte before that. */
static void foresee_call(struct unwind_rules *r, struct subject *s, const struct image *img,
			 uint64_t at, uint32_t word)
{
	uint64_t pc = at + sizeof(word) - 1 + img->bias;
	struct gpb_unwind_rule rule;

	if (arch_is_call(word) && !unwind_rules_known(r, unwind_rules_key(s, pc)) &&
	    !unwinding_rule(s, pc, &rule))
		unwind_rules_learn(r, unwind_rules_key(s, pc), &rule);
}

/* Until the table has @until. */
static void foresee_function(struct unwind_rules *r, struct subject *s, const struct image *img,
			     const struct gofunc *f, size_t until)
{
	uint32_t code[LIMIT_DECODE / sizeof(uint32_t)];
	size_t n;

	for (uint64_t at = f->entry; at < f->end && r->known.n < until; at += 4 * n) {
		n = (size_t)(f->end - at) / sizeof(code[0]);
		n = n < ARRAY_LEN(code) ? n : ARRAY_LEN(code);
		if (!n || mem_read(gobin_mem(img->bin), at, code, n * sizeof(code[0]), NULL))
			return;
		for (size_t i = 0; i < n; i++)
			foresee_call(r, s, img, at + 4 * i, code[i]);
	}
}

/* Backwards: the linker puts package main behind what it imports. */
void unwind_rules_foresee(struct unwind_rules *r, struct subject *s, size_t most)
{
	size_t until = r->known.n + most;
	struct gofunc f;

	until = until < UNWIND_RULES_FORESEEN ? until : UNWIND_RULES_FORESEEN;

	for (size_t i = 0; i < s->images.n; i++) {
		const struct image *img = &s->images.at[i];

		for (size_t k = gobin_nfuncs(img->bin); k-- > 0 && r->known.n < until;)
			if (!gobin_func_index(img->bin, k, &f, NULL))
				foresee_function(r, s, img, &f, until);
	}
}
