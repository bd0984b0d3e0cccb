/*
 * user/base/cur.h - read bytes nobody vouches for. Little endian only.
 *
 * Every read names its field. The first failure sticks (bad), so the message tells the
 * first wrong thing, and a reader may check once at the end of a group of reads.
 */
#ifndef BASE_CUR_H
#define BASE_CUR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct cur {
	const uint8_t *buf; /* borrowed; must outlive the cursor */
	size_t len, off;    /* invariant: off <= len */
	const char *name;   /* what this is, for messages: "pclntab" */
	const char *bad;    /* the field whose read failed first, or NULL */
};

static inline struct cur cur_of(const char *name, const void *buf, size_t len)
{
	return (struct cur){ .buf = buf, .len = len, .name = name };
}

static inline size_t cur_left(const struct cur *c)
{
	return c->len - c->off;
}

/* @n bytes as a view into the buffer. */
static inline bool cur_take(struct cur *c, const char *what, size_t n, const uint8_t **out)
{
	if (c->bad || n > c->len - c->off) {
		if (!c->bad)
			c->bad = what;
		return false;
	}
	*out = c->buf + c->off;
	c->off += n;
	return true;
}

static inline bool cur_skip(struct cur *c, const char *what, size_t n)
{
	const uint8_t *p;

	return cur_take(c, what, n, &p);
}

/* Go to an absolute offset. */
static inline bool cur_seek(struct cur *c, const char *what, size_t off)
{
	if (c->bad || off > c->len) {
		if (!c->bad)
			c->bad = what;
		return false;
	}
	c->off = off;
	return true;
}

#define CUR_FIXED(type, name)                                                     \
	static inline bool cur_##name(struct cur *c, const char *what, type *out) \
	{                                                                         \
		const uint8_t *p;                                                 \
                                                                                  \
		if (!cur_take(c, what, sizeof(*out), &p))                         \
			return false;                                             \
		memcpy(out, p, sizeof(*out));                                     \
		return true;                                                      \
	}

CUR_FIXED(uint8_t, u8)
CUR_FIXED(uint16_t, u16)
CUR_FIXED(uint32_t, u32)
CUR_FIXED(uint64_t, u64)
#undef CUR_FIXED

/*
 * Unsigned LEB128. More than 5 (or 10) bytes, or bits that the type does not have, are an error.
 */
bool cur_uvarint32(struct cur *c, const char *what, uint32_t *out);
bool cur_uvarint64(struct cur *c, const char *what, uint64_t *out);

/* A NUL-terminated string as a view; the NUL is consumed. */
bool cur_cstr(struct cur *c, const char *what, const char **out);

/* Formats the sticky failure; returns -EBADMSG. */
int cur_fail(const struct cur *c, struct err *e);

#endif
