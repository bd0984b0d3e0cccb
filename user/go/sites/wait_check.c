/*
 * user/go/sites/wait_check.c - do all waits pass the functions that are probed for them?
 *
 * A profile-guided build copies hot functions into their callers, and a probe on the function
 * itself misses those calls. This was seen with gopark (which is why park_m is probed: mcall
 * takes its address), chanrecv and dequeue; Go 1.24 and 1.27. Source: goready and readyWithTime
 * in runtime/proc.go and sema.go, semrelease1 and the wrappers of semacquire1 in runtime/sema.go;
 * Go 1.18 to 1.27.
 */
#include "base/vec.h"
#include "go/image/calls.h"
#include "go/sites/probesite.h"

enum { READY, SEMACQUIRE, DEQUEUE, SEMRELEASE, CALLEES };

static const char *const callees[CALLEES] = {
	[READY] = "runtime.ready",
	[SEMACQUIRE] = "runtime.semacquire1",
	[DEQUEUE] = "runtime.(*semaRoot).dequeue",
	[SEMRELEASE] = "runtime.semrelease1",
};

/* Which of these functions a function of that name calls, or has a copy of; CALLEES for none. */
static int must_call(const char *name)
{
	const char *dot = strstr(name, ".runtime_Sem");

	if (strstr(name, "goready.func"))
		return READY;
	if (!strcmp(name, "runtime.semrelease1"))
		return DEQUEUE;
	if (!dot || (strncmp(name, "sync.", 5) && strncmp(name, "internal/", 9)))
		return CALLEES;
	return strstr(dot, "acquire") ? SEMACQUIRE : SEMRELEASE;
}

static int check_function(struct gobin *b, struct arch *a, const struct gofunc *f,
			  const struct gofunc *to, bool mutex, uint8_t *code, struct err *e)
{
	const char *name = gobin_func_name(b, f);
	int which = name ? must_call(name) : CALLEES;

	if (which == CALLEES || (!mutex && (which == DEQUEUE || which == SEMRELEASE)))
		return 0;
	if (to[which].entry && calls_any(b, a, f, &to[which], 1, code))
		return 0;
	/* If it has a copy of semrelease1 in it, then a call of what that calls is enough. */
	if (which == SEMRELEASE && to[DEQUEUE].entry && calls_any(b, a, f, &to[DEQUEUE], 1, code))
		return 0;
	return err_set(e, -ENOTSUP,
		       "%s does not call %s: a profile-guided build has copied it, and what passes "
		       "there would be missing",
		       name, callees[which]);
}

int wait_check(struct gobin *b, bool mutex, struct err *e)
{
	CLEANUP(freep) uint8_t *code = malloc(CALLS_CODE_MAX);
	CLEANUP(arch_freep) struct arch *a = NULL;
	struct gofunc to[CALLEES] = { { 0 } }, f;
	int ret;

	if (!code)
		return err_set(e, -ENOMEM, "no memory to look through the scheduler");
	ret = gobin_funcs_named(b, callees, CALLEES, to, e);
	if (ret >= 0)
		ret = arch_open(gobin_info(b)->arch, &a, e);
	for (size_t i = 0; ret >= 0 && i < gobin_nfuncs(b); i++) {
		ret = gobin_func_index(b, i, &f, e);
		if (ret >= 0)
			ret = check_function(b, a, &f, to, mutex, code, e);
	}
	return ret < 0 ? ret : 0;
}
