/* user/probe/exec_watch.c - fork, exec and exit tracepoints, and a queue of what they report. */
#include "probe/exec_watch.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/vec.h"
#include "goprof_abi.h"
#include "probe/bpf.h"
#include "target/host/pidns.h"
#include "exec_watch.skel.h"

enum { QUEUE_MAX = 1 << 16 };

struct exec_watch {
	struct exec_watch_bpf *obj;
	struct ring_buffer *ring;
	VEC(struct exec_seen) queue;
	size_t next;   /* index in the queue of the next one to hand out */
	uint64_t lost; /* execs that the queue had no room for */
};

static int on_exec(void *arg, void *data, size_t len)
{
	struct exec_watch *f = arg;
	const struct gpb_rec_exec *x = data;
	struct exec_seen *to;

	if (len < sizeof(*x))
		return 0;
	to = vec_add(&f->queue, QUEUE_MAX);
	if (to)
		*to = (struct exec_seen){ .pid = (pid_t)x->tgid, .when_ns = x->when_ns };
	else
		f->lost++;
	return 0;
}

/* Those of bpf/common.bpf.h are for samples. */
static void only_own_maps(struct exec_watch_bpf *o)
{
	bpf_map__set_autocreate(o->maps.targets, false);
	bpf_map__set_autocreate(o->maps.stacks, false);
	bpf_map__set_autocreate(o->maps.ring, false);
	bpf_map__set_autocreate(o->maps.labelsets, false);
}

int exec_watch_open(pid_t root, struct exec_watch **out, struct err *e)
{
	CLEANUP(exec_watch_freep) struct exec_watch *f = calloc(1, sizeof(*f));
	uint32_t ino;
	int ret;

	if (!f)
		return err_set(e, -ENOMEM, "follow: no memory");
	ret = pidns_inode(&ino, e);
	if (ret)
		return ret;
	bpf_log_begin();
	f->obj = bpf_open(exec_watch);
	if (!f->obj)
		return bpf_load_error(e, -errno, "follow");
	bpf_fit_kernel(f->obj->obj);
	f->obj->rodata->pidns_ino = ino;
	f->obj->rodata->root = (uint32_t)root;
	bpf_program__set_autoload(f->obj->progs.on_fork, root != 0);
	bpf_program__set_autoload(f->obj->progs.on_exit, root != 0);
	only_own_maps(f->obj);
	ret = exec_watch_bpf__load(f->obj);
	if (!ret)
		ret = exec_watch_bpf__attach(f->obj);
	if (ret)
		return bpf_load_error(e, ret, "follow");
	f->ring = ring_buffer__new(bpf_map__fd(f->obj->maps.execs), on_exec, f, NULL);
	if (!f->ring)
		return err_sys(e, "follow: ring buffer");
	*out = TAKE(f);
	return 0;
}

int exec_watch_fd(const struct exec_watch *f)
{
	return ring_buffer__epoll_fd(f->ring);
}

bool exec_watch_next(struct exec_watch *f, struct exec_seen *out)
{
	if (f->next == f->queue.n)
		f->next = f->queue.n = 0;
	ring_buffer__consume(f->ring);
	if (f->next == f->queue.n)
		return false;
	*out = f->queue.at[f->next++];
	return true;
}

uint64_t exec_watch_lost(const struct exec_watch *f)
{
	return f->lost + f->obj->bss->tallies[0].lost[GPB_LOSS_DROPPED];
}

void exec_watch_free(struct exec_watch *f)
{
	if (!f)
		return;
	ring_buffer__free(f->ring);
	exec_watch_bpf__destroy(f->obj);
	vec_fini(&f->queue);
	free(f);
}
