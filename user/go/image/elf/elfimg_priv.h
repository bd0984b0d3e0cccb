/* user/go/image/elf/elfimg_priv.h - the inside of an ELF image, shared by elfimg.c and elftab.c. */
#ifndef GO_IMAGE_ELF_ELFIMG_PRIV_H
#define GO_IMAGE_ELF_ELFIMG_PRIV_H

#include <elf.h>

#include "go/image/elf/elfimg.h"

/* The file by offset, with pread. */
struct filemem {
	struct mem mem; /* first: cast back */
	struct elfimg *img;
};

/* Link-time addresses on top of the cached file. */
struct vmem {
	struct mem mem;
	struct elfimg *img;
};

struct elfimg {
	int fd;
	char *path;
	uint64_t size; /* of the file */
	uint16_t machine, type;
	bool any; /* elfimg_open_any() */
	bool narrow, big_endian;
	struct elf_seg *segs;
	struct elf_sec *secs;
	size_t nsegs, nsecs;
	char *names; /* section names, always ends in NUL */
	size_t names_len;
	uint64_t rela, nrela; /* DT_RELA: link-time address, entries */
	/* how many at its beginning are relative and sorted: DT_RELACOUNT */
	uint64_t nrel;
	struct filemem file;	/* uncached */
	struct filemem stream;	/* the same for long scans, within limits */
	uint64_t streamed;	/* bytes read through it */
	uint64_t stream_ns;	/* and how long that took */
	uint64_t work, most;	/* ns, as elfimg_work() counts; most 0: it has no bound */
	uint64_t bound_ns;	/* when that was set */
	struct memcache *cache; /* over file */
	struct vmem mem, rel;
};

/* DT_RELA and DT_RELASZ, checked against the segments. */
int elftab_find_rela(struct elfimg *img, struct err *e);
int elftab_read_rel(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e);

#endif
