/* user/output/format.h - the formats, one file each, and what several of them need. */
#ifndef OUTPUT_FORMAT_H
#define OUTPUT_FORMAT_H

#include "output/output.h"

/* "loss: N text"; false when nothing of this kind was lost. */
bool output_loss(struct prof *p, enum loss_kind k, char *buf, size_t cap);

/* The sample type to show where only one can be shown: the default one, else the last. */
size_t output_main_type(const struct prof *p);

/* After a write: an error of the stream as -errno, 0 when there is none. */
int output_check(FILE *f, struct err *e);

/*
 * Writes a name or comment of foreign origin, with what no terminal should have shown as '_': the text
 * may go to a terminal, and a line break would make two records of one. @also: one more character
 * to replace, 0 for none.
 */
void output_clean(const char *s, char also, FILE *f);

/*
 * Writes @v in the largest unit that leaves it at least 1 ("1.50s", "12"), and its share ("
 * 7.69%").
 */
void output_amount(double v, const char *unit, char *buf, size_t cap);
void output_percent(double v, double total, char *buf, size_t cap);

/*
 * String id of the reason for which a sample's goroutine waited (its label "reason"); 0 when it
 * has none.
 */
uint32_t output_reason(const struct prof *p, const struct prof_sample_view *s);

/* String id of the type that a heap sample allocated (its label "type"); 0 when it has none. */
uint32_t output_type(const struct prof *p, const struct prof_sample_view *s);

/*
 * What values of this sample type are called. Wait profiles have the types of Go's block profiles, but few of
 * their waits are contentions.
 */
const char *output_noun(const struct prof *p, size_t type);

/* Writes the @max largest stacks, by output_main_type(). */
int stacks_write(const struct prof *p, size_t max, FILE *f, struct err *e);

int pprof_write(struct prof *p, FILE *f, struct err *e);
int folded_write(struct prof *p, FILE *f, struct err *e);
int text_write(struct prof *p, FILE *f, struct err *e);
int flame_write(struct prof *p, FILE *f, struct err *e);

#endif
