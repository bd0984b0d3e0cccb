/* user/engine/probed.c - slots, one ring and one table for all targets that are probed. */
#include "engine/probed.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/epoll.h>
#include <time.h>

#include "base/clock.h"
#include "probe/bpf.h"
#include "probe/bpf_old.h"
#include "probe/uprobes/uprobes.h"
#include "target/host/pidns.h"

enum { SLOTS_MIN = 128 }; /* many more may start than there are at first */

/* ---- samples ---- */

/* A stack that there is no room for is left out, as where there is no room for one target's. */
static int add_stack(void *arg, struct demux_target *d, const struct gpb_hash *key,
		     const struct gpb_stack *st)
{
	struct probed *p = arg;
	struct set_member *m = d->owner;
	int64_t n = p->kind->add(m->part, key, st, demux_has_room(&p->demux, d));

	if (n < 0)
		return (int)n;
	demux_keeps(&p->demux, d, (uint64_t)n);
	return 0;
}

static void take_other(void *arg, struct demux_target *d, const void *rec, size_t len)
{
	const struct probed *p = arg;

	p->kind->other(((struct set_member *)d->owner)->part, rec, len);
}

static int take_all(void *arg, struct err *e)
{
	struct probed *p = arg;

	return p->loaded ? demux_take(&p->demux, e) : 0;
}

/* ---- the object ---- */

int probed_watch(struct probed *p, int fd, struct err *e)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return epoll_ctl(p->sets.ep, EPOLL_CTL_ADD, fd, &ev) ? err_sys(e, "epoll") : 0;
}

void probed_size(struct probed *p, struct bpf_map *ring, struct bpf_map *stacks)
{
	demux_size(&p->demux, ring, stacks, p->expected);
}

static int open_object(struct probed *p, struct err *e)
{
	uint32_t ino;
	int ret = pidns_inode(&ino, e);

	if (ret)
		return ret;
	p->sets.multi = uprobes_have_multi();
	if (!p->sets.multi && bpf_is_old())
		return err_set(
			e, -ENOTSUP,
			"on kernels before Linux 5.15 a probe does not tell which it is, of a file "
			"that several processes run: it is probed with -p alone");
	ret = p->kind->open(p->arg, p, p->slots, ino, e);
	if (ret)
		return ret;
	p->sets.obj = p->object.sets;
	ret = demux_open(&p->demux, p->object.demux, add_stack, p, e);
	if (!ret)
		ret = probed_watch(p, reports_fd(&p->demux.reports), e);
	if (p->kind->other)
		p->demux.other = take_other;
	p->loaded = !ret;
	return ret;
}

static void close_object(struct probed *p)
{
	demux_fini(&p->demux);
	if (p->kind)
		p->kind->close(p->arg);
	p->loaded = false;
}

/* What was opened halfway has no ring: nobody may find it. */
static int need_object(struct probed *p, struct err *e)
{
	if (!p->loaded && !p->failed) {
		p->failed = open_object(p, &p->why);
		if (p->failed)
			close_object(p);
	}
	return p->failed ? err_set(e, p->failed, "%s", p->why.msg) : 0;
}

void probed_fini(struct probed *p)
{
	healing_end(&p->sets.healing);
	close_object(p);
	if (p->kind)
		closep(&p->sets.ep);
	vec_fini(&p->sets.lost);
	exes_fini(&p->sets.exes);
}

int probed_open(struct probed *p, const struct probed_kind *kind, void *arg,
		const struct collect_opts *o, unsigned expected, struct err *e)
{
	p->kind = kind;
	p->arg = arg;
	p->o = *o;
	p->o.say = NULL;
	p->o.budget.ahead_ns = 0;
	/* What many samples cost us is not in a target's budget. */
	p->o.heap.fine = p->o.block.fine = p->o.mutex.fine = p->o.wait.fine = false;
	p->sets.kind = &kind->set;
	p->sets.o = &p->o;
	p->sets.drain = take_all;
	p->sets.arg = p;
	p->expected = expected;
	p->slots = SLOTS_MIN;
	while (p->slots < GPB_CPU_TARGETS && p->slots < expected + 1)
		p->slots *= 2;
	p->sets.ep = epoll_create1(EPOLL_CLOEXEC);
	if (p->sets.ep < 0)
		return err_sys(e, "epoll");
	/* Why it cannot be loaded is told of the first target that needs it. */
	if (p->o.load_ahead && p->o.source != SOURCE_READ)
		(void)need_object(p, NULL);
	return 0;
}

int probed_fd(void *state)
{
	return ((const struct probed *)state)->sets.ep;
}

/* What finds no room in the table wakes us, too: so it is emptied as often as it fills. */
int probed_poll(struct probed *p, struct err *e)
{
	int ret = 0;

	if (p->loaded)
		ret = demux_fills(&p->demux) ? take_all(p, e) : demux_poll(&p->demux, e);
	if (!ret)
		probe_sets_poll(&p->sets);
	return ret;
}

/* ---- targets ---- */

