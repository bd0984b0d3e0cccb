#!/bin/bash
# What we take a goroutine's wait reason for is what the runtime of real binaries has for it,
# every value (go/waitreason). GO_VERSIONS="..." runs others.
. tests/support/lib.sh
need_go

: "${GO_VERSIONS:=1.18.10 1.22.12 1.24.13 1.25.14 1.27.4}"
for v in $GO_VERSIONS; do
	bin=$(subject "$v" leaf31) || { fail "waitreasons/$v" "does not build"; continue; }
	said=$("$O/tests/waitreasons" "$bin" 2>&1) && [[ $said =~ ^go\ go$v\ (2[7-9]|[34][0-9])$ ]] &&
		pass "waitreasons/$v (${said##* })" || fail "waitreasons/$v" "$(tr '\n' ';' <<<"$said")"
done
finish
