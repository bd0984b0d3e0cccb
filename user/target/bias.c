/* user/target/bias.c - how far from its link-time addresses an executable was loaded. */
#include <elf.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/limits.h"
#include "target/target_priv.h"

static int read_exactly(int fd, const char *what, uint64_t off, void *buf, size_t n, struct err *e)
{
	size_t done = 0;

	if (off > (uint64_t)INT64_MAX - n)
		return err_set(e, -EBADMSG, "executable: %s at offset 0x%llx", what,
			       (unsigned long long)off);
	while (done < n) {
		ssize_t got = pread(fd, (char *)buf + done, n - done, (off_t)(off + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_sys(e, "executable: cannot read %s", what);
		if (got == 0)
			return err_set(e, -EBADMSG, "executable: %s at offset 0x%llx is cut off",
				       what, (unsigned long long)off);
		done += (size_t)got;
	}
	return 0;
}

/* Returns 1 when there is one, 0 when there is none. */
static int first_text(int fd, const Elf64_Ehdr *h, Elf64_Phdr *out, struct err *e)
{
	if (h->e_phentsize != sizeof(*out) || h->e_phnum > LIMIT_SEGMENTS)
		return err_set(e, -EBADMSG, "executable: %u program headers of %u bytes",
			       h->e_phnum, h->e_phentsize);
	for (uint64_t i = 0; i < h->e_phnum; i++) {
		uint64_t at;
		int ret;

		if (__builtin_add_overflow(h->e_phoff, i * sizeof(*out), &at))
			return err_set(e, -EBADMSG, "executable: program headers at 0x%llx",
				       (unsigned long long)h->e_phoff);
		ret = read_exactly(fd, "program header", at, out, sizeof(*out), e);
		if (ret)
			return ret;
		if (out->p_type == PT_LOAD && (out->p_flags & PF_X) && out->p_filesz)
			return 1;
	}
	return 0;
}

static bool holds(const struct mapping *m, const Elf64_Phdr *ph)
{
	uint64_t mend, pend;

	return m->exec && !__builtin_add_overflow(m->offset, m->end - m->start, &mend) &&
	       !__builtin_add_overflow(ph->p_offset, ph->p_filesz, &pend) && m->offset < pend &&
	       ph->p_offset < mend;
}

static bool same_file(const struct mapping *m, const struct stat *st)
{
	return m->inode == st->st_ino && m->dev_major == major(st->st_dev) &&
	       m->dev_minor == minor(st->st_dev);
}

const struct mapping *file_mapping(const struct maps *m, const struct stat *st, const char *name)
{
	for (size_t i = 0; i < m->n; i++)
		if (m->at[i].exec && same_file(&m->at[i], st))
			return &m->at[i];
	for (size_t i = 0; i < m->n; i++)
		if (m->at[i].exec && !strcmp(m->at[i].name, name))
			return &m->at[i];
	return NULL;
}

/*
 * Found by device and inode. Where a file system gives stat() another device than the maps (btrfs
 * subvolumes, overlays of old kernels), it is found by name.
 */
static const struct mapping *text_mapping(const struct maps *m, const struct stat *st,
					  const char *exe, const Elf64_Phdr *ph)
{
	for (size_t i = 0; i < m->n; i++)
		if (same_file(&m->at[i], st) && holds(&m->at[i], ph))
			return &m->at[i];
	for (size_t i = 0; i < m->n; i++)
		if (!strcmp(m->at[i].name, exe) && holds(&m->at[i], ph))
			return &m->at[i];
	return NULL;
}

static bool is_elf64(const Elf64_Ehdr *h)
{
	return !memcmp(h->e_ident, ELFMAG, SELFMAG) && h->e_ident[EI_CLASS] == ELFCLASS64 &&
	       h->e_ident[EI_DATA] == ELFDATA2LSB;
}

int bias_find(int exe_fd, const char *exe, const struct maps *m, uint64_t *bias, struct err *e)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), b;
	const struct mapping *at;
	Elf64_Ehdr h = { 0 };
	Elf64_Phdr ph;
	struct stat st;
	int ret;

	ret = read_exactly(exe_fd, "ELF header", 0, &h, sizeof(h), e);
	if (ret == -EBADMSG || (!ret && (!is_elf64(&h) || h.e_type == ET_EXEC))) {
		*bias = 0;
		return 0;
	}
	if (ret)
		return ret;
	ret = first_text(exe_fd, &h, &ph, e);
	if (ret < 0)
		return ret;
	if (ret == 0)
		return err_set(e, -EBADMSG, "executable: no segment of code");
	if (fstat(exe_fd, &st))
		return err_sys(e, "executable: cannot stat it");
	at = text_mapping(m, &st, exe, &ph);
	if (!at)
		return err_set(e, -ENOENT, "the code of %s is not among its mappings", exe);

	/* Its byte at file offset o lives at start + (o - offset), and is linked at
	 * p_vaddr + (o - p_offset): no rounding to pages is needed to compare the two. */
	b = at->start - at->offset + ph.p_offset - ph.p_vaddr;
	if (b % page)
		return err_set(e, -EBADMSG, "executable: segment at 0x%llx, mapped at 0x%llx",
			       (unsigned long long)ph.p_vaddr, (unsigned long long)at->start);
	*bias = b;
	return 0;
}
