/* user/base/sys/caps.c - capget, the user namespace, and sentences about both. */
#include "base/sys/caps.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/cleanup.h"

/* Inode of the initial user namespace. Source: include/linux/proc_ns.h, PROC_USER_INIT_INO. */
#define INIT_USERNS_INO 0xEFFFFFFDu

/* Asked by the system call, because a library may hold the answer of an earlier moment. */
static uint64_t effective(void)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[_LINUX_CAPABILITY_U32S_3];

	memset(d, 0, sizeof(d));
	if (syscall(SYS_capget, &h, d))
		return UINT64_MAX;
	return d[0].effective | (uint64_t)d[1].effective << 32;
}

bool caps_have(int cap)
{
	uint64_t have = effective();

	if ((cap == CAP_BPF || cap == CAP_PERFMON) && have >> CAP_SYS_ADMIN & 1)
		return true;
	return have >> cap & 1;
}

bool caps_initial_userns(void)
{
	struct stat st;

	return stat("/proc/self/ns/user", &st) || st.st_ino == INIT_USERNS_INO;
}

static const char *name(int cap)
{
	switch (cap) {
	case CAP_BPF:
		return "CAP_BPF";
	case CAP_PERFMON:
		return "CAP_PERFMON";
	case CAP_SYS_PTRACE:
		return "CAP_SYS_PTRACE";
	case CAP_DAC_OVERRIDE:
		return "CAP_DAC_OVERRIDE";
	case CAP_DAC_READ_SEARCH:
		return "CAP_DAC_READ_SEARCH";
	case CAP_SYS_ADMIN:
		return "CAP_SYS_ADMIN";
	case CAP_SYSLOG:
		return "CAP_SYSLOG";
	case CAP_SYS_RESOURCE:
		return "CAP_SYS_RESOURCE";
	}
	BUG_ON("a capability without a name");
	return "";
}

/* "CAP_A, CAP_B and CAP_C", either of all that are wanted or of the missing ones. */
static size_t list(char *buf, size_t cap, const int *caps, size_t n, bool missing)
{
	size_t len = 0, said = 0, total = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < n; i++)
		total += !missing || !caps_have(caps[i]);
	for (size_t i = 0; i < n && len < cap; i++) {
		const char *sep = !said ? "" : said + 1 == total ? " and " : ", ";

		if (missing && caps_have(caps[i]))
			continue;
		len += (size_t)snprintf(buf + len, cap - len, "%s%s", sep, name(caps[i]));
		said++;
	}
	return said;
}

int caps_refused(struct err *e, const char *what, const int *caps, size_t n)
{
	char all[160], missing[160];

	list(all, sizeof(all), caps, n, false);
	if (list(missing, sizeof(missing), caps, n, true))
		return n == 1 ? err_set(e, -EPERM, "%s: run as root, or with %s", what, all) :
				err_set(e, -EPERM, "%s: run as root, or with %s (missing: %s)",
					what, all, missing);
	if (!caps_initial_userns())
		return err_set(e, -EPERM,
			       "%s: %s %s in this user namespace only: run outside of it", what,
			       all, n == 1 ? "counts" : "count");
	return err_set(e, -EPERM,
		       "%s, though %s %s there: a seccomp filter or a security module forbids it",
		       what, all, n == 1 ? "is" : "are");
}

int caps_paranoia(void)
{
	CLEANUP(fclosep) FILE *f = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	int level = 0;

	return f && fscanf(f, "%d", &level) == 1 ? level : 0;
}

int caps_refused_clock(struct err *e, const char *what, int paranoia)
{
	static const int perfmon[] = { CAP_PERFMON };

	if (paranoia < CAPS_PARANOIA_ADMIN || !caps_have(CAP_PERFMON) || caps_have(CAP_SYS_ADMIN))
		return caps_refused(e, what, perfmon, 1);
	return err_set(
		e, -EPERM,
		"%s: kernel.perf_event_paranoid is %d, where Debian's and Ubuntu's kernels want "
		"CAP_SYS_ADMIN: run as root, or with that, or set it to 2",
		what, paranoia);
}

const char *caps_denied(int cap, char buf[CAPS_DENIED])
{
	if (!caps_have(cap))
		snprintf(buf, CAPS_DENIED, "no %s", name(cap));
	else
		snprintf(buf, CAPS_DENIED, "%s %s", name(cap),
			 caps_initial_userns() ? "is there, but the kernel refuses" :
						 "counts in this user namespace only");
	return buf;
}
