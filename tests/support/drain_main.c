/*
 * tests/support/drain_main.c - empties the table of stacks while programs count into it.
 *
 * 	drain [HITS]
 *
 * Two threads each run HITS times over a probe of which every hit is a sample, while the main
 * thread takes stacks out as fast as it can. Prints "HITS hits, N taken, N lost, N takes", where
 * the lost ones are those that the BPF side reports as lost. The exit status is 1 when the
 * numbers do not add up.
 */
#include <bpf/bpf.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "arch/landmark.h"
#include "probe/bpf.h"
#include "probe/uprobes/uprobes.h"
#include "heap.skel.h"
#include "target/target.h"

enum { THREADS = 2 };

static atomic_int running = THREADS;
static uint64_t hits = 150000;

static void *run(void *arg)
{
	(void)arg;
	landmark_call(LANDMARK_BRANCH, hits, 32);
	atomic_fetch_sub(&running, 1);
	return NULL;
}

static int add(void *arg, const struct gpb_hash *key, const struct gpb_stack *st, struct err *e)
{
	uint64_t *sum = arg;

	(void)key;
	(void)e;
	*sum += st->count;
	return 0;
}

/* For a thread that Go does not know: every allocation is large, and a sample. */
static int configure(struct heap_bpf *o, struct err *e)
{
	struct gpb_target t = { .g_m = -1, .m_curg = -1, .m_g0 = -1, .flags = GPB_TARGET_REGABI };
	struct gpb_heap h = { .rate = 1, .large_rate = 1, .page = 8192, .round = 1 };
	uint32_t slot = 0;

	if (bpf_map_update_elem(bpf_map__fd(o->maps.targets), &slot, &t, BPF_ANY) ||
	    bpf_map_update_elem(bpf_map__fd(o->maps.heaps), &slot, &h, BPF_ANY))
		return err_sys(e, "tables");
	return 0;
}

static int attach(struct heap_bpf *o, struct uprobes *u, bool multi, struct err *e)
{
	struct uprobe_site site = { .cookie = GPB_ALLOC_LARGE };
	struct target *self = NULL;
	const struct mapping *m;
	int ret = target_open(getpid(), &self, e);

	if (ret)
		return ret;
	m = maps_find(&self->maps, landmark_site(LANDMARK_BRANCH));
	if (m)
		site.file_off = landmark_site(LANDMARK_BRANCH) - m->start + m->offset;
	target_free(self);
	if (!m)
		return err_set(e, -ENOENT, "our own code is not among our mappings");
	return uprobes_put(u, o->progs.heap_alloc, multi, getpid(), "/proc/self/exe", &site, 1, e);
}

static int drain(struct heap_bpf *o, uint64_t *sum, uint64_t *takes, struct err *e)
{
	int fd = bpf_map__fd(o->maps.stacks), ret = 0;
	pthread_t thread[THREADS];

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, run, NULL))
			return err_set(e, -EAGAIN, "no thread");
	while (!ret && atomic_load(&running)) {
		ret = bpf_take_stacks(fd, &o->bss->rounds, add, sum, e);
		++*takes;
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	return ret ? ret : bpf_take_stacks(fd, &o->bss->rounds, add, sum, e);
}

static uint64_t lost(struct heap_bpf *o)
{
	struct bpf_prog_info info = {};
	uint32_t len = sizeof(info);

	if (bpf_obj_get_info_by_fd(bpf_program__fd(o->progs.heap_alloc), &info, &len))
		return 0;
	return info.recursion_misses + o->bss->tallies[0].lost[GPB_LOSS_DROPPED];
}

int main(int argc, char **argv)
{
	uint64_t sum = 0, takes = 0, all;
	struct heap_bpf *o;
	struct uprobes u = {};
	struct err e = {};
	bool multi;
	int ret;

	uprobes_main(argc, argv);
	multi = uprobes_have_multi();
	o = bpf_open(heap);
	if (argc > 1)
		hits = strtoull(argv[1], NULL, 0);
	if (!o)
		return 1;
	uprobes_prepare(o->progs.heap_alloc, multi);
	ret = heap_bpf__load(o);
	if (ret)
		err_set(&e, ret, "load");
	if (!ret)
		ret = configure(o, &e);
	if (!ret)
		ret = attach(o, &u, multi, &e);
	if (!ret)
		ret = drain(o, &sum, &takes, &e);
	uprobes_free(&u);
	if (ret) {
		fprintf(stderr, "drain: %s\n", e.msg);
		return 1;
	}
	all = THREADS * hits;
	printf("%llu hits, %llu taken, %llu lost, %llu takes\n", (unsigned long long)all,
	       (unsigned long long)sum, (unsigned long long)lost(o), (unsigned long long)takes);
	ret = sum + lost(o) != all;
	heap_bpf__destroy(o);
	return ret;
}
