/*
 * user/probe/stacks/unwind_rules.h - tells the BPF side, for each pc that it meets for the first time, where
 * the pc's frame ends. Stacks that it could not finish without that are finished here.
 */
#ifndef PROBE_STACKS_UNWIND_RULES_H
#define PROBE_STACKS_UNWIND_RULES_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"
#include "goprof_abi.h"
#include "profile/profile.h"
#include "subject/subject.h"

/*
 * The table has room for GPB_UNWIND_RULES, which all files of all targets share. When it is full, the one that has most gives up
 * an eighth of its own, the oldest; so no other file can take from one that has fewer than UNWIND_RULES_PART, while there are 32 or
 * fewer of them. Where all are so small the one that came first loses all: it may be gone, and comes last if it is not.
 */
enum {
	UNWIND_RULES_PART = GPB_UNWIND_RULES / 32,
	UNWIND_RULES_FORESEEN = GPB_UNWIND_RULES / 4 * 3,
	UNWIND_RULES_FORESEEN_EACH = UNWIND_RULES_FORESEEN / 4, /* of many programs */
};

/* Of one file. */
struct unwind_rules_file {
	uint16_t id;	     /* image.id */
	VEC(uint64_t) order; /* unwind_rules_key() of those that the table has, the oldest first */
	uint64_t came;	     /* the lower, the earlier */
	uint64_t evicted;
};

struct unwind_rules {
	int map_fd;	  /* the BPF side's table; borrowed */
	struct map known; /* unwind_rules_key() of the pcs that the table has */
	VEC(struct unwind_rules_file) files;
	struct map file_of; /* in files, by id */
	uint64_t ncame;
	struct gpb_rec_raw raw;
	uint64_t cut;	  /* stacks that turned out too deep here */
	uint64_t broken;  /* records without a stack that could be finished: lost */
	uint64_t refused; /* rules that the table did not take; their stacks are finished here */
};

void unwind_rules_init(struct unwind_rules *r, int map_fd);
void unwind_rules_fini(struct unwind_rules *r);

/* What the rule of the live address @pc is filed under, as rule_key() of bpf/go/unwind_rules.bpf.h. */
uint64_t unwind_rules_key(const struct subject *s, uint64_t pc);

/* Has the BPF side the rule that is filed under @key? */
bool unwind_rules_known(const struct unwind_rules *r, uint64_t key);

/* Tells the BPF side the rule that is filed under @key, unless it knows it. */
void unwind_rules_learn(struct unwind_rules *r, uint64_t key, const struct gpb_unwind_rule *rule);

/*
 * Takes out all rules of the file with the number @id (image.id), which no process is observed with any more: another file may get it.
 * False: the table kept some.
 */
bool unwind_rules_forget(struct unwind_rules *r, uint16_t id);

/*
 * Tells the rules of what the calls in @s return to, @most that are new, until there are UNWIND_RULES_FORESEEN of all programs.
 * What another process of the same file has brought is there already. For programs whose frame pointers are stale:
 * where a rule is missing, a stack that is longer than the memory that comes with it cannot be finished. arm64 alone.
 */
void unwind_rules_foresee(struct unwind_rules *r, struct subject *s, size_t most);

/* Adds a comment on rules of @s that were evicted, and on any that were refused, when there were some. */
int unwind_rules_comment(const struct unwind_rules *r, const struct subject *s, struct prof *p,
			 struct err *e);

/*
 * The complete stack of a GPB_REC_RAW record of @len bytes, of a thread of @s; borrowed until the next
 * call. Each pc on the way is learned. A record that contradicts itself is counted as broken and
 * leaves *out as it was.
 */
int unwind_rules_settle(struct unwind_rules *r, struct subject *s, const void *data, size_t len,
			const struct gpb_stack **out, struct err *e);

/*
 * The same for a stack that was counted without its memory (GPB_STACK_UNRULED): the rest is what frame
 * pointers suggest. Another stack is *out as it is.
 */
int unwind_rules_settle_bare(struct unwind_rules *r, struct subject *s, const struct gpb_stack *st,
			     const struct gpb_stack **out, struct err *e);

#endif
