/* tests/unit/test_output.c - what is written, read back; and what happens when it cannot be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "output/format.h"
#include "readprofile.h"

typedef Goprof__Pprof__Profile pb_profile;

static struct err e;
static char dir[] = "/tmp/goprof-test-XXXXXX";

static int group_setup(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int group_teardown(void **state)
{
	(void)state;
	return rmdir(dir); /* fails when a test left a file behind */
}

static struct prof *sample_profile(void)
{
	struct prof_mapping exe = { 0x400000, 0x800000, 0x1000, "/srv/server", "c0ffee" };
	struct prof_line leaf[] = { { "a;b", "leaf.go", 30, 20 }, { "outer", "out.go", 7, 5 } };
	struct prof_line root = { "main.main", "main.go", 3, 1 };
	struct prof_label labels[] = { { .key = "user", .str = "x\ny" },
				       { .key = "size", .num = 64, .num_unit = "bytes" } };
	struct prof *p = NULL;
	uint32_t locs[3];

	assert_int_equal(prof_new(&p, &e), 0);
	assert_int_equal(prof_add_type(p, "samples", "count", &e), 0);
	assert_int_equal(prof_add_type(p, "cpu", "nanoseconds", &e), 0);
	assert_int_equal(prof_set_period(p, "cpu", "nanoseconds", 10000000, &e), 0);
	assert_int_equal(prof_comment(p, &e, "rate 100 Hz"), 0);
	prof_set_time(p, 1700000000000000000, 2000000000);
	assert_int_equal(prof_mapping(p, &exe, &e), 1);
	locs[0] = (uint32_t)prof_location(p, 1, 0x400100, leaf, 2, &e);
	locs[1] = (uint32_t)prof_location(p, 1, 0x400200, &root, 1, &e);
	locs[2] = (uint32_t)prof_location(p, 1, 0x400300, NULL, 0, &e);
	prof_loss(p)->n[LOSS_STACKS_CUT] = 4;
	prof_loss(p)->n[LOSS_TARGET_GONE] = 1;
	assert_int_equal(prof_sample(p, locs, 2, (int64_t[]){ 3, 30000000 }, labels, 2, &e), 0);
	assert_int_equal(prof_sample(p, locs + 1, 1, (int64_t[]){ 1, 10000000 }, NULL, 0, &e), 0);
	assert_int_equal(prof_sample(p, locs + 2, 1, (int64_t[]){ 9, 0 }, NULL, 0, &e), 0);
	assert_int_equal(prof_sample(p, locs + 2, 1, (int64_t[]){ 0, -5000000 }, labels, 1, &e), 0);
	return p;
}

static char *in_dir(const char *name)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void write_file(struct prof *p, const char *format, const char *path)
{
	const struct output_format *f = output_find(format);

	assert_non_null(f);
	if (output_to_file(p, f, path, NULL, &e) < 0)
		fail_msg("%s", e.msg);
}

static const char *str(const pb_profile *pb, int64_t id)
{
	assert_in_range(id, 0, pb->n_string_table - 1);
	return pb->string_table[id];
}

static void check_header(const pb_profile *pb)
{
	assert_string_equal(pb->string_table[0], "");
	assert_int_equal(pb->n_sample_type, 2);
	assert_string_equal(str(pb, pb->sample_type[1]->unit), "nanoseconds");
	assert_string_equal(str(pb, pb->period_type->type), "cpu");
	assert_int_equal(pb->period, 10000000);
	assert_int_equal(pb->time_nanos, 1700000000000000000);
	assert_int_equal(pb->duration_nanos, 2000000000);
	assert_int_equal(pb->default_sample_type, 0);
	assert_int_equal(pb->drop_frames, 0);
	assert_int_equal(pb->n_comment, 3);
	assert_string_equal(str(pb, pb->comment[0]), "rate 100 Hz");
	assert_string_equal(str(pb, pb->comment[1]),
			    "loss: 4 stacks deeper than the limit, cut at the root");
	assert_non_null(strstr(str(pb, pb->comment[2]), "loss: 1 the target"));
}

