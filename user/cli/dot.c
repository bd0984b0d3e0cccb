/* user/cli/dot.c - the few statements of the DOT language that are needed. */
#include "cli/dot.h"

/* Long names make a box that fills the page. */
enum { LABEL_BYTES = 160 };

static void quoted(FILE *f, const char *s)
{
	size_t line = 0;

	putc('"', f);
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '\n') {
			fputs("\\l", f);
			line = 0;
			continue;
		}
		if (++line > LABEL_BYTES)
			continue;
		if (c == '"' || c == '\\')
			putc('\\', f);
		putc(c < ' ' || c == 0x7f ? '?' : c, f);
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
