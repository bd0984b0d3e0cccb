/* user/profile/utf8.c - well-formed byte sequences as in the Unicode standard, table 3-7. */
#include "profile/utf8.h"

#include <stdint.h>
#include <string.h>

/*
 * How many bytes a sequence with this lead byte has, and the range of its second byte. 0: this is
 * no lead byte.
 */
static size_t lead(uint8_t b, uint8_t *lo, uint8_t *hi)
{
	*lo = 0x80;
	*hi = 0xbf;
	if (b < 0x80)
		return 1;
	if (b < 0xc2 || b > 0xf4)
		return 0;
	if (b < 0xe0)
		return 2;
	if (b == 0xe0)
		*lo = 0xa0; /* below: overlong */
	if (b == 0xed)
		*hi = 0x9f; /* above: surrogates */
	if (b < 0xf0)
		return 3;
	if (b == 0xf0)
		*lo = 0x90; /* below: overlong */
	if (b == 0xf4)
		*hi = 0x8f; /* above: more than U+10FFFF */
	return 4;
}

/* Length of the valid sequence at @s, 0 when there is none. @n is at least 1. */
static size_t sequence(const uint8_t *s, size_t n)
{
	uint8_t lo, hi;
	size_t len = lead(s[0], &lo, &hi);

	if (!len || len > n)
		return 0;
	for (size_t i = 1; i < len; i++) {
		if (s[i] < lo || s[i] > hi)
			return 0;
		lo = 0x80;
		hi = 0xbf;
	}
	return len;
}

bool utf8_valid(const char *s, size_t n)
{
	for (size_t i = 0; i < n;) {
		size_t len = sequence((const uint8_t *)s + i, n - i);

		if (!len)
			return false;
		i += len;
	}
	return true;
}

static bool is_between(const uint8_t *s, uint8_t second, uint8_t lo, uint8_t hi)
{
	return s[1] == second && s[2] >= lo && s[2] <= hi;
}

/*
 * C0, DEL and C1; the separators of lines and paragraphs; and the marks, embeddings, overrides and
 * isolates of the bidirectional algorithm: U+061C, U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069.
 * Source: Unicode Standard Annex 9, section 2.
 */
static bool is_control(const uint8_t *s, size_t len)
{
	switch (len) {
	case 1:
		return s[0] < ' ' || s[0] == 0x7f;
	case 2:
		return (s[0] == 0xc2 && s[1] < 0xa0) || (s[0] == 0xd8 && s[1] == 0x9c);
	case 3:
		return s[0] == 0xe2 &&
		       (is_between(s, 0x80, 0x8e, 0x8f) || is_between(s, 0x80, 0xa8, 0xae) ||
			is_between(s, 0x81, 0xa6, 0xa9));
	default:
		return false;
	}
}

size_t utf8_next(const char *s, size_t n, bool *shown)
{
	size_t len = sequence((const uint8_t *)s, n);

	*shown = len && !is_control((const uint8_t *)s, len);
	return len ? len : 1;
}

size_t utf8_fix(const char *s, size_t n, char *out)
{
	size_t used = 0;

	for (size_t i = 0; i < n;) {
		size_t len = sequence((const uint8_t *)s + i, n - i);

		if (len) {
			memcpy(out + used, s + i, len);
			used += len;
			i += len;
		} else {
			memcpy(out + used, "\xef\xbf\xbd", 3);
			used += 3;
			i++;
		}
	}
	out[used] = 0;
	return used;
}
