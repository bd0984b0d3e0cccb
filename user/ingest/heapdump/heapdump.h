/*
 * user/ingest/heapdump/heapdump.h - reads what runtime/debug.WriteHeapDump wrote, record by record.
 *
 * Headers: "go1.3 heap dump\n" to "go1.7 heap dump\n"; the last one is what Go 1.7 and all newer
 * ones write. Nothing is kept but a window of the file, and the types of Go 1.3 and 1.4; contents of
 * objects are not copied. "go1.3" begins three formats: that of Go 1.3; the same without the fields of
 * types, by gccgo; and a draft with other numbers for the records, which no release ever wrote.
 * Source: runtime/heapdump.c of Go 1.3, 1.4 and of libgo, runtime/heapdump.go of Go 1.5 to 1.27; where
 * these and the Go wiki's pages differ, the code is followed (Go 1.5 and 1.6 write the architecture
 * as a number).
 */
#ifndef INGEST_HEAPDUMP_H
#define INGEST_HEAPDUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum heapdump_kind {
	HEAPDUMP_EOF,
	HEAPDUMP_OBJECT,
	HEAPDUMP_OTHERROOT,
	HEAPDUMP_TYPE,
	HEAPDUMP_GOROUTINE,
	HEAPDUMP_FRAME,
	HEAPDUMP_PARAMS,
	HEAPDUMP_FINALIZER,
	HEAPDUMP_ITAB,
	HEAPDUMP_OSTHREAD,
	HEAPDUMP_MEMSTATS,
	HEAPDUMP_QUEUED, /* a finalizer that is about to run */
	HEAPDUMP_DATA,
	HEAPDUMP_BSS,
	HEAPDUMP_DEFER,
	HEAPDUMP_PANIC,
	HEAPDUMP_MEMPROF,
	HEAPDUMP_SAMPLE,
	/* The next two are of the draft of Go 1.3's format alone; their numbers are ours. */
	HEAPDUMP_STACKROOT,
	HEAPDUMP_DATAROOT,
	HEAPDUMP_KINDS,
};

/* A text; valid until the next record. What is longer than LIMIT_NAME is cut there. */
struct heapdump_text {
	const char *at;
	size_t len;
};

/* Bytes of the dumped process, which stay in the file. */
struct heapdump_contents {
	uint64_t len, off; /* off: where in the file */
};

/* How contents are written: known when the first record, always the parameters, was read. */
struct heapdump_params {
	bool big_endian;
	uint64_t ptrsize;     /* 4 or 8 */
	uint64_t start, end;  /* of the heap's address range */
	uint64_t arch_char;   /* up to Go 1.6: '6', '8', ..., which arch says in words; gccgo: 0 */
	uint64_t hchan_bytes; /* Go 1.3 alone */
	struct heapdump_text arch, toolchain; /* toolchain: before Go 1.17 GOEXPERIMENT */
	uint64_t ncpu;
};

/*
 * Where objects of one size have pointers. Nearly all objects have one of a few layouts, so that the
 * caller can keep in tag what it found out of one: it is 0 until then, and after heapdump_rewind().
 */
enum { HEAPDUMP_LAYOUT_MAX = 32 };
struct heapdump_layout {
	uint32_t tag, n;
	uint16_t offset[HEAPDUMP_LAYOUT_MAX]; /* in the order of the dump, which need not rise */
};

struct heapdump_object {
	uint64_t addr;
	uint64_t type, kind;		   /* Go 1.3 alone: see types.h */
	struct heapdump_contents contents; /* as long as the object's size class */
	/* Of usual objects, until the next call; NULL: heapdump_field() tells. */
	struct heapdump_layout *layout;
	const uint8_t *at; /* the contents, if layout is not NULL */
};

struct heapdump_type {
	uint64_t addr, size;
	struct heapdump_text name;
	bool indirect; /* or it has pointers: it is true of nearly every type */
};

