/* user/target/write/claim.c - ranges of file locks serve as a register of who uses what. */
#include "target/write/claim.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>

#include "base/loop/cancel.h"
#include "base/sys/caps.h"
#include "base/clock.h"
#include "base/limits.h"
#include "target/write/holders.h"
#include "target/host/pidns.h"
#include "target/procfs.h"

/* include/uapi/linux/magic.h, since Linux 6.9 */
#define PIDFS 0x50494446

/*
 * A position in the file has 63 bits: a 1, the key of the process (23), the switch (2), the slot
 * (6) and the value (31). Slot 0 is the gate.
 */
enum { VALUE_BITS = 31, SLOT_BITS = 6, WHAT_BITS = 2, KEY_BITS = 23 };
#define STRIDE (1ull << VALUE_BITS)

_Static_assert(VALUE_BITS + SLOT_BITS + WHAT_BITS + KEY_BITS == 62, "a file offset is signed");
_Static_assert(CLAIM_VALUE_MAX < (1ll << VALUE_BITS), "a claim stays in its slot");
_Static_assert(CLAIM_SLOTS < 1 << SLOT_BITS, "slot 0 is the gate");
_Static_assert(CLAIM_SLOTS < 64, "a bit for each slot");
_Static_assert(CLAIM_WHATS == 1 << WHAT_BITS, "one range per switch");

enum { PAUSE_MIN_US = 500, PAUSE_MAX_US = 64000, STATUS_MAX = 65536, LOOKS = 3 };

struct claims {
	pid_t pid;
	int fd;
	uint64_t base; /* position of the gate */
	unsigned held; /* the slot that we hold; 0: none */
	uint64_t seed;
	struct rights target; /* as of claims_open() */
	uint64_t imitated;    /* slots whose claims count for nothing; bit 0 is not used */
};

static uint64_t random_below(struct claims *c, uint64_t n)
{
	c->seed ^= c->seed << 13;
	c->seed ^= c->seed >> 7;
	c->seed ^= c->seed << 17;
	return c->seed % n;
}

/*
 * The number that a process has in its own pid namespace. It is the last one on the line
 * "NSpid:\t7\t1", whoever reads that (Linux 4.1). 0 when the line is not there.
 */
static uint64_t innermost_pid(struct target *t)
{
	static const char key[] = "\nNSpid:";
	CLEANUP(freep) char *text = NULL;
	const char *at;
	struct cur c;
	uint64_t v = 0;
	size_t len;

	if (procfs_read(t->proc_fd, "status", STATUS_MAX, &text, &len, NULL))
		return 0;
	at = strstr(text, key);
	if (!at)
		return 0;
	c = cur_of("NSpid", at, len - (size_t)(at - text));
	cur_seek(&c, "NSpid", sizeof(key) - 1);
	while (text_char(&c, "NSpid", '\t') && text_u64(&c, "NSpid", 10, &v))
		;
	return v;
}

/*
 * FNV-1a, folded. Not the keyed hash of base/hash.h: every goprof-bpf, of other versions too, must
 * come to the same places.
 */
static uint64_t agreed_hash(const void *p, size_t n)
{
	const uint8_t *b = p;
	uint64_t h = 0xcbf29ce484222325ULL;

	for (size_t i = 0; i < n; i++)
		h = (h ^ b[i]) * 0x100000001b3ULL;
	return h ^ (h >> 32);
}

/*
 * Opens the file that everybody agrees on, and computes the key that tells processes apart in it.
 */
static int open_file(struct target *t, bool force_exe, struct claims *c, uint64_t *key,
		     struct err *e)
{
	uint64_t who[3] = { t->start_ticks, t->start_stack, innermost_pid(t) };
	struct statfs fs;

