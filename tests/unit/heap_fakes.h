/*
 * tests/unit/heap_fakes.h - what heap profiles of test_heap_many.c are made of: the object, a target's part, its followed objects, and
 * profiles that are read. They only remember what they were told.
 */
#ifndef TESTS_UNIT_HEAP_FAKES_H
#define TESTS_UNIT_HEAP_FAKES_H

#include "collect/heap/window/heap_counts.h"
#include "collect/heap/live/heap_looks.h"
#include "collect/heap/heap_many.h"
#include "collect/heap/heap_probe_priv.h"
#include "collect/heap/window/heap_sites.h"
#include "collect/reading.h"
#include "many_world.h"

enum { COUNTDOWNS = KINDS_OWN, CLASSES, PLACINGS, NO_ALLOCATOR = 13 /* a file */ };

/* ---- the object ---- */

static struct heap_bpf__bss bss;
static struct heap_bpf__rodata rodata;
static int opens;
static struct bpf_program *const alloc = (struct bpf_program *)&bss,
				 *const cycle = (struct bpf_program *)&rodata;

int heap_probe_open(struct heap_bpf **out, bool multi, uint32_t slots, bool many, struct err *e)
{
	(void)e;
	assert_true(multi && many && slots == 128);
	opens++;
	memset(&bss, 0, sizeof(bss));
	*out = calloc(1, sizeof(**out));
	(*out)->bss = &bss;
	(*out)->rodata = &rodata;
	HAS_TABLES(*out);
	(*out)->maps.countdowns = MAP(COUNTDOWNS);
	(*out)->maps.classes = MAP(CLASSES);
	(*out)->maps.placings = MAP(PLACINGS);
	(*out)->progs.heap_alloc = alloc;
	(*out)->progs.heap_cycle = cycle;
	return 0;
}

/* Samples that wait for the places of their objects. */
static struct gpb_placing_key placings[8]; /* slot 0: it was taken out */
static size_t nplacings;
static int placings_read;

static int next_placing(int fd, const void *key, void *next)
{
	size_t i = 0;

	if (fd != PLACINGS)
		return -ENOENT;
	placings_read++;
	while (key && memcmp(&placings[i], key, sizeof(placings[i])))
		assert_true(++i < nplacings); /* it asks before it takes that out */
	for (i += key != NULL; i < nplacings; i++) {
		if (!placings[i].slot)
			continue;
		memcpy(next, &placings[i], sizeof(placings[i]));
		return 0;
	}
	return -ENOENT;
}

static int delete_placing(int fd, const void *key)
{
	for (size_t i = 0; fd == PLACINGS && i < nplacings; i++)
		if (!memcmp(&placings[i], key, sizeof(placings[i])))
			placings[i].slot = 0;
	return 0;
}

static inline void waits_for_its_place(uint32_t slot)
{
	placings[nplacings] = (struct gpb_placing_key){ .g = 0xc000000000 + nplacings,
							.slot = slot };
	nplacings++;
	bss.nplacing[demux_index(slot)]++;
}

static inline int placings_of(uint32_t slot)
{
	int n = 0;

	for (size_t i = 0; i < nplacings; i++)
		n += placings[i].slot == slot;
	return n;
}

/* ---- followed objects ---- */

struct heap_live {
	bool watched, gone, fails;
	int records, lasts, found;
};
static int nlives, live_find_fails, live_finds;

int heap_live_find(struct heap_live *l, struct err *e)
{
	assert_non_null(l);
	live_finds++;
	return live_find_fails ? err_set(e, live_find_fails, "allocLarge returns nowhere") : 0;
}

void heap_live_found(struct heap_live *l)
{
	l->found++;
}

void heap_live_watched(struct heap_live *l, bool watched)
{
	l->watched = watched;
}

void heap_live_record(struct heap_live *l, const void *rec, size_t len)
{
	assert_true(rec && len);
	l->records++;
}

void heap_live_gone(struct heap_live *l)
{
	l->gone = true;
}

int heap_live_last(struct heap_live *l, unsigned try, bool *again, struct err *e)
{
	assert_true(!try && again);
	l->lasts++;
	return l->fails ? err_set(e, -ESRCH, "it has exited") : 0;
}

static int no_cycle_site;

int heap_sites_cycle(const struct image *img, struct uprobe_site *out, struct err *e)
{
	assert_non_null(img->bin);
	if (no_cycle_site)
		return err_set(e, -ENOENT, "cycles end nowhere");
	*out = (struct uprobe_site){ .file_off = 0xc0 };
	return 0;
}

