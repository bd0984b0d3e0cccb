/* user/base/sys/user_name.h - what this machine calls a user. */
#ifndef BASE_SYS_USER_NAME_H
#define BASE_SYS_USER_NAME_H

#include <stddef.h>
#include <sys/types.h>

/* "root"; the number where nobody knows a name; "?" for (uid_t)-1. Cut to @cap bytes with the NUL. */
void user_name(uid_t uid, char *buf, size_t cap);

#endif
