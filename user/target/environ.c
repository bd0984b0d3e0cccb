/* user/target/environ.c - /proc/PID/environ: strings that end in NUL, one after the other. */
#include "target/environ.h"

#include <string.h>

#include "target/target_priv.h"

enum { ENVIRON_MAX = 1 << 20 };

int target_environ(struct target *t, const char *name, char *value, size_t cap)
{
	CLEANUP(freep) char *text = NULL;
	size_t len, n = strlen(name);
	CLEANUP(closep) int own = -1;
	int dir = target_dir(t, &own, NULL);
	int ret = dir < 0 ? dir : procfs_read(dir, "environ", ENVIRON_MAX, &text, &len, NULL);

	if (ret)
		return ret;
	for (const char *at = text; at < text + len; at += strlen(at) + 1) {
		if (strncmp(at, name, n) || at[n] != '=')
			continue;
		if (strlen(at + n + 1) >= cap)
			return -E2BIG;
		memcpy(value, at + n + 1, strlen(at + n + 1) + 1);
		return 0;
	}
	return -ENOENT;
}
