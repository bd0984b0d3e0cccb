#!/bin/bash
# What `make demo` shows: a Go program that links no pprof, its CPU, its heap and its locks, in seconds.
# DEMO_SECONDS and DEMO_DIR change how long and where to.
set -eu
cd "$(dirname "$0")/../.."
O=${O:-build}
case $O in /*) abs=$O ;; *) abs=$PWD/$O ;; esac
seconds=${DEMO_SECONDS:-5}
dir=${DEMO_DIR:-$O/demo}
if [ "$(id -u)" != 0 ]; then
	echo "demo: reading another program needs root: run 'sudo make demo'" >&2
	exit 1
fi

mkdir -p "$dir" "$O/programs"
rm -f "$dir"/demo.*
(cd testdata/programs/demo && env -u GOROOT GOENV=off GOFLAGS='' GO111MODULE=off \
	GOTOOLCHAIN=local GOPATH="$abs/go/path" GOCACHE="$abs/go/cache" CGO_ENABLED=0 \
	go build -ldflags='-s -w' -o "$abs/programs/demo" .)
go=$(go version "$O/programs/demo")

"$O/programs/demo" &
pid=$!
trap 'kill $pid 2>/dev/null || true' EXIT
sleep 0.5 # past its start-up
echo "A stripped Go program without pprof, built by ${go##*: }, runs as pid $pid:"
echo
echo "  sudo $O/goprof-bpf -p $pid --cpu --heap --block --mutex --budget=0 -d ${seconds}s -o $dir --format pprof --format text"
rc=0
paths=$("$O/goprof-bpf" -p "$pid" --cpu --heap --block --mutex --budget=0 -d "${seconds}s" -o "$dir" \
	--format pprof --format text) || rc=$?
[ $rc = 0 ] || [ $rc = 3 ] || exit $rc # 3: written, with losses that it named

# The title, the column heads and ten rows of one sample type's table.
top_ten() { # FILE-ENDING SAMPLE-TYPE
	for f in $paths; do
		case $f in
		*"$1")
			echo
			awk -v type="$2:" '$1 == type { on = 1 } on && n++ < 12' "$f" ;;
		esac
	done
}
# The stack of a profile of waits that has most of them.
top_stack() { # FILE-ENDING TITLE
	for f in $paths; do
		case $f in
		*"$1")
			echo
			echo "$2"
			awk '/^delay: by stack/ { on = 1; next } /^$/ { on = 0 } on && / contentions$/ { n++ } on && n == 1' "$f" ;;
		esac
	done
}
top_ten .cpu.txt cpu
top_ten .heap.txt alloc_space
top_stack .block.txt "block: the longest waits"
top_stack .mutex.txt "mutex: who held the lock"
echo
echo "Written, the .pb.gz for 'go tool pprof' and all that reads its format:"
for f in $paths; do
	echo "  $f"
done
