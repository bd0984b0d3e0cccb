/* user/engine/probe_set.c - hands what becomes of a file's probes on to each target. */
#include "engine/probe_set.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/sysinfo.h>
#include <time.h>

#include "base/clock.h"
#include "probe/bpf.h"
#include "subject/binary.h"
#include "target/host/samefile.h"

enum { SPENT_WORDS = sizeof(struct gpb_spent) / 8, POLLED = 32 };

#define BEGIN_NS     1000000000ull /* the window of all does not wait for longer for probes to be in */
#define CPU_FRESH_NS 5000000 /* the sum of CPU times is asked for more often than it changes much */

/* ---- what the probes take, and of whose CPU time ---- */

static void read_cpu(struct set_member *m)
{
	uint64_t ns = m->on ? clock_ns(m->t->clock) : 0;

	if (ns > m->base_ns + m->cpu_ns)
		m->cpu_ns = ns - m->base_ns;
}

static uint64_t cpu_of_all(void *arg)
{
	struct probe_set *s = arg;
	uint64_t now = now_ns(), sum = s->gone_cpu_ns;

	if (s->cpu_at && now - s->cpu_at < CPU_FRESH_NS)
		return s->cpu_ns;
	for (size_t i = 0; i < s->members.n; i++) {
		read_cpu(s->members.at[i]);
		sum += s->members.at[i]->cpu_ns;
	}
	s->cpu_at = now;
	s->cpu_ns = sum;
	return sum;
}

static int spent(void *arg, struct gpb_spent *out, struct err *e)
{
	struct probe_set *s = arg;

	return bpf_sum_cpus(bpf_map__fd(s->of->obj.sets), s->index, SPENT_WORDS, (uint64_t *)out,
			    e);
}

uint64_t probe_set_bystanders(const struct probe_set *s)
{
	struct gpb_spent sum = { 0 };

	(void)bpf_sum_cpus(bpf_map__fd(s->of->obj.bystanders), s->index, SPENT_WORDS,
			   (uint64_t *)&sum, NULL);
	return sum.hits;
}

/* Measured once for all sets: the first one's probes of that are taken out like any others. */
static int hit_cost(void *arg, struct hit_cost *out, struct cost_probes **rest, struct err *e)
{
	struct probe_set *s = arg;
	struct probe_sets *ss = s->of;
	int ret = 0;

	if (!ss->cost_known && s->members.n)
		ret = ss->kind->hit_cost(s->members.at[0]->part, ss->o->attachers, &ss->hit_cost,
					 rest, e);
	else if (!ss->cost_known)
		ret = err_set(e, -ENOENT, "nobody is there to be measured");
	if (ret)
		return ret;
	ss->cost_known = true;
	*out = ss->hit_cost;
	return 0;
}

/* ---- stretches ---- */

/* Its runtime's counts are read from its memory. One that has gone tells that itself. */
static void wake(struct set_member *m)
{
	if (m->on)
		target_wake(m->t->subject->target, NULL);
}

/* It is read again soon: in windows each few ms, if it is one of those that run. */
static void linger(struct set_member *m)
{
	if (m->on && !m->set->of->kind->watched)
		target_linger(m->t->subject->target);
}

static void rest(struct set_member *m)
{
	if (m->set->turn.windows)
		linger(m);
	else if (m->on)
		target_rest(m->t->subject->target);
}

/* What has not run has not changed. Its CPU time is read before its memory is: so nothing is missed. */
static bool is_still(struct set_member *m)
{
	uint64_t ns = m->on ? clock_ns(m->t->clock) : 0, before = m->over_cpu_ns;

	m->over_cpu_ns = ns;
	return ns && ns == before;
}

static int settle(struct probe_set *s, struct err *e)
{
	return s->of->kind->settle ? s->of->kind->settle(s, e) : 0;
}

static int turn_one(struct set_member *m, struct err *e)
{
	struct probe_set *s = m->set;
	int ret;

	wake(m);
	ret = s->of->kind->turn(m->part, s, &s->turn, e);
	rest(m);
	return ret;
}

/* Where that fails, the kind does without. */
static int put_standing(struct probe_set *s, struct uprobe_group *g)
{
	int ret;

	snprintf(g->path, sizeof(g->path), "/proc/self/fd/%d", s->fd);
	s->standing.all = s->of->o->attachers;
	ret = uprobes_hold(&s->standing, g, 1, s->of->multi, 0, NULL, NULL);
	return ret ? ret : uprobes_attach_again(&s->standing, NULL);
}

