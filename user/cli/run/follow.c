/* user/cli/run/follow.c - see cli/run/follow.h. */
#include "cli/run/follow.h"

#include "base/loop/cancel.h"
#include "base/sys/priority.h"
#include "host/news.h"
#include "cli/run/host/host_run.h"
#include "cli/run/host/host_table.h"
#include "cli/run/losses.h"
#include "cli/stop.h"
#include "cli/tell.h"
#include "collect/cpu/host.h"

enum { EXPECTED = 64, WHOSE_TEXT = 96 };

struct follow {
	struct follow_opts o;
	struct host_opts as; /* kinds and options, as a run of many has them */
	struct engine *engine;
	struct host_news news;
	struct follow_sum sum;
	size_t too_short; /* programs that ended before all kinds could begin */
	size_t refused;	  /* there was no slot for them */
	bool begun, broken;
};

void follow_free(struct follow *f)
{
	if (!f)
		return;
	host_news_fini(&f->news);
	if (f->engine)
		loop_unwatch(f->o.loop, engine_fd(f->engine));
	engine_free(f->engine);
	free(f);
}

struct follow_sum follow_sum(const struct follow *f)
{
	return f->sum;
}

int follow_comment(struct prof *p, uint64_t exec_ns, uint64_t since_ns, const char *end,
		   struct err *e)
{
	return prof_comment(p, e,
			    "followed: from %.1f ms after its exec, %s; what it did before "
			    "is not in here",
			    since_ns > exec_ns ? (double)(since_ns - exec_ns) / 1e6 : 0, end);
}

/* ---- programs that start ---- */

static bool is_wanted(void *arg, const struct survey_proc *p)
{
	return table_works(arg, p);
}

static bool wants(void *arg, const struct exec_seen *x)
{
	struct follow *f = arg;

	return f->o.wants(f->o.arg, x);
}

static void unseen(struct follow *f, const struct survey_proc *p, const char *why)
{
	tell("pid %d (%s): it is not profiled: %s", p->pid, p->comm, why);
	f->sum.failed = true;
}

/* One that is wanted and is not held has ended meanwhile. */
static void looked(void *arg, struct survey *s)
{
	struct follow *f = arg;

	for (size_t i = 0; i < s->closed.n; i++)
		unseen(f, &s->closed.at[i], s->closed.at[i].cpu.why);
	for (size_t i = 0; i < s->at.n; i++) {
		const struct survey_proc *p = &s->at.at[i];

		if (!p->target && !is_wanted(&f->as, p))
			unseen(f, p, p->cpu.yes ? "none of these kinds works on it" : p->cpu.why);
		else
			f->too_short += !p->target;
	}
	if (s->left_out)
		tell("%zu programs of children were not looked at: too many", s->left_out);
	f->sum.failed |= s->left_out != 0;
	s->left_out = 0;
}

static void added(void *arg, int ret, const struct err *e, pid_t pid, const char *comm, bool became)
{
	struct follow *f = arg;

	(void)pid;
	(void)comm;
	if (became || ret == -EEXIST || ret == -ENOENT) {
		;
	} else if (!ret) {
		f->sum.n++;
	} else if (ret == -ESRCH) {
		f->too_short++;
	} else if (ret == -E2BIG && engine_is_full(f->engine)) {
		if (!f->refused++)
			tell("more than %d programs at once: later ones are not profiled",
			     GPB_CPU_TARGETS);
	} else {
		if (ret != -ECANCELED)
			tell("%s", e->msg);
		f->sum.failed = true;
	}
}

/* ---- programs that end ---- */

static const char *end_text(const struct engine_target *t)
{
	return t->state == ENGINE_BECAME ? "until it became another program (exec)" :
	       t->state == ENGINE_ENDED	 ? "until it ended" :
					   "it ran on";
}

/* An end is none of its losses: that is what programs do. */
static int tell_origin(const struct follow *f, const struct engine_target *t, struct prof *p,
		       struct err *e)
{
	uint64_t late_ns = 0;

	(void)host_news_begun(&f->news, t, &late_ns);
	prof_loss(p)->n[LOSS_TARGET_GONE] |= t->state == ENGINE_BECAME;
	return follow_comment(p, t->since_ns - late_ns, t->since_ns, end_text(t), e);
}

static void write_one(struct follow *f, const struct engine_target *t, uint64_t life,
		      const struct engine_kind *kind, struct prof *p)
{
	struct err e = { "" };
	char whose[WHOSE_TEXT];

	snprintf(whose, sizeof(whose), "pid %d (%s): %s", t->id.pid, t->id.comm, kind->name);
	if (tell_origin(f, t, p, &e))
		tell("%s: %s", whose, e.msg);
	run_files_write(f->o.files, &t->id, life, kind->name, p);
	if (!prof_nsamples(p))
		tell("%s: no samples: none was met; its comments say what was looked at", whose);
	f->sum.lossy |= losses_tell(prof_loss(p), whose);
}

