/* user/heapgraph/objects.c - runs of slots, and how an address finds its own. */
#include "heapgraph/objects.h"

#include "base/cleanup.h"

enum { RUN_SLOTS = 512, WORD = 64, PAGE = 8192 };
#define OBJECTS_MAX (UINT32_MAX - 1)

/* ---- adding ---- */

/* The slot of the last run that an object can have; false: it needs a run of its own. */
static bool slot_in_last(const struct objects *o, uint64_t addr, uint64_t size, uint64_t *slot)
{
	const struct object_run *run;

	if (!o->runs.n || addr <= o->last)
		return false;
	run = &o->runs.at[o->runs.n - 1];
	if (run->size != size || !size || (addr - run->addr) % size)
		return false;
	/* A page in between may be of another size. Source: runtime/sizeclasses.go: _PageSize. */
	if (addr - o->last - size >= PAGE)
		return false;
	if ((addr - run->addr) / size >= RUN_SLOTS)
		return false;
	*slot = (addr - run->addr) / size;
	return true;
}

static int begin_run(struct objects *o, uint64_t addr, uint64_t size, struct err *e)
{
	struct object_run *run = vec_add(&o->runs, OBJECTS_MAX);

	if (!run || o->bits.n > OBJECTS_MAX)
		return err_set(e, -ENOMEM, "no memory for objects");
	*run = (struct object_run){
		.addr = addr,
		.size = size,
		.first = o->n,
		.node = o->nnodes,
		.bits = (uint32_t)o->bits.n,
	};
	return 0;
}

int objects_add(struct objects *o, uint64_t addr, uint64_t size, bool node, struct err *e)
{
	struct object_bits *bits;
	uint64_t slot = 0;
	size_t word;

	if (o->n >= OBJECTS_MAX)
		return err_set(e, -E2BIG, "more than %u objects", OBJECTS_MAX);
	if (addr + size < addr)
		return err_set(e, -EBADMSG, "an object of %llu bytes at 0x%llx",
			       (unsigned long long)size, (unsigned long long)addr);
	if (!slot_in_last(o, addr, size, &slot) && begin_run(o, addr, size, e))
		return -ENOMEM;
	word = o->runs.at[o->runs.n - 1].bits + (size_t)(slot / WORD);
	while (o->bits.n <= word)
		if (!vec_add(&o->bits, SIZE_MAX / 16))
			return err_set(e, -ENOMEM, "no memory for objects");
	bits = &o->bits.at[word];
	bits->taken |= 1ull << slot % WORD;
	bits->node |= (uint64_t)node << slot % WORD;
	o->n++;
	o->nnodes += node;
	o->bytes += size;
	o->last = addr;
	return 0;
}

/* ---- looking up ---- */

static const struct object_run *by_address(const struct objects *o, size_t i)
{
	return &o->runs.at[o->order[i]];
}

static int compare_runs(const void *a, const void *b, void *arg)
{
	const struct objects *o = arg;
	uint64_t x = o->runs.at[*(const uint32_t *)a].addr,
		 y = o->runs.at[*(const uint32_t *)b].addr;

	return (x > y) - (x < y);
}

static bool is_sorted(const struct objects *o)
{
	for (size_t i = 1; i < o->runs.n; i++)
		if (o->runs.at[i - 1].addr > o->runs.at[i].addr)
			return false;
	return true;
}

/* guide[k]: the last run that begins at or before part k of the range, or the first one. */
static void fill_guide(struct objects *o, size_t parts)
{
	size_t run = 0;

	for (size_t k = 0; k <= parts; k++) {
		uint64_t from = o->low + ((uint64_t)k << o->shift);

		while (run + 1 < o->runs.n && by_address(o, run + 1)->addr <= from)
			run++;
		o->guide[k] = (uint32_t)run;
	}
}

static size_t bits_end(const struct objects *o, size_t run)
{
	return run + 1 < o->runs.n ? o->runs.at[run + 1].bits : o->bits.n;
}

/* Of the last slot that is taken. */
static uint64_t run_end(const struct objects *o, size_t r)
{
	const struct object_run *run = &o->runs.at[r];
	size_t last = bits_end(o, r) - 1;
	uint64_t slots = (last - run->bits) * WORD + WORD -
			 (uint64_t)__builtin_clzll(o->bits.at[last].taken),
		 n, end;

	if (__builtin_mul_overflow(slots, run->size, &n) ||
	    __builtin_add_overflow(run->addr, n, &end))
		return UINT64_MAX;
	return end;
}

static void find_overlaps(struct objects *o)
{
	for (size_t i = 0; i < o->runs.n; i++) {
		if (by_address(o, i)->addr < o->end || !by_address(o, i)->size)
			o->overlap = true;
		if (run_end(o, o->order[i]) > o->end)
			o->end = run_end(o, o->order[i]);
	}
}

int objects_seal(struct objects *o, struct err *e)
{
	size_t parts;

	if (!o->runs.n)
		return 0;
	o->order = malloc(o->runs.n * sizeof(*o->order));
	if (!o->order)
		return err_set(e, -ENOMEM, "no memory for objects");
	for (size_t i = 0; i < o->runs.n; i++)
		o->order[i] = (uint32_t)i;
	if (!is_sorted(o))
		qsort_r(o->order, o->runs.n, sizeof(*o->order), compare_runs, o);
	o->low = by_address(o, 0)->addr;
	o->high = by_address(o, o->runs.n - 1)->addr;
	while ((o->high - o->low) >> o->shift > o->runs.n)
		o->shift++;
	parts = (size_t)((o->high - o->low) >> o->shift) + 1;
	o->guide = malloc((parts + 1) * sizeof(*o->guide));
	if (!o->guide)
		return err_set(e, -ENOMEM, "no memory for objects");
	fill_guide(o, parts);
	find_overlaps(o);
	return 0;
}

