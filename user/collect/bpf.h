/*
 * user/collect/bpf.h - what the collectors share of working with BPF objects.
 */
#ifndef COLLECT_BPF_H
#define COLLECT_BPF_H

#include "base/hash.h"
#include "collect/subject_priv.h"

/*
 * Between open and load of each skeleton: the BPF side hashes under this process' key, and user
 * space comes to the same hashes.
 */
#define bpf_key(obj) ((obj)->rodata->hash_key = hash_secret())

/* Fills in the offsets and ranges of one target for the BPF side; live addresses. */
int bpf_target_fill(struct subject *s, const struct collect_opts *o, struct gpb_target *out,
		    struct err *e);

/* Inode of our pid namespace; 0 when it is the initial one, where pids need no translation. */
int bpf_pidns(uint32_t *ino, struct err *e);

/* Calls @fn for every distinct stack of a `stacks` map. Stops at the first error of @fn. */
int bpf_each_stack(int map_fd, int (*fn)(void *arg, const struct gpb_stack *st, struct err *e),
		   void *arg, struct err *e);

/*
 * The same, and empties the table. To be called while no window is open. @key: the key that the
 * stack was filed under.
 */
int bpf_take_stacks(int map_fd,
		    int (*fn)(void *arg, const struct gpb_hash *key, const struct gpb_stack *st,
			      struct err *e),
		    void *arg, struct err *e);

/* Adds up a per-CPU map's element of the only target over all CPUs: @words u64 for each. */
int bpf_sum_cpus(int map_fd, size_t words, uint64_t *out, struct err *e);
/* The same for each CPU, one after the other. *ncpu: how many there are. The caller frees. */
int bpf_each_cpu(int map_fd, size_t words, uint64_t **out, size_t *ncpu, struct err *e);

/* Adds the BPF side's losses[] to the losses of a profile. */
void bpf_losses(const uint64_t *losses, struct loss *to);

/* libbpf's own words for why a load failed, at most one line; bpf_log_begin() clears them. */
void bpf_log_begin(void);
const char *bpf_log_last(void);

/* -EPERM with the capability named, or what libbpf said. @code: libbpf's negative errno. */
int bpf_load_error(struct err *e, int code, const char *what);

#endif
