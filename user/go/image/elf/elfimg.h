/*
 * user/go/image/elf/elfimg.h - an ELF file: segments, sections, symbols, notes, relocations.
 *
 * libelf decodes the headers; every range is checked against the file's size here before
 * it is used. Bytes are read with pread only (a file that shrinks is an error, never a
 * SIGBUS), and nothing large is held: symbol and string tables are streamed.
 * 64-bit little-endian files for amd64 and arm64 only, but for elfimg_open_any().
 */
#ifndef GO_IMAGE_ELF_ELFIMG_H
#define GO_IMAGE_ELF_ELFIMG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

struct elf_seg {
	uint32_t type, flags; /* PT_*, PF_* */
	uint64_t off, vaddr, filesz, memsz, align;
};

struct elf_sec {
	const char *name;
	uint32_t type, link; /* SHT_*; index of the linked section */
	uint64_t flags, addr, off, size;
};

struct elf_sym {
	uint64_t value, size;
	uint8_t type; /* STT_* */
	bool found;
};

struct elfimg;

/*
 * Its cache reads so many bytes of the file at once: a page. What a lookup needs lies far apart, so that with 16 KiB the caches of 20
 * files took 7 MB more for the same hits.
 */
enum { ELFIMG_BLOCK = 4096 };

/*
 * @fd is borrowed until elfimg_free; @path is copied and only used in messages. @blocks
 * bounds the cache over the file: blocks * ELFIMG_BLOCK bytes.
 * -ENOENT: not an ELF file. -ENOTSUP: another class, byte order, machine or type.
 * -EBADMSG: a header or range that lies.
 */
int elfimg_open(int fd, const char *path, size_t blocks, struct elfimg **out, struct err *e);
/*
 * The same for programs of any class, byte order and machine. Of these there are headers, elfimg_mem()
 * and symbols; relocations are not read.
 */
int elfimg_open_any(int fd, const char *path, size_t blocks, struct elfimg **out, struct err *e);
void elfimg_free(struct elfimg *img);
DEFINE_FREEP(struct elfimg, elfimg)

/*
 * Looking into it may take so many ns more, and beside them a share of the time that passes (LIMIT_FILE_SHARE); then all reads
 * fail with -E2BIG. Until then there is no bound: a file can be made so that each question about it takes for ever.
 */
void elfimg_bound(struct elfimg *img, uint64_t more_ns);
/*
 * Something that takes so long is about to be done with bytes of it, beside reading them. Counted by steps of known kinds and not
 * measured, so that the end comes at the same place on a busy machine.
 */
int elfimg_work(struct elfimg *img, uint64_t ns, struct err *e);

/* Memory that it takes; and gives back what its cache has. */
size_t elfimg_bytes(const struct elfimg *img);
void elfimg_shrink(struct elfimg *img);

int elfimg_fd(const struct elfimg *img); /* borrowed */

uint16_t elfimg_machine(const struct elfimg *img); /* EM_X86_64, EM_AARCH64; or any */
bool elfimg_narrow(const struct elfimg *img);	   /* 32 bits */
bool elfimg_big_endian(const struct elfimg *img);
bool elfimg_is_dyn(const struct elfimg *img); /* ET_DYN */

/* All program headers; only ranges of PT_LOAD, PT_DYNAMIC and PT_NOTE are checked. */
const struct elf_seg *elfimg_segs(const struct elfimg *img, size_t *n);
/* The first of that PT_ type, or NULL. */
const struct elf_seg *elfimg_seg(const struct elfimg *img, uint32_t type);
/* NULL when there is no such section (or no section headers at all). */
const struct elf_sec *elfimg_sec(const struct elfimg *img, const char *name);

/*
 * Borrowed memories, valid until elfimg_free. Addresses are link-time addresses except for
 * elfimg_file, which is addressed by file offset and not cached (for long scans).
 * Its reads end with -ECANCELED when somebody waits for us to stop (base/loop/cancel.h).
 * elfimg_mem is the file's content (bytes beyond p_filesz read as zero);
 * elfimg_relmem shows it after the relative relocations of DT_RELA, which linkers other than
 * Go's leave out of the content.
 */
struct mem *elfimg_mem(struct elfimg *img);
struct mem *elfimg_relmem(struct elfimg *img);
struct mem *elfimg_file(struct elfimg *img);

/* File offset of a link-time address and, if @left, the bytes from there to the segment's end. */
int elfimg_offset(const struct elfimg *img, uint64_t vaddr, uint64_t *off, uint64_t *left,
		  struct err *e);

/*
 * .symtab by exact names, one pass for all @n (at most 64): out[i].found says which. The first
 * defined symbol of a name wins. Returns how many; 0 when there is no .symtab.
 */
int elfimg_symbols(struct elfimg *img, const char *const *names, size_t n, struct elf_sym *out,
		   struct err *e);

/*
 * Addresses at which a relative relocation stores the address @value: up to @cap of them, in the
 * table's order. Returns how many, 0 when there is no DT_RELA.
 */
int elfimg_relocs_to(struct elfimg *img, uint64_t value, uint64_t *at, size_t cap, struct err *e);

/* The same for relocations of the type @type (R_X86_64_TPOFF64). */
int elfimg_relocs_of(struct elfimg *img, uint32_t type, uint64_t *at, size_t cap, struct err *e);

/* NT_GNU_BUILD_ID in hex; "" when there is none. */
int elfimg_build_id(struct elfimg *img, char out[65], struct err *e);

#endif
