/*
 * user/ingest/heapdump/layouts.h - of what parts each record of a heap dump consists, by version.
 *
 * Source: runtime/heapdump.c of Go 1.3 and 1.4, runtime/heapdump.go of Go 1.5 to 1.27; the draft of
 * Go 1.3's by the README that its author published in March 2014 (github.com/randall77/hprof).
 */
#ifndef INGEST_HEAPDUMP_LAYOUTS_H
#define INGEST_HEAPDUMP_LAYOUTS_H

#include "ingest/heapdump/heapdump.h"

enum part_type { PART_END, PART_NUMBER, PART_BOOL, PART_TEXT, PART_CONTENTS };

struct part {
	enum part_type type;
	size_t at; /* offset in struct heapdump_record */
	const char *name;
};

/* The first record's number in a draft; in all other dumps it is HEAPDUMP_PARAMS. */
enum { LAYOUT_DRAFT_PARAMS = 10 };

/* What a record's number means; HEAPDUMP_KINDS: nothing. */
enum heapdump_kind layout_kind(bool draft, uint64_t number);
const char *layout_name(enum heapdump_kind kind);
/* Ends with PART_END. NULL: nothing follows the number, or no fixed parts. */
const struct part *layout_parts(unsigned version, bool draft, enum heapdump_kind kind);

#endif
