/* user/cli/run/losses.c - see cli/run/losses.h. */
#include "cli/run/losses.h"

#include "cli/tell.h"

enum { SHARED_TEXT = 320 };

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

bool losses_tell_shared(const struct engine *en, size_t kind)
{
	size_t n;
	const struct engine_shared *s = engine_shared(en, kind, &n);
	bool any = false;

	for (size_t i = 0; i < n; i++) {
		char whose[SHARED_TEXT];

		snprintf(whose, sizeof(whose), "%s: %zu processes together", s[i].what,
			 s[i].targets);
		any |= losses_tell(&s[i].loss, whose);
	}
	return any;
}
