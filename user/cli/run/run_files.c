/* user/cli/run/run_files.c - see cli/run/run_files.h. */
#include "cli/run/run_files.h"

#include <limits.h>

#include "cli/run/outdir.h"
#include "cli/tell.h"
#include "profile/graft.h"

/* ---- a file ---- */

/*
 * A path is told only when its file is complete, and immediately: somebody may wait for it. Who reads them may leave
 * before the end: the files are worth no less.
 */
static void print_path(struct run_files *f, const char *path)
{
	if (f->unread || (fprintf(f->to->paths, "%s\n", path) >= 0 && !fflush(f->to->paths)))
		return;
	tell("cannot write to %s: %s: the files are written, and their paths are told no more",
	     f->to->paths == stderr ? "stderr" : "stdout", strerror(errno));
	f->unread = true;
}

static void write_one(struct run_files *f, struct prof *p, const struct output_format *format,
		      const char *path, const char *whose)
{
	struct err e = { "" };

	if (output_to_file(p, format, path, f->to->access, &e)) {
		tell("%s: %s", whose, e.msg);
		f->broken = true;
		return;
	}
	f->n++;
	outdir_tell_kept(f->to->access);
	print_path(f, path);
}

/* ---- one process ---- */

uint64_t run_files_life(struct run_files *f, pid_t pid)
{
	uint64_t life = 0;

	map_get(&f->lives, (uint64_t)pid, &life);
	map_put(&f->lives, (uint64_t)pid, ++life);
	return life;
}

void run_files_write(struct run_files *f, const struct engine_identity *id, uint64_t life,
		     const char *name, struct prof *p)
{
	char kind[32], whose[96], path[PATH_MAX];

	snprintf(whose, sizeof(whose), "pid %d (%s): %s", id->pid, id->comm, name);
	snprintf(kind, sizeof(kind), "%s", name);
	if (life > 1)
		snprintf(kind, sizeof(kind), "%llu.%s", (unsigned long long)life, name);
	prof_set_kind(p, name);
	for (size_t i = 0; i < f->to->nformats; i++) {
		const struct output_format *format = f->to->formats[i];
		struct err e = { "" };

		if (!outdir_path(f->to->dir, id->comm, id->pid, kind, format->ext, path,
				 sizeof(path), &e)) {
			write_one(f, p, format, path, whose);
			continue;
		}
		tell("%s: %s", whose, e.msg);
		f->broken = true;
	}
}

/* ---- all processes on one page ---- */

bool run_files_paged(const struct run_files *f)
{
	for (size_t i = 0; i < f->to->nformats; i++)
		if (f->to->formats[i] == output_find("flame"))
			return true;
	return false;
}

static int begin_page(struct prof **out, const char *name, const struct prof *p)
{
	const struct prof_header_view h = prof_header(p);
	const struct strtab *strings = prof_strings(p);
	int ret = prof_new(out, NULL);

	for (size_t i = 0; !ret && i < h.ntypes; i++)
		ret = prof_add_type(*out, strtab_get(strings, h.types[i].type),
				    strtab_get(strings, h.types[i].unit), NULL);
	if (!ret && h.default_type)
		ret = prof_set_default_type(*out, strtab_get(strings, h.default_type), NULL);
	if (!ret)
		prof_set_kind(*out, name);
	return ret;
}

void run_files_add(struct run_files *f, struct prof **page, const struct engine_identity *id,
		   const char *name, struct prof *p)
{
	char root[64];
	int ret = *page ? 0 : begin_page(page, name, p);

	snprintf(root, sizeof(root), "%s [%d]", id->comm, id->pid);
	if (!ret)
		ret = prof_graft(*page, p, prof_loss(p), root, NULL);
	if (!ret)
		return;
	tell("no memory for a page of all processes");
	f->broken = true;
	prof_free(TAKE(*page));
}

void run_files_page(struct run_files *f, struct prof *page, const char *name, bool probed)
{
	size_t n = strlen(f->to->dir);
	char path[PATH_MAX];

	if (page && prof_nsamples(page) &&
	    (size_t)snprintf(path, sizeof(path), "%s%shost.%s%s.html", f->to->dir,
			     n && f->to->dir[n - 1] == '/' ? "" : "/", name,
			     probed ? ".probed" : "") < sizeof(path))
		write_one(f, page, output_find("flame"), path, "the page of all processes");
}

void run_files_fini(struct run_files *f)
{
	map_fini(&f->lives);
}
