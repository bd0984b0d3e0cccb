/* user/output/hprof/hprof.c - records, and segments of many records. */
#include "output/hprof/hprof.h"

#include <endian.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/cleanup.h"

enum {
	TAG_STRING = 0x01,
	TAG_LOAD_CLASS = 0x02,
	TAG_FRAME = 0x04,
	TAG_TRACE = 0x05,
	TAG_SEGMENT = 0x1c,
	TAG_END = 0x2c,
};

enum {
	SUB_ROOT_UNKNOWN = 0xff,
	SUB_ROOT_FRAME = 0x03,
	SUB_ROOT_STICKY = 0x05,
	SUB_ROOT_THREAD = 0x08,
	SUB_CLASS = 0x20,
	SUB_INSTANCE = 0x21,
	SUB_PRIMITIVES = 0x23,
};

/*
 * A segment tells its length in front, so it is put together here; no record may span two. One that
 * is larger than this gets a segment of its own, whose length is known.
 */
enum {
	SEGMENT_BYTES = HPROF_SEGMENT_BYTES,
	HEAD_BYTES = 1 + 2 * 4,
	ID_BYTES = 8,
	INSTANCE_BYTES = HPROF_INSTANCE_BYTES,
};

/* What all writers of one file share. */
struct file {
	FILE *f;
	atomic_int failed;
	/* Whose turn it is to write: */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint64_t section;
};

struct hprof {
	struct file *file;
	bool beside;  /* it is another one's, who opened it */
	bool heap;    /* records go into segments */
	uint8_t *buf; /* HEAD_BYTES + SEGMENT_BYTES: the segment that is being filled */
	size_t n;
	uint64_t large; /* bytes that are still to come of a record with its own segment */
	uint64_t section;
	bool in_section, has_turn;
};

/* ---- bytes ---- */

/* All sections before this one have been written. */
static void await_turn(struct hprof *h)
{
	struct file *file = h->file;

	if (!h->in_section || h->has_turn)
		return;
	pthread_mutex_lock(&file->lock);
	while (file->section != h->section)
		pthread_cond_wait(&file->changed, &file->lock);
	pthread_mutex_unlock(&file->lock);
	h->has_turn = true;
}

static void out(struct hprof *h, const void *p, size_t n)
{
	struct file *file = h->file;

	await_turn(h);
	if (!file->failed && fwrite(p, 1, n, file->f) != n)
		file->failed = errno ? errno : EIO;
}

static void put_head(uint8_t to[HEAD_BYTES], uint8_t tag, uint64_t len)
{
	uint32_t n = htobe32((uint32_t)len);

	BUG_ON(len > UINT32_MAX);
	to[0] = tag;
	memset(to + 1, 0, 4); /* microseconds since the time in the header */
	memcpy(to + 5, &n, 4);
}

static void head(struct hprof *h, uint8_t tag, uint64_t len)
{
	uint8_t bytes[HEAD_BYTES];

	put_head(bytes, tag, len);
	out(h, bytes, sizeof(bytes));
}

/* Where the next record goes. */
static uint8_t *end_of(struct hprof *h)
{
	return h->buf + HEAD_BYTES + h->n;
}

static void flush(struct hprof *h)
{
	if (!h->n)
		return;
	put_head(h->buf, TAG_SEGMENT, h->n);
	out(h, h->buf, HEAD_BYTES + h->n);
	h->n = 0;
}

/* Room for a record of @n bytes. */
static void begin(struct hprof *h, uint64_t n)
{
	if (!h->heap)
		return;
	BUG_ON(h->large);
	if (n > SEGMENT_BYTES - h->n)
		flush(h);
	if (n > SEGMENT_BYTES) {
		head(h, TAG_SEGMENT, n);
		h->large = n;
	}
}

static void put(struct hprof *h, const void *p, size_t n)
{
	if (!h->heap) {
		out(h, p, n);
	} else if (h->large) {
		BUG_ON(n > h->large);
		out(h, p, n);
		h->large -= n;
	} else {
		BUG_ON(n > SEGMENT_BYTES - h->n);
		memcpy(end_of(h), p, n);
		h->n += n;
	}
}

static void u1(struct hprof *h, uint8_t v)
{
	put(h, &v, 1);
}

static void u2(struct hprof *h, uint16_t v)
{
	v = htobe16(v);
	put(h, &v, 2);
}

static void u4(struct hprof *h, uint32_t v)
{
	v = htobe32(v);
	put(h, &v, 4);
}

static void u8(struct hprof *h, uint64_t v)
{
	v = htobe64(v);
	put(h, &v, 8);
}

/* ---- before the heap ---- */

