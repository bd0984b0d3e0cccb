/* user/cli/run/host/host_run.c - finds the processes, has the engine observe them, writes what comes. */
#include "cli/run/host/host_run.h"

#include "base/loop/cancel.h"
#include "base/loop/loop.h"
#include "cli/cmd.h"
#include "cli/run/host/host_meant.h"
#include "base/clock.h"
#include "host/news.h"
#include "cli/run/host/host_some.h"
#include "cli/run/host/host_summary.h"
#include "cli/run/host/host_table.h"
#include "cli/run/losses.h"
#include "cli/run/outdir.h"
#include "cli/run/run_files.h"
#include "cli/stop.h"
#include "cli/tell.h"
#include "collect/cpu/host.h"
#include "collect/heap/heap_many.h"
#include "collect/reading.h"
#include "collect/waits/contention/contention_many.h"
#include "collect/waits/wait/wait_many.h"
#include "engine/engine.h"
#include "engine/probe_set.h"

enum { WHOSE_TEXT = 96 };

struct run {
	const struct host_opts *o;
	struct loop *loop;
	struct host_news news;
	struct engine *engine;
	bool begun;    /* what comes from here on has started meanwhile */
	size_t wanted; /* at the start: processes that the table promises */
	struct run_files files;
	struct run_kind {
		/* Profiles of two sources are of different times, and heaps have other columns: [1]: those that are probed. */
		struct run_part {
			struct summary summary;
			struct prof *
				page; /* all processes, for a flame graph of them; NULL: none yet */
		} part[2];
		struct some refused; /* processes that this kind cannot observe */
	} kinds[ENGINE_KINDS_MAX];
	struct some failed,
		partly; /* could not be profiled; and those of which some kinds could not */
	/* Of these, and not told of yet: those that there was no slot for, and those of files that there was no room for. */
	struct some beyond, crowded;
	size_t started;
	struct some ended, became;
	struct some unfit;	      /* started meanwhile, and no kind works on them */
	bool lossy, broken, made_dir; /* broken: the run itself */
	uint64_t began_ns, lasted_ns;
	uint64_t since_ns; /* when the last step was done, for -v */
};

static void run_fini(struct run *r)
{
	host_news_fini(&r->news);
	engine_free(r->engine);
	for (size_t k = 0; k < 2 * (size_t)ENGINE_KINDS_MAX; k++) {
		summary_fini(&r->kinds[k / 2].part[k % 2].summary);
		prof_free(r->kinds[k / 2].part[k % 2].page);
	}
	run_files_fini(&r->files);
	loop_free(r->loop);
	if (r->made_dir && !r->files.n)
		rmdir(r->o->to.dir);
}

/* With -v: how long the step before took. */
static void step_done(struct run *r, const char *what)
{
	uint64_t now = now_ns();
	char took[NS_TEXT];

	if (r->o->collect.verbose)
		tell("%s in %s", what, ns_text(now - r->since_ns, took));
	r->since_ns = now;
}

/* ---- the table ---- */

/* The table has those that ran already. */
static void note_unfit(struct run *r, const struct survey *s)
{
	for (size_t i = 0; i < s->at.n; i++) {
		const struct survey_proc *p = &s->at.at[i];
		struct err why;

		if (!host_means(r->o, p) || table_works(r->o, p))
			continue;
		err_set(&why, -ENOTSUP, "%s", table_why(r->o, p));
		some_add(&r->unfit, p->pid, p->comm, &why);
		some_add(&r->failed, p->pid, p->comm, &why);
	}
}

/* What is surely not meant is no loss, and is not told of. */
static void tell_unseen(void *arg, struct survey *s)
{
	struct run *r = arg;
	struct unseen u = { .failed = &r->failed };

	host_tell_unseen(r->o, s, &u);
	r->lossy |= u.lossy;
	if (r->begun)
		note_unfit(r, s);
}

/* The table promises what each would have by itself. */
static void tell_room(const struct run *r)
{
	size_t files = table_probed_files(r->o, &r->news.survey);

	if (files > PROBE_SETS_MAX)
		tell("%zu executables would be probed, and there is room for %d: those come first whose processes have used most CPU time; choose with --match",
		     files, PROBE_SETS_MAX);
}

