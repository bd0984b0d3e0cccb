/*
 * user/output/folded.c - one line per sample, as flame graph tools read it:
 *
 * 	root;caller;leaf value
 *
 * The value is that of the profile's default sample type, else of the last type; samples where it
 * is 0 are left out. Inlined calls are frames like others. The reason of a wait is one more frame
 * at the leaf, "[IO wait]", and so is the type that was allocated, "[main.node]". Other labels
 * are not shown: a stack with several label sets gives several lines, which the readers add up. A
 * pc without a function is shown as its mapping's file name and the address.
 */
#include <inttypes.h>

#include "output/format.h"

static void put_unknown(const struct prof *p, const struct prof_location_view *l, FILE *f)
{
	const char *path = "", *slash;

	if (l->mapping)
		path = strtab_get(prof_strings(p), prof_mapping_at(p, l->mapping - 1).filename);
	slash = strrchr(path, '/');
	if (*path == '[') { /* [vdso] */
		output_clean(path, ';', f);
	} else if (*path) {
		putc('[', f);
		output_clean(slash ? slash + 1 : path, ';', f);
		putc(']', f);
	}
	fprintf(f, "%s0x%" PRIx64, *path ? "+" : "", l->address);
}

static void put_location(const struct prof *p, uint32_t id, FILE *f)
{
	struct prof_location_view l = prof_location_at(p, id - 1);

	if (!l.nlines)
		put_unknown(p, &l, f);
	for (size_t i = l.nlines; i-- > 0;) {
		const char *name = strtab_get(prof_strings(p),
					      prof_function_at(p, l.func[i] - 1).name);

		if (*name)
			output_clean(name, ';', f);
		else
			put_unknown(p, &l, f);
		if (i)
			putc(';', f);
	}
}

static void put_stack(const struct prof *p, const struct prof_sample_view *s, FILE *f)
{
	uint32_t reason = output_reason(p, s);

	if (!reason)
		reason = output_type(p, s);
	for (size_t k = s->nlocs; k-- > 0;) {
		put_location(p, s->locs[k], f);
		if (k)
			putc(';', f);
	}
	if (!s->nlocs)
		fputs("[no stack]", f);
	if (reason) {
		fputs(";[", f);
		output_clean(strtab_get(prof_strings(p), reason), ';', f);
		putc(']', f);
	}
}

int folded_write(struct prof *p, FILE *f, struct err *e)
{
	size_t type = output_main_type(p);

	for (size_t i = 0; prof_header(p).ntypes && i < prof_nsamples(p); i++) {
		struct prof_sample_view s = prof_sample_at(p, i);

		if (!s.values[type])
			continue;
		put_stack(p, &s, f);
		fprintf(f, " %" PRId64 "\n", s.values[type]);
		if (ferror(f))
			break;
	}
	return output_check(f, e);
}
