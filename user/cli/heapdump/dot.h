/* user/cli/heapdump/dot.h - graphs for Graphviz, whose labels are a foreign program's names. */
#ifndef CLI_HEAPDUMP_DOT_H
#define CLI_HEAPDUMP_DOT_H

#include <stdint.h>
#include <stdio.h>

void dot_begin(FILE *f, const char *title);
/* A box; @attributes: more of Graphviz's, or "". Lines of @label end in "\n". */
void dot_node(FILE *f, uint32_t id, const char *label, const char *attributes);
void dot_edge(FILE *f, uint32_t from, uint32_t to, const char *label, const char *attributes);
void dot_end(FILE *f);

#endif