static void check_tables(const pb_profile *pb)
{
	const Goprof__Pprof__Location *l = pb->location[0];

	assert_int_equal(pb->n_mapping, 1);
	assert_int_equal(pb->mapping[0]->id, 1);
	assert_int_equal(pb->mapping[0]->memory_limit, 0x800000);
	assert_int_equal(pb->mapping[0]->file_offset, 0x1000);
	assert_string_equal(str(pb, pb->mapping[0]->build_id), "c0ffee");
	assert_false(pb->mapping[0]->has_functions);
	assert_int_equal(pb->n_location, 3);
	assert_int_equal(l->id, 1);
	assert_int_equal(l->mapping_id, 1);
	assert_int_equal(l->address, 0x400100);
	assert_int_equal(l->n_line, 2);
	assert_int_equal(l->line[0]->line, 30);
	assert_int_equal(pb->n_function, 3);
	assert_int_equal(pb->function[2]->id, 3);
	assert_string_equal(str(pb, pb->function[0]->name), "a;b");
	assert_string_equal(str(pb, pb->function[0]->system_name), "a;b");
	assert_string_equal(str(pb, pb->function[1]->filename), "out.go");
	assert_int_equal(pb->function[1]->start_line, 5);
}

static void check_samples(const pb_profile *pb)
{
	const Goprof__Pprof__Sample *s = pb->sample[0];

	assert_int_equal(pb->n_sample, 4);
	assert_int_equal(s->n_location_id, 2);
	assert_int_equal(s->location_id[0], 1);
	assert_int_equal(s->location_id[1], 2);
	assert_int_equal(s->n_value, 2);
	assert_int_equal(s->value[1], 30000000);
	assert_int_equal(s->n_label, 2);
	for (size_t i = 0; i < 2; i++)
		if (s->label[i]->str)
			assert_string_equal(str(pb, s->label[i]->str), "x\ny");
		else {
			assert_string_equal(str(pb, s->label[i]->key), "size");
			assert_string_equal(str(pb, s->label[i]->num_unit), "bytes");
			assert_int_equal(s->label[i]->num, 64);
		}
	assert_int_equal(pb->sample[3]->value[1], -5000000);
}

static void pprof_reads_back(void **state)
{
	CLEANUP(prof_freep) struct prof *p = sample_profile();
	const char *path = in_dir("p.pb.gz");
	pb_profile *pb;

	(void)state;
	write_file(p, "pprof", path);
	write_file(p, "pprof", path); /* writing changes nothing */
	pb = readprofile_unpack(path);
	assert_non_null(pb);
	check_header(pb);
	check_tables(pb);
	check_samples(pb);
	goprof__pprof__profile__free_unpacked(pb, NULL);
	unlink(path);
}

static void pprof_of_many_samples_reads_back(void **state)
{
	enum { N = 30000 };
	CLEANUP(prof_freep) struct prof *p = NULL;
	const char *path = in_dir("many.pb.gz");
	pb_profile *pb;

	(void)state;
	assert_int_equal(prof_new(&p, &e), 0);
	assert_int_equal(prof_add_type(p, "n", "count", &e), 0);
	for (int64_t i = 0; i < N; i++) {
		uint32_t id = (uint32_t)prof_location(p, 0, (uint64_t)i * 0x9e3779b97f4a7c15ULL,
						      NULL, 0, &e);

		assert_int_equal(prof_sample(p, &id, 1, &i, NULL, 0, &e), 0);
	}
	write_file(p, "pprof", path);
	pb = readprofile_unpack(path);
	assert_non_null(pb);
	assert_int_equal(pb->n_sample, N);
	for (size_t i = 0; i < N; i++) {
		assert_int_equal(pb->sample[i]->value[0], i);
		assert_int_equal(pb->sample[i]->location_id[0], i + 1);
		assert_true(pb->location[i]->address == i * 0x9e3779b97f4a7c15ULL);
	}
	goprof__pprof__profile__free_unpacked(pb, NULL);
	unlink(path);
}

