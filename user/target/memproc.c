/*
 * user/target/memproc.c - struct mem over a live process.
 *
 * A descriptor of /proc/PID/mem belongs to the address space that was there when it was
 * opened, not to the pid: after exec or exit it reads nothing, so the bytes of another
 * program are never taken for the target's (mem_open() and mem_rw() in fs/proc/base.c).
 * process_vm_readv asks by pid, costs the same (0.6 us for 8 bytes, 1.5 us for 16 KiB,
 * Linux 6.18), and stands in where the file cannot be opened. Neither stops the process.
 * Many small pieces are asked for by pid, up to 1,024 in one call: whether the process is
 * still the one that the file belongs to is then looked at before and after.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/uio.h>

#include "target/target_priv.h"

enum { PIECES = 1024 }; /* UIO_MAXIOV */

struct memproc {
	struct mem mem; /* first: casts back */
	pid_t pid;
	int fd; /* -1: by process_vm_readv */
};

static ssize_t read_some(const struct memproc *p, uint64_t addr, void *buf, size_t n)
{
	struct iovec to = { .iov_base = buf, .iov_len = n };
	struct iovec from = { .iov_base = (void *)(uintptr_t)addr, .iov_len = n };

	if (addr > INT64_MAX) { /* pread takes no such offset, and no process has memory there */
		errno = EFAULT;
		return -1;
	}
	if (p->fd >= 0)
		return pread(p->fd, buf, n, (off_t)addr);
	return process_vm_readv(p->pid, &to, 1, &from, 1, 0);
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

static int memproc_read(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	const struct memproc *p = (const struct memproc *)m;
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

	if (!memproc_alive(m, 0))
		return err_set(e, -ESRCH, "pid %d exited or became another program", p->pid);
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
	if (!memproc_alive(m, 0))
		return err_set(e, -ESRCH, "pid %d exited or became another program", p->pid);
	return 0;
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
	p->fd = openat(proc_fd, "mem", O_RDONLY | O_CLOEXEC);
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

void memproc_free(struct mem *m)
{
	struct memproc *p = (struct memproc *)m;

	if (!p)
		return;
	closep(&p->fd);
	free(p);
}

bool memproc_alive(struct mem *m, uint64_t some_addr)
{
	const struct memproc *p = (const struct memproc *)m;
	char byte;

	/* Through the file a bad address is an error; zero bytes mean that the memory is gone. */
	if (p->fd >= 0)
		return pread(p->fd, &byte, 1, (off_t)(some_addr & INT64_MAX)) != 0;
	return kill(p->pid, 0) == 0 || errno != ESRCH;
}
