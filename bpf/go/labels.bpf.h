/*
 * bpf/go/labels.bpf.h - the pprof labels of a goroutine, copied while they are alive.
 *
 * From Go 1.24 g.labels points to a slice header of {key string, value string} pairs; up to
 * 1.23 to a map[string]string, an ordinary hash map of 8-slot buckets.
 * Sources: runtime/pprof/label.go, internal/runtime/pprof/label (1.26+); runtime/map.go (to
 * 1.23): hmap {count, flags u8, B u8 at 9, buckets at 16, oldbuckets at 24}, bmap {tophash
 * [8], keys at 8, values at 136, overflow at 264}.
 */
#ifndef BPF_LABELS_BPF_H
#define BPF_LABELS_BPF_H

#include "common.bpf.h"

#define MAP_BUCKET	272
#define MAP_KEYS	8
#define MAP_VALUES	(8 + 8 * 16)
#define MAP_OVERFLOW	264
#define MAP_MIN_TOPHASH 5 /* smaller marks an empty or evacuated slot */
#define MAP_MAX_B	3 /* 8 buckets hold 52 entries before they split */
#define MAP_CHAIN	4 /* overflow buckets are rare: one more for each doubling */

struct gostring {
	__u64 ptr, len;
};

/* 0 when the text could not be read; *len is what was kept. */
static __always_inline int label_text(const struct gostring *s, __u8 *dst, __u32 cap, __u16 *len,
				      int *cut)
{
	__u32 n = s->len > cap ? cap : (__u32)s->len;

	if (s->len > cap)
		*cut = 1;
	*len = n;
	if (!n)
		return 1;
	/* The last word is hashed as a whole, so it is filled with zeros. */
	if (n < cap)
		*(__u64 *)(dst + (n & (cap - 1) & ~7u)) = 0;
	return user_read(dst, n, s->ptr) == 0;
}

/*
 * Appends one label. Returns 1 when something had to be left out. These functions are global so
 * that the verifier checks each once, and not once for each path that leads to it.
 */
ONCE_INLINE int label_add(struct gpb_rec_labels *l, const struct gostring *key,
			  const struct gostring *value)
{
	struct gpb_label *lab;
	int cut = 0;
	__u32 i;

	if (!l || !key || !value)
		return 1;
	i = l->n;
	if (i >= GPB_MAX_LABELS)
		return 1;
	lab = &l->label[i];
	if (!label_text(key, lab->key, GPB_LABEL_KEY, &lab->key_len, &cut) ||
	    !label_text(value, lab->value, GPB_LABEL_VALUE, &lab->value_len, &cut))
		return 1;
	l->n = i + 1;
	return cut;
}

#ifdef GPB_OLD
__noinline int label_add_at(__u64 key, __u64 key_len, __u64 value, __u64 value_len)
{
	struct gostring k = { key, key_len }, v = { value, value_len };

	return label_add(own_labels(), &k, &v);
}
#define label_put(l, k, v) label_add_at((k)->ptr, (k)->len, (v)->ptr, (v)->len)
#else
#define label_put(l, k, v) label_add(l, k, v)
#endif

ONCE(int, labels_slice, (LABELS_PARAM, __u64 addr), (own_labels(), addr), (__u64 addr), (addr))
{
	struct gostring head = {}, pair[2];
	int cut = 0;

	if (!l || user_read(&head, sizeof(head), addr))
		return 1;
	for (__u32 i = 0; i < GPB_MAX_LABELS; i++) {
		if (i >= head.len)
			return cut;
		if (user_read(pair, sizeof(pair), head.ptr + i * sizeof(pair)))
			return 1;
		cut |= label_put(l, &pair[0], &pair[1]);
	}
	return cut | (head.len > GPB_MAX_LABELS);
}

