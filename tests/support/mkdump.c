/* tests/support/mkdump.c - heap dumps in memory. */
#include "mkdump.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"

struct dump dump;
const char *dump_toolchain = "go1.27.4";

static void byte(uint64_t v)
{
	BUG_ON(dump.n == sizeof(dump.at));
	dump.at[dump.n++] = (uint8_t)v;
}

void dump_number(uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		byte(v | 0x80);
	byte(v);
}

void dump_numbers(const uint64_t *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		dump_number(v[i]);
}

void dump_text(const char *s)
{
	dump_number(strlen(s));
	while (*s)
		byte((uint8_t)*s++);
}

void dump_words(const uint64_t *v, size_t n)
{
	dump_number(n * dump.ptr);
	for (size_t i = 0; i < n; i++)
		for (unsigned b = 0; b < dump.ptr; b++)
			byte(v[i] >> 8 * (dump.big ? dump.ptr - 1 - b : b));
}

static void begin(unsigned version, bool big, unsigned ptr)
{
	dump = (struct dump){ .version = version, .big = big, .ptr = ptr };
	dump.n = (size_t)snprintf((char *)dump.at, 64, "go1.%u heap dump\n", version);
}

void dump_begin(unsigned version, bool big, unsigned ptr)
{
	begin(version, big, ptr);
	DUMP_NUMBERS(6, big, ptr);
	if (version == 3)
		dump_number(DUMP_HCHAN);
	DUMP_NUMBERS(0xc000000000, 0xc000400000);
	if (version < 7)
		dump_number('6');
	else
		dump_text("amd64");
	dump_text(version < 7 ? "" : dump_toolchain);
	dump_number(2);
}

void dump_begin_draft(void)
{
	begin(3, false, 8);
	DUMP_NUMBERS(10, false, 8, DUMP_HCHAN, 0xc208000000, 0xc208400000);
}

void dump_begin_gccgo(void)
{
	begin(3, false, 8);
	DUMP_NUMBERS(6, false, 8, DUMP_HCHAN, 0xc208000000, 0xc208400000, 0);
	dump_text("");
	dump_number(2);
}

int dump_fd(void)
{
	int fd = memfd_create("dump", MFD_CLOEXEC);

	BUG_ON(fd < 0 || write(fd, dump.at, dump.n) != (ssize_t)dump.n);
	return fd;
}

static int fd = -1;

static int pipe_fd(void)
{
	int fds[2];

	BUG_ON(dump.n > 65536 || pipe(fds) || write(fds[1], dump.at, dump.n) != (ssize_t)dump.n);
	close(fds[1]);
	return fds[0];
}

struct heapdump *dump_open(bool piped)
{
	struct heapdump *d = NULL;

	BUG_ON(fd >= 0);
	fd = piped ? pipe_fd() : dump_fd();
	BUG_ON(heapdump_open(fd, &d, NULL));
	return d;
}

void dump_close(struct heapdump *d)
{
	heapdump_free(d);
	close(fd);
	fd = -1;
}
