/* user/cli/trace/trace_input.c - opens traces, and shows how far reading is. */
#include "cli/trace/trace_input.h"

#include <fcntl.h>

#include "base/clock.h"
#include "cli/tell.h"

static int check_header(const void *header, size_t n, struct err *e)
{
	unsigned version;

	return exectrace_header(header, n, &version, e);
}

static const struct input_kind trace_kind = { "trace", "execution trace", EXECTRACE_HEADER_BYTES,
					      check_header };

enum { NAMED_VERSION = 7 }; /* from here on traces have names */

static int use_exe(struct trace_input *in, const char *path, struct err *e)
{
	int ret;

	if (exectrace_version(in->trace) >= NAMED_VERSION)
		return 0;
	in->exe_fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (in->exe_fd < 0)
		return err_sys(e, "--exe %s", path);
	ret = pclntab12_open(in->exe_fd, path, &in->exe, e);
	if (!ret)
		ret = exectrace_use_exe(in->trace, in->exe, e);
	return ret ? err_wrap(e, ret, "--exe %s", path) : 0;
}

int trace_input_open(struct trace_input *in, const char *file, const char *exe, struct err *e)
{
	struct input_stall stall = { .name = strcmp(file, "-") ? file : "stdin" };
	uint64_t size;
	int ret = 0;

	*in = (struct trace_input){ .exe_fd = -1, .name = stall.name, .began_ns = now_ns() };
	in->fd = input_open(file, &trace_kind, &in->was, e);
	if (in->fd < 0)
		return in->fd;
	if (!S_ISREG(in->was.st_mode))
		ret = input_spool(&in->fd, &trace_kind, &stall, in->began_ns, &size, e);
	if (!ret)
		ret = exectrace_open(in->fd, &in->trace, e);
	return ret || !exe ? ret : use_exe(in, exe, e);
}

void trace_input_fini(struct trace_input *in)
{
	tell_bar(0, 0);
	exectrace_freep(&in->trace);
	pclntab12_freep(&in->exe);
	closep(&in->exe_fd);
	closep(&in->fd);
	*in = (struct trace_input){ .fd = -1, .exe_fd = -1 };
}

void trace_input_tick(const struct trace_input *in)
{
	tell_progress(exectrace_offset(in->trace), exectrace_size(in->trace), in->began_ns);
}

int trace_input_unchanged(const struct trace_input *in, struct err *e)
{
	return input_unchanged(in->fd, &trace_kind, &in->was, e);
}
