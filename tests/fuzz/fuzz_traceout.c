/*
 * tests/fuzz/fuzz_traceout.c - the bytes are an execution trace: whatever it is like, its summary adds
 * up, its events can be printed, and its Perfetto trace is right. The length decides from when on.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "base/map.h"
#include "cli/trace/trace_events.h"
#include "cli/trace/trace_to_perfetto.h"
#include "ingest/exectrace/ticks.h"
#include "ingest/exectrace/summary/trace_summary.h"
#include "output/perfetto.h"
#include "perfetto.pb-c.h"

typedef Goprof__Perfetto__Trace pb_trace;
typedef Goprof__Perfetto__TracePacket pb_packet;
typedef Goprof__Perfetto__TrackEvent pb_event;
typedef Goprof__Perfetto__Interned pb_interned;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- the Perfetto trace ---- */

struct importer {
	bool begun;
	struct map tracks, depth, names, flows;
};

static bool has(const struct map *m, uint64_t key)
{
	uint64_t v;

	return map_get(m, key, &v);
}

static void take_track(struct importer *im, const Goprof__Perfetto__TrackDescriptor *t)
{
	BUG_ON(!t->uuid || !t->has_name);
	BUG_ON(t->has_parent_uuid && !has(&im->tracks, t->parent_uuid));
	BUG_ON(!map_put(&im->tracks, t->uuid, t->counter != NULL));
}

static void take_event(struct importer *im, const pb_event *ev)
{
	uint64_t counter, depth = 0;

	BUG_ON(!map_get(&im->tracks, ev->track_uuid, &counter));
	BUG_ON(counter != (ev->type == PERFETTO_COUNTER));
	BUG_ON(ev->has_name_iid && !has(&im->names, ev->name_iid));
	(void)map_get(&im->depth, ev->track_uuid, &depth);
	BUG_ON(ev->type == PERFETTO_END && !depth);
	if (ev->type == PERFETTO_BEGIN || ev->type == PERFETTO_END)
		BUG_ON(!map_put(&im->depth, ev->track_uuid,
				ev->type == PERFETTO_BEGIN ? depth + 1 : depth - 1));
	for (size_t i = 0; i < ev->n_flow_ids; i++)
		BUG_ON(has(&im->flows, ev->flow_ids[i]) ||
		       !map_put(&im->flows, ev->flow_ids[i], 0));
	for (size_t i = 0; i < ev->n_terminating_flow_ids; i++) {
		BUG_ON(!has(&im->flows, ev->terminating_flow_ids[i]));
		map_del(&im->flows, ev->terminating_flow_ids[i]);
	}
}

static void take_packet(struct importer *im, const pb_packet *p)
{
	const Goprof__Perfetto__InternedData *data = p->interned_data;

	BUG_ON(!im->begun && p->sequence_flags != 1);
	im->begun = true;
	if (p->sequence_flags == 1)
		map_fini(&im->names);
	for (size_t i = 0; data && i < data->n_event_names; i++)
		BUG_ON(!map_put(&im->names, data->event_names[i]->iid, 0));
	if (p->track_descriptor)
		take_track(im, p->track_descriptor);
	if (p->track_event) {
		BUG_ON(!p->has_timestamp || p->timestamp > INT64_MAX);
		take_event(im, p->track_event);
	}
}

static void import_block(struct importer *im, const ProtobufCBinaryData *block)
{
	enum { ROOM = 8 << 20 };
	CLEANUP(freep) uint8_t *bytes = malloc(ROOM);
	uLongf n = ROOM;
	pb_trace *t;

	BUG_ON(!bytes || uncompress(bytes, &n, block->data, block->len) != Z_OK);
	t = goprof__perfetto__trace__unpack(NULL, n, bytes);
	BUG_ON(!t);
	for (size_t i = 0; i < t->n_packet; i++)
		take_packet(im, t->packet[i]);
	goprof__perfetto__trace__free_unpacked(t, NULL);
}

static void import(const char *bytes, size_t n)
{
	struct importer im = {};
	pb_trace *t = goprof__perfetto__trace__unpack(NULL, n, (const uint8_t *)bytes);

	BUG_ON(!t);
	for (size_t i = 0; i < t->n_packet; i++)
		import_block(&im, &t->packet[i]->compressed_packets);
	goprof__perfetto__trace__free_unpacked(t, NULL);
	map_fini(&im.tracks);
	map_fini(&im.depth);
	map_fini(&im.names);
	map_fini(&im.flows);
}

/* ---- the summary ---- */

