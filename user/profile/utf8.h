/*
 * user/profile/utf8.h - strings of a foreign program made fit for formats that demand UTF-8.
 */
#ifndef PROFILE_UTF8_H
#define PROFILE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* No surrogates, nothing overlong, nothing above U+10FFFF. */
bool utf8_valid(const char *s, size_t n);

/*
 * Copies @n bytes to @out, each byte that belongs to no valid sequence replaced with U+FFFD
 * (3 bytes), as Go's conversion to runes does. @out has room for 3 * @n + 1 bytes and gets a
 * NUL. Returns the length without it.
 */
size_t utf8_fix(const char *s, size_t n, char *out);

#endif
