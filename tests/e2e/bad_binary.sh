#!/bin/bash
# Executables that lie and still run, executables of a Go that nobody knows yet, and executables
# spoilt at random, thousands of them, under the sanitizers: never a crash, never a hang, never
# without a bound on memory; what can be said is said, and the target runs on.
. tests/support/lib.sh
. tests/support/judges.sh
need_root && need_bpf && need_go

V=1.27.4
OUT_DIR=$TMP/profiles
CORRUPT=$O/tests/corrupt
CORRUPT_ASAN=$O/asan/tests/corrupt
LIMIT=20	# seconds for one run; longer is a hang
GUESSED="the Go version is not known here: it may be newer or older" # the loss, as it is said
MEMORY=1500000	# KiB of address space for one run, the kernel maps included

PROBED=$(subject $V checksum) && READ=$(subject $V checksum -tags=sampled) &&
	STRIPPED=$(subject $V checksum '-ldflags=-s -w') &&
	PIE=$(subject $V checksum -buildmode=pie '-ldflags=-s -w') ||
	{ fail bad_binary "the subject cannot be built"; finish; }

# The subject is to have one CPU at most, so that its own work does not hold up what it is there for. And it rests: with all goroutines
# busy on one processor Go hands a signal on after 0.2 to 3 s, and after more than judge_unharmed() waits once in some hundred times.
export GOMAXPROCS=1
start_subject() { start "$1" -rest 500us; }

run() {
	rm -rf "$OUT_DIR"
	(ulimit -v $MEMORY; exec timeout -k 5 $LIMIT "$@") >"$TMP/paths" 2>"$TMP/said" </dev/null
	RC=$?
	# On a busy machine clock ticks come late; that is no matter of the executable.
	[ $RC != 3 ] || said_more 'clock ticks the kernel|stacks that end before' || RC=0
}

# Anything besides what every run says, and $1.
said_more() { sentences "$TMP/said" | grep -vE ": warning: .* is no Go release known here|$1" | grep -q .; }

# verdict NAME: an outcome; what was said is shown where it is wrong.
verdict() { outcome "$1" || head -n 8 "$TMP/said" | cat -v | sed 's/^/    | /'; }

stop_subject() { kill -KILL "$PID" 2>/dev/null; wait "$PID" 2>/dev/null; }

# ---- a Go newer than known, and versions that are none ----

# other_version BIN VERSION OUT: as long as the true one, so that nothing moves.
other_version() {
	LC_ALL=C sed "s/go1\.27\.4/$2/g" "$1" >"$3" && chmod +x "$3"
	! LC_ALL=C grep -qF go1.27.4 "$3"
}

# version NAME BIN VERSION RC GUESSED KINDS FILES
version() {
	local name=$1 bin=$2 v=$3 rc=$4 guessed=$5 kinds=$6 files=$7 path
	other_version "$bin" "$v" "$TMP/other" || { fail "$name" "the version is not where it was"; return; }
	start_subject "$TMP/other" || { fail "$name" "it does not run"; return; }
	# shellcheck disable=SC2086
	run "$GOPROF" -p "$PID" $kinds -d 500ms -o "$OUT_DIR"
	judge judge_run "$TMP/said" "$TMP/paths" $RC "$rc" "$files"
	if [ $guessed = 1 ]; then
		[ "$(grep -c 'warning: .* guessed from go1\.27\.4' "$TMP/said")" = 1 ] || wrong "no warning"
		[ "$(grep -cE "(cpu|heap): $GUESSED" "$TMP/said")" = "$files" ] || wrong "the loss is not said for each"
	else
		[ "$(grep -cE "guessed|$GUESSED" "$TMP/said")" = 0 ] || wrong "guessed"
		[ "$(grep -c 'warning: .* is no Go release known here .*DWARF' "$TMP/said")" = 1 ] || wrong "no warning"
	fi
	while read -r path; do
		case $path in
		*.cpu.*) "$PPROFCHECK" stacks "$path" | grep -q 'main\.work' || wrong "no main.work" ;;
		*) "$PPROFCHECK" stacks -type alloc_space "$path" | grep -q 'main\.fill' || wrong "no main.fill" ;;
		esac
	done <"$TMP/paths"
	judge judge_unharmed "$PID" "$OUT"
	stop_subject
	verdict "$name"
}

