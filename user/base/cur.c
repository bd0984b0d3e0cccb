/* user/base/cur.c - the variable-length readers of the cursor, and its message. */
#include "base/cur.h"

static bool uvarint(struct cur *c, const char *what, unsigned bits, uint64_t *out)
{
	uint64_t v = 0;
	uint8_t b;

	for (unsigned shift = 0; shift < bits; shift += 7) {
		if (!cur_u8(c, what, &b))
			return false;
		if (bits - shift < 7 && (b & 0x7f) >> (bits - shift))
			break;
		v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80)) {
			*out = v;
			return true;
		}
	}
	c->bad = what;
	return false;
}

bool cur_uvarint32(struct cur *c, const char *what, uint32_t *out)
{
	uint64_t v;

	if (!uvarint(c, what, 32, &v))
		return false;
	*out = (uint32_t)v;
	return true;
}

bool cur_uvarint64(struct cur *c, const char *what, uint64_t *out)
{
	return uvarint(c, what, 64, out);
}

bool cur_cstr(struct cur *c, const char *what, const char **out)
{
	const void *nul = c->bad ? NULL : memchr(c->buf + c->off, 0, cur_left(c));

	if (!nul) {
		if (!c->bad)
			c->bad = what;
		return false;
	}
	*out = (const char *)c->buf + c->off;
	c->off = (size_t)((const uint8_t *)nul - c->buf) + 1;
	return true;
}

int cur_fail(const struct cur *c, struct err *e)
{
	return err_set(e, -EBADMSG, "%s+0x%zx: cannot read %s (%zu bytes left of %zu)", c->name,
		       c->off, c->bad ? c->bad : "it", cur_left(c), c->len);
}