static void default_type_and_empty_profile(void **state)
{
	CLEANUP(prof_freep) struct prof *p = NULL;
	const char *path = in_dir("empty.pb.gz");
	pb_profile *pb;

	(void)state;
	assert_int_equal(prof_new(&p, &e), 0);
	for (size_t i = 0; output_at(i); i++) /* no sample type at all */
		write_file(p, output_at(i)->name, path);
	assert_int_equal(prof_add_type(p, "n", "count", &e), 0);
	assert_int_equal(prof_set_default_type(p, "n", &e), 0);
	write_file(p, "pprof", path);
	pb = readprofile_unpack(path);
	assert_non_null(pb);
	assert_string_equal(str(pb, pb->default_sample_type), "n");
	assert_null(pb->period_type);
	assert_int_equal(pb->n_comment, 0);
	goprof__pprof__profile__free_unpacked(pb, NULL);
	unlink(path);
}

/* What a format writes, as a string that the caller frees. */
static char *text_of(int (*write)(struct prof *p, FILE *f, struct err *err), struct prof *p)
{
	char *buf = NULL;
	size_t n;
	FILE *f = open_memstream(&buf, &n);

	assert_non_null(f);
	assert_int_equal(write(p, f, &e), 0);
	fclose(f);
	return buf;
}

static void folded(void **state)
{
	CLEANUP(prof_freep) struct prof *p = sample_profile();
	CLEANUP(freep) char *last = text_of(output_find("folded")->write, p);
	CLEANUP(freep) char *by_count = NULL;

	(void)state;
	assert_string_equal(last, "main.main;outer;a_b 30000000\n"
				  "main.main 10000000\n"
				  "[server]+0x400300 -5000000\n");
	assert_int_equal(prof_set_default_type(p, "samples", &e), 0);
	by_count = text_of(output_find("folded")->write, p);
	assert_string_equal(by_count, "main.main;outer;a_b 3\n"
				      "main.main 1\n"
				      "[server]+0x400300 9\n");
}

static void text(void **state)
{
	CLEANUP(prof_freep) struct prof *p = sample_profile();
	CLEANUP(freep) char *got = text_of(output_find("text")->write, p);

	(void)state;
	assert_string_equal(got, "File: server\n"
				 "Build ID: c0ffee\n"
				 "Time: 2023-11-14 22:13:20 UTC\n"
				 "Duration: 2s\n"
				 "rate 100 Hz\n"
				 "loss: 4 stacks deeper than the limit, cut at the root\n"
				 "loss: 1 the target exited or became another program\n"
				 "\n"
				 "samples: 13 in total, 4 functions\n"
				 "      flat  flat%   sum%        cum   cum%\n"
				 "         9 69.23% 69.23%          9 69.23%  [server]\n"
				 "         3 23.08% 92.31%          3 23.08%  a;b\n"
				 "         1  7.69%   100%          4 30.77%  main.main\n"
				 "         0     0%   100%          3 23.08%  outer\n"
				 "\n"
				 "cpu: 45ms in total, 4 functions\n"
				 "      flat  flat%   sum%        cum   cum%\n"
				 "      30ms 66.67% 66.67%       30ms 66.67%  a;b\n"
				 "      10ms 22.22% 88.89%       40ms 88.89%  main.main\n"
				 "      -5ms 11.11% 77.78%       -5ms 11.11%  [server]\n"
				 "         0     0% 77.78%       30ms 66.67%  outer\n");
}

