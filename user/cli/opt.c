/* user/cli/opt.c - one table of options; every value is checked where it is read. */
#include "cli/opt.h"

#include <getopt.h>
#include "base/clock.h"

#define DURATION_MIN_NS (10 * NS_PER_MS)
#define DURATION_MAX_NS (24 * 3600 * NS_PER_S)
#define HEAP_RATE_MAX	(1ull << 30)
#define BLOCK_RATE_MAX	(1000 * NS_PER_S)
#define FRACTION_MAX	(1ull << 20)

enum { FREQUENCY_MAX = 10000 };

/* Long options without a short one. */
enum {
	O_CPU = 256,
	O_HEAP,
	O_BLOCK,
	O_MUTEX,
	O_WAIT,
	O_GOROUTINE,
	O_SOURCE,
	O_HEAP_RATE,
	O_BLOCK_RATE,
	O_MUTEX_FRACTION,
	O_WAIT_RATE,
	O_KERNEL,
	O_GOID,
	O_LABELS,
	O_TYPES,
	O_BUDGET,
	O_HOST_BUDGET,
	O_FORMAT,
	O_MODE,
	O_FOLLOW,
	O_ALL,
	O_MATCH,
	O_EXCLUDE,
	O_DRY_RUN,
	O_VERSION,
};

static const struct option table[] = {
	{ "pid", required_argument, NULL, 'p' },
	{ "cpu", no_argument, NULL, O_CPU },
	{ "heap", no_argument, NULL, O_HEAP },
	{ "block", no_argument, NULL, O_BLOCK },
	{ "mutex", no_argument, NULL, O_MUTEX },
	{ "wait", no_argument, NULL, O_WAIT },
	{ "goroutine", no_argument, NULL, O_GOROUTINE },
	{ "duration", required_argument, NULL, 'd' },
	{ "frequency", required_argument, NULL, 'F' },
	{ "output", required_argument, NULL, 'o' },
	{ "mode", required_argument, NULL, O_MODE },
	{ "source", required_argument, NULL, O_SOURCE },
	{ "heap-rate", required_argument, NULL, O_HEAP_RATE },
	{ "block-rate", required_argument, NULL, O_BLOCK_RATE },
	{ "mutex-fraction", required_argument, NULL, O_MUTEX_FRACTION },
	{ "wait-rate", required_argument, NULL, O_WAIT_RATE },
	{ "kernel", no_argument, NULL, O_KERNEL },
	{ "goid", no_argument, NULL, O_GOID },
	{ "labels", no_argument, NULL, O_LABELS },
	{ "types", no_argument, NULL, O_TYPES },
	{ "budget", required_argument, NULL, O_BUDGET },
	{ "host-budget", required_argument, NULL, O_HOST_BUDGET },
	{ "format", required_argument, NULL, O_FORMAT },
	{ "follow", no_argument, NULL, O_FOLLOW },
	{ "all", no_argument, NULL, O_ALL },
	{ "match", required_argument, NULL, O_MATCH },
	{ "exclude", required_argument, NULL, O_EXCLUDE },
	{ "dry-run", no_argument, NULL, O_DRY_RUN },
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, O_VERSION },
	{ 0 },
};

/* Which options were given, for those that make no sense without another one. */
struct given {
	bool frequency, source, heap_rate, block_rate, mutex_fraction, wait_rate, budget,
		host_budget;
};

/* ---- values ---- */

static bool digits(const char **s, uint64_t *v)
{
	uint64_t n = 0;

	if (**s < '0' || **s > '9')
		return false;
	for (; **s >= '0' && **s <= '9'; (*s)++)
		if (__builtin_mul_overflow(n, 10ull, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(**s - '0'), &n))
			return false;
	*v = n;
	return true;
}

bool opt_number(const char *s, uint64_t min, uint64_t max, uint64_t *v)
{
	uint64_t n;

	if (!digits(&s, &n) || *s || n < min || n > max)
		return false;
	*v = n;
	return true;
}

/* The unit at *s, which is consumed; 0 when there is none. */
static uint64_t duration_unit(const char **s)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		/* "ms" must come before "m" */
		{ "ms", NS_PER_MS },
		{ "s", NS_PER_S },
		{ "m", 60 * NS_PER_S },
		{ "h", 3600 * NS_PER_S },
	};

	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		size_t n = strlen(units[i].name);

		if (!strncmp(*s, units[i].name, n)) {
			*s += n;
			return units[i].ns;
		}
	}
	return 0;
}

