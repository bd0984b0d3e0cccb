/*
 * user/go/image/gobin_tls.c - where a thread keeps its g, as an offset from the thread pointer.
 *
 * Go's own linker gives it the last 8 bytes below the thread pointer. A foreign linker lays
 * out a TLS block that C code shares; the slot is the symbol runtime.tlsg in it, or, without
 * symbols, what the runtime's own assembly uses. A library (c-shared) does not know where
 * its block will be: the runtime's assembly loads the offset from a word that the dynamic
 * linker fills in (R_X86_64_TPOFF64).
 * On arm64 runtime.load_g says it (arch/arm64_tls.h).
 * Source: cmd/link/internal/ld (tlsg), runtime/tls_amd64.s, runtime/asm_amd64.s, Go 1.16 to 1.27.
 */
#include <elf.h>

#include "arch/arm64_tls.h"
#include "go/image/gobin_priv.h"

enum {
	TLS_G_AMD64 = -8,
	BODY_MAX = 256, /* bytes of a function that are looked at */
	OP_FS = 0x64,
	TPOFFS_MAX = 64,
};

/* REX.W mov between memory and a register. */
static bool is_mov(const uint8_t *p)
{
	return (p[0] & 0xfb) == 0x48 && (p[1] == 0x8b || p[1] == 0x89);
}

/* The offset in an access to %fs:offset, direct or through a register loaded just before. */
static bool tls_offset(const uint8_t *p, size_t n, int64_t lowest, int32_t *out)
{
	int32_t imm;

	for (size_t i = 0; i + 12 <= n; i++) {
		bool direct = p[i] == OP_FS && is_mov(p + i + 1) && (p[i + 3] & 0xc7) == 0x04 &&
			      p[i + 4] == 0x25;
		/* mov $imm32, %reg; mov %fs:(%reg), ... */
		bool loaded = p[i] == 0x48 && p[i + 1] == 0xc7 && (p[i + 2] & 0xf8) == 0xc0 &&
			      p[i + 7] == OP_FS && is_mov(p + i + 8) &&
			      (p[i + 10] & 0xc7) == (p[i + 2] & 7);

		if (!direct && !loaded)
			continue;
		memcpy(&imm, p + i + (direct ? 5 : 3), sizeof(imm));
		if (imm < 0 && imm >= lowest && !(imm & 7)) {
			*out = imm;
			return true;
		}
	}
	return false;
}

static const char *const g_users[] = { "runtime.gogo", "gogo", "runtime.mcall",
				       "runtime.systemstack", "runtime.asmcgocall" };

static int decode_tls(struct gobin *b, int64_t lowest, int32_t *tls_g, struct err *e)
{
	struct gofunc f[ARRAY_LEN(g_users)];
	int ret = gobin_funcs_named(b, g_users, ARRAY_LEN(g_users), f, e);

	for (size_t i = 0; ret > 0 && i < ARRAY_LEN(g_users); i++) {
		uint64_t n = f[i].end - f[i].entry;
		uint8_t buf[BODY_MAX];

		if (n > sizeof(buf))
			n = sizeof(buf);
		if (f[i].entry && !mem_read(gobin_mem(b), f[i].entry, buf, (size_t)n, NULL) &&
		    tls_offset(buf, (size_t)n, lowest, tls_g))
			return 0;
	}
	return ret < 0 ? ret : 0;
}

/* Does code of the runtime that handles g load the word at @addr (mov addr(%rip), %reg)? */
static bool loads(struct gobin *b, uint64_t addr)
{
	struct gofunc f[ARRAY_LEN(g_users)];
	int ret = gobin_funcs_named(b, g_users, ARRAY_LEN(g_users), f, NULL);

	for (size_t i = 0; ret > 0 && i < ARRAY_LEN(g_users); i++) {
		uint64_t n = f[i].end - f[i].entry;
		uint8_t buf[BODY_MAX];

		if (n > sizeof(buf))
			n = sizeof(buf);
		if (!f[i].entry || mem_read(gobin_mem(b), f[i].entry, buf, (size_t)n, NULL))
			continue;
		for (size_t k = 0; k + 7 <= n; k++) {
			int32_t disp;

			memcpy(&disp, buf + k + 3, sizeof(disp));
			if ((buf[k] & 0xfb) == 0x48 && buf[k + 1] == 0x8b &&
			    (buf[k + 2] & 0xc7) == 0x05 &&
			    f[i].entry + k + 7 + (uint64_t)(int64_t)disp == addr)
				return true;
		}
	}
	return false;
}

