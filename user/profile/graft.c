/* user/profile/graft.c - copies locations once, then samples by the ids of the copies. */
#include "profile/graft.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"

struct graft {
	struct prof *to;
	const struct prof *from;
	int *mappings;	/* ids in to, by id in from; 0: not copied yet */
	uint32_t *locs; /* likewise */
	uint32_t root;
	size_t column[PROF_TYPES_MAX]; /* by type of to: that of from, or NONE */
};

#define NONE SIZE_MAX

static void graft_fini(struct graft *g)
{
	free(g->mappings);
	free(g->locs);
}

static const char *text(const struct graft *g, uint32_t id)
{
	return strtab_get(prof_strings(g->from), id);
}

static int mapping_of(struct graft *g, uint32_t id, struct err *e)
{
	struct prof_mapping_view v;
	struct prof_mapping m;

	if (!id || g->mappings[id])
		return id ? g->mappings[id] : 0;
	v = prof_mapping_at(g->from, id - 1);
	m = (struct prof_mapping){ .start = v.start,
				   .limit = v.limit,
				   .offset = v.offset,
				   .filename = text(g, v.filename),
				   .build_id = text(g, v.build_id) };
	g->mappings[id] = prof_mapping(g->to, &m, e);
	return g->mappings[id];
}

static int make_location(struct graft *g, uint32_t id, struct err *e)
{
	struct prof_location_view v = prof_location_at(g->from, id - 1);
	struct prof_line lines[LIMIT_INLINE_DEPTH];
	int mapping = mapping_of(g, v.mapping, e);
	size_t n = v.nlines < LIMIT_INLINE_DEPTH ? v.nlines : LIMIT_INLINE_DEPTH;

	if (mapping < 0)
		return mapping;
	for (size_t i = 0; i < n; i++) {
		struct prof_function_view f = prof_function_at(g->from, v.func[i] - 1);

		lines[i] = (struct prof_line){ .func = text(g, f.name),
					       .file = text(g, f.file),
					       .line = v.line[i],
					       .start_line = f.start_line };
	}
	return prof_location(g->to, mapping, v.address, lines, n, e);
}

static size_t column_of(const struct graft *g, const struct prof_header_view *from,
			const char *type)
{
	for (size_t i = 0; i < from->ntypes; i++)
		if (!strcmp(text(g, from->types[i].type), type))
			return i;
	return NONE;
}

static int find_columns(struct graft *g, const char *root, struct err *e)
{
	const struct prof_header_view to = prof_header(g->to), from = prof_header(g->from);
	int ret = 0;

	for (size_t i = 0; i < PROF_TYPES_MAX; i++)
		g->column[i] = NONE;
	for (size_t i = 0; !ret && i < to.ntypes; i++) {
		const char *type = strtab_get(prof_strings(g->to), to.types[i].type);

		g->column[i] = column_of(g, &from, type);
		if (g->column[i] == NONE)
			ret = prof_comment(g->to, e, "%s: %s is not told", root, type);
	}
	return ret;
}

static int graft_sample(struct graft *g, const struct prof_sample_view *s, uint32_t *locs,
			struct err *e)
{
	int64_t values[PROF_TYPES_MAX];

	for (size_t i = 0; i < s->nlocs; i++) {
		uint32_t *at = &g->locs[s->locs[i]];
		int id = *at ? (int)*at : make_location(g, s->locs[i], e);

		if (id < 0)
			return id;
		locs[i] = *at = (uint32_t)id;
	}
	locs[s->nlocs] = g->root;
	for (size_t i = 0; i < PROF_TYPES_MAX; i++)
		values[i] = g->column[i] == NONE ? 0 : s->values[g->column[i]];
	return prof_sample(g->to, locs, s->nlocs + 1, values, NULL, 0, e);
}

static size_t deepest(const struct prof *p)
{
	size_t max = 0;

	for (size_t i = 0; i < prof_nsamples(p); i++) {
		size_t n = prof_sample_at(p, i).nlocs;

		max = n > max ? n : max;
	}
	return max;
}

int prof_graft(struct prof *to, const struct prof *from, const struct loss *lost, const char *root,
	       struct err *e)
{
	CLEANUP(graft_fini)
	struct graft g = { .to = to,
			   .from = from,
			   .mappings = calloc(prof_nmappings(from) + 1, sizeof(*g.mappings)),
			   .locs = calloc(prof_nlocations(from) + 1, sizeof(*g.locs)) };
	CLEANUP(freep) uint32_t *locs = calloc(deepest(from) + 1, sizeof(*locs));
	struct prof_line line = { .func = root, .file = "" };
	int ret = g.mappings && g.locs && locs ?
			  prof_location(to, 0, 0, &line, 1, e) :
			  err_set(e, -ENOMEM, "no memory for a profile of all processes");

	if (ret < 0)
		return ret;
	g.root = (uint32_t)ret;
	ret = find_columns(&g, root, e);
	for (size_t i = 0; i < prof_nsamples(from) && !ret; i++) {
		struct prof_sample_view s = prof_sample_at(from, i);

		ret = graft_sample(&g, &s, locs, e);
	}
	loss_merge(prof_loss(to), lost);
	return ret;
}
