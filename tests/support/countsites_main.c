/*
 * tests/support/countsites_main.c - counts calls at the allocator's probe sites, by kind.
 *
 * 	countsites BINARY [ARG...]
 *
 * BINARY (static, not running yet) has a variable main.kind that says what it is doing: 0
 * nothing, otherwise a number below KINDS. This runs it, then prints "hits KIND N" for each kind
 * seen. The program at a site is a dozen BPF instructions that are put together here: it needs no
 * compiler for BPF, and has nothing in common with the collector's own BPF code, which it is
 * there to judge.
 */
#include <bpf/bpf.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "go/image/gobin.h"
#include "go/sites/probesite.h"

enum { KINDS = 64, INSNS = 64, HELPER_LOOKUP = 1, HELPER_READ_USER = 112 };
/* struct pt_regs of x86-64. */
enum { REGS_AX = 80, REGS_FLAGS = 144, REGS_SP = 152, CARRY_OR_ZERO = 0x41 };

struct code {
	struct bpf_insn at[INSNS];
	int n;
};

static _Noreturn void die(const char *what, const struct err *e)
{
	fprintf(stderr, "countsites: %s: %s\n", what, e && e->msg[0] ? e->msg : strerror(errno));
	exit(1);
}

static void emit(struct code *c, int op, int dst, int src, int off, int32_t imm)
{
	BUG_ON(c->n == INSNS);
	c->at[c->n++] = (struct bpf_insn){ .code = (uint8_t)op,
					   .dst_reg = dst & 15,
					   .src_reg = src & 15,
					   .off = (int16_t)off,
					   .imm = imm };
}

static void emit_imm64(struct code *c, int dst, int src, uint64_t v)
{
	emit(c, BPF_LD | BPF_IMM | BPF_DW, dst, src, 0, (int32_t)(uint32_t)v);
	emit(c, 0, 0, 0, 0, (int32_t)(uint32_t)(v >> 32));
}

