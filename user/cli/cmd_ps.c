/* user/cli/cmd_ps.c - the Go processes of this machine, as a table or as JSON. */
#include <sys/ioctl.h>

#include "base/err.h"
#include "base/version.h"
#include "cli/cmd.h"
#include "base/sys/user_name.h"
#include "cli/report.h"
#include "cli/tell.h"
#include "inspect/survey.h"

static const char help[] =
	"Usage: goprof-bpf ps [--wide] [--json]\n"
	"\n"
	"Lists the Go processes of this machine, and which profiles would work on each.\n"
	"Nothing is written to them and none is stopped. Runs without root, and then shows\n"
	"this user's processes and counts those it could not look at.\n"
	"\n"
	"  -w, --wide      also why something would not work, and the main module\n"
	"      --json      for machines (docs/inspect.md names the fields)\n"
	"  -h, --help      this text\n"
	"\n"
	"Columns: BUILD how it was linked; RATES of the program's own heap, block and mutex\n"
	"profiles: bytes per sample, all or some waits, one contention in so many, off, or\n"
	"? (unknown); HEAP, BLOCK and MUTEX which --source would work: R read, P probe,\n"
	"E enable; CPU, WAIT and GOROUTINE whether these would; PPROF whether\n"
	"net/http/pprof is linked in (whether it listens cannot be told).\n"
	"Exit status: 0 done, 1 failed, 2 wrong usage, 3 done, but some processes could not\n"
	"be looked at.\n";

enum { COLUMNS = 13, CELL = 192 };

struct row {
	char cell[COLUMNS][CELL];
};

static const char *const titles[COLUMNS] = { "PID",	  "USER",  "GO",     "BUILD", "RATES",
					     "CPU",	  "HEAP",  "BLOCK",  "MUTEX", "WAIT",
					     "GOROUTINE", "PPROF", "PROGRAM" };

static const char *const kind_names[SURVEY_RATES] = { "heap", "block", "mutex" };

/* Foreign bytes take one column each and cannot move the cursor. */
static void ascii(char *s)
{
	for (; *s; s++)
		if (*s < ' ' || *s > '~')
			*s = '?';
}

/* ---- words ---- */

/* "static", "pie,cgo,race,stripped", ...; "?" when the file is not understood. */
static void build_words(const struct survey_proc *p, char *buf, size_t cap)
{
	const struct survey_build *b = p->build;

	if (*b->broken)
		snprintf(buf, cap, "?");
	else
		snprintf(buf, cap, "%s%s%s%s",
			 b->library ? "c-shared" :
			 b->pie	    ? "pie" :
			 b->dynamic ? "dynamic" :
				      "static",
			 b->cgo && !b->library ? ",cgo" : "", b->race == 1 ? ",race" : "",
			 b->stripped ? ",stripped" : "");
	if (p->exe_deleted == 1)
		snprintf(buf + strlen(buf), cap - strlen(buf), ",deleted");
}

/* For example "512k"; "all", "some"; "1/10"; "off", "?". */
static void rate_words(const struct survey_value *v, enum survey_rate r, char *buf, size_t cap)
{
	long long n = v->value;

	if (!v->known)
		snprintf(buf, cap, "?");
	else if (!n)
		snprintf(buf, cap, "off");
	else if (r == SURVEY_RATE_BLOCK)
		snprintf(buf, cap, n == 1 ? "all" : "some");
	else if (r == SURVEY_RATE_MUTEX)
		snprintf(buf, cap, "1/%lld", n);
	else
		snprintf(buf, cap, n % 1024 ? "%lld" : "%lldk", n % 1024 ? n : n / 1024);
}

static void rates_words(const struct survey_proc *p, char *buf, size_t cap)
{
	char one[SURVEY_RATES][32];

	for (int r = 0; r < SURVEY_RATES; r++)
		rate_words(&p->rate[r], (enum survey_rate)r, one[r], sizeof(one[r]));
	snprintf(buf, cap, "%s,%s,%s", one[0], one[1], one[2]);
}

