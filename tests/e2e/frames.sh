#!/bin/bash
# Frames equal what Go's own runtime says of the same pcs, in every function of a binary: Go
# 1.16, 1.19, 1.22 and 1.27, static, stripped, PIE and externally linked, and a real program
# of over 50 MB. The program under test answers for itself: testdata/programs/oracle. Programs of arm64 (Go
# 1.18 and 1.27; WIDE=1: all from 1.16 on) answer under qemu-user where this is another machine.
#
# VERSIONS="1.22.12" takes only these, ARM64="1.22.12" of arm64; BIG=0 leaves the real program out. Of each function so many pcs are
# asked for as compare() is told, with WIDE=1, and half of them without.
set -u
. tests/support/lib.sh
. tests/support/emulator.sh
need_go
FRAMES=$O/tests/frames
ANCHOR=main.oracleAnchor
# pcs whose inlined calls go round in a circle in Go's own tables: its runtime hangs on them.
MAX_CIRCLES=50
RUN= # what runs the program

# The runtime's internal functions may be linked to only when this check is off.
link_flags() {
	case $1 in
	1.1?.*|1.2[0-2].*) echo "$2" ;;
	*) echo "$2 -checklinkname=0" ;;
	esac
}

# compare NAME PROGRAM FILE MAX [FRAMES-ARG...]: PROGRAM answers, FILE (the same code) is read.
compare() {
	local name=$1 program=$2 file=$3 max=$4 n bad left
	shift 4
	[ -n "${WIDE:-}" ] || max=$(((max + 1) / 2))
	"$FRAMES" pcs "$file" "$max" $ANCHOR >"$TMP/pcs" 2>"$TMP/said" ||
		{ fail "$name" "$(cat "$TMP/said")"; return; }
	left=$(sed -n 's/ pcs left out.*//p' "$TMP/said")
	"$FRAMES" dump "$file" $ANCHOR "$@" <"$TMP/pcs" >"$TMP/ours" 2>"$TMP/said" ||
		{ fail "$name" "$(cat "$TMP/said")"; return; }
	# A pc that Go's runtime cannot answer makes it eat memory for ever.
	(ulimit -v 16000000; GOPROF_ORACLE=1 timeout 300 $RUN "$program" <"$TMP/pcs" >"$TMP/theirs") ||
		{ fail "$name" "the oracle ended with $?"; return; }
	n=$(wc -l <"$TMP/theirs")
	if [ "$n" -lt 1000 ] || [ "$n" != "$(wc -l <"$TMP/pcs")" ] || [ "$left" -gt $MAX_CIRCLES ]; then
		fail "$name" "$n answers to $(wc -l <"$TMP/pcs") pcs, $left left out"
	elif cmp -s "$TMP/ours" "$TMP/theirs"; then
		pass "$name: $n pcs, 0 differ, $left cannot be asked"
	else
		bad=$(diff "$TMP/ours" "$TMP/theirs" | grep -c '^<')
		fail "$name" "$bad of $n pcs differ"
		diff "$TMP/ours" "$TMP/theirs" | head -n 6 | cut -c 1-400
	fi
}

# expect NAME FILE PATTERN: what gobin says of the file.
expect() {
	"$FRAMES" info "$2" >"$TMP/info" 2>&1 && grep -q -- "$3" "$TMP/info" && return
	fail "$1" "not \"$3\": $(cat "$TMP/info")"
}

# same_tls NAME WITH_SYMBOLS STRIPPED: where g is, by symbol and by the runtime's instructions.
same_tls() {
	local a b
	a=$("$FRAMES" info "$2" | grep -o 'tls_g [-0-9]*')
	b=$("$FRAMES" info "$3" | grep -o 'tls_g [-0-9]*')
	[ -n "$a" ] && [ "$a" = "$b" ] || fail "$1: $a by symbol" "$b without"
}

one_version() {
	local v=$1 flags plain pie
	flags=$(link_flags "$v" "")
	plain=$(subject "$v" oracle "-ldflags=$flags") || { fail "go$v" "cannot be built"; return; }
	compare "go$v" "$plain" "$plain" 24
	expect "go$v" "$plain" "version go$v ("
	if command -v objcopy >/dev/null; then
		strip -o "$TMP/bare" "$plain"
		objcopy --rename-section .gopclntab=.x --rename-section .go.buildinfo=.y \
			--rename-section .go.module=.z "$TMP/bare"
		compare "go$v, no section has its name" "$plain" "$TMP/bare" 4
		expect "go$v, no section has its name" "$TMP/bare" "version go$v ("
	fi
	stripped=$(subject "$v" oracle "-ldflags=$(link_flags "$v" "-s -w")") || return
	compare "go$v, stripped" "$stripped" "$stripped" 8
	pie=$(subject "$v" oracle -buildmode=pie "-ldflags=$flags") || return
	compare "go$v, PIE" "$pie" "$pie" 8
}

