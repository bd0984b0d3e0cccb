#!/bin/bash
# Formatting, warnings as errors with gcc and clang, layering, sizes, words that do not belong.
# One line per check: "ok lint/NAME" or "not ok lint/NAME - why"; nonzero when one failed.
# CLANG, CPPFLAGS, CFLAGS, OBJECTS (how to have objects made) and OBJECTS_IN (where they are then) come from the Makefile.
set -u
cd "$(dirname "$0")/../.." || exit 1
O=${O:-build}
bad=0

c_files() { ls user/*/*.[ch] user/*/*/*.[ch] user/*/*/*/*.[ch] bpf/*.[ch] bpf/*/*.h include/*.h tests/*/*.[ch] 2>/dev/null; }
scripts() { ls tests/*.sh tests/*/*.sh vmtest/*.sh vmtest/init user/package/*.sh .ci/run 2>/dev/null; }
# Everything that people read.
texts() { ls README.md LICENSE Makefile docs/* user/*/*.{html,css,js} 2>/dev/null; c_files; scripts; ls testdata/programs/*/*.go 2>/dev/null; }

# check NAME COMMAND...: what it prints is the reason.
check() {
	local name=$1 said rc
	shift
	said=$("$@" 2>&1)
	rc=$?
	if [ $rc = 0 ]; then
		echo "ok lint/$name"
	else
		echo "not ok lint/$name - $(printf '%s\n' "$said" | grep -c .) lines:"
		printf '%s\n' "$said" | head -n 40 | sed 's/^/    | /'
		bad=1
	fi
}

formatted() {
	# shellcheck disable=SC2046
	clang-format --dry-run -Werror $(c_files)
}

# objects TARGET: make compiles them, warnings as errors, side by side, and only what has changed.
objects() {
	$OBJECTS "$1" 2>&1 | grep -vE '^  [A-Z]+  '
	return "${PIPESTATUS[0]}"
}

# Every file once more; clang's warnings come from its front end, so nothing is generated.
clang_compiles() {
	# shellcheck disable=SC2086
	ls user/*/*.c user/*/*/*.c user/*/*/*/*.c tests/*/*.c | xargs -P "$(nproc)" -n 8 $CLANG $CPPFLAGS $CFLAGS -Werror -fsyntax-only
}

# A function runs from a "{" in column 0 to the "}" in column 0.
sizes() {
	local f ok=0
	for f in $(c_files); do
		case $f in user/go/layout/layout_tab.c) continue ;; esac
		awk -v f="$f" '
			/^\{/ { start = NR }
			/^\}/ && start { if (NR - start - 1 > 60) {
				printf "%s:%d: a function of %d lines (60)\n", f, start, NR - start - 1; bad = 1 }
				start = 0 }
			END { if (NR > 800) { printf "%s: %d lines (800)\n", f, NR; bad = 1 }
			      exit bad }' "$f" || ok=1
	done
	return $ok
}

# The text speaks of the project alone, and of nothing that one machine happens to have.
words() {
	# Written so that this file does not contain them.
	local w='/wo[r]k/|/tm[p]/[a-z]+brief|sess[i]on [0-9]|house-st[y]le|\bTO[D]O\b|\bFIX[M]E\b|proxy\.gol[a]ng'
	# shellcheck disable=SC2046
	! grep -nIE "$w" $(texts)
}

# Functions that cannot be bounded; base/banned.h poisons the rest.
unbounded() {
	local files
	files=$(ls user/*/*.c user/*/*/*.c user/*/*/*/*.c bpf/*.c 2>/dev/null)
	# shellcheck disable=SC2086
	! grep -nE '\b(alloca|strdupa|scanf|sscanf|vsprintf|system|popen)[[:space:]]*\(' $files
}

# base/clock.h alone asks the system what time it is.
one_clock() {
	! grep -rnE '\b(clock_gettime|gettimeofday|timespec_get)[[:space:]]*\(' user --include='*.[ch]' | grep -v '^user/base/clock\.h:'
}

no_space_at_end() {
	# shellcheck disable=SC2046
	! grep -nIE '[[:blank:]]+$' $(texts | grep -v '\.md$')
}

shell_ok() {
	local f ok=0
	for f in $(scripts); do
		bash -n "$f" || ok=1
	done
	if command -v shellcheck >/dev/null; then
		# shellcheck disable=SC2046
		shellcheck -S error -x $(scripts) || ok=1
	fi
	return $ok
}

# What `steps` cannot see (tests/README.md): a command behind "!" whose 1 may be a death, and the parts of a
# pipe whose end nobody asks for.
steps_see() {
	local ok=0 files tools='grep|has|kill|found_wrong|start_kind|matrix_build|"\$PPROFCHECK"|\{'
	files=$(grep -lE '^[[:space:]]*steps |waits\.sh' tests/e2e/*.sh tests/matrix/*.sh tests/support/waits.sh vmtest/suite.sh)
	# shellcheck disable=SC2086
	! grep -nE '[^|]\|[^|].*\|\| *(:|true)( |;|\)|$)' $files | grep -vE '(kill|wait)[^|]*\|\| *:|^[^:]*:[0-9]*:[[:space:]]*#' || ok=1
	# shellcheck disable=SC2086
	! grep -nE '(^|[;{(] *|&& |\|\| |if |while |until )[[:space:]]*! +[^ ]' $files | grep -vE "! +($tools)" || ok=1
	return $ok
}

go_formatted() {
	local said
	# shellcheck disable=SC2046
	said=$(gofmt -l $(ls -d testdata/programs testdata/tools tests 2>/dev/null) 2>&1)
	[ -z "$said" ] || { echo "gofmt: $said"; return 1; }
}

# README is for newcomers: short, and with a link to each page. A page says first what it answers,
# and every link within the repository leads somewhere.
docs() {
	local f l to anchor ok=0
	[ "$(wc -l <README.md)" -le 250 ] || { echo "README.md: more than 250 lines"; ok=1; }
	for f in docs/*.md; do
		grep -qF "($f)" README.md || { echo "README.md: no link to $f"; ok=1; }
		sed -n 3p "$f" | grep -q '^This page answers: ' || { echo "$f: line 3 does not say what it answers"; ok=1; }
	done
	while read -r f l; do
		to=${l%%#*}
		if [ -z "$to" ]; then to=$f; else to=$(dirname "$f")/$to; fi
		[ -e "$to" ] || { echo "$f: no file behind ($l)"; ok=1; continue; }
		case $l in *'#'*) ;; *) continue ;; esac
		anchor=${l#*#}
		sed -nE 's/^#+ (.*)/\L\1/p' "$to" | sed 's/[^a-z0-9_ -]//g; s/ /-/g' | grep -qxF -- "$anchor" ||
			{ echo "$f: no heading behind ($l)"; ok=1; }
	done < <(grep -oHE '\]\([^):]+\)|src="[^":]+"' README.md docs/*.md | sed -E 's/:(\]\(|src=")/ /; s/[)"]$//')
	return $ok
}

check format formatted
check gcc objects objects
check clang clang_compiles
check bpf objects bpfobjects
check layering sh tests/layering.sh
check statics sh tests/statics.sh "$OBJECTS_IN"
check sizes sizes
check words words
check unbounded unbounded
check clock one_clock
check whitespace no_space_at_end
check shell shell_ok
check steps steps_see
check docs docs
check matrix bash tests/matrix/run.sh check # the tables of docs/tested.md are such as a run makes
check kernels vmtest/run.sh check
if command -v gofmt >/dev/null; then
	check gofmt go_formatted
fi
exit $bad
