/* user/target/host/pidns.c - by the number that the kernel gives the initial namespace. */
#include "target/host/pidns.h"

#include <sys/stat.h>

/* Source: include/linux/proc_ns.h, PROC_PID_INIT_INO, Linux 3.8 to 6.18. */
#define INIT_PIDNS_INO 0xEFFFFFFCu

int pidns_inode(uint32_t *ino, struct err *e)
{
	struct stat st;

	if (stat("/proc/self/ns/pid", &st))
		return err_sys(e, "/proc/self/ns/pid");
	*ino = st.st_ino == INIT_PIDNS_INO ? 0 : (uint32_t)st.st_ino;
	return 0;
}
