/* user/go/runtime/types/rttype.c - type descriptors, in the file or on the target's heap. */
#include "go/runtime/types/rttype.h"

#include "base/cur.h"
#include "base/limits.h"

enum {
	HEAD_MAX = 128,	    /* bytes of a descriptor's head that are looked at: 48 to Go 1.27 */
	WORD = 8,	    /* behind the head, in words: what the type is made of */
	NAME_HEAD = 1 + 3,  /* flags, and the length of a name that needs three bytes at most */
	FLAG_EXTRA_STAR = 2 /* the name has a '*' in front that does not belong to this type */
};

/* Source: reflect.Kind. From 1.27 on the byte has nothing else in it; before, it had two flags. */
enum {
	KIND_MASK = 31,
	KIND_FIRST = 1,
	KIND_ARRAY = 17,
	KIND_CHAN = 18,
	KIND_MAP = 21,
	KIND_POINTER = 22,
	KIND_SLICE = 23,
	KIND_LAST = 26,
};

/*
 * The words behind the head. A map's are key and element.
 * Source: internal/abi/type.go: ArrayType, ChanType, MapType, PtrType, SliceType.
 */
enum { ELEM = 0, DIR = 1, MAP_ELEM = 1, LEN = 2 };

enum { CHAN_RECV = 1, CHAN_SEND = 2, CHAN_BOTH = 3 };

struct head {
	uint8_t tflag, kind;
	uint32_t str;
	uint64_t size, ptrdata;
};

struct out {
	char *buf;
	size_t cap, n;
};

static int put(struct out *o, const char *s, size_t n, struct err *e)
{
	if (n >= o->cap - o->n)
		return err_set(e, -E2BIG, "a type's name is longer than %zu bytes", o->cap - 1);
	memcpy(o->buf + o->n, s, n);
	o->n += n;
	o->buf[o->n] = 0;
	return 0;
}

static int puts_to(struct out *o, const char *s, struct err *e)
{
	return put(o, s, strlen(s), e);
}

static const struct rttype_module *module_of(const struct rttypes *t, uint64_t addr)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct rttype_module *m = &t->module[i];

		if (m->types < m->etypes && addr - m->bias >= m->types &&
		    addr - m->bias < m->etypes)
			return m;
	}
	return NULL;
}

static bool head_field(struct cur *c, const struct golayout *l, enum layout_field f, size_t n,
		       uint64_t *out)
{
	const uint8_t *p;

	*out = 0;
	if (l->off[f] < 0 || !cur_seek(c, "head", (size_t)l->off[f]) || !cur_take(c, "head", n, &p))
		return false;
	memcpy(out, p, n);
	return true;
}

/* Reads the head; a descriptor that contradicts itself is refused. */
static int head_read(const struct golayout *l, struct mem *m, uint64_t addr, struct head *out,
		     struct err *e)
{
	int32_t bytes = l->off[LAYOUT_type_sizeof];
	uint64_t size, ptrdata, tflag, kind, str;
	uint8_t b[HEAD_MAX];
	struct cur c;
	int ret;

	if (bytes < 0 || bytes > HEAD_MAX)
		return err_set(e, -ENOTSUP, "the descriptors of types are not known of this Go");
	if (addr & (WORD - 1))
		return err_set(e, -EBADMSG, "no type is at 0x%llx: it is not aligned",
			       (unsigned long long)addr);
	ret = mem_read(m, addr, b, (size_t)bytes, e);
	if (ret)
		return ret;
	c = cur_of("type", b, (size_t)bytes);
	if (!head_field(&c, l, LAYOUT_type_size, 8, &size) ||
	    !head_field(&c, l, LAYOUT_type_ptrdata, 8, &ptrdata) ||
	    !head_field(&c, l, LAYOUT_type_tflag, 1, &tflag) ||
	    !head_field(&c, l, LAYOUT_type_kind, 1, &kind) ||
	    !head_field(&c, l, LAYOUT_type_str, 4, &str))
		return err_set(e, -ENOTSUP, "the descriptors of types are not known of this Go");
	kind &= KIND_MASK;
	if (kind < KIND_FIRST || kind > KIND_LAST || ptrdata > size)
		return err_set(e, -EBADMSG, "no type is at 0x%llx: kind %llu, %llu of %llu bytes",
			       (unsigned long long)addr, (unsigned long long)kind,
			       (unsigned long long)ptrdata, (unsigned long long)size);
	*out = (struct head){ .tflag = (uint8_t)tflag,
			      .kind = (uint8_t)kind,
			      .str = (uint32_t)str,
			      .size = size,
			      .ptrdata = ptrdata };
	return 0;
}

/* ---- named in the file ---- */

/* Type names have no control characters, because tags are quoted. */
static bool is_text(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
			return false;
	return n > 0;
}

/*
 * A name: flags, its length as a varint, its bytes.
 * Source: internal/abi/type.go, Name; runtime/type.go, name, Go 1.17 to 1.20.
 */