/* Reads what the dynamic linker wrote for a library. Before it has written, nothing is known. */
static int library_tls(struct gobin *b, struct mem *live, uint64_t bias, int32_t *tls_g,
		       struct err *e)
{
	uint64_t at[TPOFFS_MAX], off;
	int n = elfimg_relocs_of(b->img, R_X86_64_TPOFF64, at, TPOFFS_MAX, e);

	if (n < 0)
		return n;
	for (int i = 0; i < n; i++) {
		if (n > 1 && !loads(b, at[i]))
			continue;
		if (!live || mem_u64(live, at[i] + bias, &off, NULL))
			break;
		if ((int64_t)off < 0 && (int64_t)off > INT32_MIN && !(off & 7))
			*tls_g = (int32_t)off;
		break;
	}
	return 0;
}

/* Without runtime/cgo, or where nothing was understood, g is looked for in its register alone. */
static int arm64_tls(struct gobin *b, struct mem *live, uint64_t bias, int32_t *tls_g,
		     struct err *e)
{
	static const char *const name = "runtime.load_g";
	struct arm64_load_g l;
	uint8_t buf[BODY_MAX], iscgo = 0;
	uint64_t off, n;
	struct gofunc f;
	int ret = gobin_funcs_named(b, &name, 1, &f, e);

	*tls_g = 0;
	if (ret <= 0)
		return ret;
	n = f.end - f.entry < sizeof(buf) ? f.end - f.entry : sizeof(buf);
	if (mem_read(gobin_mem(b), f.entry, buf, (size_t)n, NULL) ||
	    !arm64_load_g(buf, (size_t)n, f.entry, &l) ||
	    mem_read(gobin_mem(b), l.iscgo, &iscgo, 1, NULL) || !iscgo)
		return 0;
	off = (uint64_t)l.off;
	if (l.got && (!live || mem_u64(live, l.got + bias, &off, NULL)))
		return 0;
	if (off && off < INT32_MAX && !(off & 7))
		*tls_g = (int32_t)off;
	return 0;
}

int gobin_find_tls(struct gobin *b, struct mem *live, uint64_t bias, int32_t *tls_g, struct err *e)
{
	static const char *const name = "runtime.tlsg";
	const struct elf_seg *tls = elfimg_seg(b->img, PT_TLS);
	struct elf_sym sym;
	uint64_t block;
	int ret;

	if (elfimg_machine(b->img) != EM_X86_64)
		return arm64_tls(b, live, bias, tls_g, e);
	*tls_g = TLS_G_AMD64;
	if (elfimg_is_dyn(b->img) && !elfimg_seg(b->img, PT_INTERP))
		return library_tls(b, live, bias, tls_g, e);
	if (!tls || tls->memsz <= 8)
		return 0;
	if (tls->align > 4096 || tls->memsz > INT32_MAX / 2 || (tls->align & (tls->align - 1)))
		return err_set(e, -EBADMSG, "thread-local block of 0x%llx bytes, alignment 0x%llx",
			       (unsigned long long)tls->memsz, (unsigned long long)tls->align);
	block = tls->align ? (tls->memsz + tls->align - 1) & -tls->align : tls->memsz;
	ret = elfimg_symbols(b->img, &name, 1, &sym, e);
	if (ret < 0)
		return ret;
	if (ret && sym.type == STT_TLS && sym.value <= tls->memsz - 8)
		*tls_g = (int32_t)((int64_t)sym.value - (int64_t)block);
	else
		ret = decode_tls(b, -(int64_t)block, tls_g, e);
	return ret < 0 ? ret : 0;
}
