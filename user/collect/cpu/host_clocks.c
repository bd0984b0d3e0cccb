/* user/collect/cpu/host_clocks.c - opened, given other periods, and opened anew. */
#include "collect/cpu/host_clocks.h"

#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "base/sys/caps.h"
#include "base/clock.h"
#include "base/cleanup.h"
#include "probe/bpf.h"

enum {
	CHECK_NS = NS_PER_S, /* from one reading of a clock to the next */
	SET_MAX = 16,	     /* calls in one turn that cost a CPU an interrupt */
};

static int open_fd(int cpu, uint64_t period_ns, struct err *e)
{
	static const int perfmon[] = { CAP_PERFMON };
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period_ns,
		.disabled = 1,
		.exclude_idle = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0 && (errno == EACCES || errno == EPERM))
		return caps_refused(e, "the kernel refused a clock of a CPU", perfmon, 1);
	return fd < 0 ? err_sys(e, "CPU %d: perf_event_open", cpu) : fd;
}

static void close_one(struct host_clock *k)
{
	closep(&k->link);
	closep(&k->fd);
	k->link = k->fd = -1;
}

/* A CPU that is switched off has none, which is no error. */
static int open_one(struct host_clocks *c, size_t cpu, struct err *e)
{
	struct host_clock *k = &c->at.at[cpu];
	int ret = open_fd((int)cpu, c->period_ns * c->weight, e);

	if (ret == -ENODEV || ret == -ENXIO)
		return 0;
	if (ret < 0)
		return ret;
	k->fd = ret;
	k->count = k->period.until_ns = 0;
	ret = bpf_put_on(c->prog_fd, k->fd, 0, &k->link, e);
	return ret ? err_wrap(e, ret, "CPU %zu", cpu) : 0;
}

int host_clocks_open(struct host_clocks *c, int prog_fd, uint64_t period_ns, struct err *e)
{
	int n = libbpf_num_possible_cpus(), ret;
	size_t open = 0;

	c->prog_fd = prog_fd;
	c->period_ns = period_ns;
	c->weight = 1;
	for (int cpu = 0; cpu < n; cpu++) {
		struct host_clock *k = vec_add(&c->at, INT32_MAX);

		if (!k)
			return err_set(e, -ENOMEM, "no memory for clocks");
		*k = (struct host_clock){ .fd = -1,
					  .link = -1,
					  .period.random = now_ns() + (uint64_t)cpu };
		ret = open_one(c, (size_t)cpu, e);
		if (ret)
			return ret;
		open += k->fd >= 0;
	}
	return open ? 0 : err_set(e, -ENODEV, "no CPU has a clock");
}

static int run(const struct host_clock *k)
{
	return k->fd >= 0 ? ioctl(k->fd, PERF_EVENT_IOC_ENABLE, 0) : 0;
}

int host_clocks_start(struct host_clocks *c, struct err *e)
{
	uint64_t now = now_ns();

	for (size_t i = 0; i < c->at.n; i++) {
		if (run(&c->at.at[i]))
			return err_sys(e, "starting the clock of a CPU");
		c->at.at[i].check_ns = now + CHECK_NS;
	}
	c->on = true;
	return 0;
}

void host_clocks_stop(struct host_clocks *c)
{
	for (size_t i = 0; i < c->at.n; i++)
		if (c->at.at[i].fd >= 0)
			ioctl(c->at.at[i].fd, PERF_EVENT_IOC_DISABLE, 0);
	c->on = false;
}

static bool set_period(const struct host_clocks *c, struct host_clock *k, uint64_t now)
{
	uint64_t period = uneven_period(&k->period, c->period_ns * c->weight, now);

	return period && !ioctl(k->fd, PERF_EVENT_IOC_PERIOD, &period);
}

void host_clocks_weigh(struct host_clocks *c, uint64_t weight)
{
	uint64_t now = now_ns();

	c->weight = weight;
	for (size_t i = 0; i < c->at.n; i++) {
		c->at.at[i].period.until_ns = 0;
		if (c->at.at[i].fd >= 0)
			(void)set_period(c, &c->at.at[i], now);
	}
}

static bool stands_still(struct host_clock *k)
{
	uint64_t before = k->count;

	return k->fd < 0 || read(k->fd, &k->count, sizeof(k->count)) != sizeof(k->count) ||
	       k->count == before;
}

/* What was refused is tried again: CPU time that no tick met is told. */
static void mend(struct host_clocks *c, size_t cpu)
{
	struct host_clock *k = &c->at.at[cpu];

	close_one(k);
	if (open_one(c, cpu, NULL) || run(k))
		close_one(k);
}

/* How many times it cost the CPU an interrupt. */
static size_t turn(struct host_clocks *c, size_t cpu, uint64_t now)
{
	struct host_clock *k = &c->at.at[cpu];
	size_t calls = 0;

	if (c->on && now >= k->check_ns) {
		k->check_ns = now + CHECK_NS;
		calls = k->fd >= 0;
		if (stands_still(k))
			mend(c, cpu);
	}
	return calls + (k->fd >= 0 && set_period(c, k, now));
}

void host_clocks_turn(struct host_clocks *c)
{
	uint64_t now = now_ns();
	size_t calls = 0;

	for (size_t i = 0; i < c->at.n && calls < SET_MAX; i++) {
		c->next = (c->next + 1) % c->at.n;
		calls += turn(c, c->next, now);
	}
}

void host_clocks_close(struct host_clocks *c)
{
	for (size_t i = 0; i < c->at.n; i++)
		close_one(&c->at.at[i]);
	vec_fini(&c->at);
}
