/* tests/unit/test_perfetto.c - packets of a Perfetto trace, as protobuf-c reads them. */
#include "output/perfetto.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#include "perfetto.pb-c.h"

typedef Goprof__Perfetto__Trace pb_trace;
typedef Goprof__Perfetto__TracePacket pb_packet;
typedef Goprof__Perfetto__Interned pb_interned;

static struct err e;
static char *bytes;
static size_t nbytes;
static FILE *file;
static struct perfetto *p;
static pb_trace *trace;

static int begin(void **state)
{
	(void)state;
	file = open_memstream(&bytes, &nbytes);
	return perfetto_new(file, &p, &e);
}

static int end(void **state)
{
	(void)state;
	if (trace)
		goprof__perfetto__trace__free_unpacked(trace, NULL);
	trace = NULL;
	perfetto_free(p);
	fclose(file);
	free(bytes);
	return 0;
}

/* All packets: each of those in the file has compressed ones, which are appended to each other. */
static void read_back(void)
{
	static uint8_t all[4 << 20];
	pb_trace *outer;
	size_t n = 0;

	assert_int_equal(perfetto_end(p, &e), 0);
	fflush(file);
	outer = goprof__perfetto__trace__unpack(NULL, nbytes, (const uint8_t *)bytes);
	assert_non_null(outer);
	for (size_t i = 0; i < outer->n_packet; i++) {
		const ProtobufCBinaryData *c = &outer->packet[i]->compressed_packets;
		uLongf len = sizeof(all) - n;

		assert_true(outer->packet[i]->has_compressed_packets);
		assert_true(c->len < 512 << 10);
		assert_int_equal(uncompress(all + n, &len, c->data, c->len), Z_OK);
		n += len;
	}
	goprof__perfetto__trace__free_unpacked(outer, NULL);
	trace = goprof__perfetto__trace__unpack(NULL, n, all);
	assert_non_null(trace);
}

static struct perfetto_text text(const char *s)
{
	return (struct perfetto_text){ s, strlen(s) };
}

static void track(uint64_t id, uint64_t parent, const char *name, enum perfetto_unit unit)
{
	const struct perfetto_track t = {
		.id = id, .parent = parent, .name = text(name), .counter = unit, .rank = 3
	};

	assert_int_equal(perfetto_track(p, &t, &e), 0);
}

static void event(enum perfetto_type type, uint64_t time, const char *name)
{
	const struct perfetto_event ev = {
		.type = type, .time_ns = time, .track = 5, .name = text(name), .category = "c"
	};

	assert_int_equal(perfetto_event(p, &ev, &e), 0);
}

static void is_text(const ProtobufCBinaryData *got, const char *want)
{
	assert_int_equal(got->len, strlen(want));
	assert_memory_equal(got->data, want, got->len);
}

static void tracks_are_a_tree(void **state)
{
	(void)state;
	track(1, 0, "root", PERFETTO_NO_COUNTER);
	track(5, 1, "heap", PERFETTO_BYTES);
	read_back();
	assert_int_equal(trace->n_packet, 2);
	assert_false(trace->packet[0]->track_descriptor->has_parent_uuid);
	assert_int_equal(trace->packet[1]->track_descriptor->parent_uuid, 1);
	assert_int_equal(trace->packet[1]->track_descriptor->uuid, 5);
	assert_int_equal(trace->packet[1]->track_descriptor->sibling_order_rank, 3);
	assert_null(trace->packet[0]->track_descriptor->counter);
	assert_int_equal(trace->packet[1]->track_descriptor->counter->unit, 3);
	is_text(&trace->packet[1]->track_descriptor->name, "heap");
}

/* A name is told once, in the first packet that has its number; after perfetto_forget() anew. */
static void names_are_told_once(void **state)
{
	uint64_t first;

	(void)state;
	event(PERFETTO_BEGIN, 1, "a");
	event(PERFETTO_END, 2, "");
	event(PERFETTO_BEGIN, 3, "a");
	assert_int_equal(perfetto_forget(p, &e), 0);
	event(PERFETTO_BEGIN, 4, "a");
	event(PERFETTO_INSTANT, 5, "b");
	read_back();
	assert_int_equal(trace->n_packet, 5);
	assert_int_equal(trace->packet[0]->sequence_flags, 1);
	assert_int_equal(trace->packet[1]->sequence_flags, 2);
	assert_int_equal(trace->packet[3]->sequence_flags, 1);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(trace->packet[i]->trusted_packet_sequence_id, 1);
	assert_int_equal(trace->packet[0]->interned_data->n_event_names, 1);
	first = trace->packet[0]->interned_data->event_names[0]->iid;
	assert_int_equal(trace->packet[0]->track_event->name_iid, first);
	assert_false(trace->packet[1]->track_event->has_name_iid);
	assert_null(trace->packet[2]->interned_data);
	assert_int_equal(trace->packet[2]->track_event->name_iid, first);
	assert_int_equal(trace->packet[3]->interned_data->n_event_names, 1);
	assert_true(trace->packet[3]->interned_data->event_names[0]->iid > first);
	assert_int_equal(trace->packet[4]->interned_data->n_event_categories, 0);
	assert_int_equal(trace->packet[4]->timestamp, 5);
}

