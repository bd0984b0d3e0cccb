/* user/subject/images.c - find the Go files among a process' mappings and open them. */
#include "subject/binary.h"
#include "subject/images.h"

#include <sys/sysmacros.h>
#include <unistd.h>

static void image_fini(struct image *i)
{
	if (i->shared) {
		binary_put(i->shared);
	} else {
		gobin_free(i->bin);
		if (i->fd >= 0)
			close(i->fd);
	}
	*i = (struct image){ .fd = -1 };
}

void images_fini(struct images *im)
{
	for (size_t i = 0; i < im->n; i++) {
		if (im->cache && !im->at[i].shared)
			binaries_give_back(im->cache, im->at[i].id);
		image_fini(&im->at[i]);
	}
	im->n = 0;
}

static void image_text(struct image *i)
{
	const struct gobin_info *info = gobin_info(i->bin);

	i->lo = info->text + i->bias;
	i->hi = info->etext + i->bias;
}

static bool same_file(const struct image *i, const struct mapping *m)
{
	return i->inode == m->inode && i->dev == makedev(m->dev_major, m->dev_minor);
}

const struct image *images_of(const struct images *im, const struct mapping *m)
{
	for (size_t i = 0; m->inode && i < im->n; i++)
		if (same_file(&im->at[i], m))
			return &im->at[i];
	return NULL;
}

const struct image *images_at(const struct images *im, uint64_t pc)
{
	for (size_t i = 1; i < im->n; i++)
		if (pc >= im->at[i].lo && pc < im->at[i].hi)
			return &im->at[i];
	return &im->at[0];
}

/* Every Go runtime allocates, so a file without the function is of no use. */
static bool has_runtime(struct gobin *b)
{
	static const char *const name = "runtime.mallocgc";
	struct gofunc f = {};

	return gobin_funcs_named(b, &name, 1, &f, NULL) > 0;
}

/*
 * Can this file start a runtime? A plugin has copies of the runtime's functions, too, but no way
 * to start them: no library entry (c-shared) and no program entry. Source: cmd/link/internal/ld,
 * -buildmode=plugin; runtime/rt0_linux_amd64.s.
 */
static bool can_start(struct gobin *b)
{
	static const char *const names[] = { "_rt0_amd64_linux_lib", "_rt0_arm64_linux_lib",
					     "_rt0_amd64_linux", "_rt0_arm64_linux" };
	struct gofunc f[ARRAY_LEN(names)] = {};

	return gobin_funcs_named(b, names, ARRAY_LEN(names), f, NULL) > 0;
}

/* Returns 0; -ENOENT when the file that is mapped at @m is not a Go file. */
static int image_open(struct target *t, const struct images *im, const struct mapping *m,
		      struct image *out, struct err *e)
{
	struct image i = { .fd = -1,
			   .dev = makedev(m->dev_major, m->dev_minor),
			   .inode = m->inode };
	int ret = target_open_lib(t, m, gobin_is_go, &i.fd, e);

	if (!ret)
		ret = target_bias(t, i.fd, m->name, &i.bias, e);
	if (!ret)
		ret = (im->cache ? gobin_open_shared : gobin_open)(i.fd, m->name, t->mem, i.bias,
								   &i.bin, e);
	if (!ret) {
		image_text(&i);
		*out = i;
		return 0;
	}
	image_fini(&i);
	return ret;
}

/* The executable's file is understood anew, or was for another process that runs it. */
static int open_file(struct target *t, struct binaries *cache, struct image *i, struct err *e)
{
	int ret;

	if (cache) {
		ret = binary_get(cache, t, &i->shared, e);
		if (ret)
			return ret;
		i->bin = i->shared->bin;
		i->fd = i->shared->fd;
		i->id = i->shared->id;
		return 0;
	}
	i->fd = dup(t->exe_fd);
	if (i->fd < 0)
		return err_sys(e, "pid %d: its executable", t->pid);
	ret = gobin_open(i->fd, t->exe, t->mem, t->bias, &i->bin, e);
	if (ret)
		image_fini(i);
	return ret;
}

