/* user/output/perfetto.c - packs packets, and numbers names. */
#include "output/perfetto.h"

#include <string.h>
#include <zlib.h>

#include "base/strtab.h"
#include "base/vec.h"
#include "perfetto.pb-c.h"
#include "profile/utf8.h"

typedef Goprof__Perfetto__Trace pb_trace;
typedef Goprof__Perfetto__TracePacket pb_packet;
typedef Goprof__Perfetto__TrackEvent pb_event;
typedef Goprof__Perfetto__TrackDescriptor pb_track;
typedef Goprof__Perfetto__CounterDescriptor pb_counter;
typedef Goprof__Perfetto__DebugAnnotation pb_note;
typedef Goprof__Perfetto__InternedData pb_interned_data;
typedef Goprof__Perfetto__Interned pb_interned;
typedef Goprof__Perfetto__ClockSnapshot pb_clocks;
typedef Goprof__Perfetto__Clock pb_clock;

enum { SEQUENCE = 1, STATE_CLEARED = 1, STATE_NEEDED = 2 };
enum { UNIT_COUNT = 2, UNIT_BYTES = 3, BY_RANK = 3 };
enum { CLOCK_REAL = 1, CLOCK_MONO = 3, CLOCK_TRACE = 6 };

/* Each kind of name has numbers of its own. */
enum kind { CATEGORIES, NAMES, NOTE_NAMES, NOTE_TEXTS, KINDS };

/* Of one packet: a name and a category, and of each note a name and a text. */
enum { FRESH_MAX = PERFETTO_NOTES + 1 };

struct names {
	struct strtab *known;
	VEC(uint64_t) numbers; /* by the ids in known; 0: not told */
	uint64_t last;	       /* the highest that was ever used */
	/* What the packet that is being made tells for the first time. */
	pb_interned fresh[FRESH_MAX], *ptrs[FRESH_MAX];
	char *text[FRESH_MAX]; /* owned */
	size_t nfresh;
};

struct block {
	uint8_t *at; /* owned */
	size_t n, cap;
};

/* As much is compressed at a time; Perfetto wants it to be less than 512 kB. */
enum { BLOCK_BYTES = 128 << 10 };

struct perfetto {
	FILE *f; /* borrowed */
	struct names names[KINDS];
	VEC(uint64_t) keyed; /* numbers of texts by the caller's keys; 0: not told, */
	uint64_t forgotten;  /* nor are those up to this one, any more */
	bool cleared;	     /* the next packet tells that names are forgotten */
	struct block buf;    /* packets that were not written yet */
	struct block packed; /* scratch: the same, compressed */
};

static int no_memory(struct err *e)
{
	return err_set(e, -ENOMEM, "no memory to write the Perfetto trace");
}

static int fresh_tables(struct perfetto *p, struct err *e)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < KINDS; i++) {
		struct names *n = &p->names[i];

		strtab_free(n->known);
		n->numbers.n = 0;
		n->known = NULL;
		ret = strtab_new(&n->known, e);
	}
	p->forgotten = p->names[NOTE_TEXTS].last;
	p->cleared = true;
	return ret;
}

int perfetto_new(FILE *f, struct perfetto **out, struct err *e)
{
	CLEANUP(perfetto_freep) struct perfetto *p = calloc(1, sizeof(*p));
	int ret;

	if (!p)
		return no_memory(e);
	p->f = f;
	ret = fresh_tables(p, e);
	if (!ret)
		*out = TAKE(p);
	return ret;
}

static void drop_fresh(struct perfetto *p)
{
	for (size_t i = 0; i < KINDS; i++) {
		while (p->names[i].nfresh)
			free(p->names[i].text[--p->names[i].nfresh]);
	}
}

void perfetto_free(struct perfetto *p)
{
	if (!p)
		return;
	drop_fresh(p);
	for (size_t i = 0; i < KINDS; i++) {
		strtab_free(p->names[i].known);
		vec_fini(&p->names[i].numbers);
	}
	vec_fini(&p->keyed);
	free(p->buf.at);
	free(p->packed.at);
	free(p);
}

