/* user/cli/host_run.c - finds the processes, has the engine observe them, writes what comes. */
#include "cli/host_run.h"

#include <limits.h>

#include "base/limits.h"
#include "base/map.h"
#include "cli/cmd.h"
#include "cli/host_summary.h"
#include "cli/outdir.h"
#include "cli/report.h"
#include "cli/tell.h"
#include "cli/window.h"
#include "collect/cpu/host.h"
#include "engine/engine.h"
#include "probe/family.h"
#include "profile/graft.h"

/* Programs that have just started are looked at together, so often: each look is a fork. */
enum { NEWS_NS = 50000000 };

struct run {
	const struct host_opts *o;
	struct window *window;
	struct survey survey;
	struct engine *engine;
	struct family *family;
	VEC(pid_t) news; /* called exec, and were not looked at */
	uint64_t looked_ns;
	VEC(pid_t) wanted; /* at the start: what the table promised */
	struct map lives;  /* pid -> programs of it that have files */
	struct summary summary;
	struct prof *host; /* all processes, for a flame graph of them; NULL: not wanted */
	size_t failed;	   /* processes that could not be profiled */
	size_t ended, became, started, files;
	bool lossy, broken; /* broken: the run itself */
	bool made_dir;
	uint64_t lasted_ns;
};

static void run_fini(struct run *r)
{
	engine_free(r->engine);
	family_free(r->family);
	survey_fini(&r->survey);
	summary_fini(&r->summary);
	prof_free(r->host);
	vec_fini(&r->news);
	vec_fini(&r->wanted);
	map_fini(&r->lives);
	window_free(r->window);
	if (r->made_dir && !r->files)
		rmdir(r->o->dir);
}

/* ---- the table ---- */

static const char *module_of(const struct survey_build *b)
{
	return *b->module ? b->module : b->path;
}

static void print_row(const struct survey_proc *p, FILE *f)
{
	char line[1024], user[64];
	const char *version = p->build->version;

	report_user(p->uid, user, sizeof(user));
	snprintf(line, sizeof(line), "%8d  %-10.10s  %-8.12s  %-15.15s  %s%.200s  %.200s", p->pid,
		 user, strncmp(version, "go", 2) ? version : version + 2, p->comm,
		 p->cpu.yes ? "cpu" : "no: ", p->cpu.yes ? "" : p->cpu.why, module_of(p->build));
	tell_clean(line);
	fprintf(f, "%s\n", line);
}

static void print_head(size_t found, size_t seen, FILE *f)
{
	fprintf(f, "%zu Go processes are meant, of %zu processes\n", found, seen);
	if (found)
		fprintf(f, "%8s  %-10s  %-8s  %-15s  %-4s  %s\n", "PID", "USER", "GO", "PROGRAM",
			"WHAT", "MODULE");
}

static bool listed(const struct host_opts *o, pid_t pid)
{
	for (size_t i = 0; i < o->npids; i++)
		if (o->pids[i] == pid)
			return true;
	return false;
}

static bool meant(const struct host_opts *o, const struct survey_proc *p)
{
	return o->all ? pick_wants(&o->pick, p) : listed(o, p->pid);
}

static void tell_unseen(struct run *r)
{
	const struct survey *s = &r->survey;

	for (size_t i = 0; i < s->unanswered.n; i++)
		tell("pid %d: its files or its memory do not answer: it is left out",
		     s->unanswered.at[i]);
	if (s->denied)
		tell("%zu processes could not be looked at: %s", s->denied, s->denied_why);
	if (s->left_out)
		tell("%zu processes were not looked at: too many", s->left_out);
	r->failed += s->unanswered.n + s->left_out;
	r->lossy |= s->denied != 0;
}

static bool unanswered(const struct survey *s, pid_t pid)
{
	for (size_t i = 0; i < s->unanswered.n; i++)
		if (s->unanswered.at[i] == pid)
			return true;
	return false;
}

/* Those that are named, and not in the survey, are opened too: that tells what they are. */
static bool want_others(struct run *r)
{
	for (size_t i = 0; i < r->o->npids; i++) {
		pid_t pid = r->o->pids[i], *at;
		bool there = unanswered(&r->survey, pid);

		for (size_t k = 0; k < r->survey.at.n && !there; k++)
			there = r->survey.at.at[k].pid == pid;
		at = there ? NULL : vec_add(&r->wanted, INT32_MAX);
		if (at)
			*at = pid;
		else if (!there)
			return false;
	}
	return true;
}

