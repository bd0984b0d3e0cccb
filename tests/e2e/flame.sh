#!/bin/bash
# The page of --format flame in a real browser, without a network, driven with mouse and keys: a
# profile of a running program, whose figures are those of `go tool pprof`; a known one, whose every
# figure is asked for; names that are meant to break out; 200,000 stacks. PICTURES=DIR keeps pictures.
set -u
. tests/support/lib.sh
need_root
need_bpf
need_go
command -v chromium >/dev/null || skip_all "needs chromium: 'make deps' installs it"
mkprofile=$O/tests/mkprofile

# browse FILE: commands on stdin, answers in $TMP/said. A network namespace of its own has no network.
browse() { unshare -n "$O/tools/browse" "$@" >"$TMP/said" 2>"$TMP/err"; }
# says NAME TEXT...: the answers, one each, without the quotes of JSON's strings.
says() {
	local name=$1
	shift
	printf '%s\n' "$@" >"$TMP/want"
	sed -e 's/^"\(.*\)"$/\1/' "$TMP/said" | diff "$TMP/want" - >"$TMP/diff"
	if [ $? != 0 ] || [ -s "$TMP/err" ]; then
		fail "flame/$name" "$(head -c 300 "$TMP/err" | tr '\n' ' ') $(grep '^[<>]' "$TMP/diff" | head -n 6 | tr '\n' '|')"
	else
		pass "flame/$name"
	fi
}

# ---- a known profile ----

"$mkprofile" heap flame "$TMP/heap.html" || fail flame/written mkprofile
q() { echo "document.getElementById('$1').$2"; }
ALL='alloc_objects\t2,051\t100% of all\t\nalloc_space\t4 MB\t100% of all\t\ninuse_objects\t1,024\t100% of all\t'
browse "$TMP/heap.html" <<-END
	hover main.main
	hover main.handle[...]
	hover bytes.growSlice
	hover bytes.(*Buffer).grow
END
says "figures at the pointer" \
	"main.main\\n/src/main.go:12\\ntotal\\t512 kB\\t100% of all\\t100% of parent\\nself\\t0\\t0% of all\\t\\n$ALL" \
	"main.handle[...]\\n/src/main.go:40\\ntotal\\t512 kB\\t100% of all\\t100% of parent\\nself\\t256 kB\\t50.00% of all\\t\\n$ALL" \
	'bytes.growSlice\nbytes/buffer.go:240\ntotal\t256 kB\t50.00% of all\t100% of parent\nself\t256 kB\t50.00% of all\t\nalloc_objects\t1,027\t50.07% of all\t\nalloc_space\t3.50 MB\t87.50% of all\t\ninuse_objects\t512\t50.00% of all\t' \
	'bytes.(*Buffer).grow\nbytes/buffer.go:150\ntotal\t256 kB\t50.00% of all\t50.00% of parent\nself\t0\t0% of all\t\nalloc_objects\t1,027\t50.07% of all\t\nalloc_space\t3.50 MB\t87.50% of all\t\ninuse_objects\t512\t50.00% of all\t'

width='Math.round(flame.where("bytes.growSlice").w * 100 / flame.where("main.main").w)'
browse "$TMP/heap.html" <<-END
	eval $width
	click bytes.(*Buffer).grow
	eval $width
	eval [$(q crumbs textContent), location.hash].join(" ")
	key Escape
	eval [$(q crumbs lastChild.textContent), $width].join(" ")
	back
	eval $width
	back
	eval [$width, location.hash].join(" ")
	key ArrowDown
	key ArrowDown
	key ArrowDown
	eval $(q status textContent)
	key Enter
	key 0
	eval [flame.state().zoom, $width].join(" ")
	press #crumbs
END
says "zoom, with mouse, keys and the browser's back" 50 100 \
	'all›main.main›main.handle[...]›bytes.(*Buffer).grow #zoom=3' 'main.handle[...] 50' 100 '50 ' \
	'main.handle[...]  512 kB, 100% of all, self 256 kB  ·  /src/main.go:40' '0 50'

browse "$TMP/heap.html" <<-END
	eval [...document.querySelectorAll("#types button")].map((b) => b.innerText.replace("\n", " ")).join(", ")
	eval $width
	press #types button:nth-child(2)
	eval [flame.state().type, $width, location.hash].join(" ")
	hover main.handle[...]
	key 1
	eval [flame.state().type, $width, document.querySelector("#types [aria-checked=true] span").innerText].join(" ")
