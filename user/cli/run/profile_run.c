/* user/cli/run/profile_run.c - which processes are profiled, and for how long. */
#include "cli/run/profile_run.h"

#include <poll.h>

#include "base/loop/cancel.h"
#include "base/clock.h"
#include "base/loop/loop.h"
#include "cli/cmd.h"
#include "cli/run/follow.h"
#include "cli/run/job.h"
#include "cli/run/outdir.h"
#include "cli/run/spawn.h"
#include "cli/stop.h"
#include "cli/tell.h"

enum { EXIT_CANNOT_RUN = 126, EXIT_NOT_FOUND = 127 }; /* the numbers that shells use */

/* How often a command that is not Go is looked at: it may have loaded a Go library. */
#define LOOK_MIN_NS 100000000ull
#define LOOK_MAX_NS 5000000000ull

struct run {
	const struct run_opts *o;
	struct loop *loop;
	struct job *jobs; /* those being profiled */
	struct job *root; /* the job of -p; it is one of jobs */
	struct spawn *spawn;
	struct follow *follow; /* NULL: nobody is followed, or no longer */
	struct attacher_process
		*attachers; /* of the jobs and of those that are followed; NULL: none yet */
	struct run_files files;
	size_t njobs;	  /* all that there were, finished ones included */
	size_t nfollowed; /* programs, when follow is over */
	bool first_job;	  /* step() ends the wait when there is a job */
	bool closed;	  /* the window is over, and nothing new is begun */
	bool failed, lossy, gone;
	bool made_dir;
	uint64_t exec_ns;	   /* exec of the command's last program that was no Go program */
	uint64_t look_ns, wait_ns; /* when to look for a Go library in it; the pause before that */
	struct err why;		   /* how the target ended; why the command is no Go program */
};

static void run_fini(struct run *r)
{
	struct job *next;

	for (struct job *j = r->jobs; j; j = next) {
		next = j->next;
		job_free(j);
	}
	follow_free(r->follow);
	spawn_free(r->spawn);
	loop_free(r->loop);
	if (r->made_dir && !r->files.n)
		rmdir(r->o->to.dir);
	run_files_fini(&r->files);
}

