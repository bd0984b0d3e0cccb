/* user/probe/stacks/unwind_rules.c - learns rules pc by pc, and settles stacks that were met before. */
#include "probe/stacks/unwind_rules.h"

#include <bpf/bpf.h>

#include "probe/stacks/unwinding.h"
#include "profile/profile.h"

void unwind_rules_init(struct unwind_rules *r, int map_fd)
{
	*r = (struct unwind_rules){ .map_fd = map_fd };
}

void unwind_rules_fini(struct unwind_rules *r)
{
	for (size_t i = 0; i < r->files.n; i++)
		vec_fini(&r->files.at[i].order);
	vec_fini(&r->files);
	map_fini(&r->file_of);
	map_fini(&r->known);
}

/* ---- whose they are ---- */

static const struct unwind_rules_file *known_file(const struct unwind_rules *r, uint16_t id)
{
	uint64_t i;

	return map_get(&r->file_of, id, &i) ? &r->files.at[i] : NULL;
}

/* NULL: no memory. */
static struct unwind_rules_file *file_of(struct unwind_rules *r, uint64_t key)
{
	uint16_t id = (uint16_t)(key >> 48);
	struct unwind_rules_file *f;
	uint64_t i;

	if (map_get(&r->file_of, id, &i))
		return &r->files.at[i];
	f = vec_add(&r->files, UINT16_MAX + 1);
	if (!f)
		return NULL;
	*f = (struct unwind_rules_file){ .id = id, .came = r->ncame++ };
	map_put(&r->file_of, id, r->files.n - 1);
	return f;
}

/* ---- making room ---- */

/* The oldest @n of them. False: some are still there. */
static bool take_out(struct unwind_rules *r, struct unwind_rules_file *f, size_t n)
{
	bool all = true;

	for (size_t i = 0; i < n; i++) {
		int ret = bpf_map_delete_elem(r->map_fd, &f->order.at[i]);

		all &= !ret || ret == -ENOENT;
		map_del(&r->known, f->order.at[i]);
	}
	f->order.n -= n;
	memmove(f->order.at, f->order.at + n, f->order.n * sizeof(*f->order.at));
	return all;
}

bool unwind_rules_forget(struct unwind_rules *r, uint16_t id)
{
	struct unwind_rules_file *f, *last;
	uint64_t i;
	bool all;

	if (!map_get(&r->file_of, id, &i))
		return true;
	f = &r->files.at[i];
	all = take_out(r, f, f->order.n);
	vec_fini(&f->order);
	last = &r->files.at[--r->files.n];
	*f = *last;
	map_put(&r->file_of, last->id, i);
	map_del(&r->file_of, id);
	return all;
}

/* It is called when the table is full: some file has rules. */
static struct unwind_rules_file *who_gives(const struct unwind_rules *r)
{
	struct unwind_rules_file *most = NULL, *first = NULL;

	for (size_t i = 0; i < r->files.n; i++) {
		struct unwind_rules_file *f = &r->files.at[i];

		if (!f->order.n)
			continue;
		if (!most || f->order.n > most->order.n)
			most = f;
		if (!first || f->came < first->came)
			first = f;
	}
	return most && most->order.n >= UNWIND_RULES_PART ? most : first;
}

/* A pc that is met again costs one raw sample. */
static bool make_room(struct unwind_rules *r)
{
	struct unwind_rules_file *f = who_gives(r);
	size_t n;

	if (!f)
		return false;
	n = f->order.n >= UNWIND_RULES_PART ? f->order.n / 8 : f->order.n;
	take_out(r, f, n);
	f->evicted += n;
	if (!f->order.n)
		f->came = r->ncame++;
	return true;
}

uint64_t unwind_rules_key(const struct subject *s, uint64_t pc)
{
	const struct image *img = images_at(&s->images, pc);

	return (uint64_t)img->id << 48 | ((pc - img->bias) & ((1ull << 48) - 1));
}