size_t perfetto_names(const struct perfetto *p)
{
	size_t n = 0;

	for (size_t i = 0; i < KINDS; i++)
		n += strtab_count(p->names[i].known);
	return n;
}

int perfetto_forget(struct perfetto *p, struct err *e)
{
	return fresh_tables(p, e);
}

/* ---- packets ---- */

/* Room for @n more bytes. */
static bool room(struct block *b, size_t n)
{
	uint8_t *at;

	if (n <= b->cap - b->n)
		return true;
	at = realloc(b->at, (b->n + n) * 2);
	if (!at)
		return false;
	b->at = at;
	b->cap = (b->n + n) * 2;
	return true;
}

static int write_packet(struct perfetto *p, const pb_packet *packet, struct err *e)
{
	pb_trace one = GOPROF__PERFETTO__TRACE__INIT;
	CLEANUP(freep) uint8_t *out = NULL;
	pb_packet *list = (pb_packet *)packet;
	size_t n;

	one.n_packet = 1;
	one.packet = &list;
	n = protobuf_c_message_get_packed_size(&one.base);
	out = malloc(n);
	if (!out)
		return no_memory(e);
	protobuf_c_message_pack(&one.base, out);
	return fwrite(out, 1, n, p->f) == n ? 0 : err_sys(e, "writing");
}

/* Speed matters more than size: what is packed is so much alike that it shrinks to a tenth anyway. */
static int flush(struct perfetto *p, struct err *e)
{
	pb_packet packet = GOPROF__PERFETTO__TRACE_PACKET__INIT;
	uLongf n = compressBound(p->buf.n);

	if (!p->buf.n)
		return 0;
	if (!room(&p->packed, n))
		return no_memory(e);
	if (compress2(p->packed.at, &n, p->buf.at, p->buf.n, Z_BEST_SPEED) != Z_OK)
		return no_memory(e);
	p->buf.n = 0;
	packet.has_compressed_packets = true;
	packet.compressed_packets = (ProtobufCBinaryData){ n, p->packed.at };
	return write_packet(p, &packet, e);
}

int perfetto_end(struct perfetto *p, struct err *e)
{
	return flush(p, e);
}

/* A trace is a row of packets, and a row of traces of one packet each is the same bytes. */
static int put(struct perfetto *p, pb_packet *packet, struct err *e)
{
	pb_trace one = GOPROF__PERFETTO__TRACE__INIT;
	size_t n;

	packet->has_trusted_packet_sequence_id = true;
	packet->trusted_packet_sequence_id = SEQUENCE;
	packet->has_sequence_flags = true;
	packet->sequence_flags = p->cleared ? STATE_CLEARED : STATE_NEEDED;
	p->cleared = false;
	one.n_packet = 1;
	one.packet = &packet;
	n = protobuf_c_message_get_packed_size(&one.base);
	if (!room(&p->buf, n))
		return no_memory(e);
	p->buf.n += protobuf_c_message_pack(&one.base, p->buf.at + p->buf.n);
	return p->buf.n < BLOCK_BYTES ? 0 : flush(p, e);
}

static bool bytes_of(struct perfetto_text text, ProtobufCBinaryData *out, char **copy)
{
	*copy = malloc(text.len * 3 + 1);
	if (!*copy)
		return false;
	out->len = utf8_fix(text.at, text.len, *copy);
	out->data = (uint8_t *)*copy;
	return true;
}

static struct perfetto_text text_of(const char *s)
{
	return (struct perfetto_text){ s, strlen(s) };
}

/* Tells it in the packet that is being made. 0: no memory. */
static uint64_t tell(struct names *n, struct perfetto_text text)
{
	pb_interned *to = &n->fresh[n->nfresh];

	goprof__perfetto__interned__init(to);
	if (!bytes_of(text, &to->text, &n->text[n->nfresh]))
		return 0;
	to->has_iid = to->has_text = true;
	to->iid = ++n->last;
	n->ptrs[n->nfresh++] = to;
	return to->iid;
}

