/* user/collect/heap/window/heap_window_say.c - what is known of a probed heap profile's numbers, as comments and losses. */
#include "collect/heap/window/heap_window.h"
#include "profile/profile.h"

/* By what numbers of windows were scaled, and why not by something better. */
static int comment_counts(const struct heap_window *w, const struct collect_opts *o, struct prof *p,
			  struct loss *to, struct err *e)
{
	const char *why = w->why.msg[0] ? w->why.msg : "they could not be read";
	bool counted = heap_window_counted(w);
	int ret = prof_comment(p, e, "rate in windows: one sample in %llu bytes, scaled by %s",
			       (unsigned long long)w->rate_in_windows,
			       counted ? "the runtime's own counts of allocations" :
					 "the share of time");

	if (heap_window_lacks_counts(w))
		to->n[LOSS_UNCOUNTED] += (uint64_t)(w->uncounted_ns / 1e6) + 1;
	if (ret || counted)
		return ret;
	say(o, "heap: totals are not known, numbers are by the share of time: %s", why);
	return prof_comment(
		p, e, "totals: not known, nor is what no window saw: the runtime's own counts: %s",
		why);
}

/* A burst that fell between two windows is not in the samples, but it is known from the count. */
static int comment_unseen(const struct heap_window *w, struct prof *p, struct loss *to,
			  struct err *e)
{
	struct heap_unseen un = heap_window_unseen(w);
	int ret = 0;

	to->n[LOSS_ALLOCS_UNSEEN] += un.lost ? un.allocs : 0;
	to->n[LOSS_ALLOCS_UNMET] += un.lost ? un.fast : 0;
	if (un.allocs)
		ret = prof_comment(
			p, e,
			"unseen: %llu allocations of at least %llu bytes, of sizes that no window saw, "
			"by the runtime's own count: beside the estimates and their errors",
			(unsigned long long)un.allocs, (unsigned long long)un.bytes);
	if (!ret && un.fast)
		ret = prof_comment(
			p, e,
			"unseen: about %llu allocations of %llu bytes, by the runtime's own count, at a "
			"pace that no window met: beside the estimates, and in the errors of all sites of "
			"their sizes",
			(unsigned long long)un.fast, (unsigned long long)un.fast_bytes);
	return ret;
}

static int comment_missed(const struct heap_window *w, struct prof *p, struct loss *to,
			  struct err *e)
{
	if (!w->missed)
		return 0;
	to->n[LOSS_ALLOCS_MISSED] += w->missed;
	return prof_comment(
		p, e,
		"missed: %llu allocations, by the runtime's own counts, did not pass the "
		"probes: a profile-guided build may have copied the allocator, or a plugin "
		"allocated before it was found",
		(unsigned long long)w->missed);
}

int heap_window_comment(const struct heap_window *w, const struct collect_opts *o, struct prof *p,
			struct loss *to, struct err *e)
{
	int ret = w->rate_in_windows ? comment_counts(w, o, p, to, e) : 0;

	if (!ret)
		ret = comment_unseen(w, p, to, e);
	return ret ? ret : comment_missed(w, p, to, e);
}