/* For example "R-E". */
static void source_letters(const struct survey_sources *s, char *buf, size_t cap)
{
	snprintf(buf, cap, "%c%c%c", s->read.yes ? 'R' : '-', s->probe.yes ? 'P' : '-',
		 s->enable.yes ? 'E' : '-');
}

static void where_words(const struct container *c, char *buf, size_t cap)
{
	if (c->kind == CONTAINER_IS)
		snprintf(buf, cap, " [%s %s]", c->runtime, c->id);
	else if (c->kind == CONTAINER_UNIT)
		snprintf(buf, cap, " [%s]", c->id);
	else
		buf[0] = 0;
}

static const char *endpoint_word(const struct survey_build *b)
{
	return b->endpoint < 0 ? "?" : b->endpoint ? "linked" : "no";
}

/* ---- the table ---- */

static void fill_row(const struct survey_proc *p, struct row *r)
{
	const struct survey_build *b = p->build;
	char where[160];

	where_words(&p->where, where, sizeof(where));
	snprintf(r->cell[0], CELL, "%d", p->pid);
	user_name(p->uid, r->cell[1], CELL);
	snprintf(r->cell[2], CELL, "%.40s",
		 !*b->version		      ? "?" :
		 strncmp(b->version, "go", 2) ? b->version :
						b->version + 2);
	build_words(p, r->cell[3], CELL);
	rates_words(p, r->cell[4], CELL);
	snprintf(r->cell[5], CELL, "%s", p->cpu.yes ? "yes" : "no");
	for (int k = 0; k < SURVEY_RATES; k++)
		source_letters(&p->sources[k], r->cell[6 + k], CELL);
	snprintf(r->cell[9], CELL, "%s", p->wait.yes ? "yes" : "no");
	snprintf(r->cell[10], CELL, "%s", p->goroutine.yes ? "yes" : "no");
	snprintf(r->cell[11], CELL, "%s", endpoint_word(b));
	snprintf(r->cell[12], CELL, "%s%.120s", p->comm, where);
	for (int c = 0; c < COLUMNS; c++)
		ascii(r->cell[c]);
}

/* Number of columns of the terminal; 0 when stdout is none: then nothing is cut. */
static unsigned terminal_width(void)
{
	struct winsize w = { 0 };

	return isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) ? w.ws_col : 0;
}

static void print_row(const struct row *r, const int width[COLUMNS], unsigned max)
{
	char line[COLUMNS * (CELL + 2)];
	int n = 0;

	for (int c = 0; c < COLUMNS; c++)
		n += snprintf(line + n, sizeof(line) - (size_t)n,
			      c + 1 < COLUMNS ? "%-*s  " : "%.*s",
			      c + 1 < COLUMNS ? width[c] : CELL, r->cell[c]);
	if (max && (unsigned)n > max)
		line[max] = 0;
	puts(line);
}

static void print_why(const char *what, const char *why)
{
	char line[SURVEY_WHY + 64];

	if (!*why)
		return;
	snprintf(line, sizeof(line), "%.30s: %.*s", what, SURVEY_WHY, why);
	ascii(line);
	printf("        %s\n", line);
}

/* Writes those rates in full for which the table has no room. */
static void print_rates(const struct survey_proc *p)
{
	const struct survey_value *block = &p->rate[SURVEY_RATE_BLOCK];
	char line[SURVEY_WHY];

	if (block->known && block->value > 1) {
		snprintf(line, sizeof(line),
			 "waits of %lld CPU ticks or longer, others in proportion",
			 (long long)block->value);
		print_why("block rate", line);
	}
	print_why("heap rate", p->rate[SURVEY_RATE_HEAP].why);
	print_why("block rate", block->why);
	print_why("mutex rate", p->rate[SURVEY_RATE_MUTEX].why);
}

