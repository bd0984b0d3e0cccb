/*
 * user/base/sys/priority.h - how the kernel shares processors between us and others.
 *
 * On a host whose processors are all busy a process that needs 1 s of CPU time begins after 7 s among 20 others of its
 * own priority, and reads its ring late. What it needs in all it takes either way.
 * Source: sched_prio_to_weight[] in kernel/sched/core.c, Linux 6.18: nice -10 has 9.3 times the weight of nice 0.
 */
#ifndef BASE_SYS_PRIORITY_H
#define BASE_SYS_PRIORITY_H

#include <stdbool.h>
#include <sys/types.h>

/* Nice values: ours, and that of our session, which nobody else is likely to choose. */
enum { PRIORITY_PROMPT = -10, PRIORITY_SESSION = -11 };

/*
 * The calling thread, and what it starts from now on, comes before others. Not where somebody chose its nice value,
 * and not without CAP_SYS_NICE: false.
 */
bool priority_prompt(void);

/*
 * The same of our session. Linux shares processors among sessions first (CONFIG_SCHED_AUTOGROUP), and each service has one: our nice
 * value counts within ours alone. It was 0, and is to be given back. Where groups of control (cgroups) have shares of processors, those
 * count, and this changes nothing. Source: proc_sched_autogroup_set_nice() in kernel/sched/autogroup.c, Linux 6.18; sched(7).
 *
 * Not where somebody else is busy in our session: such a program would come before the kernel's own threads, too, which
 * probes wait for when they are taken out. Seen with two that shared a shell with us: 1 to 11 s, and not 30 ms. A child of ours gives it back when we are
 * killed: its pid; 0: the session is as it was.
 */
pid_t priority_prompt_session(void);
void priority_session_back(pid_t restorer);
/* Gives back what a run of ours in this session has left behind, when it was killed together with that child. */
void priority_session_heal(void);

#endif
