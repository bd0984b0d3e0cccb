/*
 * user/go/image/buildinfo.c - reads the .go.buildinfo block, or finds the version where there is none.
 */
#include "go/image/buildinfo.h"

#include <ctype.h>
#include <elf.h>

#include "base/cur.h"
#include "base/limits.h"
#include "go/image/elf/scan.h"

static const char magic[14] = "\xff Go buildinf:";

enum {
	FLAG_BIG_ENDIAN = 1,
	FLAG_INLINE = 2,
	ALIGN = 16,
	MARK = 16, /* bytes of the marker on either side of the module text */
	STRINGS_MAX = 1 << 16,
};

/* A version is printable, and begins as all versions do. */
static bool version_ok(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isprint((unsigned char)s[i]))
			return false;
	return n > 4 && (!memcmp(s, "go1.", 4) || (n > 6 && !memcmp(s, "devel ", 6)));
}

static int set_version(struct buildinfo *out, struct mem *m, uint64_t addr, uint64_t len,
		       struct err *e)
{
	int ret;

	if (len >= GOVERSION_MAX)
		return err_set(e, -EBADMSG, "build info: a Go version of %llu bytes",
			       (unsigned long long)len);
	ret = mem_read(m, addr, out->version, (size_t)len, e);
	if (ret)
		return err_wrap(e, ret, "build info: Go version");
	out->version[len] = 0;
	for (size_t i = 0; i < len; i++)
		if (!isprint((unsigned char)out->version[i]))
			return err_set(e, -EBADMSG, "build info: Go version is not text at 0x%llx",
				       (unsigned long long)(addr + i));
	return 0;
}

/* Copies up to the next tab; what does not fit is left out whole. Returns what follows it. */
static const char *take_word(const char *s, const char *end, char *out, size_t cap)
{
	const char *tab = memchr(s, '\t', (size_t)(end - s));
	size_t n = (size_t)((tab ? tab : end) - s);

	if (n < cap) {
		memcpy(out, s, n);
		out[n] = 0;
	}
	return tab ? tab + 1 : end;
}

static bool starts(const char *line, size_t n, const char *with)
{
	return n >= strlen(with) && !memcmp(line, with, strlen(with));
}

/* One line "key\tvalue..." of the module text. */
static void take_line(struct buildinfo *out, const char *line, size_t n)
{
	const char *end = line + n, *rest;

	if (starts(line, n, "path\t")) {
		take_word(line + 5, end, out->path, sizeof(out->path));
	} else if (starts(line, n, "mod\t")) {
		rest = take_word(line + 4, end, out->module, sizeof(out->module));
		take_word(rest, end, out->module_version, sizeof(out->module_version));
	} else if (starts(line, n, "build\t")) {
		/* this line shows that settings were recorded */
		out->race = out->race < 0 ? 0 : out->race;
		if (starts(line, n, "build\tCGO_ENABLED=") && n == 19)
			out->cgo = line[n - 1] == '1';
		else if (starts(line, n, "build\t-race=true"))
			out->race = 1;
	}
}

static int set_modules(struct buildinfo *out, struct mem *m, uint64_t addr, uint64_t len,
		       struct err *e)
{
	CLEANUP(freep) char *text = NULL;
	const char *p, *end;
	int ret;

	if (len < 2 * MARK)
		return 0;
	len -= 2 * MARK;
	if (len > LIMIT_BUILDINFO)
		return err_set(e, -E2BIG, "build info: %llu bytes of module text",
			       (unsigned long long)len);
	text = malloc((size_t)len + 1);
	if (!text)
		return err_set(e, -ENOMEM, "no memory for build info");
	ret = mem_read(m, addr + MARK, text, (size_t)len, e);
	if (ret)
		return err_wrap(e, ret, "build info: module text");
	end = text + len;
	for (p = text; p < end;) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));

		if (!nl)
			nl = end;
		take_line(out, p, (size_t)(nl - p));
		p = nl + 1;
	}
	return 0;
}