static int plan(struct run *r, FILE *f, struct err *e)
{
	const struct survey *s = &r->survey;
	size_t n = 0;

	for (size_t i = 0; i < s->at.n; i++)
		n += meant(r->o, &s->at.at[i]);
	print_head(n, s->seen, f);
	for (size_t i = 0; i < s->at.n; i++) {
		const struct survey_proc *p = &s->at.at[i];
		pid_t *at;

		if (!meant(r->o, p))
			continue;
		print_row(p, f);
		r->failed += !p->cpu.yes;
		at = p->cpu.yes ? vec_add(&r->wanted, INT32_MAX) : NULL;
		if (!at && p->cpu.yes)
			return err_set(e, -ENOMEM, "no memory for the list of processes");
		if (at)
			*at = p->pid;
	}
	if (!want_others(r))
		return err_set(e, -ENOMEM, "no memory for the list of processes");
	tell_unseen(r);
	return 0;
}

/* ---- targets ---- */

/* Where all are meant, what ended since somebody saw that it is Go's (a zombie, too) is no failure. */
static void add(struct run *r, pid_t pid, bool later)
{
	const struct engine_target *t;
	struct err e = { "" };
	int ret = engine_add(r->engine, pid, &t, &e);

	if (!ret) {
		r->started += later;
	} else if ((ret == -ESRCH || ret == -ENOENT) && r->o->all) {
		r->ended++;
	} else if (ret != -EEXIST) {
		tell("%s", e.msg);
		r->failed++;
	}
}

static void take_news(struct run *r)
{
	struct family_exec x;

	while (family_next(r->family, &x)) {
		pid_t *at;

		engine_exec(r->engine, x.pid);
		if (x.pid == getpid() || !r->o->all)
			continue;
		at = vec_add(&r->news, LIMIT_SURVEY);
		if (at)
			*at = x.pid;
		r->lossy |= !at;
	}
}

/*
 * A child looks at what has started: a program whose file system does not answer must not hold up
 * the others. Files that are known are not looked at again.
 */
static void look_at_news(struct run *r)
{
	struct survey *s = &r->survey;
	size_t before = s->unanswered.n;
	struct err e = { "" };

	r->looked_ns = window_now_ns();
	survey_forget(s);
	if (survey_more(s, r->news.at, r->news.n, &e)) {
		tell("%s", e.msg);
		r->lossy = true;
	}
	r->news.n = 0;
	for (size_t i = 0; i < s->at.n; i++)
		if (meant(r->o, &s->at.at[i]) && s->at.at[i].cpu.yes)
			add(r, s->at.at[i].pid, true);
	for (size_t i = before; i < s->unanswered.n; i++)
		tell("pid %d: its files or its memory do not answer: it is left out",
		     s->unanswered.at[i]);
	r->failed += s->unanswered.n - before;
}

