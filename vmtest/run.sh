#!/bin/bash
# Boots kernels in QEMU, emulated, runs vmtest/suite.sh on each, and counts its outcomes.
#
#	run.sh [NAME...]	lines of kernels.txt; all without a NAME. Of each whose suite was run whole a line
#				is put into docs/tested.md, and its number into README.md
#	run.sh short		the short suite, on the oldest and the newest of them; and all programs are loaded on a strict one
#	run.sh fetch		fetches what these need
#	run.sh page		puts these lines there again
#	run.sh check		these lines are of kernels in kernels.txt, nothing failed on them, and README.md has the same
#	run.sh budgets NAME...	what the verifier may spend there from now on (verifier.txt): a tenth more than it did
#
# All that runs there has been built before: `make vmtest`. There is a line for each outcome; the rest of what
# was said is in $O/log/vmtest/NAME.log; the very last line is "N passed, N failed, N skipped". A kernel that
# does not get to the end of the suite is a failure. PARTS="load cpu": these parts of the suite alone; SHORT=1: the
# short suite. ARCH=arm64: what `make ARCH=arm64` built, on kernels of arm64.
#
# Time is counted in emulated instructions (-icount): what else runs on this machine changes no outcome, and
# nobody waits while the emulated machine sleeps.
#
# The second CPU is started by the one part that needs it (maxcpus=1). With -icount one thread of QEMU runs all
# CPUs in turns, and the time that one of them takes passes for all. QEMU 7.2 lets the first one run up to the next
# timer, and then begins with it again: while it is busy, the second one gets to little but its interrupts, for up
# to 1.4 s, and its threads are charged for all of that. A C program that counts the ticks of a perf clock of its
# own (1 ms), without BPF, got 25 to 33 % of them there (6.18, 7.2); with one CPU 99 %. QEMU 10 shares a turn among
# all CPUs: 75 %.
set -u
cd "$(dirname "$0")/.." || exit 1
O=${O:-build}
case $O in /*) ;; *) O=$PWD/$O ;; esac
export O
STRICT=6.1 # rounds each function's frame up to 32 bytes, of 512 for those that call each other: later ones have more room
HOST_ARCH=$(uname -m | sed 's/x86_64/amd64/; s/aarch64/arm64/')
ARCH=${ARCH:-$HOST_ARCH} # of the kernels, and of what was built (make ARCH=)
case $ARCH in
amd64) TRIPLET=x86_64-linux-gnu LOADER=/lib64/ld-linux-x86-64.so.2 ;;
arm64) TRIPLET=aarch64-linux-gnu LOADER=/lib/ld-linux-aarch64.so.1 ;;
*) echo "$0: ARCH=$ARCH is neither amd64 nor arm64" >&2; exit 1 ;;
esac
CACHE=${VMTEST_CACHE:-$HOME/.cache/goprof-bpf-vmtest}
ABROAD= # of another architecture: the trees that its programs and libraries are taken from
[ "$ARCH" = "$HOST_ARCH" ] || ABROAD="$CACHE/userland-$ARCH ${SYSROOT:-$HOME/.cache/goprof-bpf/$ARCH}"
USERLAND="apparmor bash binutils coreutils diffutils findutils grep libcap2-bin mawk procps sed util-linux"
JOBS=${JOBS:-2}	     # kernels at once: an emulated machine keeps one CPU busy
LIMIT=${LIMIT:-1200} # seconds for one kernel
MEMORY=1536
LOG=$O/log/vmtest
PAGE=docs/tested.md README=README.md BEGIN='<!-- made by make vmtest -->' END='<!-- end of what make vmtest made -->'
ROOT=$O/vmtest/root
BINARIES="goprof-bpf tests/verifier tests/cycles tests/leak tools/pprofcheck"
# What scripts of tests/ call, and busybox has not, or has otherwise.
TOOLS="apparmor_parser bash cat cmp cp cut dd diff env expr find grep head kill ls mawk mkdir mkfifo nm od pgrep ps readelf readlink rm sed seq
	setcap setpriv sleep sort stat tail tr uniq unshare wc"
mkdir -p "$LOG"

die() { echo "$0: $*" >&2; exit 1; }

# abroad PATH...: the first that is in one of the trees
abroad() {
	local tree path
	for path in "$@"; do
		for tree in $ABROAD; do [ ! -e "$tree$path" ] || { echo "$tree$path"; return; }; done
	done
	return 1
}
# lib_dirs NAME: where Debian keeps libraries
lib_dirs() { echo "/lib/$TRIPLET/$1 /usr/lib/$TRIPLET/$1 /lib/$1 /usr/lib/$1"; }

# put FILE TO: with the libraries that it needs
put() {
	local lib name
	mkdir -p "$ROOT$(dirname "$2")"
	cp -L "$1" "$ROOT$2" || return 1
	if [ -z "$ABROAD" ]; then
		for lib in $(ldd "$1" 2>/dev/null | grep -oE '/[^ ]+'); do
			[ -e "$ROOT$lib" ] || { mkdir -p "$ROOT$(dirname "$lib")" && cp -L "$lib" "$ROOT$lib"; } || return 1
		done
		return
	fi
	for name in $(readelf -dW "$1" 2>/dev/null | sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p'); do
		lib=/lib/$TRIPLET/$name
		# shellcheck disable=SC2046
		[ -e "$ROOT$lib" ] || put "$(abroad $(lib_dirs "$name"))" "$lib" || { echo "$1: no library $name" >&2; return 1; }
	done
}

# The machine's own AppArmor, which may have none.
parser() {
	local path=$CACHE/apparmor-$ARCH/sbin/apparmor_parser
	[ -x "$path" ] || (
		. tests/support/lib.sh
		cd "$TMP" && fetch_debs apparmor >&2 && dpkg-deb -x apparmor_*.deb "$CACHE/apparmor-$ARCH"
		FINISHED=1
	) || return
	echo "$path"
}

tool_path() {
	local tool=$1 path
	if [ -n "$ABROAD" ]; then
		abroad "/bin/$tool" "/usr/bin/$tool" "/sbin/$tool" "/usr/sbin/$tool" "/usr/bin/$TRIPLET-$tool"
		return
	fi
	[ "$tool" != apparmor_parser ] || { parser; return; }
	path=$(PATH=$PATH:/usr/sbin command -v -p "$tool" || PATH=$PATH:/usr/sbin:/sbin type -P "$tool")
	case $path in /*) ;; *) path=$(PATH=$PATH:/usr/sbin:/sbin type -P "$tool") ;; esac
	[ -n "$path" ] && echo "$path"
}

userland() {
	# shellcheck disable=SC2086
	tests/support/sysroot.sh "$ARCH" "$CACHE/userland-$ARCH" $USERLAND >"$LOG/userland" 2>&1 || die "no userland: see $LOG/userland"
}
tools() {
	local tool path
	if [ -n "$ABROAD" ]; then
		userland
		put "$(abroad $LOADER)" $LOADER || return 1
	fi
	for tool in $TOOLS; do
		path=$(tool_path "$tool") || die "$tool is not there"
		put "$path" "/usr/bin/$tool" || return 1
	done
	ln -s mawk "$ROOT/usr/bin/awk"
	ln -s /usr/bin/bash "$ROOT/bin/bash"
	ln -s /usr/bin/bash "$ROOT/bin/sh"
}

# One shell each: what is shared by end-to-end scripts ends with the script.
programs() {
	local command path
	mkdir -p "$ROOT/w/build/programs"
	while read -r command; do
		path=$(
			. tests/support/lib.sh
			[ -z "$ABROAD" ] || export GOARCH=$ARCH
			eval "$command"
			FINISHED=1
		) && [ -n "$path" ] || die "$command: not built"
		cp "$path" "$ROOT/w/build/programs/$(basename "$path" | sed "${ABROAD:+s/-$ARCH//}")" || return 1
	done < <(vmtest/suite.sh programs)
}

build_root() {
	local busybox file
	busybox=$(vmtest/fetch.sh busybox $ARCH) || return 1
	rm -rf "$ROOT"
	mkdir -p "$ROOT"/{bin,busybox,dev,etc,proc,sys,tmp,w/build/log,w/user/profile}
	cp "$busybox" "$ROOT/bin/busybox" && cp vmtest/init "$ROOT/init" || return 1
	echo 'root:x:0:0:root:/:/bin/sh' >"$ROOT/etc/passwd"
	tools || return 1
	for file in $BINARIES; do put "$O/$file" "/w/build/$file" || return 1; done
	programs || return 1
	cp -r --parents vmtest tests/support/*.sh testdata/programs/waits user/profile/loss.h "$ROOT/w/" || return 1
	busybox=$(vmtest/fetch.sh busybox "$HOST_ARCH") || return 1
	(cd "$ROOT" && find . | "$busybox" cpio -o -H newc 2>/dev/null) >"$O/vmtest/initrd"
}

# boot IMAGE LOG CPUS LABEL
# The CPUs are the plainest that are allowed for, since emulation pays for each feature: all of amd64's ("max") cost a
# quarter more in all, cx16 alone several times as much. On arm64 mitigations=off spares the loops that a kernel runs at each
# exception against Spectre: with them and a newer core (neoverse-n1) it is 1.6 times as much.
boot() {
	local machine console words
	local parts=${PARTS:-}
	[ -z "${SHORT:-}" ] || [ "${4%-arm64}" != $STRICT ] || parts=load
	words="KERNEL=$4 ${parts:+PARTS=${parts// /,}} ${SHORT:+SHORT=$SHORT}"
	case $ARCH in
	amd64) machine="qemu-system-x86_64 -M q35 -cpu qemu64,-cx16,+ssse3,+sse4.1,+sse4.2,+popcnt,+rdrand" console=ttyS0 ;;
	arm64) machine="qemu-system-aarch64 -M virt -cpu cortex-a57" console="ttyAMA0 mitigations=off kpti=off" ;;
	esac
	timeout -k 5 "$LIMIT" $machine -accel tcg -icount "${ICOUNT:-shift=1,sleep=off}" -rtc clock=vm \
		-m $MEMORY -smp "$3" -display none -monitor none -serial "file:$2" -no-reboot -kernel "$1" -initrd "$O/vmtest/initrd" \
		-append "console=$console panic=-1 oops=panic quiet maxcpus=1 $words" </dev/null
}

# run NAME: its outcomes, each with the kernel's name before it
run() {
	local image log=$LOG/$1.log rc spent began=$SECONDS cpus
	cpus=$(awk -v name="$1" '$1 == name { print $3 ? $3 : 2 }' vmtest/kernels.txt)
	image=$(vmtest/fetch.sh kernel "$1" $ARCH) || { echo "not ok $1/boot - it cannot be had"; return; }
	boot "$image" "$log" "$cpus" "$(label "$1" $ARCH)" >"$LOG/$1.qemu" 2>&1
	rc=$?
	times >"$LOG/$1.times"
	spent=$(awk -F'[ms ]' 'NR == 2 { print int($1 * 60 + $2 + $4 * 60 + $5) }' "$LOG/$1.times")
	sed -i 's/\r//' "$log"
	sed -unE "s/^(ok|not ok|skip) /\1 $1\//p; s/^# (Linux .*)/# \1/p" "$log"
	grep -q '^# end' "$log" || echo "not ok $1/end - it did not get to the end (status $rc), see $log"
	echo "# $1: $((SECONDS - began)) s, $spent s of them on a CPU"
	mkdir -p "$O/vmtest/rows"
	[ -n "${PARTS:-}${SHORT:-}" ] || row "$(label "$1" $ARCH)" "$log" "$cpus" >"$O/vmtest/rows/$(label "$1" $ARCH)"
}

# has TEXT LOG: does doctor say that it is there?
has() { grep -qx "# doctor: $1 yes" "$2" && echo yes || echo no; }

# row NAME LOG CPUS: a line of the table; a suite that did not get to its end is a failure
row() {
	local failed
	failed=$(grep -c '^not ok ' "$2")
	grep -q '^# end' "$2" || failed=$((failed + 1))
	echo "| $1 | $(sed -n 's/^# Linux \([^ ]*\) \(.*\)/\2 | \1/p' "$2") | $3 | $(has uprobe_multi "$2") |" \
		"$(has growing_maps "$2") | $(grep -c '^ok ' "$2") | $failed | $(grep -c '^skip ' "$2") |"
}

# label NAME ARCH: what the page calls it
label() { [ "$2" = amd64 ] && echo "$1" || echo "$1-$2"; }
listed() { awk '!/^(#|$)/ { print $1 }' vmtest/kernels.txt; }
# told NAME: its line on the page
told() { sed -n "/^$BEGIN/,/^$END/ { /^| ${1//./\\.} |/p }" $PAGE; }

# place TABLE FILE: between its two marks
place() {
	sed -i "/^$BEGIN/,/^$END/ { /^$BEGIN/ { p; r $1
		}; /^$END/ p; d }" "$2"
}
# How many tests passed on each.
matrix() {
	local name arch row
	listed | awk '{ a = a " " $1 " |"; b = b "---|" } END { print "| |" a; print "|---|" b }'
	for arch in amd64 arm64; do
		row="| $arch |"
		while read -r name; do row+=$(told "$(label "$name" $arch)" | awk -F'|' '{ n = $8 + 0; f = $9 + 0 } END { print " " (n ? n : "-") (f ? ", " f " failed" : "") " |" }'); done < <(listed)
		echo "$row"
	done
}
# A kernel that was not run whole here keeps its line.
page() {
	local name arch
	{
		echo '| kernel | machine | what ran | CPUs | one link for all probes | tables that grow | passed | failed | skipped |'
		echo '|---|---|---|---|---|---|---|---|---|'
		for arch in amd64 arm64; do
			while read -r name; do
				name=$(label "$name" $arch)
				cat "$O/vmtest/rows/$name" 2>/dev/null || told "$name"
			done < <(listed)
		done
	} >"$O/vmtest/table"
	place "$O/vmtest/table" $PAGE
	matrix >"$O/vmtest/matrix"
	place "$O/vmtest/matrix" $README
}

check() {
	local name arch rc=0
	while read -r name; do
		listed | grep -qxF "${name%-arm64}" || { echo "$PAGE tells of $name, which kernels.txt has not"; rc=1; }
	done < <(sed -n "/^$BEGIN/,/^$END/s/^| \\([0-9][^ ]*\\) |.*/\\1/p" $PAGE)
	for arch in amd64 arm64; do
		while read -r name; do
			name=$(label "$name" $arch)
			[[ "$(told "$name")" =~ ^'| '[^|]*(' | '[^|]+){5}' | '[1-9][0-9]*' | 0 | '[0-9]+' |'$ ]] ||
				{ echo "$PAGE does not say that all passed on $name"; rc=1; }
		done < <(listed)
	done
	sed -n "/^$BEGIN/,/^$END/ { /^|/p }" $README | cmp -s - <(matrix) || { echo "$README does not say what $PAGE says: vmtest/run.sh page"; rc=1; }
	return $rc
}

