/* user/collect/heap/window/heap_sites.c - finds the functions, and the instructions in them. */
#include "collect/heap/window/heap_sites.h"

#include "go/sites/probesite.h"
#include "goprof_abi.h"

/* Returns 0 also when there is no such function: then @f has no entry. */
static int find_func(const struct image *img, const char *name, struct gofunc *f, struct err *e)
{
	int n = gobin_funcs_named(img->bin, &name, 1, f, e);

	return n < 0 ? n : 0;
}

bool heap_sites_needed(const struct image *img)
{
	struct gofunc f = { 0 };

	return !find_func(img, "runtime.mallocgc", &f, NULL) && f.entry;
}

/* Adds the instructions where @name returns to @to. */
static int add_returns(const struct image *img, struct heap_sites *to, const char *name,
		       unsigned kind, struct err *e)
{
	size_t room = HEAP_LIVE_SITES - to->n;
	struct probesite at[HEAP_LIVE_SITES];
	struct gofunc f = { 0 };
	int n = find_func(img, name, &f, e);

	if (n < 0)
		return n;
	if (!f.entry)
		return err_set(e, -ENOTSUP, "the binary has no function %s", name);
	n = probesite_returns(img->bin, &f, at, room, e);
	if (n < 0)
		return err_wrap(e, n, "%s", name);
	for (int i = 0; i < n; i++)
		to->at[to->n++] = (struct uprobe_site){
			.file_off = at[i].file_off,
			.addr = at[i].addr + img->bias,
			.cookie = kind | GPB_COOKIE_ENTRY |
				  (at[i].stepped ? GPB_COOKIE_STEPPED : 0),
		};
	return 0;
}

int heap_sites_find(const struct image *img, struct heap_sites *out, struct err *e)
{
	int ret;

	if (!heap_sites_needed(img))
		return 0;
	ret = add_returns(img, out, "runtime.(*mcache).allocLarge", GPB_ALLOC_PLACED, e);
	if (ret)
		return ret;
	add_returns(img, out, "runtime.(*mcache).refill", GPB_ALLOC_REFILLED, NULL);
	add_returns(img, out, "runtime.gcAssistAlloc", GPB_ALLOC_ASSISTED, NULL);
	return 0;
}

int heap_sites_cycle(const struct image *img, struct uprobe_site *out, struct err *e)
{
	static const char *const name = "runtime.gcSweep";
	struct probesite site;
	struct gofunc f = { 0 };
	int ret = find_func(img, name, &f, e);

	if (!ret && !f.entry)
		ret = err_set(e, -ENOENT, "no function %s", name);
	if (!ret)
		ret = probesite_find(img->bin, &f, &site, e);
	if (ret)
		return ret;
	*out = (struct uprobe_site){
		.file_off = site.file_off,
		.addr = site.addr + img->bias,
		.cookie = site.kind == SITE_NOSPLIT_ENTRY ? GPB_COOKIE_ENTRY : 0,
	};
	return 0;
}
