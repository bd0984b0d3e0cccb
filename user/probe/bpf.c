/* user/probe/bpf.c - filling, draining and explaining BPF objects. */
#include "probe/bpf.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdarg.h>
#include <time.h>

#include "base/sys/caps.h"
#include "base/clock.h"
#include "probe/bpf_fit.h"
#include "probe/bpf_reads.h"
#include "subject/binary.h"

/*
 * How often it is looked whether a program has filed its sample without a pause between looks, and for how long
 * in all. That is longer than the slices of a few other threads on its CPU.
 */
enum { FILING_SPINS = 100 };
#define FILING_NS 50000000ull

/* libbpf reports through one process-wide callback, so this is process-wide too. */
static char log_last[256];

static int keep_log(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	char *nl;

	/* The first complaint is the cause; the later ones are its consequences. */
	if (level != LIBBPF_WARN || log_last[0])
		return 0;
	vsnprintf(log_last, sizeof(log_last), fmt, ap);
	nl = strchr(log_last, '\n');
	if (nl)
		*nl = 0;
	return 0;
}

void bpf_log_begin(void)
{
	log_last[0] = 0;
	libbpf_set_print(keep_log);
	bpf_reads_keep();
}

const char *bpf_log_last(void)
{
	return log_last;
}

int bpf_load_error(struct err *e, int code, const char *what)
{
	static const int caps[] = { CAP_BPF, CAP_PERFMON };
	static const int resource[] = { CAP_SYS_RESOURCE };
	bool ours = caps_have(CAP_BPF) && caps_have(CAP_PERFMON);
	char refused[128];
	const char *sep = what ? ": " : "";

	/*
	 * When all capabilities are there, EACCES comes from the verifier, and its words are in
	 * the log.
	 */
	if (code == -EINVAL && bpf_old_blind())
		return err_set(
			e, code,
			"%s%sthe kernel lets no program read its memory (lockdown=confidentiality), and "
			"before Linux 5.15 ours have to",
			what ? what : "", sep);
	if (code == -EPERM && ours && bpf_old_memlock()) {
		snprintf(refused, sizeof(refused),
			 "%s%sRLIMIT_MEMLOCK (ulimit -l) bounds BPF's tables before Linux 5.11",
			 what ? what : "", sep);
		return caps_refused(e, refused, resource, ARRAY_LEN(resource));
	}
	if (code == -EPERM || (code == -EACCES && !ours)) {
		snprintf(refused, sizeof(refused), "%s%sthe kernel refused BPF", what ? what : "",
			 sep);
		return caps_refused(e, refused, caps, ARRAY_LEN(caps));
	}
	return err_set(e, code, "%s%s%s%s%s", what ? what : "", sep, strerror(-code),
		       log_last[0] ? ": " : "", log_last);
}

/* Kernels without cookies look those up in a table by process, too. */
void bpf_of_many(bool many, struct bpf_map *slot_of_tgid, struct bpf_map *sets,
		 struct bpf_map *bystanders)
{
	bool needed = many || bpf_is_old();

	bpf_map__set_autocreate(slot_of_tgid, needed);
	bpf_map__set_autocreate(sets, needed);
	bpf_map__set_autocreate(bystanders, needed);
}

void bpf_size_all(struct bpf_map *const *maps, uint32_t slots)
{
	for (; *maps; maps++)
		bpf_map__set_max_entries(*maps, slots);
}

/* The range [lo, hi) of those functions in @f that were found, as live addresses. */
static void range_of(const struct image *img, const struct gofunc *f, size_t n, __u64 *lo,
		     __u64 *hi)
{
	*lo = *hi = 0;
	for (size_t i = 0; i < n; i++) {
		if (!f[i].entry)
			continue;
		if (!*lo || f[i].entry + img->bias < *lo)
			*lo = f[i].entry + img->bias;
		if (f[i].end + img->bias > *hi)
			*hi = f[i].end + img->bias;
	}
}

