#!/bin/bash
# --types against testdata/programs/typed, of which every line says what it allocates: each
# sample's label is that, and each line has as many objects and bytes as a profiler without
# --types sees of the same run. On stripped, position-independent and cgo-linked binaries.
#
#	VERSIONS="1.18.10 ..."	other versions of Go
#	KINDS="plain pie ..."	all of these kinds for each of them (plain stripped pie cgo cgopie race
#				plugin; pgo: built with the profile of a program that allocates in every way)
. tests/support/lib.sh
need_root && need_bpf && need_go

build() {
	case $2 in
	plain) subject "$1" typed ;;
	stripped) subject "$1" typed -ldflags='-s -w' ;;
	pie) subject "$1" typed -buildmode=pie -ldflags='-s -w' ;;
	cgo) CGO=1 subject "$1" typed -ldflags='-linkmode external -s -w' ;;
	plugin) library "$1" typed plugin -ldflags=-w ;;
	race) CGO=1 subject "$1" typed -race ;;
	pgo)
		[ -s "$O/allockinds.$1.pprof" ] ||
			"$(subject "$1" allockinds)" "$O/allockinds.$1.pprof" >/dev/null || return 1
		subject "$1" typed -pgo="$O/allockinds.$1.pprof"
		;;
	cgopie) CGO=1 subject "$1" typed -buildmode=pie -ldflags='-linkmode external -s -w' ;;
	esac
}

# profile NAME [OPTION...]: sets PROF, waits until it probes.
profile() {
	local dir=$TMP/$1 i
	mkdir -p "$dir"
	shift
	: >"$dir/err"
	"$GOPROF" -p "$PID" --heap --source=probe --heap-rate=1 --budget=0 "$@" -d 120s -o "$dir" >"$dir/path" 2>"$dir/err" &
	PROF=$!
	STARTED+=("$PROF")
	for ((i = 0; i < 600; i++)); do grep -q 'profiling pid' "$dir/err" && return; sleep 0.1; done
}

run() {
	local v=$1 kind=$2 name=heap_types/$1_$2 bin host='' fd i typed without rc=0 p
	SOURCE=testdata/programs/typed/main.go
	if [ "$kind" = plugin ]; then
		# Its code has no types' addresses, but a table of them has.
		mkdir -p "$TMP/typed"
		sed -E '/type:/{s/interface (int|float64|main\.side)\>/interface ?/g
			s/interface (string|main\.(id|failure))\>/interface string?/g
			s/interface (main\.track|\[\][a-z][a-z0-9.]*)/interface []?/g}' "$SOURCE" >"$TMP/typed/main.go"
		SOURCE=$TMP/typed/main.go
		host=$(pluginhost "$v" -ldflags=-w) || { fail "$name" "the host does not build"; return; }
	fi
	bin=$(build "$v" "$kind") || { fail "$name" "does not build"; return; }
	rm -f "$TMP/in" && mkfifo "$TMP/in"
	# The collector allocates too, wherever it is due.
	: >"$TMP/said"
	GOGC=off ${host:+"$host"} "$bin" <"$TMP/in" >"$TMP/said" 2>&1 &
	PID=$!
	STARTED+=("$PID")
	exec {fd}>"$TMP/in"
	for ((i = 0; i < 100; i++)); do grep -q ready "$TMP/said" && break; sleep 0.1; done
	profile "$v$kind/typed" --types
	typed=$PROF
	profile "$v$kind/without"
	without=$PROF
	echo go >&"$fd"
	for ((i = 0; i < 600; i++)); do grep -q '^done' "$TMP/said" && break; kill -0 "$PID" 2>/dev/null || break; sleep 0.1; done
	for p in "$typed" "$without"; do
		kill -INT "$p" 2>/dev/null
		wait "$p" || rc=$?
	done
	exec {fd}>&- # it ends
	typed=$(cat "$TMP/$v$kind/typed/path") without=$(cat "$TMP/$v$kind/without/path")
	if ! grep -q '^done' "$TMP/said" || [ $rc != 0 ] || [ ! -s "$typed" ] || [ ! -s "$without" ]; then
		fail "$name" "exit $rc: $(tail -n 2 "$TMP/$v$kind/typed/err" | tr '\n' ' ')"
		return
	fi
	"$PPROFCHECK" comments "$typed" | grep '^types:'
	judge "$PPROFCHECK" check "$typed"
	judge "$PPROFCHECK" types "$SOURCE" "$typed" "$without"
	outcome "$name"
}

if [ -n "${VERSIONS:-}" ]; then
	for v in $VERSIONS; do for k in ${KINDS:-stripped}; do run "$v" "$k"; done; done
else
	run 1.18.10 stripped
	run 1.21.13 pie
	run 1.24.13 plain
	run 1.27.4 stripped
	run 1.27.4 cgopie
fi
finish
