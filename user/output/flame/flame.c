/*
 * user/output/flame/flame.c - a profile as one HTML file that draws it, and needs nothing else.
 *
 * The page (flame.html with flame.css and flame_*.js in it) is part of the program. The data goes
 * into a script element of type application/json, which no browser executes:
 *
 *	strings		every text of the tree, once; others name it by its index
 *	funcs		name, file, name, file, ...
 *	frames		function, line, ...; line -N: no function, its address is string N
 *	tree		n >= 0: frame n, child of the node before; -k: go up k levels first
 *	labels		rows of key, value, key, value, ...; row 0 is empty
 *	self		how many nodes after the last one, labels, a value for each type, ...
 *
 * Names are the target's, and may be meant to break out: see put_string(). What is executed
 * carries a random nonce, and the page's policy forbids all else, and the network.
 */
#include "output/flame/flame_tree.h"

#include <inttypes.h>
#include <sys/random.h>

#include "base/version.h"
#include "output/flame/flame_page.h"
#include "profile/utf8.h"

/* ---- JSON inside of HTML ---- */

static bool needs_escape(unsigned char c)
{
	return c < 0x20 || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' || c == '\'' ||
	       c == 0x7f;
}

/* @s is UTF-8. Every character that HTML or a script could interpret is written as an escape. */
static void put_escaped(const char *s, FILE *f)
{
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (!memcmp(s, "\xe2\x80\xa8", strnlen(s, 3)) && s[1] && s[2]) {
			fputs("\\u2028", f);
			s += 2;
		} else if (!memcmp(s, "\xe2\x80\xa9", strnlen(s, 3)) && s[1] && s[2]) {
			fputs("\\u2029", f);
			s += 2;
		} else if (needs_escape(c)) {
			fprintf(f, "\\u%04x", c);
		} else {
			putc(c, f);
		}
	}
}

static int put_string(const char *s, FILE *f, struct err *e)
{
	size_t n = strlen(s);
	CLEANUP(freep) char *fixed = malloc(n * 3 + 1);

	if (!fixed)
		return err_set(e, -ENOMEM, "no memory for a string of %zu bytes", n);
	utf8_fix(s, n, fixed);
	putc('"', f);
	put_escaped(fixed, f);
	putc('"', f);
	return 0;
}

/* ---- the parts ---- */

static int put_types(const struct prof *p, FILE *f, struct err *e)
{
	struct prof_header_view h = prof_header(p);
	int r = 0;

	fputs("\"types\":[", f);
	for (size_t i = 0; !r && i < h.ntypes; i++) {
		fputs(i ? ",[" : "[", f);
		r = put_string(strtab_get(prof_strings(p), h.types[i].type), f, e);
		putc(',', f);
		if (!r)
			r = put_string(strtab_get(prof_strings(p), h.types[i].unit), f, e);
		putc(']', f);
	}
	fprintf(f, "],\n\"main\":%zu,\n", output_main_type(p));
	return r;
}

static int put_notes(struct prof *p, FILE *f, struct err *e)
{
	struct prof_header_view h = prof_header(p);
	bool more = false;
	char loss[160];
	int r = 0;

	fputs("\"comments\":[", f);
	for (size_t i = 0; !r && i < h.ncomments; i++) {
		if (i)
			putc(',', f);
		r = put_string(strtab_get(prof_strings(p), h.comments[i]), f, e);
	}
	fputs("],\n\"losses\":[", f);
	for (int k = 0; !r && k < LOSS_COUNT; k++) {
		if (!output_loss(p, k, loss, sizeof(loss)))
			continue;
		if (more)
			putc(',', f);
		more = true;
		r = put_string(loss, f, e);
	}
	fputs("],\n", f);
	return r;
}

static int put_header(struct prof *p, FILE *f, struct err *e)
{
	struct prof_header_view h = prof_header(p);
	int r;

	fprintf(f, "{\"version\":\"%s\",\n\"kind\":", GOPROF_VERSION);
	r = put_string(h.kind ? h.kind : "", f, e);
	fprintf(f, ",\n\"time_ms\":%" PRId64 ",\n\"duration_ns\":%" PRId64 ",\n",
		h.time_ns / 1000000, h.duration_ns);
	if (!r)
		r = put_types(p, f, e);
	return r ? r : put_notes(p, f, e);
}

static void put_totals(const struct flame_tree *t, size_t ntypes, FILE *f)
{
	fputs("\"total\":[", f);
	for (size_t i = 0; i < ntypes; i++)
		fprintf(f, "%s%" PRId64, i ? "," : "", t->total[i]);
	fputs("],\n\"negative\":[", f);
	for (size_t i = 0; i < ntypes; i++)
		fprintf(f, "%s%" PRIu64, i ? "," : "", t->negative[i]);
	fputs("],\n", f);
}

static int put_strings(const struct flame_tree *t, FILE *f, struct err *e)
{
	int r = 0;

	fputs("\"strings\":[", f);
	for (uint32_t i = 0; !r && i < strtab_count(t->strings); i++) {
		if (i)
			fputs(",\n", f);
		r = put_string(strtab_get(t->strings, i), f, e);
	}
	fputs("],\n", f);
	return r;
}

