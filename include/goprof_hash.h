/*
 * include/goprof_hash.h - SipHash-1-3, for both sides: a hash of words under a secret key.
 *
 * What is hashed (labels, stacks, names) comes from the users of the target. Without a secret they
 * could choose texts that collide: a table becomes a list, or one sample passes for another. With
 * a multiplicative hash that stays possible under a secret seed, too, for differences in the high
 * bits pass through a multiplication whatever the seed.
 *
 * Source: Aumasson, Bernstein: SipHash, a fast short-input PRF, INDOCRYPT 2012; the variant with
 * one and three rounds is the one of Rust, Ruby and Python.
 */
#ifndef GOPROF_HASH_H
#define GOPROF_HASH_H

#include <linux/types.h>

#define GPB_HASH_FN static inline __attribute__((always_inline, unused))

struct gpb_hash_key {
	__u64 k0, k1;
};

struct gpb_sip {
	__u64 v0, v1, v2, v3;
};

GPB_HASH_FN __u64 gpb_rotl(__u64 x, int n)
{
	return x << n | x >> (64 - n);
}

GPB_HASH_FN void gpb_sip_round(struct gpb_sip *s)
{
	s->v0 += s->v1;
	s->v1 = gpb_rotl(s->v1, 13) ^ s->v0;
	s->v0 = gpb_rotl(s->v0, 32);
	s->v2 += s->v3;
	s->v3 = gpb_rotl(s->v3, 16) ^ s->v2;
	s->v0 += s->v3;
	s->v3 = gpb_rotl(s->v3, 21) ^ s->v0;
	s->v2 += s->v1;
	s->v1 = gpb_rotl(s->v1, 17) ^ s->v2;
	s->v2 = gpb_rotl(s->v2, 32);
}

GPB_HASH_FN void gpb_sip_begin(struct gpb_sip *s, __u64 k0, __u64 k1)
{
	s->v0 = k0 ^ 0x736f6d6570736575ULL;
	s->v1 = k1 ^ 0x646f72616e646f6dULL;
	s->v2 = k0 ^ 0x6c7967656e657261ULL;
	s->v3 = k1 ^ 0x7465646279746573ULL;
}

GPB_HASH_FN void gpb_sip_word(struct gpb_sip *s, __u64 w)
{
	s->v3 ^= w;
	gpb_sip_round(s);
	s->v0 ^= w;
}

/*
 * Ends a hash. All hashes that are compared must have equally many words, or their number among
 * the words.
 */
GPB_HASH_FN __u64 gpb_sip_end(struct gpb_sip *s)
{
	s->v2 ^= 0xff;
	gpb_sip_round(s);
	gpb_sip_round(s);
	gpb_sip_round(s);
	return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

/* Yields 64 more bits, after gpb_sip_end(). */
GPB_HASH_FN __u64 gpb_sip_more(struct gpb_sip *s)
{
	s->v1 ^= 0xdd;
	gpb_sip_round(s);
	gpb_sip_round(s);
	gpb_sip_round(s);
	return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

#endif
