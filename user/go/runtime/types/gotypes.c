/* user/go/runtime/types/gotypes.c - tables come from a child, and are checked before anybody uses them. */
#include "go/runtime/types/gotypes.h"

#include <gelf.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/limits.h"
#include "go/image/elf/apart.h"
#include "go/runtime/types/gotypes_priv.h"

#define ANSWER_MAX (1ull << 30)
/* No Go type is larger: the linker refuses a variable of 2 GB, and make() asks for whole types. */
#define SIZE_MAX_TYPE (1ull << 40)

/* ---- making ---- */

uint32_t gotypes_add_text(struct gotypes_made *m, const char *s)
{
	size_t n = strnlen(s, LIMIT_NAME), at = m->text.n;

	for (size_t i = 0; i <= n; i++) {
		char *to = vec_add(&m->text, LIMIT_TYPE_TEXT);

		if (!to) {
			m->text.n = at;
			return 0;
		}
		*to = i < n ? s[i] : '\0';
	}
	return (uint32_t)at;
}

static void elf_endp(Elf **elf)
{
	if (*elf)
		elf_end(*elf);
}

static bool is_wanted(const struct gotypes_want *w, const GElf_Sym *sym)
{
	int type = GELF_ST_TYPE(sym->st_info);

	return sym->st_size && sym->st_shndx != SHN_UNDEF &&
	       (type == STT_OBJECT || type == STT_NOTYPE) &&
	       ((sym->st_value >= w->data && sym->st_value < w->edata) ||
		(sym->st_value >= w->bss && sym->st_value < w->ebss));
}

static bool is_function(const struct gotypes_want *w, const GElf_Sym *sym)
{
	return w->functions && sym->st_shndx != SHN_UNDEF && GELF_ST_TYPE(sym->st_info) == STT_FUNC;
}

/* Where the number of "main.func.003" begins, with its dot; NULL: it is no such name. */
static const char *closure_number(const char *name)
{
	static const char func[] = ".func";
	const char *dot = strrchr(name, '.');
	size_t before = dot ? (size_t)(dot - name) : 0, n = sizeof(func) - 1;

	return before > n && !memcmp(dot - n, func, n) && dot[1] &&
			       !dot[1 + strspn(dot + 1, "0123456789")] ?
		       dot :
		       NULL;
}

/*
 * As Go calls it. The linker marks symbols of functions that have two ways to be called:
 * "runtime.memmove.abi0". That of Go 1.4 has no middle dot in symbols: "main.func.003" is main.func·003.
 * Source: mangleABIName() in cmd/link/internal/ld/symtab.go, Go 1.17 to 1.27; putelfstr() in
 * cmd/ld/symtab.c, Go 1.4.
 */
static uint32_t add_function_name(struct gotypes_made *m, const char *name)
{
	static const char abi[] = ".abi0";
	const char *number = closure_number(name);
	char text[LIMIT_NAME];
	size_t n, cut = sizeof(abi) - 1;
	uint32_t at;

	if (number)
		snprintf(text, sizeof(text), "%.*s·%s", (int)(number - name), name, number + 1);
	at = gotypes_add_text(m, number ? text : name);
	n = strlen(m->text.at + at);
	if (n > cut && !strcmp(m->text.at + at + n - cut, abi))
		m->text.at[at + n - cut] = '\0';
	return at;
}

/* False: there is no room. */
static bool add_symbol(const GElf_Sym *sym, const char *name, const struct gotypes_want *w,
		       struct gotypes_made *m)
{
	struct gofuncname *f;
	struct govar *v;

	if (is_function(w, sym)) {
		f = vec_add(&m->funcs, LIMIT_TYPE_VARS);
		if (f)
			*f = (struct gofuncname){ sym->st_value, add_function_name(m, name) };
		return f;
	}
	v = vec_add(&m->vars, 2 * LIMIT_TYPE_VARS);
	if (v)
		*v = (struct govar){ sym->st_value, sym->st_size, gotypes_add_text(m, name),
				     GOTYPE_NONE };
	return v;
}

