#!/bin/bash
# Reading a heap dump of 1 GB (MILLIONS=6 nodes and twice as many other objects), beside a plain read of
# the same file and beside another reader: throughput, memory, and what was wanted of it. Nothing is
# demanded. The other one is github.com/burntcarrot/heaputil, of which the records are read, one
# after the other; HEAPUTIL=DIR takes it from there.
. tests/support/lib.sh
need_go

RUSAGE=$O/tests/rusage
MILLIONS=${MILLIONS:-6}
OTHER=github.com/burntcarrot/heaputil
OTHER_VERSION=v0.0.0-20230927162808-497024fb706a
ROUNDS=${ROUNDS:-3}
DUMP=$TMP/dump # some GB

row() { printf '%-34s %8s %8s %8s %9s %9s %8s  %s\n' "$@"; }

# measured WHAT WANTED COMMAND...: the best of some rounds; its wall time in ms is in MS.
measured() {
	local what=$1 wanted=$2 user sys rss wall best='' i
	shift 2
	for ((i = 0; i < ROUNDS; i++)); do
		rm -f "$TMP/out" # to replace a file takes the kernel time for the old one
		"$RUSAGE" "$TMP/use" "$@" >/dev/null 2>"$TMP/said" || { fail "heapdump/$what" "$(tail -n 1 "$TMP/said")"; return; }
		read -r user sys rss wall <"$TMP/use"
		[ -n "$best" ] && [ "${wall%.*}" -ge "${best%%.*}" ] || best="$wall $user $sys $rss"
	done
	read -r MS user sys rss <<<"$best"
	CAT_MS=${CAT_MS:-$MS} CAT_CPU=${CAT_CPU:-$(awk -v u="$user" -v s="$sys" 'BEGIN { print u + s }')}
	row "$what" "$MS" "$user" "$sys" "$((rss / 1024))" "$(awk -v b="$SIZE" -v ms="$MS" 'BEGIN { printf "%.0f", b / 1e3 / (ms + !ms) }')" \
		"$(awk -v c="$CAT_MS" -v ms="$MS" 'BEGIN { printf "%.0f%%", 100 * c / (ms + !ms) }')" \
		"$(awk -v c="$CAT_CPU" -v u="$user" -v s="$sys" 'BEGIN { printf "%.0f%%", 100 * c / (u + s + !(u + s)) }') of cat by CPU time${wanted:+; $wanted}"
	pass "heapdump/$what"
}

# A program with the other reader: it says how many records there are.
other() {
	local dir=$TMP/other
	mkdir -p "$dir" && cat >"$dir/main.go" <<-END || return
		package main

		import (
			"bufio"
			"fmt"
			"os"

			"$OTHER/record"
		)

		func main() {
			f, err := os.Open(os.Args[1])
			if err != nil {
				panic(err)
			}
			r := bufio.NewReaderSize(f, 1<<18)
			if err := record.ReadHeader(r); err != nil {
				panic(err)
			}
			for n := 0; ; n++ {
				got, err := record.ReadRecord(r)
				if err != nil {
					panic(err)
				}
				if _, end := got.(*record.EOFRecord); end {
					fmt.Println(n)
					return
				}
			}
		}
	END
	printf 'module other\n\ngo 1.20\n' >"$dir/go.mod"
	(
		cd "$dir" && export GOFLAGS=-mod=mod
		if [ -n "${HEAPUTIL:-}" ]; then
			go mod edit -require "$OTHER@v0.0.0" -replace "$OTHER=$HEAPUTIL"
		else
			go get "$OTHER@$OTHER_VERSION"
		fi && go build -o other .
	) >"$TMP/why" 2>&1 && echo "$dir/other"
}

bin=$(subject 1.27.4 heapbig) && "$bin" "$DUMP" $((MILLIONS * 1000000)) || { fail heapdump/dump "no dump"; finish; }
SIZE=$(stat -c %s "$DUMP")
echo "A heap dump of $((SIZE / 1000000)) MB, Go 1.27.4"
uptime
row "" wall/ms user/ms sys/ms peak/MB MB/s "of cat" ""
measured cat "" cat "$DUMP"
measured "records (--pprof)" "wanted: half of cat's speed" "$GOPROF" heapdump "$DUMP" --pprof "$TMP/out"
measured "summary, with dominators" "wanted: 10 million objects within 60 s, a quarter of the dump in memory" "$GOPROF" heapdump "$DUMP"
"$GOPROF" heapdump "$DUMP" --json | sed -n 's/^ *"\(objects\|bytes\)": \([0-9]*\),*$/  \1: \2/p' | head -n 2
echo "  10 million objects at this rate: $("$GOPROF" heapdump "$DUMP" --json |
	awk -v ms="$MS" '/^ *"objects":/ { if (!n++) printf "%.1f s", ms * 1e4 / ($2 + 0) }')"
if has -e '--hprof' <("$GOPROF" heapdump --help); then
	measured "HPROF (--hprof)" "wanted: a fifth of cat's speed" "$GOPROF" heapdump "$DUMP" --hprof "$TMP/out"
	echo "  HPROF: $(($(stat -c %s "$TMP/out") / 1000000)) MB"
fi
if reader=$(other); then
	ROUNDS=1 measured "$OTHER" "" "$reader" "$DUMP"
else
	skip heapdump/other "$OTHER: $(tail -n 1 "$TMP/why")"
fi
finish
