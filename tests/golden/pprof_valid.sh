#!/bin/bash
# Made-up profiles, and one that Go wrote: `go tool pprof` and google/pprof accept what we write
# of them, and our tables are those of `go tool pprof -top`.
set -u
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
mkprofile=$O/tests/mkprofile
check=$O/tools/pprofcheck
failed=0

ok() { echo "ok $1"; }
bad() { echo "not ok $1 - $2"; failed=1; }

. "$ROOT/tests/support/toolchains.sh"
export PPROF_TMPDIR=$T PPROF_BINARY_PATH=$T/none
pprof() { gorun 1.27.4 tool pprof "$@"; }

# accepts NAME FILE: no complaint from either reader. A profile that has pcs without lines makes
# `go tool pprof` look for the binary: that one remark is about this machine, not about the file.
accepts() {
	local said view

	said=$("$check" check -merged "$2" 2>&1) || { bad "$1" "pprofcheck: $said"; return; }
	for view in -raw -top -traces -proto; do
		pprof $view -output "$T/out" "$2" >/dev/null 2>"$T/err" ||
			{ bad "$1" "go tool pprof $view: $(head -n 3 "$T/err")"; return; }
		said=$(grep -v -e '^Generating report in ' \
			-e '^Main binary filename not available' \
			-e 'Local symbolization failed for server' "$T/err")
		[ -z "$said" ] || { bad "$1" "go tool pprof $view says: $said"; return; }
	done
	ok "$1"
}

# tops NAME THEIRS TEXT: each table of ours is theirs, row by row. They note inlining; we do not.
tops() {
	local type

	for type in $("$check" sum "$2" | cut -d' ' -f2); do
		pprof -top -sample_index="$type" -nodefraction=0 -edgefraction=0 \
			-nodecount=0 "$2" 2>/dev/null |
			sed -n '/ flat%/,$p' | sed -E 's/ \((partial-)?inline\)$//' >"$T/theirs"
		sed -n "/^$type: /,/^\$/p" "$3" | sed '1d;/^$/d' >"$T/ours"
		diff "$T/theirs" "$T/ours" >"$T/diff" ||
			{ bad "$1" "$type: $(head -n 5 "$T/diff")"; return; }
		[ "$(wc -l <"$T/ours")" -gt 1 ] || { bad "$1" "$type: no rows"; return; }
	done
	ok "$1"
}

for kind in heap cpu hostile empty plain big; do
	"$mkprofile" $kind pprof "$T/$kind.pb.gz" || { bad "$kind written" "mkprofile"; continue; }
	accepts "$kind is accepted" "$T/$kind.pb.gz"
done
for kind in heap cpu plain; do
	"$mkprofile" $kind text "$T/$kind.txt" || { bad "$kind as text" "mkprofile"; continue; }
	tops "$kind table is that of go tool pprof" "$T/$kind.pb.gz" "$T/$kind.txt"
done

# The judge itself: it must be able to say no.
head -c 200 "$T/heap.pb.gz" >"$T/cut.pb.gz"
refused() {
	local name=$1 rc
	shift
	"$check" "$@" >/dev/null 2>&1
	rc=$?
	[ $rc = 1 ] || [ $rc = 2 ] && ok "$name" || bad "$name" "pprofcheck $1: exit status $rc"
}
refused "a cut file is refused" check "$T/cut.pb.gz"
refused "different profiles are not equal" equal "$T/heap.pb.gz" "$T/cpu.pb.gz"
refused "different shares are out of tolerance" share -tolerance 0.01 "$T/heap.pb.gz" "$T/cpu.pb.gz"

# Profiles as Go writes them, through our model and out again.
gobuild 1.27.4 "$T/self" "$ROOT/testdata/programs/selfprofile" && "$T/self" "$T" ||
	{ bad "selfprofile runs" "cannot build or run it"; exit 1; }
for kind in self.cpu self.heap; do
	"$mkprofile" "$T/$kind" pprof "$T/$kind.pb.gz" && "$mkprofile" "$T/$kind" text "$T/$kind.txt" ||
		{ bad "$kind" "cannot rewrite it"; continue; }
	accepts "$kind rewritten is accepted" "$T/$kind.pb.gz"
	if said=$("$check" equal -max 3 "$T/$kind" "$T/$kind.pb.gz"); then
		ok "$kind rewritten is equal"
	else
		bad "$kind rewritten is equal" "$said"
	fi
	tops "$kind table is that of go tool pprof" "$T/$kind" "$T/$kind.txt"
done
exit $failed
