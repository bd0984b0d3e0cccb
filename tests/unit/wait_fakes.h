/*
 * tests/unit/wait_fakes.h - what a wait profile of one target asks of others, for test_wait.c and test_wait_probes.c: the target,
 * names of functions, the engine below it, probes and BPF objects.
 */
#ifndef TESTS_UNIT_WAIT_FAKES_H
#define TESTS_UNIT_WAIT_FAKES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "collect/collect.h"
#include "collect/waits/engine/wait_left.h"
#include "collect/waits/wait/wait_priv.h"
#include "go/runtime/waitreason.h"
#include "probe/bpf.h"
#include "subject/verify.h"
#include "symbolize/subject_prof.h"

enum { SLEEP = 14 }; /* Go 1.27's number of that reason */
enum { TEXT = 0x401000, FUNC_BYTES = 64, FUNCS_MAX = 64, STATUS_OFF = 144, REASON_OFF = 176 };

#define SEC   1000000000ull
#define EPOCH 1700000000ull /* unix seconds when CLOCK_MONOTONIC began */

/* ---- the target ---- */

static struct {
	int minor;
	uint64_t now;
	const char *names[FUNCS_MAX]; /* one for each address that a stack has; NULL: it has none */
	size_t nnames;
	struct wait_left left;
	int gone;		    /* why nobody knows who waits at the end; 0: somebody does */
	int unsure, who_unsure;	    /* what verifying its offsets returns */
	struct prof_label label[2]; /* that all of its samples have */
	size_t nlabels;
	char told[1024];
} t;

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	time_t more = clock == CLOCK_REALTIME ? (time_t)EPOCH : 0;

	*ts = (struct timespec){ (time_t)(t.now / SEC) + more, (long)(t.now % SEC) };
	return 0;
}

const struct gobin_info *gobin_info(const struct gobin *b)
{
	static struct gobin_info info;

	(void)b;
	info.minor = t.minor;
	return &info;
}

const char *gobin_func_name(struct gobin *b, const struct gofunc *f)
{
	(void)b;
	return t.names[(f->entry - TEXT) / FUNC_BYTES];
}

int subject_func(struct subject *s, uint64_t pc, struct gofunc *f, const struct image **img)
{
	size_t i = (pc - TEXT) / FUNC_BYTES;

	*img = &s->images.at[0];
	*f = (struct gofunc){ .entry = TEXT + i * FUNC_BYTES };
	return pc >= TEXT && i < t.nnames && t.names[i] ? 0 : -ENOENT;
}

const char *subject_func_name(struct subject *s, uint64_t pc)
{
	const struct image *img;
	struct gofunc f;

	return subject_func(s, pc, &f, &img) ? NULL : gobin_func_name(img->bin, &f);
}

const char *image_path(const struct image *img, char buf[SUBJECT_PATH])
{
	snprintf(buf, SUBJECT_PATH, "/file/%d", img->fd);
	return buf;
}

void say(const struct collect_opts *o, const char *fmt, ...)
{
	size_t n = strlen(t.told);
	va_list ap;

	(void)o;
	va_start(ap, fmt);
	vsnprintf(t.told + n, sizeof(t.told) - n, fmt, ap);
	va_end(ap);
}

int verify_structs(struct subject *s, enum layout_use use, struct err *e)
{
	int ret = use == LAYOUT_USE_WAITS ? t.unsure : t.who_unsure;

	(void)s;
	return ret ? err_set(e, ret, "offsets are not known") : 0;
}

/* test_wait_left.c is about these. */
bool wait_by_runtime(struct subject *s, uint64_t start)
{
	const char *name = subject_func_name(s, start);

	return name && !strncmp(name, "runtime.", 8) && strcmp(name, "runtime.main") != 0;
}

const char *wait_reason_text(int minor, unsigned reason, char buf[32])
{
	snprintf(buf, 32, "reason %u of 1.%d", reason, minor);
	return buf;
}

int wait_left(struct subject *s, struct wait_left *out, struct err *e)
{
	(void)s;
	if (t.gone)
		return err_set(e, t.gone, "it has exited");
	*out = t.left;
	return 0;
}

size_t labelsets_of(const struct labelsets *l, const struct gpb_stack *st, uint64_t one,
		    struct prof_label out[GPB_MAX_LABELS + 1], struct loss *loss)
{
	(void)st;
	assert_non_null(l);
	assert_int_equal(one, GPB_COUNT_ONE);
	loss->n[LOSS_LABELS_CUT]++;
	memcpy(out, t.label, t.nlabels * sizeof(*out));
	return t.nlabels;
}

/* ---- a profile: a stack is its innermost function ---- */

static int open_profiles;

int subject_prof(struct subject *s, const char *source, struct prof **out, struct err *e)
{
	int ret = prof_new(out, e);

	(void)s;
	return ret ? ret : prof_comment(*out, e, "source: %s", source);
}

void stack_physical_init(struct stack_physical *ph, struct subject *s, struct prof *p,
			 enum hide hide)
{
	assert_int_equal(hide, HIDE_PARKED);
	*ph = (struct stack_physical){ .s = s, .p = p };
	open_profiles++;
}