struct heapdump_itab {
	uint64_t addr, type; /* type: 0 in Go 1.3 */
	bool indirect;	     /* Go 1.3 alone */
};

struct heapdump_goroutine {
	uint64_t g, sp, goid, gopc,
		status; /* status: 1 runnable, 2 running, 3 syscall, 4 waiting */
	bool system, background;
	uint64_t waitsince; /* of the monotonic clock, ns */
	struct heapdump_text reason;
	uint64_t ctxt, m, defer, panic;
};

/* Frames follow their goroutine, from the innermost on. */
struct heapdump_frame {
	uint64_t sp, depth, child_sp;
	struct heapdump_contents contents;
	uint64_t entry, pc, continuation;
	struct heapdump_text name;
	uint64_t parent_sp; /* in the draft, which has no depth, child, contents or continuation */
};

/* A pointer that the draft tells by itself. */
struct heapdump_pointer {
	uint64_t at, addr;
	uint64_t sp; /* of a stack root: the frame that it is of */
};

struct heapdump_segment {
	uint64_t addr;
	struct heapdump_contents contents;
};

struct heapdump_finalizer {
	uint64_t obj, fn, pc, fint, ot; /* fint, ot: addresses of types */
};

struct heapdump_root {
	struct heapdump_text text;
	uint64_t addr;
};

struct heapdump_osthread {
	uint64_t m, id, procid;
};

struct heapdump_defer {
	uint64_t d, g, sp, pc, fn, code, link;
};

struct heapdump_panic {
	uint64_t p, g, type, data, defer, link;
};

/* runtime.MemStats: Source: dumpmemstats(). */
struct heapdump_memstats {
	uint64_t alloc, total_alloc, sys, lookups, mallocs, frees, heap_alloc, heap_sys, heap_idle,
		heap_inuse, heap_released, heap_objects, stacks_inuse, stacks_sys, mspan_inuse,
		mspan_sys, mcache_inuse, mcache_sys, buckhash_sys, gc_sys, other_sys, next_gc,
		last_gc, pause_total, pauses[256], num_gc;
};

struct heapdump_line {
	struct heapdump_text func, file;
	uint64_t line;
};

/* A bucket of the memory profile: a stack, from the innermost frame on, and a size. */
struct heapdump_memprof {
	uint64_t bucket, size;
	size_t nlines;
	const struct heapdump_line *lines; /* valid until the next record */
	uint64_t allocs, frees;		   /* as of the last garbage collection that was done */
};

struct heapdump_sample {
	uint64_t obj, bucket;
};

struct heapdump_record {
	enum heapdump_kind kind;
	uint64_t off; /* where in the file it begins */
	union {
		struct heapdump_params params;
		struct heapdump_object object;
		struct heapdump_type type;
		struct heapdump_itab itab;
		struct heapdump_goroutine goroutine;
		struct heapdump_frame frame;
		struct heapdump_segment segment;
		struct heapdump_finalizer finalizer;
		struct heapdump_root root;
		struct heapdump_osthread osthread;
		struct heapdump_defer defer;
		struct heapdump_panic panic;
		struct heapdump_memstats memstats;
		struct heapdump_memprof memprof;
		struct heapdump_sample sample;
		struct heapdump_pointer pointer;
	};
};

enum heapdump_field_kind {
	HEAPDUMP_PTR = 1,
	HEAPDUMP_STRING, /* pointer, length; up to Go 1.3, as the slices: pointer, length, capacity */
	HEAPDUMP_SLICE,
	HEAPDUMP_IFACE, /* up to Go 1.4, as the next one */
	HEAPDUMP_EFACE,
};

/* A place in contents that holds a pointer. */
struct heapdump_field {
	enum heapdump_field_kind kind;
	uint64_t offset; /* in the contents; of interfaces: of their second word */
	uint64_t type;	 /* of interfaces: their first word, an itab or a type */
	uint64_t addr;	 /* the pointer; 0: of an interface that holds a value that is none */
};