/* A profile's own text replaces the tables; only tabs at the start of a line pass. */
static void own_text(void **state)
{
	CLEANUP(prof_freep) struct prof *p = sample_profile();
	CLEANUP(freep) char *got = NULL;
	uint32_t head, frame, empty;

	(void)state;
	assert_int_equal(prof_text_line(p, "goroutine 1 [select]:\x1b[2J", &head, &e), 0);
	assert_int_equal(prof_text_line(p, "\t/src/a\nb.go:7\t+0x1", &frame, &e), 0);
	assert_int_equal(prof_text_line(p, "", &empty, &e), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(prof_text_add(p, head, &e), 0);
		assert_int_equal(prof_text_add(p, i ? empty : frame, &e), 0);
	}
	assert_int_equal(prof_ntext(p), 4);
	got = text_of(output_find("text")->write, p);
	assert_null(strstr(got, "in total"));
	assert_non_null(strstr(got, "rate 100 Hz\n"));
	assert_non_null(strstr(got, "\n\ngoroutine 1 [select]:_[2J\n"
				    "\t/src/a_b.go:7_+0x1\n"
				    "goroutine 1 [select]:_[2J\n\n"));
}

static int top2(struct prof *p, FILE *f, struct err *err)
{
	return output_top(p, 2, f, err);
}

static void top_rows(void **state)
{
	CLEANUP(prof_freep) struct prof *p = sample_profile();
	CLEANUP(freep) char *got = text_of(top2, p);

	(void)state;
	assert_string_equal(got, "cpu: 45ms in total, the 2 largest of 4 functions\n"
				 "      flat  flat%   sum%        cum   cum%\n"
				 "      30ms 66.67% 66.67%       30ms 66.67%  a;b\n"
				 "      10ms 22.22% 88.89%       40ms 88.89%  main.main\n");
}

/* Waits: two samples of one stack that differ in a label, one of another stack, and a deep one. */
static struct prof *waits_profile(void)
{
	struct prof_line lock[] = { { "sync.(*Mutex).Lock", "/go/src/sync/mutex.go", 90, 80 },
				    { "main.(*cache).get", "cache.go", 12, 9 } };
	struct prof_line root = { "main.main", "main.go", 3, 1 };
	struct prof_label red = { .key = "tenant", .str = "red" };
	struct prof_label why = { .key = "reason", .str = "sleep" };
	struct prof *p = NULL;
	uint32_t locs[3], deep[20];

	assert_int_equal(prof_new(&p, &e), 0);
	assert_int_equal(prof_add_type(p, "contentions", "count", &e), 0);
	assert_int_equal(prof_add_type(p, "delay", "nanoseconds", &e), 0);
	locs[0] = (uint32_t)prof_location(p, 0, 0x400100, lock, 2, &e);
	locs[1] = (uint32_t)prof_location(p, 0, 0x400200, &root, 1, &e);
	locs[2] = (uint32_t)prof_location(p, 0, 0x400300, NULL, 0, &e);
	for (size_t i = 0; i < ARRAY_LEN(deep); i++)
		deep[i] = locs[1];
	assert_int_equal(prof_sample(p, locs + 2, 1, (int64_t[]){ 7, 4000 }, NULL, 0, &e), 0);
	assert_int_equal(prof_sample(p, locs, 2, (int64_t[]){ 3, 30000 }, NULL, 0, &e), 0);
	assert_int_equal(prof_sample(p, deep, ARRAY_LEN(deep), (int64_t[]){ 1, 6000 }, &why, 1, &e),
			 0);
	assert_int_equal(prof_sample(p, locs, 2, (int64_t[]){ 1, 1500 }, &red, 1, &e), 0);
	return p;
}

/* The reason of a wait is a frame of its own; who waited is not shown. */
static void folded_waits(void **state)
{
	CLEANUP(prof_freep) struct prof *p = waits_profile();
	CLEANUP(freep) char *got = text_of(output_find("folded")->write, p);

	(void)state;
	assert_string_equal(strrchr(got, '[') - strlen("main.main;"),
			    "main.main;[sleep] 6000\n"
			    "main.main;main.(*cache).get;sync.(*Mutex).Lock 1500\n");
}

