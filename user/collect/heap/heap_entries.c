/* user/collect/heap/heap_entries.c - where in a file a heap profile puts its probes. */
#include "collect/heap/heap_probe_priv.h"

static uint64_t cookie_of(const struct alloc_entry *a, size_t image)
{
	return (uint64_t)a->kind | image << GPB_COOKIE_IMAGE_SHIFT |
	       (a->site.kind == SITE_NOSPLIT_ENTRY ? GPB_COOKIE_ENTRY : 0) |
	       (a->site.stepped ? GPB_COOKIE_STEPPED : 0) |
	       (a->not_from_hi ? GPB_COOKIE_NOT_FROM : 0) | (a->assists ? GPB_COOKIE_ASSISTS : 0);
}

static struct uprobe_site maker_site_of(const struct maker_site *m, uint64_t bias)
{
	return (struct uprobe_site){ .file_off = m->site.file_off,
				     .addr = m->site.addr + bias,
				     .cookie = m->arg | GPB_COOKIE_MAKER };
}

/* Finds the functions that alone know the type of what they allocate. */
static int find_makers(struct heap_probe *h, size_t i, struct err *e)
{
	int ret = h->o.heap.types ? rtmaker_sites(h->s->images.at[i].bin, h->makers[i], e) : 0;

	if (ret < 0)
		return ret;
	h->nmakers[i] = (size_t)ret;
	return 0;
}

void heap_probe_place(struct heap_probe *h, size_t i)
{
	const struct alloc_entry *at = h->entries + i * ALLOC_ENTRIES_MAX;
	uint64_t bias = h->s->images.at[i].bias;

	for (size_t k = 0; k < h->nentries[i]; k++) {
		if (!at[k].not_from_hi)
			continue;
		h->heap.not_from[i].lo = at[k].not_from_lo + bias;
		h->heap.not_from[i].hi = at[k].not_from_hi + bias;
	}
}

int heap_probe_entries(struct heap_probe *h, size_t i, struct err *e)
{
	const struct image *img = &h->s->images.at[i];
	struct alloc_entry *at = h->entries + i * ALLOC_ENTRIES_MAX;
	struct err why = { "" };
	int ret = alloc_entries(img->bin, at, &why);

	if (ret == -ENOENT && i) { /* a plugin without an allocator of its own */
		h->nentries[i] = 0;
		return 0;
	}
	if (ret < 0)
		return err_set(e, ret, "%s", why.msg);
	h->nentries[i] = (size_t)ret;
	h->nsites += h->nentries[i];
	ret = h->s->layout.newer ? alloc_check(img->bin, at, h->nentries[i], e) : 0;
	if (ret < 0)
		return ret;
	heap_probe_place(h, i);
	return find_makers(h, i, e);
}

static void list_image(struct heap_probe *h, struct site_list *l, size_t i)
{
	struct uprobe_group *g = &l->groups[l->ngroups];

	*g = (struct uprobe_group){ .prog = h->obj->progs.heap_alloc, .sites = l->sites + l->n };
	image_path(&h->s->images.at[i], g->path);
}

/* All sites of the image are in the list: they are @of's. */
static void list_end(struct site_list *l, uint32_t of)
{
	struct uprobe_group *g = &l->groups[l->ngroups];
	size_t first = (size_t)(g->sites - l->sites);

	g->n = l->n - first;
	for (size_t i = first; i < l->n; i++)
		l->sites[i].cookie |= (uint64_t)of << GPB_COOKIE_SLOT_SHIFT;
	l->ngroups += g->n > 0;
}

void heap_probe_list(struct heap_probe *h, size_t i, uint32_t of, struct site_list *all,
		     struct site_list *large)
{
	const struct alloc_entry *at = h->entries + i * ALLOC_ENTRIES_MAX;
	struct site_list *to = large ? large : all;
	struct uprobe_site live[HEAP_LIVE_SITES];
	uint64_t bias = h->s->images.at[i].bias;
	size_t more = 0;

	list_image(h, all, i);
	if (large)
		list_image(h, large, i);
	for (size_t k = 0; k < h->nentries[i]; k++) {
		struct site_list *l = at[k].kind == ALLOC_LARGE ? to : all;

		l->sites[l->n++] = (struct uprobe_site){ .file_off = at[k].site.file_off,
							 .addr = at[k].site.addr + bias,
							 .cookie = cookie_of(&at[k], i) };
	}
	for (size_t k = 0; k < h->nmakers[i]; k++)
		all->sites[all->n++] = maker_site_of(&h->makers[i][k], bias);
	if (h->nentries[i])
		more = heap_use_sites(&h->use, i, live);
	for (size_t k = 0; k < more; k++) {
		struct site_list *l = (live[k].cookie & GPB_COOKIE_KIND) == GPB_ALLOC_PLACED ? to :
											       all;

		l->sites[l->n++] = live[k];
	}
	list_end(all, of);
	if (large)
		list_end(large, of);
}