int probed_zero(const struct bpf_map *map, uint32_t at, struct err *e)
{
	CLEANUP(freep)
	void *zeros = calloc((size_t)libbpf_num_possible_cpus(), bpf_map__value_size(map));

	if (!zeros)
		return err_set(e, -ENOMEM, "no memory for a target");
	return bpf_map_update_elem(bpf_map__fd(map), &at, zeros, BPF_ANY) ?
		       err_sys(e, "target table") :
		       0;
}

struct set_member *probed_member(const struct probed *p, uint32_t i)
{
	return p->demux.at[i] ? p->demux.at[i]->owner : NULL;
}

/* The slot is free, so nothing adds to what it has counted. */
static int take_slot(struct probed *p, struct set_member *m, struct loss *loss, struct err *e)
{
	uint32_t at = GPB_PRICED + 1;
	int ret;

	while (at < p->slots && p->demux.at[at])
		at++;
	if (at == p->slots)
		return err_set(e, -E2BIG, "more than %u processes are probed at once",
			       p->slots - 1);
	m->d = (struct demux_target){
		.slot = (uint32_t)p->generation[at] << GPB_SLOT_GENERATION | at,
		.s = m->t->subject,
		.loss = loss,
		.owner = m,
	};
	demux_put(&p->demux, &m->d);
	if (bpf_stale_fp(m->d.s))
		unwind_rules_foresee(&p->demux.reports.rules, m->d.s, UNWIND_RULES_FORESEEN_EACH);
	memset(p->object.tallies[at].lost, 0, sizeof(p->object.tallies[at].lost));
	ret = p->kind->clear(p->arg, at, e);
	return ret ? ret : p->kind->part_slot(m->part, at, e);
}

static void member_free(struct probed *p, struct set_member *m)
{
	if (m->d.owner) { /* it has a slot */
		demux_forget(&p->demux, &m->d);
		p->generation[demux_index(m->d.slot)]++;
	}
	if (m->set) {
		probe_set_leave(m);
		probe_set_forget(m->set);
	}
	p->kind->part_free(m->part);
	free(m);
}

static int begin_member(struct probed *p, struct set_member *m, struct err *e)
{
	uint32_t tgid = (uint32_t)m->t->id.pid;
	struct loss *loss;
	int ret;

	/* What is known of its file then comes from a copy, and nobody runs that. */
	if (!m->t->subject->target->exe_local)
		return err_set(e, -ENOTSUP,
			       "its executable is on a file system that may not answer: it is "
			       "probed with -p alone");
	if (m->t->subject->images.n > 1)
		return err_set(e, -ENOTSUP,
			       "it has loaded plugins, whose code is probed with -p alone");
	ret = p->kind->part_new(p->arg, m->t, &m->part, &loss, e);
	if (!ret)
		ret = take_slot(p, m, loss, e);
	if (!ret)
		ret = probe_set_of(&p->sets, m, e);
	if (!ret)
		ret = probe_set_join(m, e);
	if (ret)
		return ret;
	if (bpf_map_update_elem(bpf_map__fd(p->object.slot_of_tgid), &tgid, &m->d.slot, BPF_ANY))
		return err_sys(e, "target table");
	demux_share(&p->demux, ++p->nprobed);
	p->joined++;
	return 0;
}

int probed_add(struct probed *p, struct engine_target *t, struct set_member **out, struct err *e)
{
	struct set_member *m;
	int ret = need_object(p, e);

	if (ret)
		return ret;
	m = calloc(1, sizeof(*m));
	if (!m)
		return err_set(e, -ENOMEM, "no memory for a target");
	m->t = t;
	ret = begin_member(p, m, e);
	if (ret)
		member_free(p, m);
	else
		*out = m;
	return ret;
}

void probed_remove(void *state, struct engine_target *t)
{
	struct probed *p = state;
	uint32_t tgid = (uint32_t)t->id.pid;

	for (uint32_t i = 0; i < p->slots; i++) {
		struct set_member *m = probed_member(p, i);

		if (!m || m->t != t || !m->on)
			continue;
		bpf_map_delete_elem(bpf_map__fd(p->object.slot_of_tgid), &tgid);
		probe_set_pause(m);
		p->nprobed--;
	}
}

void probed_forget(struct probed *p, struct set_member *m)
{
	probed_remove(p, m->t);
	member_free(p, m);
}

/* ---- the window ---- */

void probed_begin(struct probed *p)
{
	p->demux.ticks = 0;
	p->missed = p->loaded ? reports_missed(p->object.obj) : 0;
	p->sets.lost.n = 0;
	probe_sets_begin(&p->sets);
}

int probed_tick(struct probed *p, struct err *e)
{
	if (!p->loaded)
		return 0;
	demux_share(&p->demux, p->nprobed);
	return demux_tick(&p->demux, e);
}

/* The kernel does not tell whose they were. */
static uint64_t missed_hits(const struct probed *p)
{
	return p->loaded ? reports_missed(p->object.obj) - p->missed : 0;
}

static struct loss lost_by_all(const struct probed *p)
{
	struct loss loss = p->sets.of_all;

	loss.n[LOSS_PROBES_MISSED] = missed_hits(p);
	return loss;
}

