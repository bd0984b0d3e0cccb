/* user/base/hash.c - SipHash under a key of this process. */
#include "base/hash.h"

#include <stdbool.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>

static struct {
	struct gpb_hash_key key;
	bool drawn;
} secret;

struct gpb_hash_key hash_secret(void)
{
	const void *given;

	if (secret.drawn)
		return secret.key;
	/*
	 * The kernel may not have enough randomness yet, or a filter may forbid the call. Then
	 * the random bytes are used that it gave us at exec.
	 */
	if (getrandom(&secret.key, sizeof(secret.key), GRND_NONBLOCK) != sizeof(secret.key)) {
		given = (const void *)getauxval(AT_RANDOM); /* 16 bytes */
		if (given)
			memcpy(&secret.key, given, sizeof(secret.key));
	}
	secret.drawn = true;
	return secret.key;
}

void hash_set_key(struct gpb_hash_key k)
{
	secret.key = k;
	secret.drawn = true;
}

static struct gpb_sip begin(void)
{
	struct gpb_hash_key k = hash_secret();
	struct gpb_sip s;

	gpb_sip_begin(&s, k.k0, k.k1);
	return s;
}

uint64_t hash_bytes(const void *p, size_t n)
{
	struct gpb_sip s = begin();
	const uint8_t *b = p;
	uint64_t w;
	size_t i;

	for (i = 0; i + sizeof(w) <= n; i += sizeof(w)) {
		memcpy(&w, b + i, sizeof(w));
		gpb_sip_word(&s, w);
	}
	w = (uint64_t)n << 56;
	for (unsigned shift = 0; i < n; i++, shift += 8)
		w |= (uint64_t)b[i] << shift;
	gpb_sip_word(&s, w);
	return gpb_sip_end(&s);
}

uint64_t hash_u64(uint64_t v)
{
	struct gpb_sip s = begin();

	gpb_sip_word(&s, v);
	return gpb_sip_end(&s);
}

uint64_t hash_pair(uint64_t a, uint64_t b)
{
	struct gpb_sip s = begin();

	gpb_sip_word(&s, a);
	gpb_sip_word(&s, b);
	return gpb_sip_end(&s);
}
