/* user/probe/uprobes/leftovers.c - code in memory beside code in the file, and probes that do nothing. */
#include "probe/uprobes/leftovers.h"

#include <sys/stat.h>
#include <time.h>

#include "arch/breakpoint.h"
#include "base/loop/cancel.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/map.h"
#include "go/image/gobin.h"
#include "probe/uprobes/uprobes.h"
#include "subject/subject.h"

enum { PAGE_MAX = 1 << 16, FREED_AT_ONCE = 64 };
/*
 * How often it is asked whether a breakpoint still stands, and how far apart: windows of ours are at most
 * 50 ms long (and as long again while probes go in and out), and pauses between them at least 8 ms.
 */
enum { STAND_LOOKS = 150, STAND_STEP_US = 2000 };

static uint64_t from_now(unsigned ms)
{
	return now_ns() + ms * 1000000ull;
}

/* ---- finding ---- */

/* What is asked once of each mapped file, however often it is mapped. */
struct file {
	const struct mapping *m; /* the first one */
	bool opened, go;
	uint64_t size; /* bytes; of the opened ones */
};

/*
 * One search. A process may map one file, or many, a hundred thousand times, each mapping as
 * large as the address space has room for, and that costs it nothing. So each file is looked at
 * once, what no file stands behind is left out, and pages and time have an end (base/limits.h).
 */
struct search {
	struct target *t;
	struct leftovers *l;
	struct map by_hash; /* places in files */
	VEC(struct file) files;
	uint64_t pages_left, until_ns;
	uint8_t *buf; /* PAGE_MAX bytes of the file, then as many of the memory */
};

static void search_fini(struct search *s)
{
	map_fini(&s->by_hash);
	vec_fini(&s->files);
	free(s->buf);
}

static bool is_late(const struct search *s)
{
	return now_ns() > s->until_ns;
}

static bool same_file(const struct mapping *a, const struct mapping *b)
{
	return a->inode == b->inode && a->dev_major == b->dev_major &&
	       a->dev_minor == b->dev_minor && !strcmp(a->name, b->name);
}

static uint64_t hash_file(const struct mapping *m)
{
	return hash_pair(m->inode, hash_bytes(m->name, strlen(m->name)));
}

static const struct file *known_file(const struct search *s, const struct mapping *m)
{
	uint64_t i;

	if (!map_get(&s->by_hash, hash_file(m), &i) || !same_file(s->files.at[i].m, m))
		return NULL;
	return &s->files.at[i];
}

/* NULL: no memory. */
static const struct file *new_file(struct search *s, const struct mapping *m)
{
	struct file *f = vec_add(&s->files, LIMIT_MAPS);
	CLEANUP(closep) int fd = -1;
	struct stat st;
	bool dynamic;

	if (!f)
		return NULL;
	f->m = m;
	f->opened = !target_open_mapped(s->t, m, &fd, NULL) && !fstat(fd, &st);
	f->go = f->opened && gobin_may_be_go(fd, &dynamic);
	f->size = f->opened ? (uint64_t)st.st_size : 0;
	map_put(&s->by_hash, hash_file(m), s->files.n - 1);
	return f;
}

static int add_breakpoints(struct leftovers *l, const uint8_t *now, const uint8_t *was, size_t n,
			   uint64_t addr, uint64_t off, struct err *e)
{
	for (size_t i = breakpoint_find(now, was, n, 0); i < n;
	     i = breakpoint_find(now, was, n, i + 1)) {
		struct leftover *one = vec_add(&l->at, LIMIT_LEFTOVERS);

		if (!one)
			return err_set(e, -E2BIG, "more than %d breakpoints", LIMIT_LEFTOVERS);
		*one = (struct leftover){ .addr = addr + i,
					  .file_off = off + i,
					  .barred = breakpoint_is_barred(was + i, n - i) };
		l->barred += one->barred;
	}
	return 0;
}

