/* tests/unit/test_container.c - real cgroup texts of container runtimes, and lying ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/cleanup.h"
#include "target/host/container.h"

#define ID "4d1c8f6a0b7e93215f6c0d8e7a9b3c2d1e0f4a5b6c7d8e9f0a1b2c3d4e5f6a7b"

static void check(const char *text, enum container_kind kind, const char *runtime, const char *id)
{
	struct container c;

	container_parse(text, strlen(text), &c);
	if (c.kind != kind || strcmp(c.runtime, runtime) || strcmp(c.id, id))
		fail_msg("%s: kind %d, runtime %s, id %s", text, c.kind, c.runtime, c.id);
}

static void test_runtimes(void **state)
{
	(void)state;
	check("0::/system.slice/docker-" ID ".scope\n", CONTAINER_IS, "docker", "4d1c8f6a0b7e");
	check("0::/docker/" ID "\n", CONTAINER_IS, "docker", "4d1c8f6a0b7e");
	check("3:cpu,cpuacct:/docker/" ID "\n0::/system.slice/containerd.service\n", CONTAINER_IS,
	      "docker", "4d1c8f6a0b7e");
	check("0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/"
	      "cri-containerd-" ID ".scope\n",
	      CONTAINER_IS, "containerd", "4d1c8f6a0b7e");
	check("0::/kubepods.slice/kubepods-pod1.slice/crio-" ID ".scope/container\n", CONTAINER_IS,
	      "cri-o", "4d1c8f6a0b7e");
	check("11:memory:/kubepods/besteffort/pod2/" ID "\n", CONTAINER_IS, "kubernetes",
	      "4d1c8f6a0b7e");
	check("0::/system.slice/containerd.service/kubepods-pod1.slice:cri-containerd:" ID "\n",
	      CONTAINER_IS, "containerd", "4d1c8f6a0b7e");
	check("0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID
	      ".scope/container\n",
	      CONTAINER_IS, "podman", "4d1c8f6a0b7e");
	check("0::/machine.slice/machine-web.scope/payload\n", CONTAINER_IS, "nspawn", "web");
	check("0::/lxc.payload.web1/system.slice/x.service\n", CONTAINER_IS, "lxc", "web1");
	check("0::/lxc/web1\n", CONTAINER_IS, "lxc", "web1");
}

static const char *path_of(const char *text)
{
	static char buf[16];

	container_path(text, buf, sizeof(buf));
	return buf;
}

static void test_paths(void **state)
{
	(void)state;
	assert_string_equal(path_of("3:cpu:/a\n0::/b/c\n"), "/b/c");
	assert_string_equal(path_of("10::/a\n"), "/a");
	assert_string_equal(path_of("3:cpu:/a\n2:x:/b"), "/a");
	assert_string_equal(path_of("0::/0123456789abcdefgh\n"), "/0123456789abcd");
	assert_string_equal(path_of(""), "");
	assert_string_equal(path_of("0::"), "");
}

/* A kernel with hierarchies of both kinds has a path in each. */
static void test_all_paths(void **state)
{
	static const struct {
		const char *text, *paths;
	} cases[] = {
		{ "3:cpu,cpuacct:/docker/a\n0::/b c:d\n", "/docker/a\n/b c:d\n" },
		{ "::/", "/\n" },
		{ "nonsense\n1:name=x:/y", "/y\n" },
		{ "1:x:relative\n\n:\n", "" },
		{ "", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(freep) char *text = strdup(cases[i].text);

		container_paths(text);
		assert_string_equal(text, cases[i].paths);
	}
}

static void test_outside_of_containers(void **state)
{
	(void)state;
	check("0::/system.slice/nginx.service\n", CONTAINER_UNIT, "systemd", "nginx.service");
	check("0::/user.slice/user-0.slice/session-3.scope\n", CONTAINER_UNIT, "systemd",
	      "session-3.scope");
	check("0::/machine.slice/libpod-conmon-" ID ".scope\n", CONTAINER_UNIT, "systemd",
	      "libpod-conmon-" ID ".scope");
	check("0::/\n", CONTAINER_NONE, "", "");
	check("0::/user.slice", CONTAINER_NONE, "", "");
	check("", CONTAINER_UNKNOWN, "", "");
	check("nonsense\n", CONTAINER_UNKNOWN, "", "");
	check("0::\n", CONTAINER_UNKNOWN, "", "");
}

static void test_lies(void **state)
{
	char name[4096] = "0::/lxc/";

	(void)state;
	/* 63 and 65 digits, capitals, digits glued to a word: no ids. */
	check("0::/docker/d1c8f6a0b7e93215f6c0d8e7a9b3c2d1e0f4a5b6c7d8e9f0a1b2c3d4e5f6a7b\n",
	      CONTAINER_NONE, "", "");
	check("0::/docker/0" ID "\n", CONTAINER_NONE, "", "");
	check("0::/docker-x" ID ".scope\n", CONTAINER_UNIT, "systemd", "docker-x" ID ".scope");
	check("0::/lxc/\n", CONTAINER_NONE, "", "");
	check("0::/.service\n", CONTAINER_NONE, "", "");
	memset(name + 8, 'a', sizeof(name) - 9);
	name[sizeof(name) - 1] = 0;
	{
		struct container c;

		container_parse(name, sizeof(name) - 1, &c);
		assert_int_equal(c.kind, CONTAINER_IS);
		assert_int_equal(strlen(c.id), sizeof(c.id) - 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runtimes),  cmocka_unit_test(test_paths),
		cmocka_unit_test(test_all_paths), cmocka_unit_test(test_outside_of_containers),
		cmocka_unit_test(test_lies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
