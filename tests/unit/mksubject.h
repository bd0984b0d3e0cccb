/*
 * tests/unit/mksubject.h - a subject whose only image is the program of mkgobin.h (Go 1.27), of
 * which no function is known. For a group of tests: open_subject() and close_subject() are its
 * set-up and its end.
 */
#ifndef TESTS_MKSUBJECT_H
#define TESTS_MKSUBJECT_H

#include "mkgobin.h"
#include "subject/subject.h"

static struct target subject_target = { .pid = 1 };
static struct subject subject = { .target = &subject_target };

static int open_subject(void **state)
{
	static struct mkgobin elf;
	struct mkopt o = { .minor = 27 };
	struct err e = {};

	(void)state;
	mkgobin(&elf, &o);
	assert_int_equal(gobin_open(mkgobin_fd(elf.b, elf.n), "hand.elf", NULL, 0, &subject.bin,
				    &e),
			 0);
	subject.images.at[0] = (struct image){ .bin = subject.bin };
	subject.images.n = 1;
	return 0;
}

static int close_subject(void **state)
{
	(void)state;
	gobin_free(subject.bin);
	return 0;
}

#endif