/* One stack has two types, and one sample none; a goroutine's own label "type" does not count. */
static struct prof *typed_profile(const char *period)
{
	struct prof_line at = { "main.load", "main.go", 3, 1 };
	struct prof_label node = { .key = "type", .str = "main.node" };
	struct prof_label text = { .key = "type", .str = "string" };
	struct prof *p = NULL;
	uint32_t loc;

	assert_int_equal(prof_new(&p, &e), 0);
	assert_int_equal(prof_add_type(p, "alloc_objects", "count", &e), 0);
	assert_int_equal(prof_add_type(p, "alloc_space", "bytes", &e), 0);
	assert_int_equal(prof_set_period(p, period, "bytes", 512, &e), 0);
	loc = (uint32_t)prof_location(p, 0, 0x400100, &at, 1, &e);
	assert_int_equal(prof_sample(p, &loc, 1, (int64_t[]){ 3, 96 }, &text, 1, &e), 0);
	assert_int_equal(prof_sample(p, &loc, 1, (int64_t[]){ 1, 32 }, &node, 1, &e), 0);
	assert_int_equal(prof_sample(p, &loc, 1, (int64_t[]){ 1, 64 }, NULL, 0, &e), 0);
	return p;
}

static void types(void **state)
{
	CLEANUP(prof_freep) struct prof *p = typed_profile("space");
	CLEANUP(prof_freep) struct prof *cpu = typed_profile("cpu");
	CLEANUP(freep) char *got = text_of(output_find("text")->write, p);
	CLEANUP(freep) char *none = text_of(output_find("text")->write, cpu);
	CLEANUP(freep) char *folded = text_of(output_find("folded")->write, p);

	(void)state;
	assert_non_null(strstr(got, "alloc_space: by type, 2 types\n"
				    "      flat  flat%   sum%\n"
				    "       96B 75.00% 75.00%  string\n"
				    "       32B 25.00%   100%  main.node\n"));
	assert_null(strstr(none, "by type"));
	assert_string_equal(folded, "main.load;[string] 96\n"
				    "main.load;[main.node] 32\n"
				    "main.load 64\n");
}

static int top_stack(struct prof *p, FILE *f, struct err *err)
{
	return stacks_write(p, 1, f, err);
}

static void stacks(void **state)
{
	CLEANUP(prof_freep) struct prof *p = waits_profile();
	CLEANUP(prof_freep) struct prof *none = NULL;
	CLEANUP(freep) char *got = text_of(output_find("text")->write, p);
	CLEANUP(freep) char *one = text_of(top_stack, p);
	CLEANUP(freep) char *empty = NULL, *waits = NULL;
	const char *first = "   31.50us 75.90%  4 contentions\n"
			    "              sync.(*Mutex).Lock  mutex.go:90\n"
			    "              main.(*cache).get  cache.go:12\n"
			    "              main.main  main.go:3\n";
	char want[512];

	(void)state;
	snprintf(want, sizeof(want), "delay: by stack, 3\n%s", first);
	assert_non_null(strstr(got, want));
	assert_non_null(strstr(got, "       6us 14.46%  1 contentions  sleep\n"
				    "              main.main  main.go:3\n"));
	assert_non_null(strstr(got, "              main.main  main.go:3\n"
				    "              and 4 callers\n"
				    "       4us  9.64%  7 contentions\n"
				    "              0x400300\n"
				    "\n"
				    "contentions: 12 in total, 4 functions\n"));
	snprintf(want, sizeof(want), "delay: by stack, the largest of 3\n%s", first);
	assert_string_equal(one, want);
	assert_int_equal(prof_new(&none, &e), 0);
	assert_int_equal(prof_add_type(none, "contentions", "count", &e), 0);
	empty = text_of(top_stack, none);
	assert_string_equal(empty, "contentions: by stack, 0\n");
	prof_set_kind(p, "wait");
	waits = text_of(output_find("text")->write, p);
	assert_non_null(strstr(waits, "   31.50us 75.90%  4 waits\n"));
	assert_non_null(strstr(waits, "waits: 12 in total, 4 functions\n"));
	assert_null(strstr(waits, "contentions"));
}

