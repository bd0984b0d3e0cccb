/* user/collect/site_errors.c - variances summed by site, and written as comments. */
#include "collect/site_errors.h"

#include <math.h>

#include "base/cleanup.h"

enum { SITES_MAX = 1 << 20, SITES_SAID = 16 };

bool site_is_machinery(const char *func)
{
	static const char *const begins[] = { "runtime.", "sync.", "internal/", "sync/" };

	for (size_t i = 0; i < ARRAY_LEN(begins); i++)
		if (!strncmp(func, begins[i], strlen(begins[i])))
			return true;
	return false;
}

static void find_site(const struct prof *p, const struct prof_sample_view *v, uint32_t *loc,
		      uint32_t *line)
{
	const struct strtab *t = prof_strings(p);

	for (size_t i = 0; i < v->nlocs; i++) {
		struct prof_location_view l = prof_location_at(p, v->locs[i] - 1);

		for (size_t k = 0; k < l.nlines; k++) {
			struct prof_function_view f = prof_function_at(p, l.func[k] - 1);

			if (site_is_machinery(strtab_get(t, f.name)))
				continue;
			*loc = v->locs[i];
			*line = (uint32_t)k;
			return;
		}
	}
	*loc = v->nlocs ? v->locs[0] : 0;
	*line = 0;
}

/* Fills in the place, as far as it is known. */
static void find_place(const struct prof *p, struct site_error *s)
{
	struct prof_location_view l;
	struct prof_function_view f;

	if (!s->loc)
		return;
	l = prof_location_at(p, s->loc - 1);
	if (s->line >= l.nlines)
		return;
	f = prof_function_at(p, l.func[s->line] - 1);
	s->name = f.name;
	s->file = f.file;
	s->number = l.line[s->line];
}

static int site_of(struct site_errors *s, const struct prof *p, uint32_t loc, uint32_t line,
		   struct site_error **out, struct err *e)
{
	uint64_t at, key = (uint64_t)line << 32 | loc;

	if (map_get(&s->by_loc, key, &at)) {
		*out = &s->sites.at[at];
		return 0;
	}
	*out = vec_add(&s->sites, SITES_MAX);
	if (!*out || !map_put(&s->by_loc, key, s->sites.n - 1))
		return err_set(e, -ENOMEM, "no memory for standard errors");
	**out = (struct site_error){ .loc = loc, .line = line };
	find_place(p, *out);
	return 0;
}

/* What has too few units to tell has no bound. */
static bool is_known(double variance)
{
	return variance >= 0 && isfinite(variance);
}

int site_errors_add(struct site_errors *s, const struct prof *p, double value, double variance,
		    struct err *e)
{
	struct prof_sample_view v = prof_sample_at(p, prof_last(p));
	struct site_error *site;
	uint32_t loc, line;
	int ret;

	find_site(p, &v, &loc, &line);
	ret = site_of(s, p, loc, line, &site, e);
	if (ret)
		return ret;
	site->value += value;
	s->value += value;
	if (!is_known(variance)) {
		site->unknown = s->unknown = true;
		return 0;
	}
	site->variance += variance;
	s->variance += variance;
	return 0;
}

void site_errors_all(struct site_errors *s, double variance)
{
	s->told = true;
	if (!is_known(variance) || s->all_variance < 0)
		s->all_variance = -1;
	else
		s->all_variance += variance;
}

static int by_value(const void *a, const void *b)
{
	const struct site_error *x = a, *y = b;

	return (x->value < y->value) - (x->value > y->value);
}

/* "name file:line", as far as these are known. */
static void site_name(const struct prof *p, const struct site_error *s, char *buf, size_t cap)
{
	const struct strtab *t = prof_strings(p);

	if (s->name)
		snprintf(buf, cap, "%s %s:%lld", strtab_get(t, s->name), strtab_get(t, s->file),
			 (long long)s->number);
	else
		snprintf(buf, cap, "?");
}

static int place_order(const struct site_error *x, const struct site_error *y)
{
	if (x->name != y->name)
		return x->name < y->name ? -1 : 1;
	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

static int by_place(const void *a, const void *b)
{
	return place_order(a, b);
}

static void merge(struct site_error *into, const struct site_error *s)
{
	double se = sqrt(into->variance) + sqrt(s->variance);

	into->value += s->value;
	into->variance = se * se;
	into->unknown |= s->unknown;
}

/* One element for each place. After this nothing can be added. */
static void merge_places(struct site_errors *s)
{
	size_t n = 0;

	qsort(s->sites.at, s->sites.n, sizeof(*s->sites.at), by_place);
	for (size_t i = 1; i < s->sites.n; i++)
		if (place_order(&s->sites.at[n], &s->sites.at[i]))
			s->sites.at[++n] = s->sites.at[i];
		else
			merge(&s->sites.at[n], &s->sites.at[i]);
	s->sites.n = n + 1;
}

/*
 * Writes "error: FUNCTION FILE:LINE TYPE VALUE +- ERROR (SHARE%)", which machines read as well; a
 * value of 0 has no share.
 */
static int say_one(struct prof *p, const char *name, const char *type, const struct site_error *s,
		   struct err *e)
{
	double se = sqrt(s->variance);

	/* The site was seen, so there was something: an error of 0 would be wrong. */
	if (s->unknown || (s->value <= 0 && se <= 0))
		return prof_comment(p, e, "error: %s %s %.0f +- unknown", name, type, s->value);
	if (s->value < 0.5) /* shown as 0, whose error is no share of it */
		return prof_comment(p, e, "error: %s %s 0 +- %.0f", name, type, ceil(se));
	return prof_comment(p, e, "error: %s %s %.0f +- %.0f (%.1f%%)", name, type, s->value, se,
			    100 * se / s->value);
}

/*
 * Writes one line for those that have no line of their own. How their errors depend on each other
 * is not kept: standard errors are added up, which is too much, and never too little.
 */
static int say_rest(const struct site_errors *s, struct prof *p, const char *type, struct err *e)
{
	struct site_error rest = {};
	double se = 0;
	char name[64];

	if (s->sites.n <= SITES_SAID)
		return 0;
	for (size_t i = SITES_SAID; i < s->sites.n; i++) {
		rest.value += s->sites.at[i].value;
		se += sqrt(s->sites.at[i].variance);
		rest.unknown |= s->sites.at[i].unknown;
	}
	rest.variance = se * se;
	snprintf(name, sizeof(name), "%zu other sites", s->sites.n - SITES_SAID);
	return say_one(p, name, type, &rest, e);
}

int site_errors_comment(struct site_errors *s, struct prof *p, const char *type, struct err *e)
{
	const struct site_error all = { .value = s->value,
					.variance = s->told ? s->all_variance : s->variance,
					.unknown = s->told ? s->all_variance < 0 : s->unknown };
	char name[1024];
	int ret;

	if (!s->sites.n)
		return 0;
	prof_set_error(p, type, all.unknown ? PROF_NOT_KNOWN : sqrt(all.variance));
	merge_places(s);
	ret = say_one(p, "all sites", type, &all, e);
	qsort(s->sites.at, s->sites.n, sizeof(*s->sites.at), by_value);
	for (size_t i = 0; !ret && i < s->sites.n && i < SITES_SAID; i++) {
		site_name(p, &s->sites.at[i], name, sizeof(name));
		ret = say_one(p, name, type, &s->sites.at[i], e);
	}
	return ret ? ret : say_rest(s, p, type, e);
}

void site_errors_fini(struct site_errors *s)
{
	vec_fini(&s->sites);
	map_fini(&s->by_loc);
}
