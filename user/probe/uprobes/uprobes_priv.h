/* user/probe/uprobes/uprobes_priv.h - what uprobes.c and the attacher say to each other. */
#ifndef PROBE_UPROBES_UPROBES_PRIV_H
#define PROBE_UPROBES_UPROBES_PRIV_H

#include "base/clock.h"
#include "probe/uprobes/uprobes.h"

enum what {
	SHARE, /* first of all: memory that both have. Descriptors: uprobe_watch, and that of uprobe_open, if any */
	ADD,   /* a set. Descriptors: its sites, then programs and files */
	DROP,  /* the set */
	FAILED, /* why is the set left out? */
	ATTACH,
	DETACH,
	WINDOW,
	MEND,
};

/* One group of a set. Programs and files are numbers of descriptors that came along. */
struct group_words {
	uint32_t sites;
	int32_t prog; /* -1: none */
	int32_t file;
	bool counts; /* the program is one of the owner's */
};

struct ask {
	enum what what;
	bool tried;
	uint32_t set;
	union {
		struct uprobe_window window;
		struct {
			bool windows;
			uint64_t open_off; /* of struct gpb_open in its memory */
			bool multi;
			uint32_t perf_type; /* of uprobes, where there is no multi link */
		} share;
		struct {
			int32_t pid;
			uint32_t n;
			struct group_words group[UPROBE_GROUPS_MAX];
		} add;
	};
};

struct answer {
	int ret;
	struct uprobe_windowed windowed;
	struct err e;
};
_Static_assert(sizeof(struct ask) <= ATTACHER_WORDS && sizeof(struct answer) <= ATTACHER_WORDS,
	       "the attacher's socket has room");
_Static_assert(1 + 2 * UPROBE_GROUPS_MAX <= ATTACHER_FDS, "a set fits in one message");

#endif
