/*
 * tests/unit/many_world.h - what the kinds of profile of many targets stand on: a clock, processes and the files that they run, the
 * probes of a file, a BPF object's tables and its ring. Who has which slot, and whose a sample is, is told by the real
 * engine/probed.c, engine/probe_set.c and probe/demux.c.
 */
#ifndef TESTS_UNIT_MANY_WORLD_H
#define TESTS_UNIT_MANY_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/probed.h"
#include "mksubject.h"
#include "target/target_priv.h"

/* ---- the clock: all clocks show the same ---- */

static uint64_t now;

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	(void)clock;
	*ts = (struct timespec){ (time_t)(now / NS_PER_S), (long)(now % NS_PER_S) };
	return 0;
}

/* ---- tables of the BPF object: a map is its number ---- */

enum {
	SETS = 1,
	BYSTANDERS,
	BSS,
	SLOT_OF_TGID,
	STACKS,
	RING,
	RULES,
	LABELSETS,
	SCRATCHES,
	KINDS_OWN, /* the first one that a kind has beside those */
	TABLES = 32,
	PROCESSES = 32,
	SAMPLES = 32,
};
#define MAP(n) ((struct bpf_map *)(uintptr_t)(n))

static unsigned written[TABLES][GPB_CPU_TARGETS]; /* how often, by index */
static uint32_t sizes[TABLES];			  /* that were asked for before they were made */
static int refusing;				  /* the table that takes nothing; 0: none */
static uint32_t slot_of[PROCESSES];		  /* by pid; 0: it has none */
static struct gpb_stack samples[SAMPLES];
static bool taken_out[SAMPLES];
static size_t nsamples;

/* Of tables that the kind alone knows; NULL: they are empty. */
static int (*own_look_up)(int fd, const void *key, void *value);
static int (*own_next_key)(int fd, const void *key, void *next);
static int (*own_delete)(int fd, const void *key);

int bpf_map__fd(const struct bpf_map *map)
{
	return (int)(uintptr_t)map;
}

uint32_t bpf_map__value_size(const struct bpf_map *map)
{
	return map == MAP(SCRATCHES) ? sizeof(struct gpb_claim) : sizeof(struct gpb_spent);
}

uint32_t bpf_map__max_entries(const struct bpf_map *map)
{
	(void)map;
	return 0;
}

int bpf_map__set_max_entries(struct bpf_map *map, uint32_t n)
{
	sizes[(uintptr_t)map] = n;
	return 0;
}

int libbpf_num_possible_cpus(void)
{
	return 1;
}

int bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	uint32_t at = *(const uint32_t *)key;

	(void)flags;
	assert_true(fd > 0 && fd < TABLES && at < GPB_CPU_TARGETS);
	if (fd == refusing) {
		errno = ENOSPC;
		return -ENOSPC;
	}
	written[fd][at]++;
	if (fd == SLOT_OF_TGID)
		slot_of[at] = *(const uint32_t *)value;
	return 0;
}

/* The key's hash is the index of the sample. */
static size_t next_sample(const struct gpb_stack_key *key)
{
	size_t i = key ? (size_t)key->hash.lo + 1 : 0;

	while (i < nsamples && taken_out[i])
		i++;
	return i;
}

int bpf_map_get_next_key(int fd, const void *key, void *next)
{
	const struct gpb_stack_key k = { .hash.lo = next_sample(key) };

	if (fd != STACKS && own_next_key)
		return own_next_key(fd, key, next);
	if (fd != STACKS || k.hash.lo >= nsamples)
		return -ENOENT;
	memcpy(next, &k, sizeof(k));
	return 0;
}

int bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	if (fd == STACKS)
		memcpy(value, &samples[((const struct gpb_stack_key *)key)->hash.lo],
		       sizeof(samples[0]));
	else if (fd == SETS || fd == BYSTANDERS)
		memset(value, 0, sizeof(struct gpb_spent));
	else
		return own_look_up ? own_look_up(fd, key, value) : -ENOENT;
	return 0;
}

int bpf_map_delete_elem(int fd, const void *key)
{
	if (fd == STACKS)
		taken_out[((const struct gpb_stack_key *)key)->hash.lo] = true;
	else if (fd == SLOT_OF_TGID)
		slot_of[*(const uint32_t *)key] = 0;
	else
		return own_delete ? own_delete(fd, key) : 0;
	return 0;
}

/* The kernel counts so many samples of one more stack of @slot. */
static inline void sampled(uint32_t slot, uint64_t count)
{
	assert_true(nsamples < SAMPLES);
	samples[nsamples] = (struct gpb_stack){
		.slot = slot, .count = count, .nfirst = 1, .pc = { 0x1000 + nsamples }
	};
	nsamples++;
}

/* ---- its ring ---- */

static ring_buffer_sample_fn on_record;
static void *on_record_arg;
static int ring_fd, nrings;
static bool ring_fails;

