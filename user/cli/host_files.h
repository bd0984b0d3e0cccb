/*
 * user/cli/host_files.h - the files of a run of many processes: what they are called, one of each format for each profile, and a
 * page of all processes.
 */
#ifndef CLI_HOST_FILES_H
#define CLI_HOST_FILES_H

#include "base/map.h"
#include "cli/host_run.h"
#include "engine/engine.h"

/* A zeroed one with @o is before its first file. */
struct host_files {
	const struct host_opts *o;
	struct map lives; /* pid -> programs of it that have files */
	size_t n;	  /* files */
	bool broken;	  /* one could not be written, which was told */
	bool unread;	  /* stdout takes no more paths, which was told */
};

/* One more program of this pid has files: how many have. */
uint64_t host_files_life(struct host_files *f, pid_t pid);

/*
 * Writes @p, of the kind @name and of @life (host_files_life()). Later programs of a pid have other names:
 * NAME.PID.2.cpu.pb.gz.
 */
void host_files_write(struct host_files *f, const struct engine_identity *id, uint64_t life,
		      const char *name, struct prof *p);

/* Is a page of all processes wanted? */
bool host_files_paged(const struct host_files *f);
/* Puts @p on *@page, under a root of its own; NULL there: on a new one, which the caller frees. */
void host_files_add(struct host_files *f, struct prof **page, const struct engine_identity *id,
		    const char *name, struct prof *p);
/* Writes it, as host.NAME.html; @probed: as host.NAME.probed.html. NULL, and one without samples: does nothing. */
void host_files_page(struct host_files *f, struct prof *page, const char *name, bool probed);

void host_files_fini(struct host_files *f);

#endif