static void notes_and_flows(void **state)
{
	struct perfetto_event ev = { .type = PERFETTO_BEGIN,
				     .time_ns = 1,
				     .track = 5,
				     .name = text("x"),
				     .category = "c",
				     .flow_out = 77,
				     .flow_in = 76,
				     .nnotes = 3,
				     .notes = {
					     { .name = "n", .number = -5 },
					     { .name = "t", .text = text("words") },
					     { .name = "k", .text = text("keyed"), .key = 9 } } };

	(void)state;
	assert_false(perfetto_knows(p, 9));
	assert_int_equal(perfetto_event(p, &ev, &e), 0);
	assert_true(perfetto_knows(p, 9));
	assert_false(perfetto_knows(p, 8));
	ev.notes[2].text = text("");
	assert_int_equal(perfetto_event(p, &ev, &e), 0);
	assert_int_equal(perfetto_forget(p, &e), 0);
	assert_false(perfetto_knows(p, 9));
	read_back();
	for (size_t i = 0; i < 2; i++) {
		const Goprof__Perfetto__TrackEvent *got = trace->packet[i]->track_event;

		assert_int_equal(got->n_flow_ids, 1);
		assert_int_equal(got->flow_ids[0], 77);
		assert_int_equal(got->terminating_flow_ids[0], 76);
		assert_int_equal(got->n_debug_annotations, 3);
		assert_int_equal(got->debug_annotations[0]->int_value, -5);
		assert_false(got->debug_annotations[0]->has_string_value_iid);
		assert_true(got->debug_annotations[1]->has_string_value_iid);
	}
	assert_null(trace->packet[1]->interned_data);
	assert_int_equal(trace->packet[0]->interned_data->n_debug_annotation_string_values, 2);
	is_text(&trace->packet[0]->interned_data->debug_annotation_string_values[1]->text, "keyed");
	assert_int_equal(trace->packet[1]->track_event->debug_annotations[2]->string_value_iid,
			 trace->packet[0]->interned_data->debug_annotation_string_values[1]->iid);
}

static void foreign_bytes_become_utf8(void **state)
{
	(void)state;
	event(PERFETTO_INSTANT, 1,
	      "a\xff"
	      "b");
	read_back();
	is_text(&trace->packet[0]->interned_data->event_names[0]->text, "a\xef\xbf\xbd"
									"b");
}

static void counters_and_clocks(void **state)
{
	const struct perfetto_event ev = {
		.type = PERFETTO_COUNTER, .time_ns = 9, .track = 5, .value = INT64_MAX
	};

	(void)state;
	assert_int_equal(perfetto_event(p, &ev, &e), 0);
	assert_int_equal(perfetto_clock(p, 10, 1000, 1700000000000000000, &e), 0);
	read_back();
	assert_int_equal(trace->packet[0]->track_event->counter_value, INT64_MAX);
	assert_false(trace->packet[0]->track_event->has_name_iid);
	assert_int_equal(trace->packet[1]->clock_snapshot->n_clocks, 3);
	assert_int_equal(trace->packet[1]->clock_snapshot->clocks[0]->clock_id, 6);
	assert_int_equal(trace->packet[1]->clock_snapshot->clocks[0]->timestamp, 10);
	assert_int_equal(trace->packet[1]->clock_snapshot->clocks[2]->timestamp,
			 1700000000000000000);
}

/* Many packets are many blocks, and all of them arrive in their order. */
static void long_traces_are_blocks(void **state)
{
	char name[32];

	(void)state;
	for (unsigned i = 0; i < 20000; i++) {
		snprintf(name, sizeof(name), "name %u", i);
		event(PERFETTO_INSTANT, i, name);
	}
	read_back();
	assert_int_equal(trace->n_packet, 20000);
	for (unsigned i = 0; i < 20000; i++)
		assert_int_equal(trace->packet[i]->timestamp, i);
}

static void a_full_disk_is_told(void **state)
{
	FILE *full = fopen("/dev/full", "w");
	struct perfetto *q = NULL;
	int ret = 0;

	(void)state;
	assert_non_null(full);
	assert_int_equal(perfetto_new(full, &q, &e), 0);
	for (unsigned i = 0; !ret && i < 100000; i++) {
		const struct perfetto_event ev = { .type = PERFETTO_END,
						   .time_ns = i * 7919ull * i,
						   .track = 5 };

		ret = perfetto_event(q, &ev, &e);
	}
	if (!ret)
		ret = perfetto_end(q, &e);
	assert_true(ret == -ENOSPC || fflush(full));
	perfetto_free(q);
	fclose(full);
}

#define each(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		each(tracks_are_a_tree),   each(names_are_told_once),
		each(notes_and_flows),	   each(foreign_bytes_become_utf8),
		each(counters_and_clocks), each(long_traces_are_blocks),
		each(a_full_disk_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
