#!/bin/bash
# Opening a large Go binary and naming 10,000 pcs of it, inlined frames too: time and peak
# memory, beside Go's own `go tool addr2line` (which has no inlined frames).
. tests/support/lib.sh
need_go

FRAMES=$O/tests/frames
RUSAGE=$O/tests/rusage
N=10000
V=1.27.4
ROUNDS=${ROUNDS:-3}

row() { printf '%-14s %9s %9s %9s %9s  %s\n' "$@"; }

one() {
	local what=$1 user sys rss wall
	shift
	"$RUSAGE" "$TMP/use" "$@" >"$TMP/said" 2>&1 </dev/null || return 1
	read -r user sys rss wall <"$TMP/use"
	row "$what" "$wall" "$user" "$sys" "$rss" "$(grep -h '^open' "$TMP/said")"
}

# The real software that tests/e2e/frames.sh builds, or the same alone.
bin=$O/programs/kubectl
[ -f "$bin" ] || bin=$(subject $V kubectl 2>"$TMP/said") ||
	skip_all "cannot build kubectl: $(tail -n 1 "$TMP/said")"
"$FRAMES" info "$bin" >"$TMP/info" || { fail symbolize "frames cannot open it"; finish; }
read -r lo hi < <(sed -n 's/.* text \(0x[0-9a-f]*\)\.\.\(0x[0-9a-f]*\) .*/\1 \2/p' "$TMP/info")
awk -v lo=$((lo)) -v hi=$((hi)) -v n=$N 'BEGIN {
	srand(1); for (i = 0; i < n; i++) printf "0x%x\n", lo + int(rand() * (hi - lo)) }' >"$TMP/pcs"

echo "Open $(($(stat -c %s "$bin") / 1000000)) MB and name $N pcs"
uptime
row how wall/ms user/ms sys/ms rss/kB steps
for ((i = 0; i < ROUNDS; i++)); do
	one "frames" "$FRAMES" bench "$bin" $N || fail symbolize "$(head -n 1 "$TMP/said")"
done
# The tool is built on its first run in newer Go.
gorun $V tool addr2line "$bin" </dev/null >/dev/null 2>&1
tool=$(gorun $V tool -n addr2line 2>/dev/null)
one "go addr2line" bash -c '"$1" "$2" <"$3" >/dev/null' - "$tool" "$bin" "$TMP/pcs" ||
	echo "go tool addr2line: $(head -n 1 "$TMP/said")"
[ $FAILED = 1 ] || pass symbolize
finish