/* ---- looks at them ---- */

static int looks_open_fails, looks_begun, looks_polled, looks_last, looks_last_drained;
static size_t looks_shared;

int heap_looks_open(struct heap_looks *k, const struct collect_opts *o, struct err *e)
{
	assert_true(k->probed && k->live_of && o);
	return looks_open_fails ? err_set(e, looks_open_fails, "no timer") : 0;
}

/* Its timer is in the descriptor of what is probed. */
void heap_looks_fini(struct heap_looks *k)
{
	assert_true(fcntl(k->probed->sets.ep, F_GETFD) >= 0);
}

void heap_looks_begin(struct heap_looks *k)
{
	assert_non_null(k);
	looks_begun++;
}

void heap_looks_share(struct heap_looks *k, size_t targets)
{
	assert_non_null(k);
	looks_shared = targets;
}

static int counts_polled, counts_turned;

int heap_counts_open(struct heap_counts *k, const struct collect_opts *o, struct err *e)
{
	(void)k;
	(void)o;
	(void)e;
	return 0;
}

void heap_counts_fini(struct heap_counts *k)
{
	(void)k;
}

void heap_counts_turn(struct heap_counts *k)
{
	assert_non_null(k->probed);
	counts_turned++;
}

void heap_counts_poll(struct heap_counts *k)
{
	assert_non_null(k->probed);
	counts_polled++;
}

void heap_looks_poll(struct heap_looks *k)
{
	assert_non_null(k);
	looks_polled++;
}

/* ---- a target's part ---- */

static int nparts, new_fails, entries_fails, entries_found, finish_fails, writes, owns;
static bool not_followed; /* those that come */

int heap_probe_new(struct subject *s, const struct collect_opts *o, struct heap_live_room *room,
		   struct heap_probe **out, struct err *e)
{
	struct heap_probe *h;

	assert_non_null(room);
	if (new_fails)
		return err_set(e, new_fails, "its size classes are not known");
	h = calloc(1, sizeof(*h));
	h->s = s;
	h->o = *o;
	if (not_followed)
		(void)err_set(&h->use.why_not, 0, "offsets of mspan are not known");
	else
		h->use.live = calloc(1, sizeof(*h->use.live));
	nlives += h->use.live != NULL;
	nparts++;
	*out = h;
	return 0;
}

static void not_live(struct heap_use *u)
{
	nlives -= u->live != NULL;
	free(TAKE(u->live));
}

void heap_probe_free(struct heap_probe *h)
{
	if (!h)
		return;
	not_live(&h->use);
	tally_fini(&h->window.tally);
	prof_free(h->prof);
	free(h);
	nparts--;
}

void heap_probe_window(struct heap_probe *h, uint32_t slot)
{
	assert_true(h->obj && h->multi && h->reports);
	h->window.slot = slot;
	h->window.keys = h->use.live != NULL;
	h->window.rate_most = 512;
	tally_init(&h->window.tally);
}

void heap_use_begin(struct heap_use *u, struct reports *f, struct tally *t)
{
	assert_null(f);
	u->tally = t;
}

void heap_use_refuse(struct heap_use *u, const struct err *why)
{
	not_live(u);
	u->why_not = *why;
}

/* A file has as many as its number says. */
int heap_probe_entries(struct heap_probe *h, size_t i, struct err *e)
{
	size_t n = (size_t)h->s->images.at[0].inode;

	assert_true(!i && h->entries);
	entries_found++;
	if (entries_fails)
		return err_set(e, entries_fails, "mallocgc is cut off");
	if (n == NO_ALLOCATOR)
		return err_set(e, -ENOENT, "no function runtime.mallocgc");
	h->nsites = h->nentries[0] = n;
	for (size_t k = 0; k < h->nentries[0]; k++)
		h->entries[k] = (struct alloc_entry){ .not_from_hi = 100 + k };
	h->nmakers[0] = 2;
	h->makers[0][1].arg = 1;
	return 0;
}

void heap_probe_place(struct heap_probe *h, size_t i)
{
	h->heap.not_from[i].hi = h->entries[0].not_from_hi;
}

void heap_probe_list(struct heap_probe *h, size_t i, uint32_t of, struct site_list *all,
		     struct site_list *large)
{
	assert_true(!i && !large);
	for (size_t k = 0; k < h->nentries[0]; k++)
		all->sites[k].cookie = (uint64_t)of << GPB_COOKIE_SLOT_SHIFT | k;
	all->n = h->nentries[0];
	all->groups[all->ngroups++] =
		(struct uprobe_group){ .prog = alloc, .sites = all->sites, .n = all->n };
}