static void plan(struct run *r, FILE *f)
{
	struct survey *s = &r->news.survey;
	size_t n = 0, closed = 0;

	for (size_t i = 0; i < s->at.n; i++)
		n += host_means(r->o, &s->at.at[i]);
	for (size_t i = 0; i < s->closed.n; i++)
		closed += host_may_mean(r->o, &s->closed.at[i]);
	host_head(r->o, s, n, closed, f);
	for (size_t i = 0; i < s->at.n; i++) {
		const struct survey_proc *p = &s->at.at[i];

		if (!host_means(r->o, p))
			continue;
		table_row(r->o, p, f);
		if (table_works(r->o, p))
			r->wanted++;
		else
			some_add(&r->failed, p->pid, p->comm, &(struct err){ "" });
	}
	for (size_t i = 0; i < s->closed.n; i++)
		if (host_may_mean(r->o, &s->closed.at[i]))
			table_row(r->o, &s->closed.at[i], f);
	tell_room(r);
	tell_unseen(r, s);
}

/* ---- targets ---- */

/* Where all are meant, what ended since somebody saw that it is Go's (a zombie, too) is no failure. */
static void added(void *arg, int ret, const struct err *e, pid_t pid, const char *comm, bool became)
{
	struct run *r = arg;

	if (became) {
		some_add(&r->became, pid, comm, e);
	} else if (!ret) {
		r->started += r->begun;
	} else if (ret == -E2BIG && engine_is_full(r->engine)) {
		some_add(&r->beyond, pid, comm, e);
		some_add(&r->failed, pid, comm, e);
	} else if (ret == -E2BIG && r->o->all) {
		some_add(&r->crowded, pid, comm, e);
		some_add(&r->failed, pid, comm, e);
	} else if ((ret == -ESRCH || ret == -ENOENT) && r->o->all) {
		some_add(&r->ended, pid, comm, e);
	} else if (ret != -EEXIST) {
		if (ret != -ECANCELED)
			tell("%s", e->msg);
		some_add(&r->failed, pid, comm, e);
	}
}

static void tell_beyond(struct run *r)
{
	char n[TEXT_COUNTED], who[SOME_TEXT];

	if (r->beyond.n)
		tell("%s left out, as no more than %d are observed at once: %s",
		     counted(r->beyond.n, "process is", "processes are", n), GPB_CPU_TARGETS,
		     some_text(&r->beyond, who));
	if (r->crowded.n)
		tell("%s left out: %s: %s", counted(r->crowded.n, "process is", "processes are", n),
		     some_text(&r->crowded, who), r->crowded.why.msg);
	r->beyond = r->crowded = (struct some){ .n = 0 };
}

static void say_why(void *arg, const char *what)
{
	(void)arg;
	tell("%s", what);
}

/* Those that were named are the ones. */
static bool wants(void *arg, const struct exec_seen *x)
{
	const struct run *r = arg;

	return r->o->all && x->pid != getpid();
}

static int engine_ready(void *arg)
{
	struct run *r = arg;
	struct err e = { "" };
	int ret = engine_poll(r->engine, &e);

	if (ret)
		tell("%s", e.msg);
	r->broken |= ret != 0;
	return ret;
}

/* ---- one process ---- */

static struct run_part *part_of(struct run *r, size_t k, const struct engine_result *results)
{
	return &r->kinds[k].part[results[k].probed];
}

static void write_pages(struct run *r)
{
	for (size_t k = 0; k < 2 * r->o->nkinds; k++)
		run_files_page(&r->files, r->kinds[k / 2].part[k % 2].page,
			       r->o->kinds[k / 2]->name, k % 2);
}

static void tell_begin(const struct run *r, const struct engine_target *t, struct prof *p)
{
	uint64_t ns;

	if (host_news_begun(&r->news, t, &ns))
		prof_comment(p, NULL, "begun: %.1f ms after its exec", (double)ns / 1e6);
}

/* Where all are meant, processes come and go. One that was named was meant to stay. */
static const char *how_it_ended(struct run *r, const struct engine_target *t)
{
	if (t->state == ENGINE_ON)
		return NULL;
	if (t->subject->target->silent) {
		r->lossy = true;
		return "does not answer any more";
	}
	some_add(t->state == ENGINE_ENDED ? &r->ended : &r->became, t->id.pid, t->id.comm,
		 &(struct err){ "" });
	r->lossy |= !r->o->all;
	return t->state == ENGINE_ENDED ? "ended" : "became another program";
}

