/*
 * tests/support/frames_main.c - gobin's answers as text, beside the Go oracle's.
 *
 *	frames info FILE [PID BIAS]
 *	frames find FILE NAME...	entry, end and id of functions by name
 *	frames pcs FILE MAX ANCHOR	for every function up to MAX pcs across it, as offsets
 *					from the function ANCHOR; how many could not be
 *					asked is said on stderr
 *	frames dump FILE ANCHOR [PID BIAS]	offsets on stdin -> frames
 *	frames bench FILE N		open, then symbolize N pcs: times and resident memory
 *
 * A dumped line is OFFSET then, per frame and innermost first, TAB func TAB file:line TAB
 * start line. Wrappers are hidden as the runtime hides them in the expansion of a final pc.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <time.h>

#include "base/limits.h"
#include "go/image/gobin.h"

struct live {
	struct mem mem;
	pid_t pid;
};

static int live_read(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	struct live *l = (struct live *)m;
	struct iovec to = { buf, n }, from = { (void *)(uintptr_t)addr, n };

	if (process_vm_readv(l->pid, &to, 1, &from, 1, 0) != (ssize_t)n)
		return err_set(e, -EFAULT, "pid %d: 0x%" PRIx64, l->pid, addr);
	return 0;
}

static struct goframe frames[LIMIT_INLINE_DEPTH + 1];

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static bool elided(enum func_id id, enum func_id callee)
{
	return id == FUNC_WRAPPER && callee != FUNC_GOPANIC && callee != FUNC_SIGPANIC &&
	       callee != FUNC_PANICWRAP;
}

/* Before Go 1.21 the expansion kept the physical function in every case. */
static void print_frames(struct gobin *b, int64_t off, int n)
{
	bool keep_last = gobin_info(b)->minor < 21;
	enum func_id callee = FUNC_NORMAL;

	printf("%" PRId64, off);
	for (int i = 0; i < n; i++) {
		bool last = i == n - 1;

		if (n == 1 || (last && keep_last) || !elided(frames[i].id, callee))
			printf("\t%s\t%s:%u\t%u", frames[i].func, frames[i].file, frames[i].line,
			       frames[i].start_line);
		callee = frames[i].id;
	}
	putchar('\n');
}

static int anchor_of(struct gobin *b, const char *name, uint64_t *entry, struct err *e)
{
	struct gofunc f;
	int ret = gobin_funcs_named(b, &name, 1, &f, e);

	if (ret < 0)
		return ret;
	if (!ret)
		return err_set(e, -ENOENT, "no function %s", name);
	*entry = f.entry;
	return 0;
}

/*
 * Inlined calls that form a cycle: gobin ends it, but the runtime does not, so it cannot be
 * asked. Without a cycle, nothing would be inlined at the pc of the last inlined call's caller.
 */
static bool in_circle(struct gobin *b, uint64_t pc)
{
	int n = gobin_frames(b, pc, frames, ARRAY_LEN(frames), NULL);

	return n > 1 &&
	       gobin_frames(b, frames[n - 2].parent_pc, frames, ARRAY_LEN(frames), NULL) > 1;
}

/*
 * The runtime is asked with pc + 1, which must still be in the function. So the last byte of a
 * function cannot be asked about.
 */
static uint64_t print_pcs(struct gobin *b, const struct gofunc *f, uint64_t max, uint64_t anchor)
{
	uint64_t n = f->end - f->entry, last = 0, circles = 0;

	if (n < 2)
		return 0;
	n--;
	if (max > n)
		max = n;
	for (uint64_t i = 0; i < max; i++) {
		uint64_t pc = f->entry + (max == 1 ? 0 : i * (n - 1) / (max - 1));

		if (!i || pc != last) {
			if (in_circle(b, pc))
				circles++;
			else
				printf("%" PRId64 "\n", (int64_t)(pc - anchor));
		}
		last = pc;
	}
	return circles;
}

static int pcs(struct gobin *b, uint64_t max, const char *name, struct err *e)
{
	uint64_t anchor, circles = 0;
	struct gofunc f;
	int ret = anchor_of(b, name, &anchor, e);

	for (size_t i = 0; !ret && i < gobin_nfuncs(b); i++) {
		ret = gobin_func_index(b, i, &f, e);
		if (!ret)
			circles += print_pcs(b, &f, max, anchor);
		if (ret == -ENOENT)
			ret = 0;
	}
	fprintf(stderr, "%" PRIu64 " pcs left out: their inlined calls go round in a circle\n",
		circles);
	return ret;
}

static int dump(struct gobin *b, const char *name, struct err *e)
{
	uint64_t anchor;
	char line[64];
	int ret = anchor_of(b, name, &anchor, e);

	while (!ret && fgets(line, sizeof(line), stdin)) {
		int64_t off = strtoll(line, NULL, 10);
		int n = gobin_frames(b, anchor + (uint64_t)off, frames, ARRAY_LEN(frames), e);

		if (n < 0)
			return n;
		print_frames(b, off, n);
	}
	return ret;
}

static long rss_kb(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return u.ru_maxrss;
}

