# shellcheck shell=bash
# The two axes of the support matrix, and how one of its subjects is built; source after lib.sh.
#
#	ALL_VERSIONS, ALL_KINDS
#	MATRIX_SUBJECT		the program: matrix unless set; MATRIX_FLAGS for it
#	title KIND		its column
#	matrix_build V KIND	sets PROGRAM (what is run, with its argument), CODE (the file that
#				has the subject's code) and RUNTIME (the one that has Go's runtime)
#	twin KIND		the kind that differs only by having symbols

# The newest point release of every minor that can be had.
# shellcheck disable=SC2034
ALL_VERSIONS=$ALL_MINORS
# shellcheck disable=SC2034
ALL_KINDS="static stripped trimpath pie pie-s cgo cgo-s race cshared plugin"
MATRIX=$O/matrix${MATRIX_SUBJECT:+/$MATRIX_SUBJECT}

title() {
	case $1 in
	stripped) echo "static, stripped" ;;
	trimpath) echo "\`-trimpath\`" ;;
	pie)      echo "PIE" ;;
	pie-s)    echo "PIE, stripped" ;;
	cgo)      echo "cgo, external link" ;;
	cgo-s)    echo "the same, stripped" ;;
	race)     echo "\`-race\`" ;;
	cshared)  echo "c-shared in a C program" ;;
	*)        echo "$1" ;;
	esac
}

twin() {
	case $1 in
	stripped) echo static ;;
	*-s)      echo "${1%-s}" ;;
	*)        echo "$1" ;;
	esac
}

# The oracle is put beside the subject; its .s is for programs without cgo.
matrix_source() {
	local dir=$MATRIX/src
	[ -z "${MATRIX_SUBJECT:-}" ] || { echo "testdata/programs/$MATRIX_SUBJECT"; return; }
	mkdir -p "$dir" && (
		flock 9 # several cells are built at once
		cp -u testdata/programs/matrix/*.* testdata/programs/oracle/oracle*.go "$dir"
	) 9>"$MATRIX/.src.lock"
	echo "$dir"
}

# matrix_go OUT V CGO LDFLAGS DIR [FLAG...]: unless it is there and not older than its sources
matrix_go() {
	local out=$1 v=$2 cgo=$3 ld=$4 dir=$5
	shift 5
	# Flags are part of what a binary says of itself, and move what comes after them: of the
	# same length, so that a stripped one has the addresses of its twin.
	case " $ld" in *" -s=1 "*) ;; *) ld="-s=0 -w=0 $ld" ;; esac
	# The oracle links to functions that Go 1.23 and newer keep for the standard library.
	case $v in 1.1?.*|1.2[0-2].*) ;; *) ld="$ld -checklinkname=0" ;; esac
	[ -f "$out" ] && [ -z "$(find "$dir" tests/matrix/kinds.sh -newer "$out" -type f)" ] && return
	# shellcheck disable=SC2086
	(renice -n 5 $BASHPID >/dev/null; CGO=$cgo gobuild "$v" "$out" "$dir" "$@" ${MATRIX_FLAGS:-} "-ldflags=$ld")
}

matrix_build() {
	local v=$1 kind=$2 dir out=$MATRIX/bin/$2-$1
	dir=$(matrix_source)
	mkdir -p "$MATRIX/bin"
	PROGRAM=("$out") CODE=$out RUNTIME=$out
	case $kind in
	static)   matrix_go "$out" "$v" 0 "" "$dir" ;;
	stripped) matrix_go "$out" "$v" 0 "-s=1 -w=1 " "$dir" ;;
	trimpath) matrix_go "$out" "$v" 0 "" "$dir" -trimpath ;;
	pie)      matrix_go "$out" "$v" 0 "" "$dir" -buildmode=pie ;;
	pie-s)    matrix_go "$out" "$v" 0 "-s=1 -w=1 " "$dir" -buildmode=pie ;;
	cgo)      matrix_go "$out" "$v" 1 "-linkmode=external" "$dir" ;;
	cgo-s)    matrix_go "$out" "$v" 1 "-s=1 -w=1 -linkmode=external" "$dir" ;;
	race)     matrix_go "$out" "$v" 1 "" "$dir" -race ;;
	cshared)
		CODE=$out.so RUNTIME=$out.so PROGRAM=("$MATRIX/bin/chost" "$out.so")
		gcc -O1 -o "$MATRIX/bin/chost" testdata/programs/matrix/chost/host.c -ldl &&
			matrix_go "$out.so" "$v" 1 "" "$dir" -buildmode=c-shared ;;
	plugin)
		CODE=$out.so PROGRAM=("$out" "$out.so")
		matrix_go "$out" "$v" 1 "" testdata/programs/matrix/pluginhost &&
			matrix_go "$out.so" "$v" 1 "" "$dir" -buildmode=plugin ;;
	*)        echo "there is no build kind $kind" >&2; return 1 ;;
	esac
}
