/* user/base/sys/nofile.c - the soft limit of open files, raised to the hard one. */
#include "base/sys/nofile.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

void nofile_raise(void)
{
	struct rlimit r;

	if (!getrlimit(RLIMIT_NOFILE, &r) && r.rlim_cur < r.rlim_max) {
		r.rlim_cur = r.rlim_max;
		setrlimit(RLIMIT_NOFILE, &r);
	}
}

enum { ROOM_MOST = 64 };

/* Those that are open leave holes, so the number of one that is free tells nothing of how many there are. */
bool nofile_room(unsigned n)
{
	int fds[ROOM_MOST], root = open("/", O_PATH | O_CLOEXEC);
	unsigned got = 0;

	n = n < ROOM_MOST ? n : ROOM_MOST;
	for (; root >= 0 && got + 1 < n; got++) {
		fds[got] = fcntl(root, F_DUPFD_CLOEXEC, 0);
		if (fds[got] < 0)
			break;
	}
	for (unsigned i = 0; i < got; i++)
		close(fds[i]);
	if (root >= 0)
		close(root);
	return root >= 0 && got + 1 >= n;
}