versions() {
	local v n
	for v in go1.99.0 'devel +1' 'go2.27.4' 'gogarbag'; do
		n=$(printf '%s' "$v" | tr -c 'a-zA-Z0-9.+' _)
		version "version $n, DWARF, cpu+heap+probe" "$PROBED" "$v" 0 0 "--cpu --heap --budget=0" 2
		version "version $n, DWARF, heap+read" "$READ" "$v" 0 0 "--heap --source=read" 1
		version "version $n, no DWARF, cpu+heap+probe" "$STRIPPED" "$v" 3 1 "--cpu --heap --budget=0" 2
	done
}

# One that is no text at all is refused: it would go to terminals and into files.
version_of_bytes() {
	other_version "$PROBED" '\xff\x01\x1b[2Jmx' "$TMP/other"
	start_subject "$TMP/other" || { fail "a version of bytes" "it does not run"; return; }
	run "$GOPROF" -p "$PID" --cpu --heap --budget=0 -d 300ms -o "$OUT_DIR"
	judge judge_run "$TMP/said" "$TMP/paths" $RC 1 0 'Go version is not text'
	[ "$(wc -l <"$TMP/said")" = 1 ] || wrong "$(wc -l <"$TMP/said") lines are said"
	[ ! -e "$OUT_DIR" ] || wrong "$OUT_DIR was left behind"
	judge judge_unharmed "$PID" "$OUT"
	stop_subject
	verdict "a version of bytes"
}

# ---- spoilt, and running ----

# Spoilt as it is, it does not last when nobody looks at it either.
dies_alone() {
	local i
	for ((i = 0; i < 8; i++)); do
		start_subject "$TMP/spoilt" 2>/dev/null || return 0
		sleep 2
		judge_unharmed "$PID" "$OUT" >/dev/null || { stop_subject; return 0; }
		stop_subject
	done
	return 1
}

# spoilt NAME KINDS: judges ask of $TMP/spoilt. It may refuse to start; where it runs, it is profiled,
# refused in one sentence, or profiled with what was lost.
ran=0 delivered=0
spoilt() {
	local name=$1 kinds=$2 before=${#FOUND} harmed
	start_subject "$TMP/spoilt" 2>/dev/null || { stop_subject; return 0; }
	ran=$((ran + 1))
	# shellcheck disable=SC2086
	run "$GOPROF" -p "$PID" $kinds -d 300ms -o "$OUT_DIR"
	judge judge_run "$TMP/said" "$TMP/paths" $RC "0 1 3" -
	case $RC in
	0|3) delivered=$((delivered + 1)) ;;
	1)
		said_more 'no such text' || wrong "failed without a reason"
		sed -n "s/^goprof-bpf: /$name: /p" "$TMP/said" | tail -n 1
		;;
	esac
	if ! harmed=$(judge_unharmed "$PID" "$OUT"); then
		stop_subject
		dies_alone || wrong "$harmed"
	fi
	stop_subject
	[ ${#FOUND} = "$before" ] && return
	FOUND="${FOUND:0:before}$name: ${FOUND:before}"
	head -n 5 "$TMP/said" | cat -v | sed 's/^/    | /'
}

# poke OFFSET BYTES: into $TMP/spoilt
poke() { printf "$2" | dd of="$TMP/spoilt" bs=1 seek=$(($1)) conv=notrunc status=none; }
section() { readelf -SW "$1" | sed -n "s/^ *\[ *[0-9]*\] \\$2 *[A-Z_]* *[0-9a-f]* \([0-9a-f]*\) \([0-9a-f]*\) .*/0x\1 0x\2/p"; }

# with NAME BIN RC...: as it is now in $TMP/spoilt; the exit status must be one of them.
with() {
	local name=$1 kinds=$2 before=$ran
	shift 2
	RC=none
	spoilt "$name" "$kinds"
	[ $ran -gt $before ] || wrong "it does not run: this case shows nothing"
	case " $* " in
	*" $RC "*) ;;
	*) wrong "exit status $RC, not $*" ;;
	esac
	verdict "$name"
}

