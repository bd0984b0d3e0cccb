/* user/engine/probing.c - the closed loop: measures what probes cost, and decides when they are there. */
#include "engine/probing.h"

#include <math.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>

#include "base/clock.h"
#include "base/random.h"
#include "engine/probing_priv.h"
#include "goprof_abi.h"
#include "probe/uprobes/hit_cost.h"

/* How often costs are looked at while everything is observed: more often at first. */
#define LOOK_FIRST_NS (5 * NS_PER_MS)
#define LOOK_NS	      (20 * NS_PER_MS)
#define FIRST_NS      (500 * NS_PER_MS)

/* A stratum that begins later than this was missed, because we did not run. */
#define LATE_NS	       NS_PER_S

#define STRATUM_MAX_NS (3000 * NS_PER_MS)
/* A kernel may take seconds to put probes in (it waits for RCU grace periods before the first): so long before is asked for at most. */
#define LEAD_MOST_NS (20 * NS_PER_MS)

/*
 * How often the target's own count is read. That takes our time and none of the target's: at most
 * this share of ours, and it is done rarely when nothing has changed for long.
 */
#define COUNT_NS      (5 * NS_PER_MS)
#define COUNT_IDLE_NS (20 * NS_PER_MS)
#define COUNT_SHARE   0.02
#define FULL_NS	      (100 * NS_PER_MS) /* while everything is observed */
#define STILL_NS      (3 * NS_PER_S)
#define MASS_MAX_NS   10e9

static void set_timer(struct probing *p, uint64_t at_ns)
{
	struct itimerspec t = { .it_value = { (time_t)(at_ns / NS_PER_S),
					      (long)(at_ns % NS_PER_S) } };

	if (p->timer >= 0)
		timerfd_settime(p->timer, TFD_TIMER_ABSTIME, &t, NULL);
}

static void arm(struct probing *p)
{
	uint64_t at = p->event_ns;

	if (p->count_ns && (!at || p->count_ns < at))
		at = p->count_ns;
	set_timer(p, at); /* 0: never */
}

static void set_event(struct probing *p, uint64_t at_ns)
{
	p->event_ns = at_ns;
	arm(p);
}

/* Reads what the target has done by its own count, as far as that is known. */
static void count(struct probing *p)
{
	uint64_t begin = now_ns(), now, every;
	bool bursts = burstiness_is_high(&p->burstiness);
	double n;

	p->count_ns = 0;
	if (!p->u.look)
		return;
	if (p->u.look(p->u.arg, &n) && burstiness_look(&p->burstiness, begin, n)) {
		window_size_forget(&p->size);
		p->recent_cost = p->recent_ns = 0;
		p->anew = true;
	}
	p->anew |= burstiness_is_high(&p->burstiness) != bursts;
	now = now_ns();
	p->look_ns += ((double)(now - begin) - p->look_ns) / 4;
	every = now - p->burstiness.moved < STILL_NS ? COUNT_NS : COUNT_IDLE_NS;
	if ((double)every < p->look_ns / COUNT_SHARE)
		every = (uint64_t)(p->look_ns / COUNT_SHARE);
	p->count_ns = now + every;
}

static void open_now(struct probing *p)
{
	p->opened_ns = now_ns();
	p->u.open->since = p->opened_ns;
	p->u.open->bits = GPB_OPEN;
}

/* Charges the account with what was spent since the last call. */
int probing_account(struct probing *p, double *cost, struct err *e)
{
	struct gpb_spent now;
	int ret = p->u.spent(p->u.arg, &now, e);

	if (ret)
		return ret;
	*cost = (double)(now.hits - p->seen.hits) * p->member.hit_ns +
		(double)(now.stepped - p->seen.stepped) * p->member.stepped_ns +
		(double)(now.ns - p->seen.ns);
	p->member.stepped += now.stepped - p->seen.stepped;
	p->member.hits += now.hits - p->seen.hits;
	p->seen = now;
	budget_spend(p->b, &p->member, *cost);
	return 0;
}

/* ---- everything observed ---- */

static void look_again(struct probing *p, uint64_t now)
{
	p->count_ns = 0;
	if (!p->o->budget.ppm)
		set_event(p, now + FULL_NS);
	else
		set_event(p, now + (now - p->set_ns < FIRST_NS ? LOOK_FIRST_NS : LOOK_NS));
}

