#!/bin/bash
# Targets that live elsewhere: another pid, mount and user namespace, another root, another user,
# an executable that is gone, was replaced, lies on an overlay or cannot be seen from here; and
# the profiler itself inside a pid namespace. In each: CPU, heap by probe with its known counts, heap by
# reading equal to the target's own answer. Containers are made with unshare.
. tests/support/lib.sh
. tests/support/judges.sh
need_root && need_bpf && need_go

RATE=16384
GO=1.27.4
USER_ID=42421 # nobody's
INSIDE=${1:-}
PROF=("$GOPROF")
chmod 755 "$TMP"

# ---- worlds: world_NAME PROGRAM ARG... becomes the program there; after_NAME when it is ready ----

world_plain() { exec "$@"; }

# A rootless container: a user of its own who is root inside, a root that holds nothing but the
# program, at a path where we have quite another one.
world_container() {
	exec setpriv --reuid $USER_ID --regid $USER_ID --clear-groups \
		unshare --user --map-root-user --mount --pid --fork --kill-child bash -c '
		root=$1 bin=$2
		shift 2
		mount -t tmpfs tmpfs "$root" && mkdir -p "$root"/{proc,bin,old} &&
			cp "$bin" "$root/bin/bash" && mount -t proc proc "$root/proc" &&
			cd "$root" && pivot_root . old && cd / || exit
		for ld in /old/lib64/ld-linux-x86-64.so.2 /old/lib/ld-linux-aarch64.so.1; do
			[ ! -e $ld ] || $ld --library-path "$(echo /old/lib/*-linux-gnu)" /old/usr/bin/umount -l /old
		done
		exec /bin/bash "$@"' - "$TMP/root" "$@"
}

world_chroot() {
	rm -rf "$TMP/jail"
	mkdir -p "$TMP/jail/srv" && cp "$1" "$TMP/jail/srv/server" && chmod 755 "$TMP/jail/srv/server"
	shift
	exec chroot --userspec=$USER_ID:$USER_ID "$TMP/jail" /srv/server "$@"
}

world_deleted() {
	rm -rf "$TMP/gone"
	mkdir -p "$TMP/gone" && cp "$1" "$TMP/gone/server"
	shift
	exec "$TMP/gone/server" "$@"
}
after_deleted() { rm -r "$TMP/gone"; }

world_replaced() {
	rm -rf "$TMP/new"
	mkdir -p "$TMP/new" && cp "$1" "$TMP/new/server"
	shift
	exec "$TMP/new/server" "$@"
}
after_replaced() { cp "$(subject 1.19.13 checksum)" "$TMP/new/x" && mv "$TMP/new/x" "$TMP/new/server"; }

world_overlay() {
	local d=$TMP/overlay
	rm -rf "$d"
	mkdir -p "$d"/{lower,upper,work,merged} && cp "$1" "$d/lower/server"
	shift
	exec unshare --mount bash -c 'cd "$1" && shift &&
		mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work merged &&
		exec merged/server "$@"' - "$d" "$@"
}

# From a place where the directory of the programs is empty.
world_hidden() { exec "$@"; }
hide() {
	PROF=(unshare --mount bash -c 'mount -t tmpfs tmpfs "$1" && shift && exec "$@"' - "$O/programs" "$GOPROF")
}

# ---- what is done in each ----

# The program below the process $1, which may have made it through others.
innermost() {
	local p=$1 child
	while child=$(pgrep -P "$p" | head -n 1) && [ -n "$child" ]; do p=$child; done
	echo "$p"
}