struct ring_buffer *ring_buffer__new(int fd, ring_buffer_sample_fn fn, void *arg,
				     const struct ring_buffer_opts *opts)
{
	(void)opts;
	assert_int_equal(fd, RING);
	if (ring_fails)
		return NULL;
	nrings++;
	on_record = fn;
	on_record_arg = arg;
	ring_fd = eventfd(0, EFD_CLOEXEC);
	return (struct ring_buffer *)&on_record;
}

void ring_buffer__free(struct ring_buffer *rb)
{
	if (!rb)
		return;
	close(ring_fd);
	nrings--;
}

int ring_buffer__epoll_fd(const struct ring_buffer *rb)
{
	assert_non_null(rb);
	return ring_fd;
}

int ring_buffer__consume(struct ring_buffer *rb)
{
	assert_non_null(rb);
	return 0;
}

/* ---- the object ---- */

/* The tables that the objects of all kinds have. */
#define HAS_TABLES(skel)                                       \
	do {                                                   \
		(skel)->maps.ring = MAP(RING);                 \
		(skel)->maps.stacks = MAP(STACKS);             \
		(skel)->maps.unwind_rules = MAP(RULES);        \
		(skel)->maps.labelsets = MAP(LABELSETS);       \
		(skel)->maps.scratches = MAP(SCRATCHES);       \
		(skel)->maps.sets = MAP(SETS);                 \
		(skel)->maps.bystanders = MAP(BYSTANDERS);     \
		(skel)->maps.bss = MAP(BSS);                   \
		(skel)->maps.slot_of_tgid = MAP(SLOT_OF_TGID); \
	} while (0)

static int loads, load_fails; /* load_fails: what loading returns */

int bpf_object__load_skeleton(struct bpf_object_skeleton *s)
{
	(void)s;
	loads++;
	return load_fails;
}

struct bpf_program *bpf_object__next_program(const struct bpf_object *obj, struct bpf_program *prev)
{
	(void)obj;
	(void)prev;
	return NULL;
}

/* ---- what was left behind by others: nothing ---- */

void healing_begin(struct healing *h)
{
	(void)h;
}

int healing_fd(struct healing *h)
{
	(void)h;
	return -1;
}

bool healing_over(struct healing *h)
{
	(void)h;
	return false;
}

void healing_end(struct healing *h)
{
	(void)h;
}

void healing_look(struct healing *h, struct target *t, struct healing_found *out)
{
	(void)h;
	(void)t;
	(void)out;
	fail(); /* each process of this file is taken to be healed */
}

/* ---- probes ---- */

/* Those of a file. They begin to count when they are polled first. */
struct probing {
	struct probing_user u;
	int fd; /* readable */
	uint64_t since;
	bool windowed, closed;
	const struct uprobe_group *groups;
};
static int nprobings;
static bool begins_in_windows; /* they do not bear full observation */
static uint64_t unwatched;     /* what each file's probes lost */

int probing_new_file(const struct probed_file *f, const struct collect_opts *o,
		     const struct probing_user *u, struct probing **out, struct err *e)
{
	(void)f;
	(void)o;
	(void)e;
	*out = calloc(1, sizeof(**out));
	(*out)->u = *u;
	(*out)->fd = eventfd(1, EFD_CLOEXEC);
	nprobings++;
	return 0;
}

int probing_set(struct probing *p, const struct uprobe_group *groups, size_t n, struct err *e)
{
	(void)e;
	assert_true(n > 0);
	p->groups = groups;
	return 0;
}

int probing_begin_soon(struct probing *p, struct err *e)
{
	(void)p;
	(void)e;
	return 0;
}

bool probing_beginning(const struct probing *p)
{
	return !p->since;
}

static inline int turn_to(struct probing *p, bool windows, uint64_t since)
{
	p->windowed |= windows;
	return p->u.turn(p->u.arg, windows, since, 400, 8 * NS_PER_MS, NULL);
}

int probing_poll(struct probing *p, struct err *e)
{
	(void)e;
	if (p->since)
		return 0;
	p->since = now;
	return turn_to(p, begins_in_windows, now);
}

int probing_close(struct probing *p, struct err *e)
{
	const struct stretch s = { .opened = p->since, .closed = now, .weight = 1 };

	assert_false(p->closed);
	p->closed = true;
	return p->since && !p->windowed ? p->u.over(p->u.arg, &s, e) : 0;
}

int probing_end(struct probing *p, struct err *e)
{
	(void)e;
	assert_true(p->closed);
	return 0;
}

void probing_free(struct probing *p)
{
	if (!p)
		return;
	close(p->fd);
	free(p);
	nprobings--;
}

int probing_fd(const struct probing *p)
{
	return p->fd;
}

uint64_t probing_since(const struct probing *p)
{
	return p->since;
}

bool probing_windowed(const struct probing *p)
{
	return p->windowed;
}

double probing_spent_ns(const struct probing *p)
{
	assert_non_null(p);
	return 1000;
}

double probing_hit_ns(const struct probing *p)
{
	assert_non_null(p);
	return 400;
}

void probing_losses(const struct probing *p, struct loss *to)
{
	assert_non_null(p);
	to->n[LOSS_UNWATCHED] += unwatched;
}

int probing_comment(const struct probing *p, struct prof *prof, struct err *e)
{
	assert_non_null(p);
	return prof_comment(prof, e, "budget: none");
}