/* Reads a length as an unsigned varint at *addr, and moves *addr behind it. */
static int inline_len(struct mem *m, uint64_t *addr, uint64_t *len, struct err *e)
{
	uint8_t buf[10];
	struct cur c = cur_of("build info", buf, 0);

	/* It is read byte by byte, because the block may end with the segment. */
	while (c.len < sizeof(buf)) {
		int ret = mem_u8(m, *addr, &buf[c.len], e);

		if (ret)
			return ret;
		++*addr;
		if (!(buf[c.len++] & 0x80))
			break;
	}
	return cur_uvarint64(&c, "length", len) ? 0 : cur_fail(&c, e);
}

static int read_inline(struct mem *m, uint64_t addr, struct buildinfo *out, struct err *e)
{
	uint64_t len = 0;
	int ret;

	ret = inline_len(m, &addr, &len, e);
	if (!ret)
		ret = set_version(out, m, addr, len, e);
	if (ret)
		return ret;
	addr += len;
	ret = inline_len(m, &addr, &len, e);
	return ret ? ret : set_modules(out, m, addr, len, e);
}

/* A Go string header at @addr. */
static int string_at(struct mem *m, uint64_t addr, uint64_t *ptr, uint64_t *len, struct err *e)
{
	uint64_t w[2];
	int ret = mem_read(m, addr, w, sizeof(w), e);

	*ptr = w[0];
	*len = ret ? 0 : w[1];
	return ret;
}

static int read_pointers(struct mem *m, const uint64_t at[2], struct buildinfo *out, struct err *e)
{
	uint64_t ptr = 0, len = 0;
	int ret;

	ret = string_at(m, at[0], &ptr, &len, e);
	if (!ret)
		ret = set_version(out, m, ptr, len, e);
	if (ret || !at[1])
		return ret;
	ret = string_at(m, at[1], &ptr, &len, e);
	return ret ? ret : set_modules(out, m, ptr, len, e);
}

int buildinfo_at(struct mem *m, uint64_t addr, struct buildinfo *out, struct err *e)
{
	struct buildinfo b = { .cgo = -1, .race = -1 };
	uint8_t head[BUILDINFO_HEADER];
	uint64_t at[2];
	int ret;

	ret = mem_read(m, addr, head, sizeof(head), e);
	if (ret)
		return ret;
	if (memcmp(head, magic, sizeof(magic)))
		return err_set(e, -EBADMSG, "build info at 0x%llx: no magic",
			       (unsigned long long)addr);
	if (head[15] & FLAG_INLINE) {
		ret = read_inline(m, addr + sizeof(head), &b, e);
	} else if (head[14] != 8 || (head[15] & FLAG_BIG_ENDIAN)) {
		return err_set(e, -ENOTSUP, "build info at 0x%llx: pointer size %u, flags %u",
			       (unsigned long long)addr, head[14], head[15]);
	} else {
		memcpy(at, head + 16, sizeof(at));
		ret = read_pointers(m, at, &b, e);
	}
	if (!ret)
		*out = b;
	return ret;
}

static uint64_t at_most(uint64_t bytes)
{
	return bytes < LIMIT_SCAN_BYTES ? bytes : LIMIT_SCAN_BYTES;
}

/* Address of the block in one segment, found by its magic. Returns 1, 0 or an error. */
static int search_block(struct elfimg *img, const struct elf_seg *seg, uint64_t *addr,
			struct err *e)
{
	CLEANUP(scan_fini) struct scan s = { 0 };
	int ret;

	/* It is near the start of the data. Other programs may have more of that than we read. */
	ret = scan_init(&s, elfimg_file(img), seg->off, at_most(seg->filesz), 0, e);
	if (ret)
		return ret;
	while ((ret = scan_next(&s, e)) == 1) {
		uint64_t base = seg->vaddr + (s.at - seg->off);

		for (size_t i = (size_t)(-base & (ALIGN - 1)); i + ALIGN <= s.n; i += ALIGN) {
			if (memcmp(s.buf + i, magic, sizeof(magic)))
				continue;
			*addr = base + i;
			return 1;
		}
	}
	return ret;
}

