/* user/inspect/survey_priv.h - the parts of a survey: one file, one process, all of them. */
#ifndef INSPECT_SURVEY_PRIV_H
#define INSPECT_SURVEY_PRIV_H

#include "inspect/survey.h"
#include "target/target.h"

/* What tells files apart; a running file keeps its inode. */
struct survey_key {
	uint64_t dev, ino, size;
	int64_t mtime_ns;
};

struct survey_file {
	struct survey_key key;
	struct survey_build *build; /* owned; NULL: it is not Go's */
	bool dynamic;		    /* may load libraries */
	uint64_t used;		    /* by survey.uses; in the parent of those that look */
	/* where its file system may not answer: a copy, for survey.hold; -1: none; owned */
	int copy;
	char no_copy[SURVEY_WHY]; /* it should have one: why it has not */
};

/* Errors of our own that are the same for all processes; "": it works. */
struct survey_rights {
	struct err cpu, probe;
};

/* Takes @build and @copy over. NULL when there is no room. */
struct survey_file *survey_remember(struct survey *s, const struct survey_key *k,
				    struct survey_build *build, bool dynamic, int copy);

/* The file with this key, or NULL. */
const struct survey_file *survey_known(const struct survey *s, const struct survey_key *k);

/*
 * For between two looks. The first forgets files but for the @most that were used last; nothing in s->at may have one. The
 * second gives copies of files back, but for the last so many of so many bytes: a process that needs one makes it anew. Were
 * there any to give back?
 */
void survey_age_files(struct survey *s, size_t most);
bool survey_age_copies(struct survey *s, size_t most, uint64_t bytes);

/* Looks at one process of @proc, the directory /proc (borrowed), and adds to *s what it finds. */
void survey_look(struct survey *s, const struct survey_rights *rights, int proc, pid_t pid);

/* Adds @pid to s->closed. Nothing of it is read that could wait for it. */
void survey_add_unanswered(struct survey *s, pid_t pid);

/* Keeps a message, cut to the length that is stored. */
static inline void keep_why(char why[SURVEY_WHY], const char *msg)
{
	size_t n = strnlen(msg, SURVEY_WHY - 1);

	memmove(why, msg, n);
	why[n] = 0;
}

/*
 * Finds out everything about the file behind @fd; @t (may be NULL) runs it at @bias. -ENOENT: it
 * is not Go's. Other problems are described in b->broken.
 */
int survey_understand(int fd, const char *name, struct target *t, uint64_t bias, unsigned wants,
		      struct survey_build *b);

/* Reads a rate of the process @t, which runs @b at @bias. */
void survey_read_rate(struct target *t, uint64_t bias, const struct survey_build *b,
		      enum survey_rate r, struct survey_value *out);

#endif
