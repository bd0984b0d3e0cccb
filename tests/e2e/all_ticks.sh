#!/bin/bash
# Ticks of the CPUs' clocks that are not delivered, of many processes in one run: no BPF program of a clock runs while the
# kernel copies a table, which one process has it do all the time. Whose they are is known where it is a target.
. tests/support/lib.sh
. tests/support/judges.sh
need_root && need_bpf && need_go

bin=$(subject 1.27.4 hosted) || { fail all_ticks "does not build"; finish; }
ours=cmd=${bin%/*}/hosted-1.
HZ=1000
declare -A pid
for n in busy tables; do
	case $n in busy) start "$bin" busy 1 1 ;; *) start "$bin" tables ;; esac || { fail all_ticks "$n does not start"; finish; }
	pid[$n]=$PID
done

# observe FLAG...: for 6 s; what is said of each process that has a profile goes to $TMP/comments.NAME
observe() {
	local n f
	rm -rf "$TMP/out" "$TMP"/comments.*
	"$GOPROF" --all --match "$ours" --cpu -F $HZ -d 6s -o "$TMP/out" "$@" >"$TMP/paths" 2>"$TMP/err"
	RC=$?
	for n in busy tables; do
		f=$(command ls "$TMP"/out/*."${pid[$n]}".cpu.pb.gz 2>/dev/null) || continue
		"$PPROFCHECK" comments "$f" >"$TMP/comments.$n"
	done
}

# What lacks of a process by the kernel's charge and its own samples, and what it says, and what all CPUs lack.
lacks() { # NAME
	awk -v hz=$HZ '/^hits:/ { got = $2 } /^charged:/ { due = $2 * hz / 1.01 }
		/^loss: [0-9]+ clock ticks/ { said = $2 } /^clocks:/ { host = $2; of = $4 }
		END { printf "%d %d %d %d %d\n", due - got, due, said, host, of }' "$TMP/comments.$1"
}
known() {
	local lack due said host of
	read -r lack due said host of < <(lacks tables)
	[ "$due" -ge 1000 ] || { echo "only $due ticks were due"; return; }
	[ "$lack" -ge $((due / 5)) ] || { echo "only $lack of $due ticks lack: it does not hold up the clock"; return; }
	[ $((said * 100)) -ge $((lack * 97)) ] && [ $((said * 100)) -le $((lack * 103)) ] || echo "$said are said to lack, and $lack do"
	# Beside chance it is the only one that lacks any: all that the CPUs lack is its own.
	[ $((host * 100)) -ge $((lack * 80)) ] && [ $((host * 100)) -le $((lack * 125)) ] || echo "of all CPUs $host ticks lack, and of the process $lack"
	[ "$of" -ge $((4 * HZ * $(nproc))) ] || echo "all CPUs had only $of ticks"
	[ "$RC" = 3 ] || echo "exit $RC"
	has "pid ${pid[tables]} (hosted[^)]*): $said clock ticks the kernel did not deliver" "$TMP/err" || echo "nobody told it"
}
spared() {
	judge_unhurt "$TMP/comments.busy"
	has '^clocks: [1-9][0-9]* of [0-9]* ticks of all CPUs were not delivered' "$TMP/comments.busy" || echo "its profile does not tell of the clocks"
}
observe
steps known
outcome all_ticks/known
steps spared
outcome all_ticks/spared

# Who holds up the clock is none of those that are meant.
unknown() {
	local lack due said host of
	read -r lack due said host of < <(lacks busy)
	[ "$host" -ge $((of / 50)) ] || { echo "only $host of $of ticks lack"; return; }
	[ "$said" = 0 ] || echo "$said of a process that was not held up"
	has "^goprof-bpf: the clocks of all CPUs: 1 processes together: $host clock ticks the kernel did not deliver" "$TMP/err" || echo "nobody told of $host ticks"
	[ "$RC" = 3 ] || echo "exit $RC"
}
observe --exclude 'cmd=*tables*'
steps unknown
outcome all_ticks/unknown

# And without it there is nothing to tell.
kill -KILL "${pid[tables]}"
wait "${pid[tables]}" 2>/dev/null
observe
quiet() {
	[ "$RC" = 0 ] || { echo "exit $RC"; tail -n 3 "$TMP/err"; }
	judge_unhurt "$TMP/comments.busy"
}
steps quiet
outcome all_ticks/quiet
finish