# Of each kernel the lines of this run take the place of its older ones.
budgets() {
	local name table=vmtest/verifier.txt
	for name; do
		sed -i "/^$(label "${name//./\\.}" $ARCH)\t/d" $table
		awk -v kernel="$(label "$name" $ARCH)" -v OFS='\t' '/^not ok load\/all/ { exit 1 }
			/^# [a-z_]+(\/many)? +[0-9]+ +[0-9]+ +[0-9]+ +[0-9.]+$/ { print kernel, $2, int($3 * 1.1) + 10, int($4 * 1.1) + 10; n++ }
			END { exit !n }' "$LOG/$name.log" >>$table || { echo "$name: its programs were not loaded" >&2; return 1; }
	done
}
ends() { listed | sed -n '1p; $p' | uniq; }
# What "short" runs, the cheapest one last.
short() { ends; echo $STRICT; }
fetch() {
	local name
	for name in $(short); do vmtest/fetch.sh kernel "$name" $ARCH; done
	vmtest/fetch.sh busybox $ARCH
	vmtest/fetch.sh busybox "$HOST_ARCH"
	parser
	[ -z "$ABROAD" ] || userland
}
case ${1:-} in page | check | fetch) "$1"; exit ;; budgets) budgets "${@:2}"; exit ;; esac

case $ARCH in
amd64) command -v qemu-system-x86_64 >/dev/null || die "qemu-system-x86_64 is not there (package qemu-system-x86)" ;;
arm64) command -v qemu-system-aarch64 >/dev/null || die "qemu-system-aarch64 is not there (package qemu-system-arm)" ;;
esac
[ "${1:-}" != short ] || export SHORT=1
build_root || die "no initramfs"
rm -rf "$O/vmtest/rows" # of older runs, which may have been of other programs
names=("$@")
[ "${1:-}" != short ] || mapfile -t names < <(short)
[ $# -gt 0 ] || mapfile -t names < <(listed)
for name in "${names[@]}"; do
	while [ "$(jobs -rp | wc -l)" -ge "$JOBS" ]; do wait -n; done
	run "$name" &
done > >(tee "$LOG/outcomes")
wait
[ -n "${PARTS:-}${SHORT:-}" ] || page
passed=$(grep -c '^ok ' "$LOG/outcomes") failed=$(grep -c '^not ok ' "$LOG/outcomes") skipped=$(grep -c '^skip ' "$LOG/outcomes")
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$passed" != 0 ]