/* Id 0 of these tables is empty and is not written: the page counts from 0. */
static void put_frames(const struct flame_tree *t, FILE *f)
{
	fputs("\"funcs\":[", f);
	for (uint32_t i = 1; i < strtab_count(t->funcs); i++) {
		struct flame_func fn;

		memcpy(&fn, strtab_get(t->funcs, i), sizeof(fn));
		fprintf(f, "%s%u,%u", i > 1 ? "," : "", fn.name, fn.file);
	}
	fputs("],\n\"frames\":[", f);
	for (uint32_t i = 1; i < strtab_count(t->frames); i++) {
		struct flame_frame fr;
		int64_t line;

		memcpy(&fr, strtab_get(t->frames, i), sizeof(fr));
		line = fr.address ? -(int64_t)fr.address : fr.line < 0 ? 0 : fr.line;
		fprintf(f, "%s%u,%" PRId64, i > 1 ? "," : "", fr.func - 1, line);
	}
	fputs("],\n", f);
}

static void put_labels(const struct flame_tree *t, FILE *f)
{
	fputs("\"labels\":[[]", f);
	for (uint32_t i = 1; i < strtab_count(t->labels); i++) {
		const char *row = strtab_get(t->labels, i);
		size_t n = strtab_len(t->labels, i) / sizeof(uint32_t);

		fputs(",[", f);
		for (size_t k = 0; k < n; k++) {
			uint32_t id;

			memcpy(&id, row + k * sizeof(id), sizeof(id));
			fprintf(f, "%s%u", k ? "," : "", id);
		}
		putc(']', f);
	}
	fputs("],\n", f);
}

static void put_tree(const struct flame_tree *t, FILE *f)
{
	const char *comma = "";
	size_t written = 0;
	unsigned up;

	fputs("\"tree\":[", f);
	for (uint32_t n = 0; (n = flame_tree_next(t, n, &up)) && !ferror(f); comma = ",") {
		if (up)
			fprintf(f, ",-%u", up);
		if (++written % 64 == 0) /* no line becomes too long for an editor */
			comma = ",\n";
		fprintf(f, "%s%u", comma, t->nodes.at[n].frame - 1);
	}
	fputs("],\n", f);
}

static void put_self(const struct flame_tree *t, size_t ntypes, FILE *f)
{
	uint32_t last = 0;

	fputs("\"self\":[", f);
	for (size_t i = 0; i < t->self.n && !ferror(f); i++) {
		const struct flame_self *s = &t->self.at[i];
		uint32_t order = t->nodes.at[s->node].order;

		fprintf(f, "%s%u,%u", i ? ",\n" : "", order - last, s->labels);
		for (size_t k = 0; k < ntypes; k++)
			fprintf(f, ",%" PRId64, s->values[k]);
		last = order;
	}
	fputs("]}", f);
}

static int put_data(struct prof *p, FILE *f, struct err *e)
{
	CLEANUP(flame_tree_fini) struct flame_tree t = { 0 };
	size_t ntypes = prof_header(p).ntypes;
	int r = flame_tree_make(&t, p, e);

	if (!r)
		r = put_header(p, f, e);
	if (r)
		return r;
	put_totals(&t, ntypes, f);
	r = put_strings(&t, f, e);
	if (r)
		return r;
	put_frames(&t, f);
	put_labels(&t, f);
	put_tree(&t, f);
	put_self(&t, ntypes, f);
	return 0;
}

/* ---- the page ---- */

static int make_nonce(char *buf, size_t cap, struct err *e)
{
	uint64_t random[2];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return err_sys(e, "random number for the page");
	snprintf(buf, cap, "%016" PRIx64 "%016" PRIx64, random[0], random[1]);
	return 0;
}

static bool is_mark(const char *mark, size_t n, const char *word)
{
	return n == strlen(word) && !memcmp(mark, word, n);
}

/* Writes what a mark in flame.html stands for. */
static int put_mark(struct prof *p, const char *mark, size_t n, const char *nonce, FILE *f,
		    struct err *e)
{
	static const struct {
		const char *word, *from, *to;
	} files[] = {
		{ "CSS", flame_css, flame_css_end },
		{ "MODEL", flame_model_js, flame_model_js_end },
		{ "DRAW", flame_draw_js, flame_draw_js_end },
		{ "UI", flame_ui_js, flame_ui_js_end },
	};

	if (is_mark(mark, n, "DATA"))
		return put_data(p, f, e);
	if (is_mark(mark, n, "NONCE")) {
		fputs(nonce, f);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		if (!is_mark(mark, n, files[i].word))
			continue;
		fwrite(files[i].from, 1, (size_t)(files[i].to - files[i].from), f);
		return 0;
	}
	BUG_ON(true);
}

/* A mark is {{WORD}}. */
int flame_write(struct prof *p, FILE *f, struct err *e)
{
	const char *at = flame_html, *mark, *end;
	char nonce[40];
	int r = make_nonce(nonce, sizeof(nonce), e);

	while (!r && (mark = memmem(at, (size_t)(flame_html_end - at), "{{", 2))) {
		fwrite(at, 1, (size_t)(mark - at), f);
		mark += 2;
		end = memmem(mark, (size_t)(flame_html_end - mark), "}}", 2);
		BUG_ON(!end);
		r = put_mark(p, mark, (size_t)(end - mark), nonce, f, e);
		at = end + 2;
	}
	if (r)
		return r;
	fwrite(at, 1, (size_t)(flame_html_end - at), f);
	return output_check(f, e);
}