static int nothing(void *arg)
{
	(void)arg;
	return 0; /* step() looks at it */
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

/* ---- what comes out ---- */

static void print_path(struct run *r, const char *path)
{
	if (fprintf(r->o->paths, "%s\n", path) >= 0 && !fflush(r->o->paths))
		return;
	tell("cannot write to stdout: %s", strerror(errno));
	r->broken = true;
}

static void write_one(struct run *r, struct prof *p, const struct output_format *f,
		      const char *path, const char *whose)
{
	struct err e = { "" };

	if (output_to_file(p, f, path, r->o->access, &e)) {
		tell("%s: %s", whose, e.msg);
		r->broken = true;
		return;
	}
	r->files++;
	print_path(r, path);
}

/* ---- all processes on one page ---- */

static bool wants_page(const struct host_opts *o)
{
	for (size_t i = 0; i < o->nformats; i++)
		if (o->formats[i] == output_find("flame"))
			return true;
	return false;
}

static int begin_page(struct run *r, struct err *e)
{
	int ret = wants_page(r->o) ? prof_new(&r->host, e) : 0;

	if (!r->host)
		return ret;
	ret = prof_add_type(r->host, "samples", "count", e);
	if (!ret)
		ret = prof_add_type(r->host, "cpu", "nanoseconds", e);
	prof_set_kind(r->host, "cpu");
	return ret;
}

static void add_to_page(struct run *r, const struct engine_target *t, struct prof *p)
{
	char root[64];

	snprintf(root, sizeof(root), "%s [%d]", t->id.comm, t->id.pid);
	if (r->host && prof_graft(r->host, p, prof_loss(p), root, NULL)) {
		tell("no memory for a page of all processes");
		r->broken = true;
		prof_free(TAKE(r->host));
	}
}

static void write_page(struct run *r)
{
	char path[PATH_MAX];
	size_t n = strlen(r->o->dir);

	if (!r->host || !prof_nsamples(r->host))
		return;
	if ((size_t)snprintf(path, sizeof(path), "%s%shost.cpu.html", r->o->dir,
			     n && r->o->dir[n - 1] == '/' ? "" : "/") < sizeof(path))
		write_one(r, r->host, output_find("flame"), path, "the page of all processes");
}

/* ---- one process ---- */

/* Later programs of a pid have other names: NAME.PID.2.cpu.pb.gz. */
static void write_files(struct run *r, const struct engine_target *t, struct prof *p)
{
	uint64_t life = 0;
	char kind[32] = "cpu", path[PATH_MAX];

	map_get(&r->lives, (uint64_t)t->id.pid, &life);
	map_put(&r->lives, (uint64_t)t->id.pid, ++life);
	if (life > 1)
		snprintf(kind, sizeof(kind), "%llu.cpu", (unsigned long long)life);
	prof_set_kind(p, "cpu");
	for (size_t i = 0; i < r->o->nformats; i++) {
		const struct output_format *f = r->o->formats[i];
		struct err e = { "" };

		if (!outdir_path(r->o->dir, t->id.comm, t->id.pid, kind, f->ext, path, sizeof(path),
				 &e)) {
			write_one(r, p, f, path, t->id.comm);
			continue;
		}
		tell("pid %d (%s): %s", t->id.pid, t->id.comm, e.msg);
		r->broken = true;
	}
}

static void report_losses(struct run *r, const struct engine_target *t, struct prof *p)
{
	const struct loss *l = prof_loss(p);

	for (size_t k = 0; k < LOSS_COUNT; k++) {
		if (!l->n[k])
			continue;
		r->lossy = true;
		if (k == LOSS_TARGET_GONE || k == LOSS_LAYOUT_GUESSED)
			tell("pid %d (%s): %s", t->id.pid, t->id.comm,
			     loss_text((enum loss_kind)k));
		else
			tell("pid %d (%s): %llu %s", t->id.pid, t->id.comm,
			     (unsigned long long)l->n[k], loss_text((enum loss_kind)k));
	}
}

/* Where all are meant, processes come and go. One that was named was meant to stay. */
static const char *how_it_ended(struct run *r, const struct engine_target *t, struct prof *p)
{
	if (t->state == ENGINE_ON)
		return NULL;
	r->ended += t->state == ENGINE_ENDED;
	r->became += t->state == ENGINE_BECAME;
	if (p && !r->o->all)
		prof_loss(p)->n[LOSS_TARGET_GONE] = 1;
	else if (p)
		prof_comment(p, NULL, "end: the process %s in the window",
			     t->state == ENGINE_ENDED ? "ended" : "became another program (exec)");
	r->lossy |= !r->o->all;
	return t->state == ENGINE_ENDED ? "ended" : "became another program";
}

static void take(void *arg, const struct engine_target *t, struct prof *p, const struct err *failed)
{
	struct run *r = arg;
	struct summary_row row = { .pid = t->id.pid, .cpu_ns = t->cpu_ns };

	if (failed) {
		tell("pid %d (%s): %s", t->id.pid, t->id.comm, failed->msg);
		r->failed++;
	}
	row.note = how_it_ended(r, t, p);
	row.lost = p ? loss_total(prof_loss(p)) : 0;
	snprintf(row.name, sizeof(row.name), "%s", t->id.comm);
	if (!summary_add(&r->summary, &row, p))
		r->lossy = true;
	if (!p)
		return;
	write_files(r, t, p);
	add_to_page(r, t, p);
	report_losses(r, t, p);
}

/* ---- the window ---- */

static bool step(void *arg, bool tick, uint64_t done_ns)
{
	struct run *r = arg;
	struct err e = { "" };

	if (tick)
		tell_bar(done_ns, r->o->duration_ns);
	take_news(r);
	if (r->news.n && (tick || window_now_ns() - r->looked_ns > NEWS_NS))
		look_at_news(r);
	if (tick && (engine_tick(r->engine, &e) || engine_reap(r->engine, take, r, &e))) {
		tell("%s", e.msg);
		r->broken = true;
	}
	return r->broken || (!r->o->all && !engine_targets(r->engine));
}

static void tell_end(struct run *r)
{
	uint64_t unheard = family_lost(r->family);

	summary_print(&r->summary, r->lasted_ns, stderr);
	if (r->started)
		tell("%zu programs started meanwhile, and are in here from then on", r->started);
	if (r->ended || r->became)
		tell("%zu processes ended meanwhile, %zu became other programs", r->ended,
		     r->became);
	if (r->failed)
		tell("%zu processes could not be profiled", r->failed);
	if (unheard)
		tell("%llu programs that started were not noticed: too many at once",
		     (unsigned long long)unheard);
	r->lossy |= r->failed || unheard;
}

/* ---- from start to end ---- */

static int look_around(struct run *r, struct err *e)
{
	r->survey.cpu_only = true;
	if (r->o->all)
		return survey_run(&r->survey, e);
	return survey_more(&r->survey, r->o->pids, r->o->npids, e);
}

/* Execs are heard of from before the first look on, so that no program comes between the two. */
static int prepare(struct run *r, struct err *e)
{
	int ret = window_new(&r->window, e);

	if (!ret)
		ret = begin_page(r, e);
	if (!ret && !r->o->dry_run)
		ret = outdir_prepare(r->o->dir, r->o->access, &r->made_dir, e);
	if (!ret && !r->o->dry_run)
		ret = family_open(0, &r->family, e);
	if (!ret)
		ret = look_around(r, e);
	if (!ret)
		ret = plan(r, r->o->dry_run ? stdout : stderr, e);
	return ret;
}

static int start(struct run *r, struct err *e)
{
	/* twice as many, because others may start */
	unsigned expected = (unsigned)r->wanted.n * (r->o->all ? 2 : 1);
	int ret = engine_open(&r->o->collect, &engine_cpu, expected, &r->engine, e);

	for (size_t i = 0; !ret && i < r->wanted.n; i++)
		add(r, r->wanted.at[i], false);
	if (!ret && !engine_targets(r->engine) && !r->o->all)
		return err_set(e, -ENOENT, "there is nothing to profile");
	if (!ret)
		ret = window_watch(r->window, engine_fd(r->engine), engine_ready, r, e);
	if (!ret)
		ret = window_watch(r->window, family_fd(r->family), nothing, NULL, e);
	return ret ? ret : engine_begin(r->engine, e);
}

static void observe(struct run *r)
{
	struct window_opts w = {
		.duration_ns = r->o->duration_ns, .stop_fd = r->o->stop_fd, .step = step, .arg = r
	};
	enum window_end end = WINDOW_OVER;
	struct err e = { "" };
	char time[NS_TEXT];

	tell("profiling the CPU time of %zu processes for %s", engine_targets(r->engine),
	     ns_text(r->o->duration_ns, time));
	if (window_wait(r->window, &w, &end, &r->lasted_ns, &e)) {
		tell("%s", e.msg);
		r->broken = true;
	}
	tell_bar(0, 0);
	if (end == WINDOW_STOP)
		tell("stopped after %s: writing what was collected", ns_text(r->lasted_ns, time));
	if (engine_end(r->engine, take, r, &e)) {
		tell("%s", e.msg);
		r->broken = true;
	}
}

int host_run(const struct host_opts *o)
{
	CLEANUP(run_fini) struct run r = { .o = o };
	struct err e = { "" };
	int ret = prepare(&r, &e);

	if (!ret && o->dry_run)
		return r.lossy || r.failed ? EXIT_LOSSES : EXIT_DONE;
	if (!ret)
		ret = start(&r, &e);
	if (ret) {
		tell("%s", e.msg);
		return EXIT_FAILED;
	}
	observe(&r);
	write_page(&r);
	tell_end(&r);
	if (r.broken)
		return EXIT_FAILED;
	return r.lossy ? EXIT_LOSSES : EXIT_DONE;
}
