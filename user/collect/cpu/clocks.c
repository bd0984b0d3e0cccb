/*
 * user/collect/cpu/clocks.c - opens a clock for each thread; none is left out, none gets two that
 * count.
 */
#include "collect/cpu/clocks.h"

#include <bpf/bpf.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "base/sys/caps.h"
#include "base/limits.h"
#include "base/sys/nofile.h"
#include "goprof_abi.h"
#include "probe/bpf_old.h"

/* Threads are born while we list them. So many rounds are far more than any sane program needs. */
enum { MAX_ROUNDS = 100 };

/* *@children: the kernel (before Linux 5.13) lets child processes inherit clocks as well. */
static int open_event(pid_t tid, uint64_t step_ns, bool *children)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.sample_period = step_ns,
		.disabled = 1,
		.inherit = 1,
		.inherit_thread = !*children,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd >= 0 || errno != EINVAL || *children)
		return fd;
	*children = true;
	attr.inherit_thread = 0;
	return (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static int explain(struct err *e, int code, pid_t tid)
{
	char refused[64];

	if (code == EACCES || code == EPERM) {
		snprintf(refused, sizeof(refused), "thread %d: the kernel refused a CPU clock",
			 tid);
		return caps_refused_clock(e, refused, caps_paranoia());
	}
	if (code == EMFILE)
		return err_set(e, -EMFILE,
			       "thread %d: too many open files: raise the limit (ulimit -n)", tid);
	return err_set(e, -code, "thread %d: perf_event_open: %s", tid, strerror(code));
}

/*
 * Returns 1 when it was opened, 0 when the thread has ended. @own: what is known of a thread that was first seen
 * when clocks were running; else NULL.
 */
static int open_clock(struct clocks *c, pid_t tid, int prog_fd, int own_clock_fd,
		      const struct gpb_own_clock *own, struct err *e)
{
	uint32_t key = (uint32_t)tid;
	struct clock *clk = vec_add(&c->at, LIMIT_THREADS);
	uint64_t id;
	int ret;

	if (!clk)
		return err_set(e, -E2BIG, "more than %d threads", LIMIT_THREADS);
	*clk = (struct clock){ .fd = -1, .link_fd = -1 };
	/*
	 * The map is written before the clock is opened, because an inherited clock must not
	 * count beside it.
	 */
	if (own && bpf_map_update_elem(own_clock_fd, &key, own, BPF_ANY))
		return err_sys(e, "thread %d: own_clock", tid);
	clk->step_ns = c->step_ns + (own ? own->mark : 0);
	clk->fd = open_event(tid, clk->step_ns, &c->children);
	if (clk->fd < 0) {
		int code = errno;

		if (own)
			bpf_map_delete_elem(own_clock_fd, &key);
		c->at.n--;
		return code == ESRCH ? 0 : explain(e, code, tid);
	}
	ret = bpf_put_on(prog_fd, clk->fd, (uint64_t)tid, &clk->link_fd, e);
	if (ret)
		return err_wrap(e, ret, "thread %d", tid);
	if (ioctl(clk->fd, PERF_EVENT_IOC_ID, &id) || !map_put(&c->ids, id, c->at.n - 1))
		return err_sys(e, "thread %d: the number of its clock", tid);
	if (ioctl(clk->fd, PERF_EVENT_IOC_ENABLE, 0))
		return err_sys(e, "thread %d: starting its clock", tid);
	return 1;
}

/*
 * Returns how many threads had no clock yet, or a negative errno. @late: which round of looking at all threads it is; a
 * clock that a thread inherited was opened in an earlier one.
 */
static int round_of_threads(struct clocks *c, struct target *t, int prog_fd, int own_clock_fd,
			    int late, struct err *e)
{
	struct gpb_own_clock unknown = { .mark = bpf_is_old() ? (uint64_t)late : 0 };
	CLEANUP(freep) pid_t *tids = NULL;
	uint64_t known;
	size_t n;
	int fresh = 0, ret;

	ret = target_threads(t, &tids, &n, e);
	if (ret)
		return ret;
	for (size_t i = 0; i < n; i++) {
		if (map_get(&c->tids, (uint64_t)tids[i], &known))
			continue;
		ret = open_clock(c, tids[i], prog_fd, own_clock_fd, late ? &unknown : NULL, e);
		if (ret < 0)
			return ret;
		if (!map_put(&c->tids, (uint64_t)tids[i], 1))
			return err_set(e, -ENOMEM, "no memory for threads");
		fresh++;
	}
	return fresh;
}

int clocks_open(struct clocks *c, struct target *t, int prog_fd, int own_clock_fd, uint64_t step_ns,
		struct err *e)
{
	*c = (struct clocks){ .step_ns = step_ns };
	nofile_raise();
	for (int i = 0; i < MAX_ROUNDS; i++) {
		int ret = round_of_threads(c, t, prog_fd, own_clock_fd, i, e);

		if (ret < 0)
			return ret;
		if (!ret)
			return 0;
		c->overlapped |= i > 0;
	}
	/*
	 * Every round found new threads: those of the last round inherited a clock, or are
	 * counted here.
	 */
	c->missed++;
	return 0;
}

static void set_step(struct clock *clk, uint64_t step_ns)
{
	bool coarse = step_ns != 0;

	step_ns = step_ns ?: clk->step_ns;
	if (clk->coarse != coarse && !ioctl(clk->fd, PERF_EVENT_IOC_PERIOD, &step_ns))
		clk->coarse = coarse;
}

void clocks_set(struct clocks *c, uint64_t id, uint64_t step_ns)
{
	uint64_t at;

	if (map_get(&c->ids, id, &at))
		set_step(&c->at.at[at], step_ns);
}

void clocks_refine(struct clocks *c)
{
	for (size_t i = 0; i < c->at.n; i++)
		set_step(&c->at.at[i], 0);
}

void clocks_stop(struct clocks *c)
{
	for (size_t i = 0; i < c->at.n; i++)
		ioctl(c->at.at[i].fd, PERF_EVENT_IOC_DISABLE, 0);
}

uint64_t clocks_total_ns(const struct clocks *c)
{
	uint64_t sum = 0, v;

	if (c->overlapped)
		return 0;
	for (size_t i = 0; i < c->at.n; i++)
		if (read(c->at.at[i].fd, &v, sizeof(v)) == sizeof(v))
			sum += v;
	return sum;
}

void clocks_close(struct clocks *c)
{
	for (size_t i = 0; i < c->at.n; i++) {
		if (c->at.at[i].link_fd >= 0)
			close(c->at.at[i].link_fd);
		if (c->at.at[i].fd >= 0)
			close(c->at.at[i].fd);
	}
	vec_fini(&c->at);
	map_fini(&c->tids);
	map_fini(&c->ids);
}
