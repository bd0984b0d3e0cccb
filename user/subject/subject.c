/* user/subject/subject.c - opens a target, and makes what every profile of it contains. */
#include "subject/subject.h"

#include <stdarg.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/version.h"
#include "subject/binary.h"

void say(const struct collect_opts *o, const char *fmt, ...)
{
	char line[512];
	va_list ap;

	if (!o->say)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	o->say(o->say_arg, line);
}

void say_exposed(struct subject *s, const struct collect_opts *o, const char *helper)
{
	if (o->verbose && !s->exposed_told)
		say(o,
		    "without CAP_SYS_RESOURCE the OOM killer does not spare %s: when memory runs "
		    "out, goprof-bpf is killed before it",
		    helper);
	s->exposed_told = true;
}

/* Makes a name safe as a part of a file name: no '/', no control bytes, no leading dot. */
static void safe_comm(const char *from, char *to, size_t cap)
{
	size_t n = 0;

	for (; *from && n + 1 < cap; from++) {
		unsigned char c = (unsigned char)*from;
		bool bad = c <= ' ' || c == '/' || c >= 0x7f || (c == '.' && !n);

		to[n++] = bad ? '_' : (char)c;
	}
	to[n] = 0;
	if (!n)
		snprintf(to, cap, "unnamed");
}

static void find_vdso(struct subject *s)
{
	for (size_t i = 0; i < s->target->maps.n; i++) {
		const struct mapping *m = &s->target->maps.at[i];

		if (strcmp(m->name, "[vdso]") == 0) {
			s->vdso_lo = m->start;
			s->vdso_hi = m->end;
		}
	}
}

/* Reports what is in the process and will not be in its profiles. */
static void tell_images(const struct subject *s, const struct collect_opts *o)
{
	const struct images *im = &s->images;

	if (im->n > 1)
		say(o, "pid %d has loaded %zu Go plugins", s->target->pid, im->n - 1);
	if (im->runtimes)
		say(o, "warning: pid %d holds %zu more Go runtimes, which are not profiled",
		    s->target->pid, im->runtimes);
	if (im->left_out)
		say(o,
		    "warning: pid %d has loaded %zu more Go files, whose functions stay "
		    "without names",
		    s->target->pid, im->left_out);
}

/* DWARF may have to be read for them, so they are found once for each file. */
static int find_layout(struct subject *s, const struct golayout *known, struct err *e)
{
	struct binary *b = s->images.at[0].shared;
	int ret = 0;

	if (b && b->layout_known) {
		s->layout = b->layout;
		return 0;
	}
	if (known)
		s->layout = *known;
	else
		ret = layout_find(s->bin, &s->layout, e);
	if (ret || !b)
		return ret;
	b->layout = s->layout;
	b->layout_known = true;
	return 0;
}

static int understand(struct subject *s, const struct collect_opts *o, struct binaries *cache,
		      const struct golayout *known, struct err *e)
{
	struct target *t = s->target;
	char newest[LAYOUT_RELEASE];
	int ret;

	ret = images_open(t, cache, &s->images, e);
	if (ret == -ENOENT)
		return err_wrap(e, ret, "pid %d is not a Go program", t->pid);
	if (ret)
		return err_wrap(e, ret, "pid %d", t->pid);
	s->bin = s->images.at[0].bin;
	s->bias = s->images.at[0].bias;
	tell_images(s, o);
	ret = find_layout(s, known, e);
	if (ret)
		return err_wrap(e, ret, "pid %d", t->pid);
	layout_newest(newest);
	if (s->layout.how == LAYOUT_GUESSED)
		say(o,
		    "warning: %s is no Go release known here: offsets are %s, and each kind "
		    "of profile is given only when they can be verified",
		    gobin_info(s->bin)->version, s->layout.from);
	else if (s->layout.newer)
		say(o, "warning: %s is no Go release known here (to %s): offsets are from its %s",
		    gobin_info(s->bin)->version, newest, s->layout.from);
	return 0;
}

