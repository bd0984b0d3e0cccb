/*
 * tests/unit/cpu_fakes.h - the kernel, the clocks and the time of test_cpu.c, and a profile of one program.
 */
#ifndef TESTS_UNIT_CPU_FAKES_H
#define TESTS_UNIT_CPU_FAKES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <bpf/bpf.h>

#include "base/clock.h"
#include "collect/collect.h"
#include "collect/cpu/clocks.h"
#include "probe/bpf.h"
#include "probe/reports.h"
#include "subject/verify.h"
#include "symbolize/stack_physical.h"
#include "symbolize/subject_prof.h"
#include "target/host/kallsyms.h"
#include "target/host/pidns.h"
#include "cpu.skel.h"

#define MS NS_PER_MS
#define S  NS_PER_S

enum { PID = 7, PIDNS = 4026, KERNEL_STACK = 16384, RING_FD = 42 };
enum {
	TARGETS = 1,
	SLOTS,
	RING,
	OWN_CLOCK,
	RULES,
	STACKS,
	ENDING,
	PROG,
	HOST_CLOCK,
	ON_THREAD,
	ON_END,
	ON_REAPED
};

static struct {
	uint64_t now, charged, clocks_ns; /* by /proc, and by clocks */
	bool uncharged;			  /* /proc cannot be read */
	bool family, old, no_helper, hidden;
	int pidns, verify, open, load, map, fill, clocks, drain, rules; /* what these return */
	uint64_t missed, step;
	unsigned targets_put, refined, nset, stopped, cpu_reads;
	uint64_t set_id[8], set_step[8];
	unsigned entries[ON_THREAD + 1];
	bool host_clock_off, ends_off, watched, loaded;
	int things; /* that are to be freed */
	struct cpu_bpf *obj;
	struct reports *reports;
	int64_t value[2];
	size_t nlabels;
	char said[256];
} w;

static int failed(int code, const char *why, struct err *e)
{
	return code ? err_set(e, code, "%s", why) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	uint64_t now = clock == CLOCK_REALTIME ? w.now + 1000 * S : w.now;

	*ts = (struct timespec){ (time_t)(now / S), (long)(now % S) };
	return 0;
}

/* ---- BPF ---- */

static struct cpu_bpf__bss bss;
static struct cpu_bpf__rodata rodata;

bool bpf_is_old(void)
{
	return w.old;
}

uint32_t bpf_old_kernel_stack(void)
{
	return KERNEL_STACK;
}

const void *cpu_old_bytes(size_t *n)
{
	*n = 0;
	return NULL;
}

int bpf_open_fitting(struct bpf_object_skeleton *s, const void *(*old_bytes)(size_t *n))
{
	(void)old_bytes;
	w.things++;
	if (w.open) {
		errno = -w.open;
		return w.open;
	}
	w.obj = (struct cpu_bpf *)((char *)s->obj - offsetof(struct cpu_bpf, obj));
	w.obj->bss = &bss;
	w.obj->rodata = &rodata;
	w.obj->maps.targets = (struct bpf_map *)TARGETS;
	w.obj->maps.slot_of_tgid = (struct bpf_map *)SLOTS;
	w.obj->maps.ring = (struct bpf_map *)RING;
	w.obj->maps.own_clock = (struct bpf_map *)OWN_CLOCK;
	w.obj->maps.unwind_rules = (struct bpf_map *)RULES;
	w.obj->maps.stacks = (struct bpf_map *)STACKS;
	w.obj->maps.ending = (struct bpf_map *)ENDING;
	w.obj->progs.on_end = (struct bpf_program *)ON_END;
	w.obj->progs.on_reaped = (struct bpf_program *)ON_REAPED;
	w.obj->progs.thread_clock = (struct bpf_program *)PROG;
	w.obj->progs.host_clock = (struct bpf_program *)HOST_CLOCK;
	w.obj->progs.on_thread = (struct bpf_program *)ON_THREAD;
	return 0;
}

int bpf_object__load_skeleton(struct bpf_object_skeleton *s)
{
	(void)s;
	w.loaded = !w.load;
	return w.load;
}

void bpf_object__destroy_skeleton(struct bpf_object_skeleton *s)
{
	w.things--;
	free(s->maps);
	free(s->progs);
	free(s);
}

void bpf_fit_kernel(struct bpf_object *o)
{
	(void)o;
}

void bpf_log_begin(void)
{
}

int bpf_load_error(struct err *e, int code, const char *what)
{
	assert_null(what);
	return err_set(e, code, "it is not loaded");
}