/* In windows: puts in what stays, or does so again when its attacher was killed. */
static void stand(struct probe_set *s)
{
	struct uprobe_group *g = s->of->kind->stays ? s->of->kind->stays(s->sites) : NULL;

	if (!s->turn.windows || !g)
		return;
	if (!s->standing.plan)
		s->stands = !put_standing(s, g);
	else if (s->stands && uprobes_dead(&s->standing))
		s->stands = !uprobes_attach_again(&s->standing, NULL);
}

static int turn(void *arg, bool windows, uint64_t since, double hit_ns, uint64_t window_ns,
		struct err *e)
{
	struct probe_set *s = arg;
	int ret = 0;

	s->turned = true;
	s->turn = (struct set_turn){
		.windows = windows, .since = since, .window_ns = window_ns, .hit_ns = hit_ns
	};
	s->full_ns = now_ns();
	s->own_ns = 0;
	stand(s);
	for (size_t i = 0; !ret && i < s->members.n; i++)
		ret = turn_one(s->members.at[i], e);
	return ret ? ret : settle(s, e);
}

/* Of full observation each has a part of its own. A window stands for its stratum, whenever its target came. */
static struct stretch part_of(const struct set_member *m, const struct stretch *st)
{
	struct stretch own = *st;

	own.still = m->still;
	if (!st->window && own.opened < m->t->since_ns)
		own.opened = m->t->since_ns < st->closed ? m->t->since_ns : st->closed;
	return own;
}

/* Of what is open of a window nothing is read before that. */
static void before(struct set_member *m, const struct stretch *st)
{
	struct stretch own;

	m->still = is_still(m);
	own = part_of(m, st);
	if (!st->window)
		wake(m);
	m->set->of->kind->before(m->part, &own);
	if (!st->window)
		linger(m);
}

static int after(struct set_member *m, const struct stretch *st, struct err *e)
{
	const struct stretch own = part_of(m, st);
	int ret;

	if (!st->window || !m->still)
		wake(m);
	ret = m->set->of->kind->after(m->part, &own, e);
	rest(m);
	return ret;
}

static int over(void *arg, const struct stretch *st, struct err *e)
{
	struct probe_set *s = arg;
	int ret;

	for (size_t i = 0; i < s->members.n; i++)
		before(s->members.at[i], st);
	ret = s->of->drain(s->of->arg, e);
	for (size_t i = 0; !ret && i < s->members.n; i++)
		ret = after(s->members.at[i], st, e);
	stand(s);
	s->full_ns = now_ns();
	return ret ? ret : settle(s, e);
}

/* ---- a set ---- */

/* A table by set that each CPU has for itself. */
static int clear(const struct bpf_map *map, uint32_t at, struct err *e)
{
	int cpus = libbpf_num_possible_cpus();
	CLEANUP(freep) void *zeros = calloc(cpus > 0 ? (size_t)cpus : 1, bpf_map__value_size(map));

	if (!zeros)
		return err_set(e, -ENOMEM, "no memory for probes");
	return bpf_map_update_elem(bpf_map__fd(map), &at, zeros, BPF_ANY) ?
		       err_sys(e, "table of probes") :
		       0;
}

static uint32_t free_index(const struct probe_sets *ss)
{
	uint32_t i = GPB_PRICED + 1;

	while (i < GPB_SETS && ss->at[i])
		i++;
	return i;
}

static bool has_number(const struct probe_set *s, const struct image *img)
{
	return s && s->dev == img->dev && s->inode == img->inode;
}

/*
 * A file that its process does not map any more has no number (open_exe() in subject/images.c): it is like no other. One
 * that containers have under several numbers is one to the kernel, and each of several sets would meet the hits of all.
 */
static struct probe_set *find(const struct probe_sets *ss, const struct image *img)
{
	if (!img->inode)
		return NULL;
	for (size_t i = 0; i < GPB_SETS; i++)
		if (has_number(ss->at[i], img))
			return ss->at[i];
	for (size_t i = 0; i < GPB_SETS; i++)
		if (ss->at[i] && same_file(ss->at[i]->fd, img->fd))
			return ss->at[i];
	return NULL;
}

/* The target that comes first may go before others of its set. */
static int keep_file(struct probe_set *s, const struct image *img, struct err *e)
{
	if (img->shared)
		s->binary = binary_share(img->shared);
	s->fd = s->binary ? img->fd : fcntl(img->fd, F_DUPFD_CLOEXEC, 0);
	return s->fd < 0 ? err_sys(e, "the file that is to be probed") : 0;
}

