/*
 * tests/support/verifier_main.c - what the kernel's verifier says of each program.
 *
 *	verifier		a line a program: name, with "/many" where its object serves many targets,
 *				instructions verified, states, most of them at once, ms of CPU to load its
 *				whole object, tables included
 *				one that is refused: the end of what the verifier said; on amd64, one of
 *				a uprobe that has a private stack (bpf/uprobe.bpf.h): that it has
 *	verifier old		the same of the programs for kernels before 5.15
 *	verifier noread [NS]	"OBJECT loads" or "OBJECT: why not", where the helpers that read kernel
 *				memory are refused, as with lockdown=confidentiality. NS: pidns_ino
 *
 * For noread the helpers' numbers are made invalid in the objects. The verifier minds only calls
 * that can be reached, and so does the kernel's own refusal. And bpf_probe_read_user is replaced by
 * bpf_probe_read, as libbpf does on such a kernel: what bpf_reads.h puts back must be loaded.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "probe/bpf.h"
#include "probe/bpf_fit.h"
#include "probe/bpf_reads.h"
#include "goprof_abi.h" /* before the skeletons, which use its types */

#include "cpu.skel.h"
#include "exec_watch.skel.h"
#include "heap.skel.h"
#include "sched.skel.h"
#include "wait.skel.h"

enum { LOG_STATS = 4, LOG_BYTES = 16384, PROGRAMS_MAX = 8, CODE_BYTES = 1 << 20 };

/*
 * The numbers of bpf_probe_read, _read_str, _read_kernel and _read_kernel_str. Source:
 * include/uapi/linux/bpf.h.
 */
static const int readers[] = { 4, 45, 113, 115 };

static const struct object {
	const char *name;
	const void *(*bytes)(size_t *n), *(*old_bytes)(size_t *n);
	/* The programs that are loaded, as the collectors do; none: all. */
	const char *only[3];
	bool many; /* for many targets */
} objects[] = {
	{ "cpu", cpu_bpf__elf_bytes, cpu_old_bytes, { "thread_clock" }, false },
	{ "cpu of many",
	  cpu_bpf__elf_bytes,
	  cpu_old_bytes,
	  { "host_clock", "on_end", "on_reaped" },
	  true },
	{ "exec_watch", exec_watch_bpf__elf_bytes, exec_watch_old_bytes, {}, false },
	{ "heap", heap_bpf__elf_bytes, heap_old_bytes, {}, false },
	{ "heap of many", heap_bpf__elf_bytes, heap_old_bytes, {}, true },
	{ "sched", sched_bpf__elf_bytes, sched_old_bytes, {}, false },
	{ "sched of many", sched_bpf__elf_bytes, sched_old_bytes, {}, true },
	{ "wait", wait_bpf__elf_bytes, wait_old_bytes, {}, false },
};

static char logs[PROGRAMS_MAX][LOG_BYTES];

static int quiet(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	(void)level;
	(void)fmt;
	(void)ap;
	return 0;
}

/* An instruction is 8 bytes at a multiple of 8; a call of a helper has its number at byte 4. */
static void forbid_reads(unsigned char *b, size_t n)
{
	static const unsigned char call[] = { 0x85, 0, 0, 0 };
	int imm;

	for (size_t i = 0; i + 8 <= n; i += 8) {
		if (memcmp(b + i, call, sizeof(call)))
			continue;
		memcpy(&imm, b + i + 4, sizeof(imm));
		if (imm == BPF_FUNC_probe_read_user)
			b[i + 4] = BPF_FUNC_probe_read;
		for (size_t k = 0; k < sizeof(readers) / sizeof(*readers); k++)
			if (imm == readers[k])
				b[i + 7] = 0x7f;
	}
}

/* Sets the constant @name in objects that have it. */
static void set_constant(struct bpf_object *obj, const char *name, unsigned to)
{
	struct bpf_map *m = bpf_object__find_map_by_name(obj, ".rodata");
	const struct btf *btf = bpf_object__btf(obj);
	int id = btf__find_by_name_kind(btf, ".rodata", BTF_KIND_DATASEC);
	const struct btf_type *sec = btf__type_by_id(btf, id < 0 ? 0 : (unsigned)id);
	size_t size;
	char *at = m ? (char *)(uintptr_t)bpf_map__initial_value(m, &size) : NULL;

	for (int i = 0; at && sec && id > 0 && i < btf_vlen(sec); i++) {
		const struct btf_var_secinfo *v = btf_var_secinfos(sec) + i;
		const struct btf_type *var = btf__type_by_id(btf, v->type);

		if (!strcmp(btf__name_by_offset(btf, var->name_off), name))
			memcpy(at + v->offset, &to, sizeof(to));
	}
}

static bool is_loaded(const struct object *o, const char *program)
{
	bool any = false;

	for (size_t i = 0; i < sizeof(o->only) / sizeof(*o->only) && o->only[i]; i++) {
		any = true;
		if (!strcmp(o->only[i], program))
			return true;
	}
	return !any;
}

static bool old; /* the programs for old kernels, which newer ones load as well */

static struct bpf_object *open_object(const struct object *o, bool noread, unsigned ns)
{
	size_t n;
	const void *bytes = old ? o->old_bytes(&n) : o->bytes(&n);
	unsigned char *copy = malloc(n);
	struct bpf_object *obj;
	struct bpf_program *p;
	int i = 0;