/* A number that is in a table, and told when it is not. False: no memory. */
static bool told(struct names *n, uint64_t *number, struct perfetto_text text, uint64_t *iid)
{
	if (!*number)
		*number = tell(n, text);
	*iid = *number;
	return *iid != 0;
}

/* The number of a name; "" has none, which is 0. False: no memory. */
static bool number(struct perfetto *p, enum kind kind, struct perfetto_text text, uint64_t *iid)
{
	struct names *n = &p->names[kind];
	uint32_t id = strtab_put(n->known, text.at, text.len);

	*iid = 0;
	if (!id || id == UINT32_MAX)
		return !id;
	while (n->numbers.n <= id)
		if (!vec_add(&n->numbers, SIZE_MAX))
			return false;
	return told(n, &n->numbers.at[id], text, iid);
}

/* A slice has a name, and a note a value, also where a program gave "", or a damaged trace does not tell it. */
static struct perfetto_text some(struct perfetto_text text)
{
	return text.len ? text : text_of("(none)");
}

static bool keyed(struct perfetto *p, uint32_t key, struct perfetto_text text, uint64_t *iid)
{
	while (p->keyed.n <= key)
		if (!vec_add(&p->keyed, SIZE_MAX))
			return false;
	if (p->keyed.at[key] <= p->forgotten)
		p->keyed.at[key] = 0;
	return told(&p->names[NOTE_TEXTS], &p->keyed.at[key], text, iid);
}

bool perfetto_knows(const struct perfetto *p, uint32_t key)
{
	return key < p->keyed.n && p->keyed.at[key] > p->forgotten;
}

static void tell_fresh(struct perfetto *p, pb_interned_data *data, pb_packet *packet)
{
	data->n_event_categories = p->names[CATEGORIES].nfresh;
	data->event_categories = p->names[CATEGORIES].ptrs;
	data->n_event_names = p->names[NAMES].nfresh;
	data->event_names = p->names[NAMES].ptrs;
	data->n_debug_annotation_names = p->names[NOTE_NAMES].nfresh;
	data->debug_annotation_names = p->names[NOTE_NAMES].ptrs;
	data->n_debug_annotation_string_values = p->names[NOTE_TEXTS].nfresh;
	data->debug_annotation_string_values = p->names[NOTE_TEXTS].ptrs;
	for (size_t i = 0; i < KINDS; i++)
		if (p->names[i].nfresh)
			packet->interned_data = data;
}

/* ---- what packets tell ---- */

int perfetto_track(struct perfetto *p, const struct perfetto_track *t, struct err *e)
{
	CLEANUP(freep) char *name = NULL;
	pb_packet packet = GOPROF__PERFETTO__TRACE_PACKET__INIT;
	pb_track track = GOPROF__PERFETTO__TRACK_DESCRIPTOR__INIT;
	pb_counter counter = GOPROF__PERFETTO__COUNTER_DESCRIPTOR__INIT;

	if (!bytes_of(t->name, &track.name, &name))
		return no_memory(e);
	track.has_uuid = track.has_name = track.has_sibling_order_rank = true;
	track.uuid = t->id;
	track.sibling_order_rank = t->rank;
	track.has_parent_uuid = t->parent != 0;
	track.parent_uuid = t->parent;
	if (t->counter != PERFETTO_NO_COUNTER) {
		counter.has_unit = true;
		counter.unit = t->counter == PERFETTO_BYTES ? UNIT_BYTES : UNIT_COUNT;
		track.counter = &counter;
	} else {
		track.has_child_ordering = true;
		track.child_ordering = BY_RANK;
	}
	packet.track_descriptor = &track;
	return put(p, &packet, e);
}