static void print_sources(const char *kind, const struct survey_sources *s)
{
	const struct {
		const char *name;
		const struct survey_answer *a;
	} rows[] = { { "read", &s->read }, { "probe", &s->probe }, { "enable", &s->enable } };
	char what[32];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		snprintf(what, sizeof(what), "%s %s", kind, rows[i].name);
		print_why(what, rows[i].a->why);
	}
}

static void print_details(const struct survey_proc *p)
{
	const struct survey_build *b = p->build;
	char line[SURVEY_WHY];

	print_why("executable", p->exe ? p->exe : "");
	print_why("main package", b->path);
	snprintf(line, sizeof(line), "%.250s%s%.60s", b->module, *b->module_version ? " " : "",
		 b->module_version);
	print_why("module", line);
	print_why("layout", b->offsets.from);
	print_rates(p);
	print_why("cpu", p->cpu.why);
	for (int k = 0; k < SURVEY_RATES; k++)
		print_sources(kind_names[k], &p->sources[k]);
	print_why("wait", p->wait.why);
	print_why("goroutine", p->goroutine.why);
}

static int print_table(const struct survey *s, bool wide)
{
	CLEANUP(freep) struct row *rows = calloc(s->at.n + 1, sizeof(*rows));
	unsigned max = wide ? 0 : terminal_width();
	int width[COLUMNS] = { 0 };

	if (!rows) {
		tell("no memory for %zu processes", s->at.n);
		return EXIT_FAILED;
	}
	for (int c = 0; c < COLUMNS; c++)
		snprintf(rows[0].cell[c], CELL, "%s", titles[c]);
	for (size_t i = 0; i < s->at.n; i++)
		fill_row(&s->at.at[i], &rows[i + 1]);
	for (size_t i = 0; i <= s->at.n; i++)
		for (int c = 0; c < COLUMNS; c++)
			if ((int)strlen(rows[i].cell[c]) > width[c])
				width[c] = (int)strlen(rows[i].cell[c]);
	for (size_t i = 0; i <= s->at.n; i++) {
		print_row(&rows[i], width, max);
		if (wide && i)
			print_details(&s->at.at[i - 1]);
	}
	return EXIT_DONE;
}

/* ---- JSON ---- */

static json_t *json_value(const struct survey_value *v)
{
	return json_pack("{s:o, s:o}", "value", v->known ? json_integer(v->value) : json_null(),
			 "reason", report_maybe(v->why));
}

static json_t *json_answer(const struct survey_answer *a)
{
	return json_pack("{s:b, s:o}", "works", (int)a->yes, "reason", report_maybe(a->why));
}

static json_t *json_tri(int v)
{
	return v < 0 ? json_null() : json_boolean(v);
}

static json_t *json_build(const struct survey_build *b)
{
	if (*b->broken)
		return json_null();
	return json_pack("{s:b, s:b, s:b, s:o, s:b, s:b, s:b}", "pie", (int)b->pie, "dynamic",
			 (int)b->dynamic, "cgo", (int)b->cgo, "race", json_tri(b->race), "stripped",
			 (int)b->stripped, "dwarf", (int)b->dwarf, "library", (int)b->library);
}

static json_t *json_where(const struct container *c)
{
	static const char *const kinds[] = { NULL, "none", "unit", "container" };

	if (c->kind == CONTAINER_UNKNOWN)
		return json_null();
	return json_pack("{s:s, s:o, s:o}", "kind", kinds[c->kind], "runtime",
			 report_maybe(c->runtime), "id", report_maybe(c->id));
}

/* "heap_read", "mutex_enable", ...: each with its answer. */
static json_t *json_sources(const struct survey_proc *p)
{
	json_t *out = json_pack("{s:o, s:o, s:o}", "cpu", json_answer(&p->cpu), "wait",
				json_answer(&p->wait), "goroutine", json_answer(&p->goroutine));
	char key[32];

	for (int k = 0; out && k < SURVEY_RATES; k++) {
		const struct survey_sources *s = &p->sources[k];

		snprintf(key, sizeof(key), "%s_read", kind_names[k]);
		json_object_set_new(out, key, json_answer(&s->read));
		snprintf(key, sizeof(key), "%s_probe", kind_names[k]);
		json_object_set_new(out, key, json_answer(&s->probe));
		snprintf(key, sizeof(key), "%s_enable", kind_names[k]);
		json_object_set_new(out, key, json_answer(&s->enable));
	}
	return out;
}

