/* user/collect/waits/engine/wait_left.c - one pass over allgs. */
#include "collect/waits/engine/wait_left.h"

#include "go/runtime/rtgor.h"
#include "go/runtime/vars/rtvar.h"
#include "go/runtime/waitreason.h"
#include "goprof_abi.h"

enum { GS_MAX = 1 << 20, GS_BATCH = 1024, G_BYTES = 512, STATUS_SCAN = 0x1000 };

bool wait_by_runtime(struct subject *s, uint64_t start)
{
	static const char *const programs_own[] = { "runtime.main", "runtime.corostart",
						    "runtime.handleAsyncEvent" };
	const char *name = subject_func_name(s, start);

	if (!name || strncmp(name, "runtime.", 8))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(programs_own); i++)
		if (!strcmp(name, programs_own[i]))
			return false;
	return true;
}

const char *wait_reason_text(int minor, unsigned reason, char buf[32])
{
	const char *name = waitreason_name(minor, reason);

	if (name && *name)
		return name;
	if (name)
		return "waiting";
	snprintf(buf, 32, "reason %u", reason);
	return buf;
}

static int fields_fit(const struct subject *s, struct err *e)
{
	static const enum layout_field f[] = { LAYOUT_g_atomicstatus, LAYOUT_g_waitreason,
					       LAYOUT_g_startpc };

	for (size_t i = 0; i < ARRAY_LEN(f); i++)
		if (s->layout.off[f[i]] < 0 || s->layout.off[f[i]] > G_BYTES - 8)
			return err_set(e, -ENOTSUP, "layout (%s): %s at %d", s->layout.from,
				       layout_field_name(f[i]), s->layout.off[f[i]]);
	return 0;
}

static void look_at(struct subject *s, uint64_t g, struct wait_left *out)
{
	const int32_t *off = s->layout.off;
	uint8_t raw[G_BYTES];
	uint32_t status;
	uint64_t start;
	size_t n = 8;

	for (const enum layout_field *f =
		     (const enum layout_field[]){ LAYOUT_g_atomicstatus, LAYOUT_g_waitreason,
						  LAYOUT_g_startpc, LAYOUT_COUNT };
	     *f != LAYOUT_COUNT; f++)
		n = (size_t)off[*f] + 8 > n ? (size_t)off[*f] + 8 : n;
	if (mem_read(s->target->mem, g, raw, n, NULL))
		return;
	memcpy(&status, raw + off[LAYOUT_g_atomicstatus], sizeof(status));
	memcpy(&start, raw + off[LAYOUT_g_startpc], sizeof(start));
	status &= ~(uint32_t)STATUS_SCAN;
	if (status == GSTATUS_LEAKED)
		status = GPB_G_WAITING;
	if ((status != GPB_G_WAITING && status != GPB_G_SYSCALL && status != GPB_G_RUNNABLE) ||
	    wait_by_runtime(s, start))
		return;
	if (status == GPB_G_WAITING)
		out->waiting[raw[off[LAYOUT_g_waitreason]]]++;
	else if (status == GPB_G_SYSCALL)
		out->syscall++;
	else
		out->runnable++;
	out->sum++;
}

int wait_left(struct subject *s, struct wait_left *out, struct err *e)
{
	uint64_t allgs = 0, slice[3], list[GS_BATCH];
	struct wait_left sum = {};
	int ret = fields_fit(s, e);

	if (!ret)
		ret = rtvar_find(s->bin, RTVAR_ALLGS, &allgs, e);
	if (!ret)
		ret = mem_read(s->target->mem, allgs + s->bias, slice, sizeof(slice), e);
	if (ret)
		return ret;
	if (!slice[0] || slice[1] > slice[2] || slice[1] > GS_MAX)
		return err_set(e, -EBADMSG, "runtime.allgs has %llu goroutines at 0x%llx",
			       (unsigned long long)slice[1], (unsigned long long)slice[0]);
	for (uint64_t i = 0; i < slice[1]; i += GS_BATCH) {
		size_t n = slice[1] - i < GS_BATCH ? (size_t)(slice[1] - i) : GS_BATCH;

		ret = mem_read(s->target->mem, slice[0] + 8 * i, list, n * 8, e);
		if (ret)
			return ret;
		for (size_t k = 0; k < n; k++)
			look_at(s, list[k], &sum);
	}
	*out = sum;
	return 0;
}
