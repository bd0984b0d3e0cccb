/* user/base/nofile.c - the soft limit of open files, raised to the hard one. */
#include "base/nofile.h"

#include <sys/resource.h>

void nofile_raise(void)
{
	struct rlimit r;

	if (!getrlimit(RLIMIT_NOFILE, &r) && r.rlim_cur < r.rlim_max) {
		r.rlim_cur = r.rlim_max;
		setrlimit(RLIMIT_NOFILE, &r);
	}
}
