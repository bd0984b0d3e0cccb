#!/bin/bash
# A few cells of the support matrix: the newest Go, Debian's minor, and two in between, each in
# another way to build. `make matrix` runs them all.
. tests/support/lib.sh
need_root && need_bpf && need_go

# shellcheck disable=SC2086
set -- ${CELLS:-1.27.4:pie-s 1.27.4:plugin 1.19.13:cgo-s 1.19.13:cshared 1.22.12:stripped 1.24.13:race}
# Two at a time, as make matrix does.
export FRESH=1
printf '%s\n' "$@" | xargs -P 2 -I{} bash -c 'c={}; bash tests/matrix/cell.sh "${c%%:*}" "${c#*:}" >"$0.$c" 2>&1; rc=$?; cat "$0.$c"; exit $rc' "$TMP/cell" ||
	FAILED=1
finish
