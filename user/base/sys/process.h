/*
 * user/base/sys/process.h - helper processes of ours: what a child of fork() is rid of, and how its end is waited for.
 */
#ifndef BASE_SYS_PROCESS_H
#define BASE_SYS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * In the child: closes all descriptors but these @n, at most 8. What its maker has open must not live on in it: its
 * probes would stay attached, its output would stay open, and a file that is held open stays in its epoll sets.
 */
void process_keep_fds(const int *keep, size_t n);
/* In the child: descriptors below @n lead nowhere (/dev/null). */
bool process_null_fds(int n);
/* In the child: no signal ends it but SIGKILL. */
void process_block_signals(void);
/* In the child: it is killed when its maker ends, and ends at once when @maker has ended already. */
void process_dies_with(pid_t maker);

/* How long one of our threads or processes has stood still. Zeroed at first; to be asked ten times a second or so. */
struct still {
	uint64_t switches, since_ns;
};
/*
 * In ms: since when @tid has waited in the kernel without having run at all. Whoever gets no CPU does not wait, and whoever waits
 * for many things one after the other runs in between. Source: the states and context switches in /proc/PID/status, proc(5).
 */
uint64_t process_still_ms(struct still *s, pid_t tid);

/* In its maker: waits for the end of the child @pid, and returns its wait status; -1: there is no such child. */
int process_wait(pid_t pid);

#endif