	if (!copy)
		return NULL;
	memset(logs, 0, sizeof(logs));
	memcpy(copy, bytes, n);
	if (noread)
		forbid_reads(copy, n);
	obj = bpf_object__open_mem(copy, n, NULL);
	free(copy);
	if (!obj)
		return NULL;
	bpf_object__for_each_program(p, obj)
	{
		bpf_program__set_autoload(p, is_loaded(o, bpf_program__name(p)));
		bpf_program__set_log_level(p, LOG_STATS);
		bpf_program__set_log_buf(p, logs[i++ % PROGRAMS_MAX], LOG_BYTES);
	}
	if (ns)
		set_constant(obj, "pidns_ino", ns);
	set_constant(obj, "many_targets", o->many);
	set_constant(obj, "reads_kernel", !noread && !old);
	bpf_fit(obj, bpf_try_growing(NULL) == -EINVAL);
	return obj;
}

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Was one loaded with a call that the kernel refuses? */
static bool calls_refused(struct bpf_object *obj)
{
	struct bpf_program *p;

	bpf_object__for_each_program(p, obj)
	{
		const struct bpf_insn *in = bpf_program__insns(p);

		for (size_t i = 0; bpf_program__fd(p) >= 0 && i < bpf_program__insn_cnt(p); i++)
			if (in[i].code == (BPF_JMP | BPF_CALL) && !in[i].src_reg &&
			    in[i].imm == BPF_FUNC_probe_read)
				return true;
	}
	return false;
}

static void print_stats(struct bpf_object *obj, bool many, double load_ms)
{
	struct bpf_program *p;
	int i = 0;

	bpf_object__for_each_program(p, obj)
	{
		const char *log = logs[i++ % PROGRAMS_MAX];
		const char *insns = strstr(log, "processed ");
		const char *states = strstr(log, "total_states "),
			   *peak = strstr(log, "peak_states ");

		if (insns && states && peak)
			printf("%s%-*s %7ld %7ld %7ld %7.1f\n", bpf_program__name(p),
			       20 - (int)strlen(bpf_program__name(p)), many ? "/many" : "",
			       strtol(insns + 10, NULL, 10), strtol(states + 13, NULL, 10),
			       strtol(peak + 12, NULL, 10), load_ms);
	}
}

/*
 * Is there a private stack in the machine code of a program? The one instruction that adds the CPU's
 * offset to r9, "add %gs:this_cpu_off,%r9". Source: emit_priv_frame_ptr in arch/x86/net/bpf_jit_comp.c,
 * Linux 6.13 to 7.2. On arm64 (from 6.17 on) that is made as an access to a table of each CPU is, so
 * nothing is told there.
 */
static bool has_amd64_private_stack(const struct bpf_program *p)
{
#ifndef __x86_64__
	(void)p;
	return false;
#else
	static const unsigned char add[] = { 0x65, 0x4c, 0x03, 0x0c, 0x25 };
	static unsigned char code[CODE_BYTES];
	struct bpf_prog_info info = { .jited_prog_insns = (uintptr_t)code,
				      .jited_prog_len = sizeof(code) };
	unsigned size = sizeof(info);

	if (bpf_obj_get_info_by_fd(bpf_program__fd(p), &info, &size) || !info.jited_prog_len ||
	    info.jited_prog_len > sizeof(code))
		return true; /* it cannot be told */
	return memmem(code, info.jited_prog_len, add, sizeof(add));
#endif
}

/* Prints each program of a uprobe that has one. */
static bool private_stacks(struct bpf_object *obj)
{
	struct bpf_program *p;
	bool any = false;

	bpf_object__for_each_program(p, obj)
	{
		if (strcmp(bpf_program__section_name(p), "uprobe") || !has_amd64_private_stack(p))
			continue;
		printf("%s: has a private stack\n", bpf_program__name(p));
		any = true;
	}
	return any;
}

/* Of the programs that were refused, and of those that came after them. */
static void print_refusal(struct bpf_object *obj)
{
	struct bpf_program *p;
	int i = 0;

	bpf_object__for_each_program(p, obj)
	{
		const char *log = logs[i++ % PROGRAMS_MAX];
		size_t n = strlen(log);

		if (n && bpf_program__fd(p) < 0)
			printf("%s:\n%s\n", bpf_program__name(p), log + (n > 1500 ? n - 1500 : 0));
	}
}

int main(int argc, char **argv)
{
	bool noread = argc > 1 && !strcmp(argv[1], "noread");
	unsigned ns = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 0) : 0;
	int bad = 0;

	old = bpf_is_old() || (argc > 1 && !strcmp(argv[1], "old"));
	setvbuf(stdout, NULL, _IOLBF, 0);
	libbpf_set_print(quiet);
	bpf_reads_keep();
	for (size_t i = 0; i < sizeof(objects) / sizeof(*objects); i++) {
		struct bpf_object *obj = open_object(&objects[i], noread, ns);
		double began = cpu_ms();
		int ret = obj ? bpf_object__load(obj) : -1;

		if (ret)
			printf("%s: %s\n", objects[i].name, strerror(-ret));
		if (ret && obj && !noread)
			print_refusal(obj);
		if (!ret && noread)
			printf(calls_refused(obj) ? "%s: calls bpf_probe_read\n" : "%s loads\n",
			       objects[i].name);
		else if (!ret)
			print_stats(obj, objects[i].many, cpu_ms() - began);
		bad |= ret || (noread ? calls_refused(obj) : !old && private_stacks(obj));
		bpf_object__close(obj);
	}
	return bad;
}
