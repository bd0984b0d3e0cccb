/* user/go/image/tables/funcid.c - function ids per Go version. */
#include "go/image/tables/funcid.h"

#include "base/cleanup.h"

/* Ids that are not listed are FUNC_OTHER, 0 is FUNC_NORMAL in every version. */
static const uint8_t ids_116[] = {
	[2] = FUNC_GOEXIT,	  [4] = FUNC_MCALL,
	[5] = FUNC_MORESTACK,	  [6] = FUNC_MSTART,
	[7] = FUNC_RT0_GO,	  [8] = FUNC_ASMCGOCALL,
	[9] = FUNC_SIGPANIC,	  [12] = FUNC_SYSTEMSTACK_SWITCH,
	[13] = FUNC_SYSTEMSTACK,  [14] = FUNC_CGOCALLBACK,
	[18] = FUNC_GOPANIC,	  [19] = FUNC_PANICWRAP,
	[21] = FUNC_ASYNCPREEMPT, [22] = FUNC_WRAPPER,
};

static const uint8_t ids_117[] = {
	[1] = FUNC_ABORT,	 [2] = FUNC_ASMCGOCALL,
	[3] = FUNC_ASYNCPREEMPT, [4] = FUNC_CGOCALLBACK,
	[7] = FUNC_GOEXIT,	 [9] = FUNC_GOPANIC,
	[12] = FUNC_MCALL,	 [13] = FUNC_MORESTACK,
	[14] = FUNC_MSTART,	 [15] = FUNC_PANICWRAP,
	[16] = FUNC_RT0_GO,	 [19] = FUNC_SIGPANIC,
	[20] = FUNC_SYSTEMSTACK, [21] = FUNC_SYSTEMSTACK_SWITCH,
	[22] = FUNC_WRAPPER,
};

static const uint8_t ids_118[] = {
	[1] = FUNC_ABORT,	 [2] = FUNC_ASMCGOCALL,
	[3] = FUNC_ASYNCPREEMPT, [4] = FUNC_CGOCALLBACK,
	[7] = FUNC_GOEXIT,	 [9] = FUNC_GOPANIC,
	[11] = FUNC_MCALL,	 [12] = FUNC_MORESTACK,
	[13] = FUNC_MSTART,	 [14] = FUNC_PANICWRAP,
	[15] = FUNC_RT0_GO,	 [18] = FUNC_SIGPANIC,
	[19] = FUNC_SYSTEMSTACK, [20] = FUNC_SYSTEMSTACK_SWITCH,
	[21] = FUNC_WRAPPER,
};

static const uint8_t ids_122[] = {
	[1] = FUNC_ABORT,	 [2] = FUNC_ASMCGOCALL,
	[3] = FUNC_ASYNCPREEMPT, [4] = FUNC_CGOCALLBACK,
	[8] = FUNC_GOEXIT,	 [10] = FUNC_GOPANIC,
	[12] = FUNC_MCALL,	 [13] = FUNC_MORESTACK,
	[14] = FUNC_MSTART,	 [15] = FUNC_PANICWRAP,
	[16] = FUNC_RT0_GO,	 [19] = FUNC_SIGPANIC,
	[20] = FUNC_SYSTEMSTACK, [21] = FUNC_SYSTEMSTACK_SWITCH,
	[22] = FUNC_WRAPPER,
};

static const uint8_t ids_125[] = {
	[1] = FUNC_ABORT,	 [2] = FUNC_ASMCGOCALL,
	[3] = FUNC_ASYNCPREEMPT, [4] = FUNC_CGOCALLBACK,
	[8] = FUNC_GOEXIT,	 [10] = FUNC_GOPANIC,
	[12] = FUNC_MCALL,	 [13] = FUNC_MORESTACK,
	[14] = FUNC_MSTART,	 [15] = FUNC_PANICWRAP,
	[16] = FUNC_RT0_GO,	 [20] = FUNC_SIGPANIC,
	[21] = FUNC_SYSTEMSTACK, [22] = FUNC_SYSTEMSTACK_SWITCH,
	[23] = FUNC_WRAPPER,
};

/* Newest first: the first row applies whose version is not newer than the one asked for. */
static const struct {
	int minor;
	const uint8_t *ids;
	uint8_t n;
} versions[] = {
	{ 25, ids_125, ARRAY_LEN(ids_125) }, { 22, ids_122, ARRAY_LEN(ids_122) },
	{ 18, ids_118, ARRAY_LEN(ids_118) }, { 17, ids_117, ARRAY_LEN(ids_117) },
	{ 0, ids_116, ARRAY_LEN(ids_116) },
};

enum func_id funcid_of(int minor, uint8_t raw)
{
	size_t v = 0;

	if (!raw)
		return FUNC_NORMAL;
	while (v + 1 < ARRAY_LEN(versions) && versions[v].minor > minor)
		v++;
	if (raw >= versions[v].n || versions[v].ids[raw] == FUNC_NORMAL)
		return FUNC_OTHER;
	return (enum func_id)versions[v].ids[raw];
}
