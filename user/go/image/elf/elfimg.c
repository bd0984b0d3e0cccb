/* user/go/image/elf/elfimg.c - ELF headers through libelf, and the file as memory. */
#include "go/image/elf/elfimg.h"

#include <gelf.h>
#include <libelf.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/loop/cancel.h"
#include "base/clock.h"
#include "base/limits.h"
#include "go/image/elf/elfimg_priv.h"

enum {
	SECTION_NAMES_MAX = 1 << 22,
	OVERLAP_MAX = 4, /* how many times its own size a file may map in all */
	/*
	 * what elfimg_work() counts: a read, a byte of it, which is decoded then (a run of pc-values has two bytes or more, and takes
	 * 4 ns), and how many segments, and bytes of the file, take a ns more
	 */
	READ_NS = 25,
	READ_BYTE_NS = 2,
	SEGS_NS = 2,
	FILE_NS = 500,
	FILE_BYTES_NS = 4,
};

static void elf_endp(Elf **elf)
{
	if (*elf)
		elf_end(*elf);
}

static bool range_ok(const struct elfimg *img, uint64_t off, uint64_t n)
{
	return off <= img->size && n <= img->size - off;
}

void elfimg_bound(struct elfimg *img, uint64_t more_ns)
{
	if (!img->most)
		img->bound_ns = now_ns();
	img->most += more_ns;
}

int elfimg_work(struct elfimg *img, uint64_t ns, struct err *e)
{
	img->work += ns;
	if (!img->most || img->work <= img->most ||
	    img->work <= img->most + (now_ns() - img->bound_ns) / LIMIT_FILE_SHARE)
		return 0;
	return err_set(e, -E2BIG, "%s: it is made so that looking into it takes more than %.1f s",
		       img->path, (double)img->most / 1e9);
}

static int file_read(struct mem *m, uint64_t off, void *buf, size_t n, struct err *e)
{
	struct elfimg *img = ((struct filemem *)m)->img;
	int ret = elfimg_work(img, FILE_NS + n / FILE_BYTES_NS, e);
	uint8_t *out = buf;

	while (!ret && n) {
		ssize_t got = pread(img->fd, out, n, (off_t)off);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_sys(e, "%s: read at offset 0x%llx", img->path,
				       (unsigned long long)off);
		if (got == 0)
			return err_set(e, -EFAULT, "%s: ends at offset 0x%llx, %zu bytes short",
				       img->path, (unsigned long long)off, n);
		out += got;
		off += (uint64_t)got;
		n -= (size_t)got;
	}
	return ret;
}

/*
 * A file of 8 TB costs its owner nothing when it is sparse, and us hours. What is read of it in
 * long scans has an end, in bytes and, for slow disks and file systems of users (FUSE), in time.
 */
static int stream_read(struct mem *m, uint64_t off, void *buf, size_t n, struct err *e)
{
	struct elfimg *img = ((struct filemem *)m)->img;
	uint64_t start_ns = now_ns();
	int ret;

	if (cancelled())
		return err_set(e, -ECANCELED, "%s: stopped while it was read", img->path);
	if (n > LIMIT_STREAM_BYTES - img->streamed)
		return err_set(e, -E2BIG, "%s: more than %llu GiB of it would have to be read",
			       img->path, LIMIT_STREAM_BYTES >> 30);
	if (img->stream_ns > LIMIT_STREAM_MS * 1000000ull)
		return err_set(e, -ETIMEDOUT, "%s: reading it took more than %d s", img->path,
			       LIMIT_STREAM_MS / 1000);
	ret = file_read(m, off, buf, n, e);
	img->streamed += n;
	img->stream_ns += now_ns() - start_ns;
	return ret;
}

static const struct elf_seg *load_at(const struct elfimg *img, uint64_t vaddr)
{
	for (size_t i = 0; i < img->nsegs; i++) {
		const struct elf_seg *s = &img->segs[i];

		if (s->type == PT_LOAD && vaddr >= s->vaddr && vaddr - s->vaddr < s->memsz)
			return s;
	}
	return NULL;
}

