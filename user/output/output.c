/* user/output/output.c - the table of formats, and writing a file whole or not at all. */
#include "output/output.h"

#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "output/format.h"
#include "profile/utf8.h"

static const struct output_format formats[] = {
	{ "pprof", "pb.gz", pprof_write },
	{ "folded", "folded", folded_write },
	{ "text", "txt", text_write },
	{ "flame", "html", flame_write },
};

const struct output_format *output_at(size_t i)
{
	return i < ARRAY_LEN(formats) ? &formats[i] : NULL;
}

const struct output_format *output_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(formats); i++)
		if (!strcmp(formats[i].name, name))
			return &formats[i];
	return NULL;
}

/* ---- shared by the formats ---- */

bool output_loss(struct prof *p, enum loss_kind k, char *buf, size_t cap)
{
	uint64_t n = prof_loss(p)->n[k];

	if (n)
		snprintf(buf, cap, "loss: %" PRIu64 " %s", n, loss_text(k));
	return n != 0;
}

size_t output_main_type(const struct prof *p)
{
	struct prof_header_view h = prof_header(p);

	for (size_t i = 0; h.default_type && i < h.ntypes; i++)
		if (h.types[i].type == h.default_type)
			return i;
	return h.ntypes ? h.ntypes - 1 : 0;
}

void output_clean(const char *s, char also, FILE *f)
{
	size_t left = strlen(s), len;
	bool shown;

	for (; left; left -= len, s += len) {
		len = utf8_next(s, left, &shown);
		if (shown && (!also || *s != also))
			fwrite(s, 1, len, f);
		else
			putc('_', f);
	}
}

int output_check(FILE *f, struct err *e)
{
	if (!ferror(f))
		return 0;
	return errno ? err_sys(e, "write") : err_set(e, -EIO, "write: failed");
}

/* ---- files ---- */

/*
 * The file under construction. The directory may be writable by everybody and the writer may be
 * root. So everything happens relative to the opened directory, under an unguessable name that
 * must be new: no planted link is followed, and no other file is touched.
 */
struct output_temp {
	int dir;
	FILE *f;
	char name[32]; /* "" when there is nothing to unlink */
	struct output_access *access;
};

enum { TEMP_TRIES = 16 };

static void temp_fini(struct output_temp *t)
{
	t->access->temp = NULL;
	if (t->f)
		fclose(t->f);
	if (t->name[0])
		unlinkat(t->dir, t->name, 0);
	if (t->dir >= 0)
		close(t->dir);
}

static int temp_create(struct output_temp *t, struct err *e)
{
	for (int i = 0; i < TEMP_TRIES; i++) {
		uint64_t random;
		int fd;

		if (getrandom(&random, sizeof(random), 0) != sizeof(random))
			return err_sys(e, "random number for a temporary name");
		snprintf(t->name, sizeof(t->name), ".goprof.%016" PRIx64, random);
		/* temp_give() sets the mode that is wanted, once the contents are there. */
		fd = openat(t->dir, t->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			    0600);
		if (fd >= 0) {
			t->access->temp = t;
			t->f = fdopen(fd, "w");
			if (t->f)
				return 0;
			close(fd);
			return err_sys(e, "open stream");
		}
		t->name[0] = 0;
		if (errno != EEXIST)
			return err_sys(e, "create temporary file");
	}
	return err_set(e, -EEXIST, "no unused temporary name in %d tries", TEMP_TRIES);
}

/* May @uid make files in this directory, and keep them from others? */
static bool is_theirs(const struct stat *dir, uid_t uid)
{
	return dir->st_uid == uid || ((dir->st_mode & S_ISVTX) && (dir->st_mode & S_IWOTH));
}

