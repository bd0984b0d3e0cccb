/*
 * tests/unit/cpu_host_fakes.h - for test_cpu_host.c: the BPF object, the clocks of CPUs, the kernel's names, and what an engine does
 * with the kind. Whose a sample is, and what room it has, is told by the real probe/demux.c; frames by the real symbolize/.
 */
#ifndef TESTS_UNIT_CPU_HOST_FAKES_H
#define TESTS_UNIT_CPU_HOST_FAKES_H

#include "collect/cpu/host.h"

#include "collect/cpu/host_clocks.h"
#include "many_world.h"
#include "probe/bpf_fit.h"
#include "subject/verify.h"
#include "target/host/kallsyms.h"
#include "target/host/pidns.h"
#include "cpu.skel.h"

#define MS NS_PER_MS
#define S  NS_PER_S

enum { TARGETS = KINDS_OWN, OWN_CLOCK, PHASES, ENDING };
enum { THREAD_CLOCK = 1, HOST_CLOCK, ON_THREAD, ON_END, ON_REAPED };
enum { HZ = 100, PERIOD = NS_PER_S / HZ, PIDNS = 4026 };
enum { STACKS_MOST = 8192 /* in one profile */ };

static struct {
	int open_fails, clocks_fail, start_fails, verify_fails, pidns_fails; /* what these return */
	int untold;		       /* the program that cannot be attached; 0: all can */
	bool hidden;		       /* the kernel's names are */
	unsigned not_loaded, not_made; /* programs and tables of the object, one bit each */
	int objects, links, clocks;    /* that are to be freed */
	uint64_t period, weight;       /* of the clocks */
	unsigned turns;
	bool ticking;
	char said[256];
} w;

static int failed(int code, const char *why, struct err *e)
{
	return code ? err_set(e, code, "%s", why) : 0;
}

/* ---- the object ---- */

static struct cpu_bpf__bss bss;
static struct cpu_bpf__rodata rodata;
static struct cpu_bpf__data data;

#define PROG(n) ((struct bpf_program *)(uintptr_t)(n))

int bpf_object__open_skeleton(struct bpf_object_skeleton *s,
			      const struct bpf_object_open_opts *with)
{
	struct cpu_bpf *o = (struct cpu_bpf *)((char *)s->obj - offsetof(struct cpu_bpf, obj));

	(void)with;
	w.objects++;
	if (w.open_fails)
		return w.open_fails;
	o->bss = &bss;
	o->rodata = &rodata;
	o->data = &data;
	o->maps.ring = MAP(RING);
	o->maps.stacks = MAP(STACKS);
	o->maps.unwind_rules = MAP(RULES);
	o->maps.labelsets = MAP(LABELSETS);
	o->maps.scratches = MAP(SCRATCHES);
	o->maps.slot_of_tgid = MAP(SLOT_OF_TGID);
	o->maps.targets = MAP(TARGETS);
	o->maps.own_clock = MAP(OWN_CLOCK);
	o->maps.phases = MAP(PHASES);
	o->maps.ending = MAP(ENDING);
	o->progs.thread_clock = PROG(THREAD_CLOCK);
	o->progs.host_clock = PROG(HOST_CLOCK);
	o->progs.on_thread = PROG(ON_THREAD);
	o->progs.on_end = PROG(ON_END);
	o->progs.on_reaped = PROG(ON_REAPED);
	return 0;
}

void bpf_object__destroy_skeleton(struct bpf_object_skeleton *s)
{
	w.objects--;
	free(s->maps);
	free(s->progs);
	free(s);
}

/* The kernel has all that is asked for. */
int libbpf_probe_bpf_helper(enum bpf_prog_type type, enum bpf_func_id helper, const void *with)
{
	(void)type;
	(void)helper;
	(void)with;
	return 1;
}

int bpf_map_create(enum bpf_map_type type, const char *name, __u32 key, __u32 value, __u32 n,
		   const struct bpf_map_create_opts *with)
{
	(void)type;
	(void)name;
	(void)key;
	(void)value;
	(void)n;
	(void)with;
	errno = EPERM;
	return -EPERM;
}

void bpf_fit(struct bpf_object *o, bool whole)
{
	assert_false(o || whole);
}

int bpf_program__set_autoload(struct bpf_program *prog, bool autoload)
{
	assert_true(!autoload && !loads);
	w.not_loaded |= 1u << (uintptr_t)prog;
	return 0;
}

