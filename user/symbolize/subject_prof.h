/* user/symbolize/subject_prof.h - what every profile of one target has. */
#ifndef SYMBOLIZE_SUBJECT_PROF_H
#define SYMBOLIZE_SUBJECT_PROF_H

#include "profile/profile.h"
#include "subject/subject.h"

/*
 * A profile that contains what every profile of this target has: time, comments on tool, target
 * and window, and the mappings in Go's order (the main executable first).
 */
int subject_prof(struct subject *s, const char *source, struct prof **out, struct err *e);

/* The id in @p of the mapping that holds the live address @pc; 0 when none does. */
int subject_mapping(struct subject *s, struct prof *p, uint64_t pc, struct err *e);

#endif
