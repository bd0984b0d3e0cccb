/* user/collect/ratewrite/checkpoint.c - keeps the last reading for a target that has gone. */
#include "collect/ratewrite/checkpoint.h"
#include "base/clock.h"
#include "profile/profile.h"

#include <sys/timerfd.h>
#include <time.h>

#define READ_AGAIN_MIN_NS (10 * NS_PER_MS)
#define READ_AGAIN_MAX_NS (1000 * NS_PER_MS)

void checkpoint_init(struct checkpoint *a, struct subject *s,
		     int (*read)(void *arg, struct prof **out, struct err *e), void *arg)
{
	*a = (struct checkpoint){ .s = s, .read = read, .arg = arg, .timer = -1 };
}

void checkpoint_fini(struct checkpoint *a)
{
	prof_free(a->prof);
	closep(&a->timer);
}

static int arm(struct checkpoint *a, uint64_t took_ns, struct err *e)
{
	uint64_t wait = (a->read_ns - a->start_ns) / 10;
	struct itimerspec t = { 0 };

	if (wait < READ_AGAIN_MIN_NS)
		wait = READ_AGAIN_MIN_NS;
	if (wait > READ_AGAIN_MAX_NS)
		wait = READ_AGAIN_MAX_NS;
	if (wait < 10 * took_ns)
		wait = 10 * took_ns;
	t.it_value.tv_sec = (time_t)(wait / NS_PER_S);
	t.it_value.tv_nsec = (long)(wait % NS_PER_S);
	return timerfd_settime(a->timer, 0, &t, NULL) ? err_sys(e, "timer") : 0;
}

int checkpoint_start(struct checkpoint *a, bool again, struct err *e)
{
	int ret;

	a->start_ns = a->read_ns = now_ns();
	ret = a->read(a->arg, &a->prof, e);
	if (ret || !again)
		return ret;
	a->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (a->timer < 0)
		return err_sys(e, "timer");
	return arm(a, 0, e);
}

int checkpoint_again(struct checkpoint *a, struct err *e)
{
	CLEANUP(prof_freep) struct prof *p = NULL;
	uint64_t expired, before = now_ns();

	(void)!read(a->timer, &expired, sizeof(expired));
	if (!target_alive(a->s->target, NULL) && !a->read(a->arg, &p, NULL)) {
		prof_free(a->prof);
		a->prof = TAKE(p);
		a->read_ns = before;
	}
	return arm(a, now_ns() - before, e);
}

int checkpoint_hand_over(struct checkpoint *a, struct prof **out, struct err *e)
{
	int ret;

	if (a->timer < 0)
		ret = prof_comment(a->prof, e,
				   "state: as of the start of the window; the target went");
	else
		ret = prof_comment(a->prof, e,
				   "state: as of %.3f s after its start, its last %.3f s are not "
				   "in here",
				   (double)(a->read_ns - a->start_ns) / 1e9,
				   (double)(now_ns() - a->read_ns) / 1e9);
	if (ret)
		return ret;
	*out = TAKE(a->prof);
	return 0;
}
