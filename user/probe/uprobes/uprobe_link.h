/* user/probe/uprobes/uprobe_link.h - a multi link: many uprobes of one file in one system call. */
#ifndef PROBE_UPROBES_UPROBE_LINK_H
#define PROBE_UPROBES_UPROBE_LINK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Puts @n probes into the file @path, at these offsets and with these cookies (NULL: 0), for the process
 * @pid. Returns a descriptor, which takes them out when it is closed, or -1 with errno.
 */
int uprobe_link_create(int prog_fd, pid_t pid, const char *path, const uint64_t *offsets,
		       const uint64_t *cookies, size_t n);
/* A program that does nothing, for probes of such a link: a descriptor, or a negative number and errno. */
int uprobe_empty_program(void);

#endif
