/* user/profile/loss.c - the names of the losses and their sums. */
#include "profile/loss.h"

#include "base/cleanup.h"

static const struct {
	const char *key, *text;
} losses[LOSS_COUNT] = {
#define LOSS_ROW(id, k, t) [LOSS_##id] = { k, t },
	LOSSES(LOSS_ROW)
#undef LOSS_ROW
};

static uint64_t add(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

bool loss_is_fact(enum loss_kind k)
{
	return k == LOSS_TARGET_GONE || k == LOSS_LAYOUT_GUESSED || k == LOSS_WINDOW_CUT ||
	       k == LOSS_NOT_RESTORED || k == LOSS_BUDGET_CUT || k == LOSS_CROWDED ||
	       k == LOSS_WAITS_LONG;
}

const char *loss_key(enum loss_kind k)
{
	BUG_ON(k >= LOSS_COUNT);
	return losses[k].key;
}

const char *loss_text(enum loss_kind k)
{
	BUG_ON(k >= LOSS_COUNT);
	return losses[k].text;
}

uint64_t loss_total(const struct loss *l)
{
	uint64_t sum = 0;

	for (size_t k = 0; k < LOSS_COUNT; k++)
		sum = add(sum, l->n[k]);
	return sum;
}

void loss_merge(struct loss *into, const struct loss *from)
{
	for (size_t k = 0; k < LOSS_COUNT; k++)
		into->n[k] = add(into->n[k], from->n[k]);
}
