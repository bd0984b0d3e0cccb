/*
 * tests/unit/test_heap_entries.c - the allocator's entries of a program and of a plugin become lists of probes, each with what its
 * hits are to be taken for. What reads the files' code is replaced by functions of these names.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "collect/heap/heap_probe_priv.h"
#include "heap.skel.h"

enum { PROGRAM, PLUGIN, IMAGES };

/* Where they are loaded: a byte of the file at F is at BIAS + FILE_BIAS + F. */
enum { FILE_BIAS = 0x400000, PLUGIN_BIAS = 0x10000000 };

/* ---- two files ---- */

static struct file {
	struct alloc_entry entries[4];
	int n; /* negative: an error */
	struct maker_site makers[2];
	int nmakers;
	struct uprobe_site live[4];
	size_t nlive;
	bool checked;
} files[IMAGES];
static int check_fails;

static struct gobin *bin_of(size_t i)
{
	return (struct gobin *)&files[i];
}

int alloc_entries(struct gobin *b, struct alloc_entry out[ALLOC_ENTRIES_MAX], struct err *e)
{
	const struct file *f = (struct file *)b;

	if (f->n < 0)
		return err_set(e, f->n, "its allocator is not known");
	memcpy(out, f->entries, sizeof(f->entries));
	return f->n;
}

int alloc_check(struct gobin *b, const struct alloc_entry *entries, size_t n, struct err *e)
{
	struct file *f = (struct file *)b;

	assert_int_equal(n, f->n);
	assert_memory_equal(entries, f->entries, n * sizeof(*entries));
	f->checked = true;
	return check_fails ? err_set(e, check_fails, "there are more") : 0;
}

int rtmaker_sites(struct gobin *b, struct maker_site out[MAKER_SITES_MAX], struct err *e)
{
	const struct file *f = (struct file *)b;

	if (f->nmakers < 0)
		return err_set(e, f->nmakers, "no makers");
	memcpy(out, f->makers, sizeof(f->makers));
	return f->nmakers;
}

size_t heap_use_sites(struct heap_use *u, size_t i, struct uprobe_site sites[HEAP_LIVE_SITES])
{
	(void)u;
	memcpy(sites, files[i].live, sizeof(files[i].live));
	return files[i].nlive;
}

const char *image_path(const struct image *img, char buf[SUBJECT_PATH])
{
	snprintf(buf, SUBJECT_PATH, "file %d", img->fd);
	return buf;
}

static struct probesite site_at(uint64_t addr, enum site_kind kind)
{
	return (struct probesite){ .kind = kind, .addr = addr, .file_off = addr - FILE_BIAS };
}

static struct alloc_entry *add(size_t file, enum alloc_kind kind, uint64_t addr)
{
	struct alloc_entry *a = &files[file].entries[files[file].n++];

	*a = (struct alloc_entry){ .kind = kind, .site = site_at(addr, SITE_STACK_BRANCH) };
	return a;
}

static void add_maker(size_t file, unsigned arg, uint64_t addr)
{
	files[file].makers[files[file].nmakers++] =
		(struct maker_site){ .site = site_at(addr, SITE_STACK_BRANCH), .arg = arg };
}

static void add_live(size_t file, uint64_t kind, uint64_t addr)
{
	files[file].live[files[file].nlive++] =
		(struct uprobe_site){ .addr = addr, .cookie = kind | GPB_COOKIE_ENTRY };
}

/* ---- a profile ---- */

static struct alloc_entry entries[IMAGES * ALLOC_ENTRIES_MAX];
static struct bpf_program *const heap_alloc = (struct bpf_program *)0x100;
static struct heap_bpf obj;
static struct target target;
static struct subject subject = { .target = &target };
static struct heap_probe h;
static struct site_list all, large;

static int set_up(void **state)
{
	(void)state;
	memset(files, 0, sizeof(files));
	memset(entries, 0, sizeof(entries));
	memset(&h, 0, sizeof(h));
	memset(&all, 0, sizeof(all));
	memset(&large, 0, sizeof(large));
	check_fails = 0;
	obj.progs.heap_alloc = heap_alloc;
	subject.layout.newer = false;
	subject.images.n = IMAGES;
	subject.images.at[PROGRAM] = (struct image){ .bin = bin_of(PROGRAM), .fd = 30 };
	subject.images.at[PLUGIN] =
		(struct image){ .bin = bin_of(PLUGIN), .fd = 31, .bias = PLUGIN_BIAS };
	h.s = &subject;
	h.obj = &obj;
	h.entries = entries;
	return 0;
}

