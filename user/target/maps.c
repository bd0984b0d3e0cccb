/*
 * user/target/maps.c - the text of /proc/PID/maps.
 *
 * Source: show_map_vma() in fs/proc/task_mmu.c: "start-end rwxp offset major:minor inode",
 * blanks up to a column, name. Regions ascend and never overlap (proc.rst).
 */
#include "base/limits.h"
#include "base/vec.h"
#include "target/target_priv.h"

struct maps_vec {
	VEC(struct mapping) v;
};

static void maps_vecp(struct maps_vec *m)
{
	vec_fini(&m->v);
}

static bool flag(struct cur *c, const char *what, char set, bool *out)
{
	const uint8_t *p;

	if (!cur_take(c, what, 1, &p))
		return false;
	if (*p != (uint8_t)set && *p != '-') {
		c->bad = what;
		return false;
	}
	*out = *p == (uint8_t)set;
	return true;
}

static bool dev_number(struct cur *c, const char *what, uint32_t *out)
{
	uint64_t v;

	if (!text_u64(c, what, 16, &v))
		return false;
	if (v > UINT32_MAX) {
		c->bad = what;
		return false;
	}
	*out = (uint32_t)v;
	return true;
}

static bool numbers(struct cur *c, struct mapping *m)
{
	return text_u64(c, "start", 16, &m->start) && text_char(c, "'-'", '-') &&
	       text_u64(c, "end", 16, &m->end) && text_char(c, "a blank", ' ') &&
	       flag(c, "r", 'r', &m->read) && flag(c, "w", 'w', &m->write) &&
	       flag(c, "x", 'x', &m->exec) && cur_skip(c, "p or s", 1) &&
	       text_char(c, "a blank", ' ') && text_u64(c, "offset", 16, &m->offset) &&
	       text_char(c, "a blank", ' ') && dev_number(c, "major", &m->dev_major) &&
	       text_char(c, "':'", ':') && dev_number(c, "minor", &m->dev_minor) &&
	       text_char(c, "a blank", ' ') && text_u64(c, "inode", 10, &m->inode);
}

/*
 * The name, as the file system has it. The kernel escapes a newline as \012 and nothing
 * else, not even the backslash (seq_path(m, path, "\n")), so any other \ooo is the name's
 * own text. Returns one past the NUL that was put.
 */
static char *unescape(char *to, const char *s, size_t n)
{
	static const char newline[] = "\\012";

	while (n) {
		if (n >= 4 && !memcmp(s, newline, 4)) {
			*to++ = '\n';
			s += 4;
			n -= 4;
			continue;
		}
		*to++ = *s++;
		n--;
	}
	*to++ = 0;
	return to;
}

static size_t cut_deleted(const char *s, size_t n, bool *deleted)
{
	static const char mark[] = " (deleted)";
	size_t len = sizeof(mark) - 1;

	*deleted = n > len && !memcmp(s + n - len, mark, len);
	return *deleted ? n - len : n;
}

/* @c stands behind the inode; the line ends at @end (its newline). */
static void name_of(struct cur *c, size_t end, struct mapping *m, char **names)
{
	const char *s;
	size_t n;

	while (c->off < end && c->buf[c->off] == ' ')
		c->off++;
	s = (const char *)c->buf + c->off;
	n = cut_deleted(s, end - c->off, &m->deleted);
	m->name = *names;
	*names = unescape(*names, s, n);
	c->off = end + 1;
}

static int one_line(struct cur *c, uint64_t prev_end, char **names, struct mapping *m,
		    struct err *e)
{
	const char *nl = memchr(c->buf + c->off, '\n', cur_left(c));
	struct cur line;
	size_t end;

	if (!nl)
		return err_set(e, -EBADMSG, "maps+0x%zx: the last line has no end", c->off);
	end = (size_t)((const uint8_t *)nl - c->buf);
	line = cur_of("maps", c->buf, end);
	line.off = c->off;
	if (!numbers(&line, m))
		return cur_fail(&line, e);
	if (line.off < end && line.buf[line.off] != ' ')
		return err_set(e, -EBADMSG, "maps+0x%zx: no blank behind the inode", line.off);
	if (m->start >= m->end || m->start < prev_end)
		return err_set(e, -EBADMSG, "maps+0x%zx: region 0x%llx-0x%llx after 0x%llx", c->off,
			       (unsigned long long)m->start, (unsigned long long)m->end,
			       (unsigned long long)prev_end);
	name_of(&line, end, m, names);
	c->off = end + 1;
	return 0;
}

int maps_parse(const char *text, size_t len, struct maps *out, struct err *e)
{
	CLEANUP(maps_vecp) struct maps_vec v = { 0 };
	CLEANUP(freep) char *names = NULL;
	struct cur c = cur_of("maps", text, len);
	uint64_t prev_end = 0;
	char *next;
	int ret;

	if (len > LIMIT_MAPS_BYTES)
		return err_set(e, -E2BIG, "maps is longer than %d bytes", LIMIT_MAPS_BYTES);
	/* A name and its NUL are never longer than their line with its newline. */
	names = next = malloc(len + 1);
	if (!names)
		return err_set(e, -ENOMEM, "no memory for maps");
	while (cur_left(&c)) {
		struct mapping *m = vec_add(&v.v, LIMIT_MAPS);

		if (!m && v.v.n >= LIMIT_MAPS)
			return err_set(e, -E2BIG, "maps has more than %d lines", LIMIT_MAPS);
		if (!m)
			return err_set(e, -ENOMEM, "no memory for maps");
		ret = one_line(&c, prev_end, &next, m, e);
		if (ret)
			return ret;
		prev_end = m->end;
	}
	*out = (struct maps){ .at = TAKE(v.v.at), .n = v.v.n, .names = TAKE(names) };
	return 0;
}

void maps_fini(struct maps *m)
{
	free(m->at);
	free(m->names);
	*m = (struct maps){ 0 };
}

const struct mapping *maps_find(const struct maps *m, uint64_t addr)
{
	size_t lo = 0, hi = m->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (addr < m->at[mid].start)
			hi = mid;
		else if (addr >= m->at[mid].end)
			lo = mid + 1;
		else
			return &m->at[mid];
	}
	return NULL;
}