static int add_symbols(Elf *elf, Elf_Scn *scn, const GElf_Shdr *sh, const struct gotypes_want *w,
		       struct gotypes_made *m, struct err *e)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	size_t n = data && sh->sh_entsize ? data->d_size / sh->sh_entsize : 0;

	if (n > LIMIT_SYMBOLS)
		return err_set(e, -E2BIG, "%zu symbols", n);
	for (size_t i = 0; i < n; i++) {
		const char *name;
		GElf_Sym sym;

		if (!gelf_getsym(data, (int)i, &sym) ||
		    (!is_wanted(w, &sym) && !is_function(w, &sym)))
			continue;
		name = elf_strptr(elf, sh->sh_link, sym.st_name);
		if (name && !add_symbol(&sym, name, w, m))
			return err_set(e, -E2BIG, "more than %d variables or functions",
				       LIMIT_TYPE_VARS);
	}
	return 0;
}

int gotypes_from_symbols(int fd, const struct gotypes_want *want, struct gotypes_made *m,
			 struct err *e)
{
	Elf *elf CLEANUP(elf_endp) = NULL;
	Elf_Scn *scn = NULL;
	size_t seen = 0;
	int rc = 0;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!elf || elf_kind(elf) != ELF_K_ELF)
		return err_set(e, -EBADMSG, "no readable section table: %s", elf_errmsg(-1));
	while (!rc && (scn = elf_nextscn(elf, scn)) && seen++ < LIMIT_SECTIONS) {
		GElf_Shdr sh;

		if (gelf_getshdr(scn, &sh) && sh.sh_type == SHT_SYMTAB)
			rc = add_symbols(elf, scn, &sh, want, m, e);
	}
	return rc;
}

static int by_addr(const void *a, const void *b)
{
	const struct govar *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr > y->addr ? 1 : -1;
	return (x->type == GOTYPE_NONE) - (y->type == GOTYPE_NONE);
}

/* One variable at an address: that of the DWARF, if it knows one. */
static void sort_vars(struct gotypes_made *m)
{
	size_t to = 0;

	if (!m->vars.n)
		return;
	qsort(m->vars.at, m->vars.n, sizeof(*m->vars.at), by_addr);
	for (size_t i = 1; i < m->vars.n; i++)
		if (m->vars.at[i].addr != m->vars.at[to].addr)
			m->vars.at[++to] = m->vars.at[i];
	m->vars.n = to + 1;
}

static int by_pc(const void *a, const void *b)
{
	const struct goslot *x = a, *y = b;

	if (x->pc != y->pc)
		return x->pc > y->pc ? 1 : -1;
	if (x->name != y->name)
		return x->name > y->name ? 1 : -1;
	return (x->offset > y->offset) - (x->offset < y->offset);
}

static int by_entry(const void *a, const void *b)
{
	const struct goclosure *x = a, *y = b;

	return (x->entry > y->entry) - (x->entry < y->entry);
}

static int by_function(const void *a, const void *b)
{
	const struct gofuncname *x = a, *y = b;

	return (x->entry > y->entry) - (x->entry < y->entry);
}

static int make(int fd, const struct gotypes_want *want, struct gotypes_made *m, struct err *e)
{
	struct err why;
	int rc;

	gotypes_add_text(m, "");
	if (!m->text.n)
		return err_set(e, -ENOMEM, "no memory for types");
	rc = gotypes_from_dwarf(fd, want, m, e);
	if (rc && rc != -ENOENT)
		return rc;
	/* A file without symbols that can be read has its DWARF all the same. */
	gotypes_from_symbols(fd, want, m, &why);
	sort_vars(m);
	if (m->slots.n)
		qsort(m->slots.at, m->slots.n, sizeof(*m->slots.at), by_pc);
	if (m->closures.n)
		qsort(m->closures.at, m->closures.n, sizeof(*m->closures.at), by_entry);
	if (m->funcs.n)
		qsort(m->funcs.at, m->funcs.n, sizeof(*m->funcs.at), by_function);
	return 0;
}

static void made_fini(struct gotypes_made *m)
{
	vec_fini(&m->types);
	vec_fini(&m->fields);
	vec_fini(&m->vars);
	vec_fini(&m->slots);
	vec_fini(&m->closures);
	vec_fini(&m->funcs);
	vec_fini(&m->text);
}

/* ---- handing over ---- */