void stack_physical_fini(struct stack_physical *ph)
{
	open_profiles -= ph->p != NULL;
}

int stack_physical_add(struct stack_physical *ph, const struct gpb_stack *st, const int64_t *values,
		       const struct prof_label *labels, size_t nlabels, struct err *e)
{
	const char *name = subject_func_name(ph->s, st->pc[st->nkernel] - 1);
	const struct prof_line line = { name ? name : "?", "main.go", 7, 0 };
	uint32_t loc = (uint32_t)prof_location(ph->p, 0, st->pc[st->nkernel], &line, 1, e);

	return prof_sample(ph->p, &loc, 1, values, labels, nlabels, e);
}

/* ---- the engine: what is added is seen in full ---- */

static struct {
	int inits, opens, open_fails, targets, polls, stops, stop_fails, ends;
	struct gpb_waiting_seen seen;
	int seen_fails;
	bool windowed;
	uint64_t since; /* when hits began to count */
	int begins, sets;
	struct uprobe_group groups[GPB_IMAGES]; /* that were set last */
	size_t ngroups;
} en;

void wait_engine_init(struct wait_engine *w, const struct wait_kind *kind, void *arg,
		      void *settings, struct gpb_wait_terms *terms)
{
	en.inits++;
	w->kind = kind;
	w->arg = arg;
	w->settings = settings;
	w->terms = terms;
	w->reports = &w->own_reports;
	tally_init(&w->tally);
	w->tally.arg = w;
	w->tally.merged = true;
}

void wait_engine_fini(struct wait_engine *w)
{
	en.inits--;
	tally_fini(&w->tally);
}

int wait_engine_add(struct wait_engine *w, const struct gpb_stack *st, size_t group, struct err *e)
{
	return tally_add_full(&w->tally, st, group, e);
}

struct gpb_wait_terms wait_engine_endless(void)
{
	return (struct gpb_wait_terms){};
}

int wait_engine_hit_cost(struct wait_engine *w, const void *settings, uint64_t cookie,
			 struct hit_cost *out, struct cost_probes **rest, struct err *e)
{
	(void)w;
	(void)settings;
	(void)cookie;
	(void)out;
	(void)rest;
	return err_set(e, -ENOTSUP, "not here");
}

int wait_engine_open(struct wait_engine *w, const char *what, struct err *e)
{
	assert_string_equal(what, "wait");
	en.opens++;
	w->ep = 55;
	return en.open_fails ? err_set(e, en.open_fails, "no ring") : 0;
}

int wait_engine_target(struct wait_engine *w, struct err *e)
{
	(void)w;
	(void)e;
	en.targets++;
	return 0;
}

int wait_engine_poll(struct wait_engine *w, struct err *e)
{
	(void)w;
	(void)e;
	en.polls++;
	return 0;
}

int wait_engine_seen(const struct wait_engine *w, void *out, struct err *e)
{
	(void)w;
	if (en.seen_fails)
		return err_set(e, en.seen_fails, "no table");
	memcpy(out, &en.seen, sizeof(en.seen));
	return 0;
}

int wait_engine_stop(struct wait_engine *w, struct err *e)
{
	(void)w;
	en.stops++;
	return en.stop_fails ? err_set(e, en.stop_fails, "probes stay") : 0;
}

void wait_engine_end(struct wait_engine *w)
{
	(void)w;
	assert_int_equal(en.ends++, en.stops - 1); /* nothing is probed any more */
}

void wait_engine_losses(const struct wait_engine *w, struct loss *to)
{
	(void)w;
	to->n[LOSS_SAMPLES_DROPPED] += 21;
}

struct looks_estimate looks_of(const struct looks *k, size_t entry)
{
	(void)k;
	(void)entry;
	fail_msg("there are no looks");
	return (struct looks_estimate){};
}

const struct looks_sums *looks_sums(const struct looks *k)
{
	(void)k;
	fail_msg("there are no looks");
	return NULL;
}

/* ---- probes ---- */

int probing_begin(struct probing *p, struct err *e)
{
	(void)p;
	(void)e;
	en.begins++;
	return 0;
}

int probing_set(struct probing *p, const struct uprobe_group *g, size_t n, struct err *e)
{
	(void)p;
	(void)e;
	assert_true(n <= GPB_IMAGES);
	en.sets++;
	memcpy(en.groups, g, n * sizeof(*g));
	en.ngroups = n;
	return 0;
}

uint64_t probing_since(const struct probing *p)
{
	(void)p;
	return en.since;
}

bool probing_windowed(const struct probing *p)
{
	(void)p;
	return en.windowed;
}

int probing_comment(const struct probing *p, struct prof *prof, struct err *e)
{
	(void)p;
	return prof_comment(prof, e, "budget: receipt");
}

static struct waitsite found[2][WAITSITES_MAX]; /* in the program, and in a plugin */
static int nfound[2];				/* how many; < 0: an error */

int waitsites_find(struct gobin *b, int32_t g_atomicstatus, struct waitsite out[WAITSITES_MAX],
		   struct err *e)
{
	int which = b != NULL, n = nfound[which];