int subject_adopt(struct target *t, const struct collect_opts *o, struct binaries *cache,
		  const struct golayout *known, struct subject **out, struct err *e)
{
	CLEANUP(subject_freep) struct subject *s = calloc(1, sizeof(*s));
	int ret;

	if (!s) {
		ret = err_set(e, -ENOMEM, "pid %d: no memory", t->pid);
		target_free(t);
		return ret;
	}
	s->target = t;
	s->attachers = o->attachers ?: &s->own_attachers;
	safe_comm(s->target->comm, s->comm, sizeof(s->comm));
	find_vdso(s);
	ret = understand(s, o, cache, known, e);
	if (ret)
		return ret;
	*out = TAKE(s);
	return 0;
}

int subject_open(pid_t pid, const struct collect_opts *o, struct subject **out, struct err *e)
{
	struct target *t;
	int ret = target_open(pid, &t, e);

	return ret ? ret : subject_adopt(t, o, NULL, NULL, out, e);
}

void subject_free(struct subject *s)
{
	if (!s)
		return;
	bystanders_fini(&s->bystanders);
	images_fini(&s->images);
	target_free(s->target);
	free(s);
}

const char *subject_comm(const struct subject *s)
{
	return s->comm;
}

const char *subject_go_version(const struct subject *s)
{
	return gobin_info(s->bin)->version;
}

int subject_pidfd(const struct subject *s)
{
	return s->target->pidfd;
}

/* Only the package plugin loads Go code, and it is linked only into programs that use it. */
static bool can_load(struct subject *s)
{
	static const char *const names[] = { "plugin.Open", "plugin.open" };
	struct binary *b = s->images.at[0].shared;
	struct gofunc f[ARRAY_LEN(names)] = {};

	if (b && b->plugins_known)
		return b->plugins;
	if (!s->plugins_known) {
		s->plugins_known = true;
		s->plugins = gobin_funcs_named(s->bin, names, ARRAY_LEN(names), f, NULL) > 0;
	}
	if (b) {
		b->plugins = s->plugins;
		b->plugins_known = true;
	}
	return s->plugins;
}

void subject_refresh(struct subject *s)
{
	if (!target_maps(s->target, NULL)) /* the process may have gone; others report that */
		images_refresh(s->target, &s->images);
}

/* Finds plugins that were loaded since; collectors notice that there are more images. */
static void refresh(struct subject *s)
{
	uint64_t now_s = now_ns() / NS_PER_S;

	if (now_s == s->refreshed_s || !can_load(s))
		return;
	s->refreshed_s = now_s;
	subject_refresh(s);
}

bool subject_became(const struct subject *s)
{
	return s->target->became;
}

int subject_alive(struct subject *s, struct err *e)
{
	int ret = target_alive(s->target, e);

	if (!ret)
		refresh(s);
	return ret;
}

int subject_frames(struct subject *s, uint64_t pc, struct goframe *f, size_t cap, struct err *e)
{
	const struct image *img = images_at(&s->images, pc);
	int n = gobin_frames(img->bin, pc - img->bias, f, cap, e);

	for (int i = 0; i < n; i++)
		if (f[i].parent_pc)
			f[i].parent_pc += img->bias;
	return n;
}

int subject_func(struct subject *s, uint64_t pc, struct gofunc *f, const struct image **img)
{
	*img = images_at(&s->images, pc);
	return gobin_func_at((*img)->bin, pc - (*img)->bias, f, NULL);
}

const char *subject_func_name(struct subject *s, uint64_t pc)
{
	const struct image *img;
	struct gofunc f;

	return subject_func(s, pc, &f, &img) ? NULL : gobin_func_name(img->bin, &f);
}

int subject_rtvar(struct subject *s, enum rtvar v, uint64_t *addr, struct err *e)
{
	uint64_t at;
	int ret = rtvar_find(s->bin, v, &at, e);

	at += s->bias;
	if (!ret)
		ret = rtvar_plausible(s->target->mem, &s->layout, gobin_info(s->bin)->minor, v, at,
				      e);
	if (!ret)
		*addr = at;
	return ret;
}

const char *image_path(const struct image *img, char buf[SUBJECT_PATH])
{
	snprintf(buf, SUBJECT_PATH, "/proc/self/fd/%d", img->fd);
	return buf;
}

bool frame_elided(enum func_id id, enum func_id callee)
{
	return id == FUNC_WRAPPER && callee != FUNC_GOPANIC && callee != FUNC_SIGPANIC &&
	       callee != FUNC_PANICWRAP;
}