	*key = 0;
	c->fd = force_exe ? -1 : (int)syscall(SYS_pidfd_open, t->pid, 0);
	if (c->fd >= 0 && (fstatfs(c->fd, &fs) || fs.f_type != PIDFS)) {
		closep(&c->fd); /* without pidfs all such descriptors are the same inode */
		c->fd = -1;
	}
	if (c->fd < 0) {
		*key = agreed_hash(who, sizeof(who)) & ((1u << KEY_BITS) - 1);
		c->fd = openat(t->proc_fd, "exe", O_RDONLY | O_CLOEXEC);
	}
	if (c->fd < 0)
		return errno == ENOENT || errno == ESRCH ?
			       err_set(e, -ESRCH, "pid %d exited", t->pid) :
			       err_sys(e, "/proc/%d/exe", t->pid);
	/*
	 * This makes sure that the number was not given to another process before it was opened.
	 */
	return target_alive(t, e);
}

int claims_open(struct target *t, unsigned what, bool force_exe, struct claims **out, struct err *e)
{
	CLEANUP(claims_freep) struct claims *c = calloc(1, sizeof(*c));
	uint64_t key;
	int ret;

	BUG_ON(what >= CLAIM_WHATS);
	if (!c)
		return err_set(e, -ENOMEM, "no memory for claims");
	c->pid = t->pid;
	c->fd = -1;
	ret = open_file(t, force_exe, c, &key, e);
	if (ret)
		return ret;
	c->base = 1ull << 62 | key << (VALUE_BITS + SLOT_BITS + WHAT_BITS) |
		  (uint64_t)what << (VALUE_BITS + SLOT_BITS);
	/* A target that cannot be asked is of no user. */
	if (rights_read(t->proc_fd, &c->target, NULL))
		c->target = (struct rights){ .real_uid = UINT64_MAX, .uid = UINT64_MAX };
	c->seed = (now_ns() ^ (uint64_t)getpid() << 40) | 1;
	*out = TAKE(c);
	return 0;
}

void claims_free(struct claims *c)
{
	if (!c)
		return;
	closep(&c->fd);
	free(c);
}

static int lock(struct claims *c, short type, uint64_t from, uint64_t len, struct err *e)
{
	struct flock l = {
		.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)from, .l_len = (off_t)len
	};

	if (!fcntl(c->fd, F_OFD_SETLK, &l))
		return 0;
	return err_sys(e, "pid %d: cannot lock its %s", c->pid, "pidfd or executable");
}

/*
 * Somebody else's lock in that range: 1 and what it is, 0 none. Of several the kernel shows one,
 * and a lock as large as all slots hides what is below it.
 */
static int look(struct claims *c, uint64_t from, uint64_t len, struct flock *found, struct err *e)
{
	/*
	 * Any lock stands in the way of a write lock, so one is asked about. Asking needs no
	 * right to write.
	 */
	struct flock l = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)from, .l_len = (off_t)len
	};

	if (fcntl(c->fd, F_OFD_GETLK, &l))
		return err_sys(e, "pid %d: cannot look for locks", c->pid);
	if (l.l_type == F_UNLCK)
		return 0;
	*found = l;
	return 1;
}

/* As we take them, and from where: anybody may lock anything here, and means nothing by it. */
static bool is_ours(const struct flock *l, uint64_t at, uint64_t max_len)
{
	return l->l_type == F_RDLCK && l->l_start == (off_t)at && l->l_len > 0 &&
	       (uint64_t)l->l_len <= max_len;
}

/* 1 alone, 0 somebody else is there, or an error. */
static int try_enter(struct claims *c, struct err *e)
{
	struct flock found = { 0 };
	int ret = lock(c, F_RDLCK, c->base, 1, e);

	if (ret == -EAGAIN || ret == -EACCES) /* somebody's write lock */
		return 0;
	if (!ret)
		ret = look(c, c->base, 1, &found, e);
	if (ret > 0)
		return !is_ours(&found, c->base, 1);
	return ret ? ret : 1;
}

int claims_enter(struct claims *c, unsigned timeout_ms, bool (*give_up)(void *arg), void *arg,
		 struct err *e)
{
	uint64_t end = now_ns() + timeout_ms * 1000000ull, pause = PAUSE_MIN_US;