	assert_int_equal(g_atomicstatus, STATUS_OFF);
	if (n < 0)
		return err_set(e, n, "no place for a probe");
	memcpy(out, found[which], (size_t)n * sizeof(*out));
	return n;
}

/* ---- BPF: maps and programs are numbers ---- */

static struct {
	int open, loads;
	int open_fails, load_fails, old_fails;
	bool has_multi, prepared_multi, many, fitted;
	const struct bpf_program *prepared;
	size_t slots, sized; /* for so many slots; the maps that were sized so, a bit each */
	const struct bpf_map *resized;
	uint32_t size;
} bpf;

enum { OBJECT = 1000, PROGRAM = 2000 };

static struct bpf_map *map_number(size_t i)
{
	return (struct bpf_map *)(uintptr_t)(i + 1);
}

bool uprobes_have_multi(void)
{
	return bpf.has_multi;
}

void uprobes_prepare(struct bpf_program *prog, bool multi)
{
	bpf.prepared = prog;
	bpf.prepared_multi = multi;
}

const void *wait_old_bytes(size_t *n)
{
	*n = 0;
	return NULL;
}

static size_t data_of(const char *map)
{
	return strstr(map, ".rodata") ? sizeof(struct wait_bpf__rodata) :
	       strstr(map, ".bss")    ? sizeof(struct wait_bpf__bss) :
					sizeof(struct wait_bpf__data);
}

int bpf_open_fitting(struct bpf_object_skeleton *s, const void *(*old_bytes)(size_t *n))
{
	assert_ptr_equal(old_bytes, wait_old_bytes);
	bpf.open++;
	if (bpf.open_fails) {
		errno = -bpf.open_fails;
		return bpf.open_fails;
	}
	*s->obj = (struct bpf_object *)(uintptr_t)OBJECT;
	*s->progs[0].prog = (struct bpf_program *)(uintptr_t)PROGRAM;
	for (int i = 0; i < s->map_cnt; i++) {
		*s->maps[i].map = map_number((size_t)i);
		if (s->maps[i].mmaped)
			*s->maps[i].mmaped = calloc(1, data_of(s->maps[i].name));
	}
	return 0;
}

int bpf_object__load_skeleton(struct bpf_object_skeleton *s)
{
	(void)s;
	bpf.loads++;
	return bpf.load_fails;
}

void bpf_object__destroy_skeleton(struct bpf_object_skeleton *s)
{
	if (!s)
		return;
	bpf.open--;
	for (int i = 0; i < s->map_cnt; i++)
		if (s->maps[i].mmaped)
			free(*s->maps[i].mmaped);
	free(s->maps);
	free(s->progs);
	free(s);
}

int bpf_map__set_max_entries(struct bpf_map *map, __u32 max_entries)
{
	bpf.resized = map;
	bpf.size = max_entries;
	return 0;
}

int bpf_old_pidns(volatile const uint32_t *ino, struct err *e)
{
	assert_non_null((const void *)(uintptr_t)ino);
	return bpf.old_fails ? err_set(e, bpf.old_fails, "no namespace") : 0;
}

void bpf_fit_kernel(struct bpf_object *o)
{
	bpf.fitted = o == (struct bpf_object *)(uintptr_t)OBJECT;
}

void bpf_log_begin(void)
{
}

int bpf_load_error(struct err *e, int code, const char *what)
{
	assert_null(what);
	return err_set(e, code, "the kernel refused it");
}

void bpf_of_many(bool many, struct bpf_map *slot_of_tgid, struct bpf_map *sets,
		 struct bpf_map *bystanders)
{
	assert_true(slot_of_tgid && sets && bystanders);
	bpf.many = many;
}

void bpf_size_all(struct bpf_map *const *maps, uint32_t slots)
{
	bpf.slots = slots;
	for (; *maps; maps++)
		bpf.sized |= (size_t)1 << ((uintptr_t)*maps - 1);
}

/* ---- for tests ---- */

static struct target target;
static struct subject subject = { .target = &target };
static struct collect_opts o;
static struct err err;

/* Go 1.27, of which nothing was found yet. */
static void begin_world(void)
{
	memset(&t, 0, sizeof(t));
	memset(&en, 0, sizeof(en));
	memset(&bpf, 0, sizeof(bpf));
	memset(found, 0, sizeof(found));
	memset(nfound, 0, sizeof(nfound));
	memset(&subject.images, 0, sizeof(subject.images));
	t.minor = 27;
	t.now = 10 * SEC;
	subject.images.n = 1;
	subject.layout.off[LAYOUT_g_atomicstatus] = STATUS_OFF;
	subject.layout.off[LAYOUT_g_waitreason] = REASON_OFF;
	o = (struct collect_opts){ .wait.rate_ns = 10000 };
	err.msg[0] = 0;
}

static bool says(const struct prof *p, const char *what)
{
	struct prof_header_view h = prof_header(p);

	for (size_t i = 0; i < h.ncomments; i++)
		if (strstr(strtab_get(prof_strings(p), h.comments[i]), what))
			return true;
	return false;
}

#endif