int bpf_program__set_autoload(struct bpf_program *prog, bool autoload)
{
	assert_false(autoload || w.loaded);
	w.host_clock_off |= prog == w.obj->progs.host_clock;
	return 0;
}

int bpf_map__set_autocreate(struct bpf_map *map, bool autocreate)
{
	assert_true(map == w.obj->maps.ending && !autocreate && !w.loaded);
	w.ends_off = true;
	return 0;
}

int bpf_map__set_max_entries(struct bpf_map *map, __u32 max_entries)
{
	assert_false(w.loaded);
	w.entries[(intptr_t)map] = max_entries;
	return 0;
}

int bpf_map__fd(const struct bpf_map *map)
{
	return (int)(intptr_t)map;
}

int bpf_program__fd(const struct bpf_program *prog)
{
	return (int)(intptr_t)prog;
}

int bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	assert_true(w.loaded && flags == BPF_ANY);
	if (fd == SLOTS)
		assert_true(*(const uint32_t *)key == PID && *(const uint32_t *)value == 0);
	else
		assert_true(fd == TARGETS && *(const uint32_t *)key == 0);
	w.targets_put += fd == SLOTS;
	errno = -w.map;
	return w.map ? -1 : 0;
}

int libbpf_probe_bpf_helper(enum bpf_prog_type type, enum bpf_func_id helper, const void *opts)
{
	(void)opts;
	assert_true(type == BPF_PROG_TYPE_PERF_EVENT && helper == BPF_FUNC_probe_read_kernel);
	return w.no_helper ? -EPERM : 1;
}

struct bpf_link *bpf_program__attach(const struct bpf_program *prog)
{
	assert_int_equal((intptr_t)prog, ON_THREAD);
	w.things++;
	w.watched = true;
	return (struct bpf_link *)&w;
}

int bpf_link__destroy(struct bpf_link *link)
{
	w.things -= link != NULL;
	return 0;
}

int bpf_target_fill(struct subject *s, const struct collect_opts *o, struct gpb_target *out,
		    struct err *e)
{
	(void)s;
	(void)o;
	memset(out, 0, sizeof(*out));
	return failed(w.fill, "no target", e);
}

/* ---- reports ---- */

int reports_open(struct reports *f, struct subject *s, const struct bpf_map *ring,
		 const struct bpf_map *rules, reports_add *add, void *arg, struct err *e)
{
	(void)e;
	assert_true((intptr_t)ring == RING && (intptr_t)rules == RULES);
	f->s = s;
	f->add = add;
	f->arg = arg;
	w.reports = f;
	w.things++;
	return 0;
}

void reports_fini(struct reports *f)
{
	w.things -= f->s != NULL;
}

int reports_fd(const struct reports *f)
{
	assert_ptr_equal(f, w.reports);
	return RING_FD;
}

int reports_poll(struct reports *f, struct err *e)
{
	assert_ptr_equal(f, w.reports);
	return failed(w.drain, "no ring", e);
}

int reports_drain(struct reports *f, const struct bpf_map *stacks, struct err *e)
{
	assert_true(f == w.reports && (intptr_t)stacks == STACKS);
	assert_int_equal(w.stopped, 1); /* nothing is added any more */
	return failed(w.drain, "no table", e);
}

void reports_losses(const struct reports *f, const struct gpb_tally *of,
		    const struct bpf_object *obj, struct loss *to)
{
	assert_true(f == w.reports && of == &bss.tallies[0] && !obj);
	to->n[LOSS_SAMPLES_DROPPED] += 3;
}

size_t labelsets_of(const struct labelsets *l, const struct gpb_stack *st, uint64_t one,
		    struct prof_label out[GPB_MAX_LABELS + 1], struct loss *loss)
{
	assert_true(l == &w.reports->labels && one == 1);
	out[0] = (struct prof_label){ .key = "goid", .num = 5 };
	loss->n[LOSS_LABELS_CUT] += st->count;
	return 1;
}

int unwind_rules_comment(const struct unwind_rules *r, const struct subject *s, struct prof *p,
			 struct err *e)
{
	(void)s;
	assert_ptr_equal(r, &w.reports->rules);
	return w.rules ? w.rules : prof_comment(p, e, "rules: some");
}

void stack_physical_init(struct stack_physical *ph, struct subject *s, struct prof *p,
			 enum hide hide)
{
	assert_true(p && hide == HIDE_NONE);
	w.things++;
	*ph = (struct stack_physical){ .s = s, .p = p };
}

void stack_physical_fini(struct stack_physical *ph)
{
	w.things -= ph->s != NULL;
}

