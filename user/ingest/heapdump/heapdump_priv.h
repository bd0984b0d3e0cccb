/*
 * user/ingest/heapdump/heapdump_priv.h - the state of a reader, which records (heapdump.c) and fields
 * (fields.c) share.
 */
#ifndef INGEST_HEAPDUMP_HEAPDUMP_PRIV_H
#define INGEST_HEAPDUMP_HEAPDUMP_PRIV_H

#include <endian.h>
#include <string.h>

#include "base/limits.h"
#include "base/vec.h"
#include "ingest/heapdump/heapdump.h"
#include "ingest/heapdump/lists.h"
#include "ingest/heapdump/types.h"
#include "ingest/stream.h"

/*
 * FAST_BYTES: room for the kind of a record, two numbers and more. PREFETCH_BYTES: of 256 to 2048 bytes the
 * least with which the wait for memory was gone.
 */
enum { FAST_BYTES = 32, TEXT_BYTES = 4 * LIMIT_NAME, PREFETCH_BYTES = 1024 };

/* Where the fields of the record that was read last are. */
enum fields {
	FIELDS_NONE,
	FIELDS_LIST,	/* they follow in the file */
	FIELDS_BY_TYPE, /* its type says so */
	FIELDS_ALL,	/* every word may be one */
	FIELDS_LAYOUT,	/* its list was seen before */
};

struct heapdump {
	struct stream s;
	struct stream far; /* for values of contents that are longer than the window */
	unsigned version;
	bool draft;
	bool known; /* params was read */
	struct heapdump_params params;
	char arch[64], toolchain[128];
	bool ended;
	/* The record that is being read. */
	uint64_t began;
	enum heapdump_kind kind;
	const char *record, *bad;   /* bad: the first part that could not be read */
	uint64_t bad_off, too_long; /* too_long: what it says that it has, more than there is */
	struct heapdump_contents contents;
	enum fields fields;
	uint64_t behind;		      /* fields of frames that were left out */
	uint64_t word;			      /* FIELDS_ALL: the offset of the next one */
	const struct heapdump_layout *layout; /* FIELDS_LAYOUT, */
	uint32_t at;			      /* and the next one in it */
	struct heapdump_lists lists;
	struct dumptypes types;	    /* of Go 1.3 and 1.4 */
	struct dumptypes_walk walk; /* FIELDS_BY_TYPE */
	char *text;		    /* TEXT_BYTES, of which ntext are used */
	size_t ntext;
	VEC(struct heapdump_line) lines;
};

/* Reads a number. False: it, or one before it, could not be read, which heapdump_fail() tells. */
bool heapdump_number(struct heapdump *d, const char *what, uint64_t *out);
/* Which part of which record could not be read: -EBADMSG, or why the read failed. */
int heapdump_fail(const struct heapdump *d, struct err *e);
/* The record's name, for messages. */
const char *heapdump_record_name(const struct heapdump *d);

/* Passes over fields that nobody asked for. -EBADMSG */
int heapdump_skip_fields(struct heapdump *d, struct err *e);
/* Go 1.3 and 1.4: of a type, an itab or an object, what tells where fields are. -EBADMSG */
int heapdump_keep_types(struct heapdump *d, const struct heapdump_record *r, struct err *e);

/*
 * Of 8 bytes that are there; NULL: it has more. All at once: the groups of 7 bits are moved together
 * in pairs, which takes less time than to look at each byte.
 */
static inline const uint8_t *uvarint_inside(const uint8_t *p, uint64_t *out)
{
	uint64_t v, ends;
	unsigned bits;

	if (*p < 0x80) {
		*out = *p;
		return p + 1;
	}
	memcpy(&v, p, sizeof(v));
	v = le64toh(v);
	ends = ~v & 0x8080808080808080;
	if (!ends)
		return NULL;
	bits = (unsigned)__builtin_ctzll(ends) + 1;
	v &= (bits < 64 ? (1ull << bits) - 1 : UINT64_MAX) & 0x7f7f7f7f7f7f7f7f;
	v = (v & 0x007f007f007f007f) | (v & 0x7f007f007f007f00) >> 1;
	v = (v & 0x00003fff00003fff) | (v & 0x3fff00003fff0000) >> 2;
	*out = (v & 0x000000000fffffff) | (v & 0x0fffffff00000000) >> 4;
	return p + bits / 8;
}

#endif
