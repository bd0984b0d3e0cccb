#!/bin/bash
# The runner must count what it is told, and what dies without a word.
set -u
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
bad=0
mkdir -p "$tree/tests/e2e" "$tree/tests/unit" "$tree/build/tests/unit"
cp tests/run.sh "$tree/tests/"
mkdir -p "$tree/tests/support"

# script NAME: its text on stdin
script() { cat >"$tree/tests/e2e/$1.sh"; }
script good <<-'END'
	echo "ok one"; echo "noise"; echo "skip two - no such kernel"
END
script fails <<-'END'
	echo "not ok three - wrong"; echo "99 passed, 0 failed, 0 skipped"; exit 1
END
script dies <<-'END'
	echo "ok four"; kill -SEGV $$
END
script silent <<-'END'
	echo "nothing of note"
END
script hangs <<-'END'
	echo "ok five"; sleep 60
END
unit() { printf '#!/bin/sh\n%s\n' "$2" >"$tree/build/tests/unit/$1"; chmod +x "$tree/build/tests/unit/$1"; touch "$tree/tests/unit/$1.c"; }
unit test_good 'printf "1..2\nok 1 - a\nok 2 - b # SKIP no root\n"'
unit test_bad 'printf "1..2\nok 1 - a\nnot ok 2 - b\n"; exit 1'
unit test_dies 'printf "1..3\nok 1 - a\n"; kill -ABRT $$'
unit test_mute 'exit 0'
touch "$tree/tests/unit/test_unbuilt.c"

expect() { # NAME WANT GOT
	if [ "$2" = "$3" ]; then
		echo "ok runner/$1"
	else
		echo "not ok runner/$1 - want \"$2\", got \"$3\""
		bad=1
	fi
}

unset E2E # what the caller asks for is not for the runs in here
run() { (cd "$tree" && O=build SCRIPT_LIMIT=3 tests/run.sh "$@") >"$tree/said" 2>&1; rc=$?; }
run e2e
expect "scripts are counted" "3 passed, 4 failed, 1 skipped" "$(tail -n 1 "$tree/said")"
expect "failure is the exit status" 1 "$rc"
expect "one line with totals" 1 "$(grep -c '^[0-9]* passed, ' "$tree/said")"
expect "noise stays in the log" "" "$(grep '^noise' "$tree/said")"
expect "the clock is named" 1 "$(grep -c '^not ok e2e/hangs - stopped after its time limit' "$tree/said")"
expect "what is slow comes before the total" 1 "$(sed -n "/^== the slowest/,\$p" "$tree/said" | grep -c "^[0-9]* passed")"
run unit
expect "cmocka programs are counted" "3 passed, 4 failed, 1 skipped" "$(tail -n 1 "$tree/said")"
rm -f "$tree"/tests/e2e/{fails,dies,silent,hangs}.sh
run e2e
expect "success is the exit status" 0 "$rc"
expect "nothing was tried twice" "" "$(grep '^# attempt' "$tree/said")"

# One that passes when it is run again, and one whose own second look was right; groups side by side.
script flaky <<-'END'
	[ -e passes ] && { echo "ok a b"; exit; }
	touch passes; echo "not ok a b - wrong - once"; exit 1
END
script frames <<-'END'
	echo "# attempt 1 of six: too few"; echo "ok six"
END
for name in heap_read heap_probe cpu_leaf; do script $name <<-'END'
	echo "ok seven"
END
done
run e2e
expect "a second run counts" "6 passed, 0 failed, 1 skipped" "$(tail -n 1 "$tree/said")"
expect "attempts are told, with why" "# attempt 1 of six: too few # attempt 1 of a b: wrong - once" \
	"$(grep '^# attempt' "$tree/said" | paste -sd' ')"
expect "names have blanks" 1 "$(grep -c '^ok a b (in a second run' "$tree/said")"
expect "attempts are kept" 2 "$(wc -l <"$tree/build/log/attempts")"

# A second run mends what it judged, and nothing that it skipped, left out or did not reach.
rm -f "$tree"/tests/e2e/*.sh
script skips <<-'END'
	[ -e second1 ] && { echo "skip skips - no BPF for a moment"; exit 0; }
	touch second1; echo "not ok heap/total - 30 % off"; exit 1
END
script drops <<-'END'
	[ -e second2 ] && { echo "ok other"; exit 0; }
	touch second2; echo "ok other"; echo "not ok cpu/total - 30 % off"; exit 1
END
script dies <<-'END'
	[ -e second3 ] && { echo "ok x"; echo "not ok y - wrong"; kill -KILL $$; }
	touch second3; echo "ok y"; echo "not ok x - wrong"; kill -KILL $$
END
run e2e
expect "what the second run did not judge has failed" "3 passed, 3 failed, 0 skipped" "$(tail -n 1 "$tree/said")"
expect "and is told" "cpu/total e2e/dies heap/total" "$(sed -n 's/^not ok \([^ ]*\) .*/\1/p' "$tree/said" | sort | paste -sd' ')"
script dies <<-'END'
	[ -e second4 ] && { echo "ok x"; exit 0; }
	touch second4; echo "not ok x - wrong"; kill -KILL $$
END
rm -f "$tree"/tests/e2e/{skips,drops}.sh
run e2e
expect "a death is mended by a second run that comes to its end" "2 passed, 0 failed, 0 skipped" "$(tail -n 1 "$tree/said")"

# What runs one beside others is killed: no outcome may get lost with it.
rm -f "$tree"/tests/e2e/*.sh
script frames <<-'END'
	kill -KILL "$(awk '{ print $4 }' /proc/$PPID/stat)"
END
AGAIN_MAX=0 run e2e
expect "what was lost has failed" "0 passed, 1 failed, 0 skipped" "$(tail -n 1 "$tree/said")"
expect "that it was lost is told" 1 "$(grep -c 'somebody killed what ran it' "$tree/build/log/e2e/frames.log")"
exit $bad
