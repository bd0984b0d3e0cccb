/* user/target/host/kallsyms.c - reads the table once, keeps text symbols sorted by address. */
#include "target/host/kallsyms.h"

#include "base/sys/caps.h"
#include "base/limits.h"
#include "base/strtab.h"
#include "base/vec.h"

struct ksym {
	uint64_t addr;
	uint32_t name;
};

struct kallsyms {
	VEC(struct ksym) syms;
	struct strtab *names;
};

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool kallsyms_parse_line(const char *line, size_t len, struct kallsym_line *out)
{
	size_t i = 0, end;

	out->addr = 0;
	for (; i < len && hex(line[i]) >= 0; i++) {
		if (i == 16)
			return false;
		out->addr = out->addr << 4 | (uint64_t)hex(line[i]);
	}
	if (!i || len - i < 4 || line[i] != ' ' || line[i + 2] != ' ')
		return false;
	out->type = line[i + 1];
	i += 3;
	for (end = i; end < len && line[end] != '\t' && line[end] != ' '; end++)
		;
	out->name = line + i;
	out->name_len = end - i;
	return out->name_len > 0;
}

static int by_addr(const void *a, const void *b)
{
	const struct ksym *x = a, *y = b;

	return (x->addr > y->addr) - (x->addr < y->addr);
}

static int read_lines(struct kallsyms *k, FILE *f, struct err *e)
{
	CLEANUP(freep) char *line = NULL;
	struct kallsym_line l;
	struct ksym *sym;
	size_t cap = 0;
	ssize_t n;

	while ((n = getline(&line, &cap, f)) > 0) {
		if (line[n - 1] == '\n')
			n--;
		if (!kallsyms_parse_line(line, (size_t)n, &l) || !l.addr || !strchr("tTwW", l.type))
			continue;
		sym = vec_add(&k->syms, LIMIT_SYMBOLS);
		if (!sym)
			return err_set(e, -ENOMEM, "/proc/kallsyms: no memory");
		sym->addr = l.addr;
		sym->name = strtab_put(k->names, l.name, l.name_len);
		if (sym->name == UINT32_MAX)
			return err_set(e, -ENOMEM, "/proc/kallsyms: no memory");
	}
	qsort(k->syms.at, k->syms.n, sizeof(*k->syms.at), by_addr);
	return 0;
}

int kallsyms_open(struct kallsyms **out, struct err *e)
{
	CLEANUP(kallsyms_freep) struct kallsyms *k = calloc(1, sizeof(*k));
	CLEANUP(fclosep) FILE *f = NULL;
	int ret;

	if (!k)
		return err_set(e, -ENOMEM, "no memory for kernel symbols");
	ret = strtab_new(&k->names, e);
	if (ret)
		return ret;
	f = fopen("/proc/kallsyms", "re");
	if (!f)
		return err_sys(e, "/proc/kallsyms");
	ret = read_lines(k, f, e);
	if (ret)
		return ret;
	*out = TAKE(k);
	return 0;
}

static int why_hidden(struct err *e)
{
	static const int syslog[] = { CAP_SYSLOG };
	CLEANUP(fclosep) FILE *f = fopen("/proc/sys/kernel/kptr_restrict", "re");

	if (f && fgetc(f) == '2')
		return err_set(e, -EPERM,
			       "kernel functions have no names: kernel.kptr_restrict is 2, which "
			       "hides their addresses from everybody");
	return caps_refused(e, "kernel functions have no names", syslog, 1);
}

int kallsyms_shown(struct err *e)
{
	CLEANUP(fclosep) FILE *f = fopen("/proc/kallsyms", "re");
	CLEANUP(freep) char *line = NULL;
	struct kallsym_line l;
	size_t cap = 0;
	ssize_t n;

	if (!f)
		return err_sys(e, "kernel functions have no names: /proc/kallsyms");
	/* Per-CPU data may truly be at address 0, a function may not. */
	while ((n = getline(&line, &cap, f)) > 0)
		if (kallsyms_parse_line(line, (size_t)n, &l) && strchr("tT", l.type))
			return l.addr ? 0 : why_hidden(e);
	return err_set(e, -ENOENT, "kernel functions have no names: /proc/kallsyms has none");
}

void kallsyms_free(struct kallsyms *k)
{
	if (!k)
		return;
	vec_fini(&k->syms);
	strtab_free(k->names);
	free(k);
}

const char *kallsyms_find(const struct kallsyms *k, uint64_t addr)
{
	size_t lo = 0, hi = k->syms.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (k->syms.at[mid].addr <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? strtab_get(k->names, k->syms.at[lo - 1].name) : NULL;
}
