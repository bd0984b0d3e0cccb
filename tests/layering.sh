#!/bin/sh
# Who may include whom. One line per folder; anything else is an error.
# Reads the tree it is started in, so that its own test can give it a bad one.
set -u

allowed() {
	case $1 in
	base|profile)  echo "base $1" ;;
	arch)          echo "base arch" ;;
	go)            echo "base arch go" ;;
	target)        echo "base arch target" ;;
	heapgraph)     echo "base heapgraph" ;;
	output)        echo "base profile heapgraph output" ;;
	ingest)        echo "base go profile heapgraph ingest" ;;
	collect)       echo "base arch go target profile collect" ;;
	agent)         echo "base go target profile output collect agent" ;;
	cli)           echo "base go target profile heapgraph ingest output collect agent cli" ;;
	*)             echo "" ;;
	esac
}

# The same for folders within a folder: what they may include of it, beside what lies in it directly.
allowed_within() {
	case $1 in
	ingest/typing) echo "ingest/heapdump ingest/typing" ;;
	*)             echo "$1" ;;
	esac
}

# "file<TAB>name" for every include with quotes.
includes() {
	for f in "$@"; do
		[ -f "$f" ] || continue
		sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([^"]*\)".*/\1/p' "$f" |
			sed "s|^|$f	|"
	done
}

# Why one include of user/ is wrong, or nothing.
judge_user() {
	dir=${1#user/}
	dir=${dir%%/*}
	case $2 in
	goprof_hash.h)
		[ "$dir" = base ] || echo "$1: include base/hash.h for $2" ;;
	*.skel.h|goprof_abi.h)
		[ "$dir" = collect ] || echo "$1: only collect/ may include $2" ;;
	*.pb-c.h)
		[ "$dir" = output ] || [ "$dir" = ingest ] || echo "$1: only output/ and ingest/ may include $2" ;;
	*/*)
		other=${2%%/*}
		case " $(allowed "$dir") " in
		*" $other "*) ;;
		*) echo "$1: $dir/ may not include $2" ;;
		esac
		case $2 in
		*_priv.h) [ "user/${2%/*}" = "${1%/*}" ] || echo "$1: $2 is private to ${2%/*}/" ;;
		"$dir"/*/*) judge_within "$1" "$2" ;;
		esac ;;
	*) echo "$1: write \"$2\" from user/, with its folder" ;;
	esac
}

judge_within() {
	inner=${1#user/}
	inner=${inner%/*}
	case " $(allowed_within "$inner") " in
	*" ${2%/*} "*) ;;
	*) echo "$1: $inner/ may not include $2" ;;
	esac
}

# bpf/ knows the contract and its own headers; host.h stands in for the kernel in tests/bpfhost/.
judge_bpf() {
	case $2 in
	goprof_abi.h|host.h) ;;
	*/*) echo "$1: bpf/ may not include $2" ;;
	*)   [ -f "bpf/$2" ] || echo "$1: $2 is neither goprof_abi.h nor a header of bpf/" ;;
	esac
}

# The hash is of both sides as the contract is, and of base/.
judge_abi() {
	[ "$2" = goprof_hash.h ] || echo "$1: the contract may not include \"$2\""
}

tab=$(printf '\t')
found=$(
	includes user/*/*.[ch] user/*/*/*.[ch] | while IFS=$tab read -r f inc; do judge_user "$f" "$inc"; done
	includes bpf/*.[ch] | while IFS=$tab read -r f inc; do judge_bpf "$f" "$inc"; done
	includes include/*.h | while IFS=$tab read -r f inc; do judge_abi "$f" "$inc"; done
)
[ -z "$found" ] && exit 0
printf '%s\n' "$found" >&2
exit 1