/* Reads the used slots of one bucket. */
ONCE(int, labels_bucket, (LABELS_PARAM, __u64 bucket, __u64 tops), (own_labels(), bucket, tops),
     (__u64 bucket, __u64 tops), (bucket, tops))
{
	struct gostring key, value;
	int cut = 0;

	if (!l)
		return 1;
	for (__u32 i = 0; i < 8; i++) {
		if (((tops >> (8 * i)) & 0xff) < MAP_MIN_TOPHASH)
			continue;
		if (user_read(&key, sizeof(key), bucket + MAP_KEYS + 16 * i) ||
		    user_read(&value, sizeof(value), bucket + MAP_VALUES + 16 * i))
			return 1;
		cut |= label_put(l, &key, &value);
	}
	return cut;
}

/* Reads one bucket and its overflow chain. */
ONCE(int, labels_chain, (LABELS_PARAM, __u64 bucket), (own_labels(), bucket), (__u64 bucket),
     (bucket))
{
	int cut = 0;
	__u64 tops;

	for (__u32 i = 0; i < MAP_CHAIN; i++) {
		if (!bucket)
			return cut;
		if (user_read(&tops, sizeof(tops), bucket))
			return 1;
		cut |= labels_bucket(l, bucket, tops);
		bucket = user_u64(bucket + MAP_OVERFLOW);
	}
	return cut | !!bucket;
}

/* Reads all buckets and, while the map is growing, the old ones that were not moved yet. */
ONCE(int, labels_map, (LABELS_PARAM, __u64 map), (own_labels(), map), (__u64 map), (map))
{
	__u64 hmap, head[4];
	__u32 b, nnew, nold;
	int cut = 0;

	hmap = user_u64(map);
	if (!hmap)
		return 0;
	if (user_read(head, sizeof(head), hmap))
		return 1;
	b = (head[1] >> 8) & 0xff;
	if (b > MAP_MAX_B)
		return 1;
	nnew = head[2] ? 1 << b : 0;
	nold = head[3] ? 1 << (b ? b - 1 : 0) : 0;
	for (__u32 i = 0; i < 1 << MAP_MAX_B; i++)
		if (i < nnew)
			cut |= labels_chain(l, head[2] + i * MAP_BUCKET);
	for (__u32 i = 0; i < 1 << (MAP_MAX_B - 1); i++)
		if (i < nold)
			cut |= labels_chain(l, head[3] + i * MAP_BUCKET);
	return cut;
}

ONCE_INLINE int label_hash(const struct gpb_label *lab, struct gpb_sip *h)
{
	if (!lab || !h)
		return 0;
	gpb_sip_word(h, ((__u64)lab->key_len << 32) | lab->value_len);
	_Static_assert(GPB_LABEL_KEY % sizeof(struct hash_block) == 0, "whole blocks");
	_Static_assert(GPB_LABEL_VALUE % sizeof(struct hash_block) == 0, "whole blocks");
	for (__u32 i = 0; i < GPB_LABEL_KEY && i < lab->key_len; i += sizeof(struct hash_block))
		hash_block(h, (const struct hash_block *)&lab->key[i], (lab->key_len - i + 7) / 8);
	for (__u32 i = 0; i < GPB_LABEL_VALUE && i < lab->value_len; i += sizeof(struct hash_block))
		hash_block(h, (const struct hash_block *)&lab->value[i],
			   (lab->value_len - i + 7) / 8);
	return 0;
}

#ifdef GPB_OLD
__noinline int label_hash_at(__u32 i)
{
	struct gpb_rec_labels *l = own_labels();

	return l && i < GPB_MAX_LABELS ? label_hash(&l->label[i], own_sip()) : 0;
}
#else
#define label_hash_at(i) label_hash(&l->label[i], h)
#endif

/* Computes l->id from all kept bytes; what lies behind a string in its last word is zero. */
ONCE(int, labels_hash, (LABELS_PARAM), (own_labels()), (void), ())
{
	HASH_STATE(h);

	if (!l || !h)
		return 1;
	hash_begin(h);
	for (__u32 i = 0; i < GPB_MAX_LABELS; i++) {
		if (i >= l->n)
			break;
		label_hash_at(i);
	}
	l->id = gpb_sip_end(h) ?: 1;
	return 0;
}

#endif
