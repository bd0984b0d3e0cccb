/*
 * user/cli/tell.h - what people read: lines on stderr, and the bar beneath them.
 *
 * stdout is for paths alone. Names in messages are other people's: whatever could move a
 * terminal's cursor is replaced.
 */
#ifndef CLI_TELL_H
#define CLI_TELL_H

#include <stddef.h>
#include <stdint.h>

/* Replaces what is no UTF-8, and what no terminal should have of it (profile/utf8.h). */
void tell_clean(char *s);

/* "goprof-bpf: ..." and a newline. */
void tell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* A line on stdout, as clean. */
void tell_out(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* tell() as a callback for struct collect_opts; @arg is not used. */
void tell_line(void *arg, const char *line);

/* Redraws the bar; only on a terminal. @total_ns 0 takes it away. */
void tell_bar(uint64_t done_ns, uint64_t total_ns);

/*
 * The same for work that is counted in bytes, begun at @began_ns of the monotonic clock: how much is
 * done and how long it may still take. Draws at most ten times a second.
 */
void tell_progress(uint64_t done_bytes, uint64_t total_bytes, uint64_t began_ns);

/* The word for so many of them: "object", "objects". */
static inline const char *one_or(uint64_t n, const char *one, const char *many)
{
	return n == 1 ? one : many;
}

/* "1 process", "2 processes"; returns @buf. */
enum { TEXT_COUNTED = 64 };
const char *counted(size_t n, const char *one, const char *many, char buf[TEXT_COUNTED]);
const char *processes(size_t n, char buf[TEXT_COUNTED]);

/* "12 B", "1.50 MB", by 1024; returns @buf. */
enum { BYTES_TEXT = 32 };
const char *bytes_text(uint64_t bytes, char buf[BYTES_TEXT]);

/* "500 ms", "2.5 s", "10 s"; returns @buf. */
enum { NS_TEXT = 32 };
const char *ns_text(uint64_t ns, char buf[NS_TEXT]);

/* "12 ns", "1.23 us", "45.6 ms", "1.50 s": three digits; returns @buf. */
const char *span_text(int64_t ns, char buf[NS_TEXT]);

#endif