/* Reads the digits behind a point as a fraction of @unit; what is finer than 1 ns is dropped. */
static bool fraction(const char **s, uint64_t *billionths)
{
	uint64_t scale = NS_PER_S;

	*billionths = 0;
	if (**s != '.')
		return true;
	(*s)++;
	if (**s < '0' || **s > '9')
		return false;
	for (; **s >= '0' && **s <= '9'; (*s)++) {
		scale /= 10;
		*billionths += (uint64_t)(**s - '0') * scale;
	}
	return true;
}

bool opt_duration(const char *s, uint64_t *ns)
{
	uint64_t sum = 0, whole, part, unit, v;
	bool first = true;

	do {
		if (!digits(&s, &whole) || !fraction(&s, &part))
			return false;
		unit = duration_unit(&s);
		if (!unit && (!first || *s)) /* only a lone number may have no unit */
			return false;
		if (!unit)
			unit = NS_PER_S;
		if (__builtin_mul_overflow(whole, unit, &v) ||
		    __builtin_add_overflow(v, part * (unit / NS_PER_MS) / 1000, &v) ||
		    __builtin_add_overflow(sum, v, &sum))
			return false;
		first = false;
	} while (*s);
	*ns = sum;
	return true;
}

bool opt_wait_time(const char *s, uint64_t *ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = { { "ns", 1 }, { "us", 1000 }, { "ms", NS_PER_MS }, { "s", NS_PER_S } };
	uint64_t n;

	if (!digits(&s, &n))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (!strcmp(s, units[i].name))
			return !__builtin_mul_overflow(n, units[i].ns, ns);
	return false;
}

bool opt_size(const char *s, uint64_t *bytes)
{
	uint64_t n, unit = 1;

	if (!digits(&s, &n))
		return false;
	if (*s == 'k' || *s == 'K')
		unit = 1 << 10;
	else if (*s == 'm' || *s == 'M')
		unit = 1 << 20;
	else if (*s == 'g' || *s == 'G')
		unit = 1 << 30;
	if (unit > 1)
		s++;
	if (*s || __builtin_mul_overflow(n, unit, &n))
		return false;
	*bytes = n;
	return true;
}

bool opt_share(const char *s, uint64_t *ppm)
{
	uint64_t whole, part, v;

	if (!digits(&s, &whole) || whole > 100 || !fraction(&s, &part))
		return false;
	v = whole * 10000 + part / (NS_PER_S / 10000);
	if (*s == '%')
		s++;
	else if (v)
		return false;
	if (*s || v > 1000000 || (!v && (whole || part)))
		return false;
	*ppm = v;
	return true;
}

/* ---- options ---- */

static int set_pid(struct opts *o, const char *s, struct err *e)
{
	uint64_t v;

	if (!opt_number(s, 1, INT32_MAX, &v))
		return err_set(e, -EINVAL, "--pid: '%s' is not a process id", s);
	for (size_t i = 0; i < o->npids; i++)
		if (o->pids[i] == (pid_t)v)
			return 0;
	if (o->npids == OPT_PIDS_MAX)
		return err_set(e, -EINVAL, "--pid: more than %d processes", OPT_PIDS_MAX);
	o->pids[o->npids++] = (pid_t)v;
	o->pid = o->pids[0];
	return 0;
}

static int set_pick(const char *name, const char *at[PICK_MAX], size_t *n, const char *s,
		    struct err *e)
{
	int ret = pick_check(s, e);

	if (ret)
		return err_wrap(e, ret, "--%s", name);
	if (*n == PICK_MAX)
		return err_set(e, -EINVAL, "--%s: more than %d patterns", name, PICK_MAX);
	at[(*n)++] = s;
	return 0;
}

static int set_duration(struct opts *o, const char *s, struct err *e)
{
	uint64_t ns;

	if (!opt_duration(s, &ns))
		return err_set(e, -EINVAL,
			       "--duration: '%s' is not a duration such as 10s, 500ms, 2m or 1h",
			       s);
	if (ns < DURATION_MIN_NS || ns > DURATION_MAX_NS)
		return err_set(e, -EINVAL, "--duration: '%s' is not between 10ms and 24h", s);
	o->duration_ns = ns;
	return 0;
}

