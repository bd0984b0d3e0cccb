/* user/cli/trace_input.c - opens traces, and shows how far reading is. */
#include "cli/trace_input.h"

#include "cli/tell.h"

static int check_header(const void *header, size_t n, struct err *e)
{
	unsigned version;

	return exectrace_header(header, n, &version, e);
}

static const struct input_kind trace_kind = { "trace", "execution trace", EXECTRACE_HEADER_BYTES,
					      check_header };

int trace_input_open(struct trace_input *in, const char *file, struct err *e)
{
	struct input_stall stall = { .name = strcmp(file, "-") ? file : "stdin" };
	uint64_t size;
	int ret = 0;

	*in = (struct trace_input){ .name = stall.name, .began_ns = tell_clock_ns() };
	in->fd = input_open(file, &trace_kind, &in->was, e);
	if (in->fd < 0)
		return in->fd;
	if (!S_ISREG(in->was.st_mode))
		ret = input_spool(&in->fd, &trace_kind, &stall, in->began_ns, &size, e);
	return ret ? ret : exectrace_open(in->fd, &in->trace, e);
}

void trace_input_fini(struct trace_input *in)
{
	tell_bar(0, 0);
	exectrace_freep(&in->trace);
	closep(&in->fd);
	*in = (struct trace_input){ .fd = -1 };
}

void trace_input_tick(const struct trace_input *in)
{
	tell_progress(exectrace_offset(in->trace), exectrace_size(in->trace), in->began_ns);
}

int trace_input_unchanged(const struct trace_input *in, struct err *e)
{
	return input_unchanged(in->fd, &trace_kind, &in->was, e);
}
