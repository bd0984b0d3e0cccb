/* user/go/sites/waitsite.c - finds casgstatus, and the status changes that do not go through it. */
#include "go/sites/waitsite.h"

#include <stdbool.h>

#include "base/limits.h"
#include "go/sites/probesite_priv.h"

/* g.atomicstatus. Source: runtime/runtime2.go. */
enum { RUNNABLE = 1, RUNNING, SYSCALL, WAITING };

/*
 * What a caller of casgstatus must do: call it, or call another function of this list that does.
 * If it does neither, the probe goes into the caller itself, where that is enough to know which
 * change is made.
 */
struct rule {
	const char *name;
	enum waitsite_who who;
	uint8_t old, new; /* 0, 0: a probe there could not tell */
	/* it may also change the status itself, and calls casgstatus only when that fails */
	bool quick;
	/* it must call at least so many times (0: once); some of these calls may be copies */
	uint8_t calls;
	uint8_t by; /* index of the other function */
};

enum {
	R_CHANGE,
	R_TO_WAITING,
	R_PARK,
	R_READY,
	R_EXECUTE,
	R_YIELD,
	R_REENTER,
	R_ENTER,
	R_LEAVE,
	R_LEAVE_SLOW,
	R_LEAVE_NO_P,
	R_INJECT,
	NRULES
};
_Static_assert((int)NRULES <= (int)WAITSITES_MAX, "each may have a site");

#define RULE(i, n, w, from, to, ...) \
	[i] = { .name = "runtime." n, .who = w, .old = from, .new = to, ##__VA_ARGS__ }
#define MUST_CALL(i, n) [i] = { .name = "runtime." n }

static const struct rule rules[NRULES] = {
	MUST_CALL(R_CHANGE, "casgstatus"),
	RULE(R_TO_WAITING, "casGToWaiting", WAITSITE_ARG0, RUNNING, WAITING),
	/* A goroutine parks, and goes on immediately. */
	RULE(R_PARK, "park_m", WAITSITE_ARG0, RUNNING, WAITING, .calls = 2, .by = R_TO_WAITING),
	RULE(R_READY, "ready", WAITSITE_ARG0, WAITING, RUNNABLE),
	RULE(R_EXECUTE, "execute", WAITSITE_ARG0, RUNNABLE, RUNNING),
	RULE(R_YIELD, "goschedImpl", WAITSITE_ARG0, RUNNING, RUNNABLE),
	RULE(R_REENTER, "reentersyscall", WAITSITE_CURRENT, RUNNING, SYSCALL, .quick = true),
	RULE(R_ENTER, "entersyscall", WAITSITE_CURRENT, RUNNING, SYSCALL, .quick = true,
	     .by = R_REENTER),
	RULE(R_LEAVE, "exitsyscall", WAITSITE_CURRENT, SYSCALL, RUNNING, .quick = true),
	RULE(R_LEAVE_SLOW, "exitsyscall0", WAITSITE_ARG0, SYSCALL, RUNNABLE),
	RULE(R_LEAVE_NO_P, "exitsyscallNoP", WAITSITE_ARG0, RUNNING, RUNNABLE),
	MUST_CALL(R_INJECT, "injectglist"),
};

struct finder {
	struct gobin *b;
	struct arch *a;
	int32_t off; /* offset of the status */
	struct gofunc f[NRULES];
	struct waitsite *out;
	int n;
	uint8_t code[LIMIT_DECODE];
};

/* What the instructions of a function say about the status. */
struct says {
	unsigned int calls; /* calls of casgstatus, or of the other function */
	/* it names g.atomicstatus, or a field of another struct at the same offset */
	bool names;
};

static int read_code(struct finder *k, const struct rule *r, const struct gofunc *f,
		     struct says *out, struct err *e)
{
	uint64_t len = f->end > f->entry ? f->end - f->entry : 0;
	size_t n = len < sizeof(k->code) ? (size_t)len : sizeof(k->code);
	int rc = mem_read(gobin_mem(k->b), f->entry, k->code, n, e);
	struct insn in;

	*out = (struct says){ 0 };
	for (size_t at = 0; !rc && at < n; at += in.len) {
		arch_decode(k->a, k->code + at, n - at, f->entry + at, &in);
		if (in.kind == INSN_BAD)
			return err_set(e, -ENOTSUP, "%s cannot be decoded at 0x%llx", r->name,
				       (unsigned long long)in.addr);
		out->calls += in.kind == INSN_CALL && in.target &&
			      (in.target == k->f[R_CHANGE].entry ||
			       (r->by && in.target == k->f[r->by].entry));
		out->names |= in.base && in.off == k->off;
	}
	return rc;
}

static int add_site(struct finder *k, size_t i, struct err *e)
{
	struct waitsite *w = &k->out[k->n];
	const struct rule *r = &rules[i];
	int rc;

	*w = (struct waitsite){ .name = r->name, .who = r->who, .old = r->old, .new = r->new };
	rc = probesite_find_cheap(k->b, &k->f[i], &w->site, e);
	if (rc < 0)
		return err_wrap(e, rc, "%s", r->name);
	k->n++;
	return 0;
}

static int settle(struct finder *k, size_t i, struct err *e)
{
	const struct rule *r = &rules[i];
	struct says says;
	int rc;

	if (!k->f[i].entry) /* its callers have copies of it, or this Go does not know it */
		return 0;
	rc = read_code(k, r, &k->f[i], &says, e);
	if (rc < 0)
		return rc;
	if (says.calls >= (r->calls ? r->calls : 1) && !(r->quick && says.names))
		return 0;
	if (!r->new)
		return err_set(e, -ENOTSUP, "%s does not call %s, as in no Go that is known",
			       r->name, rules[R_CHANGE].name);
	return add_site(k, i, e);
}

int waitsites_find(struct gobin *b, int32_t g_atomicstatus, struct waitsite out[WAITSITES_MAX],
		   struct err *e)
{
	CLEANUP(freep) struct finder *k = calloc(1, sizeof(*k));
	CLEANUP(arch_freep) struct arch *a = NULL;
	const char *names[NRULES];
	int rc;

	if (!k)
		return err_set(e, -ENOMEM, "no memory");
	for (size_t i = 0; i < NRULES; i++)
		names[i] = rules[i].name;
	rc = arch_open(gobin_info(b)->arch, &a, e);
	if (!rc)
		rc = gobin_funcs_named(b, names, NRULES, k->f, e);
	if (rc < 0)
		return rc;
	/* Without these it would not be noticed that their work is done elsewhere. */
	for (size_t i = 0; i < NRULES; i++)
		if ((i == R_CHANGE || i == R_PARK || i == R_READY || i == R_EXECUTE ||
		     i == R_ENTER || i == R_LEAVE) &&
		    !k->f[i].entry)
			return err_set(e, -ENOENT, "no function %s", names[i]);
	k->b = b;
	k->a = a;
	k->off = g_atomicstatus;
	k->out = out;
	rc = add_site(k, R_CHANGE, e);
	for (size_t i = R_CHANGE + 1; !rc && i < NRULES; i++)
		rc = settle(k, i, e);
	return rc < 0 ? rc : k->n;
}
