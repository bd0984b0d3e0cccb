#!/bin/bash
# Each judge is judged itself: it accepts what is right, and refuses it once it is made wrong by one
# edit. What is right is written down as text (a profile: testdata/tools/pprofcheck/made.go), an edit is
# a sed script on it, and must change it. The judges are functions of files: tests/support/judges.sh and
# testdata/tools/pprofcheck.
#
#	right FILE			what follows on stdin is right; a profile when it is named *.pb.gz
#	accepts NAME COMMAND...		the judge ends with 0
#	refuses NAME FILE SED COMMAND...	with FILE edited it ends with 1, and says why
set -u
cd "${ROOT:-$(dirname "$0")/../..}" || exit 1
. tests/support/lib.sh
. tests/support/judges.sh
JUDGED_LOG='' # these comparisons are not of what is profiled
D=$TMP/data
mkdir -p "$D"

made() {
	case $1 in
	*.pb.gz) "$PPROFCHECK" made "$1.txt" "$1" ;;
	*)       cp "$1.txt" "$1" ;;
	esac || fail "made $(basename "$1")" "exit status $?"
}

right() { cat >"$D/$1.txt"; made "$D/$1"; }

accepts() {
	local name=$1 said
	shift
	said=$("$@" 2>"$TMP/err") && pass "$name: right" ||
		fail "$name: right" "exit $?: $said $(tail -n 2 "$TMP/err" | tr '\n' ' ')"
}

refuses() {
	local name=$1 file=$D/$2 edit=$3 said rc
	shift 3
	cp "$file.txt" "$TMP/right"
	sed -E "$edit" "$TMP/right" >"$file.txt"
	! cmp -s "$TMP/right" "$file.txt" || fail "$name" "the edit changes nothing"
	made "$file"
	said=$("$@" 2>"$TMP/err")
	rc=$?
	cp "$TMP/right" "$file.txt"
	made "$file"
	[ $rc = 1 ] && [ -n "$said$(cat "$TMP/err")" ] && pass "$name" || fail "$name" "exit $rc: $said $(tail -n 1 "$TMP/err")"
}

# ---- who asks them -------------------------------------------------------------------------------

# verdict_of SHELL: the outcome that this prints
verdict_of() { bash -uc ". tests/support/lib.sh; . tests/support/judges.sh; $1" 2>/dev/null; }

asks() { [[ "$(verdict_of "$3; finish")" = "$2 "* ]] && pass "$1" || fail "$1" "$(verdict_of "$3; finish")"; }
asks "a judge that is content passes" "ok" 'judge true; outcome x'
asks "one that is not does not" "not ok" 'judge false; outcome x'
asks "one complaint of many is enough" "not ok" 'judge true; judge false; judge true; outcome x'
asks "one that is not there does not pass" "not ok" 'judge no_such_judge; outcome x'
asks "nothing passes when a command is missing" "not ok" 'why=$(no_such_judge); [ -z "$why" ] && pass x'
asks "one that dies of an unset variable does not pass" "not ok" 'judge whole_cpu a b c d; outcome x'
asks "one whose arguments are not set ends the script" "not ok" 'judge true "$not_set"; outcome x'
asks "what a script was asked for (GO_VERSIONS) is its own business" "ok" 'ASKED=1.27.4; judge true; outcome x; [ "$ASKED" = 1.27.4 ] || fail x "$ASKED"'
asks "no judge, no pass" "not ok" 'outcome x'
# The matrix keeps a verdict in a file, which says what was told.
MATRIX_VERDICT="CELL=c RES=\$TMP/res; $(sed -n '/^verdict()/,/^}/p' tests/matrix/cell.sh)"
asks "matrix: a verdict that is right is kept" "V ok" "$MATRIX_VERDICT; judge true; verdict V >/dev/null; echo \"\$(cat \$RES.new) \""
asks "matrix: one for which a tool died is not" "V grep x /no/such: ended" "$MATRIX_VERDICT; judge true; grep x /no/such; verdict V >/dev/null; echo \"\$(cat \$RES.new) \""
asks "nothing passes after a judge that could not read its files" "not ok" \
	'[ -z "$("$PPROFCHECK" comments /no/such.pb.gz | sed -n s/^loss//p)" ] && judge true; outcome x'
asks "nor after a search in a file that is not there" "not ok" '! grep -q wrong /no/such && judge true; outcome x'
asks "nor after awk without its file" "not ok" '[ -z "$(awk "{ print }" /no/such)" ] && judge true; outcome x'

