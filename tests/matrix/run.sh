#!/bin/bash
# The support matrix: every Go version, every build kind, one cell each (tests/matrix/cell.sh), and
# one more for what waits (tests/matrix/waits.sh, Go 1.18 and newer).
#
#	run.sh [run]	all cells, then the tables, in $O/matrix.md and, when no cell is missing, in
#			docs/tested.md; exit status 1 if one failed
#	run.sh table	the table of what has been run so far with the same program
#	run.sh page	the same, put into docs/tested.md
#	run.sh check	the tables of docs/tested.md have the shape of this output
#
# VERSIONS="1.19.13 1.27.4", KINDS="pie cgo-s" and SUBJECTS=waits take only these; JOBS=2 run side by side.
# A cell that passed with the same binaries is not run again: after a stop, run it again. Logs
# are log/VERSION-KIND.log in $O/matrix and $O/matrix/waits.
set -u
cd "$(dirname "$0")/../.." || exit 1
O=${O:-build}
case $O in /*) ;; *) O=$PWD/$O ;; esac
export O GOPROF=${GOPROF:-$O/goprof-bpf}
. tests/support/toolchains.sh
. tests/matrix/kinds.sh
PAGE=docs/tested.md
# The two tables: subject (a name of a script, and of a folder), marks, checks.
subject() {
	case $1 in
	cell)  MADE="made by make matrix" CHECKS="F V R C P E" DIR=$MATRIX ;;
	waits) MADE="made by make matrix, waits" CHECKS="B M W E R G" DIR=$MATRIX/waits ;;
	esac
	BEGIN_MARK="<!-- $MADE -->" END_MARK="<!-- end of what was $MADE -->"
	[ "$1" = waits ] || END_MARK='<!-- end of what make matrix made -->'
}

versions() {
	[ "$1" = waits ] || { echo "$ALL_VERSIONS"; return; }
	tr ' ' '\n' <<<"$ALL_VERSIONS" | grep -v '^1\.1[67]\.'
}

# One line of the log for each outcome is shown; the rest stays in the log.
cell() {
	local log rc
	subject "$3"
	mkdir -p "$DIR/log"
	log=$DIR/log/$1-$2.log
	timeout -k 10 900 bash tests/matrix/"$3".sh "$1" "$2" >"$log" 2>&1 </dev/null
	rc=$?
	grep -E '^(ok|not ok|skip) ' "$log"
	if [ $rc != 0 ] && ! grep -q '^not ok ' "$log"; then
		echo "not ok $1-$2 - exit status $rc, see $log"
		rm -f "$DIR/res/$1-$2"
	fi
}

run_all() {
	local v k t
	mkdir -p "$MATRIX/log"
	for v in ${VERSIONS:-$ALL_VERSIONS}; do
		goroot "$v" >/dev/null || return 1
		for k in ${KINDS:-$ALL_KINDS}; do
			for t in ${SUBJECTS:-cell waits}; do
				[[ " $(versions "$t" | tr '\n' ' ') " != *" $v "* ]] || echo "$v $k $t"
			done
		done
	done | xargs -P "${JOBS:-2}" -L 1 bash tests/matrix/run.sh cell | tee "$MATRIX/outcomes"
	for t in cell waits; do table $t; done >"$O/matrix.md"
	cat "$O/matrix.md"
	# A partial run changes nothing in the page, which keeps the result of the last whole run.
	grep -q '| not run ' "$O/matrix.md" || page || return 1
	awk '/^ok/ { n++ } /^not ok/ { m++ }
		END { printf "%d passed, %d failed, 0 skipped\n", n, m; exit m > 0 || n == 0 }' \
		"$MATRIX/outcomes"
}

# The result of a cell: the letters that passed, and those that failed struck out.
show() {
	local res=$DIR/res/$1-$2 c out=
	[ -f "$res" ] || { echo "not run"; return; }
	grep -q '^build ' "$res" && { echo "no build"; return; }
	grep -q '^start ' "$res" && out=" ~~start~~"
	for c in $CHECKS; do
		if grep -q "^$c ok$" "$res"; then
			out+=" $c"
		elif grep -q "^$c " "$res"; then
			out+=" ~~$c~~"
		fi
	done
	echo "${out# }"
}

head_line() {
	local k
	printf '| Go |'
	for k in $ALL_KINDS; do printf ' %s |' "$(title "$k")"; done
	printf '\n|---|'
	for k in $ALL_KINDS; do printf -- '---|'; done
	echo
}

table() {
	local v k
	subject "$1"
	echo "$BEGIN_MARK"
	head_line
	for v in $(versions "$1"); do
		printf '| %s |' "$v"
		for k in $ALL_KINDS; do printf ' %s |' "$(show "$v" "$k")"; done
		echo
	done
	echo "$END_MARK"
}

page() {
	local new t
	new=$(mktemp)
	for t in ${SUBJECTS:-cell waits}; do
		table $t >"$new"
		grep -qF "$BEGIN_MARK" "$PAGE" || { echo "$PAGE has no \"$BEGIN_MARK\"" >&2; return 1; }
		sed -i -e "/^$BEGIN_MARK\$/,/^$END_MARK\$/ { /^$END_MARK\$/r $new
			d }" "$PAGE"
	done
	rm -f "$new"
}

# Checks that every row and column is there, in order, and that each cell has only what a run can
# write.
check() {
	local said t
	for t in cell waits; do
		subject $t
		said=$(sed -n "/^$BEGIN_MARK\$/,/^$END_MARK\$/p" "$PAGE")
		diff <(echo "$BEGIN_MARK"; head_line) <(head -n 3 <<<"$said") || return 1
		diff <(versions $t | tr ' ' '\n') <(sed -n '4,$s/^| \([0-9.]*\) |.*/\1/p' <<<"$said") || return 1
		awk -F '|' -v cols="$(wc -w <<<"$ALL_KINDS")" -v letters="${CHECKS// /}" '
			BEGIN { cell = "^( (~~)?([" letters "]|start)(~~)?)+ $" }
			NR > 3 && /^\|/ {
				if (NF != cols + 3) { print "columns: " $0; bad = 1 }
				for (i = 3; i < NF; i++)
					if ($i !~ cell && $i !~ /^ (no build|not run) $/) {
						print $2 ": " $i; bad = 1 }
			}
			END { exit bad }' <<<"$said" || return 1
	done
}

case ${1:-run} in
run)    run_all ;;
cell)   cell "$2" "$3" "$4" ;;
table)  for t in cell waits; do table $t; done ;;
page)   page ;;
check)  check ;;
*)      echo "usage: run.sh [run|table|page|check]" >&2; exit 2 ;;
esac
