#!/bin/bash
# A missing or too old dependency is one sentence that says what to install, before anything
# is compiled.
set -u
O=${O:-build}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0

expect() { # NAME PATTERN TEXT
	if [ "$(printf '%s\n' "$3" | wc -l)" = 1 ] && printf '%s' "$3" | grep -qE "$2"; then
		echo "ok build/$1"
	else
		echo "not ok build/$1 - $3"
		bad=1
	fi
}

# A world in which libbpf is of another time.
mkdir "$tmp/pc"
printf 'Name: libbpf\nDescription: old\nVersion: 0.8.1\nLibs: -lbpf\n' >"$tmp/pc/libbpf.pc"
expect "an old libbpf is named" \
	"^libbpf 1.1 or newer is needed, found 0.8.1: run 'make deps' as root, or install libbpf-dev$" \
	"$(PKG_CONFIG_PATH=$tmp/pc tests/support/deps.sh check)"
expect "missing libraries are named" "libelf .*is missing.* or install .*libdw-dev.*libelf-dev" \
	"$(PKG_CONFIG_LIBDIR=$tmp tests/support/deps.sh check)"
said=$(env -u MAKEFLAGS -u MAKELEVEL PKG_CONFIG_LIBDIR="$tmp" make O="$tmp/build" all 2>&1)
expect "make stops on it" "libbpf 1.1 or newer is missing.*make deps" "$said"
if [ -e "$tmp/build/obj" ]; then
	echo "not ok build/nothing is compiled before - there are objects"
	bad=1
else
	echo "ok build/nothing is compiled before"
fi

help=$(env -u MAKEFLAGS -u MAKELEVEL make help)
for t in all deps demo test unit e2e stress soak matrix bench fuzz lint install uninstall deb clean help; do
	if ! printf '%s\n' "$help" | grep -qE "^$t +[a-z0-9]"; then
		echo "not ok build/help lists $t - it does not"
		bad=1
	fi
done
[ $bad != 0 ] || echo "ok build/help lists every target"
exit $bad
