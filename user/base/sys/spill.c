/* user/base/sys/spill.c - blocks with a header, in memory or in a file of their own. */
#include "base/sys/spill.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sys/unnamed.h"

enum { HEADER = 64, FILE_MIN = 1 << 16, MOVE_STEP = 1 << 20, IN_MEMORY = -1, FILES_MAX = 64 };

struct block {
	size_t bytes; /* with this header */
	int fd;	      /* IN_MEMORY: none */
	struct block *next, **link;
};
_Static_assert(sizeof(struct block) <= HEADER, "room of the header");

static struct {
	uint64_t bound, now; /* now: the bound, or what more has to be allowed for a while */
	uint64_t memory, files;
	struct block *in_files;
	bool refused;
	struct err why;
	/* Where those in files lie, for a signal handler: a file that fails has no header that can be read. */
	struct {
		uintptr_t at;
		size_t bytes; /* 0: not used */
	} places[FILES_MAX];
	void (*lost)(void);
} all;

void spill_bound(uint64_t bytes)
{
	all.bound = all.now = bytes;
	all.refused = false;
}

uint64_t spill_in_files(void)
{
	return all.files;
}

bool spill_refused(struct err *why)
{
	if (all.refused)
		*why = all.why;
	return all.refused;
}

static struct block *block_of(void *p)
{
	return (struct block *)((uint8_t *)p - HEADER);
}

static void *payload(struct block *b)
{
	return (uint8_t *)b + HEADER;
}

/* ---- a file that fails ---- */

static void on_fault(int sig, siginfo_t *si, void *context)
{
	uintptr_t at = (uintptr_t)si->si_addr;

	(void)context;
	for (size_t i = 0; all.lost && i < FILES_MAX; i++)
		if (at - all.places[i].at < all.places[i].bytes)
			all.lost();
	/* It is met again, and ends the process as it would have. */
	signal(sig, SIG_DFL);
}

void spill_on_loss(void (*lost)(void))
{
	struct sigaction sa = { .sa_flags = SA_SIGINFO };

	all.lost = lost;
	if (lost)
		sa.sa_sigaction = on_fault;
	sigemptyset(&sa.sa_mask);
	sigaction(SIGBUS, &sa, NULL);
}

/* @bytes: 0, it is none any more. False: there is no room. */
static bool note_place(const struct block *b, size_t before, size_t bytes)
{
	for (size_t i = 0; i < FILES_MAX; i++) {
		if (all.places[i].bytes != before || (before && all.places[i].at != (uintptr_t)b))
			continue;
		all.places[i].at = (uintptr_t)b;
		all.places[i].bytes = bytes;
		return true;
	}
	return false;
}

/* ---- files ---- */

static void link_in(struct block *b)
{
	b->next = all.in_files;
	b->link = &all.in_files;
	if (b->next)
		b->next->link = &b->next;
	all.in_files = b;
	all.files += b->bytes;
}

static void link_out(struct block *b)
{
	*b->link = b->next;
	if (b->next)
		b->next->link = b->link;
	all.files -= b->bytes;
}

/*
 * Room on the disk that is not there would end the process when it is written to. A file system that cannot set it
 * aside (NFS before 4.2) is not used: what the C library does instead promises nothing there.
 */
static int make_room(int fd, size_t bytes, struct err *e)
{
	int ret;

	if (bytes > INT64_MAX)
		return err_set(e, -EFBIG, "%zu bytes in %s", bytes, unnamed_dir());
	do
		ret = fallocate(fd, 0, 0, (off_t)bytes);
	while (ret && errno == EINTR);
	if (ret && errno == EOPNOTSUPP)
		return err_set(e, -EOPNOTSUPP, "%s has no way to set room aside", unnamed_dir());
	return ret ? err_sys(e, "%zu bytes in %s", bytes, unnamed_dir()) : 0;
}

static int make_file(size_t bytes, struct err *e)
{
	CLEANUP(closep) int fd = unnamed_open(e);
	struct statfs fs;
	int ret;

	if (fd < 0)
		return fd;
	if (fstatfs(fd, &fs))
		return err_sys(e, "%s", unnamed_dir());
	if (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC)
		return err_set(e, -EOPNOTSUPP, "%s lies in memory itself", unnamed_dir());
	ret = make_room(fd, bytes, e);
	return ret ? ret : TAKE_FD(fd);
}

static struct block *refuse(struct err *why)
{
	all.refused = true;
	all.why = *why;
	return NULL;
}

static struct block *file_block(size_t bytes)
{
	struct err why = { "" };
	CLEANUP(closep) int fd = make_file(bytes, &why);
	struct block *b;

	if (fd < 0)
		return refuse(&why);
	b = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (b == MAP_FAILED)
		return NULL;
	if (!note_place(b, 0, bytes)) {
		munmap(b, bytes);
		return NULL;
	}
	b->bytes = bytes;
	b->fd = TAKE_FD(fd);
	link_in(b);
	return b;
}

static struct block *resize_file(struct block *b, size_t bytes)
{
	size_t before = b->bytes;
	struct err why = { "" };
	struct block *to;

