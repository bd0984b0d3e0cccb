/*
 * tests/support/mkdump_main.c - writes a made-up heap dump of Go 1.27 to stdout.
 *
 *	mkdump KIND [N]
 *
 * small: a list of three objects, of which a global holds the first, and one that nobody holds
 * stack: objects that variables on a stack hold, which only pointers to these tell of; and one whose
 *	address lies in front of them
 * held: an object that a global holds, in a ring of two; N & 1: another global holds it, too;
 *	N & 2: another site made it; N & 4: globals lie elsewhere; N & 8: the ring has three;
 *	N & 16: another Go wrote it
 * nought: an object at address 0
 * cycle: N objects in a ring, which a global holds, each with a pointer to itself and to the next
 * goroutines: N goroutines with two frames each, which all share an object
 * tiny: a list of N objects of 16 bytes, of which a global holds the first
 * globals: N words that point to an object of 16 bytes each, which point to nothing
 * sites: N allocation sites with a stack of their own, and a live sample of each
 * long: an object that is said to be 2^40 bytes long
 * count: a site that is said to have 2^40 frames
 * deep: as small, and then a site with 2000 frames, which are there
 * top: an object that ends behind the last address, after one that does not
 * newer: the header of a version that there is not
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EOF_, OBJECT, GOROUTINE = 4, FRAME, PARAMS, MEMSTATS = 10, BSS = 13, MEMPROF = 16, SAMPLE };
enum { WORD = 8, STATS = 280, SIZE = 32, TINY = 16 };

#define HEAP  0xc000000000ull
#define CODE  0x401000ull
#define STACK 0xc100000000ull

static void number(uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		putchar((int)(v & 0x7f) | 0x80);
	putchar((int)v);
}

static void text(const char *s)
{
	number(strlen(s));
	fputs(s, stdout);
}

static void word(uint64_t v)
{
	fwrite(&v, 1, sizeof(v), stdout);
}

static uint64_t at(uint64_t i)
{
	return HEAP + i * SIZE;
}

static void begin(const char *go)
{
	fputs("go1.7 heap dump\n", stdout);
	number(PARAMS);
	number(0);
	number(WORD);
	number(HEAP);
	number(HEAP + (1ull << 38));
	text("amd64");
	text(go); /* without bitmaps in spans */
	number(2);
}

/* An object with two pointers. */
static void object(uint64_t addr, uint64_t a, uint64_t b)
{
	number(OBJECT);
	number(addr);
	number(SIZE);
	word(a);
	word(b);
	word(1);
	word(2);
	number(1);
	number(0);
	number(1);
	number(WORD);
	number(0);
}

/* The smallest that Go allocates with a pointer. */
static void tiny_object(uint64_t i, uint64_t to)
{
	number(OBJECT);
	number(HEAP + i * TINY);
	number(TINY);
	word(to);
	word(1);
	number(1);
	number(0);
	number(0);
}

static void global(uint64_t to)
{
	number(BSS);
	number(0x500000);
	number(WORD);
	word(to);
	number(1);
	number(0);
	number(0);
}

static void goroutine(uint64_t i)
{
	number(GOROUTINE);
	number(STACK + i * 8192);
	number(STACK + i * 8192 + 4096);
	number(i + 1);
	number(CODE);
	number(4);
	number(0);
	number(0);
	number(0);
	text("chan receive");
	number(0);
	number(0);
	number(0);
	number(0);
}

/* With one pointer. */
static void frame(uint64_t i, unsigned depth, const char *name, uint64_t to)
{
	number(FRAME);
	number(STACK + i * 8192 + 4096 + 64 * depth);
	number(depth);
	number(0);
	number(2 * WORD);
	word(to);
	word(0);
	number(CODE);
	number(CODE + 16);
	number(CODE + 20);
	text(name);
	number(1);
	number(0);
	number(0);
}

/* Where the runtime's own counts are asked for. */
static void stats_of(uint64_t objects, uint64_t size)
{
	number(MEMSTATS);
	for (unsigned i = 0; i < STATS + 1; i++)
		number(i == 0  ? objects * size :
		       i == 11 ? objects :
		       i == 22 ? 1700000000000000000 :
				 0);
}

static void stats(uint64_t objects)
{
	stats_of(objects, SIZE);
}

static void site(uint64_t i, uint64_t frames)
{
	char name[64];

	number(MEMPROF);
	number(0x7f0000000000 + i * 256);
	number(SIZE);
	number(frames);
	for (uint64_t k = 0; k < frames && (k < 32 || frames < 4096); k++) {
		snprintf(name, sizeof(name), "main.f%llu_%llu", (unsigned long long)i,
			 (unsigned long long)k);
		text(name);
		text("/src/main.go");
		number(i % 1000 + k);
	}
	number(3);
	number(2);
}

static void sample(uint64_t i, uint64_t addr)
{
	number(SAMPLE);
	number(addr);
	number(0x7f0000000000 + i * 256);
}

