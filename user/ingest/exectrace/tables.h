/*
 * user/ingest/exectrace/tables.h - strings and stacks of one generation, by the ids that the trace
 * gives them.
 */
#ifndef INGEST_EXECTRACE_TABLES_H
#define INGEST_EXECTRACE_TABLES_H

#include "ingest/exectrace/exectrace.h"
#include "ingest/exectrace/ids.h"

struct pclntab12;

struct table_frame {
	uint64_t pc, func, file, line; /* func, file: ids of strings */
};

struct table_span {
	uint64_t id; /* by which the trace knows it */
	size_t at;   /* the first byte, or frame */
	uint32_t n;
};

struct trace_tables {
	VEC(char) bytes;
	VEC(struct table_span) strings;
	VEC(struct table_frame) frames;
	VEC(struct table_span) stacks;
	struct ids string_ids, stack_ids; /* id -> index */
	struct map addresses;		  /* of tables_address() -> index in stacks */
	struct pclntab12 *exe; /* has the names of addresses; borrowed; NULL: nothing has */
	struct map exe_names;  /* its strings, by where they are -> their ids here */
};

/* Forgets all; memory is kept. */
void tables_reset(struct trace_tables *t);
void tables_fini(struct trace_tables *t);

/* -EBADMSG: the id is 0, or known. */
int tables_add_string(struct trace_tables *t, uint64_t id, const void *at, size_t len,
		      struct err *e);
/* The stack that tables_add_frame() then adds to. */
int tables_add_stack(struct trace_tables *t, uint64_t id, struct err *e);
/* The stack of this address alone, as tables_stack() gives it. */
int tables_address(struct trace_tables *t, uint64_t pc, uint32_t *out, struct err *e);
int tables_add_frame(struct trace_tables *t, const struct table_frame *f, struct err *e);

/*
 * All frames so far that are addresses alone, and those that come, have the names that @exe has for them.
 * *named: how many of those so far have one.
 */
int tables_use_exe(struct trace_tables *t, struct pclntab12 *exe, size_t *named, struct err *e);

/* false: there is none with this id. Id 0 is "". */
static inline bool tables_string(const struct trace_tables *t, uint64_t id, struct trace_text *out)
{
	uint64_t i;

	*out = (struct trace_text){ "", 0 };
	if (!id)
		return true;
	if (!ids_get(&t->string_ids, id, &i))
		return false;
	*out = (struct trace_text){ t->bytes.at + t->strings.at[i].at, t->strings.at[i].n };
	return true;
}

/* A number from 1 on, as in struct trace_event; 0 for id 0. False: there is none with this id. */
static inline bool tables_stack(const struct trace_tables *t, uint64_t id, uint32_t *out)
{
	uint64_t i = 0;

	*out = 0;
	if (id && !ids_get(&t->stack_ids, id, &i))
		return false;
	*out = id ? (uint32_t)i + 1 : 0;
	return true;
}

#endif
