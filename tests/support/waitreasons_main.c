/*
 * tests/support/waitreasons_main.c - do we know the wait reasons of this Go binary? It must not
 * be stripped or PIE: runtime.waitReasonStrings is read from its file.
 *
 * 	go VERSION N	and a line for each reason that we confuse with another
 */
#include <fcntl.h>

#include "go/image/gobin.h"
#include "go/runtime/waitreason.h"

static int differences(struct gobin *b, int minor, struct err *e)
{
	uint64_t at = 0, size = 0, n;
	int ret = gobin_symbol(b, "runtime.waitReasonStrings", &at, &size, e), bad = 0;

	n = size / 16; /* [...]string */
	for (uint64_t i = 0; !ret && i < n; i++) {
		const char *ours = waitreason_spelt(minor, (unsigned)i);
		uint64_t str = 0, len = 0;
		char theirs[64] = "";

		ret = mem_u64(gobin_mem(b), at + i * 16, &str, e);
		if (!ret)
			ret = mem_u64(gobin_mem(b), at + i * 16 + 8, &len, e);
		if (!ret && len >= sizeof(theirs))
			ret = err_set(e, -EBADMSG, "reason %llu is too long",
				      (unsigned long long)i);
		if (!ret)
			ret = mem_read(gobin_mem(b), str, theirs, len, e);
		if (!ret && (!ours || strcmp(ours, theirs))) {
			printf("%llu: '%s', we say '%s'\n", (unsigned long long)i, theirs,
			       ours ? ours : "none");
			bad++;
		}
	}
	printf("go %s %llu\n", gobin_info(b)->version, (unsigned long long)n);
	return ret ? ret : bad;
}

int main(int argc, char **argv)
{
	struct gobin *b CLEANUP(gobin_freep) = NULL;
	struct err e = { "" };
	int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1, ret;

	if (fd < 0 || gobin_open(fd, argv[1], NULL, 0, &b, &e) < 0 ||
	    (ret = differences(b, gobin_info(b)->minor, &e)) < 0) {
		fprintf(stderr, "waitreasons: %s\n",
			e.msg[0] ? e.msg : "usage: waitreasons BINARY");
		return 1;
	}
	return ret ? 1 : 0;
}
