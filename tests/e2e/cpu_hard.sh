#!/bin/bash
# Stacks that frame pointers do not tell: assembly that uses their register, stacks being
# copied, duffcopy, faults, write barriers, huge frames. Nearly every sample reaches its root
# (what does not is counted as a loss), its work is in it, and no caller is there twice.
. tests/support/lib.sh
. tests/support/judges.sh
need_root && need_bpf && need_go

run() {
	local v=$1 work=$2 least=$3 below=$4 name=cpu_hard/$1-$2 bin out rc lost window
	bin=$(subject "$v" hardstacks -ldflags='-s -w') || { fail "$name" "does not build"; return; }
	start "$bin" -work "$work" || { fail "$name" "does not start"; return; }
	# A busy machine gives it less, and of few samples one stack that breaks off is much: then longer.
	for window in 2s 6s 15s; do
		out=$("$GOPROF" -p $PID --cpu -F 400 -d $window -o "$TMP" 2>"$TMP/err")
		rc=$?
		if { [ $rc != 0 ] && [ $rc != 3 ]; } || [ ! -s "$out" ]; then
			wrong "exit $rc: $(tail -n 2 "$TMP/err" | tr '\n' ' ')"
			break
		fi
		lost=$(sed -n 's/.*cpu: \([0-9]*\) stacks that end before.*/\1/p' "$TMP/err")
		unjudged
		judge judge_hard "$out" "$below" "$least" "${lost:-0}"
		found_wrong || break
		attempt $window "$name" "$FOUND"
	done
	kill $PID
	outcome "$name"
}

# hard V WORK
hard() {
	case $2 in
	hash | copy | large) run "$1" "$2" 0.99 "${2}Work" ;;
	barrier) run "$1" barrier 0.98 barrierWork ;;
	# While a stack is copied the first sight of a frame may find it half moved.
	grow) run "$1" grow 0.93 'growOne|main\\.growWork' ;;
	fault) run "$1" fault 0.99 faultWork ;;
	esac
}

# Each work in two Gos; every work in every Go with WIDE=1.
while read -r v works <&3; do
	[ -z "${WIDE:-}" ] || works="hash copy barrier large grow fault"
	for w in $works; do hard "$v" "$w"; done
done 3<<-END
	1.16.15 hash copy grow
	1.19.13 barrier large fault
	1.23.12 copy large
	1.27.4 hash barrier grow fault
END
finish
