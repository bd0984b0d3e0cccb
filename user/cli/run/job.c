/* user/cli/run/job.c - one process: open, start, drain, stop, write. */
#include "cli/run/job.h"

#include <stdarg.h>

#include "base/clock.h"
#include "cli/run/follow.h"
#include "cli/run/losses.h"
#include "cli/tell.h"

enum { REFRESH_FIRST_MS = 10, WHOSE_TEXT = 64 };

/* Prints a line about this process; it names the process when there are several. */
__attribute__((format(printf, 2, 3))) static void about(const struct job *j, const char *fmt, ...)
{
	char text[1536];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (j->o->follow)
		tell("pid %d (%s): %s", j->pid, j->o->subject->comm(j->subject), text);
	else
		tell("%s", text);
}

static void say_line(void *arg, const char *line)
{
	about(arg, "%s", line);
}

void job_step_done(struct job *j, const char *what)
{
	uint64_t now = now_ns();
	char took[NS_TEXT];

	if (j->o->verbose)
		about(j, "%s in %s", what, ns_text(now - j->since_ns, took));
	j->since_ns = now;
}

int job_open(const struct run_opts *o, pid_t pid, enum job_origin origin,
	     struct attacher_process **attachers, struct job **out, struct err *e)
{
	CLEANUP(job_freep) struct job *j = calloc(1, sizeof(*j));
	int ret;

	BUG_ON(o->nkinds > JOB_KINDS_MAX);
	if (!j)
		return err_set(e, -ENOMEM, "pid %d: no memory", pid);
	j->o = o;
	j->pid = pid;
	j->origin = origin;
	j->pidfd = -1;
	j->since_ns = now_ns();
	j->collect = o->collect;
	j->collect.attachers = attachers;
	j->collect.held = origin == JOB_HELD;
	j->collect.others = o->nkinds > 1;
	/* Until the subject is open there is no name to go with its number. */
	ret = o->subject->open(pid, &j->collect, &j->subject, e);
	if (ret)
		return ret;
	if (j->collect.say) {
		j->collect.say = say_line;
		j->collect.say_arg = j;
	}
	j->n = o->nkinds;
	for (size_t i = 0; i < j->n; i++)
		j->slots[i] = (struct job_slot){ .job = j, .c = o->kinds[i], .fd = -1 };
	*out = TAKE(j);
	return 0;
}

static void unwatch(struct job *j)
{
	if (!j->loop)
		return;
	for (size_t i = 0; i < j->n; i++)
		loop_unwatch(j->loop, j->slots[i].fd);
	loop_unwatch(j->loop, j->pidfd);
	j->loop = NULL;
}

void job_free(struct job *j)
{
	if (!j)
		return;
	unwatch(j);
	for (size_t i = 0; i < j->n; i++) {
		if (j->slots[i].state)
			j->slots[i].c->free(j->slots[i].state);
		prof_free(j->slots[i].prof);
	}
	if (j->subject)
		j->o->subject->free(j->subject);
	free(j);
}

/* ---- the window ---- */

static int drain(void *arg)
{
	struct job_slot *s = arg;
	struct err e = { "" };
	int ret = s->c->poll(s->state, &e);

	if (!ret || ret == -ESRCH) /* whoever watches for its end reports that */
		return ret;
	about(s->job, "%s: %s", s->c->kind, e.msg);
	s->job->failed = true;
	return ret;
}

static int exited(void *arg)
{
	struct job *j = arg;

	j->ready = true;
	return 1;
}

static void cannot_start(struct job *j, struct job_slot *s, int ret, const struct err *e)
{
	s->state = NULL;
	s->fd = -1; /* the descriptor is closed, and its number may be given to another job */
	j->stopped |= ret == -ECANCELED;
	about(j, "%s: %s", s->c->kind, e->msg);
	j->failed = true;
}

static bool start_one(struct job *j, struct job_slot *s)
{
	struct err e = { "" };
	int ret = s->c->start(j->subject, &j->collect, &s->state, &e);

	if (!ret) {
		s->fd = s->c->fd ? s->c->fd(s->state) : -1;
		ret = loop_watch(j->loop, s->fd, drain, s, &e);
		if (!ret)
			return true;
		s->c->free(s->state);
	}
	cannot_start(j, s, ret, &e);
	return false;
}

/*
 * Called when all kinds are ready, so that none is polled while others are still being prepared.
 */
static bool begin_one(struct job *j, struct job_slot *s)
{
	struct err e = { "" };
	int ret = s->state && s->c->begin ? s->c->begin(s->state, &e) : 0;

	if (!ret)
		return true;
	loop_unwatch(j->loop, s->fd);
	s->c->free(s->state);
	cannot_start(j, s, ret, &e);
	return false;
}

size_t job_start(struct job *j, struct loop *w)
{
	struct err e = { "" };
	size_t started = 0;

	j->loop = w;
	for (size_t i = 0; i < j->n && !j->stopped; i++)
		started += start_one(j, &j->slots[i]);
	for (size_t i = 0; i < j->n; i++)
		started -= !begin_one(j, &j->slots[i]);
	j->start_ns = now_ns();
	j->refresh_ns = j->start_ns + REFRESH_FIRST_MS * 1000000ull;
	if (!started)
		return 0;
	job_step_done(j, "attached");
	j->pidfd = j->o->subject->pidfd(j->subject);
	if (loop_watch(w, j->pidfd, exited, j, &e)) {
		about(j, "%s", e.msg);
		j->pidfd = -1; /* the tick notices the end, too */
	}
	return started;
}

