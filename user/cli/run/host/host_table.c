/* user/cli/run/host/host_table.c - one line for each process: what it will have, or why not. */
#include "cli/run/host/host_table.h"

#include "base/map.h"
#include "base/sys/user_name.h"
#include "cli/run/host/host_meant.h"
#include "cli/tell.h"
#include "collect/heap/heap_many.h"
#include "collect/reading.h"
#include "collect/waits/contention/contention_many.h"
#include "collect/waits/wait/wait_many.h"

#define PROBED "(probe)"

/* Of what could not be looked at only the name and the user are known. */
static const char *module_of(const struct survey_build *b)
{
	return !b ? "?" : *b->module ? b->module : b->path;
}

/* The sources of a kind that is read or probed; NULL: it has no others. */
static const struct survey_sources *sources_of(const struct survey_proc *p,
					       const struct engine_kind *kind)
{
	return kind == &engine_heap  ? &p->sources[SURVEY_RATE_HEAP] :
	       kind == &engine_block ? &p->sources[SURVEY_RATE_BLOCK] :
	       kind == &engine_mutex ? &p->sources[SURVEY_RATE_MUTEX] :
				       NULL;
}

/* What is recorded is read, unless probes were asked for; the rest is probed. */
static bool is_probed(const struct host_opts *o, const struct survey_sources *s)
{
	return s && (o->collect.source == SOURCE_PROBE ||
		     (o->collect.source != SOURCE_READ && !s->read.yes));
}

/* Would this kind work, as far as a look from outside tells? */
static const struct survey_answer *answer_of(const struct host_opts *o, const struct survey_proc *p,
					     const struct engine_kind *kind)
{
	const struct survey_sources *s = sources_of(p, kind);

	return s			 ? is_probed(o, s) ? &s->probe : &s->read :
	       kind == &engine_wait	 ? &p->wait :
	       kind == &engine_goroutine ? &p->goroutine :
					   &p->cpu;
}

unsigned table_wants(const struct host_opts *o)
{
	unsigned wants = 0;

	for (size_t k = 0; k < o->nkinds; k++)
		wants |= o->kinds[k] == &engine_heap	  ? SURVEY_HEAP :
			 o->kinds[k] == &engine_block	  ? SURVEY_BLOCK :
			 o->kinds[k] == &engine_mutex	  ? SURVEY_MUTEX :
			 o->kinds[k] == &engine_wait	  ? SURVEY_WAIT :
			 o->kinds[k] == &engine_goroutine ? SURVEY_GOROUTINE :
							    0;
	return wants;
}

bool table_works(const struct host_opts *o, const struct survey_proc *p)
{
	for (size_t k = 0; k < o->nkinds; k++)
		if (answer_of(o, p, o->kinds[k])->yes)
			return true;
	return false;
}

const char *table_why(const struct host_opts *o, const struct survey_proc *p)
{
	return answer_of(o, p, o->kinds[0])->why;
}

static const char *how_text(const struct host_opts *o, const struct survey_proc *p,
			    const struct engine_kind *kind)
{
	return is_probed(o, sources_of(p, kind)) ? PROBED : "";
}

static bool would_probe(const struct host_opts *o, const struct survey_proc *p)
{
	for (size_t k = 0; k < o->nkinds; k++) {
		const struct engine_kind *kind = o->kinds[k];

		if (answer_of(o, p, kind)->yes &&
		    (kind == &engine_wait || is_probed(o, sources_of(p, kind))))
			return true;
	}
	return false;
}

size_t table_probed_files(const struct host_opts *o, const struct survey *s)
{
	CLEANUP(map_fini) struct map builds = { 0 };

	for (size_t i = 0; i < s->at.n; i++) {
		const struct survey_proc *p = &s->at.at[i];

		if (host_means(o, p) && would_probe(o, p))
			map_put(&builds, (uintptr_t)p->build, 1);
	}
	return builds.n;
}

/* "cpu,heap(probe)"; "no: " and why when there is none. */
static void what_text(const struct host_opts *o, const struct survey_proc *p, char *buf, size_t cap)
{
	size_t n = 0;

	buf[0] = 0;
	for (size_t k = 0; k < o->nkinds && n < cap; k++)
		if (answer_of(o, p, o->kinds[k])->yes)
			n += (size_t)snprintf(buf + n, cap - n, "%s%s%s", n ? "," : "",
					      o->kinds[k]->name, how_text(o, p, o->kinds[k]));
	if (!n)
		snprintf(buf, cap, "no: %.200s", table_why(o, p));
}

/* The longest that what_text() says, but for reasons. */
int table_width(const struct host_opts *o)
{
	const struct survey_proc any = { 0 };
	size_t n = 0;

	for (size_t k = 0; k < o->nkinds; k++)
		n += (n != 0) + strlen(o->kinds[k]->name) + strlen(how_text(o, &any, o->kinds[k]));
	return n < 4 ? 4 : (int)n;
}

void table_row(const struct host_opts *o, const struct survey_proc *p, FILE *f)
{
	char line[1024], user[64], what[256];
	const char *version = p->build ? p->build->version : "?";

	user_name(p->uid, user, sizeof(user));
	what_text(o, p, what, sizeof(what));
	snprintf(line, sizeof(line), "%8d  %-10.10s  %-8.12s  %-15.15s  %-*s  %.200s", p->pid, user,
		 strncmp(version, "go", 2) ? version : version + 2, p->comm, table_width(o), what,
		 module_of(p->build));
	tell_clean(line);
	fprintf(f, "%s\n", line);
}