static bool put_notes(struct perfetto *p, const struct perfetto_event *ev, pb_note *notes,
		      pb_note **ptrs, pb_event *to)
{
	bool ok = true;

	for (size_t i = 0; ok && i < ev->nnotes; i++) {
		const struct perfetto_note *from = &ev->notes[i];
		pb_note *n = &notes[i];

		goprof__perfetto__debug_annotation__init(n);
		ok = number(p, NOTE_NAMES, text_of(from->name), &n->name_iid);
		n->has_name_iid = true;
		if (ok && from->text.at)
			ok = from->key ?
				     keyed(p, from->key, from->text, &n->string_value_iid) :
				     number(p, NOTE_TEXTS, some(from->text), &n->string_value_iid);
		n->has_string_value_iid = n->string_value_iid != 0;
		n->has_int_value = !from->text.at;
		n->int_value = from->number;
		ptrs[i] = n;
	}
	to->n_debug_annotations = ev->nnotes;
	to->debug_annotations = ptrs;
	return ok;
}

static void put_flows(const struct perfetto_event *ev, pb_event *to)
{
	to->n_flow_ids = ev->flow_out != 0;
	to->flow_ids = (uint64_t *)&ev->flow_out;
	to->n_terminating_flow_ids = ev->flow_in != 0;
	to->terminating_flow_ids = (uint64_t *)&ev->flow_in;
}

int perfetto_event(struct perfetto *p, const struct perfetto_event *ev, struct err *e)
{
	pb_packet packet = GOPROF__PERFETTO__TRACE_PACKET__INIT;
	pb_event event = GOPROF__PERFETTO__TRACK_EVENT__INIT;
	pb_interned_data data = GOPROF__PERFETTO__INTERNED_DATA__INIT;
	pb_note notes[PERFETTO_NOTES], *ptrs[PERFETTO_NOTES];
	bool named = ev->type == PERFETTO_BEGIN || ev->type == PERFETTO_INSTANT;
	uint64_t category = 0;
	bool ok = true;
	int ret;

	event.has_type = event.has_track_uuid = packet.has_timestamp = true;
	event.type = ev->type;
	event.track_uuid = ev->track;
	packet.timestamp = ev->time_ns;
	if (named)
		ok = number(p, NAMES, some(ev->name), &event.name_iid) &&
		     number(p, CATEGORIES, text_of(ev->category), &category) &&
		     put_notes(p, ev, notes, ptrs, &event);
	event.has_name_iid = event.name_iid != 0;
	event.n_category_iids = category != 0;
	event.category_iids = &category;
	event.has_counter_value = ev->type == PERFETTO_COUNTER;
	event.counter_value = ev->value;
	put_flows(ev, &event);
	packet.track_event = &event;
	tell_fresh(p, &data, &packet);
	ret = ok ? put(p, &packet, e) : no_memory(e);
	drop_fresh(p);
	return ret;
}

int perfetto_clock(struct perfetto *p, uint64_t time_ns, uint64_t mono_ns, uint64_t unix_ns,
		   struct err *e)
{
	pb_packet packet = GOPROF__PERFETTO__TRACE_PACKET__INIT;
	pb_clocks clocks = GOPROF__PERFETTO__CLOCK_SNAPSHOT__INIT;
	pb_clock each[] = { GOPROF__PERFETTO__CLOCK__INIT, GOPROF__PERFETTO__CLOCK__INIT,
			    GOPROF__PERFETTO__CLOCK__INIT };
	pb_clock *ptrs[] = { &each[0], &each[1], &each[2] };
	const uint32_t ids[] = { CLOCK_TRACE, CLOCK_MONO, CLOCK_REAL };
	const uint64_t times[] = { time_ns, mono_ns, unix_ns };

	for (size_t i = 0; i < ARRAY_LEN(each); i++) {
		each[i].has_clock_id = each[i].has_timestamp = true;
		each[i].clock_id = ids[i];
		each[i].timestamp = times[i];
	}
	clocks.n_clocks = ARRAY_LEN(each);
	clocks.clocks = ptrs;
	packet.clock_snapshot = &clocks;
	return put(p, &packet, e);
}