static int name_at(const struct rttype_module *m, uint64_t addr, bool star, struct out *o,
		   struct err *e)
{
	uint64_t left = m->etypes - addr;
	size_t n = left < NAME_HEAD ? (size_t)left : NAME_HEAD, skip = star ? 1 : 0;
	uint8_t b[NAME_HEAD], flags;
	struct cur c = cur_of("type name", b, n);
	uint32_t len;
	char *to;
	int ret = mem_read(m->mem, addr, b, n, e);

	if (ret)
		return ret;
	if (!cur_u8(&c, "flags", &flags) || !cur_uvarint32(&c, "length", &len))
		return cur_fail(&c, e);
	if (len > LIMIT_NAME || len > left - c.off || len <= skip)
		return err_set(e, -EBADMSG, "the name at 0x%llx claims %u bytes",
			       (unsigned long long)addr, len);
	if (len - skip >= o->cap - o->n)
		return err_set(e, -E2BIG, "a type's name has %u bytes", len);
	to = o->buf + o->n;
	ret = mem_read(m->mem, addr + c.off + skip, to, len - skip, e);
	if (!ret && !is_text(to, len - skip))
		ret = err_set(e, -EBADMSG, "the name at 0x%llx is no text",
			      (unsigned long long)addr);
	if (!ret)
		o->n += len - skip;
	o->buf[o->n] = 0;
	return ret;
}

static int name_in_file(const struct golayout *l, const struct rttype_module *m, uint64_t addr,
			struct out *o, struct err *e)
{
	struct head h;
	int ret = head_read(l, m->mem, addr, &h, e);

	if (ret)
		return ret;
	if (!h.str || h.str >= m->etypes - m->types)
		return err_set(e, -EBADMSG, "the type at 0x%llx has its name at +0x%x",
			       (unsigned long long)addr, h.str);
	return name_at(m, m->types + h.str, h.tflag & FLAG_EXTRA_STAR, o, e);
}

/* ---- made by package reflect ---- */

static int name_put(const struct rttypes *t, uint64_t addr, unsigned int depth, struct out *o,
		    struct err *e);

/* The i-th word behind the head. */
static int word_at(const struct rttypes *t, uint64_t addr, unsigned int i, uint64_t *out,
		   struct err *e)
{
	return mem_u64(t->live, addr + (uint64_t)t->layout->off[LAYOUT_type_sizeof] + i * WORD, out,
		       e);
}

static int part(const struct rttypes *t, uint64_t addr, unsigned int i, unsigned int depth,
		struct out *o, struct err *e)
{
	uint64_t elem;
	int ret = word_at(t, addr, i, &elem, e);

	return ret ? ret : name_put(t, elem, depth + 1, o, e);
}

static int array_put(const struct rttypes *t, uint64_t addr, unsigned int depth, struct out *o,
		     struct err *e)
{
	char s[32];
	uint64_t len;
	int ret = word_at(t, addr, LEN, &len, e);

	if (ret)
		return ret;
	snprintf(s, sizeof(s), "[%llu]", (unsigned long long)len);
	ret = puts_to(o, s, e);
	return ret ? ret : part(t, addr, ELEM, depth, o, e);
}

/* As reflect.ChanOf does it: an element that begins with "<-" is put into parentheses. */
static int chan_put(const struct rttypes *t, uint64_t addr, unsigned int depth, struct out *o,
		    struct err *e)
{
	uint64_t dir;
	size_t at;
	int ret = word_at(t, addr, DIR, &dir, e);

	if (!ret && dir != CHAN_RECV && dir != CHAN_SEND && dir != CHAN_BOTH)
		ret = err_set(e, -EBADMSG, "the channel type at 0x%llx has direction %llu",
			      (unsigned long long)addr, (unsigned long long)dir);
	if (!ret)
		ret = puts_to(o,
			      dir == CHAN_RECV ? "<-chan " :
			      dir == CHAN_SEND ? "chan<- " :
						 "chan ",
			      e);
	at = o->n;
	if (!ret)
		ret = part(t, addr, ELEM, depth, o, e);
	if (ret || dir != CHAN_BOTH || strncmp(o->buf + at, "<-", 2))
		return ret;
	if (o->n + 2 >= o->cap)
		return err_set(e, -E2BIG, "a type's name is longer than %zu bytes", o->cap - 1);
	memmove(o->buf + at + 1, o->buf + at, o->n - at);
	o->buf[at] = '(';
	o->n++;
	return puts_to(o, ")", e);
}

static int map_put_name(const struct rttypes *t, uint64_t addr, unsigned int depth, struct out *o,
			struct err *e)
{
	int ret = puts_to(o, "map[", e);

	if (!ret)
		ret = part(t, addr, ELEM, depth, o, e);
	if (!ret)
		ret = puts_to(o, "]", e);
	return ret ? ret : part(t, addr, MAP_ELEM, depth, o, e);
}

static int name_made(const struct rttypes *t, uint64_t addr, unsigned int depth, struct out *o,
		     struct err *e)
{
	struct head h;
	int ret = head_read(t->layout, t->live, addr, &h, e);

