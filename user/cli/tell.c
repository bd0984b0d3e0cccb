/* user/cli/tell.c - lines on stderr, and a bar when that is a terminal. */
#include "cli/tell.h"

#include <stdarg.h>
#include <stdbool.h>

#include "base/err.h"

enum { BAR_CELLS = 30 };

static bool bar_shown;

static void drop_bar(void)
{
	if (bar_shown)
		fputs("\r\033[K", stderr);
	bar_shown = false;
}

/* Well-formed UTF-8 passes; C0, DEL and C1 (U+0080 to U+009F) are replaced. */
void tell_clean(char *s)
{
	for (unsigned char *p = (unsigned char *)s; *p; p++) {
		if (*p < ' ' || *p == 0x7f)
			*p = '?';
		else if (*p == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f)
			p[0] = p[1] = '?';
	}
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

static bool on_terminal(void)
{
	const char *term = getenv("TERM");

	return isatty(STDERR_FILENO) && term && strcmp(term, "dumb");
}

void tell_bar(uint64_t done_ns, uint64_t total_ns)
{
	char bar[BAR_CELLS + 1], done[NS_TEXT], total[NS_TEXT];
	unsigned cells;

	if (!total_ns) {
		drop_bar();
		return;
	}
	if (!on_terminal())
		return;
	if (done_ns > total_ns)
		done_ns = total_ns;
	cells = (unsigned)((double)done_ns / (double)total_ns * BAR_CELLS);
	memset(bar, ' ', BAR_CELLS);
	memset(bar, '#', cells);
	bar[BAR_CELLS] = 0;
	fprintf(stderr, "\r[%s] %s of %s, Ctrl-C ends early\033[K", bar,
		ns_text(done_ns / 100000000 * 100000000, done), ns_text(total_ns, total));
	fflush(stderr);
	bar_shown = true;
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
