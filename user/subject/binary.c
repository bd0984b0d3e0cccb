/* user/subject/binary.c - the executables that are known, by device, inode, size and time. */
#include "subject/binary.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"

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

uint16_t binaries_number(struct binaries *c)
{
	return c->numbers < UINT16_MAX ? (uint16_t)++c->numbers : 0;
}

/*
 * What unwinding rules are filed under in the kernel, so it stays that file's. A file that comes and goes has the number that it had. Where
 * there is no memory to note it, it gets another one.
 */
static void note_number(struct binaries *c, const struct binary *b)
{
	uint64_t at, hash = hash_bytes(&b->key, sizeof(b->key));
	struct file_id *to;
	uint16_t *number;

	if (map_get(&c->given, hash, &at) && !memcmp(&c->given_to.at[at], &b->key, sizeof(b->key)))
		return;
	to = vec_add(&c->given_to, UINT16_MAX);
	number = to ? vec_add(&c->given_number, UINT16_MAX) : NULL;
	if (to && !number)
		c->given_to.n--;
	if (!number)
		return;
	*to = b->key;
	*number = b->id;
	map_put(&c->given, hash, c->given_to.n - 1);
}

static uint16_t number_of(struct binaries *c, const struct file_id *k)
{
	uint64_t at;

	if (map_get(&c->given, hash_bytes(k, sizeof(*k)), &at) &&
	    !memcmp(&c->given_to.at[at], k, sizeof(*k)))
		return c->given_number.at[at];
	return binaries_number(c);
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
	ret = gobin_open(b->fd, t->exe, t->mem, t->bias, &b->bin, e);
	if (ret)
		return ret;
	b->id = number_of(c, k);
	if (!b->id)
		return err_set(e, -E2BIG, "more than %d different executables in one run",
			       UINT16_MAX);
	b->next = c->first;
	c->first = b;
	*out = TAKE(b);
	return 0;
}

int binary_get(struct binaries *c, struct target *t, struct binary **out, struct err *e)
{
	struct binary *b = known(c, &t->exe_id);
	int ret = b ? 0 : open_new(c, t, &t->exe_id, &b, e);

	if (ret)
		return ret;
	b->users++;
	b->last_use = ++c->clock;
	*out = b;
	return 0;
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
		note_number(c, *oldest);
		drop(oldest);
	}
	shrink(c, most);
}

void binaries_fini(struct binaries *c)
{
	while (c->first)
		drop(&c->first);
	map_fini(&c->given);
	vec_fini(&c->given_to);
	vec_fini(&c->given_number);
}