# launch WORLD PROGRAM ARG...: sets PID, OUT and PORT. Its input is the pipe $IN.
launch() {
	local world=$1 i
	shift
	OUT=$TMP/out.${#STARTED[@]} IN=$TMP/in.${#STARTED[@]}
	mkfifo "$IN"
	: >"$OUT"
	"world_$world" "$@" <>"$IN" >"$OUT" 2>&1 &
	PID=$!
	STARTED+=("$PID")
	for ((i = 0; i < 300; i++)); do
		grep -q '^ready' "$OUT" && break
		kill -0 $PID 2>/dev/null || break
		sleep 0.1
	done
	grep -q '^ready' "$OUT" || { echo "not ready in $world: $(head -c 300 "$OUT")" >&2; return 1; }
	PORT=$(sed -n 's/^ready *//p' "$OUT" | head -n 1)
	PID=$(innermost $PID)
	STARTED+=("$PID")
	[ "$(type -t "after_$world")" != function ] || "after_$world"
}

reading() {
	local world=$1 name=$2 path verdict
	launch "$world" "$SELF" || { fail "$name: heap read" "it does not start"; return; }
	http_get "$PORT" /debug/pprof/heap "$TMP/one.pb.gz"
	path=$("${PROF[@]}" -p "$PID" --heap --source=read -d 300ms -o "$TMP" 2>"$TMP/said") || {
		fail "$name: heap read" "exit status $?: $(tail -n 1 "$TMP/said")"
		kill "$PID"
		return
	}
	http_get "$PORT" /debug/pprof/heap "$TMP/two.pb.gz"
	judge judge_read "$TMP/one.pb.gz" "$path" "$TMP/two.pb.gz"
	outcome "$name: heap read"
	kill "$PID"
}

# The time that the kernel charged is in the profile, but for what it was too busy with our probes
# to tick for, which is a loss and said; the functions are the program's own.
judge_cpu() {
	"$PPROFCHECK" comments "$1" >"$TMP/comments" && judge_charged "$TMP/comments" 0.6 1.1 &&
	"$PPROFCHECK" stacks -type samples "$1" | awk '{ n += $1 } /main\.|runtime\./ { own += $1 } /main\./ { m += $1 }
		END { if (n < 20 || own < 0.95 * n || m < 0.3 * n) {
			printf "%d samples, %d with functions of Go, %d of the program; ", n, own, m; exit 1 } }'
}

probing() {
	local world=$1 name=$2 prof rc i cpu heap verdict
	launch "$world" "$TRUTH" -goroutines 2 || { fail "$name: cpu and probe" "it does not start"; return; }
	: >"$TMP/said"
	"${PROF[@]}" -p "$PID" --cpu --heap --source=probe --heap-rate=$RATE --budget=0 -d 120s -o "$TMP" >"$TMP/paths" 2>"$TMP/said" &
	prof=$!
	STARTED+=("$prof")
	for ((i = 0; i < 200; i++)); do grep -q 'profiling pid' "$TMP/said" && break; sleep 0.1; done
	echo go >"$IN"
	for ((i = 0; i < 1000; i++)); do grep -q '^done' "$OUT" && break; sleep 0.1; done
	kill -INT $prof
	wait $prof
	rc=$?
	kill "$PID"
	[ $rc = 3 ] && only_small_losses "$TMP/said" "$(cat "$TMP/paths")" && rc=0
	cpu=$(grep '\.cpu\.' "$TMP/paths") heap=$(grep '\.heap\.' "$TMP/paths")
	if [ $rc != 0 ] || [ ! -s "$cpu" ] || [ ! -s "$heap" ]; then
		fail "$name: cpu and probe" "exit status $rc: $(tail -n 2 "$TMP/said" | tr '\n' ' ')"
		return
	fi
	judge judge_cpu "$cpu"
	outcome "$name: cpu"
	judge judge_probe "$OUT" "$heap" $RATE
	outcome "$name: heap probe"
}

both() {
	mkdir -p "$TMP/root"
	reading "$1" "$2"
	probing "$1" "$2"
}

SELF=$(subject $GO heapself) && TRUTH=$(subject $GO alloctruth -ldflags='-s -w') ||
	{ fail namespaces "the subjects do not build"; finish; }
if [ "$INSIDE" = inside ]; then
	both plain "we and it in one pid namespace"
	both container "we in a pid namespace, it in one further inward"
	finish
fi
both container "a container with a user, a root and pids of its own"
both chroot "another root, another user"
both deleted "a deleted executable"
both replaced "a replaced executable"
both overlay "an overlay that is mounted for it alone"
hide
both hidden "a path that is empty for us"
PROF=("$GOPROF")

# Everything once more from within: pids are not the kernel's own.
unshare --pid --fork --kill-child --mount-proc bash "$0" inside || FAILED=1

# With the /proc of another namespace the numbers mean other processes.
unshare --pid --fork bash -c '"$@"; exit $?' - "$GOPROF" -p 1 --cpu -d 300ms -o "$TMP" >"$TMP/paths" 2>"$TMP/said"
rc=$?
[ $rc = 1 ] && grep -q '/proc is that of another pid namespace' "$TMP/said" &&
	pass "the /proc of another pid namespace is refused" ||
	fail "the /proc of another pid namespace is refused" "exit status $rc: $(tail -n 1 "$TMP/said")"
finish