static int set_frequency(struct opts *o, const char *s, struct err *e)
{
	uint64_t v;

	if (!opt_number(s, 1, FREQUENCY_MAX, &v))
		return err_set(e, -EINVAL, "--frequency: '%s' is not a number from 1 to %d", s,
			       FREQUENCY_MAX);
	o->collect.cpu.hz = (unsigned)v;
	return 0;
}

static int set_heap_rate(struct opts *o, const char *s, struct err *e)
{
	uint64_t v;

	if (!opt_size(s, &v))
		return err_set(e, -EINVAL, "--heap-rate: '%s' is not a size such as 524288 or 512k",
			       s);
	if (v < 1 || v > HEAP_RATE_MAX)
		return err_set(e, -EINVAL, "--heap-rate: '%s' is not between 1 and 1G", s);
	o->collect.heap.rate = v;
	return 0;
}

/* A time such as 10us; a number without a unit is nanoseconds, as for Go's SetBlockProfileRate. */
static int set_wait_time(const char *name, uint64_t *out, const char *s, struct err *e)
{
	uint64_t v;

	if (!opt_number(s, 0, UINT64_MAX, &v) && !opt_wait_time(s, &v))
		return err_set(e, -EINVAL,
			       "--%s: '%s' is not a time such as 10000 (nanoseconds), 10us or 1ms",
			       name, s);
	if (v < 1 || v > BLOCK_RATE_MAX)
		return err_set(e, -EINVAL, "--%s: '%s' is not between 1 ns and 1000s", name, s);
	*out = v;
	return 0;
}

static int set_mutex_fraction(struct opts *o, const char *s, struct err *e)
{
	uint64_t v;

	if (!opt_number(s, 1, FRACTION_MAX, &v))
		return err_set(e, -EINVAL, "--mutex-fraction: '%s' is not a number from 1 to %llu",
			       s, FRACTION_MAX);
	o->collect.mutex.fraction = v;
	return 0;
}

static int set_budget(struct opts *o, const char *s, struct err *e)
{
	uint64_t ppm;

	if (!opt_share(s, &ppm))
		return err_set(e, -EINVAL,
			       "--budget: '%s' is not a share of CPU time such as 5%%, 0.5%% or 0 "
			       "(no bound)",
			       s);
	o->collect.budget.ppm = (unsigned)ppm;
	return 0;
}

/* "2%,5%" */
static int set_host_budget(struct opts *o, const char *s, struct err *e)
{
	const char *comma = strchr(s, ',');
	const char *last = comma ? comma + 1 : !strcmp(s, "0") ? s : "";
	char own[32] = "0";
	uint64_t own_ppm, taken_ppm;

	if (comma)
		snprintf(own, sizeof(own), "%.*s", comma - s < 31 ? (int)(comma - s) : 0, s);
	if (!opt_share(own, &own_ppm) || !opt_share(last, &taken_ppm))
		return err_set(e, -EINVAL,
			       "--host-budget: '%s' is not two shares of CPU time such as 2%%,5%% "
			       "or 0 (no bound)",
			       s);
	o->collect.host.own_ppm = (unsigned)own_ppm;
	o->collect.host.taken_ppm = (unsigned)taken_ppm;
	return 0;
}

static int set_source(struct opts *o, const char *s, struct err *e)
{
	if (!strcmp(s, "auto"))
		o->collect.source = SOURCE_AUTO;
	else if (!strcmp(s, "read"))
		o->collect.source = SOURCE_READ;
	else if (!strcmp(s, "enable"))
		o->collect.source = SOURCE_ENABLE;
	else if (!strcmp(s, "probe"))
		o->collect.source = SOURCE_PROBE;
	else
		return err_set(e, -EINVAL, "--source: '%s' is not auto, read, enable or probe", s);
	return 0;
}

