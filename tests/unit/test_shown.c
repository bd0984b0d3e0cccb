/* tests/unit/test_shown.c - names of a foreign program, where people read them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/heapdump/dot.h"
#include "cli/tell.h"
#include "output/format.h"

/* What is written there, and how it is shown with '?' in place of what is not. */
static const struct {
	const char *name, *shown;
} names[] = {
	{ "main.f", "main.f" },
	{ "main.\xc3\xa9\xe4\xb8\x96\xf0\x9f\x94\xa5",
	  "main.\xc3\xa9\xe4\xb8\x96\xf0\x9f\x94\xa5" },
	{ "a\tb\x1b[2J\x7f", "a?b?[2J?" },
	/* C1: as a byte, which no UTF-8 has, and in UTF-8 */
	{ "a\x9b\x32J\xc2\x9b\x32J", "a?2J?2J" },
	{ "\xff\xfe", "??" },
	/* A sequence that is cut at the end, and one in the middle. */
	{ "a\xe4\xb8", "a??" },
	{ "\xe4\xb8z", "??z" },
	/* Overrides, isolates and marks of direction. */
	{ "a\xe2\x80\xae\x62\xe2\x80\xac", "a?b?" },
	{ "\xe2\x81\xa6x\xe2\x81\xa9\xd8\x9c\xe2\x80\x8f", "?x???" },
	{ "\xe2\x80\xa8", "?" },
	/* Their neighbours stay. */
	{ "\xe2\x80\x90\xe2\x81\xa5\xe2\x80\xaf\xc2\xa0",
	  "\xe2\x80\x90\xe2\x81\xa5\xe2\x80\xaf\xc2\xa0" },
};

static void on_a_terminal(void **state)
{
	char text[64];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(text, sizeof(text), "%s", names[i].name);
		tell_clean(text);
		assert_string_equal(text, names[i].shown);
	}
	(void)state;
}

static void in_text(void **state)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char *text = NULL;
		size_t n = 0;
		FILE *f = open_memstream(&text, &n);

		assert_non_null(f);
		output_clean(names[i].name, 0, f);
		fclose(f);
		for (char *p = text; *p; p++)
			if (*p == '_')
				*p = '?';
		assert_string_equal(text, names[i].shown);
		free(text);
	}
	(void)state;
}

static void in_graphs(void **state)
{
	char want[128];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char *text = NULL;
		size_t n = 0;
		FILE *f = open_memstream(&text, &n);

		assert_non_null(f);
		dot_node(f, 1, names[i].name, "");
		fclose(f);
		snprintf(want, sizeof(want), "\tn1 [label=\"%s\"];\n", names[i].shown);
		assert_string_equal(text, want);
		free(text);
	}
	(void)state;
}

/* A long label ends between two characters; its next line is there. */
static void long_label(void **state)
{
	char label[512], *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	assert_non_null(f);
	for (int i = 0; i < 100; i++)
		memcpy(label + 3 * i, "\xe4\xb8\x96", 3);
	memcpy(label + 300, "\nend", 5);
	dot_node(f, 1, label, "");
	fclose(f);
	memmove(text, strchr(text, '"') + 1, strlen(strchr(text, '"')));
	assert_int_equal(strcspn(text, "\\"), 159);
	assert_non_null(strstr(text, "\\lend\""));
	free(text);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(on_a_terminal),
		cmocka_unit_test(in_text),
		cmocka_unit_test(in_graphs),
		cmocka_unit_test(long_label),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
