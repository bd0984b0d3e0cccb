/*
 * tests/fuzz/fuzz_labels.c - goroutine labels on their whole way. First byte 0: the rest is a
 * record as the ring hands it over. First byte 1 or 2: the rest is the target's memory, which
 * begins with labels in the shape of Go 1.24 or of Go 1.23; the copy that is made must be a good
 * record.
 */
#define GPB_HOST
#include "probe/stacks/labels.h"
#include "go/labels.bpf.h"

enum { HEAP = 0x10000 };

static void as_record(const void *rec, size_t len, bool good)
{
	CLEANUP(labelsets_fini) struct labelsets l;
	CLEANUP(freep) struct gpb_rec_labels *exact = malloc(len < 24 ? 24 : len);
	struct prof_label out[GPB_MAX_LABELS];
	struct err e = { "" };
	int ret;

	BUG_ON(!exact || labelsets_init(&l, &e));
	memcpy(exact, rec, len);
	ret = labelsets_add(&l, exact, len, &e);
	BUG_ON(ret && (good || ret != -EBADMSG || !e.msg[0]));
	if (ret)
		return;
	BUG_ON(labelsets_get(&l, exact->id, out) != (int)exact->n);
	for (uint32_t i = 0; i < exact->n; i++)
		BUG_ON(strlen(out[i].key) > GPB_LABEL_KEY || strlen(out[i].str) > GPB_LABEL_VALUE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct gpb_rec_labels rec;

	if (!size)
		return 0;
	if (data[0] == 0) {
		as_record(data + 1, size - 1, false);
		return 0;
	}
	host_reset();
	host_map(HEAP, (uint8_t *)data + 1, size - 1);
	memset(&rec, 0xee, sizeof(rec));
	rec.n = 0;
	if (data[0] & 1)
		labels_slice(&rec, HEAP);
	else
		labels_map(&rec, HEAP);
	BUG_ON(rec.n > GPB_MAX_LABELS);
	labels_hash(&rec);
	as_record(&rec, sizeof(rec), true);
	return 0;
}
