/* user/output/hprof/heap_hprof_stacks.c - strings, and functions that are frames of stacks. */
#include "base/cleanup.h"
#include "base/hash.h"
#include "output/hprof/heap_hprof_priv.h"
#include "profile/utf8.h"

/* ---- strings ---- */

/* Fit for readers, in x->text. */
static size_t clean(struct heap_hprof *x, const char *text, size_t n)
{
	size_t room = 3 * n + 1, len;
	char *to = room > x->room ? realloc(x->text, room) : x->text;

	if (!to) {
		x->no_memory = true;
		return 0;
	}
	x->room = room > x->room ? room : x->room;
	x->text = to;
	len = utf8_fix(text, n, to);
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)to[i] < ' ' || to[i] == 0x7f)
			to[i] = '_';
	return len;
}

void heap_hprof_name(struct heap_hprof *x, uint64_t id, const char *text)
{
	size_t len = clean(x, text, strlen(text));

	hprof_string(x->w, id, x->text, len);
}

uint64_t heap_hprof_string(struct heap_hprof *x, const char *text, size_t n)
{
	size_t before = strtab_count(x->strings), len;
	uint32_t number = strtab_put(x->strings, text, n);
	uint64_t id = hprof_id(x, ID_STRING, number);

	if (number == UINT32_MAX) {
		x->no_memory = true;
		return 0;
	}
	if (strtab_count(x->strings) == before)
		return id;
	BUG_ON(x->heap);
	len = clean(x, text, n);
	hprof_string(x->w, id, x->text, len);
	return id;
}

/* ---- frames ---- */

/*
 * Where the package's path ends in the name of a function: "net/http.(*conn).serve" has it at the
 * dot after "http". Type arguments have paths of their own. 0: there is none.
 */
static size_t package_end(const char *name, size_t n)
{
	size_t end = 0, i;

	for (i = 0; i < n && name[i] != '[' && name[i] != '('; i++)
		if (name[i] == '/')
			end = i + 1;
	for (i = end; i < n; i++)
		if (name[i] == '.')
			return i;
	return 0;
}

static uint32_t package_class(struct heap_hprof *x, const char *name, size_t n)
{
	uint64_t id, number;
	char text[512];

	if (!n) {
		name = "(no package)";
		n = strlen(name);
	}
	id = heap_hprof_string(x, name, n);
	if (map_get(&x->packages, id, &number))
		return (uint32_t)number;
	number = ++x->nclasses;
	snprintf(text, sizeof(text), "%.*s", n < sizeof(text) ? (int)n : (int)sizeof(text), name);
	heap_hprof_load_class(x, (uint32_t)number, text);
	if (!map_put(&x->packages, id, number))
		x->no_memory = true;
	return (uint32_t)number;
}

static uint64_t frame_id(struct heap_hprof *x, const struct heap_hprof_line *l)
{
	size_t dot = package_end(l->func, l->nfunc), from = dot ? dot + 1 : 0;
	struct hprof_frame f = {
		.method = heap_hprof_string(x, l->func + from, l->nfunc - from),
		.signature = heap_hprof_string(x, "", 0),
		.file = heap_hprof_string(x, l->file, l->nfile),
		.class_serial = package_class(x, l->func, dot),
		.line = l->line < INT32_MAX ? (int32_t)l->line : 0,
	};
	uint64_t key = hash_pair(hash_pair(f.method, f.file), hash_pair(f.class_serial, l->line)),
		 number;

	if (map_get(&x->frames, key, &number))
		return hprof_id(x, ID_FRAME, number);
	number = ++x->nframes;
	if (!map_put(&x->frames, key, number))
		x->no_memory = true;
	f.id = hprof_id(x, ID_FRAME, number);
	hprof_frame(x->w, &f);
	return f.id;
}

static void push(struct heap_hprof *x, uint64_t frame)
{
	uint64_t *to = x->stack.n < STACK_FRAMES_MAX ? vec_add(&x->stack, STACK_FRAMES_MAX) : NULL;

	if (to)
		*to = frame;
	else if (x->stack.n < STACK_FRAMES_MAX)
		x->no_memory = true;
	else
		x->losses.frames++;
}

static int no_memory(const struct heap_hprof *x, struct err *e)
{
	return x->no_memory ? err_set(e, -ENOMEM, "no memory for names") : hprof_check(x->w, e);
}

int heap_hprof_site(struct heap_hprof *x, uint64_t key, const struct heap_hprof_line *lines,
		    size_t n, struct err *e)
{
	uint32_t serial = x->nthreads + ++x->nsites;

	x->stack.n = 0;
	for (size_t i = 0; i < n; i++)
		push(x, frame_id(x, &lines[i]));
	hprof_trace(x->w, serial, 0, x->stack.at, (uint32_t)x->stack.n);
	if (!map_put(&x->sites, key, serial))
		x->no_memory = true;
	return no_memory(x, e);
}

/* The frames of a goroutine come right before it. The dump does not tell their lines. */
int heap_hprof_load_threads(struct heap_hprof *x, struct err *e)
{
	const struct heapgraph *h = x->h;
	uint32_t thread = 0, up = GRAPH_NONE;

	for (uint32_t i = 0; i < h->holders.n; i++) {
		const struct holder *r = &h->holders.at[i];

		if (r->kind == HOLDER_FRAME) {
			struct heap_hprof_line l = { .func = strtab_get(h->names, r->name),
						     .nfunc = strtab_len(h->names, r->name),
						     .file = "" };

			if (r->up != up)
				x->stack.n = 0;
			up = r->up;
			push(x, frame_id(x, &l));
		} else if (r->kind == HOLDER_GOROUTINE) {
			thread++;
			hprof_trace(x->w, thread, thread, x->stack.at,
				    up == i ? (uint32_t)x->stack.n : 0);
		}
	}
	return no_memory(x, e);
}