static int bench(struct gobin *b, uint64_t n, double opened, long rss_open, struct err *e)
{
	static const char *const some[] = { "runtime.mallocgc", "runtime.gopanic",
					    "runtime.mstart" };
	const struct gobin_info *info = gobin_info(b);
	struct gofunc f[ARRAY_LEN(some)];
	double t0 = now_ms(), t1, t2;
	uint64_t x = 88172645463325252ull, nframes = 0;
	int ret = gobin_funcs_named(b, some, ARRAY_LEN(some), f, e);

	t1 = now_ms();
	for (uint64_t i = 0; ret >= 0 && i < n; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		ret = gobin_frames(b, info->text + x % (info->etext - info->text), frames,
				   ARRAY_LEN(frames), e);
		if (ret == -ENOENT)
			ret = 0;
		nframes += (uint64_t)(ret > 0 ? ret : 0);
	}
	if (ret < 0)
		return ret;
	t2 = now_ms();
	printf("open %.1f ms (%ld kB), %zu names among %zu functions %.1f ms, %" PRIu64
	       " pcs (%" PRIu64 " frames) %.1f ms, %ld kB at most\n",
	       opened, rss_open, ARRAY_LEN(some), gobin_nfuncs(b), t1 - t0, n, nframes, t2 - t1,
	       rss_kb());
	return 0;
}

static int info(struct gobin *b)
{
	const struct gobin_info *i = gobin_info(b);
	const struct gomodule *m = gobin_module(b);

	printf("version %s (%d.%d) experiments \"%s\" path \"%s\" arch %d pie %d cgo %d symtab %d "
	       "dwarf %d\nbuild id \"%s\" text 0x%" PRIx64 "..0x%" PRIx64 " tls_g %d funcs %zu\n",
	       i->version, i->minor, i->patch, i->experiments, i->path, i->arch, i->pie, i->cgo,
	       i->has_symtab, i->has_dwarf, i->build_id, i->text, i->etext, i->tls_g,
	       gobin_nfuncs(b));
	printf("module 0x%" PRIx64 " data 0x%" PRIx64 "..0x%" PRIx64 " bss 0x%" PRIx64
	       "..0x%" PRIx64 " types 0x%" PRIx64 "..0x%" PRIx64 " gofunc 0x%" PRIx64 "\n",
	       m->addr, m->data, m->edata, m->bss, m->ebss, m->types, m->etypes, m->gofunc);
	return 0;
}

static int find(struct gobin *b, char **names, size_t n, struct err *e)
{
	CLEANUP(freep) struct gofunc *f = calloc(n + 1, sizeof(*f));
	int ret;

	if (!f)
		return err_set(e, -ENOMEM, "no memory");
	ret = gobin_funcs_named(b, (const char *const *)names, n, f, e);
	for (size_t i = 0; ret >= 0 && i < n; i++) {
		int32_t delta = -1;

		if (f[i].entry)
			gobin_spdelta(b, f[i].end - 1, &delta, NULL);
		printf("%s 0x%" PRIx64 "..0x%" PRIx64 " id %d flags %u \"%s\"\n", names[i],
		       f[i].entry, f[i].end, f[i].id, f[i].flags,
		       f[i].entry ? gobin_func_name(b, &f[i]) : "");
	}
	return ret;
}

static int run(int argc, char **argv, struct err *e)
{
	CLEANUP(gobin_freep) struct gobin *b = NULL;
	CLEANUP(closep) int fd = open(argv[2], O_RDONLY | O_CLOEXEC);
	const char *cmd = argv[1];
	int own = !strcmp(cmd, "dump") ? 4 : 3, ret;
	struct live live = { .mem = { .read = live_read } };
	bool with_live = (!strcmp(cmd, "dump") || !strcmp(cmd, "info")) && argc == own + 2;
	double t0 = now_ms(), opened;

	if (fd < 0)
		return err_sys(e, "%s", argv[2]);
	if (with_live)
		live.pid = atoi(argv[own]);
	ret = gobin_open(fd, argv[2], with_live ? &live.mem : NULL,
			 with_live ? strtoull(argv[own + 1], NULL, 0) : 0, &b, e);
	if (ret)
		return ret;
	opened = now_ms() - t0;
	if (!strcmp(cmd, "info"))
		return info(b);
	if (!strcmp(cmd, "find"))
		return find(b, argv + 3, (size_t)argc - 3, e);
	if (!strcmp(cmd, "pcs") && argc == 5)
		return pcs(b, strtoull(argv[3], NULL, 0), argv[4], e);
	if (!strcmp(cmd, "dump") && argc >= 4)
		return dump(b, argv[3], e);
	if (!strcmp(cmd, "bench") && argc == 4)
		return bench(b, strtoull(argv[3], NULL, 0), opened, rss_kb(), e);
	return err_set(e, -EINVAL, "unknown command %s", cmd);
}

int main(int argc, char **argv)
{
	struct err e = { 0 };
	int ret;

	if (argc < 3) {
		fprintf(stderr, "usage: frames info|find|pcs|dump|bench FILE ...\n");
		return 2;
	}
	ret = run(argc, argv, &e);
	if (ret < 0)
		fprintf(stderr, "frames: %s\n", e.msg);
	if (fflush(stdout)) {
		fprintf(stderr, "frames: cannot write\n");
		return 1;
	}
	return ret < 0;
}
