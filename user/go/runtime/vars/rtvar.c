/*
 * user/go/runtime/vars/rtvar.c - addresses of runtime variables, by symbol or by the functions that use them.
 *
 * Without symbols there are witnesses and strangers. A witness is a runtime function (or one of
 * several, depending on inlining) that is known to use the variable; a stranger is one that is
 * known not to. Some variables are recognized by their part in one function (go/runtime/vars/rtvar_code.c).
 * Source: runtime/mprof.go, malloc.go, mcache.go, proc.go, Go 1.16-1.27; which function holds
 * which access was read from official builds (go/runtime/vars/rtvar_tab.c).
 */
#include "go/runtime/vars/rtvar.h"

#include "base/limits.h"
#include "go/runtime/vars/rtvar_priv.h"

enum { FUNCS_MAX = RTVAR_WITNESSES * RTVAR_ALIASES + RTVAR_STRANGERS, STRANGER = -1 };

const char *rtvar_name(enum rtvar v)
{
	return (unsigned int)v < RTVAR_COUNT ? rtvar_defs[v].name : "?";
}

static struct rtplaces places_of(struct gobin *b)
{
	const struct gobin_info *info = gobin_info(b);

	return (struct rtplaces){ .module = gobin_module(b),
				  .text = info->text,
				  .etext = info->etext };
}

/*
 * ---- the functions that are looked at ---------------------------------------------------------
 */

struct asked {
	const char *name[FUNCS_MAX];
	int witness[FUNCS_MAX]; /* or STRANGER */
	struct gofunc f[FUNCS_MAX];
	size_t n, found;
	enum arch_id id;
	struct arch *arch; /* owned */
};

static void asked_fini(struct asked *q)
{
	arch_free(q->arch);
}

static void ask(struct asked *q, const char *name, int witness)
{
	q->name[q->n] = name;
	q->witness[q->n++] = witness;
}

static int ask_all(struct gobin *b, const struct rtvar_def *d, struct asked *q, struct err *e)
{
	int ret;

	for (int w = 0; w < RTVAR_WITNESSES; w++)
		for (size_t i = 0; i < RTVAR_ALIASES && d->witness[w][i]; i++)
			ask(q, d->witness[w][i], w);
	for (size_t i = 0; i < RTVAR_STRANGERS && d->stranger[i]; i++)
		ask(q, d->stranger[i], STRANGER);
	ret = gobin_funcs_named(b, q->name, q->n, q->f, e);
	if (ret < 0)
		return ret;
	q->found = (size_t)ret;
	q->id = gobin_info(b)->arch;
	return arch_open(q->id, &q->arch, e);
}

/* Yields no instructions where the function is missing or cannot be read. */
static int code_of(struct gobin *b, const struct asked *q, size_t i, struct rtcode *out,
		   struct err *e)
{
	const struct gofunc *f = &q->f[i];
	uint64_t len = f->end > f->entry ? f->end - f->entry : 0;
	uint8_t code[LIMIT_DECODE];
	size_t n = len < sizeof(code) ? (size_t)len : sizeof(code);

	*out = (struct rtcode){ 0 };
	if (!f->entry || mem_read(gobin_mem(b), f->entry, code, n, NULL))
		return 0;
	return rtcode_decode(q->arch, q->id, code, n, f->entry, out, e);
}

/* ---- rules ------------------------------------------------------------------------------------ */

static int hear_all(struct gobin *b, const struct rtvar_def *d, const struct asked *q,
		    struct rttally *t, struct err *e)
{
	struct rtplaces p = places_of(b);

	for (size_t i = 0; i < q->n; i++) {
		struct rtcode c CLEANUP(rtcode_fini) = { 0 };
		int ret = code_of(b, q, i, &c, e);

		if (ret)
			return ret;
		rttally_hear(t, &c, d, &p, q->witness[i]);
	}
	return 0;
}

/* The offset in the variable of the part that the votes are for. */
static uint64_t part_off(const struct rtvar_def *d, int minor)
{
	for (size_t i = 0; i < RTVAR_PARTS; i++)
		if (!d->part[i].before || (minor >= 0 && minor < d->part[i].before))
			return d->part[i].off;
	return 0;
}

static int by_votes(struct gobin *b, const struct rtvar_def *d, const struct asked *q,
		    uint64_t *addr, struct err *e)
{
	struct rttally t CLEANUP(rttally_fini) = { 0 };
	uint64_t at, off = part_off(d, gobin_info(b)->minor);
	struct rtplaces p = places_of(b);
	int ret = hear_all(b, d, q, &t, e);

	if (!ret)
		ret = rttally_elect(&t, d, &at, e);
	if (ret)
		return ret;
	if (at < off || !rtplace_ok(&p, at - off, d->size, d->sections))
		return err_set(e, -ENOENT, "it would begin at 0x%llx - %llu, with no variables",
			       (unsigned long long)at, (unsigned long long)off);
	*addr = at - off;
	return 0;
}