static void emit_exit(struct code *c)
{
	emit(c, BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0);
	emit(c, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

/* fp[at] = 8 bytes at the user address in r3. */
static void emit_read_user(struct code *c, int at)
{
	emit(c, BPF_ALU64 | BPF_MOV | BPF_X, 1, 10, 0, 0);
	emit(c, BPF_ALU64 | BPF_ADD | BPF_K, 1, 0, 0, at);
	emit(c, BPF_ALU64 | BPF_MOV | BPF_K, 2, 0, 0, 8);
	emit(c, BPF_JMP | BPF_CALL, 0, 0, 0, HELPER_READ_USER);
	emit(c, BPF_LDX | BPF_MEM | BPF_DW, 2, 10, at, 0);
}

static void emit_reg(struct code *c, int dst, int reg)
{
	emit(c, BPF_LDX | BPF_MEM | BPF_DW, dst, 6, reg, 0);
}

/* Leaves the program unless this call is one to count: r6 is the context. */
static void emit_filters(struct code *c, const struct alloc_entry *a, bool regabi)
{
	emit(c, BPF_ALU64 | BPF_MOV | BPF_X, 6, 1, 0, 0);
	if (a->site.kind == SITE_STACK_BRANCH) {
		emit_reg(c, 2, REGS_FLAGS);
		emit(c, BPF_ALU64 | BPF_AND | BPF_K, 2, 0, 0, CARRY_OR_ZERO);
		emit(c, BPF_JMP | BPF_JEQ | BPF_K, 2, 0, 2, 0);
		emit_exit(c);
	}
	if (a->kind == ALLOC_ANY) { /* size 0 allocates nothing */
		emit_reg(c, 2, REGS_AX);
		if (!regabi) {
			emit_reg(c, 3, REGS_SP);
			emit(c, BPF_ALU64 | BPF_ADD | BPF_K, 3, 0, 0, 8);
			emit_read_user(c, -8);
		}
		emit(c, BPF_JMP | BPF_JNE | BPF_K, 2, 0, 2, 0);
		emit_exit(c);
	}
	if (a->not_from_hi) {
		emit_reg(c, 3, REGS_SP);
		emit_read_user(c, -8);
		emit_imm64(c, 3, 0, a->not_from_lo);
		emit(c, BPF_JMP | BPF_JLT | BPF_X, 2, 3, 5, 0);
		emit_imm64(c, 3, 0, a->not_from_hi);
		emit(c, BPF_JMP | BPF_JGE | BPF_X, 2, 3, 2, 0);
		emit_exit(c);
	}
}

static void emit_count(struct code *c, uint64_t kind_addr, int map)
{
	emit_imm64(c, 3, 0, kind_addr);
	emit_read_user(c, -16);
	emit(c, BPF_STX | BPF_MEM | BPF_W, 10, 2, -20, 0);
	emit_imm64(c, 1, BPF_PSEUDO_MAP_FD, (uint64_t)map);
	emit(c, BPF_ALU64 | BPF_MOV | BPF_X, 2, 10, 0, 0);
	emit(c, BPF_ALU64 | BPF_ADD | BPF_K, 2, 0, 0, -20);
	emit(c, BPF_JMP | BPF_CALL, 0, 0, 0, HELPER_LOOKUP);
	emit(c, BPF_JMP | BPF_JNE | BPF_K, 0, 0, 2, 0);
	emit_exit(c);
	emit(c, BPF_ALU64 | BPF_MOV | BPF_K, 1, 0, 0, 1);
	emit(c, BPF_STX | BPF_ATOMIC | BPF_DW, 0, 1, 0, BPF_ADD);
	emit_exit(c);
}

static uint32_t uprobe_pmu(void)
{
	FILE *f CLEANUP(fclosep) = fopen("/sys/bus/event_source/devices/uprobe/type", "r");
	uint32_t type;

	if (!f || fscanf(f, "%u", &type) != 1)
		die("this kernel has no uprobe events", NULL);
	return type;
}

static void attach(const char *path, const struct alloc_entry *a, const struct code *c)
{
	struct perf_event_attr attr = { .type = uprobe_pmu(), .size = sizeof(attr) };
	int prog = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "countsites", "GPL", c->at, (size_t)c->n,
				 NULL);
	int fd;

	if (prog < 0)
		die(a->name, NULL);
	attr.config1 = (uint64_t)(uintptr_t)path;
	attr.config2 = a->site.file_off;
	fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0 || ioctl(fd, PERF_EVENT_IOC_SET_BPF, prog) < 0 ||
	    ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
		die(a->name, NULL);
}

static void attach_all(struct gobin *b, const char *path, int map)
{
	struct alloc_entry *a CLEANUP(freep) = calloc(ALLOC_ENTRIES_MAX, sizeof(*a));
	uint64_t kind_addr, size;
	struct err e = { "" };
	int n;

	if (!a || gobin_symbol(b, "main.kind", &kind_addr, &size, &e) < 0)
		die(path, &e);
	n = alloc_entries(b, a, &e);
	if (n < 0)
		die(path, &e);
	for (int i = 0; i < n; i++) {
		struct code c = { .n = 0 };

		emit_filters(&c, &a[i], gobin_info(b)->minor >= 17);
		emit_count(&c, kind_addr, map);
		attach(path, &a[i], &c);
	}
	printf("sites %d\n", n);
}

static int run(char **argv)
{
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		execv(argv[0], argv);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		die(argv[0], NULL);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

int main(int argc, char **argv)
{
	struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
	struct gobin *b CLEANUP(gobin_freep) = NULL;
	struct err e = { "" };
	int fd, map, rc;

	fd = argc > 1 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0 || gobin_open(fd, argv[1], NULL, 0, &b, &e) < 0)
		die(argc > 1 ? argv[1] : "usage: countsites BINARY [ARG...]", &e);
	setrlimit(RLIMIT_MEMLOCK, &all);
	map = bpf_map_create(BPF_MAP_TYPE_ARRAY, "hits", 4, 8, KINDS, NULL);
	if (map < 0)
		die("a BPF map", NULL);
	attach_all(b, argv[1], map);
	rc = run(argv + 1);
	for (uint32_t k = 1; k < KINDS; k++) {
		uint64_t n = 0;

		if (!bpf_map_lookup_elem(map, &k, &n) && n)
			printf("hits %u %llu\n", k, (unsigned long long)n);
	}
	return rc;
}
