/*
 * user/go/image/gobin.h - one Go executable, understood. The front door of go/.
 *
 * All addresses here are link-time addresses ("vaddr": what the file's program headers
 * say). A live process adds its load bias; callers subtract it before they ask.
 *
 * Nothing is expanded: the pclntab is read where it lies, through a bounded block cache,
 * so that a 100 MB binary costs the pages that are asked for. Strings handed out are
 * interned and borrowed until gobin_free.
 */
#ifndef GO_IMAGE_GOBIN_H
#define GO_IMAGE_GOBIN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "arch/arch.h"
#include "base/err.h"
#include "base/mem.h"

/*
 * The function ids that matter to us, the same for every Go version (the runtime's own
 * numbers move; go/image/tables/pclntab.c maps them). Source: internal/abi/symtab.go (1.21+),
 * runtime/symtab.go (before).
 */
enum func_id {
	FUNC_NORMAL,
	FUNC_ABORT,
	FUNC_ASMCGOCALL,
	FUNC_ASYNCPREEMPT,
	FUNC_CGOCALLBACK,
	FUNC_GOEXIT,
	FUNC_GOPANIC,
	FUNC_MCALL,
	FUNC_MORESTACK,
	FUNC_MSTART,
	FUNC_PANICWRAP,
	FUNC_RT0_GO,
	FUNC_SIGPANIC,
	FUNC_SYSTEMSTACK,
	FUNC_SYSTEMSTACK_SWITCH,
	FUNC_WRAPPER,
	FUNC_OTHER, /* special to the runtime, not to us */
};

struct gobin_info {
	const char *version; /* "go1.22.12", as the binary says; borrowed */
	int minor,
		patch; /* 22, 12; patch 0 for "go1.21"; -1, -1 when not understood ("devel ...") */
	const char *experiments; /* what follows " X:" or "-X:" in the version; "" mostly */
	const char *path;	 /* main package path from build info; "" when unknown */
	const char *module, *module_version; /* main module, likewise */
	enum arch_id arch;
	bool pie; /* ET_DYN */
	bool cgo; /* build setting CGO_ENABLED and external linking, or a PT_INTERP + runtime/cgo */
	/*
	 * A plugin: its code reaches the runtime through the dynamic linker. The runtime's
	 * variables in its own file are not in use; those of the program that opened it are.
	 */
	bool plugin;
	bool dynamic; /* has an interpreter (PT_INTERP): a dynamic linker starts it */
	int race;     /* built with -race: 1, 0, -1 not recorded (before 1.18) */
	bool has_symtab, has_dwarf;
	char build_id[65];    /* GNU build id in hex, "" when there is none */
	uint64_t text, etext; /* runtime.text, runtime.etext: [text, etext) holds all Go code */
	/*
	 * Offset of g from the thread pointer (amd64: fs base), e.g. -8. arm64: 0 where g is in a register
	 * alone, that is without cgo.
	 */
	int32_t tls_g;
};

/* One physical function. */
struct gofunc {
	uint64_t entry, end; /* [entry, end): end is the next function's entry */
	uint64_t func_addr;  /* vaddr of its _func record: private to go/ */
	enum func_id id;
	uint8_t flags; /* funcflag bits, 0 before go1.17: 1 top frame, 2 SP write, 4 asm */
};

/* One logical frame. */
struct goframe {
	const char *func; /* as runtime/pprof of that Go version writes it */
	const char *file;
	uint32_t line;
	uint32_t start_line; /* 0 before go1.20 */
	enum func_id id;
	/*
	 * For an inlined call: entry + parentPc, the pc at which its caller is looked up (the
	 * runtime's virtual return pc is this + 1). 0 for the physical function, which comes last.
	 */
	uint64_t parent_pc;
};

struct gobin;

/*
 * Understand the executable behind @fd (borrowed until gobin_free; only pread is used, so a
 * file that shrinks under us is an error, not a SIGBUS). @path is for messages.
 *
 * @live (may be NULL) is the running process' memory and @bias its load bias: with them
 * moduledata is read after relocation, which PIE and externally linked binaries need when
 * they are stripped.
 *
 * -ENOENT: not a Go binary (no build info and no pclntab). -ENOTSUP: Go, but an arch or a
 * pclntab we do not know. -EBADMSG: lying bytes, named with where and what.
 */
int gobin_open(int fd, const char *path, struct mem *live, uint64_t bias, struct gobin **out,
	       struct err *e);