static void adds_up(const struct trace_summary *s)
{
	uint64_t goroutines = 0;

	for (size_t i = 0; i < s->groups.n; i++) {
		const struct trace_group *g = &s->groups.at[i];
		int64_t sum = 0;

		BUG_ON(g->ended > g->goroutines || g->created > g->goroutines);
		goroutines += g->goroutines;
		for (size_t k = 0; k < g->spent.n; k++) {
			BUG_ON(g->spent.at[k].ns < 0);
			sum = ticks_add(sum, g->spent.at[k].ns);
		}
		BUG_ON(sum != g->total_ns);
	}
	BUG_ON(goroutines != s->goroutines);
	for (size_t i = 0; i < MMU_WINDOWS; i++) {
		struct mmu_window w = mmu_window(s->share.mmu, i);

		BUG_ON(w.known && (w.min < 0 || w.min > 1.000001));
	}
}

/* ---- all of it ---- */

struct outputs {
	struct trace_summary *summary;
	struct trace_to_perfetto *perfetto;
	bool cuts;
	FILE *events, *trace, *cut;
};

static void outputs_fini(struct outputs *o)
{
	trace_summary_freep(&o->summary);
	trace_to_perfetto_freep(&o->perfetto);
	fclose(o->cut);
	fclose(o->events);
	fclose(o->trace);
}

static int64_t give_events(struct outputs *o, struct exectrace *t, uint64_t skip)
{
	struct trace_event ev;
	struct err e = { "" };
	int64_t start = 0, last = 0;

	for (uint64_t n = 0; exectrace_next(t, &ev, &e) > 0; n++) {
		bool before = n < skip;

		start = n ? start : ev.time_ns;
		trace_events_put(o->events, t, &ev, start);
		if (before)
			ev.time_ns = start;
		last = ev.time_ns;
		BUG_ON(trace_summary_event(o->summary, t, &ev, before, &e));
		BUG_ON(trace_to_perfetto_event(o->perfetto, t, &ev, start, before, &e));
	}
	return last;
}

/* Whatever was cut from it is a trace of the same version, and its first event there. */
static void reads_again(const char *bytes, size_t n, unsigned version)
{
	CLEANUP(exectrace_freep) struct exectrace *t = NULL;
	int fd CLEANUP(closep) = memfd_create("fuzz_cut", MFD_CLOEXEC);
	struct trace_event ev;
	struct err e = { "" };

	if (fd < 0 || write(fd, bytes, n) != (ssize_t)n)
		return;
	BUG_ON(exectrace_open(fd, &t, &e) || exectrace_version(t) != version);
	BUG_ON(exectrace_next(t, &ev, &e) <= 0 || ev.kind != TRACE_SYNC);
	while (exectrace_next(t, &ev, &e) > 0)
		;
}

/* Small traces of fuzzers have times of some ms. */
enum { CUT_NS = 100000 };

static int64_t cut_until(size_t size)
{
	return size % 3 ? (int64_t)(size % 5 + size % 7) * CUT_NS : INT64_MAX;
}

static void read_trace(int fd, size_t size)
{
	CLEANUP(exectrace_freep) struct exectrace *t = NULL;
	CLEANUP(freep) char *bytes = NULL;
	CLEANUP(freep) char *part = NULL;
	size_t nbytes = 0, npart = 0;
	int64_t from, to;
	struct outputs o = {};
	struct err e = { "" };
	int64_t last;

	if (exectrace_open(fd, &t, &e))
		return;
	o.events = fopen("/dev/null", "w");
	o.trace = open_memstream(&bytes, &nbytes);
	o.cut = open_memstream(&part, &npart);
	BUG_ON(!o.events || !o.trace || !o.cut);
	BUG_ON(trace_summary_new(&o.summary, &e));
	BUG_ON(trace_to_perfetto_new(o.trace, "fuzz", &o.perfetto, &e));
	o.cuts = !exectrace_cut(t, o.cut, (int64_t)size % 5 * CUT_NS, cut_until(size), &e);
	BUG_ON(!o.cuts && exectrace_version(t) >= 22);
	last = give_events(&o, t, size % 3 * size / 16);
	BUG_ON(trace_to_perfetto_end(o.perfetto, &e));
	BUG_ON(trace_summary_end(o.summary, last, &e));
	adds_up(o.summary);
	fflush(o.trace);
	import(bytes, nbytes);
	if (o.cuts && !exectrace_cut_finish(t, &from, &to, &e)) {
		BUG_ON(from > to || fflush(o.cut));
		reads_again(part, npart, exectrace_version(t));
	}
	outputs_fini(&o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd CLEANUP(closep) = memfd_create("fuzz_traceout", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return 0;
	read_trace(fd, size);
	return 0;
}