static void release_file(struct probe_set *s)
{
	if (s->binary)
		binary_put(s->binary);
	else
		closep(&s->fd);
}

/* The target that comes first finds the sites. */
static int fill(struct probe_set *s, struct set_member *m, struct err *e)
{
	int ret = s->of->kind->find(m->part, s->index, &s->list, &s->groups, &s->ngroups, &s->sites,
				    e);

	if (!ret)
		ret = keep_file(s, &m->t->subject->images.at[0], e);
	if (ret)
		return ret;
	for (size_t i = 0; i < s->ngroups; i++)
		snprintf(s->groups[i].path, sizeof(s->groups[i].path), "/proc/self/fd/%d", s->fd);
	ret = clear(s->of->obj.sets, s->index, e);
	return ret ? ret : clear(s->of->obj.bystanders, s->index, e);
}

enum { LOST_MAX = 1024 }; /* files: more are one line */

void probe_sets_lost(struct probe_sets *ss, const char *what, size_t targets,
		     const struct loss *loss)
{
	struct engine_shared *to;

	if (!loss_total(loss))
		return;
	to = vec_add(&ss->lost, LOST_MAX);
	if (to) {
		*to = (struct engine_shared){ .targets = targets, .loss = *loss };
		snprintf(to->what, sizeof(to->what), "%s", what);
	} else if (ss->lost.n) {
		to = &ss->lost.at[ss->lost.n - 1];
		to->targets += targets;
		loss_merge(&to->loss, loss);
	}
}

void probe_set_losses(struct probe_set *s, struct loss *out)
{
	if (!s->probing)
		return;
	probing_losses(s->probing, out);
	/* All sets' attachers are one process. */
	loss_at_least(&s->of->of_all, LOSS_ATTACHER_KILLED, out->n[LOSS_ATTACHER_KILLED]);
	out->n[LOSS_ATTACHER_KILLED] = 0;
}

/* What one member alone lost is told with its profile. */
static void tell_lost(struct probe_set *s)
{
	struct loss loss = { 0 };

	probe_set_losses(s, &loss);
	if (s->joined > 1)
		probe_sets_lost(s->of, s->what, s->joined, &loss);
}

/* Nobody polls it any more. */
static void unwatch(const struct probe_set *s)
{
	if (s->probing && probing_fd(s->probing) >= 0)
		epoll_ctl(s->of->ep, EPOLL_CTL_DEL, probing_fd(s->probing), NULL);
}

static void forget(struct probe_set *s)
{
	tell_lost(s);
	if (s->probing)
		s->of->gone_ns += (uint64_t)probing_spent_ns(s->probing);
	unwatch(s);
	probing_free(s->probing);
	uprobes_free(&s->standing);
	s->of->obj.open_for[s->index] = (struct gpb_open){ 0 };
	release_file(s);
	vec_fini(&s->members);
	free(s->list);
	free(s->sites);
	s->of->at[s->index] = NULL;
	free(s);
}

void probe_set_forget(struct probe_set *s)
{
	if (!--s->users)
		forget(s);
}

static int make(struct probe_sets *ss, struct set_member *m, struct err *e)
{
	const struct image *img = &m->t->subject->images.at[0];
	struct probe_set *s = calloc(1, sizeof(*s));
	uint32_t index = free_index(ss);
	int ret;

	if (!s)
		return err_set(e, -ENOMEM, "no memory for probes");
	if (index == GPB_SETS) {
		free(s);
		return err_set(e, -E2BIG,
			       "%d files are probed already, the most at once (the same program in "
			       "another file counts again): choose with --match or -p",
			       PROBE_SETS_MAX);
	}
	*s = (struct probe_set){
		.of = ss, .dev = img->dev, .inode = img->inode, .index = index, .fd = -1
	};
	snprintf(s->what, sizeof(s->what), "%.255s", m->t->subject->target->exe);
	ss->at[index] = s;
	ret = fill(s, m, e);
	if (ret) {
		forget(s);
		return ret;
	}
	s->users = 1;
	m->set = s;
	return 0;
}

int probe_set_of(struct probe_sets *ss, struct set_member *m, struct err *e)
{
	struct probe_set *s = find(ss, &m->t->subject->images.at[0]);

	if (!s)
		return make(ss, m, e);
	ss->kind->found(m->part, s->sites);
	s->users++;
	m->set = s;
	return 0;
}

static void fail(struct probe_set *s, int ret, const struct err *why)
{
	s->failed = ret;
	s->why = *why;
	unwatch(s);
	s->of->obj.open_for[s->index].bits = 0;
}