/* The length of the present stratum, or more when the target was faster than its window. */
static double mass_passed(const struct probing *p)
{
	double passed = p->burstiness.count - p->mass_from;

	return passed > p->mass ? passed : p->mass;
}

/* Nothing was open up to @now, since the last stretch was over. */
static void apart(struct probing *p, uint64_t now)
{
	if (p->looked_ns && now > p->looked_ns && now - p->looked_ns > p->apart_ns)
		p->apart_ns = now - p->looked_ns;
}

int probing_hand_over(struct probing *p, struct stretch s, struct err *e)
{
	apart(p, s.opened);
	p->looked_ns = s.closed;
	s.hit_ns = p->member.hit_ns;
	s.next_ns = p->window_ns;
	if (s.window && s.weight > 0 && p->by_count) {
		s.mass = mass_passed(p);
		s.rate = p->asked_rate;
	}
	if (s.weight > 0)
		p->observed_ns += s.closed - s.opened;
	return p->u.over(p->u.arg, &s, e);
}

/* Ends a stretch of full observation; the probes stay where they are. */
static int close_full(struct probing *p, struct err *e)
{
	struct stretch s = { .opened = p->opened_ns, .closed = now_ns(), .weight = 1 };
	uint64_t gone = probing_gone_since(p);
	double cost;
	int ret;

	p->covered_ns = s.closed;
	probing_hear(p, s.closed);
	p->u.open->bits = 0;
	s.let_go = gone;
	if (gone) {
		gone = gone < s.opened ? s.opened : gone;
		p->lost_ns += s.closed - gone;
		s.closed = gone;
	}
	ret = probing_account(p, &cost, e);
	return ret ? ret : probing_hand_over(p, s, e);
}

static int turn(struct probing *p, bool windows, uint64_t since, struct err *e)
{
	if (!p->u.turn)
		return 0;
	return p->u.turn(p->u.arg, windows, since, p->member.hit_ns, p->window_ns, e);
}

/* Time up to here belongs to strata of windows. */
static int open_full(struct probing *p, struct err *e)
{
	int ret = turn(p, false, now_ns(), e);

	if (ret)
		return ret;
	p->state = FULL;
	open_now(p);
	if (!p->set_ns)
		p->set_ns = p->opened_ns;
	if (p->covered_ns && p->opened_ns > p->covered_ns && (!p->o->held || p->begun))
		p->gap_ns += p->opened_ns - p->covered_ns;
	look_again(p, p->opened_ns);
	return 0;
}

/* Nothing counts until the stratum of the last window is over, so that each instant counts once. */
static int begin_full(struct probing *p, struct err *e)
{
	uint64_t now = now_ns();
	int ret = 0;

	p->to_full = false;
	p->count_ns = 0;
	probing_hear(p, now);
	if (!probing_kept(p)) {
		p->attached_ns = now;
		ret = probing_attach(p, e);
		if (ret)
			return ret;
		probing_pay_attaching(p);
	}
	p->member.full = true;
	if (now_ns() >= p->covered_ns)
		return open_full(p, e);
	p->state = OPENING;
	set_event(p, p->covered_ns);
	return 0;
}

/* ---- windows ---- */

/* Windows that are meant for bursts should not be longer than necessary. */
static uint64_t window_ns(const struct probing *p)
{
	return burstiness_is_high(&p->burstiness) ? p->u.parts.end_ns : p->size.length;
}

/* Makes a stratum of a given count, and decides at which count its window is to open. */
static void next_mass(struct probing *p, uint64_t now)
{
	double ns = probing_stratum_ns(p, now);

	if (p->by_count)
		p->mass_from += mass_passed(p);
	else
		p->mass_from = p->burstiness.count;
	ns = fmin(ns, fmax(MASS_MAX_NS, probing_bystanders_ns(p)));
	p->by_count = true;
	p->mass = p->burstiness.mean * ns;
	p->mass_at = p->mass_from + random_part(&p->random) * p->mass;
	p->stratum_ns = now;
	p->stratum_len = 0;
	p->state = BETWEEN;
	set_event(p, 0);
}

