/*
 * user/base/strtab.h - strings stored once, named by a small id; id 0 is "".
 *
 * Also a generic "bytes stored once" table: keys may hold NULs.
 */
#ifndef BASE_STRTAB_H
#define BASE_STRTAB_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct strtab;

int strtab_new(struct strtab **out, struct err *e);
void strtab_free(struct strtab *t);
DEFINE_FREEP(struct strtab, strtab)

/* Id of the bytes, added if new. UINT32_MAX when there is no memory (or 2^31 bytes are in). */
uint32_t strtab_put(struct strtab *t, const void *s, size_t len);
uint32_t strtab_puts(struct strtab *t, const char *s);

/* Id of the bytes; UINT32_MAX: they are not in. */
uint32_t strtab_find(const struct strtab *t, const void *s, size_t len);

/* NUL-terminated; borrowed and at the same address until strtab_free. */
const char *strtab_get(const struct strtab *t, uint32_t id);
size_t strtab_len(const struct strtab *t, uint32_t id);
size_t strtab_count(const struct strtab *t);
/* Memory that it takes. */
size_t strtab_bytes(const struct strtab *t);

#endif