END
says "every sample type" 'alloc_objects 2,051, alloc_space 4 MB, inuse_objects 1,024, inuse_space 512 kB' 50 '1 88 #type=alloc_space' \
	'main.handle[...]\n/src/main.go:40\ntotal\t4 MB\t100% of all\t100% of parent\nself\t512 kB\t12.50% of all\t\nalloc_objects\t2,051\t100% of all\t\ninuse_objects\t1,024\t100% of all\t\ninuse_space\t512 kB\t100% of all\t' \
	'0 50 alloc_objects'

browse "$TMP/heap.html" <<-END
	press #query
	type GROW
	wait $(q found innerText)
	eval $(q found innerText) + ": " + $(q found title)
	eval location.hash
	key Escape
	eval $(q found innerText) + "."
	key /
	type main.go
	wait $(q found innerText)
	eval $(q found innerText)
	key Escape
	press #regex
	key /
	type ^bytes\..*slice$
	wait $(q found innerText)
	eval $(q found innerText) + ": " + $(q found title)
	key Escape
	key /
	type ([
	wait $(q found innerText)
	eval $(q found innerText)
	key Escape
	key /
	type nowhere
	wait $(q found innerText)
	eval $(q found innerText)
END
says "search, as text and as a pattern" '50.00%: 256 kB in stacks with one of 2 frames that match' '#q=GROW' . 100% \
	'50.00%: 256 kB in stacks with one of 1 frames that match' 'not a regular expression' none

names='flame.drawn().map((f) => f.name).join(" | ")'
browse "$TMP/heap.html" <<-END
	press #lines
	eval $names
	press #lines
	press #callers
	eval $names
	hover main.handle[...]
	press #callers
	press #flip
	eval flame.where("main.main").y > flame.where("bytes.growSlice").y
	press #flip
	eval [...document.querySelectorAll("#group option")].map((o) => o.innerText).join(", ")
	eval { const g = document.getElementById("group"); g.value = g.options[2].value; g.dispatchEvent(new Event("change")); }
	eval $names
END
says "lines, callers, flip, labels" \
	'all | main.main main.go:12 | main.handle[...] main.go:40 | bytes.(*Buffer).grow buffer.go:150 | bytes.growSlice buffer.go:240' \
	'all | bytes.growSlice | main.handle[...] | bytes.(*Buffer).grow | main.main | main.handle[...] | main.main' \
	'main.handle[...]\n/src/main.go:40\ntotal\t256 kB\t50.00% of all\t50.00% of callee\nself\t0\t0% of all\t\nalloc_objects\t1,024\t49.93% of all\t\nalloc_space\t512 kB\t12.50% of all\t\ninuse_objects\t512\t50.00% of all\t' \
	true 'not shown, bytes at the leaf, bytes at the root' true \
	'all | 512 | main.main | main.handle[...] | bytes.(*Buffer).grow | bytes.growSlice'

# ---- narrow windows, long names ----

long=main.$(printf 'Very[long.Type,%.0s' $(seq 400))
sed "s#^\"bytes.growSlice\"#\"$long\"#; s#^\"/src/main.go\"#\"$(printf '/dir%.0s' $(seq 400))/main.go\"#" "$TMP/heap.html" >"$TMP/long.html"
inside='((r) => r.left >= 0 && r.top >= 0 && r.right <= innerWidth && r.bottom <= innerHeight)(document.getElementById("tip").getBoundingClientRect())'
whole='[...document.querySelectorAll("#tip td")].every((d) => d.getBoundingClientRect().right <= document.getElementById("tip").getBoundingClientRect().right)'
down=$(printf 'key ArrowDown\n%.0s' 1 2 3 4 5)
browse "$TMP/long.html" <<-END
	size 400x800
	$down
	eval [flame.drawn().length, $inside, $whole].join(" ")
	eval document.documentElement.scrollWidth <= innerWidth
	eval $(q theme getBoundingClientRect'().top') < $(q facts getBoundingClientRect'().bottom')
	size 1280x700
	$down
	eval [$inside, $whole].join(" ")
	eval document.querySelectorAll("#legend button").length
END
says "narrow windows, long names" '5 true true' true true 'true true' 0

# ---- light and dark, contrast, paper ----

theme='[flame.state().dark, getComputedStyle(document.body).backgroundColor].join(" ")'
contrast='(() => { const lum = (c) => [1, 3, 5].map((i) => parseInt(c.slice(i, i + 2), 16) / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((a, v, i) => a + v * [0.2126, 0.7152, 0.0722][i], 0); const ratio = (a, b) => { const [x, y] = [lum(a), lum(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); }; const p = flame.palette(); return [0, 1].map((d) => Math.min(...p.fills.map((f) => ratio(f[d], p.text[d])), ratio(p.match[d], p.matchText[d]))).map((r, i) => r >= [7, 4.5][i] || r).join(" "); })()'
browse -dark "$TMP/heap.html" <<-END
	eval $theme
	light
	eval $theme
	press #theme
	eval $theme
	eval $contrast
	pdf $TMP/heap.pdf
	eval $theme
END
says "light and dark, by the system and by hand; contrast" 'true rgb(20, 23, 28)' 'false rgb(255, 255, 255)' \
	'true rgb(20, 23, 28)' 'true true' 'true rgb(20, 23, 28)'
[ "$(head -c 5 "$TMP/heap.pdf")" = %PDF- ] && [ "$(stat -c %s "$TMP/heap.pdf")" -gt 10000 ] && pass "flame/prints" || fail flame/prints "no PDF"

# ---- names that mean harm, nothing at all, very much ----

"$mkprofile" hostile flame "$TMP/hostile.html" && "$mkprofile" empty flame "$TMP/empty.html" || fail flame/written mkprofile
browse "$TMP/hostile.html" <<-END
	eval document.title
	eval flame.drawn().map((f) => f.name + " @ " + f.where).join(" | ")
	eval document.scripts.length
	eval document.querySelectorAll("img, iframe, object").length
	hover evil;�\u{1b}[31m\u{a}\u{9b}
END
says "names that mean harm" Profile \
	"all @  | </script><script>document.title='pwned'</script>\\\\u{2028}\\\\u{202e}gnp @ <b>\\\"'&:7 | [server] @ /srv/bin/server  0x7fffff | evil;�\\\\u{1b}[31m\\\\u{a}\\\\u{9b} @ ���.go:9223372036854776000" \
	2 0 "evil;�\\\\u{1b}[31m\\\\u{a}\\\\u{9b}\\n���.go:9223372036854776000\\ntotal\\t2562047.79 hrs\\t100% of all\\t100% of parent\\nself\\t2562047.79 hrs\\t100% of all\\t"
sed '/^"total"/q' "$TMP/heap.html" >"$TMP/cut.html" # in the data
browse "$TMP/cut.html" <<-END
	eval $(q broken offsetHeight) > 0 && $(q broken innerText)
END
says "a file that was cut" "Reading the profile. If this stays, the file was cut, or the browser is too old."
browse "$TMP/empty.html" <<-END
	eval $(q broken hidden) + " " + $(q empty innerText)
	eval flame.totals()
END
says "nothing" 'true Nothing was sampled.' '[{"total":0,"type":"cpu","unit":"nanoseconds"}]'
"$mkprofile" big flame "$TMP/big.html" || fail flame/written mkprofile
browse "$TMP/big.html" <<-END
	wait flame.state().frames > 4000000
	eval flame.totals()[0].total
	eval flame.drawn()[1].name
	eval ((d) => d.length > 3 && d.every((g, i) => /^pkg\d+$/.test(g[0]) && (!i || g[1] <= d[i - 1][1])) && d.reduce((a, g) => a + g[1], 0))(flame.drawn()[1].holds)
	press #query
	type pkg13.f
	wait $(q found innerText)
	eval /^2[0-9]\.[0-9]+%$/.test($(q found innerText))
	eval ((f) => (f.matches / 2000).toFixed(2) + "%" === $(q found innerText))(flame.drawn()[1])
END
says "200,000 stacks" 200000 '5,000 frames too narrow to draw' 200000 true true
[ "$(stat -c %s "$TMP/big.html")" -lt 30000000 ] && pass "flame/compact" || fail flame/compact "$(stat -c %s "$TMP/big.html") bytes"

# ---- a program that runs: every total and the largest functions are those of pprof ----

demo=$(subject 1.22.12 demo -ldflags='-s -w') && cp "$demo" "$TMP/demo" && start_quiet "$TMP/demo" || { fail flame/demo "cannot run it"; finish; }
"$GOPROF" -p "$PID" --cpu --heap --block --budget 0 -d 2s -o "$TMP/out" --format pprof --format flame >"$TMP/paths" 2>"$TMP/err"
rc=$?
# What may be lost is for other tests: here it is that what there is gets drawn.
{ [ $rc = 0 ] || [ $rc = 3 ]; } && [ "$(wc -l <"$TMP/paths")" = 6 ] &&
	pass flame/collected || fail flame/collected "exit $rc: $(head -n 2 "$TMP/err" | tr '\n' ' ')"
export PPROF_TMPDIR=$TMP PPROF_BINARY_PATH=$TMP/none
unit_of() { case $1 in *_space) echo B ;; cpu|delay) echo ns ;; *) echo auto ;; esac; }