/*
 * The page at @addr beside the file's at @off. A page that the process has unmapped meanwhile has no breakpoint;
 * of one that cannot be read from the file nobody knows, so *unseen is set.
 */
static int compare_page(struct search *s, int fd, uint64_t addr, uint64_t off, bool *unseen,
			struct err *e)
{
	ssize_t got = pread(fd, s->buf, (size_t)sysconf(_SC_PAGESIZE), (off_t)off);

	if (got <= 0) {
		*unseen = true;
		return 0;
	}
	if (mem_read(s->t->mem, addr, s->buf + PAGE_MAX, (size_t)got, e))
		return target_alive(s->t, e);
	return add_breakpoints(s->l, s->buf + PAGE_MAX, s->buf, (size_t)got, addr, off, e);
}

static int stopped(const struct search *s, struct err *e)
{
	return cancelled() ? err_set(e, -ECANCELED, "pid %d: stopped while its code was searched",
				     s->t->pid) :
			     0;
}

/* The file stays open where breakpoints are found. */
static int compare_pages(struct search *s, const struct mapping *m, const uint64_t *pages, size_t n,
			 struct err *e)
{
	struct leftover_file f = { .first = s->l->at.n }, *slot;
	CLEANUP(closep) int fd = -1;
	bool unseen = false;
	int ret = 0;
	size_t i;

	if (target_open_mapped(s->t, m, &fd, NULL)) {
		s->l->unseen++;
		return 0;
	}
	for (i = 0; !ret && i < n && !is_late(s); i++) {
		ret = stopped(s, e);
		if (!ret)
			ret = compare_page(s, fd, pages[i], pages[i] - m->start + m->offset,
					   &unseen, e);
		/* Too many breakpoints: those that there is room for are freed all the same. */
		unseen |= ret == -E2BIG;
		if (ret == -E2BIG)
			ret = 0;
	}
	s->l->unseen += !ret && (unseen || i < n);
	f.n = s->l->at.n - f.first;
	if (ret || !f.n)
		return ret;
	slot = vec_add(&s->l->files, LIMIT_LEFTOVERS);
	if (!slot)
		return err_set(e, -ENOMEM, "no memory for a list of files");
	f.fd = TAKE_FD(fd);
	*slot = f;
	return 0;
}

/* The part of @m that the file reaches; its end is its start where there is none. */
static struct mapping backed_part(const struct mapping *m, const struct file *f)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t rest = f->size > m->offset ? f->size - m->offset : 0;
	struct mapping part = *m;

	rest = (rest + page - 1) / page * page;
	if (f->opened && rest < m->end - m->start)
		part.end = m->start + rest;
	return part;
}

static int look_at_mapping(struct search *s, const struct mapping *m, struct err *e)
{
	const struct file *f = known_file(s, m);
	CLEANUP(freep) uint64_t *pages = NULL;
	struct mapping part;
	uint64_t npages;
	size_t n = 0;
	int ret;

	if (!f && !is_late(s))
		f = new_file(s, m);
	if (f && f->opened && !f->go)
		return 0;
	part = f ? backed_part(m, f) : *m;
	npages = (part.end - part.start) / (uint64_t)sysconf(_SC_PAGESIZE);
	if (!f || is_late(s) || npages > s->pages_left) {
		s->l->unseen++;
		return 0;
	}
	s->pages_left -= npages;
	ret = target_own_pages(s->t, &part, &pages, &n, e);
	if (ret == -E2BIG) {
		s->l->unseen++;
		return 0;
	}
	return ret || !n ? ret : compare_pages(s, &part, pages, n, e);
}

static int search_all(struct search *s, struct err *e)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < s->t->maps.n; i++) {
		const struct mapping *m = &s->t->maps.at[i];

		if (!m->exec || !m->inode || *m->name != '/')
			continue;
		ret = stopped(s, e);
		if (!ret)
			ret = look_at_mapping(s, m, e);
	}
	return ret;
}

