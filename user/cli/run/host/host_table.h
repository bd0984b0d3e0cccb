/* user/cli/run/host/host_table.h - what a run of many processes says of each before it begins. */
#ifndef CLI_RUN_HOST_HOST_TABLE_H
#define CLI_RUN_HOST_HOST_TABLE_H

#include "cli/run/host/host_run.h"
#include "inspect/survey.h"

/* What a survey must find out for this table (enum survey_wants). */
unsigned table_wants(const struct host_opts *o);
/* Can it have any of the kinds, as far as a look from outside tells? */
bool table_works(const struct host_opts *o, const struct survey_proc *p);
/* If not: why; borrowed from @p. */
const char *table_why(const struct host_opts *o, const struct survey_proc *p);
/* How many executables of those that are meant would be probed for any kind. */
size_t table_probed_files(const struct host_opts *o, const struct survey *s);
/* How wide the column WHAT is: the longest that it says, but for reasons. */
int table_width(const struct host_opts *o);
void table_row(const struct host_opts *o, const struct survey_proc *p, FILE *f);

#endif
