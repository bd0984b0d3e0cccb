/* user/cli/host_pick.c - patterns over what a survey knows of a process. */
#include "cli/host_pick.h"

#include <fnmatch.h>
#include <string.h>

#include "cli/report.h"

enum field { F_NAME, F_EXE, F_CMD, F_USER, F_CGROUP, F_MODULE, FIELDS };

static const char *const names[FIELDS] = { "name", "exe", "cmd", "user", "cgroup", "module" };

/* The field that @pattern begins with; FIELDS: none. *text: what it must be. */
static enum field field_of(const char *pattern, const char **text)
{
	size_t n = strcspn(pattern, "=");
	int f = 0;

	while (f < FIELDS && (strlen(names[f]) != n || strncmp(pattern, names[f], n)))
		f++;
	*text = f < FIELDS && pattern[n] ? pattern + n + 1 : pattern;
	return pattern[n] ? (enum field)f : FIELDS;
}

/* A word and "=" that name no field are a mistake, and not a text to look for. */
static bool looks_like_field(const char *pattern)
{
	size_t n = strspn(pattern, "abcdefghijklmnopqrstuvwxyz");

	return n && pattern[n] == '=';
}

int pick_check(const char *pattern, struct err *e)
{
	const char *text;

	if (field_of(pattern, &text) == FIELDS && looks_like_field(pattern))
		return err_set(
			e, -EINVAL,
			"'%s' does not begin with name=, exe=, cmd=, user=, cgroup= or module=",
			pattern);
	return *text ? 0 : err_set(e, -EINVAL, "'%s' fits everything", pattern);
}

static bool fits(const char *text, const char *value)
{
	if (strpbrk(text, "*?["))
		return !fnmatch(text, value, 0);
	return strstr(value, text) != NULL;
}

static bool fits_proc(const char *pattern, const struct survey_proc *p)
{
	const struct survey_build *b = p->build;
	char user[64];
	const char *values[FIELDS] = {
		[F_NAME] = p->comm,	[F_EXE] = p->exe ? p->exe : "",
		[F_CMD] = p->command,	[F_USER] = user,
		[F_CGROUP] = p->cgroup, [F_MODULE] = *b->module ? b->module : b->path,
	};
	const char *text;
	enum field f = field_of(pattern, &text);

	report_user(p->uid, user, sizeof(user));
	if (f != FIELDS)
		return fits(text, values[f]);
	for (int i = 0; i < FIELDS; i++)
		if (fits(text, values[i]))
			return true;
	return false;
}

bool pick_wants(const struct pick *p, const struct survey_proc *proc)
{
	bool wanted = !p->nmatch;

	for (size_t i = 0; i < p->nmatch && !wanted; i++)
		wanted = fits_proc(p->match[i], proc);
	for (size_t i = 0; i < p->nexclude && wanted; i++)
		wanted = !fits_proc(p->exclude[i], proc);
	return wanted;
}
