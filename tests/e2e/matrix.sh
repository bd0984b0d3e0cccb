#!/bin/bash
# A few cells of the support matrix: the newest Go, Debian's minor, and two in between, each in
# another way to build. `make matrix` runs them all.
. tests/support/lib.sh
need_root && need_bpf && need_go

# shellcheck disable=SC2086
set -- ${CELLS:-1.27.4:pie-s 1.27.4:plugin 1.19.13:cgo-s 1.19.13:cshared 1.22.12:stripped 1.24.13:race}
for cell; do
	FRESH=1 bash tests/matrix/cell.sh "${cell%%:*}" "${cell#*:}" || FAILED=1
done
finish
