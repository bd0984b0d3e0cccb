/* tests/support/oomscore.c - oom_score_adj, and the capability to lower it. */
#include "oomscore.h"

#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int oomscore_of(pid_t pid)
{
	char path[64];
	int score = 12345;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", pid);
	f = fopen(path, "re");
	if (!f)
		return score;
	if (fscanf(f, "%d", &score) != 1)
		score = 12345;
	fclose(f);
	return score;
}

bool oomscore_drop_capability(void)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &h, d))
		return false;
	d[0].effective &= ~(1u << CAP_SYS_RESOURCE);
	d[0].permitted &= ~(1u << CAP_SYS_RESOURCE);
	return !syscall(SYS_capset, &h, d);
}

bool oomscore_may_be_spared(void)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		FILE *f = fopen("/proc/self/oom_score_adj", "we");

		_exit(!f || fputs("-1000", f) < 0 || fclose(f));
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && !status;
}
