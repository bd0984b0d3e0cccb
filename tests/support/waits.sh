# shellcheck shell=bash
# A program that waits as it is told (testdata/programs/waits) and a profiler of its waits beside
# it; source this file after lib.sh. SOURCE is the profiler's: probe unless set, "" for none.
# What is printed is what is wrong; "# ..." on stderr is for people.
#
#	begin V waits [FLAG...]; ask COMMAND; end
#	watch FLAG...; unwatch
#	mark; judged KIND FILE FLAG...; judge_labels FILE [REASON]
#	part NAME V [FLAG...]	all of part_NAME with a program of its own, if ONLY has it

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
	n=$(grep -c '^done' "$SAID")
	echo "$*" >&$FD
	for ((i = 0; i < 1200; i++)); do
		[ "$(grep -c '^done' "$SAID")" -gt "$n" ] && { ! grep '^error' "$SAID"; return; }
		kill -0 "$PID" 2>/dev/null || break
		sleep 0.05
	done
	echo "no answer to: $*"
	kill -KILL "$PID" 2>/dev/null # end would wait for it
}

# What the program prints from here on is the truth for the next profile.
mark() { MARK=$(wc -l <"$SAID"); }
truth() { tail -n +$((MARK + 1)) "$SAID" >"$TMP/truth"; }

# The program must end as if it had not been watched.
end() {
	local rc
	echo end >&$FD
	exec {FD}>&-
	wait "$PID"
	rc=$?
	[ $rc = 0 ] || echo "the program ended with $rc: $(tail -n 3 "$SAID" | tr '\n' ' ')"
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
}

# unwatch: ends the window; BLOCK, MUTEX and WAIT are its files. Prints what is wrong.
unwatch() {
	local f
	kill -INT $PROF 2>/dev/null
	wait $PROF
	RC=$?
	BLOCK=$(grep '\.block\.' "$TMP/paths")
	MUTEX=$(grep '\.mutex\.' "$TMP/paths")
	WAIT=$(grep '\.wait\.' "$TMP/paths")
	# shellcheck disable=SC2086
	"$PPROFCHECK" losses -list "$LOSSES" -status $RC -ends 0 "${MAY_LOSE[@]}" "$TMP/err" $BLOCK $MUTEX $WAIT ||
		echo "exit $RC: $(tail -n 3 "$TMP/err" | tr '\n' ' ')"
	for f in $BLOCK $MUTEX $WAIT; do "$PPROFCHECK" check -merged "$f" || echo "pprofcheck: exit $?"; done
}

# judged KIND FILE FLAG...: what is not as the program said
judged() {
	local kind=$1 file=$2
	shift 2
	[ -s "$file" ] || { echo "no $kind profile"; return; }
	truth
	"$PPROFCHECK" known -kind "$kind" "$@" "$TMP/truth" "$file" >"$TMP/verdict"
	local rc=$?
	grep -v ' 0 of 0..0, .* ok$' "$TMP/verdict" | sed 's/^/# /' >&2
	[ $rc = 0 ] || { grep -vE ': ok$|^left out' "$TMP/verdict"; echo "pprofcheck: exit $rc"; }
}

# comment FILE REGEXP WHAT: the profile says so
comment() { "$PPROFCHECK" comments "$1" | grep -q "$2" || echo "not said that $3"; }

# judge_labels FILE [REASON]: counts of each label and goid, which the program said
judge_labels() {
	truth
	"$PPROFCHECK" labels -type contentions "$1" | grep -F "${2:+reason=\"$2\"}" >"$TMP/labels"
	sed 's/^/# /' "$TMP/labels" >&2
	awk 'FNR == NR { n[FNR] = $1; set[FNR] = $0; last = FNR; next }
		$1 == "label" { seen++; want = $2 "=\"" $3 "\""; got = 0
			for (i = 1; i <= last; i++) if (index(set[i], want) && index(set[i], "tier=\"back\"")) got += n[i]
			if (got < $5 || got > $6) print want ": " got " events for " $5 }
		$1 == "goid" { seen++; want = "goid=" $2 "[ }]"; got = 0
			for (i = 1; i <= last; i++) if (set[i] ~ want) got += n[i]
			if (got < $4 || got > $5) print want ": " got " events for " $4 }
		END { if (seen != 6) print seen + 0 " labels and goids to judge by" }' "$TMP/labels" "$TMP/truth"
}

wanted() { case " $ONLY " in *" $1 "*) return 0 ;; *) return 1 ;; esac; }

# part NAME V [FLAG...]: with a program of its own
part() {
	local name=$1 why
	shift
	wanted "$name" || return
	if ! begin "$1" waits "${@:2}" '-ldflags=-s -w'; then
		fail "$(basename "$0" .sh)/$name/$1" "no program"
		return
	fi
	echo "## $name $1" >&2
	# Not in a subshell: what it starts is ended with this script, and so is this script when it dies.
	part_"$name" >"$TMP/why"
	end >>"$TMP/why"
	why=$(head -n 6 "$TMP/why" | tr '\n' ';')
	[ -z "$why" ] && pass "$(basename "$0" .sh)/$name/$1" || fail "$(basename "$0" .sh)/$name/$1" "$why"
}