int leftovers_find(struct target *t, struct leftovers *out, struct err *e)
{
	struct leftovers l = { 0 };
	struct search s = {
		.t = t,
		.l = &l,
		.pages_left = LIMIT_LEFTOVERS_PAGES,
		.until_ns = from_now(LIMIT_LEFTOVERS_MS),
		.buf = malloc(2 * PAGE_MAX),
	};
	int ret;

	if (!s.buf || sysconf(_SC_PAGESIZE) > PAGE_MAX)
		ret = err_set(e, -ENOMEM, "no memory for a page");
	else
		ret = search_all(&s, e);
	search_fini(&s);
	if (ret)
		leftovers_fini(&l);
	else
		*out = l;
	return ret;
}

void leftovers_fini(struct leftovers *l)
{
	for (size_t i = 0; i < l->files.n; i++)
		close(l->files.at[i].fd);
	vec_fini(&l->files);
	vec_fini(&l->at);
}

/* ---- who uses them ---- */

/*
 * @unread where it cannot be read. The file has no breakpoint here, or it would not be in the list.
 */
static bool stands(struct target *t, const struct leftover *one, bool unread)
{
	uint8_t now[4] = { 0 }, was[4] = { 0 };

	if (mem_read(t->mem, one->addr, now, sizeof(now), NULL))
		return unread;
	return breakpoint_find(now, was, sizeof(now), 0) == 0;
}

/* Returns how many there are that were there each time so far. */
static size_t look_once(struct target *t, struct leftovers *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->at.n; i++) {
		struct leftover *one = &l->at.at[i];

		one->comes_and_goes = one->comes_and_goes || !stands(t, one, false);
		n += !one->comes_and_goes;
	}
	return n;
}

/*
 * A breakpoint that goes while nobody touches it belongs to a profile in windows, which would be
 * taken for freed when its window happened to close just then.
 */
static int watch(struct target *t, struct leftovers *l, struct err *e)
{
	uint64_t until_ns = from_now(LIMIT_STAND_MS);

	for (int i = 0; i < STAND_LOOKS && look_once(t, l) && now_ns() <= until_ns; i++) {
		if (cancelled())
			return err_set(e, -ECANCELED, "stopped before they were freed");
		usleep(STAND_STEP_US);
	}
	return target_alive(t, e);
}

/* ---- freeing ---- */

/* Put in at @n places of a file and taken out again. */
static int come_and_go(struct target *t, int fd, const struct leftover *at, size_t n, struct err *e)
{
	CLEANUP(freep) struct uprobe_site *sites = calloc(n, sizeof(*sites));
	struct uprobes u = { 0 };
	char path[64];
	int ret;

	if (!sites)
		return err_set(e, -ENOMEM, "no memory for probes");
	for (size_t i = 0; i < n; i++)
		sites[i].file_off = at[i].file_off;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ret = uprobes_put(&u, NULL, uprobes_have_multi(), t->pid, path, sites, n, e);
	uprobes_free(&u);
	return ret;
}

/* Nothing else is tried after these. */
static bool is_final(int ret)
{
	return ret == -ESRCH || ret == -EPERM || ret == -EACCES || ret == -ECANCELED ||
	       ret == -ETIMEDOUT;
}

/* What is freed, for how long, and how much is done. */
struct freeing {
	struct target *t;
	uint64_t until_ns;
	size_t done;
};

static int free_at_once(struct freeing *fr, int fd, const struct leftover *at, size_t n,
			struct err *e)
{
	int ret;

	if (cancelled())
		return err_set(e, -ECANCELED, "stopped while they were freed");
	if (now_ns() > fr->until_ns)
		return err_set(e, -ETIMEDOUT, "freeing them takes more than %d s",
			       LIMIT_FREE_MS / 1000);
	ret = come_and_go(fr->t, fd, at, n, e);
	if (!ret)
		fr->done += n;
	return ret;
}

