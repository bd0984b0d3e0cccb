/* user/base/sys/nofile.h - how many files this process may open. */
#ifndef BASE_SYS_NOFILE_H
#define BASE_SYS_NOFILE_H

#include <stdbool.h>

/* Raises the limit as far as is allowed without a privilege. */
void nofile_raise(void);
/* Can @n more be opened, up to 64? */
bool nofile_room(unsigned n);

#endif