int bpf_map__set_autocreate(struct bpf_map *map, bool autocreate)
{
	assert_true(!autocreate && !loads);
	w.not_made |= 1u << (uintptr_t)map;
	return 0;
}

int bpf_program__fd(const struct bpf_program *prog)
{
	return (int)(uintptr_t)prog;
}

struct bpf_link *bpf_program__attach(const struct bpf_program *prog)
{
	assert_true(prog == PROG(ON_END) || prog == PROG(ON_REAPED));
	if (prog == PROG(w.untold))
		return NULL;
	w.links++;
	return (struct bpf_link *)&w;
}

int bpf_link__destroy(struct bpf_link *link)
{
	w.links -= link != NULL;
	return 0;
}

/* ---- clocks ---- */

int host_clocks_open(struct host_clocks *c, int prog_fd, uint64_t period_ns, struct err *e)
{
	assert_true(prog_fd == HOST_CLOCK && loads);
	w.clocks++;
	w.period = c->period_ns = period_ns;
	return failed(w.clocks_fail, "no clock", e);
}

int host_clocks_start(struct host_clocks *c, struct err *e)
{
	w.ticking = c->on = true;
	return failed(w.start_fails, "it does not tick", e);
}

void host_clocks_stop(struct host_clocks *c)
{
	w.ticking = c->on = false;
}

void host_clocks_weigh(struct host_clocks *c, uint64_t weight)
{
	w.weight = c->weight = weight;
}

void host_clocks_turn(struct host_clocks *c)
{
	assert_true(c->on);
	w.turns++;
}

void host_clocks_close(struct host_clocks *c)
{
	w.clocks -= c->period_ns != 0;
}

/* ---- what it is asked before ---- */

int verify_structs(struct subject *s, enum layout_use use, struct err *e)
{
	assert_true(s && use == LAYOUT_USE_STACKS);
	return failed(w.verify_fails, "no offsets", e);
}

int pidns_inode(uint32_t *ino, struct err *e)
{
	*ino = PIDNS;
	return failed(w.pidns_fails, "no namespace", e);
}

int kallsyms_shown(struct err *e)
{
	return failed(w.hidden ? -EPERM : 0, "kernel names are hidden", e);
}

int kallsyms_open(struct kallsyms **out, struct err *e)
{
	(void)e;
	*out = (struct kallsyms *)&w;
	return 0;
}

void kallsyms_free(struct kallsyms *k)
{
	(void)k;
}

const char *kallsyms_find(const struct kallsyms *k, uint64_t addr)
{
	assert_true(k && addr);
	return "schedule";
}

static void say_to(void *arg, const char *line)
{
	(void)arg;
	snprintf(w.said, sizeof(w.said), "%s", line);
}

/* ---- the world ---- */

static const struct engine_kind *const kind = &engine_cpu;
static struct collect_opts opts;
static void *many;
static struct prof *prof; /* the one that was made last */
static struct err err;

static int open_kind(unsigned expected)
{
	return kind->open(kind, &opts, expected, &many, &err);
}

/* The kind is not opened yet. */
static int set_up_closed(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	memset(&bss, 0, sizeof(bss));
	memset(&rodata, 0, sizeof(rodata));
	data = (struct cpu_bpf__data){ .tick_weight = 1 };
	opts = (struct collect_opts){ .cpu = { .hz = HZ }, .say = say_to };
	err = (struct err){};
	many = prof = NULL;
	new_world();
	return 0;
}

static int set_up(void **state)
{
	return set_up_closed(state) ? -1 : open_kind(4);
}

static void forget(struct one *p)
{
	kind->forget(many, &p->t, TAKE(p->kept));
}

/* Whatever came of it, nothing is left. */
static int tear_down(void **state)
{
	(void)state;
	prof_free(prof);
	for (pid_t pid = 1; pid <= last_pid; pid++)
		if (ones[pid]->kept)
			forget(ones[pid]);
	if (many)
		kind->free(many);
	assert_true(!w.objects && !w.links && !w.clocks);
	end_world();
	return 0;
}

static void again(void **state)
{
	assert_int_equal(tear_down(state), 0);
	assert_int_equal(set_up(state), 0);
}

/* ---- what an engine does ---- */

static int put(struct one *p)
{
	return kind->put(many, &p->t, &p->kept, &err);
}

