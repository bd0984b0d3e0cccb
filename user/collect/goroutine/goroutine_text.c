/*
 * user/collect/goroutine/goroutine_text.c - writes a goroutine's block of text, in the runtime's own words.
 */
#include "collect/goroutine/goroutine_text.h"

#include <stdarg.h>

#include "go/runtime/waitreason.h"
#include "profile/profile.h"

enum {
	/* calls that are printed (1.21+): so many innermost and so many outermost ones */
	INNER = 50,
	OUTER = 50,
	FRAMES = 100, /* physical frames that are walked (before 1.21) */
	LABELS_SHOWN = 64,
	HEAD_MAX = 16384,
};

static const uint64_t NS_PER_S = 1000000000, NS_PER_MINUTE = 60000000000;

/* ---- the first line ---- */

struct head {
	char s[HEAD_MAX];
	size_t n;
};

__attribute__((format(printf, 2, 3))) static void put(struct head *h, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(h->s + h->n, sizeof(h->s) - h->n, fmt, ap);
	va_end(ap);
	if (n > 0)
		h->n += (size_t)n < sizeof(h->s) - h->n ? (size_t)n : sizeof(h->s) - h->n - 1;
}

static const char *state_of(const struct rtgor *g, int minor)
{
	static const char *const states[] = {
		[GSTATUS_IDLE] = "idle",	   [GSTATUS_RUNNABLE] = "runnable",
		[GSTATUS_RUNNING] = "running",	   [GSTATUS_SYSCALL] = "syscall",
		[GSTATUS_WAITING] = "waiting",	   [GSTATUS_DEAD] = "dead",
		[GSTATUS_COPYSTACK] = "copystack", [GSTATUS_PREEMPTED] = "preempted",
		[GSTATUS_LEAKED] = "leaked",
	};
	const char *reason = NULL;

	if (g->status == GSTATUS_WAITING || g->status == GSTATUS_LEAKED)
		reason = waitreason_spelt(minor, g->waitreason);
	if (reason && *reason)
		return reason;
	return (size_t)g->status < ARRAY_LEN(states) && states[g->status] ? states[g->status] :
									    "???";
}

static bool plain(const char *s)
{
	for (; *s; s++) {
		char c = *s;

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      c == '.' || c == '/' || c == '_'))
			return false;
	}
	return true;
}

/* Quotes as the runtime does, except that letters beyond ASCII are kept as they are. */
static void put_quoted(struct head *h, const char *s)
{
	if (plain(s)) {
		put(h, "%s", s);
		return;
	}
	put(h, "\"");
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '\n' || c == '\r' || c == '\t')
			put(h, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
		else if (c == '\\' || c == '"')
			put(h, "\\%c", c);
		else if (c < ' ')
			put(h, "\\x%02x", c);
		else if (c == 0x7f)
			put(h, "\\u007f");
		else
			put(h, "%c", c);
	}
	put(h, "\"");
}

static int by_key(const void *a, const void *b, void *text)
{
	const struct rtlabel *x = a, *y = b;

	return strcmp((const char *)text + x->key, (const char *)text + y->key);
}

/* They are sorted, as they are in Go from 1.24 on. */
static void put_labels(struct head *h, const struct rtgor *g)
{
	struct rtlabel at[LABELS_SHOWN];
	size_t n = g->labels.n < LABELS_SHOWN ? g->labels.n : LABELS_SHOWN;
	char *text = g->text->text.at;

	if (!n)
		return;
	memcpy(at, g->text->at.at + g->labels.first, n * sizeof(*at));
	qsort_r(at, n, sizeof(*at), by_key, text);
	put(h, " {");
	for (size_t i = 0; i < n; i++) {
		put(h, "%s", i ? ", " : "");
		put_quoted(h, text + at[i].key);
		put(h, ": ");
		put_quoted(h, text + at[i].value);
	}
	put(h, "%s}", n < g->labels.n ? ", ..." : "");
}

static void put_waiting(struct head *h, const struct rtgor *g, uint64_t now_ns, uint64_t seen_ns)
{
	if (g->status != GSTATUS_WAITING && g->status != GSTATUS_SYSCALL)
		return;
	if (g->waitsince && now_ns > g->waitsince && now_ns - g->waitsince >= NS_PER_MINUTE)
		put(h, ", %llu minutes",
		    (unsigned long long)((now_ns - g->waitsince) / NS_PER_MINUTE));
	else if (!g->waitsince && seen_ns >= NS_PER_S)
		put(h, ", at least %llu seconds", (unsigned long long)(seen_ns / NS_PER_S));
}

