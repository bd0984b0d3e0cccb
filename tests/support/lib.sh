# shellcheck shell=bash
# What end-to-end and bench scripts share; source it from the top of the tree:
#
#	. tests/support/lib.sh
#	need_root && need_bpf && need_go	each prints a skip line and exits when it must
#	pass NAME; fail NAME WHY; skip NAME WHY	one outcome each
#	subject V NAME				build testdata/programs/NAME with Go V, print its path
#	library V NAME cshared|plugin [FLAG...]	the same program as a library for C, or as a plugin
#	libhost; pluginhost V			who loads them
#	start PROGRAM [ARG...]			run it; sets PID, and PORT once it says "ready [PORT]"
#	http_get PORT PATH OUT			no curl needed
#	judge COMMAND [ARG...]			asks a judge; outcome NAME: passes if all that were asked since
#						the last outcome found all right; wrong WHY: as if one had said so
#	steps FUNCTION [ARG...]			asks a judge of many steps, which runs in this shell
#	has_begun PID ERR TEXT			until a profiler in the background says TEXT; nonzero: it has ended
#	count REGEXP FILE; has REGEXP [FILE]	grep -c and grep -q that are safe in steps
#	only_small_losses ERR PROFILES [ENDS] [FLAG...]	exit status 3 is this machine's doing, or at most
#						ENDS (10) stacks that end early; the profiles state what was said
#	attempt N NAME WHY			notes that what is judged is looked at again
#	finish					exit status of the script; everything started is ended
set -u
. tests/support/toolchains.sh

GOPROF=${GOPROF:-$O/goprof-bpf}
# Where judges note how many comparisons with samples they made.
export JUDGED_LOG=${JUDGED_LOG-$O/log/comparisons}
PPROFCHECK=pprofcheck
TMP=$(mktemp -d)
STARTED=()
FAILED=0
FINISHED=
STDOUT=

# A command that is not there, cannot read its files or is killed has found nothing wrong: the
# outcome that it was for does not pass. Such a status is above 1; 141 is SIGPIPE, where the reader had seen enough.
# `command grep` is for files that need not be there.
command_not_found_handle() {
	echo "$1: no such command" >>"$TMP/dead"
	echo "$0: $1: no such command" >&2
	return 127
}
or_dead() {
	local tool_rc
	command "$@" && return
	tool_rc=$?
	case $tool_rc in 1 | 141) ;; *) echo "$(basename "$1") ${*:2:6}: ended with $tool_rc" >>"$TMP/dead" ;; esac
	return $tool_rc
}
pprofcheck() { or_dead "$O/tools/pprofcheck" "$@"; }
grep() { or_dead grep "$@"; }
awk() { or_dead awk "$@"; }
sed() { or_dead sed "$@"; }
cmp() { or_dead cmp "$@"; }
diff() { or_dead diff "$@"; }

# Ends with 1 where a tool died: then the outcome is told as failed.
pass() {
	[ -s "$TMP/dead" ] || { echo "ok $1"; return; }
	fail "$1" "$(sort -u "$TMP/dead" | head -n 4 | tr '\n' ';')"
	: >"$TMP/dead"
	return 1
}
fail() { echo "not ok $1 - $2"; FAILED=1; }
skip() { echo "skip $1 - $2"; }

# A judge is a command or function that ends with 0 when all it looked at is right; else it prints
# what is not. One that dies does not end with 0. It is asked in this shell and not in $(judge ...),
# so that an error in its arguments ends the script.
FOUND='' JUDGES_ASKED=0
judge() {
	local said rc
	JUDGES_ASKED=$((JUDGES_ASKED + 1))
	said=$("$@")
	rc=$?
	[ $rc = 0 ] || FOUND+="${said:-$(basename "$1") ${2:-} ended with $rc and said nothing}; "
}

# steps FUNCTION [ARG...]: a judge of many steps. It runs in this shell, so that what it starts is ended
# with the script. What it prints is wrong, and so is each command, in pipes and $(...) too, that fails
# where nobody looks at its status (|| and if do). So a step that dies without a word is no silence.
steps() {
	JUDGES_ASKED=$((JUDGES_ASKED + 1))
	: >"$TMP/failed"
	set -E -o pipefail
	trap 'failed $? $LINENO "$BASH_COMMAND"' ERR
	exec {STDOUT}>&1 >"$TMP/why"
	"$@"
	exec >&$STDOUT {STDOUT}>&-
	trap - ERR
	set +E +o pipefail
	STDOUT=
	FOUND+=$(cat "$TMP/why" "$TMP/failed" | head -n 6 | tr '\n' ';')
}
# failed STATUS LINE COMMAND: told by the trap. The failure of a tool (or_dead) is its caller's.
failed() {
	local where="${BASH_SOURCE[1]}:$2" what=$3
	case ${FUNCNAME[1]}:$what in
	pprofcheck:* | grep:* | awk:* | sed:* | cmp:* | diff:*) where="${BASH_SOURCE[2]}:${BASH_LINENO[1]}" what=${FUNCNAME[1]} ;;
	*:'return $tool_rc') return ;;
	esac
	what=${what%%$'\n'*}
	echo "$(basename "${where%:*}"):${where##*:}: ${what:0:80}: ended with $1" >>"$TMP/failed"
}
# In a pipe `grep -q` ends its writer, which has then failed.
has() { [ "$(grep -c "$@")" != 0 ]; }
count() { grep -c -e "$1" "$2" || [ $? = 1 ]; }