/* Decides where the next stratum ends, and when its window is to open. */
static void next_stratum(struct probing *p, uint64_t now)
{
	uint64_t end, len, at, room, from, least;

	if (p->anew) {
		p->stratum_ns = now;
		p->stratum_len = 0;
	}
	p->anew = false;
	end = p->stratum_ns + p->stratum_len;
	if (burstiness_is_high(&p->burstiness)) {
		next_mass(p, now);
		return;
	}
	if (!p->by_count && now > end + LATE_NS) {
		p->lost_ns += now - end;
		end = now;
	}
	if (p->by_count) /* such windows do not stand for time */
		end = now;
	p->by_count = false;
	len = (uint64_t)fmin(probing_stratum_ns(p, now),
			     fmax(STRATUM_MAX_NS, probing_bystanders_ns(p)));
	/*
	 * It begins where the last one ended. The part that has passed has no window, and still
	 * belongs to it.
	 */
	from = end > now ? end : now;
	least = from - end + p->u.parts.begin_ns + p->window_ns;
	p->stratum_ns = end;
	p->stratum_len = len > least ? len : least;
	room = p->stratum_len - least;
	at = from + (uint64_t)(random_part(&p->random) * (double)room);
	p->opened_ns = at;
	p->state = BETWEEN;
	set_event(p, at > now + p->attach_ns ? at - p->attach_ns : now + 1);
}

/* The second part, in which waits may still end, is equally long in all windows. */
static uint64_t first_part(const struct probing *p)
{
	return p->u.parts.begin_ns ? p->window_ns - (p->u.parts.end_ns - p->u.parts.begin_ns) : 0;
}

static int ask_window(struct probing *p, struct err *e)
{
	const struct uprobe_window w = { .open = p->opened_ns,
					 .begin = first_part(p),
					 .end = p->window_ns,
					 .by_own = p->u.by_own };
	double other;
	int ret = probing_account(p, &other,
				  e); /* pays for the probes that are attached all the time */

	probing_learn_between(p);
	if (!ret)
		ret = probing_ask_window(p, &w, e);
	if (ret)
		return ret;
	p->state = ASKED;
	if (p->window_ns > p->longest)
		p->longest = p->window_ns;
	p->asked_rate = p->burstiness.rate;
	set_event(p, 0);
	return 0;
}

static int begin_windows(struct probing *p, struct err *e)
{
	bool again = p->windows_since; /* it was observed in full once more meanwhile */
	uint64_t now, since;
	int ret = 0;

	probing_price_hits(p);
	if (p->state != READY)
		window_size_again(&p->size);
	p->burstiness = (struct burstiness){};
	p->window_ns = window_ns(p);
	since = p->covered_ns ? p->covered_ns : now_ns();
	ret = turn(p, true, since, e);
	if (ret)
		return ret;
	now = now_ns();
	if (!again)
		say(p->o,
		    "%s: probing costs the target more than %g%% of its CPU time: from now on in "
		    "short windows, scaled",
		    p->u.what, p->o->budget.ppm / 1e4);
	p->member.full = false;
	p->windows_since = now;
	p->looked_ns = since;
	p->windows_before = p->nwindows;
	p->lost_before = p->lost_ns;
	p->done_known = false;
	window_cost_gap(&p->cost);
	p->stratum_ns = since;
	p->stratum_len = 0;
	p->recent_cost = p->recent_ns = 0;
	p->by_count = false;
	count(p);
	if (!p->set_ns)
		p->set_ns = now;
	next_stratum(p, now);
	return 0;
}

/*
 * This window stands for all of its stratum, so full observation begins where the stratum ends.
 * If it began immediately, the rest of the stratum would count twice. A smaller weight for this
 * window would be a bias: quiet windows lead here, so quiet windows alone would get it.
 */
static void full_after_stratum(struct probing *p, uint64_t now)
{
	uint64_t end = p->stratum_ns + p->stratum_len, lead = 2 * p->attach_ns;

	p->to_full = true;
	p->anew = false;
	p->covered_ns = p->by_count ? 0 : end;
	set_event(p, p->by_count ? 0 : end > now + lead ? end - lead : now + 1);
}

/* A window that opens late costs nothing; probes that are in before it opens do. */
static void learn_lead(struct probing *p, const struct uprobe_windowed *w)
{
	uint64_t took = w->opened > p->opened_ns ? w->opened - w->asked : 0;

	p->attach_ns = (p->attach_ns * 3 + (took < LEAD_MOST_NS ? took : LEAD_MOST_NS)) / 4;
}