/* The sp delta inside a function behind its prologue: the largest delta that it has. */
static int32_t body_delta(struct gobin *b, const struct gofunc *f)
{
	int32_t max = 0, d;

	for (uint64_t pc = f->entry; pc < f->end && pc - f->entry < 256; pc++)
		if (!gobin_spdelta(b, pc, &d, NULL) && d > max)
			max = d;
	return max;
}

/*
 * Finds the functions that the stack walker must know: mcall, and the entry stubs of the write
 * barrier, which have no frame and call other functions (Go 1.21+, runtime/asm_amd64.s: they lie
 * side by side).
 */
static int fill_image(const struct image *img, struct gpb_image *t, __s32 *seam, struct err *e)
{
	static const char *const names[] = {
		"runtime.mcall",	   "runtime.gcWriteBarrier1", "runtime.gcWriteBarrier2",
		"runtime.gcWriteBarrier3", "runtime.gcWriteBarrier4", "runtime.gcWriteBarrier5",
		"runtime.gcWriteBarrier6", "runtime.gcWriteBarrier7", "runtime.gcWriteBarrier8",
	};
	static const char *const seams[] = { "runtime.systemstack_switch", "runtime.cgocallback",
					     "runtime.systemstack" };
	struct gofunc sf[ARRAY_LEN(seams)] = {};
	struct gofunc f[ARRAY_LEN(names)] = {};
	int ret = gobin_funcs_named(img->bin, names, ARRAY_LEN(names), f, e);

	if (ret < 0)
		return ret;
	t->text_lo = img->lo;
	t->text_hi = img->hi;
	t->bias = img->bias;
	t->id = img->id;
	range_of(img, f, 1, &t->mcall_lo, &t->mcall_hi);
	/*
	 * The end of the last stub belongs to the range, because a return address may equal the
	 * end of the function that called.
	 */
	range_of(img, f + 1, ARRAY_LEN(names) - 1, &t->stub_lo, &t->stub_hi);
	if (t->stub_hi - t->stub_lo > 4096)
		t->stub_lo = t->stub_hi = 0;
	ret = gobin_funcs_named(img->bin, seams, ARRAY_LEN(seams), sf, e);
	if (ret < 0)
		return ret;
	range_of(img, sf, 1, &t->switch_lo, &t->switch_hi);
	range_of(img, sf + 1, 1, &t->callback_lo, &t->callback_hi);
	*seam = sf[2].entry ? body_delta(img->bin, &sf[2]) : 0;
	return 0;
}

/* What fill_image() found out, for an image at its link-time addresses: struct binary.kept. */
struct kept_image {
	struct gpb_image image;
	__s32 seam;
};

static void move_range(__u64 *lo, __u64 *hi, uint64_t by)
{
	if (*hi) {
		*lo += by;
		*hi += by;
	}
}

static void move_image(struct gpb_image *t, uint64_t by)
{
	t->bias += by;
	move_range(&t->text_lo, &t->text_hi, by);
	move_range(&t->mcall_lo, &t->mcall_hi, by);
	move_range(&t->stub_lo, &t->stub_hi, by);
	move_range(&t->switch_lo, &t->switch_hi, by);
	move_range(&t->callback_lo, &t->callback_hi, by);
}

/* Looking for the functions takes milliseconds, so it is done once for a file that is shared. */
static int fill_shared(const struct image *img, struct gpb_image *t, __s32 *seam, struct err *e)
{
	struct kept_image *k = img->shared ? img->shared->kept : NULL;
	int ret;

	if (k) {
		*t = k->image;
		*seam = k->seam;
		move_image(t, img->bias);
		return 0;
	}
	ret = fill_image(img, t, seam, e);
	k = !ret && img->shared ? malloc(sizeof(*k)) : NULL;
	if (!k)
		return ret;
	*k = (struct kept_image){ .image = *t, .seam = *seam };
	move_image(&k->image, -img->bias);
	img->shared->kept = k;
	return 0;
}

/* Source: internal/buildcfg/exp.go, Go 1.17 and 1.18. */
static bool has_regabi(const struct gobin_info *info)
{
	return info->minor < 0 || info->minor >= (info->arch == ARCH_ARM64 ? 18 : 17);
}