int stack_physical_add(struct stack_physical *ph, const struct gpb_stack *st, const int64_t *values,
		       const struct prof_label *labels, size_t nlabels, struct err *e)
{
	(void)ph;
	(void)st;
	(void)e;
	memcpy(w.value, values, sizeof(w.value));
	w.nlabels = nlabels;
	assert_string_equal(labels[0].key, "goid");
	return 0;
}

/* ---- clocks ---- */

int clocks_open(struct clocks *c, struct target *t, int prog_fd, int own_clock_fd, uint64_t step_ns,
		struct err *e)
{
	static struct clock one;

	assert_true(t->pid == PID && prog_fd == PROG && own_clock_fd == OWN_CLOCK);
	assert_int_equal(w.targets_put, 1); /* else the first hits would be nobody's */
	*c = (struct clocks){
		.at = { &one, 1, 1 }, .step_ns = step_ns, .missed = w.missed, .children = w.family
	};
	w.step = step_ns;
	w.things++;
	return failed(w.clocks, "no clock", e);
}

void clocks_set(struct clocks *c, uint64_t id, uint64_t step_ns)
{
	(void)c;
	assert_true(w.nset < ARRAY_LEN(w.set_id));
	w.set_id[w.nset] = id;
	w.set_step[w.nset++] = step_ns;
}

void clocks_refine(struct clocks *c)
{
	(void)c;
	assert_true(bss.coarsen != 0); /* births count as fine only when all steps are short */
	w.refined++;
}

void clocks_stop(struct clocks *c)
{
	(void)c;
	w.stopped++;
	w.now += 20 * MS;
	w.charged += 30 * MS; /* the process runs on */
}

uint64_t clocks_total_ns(const struct clocks *c)
{
	(void)c;
	return w.clocks_ns;
}

void clocks_close(struct clocks *c)
{
	w.things -= c->step_ns != 0;
}

/* ---- the target ---- */

int target_cpu_ns(struct target *t, uint64_t *ns, struct err *e)
{
	(void)t;
	w.cpu_reads++;
	if (w.uncharged)
		return err_set(e, -ESRCH, "gone");
	*ns = w.charged;
	return 0;
}

int subject_prof(struct subject *s, const char *source, struct prof **out, struct err *e)
{
	(void)s;
	(void)source;
	return prof_new(out, e);
}

int verify_structs(struct subject *s, enum layout_use use, struct err *e)
{
	(void)s;
	assert_int_equal(use, LAYOUT_USE_STACKS);
	return failed(w.verify, "no offsets", e);
}

int pidns_inode(uint32_t *ino, struct err *e)
{
	*ino = PIDNS;
	return failed(w.pidns, "no namespace", e);
}

int kallsyms_shown(struct err *e)
{
	return w.hidden ? err_set(e, -EPERM, "kernel names are hidden") : 0;
}

void say(const struct collect_opts *o, const char *fmt, ...)
{
	va_list ap;

	(void)o;
	if (!strstr(fmt, "warning"))
		return;
	va_start(ap, fmt);
	vsnprintf(w.said, sizeof(w.said), fmt, ap);
	va_end(ap);
}

/* ---- a profile ---- */

static const struct collector *const k = &collector_cpu;
static struct target target = { .pid = PID };
static struct subject subject = { .target = &target };
static struct collect_opts opts;
static void *state_of;
static struct prof *prof;
static struct err err;

static int set_up(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	memset(&bss, 0, sizeof(bss));
	memset(&rodata, 0, sizeof(rodata));
	w.now = 50 * S;
	w.charged = 5 * S;
	opts = (struct collect_opts){ .cpu = { .hz = 100 } };
	subject.images.n = 1;
	state_of = NULL;
	prof = NULL;
	err = (struct err){};
	return 0;
}

/* Whatever came of it, nothing is left. */
static int tear_down(void **state)
{
	(void)state;
	prof_free(prof);
	prof = NULL;
	k->free(state_of);
	state_of = NULL;
	assert_int_equal(w.things, 0);
	return 0;
}

static void start(void)
{
	if (k->start(&subject, &opts, &state_of, &err))
		fail_msg("%s", err.msg);
}

static void stop(void)
{
	if (k->stop(state_of, &prof, &err))
		fail_msg("%s", err.msg);
	assert_non_null(prof);
}

static bool says(const char *part)
{
	struct prof_header_view h = prof_header(prof);

	for (size_t i = 0; i < h.ncomments; i++)
		if (strstr(strtab_get(prof_strings(prof), h.comments[i]), part))
			return true;
	return false;
}

static uint64_t lost(enum loss_kind kind)
{
	return prof_loss(prof)->n[kind];
}

#endif