# part BODY: what `part` of waits.sh prints of a part with this body
part_is() { asks "$1" "$2" ". tests/support/waits.sh
	begin() { :; }; end() { :; }; ONLY=x; part_x() { $3
	}; part x 1"; }
part_is "a part that reaches its end passes" "ok" 'judge true; n=$(echo 1); [ $n = 1 ] || echo no'
part_is "one that prints something does not" "not ok" 'echo off'
part_is "a step that fails without a word" "not ok" 'false; true'
part_is "a status that is looked at is none of these" "ok" 'grep -q no_such /etc/passwd || true; n=$(count no_such /etc/passwd); [ $n = 0 ]'
part_is "a part that ends early" "not ok" 'return 1'
part_is "a command substitution that dies" "not ok" 'n=$(echo $not_set); [ -z "$n" ] || echo no'
part_is "a pipe that is cut short" "not ok" 'cat /no/such | sed s/^/wrong/; true'
part_is "a judge whose file is missing" "not ok" 'awk "/wrong/ { print }" "$TMP/no_such"; true'
part_is "a judge that is killed" "not ok" 'sh -c "kill -KILL \$\$"; true'
part_is "a function that fails in the middle" "not ok" 'f() { false; true; }; f; true'
part_is "a part that ends the script" "not ok" 'exit 0'
part_is "a part whose variable is not set" "not ok" 'echo $not_set >/dev/null'

# ---- allocations ---------------------------------------------------------------------------------

# samples FUNC N SIZE RATE LEFT: N objects as a sampler shows them
right allocs.truth <<-END
	main.alloc16 400000 16
	main.alloc64 400000 64
	main.alloc8k 40000 8192
END
allocs() {
	cat <<-END
		types alloc_objects/count alloc_space/bytes
		period space/bytes 4096
		sample 401000,6416000 main.alloc16;main.main bytes=16
		sample 7,672 runtime.acquireSudog;main.alloc16;main.main bytes=96
		sample 300500,19232000 main.alloc64;main.main bytes=64
		sample 98000,6272000 main.alloc64;main.other bytes=64
		sample 40100,328499200 main.alloc8k;main.main bytes=8192
	END
}
allocs | right allocs.heap.pb.gz
P=$D/allocs.heap.pb.gz
accepts allocs judge_probe "$D/allocs.truth" "$P" 4096
refuses "allocs: 5 % more" allocs.heap.pb.gz 's/ 40100,328499200/ 42000,344064000/' judge_probe "$D/allocs.truth" "$P" 4096
refuses "allocs: 5 % less" allocs.heap.pb.gz 's/ 40100,328499200/ 38000,311296000/' judge_probe "$D/allocs.truth" "$P" 4096
refuses "allocs: a line is missing" allocs.heap.pb.gz '/alloc16;/d' judge_probe "$D/allocs.truth" "$P" 4096
refuses "allocs: a caller's samples are another function's" allocs.heap.pb.gz 's/main.alloc64;main.other/main.alloc16;main.other/' judge_probe "$D/allocs.truth" "$P" 4096
refuses "allocs: another size" allocs.heap.pb.gz 's/bytes=8192/bytes=9472/' judge_probe "$D/allocs.truth" "$P" 4096
refuses "allocs: too few samples to say 2 %" allocs.truth 's/0 /0 /;s/400000/400/;s/40000 /40 /' judge_probe "$D/allocs.truth" "$P" 4096
refuses "allocs: a site is invented" allocs.heap.pb.gz '$s/(.*)/\1\nsample 9000000,144000000 main.nobody;main.main bytes=16/' judge_probe "$D/allocs.truth" "$P" 4096
refuses "allocs: objects of another size besides" allocs.heap.pb.gz '$s/(.*)/\1\nsample 9000,1152000 main.alloc16;main.main bytes=128/' judge_probe "$D/allocs.truth" "$P" 4096
refuses "allocs: their bytes twice" allocs.heap.pb.gz 's/40100,328499200/40100,656998400/' judge_probe "$D/allocs.truth" "$P" 4096
refuses "allocs: no bytes of them" allocs.heap.pb.gz 's/,[0-9]+ main/,0 main/' judge_probe "$D/allocs.truth" "$P" 4096
refuses "allocs: no truth" allocs.truth 's/^main/done/' judge_probe "$D/allocs.truth" "$P" 4096
sed 's/ 40100,328499200/ 38000,311296000/' "$P.txt" | right missed.heap.pb.gz
M=("$PPROFCHECK" allocs -rate 4096 -missed 2600 "$D/allocs.truth" "$D/missed.heap.pb.gz")
accepts "allocs: 2000 made while nobody looked" "${M[@]}"
refuses "allocs: 3500 made while nobody looked" missed.heap.pb.gz 's/ 38000,311296000/ 36500,299008000/' "${M[@]}"
refuses "allocs: more than were made" missed.heap.pb.gz 's/ 38000,311296000/ 42000,344064000/' "${M[@]}"
sed 's/alloc_/inuse_/g' "$P.txt" | right live.heap.pb.gz
L=(live -kinds 3 -rate 4096 -lost 3 "$D/allocs.truth" "$D/live.heap.pb.gz")
accepts live "$PPROFCHECK" "${L[@]}"
refuses "live: 5 % more" live.heap.pb.gz 's/ 40100,328499200/ 42000,344064000/' "$PPROFCHECK" "${L[@]}"
refuses "live: a line is missing" live.heap.pb.gz '/alloc16;/d' "$PPROFCHECK" "${L[@]}"
refuses "live: a site is invented" live.heap.pb.gz '$s/(.*)/\1\nsample 900000,14400000 main.nobody;main.main bytes=16/' "$PPROFCHECK" "${L[@]}"
refuses "live: their bytes twice" live.heap.pb.gz 's/40100,328499200/40100,656998400/' "$PPROFCHECK" "${L[@]}"
refuses "live: no bytes of them" live.heap.pb.gz 's/,[0-9]+ main/,0 main/' "$PPROFCHECK" "${L[@]}"
refuses "live: a kind is missing" allocs.truth '/alloc16 /d' "$PPROFCHECK" "${L[@]}"

right flow.truth <<-END
	main.allocGrowing 400000 64
	main.allocShrinking 100000 64
	main.allocTurnover 200000 64
	main.allocGarbage 0 112
END
right flow.comments <<-END
	error: main.allocGrowing x.go:1 inuse_objects 404000 +- 8000 (2.0%)
	error: main.allocShrinking x.go:2 inuse_objects 98000 +- 4000 (4.1%)
	error: main.allocTurnover x.go:3 inuse_objects 203000 +- 5000 (2.5%)
END
L=("$PPROFCHECK" flow -windows 100 "$D/flow.truth" "$D/flow.comments")
accepts "live in windows" "${L[@]}"
refuses "live in windows: a third more" flow.comments 's/404000/530000/' "${L[@]}"
refuses "live in windows: an error bar too small" flow.comments 's/8000 \(2.0/400 (0.1/' "${L[@]}"
refuses "live in windows: an error bar that says nothing" flow.comments 's/8000 \(2.0/300000 (75.0/' "${L[@]}"
refuses "live in windows: one is missing" flow.comments '/Turnover/d' "${L[@]}"
refuses "live in windows: garbage lives" flow.truth 's/Turnover 200000/Turnover 0/' "${L[@]}"
cat - "$D/flow.truth.txt" <<-END | right flow_made.truth
	# main.allocHost 50000 80
	# main.allocGarbage 1000000 112
END
cat - "$D/flow.comments.txt" <<-END | right flow_made.comments
	error: all sites alloc_space 120000000 +- 60000 (0.0%)
	error: main.allocHost x.go:5 alloc_space 4100000 +- 200000 (4.9%)
	error: _/a/b-1%2e2.allocGarbage x.go:4 alloc_space 110000000 +- 3000000 (2.7%)
END
L=("$PPROFCHECK" flow -windows 100 -made "$D/flow_made.truth" "$D/flow_made.comments")
accepts "made in windows" "${L[@]}"
refuses "made in windows: a third more" flow_made.comments 's/4100000/5300000/' "${L[@]}"
refuses "made in windows: an error bar too small" flow_made.comments 's/3000000/30000/' "${L[@]}"
refuses "made in windows: an error bar that says nothing" flow_made.comments 's/200000 \(4/2100000 (51/' "${L[@]}"
refuses "made in windows: a plugin's function is missing" flow_made.comments '/_.a.b/d' "${L[@]}"
refuses "made in windows: no truth" flow_made.truth '/^#/d' "${L[@]}"

right late.truth <<-END
	ready
	# main.allocGarbage 20000 112
	# main.allocHost 600000 80
	done
END
right late.comments <<-END
	hits: 540600 allocations of 46454528 bytes seen at 36 probes (one multi link), 22022 sampled
	unobserved: 5 ms in which probes were being put in
	missed: 79697 allocations, by the runtime's own counts, did not pass the probes
END
right late.err <<-END
	goprof-bpf: heap: 79697 allocations that did not pass the probes, by the runtime's own count
END
LATE="told_late $D/late.truth $D/late.comments $D/late.err"
accepts late $LATE
refuses "late: nothing was missed" late.comments '/missed:/d' $LATE
refuses "late: too few are missed" late.comments 's/79697/50000/' $LATE
refuses "late: too many are missed" late.comments 's/79697/100000/' $LATE
refuses "late: no loss is told" late.err 's/did not pass/passed/' $LATE

right labels.truth <<-END
	7 200000 kind=a
	8 200000 -
END
right labels.heap.pb.gz <<-END
	types alloc_objects/count
	sample 201000 main.allocate;main.main bytes=128 goid=7 kind:a
	sample 199000 main.allocate;main.main bytes=128 goid=8
	sample 3 runtime.acquireSudog;main.allocate;main.main bytes=96 goid=9
END
L=(labelled -rate 4096 -goid -labels "$D/labels.truth" "$D/labels.heap.pb.gz")
accepts labelled "$PPROFCHECK" "${L[@]}"
refuses "labelled: a tenth is another goroutine's" labels.heap.pb.gz 's/201000/220000/;s/199000/180000/' "$PPROFCHECK" "${L[@]}"
refuses "labelled: a goroutine is missing" labels.heap.pb.gz '/goid=8/d' "$PPROFCHECK" "${L[@]}"
refuses "labelled: one is invented" labels.heap.pb.gz '3s/(.*)/\1\nsample 40 main.allocate;main.main bytes=128 goid=11/' "$PPROFCHECK" "${L[@]}"
refuses "labelled: a label is lost" labels.heap.pb.gz 's/ kind:a//' "$PPROFCHECK" "${L[@]}"
refuses "labelled: labels nobody asked for" labels.heap.pb.gz 's/ kind:a/ kind:a/;s/201000/201001/' "$PPROFCHECK" labelled -rate 4096 "$D/labels.truth" "$D/labels.heap.pb.gz"

right made.go <<-END
	one(new(int)) // type: int
	two() // type: main.node & string
	three() // type: uint8 | int8
	four() // type: nothing
END
right typed.heap.pb.gz <<-END
	types alloc_objects/count
	sample 200 main.one type:int
	sample 200 main.two type:main.node
	sample 200 main.two type:string
	sample 200 main.three type:int8
END
sed 's/ type:.*//' "$D/typed.heap.pb.gz.txt" | right untyped.heap.pb.gz
# The functions of a made profile are in made.go, one a line.
of_types() { (cd "$D" && "$PPROFCHECK" types made.go typed.heap.pb.gz untyped.heap.pb.gz); }
T=typed.heap.pb.gz
accepts types of_types
refuses "types: another type" $T 's/type:int$/type:uint/' of_types
refuses "types: one of two is missing" $T 's/type:string/type:main.node/' of_types
refuses "types: a label is missing" $T 's/ type:int8//' of_types
refuses "types: one that nothing is allocated of" $T '$s/(.*)/\1\nsample 1 main.four type:int/' of_types
refuses "types: an object more with types than without" $T 's/200 main.one/201 main.one/' of_types
refuses "types: a source that says nothing" made.go 's/ type:/ kind:/' of_types

right hits <<-END
	$(for ((i = 0; i < 26; i++)); do echo "main.kind$i $i 20000"; echo "hits $i 2000$((i % 10))"; done)
END
accepts "hits at allocations" judge_hits "$D/hits"
refuses "hits at allocations: 5 % fewer" hits 's/hits 7 20007/hits 7 19000/' judge_hits "$D/hits"
refuses "hits at allocations: none at one site" hits '/hits 7/d' judge_hits "$D/hits"
refuses "hits at allocations: a kind is missing" hits '/kind7/d' judge_hits "$D/hits"

# ---- CPU -----------------------------------------------------------------------------------------

right cpu.pb.gz <<-END
	types samples/count cpu/nanoseconds
	period cpu/nanoseconds 2000000
	comment charged: 5.010 s of CPU time by the kernel
	comment unclocked: 0.02 s
	sample 1505,3010000000 main.leaf;main.threeTimes;main.main
	sample 495,990000000 main.leaf;main.onceOnly;main.main
	sample 500,1000000000 runtime.futex;runtime.mstart
END
C=$D/cpu.pb.gz
accepts callers three_to_one "$C"
refuses "callers: 2:1" cpu.pb.gz 's/ 1505,3010000000/ 1333,2666000000/;s/ 495,990000000/ 667,1334000000/' three_to_one "$C"
refuses "callers: one is taken for the other" cpu.pb.gz 's/onceOnly/threeTimes/' three_to_one "$C"
refuses "callers: some have none" cpu.pb.gz 's/^sample 495,.*/sample 485,970000000 main.leaf;main.onceOnly\nsample 10,20000000 main.leaf;main.main/' three_to_one "$C"
refuses "callers: too few" cpu.pb.gz 's/ 1505,3010000000/ 150,300000000/;s/ 495,990000000/ 50,100000000/' three_to_one "$C"
refuses "callers: 1:9 of the time" cpu.pb.gz 's/1505,3010000000/1505,400000000/;s/495,990000000/495,3600000000/' three_to_one "$C"
refuses "callers: in the wrong order" cpu.pb.gz 's/main.leaf;main.onceOnly;main.main/main.leaf;main.main;main.onceOnly/' three_to_one "$C"
refuses "callers: one below the other" cpu.pb.gz 's/main.leaf;main.onceOnly;/&main.threeTimes;/' three_to_one "$C"
accepts "CPU total" whole_cpu "$C" 495 510 1 2000
refuses "CPU total: 5 % less" cpu.pb.gz 's/1505,3010000000/1380,2760000000/' whole_cpu "$C" 495 510 1 2000
refuses "CPU total: 5 % more" cpu.pb.gz 's/1505,3010000000/1630,3260000000/' whole_cpu "$C" 495 510 1 2000
refuses "CPU total: a charge that /proc has not" cpu.pb.gz 's/5.010/5.300/;s/1505,3010000000/1650,3300000000/' whole_cpu "$C" 495 510 1 2000
refuses "CPU total: the time is not the samples'" cpu.pb.gz 's/1505,/1405,/' whole_cpu "$C" 495 510 1 2000
refuses "CPU total: nothing charged" cpu.pb.gz '/charged/d' whole_cpu "$C" 495 510 1 2000
refuses "CPU total: much is unclocked" cpu.pb.gz 's/unclocked: 0.02/unclocked: 0.20/' whole_cpu "$C" 495 510 1 2000
! PPROFCHECK=$O/tools/pprofcheck whole_cpu "$C" '' 510 1 2000 2>/dev/null && pass "CPU total: a count is missing" || fail "CPU total: a count is missing" "accepted"

right hard.pb.gz <<-END
	types samples/count
	sample 690 main.copyOne;main.copyWork;main.main
	sample 4 main.copyOne
	sample 30 runtime.scanobject;runtime.gcBgMarkWorker
END
H=(judge_hard "$D/hard.pb.gz" copyWork 0.99 3)
accepts "hard stacks" "${H[@]}"
refuses "hard stacks: 5 % have no root" hard.pb.gz 's/ 4 / 40 /' "${H[@]}"
refuses "hard stacks: a caller twice" hard.pb.gz 's/ 4 main.copyOne/ 4 main.copyOne;main.copyOne;main.copyWork/' "${H[@]}"
refuses "hard stacks: a caller is invented" hard.pb.gz 's/^sample 690 .*/sample 500 main.copyOne;main.copyWork;main.main\nsample 190 main.copyOne;main.nobody;main.copyWork;main.main/' "${H[@]}"
refuses "hard stacks: the callers in the wrong order" hard.pb.gz 's/main.copyOne;main.copyWork/main.copyWork;main.copyOne/' "${H[@]}"
refuses "hard stacks: too few" hard.pb.gz 's/690/69/' "${H[@]}"
! judge_hard "$D/hard.pb.gz" copyWork 0.99 30 >/dev/null && pass "hard stacks: many break off" || fail "hard stacks: many break off" accepted
H=(judge_ends "$D/hard.pb.gz" samples copyOne 'main\\.copyWork')
accepts "stacks' ends" "${H[@]}"
refuses "stacks' ends: 5 % have none" hard.pb.gz 's/ 4 / 40 /' "${H[@]}"
refuses "stacks' ends: no such samples" hard.pb.gz 's/main.copy/main.other/g' "${H[@]}"

"$PPROFCHECK" stacks -type samples "$D/hard.pb.gz" | right stacks
B=(judge_below "$D/stacks" '/main.copy/' '/main.main/' 0.99)
accepts "samples below their caller" "${B[@]}"
refuses "samples below their caller: 5 % are not" stacks 's/^4 /40 /' "${B[@]}"
refuses "samples below their caller: too few" stacks 's/^690/16/' "${B[@]}"
refuses "samples below their caller: none" stacks 's/main/other/g' "${B[@]}"

right charged <<-END
	hits: 1329 samples, 4.95 s of CPU time
	charged: 5.00 s of CPU time by the kernel
END
accepts charged judge_charged "$D/charged" 0.95 1.02
refuses "charged: 6 % less" charged 's/4.95/4.70/' judge_charged "$D/charged" 0.95 1.02
refuses "charged: 5 % more" charged 's/4.95/5.25/' judge_charged "$D/charged" 0.95 1.02
refuses "charged: nothing" charged '/charged/d' judge_charged "$D/charged" 0.95 1.02

right totals <<-END
	one 100 1004000000
	two 250 2460000000
END
accepts totals judge_totals "$D/totals"
refuses "totals: 5 % more" totals 's/1004/1054/' judge_totals "$D/totals"
refuses "totals: 6 % less" totals 's/2460/2350/' judge_totals "$D/totals"
refuses "totals: it did not run" totals 's/100 1004/1 1004/' judge_totals "$D/totals"
refuses "totals: none" totals d judge_totals "$D/totals"

right split.pb.gz <<-END
	types samples/count cpu/nanoseconds
	period cpu/nanoseconds 10000000
	sample 760,7600000000 main.spin;main.first;main.busy
	sample 240,2400000000 main.spin;main.second;main.busy
	sample 30,300000000 runtime.mcall
END
accepts split judge_split "$D/split.pb.gz" first 0.75
refuses "split: 2:1" split.pb.gz 's/ 760,/ 667,/;s/ 240,/ 333,/' judge_split "$D/split.pb.gz" first 0.75
refuses "split: the other way round" split.pb.gz 's/first/third/;s/second/first/;s/third/second/' judge_split "$D/split.pb.gz" first 0.75
refuses "split: too few" split.pb.gz 's/ 760,/ 38,/;s/ 240,/ 12,/' judge_split "$D/split.pb.gz" first 0.75

right unhurt <<-END
	hits: 300 samples, 3.030 s of CPU time
	charged: 3.010 s of CPU time by the kernel: each sample stands for 10.033 ms of it
END
accepts unhurt judge_unhurt "$D/unhurt"
refuses "unhurt: a loss" unhurt '$a loss: 3 samples dropped: kernel buffer full' judge_unhurt "$D/unhurt"
refuses "unhurt: callers" unhurt '$a loss: 3 samples whose first caller could not be told' judge_unhurt "$D/unhurt"
refuses "unhurt: many callers" unhurt '$a loss: 9 samples whose first caller could not be told' judge_unhurt "$D/unhurt" 0.02
refuses "unhurt: nothing" unhurt d judge_unhurt "$D/unhurt"

{
	for ((i = 0; i < 18; i++)); do echo "var runtime.v$i 0x$i 0x$i"; done
	echo "site runtime.mallocgc 0x40"
} | right vars.with
sed -E 's/(var [^ ]* )0x[0-9]+/\1-/' "$D/vars.with.txt" | right vars.facts
accepts "matrix: variables" judge_vars "$D/vars.with" "$D/vars.facts"
refuses "matrix: another address" vars.facts 's/v7 - 0x7/v7 - 0x8/' judge_vars "$D/vars.with" "$D/vars.facts"
refuses "matrix: a variable is not found" vars.facts 's/v7 - 0x7/v7 - -/' judge_vars "$D/vars.with" "$D/vars.facts"
refuses "matrix: one is not looked for" vars.facts '/v7/d' judge_vars "$D/vars.with" "$D/vars.facts"
refuses "matrix: another site" vars.facts 's/0x40/0x44/' judge_vars "$D/vars.with" "$D/vars.facts"
refuses "matrix: no symbols to compare with" vars.with 's/0x[0-9]+ 0x/- 0x/' judge_vars "$D/vars.with" "$D/vars.facts"
for ((i = 0; i < 1200; i++)); do echo "0x$i main.f$i main.go:$i"; done | right pcs
right ours <"$D/pcs.txt"
right theirs <"$D/pcs.txt"
accepts "matrix: frames" judge_frames "$D/pcs" "$D/ours" "$D/theirs" 3
refuses "matrix: one frame" ours 's/f700 /f701 /' judge_frames "$D/pcs" "$D/ours" "$D/theirs" 3
refuses "matrix: one pc has no answer" theirs '/f700 /d' judge_frames "$D/pcs" "$D/ours" "$D/theirs" 3
! judge_frames "$D/pcs" "$D/ours" "$D/theirs" 60 >/dev/null && pass "matrix: too many pcs are left out" || fail "matrix: too many pcs are left out" accepted

right seen.comments <<-END
	hits: 563054 allocations of 360407296 bytes seen at 18 probes, 21849 sampled
END
accepts "bytes seen" judge_seen "$D/seen.comments" "$P" 360000000
refuses "bytes seen: 5 % fewer" seen.comments 's/360407296/340000000/' judge_seen "$D/seen.comments" "$P" 360000000
refuses "bytes shown: 5 % more" allocs.heap.pb.gz 's/328499200/350000000/' judge_seen "$D/seen.comments" "$P" 360000000

right counts.truth <<-END
	main.aWork 3000000
	main.bWork 1000000
END
right counts.got <<-END
	3010 main.aWork
	990 main.bWork
	50 main.other
END
accepts counts "$PPROFCHECK" counts -off 0.01 "$D/counts.truth" "$D/counts.got"
refuses "counts: 5 points off" counts.got 's/3010/2800/;s/990/1200/' "$PPROFCHECK" counts -off 0.01 "$D/counts.truth" "$D/counts.got"
refuses "counts: one is missing" counts.got '/bWork/d' "$PPROFCHECK" counts -off 0.01 "$D/counts.truth" "$D/counts.got"
refuses "counts: nothing" counts.truth 's/.*//' "$PPROFCHECK" counts -off 0.01 "$D/counts.truth" "$D/counts.got"
right alike.own <<-END
	800 main.aWork
	250 main.bWork
END
accepts alike "$PPROFCHECK" alike -off 0.01 "$D/counts.got" "$D/alike.own"
refuses "alike: a third of one is the other's" counts.got 's/3010/2100/;s/990/1900/' "$PPROFCHECK" alike -off 0.01 "$D/counts.got" "$D/alike.own"
refuses "alike: one is missing" alike.own '/bWork/d' "$PPROFCHECK" alike -off 0.01 "$D/counts.got" "$D/alike.own"

right own.pb.gz <"$C.txt"
S=(share -type cpu -sampled -tolerance 0.01 "$C" "$D/own.pb.gz")
accepts share "$PPROFCHECK" "${S[@]}"
refuses "share: a fifth is another function's" cpu.pb.gz 's/ 1505,3010000000/ 1005,2010000000/;s/ 500,1000000000/ 1000,2000000000/' "$PPROFCHECK" "${S[@]}"
refuses "share: a caller is missing" cpu.pb.gz 's/main.leaf;main.threeTimes/main.leaf/' "$PPROFCHECK" "${S[@]}"
refuses "share: an invented function" cpu.pb.gz 's/^(sample 1505,3010000000)/sample 300,600000000 main.invented\n\1/' "$PPROFCHECK" "${S[@]}"
refuses "share: the time is a ten millionth" own.pb.gz 's/^(sample [0-9]+,[0-9]+)0000000 /\1 /' "$PPROFCHECK" "${S[@]}"
refuses "share: without sampling, 5 points" cpu.pb.gz 's/ 1505,3010000000/ 1345,2690000000/' "$PPROFCHECK" share -type cpu -tolerance 0.02 "$C" "$D/own.pb.gz"

T=(judge_own_total "$C" "$D/own.pb.gz")
accepts "total beside its own" "${T[@]}"
refuses "total beside its own: an eighth less" cpu.pb.gz 's/3010000000/2385000000/' "${T[@]}"
refuses "total beside its own: its own has a third less" own.pb.gz 's/3010000000/1340000000/' "${T[@]}"
refuses "total beside its own: hardly any" cpu.pb.gz 's/,[0-9]*/,1000000/' "${T[@]}"
refuses "total beside its own: no samples" cpu.pb.gz '/^sample/d' "${T[@]}"

# ---- what was lost -------------------------------------------------------------------------------

right err <<-END
	goprof-bpf: profiling pid 7 (x, go1.27.4) for 2 s: cpu, heap, block
	goprof-bpf: heap: probing costs the target more than 5% of its CPU time: from now on in short windows, scaled
	goprof-bpf: cpu: 3 clock ticks the kernel did not deliver or threads did not reach
	goprof-bpf: heap: 2 stacks that end before their root
END
right lost.heap.pb.gz <<-END
	types alloc_objects/count
	comment loss: 2 stacks that end before their root
	sample 1 main.main
END
right lost.cpu.pb.gz <<-END
	types samples/count
	comment loss: 3 clock ticks the kernel did not deliver or threads did not reach
	sample 1 main.main
END
Q=("$PPROFCHECK" losses -status 3 "$D/err" "$D/lost.cpu.pb.gz" "$D/lost.heap.pb.gz")
accepts losses "${Q[@]}"
refuses "losses: one is not in the profile" lost.cpu.pb.gz '/^comment/d' "${Q[@]}"
refuses "losses: the profile has fewer than are said" lost.cpu.pb.gz 's/loss: 3/loss: 1/' "${Q[@]}"
refuses "losses: the profile has another one" lost.heap.pb.gz 's/^(comment) .*/&\n\1 loss: 1 probe hits the kernel did not run/' "${Q[@]}"
! "$PPROFCHECK" losses -status 3 "$D/err" "$D/lost.cpu.pb.gz" >/dev/null && pass "losses: a profile is missing" || fail "losses: a profile is missing" accepted
refuses "losses: one of unknown text" err '$s/(.*)/\1\ngoprof-bpf: heap: 90000 samples eaten by a bear/' "${Q[@]}"
refuses "losses: of unknown text, with no profile to look at" err '$s/(.*)/\1\ngoprof-bpf: heap: 90000 samples eaten by a bear/' "$PPROFCHECK" losses -status 3 "$D/err"
O2=(only_small_losses "$D/err" "$D/lost.cpu.pb.gz $D/lost.heap.pb.gz")
accepts "small losses" "${O2[@]}"
refuses "small losses: one is not in the profile" lost.heap.pb.gz '/^comment/d' "${O2[@]}"
refuses "small losses: many stacks" err 's/heap: 2/heap: 11/' "${O2[@]}"
! only_small_losses "$D/err" '' 2>/dev/null && pass "small losses: no profile" || fail "small losses: no profile" accepted
refuses "losses: one is unsaid" err '/clock ticks/d' "${Q[@]}"
refuses "losses: fewer are said than the profile has" err 's/cpu: 3/cpu: 2/' "${Q[@]}"
refuses "losses: too many stacks" err 's/heap: 2/heap: 11/' "${Q[@]}"
refuses "losses: too many ticks" err 's/cpu: 3/cpu: 3000/' "${Q[@]}"
for kind in block mutex wait goroutine; do
	refuses "losses: of $kind" err "s/heap: 2/$kind: 2/" "${Q[@]}"
	refuses "losses: of $kind, of another sort" err "4s/.*/goprof-bpf: $kind: 1 waits that ended where no probe saw it/" "${Q[@]}"
done
refuses "losses: without a number" err "4s/.*/goprof-bpf: heap: the runtime's sampling could not be switched off again/" "${Q[@]}"
refuses "losses: with a process before it" err "4s/.*/goprof-bpf: pid 7 (x): heap: 2 probe hits the kernel did not run/" "${Q[@]}"
refuses "losses: the target went" err '4s/.*/goprof-bpf: the target exited after 2 s: writing what was collected/' "${Q[@]}"
refuses "losses: status 3 for nothing" err '/clock|stacks/d' "$PPROFCHECK" losses -status 3 "$D/err"
refuses "losses: status 0" err 's/heap: 2/heap: 3/' "$PPROFCHECK" losses -status 0 "$D/err"
refuses "losses: a crash" err 's/heap: 2/heap: 3/' "$PPROFCHECK" losses -status 134 "$D/err"
accepts "losses: none" "$PPROFCHECK" losses -status 0 /dev/null

# ---- the matrix's judges of a program that runs ----

of_matrix() { sed -n "/^$1()/,/^}/p" tests/matrix/cell.sh; }
MATRIX="PID=\$\$; last_words() { tail -n 2 \"\$1\"; }; $(of_matrix kept)
$(of_matrix restored)
$(of_matrix check_live)"
KEPT="$MATRIX; cp $D/err \$TMP/err; RC=3"
asks "matrix: what was lost is little, and said" "ok" "$KEPT; judge kept heap $D/lost.heap.pb.gz; outcome x"
asks "matrix: a loss is unsaid" "not ok" "$KEPT; sed -i '/heap: 2/d' \$TMP/err; judge kept heap $D/lost.heap.pb.gz; outcome x"
asks "matrix: much is lost" "not ok" "$KEPT; sed -i 's/heap: 2/heap: 11/' \$TMP/err; judge kept heap $D/lost.heap.pb.gz; outcome x"
asks "matrix: a crash" "not ok" "$KEPT; RC=134; judge kept heap $D/lost.heap.pb.gz; outcome x"
asks "matrix: no profile" "not ok" "$KEPT; judge kept heap $D/absent.pb.gz; outcome x"

right enabled.heap.pb.gz <<-END
	types alloc_objects/count
	comment enabled: runtime.MemProfileRate was 0 and was set to 4096 for 2.001 s; it is 0 again
	sample 1 main.main
END
sed s/enabled/source/ "$D/enabled.heap.pb.gz.txt" | right unsaid.heap.pb.gz
RATE_IS="$MATRIX"'; ask() { echo "rate $NOW" >>"$TMP/out"; }; NOW=0'
asks "matrix: the rate is as it was" "ok" "$RATE_IS; HEAP=$D/enabled.heap.pb.gz; judge restored; outcome x"
asks "matrix: the rate stays on" "not ok" "$RATE_IS; NOW=4096; HEAP=$D/enabled.heap.pb.gz; judge restored; outcome x"
asks "matrix: not said that it was restored" "not ok" "$RATE_IS; HEAP=$D/unsaid.heap.pb.gz; judge restored; outcome x"
asks "matrix: the program does not answer" "not ok" "$RATE_IS; ask() { return 1; }; HEAP=$D/enabled.heap.pb.gz; judge restored; outcome x"

VARIABLES="$MATRIX"'; RTLIVE=live N=10 RC=0; live() { for ((i = 0; i < N; i++)); do echo "v$i ok"; done; return $RC; }'
asks "matrix: what variables hold is plausible" "ok" "$VARIABLES; judge check_live; outcome x"
asks "matrix: of one it is not" "not ok" "$VARIABLES; RC=1; judge check_live; outcome x"
asks "matrix: few are looked at" "not ok" "$VARIABLES; N=9; judge check_live; outcome x"

# ---- waits ---------------------------------------------------------------------------------------

right waits.truth <<-END
	block main.recvWait runtime.chanrecv1 600 600 6000000000 6060000000 0 0 0 0
	block main.lockWait sync.(*Mutex).Lock 400 400 4000000000 4040000000 0 0 0 0
	block main.noneWait - 0 0 0 0 0 0 0 0
END
right waits.block.pb.gz <<-END
	types contentions/count delay/nanoseconds
	period contentions/count 1
	sample 600,6030000000 runtime.chanrecv1;main.recvWait;main.main
	sample 400,4020000000 sync.(*Mutex).Lock;main.lockWait;main.main
END
right none.block.pb.gz <<-END
	types contentions/count delay/nanoseconds
	period contentions/count 1
END
mkdir "$D/source"
printf 'func %s() {\n' main recvWait lockWait noneWait >"$D/source/main.go"
KNOWN=("$PPROFCHECK" known -source "$D/source")
K=("${KNOWN[@]}" -kind block "$D/waits.truth" "$D/waits.block.pb.gz")
F=waits.block.pb.gz
accepts known "${K[@]}"
refuses "known: 5 % more time" $F 's/6030000000/6363000000/' "${K[@]}"
refuses "known: 5 % fewer waits" $F 's/ 600,/ 570,/' "${K[@]}"
refuses "known: one is missing" $F '/lockWait/d' "${K[@]}"
refuses "known: one is invented" $F 's/^(sample 400.*)/\1\nsample 1,10 runtime.selectgo;main.nobody/' "${K[@]}"
refuses "known: what does not count" $F 's/^(sample 400.*)/\1\nsample 1,10 runtime.selectgo;main.noneWait/' "${K[@]}"
refuses "known: another caller" $F 's/main.recvWait;main.main/main.recvWait;main.nobody;main.main/' "${K[@]}"
refuses "known: another caller at the root" $F 's/main.recvWait;main.main/main.recvWait;main.nobody/' "${K[@]}"
refuses "known: another period" $F 's/count 1$/count 77/' "${K[@]}"
refuses "known: another leaf" $F 's/runtime.chanrecv1;//' "${K[@]}"
right sampled.truth <<-END
	block main.recvWait runtime.chanrecv1 1280 1280 2560000000 2560000000 8000 560000000000000 32 2000000
END
right sampled.block.pb.gz <<-END
	types contentions/count delay/nanoseconds
	period contentions/count 1
	sample 1400,2600000000 runtime.chanrecv1;main.recvWait;main.main
END
K=("${KNOWN[@]}" -kind block -sampled "$D/sampled.truth" "$D/sampled.block.pb.gz")
accepts "known, sampled" "${K[@]}"
refuses "known, sampled: half as many again" sampled.block.pb.gz 's/1400,2600000000/2750,2600000000/' "${K[@]}"
refuses "known, sampled: a quarter longer" sampled.block.pb.gz 's/2600000000/3200000000/' "${K[@]}"

refuses "known: a program that did nothing" waits.truth 's/ [0-9]+/ 0/g' "${KNOWN[@]}" "$D/waits.truth" "$D/none.block.pb.gz"

{
	for i in a b c d; do echo "label user $i block 20 22"; done
	echo "goid 7 block 40 42"
	echo "goid 8 block 40 42"
} | right labels.of.waits
right labels.block.pb.gz <<-END
	types contentions/count delay/nanoseconds
	period contentions/count 1
	sample 21,1000 runtime.chanrecv1;main.work user:a tier:back goid=7 reason:chan_receive
	sample 20,1000 runtime.chanrecv1;main.work user:b tier:back goid=7 reason:chan_receive
	sample 22,1000 runtime.chanrecv1;main.work user:c tier:back goid=8 reason:chan_receive
	sample 20,1000 runtime.chanrecv1;main.work user:d tier:back goid=8 reason:chan_receive
	sample 9,1000 runtime.chanrecv1;main.work goid=8 reason:select
END
K=(judge_labels "$D/labels.of.waits" "$D/labels.block.pb.gz" 'chan receive')
F2=labels.block.pb.gz
accepts "labels of waits" "${K[@]}"
refuses "labels of waits: one is another's" $F2 's/user:a/user:b/' "${K[@]}"
refuses "labels of waits: one of two labels is lost" $F2 's/ tier:back//' "${K[@]}"
refuses "labels of waits: a tenth more" $F2 's/sample 22,/sample 24,/' "${K[@]}"
refuses "labels of waits: another goroutine's" $F2 's/goid=7/goid=8/' "${K[@]}"
refuses "labels of waits: another reason" $F2 's/chan_receive/select/' "${K[@]}"
refuses "labels of waits: no samples" $F2 '/^sample/d' "${K[@]}"
refuses "labels of waits: the truth names fewer" labels.of.waits '$d' "${K[@]}"

right before.block.pb.gz <<-END
	types contentions/count delay/nanoseconds
	period contentions/count 1
	sample 10,100000000 runtime.chanrecv1;main.recvWait;main.main
END
sed -E 's/ 600,6030000000/ 610,6130000000/' "$D/$F.txt" | right after.block.pb.gz
G=("$PPROFCHECK" contention "$D/before.block.pb.gz" "$D/after.block.pb.gz" "$D/$F")
accepts contention "${G[@]}"
refuses "contention: 5 % more time" $F 's/6030000000/6363000000/' "${G[@]}"
refuses "contention: what was before" $F 's/ 600,6030000000/ 610,6130000000/' "${G[@]}"
refuses "contention: one is missing" $F '/lockWait/d' "${G[@]}"
refuses "contention: another caller" $F 's/main.lockWait;main.main/main.lockWait;main.other/' "${G[@]}"

right all.mutex.pb.gz <<-END
	types contentions/count delay/nanoseconds
	period contentions/count 1
	sample 9000,900000000 sync.(*Mutex).Unlock;main.logger
	sample 3000,2700000000 sync.(*Mutex).Unlock;main.commit
END
right fifth.mutex.pb.gz <<-END
	types contentions/count delay/nanoseconds
	period contentions/count 5
	sample 8900,880000000 sync.(*Mutex).Unlock;main.logger
	sample 3150,2800000000 sync.(*Mutex).Unlock;main.commit
END
A=("$PPROFCHECK" fraction -of 5 -off 0.02 "$D/all.mutex.pb.gz" "$D/fifth.mutex.pb.gz")
accepts "one contention in five" "${A[@]}"
refuses "one contention in five: a third of the delay is missing" all.mutex.pb.gz 's/2700000000/1500000000/' "${A[@]}"
refuses "one contention in five: a stack is missing" all.mutex.pb.gz '/logger/d' "${A[@]}"
refuses "one contention in five: a stack is invented" fifth.mutex.pb.gz '$s/(.*)/\1\nsample 900,90000000 sync.(*Mutex).Unlock;main.nobody/' "${A[@]}"
refuses "one contention in five: a quarter more" all.mutex.pb.gz 's/ 9000,/ 12000,/' "${A[@]}"

# ---- estimates of windows ------------------------------------------------------------------------

# A program that allocates evenly for 10 s, watched from 2 to 8.
{
	echo "site main.large heap 1000"
	echo "site main.small heap 10"
	for ((i = 0; i <= 100; i++)); do
		echo "at ${i}00000000 ${i}00000000 $((i * 10000)) $((i * 500000))"
	done
} | right log
right est.heap.pb.gz <<-END
	types alloc_objects/count alloc_space/bytes
	period space/bytes 4096
	time 2000000000 6000000000
	comment budget: 5% of the target's CPU time; took 1 ms of 20 ms (5%): 9 hits of 600 ns each (measured), 300 windows of at most 8 ms, 3.6% of the time observed
	comment error: all sites alloc_space 904000000 +- 7000000 (0.8%)
	comment error: main.large x.go:1 alloc_space 606000000 +- 6000000 (1.0%)
	comment error: main.small x.go:2 alloc_space 298000000 +- 4000000 (1.3%)
	sample 606000,606000000 main.large;main.main bytes=1000
	sample 29800000,298000000 main.small;main.main bytes=10
END
B=("$PPROFCHECK" budget -kind heap -type alloc_space -sure 0.5 -judged 2 "$D/log" "$D/est.heap.pb.gz")
E=est.heap.pb.gz
accepts budget "${B[@]}"
refuses "budget: errors a tenth as large" $E 's/\+- ([0-9]+)0 \([0-9.]+/+- \1 (0.1/' "${B[@]}"
# Observed for six seconds of seven: that is what its numbers are of.
sed 's/300 windows of.*/the first 6.000 s observed: this kernel cannot probe in windows/; s/^time .*/time 2000000000 7000000000/' "$D/$E.txt" | right first.heap.pb.gz
F=("$PPROFCHECK" budget -kind heap -type alloc_space -sure 0.5 -judged 2 "$D/log" "$D/first.heap.pb.gz")
accepts "budget: of the first part" "${F[@]}"
refuses "budget: of the first part: it is half as long" first.heap.pb.gz 's/first 6.000/first 3.000/' "${F[@]}"
refuses "budget: of the first part: that is not said" first.heap.pb.gz 's/the first 6.*//' "${F[@]}"
refuses "budget: a third too few" $E 's/606000,606000000/400000,400000000/;s/606000000 \+- 6000000 \(1.0/400000000 +- 6000000 (1.5/;s/904000000/698000000/;s/\(0.8/(1.0/' "${B[@]}"
refuses "budget: half of it is another site's" $E 's/606000,606000000/303000,303000000/;s/29800000,298000000 m/60100000,601000000 m/;s/606000000 \+- 6000000 \(1.0/303000000 +- 6000000 (2.0/;s/298000000 \+- 4000000 \(1.3/601000000 +- 4000000 (0.7/' "${B[@]}"
refuses "budget: an error is not stated" $E '/error: main.large/d' "${B[@]}"
refuses "budget: a site is missing" $E '/main.large;/d' "${B[@]}"
refuses "budget: a site is missing, error and all" $E '/main.large/d' "$PPROFCHECK" budget -kind heap -type alloc_space -sure 0.5 "$D/log" "$D/est.heap.pb.gz"
refuses "budget: errors too large to say anything" $E 's/\+- 6000000 \(1.0/+- 600000000 (99.0/;s/\+- 4000000 \(1.3/+- 400000000 (134.2/' "${B[@]}"
refuses "budget: a site is invented" $E '$s/(.*)/\1\nsample 900000,900000000 main.nobody;main.main bytes=1000/' "${B[@]}"
refuses "budget: a site is invented, and stated" $E '$s/(.*)/\1\nsample 900000,900000000 main.nobody;main.main bytes=1000/;s/904000000/1804000000/;s/\(0.8/(0.4/' "${B[@]}"
refuses "budget: objects of one three times" $E 's/29800000,/89400000,/' "${B[@]}"
refuses "budget: an estimate that is not the samples'" $E 's/606000000 \+- 6000000 \(1.0/206000000 +- 6000000 (2.9/' "${B[@]}"
refuses "budget: a sum that is not the samples'" $E 's/904000000 \+- 7000000 \(0.8/950000000 +- 7000000 (0.7/' "${B[@]}"
refuses "budget: the wrong percentage" $E 's/\(1.0%\)/(9.0%)/' "${B[@]}"
refuses "budget: an error twice" $E 's/^(comment error: main.large.*)/\1\n\1/' "${B[@]}"
refuses "budget: no error of all sites" $E '/error: all/d' "${B[@]}"
# Of a site that one window alone saw no error is known. Then the sum of all bounds it.
sed -E 's/606000000 \+- .*/606000000 +- unknown/' "$D/$E.txt" | right unknown.heap.pb.gz
B2=("$PPROFCHECK" budget -kind heap -type alloc_space -sure 0.5 "$D/log" "$D/unknown.heap.pb.gz")
accepts "budget: an unknown error" "${B2[@]}"
refuses "budget: an unknown error, and three times as much" unknown.heap.pb.gz 's/606000,606000000/1818000,1818000000/' "${B2[@]}"
refuses "budget: an unknown error, and three times as much stated" unknown.heap.pb.gz 's/606000,606000000/1818000,1818000000/;s/606000000 \+-/1818000000 +-/' "${B2[@]}"
refuses "budget: an unknown error, and three times as much in all" unknown.heap.pb.gz 's/606000,606000000/1818000,1818000000/;s/606000000 \+-/1818000000 +-/;s/904000000 \+- 7000000 \(0.8/2116000000 +- 7000000 (0.3/' "${B2[@]}"
refuses "budget: a log that ends too early" log '/^at (7|8|9|10)[0-9]00000000/d' "${B[@]}"

right whole.comments <<-END
	error: all sites alloc_space 1520000000 +- 20000000 (1.9%)
	unseen: 100 allocations of at least 12000000 bytes
END
Q=(judge_whole "$D/log" "$D/whole.comments")
accepts "all bytes in windows" "${Q[@]}"
refuses "all bytes in windows: a third less" whole.comments 's/1520000000/1000000000/' "${Q[@]}"
refuses "all bytes in windows: a third more" whole.comments 's/1520000000/2050000000/' "${Q[@]}"
refuses "all bytes in windows: the error is unknown" whole.comments 's/20000000/unknown/' "${Q[@]}"
refuses "all bytes in windows: not told" whole.comments 's/^/# /' "${Q[@]}"
refuses "all bytes in windows: no log" log 's/^/# /' "${Q[@]}"

# ---- equal profiles ------------------------------------------------------------------------------

right one.pb.gz <"$P.txt"
right read.pb.gz <"$P.txt"
{ cat "$P.txt"; echo "sample 0,0 runtime.profile;main.own"; } | right two.pb.gz
R=(judge_read "$D/one.pb.gz" "$D/read.pb.gz" "$D/two.pb.gz")
accepts "heap read" "${R[@]}"
refuses "heap read: one value" read.pb.gz 's/ 7,672 / 8,768 /' "${R[@]}"
refuses "heap read: a sample is missing" read.pb.gz '/acquireSudog/d' "${R[@]}"
refuses "heap read: one is invented" read.pb.gz '$s/(.*)/\1\nsample 0,0 runtime.x;main.invented/' "${R[@]}"
refuses "heap read: another caller" read.pb.gz 's/main.alloc64;main.other/main.alloc64;main.another/' "${R[@]}"
refuses "heap read: another size" read.pb.gz 's/bytes=96/bytes=112/' "${R[@]}"
refuses "heap read: no samples" one.pb.gz '/^sample/d' "$PPROFCHECK" equal "$D/one.pb.gz" "$D/one.pb.gz"
V=("$PPROFCHECK" check -merged "$D/one.pb.gz")
accepts check "${V[@]}"
refuses "check: equal samples were not added up" one.pb.gz 's/^(sample 7,.*)/\1\n\1/' "${V[@]}"
refuses "check: a pc outside of its mapping" one.pb.gz '1s/^/mapping 4194304 4194320\n/' "${V[@]}"
refuses "check: an id is left out" one.pb.gz '1s/^/skip 1\n/' "${V[@]}"
refuses "check: a name that is not UTF-8" one.pb.gz "s/alloc16/alloc\xff16/" "${V[@]}"
refuses "check: a comment that cannot be printed" one.pb.gz '1s/^/comment all of it\x01\x02\n/' "${V[@]}"
refuses "check: a label that is not UTF-8" one.pb.gz "s/bytes=96/bytes=96 kind:\xff/" "${V[@]}"

# ---- a run, and its target ----

right run.said <<-END
	goprof-bpf: profiling pid 7
	goprof-bpf: cpu: 100 Hz
	goprof-bpf: pid 7 (x) exited: writing what was collected
END
echo "$D/one.pb.gz" | right run.paths
R=(judge_run "$D/run.said" "$D/run.paths" 3 "0 3" 1 'pid 7 .* exited')
accepts run "${R[@]}"
refuses "run: nothing is said" run.said '/exited/d' "${R[@]}"
refuses "run: it is said twice" run.said '/exited/s/(.*)/\1\n\1/' "${R[@]}"
refuses "run: it is said in a line that every run says" run.said '/exited/s/pid 7 .x. /profiling &/' "${R[@]}"
refuses "run: a sanitizer speaks" run.said '1s/^/x.c:1: runtime error: overflow\n/' "${R[@]}"
refuses "run: no profile" run.paths 'd' "${R[@]}"
refuses "run: one too many" run.paths 's/(.*)/\1\n\1/' "${R[@]}"
refuses "run: one that is not valid" one.pb.gz '1s/^/skip 1\n/' "${R[@]}"
refuses "run: any number, and one of them is not valid" one.pb.gz '1s/^/skip 1\n/' judge_run "$D/run.said" "$D/run.paths" 3 3 -
asks "run: another status" "not ok" "judge judge_run $D/run.said $D/run.paths 1 '0 3' 1; outcome x"
asks "run: a status that looks like one of them" "not ok" "judge judge_run $D/run.said $D/run.paths 13 '0 3 137' 1; outcome x"
asks "run: no stderr" "not ok" "judge judge_run $D/none $D/run.paths 3 3 1; outcome x"
echo "$D/none.pb.gz" >"$D/none.paths"
asks "run: a profile that is not there" "not ok" "judge judge_run $D/run.said $D/none.paths 3 3 1; outcome x"
asks "run: no stdout" "not ok" "judge judge_run $D/run.said $D/none 3 3 -; outcome x"

# target OUTPUT [TRIES]: a program that says this when it is asked
target() { echo "start bash -c 'trap \"$1\" USR1; echo ready; while :; do sleep 0.01; done'; judge judge_unharmed \$PID \$OUT ${2:-400}; outcome x"; }
asks "a target that goes on" "ok" "$(target 'echo good')"
asks "one that computes wrongly" "not ok" "$(target 'echo wrong')"
asks "one that computed wrongly before" "not ok" "$(target 'echo wrong; echo good')"
asks "one that does not answer" "not ok" "$(target '' 3)"
asks "one that has ended" "not ok" 'echo good >$TMP/out; true & PID=$!; wait $PID; judge judge_unharmed $PID $TMP/out 3; outcome x'

right still.block.pb.gz <"$D/before.block.pb.gz.txt"
W=("$PPROFCHECK" grew -addresses -tolerance 0.01 -still 'main\.' -but '(^| )runtime\.unlock ' "$D/before.block.pb.gz" "$D/still.block.pb.gz")
accepts grew "${W[@]}"
refuses "grew: no samples" still.block.pb.gz '/^sample/d' "$PPROFCHECK" grew "$D/still.block.pb.gz" "$D/still.block.pb.gz"
refuses "grew: one profile alone" still.block.pb.gz 's/ 10,/ 11,/' "$PPROFCHECK" grew "$D/still.block.pb.gz"
refuses "grew: a count" still.block.pb.gz 's/ 10,/ 11,/' "${W[@]}"
refuses "grew: 5 % more time" still.block.pb.gz 's/100000000/105000000/' "${W[@]}"
refuses "grew: one is missing" still.block.pb.gz '/recvWait/d' "${W[@]}"
{ cat "$D/before.block.pb.gz.txt"; echo "sample 1,3000 runtime.unlock;main.calls"; } | right still.block.pb.gz
accepts "grew, with a lock of the runtime's own" "${W[@]}"
refuses "grew: one is new" still.block.pb.gz 's/runtime.unlock/sync.unlock/' "${W[@]}"
refuses "grew: nothing stands still" before.block.pb.gz 's/main\.//g' "${W[@]}"

right goroutines.own <<-END
	goroutine 1 [chan receive, 5 minutes]:
	main.main()

	goroutine 7 [select] {"a": "b"}:
	main.work(...)
	created by main.main
END
right goroutines <"$D/goroutines.own.txt"
accepts goroutines "$PPROFCHECK" goroutines "$D/goroutines.own" "$D/goroutines"
refuses "goroutines: another state" goroutines 's/select/sleep/' "$PPROFCHECK" goroutines "$D/goroutines.own" "$D/goroutines"
refuses "goroutines: one is missing" goroutines '/goroutine 7/,$d' "$PPROFCHECK" goroutines "$D/goroutines.own" "$D/goroutines"
refuses "goroutines: a frame" goroutines 's/^main.work/main.other/' "$PPROFCHECK" goroutines "$D/goroutines.own" "$D/goroutines"
refuses "goroutines: a label" goroutines 's/"b"/"c"/' "$PPROFCHECK" goroutines "$D/goroutines.own" "$D/goroutines"
finish
