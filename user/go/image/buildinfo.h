/*
 * user/go/image/buildinfo.h - which Go built this, and what its linker wrote about it.
 *
 * Source: debug/buildinfo and cmd/link/internal/ld/data.go (buildinfo): pointers to strings
 * from Go 1.13, strings in place from 1.18.
 */
#ifndef GO_IMAGE_BUILDINFO_H
#define GO_IMAGE_BUILDINFO_H

#include "go/image/elf/elfimg.h"

enum { GOVERSION_MAX = 256 };

struct buildinfo {
	char version[GOVERSION_MAX]; /* "go1.22.12", with what may follow it */
	char path[1024];	     /* main package; "" unknown */
	char module[1024];	     /* main module's path; "" unknown (GOPATH builds have none) */
	char module_version[256];    /* "v1.2.3", "(devel)"; "" unknown */
	int race; /* setting -race: 1, 0, -1 no settings recorded (before 1.18) */
	int cgo;  /* setting CGO_ENABLED: 1, 0, -1 not recorded (before 1.18) */
};

enum { BUILDINFO_HEADER = 32 };

/* The block at @addr of @m (relocated). */
int buildinfo_at(struct mem *m, uint64_t addr, struct buildinfo *out, struct err *e);

/*
 * Finds the block by its section, else by a search in writable segments; where there is none,
 * finds the version alone from runtime.buildVersion. -ENOENT when all of that fails.
 */
int buildinfo_find(struct elfimg *img, struct buildinfo *out, struct err *e);

/*
 * Parses "go1.22.12 X:rangefunc" into 22, 12, "rangefunc", and "devel go1.23-abc" into 23, 0.
 * Both numbers are -1 when it names no Go 1 release. Returns where the experiments start in
 * @version, or its end.
 */
const char *buildinfo_version(const char *version, int *minor, int *patch);

#endif
