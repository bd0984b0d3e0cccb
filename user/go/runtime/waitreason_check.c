/*
 * user/go/runtime/waitreason_check.c - do the numbers of wait reasons still mean what they meant?
 *
 * (waitReason).String looks a number up in waitReasonStrings, so that the address of the table
 * stands in its instructions. Source: runtime/runtime2.go, Go 1.16 to 1.27.
 */
#include "arch/arch.h"
#include "base/limits.h"
#include "base/vec.h"
#include "go/runtime/waitreason.h"

enum { TABLES = 4, TEXT_MAX = 64 };

static const char string_method[] = "runtime.waitReason.String";

/* Collects what the method takes the address of: the table, and a string for numbers beyond it. */
static int addresses(struct gobin *b, uint64_t out[TABLES], struct err *e)
{
	CLEANUP(arch_freep) struct arch *a = NULL;
	const char *name = string_method;
	struct gofunc f = { 0 };
	uint8_t code[LIMIT_DECODE];
	struct insn in;
	size_t len = 0;
	int n = 0, rc;

	rc = arch_open(gobin_info(b)->arch, &a, e);
	if (!rc)
		rc = gobin_funcs_named(b, &name, 1, &f, e);
	if (rc > 0) {
		len = f.end - f.entry < sizeof(code) ? (size_t)(f.end - f.entry) : sizeof(code);
		rc = mem_read(gobin_mem(b), f.entry, code, len, e);
	}
	if (rc < 0)
		return rc;
	for (size_t at = 0; at < len && n < TABLES; at += in.len) {
		arch_decode(a, code + at, len - at, f.entry + at, &in);
		if (in.kind == INSN_BAD)
			break;
		if (in.mem_addr && !in.mem_width)
			out[n++] = in.mem_addr;
	}
	if (n)
		return n;
	return err_set(e, -ENOTSUP, "what its wait reasons mean cannot be told: no table in %s",
		       string_method);
}

/* Returns 1 when the string at index @v of the table is @text. */
static int holds(struct mem *live, uint64_t table, unsigned int v, const char *text)
{
	uint64_t str[2];
	char have[TEXT_MAX];
	size_t n = strlen(text);

	if (mem_read(live, table + 16ull * v, str, sizeof(str), NULL) || str[1] != n ||
	    n > TEXT_MAX)
		return 0;
	return !n || (!mem_read(live, str[0], have, n, NULL) && !memcmp(have, text, n));
}

int waitreason_check(struct gobin *b, struct mem *live, uint64_t bias, struct err *e)
{
	int minor = gobin_info(b)->minor;
	uint64_t at[TABLES];
	unsigned int best = 0;
	int n = addresses(b, at, e);

	for (int i = 0; i < n; i++) {
		const char *text;
		unsigned int v = 0;

		while ((text = waitreason_spelt(minor, v)) && holds(live, at[i] + bias, v, text))
			v++;
		if (!text)
			return 0;
		best = v > best ? v : best;
	}
	if (n < 0)
		return n;
	return err_set(e, -ENOTSUP, "its wait reason %u is not \"%s\", as in the Go before it",
		       best, waitreason_spelt(minor, best));
}
