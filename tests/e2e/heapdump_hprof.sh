#!/bin/bash
# heapdump --hprof: a reader of its own (tests/support/hprof.py) finds in the file what is in the dump, by
# heapedges, which knows nothing of HPROF: objects, sizes, pointers, fields, roots, stacks, allocation sites
# and contents. What VisualVM's library finds is compared too, where there is a Java to run it.
# WIDE=1: every version. READERS="COMMAND...": each is run with a file, and must end with 0.
. tests/support/lib.sh
need_go
command -v python3 >/dev/null || skip_all "needs python3"
hprof=tests/support/hprof.py

# Classes with one name are told apart by what follows it, and a bracket in front is Java's.
plain() { sed -E 's/^(object [^ ]+ [0-9]+ )\[/\1array_[/; s/^(object [^ ]+ ([0-9]+) [^ ]+)_#[0-9]+ /\1 /; s/^(object [^ ]+ ([0-9]+) [^ ]+)_\(\2_B\) /\1 /' "$1" | sort; }

# converted DUMP [FLAG]: $TMP/hprof, what is in it, and what should be
converted() {
	local rc=0
	"$GOPROF" heapdump "$1" --hprof "$TMP/hprof" ${2:+"$2"} >"$TMP/out" 2>"$TMP/err" || rc=$?
	[ $rc = 0 ] && [ ! -s "$TMP/out" ] && [ ! -s "$TMP/err" ] || wrong "status $rc: $(head -c 300 "$TMP/out" "$TMP/err")"
	"$hprof" "$TMP/hprof" "$TMP/told" >"$TMP/totals" 2>"$TMP/err" || wrong "hprof.py: $(head -n 3 "$TMP/err")"
	"$O/tests/heapedges" "$1" ${2:+contents} >"$TMP/facts" || wrong "heapedges: $?"
	grep -v '^retained ' "$TMP/facts" >"$TMP/want"
	plain "$TMP/want" >"$TMP/want.sorted"
	plain "$TMP/told" >"$TMP/told.sorted"
	judge diff "$TMP/want.sorted" "$TMP/told.sorted"
	judge python3 tests/support/hprofjudge.py "$TMP/facts" 2>"$TMP/asked"
	READ=$(sed 's/ threads.*//' "$TMP/totals")
}
# counted DUMP: as many as the runtime counted
counted() {
	"$GOPROF" heapdump "$1" --json >"$TMP/json"
	read -r _ objects _ bytes _ <"$TMP/totals"
	[ "$(sed -n '/"memstats"/,/}/s/.*: \([0-9]\+\).*/\1/p' "$TMP/json" | tr '\n' ' ')" = "$objects $bytes " ] ||
		wrong "$objects objects with $bytes bytes are not those of memstats"
}
# dumped VERSION[:GOARCH]: $TMP/dump
dumped() {
	local v arch bin
	IFS=: read -r v arch <<<"$1"
	bin=$(GOARCH=$arch subject "$v" heapworld 2>"$TMP/why") && timeout 60 "$bin" "$TMP/dump" >/dev/null 2>"$TMP/why" ||
		{ wrong "no dump: $(tail -n 1 "$TMP/why")"; return 1; }
}

CELLS="1.4.3 1.16.15 1.27.4"
[ "$GOARCH_HOST" != amd64 ] || CELLS+=" 1.27.4:386"
[ -z "${WIDE:-}" ] || CELLS+=" $OLD_MINORS $ALL_MINORS"
for cell in $CELLS; do
	READ=''
	dumped "$cell" && converted "$TMP/dump" && counted "$TMP/dump"
	outcome "heapdump_hprof/$cell ($READ)"
done
for how in "go13 1 4" "go13" "draft"; do
	# shellcheck disable=SC2086
	python3 tests/support/mkdump13.py "$TMP/dump" $how >/dev/null || wrong "mkdump13: $?"
	converted "$TMP/dump"
	outcome "heapdump_hprof/1.3 $how ($READ)"
done

dumped 1.27.4 && converted "$TMP/dump" --contents && counted "$TMP/dump"
has '^bytes ' "$TMP/told" || wrong "no contents"
outcome "heapdump_hprof/contents ($READ)"

