/* user/collect/leftovers.c - code in memory beside code in the file, and probes that do nothing. */
#include "collect/leftovers.h"

#include "arch/breakpoint.h"
#include "base/limits.h"
#include "collect/subject_priv.h"
#include "collect/survey_priv.h"
#include "collect/uprobes.h"

enum { PAGE_MAX = 1 << 16 };

/* ---- finding ---- */

static int add_breakpoints(struct leftovers *l, const uint8_t *now, const uint8_t *was, size_t n,
			   uint64_t addr, uint64_t off, struct err *e)
{
	for (size_t i = breakpoint_find(now, was, n, 0); i < n;
	     i = breakpoint_find(now, was, n, i + 1)) {
		struct leftover *one = vec_add(&l->at, LIMIT_LEFTOVERS);

		if (!one)
			return err_set(e, -E2BIG, "more than %d breakpoints", LIMIT_LEFTOVERS);
		*one = (struct leftover){ .addr = addr + i, .file_off = off + i };
	}
	return 0;
}

/* The page at @addr beside the file's at @off. What cannot be had has no breakpoint of ours. */
static int compare_page(struct target *t, struct leftovers *l, int fd, uint64_t addr, uint64_t off,
			struct err *e)
{
	CLEANUP(freep) uint8_t *buf = malloc(2 * PAGE_MAX);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	ssize_t got;

	if (!buf || page > PAGE_MAX)
		return err_set(e, -ENOMEM, "no memory for a page");
	got = pread(fd, buf, page, (off_t)off);
	if (got <= 0)
		return 0;
	if (mem_read(t->mem, addr, buf + PAGE_MAX, (size_t)got, e))
		return target_alive(t, e);
	return add_breakpoints(l, buf + PAGE_MAX, buf, (size_t)got, addr, off, e);
}

static int compare_pages(struct target *t, struct leftovers *l, const struct mapping *m,
			 const uint64_t *pages, size_t n, struct err *e)
{
	CLEANUP(closep) int fd = -1;
	struct leftover_file f = { .first = l->at.n }, *slot;
	bool dynamic;
	int ret = 0;

	if (target_open_mapped(t, m, &fd, NULL)) {
		l->unseen++;
		return 0;
	}
	if (!survey_maybe_go(fd, &dynamic))
		return 0;
	for (size_t i = 0; !ret && i < n; i++)
		ret = compare_page(t, l, fd, pages[i], pages[i] - m->start + m->offset, e);
	f.n = l->at.n - f.first;
	if (ret || !f.n)
		return ret;
	slot = vec_add(&l->files, LIMIT_LEFTOVERS);
	if (!slot)
		return err_set(e, -ENOMEM, "no memory for a list of files");
	f.fd = TAKE_FD(fd);
	*slot = f;
	return 0;
}

int leftovers_find(struct target *t, struct leftovers *out, struct err *e)
{
	struct leftovers l = { 0 };
	int ret = 0;

	for (size_t i = 0; !ret && i < t->maps.n; i++) {
		const struct mapping *m = &t->maps.at[i];
		CLEANUP(freep) uint64_t *pages = NULL;
		size_t n = 0;

		if (!m->exec || !m->inode || *m->name != '/')
			continue;
		ret = target_own_pages(t, m, &pages, &n, e);
		if (ret == -E2BIG) {
			l.unseen++;
			ret = 0;
		} else if (!ret && n) {
			ret = compare_pages(t, &l, m, pages, n, e);
		}
	}
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

/* One place that cannot be probed, which nobody's probe can have been, must not save the others. */
static int free_file(struct target *t, const struct leftovers *l, const struct leftover_file *f,
		     struct err *e)
{
	int ret = come_and_go(t, f->fd, &l->at.at[f->first], f->n, e);
	size_t done = 0;

	if (!ret || ret == -ESRCH || ret == -EPERM || ret == -EACCES)
		return ret;
	for (size_t i = 0; i < f->n; i++)
		done += !come_and_go(t, f->fd, &l->at.at[f->first + i], 1, e);
	return done ? 0 : ret;
}

static void look_again(struct target *t, struct leftovers *l)
{
	for (size_t f = 0; f < l->files.n; f++)
		for (size_t i = 0; i < l->files.at[f].n; i++) {
			struct leftover *one = &l->at.at[l->files.at[f].first + i];
			uint8_t now[4] = { 0 }, was[4] = { 0 };

			if (mem_read(t->mem, one->addr, now, sizeof(now), NULL) ||
			    pread(l->files.at[f].fd, was, sizeof(was), (off_t)one->file_off) !=
				    sizeof(was))
				continue;
			one->freed = breakpoint_find(now, was, sizeof(now), 0) != 0;
			l->freed += one->freed;
		}
}

int leftovers_heal(struct target *t, struct leftovers *l, struct err *e)
{
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
	for (size_t i = 0; !ret && i < l->files.n; i++)
		ret = free_file(t, l, &l->files.at[i], e);
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
	if (l.freed)
		say(o, "pid %d: %zu breakpoints freed that a killed process had left in its code",
		    t->pid, l.freed);
	leftovers_fini(&l);
}