static int image_read(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	struct elfimg *img = ((struct vmem *)m)->img;
	int ret = elfimg_work(img, READ_NS + n * READ_BYTE_NS + img->nsegs / SEGS_NS, e);
	uint8_t *out = buf;

	while (!ret && n) {
		const struct elf_seg *s = load_at(img, addr);
		uint64_t at, have;
		size_t step;

		if (!s)
			return err_set(e, -EFAULT, "%s: no segment holds address 0x%llx", img->path,
				       (unsigned long long)addr);
		at = addr - s->vaddr;
		have = at < s->filesz ? s->filesz - at : s->memsz - at;
		step = n < have ? n : (size_t)have;
		if (at >= s->filesz) {
			memset(out, 0, step); /* bss */
		} else {
			ret = mem_read(memcache_mem(img->cache), s->off + at, out, step, e);
			if (ret)
				return ret;
		}
		out += step;
		addr += step;
		n -= step;
	}
	return ret;
}

int elfimg_offset(const struct elfimg *img, uint64_t vaddr, uint64_t *off, uint64_t *left,
		  struct err *e)
{
	const struct elf_seg *s = load_at(img, vaddr);

	if (!s || vaddr - s->vaddr >= s->filesz)
		return err_set(e, -ENOENT, "%s: no segment of the file holds address 0x%llx",
			       img->path, (unsigned long long)vaddr);
	*off = s->off + (vaddr - s->vaddr);
	if (left)
		*left = s->filesz - (vaddr - s->vaddr);
	return 0;
}

static int check_header(struct elfimg *img, Elf *elf, struct err *e)
{
	uint64_t header;
	GElf_Ehdr h;

	if (elf_kind(elf) != ELF_K_ELF)
		return err_set(e, -ENOENT, "%s: not an ELF file", img->path);
	if (!gelf_getehdr(elf, &h))
		return err_set(e, -EBADMSG, "%s: ELF header: %s", img->path, elf_errmsg(-1));
	img->narrow = h.e_ident[EI_CLASS] == ELFCLASS32;
	img->big_endian = h.e_ident[EI_DATA] == ELFDATA2MSB;
	if (!img->any && (img->narrow || img->big_endian))
		return err_set(e, -ENOTSUP, "%s: class %u, data %u: only 64-bit little endian",
			       img->path, h.e_ident[EI_CLASS], h.e_ident[EI_DATA]);
	if (!img->any && h.e_machine != EM_X86_64 && h.e_machine != EM_AARCH64)
		return err_set(e, -ENOTSUP, "%s: machine %u: only x86-64 (62) and AArch64 (183)",
			       img->path, h.e_machine);
	if (h.e_type != ET_EXEC && h.e_type != ET_DYN)
		return err_set(e, -ENOTSUP, "%s: ELF type %u: only executables (2, 3)", img->path,
			       h.e_type);
	/* libelf treats headers that lie beyond the file as absent. */
	header = img->narrow ? sizeof(Elf32_Shdr) : sizeof(Elf64_Shdr);
	if (h.e_shnum && !range_ok(img, h.e_shoff, h.e_shnum * header))
		return err_set(e, -EBADMSG, "%s: %u section headers at 0x%llx are beyond the file",
			       img->path, h.e_shnum, (unsigned long long)h.e_shoff);
	img->machine = h.e_machine;
	img->type = h.e_type;
	return 0;
}

static int add_seg(struct elfimg *img, const GElf_Phdr *p, struct err *e)
{
	bool ranged = p->p_type == PT_LOAD || p->p_type == PT_DYNAMIC || p->p_type == PT_NOTE;
	size_t i = img->nsegs;

	if (ranged && !range_ok(img, p->p_offset, p->p_filesz))
		return err_set(e, -EBADMSG,
			       "%s: segment %zu: file range 0x%llx+0x%llx is beyond the file's "
			       "0x%llx bytes",
			       img->path, i, (unsigned long long)p->p_offset,
			       (unsigned long long)p->p_filesz, (unsigned long long)img->size);
	if (p->p_type == PT_LOAD &&
	    (p->p_filesz > p->p_memsz || p->p_vaddr + p->p_memsz < p->p_vaddr))
		return err_set(e, -EBADMSG,
			       "%s: segment %zu: 0x%llx file bytes in 0x%llx bytes at 0x%llx",
			       img->path, i, (unsigned long long)p->p_filesz,
			       (unsigned long long)p->p_memsz, (unsigned long long)p->p_vaddr);
	img->segs[img->nsegs++] = (struct elf_seg){
		.type = p->p_type,
		.flags = p->p_flags,
		.off = p->p_offset,
		.vaddr = p->p_vaddr,
		.filesz = p->p_filesz,
		.memsz = p->p_memsz,
		.align = p->p_align,
	};
	return 0;
}

