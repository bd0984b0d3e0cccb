/*
 * user/base/hash.h - hashes of what others choose: names, labels, addresses, stacks.
 *
 * They are keyed with a secret that this process draws when it first hashes, so that nobody can
 * prepare keys that collide. Therefore a hash must not be stored, sent to another process, or
 * decide an order.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "goprof_hash.h"

uint64_t hash_bytes(const void *p, size_t n); /* SipHash-1-3 as it is published */
uint64_t hash_u64(uint64_t v);
uint64_t hash_pair(uint64_t a, uint64_t b);

/* The secret; for the BPF side. */
struct gpb_hash_key hash_secret(void);

/* For tests: uses this key from now on. Tables that are filled already become useless. */
void hash_set_key(struct gpb_hash_key k);

#endif
