/*
 * user/inspect/survey_run_priv.h - a survey under way: what its child and its parent say to each other.
 *
 * The child begins as a copy of the parent, and both add what it finds to their lists of files, so that these are the same. After
 * a look it waits for the next list of processes: a fork costs as much as looking at a process whose file is known.
 */
#ifndef INSPECT_SURVEY_RUN_PRIV_H
#define INSPECT_SURVEY_RUN_PRIV_H

#include <sys/socket.h>

#include "base/sys/process.h"
#include "inspect/survey_priv.h"
#include "target/handover.h"

enum {
	SURVEY_FDS_MAX = HANDOVER_FDS + 1, /* of one process: its own, and the copy of its file */
	SURVEY_ASK_MAX =
		4096, /* processes of a list that is sent (their number, and then they): it fits into a socket */
};

/* What a child sends for each process: this, with the descriptors, and then the bytes. */
struct survey_frame {
	uint64_t bytes;
	uint32_t fds, pad;
};

/* What is being sent, or has come. */
struct survey_parcel {
	uint8_t *data;
	size_t n, at; /* bytes; that were taken out */
	int fds[SURVEY_FDS_MAX];
	size_t nfds, fds_at;
};

struct survey_run {
	struct survey *s;
	bool on; /* a look is under way; else the child waits for the next one */
	VEC(pid_t) pids;
	size_t next; /* the process that the child looks at */
	int ep;	     /* readable when fd is */

	pid_t child; /* 0: there is none */
	int fd;
	struct still still; /* of the child; asked at polled_ns */
	uint64_t polled_ns;
	uint64_t began_ns; /* with this process */

	struct survey_frame head; /* of what comes now */
	size_t head_n;		  /* bytes of it */
	struct survey_parcel in;
	bool full; /* the child sent descriptors that we have no room for */
};

/*
 * What follows are @files times a survey_file and its build, @procs times a survey_proc, a link, its exe and the target,
 * and @closed times a survey_proc, a link and its exe.
 */
struct survey_news {
	size_t files, procs, closed;
	size_t seen, denied, left_out;
	uint64_t files_ns;
	char denied_why[SURVEY_WHY];
};

/* What a pointer of a survey_proc stands for. */
struct survey_link {
	size_t file; /* whose build it is */
	size_t exe;  /* bytes; 0: there is none */
	bool held; /* its target follows; if it has no executable's descriptor, the file's copy is that */
};

union survey_control {
	struct cmsghdr head;
	char room[CMSG_SPACE(sizeof(int) * SURVEY_FDS_MAX)];
};

/* The child: looks at the rest of @r's list, and then at others' that it is sent; its answers go to @out. */
_Noreturn void survey_child(struct survey_run *r, int out, pid_t parent);

#endif
