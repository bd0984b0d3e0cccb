/* user/ingest/heapdump/layouts.c - the tables. */
#include "ingest/heapdump/layouts.h"

#define NUMBER(r, f)                                                   \
	{                                                              \
		PART_NUMBER, offsetof(struct heapdump_record, r.f), #f \
	}
#define BOOL(r, f)                                                   \
	{                                                            \
		PART_BOOL, offsetof(struct heapdump_record, r.f), #f \
	}
#define TEXT(r, f)                                                   \
	{                                                            \
		PART_TEXT, offsetof(struct heapdump_record, r.f), #f \
	}
#define CONTENTS(r, f)                                                   \
	{                                                                \
		PART_CONTENTS, offsetof(struct heapdump_record, r.f), #f \
	}

static const struct part type_parts[] = {
	NUMBER(type, addr), NUMBER(type, size), TEXT(type, name), BOOL(type, indirect), {}
};
static const struct part itab_parts[] = { NUMBER(itab, addr), NUMBER(itab, type), {} };
static const struct part itab_parts_3[] = { NUMBER(itab, addr), BOOL(itab, indirect), {} };
static const struct part object_parts[] = { NUMBER(object, addr), CONTENTS(object, contents), {} };
static const struct part object_parts_3[] = { NUMBER(object, addr),
					      NUMBER(object, type),
					      NUMBER(object, kind),
					      CONTENTS(object, contents),
					      {} };
static const struct part root_parts[] = { TEXT(root, text), NUMBER(root, addr), {} };
static const struct part goroutine_parts[] = {
	NUMBER(goroutine, g),	     NUMBER(goroutine, sp),
	NUMBER(goroutine, goid),     NUMBER(goroutine, gopc),
	NUMBER(goroutine, status),   BOOL(goroutine, system),
	BOOL(goroutine, background), NUMBER(goroutine, waitsince),
	TEXT(goroutine, reason),     NUMBER(goroutine, ctxt),
	NUMBER(goroutine, m),	     NUMBER(goroutine, defer),
	NUMBER(goroutine, panic),    {},
};
static const struct part frame_parts[] = {
	NUMBER(frame, sp),	     NUMBER(frame, depth), NUMBER(frame, child_sp),
	CONTENTS(frame, contents),   NUMBER(frame, entry), NUMBER(frame, pc),
	NUMBER(frame, continuation), TEXT(frame, name),	   {},
};
static const struct part params_parts[] = {
	BOOL(params, big_endian), NUMBER(params, ptrsize),
	NUMBER(params, start),	  NUMBER(params, end),
	TEXT(params, arch),	  TEXT(params, toolchain),
	NUMBER(params, ncpu),	  {},
};
static const struct part params_parts_4[] = {
	BOOL(params, big_endian),  NUMBER(params, ptrsize),
	NUMBER(params, start),	   NUMBER(params, end),
	NUMBER(params, arch_char), TEXT(params, toolchain),
	NUMBER(params, ncpu),	   {},
};
static const struct part params_parts_3[] = {
	BOOL(params, big_endian), NUMBER(params, ptrsize), NUMBER(params, hchan_bytes),
	NUMBER(params, start),	  NUMBER(params, end),	   NUMBER(params, arch_char),
	TEXT(params, toolchain),  NUMBER(params, ncpu),	   {},
};
static const struct part finalizer_parts[] = { NUMBER(finalizer, obj), NUMBER(finalizer, fn),
					       NUMBER(finalizer, pc),  NUMBER(finalizer, fint),
					       NUMBER(finalizer, ot),  {} };
static const struct part osthread_parts[] = {
	NUMBER(osthread, m), NUMBER(osthread, id), NUMBER(osthread, procid), {}
};
static const struct part segment_parts[] = { NUMBER(segment, addr),
					     CONTENTS(segment, contents),
					     {} };
static const struct part defer_parts[] = {
	NUMBER(defer, d),  NUMBER(defer, g),	NUMBER(defer, sp),   NUMBER(defer, pc),
	NUMBER(defer, fn), NUMBER(defer, code), NUMBER(defer, link), {},
};
static const struct part panic_parts[] = {
	NUMBER(panic, p),
	NUMBER(panic, g),
	NUMBER(panic, type),
	NUMBER(panic, data),
	NUMBER(panic, defer),
	NUMBER(panic, link),
	{},
};
static const struct part sample_parts[] = { NUMBER(sample, obj), NUMBER(sample, bucket), {} };

static const struct part pointer_parts[] = { NUMBER(pointer, at), NUMBER(pointer, addr), {} };