static int set_format(struct opts *o, const char *s, struct err *e)
{
	const struct output_format *f = output_find(s);

	if (!f)
		return err_set(e, -EINVAL, "--format: '%s' is not pprof, folded, text or flame", s);
	for (size_t i = 0; i < o->nformats; i++)
		if (o->formats[i] == f)
			return 0;
	if (o->nformats == OPT_FORMATS_MAX)
		return err_set(e, -EINVAL, "--format: more than %d formats", OPT_FORMATS_MAX);
	o->formats[o->nformats++] = f;
	return 0;
}

bool opt_mode(const char *s, mode_t *mode)
{
	mode_t v = 0;
	size_t n = strspn(s, "01234567");

	if (!n || n > 4 || s[n])
		return false;
	for (size_t i = 0; i < n; i++)
		v = v << 3 | (mode_t)(s[i] - '0');
	*mode = v;
	return true;
}

static int set_mode(struct opts *o, const char *s, struct err *e)
{
	mode_t mode;

	if (!opt_mode(s, &mode))
		return err_set(e, -EINVAL, "--mode: '%s' is not an octal number such as 0600", s);
	if (!opt_mode_fits(mode))
		return err_set(e, -EINVAL, "--mode: '%s' is not between 0400 and 0666, for files",
			       s);
	o->mode = mode;
	return 0;
}

static int set_dir(struct opts *o, const char *s, struct err *e)
{
	if (!*s)
		return err_set(e, -EINVAL, "--output: the name of the directory is empty");
	o->dir = s;
	return 0;
}

/* Handles an option that takes no value; false when @opt is none of these. */
static bool set_flag(struct opts *o, int opt)
{
	const struct {
		int opt;
		bool *flag;
	} flags[] = {
		{ O_CPU, &o->cpu },
		{ O_HEAP, &o->heap },
		{ O_BLOCK, &o->block },
		{ O_MUTEX, &o->mutex },
		{ O_WAIT, &o->wait },
		{ O_GOROUTINE, &o->goroutine },
		{ O_LABELS, &o->collect.labels },
		{ O_TYPES, &o->collect.heap.types },
		{ O_KERNEL, &o->collect.cpu.kernel },
		{ O_GOID, &o->collect.goid },
		{ O_FOLLOW, &o->follow },
		{ O_ALL, &o->all },
		{ O_DRY_RUN, &o->dry_run },
		{ 'v', &o->verbose },
	};

	for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
		if (flags[i].opt != opt)
			continue;
		*flags[i].flag = true;
		return true;
	}
	return false;
}

/* Handles one option with its value; negative when the value is wrong. */
static int set_value(struct opts *o, struct given *g, int opt, const char *s, struct err *e)
{
	switch (opt) {
	case 'p':
		return set_pid(o, s, e);
	case 'd':
		return set_duration(o, s, e);
	case 'F':
		g->frequency = true;
		return set_frequency(o, s, e);
	case 'o':
		return set_dir(o, s, e);
	case O_MODE:
		return set_mode(o, s, e);
	case O_SOURCE:
		g->source = true;
		return set_source(o, s, e);
	case O_HEAP_RATE:
		g->heap_rate = true;
		return set_heap_rate(o, s, e);
	case O_BLOCK_RATE:
		g->block_rate = true;
		return set_wait_time("block-rate", &o->collect.block.rate_ns, s, e);
	case O_MUTEX_FRACTION:
		g->mutex_fraction = true;
		return set_mutex_fraction(o, s, e);
	case O_WAIT_RATE:
		g->wait_rate = true;
		return set_wait_time("wait-rate", &o->collect.wait.rate_ns, s, e);
	case O_BUDGET:
		g->budget = true;
		return set_budget(o, s, e);
	case O_HOST_BUDGET:
		g->host_budget = true;
		return set_host_budget(o, s, e);
	case O_FORMAT:
		return set_format(o, s, e);
	case O_MATCH:
		return set_pick("match", o->pick.match, &o->pick.nmatch, s, e);
	case O_EXCLUDE:
		return set_pick("exclude", o->pick.exclude, &o->pick.nexclude, s, e);
	}
	BUG_ON(true);
}

/* ---- complaints ---- */

static const struct option *by_value(int val)
{
	for (const struct option *t = table; t->name; t++)
		if (t->val == val)
			return t;
	return NULL;
}