/* ---- failures ---- */

static size_t files_in_dir(void)
{
	DIR *d = opendir(dir);
	size_t n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

static void a_full_disk_is_an_error(void **state)
{
	CLEANUP(prof_freep) struct prof *p = sample_profile();

	(void)state;
	for (size_t i = 0; output_at(i); i++) {
		FILE *f = fopen("/dev/full", "w");

		assert_non_null(f);
		setvbuf(f, NULL, _IONBF, 0);
		assert_int_equal(output_at(i)->write(p, f, &e), -ENOSPC);
		assert_non_null(strstr(e.msg, "No space"));
		fclose(f);
	}
}

static int fill(struct prof *p, FILE *f, struct err *err)
{
	(void)p;
	(void)err;
	/*
	 * As on a file system that is full when the buffer is flushed: the flush must be checked.
	 */
	fputs("partial", f);
	close(fileno(f));
	return 0;
}

static int refuse(struct prof *p, FILE *f, struct err *err)
{
	(void)p;
	fputs("partial", f);
	return err_set(err, -EIO, "no");
}

static void a_failed_write_leaves_the_old_file(void **state)
{
	static const struct output_format broken[] = { { "a", "a", fill }, { "b", "b", refuse } };
	CLEANUP(prof_freep) struct prof *p = sample_profile();
	const char *path = in_dir("kept");
	char buf[8] = "";
	FILE *f = fopen(path, "w");

	(void)state;
	fputs("old", f);
	fclose(f);
	for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
		assert_true(output_to_file(p, &broken[i], path, NULL, &e) < 0);
		assert_non_null(strstr(e.msg, path));
		assert_int_equal(files_in_dir(), 1);
	}
	f = fopen(path, "r");
	assert_non_null(fgets(buf, sizeof(buf), f));
	fclose(f);
	assert_string_equal(buf, "old");
	unlink(path);
}

static void a_missing_directory_is_named(void **state)
{
	CLEANUP(prof_freep) struct prof *p = sample_profile();
	const char *path = in_dir("none/x");

	(void)state;
	assert_int_equal(output_to_file(p, output_find("text"), path, NULL, &e), -ENOENT);
	assert_non_null(strstr(e.msg, path));
	assert_int_equal(files_in_dir(), 0);
}

/* As on a file system that is full: the kernel stops the file at 4096 bytes. */
static void a_file_cut_short_is_an_error(void **state)
{
	const struct rlimit small = { 4096, RLIM_INFINITY };
	CLEANUP(prof_freep) struct prof *p = sample_profile();
	struct rlimit old;

	(void)state;
	for (uint32_t i = 0; i < 2000; i++) {
		uint32_t id = (uint32_t)prof_location(p, 1, 0x400000 + i * i, NULL, 0, &e);

		assert_int_equal(prof_sample(p, &id, 1, (int64_t[]){ i, i * i }, NULL, 0, &e), 0);
	}
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	for (size_t i = 0; output_at(i); i++) {
		int r;

		assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
		r = output_to_file(p, output_at(i), in_dir("cut"), NULL, &e);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
		if (!strcmp(output_at(i)->name, "text")) /* short: all pcs are one row */
			unlink(in_dir("cut"));
		else
			assert_int_equal(r, -EFBIG);
		assert_int_equal(files_in_dir(), 0);
	}
}