/* All by descriptor: what lies under these names may be exchanged by others at any time. */
static int temp_give(struct output_temp *t, struct err *e)
{
	struct output_access *access = t->access;
	int fd = fileno(t->f);
	struct stat dir;

	if (access->uid && fstat(t->dir, &dir))
		return err_sys(e, "directory");
	if (access->uid && !is_theirs(&dir, access->uid))
		access->kept = true;
	else if (access->uid && fchown(fd, access->uid, access->gid))
		return err_sys(e, "change owner");
	if (access->mode && fchmod(fd, access->mode))
		return err_sys(e, "change mode");
	return 0;
}

void output_abandon(const struct output_access *access)
{
	const struct output_temp *t = access->temp;

	if (t && t->name[0])
		unlinkat(t->dir, t->name, 0);
}

static int temp_open(struct output_temp *t, char *dir, struct err *e)
{
	t->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t->dir < 0)
		return err_sys(e, "open directory %s", dir);
	return temp_create(t, e);
}

/* Flush and close, minding every error, then give the file its name. */
static int temp_commit(struct output_temp *t, const char *name, struct err *e)
{
	FILE *f = TAKE(t->f);
	bool bad = fflush(f) != 0 || ferror(f);
	int r = bad ? err_sys(e, "write") : 0;

	if (fclose(f) != 0 && !bad)
		r = err_sys(e, "close");
	if (r < 0)
		return r;
	if (renameat(t->dir, t->name, t->dir, name) < 0)
		return err_sys(e, "rename");
	t->name[0] = 0;
	return 0;
}

/* Names of open descriptors, devices, and our own FIFOs: nothing there could be replaced. */
static bool is_stream(const char *path)
{
	struct stat st;

	if (!strcmp(path, "/dev/stdout") || !strncmp(path, "/dev/fd/", 8) ||
	    !strncmp(path, "/proc/self/fd/", 14))
		return true;
	if (lstat(path, &st))
		return false;
	return S_ISCHR(st.st_mode) || (S_ISFIFO(st.st_mode) && st.st_uid == geteuid());
}

static int write_stream(const char *path, output_writer *write, void *arg, struct err *e)
{
	/* Opened anew, a file that stdout goes to would be written from its beginning on. */
	CLEANUP(closep)
	int fd = !strcmp(path, "/dev/stdout") ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3) :
						open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
	int r;

	if (!f)
		return err_sys(e, "open");
	fd = -1;
	r = write(arg, f, e);
	if (r >= 0 && (fflush(f) || ferror(f)))
		r = err_sys(e, "write");
	if (fclose(f) && r >= 0)
		r = err_sys(e, "close");
	return r;
}

static int write_whole(const char *path, struct output_access *access, output_writer *write,
		       void *arg, struct err *e)
{
	struct output_access private = { 0 };
	CLEANUP(temp_fini)
	struct output_temp t = { .dir = -1, .access = access ? access : &private };
	CLEANUP(freep) char *for_dir = strdup(path);
	CLEANUP(freep) char *for_name = strdup(path);
	int r;

	if (!for_dir || !for_name)
		return err_set(e, -ENOMEM, "no memory");
	r = temp_open(&t, dirname(for_dir), e);
	if (r >= 0)
		r = write(arg, t.f, e);
	if (r >= 0)
		r = temp_give(&t, e);
	return r < 0 ? r : temp_commit(&t, basename(for_name), e);
}

int output_file(const char *path, struct output_access *access, output_writer *write, void *arg,
		struct err *e)
{
	int r = is_stream(path) ? write_stream(path, write, arg, e) :
				  write_whole(path, access, write, arg, e);

	return r < 0 ? err_wrap(e, r, "%s", path) : 0;
}

struct formatted {
	struct prof *p;
	const struct output_format *fmt;
};

static int write_formatted(void *arg, FILE *f, struct err *e)
{
	struct formatted *x = arg;

	return x->fmt->write(x->p, f, e);
}

int output_to_file(struct prof *p, const struct output_format *fmt, const char *path,
		   struct output_access *access, struct err *e)
{
	struct formatted x = { p, fmt };
	int r = write_whole(path, access, write_formatted, &x, e);

	return r < 0 ? err_wrap(e, r, "%s", path) : 0;
}
