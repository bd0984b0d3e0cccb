/* user/target/write/poke.c - open, check, read, write one word. */
#include "target/write/poke.h"

#include <fcntl.h>

#include <sys/stat.h>

#include "base/sys/caps.h"
#include "base/limits.h"
#include "target/procfs.h"

struct poke {
	pid_t pid;
	int fd;
	uint64_t addr;
};

/*
 * This reads the maps into a list of its own, so that what others borrowed from t->maps stays
 * valid.
 */
static int check_page(struct target *t, uint64_t addr, struct err *e)
{
	struct maps maps = { 0 };
	const struct mapping *m;
	bool good;
	int ret = target_maps_now(t, &maps, e);

	if (ret)
		return ret;
	m = maps_find(&maps, addr);
	good = m && m->read && m->write && !m->exec && m->end - addr >= sizeof(uint64_t);
	maps_fini(&maps);
	if (!good)
		return err_set(e, -EBADMSG, "pid %d: 0x%llx is not in data it may write", t->pid,
			       (unsigned long long)addr);
	return 0;
}

static int refused(const struct poke *p, const char *what, struct err *e)
{
	if (errno == EPERM || errno == EACCES)
		return denied(p->pid, what, e);
	return err_sys(e, "pid %d: not possible to %s at 0x%llx", p->pid, what,
		       (unsigned long long)p->addr);
}

/*
 * The file belongs to its owner, with mode 0600. So beside the right to ptrace another user's
 * process, opening it takes the right to open another user's file. process_vm_writev() would not
 * need that, but it goes by pid.
 */
static int not_opened(struct target *t, const struct poke *p, struct err *e)
{
	static const int caps[] = { CAP_SYS_PTRACE, CAP_DAC_OVERRIDE };
	char what[96];
	struct stat st;
	int code = errno;

	if (!fstatat(t->proc_fd, "mem", &st, 0) && st.st_uid != geteuid() &&
	    (code == EACCES || code == EPERM) &&
	    !(caps_have(CAP_SYS_PTRACE) && caps_have(CAP_DAC_OVERRIDE))) {
		snprintf(what, sizeof(what), "pid %d: not allowed to write its memory", t->pid);
		return caps_refused(e, what, caps, ARRAY_LEN(caps));
	}
	errno = code;
	return refused(p, "write its memory", e);
}

int poke_open(struct target *t, uint64_t addr, struct poke **out, struct err *e)
{
	CLEANUP(poke_freep) struct poke *p = calloc(1, sizeof(*p));
	struct err why = { "" };
	uint64_t v;
	int ret, bad;

	if (!p)
		return err_set(e, -ENOMEM, "no memory for a word");
	p->pid = t->pid;
	p->addr = addr;
	p->fd = -1;
	if (addr % sizeof(v) || addr > INT64_MAX)
		return err_set(e, -EBADMSG, "pid %d: 0x%llx is no aligned address", t->pid,
			       (unsigned long long)addr);
	p->fd = openat(t->proc_fd, "mem", O_RDWR | O_CLOEXEC);
	if (p->fd < 0 && (errno == ENOENT || errno == ESRCH))
		return err_set(e, -ESRCH, "pid %d exited", t->pid);
	if (p->fd < 0)
		return not_opened(t, p, e);
	bad = check_page(t, addr, &why);
	/*
	 * This comes after both checks: the memory is that of the program that was opened and
	 * understood.
	 */
	ret = target_alive(t, e);
	if (!ret && bad)
		return err_set(e, bad, "%s", why.msg);
	if (!ret)
		ret = poke_get(p, &v, e);
	if (ret)
		return ret;
	*out = TAKE(p);
	return 0;
}

void poke_free(struct poke *p)
{
	if (!p)
		return;
	closep(&p->fd);
	free(p);
}

static int transfer(struct poke *p, bool write, uint64_t *v, struct err *e)
{
	ssize_t n;

	do
		n = write ? pwrite(p->fd, v, sizeof(*v), (off_t)p->addr) :
			    pread(p->fd, v, sizeof(*v), (off_t)p->addr);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		return err_set(e, -ESRCH, "pid %d exited or became another program", p->pid);
	if (n != sizeof(*v))
		return refused(p, write ? "write its memory" : "read its memory", e);
	return 0;
}

int poke_get(struct poke *p, uint64_t *v, struct err *e)
{
	uint64_t got;
	int ret = transfer(p, false, &got, e);

	if (!ret)
		*v = got;
	return ret;
}

int poke_put(struct poke *p, uint64_t from, uint64_t to, struct err *e)
{
	uint64_t v;
	int ret = poke_get(p, &v, e);

	if (ret)
		return ret;
	if (v != from)
		return err_set(e, -EAGAIN, "pid %d: the word at 0x%llx is %llu, not %llu", p->pid,
			       (unsigned long long)p->addr, (unsigned long long)v,
			       (unsigned long long)from);
	v = to;
	ret = transfer(p, true, &v, e);
	if (!ret)
		ret = poke_get(p, &v, e);
	if (!ret && v != to)
		return err_set(e, -EIO,
			       "pid %d: the word at 0x%llx reads %llu after %llu was written",
			       p->pid, (unsigned long long)p->addr, (unsigned long long)v,
			       (unsigned long long)to);
	return ret;
}

int poke_fd(const struct poke *p)
{
	return p->fd;
}