static int begin_file(struct hprof *h, FILE *f, struct err *e)
{
	h->file = calloc(1, sizeof(*h->file));
	h->buf = malloc(HEAD_BYTES + SEGMENT_BYTES);
	if (!h->file || !h->buf)
		return err_set(e, -ENOMEM, "no memory");
	h->file->f = f;
	pthread_mutex_init(&h->file->lock, NULL);
	pthread_cond_init(&h->file->changed, NULL);
	return 0;
}

int hprof_new(FILE *f, uint64_t time_ms, struct hprof **to, struct err *e)
{
	static const char magic[] = "JAVA PROFILE 1.0.2";
	CLEANUP(hprof_freep) struct hprof *h = calloc(1, sizeof(*h));
	int ret = h ? begin_file(h, f, e) : err_set(e, -ENOMEM, "no memory");

	if (ret)
		return ret;
	put(h, magic, sizeof(magic));
	u4(h, ID_BYTES);
	u8(h, time_ms);
	*to = TAKE(h);
	return 0;
}

void hprof_free(struct hprof *h)
{
	if (!h->beside && h->file) {
		pthread_mutex_destroy(&h->file->lock);
		pthread_cond_destroy(&h->file->changed);
		free(h->file);
	}
	free(h->buf);
	free(h);
}

void hprof_string(struct hprof *h, uint64_t id, const char *text, size_t len)
{
	head(h, TAG_STRING, ID_BYTES + len);
	u8(h, id);
	put(h, text, len);
}

void hprof_load_class(struct hprof *h, uint32_t serial, uint64_t id, uint64_t name)
{
	head(h, TAG_LOAD_CLASS, 2 * 4 + 2 * ID_BYTES);
	u4(h, serial);
	u8(h, id);
	u4(h, 0);
	u8(h, name);
}

void hprof_frame(struct hprof *h, const struct hprof_frame *f)
{
	head(h, TAG_FRAME, 4 * ID_BYTES + 2 * 4);
	u8(h, f->id);
	u8(h, f->method);
	u8(h, f->signature);
	u8(h, f->file);
	u4(h, f->class_serial);
	u4(h, (uint32_t)f->line);
}

void hprof_trace(struct hprof *h, uint32_t serial, uint32_t thread, const uint64_t *frames,
		 uint32_t n)
{
	head(h, TAG_TRACE, 3 * 4 + (uint64_t)n * ID_BYTES);
	u4(h, serial);
	u4(h, thread);
	u4(h, n);
	for (uint32_t i = 0; i < n; i++)
		u8(h, frames[i]);
}

/* ---- the heap ---- */

void hprof_heap(struct hprof *h)
{
	h->heap = true;
}

static uint64_t bytes_of(enum hprof_type t)
{
	switch (t) {
	case HPROF_BOOLEAN:
	case HPROF_BYTE:
		return 1;
	case HPROF_CHAR:
	case HPROF_SHORT:
		return 2;
	case HPROF_FLOAT:
	case HPROF_INT:
		return 4;
	default:
		return 8;
	}
}

void hprof_class(struct hprof *h, const struct hprof_class *c)
{
	uint64_t statics = c->nstatics * (2ull * ID_BYTES + 1);

	BUG_ON(c->nstatics > HPROF_FIELDS_MAX || c->nfields > HPROF_FIELDS_MAX);
	begin(h, 1 + 7 * ID_BYTES + 2 * 4 + 3 * 2 + statics + c->nfields * (ID_BYTES + 1));
	u1(h, SUB_CLASS);
	u8(h, c->id);
	u4(h, 0);
	u8(h, c->super);
	for (int i = 0; i < 5; i++) /* loader, signers, protection domain, and two reserved */
		u8(h, 0);
	u4(h, c->size);
	u2(h, 0); /* constants */
	u2(h, (uint16_t)c->nstatics);
	for (size_t i = 0; i < c->nstatics; i++) {
		u8(h, c->statics[i].name);
		u1(h, HPROF_OBJECT);
		u8(h, c->statics[i].object);
	}
	u2(h, (uint16_t)c->nfields);
	for (size_t i = 0; i < c->nfields; i++) {
		u8(h, c->fields[i].name);
		u1(h, (uint8_t)c->fields[i].type);
	}
}

void hprof_root_sticky(struct hprof *h, uint64_t class)
{
	begin(h, 1 + ID_BYTES);
	u1(h, SUB_ROOT_STICKY);
	u8(h, class);
}

void hprof_root_unknown(struct hprof *h, uint64_t object)
{
	begin(h, 1 + ID_BYTES);
	u1(h, SUB_ROOT_UNKNOWN);
	u8(h, object);
}

static void root(struct hprof *h, uint8_t tag, uint64_t object, uint32_t a, uint32_t b)
{
	begin(h, 1 + ID_BYTES + 2 * 4);
	u1(h, tag);
	u8(h, object);
	u4(h, a);
	u4(h, b);
}

void hprof_root_thread(struct hprof *h, uint64_t object, uint32_t thread, uint32_t trace)
{
	root(h, SUB_ROOT_THREAD, object, thread, trace);
}

