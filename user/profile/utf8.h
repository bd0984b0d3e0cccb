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
 * The length of what @s begins with, at least 1; @n is at least 1, too. *shown: a terminal may have it:
 * a valid sequence, and none that moves the cursor, ends a line, or turns the direction of what
 * follows.
 */
size_t utf8_next(const char *s, size_t n, bool *shown);

/*
 * Copies @n bytes to @out, each byte that belongs to no valid sequence replaced with U+FFFD
 * (3 bytes), as Go's conversion to runes does. @out has room for 3 * @n + 1 bytes and gets a
 * NUL. Returns the length without it.
 */
size_t utf8_fix(const char *s, size_t n, char *out);

#endif
