#!/bin/bash
# heapdump --hprof: a reader of its own (tests/support/hprof.py) finds in the file what is in the dump, by
# heapedges, which knows nothing of HPROF: objects, sizes, pointers, fields, roots, stacks, allocation sites
# and contents. VisualVM's and NetBeans' libraries, LeakCanary's shark and, with SLURP=1 (make readers), hprof-slurp
# read the same files without a complaint and find the same.
# WIDE=1: every version. INSTALL_ONLY=1: the readers alone.
. tests/support/lib.sh
need_go
command -v python3 >/dev/null || skip_all "needs python3"
hprof=tests/support/hprof.py
readers=$O/programs/hprof-readers
slurp=$O/programs/hprof-slurp/bin/hprof-slurp

# A part of Debian's package visualvm, what tests/support/readers.xml names, and who asks them
fetch_java() {
	local ivy=/usr/share/java/ivy.jar from=usr/share/visualvm/visualvm/modules/org-graalvm-visualvm-lib-jfluid-heap.jar java=tests/support jars
	rm -rf "$readers" && mkdir -p "$readers" "$TMP/visualvm" "$TMP/netbeans" &&
		thrice timeout 100 java -jar $ivy -error -ivy $java/readers.xml -retrieve "$readers/[artifact].[ext]" &&
		(cd "$TMP/visualvm" && fetch_debs visualvm && dpkg-deb -x visualvm*.deb .) &&
		cp "$TMP/visualvm/$from" "$readers/visualvm.jar" || return 1
	jars=$(printf '%s:' "$readers"/*.jar)
	# The same API
	sed 's/org.graalvm.visualvm.lib.jfluid.heap/org.netbeans.lib.profiler.heap/; s/getAllInstancesIterator()/getAllInstances().iterator()/' \
		$java/VisualVm.java >"$TMP/netbeans/VisualVm.java"
	ecj -17 -proc:none -nowarn -cp "$jars" -d "$readers" $java/VisualVm.java $java/Shark.java &&
		ecj -17 -proc:none -nowarn -cp "$jars" -d "$readers/netbeans" "$TMP/netbeans/VisualVm.java" &&
		touch "$readers.made"
}
install_java() {
	command -v ecj >/dev/null && [ -e /usr/share/java/ivy.jar ] || { echo "needs ecj and ivy: 'make deps' installs them"; return 1; }
	made "$readers.made" tests/support/{readers.xml,VisualVm.java,Shark.java} -- fetch_java
}
fetch_slurp() { thrice cargo install -q --debug --locked --force --root "${slurp%/bin/*}" hprof-slurp@0.10.0; }
install_slurp() {
	command -v cargo >/dev/null || { echo "needs cargo 1.88 or newer"; return 1; }
	made "$slurp" tests/e2e/heapdump_hprof.sh -- fetch_slurp
}
[ -z "${INSTALL_ONLY:-}" ] || { install_java; finish; } # ahead of the measuring

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
# read_by COMMAND...: what it prints is in $TMP/read. What it says on stderr is a complaint.
read_by() {
	"$@" >"$TMP/read" 2>"$TMP/err"
	head -n 2 "$TMP/err"
}
asked_of() { # CLASSES JUDGE_ARG...
	rm -rf "$TMP"/*.hwcache # they believe an old index
	read_by java -Djava.awt.headless=true -cp "$1:$readers/*" VisualVm "$TMP/hprof"
	python3 tests/support/hprofjudge.py "$TMP/facts" "$TMP/read" "${@:2}" 2>"$TMP/asked"
}
VisualVM() { asked_of "$readers"; }
NetBeans() { asked_of "$readers/netbeans" netbeans; }
# Objects, bytes, fields and threads as hprof.py tells them
shark() {
	read_by java -cp "$readers:$readers/*" Shark "$TMP/hprof"
	read -r _ objects _ bytes _ <"$TMP/totals"
	has -x "total $objects $bytes" "$TMP/read"
	grep '^edge ' "$TMP/told" | sort >"$TMP/want.sorted"
	grep '^edge ' "$TMP/read" | sort | diff "$TMP/want.sorted" -
	grep '^thread ' "$TMP/told" | cut -d' ' -f2 | sort >"$TMP/want.sorted"
	grep '^thread ' "$TMP/read" | cut -d' ' -f2- | tr ' ' '_' | sort | diff "$TMP/want.sorted" -
	echo "$objects objects, $(grep -c '^edge ' "$TMP/read") references" >"$TMP/asked"
}
# The instances of each class; sizes it estimates.
slurp() {
	"$slurp" "$TMP/hprof" --top 1000000 --json --output "$TMP/json" >"$TMP/out" 2>&1
	python3 -c 'if 1:
		import json, sys
		for c in json.load(open(sys.argv[1]))["heap"]["top_allocated_classes"]:
			print(c["class_name"].replace(" ", "_"), c["instance_count"])' "$TMP/json" >"$TMP/read"
	grep '^object ' "$TMP/told" | cut -d' ' -f4 | tr / . | sort | uniq -c | awk '{ print $2, $1 }' | sort >"$TMP/want.sorted"
	tr / . <"$TMP/read" | grep -vE '^(java[.]lang[.]|(byte|char)\[\])' | sort | diff "$TMP/want.sorted" -
	echo "$(wc -l <"$TMP/want.sorted") classes" >"$TMP/asked"
}
# asked READER WHAT: what it made of $TMP/hprof
asked() {
	rm -f "$TMP/asked"
	steps "$1"
	outcome "heapdump_hprof/$1, $2 ($(tr '\n' ';' <"$TMP/asked"))"
}

DUMPED='' TYPED=''
if install_java >"$TMP/why" 2>&1; then
	DUMPED="VisualVM NetBeans" TYPED=shark
else
	skip "heapdump_hprof/VisualVM, NetBeans, shark" "they cannot be had: $(tail -n 1 "$TMP/why")"
fi
if [ -n "${SLURP:-}" ]; then
	if install_slurp >"$TMP/why" 2>&1; then DUMPED+=" slurp" TYPED+=" slurp"; else
		skip heapdump_hprof/slurp "it cannot be had: $(tail -n 1 "$TMP/why")"
	fi
fi
for cell in 1.16.15 1.27.4; do
	[ -n "$DUMPED" ] && dumped $cell && converted "$TMP/dump" || continue
	for reader in $DUMPED; do asked "$reader" $cell; done
done
# The judge of the first two knows of no contents.
if [ -n "$TYPED" ]; then
	"$GOPROF" heapdump "$TMP/dump" --exe "$(subject 1.27.4 heapworld)" --contents --hprof "$TMP/hprof" >"$TMP/out"
	"$hprof" "$TMP/hprof" "$TMP/told" >"$TMP/totals" 2>"$TMP/err" || wrong "hprof.py: $(head -n 3 "$TMP/err")"
	for reader in $TYPED; do asked "$reader" "types and contents"; done
fi
finish