/* Source: adjustframe in runtime/stack.go, Go 1.16 to 1.21. */
bool bpf_stale_fp(const struct subject *s)
{
	const struct gobin_info *info = gobin_info(s->bin);

	return info->arch == ARCH_ARM64 && info->minor >= 0 && info->minor < 21;
}

uint32_t bpf_ring_bytes(const struct subject *s, const struct collect_opts *o, uint32_t usual)
{
	return bpf_stale_fp(s) && !o->budget.ppm ? 16 * GPB_RING_BYTES : usual;
}

int bpf_target_fill(struct subject *s, const struct collect_opts *o, struct gpb_target *t,
		    struct err *e)
{
	const struct gobin_info *info = gobin_info(s->bin);
	const int32_t *off = s->layout.off;

	*t = (struct gpb_target){
		.start_stack = s->target->start_stack,
		.tls_g = info->tls_g,
		.g_m = off[LAYOUT_g_m],
		.g_stack_lo = off[LAYOUT_g_stack_lo],
		.g_stack_hi = off[LAYOUT_g_stack_hi],
		.g_sched_sp = off[LAYOUT_g_sched_sp],
		.g_sched_pc = off[LAYOUT_g_sched_pc],
		.g_sched_bp = off[LAYOUT_g_sched_bp],
		.g_syscallsp = off[LAYOUT_g_syscallsp],
		.g_syscallpc = off[LAYOUT_g_syscallpc],
		.g_syscallbp = off[LAYOUT_g_syscallbp],
		.g_goid = off[LAYOUT_g_goid],
		.g_labels = off[LAYOUT_g_labels],
		.g_atomicstatus = off[LAYOUT_g_atomicstatus],
		.m_g0 = off[LAYOUT_m_g0],
		.m_curg = off[LAYOUT_m_curg],
		.m_ncgo = off[LAYOUT_m_ncgo],
		.m_vdsosp = off[LAYOUT_m_vdsosp],
		.m_vdsopc = off[LAYOUT_m_vdsopc],
		.m_preemptoff = off[LAYOUT_m_preemptoff],
		.m_p = off[LAYOUT_m_p],
		.p_mcache = off[LAYOUT_p_mcache],
		.mcache_tiny = off[LAYOUT_mcache_tiny],
		.mcache_tinyoffset = off[LAYOUT_mcache_tinyoffset],
		.type_ptrdata = off[LAYOUT_type_ptrdata],
		.labels_kind = info->minor >= 24 || info->minor < 0 ? GPB_LABELS_SLICE :
								      GPB_LABELS_MAP,
		.flags = (has_regabi(info) ? GPB_TARGET_REGABI : 0) |
			 (bpf_stale_fp(s) ? GPB_TARGET_STALE_FP : 0) |
			 (o->cpu.kernel ? GPB_TARGET_KERNEL : 0) | (o->goid ? GPB_TARGET_GOID : 0) |
			 (off[LAYOUT_g_labels] >= 0 ? GPB_TARGET_LABELS : 0),
	};
	t->nimages = (__u32)s->images.n;
	for (size_t i = 0; i < s->images.n; i++) {
		__s32 seam;
		int ret = fill_shared(&s->images.at[i], &t->image[i], &seam, e);

		if (ret)
			return ret;
		if (!i)
			t->seam = seam;
	}
	return 0;
}

int bpf_each_stack(int map_fd, int (*fn)(void *arg, const struct gpb_stack *st, struct err *e),
		   void *arg, struct err *e)
{
	CLEANUP(freep) struct gpb_stack *st = malloc(sizeof(*st));
	struct gpb_stack_key key, next;
	void *prev = NULL;
	int ret;

	if (!st)
		return err_set(e, -ENOMEM, "no memory to drain stacks");
	while (!bpf_map_get_next_key(map_fd, prev, &next)) {
		key = next;
		prev = &key;
		if (bpf_map_lookup_elem(map_fd, &key, st))
			continue;
		ret = fn(arg, st, e);
		if (ret < 0)
			return ret;
	}
	return 0;
}

