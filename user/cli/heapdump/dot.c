/* user/cli/heapdump/dot.c - the few statements of the DOT language that are needed. */
#include "cli/heapdump/dot.h"

#include <stdbool.h>
#include <string.h>

#include "profile/utf8.h"

/* Long names make a box that fills the page. */
enum { LABEL_BYTES = 160 };

static void quoted(FILE *f, const char *s)
{
	size_t line = 0, left = strlen(s), len;
	bool shown;

	putc('"', f);
	for (; left; left -= len, s += len) {
		len = utf8_next(s, left, &shown);
		if (*s == '\n') {
			fputs("\\l", f);
			line = 0;
			continue;
		}
		line += len;
		if (line > LABEL_BYTES)
			continue;
		if (*s == '"' || *s == '\\')
			putc('\\', f);
		fwrite(shown ? s : "?", 1, shown ? len : 1, f);
	}
	putc('"', f);
}

void dot_begin(FILE *f, const char *title)
{
	fputs("digraph heap {\n\tlabel=", f);
	quoted(f, title);
	fputs(";\n\tlabelloc=t;\n\tnode [shape=box, fontname=\"sans-serif\", fontsize=10];\n"
	      "\tedge [fontname=\"sans-serif\", fontsize=9];\n",
	      f);
}

void dot_node(FILE *f, uint32_t id, const char *label, const char *attributes)
{
	fprintf(f, "\tn%u [label=", id);
	quoted(f, label);
	fprintf(f, "%s%s];\n", *attributes ? ", " : "", attributes);
}

void dot_edge(FILE *f, uint32_t from, uint32_t to, const char *label, const char *attributes)
{
	fprintf(f, "\tn%u -> n%u [label=", from, to);
	quoted(f, label);
	fprintf(f, "%s%s];\n", *attributes ? ", " : "", attributes);
}

void dot_end(FILE *f)
{
	fputs("}\n", f);
}