bool probed_forget_file(void *state, uint16_t number)
{
	struct probed *p = state;

	return !p->loaded || unwind_rules_forget(&p->demux.reports.rules, number);
}

uint64_t probed_taken_ns(void *state)
{
	return (uint64_t)probe_sets_spent_ns(&((struct probed *)state)->sets);
}

void probed_close(void *state)
{
	probe_sets_close(&((struct probed *)state)->sets);
}

void probed_stop(void *state)
{
	struct probed *p = state;
	struct loss loss;

	probe_sets_end(&p->sets);
	loss = lost_by_all(p);
	if (p->joined > 1)
		probe_sets_lost(&p->sets, "all programs that were probed", p->joined, &loss);
}

int probed_drain(void *state, struct err *e)
{
	struct probed *p = state;

	return p->loaded ? demux_drain(&p->demux, e) : 0;
}

int probed_done(void *state, struct err *e)
{
	struct probed *p = state;

	p->joined = 0;
	return p->loaded ? demux_done(&p->demux, e) : 0;
}

const struct engine_shared *probed_shared(void *state, size_t *n)
{
	const struct probed *p = state;

	*n = p->sets.lost.n;
	return p->sets.lost.at;
}

/* ---- profiles ---- */

/* Its part of the window: from the later of its own beginning and that of the probes on, to the earlier of the ends. */
static struct probed_part part_of(const struct set_member *m)
{
	const struct engine_target *t = m->t;
	uint64_t since = m->set->probing ? probing_since(m->set->probing) : 0;
	struct probed_part part = { .end_ns = (int64_t)(t->until_ns ?: now_ns()) };
	int64_t ended = (int64_t)m->set->ended_ns;

	/* One that is there at the end has all that its file's probes saw. */
	if (ended && (ended < part.end_ns || t->state == ENGINE_ON))
		part.end_ns = ended;
	part.start_ns = since ? (int64_t)(since > t->since_ns ? since : t->since_ns) : part.end_ns;
	if (part.start_ns > part.end_ns)
		part.start_ns = part.end_ns;
	part.start_unix_ns = t->since_unix_ns + part.start_ns - (int64_t)t->since_ns;
	return part;
}

int probed_finish(struct probed *p, struct set_member *m, struct probed_part *part, struct err *e)
{
	(void)p;
	probe_set_leave(m);
	*part = part_of(m);
	return m->set->failed ? err_set(e, m->set->failed, "%s", m->set->why.msg) : 0;
}

/* What is said of a process among many, and of those that share its probes. */
static int comment(const struct set_member *m, struct prof *prof, struct err *e)
{
	const struct engine_target *t = m->t;
	int ret = prof_comment(
		prof, e,
		"probes: in its file, for all that run it: hits and budget are of all; "
		"%llu hits of processes that are not profiled",
		(unsigned long long)probe_set_bystanders(m->set));

	if (!ret)
		ret = engine_tell_identity(t, prof, e);
	return ret;
}

static int comment_leftovers(const struct set_member *m, struct prof *prof, struct err *e)
{
	const struct healing *h = &m->set->of->healing;
	const struct subject *s = m->t->subject;

	if (s->not_searched)
		return prof_comment(prof, e,
				    "leftovers: not all of its code was searched for breakpoints "
				    "that a killed process may have left");
	if (!s->leftovers)
		return 0;
	return prof_comment(
		prof, e,
		"leftovers: there were %zu breakpoints in its code, of a process that was "
		"killed or of another profiler: %s%s",
		s->leftovers,
		h->failed ? "some may still be there: " :
			    "those that nobody uses were taken out while it was profiled",
		h->why.msg);
}

static int comment_lost(const struct loss *l, size_t targets, const char *of, struct prof *prof,
			struct err *e)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < LOSS_COUNT; i++)
		if (l->n[i])
			ret = prof_comment(prof, e, "lost by %zu processes together (%s): %llu %s",
					   targets, of, (unsigned long long)l->n[i],
					   loss_text((enum loss_kind)i));
	return ret;
}

/* Where it is alone what was lost is its own; else whose it is is not known, and it is told once (probe_sets_lost()). */
int probed_tell(struct probed *p, struct set_member *m, struct prof *prof, struct err *e)
{
	struct loss of_set = { 0 }, of_all = { 0 }, own = *m->d.loss;
	int ret = comment(m, prof, e);

	if (!ret)
		ret = comment_leftovers(m, prof, e);
	if (!ret)
		ret = unwind_rules_comment(&p->demux.reports.rules, m->t->subject, prof, e);
	if (ret)
		return ret;
	bpf_losses(&p->object.tallies[demux_index(m->d.slot)], &own);
	probe_set_losses(m->set, &of_set);
	of_all = lost_by_all(p);
	if (m->set->joined > 1)
		ret = comment_lost(&of_set, m->set->joined, "its file's probes", prof, e);
	else
		loss_merge(&own, &of_set);
	if (!ret && p->joined > 1)
		ret = comment_lost(&of_all, p->joined, "all that are probed", prof, e);
	else if (!ret)
		loss_merge(&own, &of_all);
	loss_merge(prof_loss(prof), &own);
	return ret;
}