# ---- types ----
typed() { # GOARCH
	"$GOPROF" heapdump "$TMP/dump" --exe "$(GOARCH=$1 subject 1.27.4 heapworld)" --hprof "$TMP/hprof" >"$TMP/out"
	"$hprof" "$TMP/hprof" "$TMP/typed" >"$TMP/totals"
	# The same heap, with other names of classes and fields.
	awk '$1 == "object" { print $2, $3, $5 } $1 == "edge" { print $2, $4 }' "$TMP/typed" | sort >"$TMP/typed.sorted"
	awk '$1 == "object" { print $2, $3, $5 } $1 == "edge" { print $2, $4 }' "$TMP/want" | sort >"$TMP/want.sorted"
	cmp "$TMP/typed.sorted" "$TMP/want.sorted"
	has '^object [^ ]* [0-9]* main.node ' "$TMP/typed"
	has '^edge [^ ]* next ' "$TMP/typed"
	has '^root (globals) main[.]' "$TMP/typed"
}
if [ "$GOARCH_HOST" = amd64 ]; then
	dumped 1.27.4:386 && converted "$TMP/dump"
	steps typed 386
	outcome "heapdump_hprof/types of 32 bits"
fi
dumped 1.27.4 && converted "$TMP/dump"
steps typed ''
outcome heapdump_hprof/types

# ---- output ----
# refused TEXT COMMAND...: it fails, and says why in one line
refused() {
	if "${@:2}" 2>"$TMP/err"; then echo "${*:2}: no error"; fi
	[ "$(wc -l <"$TMP/err")" = 1 ]
	has -- "$1" "$TMP/err"
}
limited() { (ulimit -f 8; "$@"); }
bad_output() {
	cp "$TMP/hprof" "$TMP/before"
	refused ': write: File too large$' limited "$GOPROF" heapdump "$TMP/dump" --hprof "$TMP/hprof"
	cmp "$TMP/hprof" "$TMP/before" # the old one is whole
	refused ': write: No space left on device$' "$GOPROF" heapdump "$TMP/dump" --hprof /dev/full
	refused 'that is the dump itself' "$GOPROF" heapdump "$TMP/dump" --hprof "$TMP/dump"
	refused '--contents without --hprof' "$GOPROF" heapdump "$TMP/dump" --contents
	[ -z "$(find "$TMP" -name '.goprof.*')" ]
	# The header has the time of the dump's file.
	"$GOPROF" heapdump "$TMP/dump" --hprof "$TMP/hprof"
	cmp -i 31 "$TMP/hprof" <("$GOPROF" heapdump - --hprof - <"$TMP/dump")
	cmp -i 31 "$TMP/hprof" <(cat "$TMP/dump" | "$GOPROF" heapdump - --hprof -)
}
steps bad_output
outcome heapdump_hprof/output

# A damaged dump gives a whole file with what came before.
damaged() {
	head -c 1000000 "$TMP/dump" >"$TMP/cut"
	rc=0
	"$GOPROF" heapdump "$TMP/cut" --hprof "$TMP/hprof" 2>"$TMP/err" || rc=$?
	[ $rc = 3 ]
	has 'the dump ends in' "$TMP/err"
	"$hprof" "$TMP/hprof" "$TMP/told" >"$TMP/totals"
	has '^objects [1-9][0-9]* ' "$TMP/totals"
}
steps damaged
outcome "heapdump_hprof/damaged ($(sed 's/ edges.*//' "$TMP/totals"))"

# ---- other readers ----
jar=$O/programs/visualvm-heap.jar
fetch_jar() {
	mkdir -p "$TMP/visualvm" && (
		cd "$TMP/visualvm" && fetch_debs visualvm &&
			dpkg-deb --fsys-tarfile visualvm*.deb |
			tar xO ./usr/share/visualvm/visualvm/modules/org-graalvm-visualvm-lib-jfluid-heap.jar >"$1.new"
	) && mv "$1.new" "$1"
}
if [ -z "$(command -v javac)" ]; then
	skip heapdump_hprof/VisualVM "needs a JDK: default-jdk-headless"
elif made "$jar" tests/support/hprof.py -- fetch_jar "$jar" 2>"$TMP/why"; then
	for cell in 1.16.15 1.27.4; do
		dumped $cell && converted "$TMP/dump"
		rm -rf "$TMP"/*.hwcache # it believes an old index
		java -Djava.awt.headless=true -cp "$jar" tests/support/VisualVm.java "$TMP/hprof" >"$TMP/visualvm.out" 2>"$TMP/err" ||
			wrong "$(head -n 1 "$TMP/err")"
		judge python3 tests/support/hprofjudge.py "$TMP/facts" "$TMP/visualvm.out" 2>"$TMP/asked"
		outcome "heapdump_hprof/VisualVM, $cell ($(tr '\n' ';' <"$TMP/asked"))"
	done
else
	skip heapdump_hprof/VisualVM "its library cannot be had: $(tail -n 1 "$TMP/why")"
fi
for reader in ${READERS:-}; do
	dumped 1.27.4 && converted "$TMP/dump"
	judge "$reader" "$TMP/hprof" >"$TMP/out"
	outcome "heapdump_hprof/$(basename "$reader")"
done
finish