static void find(size_t image)
{
	struct err e = {};

	if (heap_probe_entries(&h, image, &e))
		fail_msg("%s", e.msg);
}

/* What is to be probed, in a list of its own where @apart. */
static void list(size_t image, uint32_t of, bool apart)
{
	heap_probe_list(&h, image, of, &all, apart ? &large : NULL);
}

static void expect_site(const struct uprobe_site *at, uint64_t addr, uint64_t cookie)
{
	assert_int_equal(at->addr, addr);
	assert_int_equal(at->cookie, cookie);
}

/* ---- finding ---- */

static void entries_of_all_images_are_kept(void **state)
{
	(void)state;
	add(PROGRAM, ALLOC_TINY, 0x401000);
	add(PROGRAM, ALLOC_LARGE, 0x402000);
	add(PLUGIN, ALLOC_ANY, 0x401800);
	find(PROGRAM);
	find(PLUGIN);
	assert_true(h.nentries[PROGRAM] == 2 && h.nentries[PLUGIN] == 1 && h.nsites == 3);
	assert_int_equal(entries[1].site.addr, 0x402000);
	assert_int_equal(entries[ALLOC_ENTRIES_MAX].site.addr, 0x401800);
}

/* Only the runtime of a Go that nobody knew yet may have entries of other names. */
static void a_newer_gos_entries_are_checked(void **state)
{
	struct err e = {};

	(void)state;
	add(PROGRAM, ALLOC_TINY, 0x401000);
	find(PROGRAM);
	assert_false(files[PROGRAM].checked);
	subject.layout.newer = true;
	find(PROGRAM);
	assert_true(files[PROGRAM].checked);
	check_fails = -ENOTSUP;
	assert_int_equal(heap_probe_entries(&h, PROGRAM, &e), -ENOTSUP);
	assert_string_equal(e.msg, "there are more");
}

static void makers_are_probed_for_types_only(void **state)
{
	(void)state;
	add(PROGRAM, ALLOC_TINY, 0x401000);
	add_maker(PROGRAM, 4, 0x403000);
	find(PROGRAM);
	assert_int_equal(h.nmakers[PROGRAM], 0);
	h.o.heap.types = true;
	find(PROGRAM);
	assert_int_equal(h.nmakers[PROGRAM], 1);
}

static void what_cannot_be_found_is_an_error(void **state)
{
	struct err e = {};

	(void)state;
	files[PROGRAM].n = -ENOTSUP;
	assert_int_equal(heap_probe_entries(&h, PROGRAM, &e), -ENOTSUP);
	assert_string_equal(e.msg, "its allocator is not known");
	assert_true(!h.nentries[PROGRAM] && !h.nsites);

	files[PROGRAM].n = 0;
	add(PROGRAM, ALLOC_TINY, 0x401000);
	h.o.heap.types = true;
	files[PROGRAM].nmakers = -EBADMSG;
	assert_int_equal(heap_probe_entries(&h, PROGRAM, &e), -EBADMSG);
	assert_string_equal(e.msg, "no makers");
	assert_int_equal(h.nmakers[PROGRAM], 0);
}

/* It is loaded in mid-profile, and what the program itself has goes on. */
static void a_plugin_without_an_allocator_is_no_error(void **state)
{
	(void)state;
	files[PLUGIN].n = -ENOENT;
	find(PLUGIN);
	assert_true(!h.nentries[PLUGIN] && !h.nsites);
	files[PROGRAM].n = -ENOENT;
	assert_int_equal(heap_probe_entries(&h, PROGRAM, NULL), -ENOENT);
}

/* ---- calls that are counted elsewhere ---- */

/* The BPF side compares return addresses, which are live ones, with those of the image that the probe is in. */
static void what_mallocgc_calls_is_dropped_by_live_addresses(void **state)
{
	struct alloc_entry *a;

	(void)state;
	a = add(PLUGIN, ALLOC_NOSCAN, 0x402000);
	a->not_from_lo = 0x400f00;
	a->not_from_hi = 0x401f00;
	add(PLUGIN, ALLOC_ANY, 0x401000);
	find(PLUGIN);
	assert_int_equal(h.heap.not_from[PLUGIN].lo, 0x10400f00);
	assert_int_equal(h.heap.not_from[PLUGIN].hi, 0x10401f00);
	assert_int_equal(h.heap.not_from[PROGRAM].hi, 0);
	list(PLUGIN, 0, false);
	assert_int_equal(all.n, 2);
	assert_int_equal(all.sites[0].cookie & GPB_COOKIE_NOT_FROM, GPB_COOKIE_NOT_FROM);
	assert_int_equal(all.sites[1].cookie & GPB_COOKIE_NOT_FROM, 0);
}

