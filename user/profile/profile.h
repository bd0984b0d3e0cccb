/*
 * user/profile/profile.h - a profile: sample types, samples, locations, strings, labels.
 *
 * Pure data, no I/O. The shape is pprof's, so that writing it is a copy. Strings are
 * interned once; samples hold ids. Ids of mappings and locations are 1..n in the order of
 * their first use. Equal samples (same locations, same labels) are added up.
 */
#ifndef PROFILE_PROFILE_H
#define PROFILE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strtab.h"
#include "profile/loss.h"

enum { PROF_TYPES_MAX = 4, PROF_VALUES_MAX = PROF_TYPES_MAX + 1 };

struct prof_type {
	uint32_t type, unit; /* string ids */
};

struct prof_mapping {
	uint64_t start, limit, offset;
	const char *filename; /* copied */
	const char *build_id; /* hex, "" none; copied */
};

struct prof_line {
	const char *func; /* copied */
	const char *file; /* "" unknown; copied */
	int64_t line;
	int64_t start_line; /* 0 unknown */
};

struct prof_label {
	const char *key; /* copied */
	const char *str; /* NULL: numeric */
	int64_t num;
	const char *num_unit; /* NULL: none */
};

struct prof;

int prof_new(struct prof **out, struct err *e);
void prof_free(struct prof *p);
DEFINE_FREEP(struct prof, prof)

/* At most PROF_TYPES_MAX, before the first sample. */
int prof_add_type(struct prof *p, const char *type, const char *unit, struct err *e);
/* After all types, before the first sample: each has one more value, which is summed up like others and written nowhere. */
void prof_add_aside(struct prof *p);
int prof_set_period(struct prof *p, const char *type, const char *unit, int64_t period,
		    struct err *e);
void prof_set_time(struct prof *p, int64_t time_ns, int64_t duration_ns); /* unix ns; 0: unset */
void prof_set_kind(struct prof *p, const char *kind); /* "heap", ...; borrowed for its life */
int prof_set_default_type(struct prof *p, const char *type, struct err *e);
/* One line: what a terminal may not have (control characters, what is not UTF-8) becomes "?". */
int prof_comment(struct prof *p, struct err *e, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/*
 * The standard error of the sum of all samples, in the unit of a sample type; it is not written. PROF_NOT_KNOWN: nobody knows it. What has
 * none is exact, or nobody has told.
 */
#define PROF_NOT_KNOWN (-1.0)
void prof_set_error(struct prof *p, const char *type, double error);
bool prof_error(const struct prof *p, size_t type, double *error);
/* Calls @change on the values of every sample; there are as many values as types. */
void prof_each_sample(struct prof *p, void (*change)(void *arg, int64_t *values), void *arg);
/*
 * Text that says more than tables can (each goroutine and its stack). --format text shows it in
 * place of tables, line by line. A line is stored once, without newline, and named by its id; it
 * may begin with tabs.
 */
int prof_text_line(struct prof *p, const char *line, uint32_t *id, struct err *e);
int prof_text_add(struct prof *p, uint32_t line_id, struct err *e);
struct loss *prof_loss(struct prof *p); /* for the collector to fill; borrowed */

/*
 * Returns the mapping's id, or a negative errno. Asking for the same mapping again gives the same
 * id.
 */
int prof_mapping(struct prof *p, const struct prof_mapping *m, struct err *e);

/*
 * A location: @n lines, innermost inlined call first. Same mapping, address and lines give
 * the same id. @mapping 0: none. Returns the id, or a negative errno.
 */
int prof_location(struct prof *p, int mapping, uint64_t address, const struct prof_line *lines,
		  size_t n, struct err *e);

/*
 * The same for one line whose names are ids that prof_name() gave, for callers that meet the same
 * names over and over. No mapping.
 */
int prof_name(struct prof *p, const char *at, size_t len, uint32_t *id, struct err *e);
int prof_location_named(struct prof *p, uint64_t address, uint32_t func, uint32_t file,
			int64_t line, struct err *e);

/*
 * Add @values (one per sample type, and one aside where there are such) to the sample with these locations (leaf first) and
 * labels (in any order). The number of samples and of locations is bounded only by memory.
 */
int prof_sample(struct prof *p, const uint32_t *locs, size_t nlocs, const int64_t *values,
		const struct prof_label *labels, size_t nlabels, struct err *e);

/*
 * Closed: prof_sample() takes only what adds to a sample that there is already, until it is open again. Of everything else it
 * returns -E2BIG, and the profile keeps nothing.
 */
void prof_close(struct prof *p, bool closed);

/* Index of the sample that prof_sample() added to last. */
size_t prof_last(const struct prof *p);

/* ---- reading, for output/ and tests: views, valid until the next prof_* call ---- */

struct prof_location_view {
	uint32_t mapping; /* id */
	uint64_t address;
	const uint32_t *func; /* function ids, per line */
	const int64_t *line;
	size_t nlines;
};
struct prof_function_view {
	uint32_t name, file; /* string ids */
	int64_t start_line;
};
struct prof_mapping_view {
	uint64_t start, limit, offset;
	uint32_t filename, build_id; /* string ids */
	bool has_functions;	     /* every location that uses it has lines */
};
struct prof_label_view {
	uint32_t key, str,
		num_unit; /* string ids; str is UINT32_MAX for a numeric label, num_unit 0 when none */
	int64_t num;
};
struct prof_sample_view {
	const uint32_t *locs;
	size_t nlocs;
	const int64_t *values;
	const int64_t *aside; /* NULL: there are none (prof_add_aside()) */
	const struct prof_label_view *labels;
	size_t nlabels;
};
struct prof_header_view {
	struct prof_type types[PROF_TYPES_MAX];
	size_t ntypes;
	struct prof_type period_type;
	int64_t period, time_ns, duration_ns;
	uint32_t default_type; /* string id, 0 none */
	const char *kind;      /* NULL: nobody set it */
	const uint32_t *comments;
	size_t ncomments;
};

struct prof_header_view prof_header(const struct prof *p);
const struct strtab *prof_strings(const struct prof *p);
size_t prof_nsamples(const struct prof *p);
size_t prof_ntext(const struct prof *p);
const char *prof_text_at(const struct prof *p, size_t i); /* 0-based */
size_t prof_nlocations(const struct prof *p);
size_t prof_nfunctions(const struct prof *p);
size_t prof_nmappings(const struct prof *p);
struct prof_sample_view prof_sample_at(const struct prof *p, size_t i);	    /* 0-based */
struct prof_location_view prof_location_at(const struct prof *p, size_t i); /* id is i + 1 */
struct prof_function_view prof_function_at(const struct prof *p, size_t i); /* id is i + 1 */
struct prof_mapping_view prof_mapping_at(const struct prof *p, size_t i);   /* id is i + 1 */

#endif
