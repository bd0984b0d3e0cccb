/* user/base/sys/user_name.c - asks the databases that nsswitch.conf names. */
#include "base/sys/user_name.h"

#include <pwd.h>
#include <stdio.h>

enum { ENTRY_MAX = 4096 }; /* bytes of all strings; of longer entries only the number is told */

void user_name(uid_t uid, char *buf, size_t cap)
{
	struct passwd pw, *found = NULL;
	char strings[ENTRY_MAX];

	if (uid == (uid_t)-1)
		snprintf(buf, cap, "?");
	else if (!getpwuid_r(uid, &pw, strings, sizeof(strings), &found) && found)
		snprintf(buf, cap, "%s", found->pw_name);
	else
		snprintf(buf, cap, "%u", uid);
}
