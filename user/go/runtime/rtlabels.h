/*
 * user/go/runtime/rtlabels.h - the pprof labels of a goroutine, out of the target's memory.
 *
 * From Go 1.24 on g.labels points to a slice header of {key string, value string} pairs; up to
 * 1.23 it points to a map[string]string, an ordinary hash map of 8-slot buckets. Either is
 * written once, before the pointer to it, and never again; it lives as long as a goroutine has
 * it. Sources: runtime/pprof/label.go, internal/runtime/pprof/label (1.26+); runtime/map.go (to
 * 1.23).
 */
#ifndef GO_RUNTIME_RTLABELS_H
#define GO_RUNTIME_RTLABELS_H

#include <stdbool.h>

#include "base/mem.h"
#include "base/vec.h"

/* Offsets into the text of the rtlabels that it is in; both strings end in NUL there. */
struct rtlabel {
	uint32_t key, value;
};

/* Sets of labels, one after the other; a zeroed struct is empty. */
struct rtlabels {
	VEC(struct rtlabel) at;
	VEC(char) text;
};

/* The labels at[first, first + n). */
struct rtlabel_set {
	uint32_t first, n;
	/*
	 * there were more or longer ones than LIMIT_LABELS and LIMIT_LABEL_BYTES allow, or
	 * unreadable ones
	 */
	bool cut;
};

void rtlabels_fini(struct rtlabels *l);
void rtlabels_clear(struct rtlabels *l); /* keeps its memory */

/*
 * Appends the set that g.labels points to; @labels 0: there is none. @minor of the Go version,
 * -1: newer than any known. Labels that make no sense are left out, and out->cut says so. A
 * string is cut at its first NUL. -ENOMEM, -ESRCH.
 */
int rtlabels_read(struct mem *m, int minor, uint64_t labels, struct rtlabels *l,
		  struct rtlabel_set *out, struct err *e);

#endif
