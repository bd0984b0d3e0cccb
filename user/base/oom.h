/* user/base/oom.h - the kernel's killer of last resort. */
#ifndef BASE_OOM_H
#define BASE_OOM_H

/*
 * Asks it to spare this process, which is small and must put something right before it ends. Needs
 * CAP_SYS_RESOURCE; without that it stays as mortal as others.
 */
void oom_spare(void);

#endif
