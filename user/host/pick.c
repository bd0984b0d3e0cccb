/* user/host/pick.c - patterns over what a survey knows of a process. */
#include "host/pick.h"

#include <fnmatch.h>
#include <limits.h>
#include <string.h>

#include "base/sys/user_name.h"

enum field { F_NAME, F_EXE, F_CMD, F_USER, F_CGROUP, F_CONTAINER, F_MODULE, FIELDS };

enum { COMM_MAX = 15 }; /* TASK_COMM_LEN without its NUL */

static const char *const names[FIELDS] = { "name",   "exe",	  "cmd",   "user",
					   "cgroup", "container", "module" };

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

/* fnmatch() takes such a bracket for itself: a set that was not finished would fit next to nothing. */
static bool is_open(const char *text)
{
	for (; *text; text++) {
		if (*text == '[' && !strchr(text, ']'))
			return true;
		text += *text == '\\' && text[1];
	}
	return false;
}

int pick_check(const char *pattern, struct err *e)
{
	const char *text;

	if (field_of(pattern, &text) == FIELDS && looks_like_field(pattern))
		return err_set(
			e, -EINVAL,
			"'%s' does not begin with name=, exe=, cmd=, user=, cgroup=, container= or module=",
			pattern);
	if (is_open(text))
		return err_set(e, -EINVAL, "'%s' has a [ without its ]", pattern);
	return *text ? 0 : err_set(e, -EINVAL, "'%s' fits everything", pattern);
}

/* @value: NULL: it is not known. */
static enum pick_fit fits(const char *text, const char *value)
{
	if (!value)
		return PICK_UNKNOWN;
	if (strpbrk(text, "*?["))
		return fnmatch(text, value, 0) ? PICK_NOT : PICK_FITS;
	return strstr(value, text) ? PICK_FITS : PICK_NOT;
}

static enum pick_fit better(enum pick_fit a, enum pick_fit b)
{
	return a > b ? a : b;
}

static enum pick_fit fits_module(const char *text, const struct survey_build *b)
{
	return fits(text, !b ? NULL : *b->module ? b->module : b->path);
}

/*
 * Its own name, which the kernel cuts, and the name of its executable. Where that is not known, a text that is longer than the
 * kernel's names may be it.
 */
static enum pick_fit fits_name(const char *text, const struct survey_proc *p)
{
	static const char mark[] = " (deleted)";
	const char *slash = p->exe ? strrchr(p->exe, '/') : NULL;
	size_t n = slash ? strlen(slash) : 0;
	enum pick_fit own = fits(text, p->comm);
	char base[NAME_MAX + 1];

	if (!p->exe && !p->build && own == PICK_NOT && strlen(p->comm) == COMM_MAX &&
	    strlen(text) > COMM_MAX)
		return PICK_UNKNOWN;
	if (n >= sizeof(mark) && !strcmp(slash + n - (sizeof(mark) - 1), mark))
		n -= sizeof(mark) - 1;
	snprintf(base, sizeof(base), "%.*s", n ? (int)n - 1 : 0, n ? slash + 1 : "");
	return better(own, fits(text, base));
}

static enum pick_fit fits_exe(const char *text, const struct survey_proc *p)
{
	return fits(text, p->exe ? p->exe : p->build ? "" : NULL);
}

/* What is missing may fit. */
static enum pick_fit fits_command(const char *text, const struct survey_proc *p)
{
	enum pick_fit fit = fits(text, p->command);

	if (p->command_cut && (fit == PICK_NOT || strpbrk(text, "*?[")))
		return PICK_UNKNOWN;
	return fit;
}

/* A number is no part of another one. */
static enum pick_fit fits_user(const char *text, const struct survey_proc *p)
{
	char name[64], number[16];

	if (p->uid == (uid_t)-1)
		return PICK_UNKNOWN;
	user_name(p->uid, name, sizeof(name));
	snprintf(number, sizeof(number), "%u", p->uid);
	if (!strcmp(text, number))
		return PICK_FITS;
	if (strpbrk(text, "*?[") && fits(text, number) == PICK_FITS)
		return PICK_FITS;
	return strcmp(name, number) ? fits(text, name) : PICK_NOT;
}

/* One of its cgroups: in a hybrid hierarchy each has a path of its own. */
static enum pick_fit fits_cgroup(const char *text, const struct survey_proc *p)
{
	CLEANUP(freep) char *paths = p->cgroups ? strdup(p->cgroups) : NULL;
	enum pick_fit best = PICK_NOT;
	char *rest = paths;

	if (!paths)
		return PICK_UNKNOWN;
	for (const char *one; (one = strsep(&rest, "\n")) != NULL;)
		if (*one)
			best = better(best, fits(text, one));
	return best;
}

/* As ps shows it, or the whole id, of which ps shows the beginning. */
static enum pick_fit fits_container(const char *text, const struct survey_proc *p)
{
	const struct container *c = &p->where;
	char shown[sizeof(c->runtime) + sizeof(c->id) + 1];

	if (!p->cgroups)
		return PICK_UNKNOWN;
	if (c->kind != CONTAINER_IS)
		return PICK_NOT;
	snprintf(shown, sizeof(shown), "%s %s", c->runtime, c->id);
	if (fits(text, shown) == PICK_FITS || fits(text, c->id) == PICK_FITS ||
	    fits(text, c->runtime) == PICK_FITS)
		return PICK_FITS;
	return strncmp(text, c->id, strlen(c->id)) ? PICK_NOT : fits_cgroup(text, p);
}

static enum pick_fit fits_field(enum field f, const char *text, const struct survey_proc *p)
{
	switch (f) {
	case F_NAME:
		return fits_name(text, p);
	case F_EXE:
		return fits_exe(text, p);
	case F_CMD:
		return fits_command(text, p);
	case F_USER:
		return fits_user(text, p);
	case F_CGROUP:
		return fits_cgroup(text, p);
	case F_CONTAINER:
		return fits_container(text, p);
	case F_MODULE:
		return fits_module(text, p->build);
	case FIELDS:
		break;
	}
	BUG_ON(true);
}

static enum pick_fit fits_proc(const char *pattern, const struct survey_proc *p)
{
	const char *text;
	enum field f = field_of(pattern, &text);
	enum pick_fit best = PICK_NOT;

	if (f != FIELDS)
		return fits_field(f, text, p);
	for (int i = 0; i < FIELDS && best != PICK_FITS; i++)
		best = better(best, fits_field((enum field)i, text, p));
	return best;
}

static enum pick_fit fits_one(const char *const *patterns, size_t n, const struct survey_proc *proc)
{
	enum pick_fit best = PICK_NOT;

	for (size_t i = 0; i < n; i++)
		best = better(best, fits_proc(patterns[i], proc));
	return best;
}

enum pick_fit pick_judge(const struct pick *p, const struct survey_proc *proc)
{
	enum pick_fit match = p->nmatch ? fits_one(p->match, p->nmatch, proc) : PICK_FITS;
	enum pick_fit excluded = fits_one(p->exclude, p->nexclude, proc);

	if (excluded == PICK_FITS)
		return PICK_NOT;
	return excluded == PICK_UNKNOWN && match == PICK_FITS ? PICK_UNKNOWN : match;
}