/* Of one that ran for less than a tick of the clocks there may be CPU time, and no sample. */
static const char *note_of(const struct engine_target *t, const char *how)
{
	if (!t->cpu_ns)
		return how;
	return !how			? "no samples, so no file" :
	       t->state == ENGINE_ENDED ? "ended, no samples, so no file" :
					  "became another program, no samples, so no file";
}

static void say_end(const struct run *r, const struct engine_target *t, struct prof *p)
{
	if (t->state == ENGINE_ON)
		return;
	if (t->subject->target->silent)
		prof_comment(p, NULL, "end: the process did not answer any more");
	else if (!r->o->all)
		prof_loss(p)->n[LOSS_TARGET_GONE] = 1;
	else
		prof_comment(p, NULL, "end: the process %s in the window",
			     t->state == ENGINE_ENDED ? "ended" : "became another program (exec)");
}

/* Of many that keep no records one line tells; of those that were named, each has one. */
static void tell_failed(struct run *r, struct run_kind *k, const struct engine_target *t,
			const struct engine_result *result, const char *kind)
{
	if (result->refused)
		some_add(&k->refused, t->id.pid, t->id.comm, result->failed);
	if (!result->refused || !r->o->all)
		tell("pid %d (%s): %s: %s", t->id.pid, t->id.comm, kind, result->failed->msg);
	r->lossy = true;
}

static void take(void *arg, const struct engine_target *t, const struct engine_result *results)
{
	struct run *r = arg;
	struct summary_row row = { .pid = t->id.pid };
	const char *how = how_it_ended(r, t);
	size_t failed = 0, got = 0;
	uint64_t life = 0;

	snprintf(row.name, sizeof(row.name), "%s", t->id.comm);
	for (size_t i = 0; i < r->o->nkinds; i++) {
		struct run_kind *k = &r->kinds[i];
		struct prof *p = results[i].prof;
		char whose[WHOSE_TEXT];

		if (results[i].failed)
			tell_failed(r, k, t, &results[i], r->o->kinds[i]->name);
		failed += results[i].failed && !results[i].refused;
		got += p != NULL;
		row.value = t->cpu_ns;
		row.note = p || k->part[0].summary.of != SUMMARY_CPU ? how : note_of(t, how);
		row.lost = p ? loss_total(prof_loss(p)) : 0;
		if (!results[i].refused && !summary_add(&part_of(r, i, results)->summary, &row, p))
			r->lossy = true;
		/* What it recorded in the window went with it. */
		if (p && results[i].first && t->state != ENGINE_ON)
			row.lost = r->lossy = true;
		if (p && results[i].first &&
		    !summary_add_since(&k->part[1].summary, &row, p, results[i].first))
			r->lossy = true;
		if (!p)
			continue;
		say_end(r, t, p);
		tell_begin(r, t, p);
		life = life ?: run_files_life(&r->files, t->id.pid);
		run_files_write(&r->files, &t->id, life, r->o->kinds[i]->name, p);
		if (run_files_paged(&r->files))
			run_files_add(&r->files, &part_of(r, i, results)->page, &t->id,
				      r->o->kinds[i]->name, p);
		snprintf(whose, sizeof(whose), "pid %d (%s): %s", t->id.pid, t->id.comm,
			 r->o->kinds[i]->name);
		r->lossy |= losses_tell(prof_loss(p), whose);
	}
	if (failed)
		some_add(got ? &r->partly : &r->failed, t->id.pid, t->id.comm, &(struct err){ "" });
	host_news_forget(&r->news, t);
}

/* ---- the window ---- */

static bool step(void *arg, bool tick, uint64_t done_ns)
{
	struct run *r = arg;
	struct err e = { "" };

	if (tick)
		tell_bar(done_ns, r->o->duration_ns);
	host_news_step(&r->news, tick);
	if (tick &&
	    (engine_tick(r->engine, &e) || engine_reap(r->engine, ENGINE_REAP, take, r, &e))) {
		tell("%s", e.msg);
		r->broken = true;
	}
	return r->broken || r->files.broken || (!r->o->all && !engine_targets(r->engine));
}

