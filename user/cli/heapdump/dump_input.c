/* user/cli/heapdump/dump_input.c - opens dumps, and shows how far reading is. */
#include "cli/heapdump/dump_input.h"

#include "base/clock.h"
#include "base/sys/spill.h"
#include "cli/input.h"
#include "cli/tell.h"
#include "ingest/heapdump/header.h"

static int check_header(const void *header, size_t n, struct err *e)
{
	unsigned version;

	return heapdump_header(header, n, &version, e);
}

static const struct input_kind dump_kind = { "dump", "heap dump", HEAPDUMP_HEADER_BYTES,
					     check_header };

/* A new pass begins where it goes back. */
static void tick(void *arg, uint64_t offset)
{
	struct dump_input *in = arg;

	if (offset < in->last && in->last - offset > in->size / 2)
		in->pass++;
	in->last = offset;
	if (!in->size)
		input_stands(&in->stall, offset);
	spill_rest();
	if (in->pass >= in->passes)
		in->passes = in->pass + 1;
	tell_progress(in->size ? in->pass * in->size + offset : offset, in->passes * in->size,
		      in->began_ns);
}

int dump_input_open(struct dump_input *in, const char *file, unsigned passes, struct err *e)
{
	struct stat *st = &in->was;
	int ret;

	*in = (struct dump_input){ .name = strcmp(file, "-") ? file : "stdin", .passes = passes };
	in->stall.name = in->name;
	in->began_ns = now_ns();
	in->fd = input_open(file, &dump_kind, st, e);
	if (in->fd < 0)
		return in->fd;
	if (S_ISREG(st->st_mode))
		in->size = (uint64_t)st->st_size;
	ret = !S_ISREG(st->st_mode) && passes > 1 ?
		      input_spool(&in->fd, &dump_kind, &in->stall, in->began_ns, &in->size, e) :
		      0;
	if (!ret && !in->size && !S_ISREG(st->st_mode))
		input_await(&in->stall, in->fd, 0);
	if (!ret)
		ret = heapdump_open(in->fd, &in->dump, e);
	if (ret)
		return ret;
	heapdump_watch(in->dump, tick, in);
	heapdump_read_ahead(in->dump);
	return 0;
}

void dump_input_fini(struct dump_input *in)
{
	tell_bar(0, 0);
	heapdump_freep(&in->dump);
	closep(&in->fd);
	*in = (struct dump_input){ .fd = -1 };
}

int dump_input_unchanged(const struct dump_input *in, struct err *e)
{
	return input_unchanged(in->fd, &dump_kind, &in->was, e);
}