static int put(int out, const void *at, size_t n, struct err *e)
{
	const char *from = at;

	while (n) {
		ssize_t done = write(out, from, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return err_sys(e, "handing types over");
		from += done;
		n -= (size_t)done;
	}
	return 0;
}

static int put_all(int out, const struct gotypes_made *m, struct err *e)
{
	struct gotypes_head h = { m->dwarf,   m->types.n,    m->fields.n, m->vars.n,
				  m->slots.n, m->closures.n, m->funcs.n,  m->text.n };
	int rc = put(out, &h, sizeof(h), e);

	rc = rc ? rc : put(out, m->types.at, m->types.n * sizeof(*m->types.at), e);
	rc = rc ? rc : put(out, m->fields.at, m->fields.n * sizeof(*m->fields.at), e);
	rc = rc ? rc : put(out, m->vars.at, m->vars.n * sizeof(*m->vars.at), e);
	rc = rc ? rc : put(out, m->slots.at, m->slots.n * sizeof(*m->slots.at), e);
	rc = rc ? rc : put(out, m->closures.at, m->closures.n * sizeof(*m->closures.at), e);
	rc = rc ? rc : put(out, m->funcs.at, m->funcs.n * sizeof(*m->funcs.at), e);
	return rc ? rc : put(out, m->text.at, m->text.n, e);
}

struct job {
	int fd;
	const struct gotypes_want *want;
};

static int work(void *arg, int out, struct err *e)
{
	CLEANUP(made_fini) struct gotypes_made m = { 0 };
	const struct job *job = arg;
	int rc = make(job->fd, job->want, &m, e);

	return rc ? rc : put_all(out, &m, e);
}

/* ---- taking over ---- */

static bool is_type(const struct gotypes *t, uint32_t id)
{
	return id < t->ntypes || id == GOTYPE_NONE;
}

static bool types_right(const struct gotypes *t)
{
	for (size_t i = 0; i < t->ntypes; i++) {
		const struct gotype *g = &t->types[i];

		if (g->kind >= GOTYPE_KINDS || g->role >= GOTYPE_ROLES || g->name >= t->ntext ||
		    !is_type(t, g->elem) || !is_type(t, g->of) || g->first > t->nfields ||
		    g->nfields > t->nfields - g->first)
			return false;
		if (g->role && g->role != GOTYPE_CLOSURE && g->of == GOTYPE_NONE)
			return false;
	}
	for (size_t i = 0; i < t->nfields; i++)
		if (!is_type(t, t->fields[i].type) || t->fields[i].name >= t->ntext)
			return false;
	return true;
}

static bool vars_right(const struct gotypes *t, size_t npcs)
{
	for (size_t i = 0; i < t->nvars; i++)
		if (!is_type(t, t->vars[i].type) || t->vars[i].name >= t->ntext ||
		    (i && t->vars[i - 1].addr >= t->vars[i].addr))
			return false;
	for (size_t i = 0; i < t->nslots; i++)
		if (!is_type(t, t->slots[i].type) || t->slots[i].name >= t->ntext ||
		    t->slots[i].pc >= npcs || (i && t->slots[i - 1].pc > t->slots[i].pc))
			return false;
	for (size_t i = 0; i < t->nclosures; i++)
		if (t->closures[i].type >= t->ntypes)
			return false;
	for (size_t i = 0; i < t->nfuncs; i++)
		if (t->funcs[i].name >= t->ntext)
			return false;
	return true;
}

/* A type that claims more than there can be has no size, and is thus of no use. */
static void bound_sizes(struct gotype *types, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (types[i].size > SIZE_MAX_TYPE)
			types[i].size = 0;
}

static bool split(struct gotypes *t, size_t n)
{
	const struct gotypes_head *h = t->data;
	const size_t size[] = { sizeof(*t->types),
				sizeof(*t->fields),
				sizeof(*t->vars),
				sizeof(*t->slots),
				sizeof(*t->closures),
				sizeof(*t->funcs),
				1 };
	const uint64_t count[] = { h->ntypes,	 h->nfields, h->nvars, h->nslots,
				   h->nclosures, h->nfuncs,  h->ntext };
	void *at[ARRAY_LEN(size)];
	size_t off = sizeof(*h);

	for (size_t i = 0; i < ARRAY_LEN(size); i++) {
		at[i] = (char *)t->data + off;
		if (count[i] > (n - off) / size[i])
			return false;
		off += count[i] * size[i];
	}
	*t = (struct gotypes){ .dwarf = h->dwarf,
			       .types = at[0],
			       .fields = at[1],
			       .vars = at[2],
			       .slots = at[3],
			       .closures = at[4],
			       .funcs = at[5],
			       .text = at[6],
			       .ntypes = h->ntypes,
			       .nfields = h->nfields,
			       .nvars = h->nvars,
			       .nslots = h->nslots,
			       .nclosures = h->nclosures,
			       .nfuncs = h->nfuncs,
			       .ntext = h->ntext,
			       .data = t->data };
	bound_sizes(at[0], h->ntypes);
	return off == n && t->ntext && !t->text[t->ntext - 1];
}

static int take(int from, size_t npcs, uint64_t word, struct gotypes **out, struct err *e)
{
	CLEANUP(gotypes_freep) struct gotypes *t = calloc(1, sizeof(*t));
	struct stat st;
	size_t n, done = 0;

	if (fstat(from, &st))
		return err_sys(e, "taking types over");
	n = (size_t)st.st_size;
	if (n < sizeof(struct gotypes_head) || n > ANSWER_MAX)
		return err_set(e, -E2BIG, "the types take %zu bytes", n);
	if (!t || !(t->data = malloc(n)))
		return err_set(e, -ENOMEM, "no memory for %zu bytes of types", n);
	while (done < n) {
		ssize_t got = pread(from, (char *)t->data + done, n - done, (off_t)done);

		if (got <= 0)
			return err_sys(e, "taking types over");
		done += (size_t)got;
	}
	if (!split(t, n) || !types_right(t) || !vars_right(t, npcs))
		return err_set(e, -EBADMSG, "the types contradict each other");
	t->word = word;
	*out = TAKE(t);
	return 0;
}

static int read_by(int (*run)(struct job *job, int out, struct err *e), int fd,
		   const struct gotypes_want *want, struct gotypes **out, struct err *e)
{
	CLEANUP(closep) int answer = memfd_create("types", MFD_CLOEXEC);
	struct job job = { fd, want };
	int rc;

	if (answer < 0)
		return err_sys(e, "memory for types");
	rc = run(&job, answer, e);
	return rc ? rc : take(answer, want->npcs, want->word, out, e);
}

static int run_apart(struct job *job, int out, struct err *e)
{
	struct apart apart = { "reading the types", work, job, LIMIT_TYPES_MS,
			       (uint64_t)LIMIT_DWARF_IMAGE + LIMIT_DWARF_HEAP };

	return apart_run(&apart, out, e);
}

static int run_here(struct job *job, int out, struct err *e)
{
	return work(job, out, e);
}

int gotypes_read(int fd, const struct gotypes_want *want, struct gotypes **out, struct err *e)
{
	return read_by(run_apart, fd, want, out, e);
}

int gotypes_read_here(int fd, const struct gotypes_want *want, struct gotypes **out, struct err *e)
{
	return read_by(run_here, fd, want, out, e);
}

void gotypes_free(struct gotypes *t)
{
	if (t)
		free(t->data);
	free(t);
}

/* ---- asking ---- */

const struct govar *gotypes_var(const struct gotypes *t, uint64_t addr)
{
	size_t low = 0, high = t->nvars;

	/* The first that begins after it. */
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (t->vars[mid].addr <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low && addr - t->vars[low - 1].addr < t->vars[low - 1].size ? &t->vars[low - 1] :
									     NULL;
}

const char *gotypes_function(const struct gotypes *t, uint64_t entry)
{
	const struct gofuncname key = { .entry = entry };
	const struct gofuncname *f =
		t->nfuncs ? bsearch(&key, t->funcs, t->nfuncs, sizeof(key), by_function) : NULL;

	return f ? gotypes_text(t, f->name) : NULL;
}

const struct goclosure *gotypes_closure(const struct gotypes *t, uint64_t entry)
{
	const struct goclosure key = { .entry = entry };

	return t->nclosures ? bsearch(&key, t->closures, t->nclosures, sizeof(key), by_entry) :
			      NULL;
}