static void tell_kind(struct run *r, size_t i)
{
	struct run_kind *k = &r->kinds[i];
	const char *name = r->o->kinds[i]->name;
	char n[TEXT_COUNTED], who[SOME_TEXT];
	bool probed = k->part[1].summary.rows.n || k->part[1].summary.gone;

	if (k->part[0].summary.rows.n || k->part[0].summary.gone || (!k->refused.n && !probed))
		summary_print(&k->part[0].summary, r->lasted_ns, stderr);
	if (probed)
		summary_print(&k->part[1].summary, r->lasted_ns, stderr);
	if (k->refused.n)
		tell("%s no %s profile: %s; the first: %s",
		     counted(k->refused.n, "process has", "processes have", n), name,
		     some_text(&k->refused, who), k->refused.why.msg);
}

static void tell_end(struct run *r)
{
	uint64_t unheard = host_news_unheard(&r->news);
	char n[TEXT_COUNTED], who[SOME_TEXT];

	for (size_t k = 0; k < r->o->nkinds; k++) {
		tell_kind(r, k);
		r->lossy |= losses_tell_shared(r->engine, k);
	}
	if (r->started)
		tell("%s started meanwhile, and %s in here from then on",
		     counted(r->started, "program", "programs", n), r->started == 1 ? "is" : "are");
	if (r->ended.n)
		tell("%s ended meanwhile: %s", processes(r->ended.n, n), some_text(&r->ended, who));
	if (r->became.n)
		tell("%s meanwhile: %s",
		     counted(r->became.n, "process became another program",
			     "processes became other programs", n),
		     some_text(&r->became, who));
	if (r->news.unknown)
		tell("%s ended, or the window did, before anybody could look at %s: whether Go's is not known",
		     counted(r->news.unknown, "program that started meanwhile",
			     "programs that started meanwhile", n),
		     r->news.unknown == 1 ? "it" : "them");
	if (r->news.missed)
		tell("%s not looked at",
		     counted(r->news.missed, "program that started meanwhile was",
			     "programs that started meanwhile were", n));
	tell_beyond(r);
	if (r->unfit.n)
		tell("%s started meanwhile cannot be profiled: %s; the first: %s",
		     counted(r->unfit.n, "program that", "programs that", n),
		     some_text(&r->unfit, who), r->unfit.why.msg);
	if (r->failed.n)
		tell("%s could not be profiled%s%s", processes(r->failed.n, n),
		     r->failed.named ? ": " : "", some_text(&r->failed, who));
	if (r->partly.n)
		tell("of %s a part could not be profiled: %s", processes(r->partly.n, n),
		     some_text(&r->partly, who));
	if (unheard)
		tell("%s not noticed: too many at once",
		     counted(unheard, "program that started was", "programs that started were", n));
	r->lossy |= r->failed.n || unheard || r->news.lossy;
}

/* ---- from start to end ---- */

/* Asked in the child that has opened it. */
static bool is_wanted(void *arg, const struct survey_proc *p)
{
	return host_means(arg, p) && table_works(arg, p);
}

static int look_around(struct run *r, struct err *e)
{
	struct survey *s = &r->news.survey;

	s->wants = table_wants(r->o);
	s->named = !r->o->all;
	s->hold = r->o->dry_run ? NULL : is_wanted;
	s->judge = r->o->all ? host_judge : NULL;
	s->arg = (void *)r->o;
	return r->o->all ? survey_run(s, e) : survey_more(s, r->o->pids, r->o->npids, e);
}

static bool observes_cpu(const struct host_opts *o)
{
	for (size_t k = 0; k < o->nkinds; k++)
		if (o->kinds[k] == &engine_cpu)
			return true;
	return false;
}

/* What only reads works without BPF, for programs that run already. */
static int listen_to_execs(struct run *r, struct err *e)
{
	struct err why = { "" };
	int ret = host_news_open(&r->news, 0, &why);

	if (ret && observes_cpu(r->o))
		return err_set(e, ret, "%s", why.msg);
	if (ret)
		tell("programs that start meanwhile are not noticed: %s", why.msg);
	return 0;
}

/* Execs are heard of from before the first look on, so that no program comes between the two. */
static int prepare(struct run *r, struct err *e)
{
	int ret = loop_new(&r->loop, e);

	r->news.loop = r->loop;
	if (!ret && !r->o->dry_run)
		ret = outdir_prepare(r->o->to.dir, r->o->to.access, &r->made_dir, e);
	if (!ret && !r->o->dry_run)
		ret = listen_to_execs(r, e);
	if (!ret)
		ret = look_around(r, e);
	step_done(r, "looked at the processes");
	if (!ret)
		plan(r, r->o->dry_run ? stdout : stderr);
	return ret;
}

