/*
 * user/base/sys/oom.h - which of our processes the kernel's out-of-memory (OOM) killer takes.
 *
 * A helper is small and must put something right before it ends. With CAP_SYS_RESOURCE it is never
 * chosen: its oom_score_adj is -1000. Without, nobody may go below what the process had, but
 * everybody may go above: so the process that the helper works for goes above the helper, dies
 * first, and leaves the helper the time to put things right.
 * Source: __set_oom_adj() in fs/proc/base.c and oom_badness() in mm/oom_kill.c, Linux 6.18.
 */
#ifndef BASE_SYS_OOM_H
#define BASE_SYS_OOM_H

/* The file through which a process tells the kernel. */
#define OOM_FILE "/proc/self/oom_score_adj"

/*
 * In thousandths of the machine's (or cgroup's) memory: the maker counts as if it used a tenth
 * more. It is more than a helper can have, which is a fork of its maker or our executable; and it does not go before
 * a program that really uses up the memory.
 */
enum { OOM_ABOVE = 100 };

/*
 * In a helper: asks to be spared. -EACCES without CAP_SYS_RESOURCE, or another error: then the
 * helper has the score that its maker had before oom_above(). @file: OOM_FILE. @raised: oom_raised()
 * in the maker.
 */
int oom_spare(const char *file, int raised);
/* By so much oom_above() has raised this process, or the one that it is a fork of. */
int oom_raised(void);
/* In the maker of a helper that is not spared. The second call and later ones do nothing. */
int oom_above(const char *file);

#endif
