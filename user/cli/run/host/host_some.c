/* user/cli/run/host/host_some.c - many of whom few are named. */
#include "cli/run/host/host_some.h"

#include "cli/tell.h"

void some_add(struct some *s, pid_t pid, const char *comm, const struct err *why)
{
	if (!s->n)
		s->why = *why;
	if (s->n < SOME_NAMED) {
		s->first[s->n].pid = pid;
		snprintf(s->first[s->n].comm, sizeof(s->first[0].comm), "%s", comm ?: "");
	}
	s->n++;
}

const char *some_text(const struct some *s, char buf[SOME_TEXT])
{
	size_t named = s->n < SOME_NAMED ? s->n : SOME_NAMED, n = 0;

	for (size_t i = 0; i < named; i++) {
		const char *comm = s->first[i].comm;

		n += (size_t)snprintf(buf + n, SOME_TEXT - n, "%s%d%s%s%s",
				      !i	   ? "pid " :
				      i + 1 < s->n ? ", " :
						     " and ",
				      s->first[i].pid, *comm ? " (" : "", comm, *comm ? ")" : "");
	}
	if (s->n > named)
		snprintf(buf + n, SOME_TEXT - n, " and %zu %s", s->n - named,
			 one_or(s->n - named, "other", "others"));
	return buf;
}
