/*
 * user/probe/stacks/labels.c - label sets with interned strings, so that a thousand sets of ten words
 * cost ten words.
 */
#include "probe/stacks/labels.h"

#include "base/hash.h"
#include "base/limits.h"
#include "go/runtime/rtlabels.h"

int labelsets_init(struct labelsets *l, struct err *e)
{
	*l = (struct labelsets){};
	return strtab_new(&l->text, e);
}

void labelsets_fini(struct labelsets *l)
{
	strtab_free(l->text);
	map_fini(&l->by_id);
	vec_fini(&l->sets);
	l->text = NULL;
}

static int fill(struct labelsets *l, struct labelset *set, const struct gpb_rec_labels *rec,
		struct err *e)
{
	for (uint32_t i = 0; i < rec->n; i++) {
		const struct gpb_label *lab = &rec->label[i];

		if (lab->key_len > GPB_LABEL_KEY || lab->value_len > GPB_LABEL_VALUE)
			return err_set(e, -EBADMSG, "label %u claims %u + %u bytes", i,
				       lab->key_len, lab->value_len);
		set->key[i] = strtab_put(l->text, lab->key, lab->key_len);
		set->value[i] = strtab_put(l->text, lab->value, lab->value_len);
		if (set->key[i] == UINT32_MAX || set->value[i] == UINT32_MAX)
			return err_set(e, -ENOMEM, "no memory for labels");
	}
	set->n = rec->n;
	return 0;
}

int labelsets_add(struct labelsets *l, const struct gpb_rec_labels *rec, size_t len, struct err *e)
{
	struct labelset *set;
	uint64_t have;
	int ret;

	if (len < offsetof(struct gpb_rec_labels, label) || rec->n > GPB_MAX_LABELS ||
	    len < offsetof(struct gpb_rec_labels, label) + rec->n * sizeof(rec->label[0]))
		return err_set(e, -EBADMSG, "label record of %zu bytes", len);
	if (map_get(&l->by_id, rec->id, &have))
		return 0;
	set = vec_add(&l->sets, LIMIT_STRINGS);
	if (!set)
		return err_set(e, -ENOMEM, "no memory for labels");
	ret = fill(l, set, rec, e);
	if (ret)
		return ret;
	if (!map_put(&l->by_id, rec->id, l->sets.n - 1))
		return err_set(e, -ENOMEM, "no memory for labels");
	return 0;
}

/*
 * As label_text() of bpf/go/labels.bpf.h: a longer text is cut, and the last word is filled with
 * zeros.
 */
static bool copy_text(const char *s, uint8_t *to, size_t cap, uint16_t *len)
{
	size_t n = strlen(s);

	*len = (uint16_t)(n < cap ? n : cap);
	memcpy(to, s, *len);
	return n > cap;
}

static void hash_text(struct gpb_sip *h, const uint8_t *text, size_t len)
{
	for (size_t i = 0; i < len; i += 8) {
		uint64_t w;

		memcpy(&w, text + i, sizeof(w));
		gpb_sip_word(h, w);
	}
}

/* As labels_hash of bpf/go/labels.bpf.h. */
static uint64_t id_of(const struct gpb_rec_labels *rec)
{
	struct gpb_hash_key key = hash_secret();
	struct gpb_sip h;
	uint64_t id;

	gpb_sip_begin(&h, key.k0, key.k1);
	for (uint32_t i = 0; i < rec->n; i++) {
		const struct gpb_label *lab = &rec->label[i];

		gpb_sip_word(&h, (uint64_t)lab->key_len << 32 | lab->value_len);
		hash_text(&h, lab->key, lab->key_len);
		hash_text(&h, lab->value, lab->value_len);
	}
	id = gpb_sip_end(&h);
	return id ? id : 1;
}

int labelsets_read(struct labelsets *l, struct mem *m, int minor, uint64_t addr,
		   const struct labels_room *room, uint64_t *id, bool *cut, struct err *e)
{
	CLEANUP(rtlabels_fini) struct rtlabels text = {};
	CLEANUP(freep) struct gpb_rec_labels *rec = calloc(1, sizeof(*rec));
	struct rtlabel_set set;
	size_t len;
	int ret = rec ? rtlabels_read(m, minor, addr, &text, &set, e) :
			err_set(e, -ENOMEM, "no memory for labels");

	if (ret)
		return ret;
	*cut = set.cut || set.n > GPB_MAX_LABELS;
	for (; rec->n < set.n && rec->n < GPB_MAX_LABELS; rec->n++) {
		const struct rtlabel *from = &text.at.at[set.first + rec->n];
		struct gpb_label *to = &rec->label[rec->n];

		*cut |= copy_text(text.text.at + from->key, to->key, GPB_LABEL_KEY, &to->key_len);
		*cut |= copy_text(text.text.at + from->value, to->value, GPB_LABEL_VALUE,
				  &to->value_len);
	}
	*id = 0;
	if (!rec->n)
		return 0;
	rec->id = id_of(rec);
	*id = rec->id;
	len = offsetof(struct gpb_rec_labels, label) + rec->n * sizeof(rec->label[0]);
	return room->fits && !room->fits(room->arg, rec, len) ? 0 : labelsets_add(l, rec, len, e);
}

int labelsets_get(const struct labelsets *l, uint64_t id, struct prof_label out[GPB_MAX_LABELS])
{
	const struct labelset *set;
	uint64_t at;

	if (!map_get(&l->by_id, id, &at))
		return -ENOENT;
	set = &l->sets.at[at];
	for (uint32_t i = 0; i < set->n; i++)
		out[i] = (struct prof_label){ .key = strtab_get(l->text, set->key[i]),
					      .str = strtab_get(l->text, set->value[i]) };
	return (int)set->n;
}

size_t labelsets_of(const struct labelsets *l, const struct gpb_stack *st, uint64_t one,
		    struct prof_label out[GPB_MAX_LABELS + 1], struct loss *loss)
{
	int n = st->labels ? labelsets_get(l, st->labels, out) : 0;

	if (n < 0) {
		loss->n[LOSS_LABELS_CUT] += st->count / one + !(st->count / one);
		n = 0;
	}
	if (st->goid)
		out[n++] = (struct prof_label){ .key = "goid", .num = (int64_t)st->goid };
	return (size_t)n;
}
