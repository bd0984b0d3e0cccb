/* user/heapgraph/objects.c - runs of slots, and how an address finds its own. */
#include "heapgraph/objects.h"

#include "base/cleanup.h"

enum { RUN_SLOTS = 512, WORD = OBJECTS_WORD, PAGE = 8192 };
#define OBJECTS_MAX (UINT32_MAX - 1)
#define BEGINS	    (1u << 31) /* in guide: the run's first address is the part's */

/* ---- adding ---- */

/* The slot of the last run that an object can have; false: it needs a run of its own. */
static bool slot_in_last(const struct objects *o, uint64_t addr, uint64_t size, uint32_t *slot)
{
	uint64_t step = addr - o->last;

	if (!o->runs.n || addr <= o->last || o->runs.at[o->runs.n - 1].size != size || !size)
		return false;
	*slot = o->slot + 1;
	if (step != size) {
		/* A page in between may be of another size. Source: runtime/sizeclasses.go: _PageSize. */
		if (step % size || step - size >= PAGE)
			return false;
		*slot = o->slot + (uint32_t)(step / size);
	}
	return *slot < RUN_SLOTS;
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
	uint32_t slot = 0;
	size_t word;

	if (o->n >= OBJECTS_MAX)
		return err_set(e, -E2BIG, "more than %u objects", OBJECTS_MAX);
	if (addr + size < addr)
		return err_set(e, -EBADMSG,
			       "an object of %llu bytes at 0x%llx ends behind the last address",
			       (unsigned long long)size, (unsigned long long)addr);
	if (!slot_in_last(o, addr, size, &slot)) {
		if (begin_run(o, addr, size, e))
			return -ENOMEM;
		slot = 0;
	}
	word = o->runs.at[o->runs.n - 1].bits + (size_t)(slot / WORD);
	while (o->bits.n <= word) {
		if (!vec_add(&o->bits, SIZE_MAX / 16))
			return err_set(e, -ENOMEM, "no memory for objects");
		o->runs.at[o->runs.n - 1].words++;
	}
	bits = &o->bits.at[word];
	bits->taken |= 1ull << slot % WORD;
	bits->node |= (uint64_t)node << slot % WORD;
	o->n++;
	o->nnodes += node;
	o->bytes += size;
	o->last = addr;
	o->slot = slot;
	o->next = addr + size;
	/* As many as have bits in one word need no checks then. */
	o->size = size <= UINT32_MAX && o->n < OBJECTS_MAX - WORD &&
				  addr <= UINT64_MAX - (WORD + 1) * size ?
			  size :
			  0;
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

/* The last run that begins at or before each part, or the first one. */
static void fill_guide(struct objects *o, size_t parts)
{
	size_t run = 0;

	for (size_t k = 0; k <= parts; k++) {
		uint64_t from = o->low + ((uint64_t)k << o->shift);

		while (run + 1 < o->runs.n && by_address(o, run + 1)->addr <= from)
			run++;
		o->guide[k] = (struct objects_part){ (uint32_t)run, OBJECTS_NOT_SOLE };
		/* No other one begins in the part before this one. */
		if (k && (o->guide[k - 1].from == run ||
			  (o->guide[k - 1].from + 1 == run && by_address(o, run)->addr == from)))
			o->guide[k - 1].sole = o->order[o->guide[k - 1].from];
	}
}

/* Of the last slot that is taken. */
static uint64_t run_end(const struct objects *o, size_t r)
{
	const struct object_run *run = &o->runs.at[r];
	size_t last = run->bits + run->words - 1;
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
	while ((o->high - o->low) >> o->shift > 2 * o->runs.n)
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

/* Not every machine has an instruction for it, and the library's function is slower. */
static inline unsigned ones(uint64_t w)
{
	w -= w >> 1 & 0x5555555555555555;
	w = (w & 0x3333333333333333) + (w >> 2 & 0x3333333333333333);
	w = (w + (w >> 4)) & 0x0f0f0f0f0f0f0f0f;
	return (unsigned)(w * 0x0101010101010101 >> 56);
}

static inline bool is_taken(const struct objects *o, size_t r, uint64_t slot)
{
	const struct object_run *run = &o->runs.at[r];
	uint64_t word = slot / WORD;

	return word < run->words && o->bits.at[run->bits + word].taken >> slot % WORD & 1;
}

/* The object in a slot that is taken. */
static struct object object_in(const struct objects *o, size_t r, uint64_t slot)
{
	const struct object_run *run = &o->runs.at[r];
	const struct object_bits *bits = o->bits.at + run->bits;
	uint64_t word = slot / WORD, bit = 1ull << slot % WORD;
	uint32_t before = 0, nodes = 0;

	for (uint64_t i = 0; i < word; i++) {
		before += ones(bits[i].taken);
		nodes += ones(bits[i].node);
	}
	return (struct object){ .addr = run->addr + slot * run->size,
				.size = run->size,
				.index = run->first + before + ones(bits[word].taken & (bit - 1)),
				.nodes = run->node + nodes + ones(bits[word].node & (bit - 1)),
				.node = bits[word].node & bit };
}

/* The last run that begins at or before an address in this part. */
static size_t search(const struct objects *o, uint64_t part, uint64_t addr)
{
	size_t low = o->guide[part].from, high = o->guide[part + 1].from;

	while (low < high) {
		size_t mid = low + (high - low + 1) / 2;

		if (by_address(o, mid)->addr <= addr)
			low = mid;
		else
			high = mid - 1;
	}
	return o->order[low];
}

/* The slot that an address lies in, if it is taken. */
static inline __attribute__((always_inline)) bool find_slot(const struct objects *o, uint64_t addr,
							    size_t *r, uint64_t *slot)
{
	uint64_t part, offset, size;

	if (!o->guide || addr < o->low)
		return false;
	part = (addr < o->high ? addr - o->low : o->high - o->low) >> o->shift;
	*r = o->guide[part].sole;
	if (*r == OBJECTS_NOT_SOLE)
		*r = search(o, part, addr);
	offset = addr - o->runs.at[*r].addr;
	size = o->runs.at[*r].size;
	if (!size)
		return false;
	/* To divide numbers of 32 bits takes half as long. */
	*slot = (offset | size) >> 32 ? offset / size : (uint32_t)offset / (uint32_t)size;
	return is_taken(o, *r, *slot);
}

bool objects_find(const struct objects *o, uint64_t addr, struct object *out)
{
	uint64_t slot;
	size_t r;

	if (!find_slot(o, addr, &r, &slot))
		return false;
	*out = object_in(o, r, slot);
	return true;
}

void objects_starts(const struct objects *o, const uint64_t *addrs, size_t n, uint64_t *out)
{
	uint64_t slot;
	size_t r;

	for (size_t i = 0; i < n; i++)
		out[i] = find_slot(o, addrs[i], &r, &slot) ?
				 o->runs.at[r].addr + slot * o->runs.at[r].size :
				 0;
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

	for (n -= before(&o->runs.at[run], which); n >= ones(bits); slot += WORD) {
		n -= ones(bits);
		bits = which_bits(++at, which);
	}
	for (; n; n--)
		bits &= bits - 1;
	slot += (unsigned)__builtin_ctzll(bits);
	BUG_ON(!is_taken(o, run, slot));
	return object_in(o, run, slot);
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

static void enter_run(const struct objects *o, struct objects_walk *w)
{
	const struct object_run *run = &o->runs.at[w->run];

	w->word = run->bits;
	w->end = run->bits + run->words;
	w->run++;
	w->size = run->size;
	w->addr = run->addr - WORD * run->size;
}

void objects_walk_run(const struct objects *o, struct objects_walk *w, size_t run)
{
	*w = (struct objects_walk){ .run = run,
				    .index = o->runs.at[run].first,
				    .nodes = o->runs.at[run].node };
	enter_run(o, w);
}

bool objects_walk_on(const struct objects *o, struct objects_walk *w)
{
	while (!w->left) {
		if (w->word == w->end) {
			if (w->run == o->runs.n)
				return false;
			enter_run(o, w);
		}
		w->left = o->bits.at[w->word].taken;
		w->node = o->bits.at[w->word++].node;
		w->addr += WORD * w->size;
	}
	return true;
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
