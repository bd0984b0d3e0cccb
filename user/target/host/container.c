/* user/target/host/container.c - the innermost cgroup whose name tells something. */
#include "target/host/container.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

enum { ID_DIGITS = 64, ID_SHOWN = 12 };

/* Bytes of somebody else's: not NUL-terminated. */
struct piece {
	const char *s;
	size_t n;
};

static bool ends(struct piece p, const char *with)
{
	size_t n = strlen(with);

	return p.n > n && !memcmp(p.s + p.n - n, with, n);
}

static bool starts(struct piece p, const char *with)
{
	size_t n = strlen(with);

	return p.n >= n && !memcmp(p.s, with, n);
}

static struct piece without_end(struct piece p, const char *end)
{
	if (ends(p, end))
		p.n -= strlen(end);
	return p;
}

static void set(struct container *out, enum container_kind kind, const char *runtime,
		struct piece id)
{
	out->kind = kind;
	snprintf(out->runtime, sizeof(out->runtime), "%s", runtime);
	if (id.n >= sizeof(out->id))
		id.n = sizeof(out->id) - 1;
	memcpy(out->id, id.s, id.n);
	out->id[id.n] = 0;
}

/* Does it end in a full container id, with nothing or a separator in front of it? */
static bool has_id(struct piece p)
{
	if (p.n < ID_DIGITS)
		return false;
	for (size_t i = p.n - ID_DIGITS; i < p.n; i++)
		if (!isdigit((unsigned char)p.s[i]) && (p.s[i] < 'a' || p.s[i] > 'f'))
			return false;
	return p.n == ID_DIGITS || p.s[p.n - ID_DIGITS - 1] == '-' ||
	       p.s[p.n - ID_DIGITS - 1] == ':';
}

/* What stands in front of an id. */
static const char *runtime_of(struct piece name, struct piece path)
{
	static const struct {
		const char *with, *runtime;
	} known[] = {
		{ "docker", "docker" },	  { "cri-containerd", "containerd" },
		{ "crio", "cri-o" },	  { "libpod", "podman" },
		{ "nerdctl", "nerdctl" }, { "containerd", "containerd" },
	};

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (memmem(name.s, name.n, known[i].with, strlen(known[i].with)))
			return known[i].runtime;
	if (memmem(path.s, path.n, "/kubepods", 9))
		return "kubernetes";
	/* A bare id: the directory above it says whose. */
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (memmem(path.s, path.n, known[i].with, strlen(known[i].with)))
			return known[i].runtime;
	return "unknown";
}

/* One directory of the path, and all that leads to it. */
static bool try_container(struct piece dir, struct piece path, struct container *out)
{
	struct piece name = without_end(dir, ".scope");

	/* podman's and CRI-O's own monitor of a container is not in it. */
	if (starts(dir, "libpod-conmon-") || starts(dir, "crio-conmon-"))
		return false;
	if (has_id(name)) {
		struct piece front = { name.s, name.n - ID_DIGITS };
		struct piece id = { name.s + front.n, ID_SHOWN };

		set(out, CONTAINER_IS, runtime_of(front, path), id);
		return true;
	}
	if (starts(dir, "lxc.payload.") && dir.n > 12) {
		set(out, CONTAINER_IS, "lxc", (struct piece){ dir.s + 12, dir.n - 12 });
		return true;
	}
	if (path.n >= dir.n + 5 && !memcmp(dir.s - 5, "/lxc/", 5) && dir.n) {
		set(out, CONTAINER_IS, "lxc", dir);
		return true;
	}
	if (starts(dir, "machine-") && ends(dir, ".scope") && name.n > 8) {
		set(out, CONTAINER_IS, "nspawn", (struct piece){ name.s + 8, name.n - 8 });
		return true;
	}
	return false;
}

/* From the innermost directory outwards; @unit: take a systemd unit instead of a container. */
static bool search(struct piece path, bool unit, struct container *out)
{
	while (path.n) {
		const char *slash = memrchr(path.s, '/', path.n);
		struct piece dir = { slash ? slash + 1 : path.s, 0 };

		dir.n = path.n - (size_t)(dir.s - path.s);
		if (unit && (ends(dir, ".service") || ends(dir, ".scope"))) {
			set(out, CONTAINER_UNIT, "systemd", dir);
			return true;
		}
		if (!unit && try_container(dir, path, out))
			return true;
		if (!slash)
			return false;
		path.n = (size_t)(slash - path.s);
	}
	return false;
}

/* The path of one line "ID:CONTROLLERS:PATH"; the first two hold no colon but "name=x". */
static bool path_of(struct piece line, struct piece *path)
{
	const char *a = memchr(line.s, ':', line.n), *b;

	if (!a)
		return false;
	b = memchr(a + 1, ':', line.n - (size_t)(a + 1 - line.s));
	if (!b || b + 1 == line.s + line.n || b[1] != '/')
		return false;
	*path = (struct piece){ b + 1, line.n - (size_t)(b + 1 - line.s) };
	return true;
}

static bool pass(const char *text, size_t len, bool unit, struct container *out, bool *any)
{
	for (const char *p = text, *end = text + len; p < end;) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		struct piece line = { p, (size_t)((nl ? nl : end) - p) }, path;

		p += line.n + 1;
		if (!path_of(line, &path))
			continue;
		*any = true;
		if (search(path, unit, out))
			return true;
	}
	return false;
}

void container_path(const char *text, char *buf, size_t cap)
{
	const char *at = strstr(text, "0::"), *path;

	if (!at || (at != text && at[-1] != '\n'))
		at = text;
	path = strchr(at, '/');
	snprintf(buf, cap, "%.*s", path ? (int)strcspn(path, "\n") : 0, path ? path : "");
}

void container_paths(char *text)
{
	char *to = text;

	for (char *p = text, *end = text + strlen(text); p < end;) {
		struct piece line = { p, strcspn(p, "\n") }, path;

		p += line.n + (p[line.n] != 0);
		if (!path_of(line, &path))
			continue;
		/* At least two bytes stand in front of it, so there is room for a newline behind it. */
		memmove(to, path.s, path.n);
		to += path.n;
		*to++ = '\n';
	}
	*to = 0;
}

void container_parse(const char *text, size_t len, struct container *out)
{
	bool any = false;

	*out = (struct container){ .kind = CONTAINER_UNKNOWN };
	if (!pass(text, len, false, out, &any) && !pass(text, len, true, out, &any) && any)
		out->kind = CONTAINER_NONE;
}