static int open_exe(struct target *t, struct images *im, struct err *e)
{
	struct image i = { .fd = -1, .bias = t->bias };
	const struct mapping *m = target_exe_mapping(t);
	int ret = open_file(t, im->cache, &i, e);

	if (ret)
		return ret;
	if (m) {
		i.dev = makedev(m->dev_major, m->dev_minor);
		i.inode = m->inode;
	}
	image_text(&i);
	im->at[im->n++] = i;
	return 0;
}

/*
 * Is this code of a file that was not looked at before? The mappings of one file follow each
 * other.
 */
static bool is_new(const struct target *t, const struct images *im, size_t at)
{
	const struct mapping *m = &t->maps.at[at];

	if (!m->exec || !m->inode || *m->name != '/' || images_of(im, m))
		return false;
	if (!strncmp(m->name, "/dev/", 5)) /* opening a device may have an effect */
		return false;
	for (size_t i = at; i-- > 0 && t->maps.at[i].inode == m->inode;)
		if (t->maps.at[i].exec)
			return false;
	return true;
}

/*
 * A library is loaded at an address of its own, and some of it is known only there: it is not shared. False: there is no number,
 * and under that of another file its rules would be the other's.
 */
static bool number(const struct images *im, struct image *i)
{
	i->id = im->cache ? binaries_number(im->cache) : (uint16_t)im->n;
	return i->id || !im->cache;
}

/*
 * Opens the first Go library that contains a runtime, for a program that is not a Go program
 * itself.
 */
static int open_library(struct target *t, struct images *im, struct err *e)
{
	struct err why = {};

	for (size_t i = 0; i < t->maps.n; i++) {
		struct image img;
		int ret;

		if (!is_new(t, im, i))
			continue;
		ret = image_open(t, im, &t->maps.at[i], &img, &why);
		if (ret == -ENOENT)
			continue;
		if (ret)
			return err_set(e, ret, "%s", why.msg);
		if (!has_runtime(img.bin) || !can_start(img.bin)) {
			image_fini(&img);
			continue;
		}
		if (!number(im, &img)) {
			image_fini(&img);
			return err_set(e, -E2BIG, "more than %d different files at once",
				       UINT16_MAX);
		}
		im->at[im->n++] = img;
		return 0;
	}
	return -ENOENT;
}

size_t images_refresh(struct target *t, struct images *im)
{
	size_t added = 0;

	im->left_out = im->runtimes = 0;
	for (size_t i = 0; i < t->maps.n; i++) {
		struct image img;
		int ret;

		if (!is_new(t, im, i))
			continue;
		ret = image_open(t, im, &t->maps.at[i], &img, NULL);
		if (ret == -ENOENT)
			continue;
		if (ret || im->n == IMAGES_MAX) {
			im->left_out++;
		} else if (can_start(img.bin)) {
			im->runtimes++;
		} else if (!number(im, &img)) {
			im->left_out++;
		} else {
			gobin_adopt_version(img.bin, im->at[0].bin);
			im->at[im->n++] = img;
			added++;
			continue;
		}
		if (!ret)
			image_fini(&img);
	}
	return added;
}

int images_open(struct target *t, struct binaries *cache, struct images *out, struct err *e)
{
	struct images im = { .cache = cache };
	struct err not_go = {};
	int ret = open_exe(t, &im, &not_go);

	if (ret == -ENOENT)
		ret = open_library(t, &im, e);
	else if (ret)
		return err_set(e, ret, "%s", not_go.msg);
	if (ret == -ENOENT)
		return err_set(e, ret, "%s", not_go.msg);
	if (ret)
		return ret;
	images_refresh(t, &im);
	*out = im;
	return 0;
}