static int start(struct run *r, struct err *e)
{
	/* twice as many, because others may start */
	unsigned expected = (unsigned)r->wanted * (r->o->all ? 2 : 1);
	int ret = engine_open(&r->o->collect, r->o->kinds, r->o->nkinds, expected, &r->engine, e);

	step_done(r, "loaded");
	r->news.engine = r->engine;
	if (!ret)
		host_news_adopt(&r->news);
	r->begun = true;
	step_done(r, "opened");
	tell_beyond(r);
	if (!ret && !engine_targets(r->engine) && !r->o->all)
		return err_set(e, -ENOENT, "there is nothing to profile");
	if (!ret)
		ret = loop_watch(r->loop, engine_fd(r->engine), engine_ready, r, e);
	r->began_ns = now_ns();
	if (!ret)
		ret = engine_begin(r->engine, e);
	step_done(r, "attached");
	return ret;
}

static void kinds_text(const struct host_opts *o, char *buf, size_t cap)
{
	size_t n = 0;

	for (size_t k = 0; k < o->nkinds && n < cap; k++)
		n += (size_t)snprintf(buf + n, cap - n, "%s%s", k ? ", " : "", o->kinds[k]->name);
}

static void observe(struct run *r)
{
	struct loop_opts l = {
		.duration_ns = r->o->duration_ns, .stop_fd = r->o->stop_fd, .step = step, .arg = r
	};
	enum loop_end end = LOOP_OVER;
	struct err e = { "" };
	char time[NS_TEXT], kinds[64], n[TEXT_COUNTED];

	kinds_text(r->o, kinds, sizeof(kinds));
	tell("profiling %s for %s: %s", processes(engine_targets(r->engine), n),
	     ns_text(r->o->duration_ns, time), kinds);
	if (loop_wait(r->loop, &l, &end, &r->lasted_ns, &e)) {
		tell("%s", e.msg);
		r->broken = true;
	}
	tell_bar(0, 0);
	step_done(r, "collected");
	cancel_when(NULL); /* what was collected is to be written */
	/* CPU time counts from there on, and it may take seconds until the probes of many files are in. */
	r->lasted_ns = now_ns() - r->began_ns;
	if (end == LOOP_STOP)
		tell("stopped after %s: writing what was collected", ns_text(r->lasted_ns, time));
	host_news_rest(&r->news);
	if (engine_end(r->engine, take, r, &e)) {
		tell("%s", e.msg);
		r->broken = true;
	}
	step_done(r, "detached and written");
}

static enum summary_of summary_kind(const struct engine_kind *kind, bool probed)
{
	return kind == &engine_heap	 ? probed ? SUMMARY_ALLOC : SUMMARY_HEAP :
	       kind == &engine_block	 ? probed ? SUMMARY_BLOCK_PROBED : SUMMARY_BLOCK :
	       kind == &engine_mutex	 ? probed ? SUMMARY_MUTEX_PROBED : SUMMARY_MUTEX :
	       kind == &engine_wait	 ? SUMMARY_WAIT :
	       kind == &engine_goroutine ? SUMMARY_GOROUTINE :
					   SUMMARY_CPU;
}

int host_run(const struct host_opts *o)
{
	CLEANUP(run_fini)
	struct run r = {
		.o = o,
		.files.to = &o->to,
		.news = { .own_ppm = o->collect.host.own_ppm,
			  .wants = wants,
			  .looked = tell_unseen,
			  .added = added,
			  .say = say_why,
			  .arg = &r },
	};
	struct err e = { "" };
	int ret;

	for (size_t k = 0; k < 2 * o->nkinds; k++)
		r.kinds[k / 2].part[k % 2].summary.of = summary_kind(o->kinds[k / 2], k % 2);
	r.since_ns = now_ns();
	cancel_when(stop_asked_ms);
	ret = prepare(&r, &e);
	if (!ret && o->dry_run)
		return r.lossy || r.failed.n ? EXIT_LOSSES : EXIT_DONE;
	if (!ret)
		ret = start(&r, &e);
	if (ret) {
		tell("%s", e.msg);
		return EXIT_FAILED;
	}
	observe(&r);
	write_pages(&r);
	tell_end(&r);
	summary_cost(engine_cost(r.engine), r.news.unknown, r.news.put_off, &o->collect);
	if (r.broken || r.files.broken || r.files.unread)
		return EXIT_FAILED;
	return r.lossy ? EXIT_LOSSES : EXIT_DONE;
}
