/* user/probe/uprobes/heal.c - leftovers of all processes. */
#include <dirent.h>
#include <fcntl.h>
#include <time.h>

#include "base/clock.h"
#include "base/limits.h"
#include "probe/uprobes/leftovers.h"

static void closedirp(DIR **d)
{
	if (*d)
		closedir(*d);
}

static void tell(const struct heal_opts *o, const struct heal_found *f)
{
	if (o->told)
		o->told(o->arg, f);
}

static void add_up(struct heal_sum *sum, const struct heal_found *f, bool failed)
{
	sum->processes += f->found > 0;
	sum->found += f->found;
	sum->freed += f->freed;
	sum->barred += f->barred;
	sum->unseen += f->unseen;
	sum->failed += failed;
}

/* -EPERM: it may not be looked at. */
static int one_target(struct target *t, const struct heal_opts *o, struct heal_sum *sum,
		      struct err *e)
{
	struct heal_found f = { .pid = t->pid, .comm = t->comm, .why = "" };
	struct leftovers l = { 0 };
	int ret = leftovers_find(t, &l, e), healed = 0;

	if (ret)
		return ret;
	if (o->heal)
		healed = leftovers_heal(t, &l, e);
	f.found = l.at.n;
	f.freed = l.freed;
	f.barred = l.barred;
	f.unseen = l.unseen;
	if (healed == -ESRCH) { /* nothing is left of it, and of them */
		f.found = f.freed = f.barred = 0;
		healed = 0;
	}
	if (healed)
		f.why = e ? e->msg : "";
	add_up(sum, &f, healed != 0);
	if (f.found)
		tell(o, &f);
	leftovers_fini(&l);
	return 0;
}

static int one_process(pid_t pid, const struct heal_opts *o, struct heal_sum *sum, struct err *e)
{
	CLEANUP(target_freep) struct target *t = NULL;
	int ret = target_open(pid, &t, e);

	return ret ? ret : one_target(t, o, sum, e);
}

/* Digits and nothing else; 0 is no pid. */
static pid_t pid_of(const char *name)
{
	char *end;
	long v = *name >= '1' && *name <= '9' ? strtol(name, &end, 10) : 0;

	return v > 0 && v <= INT32_MAX && !*end ? (pid_t)v : 0;
}

/* Kernel threads have no executable. */
static bool has_exe(int proc_fd, const char *pid)
{
	char path[sizeof(((struct dirent *)0)->d_name) + 8], to[1];

	snprintf(path, sizeof(path), "%s/exe", pid);
	return readlinkat(proc_fd, path, to, sizeof(to)) >= 0 || errno == EACCES || errno == EPERM;
}

int heal_run(const struct heal_opts *o, struct heal_sum *out, struct err *e)
{
	CLEANUP(closedirp) DIR *proc = NULL;
	uint64_t until_ns = now_ns() + LIMIT_HEAL_MS * 1000000ull;
	const struct dirent *d;

	*out = (struct heal_sum){ 0 };
	if (o->pid)
		return one_process(o->pid, o, out, e);
	proc = opendir("/proc");
	if (!proc)
		return err_sys(e, "/proc");
	while ((d = readdir(proc)) != NULL) {
		pid_t pid = pid_of(d->d_name);
		struct err why = { "" };
		int ret;

		if (!pid || pid == getpid())
			continue;
		if (now_ns() > until_ns) {
			out->left_out += has_exe(dirfd(proc), d->d_name);
			continue;
		}
		ret = one_process(pid, o, out, &why);
		if (ret == -ECANCELED)
			return err_set(e, ret, "%s", why.msg);
		/* Those that have ended, and kernel threads, have no code. */
		if (ret && ret != -ESRCH && ret != -ENOENT) {
			out->denied++;
			tell(o, &(struct heal_found){ .pid = pid, .comm = "", .why = why.msg });
		}
	}
	return 0;
}