struct heapdump;

/*
 * @fd: borrowed, a file or a pipe. -EBADMSG: it does not begin as a heap dump; -ENOTSUP: it is of
 * a version that is not known.
 */
int heapdump_open(int fd, struct heapdump **out, struct err *e);
/* A second thread reads ahead of this one, where that helps. */
void heapdump_read_ahead(struct heapdump *d);
void heapdump_free(struct heapdump *d);
DEFINE_FREEP(struct heapdump, heapdump)

/* The parameters, once they were read. */
const struct heapdump_params *heapdump_params(const struct heapdump *d);
/* The minor version in the header: 3 to 7. */
unsigned heapdump_version(const struct heapdump *d);
/* Once the parameters were read: is it of the draft of Go 1.3's format? */
bool heapdump_draft(const struct heapdump *d);
/* Pointers in frames, in this pass, that the dump names without writing what is there. */
uint64_t heapdump_behind(const struct heapdump *d);
/* Where the record that was read last begins, or the one that is damaged. */
uint64_t heapdump_record_off(const struct heapdump *d);
/* How far it has read. */
uint64_t heapdump_offset(const struct heapdump *d);
/*
 * Once the end mark was read: how many bytes follow it. Those of a pipe are read for it, until the
 * pipe's end.
 */
uint64_t heapdump_left(struct heapdump *d);
/* How long the file is; UINT64_MAX: not known. */
uint64_t heapdump_size(const struct heapdump *d);

/* Calls @tick with how far it has read, again and again; a new pass begins with a lower offset. */
void heapdump_watch(struct heapdump *d, void (*tick)(void *arg, uint64_t offset), void *arg);

/*
 * Reads the next record; the end of the dump is a record, too, and comes again and again.
 * -EBADMSG: damaged or cut; the message has the offset, the record and what was found. Everything
 * that came before it is good.
 */
int heapdump_next(struct heapdump *d, struct heapdump_record *r, struct err *e);
/* The same, but objects are passed over, which is faster. */
int heapdump_next_other(struct heapdump *d, struct heapdump_record *r, struct err *e);
/*
 * Of the record that was read last, an object, a frame, a segment (or, in Go 1.3, a type): 1, the
 * next place that holds a pointer; 0, there is none. Values are read from a file only: from a pipe
 * they are unknown (addr 0) where contents are long.
 */
int heapdump_field(struct heapdump *d, struct heapdump_field *f, struct err *e);

/*
 * The word at @offset of the contents of the record that was read last, as heapdump_field() reads it;
 * 0 beyond its end.
 */
uint64_t heapdump_word(struct heapdump *d, uint64_t offset);
/* The pointers of an object whose layout is not NULL, which was read last: layout->n of them. */
void heapdump_pointers(const struct heapdump *d, const struct heapdump_object *o, uint64_t *out);
/* Reads @n bytes of contents from a file. */
int heapdump_bytes(struct heapdump *d, uint64_t off, void *buf, size_t n, struct err *e);
/* The pointer that such bytes are. */
uint64_t heapdump_pointer(const struct heapdump *d, const uint8_t *at);
/*
 * The contents themselves, right after their record was read. NULL: they are too long for the window.
 * Valid until the next call.
 */
const uint8_t *heapdump_window(const struct heapdump *d, const struct heapdump_contents *c);
/* Back to the first record. -ESPIPE: it is a pipe. */
int heapdump_rewind(struct heapdump *d, struct err *e);
/*
 * To the record that began at @off (heapdump_record.off). The parameters were read before.
 * -ESPIPE: it is a pipe.
 */
int heapdump_seek(struct heapdump *d, uint64_t off, struct err *e);
/* The same where nothing is wanted of what lies from @until on (0: all is): it is not read ahead. */
int heapdump_seek_until(struct heapdump *d, uint64_t off, uint64_t until, struct err *e);

#endif