	for (;;) {
		int ret = try_enter(c, e);

		if (ret > 0)
			return 0;
		claims_leave(c);
		if (give_up && give_up(arg))
			return err_set(e, -EINTR, "pid %d: given up waiting for others", c->pid);
		if (ret < 0 && now_ns() >= end)
			return ret;
		if (now_ns() >= end)
			return err_set(
				e, -EBUSY,
				"pid %d: somebody has held the lock that goprof-bpf uses for %u "
				"ms: a goprof-bpf that is stopped?",
				c->pid, timeout_ms);
		usleep((useconds_t)(pause / 2 + random_below(c, pause)));
		if (pause < PAUSE_MAX_US)
			pause *= 2;
	}
}

void claims_leave(struct claims *c)
{
	(void)lock(c, F_UNLCK, c->base, 1, NULL);
}

static uint64_t slot_at(const struct claims *c, unsigned slot)
{
	return c->base + slot * STRIDE;
}

/*
 * 1 when there is a lock of somebody else, with *value 0 when it is not like a claim. look() does
 * not see locks of our own, because they belong to the same open file description.
 */
static int look_slot(struct claims *c, unsigned slot, uint64_t *value, struct err *e)
{
	struct flock found = { 0 };
	int ret = look(c, slot_at(c, slot), STRIDE, &found, e);

	*value = ret > 0 && is_ours(&found, slot_at(c, slot), CLAIM_VALUE_MAX) ?
			 (uint64_t)found.l_len :
			 0;
	return ret;
}

/* ---- whose locks they are ---- */

/* What is known of the locks in the slots after one look. */
struct others {
	struct claims *c;
	uint64_t wanted, value; /* what claims_others() is to tell, as far as it is known */
	bool locked;		/* there are locks in slots */
	/* for each slot: the claim that the kernel shows, or 0, and whose it is */
	uint64_t shown[CLAIM_SLOTS + 1];
	enum { HOLDER_UNSEEN, HOLDER_STRANGER, HOLDER_ABLE } holder[CLAIM_SLOTS + 1];
};

static void count(struct others *o, uint64_t value)
{
	if (!o->value || value == o->wanted)
		o->value = value;
}

/* A claim that is hidden by another lock in its slot is seen here, too. */
static void holder_found(void *arg, const struct held *h)
{
	struct others *o = arg;
	uint64_t at = h->start - o->c->base, slot = at / STRIDE;

	if (h->start < o->c->base || at % STRIDE || !slot || slot > CLAIM_SLOTS || !h->len ||
	    h->len > CLAIM_VALUE_MAX)
		return;
	if (h->able)
		count(o, h->len);
	if (h->len != o->shown[slot])
		return;
	if (h->able)
		o->holder[slot] = HOLDER_ABLE;
	else if (o->holder[slot] == HOLDER_UNSEEN)
		o->holder[slot] = HOLDER_STRANGER;
}

/* Almost always there is none in any slot, which one question tells. */
static int look_at_slots(struct others *o, struct err *e)
{
	struct flock any = { 0 };
	int all = look(o->c, slot_at(o->c, 1), CLAIM_SLOTS * STRIDE, &any, e);

	if (all <= 0)
		return all;
	for (unsigned slot = 1; slot <= CLAIM_SLOTS; slot++) {
		int ret = look_slot(o->c, slot, &o->shown[slot], e);

		if (ret < 0)
			return ret;
		o->locked |= ret;
	}
	return 0;
}

/* Are all processes of this kernel in /proc, and may we look at each? */
static bool sees_all(void)
{
	uint32_t ino;

	return !pidns_inode(&ino, NULL) && !ino && caps_initial_userns() &&
	       caps_have(CAP_SYS_PTRACE);
}