wrong() { JUDGES_ASKED=$((JUDGES_ASKED + 1)) FOUND+="$1; "; }
found_wrong() { [ -n "$FOUND" ] || [ $JUDGES_ASKED = 0 ]; }
unjudged() { FOUND='' JUDGES_ASKED=0; }

outcome() {
	local right=0
	[ $JUDGES_ASKED != 0 ] || FOUND="no judge was asked"
	if [ -z "$FOUND" ]; then
		pass "$1" || right=1
	else
		right=1
		fail "$1" "$(head -n 6 <<<"${FOUND%; }" | tr '\n' ';')"
	fi
	unjudged
	return $right
}

# The one form in which attempts are told; tests/run.sh gathers them.
attempt() { echo "# attempt $1 of $2: $(tr '\n' ';' <<<"$3")"; }

# Whoever leaves by another way than finish has not asked all.
cleanup() {
	local p rc=$?
	[ -z "$STDOUT" ] || exec >&"$STDOUT"
	[ -n "$FINISHED" ] || { fail "$(basename "$0" .sh)/end" "the script ended in the middle of it, with $rc"; rc=1; }
	for p in "${STARTED[@]}"; do
		kill -KILL "$p" 2>/dev/null
		wait "$p" 2>/dev/null # or the shell reports its death
	done
	rm -rf "$TMP"
	exit "$rc"
}
trap cleanup EXIT

finish() { FINISHED=1; exit $FAILED; }

skip_all() { skip "$(basename "$0" .sh)" "$1"; finish; }
need_root() { [ "$(id -u)" = 0 ] || skip_all "needs root"; }
need_go() { [ -z "${PREBUILT:-}" ] || return 0; command -v go >/dev/null || skip_all "needs a Go toolchain: 'make deps' installs one"; }
need_bpf() {
	[ -e /sys/kernel/btf/vmlinux ] || skip_all "this kernel has no BTF"
	bpftool prog list >/dev/null 2>&1 || skip_all "BPF is not allowed here"
}

# lib_fresh OUT SOURCE...: nothing of what it is made from is newer.
lib_fresh() { [ -f "$1" ] && [ -z "$(find "${@:2}" -newer "$1")" ]; }

# made OUT SOURCE... -- COMMAND...: makes it unless it is newer, one script at a time. What is made
# when all should have been built is noted in $BUILT_LATE. PREBUILT=1: nothing can be built here (vmtest/).
made() {
	local of=()
	while [ "$1" != -- ]; do of+=("$1"); shift; done
	shift
	[ -z "${PREBUILT:-}" ] || { [ -e "${of[0]}" ]; return; }
	mkdir -p "$O/programs" "$(dirname "${of[0]}")" || return 1
	lib_fresh "${of[@]}" || (
		flock 9
		lib_fresh "${of[@]}" && exit
		[ -z "${BUILT_LATE:-}" ] || echo "$(basename "${of[0]}")" >>"$BUILT_LATE"
		"$@" >&2
	) 9>"$(dirname "${of[0]}")/.$(basename "${of[0]}").lock"
}

# Built once per version and flags; FLAGS are passed to go build.
subject() {
	local v=$1 name=$2 out
	shift 2
	out=$O/programs/$name-$v${GOARCH:+-$GOARCH}${GOEXPERIMENT:+-$GOEXPERIMENT}$(printf '%s' "$*" | tr -c 'a-zA-Z0-9\n' _)
	made "$out" "testdata/programs/$name" testdata/gopath -- gobuild "$v" "$out" "testdata/programs/$name" "$@" || return 1
	echo "$out"
}

# The program, and a Run that calls its main.
library() {
	local v=$1 name=$2 kind=$3 out
	shift 3
	out=$O/programs/$name-$v-$kind$(printf '%s' "$*" | tr -c 'a-zA-Z0-9\n' _).so
	made "$out" "testdata/programs/$name" testdata/programs/libmain testdata/gopath -- \
		build_library "$v" "$name" "$kind" "$out" "$@" || return 1
	echo "$out"
}