/*
 * Tries each place alone, so that one which the kernel refuses does not keep the others from being
 * freed. (Such a place was no probe.)
 */
static int free_each(struct freeing *fr, int fd, const struct leftover *at, size_t n, struct err *e)
{
	int ret = 0;

	for (size_t i = 0; i < n && !is_final(ret); i++)
		ret = free_at_once(fr, fd, at + i, 1, e);
	return ret;
}

static bool may_be_freed(const struct leftover *one)
{
	return !one->comes_and_goes && !one->barred;
}

/* The first run of those in [@from, @end) that may be freed, as nobody was seen to use them: where it begins; *n: how many. */
static size_t next_run(const struct leftovers *l, size_t from, size_t end, size_t *n)
{
	while (from < end && !may_be_freed(&l->at.at[from]))
		from++;
	for (*n = 0; *n < FREED_AT_ONCE && from + *n < end && may_be_freed(&l->at.at[from + *n]);)
		++*n;
	return from;
}

/* Some at a time, because a process may have written thousands into its own code. */
static int free_file(struct freeing *fr, const struct leftovers *l, const struct leftover_file *f,
		     struct err *e)
{
	size_t before = fr->done, end = f->first + f->n, n;
	size_t i = next_run(l, f->first, end, &n);
	int ret = 0;

	for (; n && !is_final(ret); i = next_run(l, i + n, end, &n)) {
		const struct leftover *at = &l->at.at[i];

		ret = free_at_once(fr, f->fd, at, n, e);
		if (ret && !is_final(ret))
			ret = free_each(fr, f->fd, at, n, e);
	}
	return is_final(ret) || fr->done == before ? ret : 0;
}

static void look_again(struct target *t, struct leftovers *l)
{
	for (size_t i = 0; i < l->at.n; i++) {
		struct leftover *one = &l->at.at[i];

		one->freed = may_be_freed(one) && !stands(t, one, true);
		l->freed += one->freed;
	}
}

int leftovers_heal(struct target *t, struct leftovers *l, struct err *e)
{
	struct freeing fr = { .t = t };
	pid_t tracer;
	int ret;

	if (!l->at.n)
		return 0;
	ret = target_tracer(t, &tracer, e);
	if (ret)
		return ret;
	if (tracer)
		return err_set(e, -EBUSY,
			       "pid %d is being traced by %d, whose breakpoints these may be",
			       t->pid, tracer);
	ret = watch(t, l, e);
	if (ret)
		return ret;
	fr.until_ns = from_now(LIMIT_FREE_MS);
	for (size_t i = 0; !ret && i < l->files.n; i++)
		ret = free_file(&fr, l, &l->files.at[i], e);
	look_again(t, l);
	return ret;
}

void leftovers_begin(struct target *t, const struct collect_opts *o)
{
	struct leftovers l = { 0 };
	struct err e = { "" };
	int ret = leftovers_find(t, &l, &e);

	if (!ret)
		ret = leftovers_heal(t, &l, &e);
	if (ret && l.at.n)
		say(o, "warning: pid %d: %zu breakpoints in its code may be left behind: %s",
		    t->pid, l.at.n, e.msg);
	else if (ret && ret != -ESRCH && ret != -ECANCELED)
		say(o, "warning: its code was not searched for breakpoints left behind: %s", e.msg);
	if (l.unseen)
		say(o,
		    "warning: pid %d: breakpoints may be left behind in %zu mappings of code "
		    "that were not searched",
		    t->pid, l.unseen);
	if (l.barred)
		say(o,
		    "warning: pid %d: %zu breakpoints in its code were left alone: where each stands the file "
		    "has a jump over eight bytes, which some kernels overwrite",
		    t->pid, l.barred);
	if (l.freed)
		say(o, "pid %d: %zu breakpoints freed that a killed process had left in its code",
		    t->pid, l.freed);
	leftovers_fini(&l);
}