bool unwind_rules_known(const struct unwind_rules *r, uint64_t key)
{
	uint64_t known;

	return map_get(&r->known, key, &known);
}

void unwind_rules_learn(struct unwind_rules *r, uint64_t key, const struct gpb_unwind_rule *rule)
{
	struct unwind_rules_file *f;
	uint64_t *at;
	int ret;

	if (unwind_rules_known(r, key))
		return;
	ret = bpf_map_update_elem(r->map_fd, &key, rule, BPF_ANY);
	if (ret == -E2BIG && make_room(r))
		ret = bpf_map_update_elem(r->map_fd, &key, rule, BPF_ANY);
	f = ret ? NULL : file_of(r, key);
	at = f ? vec_add(&f->order, GPB_UNWIND_RULES) : NULL;
	if (!at) {
		if (!ret) /* what is not noted could not be taken out */
			bpf_map_delete_elem(r->map_fd, &key);
		r->refused++;
		return;
	}
	*at = key;
	map_put(&r->known, key, 1);
}

int unwind_rules_comment(const struct unwind_rules *r, const struct subject *s, struct prof *p,
			 struct err *e)
{
	uint64_t evicted = 0;

	for (size_t i = 0; i < s->images.n; i++) {
		const struct unwind_rules_file *f = known_file(r, s->images.at[i].id);

		evicted += f ? f->evicted : 0;
	}
	if (!evicted && !r->refused)
		return 0;
	return prof_comment(
		p, e,
		"rules: the kernel's table of %u was full: %llu of its files made room, %llu of any found none",
		GPB_UNWIND_RULES, (unsigned long long)evicted, (unsigned long long)r->refused);
}

struct learning {
	struct unwind_rules *r;
	const struct subject *s;
};

static void learn_pc(void *arg, uint64_t pc, const struct gpb_unwind_rule *rule)
{
	struct learning *l = arg;

	unwind_rules_learn(l->r, unwind_rules_key(l->s, pc), rule);
}

int unwind_rules_settle_bare(struct unwind_rules *r, struct subject *s, const struct gpb_stack *st,
			     const struct gpb_stack **out, struct err *e)
{
	struct learning l = { .r = r, .s = s };
	bool second = st->flags & GPB_STACK_SECOND && st->nsecond;
	struct gpb_rec_raw *raw = &r->raw;
	uint32_t last = (uint32_t)st->nkernel + st->nfirst + (second ? st->nsecond : 0) - 1;

	*out = st;
	if (!(st->flags & GPB_STACK_UNRULED) || !gpb_stack_whole(st))
		return 0;
	raw->stack = *st;
	raw->second = second;
	raw->pc = st->pc[last] - 1;
	raw->sp = raw->ntop = 0;
	*out = &raw->stack;
	return unwinding_settle(s, raw, learn_pc, &l, e);
}

/* The ring hands out const memory, but settling moves words about, so the record is copied. */
int unwind_rules_settle(struct unwind_rules *r, struct subject *s, const void *data, size_t len,
			const struct gpb_stack **out, struct err *e)
{
	struct learning l = { .r = r, .s = s };
	struct gpb_rec_raw *raw = &r->raw;
	uint32_t was;
	int ret;

	if (len < offsetof(struct gpb_rec_raw, top)) {
		r->broken++;
		return 0;
	}
	if (len > sizeof(*raw)) /* the ring rounds lengths up */
		len = sizeof(*raw);
	memcpy(raw, data, len);
	if (raw->ntop > (len - offsetof(struct gpb_rec_raw, top)) / 8 ||
	    !gpb_stack_whole(&raw->stack)) {
		r->broken++;
		return 0;
	}
	was = raw->stack.flags;
	ret = unwinding_settle(s, raw, learn_pc, &l, e);
	if (ret)
		return ret;
	r->cut += !(was & GPB_STACK_CUT) && (raw->stack.flags & GPB_STACK_CUT);
	*out = &raw->stack;
	return 0;
}