# The functions with more than a twentieth, flat, as "NAME VALUE".
theirs() { # FILE TYPE
	gorun 1.27.4 tool pprof -top -unit "$(unit_of "$2")" -sample_index="$2" -nodefraction=0.05 -edgefraction=0 -nodecount=0 "$1" 2>/dev/null |
		sed -n '/ flat%/,$p' | sed -E 's/ \((partial-)?inline\)$//' |
		awk 'NR > 1 && $1 + 0 > 0 && $2 + 0 > 5 { n = $1; sub(/[a-zB]+$/, "", n); for (k = 0; k < 5; k++) sub(/^ *[^ ]+ +/, ""); print $0, n }' | sort
}
for kind in cpu heap block; do
	page=$TMP/out/demo.$PID.$kind.html
	types=$("$PPROFCHECK" sum "${page%.html}.pb.gz" | cut -d' ' -f2)
	{
		echo "eval [document.title, $(q kind innerText), $(q comm innerText), $(q facts 'innerText.replace(/ window.*/, "")')].join(\", \")"
		echo "eval flame.totals().map((t) => t.total + ' ' + t.type).join(', ')"
		echo "press #callers"
		i=0
		for t in $types; do
			echo "press #types button:nth-child($((i = i + 1)))"
			echo "eval flame.drawn().filter((f) => f.total > flame.totals()[flame.state().type].total / 20).map((f) => f.name + ' ' + f.total).join('|')"
		done
		[ -z "${PICTURES:-}" ] || printf '%s\n' "press #callers" "shot $PICTURES/$kind.png"
	} >"$TMP/script"
	browse "$page" <"$TMP/script"
	sums=$("$PPROFCHECK" sum "${page%.html}.pb.gz" | cut -d' ' -f1,2 | paste -sd, | sed 's/,/, /g')
	title="$(echo "${kind^}" | sed 's/Cpu/CPU/') profile"
	want="\"$title: demo $PID, $title, demo, pid ${PID}go1.22.12, stripped"
	line=$(sed -n 1p "$TMP/said")
	case $line in "$want"*) pass "flame/header of $kind" ;; *) fail "flame/header of $kind" "$line, not $want" ;; esac
	[ "$(sed -n 2p "$TMP/said")" = "\"$sums\"" ] && pass "flame/totals of $kind" ||
		fail "flame/totals of $kind" "$(sed -n 2p "$TMP/said"), not $sums"
	i=2
	for t in $types; do
		theirs "${page%.html}.pb.gz" "$t" >"$TMP/theirs"
		i=$((i + 1))
		sed -n "${i}p" "$TMP/said" | tr -d '"' | tr '|' '\n' | sort >"$TMP/all"
		# All rows of the callers' tree: the first has each function with what ends in it.
		# Nothing may be in use at the end of so short a look: then pprof has no function either.
		if { [ -s "$TMP/theirs" ] || case ", $sums," in *", 0 $t,"*) true ;; *) false ;; esac; } && ! grep -vxFf "$TMP/all" "$TMP/theirs" >"$TMP/missing"; then
			pass "flame/functions of $t"
		else
			fail "flame/functions of $t" "not there: $(head -n 3 "$TMP/missing" | tr '\n' '|') $(head -n 3 "$TMP/all" | tr '\n' '|')"
		fi
	done
	[ ! -s "$TMP/err" ] || fail "flame/$kind is clean" "$(head -n 2 "$TMP/err")"
done

# The root at the bottom is still there in a window that became smaller.
browse "$TMP/out/demo.$PID.cpu.html" <<-END
	size 1280x900
	key f
	size 1280x330
	eval $(q scroll scrollHeight) > $(q scroll clientHeight)
	eval flame.where("main.main").y < $(q scroll getBoundingClientRect'().bottom')
END
says "the root stays in a window that shrinks" true true

# ---- the judge must be able to say no ----

refused() { # NAME PATTERN HTML
	echo "$3" >"$TMP/bad.html"
	if ! browse "$TMP/bad.html" <<<"eval new Promise((done) => setTimeout(done, 200))" && grep -q "$2" "$TMP/err"; then
		pass "flame/judge: $1"
	else
		fail "flame/judge: $1" "it did not complain: $(head -c 200 "$TMP/err")"
	fi
}
refused "a complaint" console: '<!DOCTYPE html><script>console.error("x")</script>'
refused "an exception" exception: '<!DOCTYPE html><script>undefined.x</script>'
refused "a request" request: '<!DOCTYPE html><img src="http://192.0.2.1/x.png">'
refused "a broken policy" log: "<!DOCTYPE html><meta http-equiv=Content-Security-Policy content=\"script-src 'none'\"><script>1</script>"
finish