external() {
	local v=$1 ext pie flags=-linkmode=external
	if ! command -v gcc >/dev/null; then
		skip "go$v, external linking" "needs gcc"
		return
	fi
	ext=$(CGO=1 subject "$v" oracle "-ldflags=$(link_flags "$v" $flags)") ||
		{ fail "go$v, external linking" "cannot be built"; return; }
	compare "go$v, external linking" "$ext" "$ext" 8
	strip -o "$TMP/ext" "$ext"
	compare "go$v, external linking, stripped" "$ext" "$TMP/ext" 4
	same_tls "go$v, external linking" "$ext" "$TMP/ext"
	pie=$(CGO=1 subject "$v" oracle -buildmode=pie "-ldflags=$(link_flags "$v" "-s -w $flags")") ||
		return
	compare "go$v, external linking, stripped PIE" "$pie" "$pie" 8
}

# Programs of arm64: read here, and answered for by what runs them. A PIE needs a dynamic loader.
arm64() {
	local v=$1 bin
	bin=$(GOARCH=arm64 subject "$v" oracle "-ldflags=$(link_flags "$v" "")") || { fail "arm64, go$v" "cannot be built"; return; }
	compare "arm64, go$v" "$bin" "$bin" $((${WIDE:-0} ? 1000 : 6))
	expect "arm64, go$v" "$bin" "version go$v (.* arch 2 "
	bin=$(GOARCH=arm64 subject "$v" oracle "-ldflags=$(link_flags "$v" "-s -w")") || { fail "arm64, go$v, stripped" "cannot be built"; return; }
	compare "arm64, go$v, stripped" "$bin" "$bin" 2
	[ -n "${WIDE:-}" ] || return
	[ -e "$QEMU_LD_PREFIX/lib/ld-linux-aarch64.so.1" ] || [ -z "$RUN" ] || { skip "arm64, go$v, PIE" "no loader in $QEMU_LD_PREFIX: make deps ARCH=arm64"; return; }
	bin=$(GOARCH=arm64 subject "$v" oracle -buildmode=pie "-ldflags=$(link_flags "$v" "-s -w")") || { fail "arm64, go$v, stripped PIE" "cannot be built"; return; }
	compare "arm64, go$v, stripped PIE" "$bin" "$bin" 24
}
export QEMU_LD_PREFIX=${SYSROOT:-$HOME/.cache/goprof-bpf/arm64}

# The oracle is put beside the main package of software that knows nothing of it.
big() {
	local v=1.27.4 dir=$O/programs/kubectl.src out=$O/programs/kubectl size said rss ms
	if [ ! -f "$out" ] || [ -n "$(find testdata/programs/{kubectl,oracle} -newer "$out")" ]; then
		mkdir -p "$dir"
		cp testdata/programs/kubectl/* testdata/programs/oracle/oracle* "$dir" || return
		(cd "$dir" && GO111MODULE=on thrice gorun $v mod download) >"$TMP/said" 2>&1 ||
			{ skip "a real program" "its modules cannot be fetched: $(tail -n 1 "$TMP/said")"
			  return; }
		gobuild $v "$out" "$dir" -ldflags=-checklinkname=0 >"$TMP/said" 2>&1 ||
			{ fail "a real program" "cannot be built: $(tail -n 3 "$TMP/said")"; return; }
	fi
	strip -o "$TMP/big" "$out"
	size=$(($(stat -c %s "$TMP/big") / 1000000))
	[ $size -ge 50 ] || fail "a real program" "only $size MB"
	compare "kubectl, $size MB stripped" "$out" "$TMP/big" 6
	said=$("$FRAMES" bench "$out" 10000) || { fail "kubectl, cost" "$said"; return; }
	rss=$(echo "$said" | sed -n 's/.*, \([0-9]*\) kB at most/\1/p')
	if [ "${rss:-99999}" -lt 40000 ]; then
		pass "kubectl, $(($(stat -c %s "$out") / 1000000)) MB: $said"
	else
		fail "kubectl, cost" "$said"
	fi
}

for v in ${VERSIONS:-1.16.15 1.19.13 1.22.12 1.27.4}; do
	one_version "$v"
	external "$v"
done
[ -z "${WIDE:-}" ] || ARM64=$ALL_MINORS
for v in ${ARM64-1.18.10 1.27.4}; do
	if RUN=$(emulator arm64); then arm64 "$v"; else fail "arm64, go$v" "no emulator"; fi
done
RUN=
[ "${BIG:-1}" = 0 ] || big
finish
