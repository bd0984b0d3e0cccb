/* user/cli/run/host/host_some.c - many of whom few are named. */
#include "cli/run/host/host_some.h"

#include "cli/tell.h"

void some_add(struct some *s, pid_t pid, const char *comm, const struct err *why)
{
	if (!s->named)
		s->why = *why;
	if (s->named < SOME_NAMED) {
		s->first[s->named].pid = pid;
		snprintf(s->first[s->named].comm, sizeof(s->first[0].comm), "%s", comm ?: "");
		s->named++;
	}
	s->n++;
}

void some_count(struct some *s, size_t n)
{
	s->n += n;
}

const char *some_text(const struct some *s, char buf[SOME_TEXT])
{
	size_t n = 0;

	*buf = '\0';
	for (size_t i = 0; i < s->named; i++) {
		const char *comm = s->first[i].comm;

		n += (size_t)snprintf(buf + n, SOME_TEXT - n, "%s%d%s%s%s",
				      !i	   ? "pid " :
				      i + 1 < s->n ? ", " :
						     " and ",
				      s->first[i].pid, *comm ? " (" : "", comm, *comm ? ")" : "");
	}
	if (s->named && s->n > s->named)
		snprintf(buf + n, SOME_TEXT - n, " and %zu %s", s->n - s->named,
			 one_or(s->n - s->named, "other", "others"));
	return buf;
}
