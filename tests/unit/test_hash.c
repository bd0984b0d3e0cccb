/*
 * tests/unit/test_hash.c - the keyed hash: it is the published one, cannot be predicted, and has
 * no influence on what is written.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/strtab.h"
#include "output/output.h"

/* The values of CPython 3.11 for hash(b"...") with PYTHONHASHSEED=0, whose key is zero. */
static void as_published(void **state)
{
	static const struct {
		const char *text;
		uint64_t hash;
	} known[] = {
		{ "a", 0x407448d2b89b1813 },
		{ "ab", 0x555508cbc6add439 },
		{ "runtime", 0x874fd8712028ad21 },
		{ "runtime.mallocgc", 0xb015a4a725d3e06c },
		{ "a string that is longer than eight", 0x41447836f02406b3 },
	};

	(void)state;
	hash_set_key((struct gpb_hash_key){ 0, 0 });
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		assert_int_equal(hash_bytes(known[i].text, strlen(known[i].text)), known[i].hash);
}

/* Two processes do not agree on a hash, so nobody can compute it beforehand. */
static void each_process_has_its_own(void **state)
{
	uint64_t seen[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		int fd[2];

		assert_int_equal(pipe(fd), 0);
		if (!fork()) {
			uint64_t h = hash_u64(1);

			_exit(write(fd[1], &h, sizeof(h)) != sizeof(h));
		}
		wait(NULL);
		assert_int_equal(read(fd[0], &seen[i], sizeof(seen[i])), sizeof(seen[i]));
		close(fd[0]);
		close(fd[1]);
	}
	assert_true(seen[0] != seen[1]);
}

/* Pairs of words that differ in high bits collide in a multiplicative hash under every seed. */
static void high_bits_do_not_cancel(void **state)
{
	uint64_t a[] = { 1, 2 }, b[] = { 1 ^ 1ull << 63, 2 ^ 1ull << 63 ^ 1ull << 34 };

	(void)state;
	assert_true(hash_pair(a[0], a[1]) != hash_pair(b[0], b[1]));
	assert_true(hash_bytes(a, sizeof(a)) != hash_bytes(b, sizeof(b)));
}

enum { KEYS = 20000 };

/* The inverse of the multiplier that the map once had: all of its keys fell into one place. */
static uint64_t inverse(uint64_t odd)
{
	uint64_t x = odd;

	for (int i = 0; i < 6; i++)
		x *= 2 - odd * x;
	return x;
}

static void chosen_keys_do_not_pile_up(void **state)
{
	uint64_t back = inverse(0x9e3779b97f4a7c15ull), v;
	struct map m = { 0 };
	clock_t start = clock();

	(void)state;
	/* Products of the form i << 48: their low 32 bits, folded, were i << 16. */
	for (uint64_t i = 0; i < KEYS; i++)
		assert_true(map_put(&m, (i << 48) * back, i));
	for (uint64_t i = 0; i < KEYS; i++) {
		assert_true(map_get(&m, (i << 48) * back, &v));
		assert_int_equal(v, i);
	}
	assert_true(clock() - start < CLOCKS_PER_SEC / 4);
	map_fini(&m);
}

/* What is deleted is gone, and nothing that was put behind it gets lost. */
static void a_map_forgets_what_is_deleted(void **state)
{
	enum { IDS = 300, STEPS = 100000 };
	struct {
		bool in;
		uint64_t v;
	} model[IDS] = { 0 };
	struct map m = { 0 };
	uint64_t rng = 1, v;
	size_t n = 0;

	(void)state;
	map_del(&m, 1);
	for (int i = 0; i < STEPS; i++) {
		unsigned id;

		rng = rng * 6364136223846793005ull + 1442695040888963407ull;
		id = (unsigned)(rng >> 33) % IDS;
		n -= model[id].in;
		model[id].in = rng >> 63;
		model[id].v = rng;
		n += model[id].in;
		if (model[id].in)
			assert_true(map_put(&m, id, rng));
		else
			map_del(&m, id);
		assert_int_equal(m.n, n);
		if (i % 100)
			continue;
		for (unsigned k = 0; k < IDS; k++) {
			assert_int_equal(map_get(&m, k, &v), model[k].in);
			if (model[k].in)
				assert_int_equal(v, model[k].v);
		}
	}
	map_fini(&m);
}

/* Writes a profile under one key, with enough labels and stacks that tables grow. */
static size_t write_under(struct gpb_hash_key k, const char *format, char **text)
{
	struct prof *p;
	size_t len;
	FILE *f;

	hash_set_key(k);
	assert_int_equal(prof_new(&p, NULL), 0);
	assert_int_equal(prof_add_type(p, "samples", "count", NULL), 0);
	for (int64_t i = 0; i < 500; i++) {
		char name[32], value[32];
		struct prof_label l = { .key = "request", .str = value };
		uint32_t locs[2];

		snprintf(name, sizeof(name), "main.f%d", (int)(i % 97));
		snprintf(value, sizeof(value), "v%d", (int)(i * 7 % 250));
		for (int j = 0; j < 2; j++) {
			struct prof_line line = { .func = name, .file = "main.go", .line = j };

			locs[j] = (uint32_t)prof_location(p, 0, (uint64_t)(i % 97 + j), &line, 1,
							  NULL);
		}
		assert_int_equal(prof_sample(p, locs, 2, (int64_t[]){ i }, &l, 1, NULL), 0);
	}
	prof_set_time(p, 1700000000000000000, 1000000000);
	f = open_memstream(text, &len);
	assert_int_equal(output_find(format)->write(p, f, NULL), 0);
	fclose(f);
	prof_free(p);
	return len;
}

/* A page for a browser has a random nonce, which is blanked before pages are compared. */
static void blank_nonce(char *text)
{
	enum { DIGITS = 32 };
	char *at = strstr(text, "nonce-"), nonce[DIGITS + 1];

	if (!at)
		return;
	snprintf(nonce, sizeof(nonce), "%s", at + 6);
	while ((at = strstr(text, nonce)))
		memset(at, '-', DIGITS);
}

static void what_is_written_does_not_depend_on_it(void **state)
{
	static const char *const formats[] = { "pprof", "folded", "text", "flame" };

	(void)state;
	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
		char *one, *two;
		size_t n = write_under((struct gpb_hash_key){ 1, 2 }, formats[i], &one);

		assert_int_equal(write_under((struct gpb_hash_key){ 3, 4 }, formats[i], &two), n);
		if (!strcmp(formats[i], "flame")) {
			blank_nonce(one);
			blank_nonce(two);
		}
		assert_memory_equal(one, two, n);
		free(one);
		free(two);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* this one is first, because the others choose the key */
		cmocka_unit_test(each_process_has_its_own),
		cmocka_unit_test(as_published),
		cmocka_unit_test(high_bits_do_not_cancel),
		cmocka_unit_test(chosen_keys_do_not_pile_up),
		cmocka_unit_test(a_map_forgets_what_is_deleted),
		cmocka_unit_test(what_is_written_does_not_depend_on_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