/* A kind that has nothing, and no reason for that, came too late. */
static void tell_missing(struct follow *f, const struct engine_target *t,
			 const struct engine_result *results)
{
	size_t n = f->as.nkinds, late = 0;

	for (size_t k = 0; k < n; k++) {
		late += results[k].refused && !results[k].failed;
		if (!results[k].failed)
			continue;
		tell("pid %d (%s): %s: %s", t->id.pid, t->id.comm, f->as.kinds[k]->name,
		     results[k].failed->msg);
		f->sum.failed = true;
	}
	if (late)
		tell("pid %d (%s): it ended before more than %zu of %zu kinds could begin",
		     t->id.pid, t->id.comm, n - late, n);
	f->sum.lossy |= late != 0;
}

static void take(void *arg, const struct engine_target *t, const struct engine_result *results)
{
	struct follow *f = arg;
	uint64_t life = 0;

	if (t->state == ENGINE_BECAME)
		tell("pid %d (%s): it became another program (exec): what that does is not in "
		     "these profiles (it has its own if it is a Go program)",
		     t->id.pid, t->id.comm);
	tell_missing(f, t, results);
	for (size_t k = 0; k < f->as.nkinds; k++) {
		if (!results[k].prof)
			continue;
		life = life ?: run_files_life(f->o.files, t->id.pid);
		write_one(f, t, life, f->as.kinds[k], results[k].prof);
	}
	host_news_forget(&f->news, t);
}

/* ---- the window ---- */

static void broke(struct follow *f, const struct err *e)
{
	tell("%s: programs of children are followed no longer", e->msg);
	f->broken = f->sum.failed = true;
}

static int engine_ready(void *arg)
{
	struct follow *f = arg;
	struct err e = { "" };
	int ret;

	cancel_when(stop_asked_ms);
	ret = engine_poll(f->engine, &e);
	cancel_when(NULL);
	if (ret)
		broke(f, &e);
	return ret;
}

void follow_step(struct follow *f, bool tick)
{
	struct err e = { "" };

	if (!f->begun || f->broken)
		return;
	cancel_when(stop_asked_ms);
	host_news_step(&f->news, tick);
	if (tick && (engine_tick(f->engine, &e) || engine_reap(f->engine, 1, take, f, &e)))
		broke(f, &e);
	cancel_when(NULL);
}

/* ---- from start to end ---- */

/* The bound that was given for one process is that of all that are followed, together. */
static struct collect_opts collect_of(const struct follow_opts *o)
{
	struct collect_opts c = o->run->collect;

	if (c.source == SOURCE_ENABLE) {
		tell("--source=enable is for pid %d alone: of the programs that its children run "
		     "nothing is written to, they are read or probed",
		     o->run->pid);
		c.source = SOURCE_AUTO;
	}
	c.host.taken_ppm = c.budget.ppm;
	c.attachers = o->attachers;
	c.unmet = c.load_ahead = true;
	return c;
}

static void say_why(void *arg, const char *what)
{
	(void)arg;
	tell("%s", what);
}

static void set_up(struct follow *f)
{
	struct survey *s = &f->news.survey;

	f->as = (struct host_opts){ .kinds = f->o.run->many,
				    .nkinds = f->o.run->nmany,
				    .collect = collect_of(&f->o) };
	f->news.loop = f->o.loop;
	f->news.wants = wants;
	f->news.looked = looked;
	f->news.added = added;
	f->news.say = say_why;
	f->news.arg = f;
	s->wants = table_wants(&f->as);
	s->hold = is_wanted;
	s->arg = &f->as;
}

int follow_open(const struct follow_opts *o, struct follow **out, struct err *e)
{
	CLEANUP(follow_freep) struct follow *f = calloc(1, sizeof(*f));
	int ret;

	if (!f)
		return err_set(e, -ENOMEM, "no memory");
	f->o = *o;
	set_up(f);
	ret = engine_open(&f->as.collect, f->as.kinds, f->as.nkinds, EXPECTED, &f->engine, e);
	if (ret)
		return ret;
	f->news.engine = f->engine;
	*out = TAKE(f);
	return 0;
}

/* What is late to look at a program on a busy machine misses what that does. */
int follow_begin(struct follow *f, pid_t root, struct err *e)
{
	int ret = host_news_open(&f->news, root, e);

	if (!ret)
		ret = loop_watch(f->o.loop, engine_fd(f->engine), engine_ready, f, e);
	if (!ret)
		ret = engine_begin(f->engine, e);
	if (ret)
		return ret;
	(void)priority_prompt();
	f->begun = true;
	return 0;
}

static void tell_end(struct follow *f)
{
	uint64_t unheard = host_news_unheard(&f->news);

	for (size_t k = 0; k < f->as.nkinds; k++)
		f->sum.lossy |= losses_tell_shared(f->engine, k);
	f->too_short += f->news.unknown;
	if (f->news.missed)
		tell("%zu programs of children were not looked at", f->news.missed);
	if (f->too_short)
		tell("%zu programs of children ended before they could be looked at", f->too_short);
	if (unheard)
		tell("%llu programs of children were not noticed: too many at once",
		     (unsigned long long)unheard);
	f->sum.lossy |= f->too_short || unheard || f->refused || f->news.lossy;
}

void follow_end(struct follow *f)
{
	struct err e = { "" };

	if (!f->begun)
		return;
	f->begun = false;
	host_news_rest(&f->news);
	if (engine_end(f->engine, take, f, &e)) {
		tell("%s", e.msg);
		f->sum.failed = true;
	}
	tell_end(f);
}
