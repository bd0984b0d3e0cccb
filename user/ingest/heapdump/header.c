/* user/ingest/heapdump/header.c - is it a heap dump, and of which format? */
#include "ingest/heapdump/header.h"

#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"

enum { OLDEST = 3, NEWEST = 7, DIGITS = 3 };

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The tool that unpacks it; NULL: it is not packed in a usual way. */
static const char *unpacker(const char *at)
{
	static const char *const known[][2] = { { "\037\213", "zcat" },
						{ "\050\265\057\375", "zstdcat" },
						{ "\3757zXZ", "xzcat" } };

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (!memcmp(at, known[i][0], strlen(known[i][0])))
			return known[i][1];
	return NULL;
}

static int no_dump(const char *at, struct err *e)
{
	const char *tool = unpacker(at);

	return tool ? err_set(e, -EBADMSG,
			      "it is compressed: unpack it, as in: %s FILE | goprof-bpf heapdump -",
			      tool) :
		      err_set(e, -EBADMSG,
			      "no heap dump: it does not begin with \"go1.7 heap dump\"");
}

int heapdump_header(const void *bytes, size_t n, unsigned *version, struct err *e)
{
	static const char before[] = "go1.", after[] = " heap dump\n";
	const char *at = bytes;
	unsigned minor = 0;
	size_t i = sizeof(before) - 1;

	if (n < HEAPDUMP_HEADER_BYTES)
		return err_set(e, -EBADMSG, "no heap dump: only %zu byte%s", n, n == 1 ? "" : "s");
	while (i < sizeof(before) - 1 + DIGITS && is_digit(at[i]))
		minor = minor * 10 + (unsigned)(at[i++] - '0');
	/* Of a longer number the end of the line lies behind these bytes. */
	if (memcmp(at, before, sizeof(before) - 1) || !is_digit(at[sizeof(before) - 1]) ||
	    memcmp(at + i, after, HEAPDUMP_HEADER_BYTES - i))
		return no_dump(at, e);
	if (minor > NEWEST)
		return err_set(e, -ENOTSUP,
			       "a heap dump of format go1.%u, which is newer than go1.%u", minor,
			       (unsigned)NEWEST);
	if (minor < OLDEST)
		return err_set(e, -ENOTSUP, "a heap dump of the unknown format go1.%u", minor);
	*version = minor;
	return 0;
}