/* Strangers count as well: a list that the reader of another list walks is not this one. */
static int by_cases(struct gobin *b, const struct rtvar_def *d, const struct asked *q,
		    uint64_t *addr, struct err *e)
{
	struct rttally t CLEANUP(rttally_fini) = { 0 };
	struct rtcode c CLEANUP(rtcode_fini) = { 0 };
	struct rtplaces p = places_of(b);
	struct rtheads h;
	uint64_t at;
	int ret = code_of(b, q, 0, &c, e);

	if (!ret)
		ret = rtcode_heads(&c, &p, &h, e);
	if (!ret)
		ret = hear_all(b, d, q, &t, e);
	if (ret)
		return ret;
	at = d->bucket == 3 ? h.mutex : h.block;
	for (size_t i = 0; i < t.c.n; i++)
		if (t.c.at[i].addr == at && t.c.at[i].strange)
			return err_set(e, -ENOENT, "another profile's reader uses the list too");
	*addr = at;
	return 0;
}

/* Which of these functions sets the rate depends on the Go version. */
static int by_gate(struct gobin *b, const struct asked *q, uint64_t *addr, struct err *e)
{
	struct rtplaces p = places_of(b);
	uint64_t rate;
	int ret = rtvar_decode(b, RTVAR_MEMPROFILERATE, &rate, e);

	if (ret)
		return ret;
	ret = err_set(e, -ENOENT, "nothing sets the rate");
	for (size_t i = 0; ret == -ENOENT && i < q->n; i++) {
		struct rtcode c CLEANUP(rtcode_fini) = { 0 };

		if (!q->f[i].entry)
			continue;
		ret = code_of(b, q, i, &c, e);
		if (!ret)
			ret = rtcode_gate(&c, &p, rate, addr, e);
	}
	return ret == -EBADMSG ? -ENOENT : ret;
}

int rtvar_decode(struct gobin *b, enum rtvar v, uint64_t *addr, struct err *e)
{
	struct asked q CLEANUP(asked_fini) = { .n = 0 };
	int minor = gobin_info(b)->minor, ret;
	const struct rtvar_def *d;

	BUG_ON((unsigned int)v >= RTVAR_COUNT);
	d = &rtvar_defs[v];
	if (minor >= 0 && minor < d->since)
		return err_set(e, -ENOENT, "%s: came with go1.%u", d->name, d->since);
	ret = ask_all(b, d, &q, e);
	if (ret)
		return err_wrap(e, ret, "%s", d->name);
	ret = d->rule == RULE_CASES ? by_cases(b, d, &q, addr, e) :
	      d->rule == RULE_GATE  ? by_gate(b, &q, addr, e) :
				      by_votes(b, d, &q, addr, e);
	return ret ? err_wrap(e, ret, "%s: no symbol, and by the code of %zu runtime functions",
			      d->name, q.found) :
		     0;
}

static int by_symbol_or_code(struct gobin *b, enum rtvar v, uint64_t *addr, struct err *e)
{
	const struct rtvar_def *d = &rtvar_defs[v];
	struct rtplaces p = places_of(b);
	uint64_t at, size;

	if (gobin_info(b)->plugin)
		return err_set(e, -ENOENT, "%s: a plugin uses that of the program that opened it",
			       d->name);
	for (size_t i = 0; i < ARRAY_LEN(d->symbols) && d->symbols[i]; i++) {
		if (gobin_symbol(b, d->symbols[i], &at, &size, NULL) < 0)
			continue;
		/* A symbol table may be wrong like any other table. */
		if (rtplace_ok(&p, at, d->size, IN_ANY)) {
			*addr = at;
			return 0;
		}
	}
	return rtvar_decode(b, v, addr, e);
}

/* Where symbols are missing, each of them costs the decoding of some functions: 8 ms for the four of rtcounters. */
struct known {
	struct {
		bool asked;
		int ret;
		uint64_t addr;
		char why[256];
	} at[RTVAR_COUNT];
};

int rtvar_find(struct gobin *b, enum rtvar v, uint64_t *addr, struct err *e)
{
	struct known *k = gobin_keep(b, sizeof(*k));
	struct err why = { "" };
	int ret;

	BUG_ON((unsigned int)v >= RTVAR_COUNT);
	if (!k)
		return by_symbol_or_code(b, v, addr, e);
	if (!k->at[v].asked) {
		ret = by_symbol_or_code(b, v, &k->at[v].addr, &why);
		if (ret == -ENOMEM)
			return err_set(e, ret, "%s", why.msg);
		k->at[v].asked = true;
		k->at[v].ret = ret;
		snprintf(k->at[v].why, sizeof(k->at[v].why), "%s", why.msg);
	}
	if (k->at[v].ret)
		return err_set(e, k->at[v].ret, "%s", k->at[v].why);
	*addr = k->at[v].addr;
	return 0;
}
