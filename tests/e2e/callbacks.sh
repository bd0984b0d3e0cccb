#!/bin/bash
# Go called from C that Go called: who called C is not lost, neither in CPU profiles nor in
# probed heap profiles. Called on a thread that C made: nobody in Go is above the entry from C.
set -u
. tests/support/lib.sh
. tests/support/judges.sh
need_root && need_bpf && need_go

# On its way from C into Go and back a thread is between two stacks some 1 % of its time (12 of 1,100
# ticks were seen); the samples that count are held to 99 % below.
ENDS=40

# with NAME TYPE FUNC PROFILE: of the samples with FUNC, at least 99 % have main.outer above it.
with() {
	judge judge_ends "$4" "$2" "$3" 'main\\.outer'
	outcome "$1"
}

# alone NAME TYPE FUNC PROFILE: of the samples with FUNC, at least 99 % end where C came in.
alone() {
	judge judge_ends "$4" "$2" "$3" 'main\\.goInner .*runtime\\.cgocallback [^;]*$'
	outcome "$1"
}

# watch BIN [ARG...]: CPU and heap of it, in $TMP/paths.
watch() {
	local rc
	start_quiet "$@" || { fail "callbacks/$v" "does not start"; return 1; }
	"$GOPROF" -p "$PID" --cpu --heap --source=probe --heap-rate=16k --budget=0 -F 250 -d 3s -o "$TMP" >"$TMP/paths" 2>"$TMP/err"
	rc=$?
	kill "$PID"
	[ $rc = 3 ] && only_small_losses "$TMP/err" "$(cat "$TMP/paths")" $ENDS && rc=0
	[ $rc = 0 ] || { fail "callbacks/$v" "exit $rc: $(tail -n 2 "$TMP/err" | tr '\n' ' ')"; return 1; }
}

# Each Go in one of two ways, the newest in both; with WIDE=1 both in all of them.
while read -r v ways <&3; do
	[ -z "${WIDE:-}" ] || ways="go thread"
	bin=$(CGO=1 subject "$v" callback -ldflags='-s -w') || { fail "callbacks/$v" "does not build"; continue; }
	case $ways in *go*)
		watch "$bin" && {
			with "callbacks/$v, cpu" samples burn "$(grep cpu "$TMP/paths")"
			with "callbacks/$v, heap" alloc_objects alloc "$(grep heap "$TMP/paths")"
		} ;;
	esac
	case $ways in *thread*)
		watch "$bin" thread && {
			alone "callbacks/$v, a thread of C, cpu" samples burn "$(grep cpu "$TMP/paths")"
			alone "callbacks/$v, a thread of C, heap" alloc_objects alloc "$(grep heap "$TMP/paths")"
		} ;;
	esac
done 3<<-END
	1.16.15 go
	1.19.13 thread
	1.27.4 go thread
END
finish
