#!/bin/bash
# What else a CPU profile must have: the way into the kernel and the vDSO, goroutine ids,
# callers through systemstack, stripped PIE and cgo builds, and a file that `go build -pgo`
# takes.
. tests/support/lib.sh
. tests/support/judges.sh
need_root && need_bpf && need_go

# NAME PROGRAM OPTIONS...: profile it into $OUT_PB
profile() {
	local name=$1 bin=$2
	shift 2
	[ -z "${PID:-}" ] || kill "$PID" 2>/dev/null
	# Of one CPU there are samples enough; the other one is for whoever else is tested.
	start env GOMAXPROCS=1 "$bin" -work "$WORK" || { fail "$name" "does not start"; return 1; }
	OPTIONS=("$@")
	seconds "$name" 3
}

# seconds NAME N: so many of them
seconds() {
	local name=$1 rc
	OUT_PB=$("$GOPROF" -p $PID --cpu -F 500 -d "$2"s -o "$TMP" "${OPTIONS[@]}" 2>"$TMP/err")
	rc=$?
	# A machine that stood still for a moment is no fault of the profile.
	[ $rc = 3 ] && only_small_losses "$TMP/err" "$OUT_PB" && rc=0
	if [ $rc != 0 ] || [ ! -s "$OUT_PB" ]; then
		fail "$name" "exit $rc: $(tail -n 2 "$TMP/err" | tr '\n' ' ')"
		return 1
	fi
	"$PPROFCHECK" check "$OUT_PB" >"$TMP/check" 2>&1 || { fail "$name" "$(head -n 1 "$TMP/check")"; return 1; }
	"$PPROFCHECK" stacks -type samples "$OUT_PB" >"$TMP/stacks"
}

# NAME WHICH WHERE: of all samples that match, at least 98 % also match the second.
share() {
	local n
	judge judge_below "$TMP/stacks" "$2" "$3"
	# Of few samples one is much: then longer.
	for n in 9 27; do
		found_wrong || break
		attempt $n "$1" "$FOUND"
		unjudged
		seconds "$1" $n || return
		judge judge_below "$TMP/stacks" "$2" "$3"
	done
	outcome "$1"
}

asked() { case " $ways " in *" $1 "*) return 0 ;; *) return 1 ;; esac; }

# Each way into the kernel in two Gos; with WIDE=1 in all of them.
while read -r v ways <&3; do
	[ -z "${WIDE:-}" ] || ways="vdso syscall system"
	bin=$(subject $v cpuself -ldflags='-s -w') || { fail cpu_more/$v "does not build"; continue; }
	WORK=vdso
	# All but the scheduler's own belongs below the function that asked for the time.
	asked vdso && profile cpu_more/$v-vdso "$bin" &&
		share cpu_more/$v-vdso '!/runtime\.(mcall|mstart|gcBgMarkWorker|bgsweep|bgscavenge|sysmon)/' '/main\.vdsoWork/'
	WORK=syscall
	asked syscall && profile cpu_more/$v-syscall "$bin" && {
		share cpu_more/$v-syscall '/yscall6?/' '/main\.syscallWork/'
		share cpu_more/$v-readzero '/os\.\(\*File\)\.Read/' '/main\.readZero/'
	}
	WORK=system
	# Frames below systemstack go on to the goroutine that called it.
	asked system && profile cpu_more/$v-systemstack "$bin" &&
		share cpu_more/$v-systemstack '/runtime\.systemstack/ && /runtime\.Stack\.func1/' '/main\.ownStack/ && /main\.systemWork/'
done 3<<-END
	1.16.15 vdso system
	1.19.13 syscall system
	1.27.4 vdso syscall
END

bin=$(subject 1.27.4 cpuself -ldflags='-s -w') || { fail cpu_more "does not build"; finish; }
WORK=syscall
by_turns kptr_restrict profile cpu_more/kernel "$bin" --kernel && {
	# [^ ] a kernel function at the leaf, Go's caller above it
	share cpu_more/kernel '/read_zero|clear_user|vfs_read|sys_read/' '/main\.readZero/'
	grep -qE 'vfs_read|sys_read' "$TMP/stacks" && pass cpu_more/kernel-names ||
		fail cpu_more/kernel-names "no kernel function was named"
}
WORK=labels
profile cpu_more/goid "$bin" --goid && {
	n=$("$PPROFCHECK" labels -type samples "$OUT_PB" | grep -c goid)
	[ "${n:-0}" -ge 6 ] && pass cpu_more/goid || fail cpu_more/goid "$n label sets with a goid"
}

# Position-independent, and linked by the C linker: g is found elsewhere, text starts elsewhere.
for v in 1.19.13 1.27.4; do
	kinds=pie
	[ $v = 1.19.13 ] || kinds=cgo
	for kind in $([ -n "${WIDE:-}" ] && echo pie cgo || echo $kinds); do
		name=cpu_more/$v-$kind
		if [ $kind = cgo ]; then
			bin=$(CGO=1 subject $v cpuself -tags=withcgo -ldflags='-s -w -linkmode=external')
		else
			bin=$(subject $v cpuself -buildmode=pie -ldflags='-s -w')
		fi || { fail $name "does not build"; continue; }
		WORK=leaf
		profile $name "$bin" && share $name '/main\.leaf /' '/main\.leafThrice|main\.leafOnce/'
		WORK=labels
		profile $name-labels "$bin" && {
			"$PPROFCHECK" labels -type samples "$OUT_PB" | grep -q tenant && pass $name-labels ||
				fail $name-labels "no label was seen"
		}
	done
done

# A build with the profile: the compiler finds the hot edges in it.
bin=$(subject 1.27.4 cpuself) || { fail cpu_more/pgo "does not build"; finish; }
WORK=inline,leaf,mapping
profile cpu_more/pgo "$bin" && {
	if gobuild 1.27.4 "$TMP/pgo" testdata/programs/cpuself -pgo="$OUT_PB" >"$TMP/pgo.log" 2>&1; then
		pass cpu_more/pgo
	else
		fail cpu_more/pgo "$(tail -n 1 "$TMP/pgo.log")"
	fi
	pgo_says=$(gorun 1.27.4 tool preprofile -i "$OUT_PB" -o "$TMP/pre" 2>&1) &&
		grep -q 'main\.leafThrice' "$TMP/pre" && pass cpu_more/pgo-edges ||
		fail cpu_more/pgo-edges "no edge from main.leafThrice: $pgo_says"
}
finish
