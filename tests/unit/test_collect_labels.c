/* tests/unit/test_collect_labels.c - label records from the ring, honest and lying. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "probe/stacks/labels.h"

static struct gpb_rec_labels rec;

static void set_label(int i, const char *key, const char *value)
{
	rec.label[i].key_len = (uint16_t)strlen(key);
	rec.label[i].value_len = (uint16_t)strlen(value);
	memcpy(rec.label[i].key, key, strlen(key));
	memcpy(rec.label[i].value, value, strlen(value));
}

static size_t record_len(uint32_t n)
{
	return offsetof(struct gpb_rec_labels, label) + n * sizeof(struct gpb_label);
}

static void keeps_what_a_record_says(void **state)
{
	struct prof_label out[GPB_MAX_LABELS];
	struct labelsets l;
	struct err e = {};

	(void)state;
	assert_int_equal(labelsets_init(&l, &e), 0);
	memset(&rec, 0, sizeof(rec));
	rec.id = 7;
	rec.n = 2;
	set_label(0, "user", "x");
	set_label(1, "path", "");
	assert_int_equal(labelsets_add(&l, &rec, record_len(2), &e), 0);
	assert_int_equal(labelsets_get(&l, 7, out), 2);
	assert_string_equal(out[0].key, "user");
	assert_string_equal(out[0].str, "x");
	assert_string_equal(out[1].key, "path");
	assert_string_equal(out[1].str, "");
	assert_int_equal(labelsets_get(&l, 8, out), -ENOENT);
	labelsets_fini(&l);
}

static void refuses_what_does_not_add_up(void **state)
{
	struct labelsets l;
	struct err e = {};

	(void)state;
	assert_int_equal(labelsets_init(&l, &e), 0);
	memset(&rec, 0, sizeof(rec));
	rec.id = 1;
	rec.n = 2;
	assert_int_equal(labelsets_add(&l, &rec, record_len(1), &e), -EBADMSG);
	assert_int_equal(labelsets_add(&l, &rec, 3, &e), -EBADMSG);
	rec.n = GPB_MAX_LABELS + 1;
	assert_int_equal(labelsets_add(&l, &rec, sizeof(rec), &e), -EBADMSG);
	rec.n = 1;
	rec.label[0].key_len = GPB_LABEL_KEY + 1;
	assert_int_equal(labelsets_add(&l, &rec, record_len(1), &e), -EBADMSG);
	labelsets_fini(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_what_a_record_says),
		cmocka_unit_test(refuses_what_does_not_add_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
