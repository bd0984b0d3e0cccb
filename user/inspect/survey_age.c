/* user/inspect/survey_age.c - a survey forgets files that were not met for long: a run may last for days. */
#include "base/hash.h"
#include "inspect/survey_priv.h"

static int later_first(const void *a, const void *b)
{
	const struct survey_file *x = a, *y = b;

	return x->used < y->used ? 1 : x->used > y->used ? -1 : 0;
}

static void drop(struct survey_file *f)
{
	free(f->build);
	closep(&f->copy);
}

/* Where there is no memory for a key, the file is looked at again when it is met. */
void survey_age_files(struct survey *s, size_t most)
{
	if (s->files.n <= most)
		return;
	qsort(s->files.at, s->files.n, sizeof(*s->files.at), later_first);
	while (s->files.n > most)
		drop(&s->files.at[--s->files.n]);
	map_fini(&s->by_key);
	for (size_t i = 0; i < s->files.n; i++)
		map_put(&s->by_key, hash_bytes(&s->files.at[i].key, sizeof(s->files.at[i].key)), i);
}

static struct survey_file *oldest_copy(struct survey *s, size_t *n, uint64_t *bytes)
{
	struct survey_file *oldest = NULL;

	*n = *bytes = 0;
	for (size_t i = 0; i < s->files.n; i++) {
		struct survey_file *f = &s->files.at[i];

		if (f->copy < 0)
			continue;
		++*n;
		*bytes += f->key.size;
		if (!oldest || f->used < oldest->used)
			oldest = f;
	}
	return oldest;
}

bool survey_age_copies(struct survey *s, size_t most, uint64_t bytes)
{
	struct survey_file *oldest;
	bool any = false;
	uint64_t have;
	size_t n;

	while ((oldest = oldest_copy(s, &n, &have)) && (n > most || have > bytes)) {
		close(oldest->copy);
		oldest->copy = -1;
		any = true;
	}
	return any;
}