static int window_over(struct probing *p, struct err *e)
{
	struct uprobe_windowed w;
	double cost, open_ns;
	uint64_t now;
	int ret;

	p->state = BETWEEN; /* whatever the answer is, no other comes */
	ret = uprobes_windowed(&p->uprobes, &w, e);
	if (ret == -EUSERS)
		p->lost_ns += p->by_count ? 0 : p->stratum_len;
	if (ret == -ECHILD)
		ret = probing_broken_window(p, &w, e);
	if (!ret)
		ret = probing_account(p, &cost, e);
	if (ret)
		return ret;
	probing_pay_attaching(p);
	probing_learn_registering(p, w.work_ns);
	if (w.closed == w.opened) { /* it never opened: nobody saw this stratum */
		p->lost_ns += p->by_count ? 0 : p->stratum_len;
		next_stratum(p, now_ns());
		return 0;
	}
	open_ns = (double)(w.closed - w.opened);
	probing_learn_window(p, cost);
	p->nwindows++;
	p->member.windows++;
	learn_lead(p, &w);
	if (!probing_stalled(p, &w) || !p->size.known)
		window_size_over(&p->size, p->window_ns, cost);
	p->recent_cost += cost;
	p->recent_ns += probing_exposed_ns(&w);
	count(p);
	p->window_ns = window_ns(p);
	ret = probing_hand_over(
		p,
		(struct stretch){ .window = true,
				  .asked = w.asked,
				  .opened = w.opened,
				  .closed = w.closed,
				  .weight = p->by_count ? 1 : (double)p->stratum_len / open_ns },
		e);
	if (ret)
		return ret;
	now = now_ns();
	if (probing_could_be_full(p, now)) {
		full_after_stratum(p, now);
		return 0;
	}
	p->anew = false; /* this window stands for all of its stratum */
	next_stratum(p, now);
	return 0;
}

/* ---- the loop ---- */

/* Links that take seconds to detach cannot be used for windows, so this ends everything. */
static int cut_short(struct probing *p, struct err *e)
{
	p->cut = true;
	p->state = ENDED;
	say(p->o,
	    "%s: probing costs the target more than %g%% of its CPU time, and this kernel cannot "
	    "probe in short windows: no more is observed",
	    p->u.what, p->o->budget.ppm / 1e4);
	return probing_detach(p, e);
}

/*
 * Windows begin when the probes are out, and stand for the time until then, too. A busy machine's kernel takes seconds for that: nobody
 * else waits for it.
 */
static int leave_full(struct probing *p, struct err *e)
{
	int ret = uprobes_detach_soon(&p->uprobes, e);

	if (ret == -ECHILD) {
		ret = probing_mend(p, e);
		return ret ? ret : begin_windows(p, e);
	}
	if (ret)
		return ret;
	p->state = LEAVING;
	set_event(p, 0);
	return 0;
}

static int left_full(struct probing *p, struct err *e)
{
	int ret = probing_detached(p, e);

	return ret ? ret : begin_windows(p, e);
}

/*
 * The attacher was not asked, so its socket is readable because it has ended. Others that its process kept have ended, too: most
 * of them are closed before the first is mended, which takes a while.
 */
static int attacher_died(struct probing *p, struct err *e)
{
	bool full = p->state == BROKEN, opening = p->state == OPENING;
	uint64_t since = p->covered_ns;
	int ret;

	if (p->state == FULL) {
		p->state = BROKEN;
		return close_full(p, e);
	}
	ret = probing_mend(p, e);
	if (ret || (!full && !opening))
		return ret;
	if (full) /* what is missing is a loss, and no gap between two ways to observe */
		p->covered_ns = 0;
	ret = begin_full(p, e);
	if (full && !ret)
		p->lost_ns += p->opened_ns - since;
	return ret;
}