/* A planted link is replaced, not followed; the new file is its owner's alone. */
static void a_planted_link_is_not_followed(void **state)
{
	CLEANUP(prof_freep) struct prof *p = sample_profile();
	char victim[PATH_MAX], *path;
	struct stat st;
	mode_t old = umask(0);

	(void)state;
	snprintf(victim, sizeof(victim), "%s", in_dir("victim"));
	fclose(fopen(victim, "w"));
	path = in_dir("out");
	assert_int_equal(symlink(victim, path), 0);
	write_file(p, "text", path);
	umask(old);
	assert_int_equal(stat(victim, &st), 0);
	assert_int_equal(st.st_size, 0);
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(files_in_dir(), 2);
	unlink(path);
	unlink(victim);
}

static struct stat written(struct output_access *access)
{
	CLEANUP(prof_freep) struct prof *p = sample_profile();
	char *path = in_dir("access");
	struct stat st;

	assert_int_equal(output_to_file(p, output_find("text"), path, access, &e), 0);
	assert_int_equal(lstat(path, &st), 0);
	unlink(path);
	return st;
}

static void mode_as_asked(void **state)
{
	struct output_access access = { .mode = 0644 };
	mode_t old = umask(077);

	(void)state;
	assert_int_equal(written(&access).st_mode & 07777, 0644);
	umask(old);
	assert_false(access.kept);
}

/* Who came through sudo has the files in a directory that is theirs or everybody's. */
static void owner_goes_by_the_directory(void **state)
{
	static const struct {
		uid_t owner;
		mode_t mode;
		bool given;
	} dirs[] = {
		{ 1234, 0700, true },  /* theirs */
		{ 0, 01777, true },    /* as /tmp */
		{ 0, 0755, false },    /* root's */
		{ 0, 0777, false },    /* everybody's, but not safe from others */
		{ 4321, 0777, false }, /* somebody else's */
	};

	(void)state;
	if (geteuid())
		skip();
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		struct output_access access = { .uid = 1234, .gid = 1235 };
		struct stat st;

		assert_int_equal(chown(dir, dirs[i].owner, 0), 0);
		assert_int_equal(chmod(dir, dirs[i].mode), 0);
		st = written(&access);
		assert_int_equal(st.st_uid, dirs[i].given ? 1234 : 0);
		assert_int_equal(st.st_gid, dirs[i].given ? 1235 : getegid());
		assert_int_equal(st.st_mode & 07777, 0600);
		assert_int_equal(access.kept, !dirs[i].given);
	}
	assert_int_equal(chown(dir, 0, 0), 0);
	assert_int_equal(chmod(dir, 0700), 0);
}

static void formats_by_name(void **state)
{
	(void)state;
	assert_string_equal(output_find("pprof")->ext, "pb.gz");
	assert_string_equal(output_find("folded")->ext, "folded");
	assert_string_equal(output_find("text")->ext, "txt");
	assert_string_equal(output_find("flame")->ext, "html");
	assert_null(output_find("svg"));
	assert_ptr_equal(output_at(0), output_find("pprof"));
	assert_null(output_at(4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pprof_reads_back),
		cmocka_unit_test(pprof_of_many_samples_reads_back),
		cmocka_unit_test(default_type_and_empty_profile),
		cmocka_unit_test(folded),
		cmocka_unit_test(folded_waits),
		cmocka_unit_test(text),
		cmocka_unit_test(own_text),
		cmocka_unit_test(types),
		cmocka_unit_test(stacks),
		cmocka_unit_test(top_rows),
		cmocka_unit_test(a_full_disk_is_an_error),
		cmocka_unit_test(a_failed_write_leaves_the_old_file),
		cmocka_unit_test(a_file_cut_short_is_an_error),
		cmocka_unit_test(a_missing_directory_is_named),
		cmocka_unit_test(a_planted_link_is_not_followed),
		cmocka_unit_test(mode_as_asked),
		cmocka_unit_test(owner_goes_by_the_directory),
		cmocka_unit_test(formats_by_name),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
