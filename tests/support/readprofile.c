/* tests/support/readprofile.c - inflate, decode, and fill a struct prof. */
#include "readprofile.h"

#include <zlib.h>

#include "base/vec.h"

typedef Goprof__Pprof__Profile pb_profile;

enum { FILE_MAX = 64 << 20, STACK_MAX = 4096, LINES_MAX = 256 };

static void gzclosep(gzFile *g)
{
	if (*g)
		gzclose(*g);
}

pb_profile *readprofile_unpack(const char *path)
{
	CLEANUP(gzclosep) gzFile g = gzopen(path, "rb");
	CLEANUP(freep) uint8_t *buf = malloc(FILE_MAX);
	int n = g && buf ? gzread(g, buf, FILE_MAX) : -1;

	return n < 0 ? NULL : goprof__pprof__profile__unpack(NULL, (size_t)n, buf);
}

static const char *str(const pb_profile *pb, int64_t id)
{
	BUG_ON(id < 0 || (size_t)id >= pb->n_string_table);
	return pb->string_table[id];
}

static int header(const pb_profile *pb, struct prof *p, struct err *e)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < pb->n_sample_type; i++)
		r = prof_add_type(p, str(pb, pb->sample_type[i]->type),
				  str(pb, pb->sample_type[i]->unit), e);
	if (r >= 0 && pb->period_type)
		r = prof_set_period(p, str(pb, pb->period_type->type),
				    str(pb, pb->period_type->unit), pb->period, e);
	if (r >= 0 && pb->default_sample_type)
		r = prof_set_default_type(p, str(pb, pb->default_sample_type), e);
	for (size_t i = 0; r >= 0 && i < pb->n_comment; i++)
		r = prof_comment(p, e, "%s", str(pb, pb->comment[i]));
	prof_set_time(p, pb->time_nanos, pb->duration_nanos);
	for (size_t i = 0; r >= 0 && i < pb->n_mapping; i++) {
		const Goprof__Pprof__Mapping *m = pb->mapping[i];

		r = prof_mapping(p,
				 &(struct prof_mapping){ m->memory_start, m->memory_limit,
							 m->file_offset, str(pb, m->filename),
							 str(pb, m->build_id) },
				 e);
	}
	return r;
}

static int location(const pb_profile *pb, struct prof *p, uint64_t id, struct err *e)
{
	struct prof_line lines[LINES_MAX];
	const Goprof__Pprof__Location *l;

	BUG_ON(!id || id > pb->n_location);
	l = pb->location[id - 1];
	BUG_ON(l->id != id || l->n_line > LINES_MAX);
	for (size_t i = 0; i < l->n_line; i++) {
		uint64_t fid = l->line[i]->function_id;
		const Goprof__Pprof__Function *f;

		BUG_ON(!fid || fid > pb->n_function);
		f = pb->function[fid - 1];
		BUG_ON(f->id != fid);
		lines[i] = (struct prof_line){ str(pb, f->name), str(pb, f->filename),
					       l->line[i]->line, f->start_line };
	}
	return prof_location(p, (int)l->mapping_id, l->address, lines, l->n_line, e);
}

static int sample(const pb_profile *pb, struct prof *p, const Goprof__Pprof__Sample *s,
		  struct err *e)
{
	struct prof_label labels[LINES_MAX];
	uint32_t locs[STACK_MAX];

	BUG_ON(s->n_location_id > STACK_MAX || s->n_label > LINES_MAX ||
	       s->n_value != pb->n_sample_type);
	for (size_t i = 0; i < s->n_location_id; i++) {
		int r = location(pb, p, s->location_id[i], e);

		if (r < 0)
			return r;
		locs[i] = (uint32_t)r;
	}
	for (size_t i = 0; i < s->n_label; i++)
		labels[i] = (struct prof_label){
			.key = str(pb, s->label[i]->key),
			.str = s->label[i]->str ? str(pb, s->label[i]->str) : NULL,
			.num = s->label[i]->num,
			.num_unit = str(pb, s->label[i]->num_unit),
		};
	return prof_sample(p, locs, s->n_location_id, s->value, labels, s->n_label, e);
}

static void unpackedp(pb_profile **pb)
{
	if (*pb)
		goprof__pprof__profile__free_unpacked(*pb, NULL);
}

int readprofile(const char *path, struct prof **out, struct err *e)
{
	CLEANUP(prof_freep) struct prof *p = NULL;
	CLEANUP(unpackedp) pb_profile *pb = readprofile_unpack(path);
	int r;

	if (!pb)
		return err_set(e, -EBADMSG, "%s: no gzipped profile", path);
	r = prof_new(&p, e);
	if (r >= 0)
		r = header(pb, p, e);
	for (size_t i = 0; r >= 0 && i < pb->n_sample; i++)
		r = sample(pb, p, pb->sample[i], e);
	if (r < 0)
		return r;
	*out = TAKE(p);
	return 0;
}