static int look(struct probing *p, struct err *e)
{
	bool exceeded, gone;
	double cost, n;
	uint64_t now;
	int ret;

	if (p->dear)
		probing_price_hits(p);
	now = now_ns();
	gone = probing_let_go(p);
	ret = probing_account(p, &cost, e);
	if (ret)
		return ret;
	/* The last count before it exits is all that will be known. */
	if (p->u.look &&
	    now - p->burstiness.at >= (now - p->set_ns < FIRST_NS ? LOOK_NS : FULL_NS)) {
		(void)p->u.look(p->u.arg, &n);
		p->burstiness.at = now;
	}
	exceeded = budget_exceeded(p->b, &p->member);
	if (!exceeded && !gone) {
		probing_hear(p, now);
		look_again(p, now);
		return 0;
	}
	ret = close_full(p, e);
	if (ret)
		return ret;
	if (!exceeded)
		return begin_full(p, e);
	if (!p->multi)
		return cut_short(p, e);
	return leave_full(p, e);
}

static bool readable(int fd)
{
	uint64_t n;

	return fd >= 0 && read(fd, &n, sizeof(n)) == sizeof(n);
}

/*
 * While a window is open, nobody should wake up if that can be avoided: see the attacher's wake-ups
 * in uprobes.c.
 */
static void count_between(struct probing *p, uint64_t now)
{
	uint64_t since = p->u.open->since;

	if (p->state == ASKED && p->u.open->bits) {
		p->count_ns = since + p->window_ns + NS_PER_MS;
		if (p->count_ns <= now)
			p->count_ns = now + COUNT_NS;
		return;
	}
	count(p);
	if (p->state == BETWEEN && p->anew && !p->to_full)
		next_stratum(p, now);
}

/* Has the stratum ended that full_after_stratum() waits for? */
static bool stratum_passed(const struct probing *p, uint64_t now)
{
	if (p->by_count)
		return p->burstiness.count >= p->mass_from + p->mass;
	return p->event_ns && now >= p->event_ns;
}

static int rings_windows(struct probing *p, struct err *e)
{
	uint64_t now = now_ns();

	if (p->count_ns && now >= p->count_ns)
		count_between(p, now);
	if (p->state == BETWEEN && p->to_full) {
		if (stratum_passed(p, now))
			return begin_full(p, e);
		arm(p);
		return 0;
	}
	if (p->state == BETWEEN && p->by_count && p->burstiness.count >= p->mass_at) {
		p->opened_ns = now;
		return ask_window(p, e);
	}
	if (p->state == BETWEEN && p->event_ns && now >= p->event_ns)
		return ask_window(p, e);
	arm(p);
	return 0;
}

int probing_begin(struct probing *p, struct err *e)
{
	bool bears = true;
	int ret;

	p->begun = true;
	if (p->failed)
		return err_set(e, p->failed, "probes could not be put in");
	if (p->state != READY)
		return 0;
	ret = probing_gauge(p, &bears, e);
	if (!ret)
		ret = bears ? begin_full(p, e) : begin_windows(p, e);
	if (!ret)
		return 0;
	p->failed = ret; /* two kinds may share these probes: then it is for both */
	p->state = ENDED;
	p->u.open->bits = 0;
	probing_release(p);
	return ret;
}

static int open_when_due(struct probing *p, struct err *e)
{
	if (now_ns() >= p->covered_ns)
		return open_full(p, e);
	set_event(p, p->covered_ns);
	return 0;
}

/* Its probes are out. */
static void end_cost_probes(struct probing *p)
{
	probing_unwatch(p, cost_probes_fd(p->cost_probes));
	cost_probes_free(p->cost_probes);
	p->cost_probes = NULL;
}

/* The socket of its attacher is readable. */
static int hear_attacher(struct probing *p, struct err *e)
{
	bool first = p->state == READY && p->first_asked;

	if (!first && p->state != ASKED && p->state != LEAVING)
		return attacher_died(p, e);
	if (!uprobes_answered(&p->uprobes))
		return 0;
	if (p->state == LEAVING)
		return left_full(p, e);
	return first ? probing_begin(p, e) : window_over(p, e);
}

static int poll_probes(struct probing *p, struct err *e)
{
	struct epoll_event ev[3];
	int n = epoll_wait(p->ep, ev, 3, 0), ret = 0;
	bool rings = readable(p->timer);

	for (int i = 0; !ret && i < n; i++)
		if (p->cost_probes && ev[i].data.fd == cost_probes_fd(p->cost_probes))
			end_cost_probes(p);
		else if (ev[i].data.fd != p->timer)
			ret = hear_attacher(p, e);
	if (!ret && rings && p->state == READY)
		ret = probing_begin_soon(p, e);
	else if (!ret && rings && p->state == OPENING)
		ret = open_when_due(p, e);
	else if (!ret && rings && p->state == FULL)
		ret = look(p, e);
	else if (!ret && rings && (p->state == BETWEEN || p->state == ASKED))
		ret = rings_windows(p, e);
	return ret;
}

