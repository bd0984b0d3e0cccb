/*
 * user/cli/run/run_files.h - the files of a run: what they are called, one of each format for each profile, and a page of all
 * processes.
 */
#ifndef CLI_RUN_RUN_FILES_H
#define CLI_RUN_RUN_FILES_H

#include <stdio.h>

#include "base/map.h"
#include "engine/engine.h"
#include "output/output.h"

/* Where profiles go. */
struct run_files_to {
	const char *dir;
	struct output_access *access; /* of the files; NULL: only for who runs this */
	const struct output_format *const *formats;
	size_t nformats;
	FILE *paths; /* gets the path of each finished file, alone on a line */
};

/* A zeroed one with @to is before its first file. */
struct run_files {
	const struct run_files_to *to;
	struct map lives; /* pid -> programs of it that have files */
	size_t n;	  /* files */
	bool broken;	  /* one could not be written, which was told */
	bool unread;	  /* paths can be told no more, which was told */
};

/* One more program of this pid has files: how many have. */
uint64_t run_files_life(struct run_files *f, pid_t pid);

/*
 * Writes @p, of the kind @name and of @life (run_files_life()). Later programs of a pid have other names:
 * NAME.PID.2.cpu.pb.gz.
 */
void run_files_write(struct run_files *f, const struct engine_identity *id, uint64_t life,
		     const char *name, struct prof *p);

/* Is a page of all processes wanted? */
bool run_files_paged(const struct run_files *f);
/* Puts @p on *@page, under a root of its own; NULL there: on a new one, which the caller frees. */
void run_files_add(struct run_files *f, struct prof **page, const struct engine_identity *id,
		   const char *name, struct prof *p);
/* Writes it, as host.NAME.html; @probed: as host.NAME.probed.html. NULL, and one without samples: does nothing. */
void run_files_page(struct run_files *f, struct prof *page, const char *name, bool probed);

void run_files_fini(struct run_files *f);

#endif
