# shellcheck shell=bash
# A program that waits as it is told (testdata/programs/waits) and a profiler of its waits beside
# it; source this file after lib.sh. SOURCE is the profiler's: probe unless set, "" for none.
# What is printed is what is wrong; "# ..." on stderr is for people.
#
#	begin V waits [FLAG...]; ask COMMAND; end
#	watch FLAG...; unwatch
#	mark; truth; judged KIND FILE FLAG...; comment FILE REGEXP WHAT
#	part NAME V [FLAG...]	all of part_NAME with a program of its own, if ONLY has it (steps in lib.sh)

# shellcheck disable=SC2034
WAITS_VERSIONS="1.18.10 1.19.13 1.20.14 1.21.13 1.22.12 1.23.12 1.24.13 1.25.14 1.26.11 1.27.4"
FD=
MARK=0
MAY_LOSE=() # flags of pprofcheck losses

# begin V NAME [FLAG...]: a new program that obeys ask; its answers are in $SAID.
begin() {
	local bin
	bin=$(subject "$@") && begin_program "$bin"
}

# begin_program PROGRAM [ARG...]
begin_program() {
	local i
	SAID=$TMP/said.${#STARTED[@]}
	MARK=0
	mkfifo "$SAID.in"
	: >"$SAID"
	"$@" <"$SAID.in" >"$SAID" 2>&1 &
	PID=$!
	STARTED+=("$PID")
	exec {FD}>"$SAID.in"
	for ((i = 0; i < 100; i++)); do
		grep -q '^ready' "$SAID" && return
		sleep 0.1
	done
	return 1
}

# ask COMMAND: until it is done
ask() {
	local n i
	n=$(count '^done' "$SAID")
	echo "$*" >&$FD
	for ((i = 0; i < 1200; i++)); do
		[ "$(count '^done' "$SAID")" -gt "$n" ] && { grep '^error' "$SAID" && return 1 || return 0; }
		kill -0 "$PID" 2>/dev/null || break
		sleep 0.05
	done
	echo "no answer to: $*"
	kill -KILL "$PID" 2>/dev/null # end would wait for it
	return 1
}

# What the program prints from here on is the truth for the next profile.
mark() { MARK=$(wc -l <"$SAID"); }
truth() { tail -n +$((MARK + 1)) "$SAID" >"$TMP/truth"; }

# The program must end as if it had not been watched.
end() {
	echo end >&$FD
	exec {FD}>&-
	wait "$PID" || echo "the program ended with $?: $(tail -n 3 "$SAID" | tr '\n' ' ')"
}

# watch FLAG...: returns when its window has begun
watch() {
	local i source=--source=${SOURCE-probe}
	: >"$TMP/err"
	[ "$source" != --source= ] || source=
	# What is judged here is judged as the runtime counts it: in full (tests/e2e/budget.sh: within one).
	case "$source $*" in *probe*--block* | *probe*--mutex*) set -- --budget=0 "$@" ;; esac
	# shellcheck disable=SC2086
	"$GOPROF" -p "$PID" $source "$@" -d 300s -o "$TMP" >"$TMP/paths" 2>"$TMP/err" &
	PROF=$!
	STARTED+=("$PROF")
	for ((i = 0; i < 300; i++)); do
		grep -q 'profiling pid' "$TMP/err" && return
		kill -0 $PROF 2>/dev/null || break
		sleep 0.1
	done
	echo "it does not profile: $(tail -n 1 "$TMP/err")"
	return 1
}

# unwatch: ends the window; BLOCK, MUTEX and WAIT are its files. Prints what is wrong.
unwatch() {
	local f
	kill -INT $PROF 2>/dev/null || echo "it had ended before"
	wait $PROF && RC=0 || RC=$?
	BLOCK=$(file_of block) MUTEX=$(file_of mutex) WAIT=$(file_of wait)
	[ -n "$BLOCK$MUTEX$WAIT" ] || echo "no profile"
	# shellcheck disable=SC2086
	"$PPROFCHECK" losses -list "$LOSSES" -status $RC -ends 0 "${MAY_LOSE[@]}" "$TMP/err" $BLOCK $MUTEX $WAIT ||
		echo "exit $RC: $(tail -n 3 "$TMP/err" | tr '\n' ' ')"
	for f in $BLOCK $MUTEX $WAIT; do "$PPROFCHECK" check -merged "$f"; done
}

file_of() { sed -n "/\\.$1\\./p" "$TMP/paths"; }

# judged KIND FILE FLAG...: what is not as the program said
judged() {
	local kind=$1 file=$2 rc
	shift 2
	[ -s "$file" ] || { echo "no $kind profile"; return 1; }
	truth
	"$PPROFCHECK" known -kind "$kind" "$@" "$TMP/truth" "$file" >"$TMP/verdict" && rc=0 || rc=$?
	sed '/ 0 of 0\.\.0, .* ok$/d; s/^/# /' "$TMP/verdict" >&2
	[ $rc = 0 ] || sed -E '/: ok$|^left out/d' "$TMP/verdict"
	return $rc
}

# comment FILE REGEXP WHAT: the profile says so
comment() {
	"$PPROFCHECK" comments "$1" >"$TMP/comments"
	grep -q -e "$2" "$TMP/comments" || { echo "not said that $3"; return 1; }
}

wanted() { case " $ONLY " in *" $1 "*) return 0 ;; *) return 1 ;; esac; }

# part NAME V [FLAG...]: with a program of its own
part() {
	local name=$1
	shift
	wanted "$name" || return 0
	echo "## $name $1" >&2
	if begin "$1" waits "${@:2}" '-ldflags=-s -w'; then
		steps part_"$name"
		steps end
	else
		wrong "no program"
	fi
	outcome "$(basename "$0" .sh)/$name/$1"
}