void probing_file_at_once(struct probing *p, size_t n)
{
	assert_non_null(p);
	assert_true(n >= 1);
}

bool uprobes_have_multi(void)
{
	return true;
}

int uprobes_hold(struct uprobes *u, const struct uprobe_group *g, size_t n, bool multi, pid_t pid,
		 const struct uprobe_open *open, struct err *e)
{
	(void)e;
	assert_true(multi && !pid && !open && n == 1 && g->n);
	u->plan = (struct uprobe_plan *)u;
	return 0;
}

int uprobes_attach_again(struct uprobes *u, struct err *e)
{
	(void)e;
	assert_non_null(u->plan);
	return 0;
}

uint64_t uprobes_dead(const struct uprobes *u)
{
	assert_non_null(u->plan);
	return 0;
}

void uprobes_free(struct uprobes *u)
{
	u->plan = NULL;
}

/* ---- processes ---- */

static int wake_fails[PROCESSES]; /* by pid: why its memory cannot be read */
static unsigned wakes[PROCESSES];

int target_wake(struct target *t, struct err *e)
{
	wakes[t->pid]++;
	t->resting = wake_fails[t->pid] != 0;
	return wake_fails[t->pid] ? err_set(e, wake_fails[t->pid], "pid %d is deaf", t->pid) : 0;
}

void target_rest(struct target *t)
{
	t->resting = true;
}

void target_linger(struct target *t)
{
	t->resting = true;
}

/* Nothing else is asked of a process here. */
int target_open(pid_t pid, struct target **out, struct err *e)
{
	(void)out;
	return denied(pid, "is no process", e);
}

int denied(pid_t pid, const char *what, struct err *e)
{
	return err_set(e, -EPERM, "pid %d %s", pid, what);
}

int target_alive(struct target *t, struct err *e)
{
	return denied(t->pid, "is not asked", e);
}

int target_maps(struct target *t, struct err *e)
{
	return denied(t->pid, "has no maps", e);
}

int target_dir(const struct target *t, int *own, struct err *e)
{
	(void)own;
	return denied(t->pid, "has no directory", e);
}

int target_same(const struct target *t, int dir, struct err *e)
{
	(void)dir;
	return denied(t->pid, "has no directory", e);
}

int target_read_here(struct target *t, const char *name, size_t max, char **text, size_t *len,
		     struct err *e)
{
	(void)max;
	(void)text;
	(void)len;
	return denied(t->pid, name, e);
}

void target_pool_leave(struct target *t)
{
	(void)t;
}

void target_free(struct target *t)
{
	(void)t;
}

int engine_tell_identity(const struct engine_target *t, struct prof *p, struct err *e)
{
	return prof_comment(p, e, "pid: %d", t->id.pid);
}

/* What the engine knows of one. */
struct one {
	struct engine_target t;
	struct subject s;
	struct target target;
	void *kept;
};
static struct one *ones[PROCESSES];
static pid_t last_pid;
static int exe_fd = -1; /* of all files: it cannot be mapped, so it is like no other */

/* A process begins that runs the file @inode. */
static inline struct one *process(uint64_t inode)
{
	struct one *p = calloc(1, sizeof(*p));
	pid_t pid = ++last_pid;

	assert_true(pid < PROCESSES);
	ones[pid] = p;
	p->s = subject;
	p->s.target = &p->target;
	p->s.healed = true;
	p->s.images.at[0].inode = inode;
	p->s.images.at[0].fd = exe_fd;
	p->target.pid = p->t.id.pid = pid;
	p->target.exe_local = true;
	snprintf(p->target.exe, sizeof(p->target.exe), "/bin/file%u", (unsigned)inode);
	p->t.subject = &p->s;
	p->t.since_ns = now;
	p->t.since_unix_ns = (int64_t)now;
	p->t.clock = CLOCK_MONOTONIC;
	return p;
}

/* All that a test before this one has left. */
static inline void new_world(void)
{
	now = 1000 * NS_PER_MS;
	memset(written, 0, sizeof(written));
	memset(slot_of, 0, sizeof(slot_of));
	memset(taken_out, 0, sizeof(taken_out));
	memset(wake_fails, 0, sizeof(wake_fails));
	memset(sizes, 0, sizeof(sizes));
	memset(wakes, 0, sizeof(wakes));
	nsamples = 0;
	refusing = loads = load_fails = 0;
	begins_in_windows = ring_fails = false;
	unwatched = 0;
	last_pid = 0;
	exe_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_true(exe_fd >= 0 && nprobings == 0);
}

static inline void end_world(void)
{
	for (pid_t pid = 1; pid <= last_pid; pid++)
		free(ones[pid]);
	close(exe_fd);
	assert_int_equal(nrings, 0);
}

/* ---- a profile ---- */

static inline bool says(const struct prof *p, const char *what)
{
	struct prof_header_view v = prof_header(p);

	for (size_t i = 0; i < v.ncomments; i++)
		if (strstr(strtab_get(prof_strings(p), v.comments[i]), what))
			return true;
	return false;
}

#endif
