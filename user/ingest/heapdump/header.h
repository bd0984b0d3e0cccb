/*
 * user/ingest/heapdump/header.h - the first bytes of a heap dump: "go1.7 heap dump\n".
 *
 * Source: dumphdr in runtime/heapdump.go, Go 1.5 to 1.27; runtime/heapdump.c before.
 */
#ifndef INGEST_HEAPDUMP_HEADER_H
#define INGEST_HEAPDUMP_HEADER_H

#include <stddef.h>

#include "base/err.h"

enum { HEAPDUMP_HEADER_BYTES = 16 };

/*
 * @n: how many bytes there are, of which no more than the header's are looked at. *version: 3 to 7.
 * -EBADMSG: it is no heap dump; -ENOTSUP: of a format that is not known.
 */
int heapdump_header(const void *bytes, size_t n, unsigned *version, struct err *e);

#endif