known_lies() {
	local off size shoff end
	# No section headers at all: everything is found by search.
	cp "$STRIPPED" "$TMP/spoilt"
	poke 0x28 '\0\0\0\0\0\0\0\0' && poke 0x3c '\0\0\0\0'
	with "no section headers" "--cpu --heap --budget=0" 0

	# Section headers that are all zero, or that lie beyond the file.
	cp "$STRIPPED" "$TMP/spoilt"
	shoff=$(readelf -hW "$STRIPPED" | sed -n 's/.*Start of section headers: *\([0-9]*\).*/\1/p')
	size=$(readelf -hW "$STRIPPED" | sed -n 's/.*Number of section headers: *\([0-9]*\).*/\1/p')
	dd if=/dev/zero of="$TMP/spoilt" bs=64 count="$size" seek="$shoff" oflag=seek_bytes conv=notrunc status=none
	with "section headers of zeros" "--cpu --heap --budget=0" 0 1
	cp "$STRIPPED" "$TMP/spoilt"
	poke 0x28 '\xff\xff\xff\xff\xff\xff\xff\x7f'
	with "section headers beyond the file" "--cpu --heap --budget=0" 0 1

	# Cut off behind the last loaded segment: section headers, symbols and DWARF are gone.
	end=0
	while read -r off size; do
		[ $((off + size)) -gt $end ] && end=$((off + size))
	done < <(readelf -lW "$PROBED" | awk '/^  LOAD/ { print $2, $5 }')
	head -c $end "$PROBED" >"$TMP/spoilt"
	with "cut off behind the last segment" "--cpu --heap --budget=0" 0 1 3

	# The table's header: counts and offsets that the runtime itself does not look at.
	read -r off size < <(section "$STRIPPED" .gopclntab)
	cp "$STRIPPED" "$TMP/spoilt"
	poke $((off + 8)) '\xff\xff\xff\xff\xff\xff\xff\x7f'
	with "pclntab: a function count that lies" "--cpu --heap --budget=0" 0 1
	cp "$STRIPPED" "$TMP/spoilt"
	poke $((off + 32)) '\xff\xff\xff\xff\xff\xff\xff\xff'
	with "pclntab: names beyond the table" "--cpu --heap --budget=0" 0 1 3
	cp "$STRIPPED" "$TMP/spoilt"
	poke $((off + 64)) '\x00\x00\x00\xff\xff\xff\xff\xff'
	with "pclntab: functions beyond the table" "--cpu --heap --budget=0" 0 1 3

	read -r off size < <(section "$STRIPPED" .go.buildinfo)
	cp "$STRIPPED" "$TMP/spoilt"
	poke $((off + 32)) '\xff\xff\xff\xff\xff\xff\xff\xff\x7f'
	with "build info: a length that lies" "--cpu --heap --budget=0" 0 1 3
	cp "$STRIPPED" "$TMP/spoilt"
	dd if=/dev/zero of="$TMP/spoilt" bs=1 count=$((size)) seek=$((off)) conv=notrunc status=none
	with "build info: of zeros" "--cpu --heap --budget=0" 0 1 3
}

# Spoilt at random where a program may still run: what its runtime does not read.
random_lies() {
	local area seed n=0
	for area in shdr pcheader functab pcdata module buildinfo debug any; do
		for ((seed = 1; seed <= ${SEEDS:-6}; seed++)); do
			n=$((n + 1))
			rm -f "$TMP/spoilt"
			"$CORRUPT" copy "$PROBED" "$TMP/spoilt" $area $seed ||
				{ wrong "$area $seed cannot be made"; continue; }
			spoilt "$area $seed" "--cpu --heap --budget=0"
		done
	done
	echo "$n spoilt versions: $ran ran, $delivered of them gave profiles"
	verdict "spoilt at random and running ($n)"
}

# ---- spoilt, and opened ----

opened() {
	local bin n=${CASES:-500} rc seed=20000
	[ -x "$CORRUPT_ASAN" ] || { fail opened "no sanitized build: 'make test' makes it"; return; }
	for bin in "$PROBED" "$STRIPPED" "$PIE"; do
		seed=$((seed + 100000))
		ASAN_OPTIONS=hard_rss_limit_mb=1024:allocator_may_return_null=0 timeout -k 5 120 \
			"$CORRUPT_ASAN" try "$bin" $seed $n >"$TMP/tried" 2>"$TMP/said"
		rc=$?
		cat "$TMP/tried"
		judge [ $rc = 0 ]
		found_wrong && wrong "exit status $rc: $(tr '\r' '\n' <"$TMP/said" | tail -n 15)"
		outcome "opened, sanitized: $n versions of $(basename "$bin")"
		(ulimit -v 400000; timeout -k 5 120 "$CORRUPT" try "$bin" $((seed + n)) $n) \
			>"$TMP/tried" 2>"$TMP/said"
		rc=$?
		judge [ $rc = 0 ]
		found_wrong && wrong "exit status $rc: $(tr '\r' '\n' <"$TMP/said" | tail -n 5)"
		outcome "opened, 400 MB at most: $n versions of $(basename "$bin")"
	done
}

for part in ${PARTS:-versions version_of_bytes known_lies random_lies opened}; do
	$part
done
finish