void hprof_root_frame(struct hprof *h, uint64_t object, uint32_t thread, uint32_t frame)
{
	root(h, SUB_ROOT_FRAME, object, thread, frame);
}

void hprof_instance(struct hprof *h, uint64_t id, uint32_t trace, uint64_t class, uint32_t bytes)
{
	begin(h, INSTANCE_BYTES + (uint64_t)bytes);
	u1(h, SUB_INSTANCE);
	u8(h, id);
	u4(h, trace);
	u8(h, class);
	u4(h, bytes);
}

/* Nearly all of a file are instances: they are put where they belong as a whole. */
static inline uint8_t *instance_at(uint8_t *p, uint64_t id, uint32_t trace, uint64_t class,
				   uint32_t bytes)
{
	id = htobe64(id);
	trace = htobe32(trace);
	class = htobe64(class);
	bytes = htobe32(bytes);
	*p = SUB_INSTANCE;
	memcpy(p + 1, &id, 8);
	memcpy(p + 9, &trace, 4);
	memcpy(p + 13, &class, 8);
	memcpy(p + 21, &bytes, 4);
	return p + INSTANCE_BYTES;
}

void hprof_instance_of(struct hprof *h, uint64_t id, uint32_t trace, uint64_t class,
		       const uint64_t *objects, uint32_t n)
{
	uint64_t bytes = INSTANCE_BYTES + (uint64_t)n * ID_BYTES;
	uint8_t *p;

	BUG_ON(!h->heap || h->large || bytes > SEGMENT_BYTES);
	if (bytes > SEGMENT_BYTES - h->n)
		flush(h);
	p = instance_at(end_of(h), id, trace, class, n * ID_BYTES);
	for (uint32_t i = 0; i < n; i++, p += ID_BYTES) {
		uint64_t v = htobe64(objects[i]);

		memcpy(p, &v, sizeof(v));
	}
	h->n += bytes;
}

void hprof_instances(struct hprof *h, const uint64_t *ids, size_t n, uint64_t class)
{
	BUG_ON(!h->heap || h->large);
	while (n) {
		size_t room = (SEGMENT_BYTES - h->n) / INSTANCE_BYTES, some = n < room ? n : room;
		uint8_t *p = end_of(h);

		for (size_t i = 0; i < some; i++)
			p = instance_at(p, ids[i], 0, class, 0);
		h->n += some * INSTANCE_BYTES;
		ids += some;
		n -= some;
		if (n)
			flush(h);
	}
}

void hprof_value_object(struct hprof *h, uint64_t id)
{
	u8(h, id);
}

void hprof_value_bytes(struct hprof *h, const void *bytes, size_t n)
{
	put(h, bytes, n);
}

void hprof_array(struct hprof *h, uint64_t id, uint32_t trace, enum hprof_type type, uint32_t n)
{
	begin(h, 1 + ID_BYTES + 2 * 4 + 1 + n * bytes_of(type));
	u1(h, SUB_PRIMITIVES);
	u8(h, id);
	u4(h, trace);
	u4(h, n);
	u1(h, (uint8_t)type);
}

/* ---- sections ---- */

void hprof_sections(struct hprof *h)
{
	BUG_ON(!h->heap || h->in_section);
	flush(h);
}

int hprof_beside(const struct hprof *h, struct hprof **to, struct err *e)
{
	CLEANUP(hprof_freep) struct hprof *new = calloc(1, sizeof(*new));

	if (!new)
		return err_set(e, -ENOMEM, "no memory");
	*new = (struct hprof){ .file = h->file, .beside = true, .heap = true };
	new->buf = malloc(HEAD_BYTES + SEGMENT_BYTES);
	if (!new->buf)
		return err_set(e, -ENOMEM, "no memory");
	*to = TAKE(new);
	return 0;
}

void hprof_section(struct hprof *h, uint64_t n)
{
	BUG_ON(h->in_section || h->n);
	h->in_section = true;
	h->section = n;
}

void hprof_section_end(struct hprof *h)
{
	struct file *file = h->file;

	BUG_ON(!h->in_section);
	flush(h);
	await_turn(h);
	h->large = 0; /* who gave up may have done so within a record */
	h->in_section = h->has_turn = false;
	pthread_mutex_lock(&file->lock);
	file->section++;
	pthread_cond_broadcast(&file->changed);
	pthread_mutex_unlock(&file->lock);
}

/* ---- the end ---- */

int hprof_check(const struct hprof *h, struct err *e)
{
	int failed = h->file->failed;

	return failed ? err_set(e, -failed, "write: %s", strerror(failed)) : 0;
}

int hprof_end(struct hprof *h, struct err *e)
{
	BUG_ON(h->large);
	flush(h);
	head(h, TAG_END, 0);
	return hprof_check(h, e);
}
