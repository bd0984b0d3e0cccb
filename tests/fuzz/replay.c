/*
 * tests/fuzz/replay.c - run one fuzz target over files, with any compiler.
 *
 *	replay_<parser> FILE|DIR...
 *
 * Each file is given whole, then cut short at up to 64 places, then with single bytes
 * changed at up to 64 places: a cheap guard that needs no fuzzer. A finding ends the
 * process (sanitizer), so the name of the file is printed first, on stderr.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_MAX (64u << 20)
#define VARIANTS 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned n_inputs;

/* Always its own allocation of the exact size, so that reading past the end is seen. */
static void give(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		abort();
	if (size)
		memcpy(copy, data, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
	n_inputs++;
}

static void give_variants(uint8_t *data, size_t size)
{
	static const uint8_t flips[] = { 0xff, 0x80, 0x01, 0x7f };
	size_t step = size / VARIANTS + 1;
	size_t i;

	give(data, size);
	for (i = 0; i < size; i += step)
		give(data, i);
	for (i = 0; i < size; i += step) {
		uint8_t was = data[i];

		data[i] ^= flips[(i / step) % sizeof(flips)];
		give(data, size);
		data[i] = was;
	}
}

static int replay_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	struct stat st;
	uint8_t *data;
	size_t size;

	if (!f || fstat(fileno(f), &st) || st.st_size > FILE_MAX) {
		fprintf(stderr, "%s: cannot be read\n", path);
		return 1;
	}
	fprintf(stderr, "replay %s\n", path);
	data = malloc((size_t)st.st_size + 1);
	if (!data)
		abort();
	size = fread(data, 1, (size_t)st.st_size, f);
	fclose(f);
	give_variants(data, size);
	free(data);
	return 0;
}

static int replay_dir(const char *path, DIR *d)
{
	char sub[PATH_MAX];
	struct dirent *de;
	int bad = 0;

	while ((de = readdir(d))) {
		if (de->d_name[0] == '.')
			continue;
		if ((size_t)snprintf(sub, sizeof(sub), "%s/%s", path, de->d_name) >= sizeof(sub))
			return 1;
		bad |= replay_file(sub);
	}
	closedir(d);
	return bad;
}

int main(int argc, char **argv)
{
	int i, bad = 0;

	give((const uint8_t *)"", 0);
	for (i = 1; i < argc; i++) {
		DIR *d = opendir(argv[i]);

		bad |= d ? replay_dir(argv[i], d) : replay_file(argv[i]);
	}
	printf("%u inputs\n", n_inputs);
	return bad;
}
