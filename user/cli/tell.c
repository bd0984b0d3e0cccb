/* user/cli/tell.c - lines on stderr, and a bar when that is a terminal. */
#include "cli/tell.h"

#include <stdarg.h>
#include <stdbool.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "profile/utf8.h"

enum { BAR_CELLS = 30 };

static bool bar_shown;

static void drop_bar(void)
{
	if (bar_shown)
		fputs("\r\033[K", stderr);
	bar_shown = false;
}

void tell_clean(char *s)
{
	size_t left = strlen(s), len;
	char *to = s;
	bool shown;

	for (; left; left -= len, s += len) {
		len = utf8_next(s, left, &shown);
		if (shown)
			memmove(to, s, len);
		else
			*to = '?';
		to += shown ? len : 1;
	}
	*to = 0;
}

void tell_line(void *arg, const char *line)
{
	char text[2048];

	(void)arg;
	snprintf(text, sizeof(text), "%s", line);
	tell_clean(text);
	drop_bar();
	fprintf(stderr, "goprof-bpf: %s\n", text);
}

void tell(const char *fmt, ...)
{
	char text[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	tell_line(NULL, text);
}

void tell_out(const char *fmt, ...)
{
	char text[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	tell_clean(text);
	puts(text);
}

static bool on_terminal(void)
{
	const char *term = getenv("TERM");

	return isatty(STDERR_FILENO) && term && strcmp(term, "dumb");
}

/* @share: of 1 */
static void draw(double share, const char *text)
{
	char bar[BAR_CELLS + 1];
	unsigned cells = (unsigned)(share * BAR_CELLS);

	memset(bar, ' ', BAR_CELLS);
	memset(bar, '#', cells < BAR_CELLS ? cells : BAR_CELLS);
	bar[BAR_CELLS] = 0;
	fprintf(stderr, "\r[%s] %s\033[K", bar, text);
	fflush(stderr);
	bar_shown = true;
}

void tell_bar(uint64_t done_ns, uint64_t total_ns)
{
	char text[128], done[NS_TEXT], total[NS_TEXT];

	if (!total_ns) {
		drop_bar();
		return;
	}
	if (!on_terminal())
		return;
	if (done_ns > total_ns)
		done_ns = total_ns;
	snprintf(text, sizeof(text), "%s of %s, Ctrl-C ends early",
		 ns_text(done_ns / 100000000 * 100000000, done), ns_text(total_ns, total));
	draw((double)done_ns / (double)total_ns, text);
}

/* ---- bytes ---- */

enum { REDRAW_NS = 100000000 };

void tell_progress(uint64_t done_bytes, uint64_t total_bytes, uint64_t began_ns)
{
	static uint64_t drawn_ns;
	char text[160], done[BYTES_TEXT], total[BYTES_TEXT], left[NS_TEXT];
	uint64_t now = now_ns();
	double took = (double)(now - began_ns), rest;

	if (now - drawn_ns < REDRAW_NS)
		return;
	drawn_ns = now;
	if (!on_terminal())
		return;
	if (!total_bytes || done_bytes > total_bytes) {
		snprintf(text, sizeof(text), "%s", bytes_text(done_bytes, done));
		draw(0, text);
		return;
	}
	rest = done_bytes ? took * (double)(total_bytes - done_bytes) / (double)done_bytes : 0;
	snprintf(text, sizeof(text), "%s of %s, %s left", bytes_text(done_bytes, done),
		 bytes_text(total_bytes, total),
		 took < 1e9 ? "?" : ns_text((uint64_t)(rest / 1e9) * 1000000000, left));
	draw((double)done_bytes / (double)total_bytes, text);
}

const char *counted(size_t n, const char *one, const char *many, char buf[TEXT_COUNTED])
{
	snprintf(buf, TEXT_COUNTED, "%zu %s", n, one_or(n, one, many));
	return buf;
}

const char *processes(size_t n, char buf[TEXT_COUNTED])
{
	return counted(n, "process", "processes", buf);
}

const char *bytes_text(uint64_t bytes, char to[BYTES_TEXT])
{
	static const char *const units[] = { "kB", "MB", "GB", "TB" };
	double v = (double)bytes / 1024;
	size_t unit = 0;

	if (bytes < 1024) {
		snprintf(to, BYTES_TEXT, "%llu B", (unsigned long long)bytes);
		return to;
	}
	for (; v >= 1024 && unit + 1 < ARRAY_LEN(units); unit++)
		v /= 1024;
	snprintf(to, BYTES_TEXT, "%.2f %s", v, units[unit]);
	return to;
}

const char *ns_text(uint64_t ns, char buf[NS_TEXT])
{
	uint64_t ms = ns / 1000000;

	if (ms < 1000)
		snprintf(buf, NS_TEXT, "%llu ms", (unsigned long long)ms);
	else if (ms % 1000 < 100)
		snprintf(buf, NS_TEXT, "%llu s", (unsigned long long)(ms / 1000));
	else
		snprintf(buf, NS_TEXT, "%llu.%llu s", (unsigned long long)(ms / 1000),
			 (unsigned long long)(ms % 1000 / 100));
	return buf;
}

const char *span_text(int64_t ns, char buf[NS_TEXT])
{
	static const char *const units[] = { "us", "ms", "s" };
	double v = (double)ns / 1000;
	size_t unit = 0;
	int digits;

	if (ns < 1000) {
		snprintf(buf, NS_TEXT, "%lld ns", (long long)ns);
		return buf;
	}
	/* 999.5 would be shown as 1000 */
	for (; v >= 999.5 && unit + 1 < ARRAY_LEN(units); unit++)
		v /= 1000;
	digits = v < 9.995 ? 2 : v < 99.95 ? 1 : 0;
	snprintf(buf, NS_TEXT, "%.*f %s", digits, v, units[unit]);
	return buf;
}