void objects_fini(struct objects *o)
{
	vec_fini(&o->runs);
	vec_fini(&o->bits);
	free(o->order);
	free(o->guide);
	*o = (struct objects){};
}

static unsigned ones(uint64_t word)
{
	return (unsigned)__builtin_popcountll(word);
}

/* Is the slot taken, and by which object? */
static bool taken(const struct objects *o, size_t r, uint64_t slot, struct object *out)
{
	const struct object_run *run = &o->runs.at[r];
	const struct object_bits *bits = o->bits.at + run->bits;
	uint64_t word = slot / WORD, bit = 1ull << slot % WORD;
	uint32_t before = 0, nodes = 0;

	if (slot >= RUN_SLOTS || run->bits + word >= bits_end(o, r) || !(bits[word].taken & bit))
		return false;
	for (uint64_t i = 0; i < word; i++) {
		before += ones(bits[i].taken);
		nodes += ones(bits[i].node);
	}
	*out = (struct object){ .addr = run->addr + slot * run->size,
				.size = run->size,
				.index = run->first + before + ones(bits[word].taken & (bit - 1)),
				.nodes = run->node + nodes + ones(bits[word].node & (bit - 1)),
				.node = bits[word].node & bit };
	return true;
}

bool objects_find(const struct objects *o, uint64_t addr, struct object *out)
{
	const struct object_run *run;
	size_t low, high;
	uint64_t part;

	if (!o->guide || addr < o->low)
		return false;
	part = addr < o->high ? (addr - o->low) >> o->shift : (o->high - o->low) >> o->shift;
	/* The last run that begins at or before it. */
	low = o->guide[part];
	high = o->guide[part + 1];
	while (low < high) {
		size_t mid = low + (high - low + 1) / 2;

		if (by_address(o, mid)->addr <= addr)
			low = mid;
		else
			high = mid - 1;
	}
	run = by_address(o, low);
	return run->size && taken(o, o->order[low], (addr - run->addr) / run->size, out);
}

/* What is counted: all objects, nodes or leaves. */
enum which { ALL, NODES, LEAVES };

static uint64_t which_bits(const struct object_bits *b, enum which which)
{
	return which == ALL ? b->taken : which == NODES ? b->node : b->taken & ~b->node;
}

static uint32_t before(const struct object_run *run, enum which which)
{
	return which == ALL ? run->first : which == NODES ? run->node : run->first - run->node;
}

/* The last run that has no more than @n of them before it. */
static size_t run_of(const struct objects *o, uint32_t n, enum which which)
{
	size_t low = 0, high = o->runs.n - 1;

	while (low < high) {
		size_t mid = low + (high - low + 1) / 2;

		if (before(&o->runs.at[mid], which) <= n)
			low = mid;
		else
			high = mid - 1;
	}
	return low;
}

static struct object nth(const struct objects *o, uint32_t n, enum which which)
{
	size_t run = run_of(o, n, which);
	const struct object_bits *at = o->bits.at + o->runs.at[run].bits;
	uint64_t slot = 0, bits = which_bits(at, which);
	struct object out = {};

	for (n -= before(&o->runs.at[run], which); n >= ones(bits); slot += WORD) {
		n -= ones(bits);
		bits = which_bits(++at, which);
	}
	for (; n; n--)
		bits &= bits - 1;
	BUG_ON(!taken(o, run, slot + (unsigned)__builtin_ctzll(bits), &out));
	return out;
}

struct object objects_at(const struct objects *o, uint32_t index)
{
	BUG_ON(index >= o->n);
	return nth(o, index, ALL);
}

struct object objects_node(const struct objects *o, uint32_t node)
{
	BUG_ON(node >= o->nnodes);
	return nth(o, node, NODES);
}

struct object objects_leaf(const struct objects *o, uint32_t leaf)
{
	BUG_ON(leaf >= o->n - o->nnodes);
	return nth(o, leaf, LEAVES);
}

bool objects_next(const struct objects *o, struct objects_walk *w, struct object *out)
{
	for (; w->run < o->runs.n; w->run++, w->slot = 0) {
		const struct object_run *run = &o->runs.at[w->run];
		const struct object_bits *bits = o->bits.at + run->bits;
		uint64_t end = (bits_end(o, w->run) - run->bits) * WORD;

		while (w->slot < end) {
			uint64_t slot = w->slot, left = bits[slot / WORD].taken >> slot % WORD;

			if (!left) {
				w->slot = (slot / WORD + 1) * WORD;
				continue;
			}
			slot += (unsigned)__builtin_ctzll(left);
			w->slot = slot + 1;
			*out = (struct object){ run->addr + slot * run->size, run->size, w->index++,
						w->nodes,
						bits[slot / WORD].node >> slot % WORD & 1 };
			w->nodes += out->node;
			return true;
		}
	}
	return false;
}

bool objects_follow(const struct objects *o, struct objects_follow *f, uint64_t addr, uint64_t size,
		    struct object *out)
{
	if (!f->begun)
		f->more = objects_next(o, &f->walk, &f->next);
	f->begun = true;
	if (!f->more || f->next.addr != addr || f->next.size != size)
		return false;
	*out = f->next;
	f->more = objects_next(o, &f->walk, &f->next);
	return true;
}

bool objects_leads_to(const struct objects *o, const struct object *object)
{
	struct object found;

	return !o->overlap ||
	       (objects_find(o, object->addr, &found) && found.index == object->index);
}