/* Of many processes the entries are their file's, which was loaded elsewhere in each of them. */
static void each_process_has_its_own_addresses(void **state)
{
	(void)state;
	add(PROGRAM, ALLOC_NOSCAN, 0x402000)->not_from_hi = 0x401f00;
	find(PROGRAM);
	assert_int_equal(h.heap.not_from[PROGRAM].hi, 0x401f00);
	subject.images.at[PROGRAM].bias = 0x5000;
	heap_probe_place(&h, PROGRAM);
	assert_int_equal(h.heap.not_from[PROGRAM].hi, 0x406f00);
}

/* ---- listing ---- */

static void a_site_is_told_by_file_and_by_address(void **state)
{
	(void)state;
	add(PLUGIN, ALLOC_TINY, 0x401800);
	find(PLUGIN);
	list(PLUGIN, 0, false);
	assert_int_equal(all.n, 1);
	assert_int_equal(all.sites[0].file_off, 0x1800);
	assert_int_equal(all.sites[0].addr, 0x10401800);
	assert_int_equal(all.ngroups, 1);
	assert_string_equal(all.groups[0].path, "file 31");
	assert_ptr_equal(all.groups[0].prog, heap_alloc);
	assert_ptr_equal(all.groups[0].sites, all.sites);
	assert_int_equal(all.groups[0].n, 1);
}

/* From a hit's cookie the BPF side knows all that it knows of the place. */
static void a_cookie_tells_what_a_hit_is(void **state)
{
	enum { IMAGE = PLUGIN << GPB_COOKIE_IMAGE_SHIFT, SLOT = 5 << GPB_COOKIE_SLOT_SHIFT };
	struct alloc_entry *a;

	(void)state;
	add(PLUGIN, ALLOC_SCAN_HEADER, 0x401000);
	add(PLUGIN, ALLOC_TINY, 0x402000)->site.kind = SITE_NOSPLIT_ENTRY;
	add(PLUGIN, ALLOC_ANY, 0x403000)->assists = true;
	a = add(PLUGIN, ALLOC_NOSCAN, 0x404000);
	a->site.stepped = true;
	find(PLUGIN);
	list(PLUGIN, 5, false);
	assert_int_equal(all.n, 4);
	assert_int_equal(all.sites[0].cookie, GPB_ALLOC_SCAN_HEADER | IMAGE | SLOT);
	assert_int_equal(all.sites[1].cookie, GPB_ALLOC_TINY | GPB_COOKIE_ENTRY | IMAGE | SLOT);
	assert_int_equal(all.sites[2].cookie, GPB_ALLOC_ANY | GPB_COOKIE_ASSISTS | IMAGE | SLOT);
	assert_int_equal(all.sites[3].cookie, GPB_ALLOC_NOSCAN | GPB_COOKIE_STEPPED | IMAGE | SLOT);
}

/* Makers are no allocators: instead of a kind they have the number of the argument that is a type. */
static void makers_and_places_of_objects_are_listed_too(void **state)
{
	(void)state;
	h.o.heap.types = true;
	add(PLUGIN, ALLOC_TINY, 0x401000);
	add_maker(PLUGIN, 4, 0x402000);
	add_live(PLUGIN, GPB_ALLOC_REFILLED, 0x10403000); /* this one is a live address already */
	find(PLUGIN);
	list(PLUGIN, 5, false);
	assert_int_equal(all.n, 3);
	assert_int_equal(all.sites[1].file_off, 0x2000);
	expect_site(&all.sites[1], 0x10402000, 4 | GPB_COOKIE_MAKER | 5 << GPB_COOKIE_SLOT_SHIFT);
	expect_site(&all.sites[2], 0x10403000,
		    GPB_ALLOC_REFILLED | GPB_COOKIE_ENTRY | 5 << GPB_COOKIE_SLOT_SHIFT);
	assert_int_equal(all.groups[0].n, 3);
}

static void add_some_of_each(size_t file)
{
	add(file, ALLOC_TINY, 0x401000);
	add(file, ALLOC_LARGE, 0x402000);
	add(file, ALLOC_NOSCAN, 0x403000);
	add_live(file, GPB_ALLOC_PLACED, 0x404000);
	add_live(file, GPB_ALLOC_ASSISTED, 0x405000);
	find(file);
}