static json_t *json_proc(const struct survey_proc *p)
{
	const struct survey_build *b = p->build;
	char user[64];

	user_name(p->uid, user, sizeof(user));
	return json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o,"
			 " s:o, s:o, s:o, s:o}",
			 "pid", p->pid, "comm", report_string(p->comm), "uid",
			 p->uid == (uid_t)-1 ? json_null() : json_integer(p->uid), "user",
			 p->uid == (uid_t)-1 ? json_null() : report_string(user), "exe",
			 report_maybe(p->exe ? p->exe : ""), "exe_deleted",
			 json_tri(p->exe_deleted), "go_version", report_maybe(b->version),
			 "package", report_maybe(b->path), "module", report_maybe(b->module),
			 "module_version", report_maybe(b->module_version), "build", json_build(b),
			 "problem", report_maybe(b->broken), "container", json_where(&p->where),
			 "endpoint_linked", json_tri(b->endpoint), "heap_rate",
			 json_value(&p->rate[SURVEY_RATE_HEAP]), "block_rate",
			 json_value(&p->rate[SURVEY_RATE_BLOCK]), "mutex_rate",
			 json_value(&p->rate[SURVEY_RATE_MUTEX]), "sources", json_sources(p));
}

static int print_json(const struct survey *s, int status)
{
	json_t *procs = json_array(), *unanswered = json_array();

	for (size_t i = 0; i < s->unanswered.n; i++)
		if (json_array_append_new(unanswered, json_integer(s->unanswered.at[i])))
			status = EXIT_FAILED;
	for (size_t i = 0; i < s->at.n; i++)
		if (json_array_append_new(procs, json_proc(&s->at.at[i])))
			status = EXIT_FAILED;
	return report_print(json_pack("{s:s, s:I, s:I, s:o, s:I, s:o, s:b, s:o}", "version",
				      GOPROF_VERSION, "seen", (json_int_t)s->seen, "denied",
				      (json_int_t)s->denied, "denied_reason",
				      report_maybe(s->denied_why), "left_out",
				      (json_int_t)s->left_out, "unanswered", unanswered, "hidden",
				      (int)s->hidden, "processes", procs),
			    status);
}

/* ---- the command ---- */

static int say_losses(const struct survey *s)
{
	if (s->denied)
		tell("%zu of %zu processes could not be looked at: %s", s->denied, s->seen,
		     s->denied_why);
	if (s->left_out)
		tell("%zu processes were left out: no memory, too many of them, or too many did not answer",
		     s->left_out);
	for (size_t i = 0; i < s->unanswered.n; i++)
		tell("pid %d could not be looked at: its memory or its files do not answer",
		     s->unanswered.at[i]);
	if (s->hidden)
		tell("/proc hides other users' processes (hidepid): run as root");
	return s->denied || s->left_out || s->unanswered.n || s->hidden ? EXIT_LOSSES : EXIT_DONE;
}

int cmd_ps(int argc, char **argv)
{
	struct survey s = { .wants = SURVEY_EVERYTHING };
	struct err e = { "" };
	struct report_opts o;
	int status = report_options(argc, argv, help, &o), ret;

	if (status >= 0)
		return status;
	if (survey_run(&s, &e)) {
		tell("%s", e.msg);
		return EXIT_FAILED;
	}
	status = say_losses(&s);
	if (o.json) {
		status = print_json(&s, status);
	} else {
		ret = print_table(&s, o.wide);
		status = ret ? ret : status;
	}
	survey_fini(&s);
	return status;
}