static int read_segs(struct elfimg *img, Elf *elf, struct err *e)
{
	uint64_t mapped = 0;
	GElf_Phdr p;
	size_t n;
	int ret;

	if (elf_getphdrnum(elf, &n))
		return err_set(e, -EBADMSG, "%s: program headers: %s", img->path, elf_errmsg(-1));
	if (!n || n > LIMIT_SEGMENTS)
		return err_set(e, n ? -E2BIG : -EBADMSG, "%s: %zu program headers (1 to %d)",
			       img->path, n, LIMIT_SEGMENTS);
	img->segs = calloc(n, sizeof(*img->segs));
	if (!img->segs)
		return err_set(e, -ENOMEM, "no memory for %zu segments", n);
	for (size_t i = 0; i < n; i++) {
		if (!gelf_getphdr(elf, (int)i, &p))
			return err_set(e, -EBADMSG, "%s: program header %zu: %s", img->path, i,
				       elf_errmsg(-1));
		ret = add_seg(img, &p, e);
		if (ret)
			return ret;
		/*
		 * Searches go through all segments, so bytes that several segments map are
		 * searched several times.
		 */
		mapped += p.p_type == PT_LOAD ? p.p_filesz : 0;
		if (mapped / OVERLAP_MAX > img->size)
			return err_set(e, -EBADMSG,
				       "%s: segments overlap: more than %d times the "
				       "file's bytes",
				       img->path, OVERLAP_MAX);
	}
	return 0;
}

/* Reads the section name table, and keeps it because it is small; 0 bytes when there is none. */
static int read_names(struct elfimg *img, Elf *elf, size_t *len, struct err *e)
{
	GElf_Shdr h;
	size_t idx;

	*len = 0;
	if (elf_getshdrstrndx(elf, &idx))
		return err_set(e, -EBADMSG, "%s: section names: %s", img->path, elf_errmsg(-1));
	if (idx != SHN_UNDEF) {
		if (!gelf_getshdr(elf_getscn(elf, idx), &h) ||
		    !range_ok(img, h.sh_offset, h.sh_size))
			return err_set(e, -EBADMSG, "%s: section %zu (names) is beyond the file",
				       img->path, idx);
		if (h.sh_size > SECTION_NAMES_MAX)
			return err_set(e, -E2BIG, "%s: %llu bytes of section names", img->path,
				       (unsigned long long)h.sh_size);
		*len = (size_t)h.sh_size;
	}
	img->names_len = *len;
	img->names = calloc(1, *len + 1);
	if (!img->names)
		return err_set(e, -ENOMEM, "no memory for section names");
	return *len ? mem_read(&img->file.mem, h.sh_offset, img->names, *len, e) : 0;
}

static int add_sec(struct elfimg *img, const GElf_Shdr *h, size_t names_len, struct err *e)
{
	size_t i = img->nsecs;

	if (h->sh_type != SHT_NOBITS && h->sh_type != SHT_NULL &&
	    !range_ok(img, h->sh_offset, h->sh_size))
		return err_set(e, -EBADMSG,
			       "%s: section %zu: file range 0x%llx+0x%llx is beyond the file's "
			       "0x%llx bytes",
			       img->path, i, (unsigned long long)h->sh_offset,
			       (unsigned long long)h->sh_size, (unsigned long long)img->size);
	if (h->sh_name > names_len || h->sh_addr + h->sh_size < h->sh_addr)
		return err_set(e, -EBADMSG,
			       "%s: section %zu: name offset %u of %zu, address 0x%llx", img->path,
			       i, h->sh_name, names_len, (unsigned long long)h->sh_addr);
	img->secs[img->nsecs++] = (struct elf_sec){
		.name = img->names + h->sh_name,
		.type = h->sh_type,
		.link = h->sh_link,
		.flags = h->sh_flags,
		.addr = h->sh_addr,
		.off = h->sh_offset,
		.size = h->sh_size,
	};
	return 0;
}

static int read_secs(struct elfimg *img, Elf *elf, struct err *e)
{
	size_t n, names_len;
	GElf_Shdr h;
	int ret;

	if (elf_getshdrnum(elf, &n))
		return err_set(e, -EBADMSG, "%s: section headers: %s", img->path, elf_errmsg(-1));
	if (n > LIMIT_SECTIONS)
		return err_set(e, -E2BIG, "%s: %zu section headers", img->path, n);
	if (!n)
		return 0;
	ret = read_names(img, elf, &names_len, e);
	if (ret)
		return ret;
	img->secs = calloc(n, sizeof(*img->secs));
	if (!img->secs)
		return err_set(e, -ENOMEM, "no memory for %zu sections", n);
	for (size_t i = 0; i < n; i++) {
		if (!gelf_getshdr(elf_getscn(elf, i), &h))
			return err_set(e, -EBADMSG, "%s: section header %zu: %s", img->path, i,
				       elf_errmsg(-1));
		ret = add_sec(img, &h, names_len, e);
		if (ret)
			return ret;
	}
	return 0;
}

