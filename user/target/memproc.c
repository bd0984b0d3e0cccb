/*
 * user/target/memproc.c - struct mem over a live process.
 *
 * process_vm_readv reads it, because that can be killed while a page does not come: of a file system
 * that does not answer, for example (FAULT_FLAG_KILLABLE, which the kernel sets in
 * pin_user_pages_remote() for this call and not in access_remote_vm() for /proc/PID/mem; mm/gup.c,
 * Linux 6.18). It asks by pid, so a descriptor tells whether the pid is still that process:
 * /proc/PID/pagemap belongs to the address space that was there when it was opened, and reads nothing after
 * exec or exit. What is asked after a read holds for the read, and the bytes of another program are
 * never taken for the target's. Many small pieces are asked for in one call, up to 1,024.
 *
 * /proc/PID/mem is read where process_vm_readv cannot: pages without the right to read, if they are in memory; and
 * where the main thread has ended before the others. Neither stops the process.
 *
 * Of a target that rests (target_rest()) these files are opened for each read. Then only pages that are
 * there are read: pagemap tells, before process_vm_readv is asked. For many pieces it is read in blocks of 64 pages.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "base/limits.h"
#include "target/target_priv.h"

enum { PIECES = 1024 };		/* UIO_MAXIOV */
enum { THERE_PAGES = 64 };	/* of which pagemap is asked in one call */
#define PAGE_THERE (3ull << 62) /* of a word in pagemap: present, or swapped */

struct memproc {
	struct mem mem; /* first: casts back */
	pid_t pid;
	int fd;		   /* of mem; -1: it cannot be opened, or is when it is needed (awake) */
	int pages;	   /* of pagemap; -1: it cannot be opened */
	bool there_only;   /* no page is waited for */
	struct target *of; /* there_only: the target */
	const struct target *rests; /* its files are closed; NULL: they are open */
};

/* Only such a page is read from the file, because one of a file system may never come. */
static bool is_there(const struct memproc *p, uint64_t addr)
{
	uint64_t word, page = (uint64_t)sysconf(_SC_PAGESIZE);

	return p->pages >= 0 &&
	       pread(p->pages, &word, sizeof(word), (off_t)(addr / page * sizeof(word))) ==
		       sizeof(word) &&
	       word & PAGE_THERE;
}

/* A process that ends loses its memory some moments before it is seen to have ended, and pagemap tells nothing then, of page 0 either. */
static bool memory_gone(const struct memproc *p)
{
	uint64_t word;

	return p->pages >= 0 && !pread(p->pages, &word, sizeof(word), 0);
}

/* A page of the executable comes by itself, when that lies on a disk of this machine. */
static bool will_come(const struct memproc *p, uint64_t addr)
{
	const struct mapping *m = p->of->exe_local ? maps_find(&p->of->maps, addr) : NULL;

	return m && m->inode == p->of->exe_id.ino && !strcmp(m->name, p->of->exe);
}

/* Variables that begin as zero: memory without a file, right after the variables of a file that do not. */
static bool is_bss(const struct memproc *p, uint64_t addr)
{
	const struct maps *maps = &p->of->maps;
	const struct mapping *m = maps_find(maps, addr), *data = m > maps->at ? m - 1 : NULL;

	return m && data && !m->inode && !m->name[0] && data->inode && data->write &&
	       data->end == m->start;
}

/*
 * A page of .bss that is not there was never written to. It is zero, and is not asked for: where somebody brings pages late
 * (userfaultfd, as CRIU's lazy restore has it), that would wait. Of large variables such as runtime.mheap_ and runtime.sched some pages
 * are never used.
 */
static size_t blank_from(const struct memproc *p, uint64_t addr, size_t n)
{
	uint64_t word, page = (uint64_t)sysconf(_SC_PAGESIZE), left = page - addr % page;

	if (!p->there_only || addr > INT64_MAX || p->pages < 0 || !is_bss(p, addr) ||
	    pread(p->pages, &word, sizeof(word), (off_t)(addr / page * sizeof(word))) !=
		    sizeof(word) ||
	    word & PAGE_THERE)
		return 0;
	return n < left ? n : left;
}

/*
 * Of @n bytes from @addr on: how many lie in pages that are there, one after the other; or less, where those are more
 * than THERE_PAGES.
 */
