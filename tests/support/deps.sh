#!/bin/sh
# What building and testing need, in one place.
#   deps.sh check     one sentence on stdout when something is missing or too old
#   deps.sh fuzz      the same for fuzzing and testing
#   deps.sh install   the same, after apt-get has fetched what is missing (root, Debian 12 or newer)
# The Makefile calls it before it compiles anything. CROSS=PREFIX- (of the compiler), ARCH and SYSROOT: for another
# architecture, whose libraries are unpacked into SYSROOT; only what building needs is looked for.
set -u
PATH=$PATH:/usr/sbin:/sbin # bpftool lives there on Debian
export PATH

# One library a line: pkg-config name, least version, Debian package.
libs() {
	cat <<-END
	libbpf 1.1 libbpf-dev
	libelf 0.180 libelf-dev
	libdw 0.180 libdw-dev
	zlib 1.2.11 zlib1g-dev
	libprotobuf-c 1.3 libprotobuf-c-dev
	capstone 4.0 libcapstone-dev
	jansson 2.13 libjansson-dev
	END
	[ "$1" = check ] || echo cmocka 1.1.5 libcmocka-dev
}

# One program a line: its name, Debian package.
tools() {
	cat <<-END
	${CC:-gcc} gcc${CROSS:+-${CROSS%-}}
	clang clang
	llvm-strip llvm
	bpftool bpftool
	protoc-c protobuf-c-compiler
	readelf binutils
	END
	[ "$1" = check ] || cat <<-END
	go golang-go
	clang-format clang-format
	bpftrace bpftrace
	perf linux-perf
	chromium chromium
	dpkg-shlibdeps dpkg-dev
	ecj ecj
	mmdebstrap mmdebstrap
	man man-db
	fish fish
	zsh zsh
	qemu-system-x86_64 qemu-system-x86
	qemu-system-aarch64 qemu-system-arm
	x86_64-linux-gnu-gcc gcc-x86-64-linux-gnu
	aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
	END
}

# clang's -fsanitize=fuzzer links a library of its own.
fuzzer_runtime() {
	lib=$(clang -print-file-name="libclang_rt.fuzzer-$(uname -m).a" 2>/dev/null)
	[ -e "${lib:-none}" ] || lib=$(clang -print-file-name=libclang_rt.fuzzer.a 2>/dev/null)
	[ -e "${lib:-none}" ] || echo "libclang-rt-dev the fuzzing library of clang is missing"
}

# Lines "package sentence", one for each thing that is not there.
missing() {
	command -v pkg-config >/dev/null || echo "pkg-config pkg-config is missing"
	libs "$1" | while read -r lib least pkg; do
		# Without pkg-config nothing is known of a library: it counts as missing.
		if ! pkg-config --exists "$lib" 2>/dev/null; then
			echo "$pkg $lib $least or newer is missing"
		elif ! pkg-config --atleast-version="$least" "$lib"; then
			echo "$pkg $lib $least or newer is needed, found $(pkg-config --modversion "$lib")"
		fi
	done
	tools "$1" | while read -r tool pkg; do
		command -v "$tool" >/dev/null || echo "$pkg the program $tool is missing"
	done
	[ "$1" = check ] || fuzzer_runtime
	[ "$1" = check ] || [ -d /usr/share/fonts/truetype/dejavu ] ||
		echo "fonts-dejavu-core a font for the browser is missing"
	[ "$1" = check ] || [ -e /usr/share/java/ivy.jar ] || echo "ivy the program Ivy is missing"
	[ -e "${CROSS:+$SYSROOT}/usr/include/linux/bpf.h" ] || echo "linux-libc-dev the header linux/bpf.h is missing"
}

# One sentence for all of the list, or nothing.
tell() {
	[ -n "$1" ] || return 0
	what=$(printf '%s\n' "$1" | cut -d' ' -f2- | paste -sd';' | sed 's/;/; /g')
	pkgs=$(printf '%s\n' "$1" | cut -d' ' -f1 | sort -u | paste -sd' ')
	echo "$what: run 'make deps${CROSS:+ ARCH=$ARCH}' as root, or install $pkgs"
}

apt() {
	apt-get -qq update &&
		apt-get -qq install -y --no-install-recommends -o Dpkg::Use-Pty=0 "$@"
}

# The libraries of another architecture; what the machine itself lacks is left to install().
sysroot() {
	log=$(mktemp)
	# shellcheck disable=SC2046
	tests/support/sysroot.sh "$ARCH" "$SYSROOT" libc6-dev libgcc-12-dev linux-libc-dev $(libs all | cut -d' ' -f3) >"$log" 2>&1 ||
		tail -n 15 "$log" >&2
	rm -f "$log"
}

install() {
	what=all
	[ -z "${CROSS:-}" ] || { sysroot; what=check; }
	list=$(missing $what)
	[ -n "$list" ] || return 0
	if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
		tell "$list"
		return
	fi
	pkgs=$(printf '%s\n' "$list" | cut -d' ' -f1 | sort -u | paste -sd' ')
	echo "deps: installing $pkgs" >&2
	export DEBIAN_FRONTEND=noninteractive
	log=$(mktemp)
	# Twice: a mirror may have a bad moment. ca-certificates is for fetching Go toolchains.
	# shellcheck disable=SC2086
	apt $pkgs ca-certificates libc6-dev >"$log" 2>&1 ||
		{ sleep 10; apt $pkgs ca-certificates libc6-dev >"$log" 2>&1; } ||
		tail -n 15 "$log" >&2
	rm -f "$log"
	tell "$(missing $what)"
}

case ${1:-check} in
check)   tell "$(missing check)" ;;
fuzz)    tell "$(missing fuzz)" ;;
install) install ;;
*)       echo "usage: deps.sh check|fuzz|install" >&2; exit 2 ;;
esac
