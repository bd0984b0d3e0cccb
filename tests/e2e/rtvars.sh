#!/bin/bash
# Where the runtime keeps its variables, told from instructions alone, is where the symbols say:
# every variable, in every kind of build, and in the same file stripped (go/rtvar). What then
# stands there in the running program (as root) is what the variable can hold: also where a C
# program loaded it as a library, and when it has loaded a plugin.
# GO_VERSIONS="..." runs others; GO_KINDS="..." other kinds.
. tests/support/lib.sh
need_go

: "${GO_VERSIONS:=1.16.15 1.22.12 1.27.4}"
: "${GO_KINDS:=exe pie trimpath profiles cgo cgopie race cshared host no-dwarf stripped-by-go plugin}"
GOFACTS=$O/tests/gofacts RTLIVE=$O/tests/rtlive
NEWEST=${GO_VERSIONS##* }
VARIABLES=18

# built V KIND: the program's path. Once per kind, not per set of flags: some differ by environment.
built() {
	local out=$O/programs/rtvars-$2-$1 cgo=0 arch=$GOARCH_HOST flags=()
	case $2 in
	exe) ;;
	pie) flags=(-buildmode=pie) ;;
	trimpath) flags=(-trimpath) ;;
	profiles) flags=(-tags profiles) ;;
	cgo) cgo=1 flags=(-ldflags=-linkmode=external) ;;
	cgopie) cgo=1 flags=(-buildmode=pie -ldflags=-linkmode=external) ;;
	race) cgo=1 flags=(-race) ;;
	cshared) cgo=1 flags=(-buildmode=c-shared) ;;
	host) cgo=1 flags=(-tags host) ;;
	plugin) cgo=1 flags=(-buildmode=plugin) ;;
	stripped-by-go) flags=(-ldflags="-s -w") ;;
	# The flags stand in the build info, so that their length moves the variables: as long as above.
	no-dwarf) flags=(-ldflags="-w -w") ;;
	arm64) arch=arm64 ;;
	arm64-pie) arch=arm64 flags=(-buildmode=pie) ;;
	*) echo "no such kind: $2" >&2; return 1 ;;
	esac
	case $2 in cshared | plugin) out=$out.so ;; esac # gobuild asks no old go for a library's version
	CGO=$cgo GOARCH=$arch made "$out" testdata/programs/rtvars -- \
		gobuild "$1" "$out" testdata/programs/rtvars "${flags[@]}" || return 1
	echo "$out"
}

strip_to() {
	case $1 in
	arm64*) llvm-strip -s -o "$3" "$2" ;;
	*) strip -s -o "$3" "$2" ;;
	esac
}

# facts FILE OUT
facts() { "$GOFACTS" "$1" >"$2" 2>"$TMP/err" || { tr '\n' ' ' <"$TMP/err"; return 1; }; }

# Compares "var NAME SYMBOL DECODED" of the file $1 and of the same file without symbols, $2. "-":
# the program has no such variable, and then none may be found either. All but two variables are in
# every Go program.
vars_agree() {
	awk -v want=$VARIABLES '
		$1 != "var" { next }
		FNR == NR { n++; have += $3 != "-"; if ($3 != $4) print; addr[$2] = $3; next }
		$3 != "-" || $4 != addr[$2] { print "stripped: " $0 }
		END { if (n != want || have < want - 2) print n + 0 " variables, " have + 0 " with a symbol" }' "$1" "$2"
}

# Nothing else that is known may need symbols either.
rest_agrees() {
	cmp -s <(grep -E '^(go|site) ' "$1") <(grep -E '^(go|site) ' "$2") || echo "Go's facts or sites differ when stripped"
	grep -q "^layout table" "$2" || grep ^layout "$2"
}

# live PROGRAM [ARG]: every variable of the running program holds what it can hold.
live() {
	start "$@" || { echo "does not start"; kill -KILL "$PID"; return 1; }
	"$RTLIVE" "$PID" >"$TMP/live" 2>&1 || sed '/ ok$/d' "$TMP/live"
	[ "$(grep -c ' ok$' "$TMP/live")" -ge $((VARIABLES - 2)) ] || cat "$TMP/live"
	kill -KILL "$PID"
}

# Where code and variables lie, without the sections that hold symbols.
sections() { readelf -SW "$1" | awk -F '[][ ]+' '$3 ~ /^\.(text|noptrdata|data|bss|noptrbss)$/ { print $3, $5, $7 }'; }

# A build without symbols has none to compare with: those of its twin, which differs in nothing else.
twin_agrees() {
	local twin
	twin=$(built "$1" no-dwarf)
	diff <(sections "$2") <(sections "$twin")
	[ "$(sections "$2" | wc -l)" = 5 ] || echo "not five sections"
	facts "$2" "$TMP/bare"
	facts "$twin" "$TMP/full"
	vars_agree "$TMP/full" "$TMP/bare"
}

# A plugin's runtime is its host's: no variable may be found in it.
plugin_has_none() {
	local f
	strip_to plugin "$1" "$TMP/stripped"
	for f in "$1" "$TMP/stripped"; do
		facts "$f" "$TMP/facts"
		grep -Eq "^go ($2) plugin c 0x" "$TMP/facts" || grep ^go "$TMP/facts"
		awk '$1 == "var" { n++; if ($4 != "-" || $5 == "") print }
			END { if (n < 17) print n + 0 " variables" }' "$TMP/facts"
	done
}

# stripped_agrees KIND FILE: so does the same file without symbols.
stripped_agrees() {
	strip_to "$1" "$2" "$TMP/stripped"
	facts "$2" "$TMP/full"
	facts "$TMP/stripped" "$TMP/bare"
	vars_agree "$TMP/full" "$TMP/bare"
	rest_agrees "$TMP/full" "$TMP/bare"
}

run() {
	local v=$1 kind=$2 bin name=rtvars/$1-$2
	bin=$(built "$v" "$kind") || { fail "$name" "does not build"; return; }
	case $kind in
	stripped-by-go) steps twin_agrees "$v" "$bin" ;;
	# A plugin of Go 1.16 to 1.20 does not hold its version.
	plugin) steps plugin_has_none "$bin" "go$v$([[ $v =~ ^1\.(1|20) ]] && echo '|unknown')" ;;
	*) steps stripped_agrees "$kind" "$bin" ;;
	esac
	if [ "$(id -u)" = 0 ] && ! found_wrong; then
		case $kind in
		plugin | arm64*) ;;
		stripped-by-go) steps live "$bin" ;;
		cshared) steps live "$(libhost)" "$TMP/stripped" ;;
		host) steps live "$TMP/stripped" "$(built "$v" plugin)" ;;
		*) steps live "$TMP/stripped" ;;
		esac
	fi
	outcome "$name"
}

for v in $GO_VERSIONS; do
	for kind in $GO_KINDS; do
		run "$v" "$kind"
	done
done
run "$NEWEST" arm64
run "$NEWEST" arm64-pie
finish