static size_t there_from(const struct memproc *p, uint64_t addr, size_t n)
{
	uint64_t words[THERE_PAGES] = { 0 }, page = (uint64_t)sysconf(_SC_PAGESIZE), to = addr;
	size_t most = (size_t)((addr % page + n - 1) / page) + 1;

	if (most > THERE_PAGES)
		most = THERE_PAGES;
	if (p->pages >= 0)
		(void)!pread(p->pages, words, most * sizeof(words[0]),
			     (off_t)(addr / page * sizeof(words[0])));
	for (size_t i = 0; i < most && (words[i] & PAGE_THERE || will_come(p, to)); i++)
		to += page - to % page;
	return to - addr < n ? (size_t)(to - addr) : n;
}

/* At most to the end of the page. Of a target that is awake the file is opened here; 0: it has gone. */
static ssize_t read_file(const struct memproc *p, uint64_t addr, void *buf, size_t n)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), left = page - addr % page;
	CLEANUP(target_files_close) struct target_files f = TARGET_NO_FILES;

	if (p->fd < 0 && target_files_open(p->of, &f, NULL))
		return 0;
	return pread(p->fd < 0 ? f.mem : p->fd, buf, n < left ? n : left, (off_t)addr);
}

static ssize_t read_some(const struct memproc *p, uint64_t addr, void *buf, size_t n)
{
	size_t here = addr > INT64_MAX ? 0 : p->there_only ? there_from(p, addr, n) : n;
	struct iovec to = { .iov_base = buf, .iov_len = here };
	struct iovec from = { .iov_base = (void *)(uintptr_t)addr, .iov_len = here };
	ssize_t got;
	int why;

	got = here ? 0 : (ssize_t)blank_from(p, addr, n);
	if (got) {
		memset(buf, 0, (size_t)got);
		return got;
	}
	if (!here && memory_gone(p))
		return 0;
	if (!here) { /* beyond INT64_MAX: pread takes no such offset, and no process has memory there */
		errno = EFAULT;
		return -1;
	}
	got = process_vm_readv(p->pid, &to, 1, &from, 1, 0);
	if (p->pages < 0 || (got < 0 && errno == EINTR))
		return got;
	why = got < 0 ? errno : 0;
	if (why && (why != EFAULT || is_there(p, addr)))
		return read_file(p, addr, buf, here);
	if (!memproc_alive(&p->mem))
		return 0;
	errno = why;
	return got;
}

/* Says what a short read means: @got is what read_some() returned for @addr. */
static int why_short(const struct memproc *p, ssize_t got, uint64_t addr, struct err *e)
{
	if (got == 0 || errno == ESRCH)
		return err_set(e, -ESRCH, "pid %d exited or became another program", p->pid);
	if (errno == EPERM || errno == EACCES)
		return denied(p->pid, "read its memory", e);
	if (errno == EIO || errno == EFAULT)
		return err_set(e, -EFAULT, "pid %d: no memory at 0x%llx", p->pid,
			       (unsigned long long)addr);
	return err_sys(e, "pid %d: cannot read memory at 0x%llx", p->pid, (unsigned long long)addr);
}