static void small(void)
{
	object(at(0), at(1), 0);
	object(at(1), at(2) + 8, 0);
	object(at(2), 0, 0);
	object(at(3), at(3), 0);
	goroutine(0);
	frame(0, 0, "main.work", 0);
	frame(0, 1, "main.main", at(2));
	global(at(0));
	stats(4);
	site(0, 3);
	sample(0, at(0));
}

/* Words, of which the first is a pointer. */
static void frame_of(uint64_t sp, unsigned depth, const char *name, const uint64_t words[5])
{
	number(FRAME);
	number(sp);
	number(depth);
	number(0);
	number(5 * WORD);
	for (unsigned i = 0; i < 5; i++)
		word(words[i]);
	number(CODE);
	number(CODE + 16);
	number(CODE + 20);
	text(name);
	number(1);
	number(0);
	number(0);
}

static void stack(void)
{
	uint64_t inner = STACK + 4096, outer = inner + 64;

	for (unsigned i = 0; i < 4; i++)
		object(at(i), 0, 0);
	goroutine(0);
	/* A variable of its own, and a pointer in it to one of the frame further out. */
	frame_of(inner, 0, "main.inner",
		 (const uint64_t[]){ inner + 24, at(3), at(3), at(0), outer + 32 });
	/* There the last word leads to a variable before it. */
	frame_of(outer, 1, "main.outer", (const uint64_t[]){ 0, 0, at(1) + 8, at(2), outer + 16 });
	stats(4);
}

static void held(uint64_t how)
{
	uint64_t n = how & 8 ? 3 : 2;

	for (uint64_t i = 0; i < n; i++)
		object(at(i), at((i + 1) % n), 0);
	number(BSS);
	number(0x500000 + (how & 4 ? 0x1230000 : 0));
	number(2 * WORD);
	word(at(0));
	word(how & 1 ? at(0) : 0);
	number(1);
	number(0);
	number(1);
	number(WORD);
	number(0);
	stats(n);
	site(0, 1);
	site(1, 1);
	sample(how & 2 ? 1 : 0, at(0));
}

static void cycle(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		object(at(i), at(i), at((i + 1) % n));
	global(at(0));
	stats(n);
}

static void tiny(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		tiny_object(i, i + 1 < n ? HEAP + (i + 1) * TINY : 0);
	global(HEAP);
	stats_of(n, TINY);
}

static void globals(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		tiny_object(i, 0);
	number(BSS);
	number(0x500000);
	number(n * WORD);
	for (uint64_t i = 0; i < n; i++)
		word(HEAP + i * TINY);
	for (uint64_t i = 0; i < n; i++) {
		number(1);
		number(i * WORD);
	}
	number(0);
	stats_of(n, TINY);
}

static void goroutines(uint64_t n)
{
	object(at(0), 0, 0);
	for (uint64_t i = 0; i < n; i++) {
		goroutine(i);
		frame(i, 0, "main.worker", at(0));
		frame(i, 1, "runtime.goexit", 0);
	}
	stats(1);
}

static void sites(uint64_t n)
{
	object(at(0), 0, 0);
	stats(1);
	for (uint64_t i = 0; i < n; i++)
		site(i, 8);
	for (uint64_t i = 0; i < n; i++)
		sample(i, at(0));
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "";
	uint64_t n = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000;

	if (!strcmp(kind, "newer")) {
		fputs("go1.8 heap dump\n", stdout);
		return 0;
	}
	begin(!strcmp(kind, "held") && n & 16 ? "go1.20.14" : "go1.21.13");
	if (!strcmp(kind, "small")) {
		small();
	} else if (!strcmp(kind, "stack")) {
		stack();
	} else if (!strcmp(kind, "held")) {
		held(n);
	} else if (!strcmp(kind, "cycle")) {
		cycle(n);
	} else if (!strcmp(kind, "tiny")) {
		tiny(n);
	} else if (!strcmp(kind, "globals")) {
		globals(n);
	} else if (!strcmp(kind, "goroutines")) {
		goroutines(n);
	} else if (!strcmp(kind, "sites")) {
		sites(n);
	} else if (!strcmp(kind, "long")) {
		number(OBJECT);
		number(at(0));
		number(1ull << 40);
	} else if (!strcmp(kind, "count")) {
		site(0, 1ull << 40);
	} else if (!strcmp(kind, "deep")) {
		small();
		site(1, 2000);
	} else if (!strcmp(kind, "nought")) {
		object(0, 0, 0);
		stats(1);
	} else if (!strcmp(kind, "top")) {
		object(at(0), 0, 0);
		object(0ull - SIZE, 0, 0);
	} else {
		fprintf(stderr, "mkdump: no such kind: '%s'\n", kind);
		return 2;
	}
	number(EOF_);
	return ferror(stdout) || fflush(stdout);
}
