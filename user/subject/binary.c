/* user/subject/binary.c - the executables that are known, by device, inode, size and time. */
#include "subject/binary.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void binary_free(struct binary *b)
{
	gobin_free(b->bin);
	if (b->fd >= 0)
		close(b->fd);
	free(b->kept);
	free(b);
}

static void binary_freep(struct binary **b)
{
	if (*b)
		binary_free(*b);
}

static struct binary *known(const struct binaries *c, const struct file_id *k)
{
	struct binary *b = c->first;

	while (b && memcmp(&b->key, k, sizeof(*k)))
		b = b->next;
	return b;
}

static uint8_t *taken(struct binaries *c, uint16_t number, uint8_t *bit)
{
	*bit = (uint8_t)(1u << number % 8);
	return &c->taken[number / 8];
}

/* The next one that is free, so that the one that was given back last comes last. */
uint16_t binaries_number(struct binaries *c)
{
	for (unsigned i = 0; i < UINT16_MAX; i++) {
		uint16_t number = (uint16_t)(c->last % UINT16_MAX + 1);
		uint8_t bit, *at = taken(c, number, &bit);

		c->last = number;
		if (*at & bit)
			continue;
		*at |= bit;
		return number;
	}
	return 0;
}

void binaries_give_back(struct binaries *c, uint16_t number)
{
	uint8_t bit, *at = taken(c, number, &bit);

	if (!c->forget || c->forget(c->arg, number))
		*at &= (uint8_t)~bit;
}

static int open_new(struct binaries *c, struct target *t, const struct file_id *k,
		    struct binary **out, struct err *e)
{
	CLEANUP(binary_freep) struct binary *b = calloc(1, sizeof(*b));
	int ret;

	if (!b)
		return err_set(e, -ENOMEM, "no memory for an executable");
	b->key = *k;
	b->fd = dup(t->exe_fd);
	if (b->fd < 0)
		return err_sys(e, "pid %d: its executable", t->pid);
	ret = gobin_open_shared(b->fd, t->exe, t->mem, t->bias, &b->bin, e);
	if (ret)
		return ret;
	b->id = binaries_number(c);
	if (!b->id)
		return err_set(e, -E2BIG, "more than %d different executables at once", UINT16_MAX);
	b->next = c->first;
	c->first = b;
	*out = TAKE(b);
	return 0;
}

int binary_get(struct binaries *c, struct target *t, struct binary **out, struct err *e)
{
	struct binary *b = known(c, &t->exe_id);
	int ret = 0;

	if (b)
		gobin_one_more(b->bin);
	else
		ret = open_new(c, t, &t->exe_id, &b, e);
	if (ret)
		return ret;
	b->users++;
	b->last_use = ++c->clock;
	*out = b;
	return 0;
}

struct binary *binary_share(struct binary *b)
{
	b->users++;
	return b;
}

void binary_put(struct binary *b)
{
	b->users--;
}

static void drop(struct binary **at)
{
	struct binary *b = *at;

	*at = b->next;
	binary_free(b);
}

size_t binaries_bytes(const struct binaries *c)
{
	size_t n = 0;

	for (const struct binary *b = c->first; b; b = b->next)
		n += sizeof(*b) + gobin_bytes(b->bin);
	return n;
}

/* Of those that nobody uses: how many, and where the one hangs that was used least recently. */
static struct binary **oldest_idle(struct binaries *c, unsigned *idle)
{
	struct binary **oldest = NULL;

	*idle = 0;
	for (struct binary **p = &c->first; *p; p = &(*p)->next) {
		if ((*p)->users)
			continue;
		++*idle;
		if (!oldest || (*p)->last_use < (*oldest)->last_use)
			oldest = p;
	}
	return oldest;
}

/* Those in use give back their caches, the least recently used first. */
static void shrink(struct binaries *c, size_t most)
{
	uint64_t after = 0;

	while (binaries_bytes(c) > most) {
		struct binary *oldest = NULL;

		for (struct binary *b = c->first; b; b = b->next)
			if (b->last_use > after && (!oldest || b->last_use < oldest->last_use))
				oldest = b;
		if (!oldest)
			return;
		gobin_shrink(oldest->bin);
		after = oldest->last_use;
	}
}

void binaries_trim(struct binaries *c)
{
	size_t most = c->most ? c->most : BINARIES_BYTES;
	struct binary **oldest;
	unsigned idle;

	while ((oldest = oldest_idle(c, &idle)) &&
	       (idle > BINARIES_IDLE_MAX || binaries_bytes(c) > most)) {
		binaries_give_back(c, (*oldest)->id);
		drop(oldest);
	}
	shrink(c, most);
}

void binaries_fini(struct binaries *c)
{
	while (c->first)
		drop(&c->first);
}