static int read_all(const struct memproc *p, uint64_t addr, void *buf, size_t n, struct err *e)
{
	size_t done = 0;

	while (done < n) {
		ssize_t got = read_some(p, addr + done, (char *)buf + done, n - done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return why_short(p, got, addr + done, e);
		/* the read was short because a bad page follows; the next round names it */
		done += (size_t)got;
	}
	return 0;
}

static void open_files(int *mem, int *pages, int proc_fd)
{
	*mem = openat(proc_fd, "mem", O_RDONLY | O_CLOEXEC);
	*pages = *mem < 0 ? -1 : openat(proc_fd, "pagemap", O_RDONLY | O_CLOEXEC);
}

static void close_files(struct memproc *p)
{
	closep(&p->fd);
	closep(&p->pages);
	p->fd = p->pages = -1;
}

void target_files_close(struct target_files *f)
{
	closep(&f->dir);
	closep(&f->mem);
	closep(&f->pages);
	*f = TARGET_NO_FILES;
}

/* They belong to the memory that there is when they are opened, and that it is the target's is asked after that. */
int target_files_open(const struct target *t, struct target_files *out, struct err *e)
{
	CLEANUP(target_files_close) struct target_files f = TARGET_NO_FILES;
	int dir = target_dir(t, &f.dir, e), ret;

	if (dir < 0)
		return dir;
	open_files(&f.mem, &f.pages, dir);
	ret = target_same(t, dir, e);
	if (ret)
		return ret;
	*out = f;
	f = TARGET_NO_FILES;
	return 0;
}

/* What rests, with its files open. */
static int wake(const struct memproc *p, struct memproc *awake, struct err *e)
{
	struct target_files f;
	int ret = target_files_open(p->rests, &f, e);

	if (ret)
		return ret;
	closep(&f.dir);
	*awake = (struct memproc){ .mem = p->mem,
				   .pid = p->pid,
				   .fd = f.mem,
				   .pages = f.pages,
				   .there_only = true,
				   .of = p->of };
	return 0;
}

static int read_here(const struct memproc *p, uint64_t addr, void *buf, size_t n, struct err *e)
{
	struct memproc awake;
	int ret;

	if (!p->rests)
		return read_all(p, addr, buf, n, e);
	ret = wake(p, &awake, e);
	if (ret)
		return ret;
	ret = read_all(&awake, addr, buf, n, e);
	if (!ret && !memproc_alive(&awake.mem))
		ret = err_set(e, -ESRCH, "pid %d exited or became another program", p->pid);
	close_files(&awake);
	return ret;
}

struct reading {
	struct target_job job;
	const struct memproc *p;
	uint64_t addr;
	size_t n;
	int ret;
	struct err e;
	uint8_t buf[];
};

static void read_it(struct worker_job *j)
{
	struct reading *r = (struct reading *)j;

	r->ret = read_here(r->p, r->addr, r->buf, r->n, &r->e);
}

/*
 * What has just answered is read by whoever asks: to hand a read to the thread takes 20 us and longer, and of two goroutines that wake each
 * other a million times a second, no two reads would be of one moment.
 */
static bool asks_worker(const struct memproc *p)
{
	const struct target *t = p->there_only ? p->of : NULL;

	return t && t->worker &&
	       (t->silent || !target_may_ask(t) ||
		now_ns() - t->answered_ns > LIMIT_ANSWERED_MS * NS_PER_MS);
}

static int read_by_worker(const struct memproc *p, uint64_t addr, void *buf, size_t n,
			  struct err *e)
{
	CLEANUP(freep) struct reading *r = malloc(sizeof(*r) + n);
	int ret;

	if (!r)
		return err_set(e, -ENOMEM, "pid %d: no memory to read %zu bytes", p->pid, n);
	*r = (struct reading){
		.job.job = { .run = read_it, .drop = target_drop }, .p = p, .addr = addr, .n = n
	};
	ret = target_ask(p->of, &r->job, e);
	if (ret) {
		(void)TAKE(r);
		return ret;
	}
	p->of->answered_ns = now_ns();
	if (r->ret)
		return err_set(e, r->ret, "%s", r->e.msg);
	memcpy(buf, r->buf, n);
	return 0;
}

static int memproc_read(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	const struct memproc *p = (const struct memproc *)m;

	uint64_t begun = now_ns();
	int ret;

	if (asks_worker(p))
		return read_by_worker(p, addr, buf, n, e);
	ret = read_here(p, addr, buf, n, e);
	if (p->there_only)
		p->of->asked_ns += now_ns() - begun;
	return ret;
}

/* Lists the pieces as one call takes them; returns how many those are. */
static size_t gather(const struct mem_piece *v, size_t n, struct iovec *to, struct iovec *from)
{
	size_t k = 0;

	for (; k < n && k < PIECES; k++) {
		to[k] = (struct iovec){ .iov_base = v[k].buf, .iov_len = v[k].n };
		from[k] = (struct iovec){ .iov_base = (void *)(uintptr_t)v[k].addr,
					  .iov_len = v[k].n };
	}
	return k;
}

/* How many of the pieces @got bytes fill. */
static size_t filled(struct mem_piece *v, size_t n, size_t got)
{
	size_t k = 0;

	for (; k < n && v[k].n <= got; k++) {
		got -= v[k].n;
		v[k].ok = true;
	}
	return k;
}

/*
 * process_vm_readv stops before the first piece that is not there as a whole. So that piece is
 * asked for again by itself, and the pieces after it after that.
 */
static int memproc_readv(struct mem *m, struct mem_piece *v, size_t n, struct err *e)
{
	const struct memproc *p = (const struct memproc *)m;
	struct iovec to[PIECES], from[PIECES];
	size_t i = 0;

	while (i < n) {
		size_t k = gather(v + i, n - i, to, from);
		ssize_t got = process_vm_readv(p->pid, to, k, from, k, 0);
		size_t done = got > 0 ? filled(v + i, k, (size_t)got) : 0;

		i += done;
		if (done < k) {
			int ret = mem_read(m, v[i].addr, v[i].buf, v[i].n, e);

			v[i].ok = !ret;
			if (ret == -ESRCH || ret == -EPERM)
				return ret;
			i++;
		}
	}
	if (!memproc_alive(m))
		return err_set(e, -ESRCH, "pid %d exited or became another program", p->pid);
	return 0;
}

/*
 * What pagemap said of blocks of pages during one call: a direct-mapped cache. The kernel looks at each page that is asked for, 64 of them
 * for 6 us: of few pieces each page is asked for by itself.
 */
enum { BLOCK_PAGES = 64, BLOCKS = 32, FEW = 8 };
struct there {
	size_t pages; /* of a block */
	struct {
		uint64_t block; /* its number + 1; 0: none */
		uint64_t words[BLOCK_PAGES];
	} at[BLOCKS];
};

static bool page_there(const struct memproc *p, struct there *t, uint64_t number)
{
	uint64_t block = number / t->pages, first = block * t->pages;
	size_t i = block % BLOCKS, bytes = t->pages * sizeof(uint64_t);

	if (t->at[i].block != block + 1) {
		memset(t->at[i].words, 0, bytes);
		if (pread(p->pages, t->at[i].words, bytes, (off_t)(first * sizeof(uint64_t))) < 0)
			return false;
		t->at[i].block = block + 1;
	}
	return t->at[i].words[number - first] & PAGE_THERE;
}

/* Does all of it lie in pages that are there? */
static bool piece_there(const struct memproc *p, struct there *t, const struct mem_piece *v)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), end;

	if (p->pages < 0 || !v->n || __builtin_add_overflow(v->addr, v->n, &end) || end > INT64_MAX)
		return false;
	for (uint64_t at = v->addr; at < end; at += page - at % page)
		if (!page_there(p, t, at / page) && !will_come(p, at))
			return false;
	return true;
}