/*
 * Filing a sample takes microseconds, but its program may be preempted: for long where its control group has used
 * up its CPU time. When it does not finish in time, its whole round stays in the table until a later call. It is
 * waited for once: after that it is only looked at.
 */
static bool all_filed(struct gpb_rounds *rounds, uint64_t round)
{
	static const struct timespec rest = { .tv_nsec = 50000 };
	uint64_t until = rounds->late == round + 1 ? 0 : now_ns() + FILING_NS;

	for (int i = 0; __atomic_load_n(&rounds->filing[round & 1], __ATOMIC_SEQ_CST); i++) {
		if (i < FILING_SPINS && until)
			continue;
		if (now_ns() >= until) {
			rounds->late = round + 1;
			return false;
		}
		nanosleep(&rest, NULL);
	}
	rounds->late = 0;
	return true;
}

/* Begins a new round. All rounds before *end are over: nobody files under them. */
static void next_round(struct gpb_rounds *rounds, uint64_t *end)
{
	uint64_t now = rounds->now;

	/* Only the lowest bit of a round is counted, so the round before must be over first. */
	*end = now;
	if (now && !all_filed(rounds, now - 1)) {
		*end = now - 1;
		return;
	}
	__atomic_store_n(&rounds->now, now + 1, __ATOMIC_SEQ_CST);
	bpf_old_barrier();
	if (all_filed(rounds, now))
		*end = now + 1;
}

int bpf_take_stacks(int map_fd, struct gpb_rounds *rounds,
		    int (*fn)(void *arg, const struct gpb_hash *key, const struct gpb_stack *st,
			      struct err *e),
		    void *arg, struct err *e)
{
	CLEANUP(freep) struct gpb_stack *st = malloc(sizeof(*st));
	struct gpb_stack_key key, next;
	uint64_t end;
	int ret = 0;
	bool more;

	if (!st)
		return err_set(e, -ENOMEM, "no memory to drain stacks");
	next_round(rounds, &end);
	more = !bpf_map_get_next_key(map_fd, NULL, &next);
	while (!ret && more) {
		key = next;
		/*
		 * From a key that is gone the kernel starts again at the beginning, so the next
		 * key is asked for first.
		 */
		more = !bpf_map_get_next_key(map_fd, &key, &next);
		if (key.round >= end)
			continue;
		if (bpf_map_lookup_elem(map_fd, &key, st) || bpf_map_delete_elem(map_fd, &key))
			return err_sys(e, "table of stacks");
		ret = fn(arg, &key.hash, st, e);
	}
	return ret;
}

/* Each place of each CPU where a program has begun and not finished. */
static int each_claim(const struct bpf_map *map, bpf_left *fn, void *arg, struct err *e)
{
	int n = libbpf_num_possible_cpus();
	size_t size = (bpf_map__value_size(map) + 7u) & ~(size_t)7;
	CLEANUP(freep) uint8_t *at = n > 0 ? calloc((size_t)n, size) : NULL;

	if (!at)
		return err_set(e, -ENOMEM, "no memory to look at samples");
	for (uint32_t i = 0; i < bpf_map__max_entries(map); i++) {
		if (bpf_map_lookup_elem(bpf_map__fd(map), &i, at))
			return err_sys(e, "samples that are being taken");
		for (int cpu = 0; cpu < n; cpu++) {
			struct gpb_claim c;

			memcpy(&c, at + (size_t)cpu * size, sizeof(c));
			if (c.busy)
				fn(arg, c.slot, 1);
		}
	}
	return 0;
}

int bpf_each_left(const struct bpf_map *stacks, const struct bpf_map *scratches,
		  const struct gpb_rounds *rounds, bpf_left *fn, void *arg, struct err *e)
{
	CLEANUP(freep) struct gpb_stack *st = malloc(sizeof(*st));
	struct gpb_stack_key key, next;
	void *prev = NULL;

	if (!rounds->late)
		return 0;
	if (!st)
		return err_set(e, -ENOMEM, "no memory to look at stacks");
	while (!bpf_map_get_next_key(bpf_map__fd(stacks), prev, &next)) {
		key = next;
		prev = &key;
		if (!bpf_map_lookup_elem(bpf_map__fd(stacks), &key, st))
			fn(arg, st->slot, st->count);
	}
	return each_claim(scratches, fn, arg, e);
}