/*
 * The same for one of many, whose file anybody may have made: what it takes is bounded in time (LIMIT_FILE_WORK, elfimg_bound()) and
 * in memory. What is beyond is -E2BIG, as if the file ended there. gobin_one_more(): one more process runs it.
 */
int gobin_open_shared(int fd, const char *path, struct mem *live, uint64_t bias, struct gobin **out,
		      struct err *e);
void gobin_one_more(struct gobin *b);

/*
 * For a file that does not say which Go made it (a plugin, up to Go 1.20 or so): takes the
 * version of @host, which has loaded it. Go loads only plugins of its own version.
 */
void gobin_adopt_version(struct gobin *b, const struct gobin *host);
void gobin_free(struct gobin *b);

/* Memory that it takes, and gives back the part that is only a cache of its file. */
size_t gobin_bytes(const struct gobin *b);
void gobin_shrink(struct gobin *b);

/*
 * Memory that goes with the binary, zero at first, for what one folder above (go/runtime/vars/rtvar.c) finds out of it and need not find out
 * again. NULL: there is none.
 */
void *gobin_keep(struct gobin *b, size_t bytes);

/*
 * Was the file behind @fd made by Go? It is judged by its sections' names alone: that is cheap,
 * and no proof.
 */
bool gobin_is_go(int fd);
/* The same of any class, byte order and machine (elfimg_open_any). */
bool gobin_is_go_any(int fd);
/* Of such a file: does it have what debuggers need alone, as objcopy --only-keep-debug makes it? */
bool gobin_is_debug_only(int fd);
/*
 * Could it be Go's? Also where its section headers were removed, so that it must be searched. This
 * is cheap. *dynamic: it has an interpreter.
 */
bool gobin_may_be_go(int fd, bool *dynamic);
DEFINE_FREEP(struct gobin, gobin)

const struct gobin_info *gobin_info(const struct gobin *b);

/* The file itself, for what is not mapped (DWARF); borrowed, only for pread. */
int gobin_fd(const struct gobin *b);

/* The file as memory at its link-time addresses (unrelocated); borrowed. */
struct mem *gobin_mem(struct gobin *b);

/* The physical function that holds @pc. -ENOENT outside of Go text. */
int gobin_func_at(struct gobin *b, uint64_t pc, struct gofunc *out, struct err *e);

/*
 * By its exact pclntab name ("runtime.mallocgc"). Where an ABI wrapper shares the name, the
 * larger body. -ENOENT when there is none. One scan of the table for all @n names:
 * out[i].entry is 0 for the ones that are missing; returns how many were found.
 */
int gobin_funcs_named(struct gobin *b, const char *const *names, size_t n, struct gofunc *out,
		      struct err *e);

/* Name of a physical function as in pclntab; borrowed. NULL when its bytes lie. */
const char *gobin_func_name(struct gobin *b, const struct gofunc *f);

/*
 * Bytes between sp and the return address at @pc (the pcsp table): on amd64 the return
 * address is at sp + delta. -ENOENT outside of Go text.
 */
int gobin_spdelta(struct gobin *b, uint64_t pc, int32_t *delta, struct err *e);

/*
 * The logical frames at @pc (for a return address pass it minus one), innermost first. Returns
 * their number (>= 1, <= @cap); -ENOENT outside of Go text. Where inlined calls form a cycle
 * (seen in binaries of Go 1.27; the runtime would never return from it), each is given once, and
 * then the physical function.
 */
int gobin_frames(struct gobin *b, uint64_t pc, struct goframe *f, size_t cap, struct err *e);

/* How many functions, and the i-th in address order. For tests and tools. */
size_t gobin_nfuncs(const struct gobin *b);
int gobin_func_index(struct gobin *b, size_t i, struct gofunc *out, struct err *e);

/*
 * The address of an ELF symbol (.symtab), by exact name; -ENOENT when stripped or absent.
 */
int gobin_symbol(struct gobin *b, const char *name, uint64_t *addr, uint64_t *size, struct err *e);

/* File offset of a link-time address, for uprobes. -ENOENT when no segment holds it. */
int gobin_file_offset(struct gobin *b, uint64_t vaddr, uint64_t *off, struct err *e);

/*
 * The fields of moduledata that others need, link-time addresses. bss and data bound the
 * runtime's variables; zero when moduledata could not be found.
 */
struct gomodule {
	uint64_t addr; /* of runtime.firstmoduledata */
	uint64_t text, etext, noptrdata, enoptrdata, data, edata, bss, ebss, noptrbss, enoptrbss;
	uint64_t types, etypes, gofunc;
};
const struct gomodule *gobin_module(const struct gobin *b);

#endif