/* How many of the pieces are read in one call: those that are there, up to the first one that is not. */
static size_t read_those_there(const struct memproc *p, struct there *t, struct mem_piece *v,
			       size_t n)
{
	struct iovec to[PIECES], from[PIECES];
	size_t k = 0;
	ssize_t got;

	while (k < n && k < PIECES && piece_there(p, t, &v[k]))
		k++;
	gather(v, k, to, from);
	got = k ? process_vm_readv(p->pid, to, k, from, k, 0) : 0;
	return got > 0 ? filled(v, k, (size_t)got) : 0;
}

/* What is not there, or has just gone, is asked for by itself, and told by that. */
static int pieces_there(const struct memproc *p, struct mem_piece *v, size_t n, struct err *e)
{
	struct there seen = { .pages = n <= FEW ? 1 : BLOCK_PAGES };
	size_t i = 0;

	while (i < n) {
		size_t k = read_those_there(p, &seen, v + i, n - i);
		int ret;

		i += k;
		if (i == n || k == PIECES)
			continue;
		ret = read_all(p, v[i].addr, v[i].buf, v[i].n, e);
		v[i++].ok = !ret;
		if (ret == -ESRCH || ret == -EPERM)
			return ret;
	}
	if (!memproc_alive(&p->mem))
		return err_set(e, -ESRCH, "pid %d exited or became another program", p->pid);
	return 0;
}

static int readv_here(const struct memproc *p, struct mem_piece *v, size_t n, struct err *e)
{
	struct memproc awake;
	int ret;

	if (!p->rests)
		return pieces_there(p, v, n, e);
	ret = wake(p, &awake, e);
	if (ret)
		return ret;
	ret = pieces_there(&awake, v, n, e);
	close_files(&awake);
	return ret;
}

/* The pieces, and then the bytes of all. */
struct pieces {
	struct target_job job;
	const struct memproc *p;
	size_t n;
	int ret;
	struct err e;
	struct mem_piece v[];
};

static void read_pieces(struct worker_job *j)
{
	struct pieces *r = (struct pieces *)j;

	r->ret = readv_here(r->p, r->v, r->n, &r->e);
}

static struct pieces *pieces_new(const struct memproc *p, const struct mem_piece *v, size_t n)
{
	size_t bytes = 0;
	struct pieces *r;
	uint8_t *at;