/* So many of its targets may run at the same time; at least one may come. */
static size_t at_once(const struct probe_set *s)
{
	size_t cpus = (size_t)get_nprocs(), n = s->members.n ? s->members.n : 1;

	return n < cpus ? n : cpus;
}

static int hold(struct probe_set *s, struct err *e)
{
	const struct probing_user u = {
		.what = s->of->kind->what,
		.open = &s->of->obj.open_for[s->index],
		.bss = s->of->obj.bss,
		.parts = s->of->kind->parts,
		.by_own = s->of->kind->by_own,
		.hit_cost = hit_cost,
		.spent = spent,
		.turn = turn,
		.over = over,
		.arg = s,
	};
	const struct probed_file f = { .fd = s->fd,
				       .attachers = s->of->o->attachers,
				       .exes = &s->of->exes,
				       .at_once = at_once(s),
				       .multi = s->of->multi,
				       .least = &s->of->least,
				       .cpu_ns = cpu_of_all,
				       .arg = s };
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = s };
	int ret = probing_new_file(&f, s->of->o, &u, &s->probing, e);

	if (ret)
		return ret;
	if (probing_fd(s->probing) >= 0 &&
	    epoll_ctl(s->of->ep, EPOLL_CTL_ADD, probing_fd(s->probing), &ev))
		return err_sys(e, "epoll");
	return probing_set(s->probing, s->groups, s->ngroups, e);
}

/*
 * How far they have come: all sets go through each step together, since their attachers work side by side. What follows comes
 * when they are polled.
 */
enum step { HOLD, ASK, STEPS };

static void begin_step(struct probe_set *s, enum step step)
{
	struct err why = { "" };
	int ret = 0;

	if (!s || s->failed)
		return;
	if (step == HOLD && s->list) {
		ret = hold(s, &why);
		free(TAKE(s->list));
	} else if (step == ASK) {
		ret = probing_begin_soon(s->probing, &why);
	}
	if (ret)
		fail(s, ret, &why);
}

/*
 * What others left behind costs the target as much as probes of ours do. Once probes of any kind are in, all that is there may
 * be those; and one that comes later has just been started.
 */
static void heal_first(struct set_member *m)
{
	struct probe_sets *ss = m->set->of;
	struct subject *s = m->t->subject;
	struct healing_found found = { 0 };

	if (!s->healed && !ss->begun) {
		ss->healing.attachers = ss->o->attachers;
		ss->healing.multi = ss->multi;
		healing_look(&ss->healing, s->target, &found);
		s->leftovers = found.n;
		s->not_searched = found.not_searched;
	}
	s->healed = true;
}

int probe_set_join(struct set_member *m, struct err *e)
{
	struct probe_set *s = m->set;
	struct set_member **at;
	int ret = 0;

	if (s->failed)
		return err_set(e, s->failed, "%s", s->why.msg);
	at = vec_add(&s->members, INT32_MAX);
	if (!at)
		return err_set(e, -ENOMEM, "no memory for a target");
	*at = m;
	heal_first(m);
	m->on = true;
	m->base_ns = clock_ns(m->t->clock);
	s->of->obj.set_of[demux_index(m->d.slot)] = s->index;
	ret = s->turned ? turn_one(m, e) : s->of->kind->joined(m->part, e);
	s->joined += !ret;
	if (ret)
		s->members.n--;
	else if (s->of->begun && !s->probing)
		begin_step(s, HOLD); /* the rest when it is polled */
	else if (s->probing)
		probing_file_at_once(s->probing, at_once(s));
	return ret;
}

void probe_set_pause(struct set_member *m)
{
	read_cpu(m);
	m->on = false;
}

void probe_set_leave(struct set_member *m)
{
	struct probe_set *s = m->set;
	uint64_t until = m->t->until_ns ?: now_ns();
	const struct stretch st = {
		.opened = s->full_ns > m->t->since_ns ? s->full_ns : m->t->since_ns,
		.closed = until,
		.weight = 1,
		.hit_ns = s->turn.hit_ns,
	};

	if (m->done)
		return;
	m->done = true;
	s->of->kind->leaves(m->part, s->turned && !s->turn.windows && !s->failed ? &st : NULL);
	for (size_t i = 0; i < s->members.n; i++)
		if (s->members.at[i] == m) {
			s->members.at[i] = s->members.at[--s->members.n];
			s->gone_cpu_ns += m->cpu_ns;
			break;
		}
	if (s->probing)
		probing_file_at_once(s->probing, at_once(s));
}