/* A process begins, in the slot @index, which others had before. */
static struct one *born(uint32_t index)
{
	struct one *p = process(index);

	p->t.slot = 3u << GPB_SLOT_GENERATION | index;
	return p;
}

static struct one *joins(uint32_t index)
{
	struct one *p = born(index);

	assert_int_equal(put(p), 0);
	return p;
}

static void begin(void)
{
	assert_int_equal(kind->begin(many, &err), 0);
}

static void tick(size_t targets)
{
	now += 100 * MS;
	assert_int_equal(kind->tick(many, targets, &err), 0);
}

static void drain(void)
{
	assert_int_equal(kind->drain(many, &err), 0);
	nsamples = 0;
	memset(taken_out, 0, sizeof(taken_out));
}

/* Its clock is read, which counts from the process' start. */
static void is_read(struct one *p, uint64_t ns)
{
	p->t.cpu_ns = ns - p->t.base_ns;
	p->t.cpu_exact = true;
}

/* It ends. Whoever could read its clock once more has done so before. */
static void ends(struct one *p)
{
	kind->remove(many, &p->t);
	p->t.until_ns = now;
	p->t.state = ENGINE_ENDED;
}

static void ends_unread(struct one *p)
{
	p->t.cpu_exact = false;
	ends(p);
}

static void close_window(void)
{
	kind->close(many);
	drain();
}

/* NULL: it has none. */
static struct prof *profile(struct one *p)
{
	prof_free(prof);
	prof = NULL;
	assert_int_equal(kind->profile(many, &p->t, p->kept, &prof, &err), 0);
	return prof;
}

/* ---- what the BPF side does ---- */

static struct gpb_tally *tally(const struct one *p)
{
	return &bss.tallies[demux_index(p->t.slot)];
}

/* So many ticks meet it, with a stack that no tick before has met since the table was emptied. */
static void is_met(struct one *p, uint64_t ticks)
{
	tally(p)->samples += ticks;
	bss.stacks_put++;
	sampled(p->t.slot, ticks);
}

/* With that stack: innermost frame, caller. */
static struct gpb_stack *is_met_in(struct one *p, uint64_t ticks, uint64_t leaf, uint64_t caller)
{
	is_met(p, ticks);
	samples[nsamples - 1].nfirst = 2;
	samples[nsamples - 1].pc[0] = leaf;
	samples[nsamples - 1].pc[1] = caller;
	return &samples[nsamples - 1];
}

/* Distinct stacks, in few functions. */
static void is_met_in_many(struct one *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		is_met_in(p, 1, 0x1000 + i % 16, 0x100000 + i / 16);
		if (nsamples == SAMPLES || i + 1 == n)
			drain();
	}
}

static void is_reaped(struct one *p, uint64_t ns)
{
	bss.charges[demux_index(p->t.slot)] = (struct gpb_charge){ .ns = ns, .slot = p->t.slot };
}

static void send_labels(uint32_t slot, uint64_t id)
{
	struct gpb_rec_labels *rec = calloc(1, sizeof(*rec));

	*rec = (struct gpb_rec_labels){ .type = GPB_REC_LABELS, .id = id, .n = 1, .slot = slot };
	rec->label[0].key_len = rec->label[0].value_len = 1;
	rec->label[0].key[0] = 'k';
	rec->label[0].value[0] = 'v';
	assert_int_equal(on_record(on_record_arg, rec, offsetof(struct gpb_rec_labels, label[1])),
			 0);
	free(rec);
}

/* ---- what is in the profile ---- */

static int64_t value(size_t sample, size_t type)
{
	return prof_sample_at(prof, sample).values[type];
}

static int64_t total(size_t type)
{
	int64_t sum = 0;

	for (size_t i = 0; i < prof_nsamples(prof); i++)
		sum += value(i, type);
	return sum;
}

/* Is its CPU time that? Of each sample less than a nanosecond is cut off. */
static bool is_worth(uint64_t ns)
{
	uint64_t sum = (uint64_t)total(1);

	return sum <= ns && sum + prof_nsamples(prof) >= ns;
}

static uint64_t address(size_t sample, size_t frame)
{
	return prof_location_at(prof, prof_sample_at(prof, sample).locs[frame] - 1).address;
}

static uint64_t lost(enum loss_kind which)
{
	return prof_loss(prof)->n[which];
}

#endif