static int read_headers(struct elfimg *img, struct err *e)
{
	CLEANUP(elf_endp) Elf *elf = NULL;
	struct stat st;
	int ret;

	if (fstat(img->fd, &st))
		return err_sys(e, "%s: stat", img->path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, -ENOENT, "%s: not a regular file", img->path);
	img->size = (uint64_t)st.st_size;
	elf_version(EV_CURRENT);
	elf = elf_begin(img->fd, ELF_C_READ, NULL);
	if (!elf)
		return err_set(e, -ENOENT, "%s: not an ELF file (%s)", img->path, elf_errmsg(-1));
	ret = check_header(img, elf, e);
	if (!ret)
		ret = read_segs(img, elf, e);
	if (!ret)
		ret = read_secs(img, elf, e);
	return ret;
}

static int open_image(int fd, const char *path, size_t blocks, bool any, struct elfimg **out,
		      struct err *e)
{
	CLEANUP(elfimg_freep) struct elfimg *img = calloc(1, sizeof(*img));
	int ret;

	if (img)
		img->path = strdup(path);
	if (!img || !img->path)
		return err_set(e, -ENOMEM, "no memory for an ELF image");
	img->fd = fd;
	img->any = any;
	img->file = (struct filemem){ .mem = { .read = file_read }, .img = img };
	img->stream = (struct filemem){ .mem = { .read = stream_read }, .img = img };
	img->mem = (struct vmem){ .mem = { .read = image_read }, .img = img };
	img->rel = (struct vmem){ .mem = { .read = elftab_read_rel }, .img = img };
	ret = memcache_new(&img->file.mem, ELFIMG_BLOCK, blocks, &img->cache, e);
	if (!ret)
		ret = read_headers(img, e);
	if (!ret && !any)
		ret = elftab_find_rela(img, e);
	if (ret)
		return ret;
	*out = TAKE(img);
	return 0;
}

int elfimg_open(int fd, const char *path, size_t blocks, struct elfimg **out, struct err *e)
{
	return open_image(fd, path, blocks, false, out, e);
}

int elfimg_open_any(int fd, const char *path, size_t blocks, struct elfimg **out, struct err *e)
{
	return open_image(fd, path, blocks, true, out, e);
}

size_t elfimg_bytes(const struct elfimg *img)
{
	return sizeof(*img) + img->names_len + img->nsegs * sizeof(*img->segs) +
	       img->nsecs * sizeof(*img->secs) + memcache_bytes(img->cache);
}

void elfimg_shrink(struct elfimg *img)
{
	memcache_shrink(img->cache);
}

int elfimg_fd(const struct elfimg *img)
{
	return img->fd;
}

void elfimg_free(struct elfimg *img)
{
	if (!img)
		return;
	memcache_free(img->cache);
	free(img->names);
	free(img->secs);
	free(img->segs);
	free(img->path);
	free(img);
}

uint16_t elfimg_machine(const struct elfimg *img)
{
	return img->machine;
}

bool elfimg_narrow(const struct elfimg *img)
{
	return img->narrow;
}

bool elfimg_big_endian(const struct elfimg *img)
{
	return img->big_endian;
}

bool elfimg_is_dyn(const struct elfimg *img)
{
	return img->type == ET_DYN;
}

const struct elf_seg *elfimg_segs(const struct elfimg *img, size_t *n)
{
	*n = img->nsegs;
	return img->segs;
}

const struct elf_seg *elfimg_seg(const struct elfimg *img, uint32_t type)
{
	for (size_t i = 0; i < img->nsegs; i++)
		if (img->segs[i].type == type)
			return &img->segs[i];
	return NULL;
}

const struct elf_sec *elfimg_sec(const struct elfimg *img, const char *name)
{
	for (size_t i = 0; i < img->nsecs; i++)
		if (!strcmp(img->secs[i].name, name))
			return &img->secs[i];
	return NULL;
}

struct mem *elfimg_mem(struct elfimg *img)
{
	return &img->mem.mem;
}

struct mem *elfimg_relmem(struct elfimg *img)
{
	return &img->rel.mem;
}

struct mem *elfimg_file(struct elfimg *img)
{
	return &img->stream.mem;
}