static void add_left(void *arg, uint32_t slot, uint64_t count)
{
	uint64_t *sum = arg;

	(void)slot;
	*sum += count;
}

int bpf_count_left(const struct bpf_map *stacks, const struct bpf_map *scratches,
		   const struct gpb_rounds *rounds, uint64_t *sum, struct err *e)
{
	*sum = 0;
	return bpf_each_left(stacks, scratches, rounds, add_left, sum, e);
}

int bpf_each_cpu(int map_fd, uint32_t slot, size_t words, uint64_t **out, size_t *ncpu,
		 struct err *e)
{
	int n = libbpf_num_possible_cpus();
	CLEANUP(freep) uint64_t *at = NULL;

	if (n < 1)
		return err_set(e, n, "cannot tell how many CPUs there are");
	at = calloc((size_t)n * words, sizeof(*at));
	if (!at)
		return err_set(e, -ENOMEM, "no memory");
	if (bpf_map_lookup_elem(map_fd, &slot, at))
		return err_sys(e, "counters");
	*ncpu = (size_t)n;
	*out = TAKE(at);
	return 0;
}

int bpf_sum_cpus(int map_fd, uint32_t slot, size_t words, uint64_t *out, struct err *e)
{
	CLEANUP(freep) uint64_t *at = NULL;
	size_t ncpu;
	int ret = bpf_each_cpu(map_fd, slot, words, &at, &ncpu, e);

	if (ret)
		return ret;
	memset(out, 0, words * sizeof(*out));
	for (size_t c = 0; c < ncpu; c++)
		for (size_t i = 0; i < words; i++)
			out[i] += at[c * words + i];
	return 0;
}

void bpf_losses(const struct gpb_tally *of, struct loss *to)
{
	static const enum loss_kind kinds[GPB_LOSS_COUNT] = {
		[GPB_LOSS_DROPPED] = LOSS_SAMPLES_DROPPED,
		[GPB_LOSS_UNREADABLE] = LOSS_STACKS_UNREADABLE,
		[GPB_LOSS_CUT] = LOSS_STACKS_CUT,
		[GPB_LOSS_CALLER] = LOSS_CALLERS_UNKNOWN,
		[GPB_LOSS_LABELS] = LOSS_LABELS_CUT,
		[GPB_LOSS_NO_TARGET] = LOSS_SAMPLES_DROPPED,
		[GPB_LOSS_WAITS] = LOSS_WAITS_UNKNOWN,
		[GPB_LOSS_OBJECTS] = LOSS_OBJECTS_UNPLACED,
	};

	for (size_t i = 0; i < GPB_LOSS_COUNT; i++)
		to->n[kinds[i]] += of->lost[i];
}

int bpf_try_growing(struct err *e)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_NO_PREALLOC);
	CLEANUP(closep) int map = -1;
	CLEANUP(closep) int prog = -1;

	bpf_log_begin();
	map = bpf_map_create(BPF_MAP_TYPE_HASH, "goprof_try", 8, 8, 16, &opts);
	if (map < 0)
		return bpf_load_error(e, map, "a hash map");
	/* r1 = map; r0 = 0; exit: as a perf event program, for which no kernel gives a WARNING */
	struct bpf_insn uses_map[] = {
		{ .code = BPF_LD | BPF_DW | BPF_IMM,
		  .dst_reg = BPF_REG_1,
		  .src_reg = BPF_PSEUDO_MAP_FD,
		  .imm = map },
		{ 0 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	prog = bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, NULL, "GPL", uses_map, ARRAY_LEN(uses_map),
			     NULL);
	return prog < 0 ? bpf_load_error(e, prog, "a program with such a map") : 0;
}

void bpf_fit_kernel(struct bpf_object *o)
{
	bpf_fit(o, bpf_try_growing(NULL) == -EINVAL);
	bpf_log_begin();
}