static bool asked_to_stop(const struct run *r)
{
	struct pollfd p = { .fd = r->o->stop_fd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

static int nothing(void *arg)
{
	(void)arg;
	return 0; /* step() looks at it */
}

/* ---- jobs ---- */

/* Removes the job from the list, writes its files and keeps what must be known at the end. */
static void retire(struct run *r, struct job *j)
{
	struct job **p = &r->jobs;

	while (*p != j)
		p = &(*p)->next;
	*p = j->next;
	if (r->root == j)
		r->root = NULL;
	if (j->origin != JOB_LIVE && !j->gone)
		job_alive(j, NULL); /* the command's end may be known before that of its job */
	job_finish(j, &r->files);
	r->failed |= j->failed || r->files.broken || r->files.unread;
	r->lossy |= j->lossy;
	job_free(j);
}

static void retire_all(struct run *r)
{
	while (r->jobs)
		retire(r, r->jobs);
}

static struct job *job_of(struct run *r, pid_t pid)
{
	for (struct job *j = r->jobs; j; j = j->next)
		if (j->pid == pid)
			return j;
	return NULL;
}

/* One helper process keeps the probes of all. */
static int open_job(struct run *r, pid_t pid, enum job_origin origin, struct job **out,
		    struct err *e)
{
	return job_open(r->o, pid, origin, r->follow ? &r->attachers : NULL, out, e);
}

static void announce(const struct run *r, const struct job *j)
{
	const struct run_opts *o = r->o;
	char kinds[128], time[NS_TEXT];

	job_kinds_text(j, kinds, sizeof(kinds));
	ns_text(o->duration_ns, time);
	tell("profiling pid %d (%s, %s) %s%s: %s", j->pid, o->subject->comm(j->subject),
	     o->subject->go_version(j->subject), o->duration_ns ? "for " : "until it ends",
	     o->duration_ns ? time : "", kinds);
}

/* Takes the job over. False: no kind could be started. */
static bool begin(struct run *r, struct job *j)
{
	if (!job_start(j, r->loop)) {
		r->failed = true;
		job_free(j);
		return false;
	}
	j->next = r->jobs;
	r->jobs = j;
	r->njobs++;
	if (j->origin != JOB_MET)
		announce(r, j);
	return true;
}

/* ---- the children's programs ---- */

/* Not the one that the process is held for, or for which its job was opened; the job of the one before it is over. */
static bool is_followed(void *arg, const struct exec_seen *x)
{
	struct run *r = arg;
	struct job *j = job_of(r, x->pid);
	struct err e = { "" };

	if (r->spawn && x->pid == spawn_pid(r->spawn) && spawn_traces(r->spawn))
		return false;
	if (!j)
		return true;
	if (job_alive(j, &e))
		return false;
	if (j == r->root)
		tell("%s: it is followed from there on", e.msg);
	retire(r, j);
	return true;
}

static int open_follow(struct run *r, struct err *e)
{
	const struct follow_opts o = { .run = r->o,
				       .loop = r->loop,
				       .files = &r->files,
				       .attachers = &r->attachers,
				       .wants = is_followed,
				       .arg = r };

	return r->o->follow ? follow_open(&o, &r->follow, e) : 0;
}

static int begin_follow(struct run *r, pid_t root, struct err *e)
{
	return r->follow ? follow_begin(r->follow, root, e) : 0;
}

static void end_follow(struct run *r)
{
	struct follow_sum sum;

	if (!r->follow)
		return;
	follow_end(r->follow);
	sum = follow_sum(r->follow);
	r->nfollowed = sum.n;
	r->failed |= sum.failed || r->files.broken || r->files.unread;
	r->lossy |= sum.lossy;
	follow_free(TAKE(r->follow));
}

/* Programs that are or were observed. */
static size_t nprograms(const struct run *r)
{
	return r->njobs + (r->follow ? follow_sum(r->follow).n : r->nfollowed);
}

/* ---- the command ---- */

/* Looks at a program that is in place in the command's process, and releases it when it is Go. */
static void try_image(struct run *r, enum job_origin origin)
{
	struct job *j = NULL;
	int ret;

	if (spawn_lost_setid(r->spawn))
		tell("%s runs without the rights of its owner, which a program that is held does "
		     "not get: run goprof-bpf itself with them, or with CAP_SYS_PTRACE",
		     r->o->command[0]);
	ret = open_job(r, spawn_pid(r->spawn), origin, &j, &r->why);
	if (ret == -ENOENT) {
		if (origin == JOB_HELD)
			r->exec_ns = now_ns();
		r->look_ns = r->exec_ns + LOOK_MIN_NS;
		r->wait_ns = LOOK_MIN_NS;
		spawn_continue(r->spawn);
		return;
	}
	if (ret) {
		tell("%s", r->why.msg);
		r->failed = true;
	} else {
		j->exec_ns = r->exec_ns;
		begin(r, j);
	}
	spawn_release(r->spawn);
}

/*
 * A C program may load a Go library while it runs, and cannot be held for that. So it is looked
 * at from time to time, and less and less often.
 */
static void try_library(struct run *r)
{
	uint64_t now = now_ns();
	struct job *j = NULL;

	if (!r->look_ns || now < r->look_ns)
		return;
	r->wait_ns = r->wait_ns < LOOK_MAX_NS ? 2 * r->wait_ns : LOOK_MAX_NS;
	r->look_ns = now + r->wait_ns;
	if (open_job(r, spawn_pid(r->spawn), JOB_MET, &j, NULL))
		return;
	j->exec_ns = r->exec_ns;
	begin(r, j);
}

/* True when the command has ended. */
static bool command_news(struct run *r, bool tick)
{
	enum spawn_state state = spawn_step(r->spawn);

	if (state == SPAWN_HELD && r->closed)
		spawn_release(r->spawn);
	else if (state == SPAWN_HELD)
		try_image(r, JOB_HELD);
	else if (state != SPAWN_RUNS || !tick || nprograms(r) || r->failed || r->closed)
		;
	else if (spawn_not_held(r->spawn))
		try_image(r, JOB_MET);
	else if (!r->o->follow)
		try_library(r);
	return state == SPAWN_ENDED;
}

/* ---- one window for all ---- */

static void look_after(struct run *r, bool tick)
{
	struct job *next;

	for (struct job *j = r->jobs; j; j = next) {
		struct err e = { "" };

		next = j->next;
		if ((j->ready || tick) && !job_alive(j, &e)) {
			if (j == r->root) {
				r->gone = true;
				r->why = e;
				return;
			}
			retire(r, j);
		} else if (tick) {
			job_tick(j);
		}
	}
}

static bool step(void *arg, bool tick, uint64_t done_ns)
{
	struct run *r = arg;

	if (tick && !r->o->command)
		tell_bar(done_ns, r->o->duration_ns);
	if (r->follow)
		follow_step(r->follow, tick);
	look_after(r, tick);
	if (r->gone)
		return true;
	if (r->spawn && command_news(r, tick))
		return true;
	return r->first_job && r->njobs;
}

static enum loop_end wait_for(struct run *r, uint64_t duration_ns)
{
	struct loop_opts l = {
		.duration_ns = duration_ns, .stop_fd = r->o->stop_fd, .step = step, .arg = r
	};
	enum loop_end end = LOOP_OVER;
	char time[NS_TEXT];
	uint64_t lasted = 0;
	struct err e = { "" };
	int ret = loop_wait(r->loop, &l, &end, &lasted, &e);

	tell_bar(0, 0);
	if (ret) {
		tell("%s", e.msg);
		r->failed = true;
	}
	if (r->gone)
		tell("%s after %s: writing what was collected", r->why.msg, ns_text(lasted, time));
	else if (end == LOOP_STOP)
		tell("stopped after %s: writing what was collected", ns_text(lasted, time));
	return end;
}

/* ---- a process that runs ---- */

static int prepare_live(struct run *r)
{
	const struct run_opts *o = r->o;
	struct job *j = NULL;
	struct err e = { "" };
	bool begun;

	stop_at_once(true);
	if (loop_new(&r->loop, &e) || open_job(r, o->pid, JOB_LIVE, &j, &e)) {
		tell("%s", e.msg);
		return -1;
	}
	stop_at_once(false);
	r->root = r->jobs = j;
	if (outdir_prepare(o->to.dir, o->to.access, &r->made_dir, &e) || open_follow(r, &e) ||
	    begin_follow(r, o->pid, &e)) {
		tell("%s", e.msg);
		return -1;
	}
	job_step_done(j, "opened");
	if (asked_to_stop(r)) {
		tell("stopped before anything was collected");
		return -1;
	}
	r->jobs = NULL;
	cancel_when(stop_asked_ms);
	begun = begin(r, j);
	cancel_when(NULL);
	return begun ? 0 : -1;
}

static int run_live(struct run *r)
{
	if (prepare_live(r))
		return EXIT_FAILED;
	wait_for(r, r->o->duration_ns);
	if (r->root)
		job_step_done(r->root, "collected");
	retire_all(r);
	end_follow(r);
	if (r->failed)
		return EXIT_FAILED;
	return r->lossy || r->gone ? EXIT_LOSSES : EXIT_DONE;
}

/* ---- a command ---- */

/* Returns 0, or the exit status. */
static int start_command(struct run *r)
{
	const struct run_opts *o = r->o;
	struct err e = { "" };
	bool failed_exec = false;
	int ret;

	/*
	 * What can fail for known reasons is tried first, so that the command is not started in
	 * vain.
	 */
	ret = loop_new(&r->loop, &e);
	if (!ret)
		ret = outdir_prepare(o->to.dir, o->to.access, &r->made_dir, &e);
	if (!ret)
		ret = open_follow(r, &e);
	if (!ret)
		ret = spawn_start(o->command, &r->spawn, &failed_exec, &e);
	if (ret) {
		tell("%s", e.msg);
		return !failed_exec   ? EXIT_FAILED :
		       ret == -ENOENT ? EXIT_NOT_FOUND :
					EXIT_CANNOT_RUN;
	}
	if (loop_watch(r->loop, spawn_fd(r->spawn), nothing, NULL, &e) ||
	    begin_follow(r, spawn_pid(r->spawn), &e)) {
		tell("%s: the command runs unobserved", e.msg);
		r->failed = true;
		spawn_release(r->spawn);
	}
	r->exec_ns = now_ns();
	if (spawn_not_held(r->spawn))
		tell("the command cannot be held at its start (%s): its first moments are missing",
		     spawn_not_held(r->spawn));
	return 0;
}

static void observe_command(struct run *r)
{
	enum loop_end end = LOOP_TIME;

	/* the time counts from the first instruction on */
	if (r->o->duration_ns && !r->o->follow) {
		r->first_job = true;
		end = wait_for(r, 0);
		r->first_job = false;
	}
	if (!r->o->duration_ns || r->njobs || r->o->follow)
		end = wait_for(r, r->o->duration_ns);
	retire_all(r);
	end_follow(r);
	r->closed = true;
	if (end == LOOP_TIME)
		wait_for(r, 0); /* until it ends */
}

static int run_command(struct run *r)
{
	int ret = start_command(r);

	if (ret)
		return ret;
	observe_command(r);
	if (!nprograms(r) && !r->failed)
		tell("%s: nothing was profiled", r->why.msg[0] ? r->why.msg : r->o->command[0]);
	spawn_reap(r->spawn);
	return spawn_status(r->spawn);
}

int profile_run(const struct run_opts *o)
{
	CLEANUP(run_fini) struct run r = { .o = o, .files.to = &o->to };

	return o->command ? run_command(&r) : run_live(&r);
}