static int find_block(struct elfimg *img, uint64_t *addr, struct err *e)
{
	const struct elf_sec *sec = elfimg_sec(img, ".go.buildinfo");
	const struct elf_seg *segs;
	size_t n;
	int ret = 0;

	if (sec && sec->type == SHT_PROGBITS && sec->size >= BUILDINFO_HEADER) {
		*addr = sec->addr;
		return 1;
	}
	segs = elfimg_segs(img, &n);
	for (size_t i = 0; i < n && !ret; i++)
		if (segs[i].type == PT_LOAD && (segs[i].flags & PF_W))
			ret = search_block(img, &segs[i], addr, e);
	return ret;
}

static bool string_is_version(struct elfimg *img, uint64_t ptr, uint64_t len, struct buildinfo *out)
{
	char buf[64];
	int minor, patch;

	if (len < 5 || len >= sizeof(buf) ||
	    mem_read(elfimg_mem(img), ptr, buf, (size_t)len, NULL) || !version_ok(buf, (size_t)len))
		return false;
	buf[len] = 0;
	buildinfo_version(buf, &minor, &patch);
	if (minor < 0)
		return false;
	memcpy(out->version, buf, (size_t)len + 1);
	return true;
}

/*
 * Finds the variable runtime.buildVersion without its name: it is a string header in writable
 * data whose string reads as a Go version.
 */
static int search_string(struct elfimg *img, const struct elf_sec *sec, struct buildinfo *out,
			 struct err *e)
{
	CLEANUP(scan_fini) struct scan s = { 0 };
	size_t tries = 0;
	int ret;

	ret = scan_init(&s, elfimg_file(img), sec->off, at_most(sec->size), 8, e);
	if (ret)
		return ret;
	while ((ret = scan_next(&s, e)) == 1) {
		for (size_t i = (size_t)((sec->off - s.at) & 7); i + 16 <= s.n; i += 8) {
			uint64_t w[2];

			memcpy(w, s.buf + i, sizeof(w));
			if (w[1] < 5 || w[1] >= 64 || !w[0] || tries >= STRINGS_MAX)
				continue;
			tries++;
			if (string_is_version(img, w[0], w[1], out))
				return 1;
		}
	}
	return ret;
}

static int version_only(struct elfimg *img, struct buildinfo *out, struct err *e)
{
	static const char *const name = "runtime.buildVersion";
	const struct elf_sec *data = elfimg_sec(img, ".data");
	struct elf_sym sym;
	uint64_t ptr, len;
	int ret;

	*out = (struct buildinfo){ .cgo = -1, .race = -1 };
	ret = elfimg_symbols(img, &name, 1, &sym, e);
	if (ret < 0)
		return ret;
	if (ret && !string_at(elfimg_relmem(img), sym.value, &ptr, &len, NULL) &&
	    string_is_version(img, ptr, len, out))
		return 0;
	ret = data && data->type == SHT_PROGBITS ? search_string(img, data, out, e) : 0;
	if (ret)
		return ret < 0 ? ret : 0;
	return err_set(e, -ENOENT, "no Go build info and no runtime.buildVersion");
}

int buildinfo_find(struct elfimg *img, struct buildinfo *out, struct err *e)
{
	uint64_t addr = 0;
	int ret;

	ret = find_block(img, &addr, e);
	if (ret < 0)
		return ret;
	if (ret) {
		ret = buildinfo_at(elfimg_relmem(img), addr, out, e);
		if (ret || out->version[0])
			return ret;
	}
	return version_only(img, out, e);
}

static bool number(const char **s, int *out)
{
	int v = 0;

	if (!isdigit((unsigned char)**s))
		return false;
	while (isdigit((unsigned char)**s) && v < 100000)
		v = v * 10 + (*(*s)++ - '0');
	*out = v;
	return true;
}

const char *buildinfo_version(const char *version, int *minor, int *patch)
{
	const char *s = version, *x = strstr(version, "X:");

	*minor = *patch = -1;
	if (!strncmp(s, "devel ", 6))
		s += 6;
	if (!strncmp(s, "go1.", 4)) {
		s += 4;
		if (number(&s, minor)) {
			*patch = 0;
			if (*s == '.' && (s++, !number(&s, patch)))
				*patch = 0;
		}
	}
	return x ? x + 2 : version + strlen(version);
}
