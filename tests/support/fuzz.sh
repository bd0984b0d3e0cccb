#!/bin/bash
# fuzz.sh SECONDS NAME...: fuzz each parser for that long.
# New inputs go to $O/corpus/NAME; testdata/corpus/NAME is read, never written. A crash
# leaves its input in $O/crash/: keep it in testdata/corpus/NAME once mended. Of execution traces those of Go's own tests
# are seeds, too.
set -u
cd "$(dirname "$0")/../.." || exit 1
O=${O:-build}
seconds=$1
shift
[ $# -gt 0 ] || echo "fuzz: there are no fuzz targets"
bad=0
for name in "$@"; do
	mkdir -p "$O/corpus/$name" "$O/crash" "$O/log"
	seeds=testdata/corpus/$name
	[ -d "$seeds" ] || seeds=
	if [[ $name == exectrace || $name == traceout ]] && command -v go >/dev/null && O=$O tests/support/tracejudge.sh >/dev/null; then
		seeds="$seeds $O/tracejudge/seeds"
	fi
	log=$O/log/fuzz_$name.log
	# shellcheck disable=SC2086
	if "$O/fuzz/tests/fuzz/fuzz_$name" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 \
		-print_final_stats=1 -artifact_prefix="$O/crash/$name-" \
		"$O/corpus/$name" $seeds >"$log" 2>&1; then
		runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
		echo "ok fuzz/$name (${runs:-?} runs in $seconds s)"
	else
		echo "not ok fuzz/$name - see $log"
		tail -n 30 "$log" | sed 's/^/    | /'
		bad=1
	fi
done
exit $bad