int heap_probe_put(struct heap_probe *h, struct err *e)
{
	(void)e;
	assert_non_null(h);
	writes++;
	return 0;
}

int heap_probe_own(struct heap_probe *h, double ns, struct err *e)
{
	(void)e;
	h->window.own.own = ns;
	owns++;
	return 0;
}

static int turn_fails;

int heap_probe_turn(void *probe, bool windows, uint64_t since, double hit_ns, uint64_t window_ns,
		    struct err *e)
{
	struct heap_probe *h = probe;

	(void)hit_ns;
	(void)window_ns;
	assert_non_null(h->probing);
	h->window.windows_since = windows ? since : 0;
	h->heap.own.ns = windows;
	return turn_fails ? err_set(e, turn_fails, "it does not turn") : 0;
}

int heap_probe_hit_cost(struct heap_bpf *obj, bool multi, const struct gpb_heap *like,
			struct attacher_process **all, struct hit_cost *out,
			struct cost_probes **rest, struct err *e)
{
	(void)all;
	(void)rest;
	(void)e;
	assert_true(obj->bss == &bss && multi && like);
	*out = (struct hit_cost){ .hit_ns = 100, .stepped_ns = 300 };
	return 0;
}

int heap_probe_finish(struct heap_probe *h, struct err *e)
{
	if (finish_fails)
		return err_set(e, finish_fails, "no profile");
	h->loss.n[LOSS_STACKS_MANY] += h->window.crowded;
	return prof_new(&h->prof, e);
}

/* ---- its window ---- */

/* What one was told, by its slot. */
static struct told {
	int befores, afters, ends, gone;
	struct stretch last;
	uint64_t seen; /* allocations */
	bool unknown;  /* how many were seen is not */
} told[GPB_CPU_TARGETS];

int heap_window_add(void *at, const struct gpb_stack *st, struct err *e)
{
	struct heap_window *w = at;

	return tally_add(&w->tally, st, 0, e);
}

bool heap_window_before(struct heap_window *w, const struct stretch *s)
{
	told[w->slot].befores++;
	told[w->slot].last = *s;
	return s->weight > 1;
}

int heap_window_after(struct heap_window *w, const struct stretch *s, bool watched, struct err *e)
{
	(void)e;
	told[w->slot].afters++;
	assert_int_equal(told[w->slot].last.opened, s->opened);
	assert_int_equal(watched, s->weight > 1);
	return 0;
}

int heap_window_seen(struct heap_window *w, uint64_t *allocs, uint64_t *bytes, struct err *e)
{
	*allocs = told[w->slot].seen;
	*bytes = 0;
	return told[w->slot].unknown ? err_set(e, -EIO, "not known") : 0;
}

void heap_window_gone(struct heap_window *w)
{
	told[w->slot].gone++;
}

void heap_window_fresh(struct heap_window *w)
{
	(void)w;
}

void heap_window_turn(struct heap_window *w, bool windows, double hit_ns, double window_ns)
{
	(void)hit_ns;
	(void)window_ns;
	assert_false(windows);
	told[w->slot].ends++;
}

void heap_looks_last(struct heap_looks *k)
{
	assert_non_null(k);
	looks_last++;
	looks_last_drained = !nsamples || taken_out[nsamples - 1];
}

static int rests;

void rtcounters_rest(struct rtcounters *c)
{
	assert_non_null(c);
	rests++;
}

/* ---- profiles that are read ---- */

static int read_puts, read_fails, read_opens, read_open_fails, nread;
static struct prof *first_read;

static int read_open(const struct engine_kind *kind, const struct collect_opts *o,
		     unsigned expected, void **state, struct err *e)
{
	assert_true(o && expected == 10);
	if (read_open_fails)
		return err_set(e, read_open_fails, "no reading");
	*state = (void *)(uintptr_t)kind;
	read_opens++;
	return 0;
}

static void read_free(void *state)
{
	assert_non_null(state);
	read_opens--;
}

static int read_put(void *state, struct engine_target *t, void **kept, struct err *e)
{
	assert_non_null(state);
	read_puts++;
	if (read_fails)
		return err_set(e, read_fails, "it records nothing");
	*kept = t;
	nread++;
	return 0;
}