/* Where they are observed all the time they are apart, with the places that tell where they are. */
static void large_objects_are_apart_where_somebody_wants_them(void **state)
{
	(void)state;
	add_some_of_each(PROGRAM);
	list(PROGRAM, 5, true);
	assert_int_equal(large.n, 2);
	expect_site(&large.sites[0], 0x402000, GPB_ALLOC_LARGE | 5 << GPB_COOKIE_SLOT_SHIFT);
	expect_site(&large.sites[1], 0x404000,
		    GPB_ALLOC_PLACED | GPB_COOKIE_ENTRY | 5 << GPB_COOKIE_SLOT_SHIFT);
	assert_int_equal(large.ngroups, 1);
	assert_string_equal(large.groups[0].path, "file 30");
	assert_ptr_equal(large.groups[0].prog, heap_alloc);
	assert_int_equal(large.groups[0].n, 2);
	assert_int_equal(all.n, 3);
	assert_int_equal(all.sites[0].addr, 0x401000);
	assert_int_equal(all.sites[1].addr, 0x403000);
	assert_int_equal(all.sites[2].addr, 0x405000);
}

static void large_objects_are_with_the_others_where_nobody_does(void **state)
{
	(void)state;
	add_some_of_each(PROGRAM);
	list(PROGRAM, 5, false);
	assert_int_equal(all.n, 5);
	assert_int_equal(all.groups[0].n, 5);
}

/* A group of each file, behind each other; who comes later does not change what others have. */
static void each_image_has_a_group(void **state)
{
	(void)state;
	add_some_of_each(PROGRAM);
	add_some_of_each(PLUGIN);
	list(PROGRAM, 5, true);
	list(PLUGIN, 6, true);
	assert_true(all.ngroups == 2 && large.ngroups == 2);
	assert_true(all.groups[1].sites == &all.sites[3] && all.groups[1].n == 3);
	assert_true(large.groups[1].sites == &large.sites[2] && large.groups[1].n == 2);
	assert_string_equal(all.groups[1].path, "file 31");
	assert_string_equal(large.groups[1].path, "file 31");
	for (size_t i = 0; i < all.n; i++)
		assert_int_equal(all.sites[i].cookie >> GPB_COOKIE_SLOT_SHIFT, i < 3 ? 5 : 6);
	for (size_t i = 0; i < large.n; i++)
		assert_int_equal(large.sites[i].cookie >> GPB_COOKIE_SLOT_SHIFT, i < 2 ? 5 : 6);
}

/* An attacher is asked for no group without sites. */
static void an_image_without_sites_has_no_group(void **state)
{
	(void)state;
	add_live(PROGRAM, GPB_ALLOC_PLACED, 0x404000); /* no object gets there */
	find(PROGRAM);
	add(PLUGIN, ALLOC_TINY, 0x401000);
	find(PLUGIN);
	list(PROGRAM, 5, true);
	assert_true(!all.n && !all.ngroups && !large.n && !large.ngroups);
	list(PLUGIN, 5, true);
	assert_true(all.n == 1 && all.ngroups == 1 && !large.ngroups);
	assert_string_equal(all.groups[0].path, "file 31");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(entries_of_all_images_are_kept, set_up),
		cmocka_unit_test_setup(a_newer_gos_entries_are_checked, set_up),
		cmocka_unit_test_setup(makers_are_probed_for_types_only, set_up),
		cmocka_unit_test_setup(what_cannot_be_found_is_an_error, set_up),
		cmocka_unit_test_setup(a_plugin_without_an_allocator_is_no_error, set_up),
		cmocka_unit_test_setup(what_mallocgc_calls_is_dropped_by_live_addresses, set_up),
		cmocka_unit_test_setup(each_process_has_its_own_addresses, set_up),
		cmocka_unit_test_setup(a_site_is_told_by_file_and_by_address, set_up),
		cmocka_unit_test_setup(a_cookie_tells_what_a_hit_is, set_up),
		cmocka_unit_test_setup(makers_and_places_of_objects_are_listed_too, set_up),
		cmocka_unit_test_setup(large_objects_are_apart_where_somebody_wants_them, set_up),
		cmocka_unit_test_setup(large_objects_are_with_the_others_where_nobody_does, set_up),
		cmocka_unit_test_setup(each_image_has_a_group, set_up),
		cmocka_unit_test_setup(an_image_without_sites_has_no_group, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
