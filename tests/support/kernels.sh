# tests/support/kernels.sh - the short suite on emulated kernels, one after another: its outcomes are the script's
# (vmtest/run.sh). Time is counted in instructions there, so nothing depends on how busy this machine is.

# on_kernels ARCH
on_kernels() {
	local line total= host run=(vmtest/run.sh short)
	host=$(uname -m | sed 's/x86_64/amd64/; s/aarch64/arm64/')
	# Another architecture's programs are built in a folder of their own, with flags of their own.
	if [ "$1" != "$host" ]; then
		run=(env -u MAKEFLAGS -u MAKELEVEL -u MAKEOVERRIDES -u O make --no-print-directory ARCH="$1")
		"${run[@]}" deps >"$TMP/made" 2>&1 || { fail "kernels/$1" "no libraries: $(tail -n 3 "$TMP/made" | tr '\n' ' ')"; return; }
		run+=(vmtest K=short)
	fi
	while read -r line; do
		case $line in
		"ok "* | "not ok "* | "skip "*) outcome_of "$1" "$line" ;;
		*" passed, "*) total=$line ;;
		*) echo "# $line" ;;
		esac
	done < <(ARCH=$1 JOBS=1 "${run[@]}" 2>"$TMP/why")
	[ -n "$total" ] || fail "kernels/$1" "no suite was run: $(tail -n 3 "$TMP/why" | tr '\n' ' ')"
}
# outcome_of ARCH LINE
outcome_of() {
	local name=${2#not }
	name=${name#* }
	local why=${name#* - }
	name=kernels/$1/${name%% - *}
	case $2 in
	ok*) pass "$name" ;;
	skip*) skip "$name" "$why" ;;
	*) fail "$name" "$why" ;;
	esac
}