static void read_forget(void *state, struct engine_target *t, void *kept)
{
	assert_non_null(state);
	assert_ptr_equal(kept, t);
	nread--;
}

static int read_profile(void *state, struct engine_target *t, void *kept, struct prof **out,
			struct err *e)
{
	int ret = prof_new(out, e);

	assert_non_null(state);
	assert_ptr_equal(kept, t);
	return ret ? ret : prof_comment(*out, e, "read");
}

static const struct prof *read_first(void *state, const void *kept)
{
	assert_true(state && kept);
	return first_read;
}

const struct engine_kind engine_heap_read = {
	.open = read_open,
	.free = read_free,
	.put = read_put,
	.forget = read_forget,
	.profile = read_profile,
	.first = read_first,
};

static inline void new_heap_world(void)
{
	new_world();
	memset(told, 0, sizeof(told));
	own_next_key = next_placing;
	own_delete = delete_placing;
	opens = placings_read = live_find_fails = live_finds = no_cycle_site = 0;
	counts_polled = counts_turned = 0;
	looks_open_fails = looks_begun = looks_polled = looks_last = looks_last_drained = 0;
	new_fails = entries_fails = entries_found = finish_fails = writes = owns = turn_fails = 0;
	rests = read_puts = read_open_fails = 0;
	nplacings = looks_shared = 0;
	not_followed = false;
	rodata.pidns_ino = 77;
	read_fails = -ENOTSUP; /* so they are probed */
	first_read = NULL;
}

/* ---- the kind ---- */

static const struct engine_kind *const kind = &engine_heap;
static void *many;
static struct collect_opts opts;

static int open_from(enum source_wanted source)
{
	new_heap_world();
	opts = (struct collect_opts){ .source = source };
	many = NULL;
	return kind->open(kind, &opts, 10, &many, NULL);
}

static int set_up(void **state)
{
	(void)state;
	return open_from(SOURCE_AUTO);
}

static int set_up_probe(void **state)
{
	(void)state;
	return open_from(SOURCE_PROBE);
}

static int set_up_read(void **state)
{
	(void)state;
	return open_from(SOURCE_READ);
}

static int set_up_nothing(void **state)
{
	(void)state;
	new_heap_world();
	many = NULL;
	return 0;
}

static int put(struct one *p, struct err *e)
{
	return kind->put(many, &p->t, &p->kept, e);
}

static struct one *joins(uint64_t file)
{
	struct one *p = process(file);

	assert_int_equal(put(p, NULL), 0);
	return p;
}

static void ends(struct one *p)
{
	kind->remove(many, &p->t);
	p->t.until_ns = now;
}

static void forget(struct one *p)
{
	kind->forget(many, &p->t, TAKE(p->kept));
}

static int tear_down(void **state)
{
	(void)state;
	for (pid_t pid = 1; pid <= last_pid; pid++)
		if (ones[pid]->kept)
			forget(ones[pid]);
	if (many)
		kind->free(many);
	end_world();
	assert_true(!nparts && !nlives && !nread && !read_opens);
	return 0;
}

/* The kind's state begins with what is probed. */
static struct set_member *member(const struct one *p)
{
	const struct probed *all = many;

	for (uint32_t i = 0; i < all->slots; i++) {
		struct set_member *m = probed_member(all, i);

		if (m && m->t == &p->t)
			return m;
	}
	fail_msg("pid %d has no slot", p->t.id.pid);
	return NULL;
}

static uint32_t slot(const struct one *p)
{
	return member(p)->d.slot;
}

static uint32_t at(const struct one *p)
{
	return demux_index(slot(p));
}

static const struct probe_set *set(const struct one *p)
{
	return member(p)->set;
}

/* Its samples are counted there, and its own loss lies in it. */
static struct heap_probe *heap(const struct one *p)
{
	return (struct heap_probe *)((char *)member(p)->d.loss - offsetof(struct heap_probe, loss));
}

static struct heap_live *live(const struct one *p)
{
	return heap(p)->use.live;
}

static void begin(void)
{
	assert_int_equal(kind->begin(many, NULL), 0);
}

static void drain(void)
{
	assert_int_equal(kind->drain(many, NULL), 0);
}

static void windows(const struct one *p)
{
	assert_int_equal(turn_to(set(p)->probing, true, now), 0);
}

static int profile(struct one *p, struct prof **out, struct err *e)
{
	return kind->profile(many, &p->t, p->kept, out, e);
}

#endif
