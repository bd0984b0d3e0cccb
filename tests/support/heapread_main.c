/*
 * tests/support/heapread_main.c - the heap profile of a live process by reading, alone.
 *
 *	heapread [-t] PID OUT.pb.gz
 *
 * -t prints how long each step took, to stderr.
 */
#include <time.h>

#include "collect/heap/heap_read.h"
#include "symbolize/subject_prof.h"
#include "output/output.h"

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int heapread(pid_t pid, const char *path, bool timed, struct err *e)
{
	CLEANUP(subject_freep) struct subject *s = NULL;
	CLEANUP(prof_freep) struct prof *p = NULL;
	struct collect_opts o = { .source = SOURCE_READ };
	double t0 = now_ms(), t1, t2, t3;
	struct rtbucket_vars v;
	int ret;

	ret = subject_open(pid, &o, &s, e);
	if (!ret)
		ret = heap_read_find(s, &v, e);
	t1 = now_ms();
	if (!ret)
		ret = subject_prof(s, "read", &p, e);
	if (!ret)
		ret = heap_read_profile(s, &v, p, e);
	t2 = now_ms();
	if (!ret)
		ret = output_to_file(p, output_find("pprof"), path, NULL, e);
	t3 = now_ms();
	if (ret)
		return ret;
	if (timed)
		fprintf(stderr, "open %.1f ms, read %.1f ms, write %.1f ms, %zu samples\n", t1 - t0,
			t2 - t1, t3 - t2, prof_nsamples(p));
	return loss_total(prof_loss(p)) ? 3 : 0;
}

int main(int argc, char **argv)
{
	bool timed = argc == 4 && !strcmp(argv[1], "-t");
	struct err e = { 0 };
	int ret;

	if (argc != 3 && !timed) {
		fprintf(stderr, "usage: heapread [-t] PID OUT.pb.gz\n");
		return 2;
	}
	ret = heapread(atoi(argv[argc - 2]), argv[argc - 1], timed, &e);
	if (ret < 0)
		fprintf(stderr, "heapread: %s\n", e.msg);
	return ret < 0 ? 1 : ret;
}
