/* user/symbolize/subject_prof.c - the comments and mappings that every profile of one target has. */
#include "symbolize/subject_prof.h"

#include <sys/sysmacros.h>

#include "base/version.h"

/*
 * Is this a mapping of the executable's own file? Some file systems (btrfs, overlays) show
 * another device in /proc/PID/maps than fstat does; there the name decides.
 */
static bool is_exe(const struct subject *s, const struct mapping *m)
{
	const struct file_id *exe = &s->target->exe_id;

	return m->inode == exe->ino && (makedev(m->dev_major, m->dev_minor) == exe->dev ||
					!strcmp(m->name, s->target->exe));
}

static int add_mapping(struct subject *s, struct prof *p, const struct mapping *m, struct err *e)
{
	const struct image *img = images_of(&s->images, m);
	struct prof_mapping pm = {
		.start = m->start,
		.limit = m->end,
		.offset = m->offset,
		.filename = m->name,
		.build_id = img ? gobin_info(img->bin)->build_id : "",
	};

	return prof_mapping(p, &pm, e);
}

int subject_mapping(struct subject *s, struct prof *p, uint64_t pc, struct err *e)
{
	const struct mapping *m = maps_find(&s->target->maps, pc);

	return m && m->exec ? add_mapping(s, p, m, e) : 0;
}

/*
 * Go lists every executable mapping, except unnamed anonymous ones. Tools take the first one for
 * the program itself, so that must come first. Source: runtime/pprof/proto.go.
 */
static int add_mappings(struct subject *s, struct prof *p, struct err *e)
{
	for (int main_pass = 1; main_pass >= 0; main_pass--) {
		for (size_t i = 0; i < s->target->maps.n; i++) {
			const struct mapping *m = &s->target->maps.at[i];
			int ret;

			if (!m->exec || (!m->inode && !*m->name) || is_exe(s, m) != main_pass)
				continue;
			ret = add_mapping(s, p, m, e);
			if (ret < 0)
				return ret;
		}
	}
	return 0;
}

int subject_prof(struct subject *s, const char *source, struct prof **out, struct err *e)
{
	CLEANUP(prof_freep) struct prof *p = NULL;
	const struct gobin_info *info = gobin_info(s->bin);
	int ret;

	ret = prof_new(&p, e);
	if (ret)
		return ret;
	ret = prof_comment(p, e, "goprof-bpf %s", GOPROF_VERSION);
	if (!ret)
		ret = prof_comment(p, e, "target: %s pid %d, %s%s", s->comm, s->target->pid,
				   info->version, info->has_symtab ? "" : ", stripped");
	if (!ret)
		ret = prof_comment(p, e, "source: %s", source);
	if (!ret)
		ret = prof_comment(p, e, "layout: %s", s->layout.from);
	if (!ret)
		ret = add_mappings(s, p, e);
	if (ret)
		return ret;
	if (s->layout.how == LAYOUT_GUESSED)
		prof_loss(p)->n[LOSS_LAYOUT_GUESSED] = 1;
	*out = TAKE(p);
	return 0;
}