build_library() {
	local v=$1 name=$2 kind=$3 out=$4 dir mode=plugin
	shift 4
	[ "$kind" = cshared ] && mode=c-shared
	dir=$O/programs/src-$name-$kind-$v # two versions may be built at once
	rm -rf "$dir" && mkdir -p "$dir" && cp testdata/programs/"$name"/* "$dir" &&
		cp testdata/programs/libmain/"$kind".go.txt "$dir"/run.go || return 1
	# `go version` gives no version for some libraries, so the build's own report must do.
	CGO=1 gobuild "$v" "$out" "$dir" -buildmode=$mode "$@"
}

libhost() {
	local out=$O/programs/libhost source=testdata/programs/libhost/host.c
	made "$out" $source -- cc -O1 -g -o "$out" $source -ldl || return 1
	echo "$out"
}

# The plugin's packages must be built in the same way.
pluginhost() { local v=$1; shift; CGO=1 subject "$v" pluginhost "$@"; }

# For a program that prints "ready [PORT]". Its other output is in $TMP/out.PID's file, $OUT.
start() {
	local i
	OUT=$TMP/out.${#STARTED[@]}
	: >"$OUT"
	"$@" >"$OUT" 2>&1 </dev/null &
	PID=$!
	STARTED+=("$PID")
	PORT=
	for ((i = 0; i < 300; i++)); do
		if grep -q '^ready' "$OUT"; then
			PORT=$(sed -n 's/^ready *//p' "$OUT" | head -n 1)
			return 0
		fi
		kill -0 "$PID" 2>/dev/null || break
		sleep 0.1
	done
	echo "$1 did not become ready: $(head -c 300 "$OUT")" >&2
	return 1
}

# Has the process $1 not ended? For one that is nobody's child here: its zombie stays until somebody reaps it, which takes the init of
# some machines seconds.
runs() { command grep -q '^State:.[^ZX]' "/proc/$1/status" 2>/dev/null; }

# has_begun PID ERR TEXT: waits until the profiler PID has said TEXT to the file ERR; fails where it ends before.
has_begun() {
	until command grep -q "$3" "$2" 2>/dev/null; do
		kill -0 "$1" 2>/dev/null || { command grep -q "$3" "$2" 2>/dev/null; return; }
		sleep 0.01
	done
}

# For one that prints nothing (demo, leaf31).
start_quiet() {
	"$@" >/dev/null 2>&1 </dev/null &
	PID=$!
	STARTED+=("$PID")
	sleep 0.3
	kill -0 "$PID" 2>/dev/null
}

# What was said in $1 of losses is no more than a busy machine does to any profile: every line of a
# loss is known (user/profile/loss.h) and within its bound, and there is one, and the profiles $2 (file
# names, one a line or with blanks between them) state the same (testdata/tools/pprofcheck losses).
LOSSES=$PWD/user/profile/loss.h
only_small_losses() {
	local files
	mapfile -t files < <(tr ' ' '\n' <<<"$2" | command grep '\.pb\.gz$')
	[ ${#files[@]} != 0 ] || { echo "losses without a profile" >&2; return 1; }
	"$PPROFCHECK" losses -list "$LOSSES" -status 3 -ends "${3:-10}" "${@:4}" "$1" "${files[@]}" >&2
}

# thrice COMMAND...: what the network may refuse for a moment
thrice() {
	local n
	for n in 1 2 3; do
		"$@" && return
		[ $n = 3 ] || sleep $((n * 5))
	done
	return 1
}

# by_turns NAME COMMAND...: of all scripts only one at a time; for what is the whole machine's (NAME)
by_turns() {
	local fd rc
	exec {fd}>"$O/.$1.lock"
	flock "$fd"
	"${@:2}"
	rc=$?
	flock -u "$fd"
	exec {fd}>&-
	return $rc
}

# fetch_debs PACKAGE...: into this directory
fetch_debs() {
	thrice apt-get -q -o Acquire::Retries=3 download "$@" || {
		thrice apt-get -q -o Acquire::Retries=3 update && thrice apt-get -q -o Acquire::Retries=3 download "$@"
	}
}

http_get() {
	local fd status
	exec {fd}<>"/dev/tcp/127.0.0.1/$1" || return 1
	printf 'GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n' "$2" >&"$fd"
	cat <&"$fd" >"$TMP/http"
	exec {fd}>&-
	status=$(head -n 1 "$TMP/http" | tr -d '\r')
	LC_ALL=C sed '1,/^\r$/d' "$TMP/http" >"$3"
	case $status in
	*" 200 "*) ;;
	*) echo "GET $2: $status" >&2; return 1 ;;
	esac
}
