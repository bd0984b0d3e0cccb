/* user/probe/stacks/labels.h - label sets that the BPF side copied, by their id. */
#ifndef PROBE_STACKS_LABELS_H
#define PROBE_STACKS_LABELS_H

#include "base/map.h"
#include "base/mem.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "goprof_abi.h"
#include "profile/profile.h"

struct labelset {
	uint32_t n;
	uint32_t key[GPB_MAX_LABELS], value[GPB_MAX_LABELS]; /* ids in labelsets.text */
};

struct labelsets {
	struct strtab *text;
	struct map by_id; /* gpb_rec_labels.id -> index */
	VEC(struct labelset) sets;
};

int labelsets_init(struct labelsets *l, struct err *e);
void labelsets_fini(struct labelsets *l);

/* Keeps what a GPB_REC_LABELS record of @len bytes says. -EBADMSG when it contradicts itself. */
int labelsets_add(struct labelsets *l, const struct gpb_rec_labels *rec, size_t len, struct err *e);

/* Is there room for @rec, of @len bytes? fits NULL: for all. */
struct labels_room {
	bool (*fits)(void *arg, const struct gpb_rec_labels *rec, size_t len);
	void *arg;
};

/*
 * The same from the target's memory: the set that g.labels (@addr) points to, in Go 1.@minor. Its
 * id is the one that the BPF side gives it; 0 when the set is empty. *cut: something was left
 * out. Where there is no room it is not kept, as if it had been lost on its way.
 */
int labelsets_read(struct labelsets *l, struct mem *m, int minor, uint64_t addr,
		   const struct labels_room *room, uint64_t *id, bool *cut, struct err *e);

/* The set as profile labels, views into @l; their number, or -ENOENT. */
int labelsets_get(const struct labelsets *l, uint64_t id, struct prof_label out[GPB_MAX_LABELS]);

/*
 * The labels that @st has of its goroutine: the label set, then "goid". Returns their number. A
 * set that was lost on its way is counted in @loss, once for each sample.
 */
size_t labelsets_of(const struct labelsets *l, const struct gpb_stack *st, uint64_t one,
		    struct prof_label out[GPB_MAX_LABELS + 1], struct loss *loss);

#endif