/* ---- all of them ---- */

static void begin_healing(struct probe_sets *ss)
{
	struct epoll_event ev = { .events = EPOLLIN };

	healing_begin(&ss->healing);
	if (healing_fd(&ss->healing) >= 0)
		epoll_ctl(ss->ep, EPOLL_CTL_ADD, healing_fd(&ss->healing), &ev);
}

static void end_healing(struct probe_sets *ss)
{
	if (healing_fd(&ss->healing) >= 0)
		epoll_ctl(ss->ep, EPOLL_CTL_DEL, healing_fd(&ss->healing), NULL);
	healing_end(&ss->healing);
}

static void poll_set(struct probe_set *s)
{
	struct err why = { "" };
	int ret = s->failed ? 0 : probing_poll(s->probing, &why);

	if (ret)
		fail(s, ret, &why);
}

/* What finds no room here is ready the next time, too. */
void probe_sets_poll(struct probe_sets *ss)
{
	struct epoll_event ev[POLLED];
	int n;

	if (healing_over(&ss->healing))
		end_healing(ss);
	n = epoll_wait(ss->ep, ev, POLLED, 0);
	for (int i = 0; i < n; i++)
		if (ev[i].data.ptr)
			poll_set(ev[i].data.ptr);
}

/* Waits until something of those that have not begun is to be polled; false: all have. */
static bool wait_for_some(const struct probe_sets *ss, int most_ms)
{
	struct pollfd p[GPB_SETS];
	nfds_t n = 0;

	for (size_t i = 0; i < GPB_SETS; i++) {
		const struct probe_set *s = ss->at[i];

		if (s && s->probing && !s->failed && probing_beginning(s->probing))
			p[n++] = (struct pollfd){ .fd = probing_fd(s->probing), .events = POLLIN };
	}
	return n && poll(p, n, most_ms) > 0;
}

/* One whose file takes the kernel long begins later, and the others do not wait for it. */
void probe_sets_begin(struct probe_sets *ss)
{
	uint64_t until = now_ns() + BEGIN_NS, now;

	ss->begun = true;
	ss->closed = false;
	begin_healing(ss);
	for (enum step step = HOLD; step < STEPS; step++)
		for (size_t i = 0; i < GPB_SETS; i++)
			begin_step(ss->at[i], step);
	while ((now = now_ns()) < until && wait_for_some(ss, (int)((until - now) / 1000000) + 1))
		probe_sets_poll(ss);
}

/* What is observed in full ends for all at the same moment: to take probes out takes the kernel long. */
static void close_set(struct probe_set *s)
{
	struct err why = { "" };
	int ret;

	for (size_t i = 0; i < s->members.n; i++) {
		wake(s->members.at[i]);
		s->of->kind->ending(s->members.at[i]->part);
		linger(s->members.at[i]);
	}
	s->ended_ns = now_ns();
	ret = s->failed ? 0 : probing_close(s->probing, &why);
	if (ret)
		fail(s, ret, &why);
}

static void end(struct probe_set *s)
{
	struct err why = { "" };
	int ret = probing_end(s->probing, &why);

	uprobes_free(&s->standing);
	s->stands = false;
	for (size_t i = 0; i < s->members.n; i++) {
		s->members.at[i]->done = true;
		s->gone_cpu_ns += s->members.at[i]->cpu_ns;
	}
	s->members.n = 0;
	if (ret)
		fail(s, ret, &why);
}

void probe_sets_close(struct probe_sets *ss)
{
	if (ss->closed)
		return;
	ss->begun = false;
	ss->closed = true;
	end_healing(ss);
	for (size_t i = 0; i < GPB_SETS; i++)
		if (ss->at[i] && ss->at[i]->probing)
			close_set(ss->at[i]);
	if (ss->kind->closed)
		ss->kind->closed(ss);
}

void probe_sets_end(struct probe_sets *ss)
{
	probe_sets_close(ss);
	for (size_t i = 0; i < GPB_SETS; i++) {
		struct loss loss = { 0 };

		if (!ss->at[i] || !ss->at[i]->probing)
			continue;
		end(ss->at[i]);
		probe_set_losses(ss->at[i], &loss);
	}
}

double probe_sets_spent_ns(const struct probe_sets *ss)
{
	double sum = (double)ss->gone_ns;

	for (size_t i = 0; i < GPB_SETS; i++)
		if (ss->at[i] && ss->at[i]->probing)
			sum += probing_spent_ns(ss->at[i]->probing);
	return sum;
}
