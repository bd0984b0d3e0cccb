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

enum fit { FITS_NOT, FITS_UNKNOWN, FITS };

/* @value: NULL: it is not known. */
static enum fit fits(const char *text, const char *value)
{
	if (!value)
		return FITS_UNKNOWN;
	if (strpbrk(text, "*?["))
		return fnmatch(text, value, 0) ? FITS_NOT : FITS;
	return strstr(value, text) ? FITS : FITS_NOT;
}

static const char *module_of(const struct survey_build *b)
{
	return !b ? NULL : *b->module ? b->module : b->path;
}

static enum fit fits_proc(const char *pattern, const struct survey_proc *p)
{
	char user[64];
	const char *values[FIELDS] = {
		[F_NAME] = p->comm,
		[F_EXE] = p->exe   ? p->exe :
			  p->build ? "" :
				     NULL,
		[F_CMD] = p->command_unread ? NULL : p->command,
		[F_USER] = p->uid == (uid_t)-1 ? NULL : user,
		[F_CGROUP] = p->cgroup,
		[F_MODULE] = module_of(p->build),
	};
	const char *text;
	enum field f = field_of(pattern, &text);
	enum fit best = FITS_NOT;

	report_user(p->uid, user, sizeof(user));
	if (f != FIELDS)
		return fits(text, values[f]);
	for (int i = 0; i < FIELDS && best != FITS; i++) {
		enum fit now = fits(text, values[i]);

		best = now > best ? now : best;
	}
	return best;
}

static enum fit fits_one(const char *const *patterns, size_t n, const struct survey_proc *proc)
{
	enum fit best = FITS_NOT;

	for (size_t i = 0; i < n; i++) {
		enum fit now = fits_proc(patterns[i], proc);

		best = now > best ? now : best;
	}
	return best;
}

static enum fit judge(const struct pick *p, const struct survey_proc *proc)
{
	enum fit match = p->nmatch ? fits_one(p->match, p->nmatch, proc) : FITS;
	enum fit excluded = fits_one(p->exclude, p->nexclude, proc);

	if (excluded == FITS)
		return FITS_NOT;
	return excluded == FITS_UNKNOWN && match == FITS ? FITS_UNKNOWN : match;
}

bool pick_wants(const struct pick *p, const struct survey_proc *proc)
{
	return judge(p, proc) == FITS;
}

bool pick_may_want(const struct pick *p, const struct survey_proc *proc)
{
	return judge(p, proc) != FITS_NOT;
}