/* As holders_find(). @all: sees_all(). */
static bool look_for_holders(struct others *o, bool all, bool able_only, bool (*stop)(void))
{
	CLEANUP(closep) int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(closep) int self = openat(proc, "self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct holders_ask ask = { .proc = proc,
				   .but_fd = o->c->fd,
				   .able_only = able_only,
				   .comm = all ? CLAIM_HOLDER : NULL,
				   .target = o->c->target,
				   .end_ns = now_ns() + LIMIT_HOLDERS_MS * 1000000ull,
				   .stop = stop,
				   .found = holder_found,
				   .arg = o };
	struct rights ours = { 0 };
	struct stat st;

	if (proc < 0 || self < 0 || fstat(o->c->fd, &st) || rights_read(self, &ours, NULL))
		return false;
	ask.ino = st.st_ino;
	ask.our_userns = ours.userns;
	return holders_find(&ask);
}

static bool any_unseen(const struct others *o)
{
	for (unsigned slot = 1; slot <= CLAIM_SLOTS; slot++)
		if (o->shown[slot] && o->holder[slot] == HOLDER_UNSEEN)
			return true;
	return false;
}

/* @hidden: all who could be goprof-bpf were looked at. */
static void judge_unseen(struct others *o, bool hidden)
{
	for (unsigned slot = 1; slot <= CLAIM_SLOTS; slot++) {
		if (!o->shown[slot] || o->holder[slot] == HOLDER_ABLE)
			continue;
		if (o->holder[slot] == HOLDER_UNSEEN && !hidden)
			count(o, o->shown[slot]);
		else
			o->c->imitated |= 1ull << slot;
	}
}

/*
 * A lock whose holder is not found may have been taken, or handed on, while this looked: so it
 * looks again. Where every process is to be seen, it is enough to look at those that could be
 * goprof-bpf, and strangers cannot make that long.
 */
int claims_others(struct claims *c, uint64_t wanted, bool (*stop)(void), uint64_t *value,
		  struct err *e)
{
	bool all = sees_all(), whole = true;
	struct others o;

	c->imitated = 0;
	for (int i = 0; i < LOOKS; i++) {
		int ret;

		o = (struct others){ .c = c, .wanted = wanted };
		ret = look_at_slots(&o, e);
		if (ret)
			return ret;
		if (!o.locked)
			break;
		whole = look_for_holders(&o, all, all && whole, stop);
		if (!any_unseen(&o))
			break;
	}
	judge_unseen(&o, all && whole);
	*value = o.value;
	return 0;
}

bool claims_imitated(const struct claims *c)
{
	return c->imitated != 0;
}

/* ---- one's own ---- */

int claims_take(struct claims *c, uint64_t value, struct err *e)
{
	unsigned first = (unsigned)random_below(c, CLAIM_SLOTS);

	BUG_ON(c->held || !value || value > CLAIM_VALUE_MAX);
	for (unsigned i = 0; i < CLAIM_SLOTS; i++) {
		unsigned slot = 1 + (first + i) % CLAIM_SLOTS;
		uint64_t taken;
		int ret = look_slot(c, slot, &taken, e);

		if (ret > 0 && taken && !(c->imitated >> slot & 1))
			continue;
		if (ret >= 0)
			ret = lock(c, F_RDLCK, slot_at(c, slot), value, e);
		if (ret == -EAGAIN || ret == -EACCES) /* somebody's write lock */
			continue;
		if (!ret)
			c->held = slot;
		return ret;
	}
	return err_set(e, -E2BIG,
		       "pid %d: %d goprof-bpf use it already, or somebody else has locked their "
		       "places",
		       c->pid, CLAIM_SLOTS);
}

void claims_drop(struct claims *c)
{
	if (c->held)
		(void)lock(c, F_UNLCK, slot_at(c, c->held), STRIDE, NULL);
	c->held = 0;
}

int claims_fd(const struct claims *c)
{
	return c->fd;
}

bool claims_any(struct target *t, unsigned what)
{
	CLEANUP(claims_freep) struct claims *c = NULL;
	uint64_t value = 0;

	return !claims_open(t, what, false, &c, NULL) &&
	       !claims_others(c, 0, cancelled, &value, NULL) && value;
}
