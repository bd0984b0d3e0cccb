/* user/collect/rules.c - learns rules pc by pc, and settles stacks that were met before. */
#include "collect/rules.h"

#include <bpf/bpf.h>

#include "collect/physical.h"

void rules_init(struct rules *r, struct subject *s, int map_fd)
{
	*r = (struct rules){ .s = s, .map_fd = map_fd };
}

void rules_fini(struct rules *r)
{
	map_fini(&r->known);
}

static void learn(void *arg, uint64_t pc, const struct gpb_rule *rule)
{
	struct rules *r = arg;
	uint64_t key = pc & ((1ull << 48) - 1), known;

	if (map_get(&r->known, key, &known))
		return;
	if (!bpf_map_update_elem(r->map_fd, &key, rule, BPF_ANY))
		map_put(&r->known, key, 1);
}

/* The ring hands out const memory, but settling moves words about, so the record is copied. */
int rules_settle(struct rules *r, const void *data, size_t len, const struct gpb_stack **out,
		 struct err *e)
{
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
	    !physical_whole(&raw->stack)) {
		r->broken++;
		return 0;
	}
	was = raw->stack.flags;
	ret = physical_settle(r->s, raw, learn, r, e);
	if (ret)
		return ret;
	r->cut += !(was & GPB_STACK_CUT) && (raw->stack.flags & GPB_STACK_CUT);
	*out = &raw->stack;
	return 0;
}