static int add_line(struct gstacks *k, const char *line, struct err *e)
{
	uint32_t id;
	int ret = prof_text_line(k->p, line, &id, e);

	return ret ? ret : prof_text_add(k->p, id, e);
}

static int add_head(struct gstacks *k, const struct rtgor *g, uint64_t now_ns, uint64_t seen_ns,
		    struct err *e)
{
	struct head h = { .n = 0 };

	put(&h, "goroutine %llu [%s%s%s", (unsigned long long)g->goid, state_of(g, k->minor),
	    g->status == GSTATUS_LEAKED ? " (leaked)" : "", g->scan ? " (scan)" : "");
	put_waiting(&h, g, now_ns, seen_ns);
	put(&h, "%s]", g->locked ? ", locked to thread" : "");
	put_labels(&h, g);
	put(&h, ":");
	return add_line(k, h.s, e);
}

/* ---- calls ---- */

/*
 * Is this an exported function of the runtime, or an exported method (1.23+: of an exported
 * type)?
 */
static bool exported(const char *name, int minor)
{
	const char *rest = name + strlen("runtime."), *dot = strrchr(rest, '.'), *type = rest;

	if (minor >= 0 && minor < 23)
		return *rest >= 'A' && *rest <= 'Z';
	if (!dot)
		return *rest >= 'A' && *rest <= 'Z';
	if (dot - type >= 3 && !strncmp(type, "(*", 2) && dot[-1] == ')')
		type += 2;
	return dot[1] >= 'A' && dot[1] <= 'Z' && *type >= 'A' && *type <= 'Z';
}

/*
 * Is this call shown? The runtime's internal calls are not. @first: no call further in was shown.
 */
static bool shown(const struct gstacks *k, const struct gcall *c, bool first)
{
	if (c->elided)
		return false;
	if ((k->minor < 0 || k->minor >= 25) &&
	    (!strcmp(c->func, "runtime.runFinalizers") || !strcmp(c->func, "runtime.runCleanups")))
		return true;
	if (!strcmp(c->func, "runtime.gopanic") && !first)
		return true;
	return strchr(c->func, '.') &&
	       (strncmp(c->func, "runtime.", 8) || exported(c->func, k->minor));
}

/*
 * The name between two lists of type arguments, of a generic method of a generic type: from behind *end to *begin. @open, @close:
 * the first bracket and the last one. False: the brackets do not match. *end is NULL where there is one list.
 * Source: funcNamePiecesForPrint in runtime/traceback.go, Go 1.27.
 */
static bool two_lists(const char *open, const char *close, const char **end, const char **begin)
{
	int depth = 1;

	*end = *begin = NULL;
	for (const char *c = open + 1; c < close && depth >= 0 && !*begin; c++) {
		if (*c == '[' && ++depth == 1)
			*begin = c;
		if (*c == ']' && !--depth)
			*end = c;
	}
	return depth == 1 && !*end == !*begin;
}

/* Type arguments are left out: "main.f[...]". */
static void put_func(struct head *h, const char *name, int minor)
{
	const char *open = strchr(name, '['), *close = strrchr(name, ']'), *end = NULL, *begin;

	if (!strcmp(name, "runtime.gopanic"))
		put(h, "panic");
	else if (!open || !close || open > close ||
		 ((minor < 0 || minor >= 27) && !two_lists(open, close, &end, &begin)))
		put(h, "%s", name);
	else if (end)
		put(h, "%.*s[...]%.*s[...]%s", (int)(open - name), name, (int)(begin - end - 1),
		    end + 1, close + 1);
	else
		put(h, "%.*s[...]%s", (int)(open - name), name, close + 1);
}

static int make_lines(struct gstacks *k, const struct gframe *f, struct gcall *c, struct err *e)
{
	struct head h = { .n = 0 };
	int ret;

	put_func(&h, c->func, k->minor);
	put(&h, "(...)");
	ret = prof_text_line(k->p, h.s, &c->text[0], e);
	h.n = 0;
	put(&h, "\t%s:%u", c->file, c->line);
	if (!c->inlined && f->pc > f->entry)
		put(&h, " +0x%llx", (unsigned long long)(f->pc - f->entry));
	if (!ret)
		ret = prof_text_line(k->p, h.s, &c->text[1], e);
	if (ret)
		return ret;
	c->text[0]++;
	c->text[1]++;
	return 0;
}