	if (ret)
		return ret;
	switch (h.kind) {
	case KIND_POINTER:
	case KIND_SLICE:
		ret = puts_to(o, h.kind == KIND_SLICE ? "[]" : "*", e);
		return ret ? ret : part(t, addr, ELEM, depth, o, e);
	case KIND_ARRAY:
		return array_put(t, addr, depth, o, e);
	case KIND_CHAN:
		return chan_put(t, addr, depth, o, e);
	case KIND_MAP:
		return map_put_name(t, addr, depth, o, e);
	default: /* the name of a struct or func type does not follow from one word */
		return err_set(e, -ENOENT, "the type at 0x%llx was made at run time, kind %u",
			       (unsigned long long)addr, h.kind);
	}
}

static int name_put(const struct rttypes *t, uint64_t addr, unsigned int depth, struct out *o,
		    struct err *e)
{
	const struct rttype_module *m = module_of(t, addr);

	if (depth > LIMIT_TYPE_DEPTH)
		return err_set(e, -E2BIG, "a type is made of others, %u deep", depth);
	return m ? name_in_file(t->layout, m, addr - m->bias, o, e) :
		   name_made(t, addr, depth, o, e);
}

int rttype_name(const struct rttypes *t, uint64_t addr, char *buf, size_t cap, struct err *e)
{
	struct out o = { .buf = buf, .cap = cap };

	BUG_ON(!cap);
	buf[0] = 0;
	return name_put(t, addr, 0, &o, e);
}

bool rttype_linked(const struct rttypes *t, uint64_t addr)
{
	return module_of(t, addr) != NULL;
}

int rttype_shape(const struct rttypes *t, uint64_t addr, struct rttype_shape *out, struct err *e)
{
	const struct rttype_module *m = module_of(t, addr);
	struct head h;
	int ret = m ? head_read(t->layout, m->mem, addr - m->bias, &h, e) :
		      head_read(t->layout, t->live, addr, &h, e);

	if (!ret)
		*out = (struct rttype_shape){ .size = h.size,
					      .ptrdata = h.ptrdata,
					      .kind = h.kind };
	return ret;
}

/* ---- shapes ---- */

static const char shape[] = "go.shape.";

static bool is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || (unsigned char)c >= 0x80;
}

static bool begins(const char *s, const char *with)
{
	return !strncmp(s, with, strlen(with));
}

/* Returns what is behind the bracket that closes the one at @s, or the end. */
static char *behind_brackets(char *s)
{
	unsigned int depth = 0;

	for (; *s; s++) {
		if (strchr("[({", *s))
			depth++;
		else if (strchr("])}", *s) && !--depth)
			return s + 1;
	}
	return s;
}

/*
 * Returns what is behind prefixes that only lead to an element type: stars, brackets, "chan".
 * NULL when none does.
 */
static char *behind_prefix(char *s)
{
	static const char *const before[] = { "*", "chan<- ", "<-chan ", "chan " };

	for (size_t i = 0; i < ARRAY_LEN(before); i++)
		if (begins(s, before[i]))
			return s + strlen(before[i]);
	return *s == '[' || begins(s, "map[") ? behind_brackets(strchr(s, '[')) : NULL;
}

/* Returns what is behind the type at @s. */
static char *behind_type(char *s)
{
	char *next;

	for (;;) {
		next = behind_prefix(s);
		if (next) {
			s = next;
			continue;
		}
		if (!begins(s, "func("))
			break;
		s = behind_brackets(s + 4);
		if (*s != ' ') /* it has no result */
			return s;
		if (*++s == '(')
			return behind_brackets(s);
	}
	if (begins(s, "struct {") || begins(s, "interface {"))
		return behind_brackets(strchr(s, '{'));
	while (is_name(*s) || *s == '.' || *s == '/')
		s++;
	return *s == '[' ? behind_brackets(s) : s;
}

/* Up to Go 1.19 a shape is followed by the number of its type parameter: "_0". */
static char *behind_index(char *s)
{
	char *end = s + 1;

	if (*s != '_')
		return s;
	while (*end >= '0' && *end <= '9')
		end++;
	return end > s + 1 ? end : s;
}

/*
 * Puts @with, which is not longer, in place of what lies from @s to @end; returns what is behind
 * it.
 */
static char *replace(char *s, const char *end, const char *with)
{
	size_t n = strlen(with);

	memcpy(s, with, n);
	memmove(s + n, end, strlen(end) + 1);
	return s + n;
}

/* Is there a '[' at @s that follows a name? "map" alone is no such name. */
static bool has_arguments(const char *name, const char *s)
{
	size_t before = (size_t)(s - name);

	if (*s != '[' || !before || !is_name(s[-1]))
		return false;
	return before < 3 || !begins(s - 3, "map[") || (before > 3 && is_name(s[-4]));
}

/* Each part is looked at once, because a name may be long, and designed to be slow. */
void rttype_hide_shapes(char *name)
{
	char *s = name, *next = strstr(name, shape);

	while (next) {
		char *end = has_arguments(name, s) ? behind_brackets(s) : s + 1;

		if (s < next && end <= next) {
			s = end;
			continue;
		}
		s = s < next ? replace(s, end, "[...]") :
			       replace(s, behind_index(behind_type(s + strlen(shape))), "?");
		next = strstr(s, shape);
	}
}