	if (bytes > before && make_room(b->fd, bytes, &why))
		return refuse(&why);
	link_out(b);
	note_place(b, before, 0);
	to = mremap(b, before, bytes, MREMAP_MAYMOVE);
	note_place(to == MAP_FAILED ? b : to, 0, to == MAP_FAILED ? before : bytes);
	if (to != MAP_FAILED)
		to->bytes = bytes;
	link_in(to == MAP_FAILED ? b : to);
	return to == MAP_FAILED ? NULL : to;
}

static void free_file(struct block *b)
{
	link_out(b);
	note_place(b, b->bytes, 0);
	close(b->fd);
	munmap(b, b->bytes);
}

/* ---- memory ---- */

static struct block *memory_block(size_t bytes)
{
	struct block *b = calloc(1, bytes);

	if (!b)
		return NULL;
	b->bytes = bytes;
	b->fd = IN_MEMORY;
	all.memory += bytes;
	return b;
}

static struct block *resize_memory(struct block *b, size_t bytes)
{
	size_t before = b->bytes;
	struct block *to = realloc(b, bytes);

	if (!to)
		return NULL;
	to->bytes = bytes;
	all.memory += bytes - before;
	return to;
}

/* ---- either ---- */

static bool wants_file(size_t bytes, size_t more)
{
	return all.bound && bytes >= FILE_MIN && all.memory + more > all.bound / 2;
}

static bool bytes_for(size_t n, size_t elem, size_t *bytes)
{
	return !__builtin_mul_overflow(n, elem, bytes) &&
	       !__builtin_add_overflow(*bytes, HEADER, bytes);
}

void *spill_alloc(size_t n, size_t elem)
{
	struct block *b = NULL;
	size_t bytes;

	if (!bytes_for(n, elem, &bytes))
		return NULL;
	if (wants_file(bytes, bytes))
		b = file_block(bytes);
	if (!b)
		b = memory_block(bytes);
	return b ? payload(b) : NULL;
}

/* Of what is freed soon whole pages are given back at once. */
static void give_back(uint8_t *from, uint8_t *to)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t begin = ((uintptr_t)from + page - 1) / page * page,
		  end = (uintptr_t)to / page * page;

	if (begin < end)
		madvise((void *)begin, end - begin, MADV_DONTNEED);
}

/* @to: a new one, which may be NULL. In steps, so that there are never two of all. */
static struct block *move(struct block *to, struct block *b)
{
	size_t n = to && to->bytes < b->bytes ? to->bytes : b->bytes;

	for (size_t at = HEADER; to && at < n; at += MOVE_STEP) {
		size_t step = n - at < MOVE_STEP ? n - at : MOVE_STEP;

		memcpy((uint8_t *)to + at, (uint8_t *)b + at, step);
		give_back((uint8_t *)b + at, (uint8_t *)b + at + step);
		spill_rest();
	}
	if (!to)
		return NULL;
	spill_free(payload(b));
	all.now = all.bound;
	return to;
}

void *spill_realloc(void *p, size_t n, size_t elem)
{
	struct block *b = p ? block_of(p) : NULL, *to = NULL;
	size_t bytes;

	if (!b)
		return spill_alloc(n, elem);
	if (!bytes_for(n, elem, &bytes))
		return NULL;
	if (b->fd != IN_MEMORY) {
		to = resize_file(b, bytes);
		to = to ? to : move(memory_block(bytes), b);
	} else {
		if (bytes > b->bytes && wants_file(bytes, bytes - b->bytes))
			to = move(file_block(bytes), b);
		to = to ? to : resize_memory(b, bytes);
	}
	return to ? payload(to) : NULL;
}

void spill_free(void *p)
{
	struct block *b = p ? block_of(p) : NULL;

	if (!b)
		return;
	if (b->fd != IN_MEMORY) {
		free_file(b);
		return;
	}
	all.memory -= b->bytes;
	free(b);
}

bool spill_reserve_(void **at, size_t n, size_t *cap, size_t elem, size_t max)
{
	size_t want = *cap ? *cap * 2 : 16;
	void *p;

	if (n >= max)
		return false;
	want = want < max ? want : max;
	p = spill_realloc(*at, want, elem);
	if (!p)
		return false;
	*at = p;
	*cap = want;
	return true;
}

/* ---- the bound ---- */

/* Bytes of memory that the process takes; 0: not known. */
static uint64_t resident(void)
{
	CLEANUP(closep) int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	char text[128] = "", *second;
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	second = n > 0 ? strchr(text, ' ') : NULL;
	return second ? strtoull(second, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

void spill_rest(void)
{
	uint64_t left;

	if (!all.in_files || !all.now || resident() <= all.now)
		return;
	for (struct block *b = all.in_files; b; b = b->next)
		madvise(b, b->bytes, MADV_DONTNEED);
	/* What is taken for other things than these arrays cannot be given back again and again. */
	left = resident() + all.bound / 8;
	all.now = left > all.bound ? left : all.bound;
}