/* Of the draft alone. */
static const struct part goroutine_parts_draft[] = {
	NUMBER(goroutine, g),	     NUMBER(goroutine, sp),
	NUMBER(goroutine, goid),     NUMBER(goroutine, gopc),
	NUMBER(goroutine, status),   BOOL(goroutine, system),
	BOOL(goroutine, background), NUMBER(goroutine, waitsince),
	TEXT(goroutine, reason),     {},
};
static const struct part frame_parts_draft[] = { NUMBER(frame, sp),    NUMBER(frame, parent_sp),
						 NUMBER(frame, entry), NUMBER(frame, pc),
						 TEXT(frame, name),    {} };
static const struct part params_parts_draft[] = {
	BOOL(params, big_endian), NUMBER(params, ptrsize), NUMBER(params, hchan_bytes),
	NUMBER(params, start),	  NUMBER(params, end),	   {},
};
static const struct part stack_pointer_parts[] = {
	NUMBER(pointer, at), NUMBER(pointer, addr), NUMBER(pointer, sp), {}
};

static const struct layout {
	const char *name;
	/* parts_4: of Go 1.4 to 1.6, parts_3: of 1.3, draft: of its draft, if others. */
	const struct part *parts, *parts_4, *parts_3, *draft;
} layouts[HEAPDUMP_KINDS] = {
	[HEAPDUMP_EOF] = { .name = "end" },
	[HEAPDUMP_OBJECT] = { .name = "object", .parts = object_parts, .parts_3 = object_parts_3 },
	[HEAPDUMP_OTHERROOT] = { .name = "other root", .parts = root_parts },
	[HEAPDUMP_TYPE] = { .name = "type", .parts = type_parts },
	[HEAPDUMP_GOROUTINE] = { .name = "goroutine",
				 .parts = goroutine_parts,
				 .draft = goroutine_parts_draft },
	[HEAPDUMP_FRAME] = { .name = "stack frame",
			     .parts = frame_parts,
			     .draft = frame_parts_draft },
	[HEAPDUMP_PARAMS] = { .name = "parameters",
			      .parts = params_parts,
			      .parts_4 = params_parts_4,
			      .parts_3 = params_parts_3,
			      .draft = params_parts_draft },
	[HEAPDUMP_FINALIZER] = { .name = "finalizer", .parts = finalizer_parts },
	[HEAPDUMP_ITAB] = { .name = "itab", .parts = itab_parts, .parts_3 = itab_parts_3 },
	[HEAPDUMP_OSTHREAD] = { .name = "OS thread", .parts = osthread_parts },
	[HEAPDUMP_MEMSTATS] = { .name = "memstats" },
	[HEAPDUMP_QUEUED] = { .name = "queued finalizer", .parts = finalizer_parts },
	[HEAPDUMP_DATA] = { .name = "data segment", .parts = segment_parts },
	[HEAPDUMP_BSS] = { .name = "bss segment", .parts = segment_parts },
	[HEAPDUMP_DEFER] = { .name = "defer", .parts = defer_parts },
	[HEAPDUMP_PANIC] = { .name = "panic", .parts = panic_parts },
	[HEAPDUMP_MEMPROF] = { .name = "memory profile" },
	[HEAPDUMP_SAMPLE] = { .name = "allocation sample", .parts = sample_parts },
	[HEAPDUMP_STACKROOT] = { .name = "stack root", .parts = stack_pointer_parts },
	[HEAPDUMP_DATAROOT] = { .name = "data root", .parts = pointer_parts },
};

/* Those of the draft plus 1; 0: it has no such number. */
static const uint8_t draft_kinds[] = {
	[1] = 1 + HEAPDUMP_OBJECT,
	[3] = 1 + HEAPDUMP_EOF,
	[4] = 1 + HEAPDUMP_STACKROOT,
	[5] = 1 + HEAPDUMP_DATAROOT,
	[6] = 1 + HEAPDUMP_OTHERROOT,
	[7] = 1 + HEAPDUMP_TYPE,
	[8] = 1 + HEAPDUMP_GOROUTINE,
	[9] = 1 + HEAPDUMP_FRAME,
	[LAYOUT_DRAFT_PARAMS] = 1 + HEAPDUMP_PARAMS,
	[11] = 1 + HEAPDUMP_FINALIZER,
	[12] = 1 + HEAPDUMP_ITAB,
};

enum heapdump_kind layout_kind(bool draft, uint64_t number)
{
	if (!draft)
		return number <= HEAPDUMP_SAMPLE ? (enum heapdump_kind)number : HEAPDUMP_KINDS;
	if (number >= ARRAY_LEN(draft_kinds) || !draft_kinds[number])
		return HEAPDUMP_KINDS;
	return (enum heapdump_kind)(draft_kinds[number] - 1);
}

const char *layout_name(enum heapdump_kind kind)
{
	return layouts[kind].name;
}

const struct part *layout_parts(unsigned version, bool draft, enum heapdump_kind kind)
{
	const struct layout *l = &layouts[kind];

	if (draft && l->draft)
		return l->draft;
	if (version == 3 && l->parts_3)
		return l->parts_3;
	return version < 7 && l->parts_4 ? l->parts_4 : l->parts;
}
