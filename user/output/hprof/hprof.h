/*
 * user/output/hprof/hprof.h - writes HPROF files, the heap dumps of Java's tools, record by record.
 *
 * Format: "JAVA PROFILE 1.0.2", identifiers of 8 bytes, big-endian, segments. Source: the binary
 * format in OpenJDK's hprof_b_spec.h and heapDumper.cpp. Readers demand more than that, and an
 * order: all strings, classes, frames and stack traces; then hprof_heap(); then roots (Perfetto's
 * importer of 2025 forgets those that come after their object), of threads before those of their
 * frames (Eclipse MAT); then the classes' contents, in one run (VisualVM takes later ones for
 * objects); then objects. Counts are signed in most readers: no array and no instance has 2^31.
 */
#ifndef OUTPUT_HPROF_H
#define OUTPUT_HPROF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

enum hprof_type {
	HPROF_OBJECT = 2,
	HPROF_BOOLEAN = 4,
	HPROF_CHAR,
	HPROF_FLOAT,
	HPROF_DOUBLE,
	HPROF_BYTE,
	HPROF_SHORT,
	HPROF_INT,
	HPROF_LONG,
};

struct hprof;

/* @f: borrowed; the caller flushes and checks it. @time_ms: since 1970. */
int hprof_new(FILE *f, uint64_t time_ms, struct hprof **out, struct err *e);
void hprof_free(struct hprof *h);
DEFINE_FREEP(struct hprof, hprof)

/* Of a segment, at most, but for one with a single record; and of an instance, before its fields. */
enum { HPROF_SEGMENT_BYTES = 1 << 20, HPROF_INSTANCE_BYTES = 1 + 2 * 8 + 2 * 4 };

/* Identifiers are not 0, and differ among all strings, classes, frames and objects. */
void hprof_string(struct hprof *h, uint64_t id, const char *text, size_t len);
/* Serial numbers count from 1. */
void hprof_load_class(struct hprof *h, uint32_t serial, uint64_t id, uint64_t name);

struct hprof_frame {
	uint64_t id, method, signature, file; /* the last three: strings */
	uint32_t class_serial;
	int32_t line; /* 0: none */
};
void hprof_frame(struct hprof *h, const struct hprof_frame *f);
/* @frames: from the innermost on. */
void hprof_trace(struct hprof *h, uint32_t serial, uint32_t thread, const uint64_t *frames,
		 uint32_t n);

/* The heap begins: no strings, classes, frames and traces any more. */
void hprof_heap(struct hprof *h);

struct hprof_field {
	uint64_t name;
	enum hprof_type type;
};
struct hprof_static {
	uint64_t name, object;
};
/* Static or other fields of a class: the format has 16 bits, which VisualVM reads as signed. */
enum { HPROF_FIELDS_MAX = INT16_MAX };
struct hprof_class {
	uint64_t id, super;
	uint32_t size; /* bytes of an instance, in all */
	const struct hprof_static *statics;
	size_t nstatics;
	const struct hprof_field *fields;
	size_t nfields;
};
void hprof_class(struct hprof *h, const struct hprof_class *c);

void hprof_root_sticky(struct hprof *h, uint64_t class);
void hprof_root_unknown(struct hprof *h, uint64_t object);
void hprof_root_thread(struct hprof *h, uint64_t object, uint32_t thread, uint32_t trace);
/* @frame: its number in the thread's trace. */
void hprof_root_frame(struct hprof *h, uint64_t object, uint32_t thread, uint32_t frame);

/* An instance whose fields, in all @bytes, are written next: own ones first, then the super's. */
void hprof_instance(struct hprof *h, uint64_t id, uint32_t trace, uint64_t class, uint32_t bytes);
void hprof_value_object(struct hprof *h, uint64_t id);
/* A whole one whose fields are objects, @n of them. */
void hprof_instance_of(struct hprof *h, uint64_t id, uint32_t trace, uint64_t class,
		       const uint64_t *objects, uint32_t n);
/* @n instances without a trace and without fields. */
void hprof_instances(struct hprof *h, const uint64_t *ids, size_t n, uint64_t class);
void hprof_value_bytes(struct hprof *h, const void *bytes, size_t n);
/* An array of @n numbers or characters, which are written next, big-endian. */
void hprof_array(struct hprof *h, uint64_t id, uint32_t trace, enum hprof_type type, uint32_t n);

/*
 * Objects can be told by several threads, which each have a writer: hprof_sections() once all before
 * the objects was told, then hprof_beside() for each further writer. The objects are told in
 * sections, which are numbered from 0 in the order of the file, each by one writer. A writer has the
 * file when all sections before its own have ended; until then it keeps one segment, so a section of
 * no more than HPROF_SEGMENT_BYTES is made without waiting.
 */
void hprof_sections(struct hprof *h);
/* @h outlives it, and is the one that ends the file. */
int hprof_beside(const struct hprof *h, struct hprof **out, struct err *e);
void hprof_section(struct hprof *h, uint64_t n);
/* Each section that was begun must end, or others wait for ever; one that fails, too, but then the file is worthless. */
void hprof_section_end(struct hprof *h);

/* Did a write fail? Nothing more is written then. */
int hprof_check(const struct hprof *h, struct err *e);
/* Ends the heap and the file. Tells of a write that failed, too. */
int hprof_end(struct hprof *h, struct err *e);

#endif