	for (size_t i = 0; i < n; i++)
		bytes += v[i].n;
	r = malloc(sizeof(*r) + n * sizeof(*v) + bytes);
	if (!r)
		return NULL;
	*r = (struct pieces){ .job.job = { .run = read_pieces, .drop = target_drop },
			      .p = p,
			      .n = n };
	memcpy(r->v, v, n * sizeof(*v));
	at = (uint8_t *)&r->v[n];
	for (size_t i = 0; i < n; i++) {
		r->v[i].buf = at;
		at += v[i].n;
	}
	return r;
}

static int readv_by_worker(const struct memproc *p, struct mem_piece *v, size_t n, struct err *e)
{
	CLEANUP(freep) struct pieces *r = pieces_new(p, v, n);
	int ret;

	if (!r)
		return err_set(e, -ENOMEM, "pid %d: no memory to read %zu pieces", p->pid, n);
	ret = target_ask(p->of, &r->job, e);
	if (ret) {
		(void)TAKE(r);
		return ret;
	}
	p->of->answered_ns = now_ns();
	for (size_t i = 0; i < n; i++) {
		v[i].ok = r->v[i].ok;
		if (v[i].ok)
			memcpy(v[i].buf, r->v[i].buf, v[i].n);
	}
	return r->ret ? err_set(e, r->ret, "%s", r->e.msg) : 0;
}

static int memproc_readv_there(struct mem *m, struct mem_piece *v, size_t n, struct err *e)
{
	const struct memproc *p = (const struct memproc *)m;

	uint64_t begun = now_ns();
	int ret;

	if (asks_worker(p))
		return readv_by_worker(p, v, n, e);
	ret = readv_here(p, v, n, e);
	p->of->asked_ns += now_ns() - begun;
	return ret;
}

int memproc_new(pid_t pid, int proc_fd, struct mem **out, struct err *e)
{
	struct memproc *p = calloc(1, sizeof(*p));
	char byte;
	struct iovec to = { .iov_base = &byte, .iov_len = 1 }, from = { .iov_len = 1 };

	if (!p)
		return err_set(e, -ENOMEM, "no memory for a memory reader");
	p->mem.read = memproc_read;
	p->mem.readv = memproc_readv;
	p->pid = pid;
	open_files(&p->fd, &p->pages, proc_fd);
	/* Nothing is mapped at address 0, but the kernel checks the permission first. */
	if (p->fd < 0 && process_vm_readv(pid, &to, 1, &from, 1, 0) < 0 && errno != EFAULT) {
		int code = errno;

		free(p);
		if (code == ESRCH)
			return err_set(e, -ESRCH, "pid %d has exited", pid);
		if (code == EPERM || code == EACCES)
			return denied(pid, "read its memory", e);
		errno = code;
		return err_sys(e, "pid %d: cannot open its memory", pid);
	}
	*out = &p->mem;
	return 0;
}

void memproc_rest(struct mem *m, struct target *t)
{
	struct memproc *p = (struct memproc *)m;

	close_files(p);
	p->mem.readv = memproc_readv_there;
	p->there_only = true;
	p->of = t;
	p->rests = t;
}

void memproc_wake(struct mem *m, struct target_files *f)
{
	struct memproc *p = (struct memproc *)m;

	p->pages = f->pages;
	f->pages = -1;
	p->rests = NULL;
}

int memproc_resting(struct target *t, struct mem **out, struct err *e)
{
	struct memproc *p = calloc(1, sizeof(*p));

	if (!p)
		return err_set(e, -ENOMEM, "no memory for a memory reader");
	*p = (struct memproc){ .mem.read = memproc_read, .pid = t->pid, .fd = -1, .pages = -1 };
	memproc_rest(&p->mem, t);
	*out = &p->mem;
	return 0;
}

void memproc_free(struct mem *m)
{
	struct memproc *p = (struct memproc *)m;

	if (!p)
		return;
	closep(&p->fd);
	closep(&p->pages);
	free(p);
}

bool memproc_alive(const struct mem *m)
{
	const struct memproc *p = (const struct memproc *)m;
	uint64_t word;

	/*
	 * No memory is read, and mmap_lock is taken for reading only; a read of mem at an address
	 * where nothing is mapped would take it for writing (expand_stack() in mm/mmap.c, Linux 6.5).
	 */
	if (p->pages >= 0)
		return pread(p->pages, &word, sizeof(word), 0) != 0;
	if (p->fd >= 0)
		return pread(p->fd, &word, 1, 0) != 0;
	return kill(p->pid, 0) == 0 || errno != ESRCH;
}
