/*
 * user/go/layout/layout.c - chooses where the offsets of a binary come from, and looks them up in the
 * table.
 */
#include "go/layout/layout.h"

#include "base/limits.h"
#include "go/layout/layout_priv.h"

static const char *const names[LAYOUT_COUNT] = {
#define LAYOUT_NAME(id, s, f) #id,
	LAYOUT_FIELDS(LAYOUT_NAME)
#undef LAYOUT_NAME
};

const char *layout_field_name(enum layout_field f)
{
	return (unsigned int)f < LAYOUT_COUNT ? names[f] : "?";
}

static const char *arch_name(unsigned int arch)
{
	return arch == ARCH_AMD64 ? "amd64" : arch == ARCH_ARM64 ? "arm64" : "other";
}

/*
 * -DLAYOUT_NEWEST_MINOR=26 makes a test build that knows nothing newer: what it does with Go 1.27
 * is what we will do with the Go that comes next (tests/e2e/unknown_go.sh).
 */
static bool is_known(const struct layout_row *r)
{
#ifdef LAYOUT_NEWEST_MINOR
	return r->minor <= LAYOUT_NEWEST_MINOR;
#else
	return r != NULL;
#endif
}

static bool agree(const struct layout_row *a, const struct layout_row *b)
{
	return a->offsets == b->offsets && a->classes == b->classes;
}

/*
 * Chooses between the releases of one minor on both sides of @patch. Where they differ, the
 * nearer one is taken; at the same distance the older one, because what moves inside a minor
 * moves with its later fixes.
 */
static const struct layout_row *between(const struct layout_row *lo, const struct layout_row *hi,
					int patch, enum layout_how *how)
{
	*how = LAYOUT_TABLE;
	if (lo && (lo->patch == patch || (hi && agree(lo, hi))))
		return lo;
	*how = LAYOUT_NEAREST;
	if (!lo || !hi)
		return lo ? lo : hi;
	return hi->patch - patch < patch - lo->patch ? hi : lo;
}

const struct layout_row *layout_row_find(enum arch_id arch, int minor, int patch,
					 enum layout_how *how)
{
	const struct layout_row *lo = NULL, *hi = NULL, *below = NULL, *newest = NULL;

	for (size_t i = 0; i < layout_nrows; i++) {
		const struct layout_row *r = &layout_rows[i];

		if (r->arch != arch || !is_known(r))
			continue;
		newest = r;
		if (r->minor < minor)
			below = r;
		else if (r->minor == minor && r->patch <= patch)
			lo = r;
		else if (r->minor == minor && !hi)
			hi = r;
	}
	*how = LAYOUT_GUESSED;
	if (minor < 0)
		return newest;
	return lo || hi ? between(lo, hi, patch, how) : below;
}

void layout_newest(char out[LAYOUT_RELEASE])
{
	out[0] = '\0';
	for (size_t i = 0; i < layout_nrows; i++)
		if (is_known(&layout_rows[i]))
			snprintf(out, LAYOUT_RELEASE, "go1.%u.%u", layout_rows[i].minor,
				 layout_rows[i].patch);
}

/*
 * An experiment may have changed any struct, so the release alone says little. Experiments that
 * are known to leave structs alone are not treated differently: mostly DWARF answers.
 */
static const struct layout_row *row_of(struct gobin *b, enum layout_how *how)
{
	const struct gobin_info *i = gobin_info(b);
	const struct layout_row *r = layout_row_find(i->arch, i->minor, i->patch, how);

	if (i->experiments && i->experiments[0])
		*how = LAYOUT_GUESSED;
	return r;
}

static void from_row(const struct layout_row *r, enum layout_how how, struct golayout *out)
{
	out->how = how;
	out->newer = false;
	snprintf(out->from, sizeof(out->from), "%s go1.%u.%u %s",
		 how == LAYOUT_TABLE   ? "table" :
		 how == LAYOUT_NEAREST ? "table, nearest release" :
					 "guessed from",
		 r->minor, r->patch, arch_name(r->arch));
	for (size_t i = 0; i < LAYOUT_COUNT; i++)
		out->off[i] = layout_offsets[r->offsets][i];
}

int layout_from_dwarf(struct gobin *b, struct golayout *out, struct err *e)
{
	struct golayout l = { .how = LAYOUT_DWARF, .from = "DWARF" };
	uint32_t header_over;
	int rc;

	if (!gobin_info(b)->has_dwarf)
		return err_set(e, -ENOENT, "no DWARF");
	rc = layout_dwarf_apart(gobin_fd(b), l.off, &header_over, e);
	if (rc < 0)
		return rc;
	*out = l;
	return 0;
}

/* Is the DWARF too large to be worth reading when the table knows this very release? */
static bool dwarf_is_large(struct gobin *b)
{
	uint64_t bytes = 0;

	return layout_dwarf_bytes(gobin_fd(b), &bytes, NULL) < 0 || bytes > LIMIT_DWARF_BYTES;
}

int layout_find(struct gobin *b, struct golayout *out, struct err *e)
{
	struct err why = { .msg = "no DWARF" };
	enum layout_how how;
	const struct gobin_info *i = gobin_info(b);
	const struct layout_row *r = row_of(b, &how);
	bool newer = i->minor < 0 || (r && r->minor != i->minor);

	if (i->has_dwarf && !(r && how == LAYOUT_TABLE && dwarf_is_large(b)) &&
	    !layout_from_dwarf(b, out, &why)) {
		out->newer = newer;
		return 0;
	}
	if (!r)
		return err_set(e, -ENOTSUP,
			       "the runtime's structs of %s are not known, and of its DWARF: %s",
			       i->version, why.msg);
	from_row(r, how, out);
	out->newer = newer;
	return 0;
}

/* ---- size classes ---------------------------------------------------------------------------- */

/* Were the headers left out by GOEXPERIMENT=noallocheaders (go1.22, go1.23)? */
static bool no_headers(const struct gobin_info *i)
{
	return i->experiments && strstr(i->experiments, "noallocheaders");
}

int layout_sizeclasses(struct gobin *b, struct sizeclasses *out, struct err *e)
{
	enum layout_how how;
	const struct layout_row *r = row_of(b, &how);

	if (!r)
		return err_set(e, -ENOTSUP, "the allocator's slot sizes of %s are not known",
			       gobin_info(b)->version);
	*out = layout_classes[r->classes];
	if (no_headers(gobin_info(b)))
		out->header_over = 0;
	return 0;
}

const char *bucket_kind_name(enum bucket_kind k)
{
	static const char *const kinds[] = { "unknown", "memory", "block", "mutex" };

	return (unsigned)k < ARRAY_LEN(kinds) ? kinds[k] : kinds[0];
}