/* How many long options begin with the name in @word ("--he", "--he=1"). */
static unsigned matches(const char *word)
{
	size_t n = strcspn(word + 2, "=");
	unsigned found = 0;

	for (const struct option *t = table; t->name; t++)
		found += !strncmp(t->name, word + 2, n);
	return found;
}

/*
 * What getopt leaves in optopt: 0 for a long option it does not know, the option's value for a
 * long one that was given an argument it does not take, else the letter.
 */
static int unknown_option(const char *word, struct err *e)
{
	const struct option *t = optopt ? by_value(optopt) : NULL;

	if (t)
		return err_set(e, -EINVAL, "option '--%s' takes no value", t->name);
	if (optopt)
		return err_set(e, -EINVAL, "unknown option '-%c'", optopt);
	if (matches(word) > 1)
		return err_set(e, -EINVAL, "option '%s' is ambiguous", word);
	return err_set(e, -EINVAL, "unknown option '%s'", word);
}

static int missing_value(const char *word, struct err *e)
{
	const struct option *t = by_value(optopt);

	if (t && !strncmp(word, "--", 2))
		return err_set(e, -EINVAL, "option '--%s' needs a value", t->name);
	return err_set(e, -EINVAL, "option '-%c' needs a value", optopt);
}

/* The first option that was given and is for another kind of profile, or NULL. */
static const char *misplaced(const struct opts *o, const struct given *g, const char **kinds)
{
	const struct collect_opts *c = &o->collect;
	bool sourced = o->heap || o->block || o->mutex;
	const struct {
		bool given, fits;
		const char *option, *kinds;
	} rules[] = {
		{ g->frequency, o->cpu, "--frequency is for CPU profiles", "--cpu" },
		{ c->cpu.kernel, o->cpu, "--kernel is for CPU profiles", "--cpu" },
		{ c->goid, o->cpu || sourced || o->wait,
		  "--goid is for CPU, heap, block, mutex and wait profiles", "--cpu" },
		{ c->labels, sourced || o->wait,
		  "--labels is for heap, block, mutex and wait profiles (others have them anyway)",
		  "--block" },
		{ g->source, sourced, "--source is for heap, block and mutex profiles", "--heap" },
		{ g->heap_rate, o->heap, "--heap-rate is for heap profiles", "--heap" },
		{ g->block_rate, o->block, "--block-rate is for block profiles", "--block" },
		{ g->mutex_fraction, o->mutex, "--mutex-fraction is for mutex profiles",
		  "--mutex" },
		{ g->wait_rate, o->wait, "--wait-rate is for wait profiles", "--wait" },
		{ c->heap.types, o->heap, "--types is for heap profiles", "--heap" },
		{ g->budget, sourced || o->wait,
		  "--budget is for heap, block, mutex and wait profiles", "--heap" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		if (!rules[i].given || rules[i].fits)
			continue;
		*kinds = rules[i].kinds;
		return rules[i].option;
	}
	return NULL;
}

/* What the profiles of many processes at once cannot be. */
static int check_many(const struct opts *o, const struct given *g, struct err *e)
{
	const char *what = o->all ? "--all" : "more than one -p";

	if (o->collect.source == SOURCE_ENABLE)
		return err_set(
			e, -EINVAL,
			"--source enable is not possible with %s: it is for one process, by one -p PID",
			what);
	if (g->budget)
		return err_set(e, -EINVAL, "--budget is for one process: with %s say --host-budget",
			       what);
	if (o->command || o->follow)
		return err_set(e, -EINVAL, "%s and %s at once: one or the other", what,
			       o->command ? "a COMMAND" : "--follow");
	if (o->all && o->npids)
		return err_set(e, -EINVAL, "--all and -p PID at once: one or the other");
	return 0;
}

static int check_picks(const struct opts *o, const struct given *g, struct err *e)
{
	const char *option = o->pick.nmatch ? "--match" : o->pick.nexclude ? "--exclude" : NULL;

	if (option && !o->all)
		return err_set(e, -EINVAL, "%s is for all processes: add --all", option);
	if (g->host_budget && !o->all && o->npids < 2)
		return err_set(e, -EINVAL,
			       "--host-budget is for many processes: add --all or another -p");
	if (o->dry_run && !o->all && o->npids < 2)
		return err_set(e, -EINVAL,
			       "--dry-run is for many processes: add --all or another -p");
	return o->all || o->npids > 1 ? check_many(o, g, e) : 0;
}

/* Refuses options that would otherwise have no effect without notice. */
static int check_together(const struct opts *o, const struct given *g, struct err *e)
{
	const char *rate = g->heap_rate	     ? "--heap-rate" :
			   g->block_rate     ? "--block-rate" :
			   g->mutex_fraction ? "--mutex-fraction" :
					       NULL;
	const char *kinds = NULL, *option = misplaced(o, g, &kinds);
	int ret = check_picks(o, g, e);

	if (ret)
		return ret;
	if (!o->pid && !o->command && !o->all)
		return err_set(e, -EINVAL, "no process given: -p PID, --all or -- COMMAND");
	if (o->pid && o->command)
		return err_set(e, -EINVAL, "-p PID and a COMMAND at once: one or the other");
	if (o->command && o->collect.source == SOURCE_ENABLE)
		return err_set(e, -EINVAL,
			       "--source enable is for a process that runs: with a COMMAND the "
			       "runtime sets its rate itself when it starts");
	if (option)
		return err_set(e, -EINVAL, "%s: add %s", option, kinds);
	if (rate && o->collect.source == SOURCE_READ)
		return err_set(e, -EINVAL,
			       "%s is for --source enable or probe: what is read has its own rate",
			       rate);
	return 0;
}

/*
 * What stands behind "--", or NULL. getopt has stopped at argv[optind]. @value is the last word
 * that it took for an option's value, which may be "--" as well.
 */
static char **command_of(int argc, char **argv, const char *value)
{
	const char *before = argv[optind - 1];

	return optind < argc && optind > 1 && before != value && !strcmp(before, "--") ?
		       argv + optind :
		       NULL;
}

/* Goroutines alone need one look, so there is nothing to wait for. */
static bool at_once(const struct opts *o)
{
	return o->goroutine && !(o->cpu || o->heap || o->block || o->mutex || o->wait);
}

int opt_parse(int argc, char **argv, struct opts *o, struct err *e)
{
	struct given g = { 0 };
	struct opts v = {
		.dir = ".",
		.mode = 0600,
		.collect = { .cpu.hz = 100,
			     .heap.rate = 512 << 10,
			     .block.rate_ns = 10000,
			     .mutex.fraction = 10,
			     .wait.rate_ns = NS_PER_MS,
			     .budget.ppm = 50000,
			     .host.own_ppm = 20000,
			     .host.taken_ppm = 50000 },
	};
	const char *value = NULL;
	int opt, ret;

	optind = 0; /* so that it starts anew when it is called again */
	opterr = 0;
	while ((opt = getopt_long(argc, argv, "+:p:d:F:o:vh", table, NULL)) != -1) {
		if (opt == 'h')
			return OPT_HELP;
		if (opt == O_VERSION)
			return OPT_VERSION;
		if (opt == '?')
			return unknown_option(argv[optind - 1], e);
		if (opt == ':')
			return missing_value(argv[optind - 1], e);
		ret = set_flag(&v, opt) ? 0 : set_value(&v, &g, opt, optarg, e);
		if (ret)
			return ret;
		value = optarg;
	}
	v.collect.verbose = v.verbose;
	v.collect.heap.fine = !g.heap_rate;
	v.collect.block.fine = !g.block_rate;
	v.collect.mutex.fine = !g.mutex_fraction;
	v.collect.wait.fine = !g.wait_rate;
	v.command = command_of(argc, argv, value);
	if (optind < argc && !v.command)
		return err_set(e, -EINVAL, "unexpected argument '%s'", argv[optind]);
	/*
	 * A short command has no second chance: unless a budget was given, it is observed as a
	 * whole at first.
	 */
	if (v.command && !g.budget)
		v.collect.budget.ahead_ns = NS_PER_S;
	v.cpu |= !(v.heap || v.block || v.mutex || v.wait || v.goroutine);
	ret = check_together(&v, &g, e);
	if (ret)
		return ret;
	if (!v.duration_ns && !v.command)
		v.duration_ns = at_once(&v) ? NS_PER_S / 100 : 10 * NS_PER_S;
	if (!v.nformats)
		v.formats[v.nformats++] = output_find("pprof");
	*o = v;
	return OPT_RUN;
}