void job_kinds_text(const struct job *j, char *buf, size_t cap)
{
	size_t n = 0;

	buf[0] = 0;
	for (size_t i = 0; i < j->n && n < cap; i++)
		if (j->slots[i].state)
			n += (size_t)snprintf(buf + n, cap - n, "%s%s", n ? ", " : "",
					      j->slots[i].c->kind);
}

bool job_alive(struct job *j, struct err *e)
{
	j->gone = j->o->subject->alive(j->subject, e) != 0;
	j->became = j->gone && j->o->subject->became(j->subject);
	if (!j->gone && j->ready) {
		err_set(e, -ESRCH, "the target exited");
		j->gone = true;
	}
	return !j->gone;
}

/*
 * A program loads its libraries when it starts; later ones are rare. So the mappings are looked
 * at less and less often.
 */
static void refresh(struct job *j)
{
	uint64_t now = now_ns();

	if (j->origin == JOB_LIVE || now < j->refresh_ns)
		return;
	j->o->subject->refresh(j->subject);
	j->refresh_ns = now + (now - j->start_ns);
}

void job_tick(struct job *j)
{
	refresh(j);
	for (size_t i = 0; i < j->n; i++) {
		struct job_slot *s = &j->slots[i];
		struct err e = { "" };

		if (!s->state || s->ticked_off || !s->c->tick || !s->c->tick(s->state, &e))
			continue;
		about(j, "%s: %s", s->c->kind, e.msg);
		s->ticked_off = j->failed = true;
	}
}

/* ---- the end ---- */

static void stop_all(struct job *j)
{
	if (!j->gone && j->origin != JOB_LIVE)
		j->o->subject->refresh(j->subject);
	for (size_t i = 0; i < j->n; i++) {
		struct job_slot *s = &j->slots[i];
		struct err e = { "" };

		if (!s->state)
			continue;
		if (s->c->stop(s->state, &s->prof, &e)) {
			about(j, "%s: %s", s->c->kind, e.msg);
			s->prof = NULL;
			j->failed = true;
		}
		s->c->free(s->state);
		s->state = NULL;
	}
	job_step_done(j, "detached");
}

/* Its end was reported before, with the time. */
static void report_losses(struct job *j, const struct job_slot *s)
{
	struct loss l = *prof_loss(s->prof);
	char whose[WHOSE_TEXT];

	j->lossy |= loss_total(&l) != 0;
	if (j->gone)
		l.n[LOSS_TARGET_GONE] = 0;
	if (j->o->follow)
		snprintf(whose, sizeof(whose), "pid %d (%s): %s", j->pid,
			 j->o->subject->comm(j->subject), s->c->kind);
	else
		snprintf(whose, sizeof(whose), "%s", s->c->kind);
	(void)losses_tell(&l, whose);
}

/*
 * Writes into the profile where the life of the process began and ended, as far as this profile
 * is concerned.
 */
static int tell_origin(const struct job *j, struct prof *p, struct err *e)
{
	const char *end = j->became ? "until it became another program (exec)" :
			  j->gone   ? "until it ended" :
				      "it ran on";

	if (j->origin == JOB_HELD)
		return prof_comment(p, e, "started by goprof-bpf: from its first instruction, %s",
				    end);
	return follow_comment(p, j->exec_ns, j->start_ns, end, e);
}

/* When a target that existed before us ends, that is a loss. When a command ends, that is not. */
static void tell_end(struct job *j, struct job_slot *s)
{
	struct err e = { "" };

	if (j->origin == JOB_LIVE)
		prof_loss(s->prof)->n[LOSS_TARGET_GONE] |= j->gone;
	else if (tell_origin(j, s->prof, &e))
		about(j, "%s: %s", s->c->kind, e.msg);
	if (j->became && j->origin != JOB_LIVE)
		prof_loss(s->prof)->n[LOSS_TARGET_GONE] = 1;
}

void job_finish(struct job *j, struct run_files *files)
{
	struct engine_identity id = { .pid = j->pid, .comm = j->o->subject->comm(j->subject) };
	uint64_t life = 0;

	unwatch(j);
	if (j->became && j->origin != JOB_LIVE)
		about(j,
		      "the command became another program (exec): what that does is not in "
		      "these profiles (%s)",
		      j->o->follow ? "it has its own if it is a Go program" : "--follow has it");
	stop_all(j);
	for (size_t i = 0; i < j->n; i++) {
		struct job_slot *s = &j->slots[i];

		if (!s->prof)
			continue;
		tell_end(j, s);
		life = life ?: run_files_life(files, j->pid);
		run_files_write(files, &id, life, s->c->kind, s->prof);
		if (!prof_nsamples(s->prof))
			about(j,
			      "%s: no samples: none was met; its comments say what was looked at",
			      s->c->kind);
		report_losses(j, s);
	}
	job_step_done(j, "written");
}