int probing_poll(struct probing *p, struct err *e)
{
	bool begun = p->state != READY;
	struct err why = { "" };
	int ret = poll_probes(p, &why);

	if (ret == -EUSERS && begun)
		return probing_crowded(p, why.msg);
	return ret ? err_set(e, ret, "%s", why.msg) : 0;
}

int probing_fd(const struct probing *p)
{
	return p->ep;
}

/* Stops what is going on. */
static int pause_probes(struct probing *p, struct err *e)
{
	int ret = 0;

	if (p->state == FULL)
		ret = close_full(p, e);
	else if (p->state == LEAVING)
		ret = left_full(p, e);
	else if (p->state == ASKED)
		ret = window_over(p, e);
	p->u.open->bits = 0;
	return ret;
}

static int set_groups(struct probing *p, const struct uprobe_group *g, size_t n, struct err *e)
{
	bool windows = p->state == BETWEEN || p->state == ASKED || p->state == LEAVING;
	struct uprobe_open open = uprobe_open_in(p->u.bss, p->u.open);
	int ret = pause_probes(p, e);

	if (!ret)
		ret = uprobe_groups_copy(p->groups, &p->sites, g, n, e);
	if (ret)
		return ret;
	p->ngroups = n;
	probing_release(p);
	p->uprobes.all = p->s ? p->s->attachers : p->file.attachers;
	ret = uprobes_hold(&p->uprobes, p->groups, p->ngroups, p->multi,
			   p->s ? p->s->target->pid : 0, &open, e);
	if (!ret)
		ret = probing_watch(p, uprobes_fd(&p->uprobes), e);
	if (ret)
		return ret;
	if (p->uprobes.attacher.exposed && p->s)
		say_exposed(p->s, p->o, "the process that keeps the probes");
	if (windows && p->state != FULL)
		return 0;
	if (p->state == FULL || p->state == BROKEN || p->state == OPENING || !p->o->budget.ppm ||
	    !p->multi || p->o->held)
		return begin_full(p, e);
	p->state = READY;
	set_event(p, now_ns());
	return 0;
}

/*
 * When it fails, as a library that was loaded meanwhile can make it, nothing is attached any more,
 * and no time from then on may pass for observed.
 */
int probing_set(struct probing *p, const struct uprobe_group *g, size_t n, struct err *e)
{
	int ret;

	if (p->state == ENDED)
		return 0;
	ret = set_groups(p, g, n, e);
	if (!ret)
		return 0;
	if (ret == -EUSERS && p->set_ns)
		return probing_crowded(p, e ? e->msg : "");
	p->state = ENDED;
	p->u.open->bits = 0;
	p->failed = p->failed ? p->failed : ret;
	probing_release(p);
	return ret;
}

/* ---- the end ---- */

int probing_close(struct probing *p, struct err *e)
{
	p->ending = true;
	if (p->state != FULL)
		return 0;
	p->state = CLOSED;
	return close_full(p, e);
}

int probing_end(struct probing *p, struct err *e)
{
	struct err why = { "" };
	int ret = 0;

	p->ending = true;
	if (p->state != ENDED)
		ret = pause_probes(p, &why);
	if (ret == -EUSERS)
		ret = probing_crowded(p, why.msg);
	else if (ret)
		err_set(e, ret, "%s", why.msg);
	p->state = ENDED;
	p->end_ns = now_ns();
	apart(p, p->end_ns);
	if (probing_kept(p))
		(void)probing_detach(p, NULL); /* what that takes is to be told, too */
	probing_release(p);
	probing_say_excess(p);
	return ret;
}

void probing_free(struct probing *p)
{
	if (!p)
		return;
	uprobes_free(&p->uprobes);
	cost_probes_free(p->cost_probes);
	if (p->b)
		budget_leave(p->s ? &p->s->budget : NULL, p->b, &p->member);
	if (p->ep >= 0)
		close(p->ep);
	if (p->timer >= 0)
		close(p->timer);
	bystanders_fini(&p->of_file);
	free(p->sites);
	free(p);
}
