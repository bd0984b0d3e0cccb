/* user/ingest/exectrace/tables.c - two arenas, and an index of each. */
#include "ingest/exectrace/tables.h"

#include "base/limits.h"
#include "go/image/tables/pclntab12.h"

static int no_memory(struct err *e)
{
	return err_set(e, -ENOMEM, "no memory for the trace's strings and stacks");
}

/* Each id by itself: there may be many generations, and one large id. */
void tables_reset(struct trace_tables *t)
{
	for (size_t i = 0; i < t->strings.n; i++)
		ids_del(&t->string_ids, t->strings.at[i].id);
	for (size_t i = 0; i < t->stacks.n; i++)
		ids_del(&t->stack_ids, t->stacks.at[i].id);
	t->bytes.n = t->strings.n = t->frames.n = t->stacks.n = 0;
	map_fini(&t->addresses);
	map_fini(&t->exe_names);
}

void tables_fini(struct trace_tables *t)
{
	ids_fini(&t->string_ids);
	ids_fini(&t->stack_ids);
	map_fini(&t->addresses);
	map_fini(&t->exe_names);
	vec_fini(&t->bytes);
	vec_fini(&t->strings);
	vec_fini(&t->frames);
	vec_fini(&t->stacks);
}

/* Room for @n bytes; NULL: none. */
static char *room(struct trace_tables *t, size_t n)
{
	size_t cap = t->bytes.cap ? t->bytes.cap : 4096;
	char *at;

	if (n > LIMIT_TRACE_TEXT - t->bytes.n)
		return NULL;
	while (cap - t->bytes.n < n)
		cap *= 2;
	if (cap != t->bytes.cap) {
		at = realloc(t->bytes.at, cap);
		if (!at)
			return NULL;
		t->bytes.at = at;
		t->bytes.cap = cap;
	}
	at = t->bytes.at + t->bytes.n;
	t->bytes.n += n;
	return at;
}

static int new_id(struct ids *ids, uint64_t id, size_t index, const char *what, struct err *e)
{
	uint64_t before;

	if (!id || ids_get(ids, id, &before))
		return err_set(e, -EBADMSG, "%s %llu %s", what, (unsigned long long)id,
			       id ? "for a second time" : "is no id");
	return ids_put(ids, id, index) ? 0 : no_memory(e);
}

int tables_add_string(struct trace_tables *t, uint64_t id, const void *at, size_t len,
		      struct err *e)
{
	int ret = new_id(&t->string_ids, id, t->strings.n, "string", e);
	struct table_span *s;
	char *to;

	if (ret)
		return ret;
	s = vec_add(&t->strings, LIMIT_TRACE_IDS);
	to = s ? room(t, len) : NULL;
	if (!to)
		return no_memory(e);
	memcpy(to, at, len);
	*s = (struct table_span){ id, t->bytes.n - len, (uint32_t)len };
	return 0;
}

int tables_add_stack(struct trace_tables *t, uint64_t id, struct err *e)
{
	int ret = new_id(&t->stack_ids, id, t->stacks.n, "stack", e);
	struct table_span *s;

	if (ret)
		return ret;
	s = vec_add(&t->stacks, LIMIT_TRACE_IDS);
	if (!s)
		return no_memory(e);
	s->id = id;
	s->at = t->frames.n;
	return 0;
}

/* ---- names of addresses ---- */

/* The id of a string of the executable, which gives the same string from the same place. */
static int exe_string(struct trace_tables *t, const char *s, uint64_t *id, struct err *e)
{
	int ret;

	*id = 0;
	if (!s || !*s || map_get(&t->exe_names, (uint64_t)(uintptr_t)s, id))
		return 0;
	*id = t->strings.n + 1;
	ret = tables_add_string(t, *id, s, strnlen(s, LIMIT_NAME), e);
	return ret || map_put(&t->exe_names, (uint64_t)(uintptr_t)s, *id) ? ret : no_memory(e);
}

/* Source: symbolize() in internal/trace/parser.go, Go 1.8: addresses are those that calls return to. */
static int name_frame(struct trace_tables *t, size_t i, struct err *e)
{
	struct table_frame *f = &t->frames.at[i];
	struct pcline at;
	int ret;

	if (f->func || !f->pc || !pclntab12_find(t->exe, f->pc - 1, &at))
		return 0;
	f->line = at.line;
	ret = exe_string(t, at.file, &f->file, e);
	return ret ? ret : exe_string(t, at.func, &f->func, e);
}

int tables_use_exe(struct trace_tables *t, struct pclntab12 *exe, size_t *named, struct err *e)
{
	int ret = 0;

	*named = 0;
	t->exe = exe;
	for (size_t i = 0; !ret && i < t->frames.n; i++) {
		ret = name_frame(t, i, e);
		*named += t->frames.at[i].func != 0;
	}
	return ret;
}

int tables_add_frame(struct trace_tables *t, const struct table_frame *f, struct err *e)
{
	struct table_frame *to = vec_add(&t->frames, LIMIT_TRACE_IDS);

	if (!to)
		return no_memory(e);
	*to = *f;
	t->stacks.at[t->stacks.n - 1].n++;
	return t->exe ? name_frame(t, t->frames.n - 1, e) : 0;
}

int tables_address(struct trace_tables *t, uint64_t pc, uint32_t *out, struct err *e)
{
	struct table_span *s;
	uint64_t at;

	if (!map_get(&t->addresses, pc, &at)) {
		at = t->stacks.n;
		s = vec_add(&t->stacks, LIMIT_TRACE_IDS);
		if (!s || !map_put(&t->addresses, pc, at))
			return no_memory(e);
		s->at = t->frames.n;
		if (tables_add_frame(t, &(struct table_frame){ .pc = pc }, e))
			return -ENOMEM;
	}
	*out = (uint32_t)at + 1;
	return 0;
}
