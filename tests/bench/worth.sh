#!/bin/bash
# What mechanisms of the estimates are worth (docs/method.md): simulated programs (tests/support/worlds_main.c), by this tree and by
# programs that lack one mechanism each. With ROUNDS=20 real programs, too (tests/e2e/budget.sh): half an hour.
# A mechanism that makes no difference fails.
. tests/support/lib.sh
SIMULATED=${SIMULATED:-200}

# command_of TARGET SOURCE: what make would run for TARGET if SOURCE had changed
command_of() { env -u O -u MAKEFLAGS -u MAKELEVEL make -s -n V=1 -W "$2" "build/$1" | grep -E -- " -o build/$1\$" | tail -n 1; }
# without NAME SOURCE PERL PROGRAM MAIN: PROGRAM, as $TMP/NAME, with SOURCE changed; its object stands before the library that has the other one
without() {
	local name=$1 src=$2 object=obj/${2#user/} compile link
	object=${object%.c}.o
	perl -0777 -pe "$3" "$src" >"$TMP/$name.c"
	! cmp -s "$src" "$TMP/$name.c" || { fail "worth/$name" "$src is unchanged"; return 1; }
	compile=$(command_of "$object" "$src") link=$(command_of "$4" "$5")
	compile=${compile/"-c $src"/"-c $TMP/$name.c"}
	link=${link/"build/libgoprof.a"/"$TMP/$name.o build/libgoprof.a"}
	sh -c "${compile/"-o build/$object"/"-w -o $TMP/$name.o"} && ${link/"-o build/$4"/"-o $TMP/$name"}" >"$TMP/$name.log" 2>&1 ||
		{ fail "worth/$name" "$(tail -n 3 "$TMP/$name.log" | tr '\n' ' ')"; return 1; }
}

simulate() { # NAME SOURCE PERL
	without "$@" tests/worlds tests/support/worlds_main.c || return
	"$TMP/$1" "$SIMULATED" >"$TMP/$1.worlds" || { fail "worth/$1" "it died"; return; }
	echo "without $1:"
	paste -d '|' "$TMP/with.worlds" "$TMP/$1.worlds" | awk -F '|' '$1 != $2 { print "  with    " $1; print "  without " $2 }'
	cmp -s "$TMP/with.worlds" "$TMP/$1.worlds" && fail "worth/$1" "makes no difference: is it worth anything?" || pass "worth/$1"
}

# measure NAME GOPROF PART...: root mean squares of all places' errors and of those that were stated, weighted by their shares
measure() {
	local name=$1 goprof=$2
	shift 2
	GOPROF=$goprof RUNS=$ROUNDS ONLY="$*" tests/e2e/budget.sh >"$TMP/$name.out" 2>"$TMP/$name.err"
	sed -n 's/^# [^ ]*  *\([0-9.]*\)%.* \([-+][0-9.]*\)% se *\([0-9.]*\)% z *\([-+0-9.]*\):.*/\1 \2 \3 \4/p' "$TMP/$name.err" | awk -v name="$name" '
		{ n++; w += $1; e += $1 * $2 * $2; s += $1 * $3 * $3; near += $4 <= 2 && $4 >= -2 }
		END { if (!n) { print "  " name ": nothing was judged"; exit 1 }
			printf "  %-16s %5d places: error %6.1f%%, stated %6.1f%%, %3.0f%% within two standard errors\n", name, n, sqrt(e / w), sqrt(s / w), 100 * near / n }'
}

real() { # NAME SOURCE PERL PART...
	without "$1" "$2" "$3" goprof-bpf user/cli/main.c || return
	echo "without $1 (${*:4}):"
	measure with "$GOPROF" "${@:4}" && measure "$1" "$TMP/$1" "${@:4}" && pass "worth/$1" || fail "worth/$1" "it could not be measured"
}

"$O/tests/worlds" "$SIMULATED" | tee "$TMP/with.worlds"
[ "$(wc -l <"$TMP/with.worlds")" -gt 5 ] || { fail worth "no simulation"; finish; }
simulate strata-by-count user/sampling/windows/burstiness.c 's/(bool burstiness_is_high\(.*?\n\{\n)/$1\tif (r)\n\t\treturn false;\n/s'
simulate forgetting-bursts user/sampling/windows/burstiness.c 's/(static bool forget_last_burst\(.*?\n\{\n)/$1\tif (r)\n\t\treturn false;\n/s'
simulate back-to-full user/engine/probing.c 's/if \(probing_could_be_full\(p, now\)\)/if (0 \&\& probing_could_be_full(p, now))/'
[ -n "${ROUNDS:-}" ] || finish
need_root && need_bpf && need_go
real regression user/sampling/windows/calibrate.c 's/(void calibrate_init\(.*?\n\{\n)/$1\tif (c)\n\t\treturn;\n/s' skewed periodic
real mended-price user/sampling/undilated.c 's/(static void mend_price\(.*?\n\{\n)/$1\tif (o)\n\t\treturn;\n/s' skewed periodic
finish
