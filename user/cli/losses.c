/* user/cli/losses.c - see cli/losses.h. */
#include "cli/losses.h"

#include "cli/tell.h"

bool losses_tell(const struct loss *l, const char *whose)
{
	bool any = false;

	for (size_t k = 0; k < LOSS_COUNT; k++) {
		const char *text = loss_text((enum loss_kind)k);

		if (!l->n[k])
			continue;
		any = true;
		if (loss_is_fact((enum loss_kind)k))
			tell("%s: %s", whose, text);
		else
			tell("%s: %llu %s", whose, (unsigned long long)l->n[k], text);
	}
	return any;
}