static int add_call(struct gstacks *k, const struct gframe *f, struct gcall *c, struct err *e)
{
	int ret = c->text[0] ? 0 : make_lines(k, f, c, e);

	if (!ret)
		ret = prof_text_add(k->p, c->text[0] - 1, e);
	return ret ? ret : prof_text_add(k->p, c->text[1] - 1, e);
}

/*
 * Adds the shown calls with numbers in [from, to); *total is how many there are in all of the
 * stack. @all: also those that are not meant for users.
 */
static int add_calls(struct gstacks *k, bool all, size_t from, size_t to, size_t *total,
		     struct err *e)
{
	size_t n = 0, frames = k->stack.n;
	int ret = 0;

	if (k->minor >= 0 && k->minor < 21 && frames > FRAMES)
		frames = FRAMES;
	for (size_t i = 0; !ret && i < frames; i++) {
		const struct gframe *f = &k->frames.at[k->stack.at[i]];

		for (uint32_t c = f->first; !ret && c < f->first + f->n; c++) {
			struct gcall *call = &k->calls.at[c];

			if (!all && !shown(k, call, n == 0))
				continue;
			if (n >= from && n < to)
				ret = add_call(k, f, call, e);
			n++;
		}
	}
	*total = n;
	return ret;
}

static int add_elided(struct gstacks *k, size_t n, struct err *e)
{
	char line[64];

	snprintf(line, sizeof(line),
		 n ? "...%zu frames elided..." : "...additional frames elided...", n);
	return add_line(k, line, e);
}

static int add_stack(struct gstacks *k, enum unwind_end end, struct err *e)
{
	bool old = k->minor >= 0 && k->minor < 21;
	size_t total, ignored;
	int ret = add_calls(k, false, 0, 0, &total, e);
	bool all = total == 0;

	if (!ret && all)
		ret = add_calls(k, true, 0, 0, &total, e);
	if (!ret)
		ret = add_calls(k, all, 0, old ? SIZE_MAX : INNER, &ignored, e);
	if (!ret && !old && total > INNER + OUTER)
		ret = add_elided(k, total - INNER - OUTER, e);
	if (!ret && !old && total > INNER)
		ret = add_calls(k, all, total > INNER + OUTER ? total - OUTER : INNER, SIZE_MAX,
				&ignored, e);
	if (!ret && (end == UNWIND_CUT || (old && total == FRAMES)))
		ret = add_elided(k, 0, e);
	if (!ret && end == UNWIND_BROKEN)
		ret = add_line(k, "\tthe stack could not be followed further", e);
	return ret;
}

/* ---- its creator ---- */

static int add_creator(struct gstacks *k, const struct rtgor *g, struct err *e)
{
	struct head h = { .n = 0 };
	const struct image *img;
	struct gofunc fn;
	struct gcall c = { .elided = false };
	uint64_t entry;
	int ret;

	if (g->goid == 1 || !g->gopc || subject_func(k->s, g->gopc, &fn, &img))
		return 0;
	entry = fn.entry + img->bias;
	c.func = gobin_func_name(img->bin, &fn);
	if (!c.func || !shown(k, &c, false) ||
	    subject_frames(k->s, g->gopc > entry ? g->gopc - 1 : g->gopc, k->buf,
			   LIMIT_INLINE_DEPTH, NULL) <= 0)
		return 0;
	put(&h, "created by ");
	put_func(&h, c.func, k->minor);
	if (g->parent)
		put(&h, " in goroutine %llu", (unsigned long long)g->parent);
	ret = add_line(k, h.s, e);
	h.n = 0;
	put(&h, "\t%s:%u", k->buf[0].file, k->buf[0].line);
	if (g->gopc > entry)
		put(&h, " +0x%llx", (unsigned long long)(g->gopc - entry));
	return ret ? ret : add_line(k, h.s, e);
}

int goroutine_text(struct gstacks *k, const struct rtgor *g, enum unwind_end end, uint64_t now_ns,
		   uint64_t seen_ns, struct err *e)
{
	static const char *const none[] = {
		[RTGOR_RUNNING] = "\tgoroutine running on other thread; stack unavailable",
		[RTGOR_TORN] = "\tgoroutine moved whenever it was read; stack unavailable",
		[RTGOR_BAD] = "\tgoroutine's stack cannot be; stack unavailable",
	};
	int ret = prof_ntext(k->p) ? add_line(k, "", e) : 0;

	if (!ret)
		ret = add_head(k, g, now_ns, seen_ns, e);
	if (!ret && g->what == RTGOR_SAVED)
		ret = add_stack(k, end, e);
	else if (!ret)
		ret = add_line(k, none[g->what], e);
	return ret ? ret : add_creator(k, g, e);
}
