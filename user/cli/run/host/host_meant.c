/* user/cli/run/host/host_meant.c - the processes that were named, or fit the patterns; and those of which nobody knows. */
#include "cli/run/host/host_meant.h"

#include "base/limits.h"
#include "cli/run/host/host_table.h"
#include "cli/tell.h"

int host_judge(void *opts, const struct survey_proc *p)
{
	const struct host_opts *o = opts;

	return (int)pick_judge(&o->pick, p);
}

static bool listed(const struct host_opts *o, pid_t pid)
{
	for (size_t i = 0; i < o->npids; i++)
		if (o->pids[i] == pid)
			return true;
	return false;
}

bool host_means(const struct host_opts *o, const struct survey_proc *p)
{
	return o->all ? p->judged == PICK_FITS : listed(o, p->pid);
}

bool host_may_mean(const struct host_opts *o, const struct survey_proc *p)
{
	return o->all ? p->judged != PICK_NOT : !p->no_go && listed(o, p->pid);
}

void host_head(const struct host_opts *o, const struct survey *s, size_t found, size_t closed,
	       FILE *f)
{
	char go[TEXT_COUNTED], all[TEXT_COUNTED], more[TEXT_COUNTED];

	fprintf(f, "%s meant, of %s", counted(found, "Go process is", "Go processes are", go),
		processes(s->seen, all));
	if (closed)
		fprintf(f, "; of %s that could not be looked at nobody knows",
			processes(closed, more));
	if (s->hidden)
		fprintf(f, "; other users' processes are hidden (hidepid)");
	fputc('\n', f);
	if (found + closed)
		fprintf(f, "%8s  %-10s  %-8s  %-15s  %-*s  %s\n", "PID", "USER", "GO", "PROGRAM",
			table_width(o), "WHAT", "MODULE");
}

/* Those that cannot be looked at for one reason. */
struct closed {
	const struct survey_proc *first;
	size_t n;
};
enum { REASONS = 4 }; /* what has another one counts with the last */

static void count_closed(struct closed *all, const struct survey_proc *p)
{
	size_t i = 0;

	while (i < REASONS - 1 && all[i].n && strcmp(all[i].first->cpu.why, p->cpu.why))
		i++;
	all[i].first = all[i].first ?: p;
	all[i].n++;
}

static void fail(struct unseen *u, const struct survey_proc *p)
{
	some_add(u->failed, p->pid, p->comm, &(struct err){ "" });
}

/* Those that are silent, those that may not be looked at, and what was named and is no Go program. */
static void tell_closed(const struct host_opts *o, const struct survey *s, struct unseen *u)
{
	struct closed denied[REASONS] = { { 0 } };
	char n[TEXT_COUNTED];

	for (size_t i = 0; i < s->closed.n; i++) {
		const struct survey_proc *p = &s->closed.at[i];

		if (p->no_go) {
			tell("%s", p->cpu.why);
			fail(u, p);
		}
		if (!host_may_mean(o, p))
			continue;
		if (p->silent) {
			tell("pid %d: %s: it is left out", p->pid, p->cpu.why);
			fail(u, p);
		} else {
			count_closed(denied, p);
		}
	}
	for (size_t i = 0; i < REASONS && denied[i].n; i++) {
		u->lossy = true;
		tell("%s could not be looked at: pid %d (%s)%s: %s%s", processes(denied[i].n, n),
		     denied[i].first->pid, denied[i].first->comm,
		     denied[i].n > 1 ? " and others" : "", denied[i].first->cpu.why,
		     o->all ? "; --exclude leaves out what is not meant" : "");
	}
}

static void tell_doubtful(const struct host_opts *o, const struct survey *s, struct unseen *u)
{
	for (size_t i = 0; i < s->at.n; i++) {
		const struct survey_proc *p = &s->at.at[i];

		if (!host_may_mean(o, p) || host_means(o, p))
			continue;
		tell("pid %d (%s): nobody knows whether it is meant, as its command line is longer than %d KB or cannot be read: it is left out",
		     p->pid, p->comm, LIMIT_COMMAND >> 10);
		fail(u, p);
	}
}

void host_tell_unseen(const struct host_opts *o, struct survey *s, struct unseen *u)
{
	char n[TEXT_COUNTED];

	tell_closed(o, s, u);
	tell_doubtful(o, s, u);
	if (s->left_out)
		tell("%s not looked at: too many",
		     counted(s->left_out, "process was", "processes were", n));
	if (s->hidden)
		tell("/proc hides other users' processes (hidepid), and they are left out: run as root");
	some_count(u->failed, s->left_out);
	u->lossy |= s->hidden;
	s->left_out = 0;
	s->hidden = false;
}
