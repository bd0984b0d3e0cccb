/*
 * tests/support/readhprof.h - reads HPROF files strictly, by the format's table. Nothing of the
 * writer is used.
 *
 * A file is wrong if any of the tools that read such files could stumble over it: see readhprof.c.
 */
#ifndef TESTS_READHPROF_H
#define TESTS_READHPROF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct rh_class {
	uint64_t id, super;
	uint32_t serial, size;
	const char *name;
	bool dumped;
	const uint8_t *statics, *fields; /* of 17 and 9 bytes each */
	uint16_t nstatics, nfields;
	uint32_t all; /* fields, with those of its superclasses */
};

struct rh_object {
	uint64_t id, class; /* class 0: an array of numbers */
	uint32_t trace, n;  /* n: bytes, or elements */
	uint8_t type;
	const uint8_t *at;
};

struct rh_root {
	uint8_t tag;
	uint64_t id;
	uint32_t a, b;
};

struct rh_frame {
	uint64_t id;
	const char *method, *file, *class;
	int32_t line;
};

struct rh_trace {
	uint32_t serial, thread, n;
	const uint8_t *frames; /* 8 bytes each */
};

struct rh_string {
	uint64_t id;
	char *text;
};

struct readhprof {
	const uint8_t *start, *p, *end;
	char why[256]; /* what is wrong; "": nothing */
	VEC(struct rh_string) strings;
	VEC(struct rh_class) classes;
	VEC(struct rh_object) objects;
	VEC(struct rh_root) roots;
	VEC(struct rh_frame) frames;
	VEC(struct rh_trace) traces;
	unsigned segments, phase;
	uint32_t largest; /* bytes of a segment */
};

/* @bytes: borrowed. False: it is wrong (why). */
bool readhprof(struct readhprof *r, const uint8_t *bytes, size_t n);
void readhprof_fini(struct readhprof *r);

/* NULL: there is none. */
const struct rh_class *rh_class(const struct readhprof *r, uint64_t id);
const struct rh_class *rh_class_named(const struct readhprof *r, const char *name);
const struct rh_object *rh_object(const struct readhprof *r, uint64_t id);
const struct rh_trace *rh_trace(const struct readhprof *r, uint32_t serial);
const struct rh_frame *rh_frame(const struct readhprof *r, const struct rh_trace *t, uint32_t i);

/* An object of the Go program? Others are Java's, made for readers. */
bool rh_is_go(const struct readhprof *r, const struct rh_object *o);
/* The i-th field, those of superclasses behind the class' own; its value is an identifier. */
const char *rh_field_name(const struct readhprof *r, const struct rh_object *o, uint32_t i);
uint64_t rh_value(const struct rh_object *o, uint32_t i);
const char *rh_static_name(const struct readhprof *r, const struct rh_class *c, uint32_t i);
uint64_t rh_static(const struct rh_class *c, uint32_t i);

#endif
