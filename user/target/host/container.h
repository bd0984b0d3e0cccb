/*
 * user/target/host/container.h - which container or service a process belongs to, by its cgroup.
 *
 * It is recognized by the names that container runtimes give to cgroups; the runtimes are not
 * asked. Source: docker, containerd, CRI-O and podman with the cgroupfs and the systemd driver;
 * systemd's CGROUP_DELEGATION and machinectl; lxc.container.conf.
 */
#ifndef TARGET_CONTAINER_H
#define TARGET_CONTAINER_H

#include <stddef.h>

enum container_kind {
	CONTAINER_UNKNOWN, /* the text could not be read, or is none that we know */
	CONTAINER_NONE,	   /* no container and no systemd unit */
	CONTAINER_UNIT,	   /* a systemd unit: id is its name, "nginx.service" */
	CONTAINER_IS,	   /* a container: runtime and id */
};

struct container {
	enum container_kind kind;
	char runtime[16]; /* "docker", "containerd", "cri-o", "podman", "kubernetes", "lxc", ... */
	char id[128];	  /* 12 hex digits, or a name; foreign bytes, to be cleaned when shown */
};

/*
 * The path in the text of /proc/PID/cgroup: of the unified hierarchy, else of the first one there is;
 * "" when there is none. Foreign bytes.
 */
void container_path(const char *text, char *buf, size_t cap);

/* Makes of that text the paths of all hierarchies, each with a newline behind it. Foreign bytes. */
void container_paths(char *text);

/*
 * Parses the text of /proc/PID/cgroup. It is hostile: users name cgroups that are delegated to
 * them. Never fails; what it does not recognize is CONTAINER_UNKNOWN or CONTAINER_NONE.
 */
void container_parse(const char *text, size_t len, struct container *out);

#endif
