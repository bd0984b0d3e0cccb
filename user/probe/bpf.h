/*
 * user/probe/bpf.h - what the collectors share of working with BPF objects.
 */
#ifndef PROBE_BPF_H
#define PROBE_BPF_H

#include "base/hash.h"
#include "goprof_abi.h"
#include "probe/bpf_old.h"
#include "profile/loss.h"
#include "subject/subject.h"

_Static_assert(IMAGES_MAX == GPB_IMAGES, "images of a target");

struct bpf_map;
struct bpf_object;

/*
 * To be called between open and load of each skeleton. The BPF side hashes under this process'
 * key, so that user space computes the same hashes, and its maps are allocated as this kernel
 * requires.
 */
#define bpf_prepare(skel) ((skel)->rodata->hash_key = hash_secret(), bpf_fit_kernel((skel)->obj))

/*
 * Opens the skeleton @kind, whose programs are probes, for one target, or for @many: then it has the tables that tell whose a process
 * is. *out is to be loaded; 0, or an error as bpf_load_error() gives it.
 */
#define bpf_open_probes(kind, out, many, e)                                                       \
	({                                                                                        \
		int ret_;                                                                         \
		bpf_log_begin();                                                                  \
		*(out) = bpf_open(kind);                                                          \
		ret_ = *(out) ? bpf_prepare_cookies(*(out), e) : bpf_load_error(e, -errno, NULL); \
		if (ret_) {                                                                       \
			kind##_bpf__destroy(*(out));                                              \
		} else {                                                                          \
			bpf_prepare(*(out));                                                      \
			(*(out))->rodata->many_targets = many;                                    \
			bpf_of_many(many, (*(out))->maps.slot_of_tgid, (*(out))->maps.sets,       \
				    (*(out))->maps.bystanders);                                   \
		}                                                                                 \
		ret_;                                                                             \
	})
void bpf_of_many(bool many, struct bpf_map *slot_of_tgid, struct bpf_map *sets,
		 struct bpf_map *bystanders);

/* Makes room for @slots targets in these tables. */
#define bpf_size_slots(slots, ...) bpf_size_all((struct bpf_map *[]){ __VA_ARGS__, NULL }, slots)
void bpf_size_all(struct bpf_map *const *maps, uint32_t slots);

/*
 * May programs of perf events and uprobes use hash maps that allocate entry by entry? Returns 0;
 * -EINVAL: this kernel requires them to be allocated as a whole. (Up to Linux 6.0 it refuses such
 * maps for perf events, and gives a WARNING for uprobes, which stops a host with panic_on_warn.)
 * Another error: it could not be tried. Source: check_map_prealloc_compatibility in
 * kernel/bpf/verifier.c up to 6.0.
 */
int bpf_try_growing(struct err *e);

/* What differs between kernels is tried (bpf_fit.h); what libbpf said is forgotten. */
void bpf_fit_kernel(struct bpf_object *o);

/* Fills in the offsets and ranges of one target for the BPF side; live addresses. */
int bpf_target_fill(struct subject *s, const struct collect_opts *o, struct gpb_target *out,
		    struct err *e);

/* Are frame pointers of no use, because a stack that grows does not adjust them? */
bool bpf_stale_fp(const struct subject *s);

/*
 * How large a ring is, of which @usual bytes are enough where frame pointers lead to the callers of what is probed.
 * Where they are stale, samples carry the stack's memory until user space has seen their frames, and without a budget
 * these come in bursts.
 */
uint32_t bpf_ring_bytes(const struct subject *s, const struct collect_opts *o, uint32_t usual);

/* Calls @fn for every distinct stack of a `stacks` map. Stops at the first error of @fn. */
int bpf_each_stack(int map_fd, int (*fn)(void *arg, const struct gpb_stack *st, struct err *e),
		   void *arg, struct err *e);

/*
 * The same, and takes the stacks out of the table, also while programs count into it. Each sample
 * is handed to @fn exactly once, by this call or a later one. @key is the one that the stack was
 * filed under; @rounds: the object's.
 */
int bpf_take_stacks(int map_fd, struct gpb_rounds *rounds,
		    int (*fn)(void *arg, const struct gpb_hash *key, const struct gpb_stack *st,
			      struct err *e),
		    void *arg, struct err *e);

/*
 * What the last bpf_take_stacks() of a window could not take, since a program had not finished: stacks of its round, and
 * its own sample. @fn gets the slot of each and how many samples that are. They are in no profile.
 */
typedef void bpf_left(void *arg, uint32_t slot, uint64_t count);
int bpf_each_left(const struct bpf_map *stacks, const struct bpf_map *scratches,
		  const struct gpb_rounds *rounds, bpf_left *fn, void *arg, struct err *e);
/* The same of one target: their sum. */
int bpf_count_left(const struct bpf_map *stacks, const struct bpf_map *scratches,
		   const struct gpb_rounds *rounds, uint64_t *sum, struct err *e);

/* Adds up a target's element of a per-CPU map over all CPUs: @words u64 for each. */
int bpf_sum_cpus(int map_fd, uint32_t slot, size_t words, uint64_t *out, struct err *e);
/* The same for each CPU, one after the other. *ncpu: how many there are. The caller frees. */
int bpf_each_cpu(int map_fd, uint32_t slot, size_t words, uint64_t **out, size_t *ncpu,
		 struct err *e);

/* Adds what the BPF side lost to the losses of a profile. */
void bpf_losses(const struct gpb_tally *of, struct loss *to);

/* libbpf's own words for why a load failed, at most one line; bpf_log_begin() clears them. */
void bpf_log_begin(void);
const char *bpf_log_last(void);

/*
 * -EPERM with the capability named, or what libbpf said. @code: libbpf's negative errno. @what: what was
 * loaded; NULL for a kind of profile, which whoever tells the error names.
 */
int bpf_load_error(struct err *e, int code, const char *what);

#endif
