#!/bin/sh
# Who may include whom. One line per folder; anything else is an error.
# Reads the tree it is started in, so that its own test can give it a bad one.
set -u

# What a folder may include, beside itself. The parts of go/ see those before them, and no other
# folder than a collector's own sees its insides.
base="base base/loop base/sys"
image="go/image go/image/elf go/image/tables"
runtime="go/runtime go/runtime/vars go/runtime/types go/runtime/counters"
go="$image go/layout $runtime go/sites"
exectrace="ingest/exectrace ingest/exectrace/v1 ingest/exectrace/v2 ingest/exectrace/summary"
target="target target/host target/write"
output="output output/flame output/hprof"
heapdump="ingest/heapdump ingest/heapdump/graph"
below_subject="$base arch $go $target"
below_probe="$below_subject subject profile"
probe="probe probe/uprobes probe/stacks"
sampling="sampling sampling/looks sampling/windows"
below_collect="$below_probe symbolize $probe $sampling engine"

allowed() {
	case $1 in
	base)          echo "" ;;
	base/*)        echo "$base" ;;
	arch|profile|sampling|heapgraph) echo "$base" ;;
	sampling/*)    echo "$base sampling" ;;
	go/image|go/image/*) echo "$base arch $image" ;;
	go/layout)     echo "$base arch $image" ;;
	go/runtime|go/runtime/*) echo "$base arch $image go/layout $runtime" ;;
	go/sites)      echo "$base arch $image go/layout $runtime" ;;
	target/host)   echo "$base" ;;
	target)        echo "$base arch target/host" ;;
	target/write)  echo "$base arch $target" ;;
	output|output/*) echo "$base profile heapgraph $output" ;;
	ingest|ingest/heapdump) echo "$base $go profile heapgraph ingest" ;;
	ingest/heapdump/graph) echo "$base $go profile heapgraph ingest $heapdump" ;;
	ingest/exectrace|ingest/exectrace/*) echo "$base $go profile heapgraph ingest $exectrace" ;;
	ingest/typing) echo "$base $go profile heapgraph ingest $heapdump" ;;
	subject)       echo "$below_subject" ;;
	symbolize)     echo "$below_subject subject profile" ;;
	probe|probe/*) echo "$below_probe $probe" ;;
	engine)        echo "$below_probe $probe $sampling" ;;
	collect|collect/ratewrite|collect/cpu|collect/goroutine) echo "$below_collect collect" ;;
	collect/heap/window) echo "$below_collect collect" ;;
	collect/heap/live) echo "$below_collect collect collect/heap/window" ;;
	collect/heap)  echo "$below_collect collect collect/ratewrite collect/heap/window collect/heap/live" ;;
	collect/waits/looks) echo "$below_collect collect" ;;
	collect/waits/engine) echo "$below_collect collect collect/waits/looks" ;;
	collect/waits/wait) echo "$below_collect collect collect/waits/looks collect/waits/engine" ;;
	collect/waits/contention) echo "$below_collect collect collect/ratewrite collect/waits/looks collect/waits/engine" ;;
	inspect)       echo "$below_probe $probe collect" ;;
	host)          echo "$below_probe $probe engine inspect" ;;
	*)             echo "" ;;
	esac
}

# cli/ drives everything, and nobody includes it.
may_include() {
	case $1 in "$2" | cli | cli/*) return 0 ;; esac
	case " $(allowed "$1") " in
	*" $2 "*) return 0 ;;
	esac
	return 1
}

# "file<TAB>name" for every include with quotes.
includes() {
	for f in "$@"; do
		[ -f "$f" ] || continue
		sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([^"]*\)".*/\1/p' "$f" |
			sed "s|^|$f	|"
	done
}

# Why one include of user/ is wrong, or nothing. sampling/ and symbolize/ know the contract as plain data.
judge_user() {
	dir=${1#user/}
	dir=${dir%/*}
	case $2 in
	goprof_hash.h)
		[ "$dir" = base ] || echo "$1: include base/hash.h for $2" ;;
	goprof_abi.h)
		case $dir in
		probe|probe/*|engine|symbolize|sampling|sampling/*|inspect|collect|collect/*) ;;
		*) echo "$1: $dir/ may not include $2" ;;
		esac ;;
	*.skel.h)
		case $dir in
		probe|probe/*|engine|inspect|collect|collect/*) ;;
		*) echo "$1: $dir/ may not include $2" ;;
		esac ;;
	*.pb-c.h)
		[ "$dir" = output ] || [ "$dir" = ingest ] || echo "$1: only output/ and ingest/ may include $2" ;;
	*/*)
		may_include "$dir" "${2%/*}" || echo "$1: $dir/ may not include $2"
		case $2 in
		*_priv.h) [ "user/${2%/*}" = "${1%/*}" ] || echo "$1: $2 is private to ${2%/*}/" ;;
		esac ;;
	*) echo "$1: write \"$2\" from user/, with its folder" ;;
	esac
}

# bpf/ knows the contract and its own headers; host.h stands in for the kernel in tests/bpfhost/.
judge_bpf() {
	case $2 in
	goprof_abi.h|host.h) ;;
	../*|*/../*|/*) echo "$1: bpf/ may not include $2" ;;
	*)   [ -f "bpf/$2" ] || echo "$1: $2 is neither goprof_abi.h nor a header of bpf/" ;;
	esac
}

# The hash is of both sides as the contract is, and of base/.
judge_abi() {
	[ "$2" = goprof_hash.h ] || echo "$1: the contract may not include \"$2\""
}

# A folder holds at most 20 files.
crowded() {
	for d in user/* user/*/* user/*/*/* bpf bpf/*; do
		[ -d "$d" ] || continue
		n=0
		for f in "$d"/*; do [ ! -f "$f" ] || n=$((n + 1)); done
		[ $n -le 20 ] || echo "$d: $n files, 20 at most"
	done
}

tab=$(printf '\t')
found=$(
	crowded
	includes user/*/*.[ch] user/*/*/*.[ch] user/*/*/*/*.[ch] | while IFS=$tab read -r f inc; do judge_user "$f" "$inc"; done
	includes bpf/*.[ch] bpf/*/*.[ch] | while IFS=$tab read -r f inc; do judge_bpf "$f" "$inc"; done
	includes include/*.h | while IFS=$tab read -r f inc; do judge_abi "$f" "$inc"; done
)
[ -z "$found" ] && exit 0
printf '%s\n' "$found" >&2
exit 1
