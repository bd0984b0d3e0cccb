#!/bin/bash
# heapdump with what is no heap dump, a damaged one, or outputs that cannot be written: one clear
# sentence, the right status, and no file that is not whole.
set -u
. tests/support/lib.sh
mkdump=$O/tests/mkdump
# What was wrong since the last result is told by then.
result() { JUDGES_ASKED=$((JUDGES_ASKED + 1)); outcome "heapdump_bad/$1"; }
D=$TMP/d
mkdir "$D"
cd "$D" || exit 1
for kind in small long count deep top nought newer; do "$mkdump" $kind >$kind || wrong "mkdump $kind"; done
: >empty
head -c 300 small >cut
head -c 10 small >stub
head -c 1 small >byte
big=$TMP/ring
"$mkdump" cycle 200000 >"$big"

# says STATUS TEXT ARG...: this status, and one line on stderr, which has the text. No file is left or changed.
says() {
	local status=$1 text=$2 before rc
	shift 2
	before=$(md5sum ./* | sort)
	timeout 60 "$GOPROF" heapdump "$@" >"$TMP/stdout" 2>"$TMP/err" </dev/null
	rc=$?
	[ $rc = "$status" ] || wrong "$*: status $rc and not $status"
	[ "$(wc -l <"$TMP/err")" = 1 ] || wrong "$*: $(wc -l <"$TMP/err") lines: $(head -c 300 "$TMP/err")"
	[[ $(cat "$TMP/err") == *"$text"* ]] || wrong "$*: $(head -c 300 "$TMP/err")"
	[ "$before" = "$(md5sum ./* | sort)" ] || wrong "$*: files changed"
	[ -z "$(find . -name '.*' -type f)" ] || wrong "$*: left $(find . -name '.*' -type f)"
}

# Pipes that stall meanwhile: before the first byte, while they are copied, and while they are read.
mkfifo "$TMP/none.fifo" "$TMP/copied.fifo" "$TMP/read.fifo"
STALLED=()
for name in none copied read; do
	case $name in read) set -- --pprof "$TMP/stalled.pb.gz" ;; *) set -- ;; esac
	TMPDIR=$TMP timeout 400 "$GOPROF" heapdump "$TMP/$name.fifo" "$@" >"$TMP/$name.out" 2>"$TMP/$name.err" &
	STALLED+=($!)
done
exec {none}>"$TMP/none.fifo" {copied}>"$TMP/copied.fifo" {read}>"$TMP/read.fifo"
head -c 200 small >&$copied
head -c 200 small >&$read
STALL_SECONDS=$SECONDS

says 1 "it is a directory" .
says 1 "only 0 bytes" empty
says 1 "only 10 bytes" stub
says 1 "no heap dump: only 1 byte" byte
rm byte
says 1 'does not begin with "go1.7 heap dump"' "$GOPROF"
says 1 "No such file" missing
says 1 "a heap dump of format go1.8, which is newer than go1.7" newer
printf 'go1.99 heap dump\nx' >newest
says 1 "a heap dump of format go1.99, which is newer than go1.7" newest
rm newest
# A dump, but packed.
gzip -c small >small.gz
says 1 "small.gz: it is compressed: unpack it, as in: zcat FILE | goprof-bpf heapdump -" small.gz
zcat small.gz | "$GOPROF" heapdump - >"$TMP/stdout" 2>"$TMP/err" || wrong "unpacked: $(cat "$TMP/err")"
printf '\3757zXZ\0\0\0\0\0\0\0\0\0\0\0\0' >small.xz
says 1 "unpack it, as in: xzcat FILE" small.xz
printf '\050\265\057\375\0\0\0\0\0\0\0\0\0\0\0\0' >small.zst
says 1 "unpack it, as in: zstdcat FILE" small.zst
rm small.gz small.xz small.zst
# What has no end is not copied.
TMPDIR=$TMP/none says 1 'does not begin with "go1.7 heap dump"' /dev/zero
result input

# What came before the damage is there.
says 3 "the dump ends in" cut
grep -q ' objects ' "$TMP/stdout" || wrong "cut: no summary"
says 3 "it says 1099511627776 bytes" long
says 3 "the dump ends in the function of the memory profile at offset" count
# Absurd numbers in a dump that goes on: what came before is there, and its offset is told.
at=$(($(stat -c %s small) - 1))
says 3 "offset $at: the memory profile has a stack of 2000 frames" deep
grep -q '^ *4 objects ' "$TMP/stdout" || wrong "deep: no objects"
says 3 "offset $at: the memory profile has a stack of 2000 frames" deep --pprof -
grep -q . "$TMP/stdout" || wrong "deep: no sites"
says 3 "offset 93: an object of 32 bytes at 0xffffffffffffffe0 ends behind the last address" top
grep -q '^ *1 object  ' "$TMP/stdout" || wrong "top: no objects"
# Either of two, and what HPROF cannot have.
says 3 "cut: the dump ends in" small cut
says 3 "cut: the dump ends in" cut small
grep -q '^Types' "$TMP/stdout" || wrong "cut, and small: nothing that grew"
says 3 "nought: loss: 1 object at address 0" nought --hprof /dev/null
"$GOPROF" heapdump cut --json >"$TMP/json" 2>/dev/null
grep -q '"whole": false' "$TMP/json" || wrong "cut: not told in JSON"
timeout 60 "$GOPROF" heapdump small --pprof out 2>/dev/null || wrong "small: status $?"
timeout 60 "$GOPROF" heapdump cut --holders out.cut 2>/dev/null
[ $? = 3 ] && [ -s out.cut ] || wrong "cut: no holders"
rm -f out out.cut
# The end mark is the last byte.
head -c -1 small >markless
says 3 "the dump ends at offset $(stat -c %s markless) without its end mark" markless
printf '\377\377\377\377\377\377\377\377\377\377\377\377' >>markless
says 3 "wrong kind in the record that begins at" markless
cat small small >two
for outputs in "" "--json" "--pprof /dev/null" "--holders /dev/null --pprof $TMP/x"; do
	# shellcheck disable=SC2086
	says 3 "the dump ends at offset $(stat -c %s small); not looked at: $(stat -c %s small) bytes behind it" two $outputs
done
rm markless two
result damage

# ---- outputs ----
says 1 "No space left" small --pprof /dev/full
says 1 "it is a directory" small --pprof "$TMP"
says 1 "that is the dump itself" small --pprof "$PWD/small"
says 1 "cannot write to its directory" small --holders none/out
says 2 "two outputs to the same file" small --holders out --pprof out
says 2 "two outputs to the same file" small --holders out --dot ./out
says 2 "two outputs to the same file" small --holders new --dot ./new
echo old >out
ln -s out link
says 2 "two outputs to the same file" small --holders link --dot out
rm link
says 2 "two outputs to the same file" small --holders - --json
says 2 "two outputs to the same file" small --dot - --path c000000000
says 2 "--format is of --pprof and --holders" small --format flame
says 2 "--format is of --pprof and --holders" small --dot out --format pprof
# A disk that is full: of each kind of output nothing is there.
room=$TMP/room
mkdir "$room"
if mount -t tmpfs -o size=1m none "$room" 2>"$TMP/err"; then
	for output in "--hprof $room/new" "--hprof $room/new --contents" "--pprof $room/new" "--holders $room/new" "--dot $room/new"; do
		dump=$big
		case $output in --hprof*) ;; *) dump=small; head -c 2000000 /dev/zero >"$room/filler" 2>/dev/null ;; esac
		# shellcheck disable=SC2086
		says 1 "$room/new: write: No space left on device" "$dump" $output
		[ -z "$(find "$room" -type f ! -name filler)" ] || wrong "a full disk: $output left $(find "$room" -type f)"
		rm -f "$room/filler"
	done
	cat "$big" | TMPDIR=$room timeout 60 "$GOPROF" heapdump - >"$TMP/stdout" 2>"$TMP/err"
	[ $? = 1 ] && has "no room in $room for the dump's copy after .* (No space left on device)" "$TMP/err" || wrong "a full disk: $(head -c 300 "$TMP/err")"
	umount "$room"
else
	skip heapdump_bad/full "no tmpfs can be mounted: $(head -n 1 "$TMP/err")"
fi
said=$(ulimit -f 0 && "$GOPROF" heapdump small --pprof out 2>&1)
[ $? = 1 ] || wrong "a limit on files: status $?"
[[ $said == *"out: write: File too large" ]] || wrong "a limit on files: $said"
[ "$(cat out)" = old ] || wrong "a file was replaced by half of another"
[ "$(ls -A | wc -l)" = 11 ] || wrong "files are left: $(ls -A | tr '\n' ' ')"
"$GOPROF" heapdump small --pprof out 2>/dev/null || wrong "it cannot be replaced"
[ "$(stat -c %a out)" = 600 ] || wrong "mode $(stat -c %a out)"
"$GOPROF" heapdump small --pprof out --mode 0644 2>/dev/null
[ "$(stat -c %a out)" = 644 ] || wrong "mode $(stat -c %a out) and not 644"
"$GOPROF" heapdump small --pprof - --format folded 2>/dev/null | grep -q '^main.f0_2;main.f0_1;main.f0_0 ' || wrong "not on stdout"
# A link is replaced, and not followed.
ln -s out link
"$GOPROF" heapdump small --pprof link 2>/dev/null || wrong "to a link: $?"
[ ! -L link ] && cmp -s out link || wrong "to a link: $(ls -l link)"
rm link
# Into a FIFO of our own it goes as it comes.
mkfifo "$TMP/sink"
timeout 60 cat "$TMP/sink" >"$TMP/sunk" &
"$GOPROF" heapdump small --pprof "$TMP/sink" 2>/dev/null || wrong "to a FIFO: $?"
wait $!
[ -p "$TMP/sink" ] && cmp -s out "$TMP/sunk" || wrong "to a FIFO: not what a file has"
result outputs

# ---- a dump that changes ----
# An output that is a FIFO is opened once the graph is read, and holds up what comes next.
changes() { # COMMAND...: changes $TMP/changed while its HPROF file is written
	cp "$big" "$TMP/changed"
	timeout 60 "$GOPROF" heapdump "$TMP/changed" --hprof "$TMP/sink" 2>"$TMP/err" &
	local pid=$! fd
	exec {fd}<"$TMP/sink"
	"$@" "$TMP/changed"
	cat <&$fd >"$TMP/sunk"
	exec {fd}<&-
	wait $pid
	[ $? = 1 ] || wrong "$*: not status 1"
	has 'the dump changed while it was read' "$TMP/err" || wrong "$*: $(cat "$TMP/err")"
}
changes truncate -s 5000000
changes truncate -s 20000000
changes touch
result changes

# ---- pipes ----
says_piped() { # STATUS TEXT ENV... <dump
	local status=$1 text=$2 rc
	shift 2
	env "$@" timeout 60 "$GOPROF" heapdump - >"$TMP/stdout" 2>"$TMP/err"
	rc=$?
	[ $rc = "$status" ] || wrong "a pipe, $*: status $rc"
	grep -q -- "$text" "$TMP/err" "$TMP/stdout" || wrong "a pipe, $*: $(head -c 300 "$TMP/err")"
}
cat small | says_piped 0 'as many as the runtime counted' TMPDIR="$TMP"
cat small small | says_piped 3 'stdin: loss: the dump ends at offset' TMPDIR="$TMP"
cat small small | "$GOPROF" heapdump - --pprof /dev/null 2>"$TMP/err"
[ $? = 3 ] && has "$(stat -c %s small) bytes behind it" "$TMP/err" || wrong "a pipe with two dumps: $(cat "$TMP/err")"
cat cut | says_piped 3 'stdin: the dump ends in' TMPDIR="$TMP"
said=$(cat stub | "$GOPROF" heapdump small - 2>&1)
[ $? = 1 ] && [ "$said" = "goprof-bpf: stdin: no heap dump: only 10 bytes" ] || wrong "a pipe as the second dump: $said"
said=$("$GOPROF" heapdump small - <stub 2>&1)
[ "$said" = "goprof-bpf: stdin: no heap dump: only 10 bytes" ] || wrong "stdin as the second dump: $said"
cat small | says_piped 1 'set TMPDIR' TMPDIR="$TMP/none"
said=$(ulimit -f 1024 && cat "$big" | TMPDIR=$TMP "$GOPROF" heapdump - 2>&1)
[ $? = 1 ] || wrong "no room for a copy: status $?"
[[ $said == *"no room in $TMP for the dump's copy after 1.00 MB (File too large)"* ]] || wrong "no room for a copy: $said"
cat "$big" | timeout 60 "$GOPROF" heapdump - --pprof "$TMP/out.pb.gz" 2>"$TMP/err" || wrong "a pipe to --pprof"
has 'stdin: no allocation sites of the program' "$TMP/err" || wrong "no allocation sites: $(cat "$TMP/err")"
# One that stalls: Ctrl-C ends it at once, and leaves nothing.
mkfifo "$TMP/fifo"
for option in "" "--pprof $TMP/never"; do
	# shellcheck disable=SC2086
	timeout 60 "$GOPROF" heapdump "$TMP/fifo" $option 2>"$TMP/err" &
	pid=$!
	exec {fd}>"$TMP/fifo"
	head -c 200 small >&$fd
	sleep 0.3
	kill -INT "$pid"
	wait "$pid"
	[ $? = 1 ] || wrong "stalled, stopped: $?"
	grep -q 'stopped before' "$TMP/err" || wrong "stalled: $(cat "$TMP/err")"
	exec {fd}>&-
done
[ ! -e "$TMP/never" ] || wrong "a stopped one left a file"
result pipes

# ---- large ----
# 200,000 objects in a ring with a pointer to themselves each, held by one global.
"$GOPROF" heapdump "$big" >"$TMP/stdout" || wrong "a ring: $?"
grep -q '6.10 MB 100.00% *1  global 0x500000' "$TMP/stdout" || wrong "a ring: not all is held by the global"
"$mkdump" goroutines 100000 >"$TMP/many"
"$GOPROF" heapdump "$TMP/many" >"$TMP/stdout" || wrong "goroutines: $?"
grep -q '100000  waiting: chan receive' "$TMP/stdout" || wrong "goroutines: not counted"
# More sites than there is room for: the bound on memory holds, and what is lost is told.
"$mkdump" sites 400000 >"$TMP/sites"
said=$(ulimit -d 65536 && "$GOPROF" heapdump "$TMP/sites" --pprof "$TMP/out.pb.gz" 2>&1)
[ $? = 3 ] || wrong "many sites: status $?"
[[ $said == *"more distinct stacks than there is room for"* ]] || wrong "many sites: $said"
# One sample in 512 kB cannot be: 200,000 live samples would be 100 GB on a heap of 32 bytes.
[[ $said == *"the numbers in $TMP/out.pb.gz are wrong: with one sample in 524288 bytes "*" would be in use of a heap of 32 B."* ]] ||
	wrong "an impossible rate: $said"
"$GOPROF" heapdump "$TMP/sites" --pprof "$TMP/out.pb.gz" --heap-rate 1 2>&1 | grep -q 'the numbers in' || wrong "an impossible rate of 1"
"$GOPROF" heapdump small --pprof "$TMP/out.pb.gz" 2>&1 | grep 'the numbers in' && wrong "chance is told"
# Two threads write what one does, who alone may wait for a pipe.
"$GOPROF" heapdump "$big" --hprof "$TMP/by.two" && "$GOPROF" heapdump "$big" --hprof - | cmp -s - "$TMP/by.two" || wrong "HPROF by two threads is another"
rm -f "$TMP/by.two"
result large

# ---- memory ----
# However small its objects are, and however many its roots, a quarter of the dump's size is enough, or 32 MB: what
# is more lies in files without a name. The answer is the same, and where there can be none it is said.
bounded() { # LIMIT_MB KIND N
	local kb
	[ -s "$TMP/$2" ] || "$mkdump" "$2" "$3" >"$TMP/$2"
	TMPDIR=$TMP "$O/tests/rusage" "$TMP/use" "$GOPROF" heapdump "$TMP/$2" >"$TMP/stdout" 2>"$TMP/err" || wrong "$2: status $?"
	read -r _ _ kb _ <"$TMP/use"
	[ "$kb" -lt $(($1 * 1024)) ] || wrong "$2: $kb kB of a dump of $(stat -c %s "$TMP/$2") bytes"
	[ ! -s "$TMP/err" ] || wrong "$2: $(head -n 1 "$TMP/err")"
	TMPDIR=$TMP "$O/tests/rusage" "$TMP/use" "$GOPROF" heapdump "$TMP/$2" --holders "$TMP/holders" 2>"$TMP/err" || wrong "$2, holders: status $?"
	read -r _ _ kb _ <"$TMP/use"
	[ "$kb" -lt $(($1 * 1024)) ] || wrong "$2, holders: $kb kB of a dump of $(stat -c %s "$TMP/$2") bytes"
	TMPDIR=/dev/shm "$GOPROF" heapdump "$TMP/$2" 2>"$TMP/err" | cmp -s - "$TMP/stdout" || wrong "$2: another answer without files"
	has -x "goprof-bpf: $TMP/$2: takes more memory than a quarter of its size: no file for a part of it: /dev/shm lies in memory itself" "$TMP/err" ||
		wrong "$2: without files: $(head -n 1 "$TMP/err")"
	rm "$TMP/$2"
}
if [ "$(stat -f -c %T "$TMP")" != tmpfs ]; then
	bounded 34 tiny 2500000
	grep -q '38.15 MB 100.00% *1  global 0x500000' "$TMP/stdout" || wrong "tiny: not all is held"
	bounded 34 globals 700000
	result memory
else
	skip heapdump_bad/memory "$TMP lies in memory"
fi

# The stalled ones have said so by now, once, and go on when something comes.
while [ $((SECONDS - STALL_SECONDS)) -lt 12 ]; do sleep 0.2; done
cat small >&$none
tail -c +201 small >&$copied
tail -c +201 small >&$read
exec {none}>&- {copied}>&- {read}>&-
for pid in "${STALLED[@]}"; do wait "$pid" || wrong "stalled: status $?"; done
for name in none copied read; do
	case $name in none) at=0 ;; *) at=200 ;; esac
	has -x "goprof-bpf: $TMP/$name.fifo: nothing came for 10 s, after $at bytes: waiting for more" "$TMP/$name.err" ||
		wrong "stalled, $name: $(cat "$TMP/$name.err")"
	[ "$(grep -c 'nothing came' "$TMP/$name.err")" = 1 ] || wrong "stalled, $name: told again"
done
result stalls

if [ -n "${WIDE:-}" ]; then
	bounded 64 tiny 10000000 # of 257 MB
	result 'ten million objects'
	bounded 360 goroutines 10000000 # of 1.5 GB
	grep -q '10000000  waiting: chan receive' "$TMP/stdout" || wrong "ten million goroutines: not counted"
	result goroutines
fi
finish
