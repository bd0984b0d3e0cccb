#!/bin/bash
# The layering test must see what it forbids: each bad include is put into a small tree.
set -u
rule=$PWD/tests/layering.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
bad=0

plant() { # FILE INCLUDE
	rm -rf "${tree:?}"/*
	mkdir -p "$tree"/user/{base,go/{image,layout,runtime,sites},target,subject,symbolize,base/sys,probe,sampling,engine,inspect,collect/{cpu,heap/{window,live},waits/{looks,engine,contention,wait}},profile,output,ingest/{heapdump,typing,exectrace},cli} "$tree"/{bpf,include}
	touch "$tree/bpf/common.bpf.h"
	printf '#include <stdio.h>\n\t# include "%s"\n' "$2" >"$tree/$1"
	(cd "$tree" && sh "$rule") >"$tree/said" 2>&1
}

refuses() {
	if plant "$1" "$2"; then
		echo "not ok layering/$1 includes $2 - was let through"
		bad=1
	elif ! grep -q "$1.*$2" "$tree/said"; then
		echo "not ok layering/$1 includes $2 - the message does not name both: $(cat "$tree/said")"
		bad=1
	else
		echo "ok layering/$1 may not include $2"
	fi
}

allows() {
	if plant "$1" "$2"; then
		echo "ok layering/$1 may include $2"
	else
		echo "not ok layering/$1 includes $2 - $(cat "$tree/said")"
		bad=1
	fi
}

refuses user/base/x.c go/image/gobin.h
refuses user/go/image/x.h target/target.h
refuses user/go/runtime/x.c profile/profile.h
refuses user/go/image/x.c go/layout/layout.h
refuses user/go/runtime/x.c go/sites/probesite.h
refuses user/target/x.c go/image/gobin.h
refuses user/subject/x.c profile/profile.h
refuses user/subject/x.c goprof_abi.h
refuses user/symbolize/x.c probe/uprobes/uprobes.h
refuses user/sampling/x.c subject/subject.h
refuses user/sampling/x.c cpu.skel.h
refuses user/probe/x.c engine/probing.h
refuses user/engine/x.c collect/collect.h
refuses user/collect/heap/x.c output/output.h
refuses user/collect/heap/x.c collect/waits/contention/sched.h
refuses user/inspect/x.c collect/waits/contention/sched.h
refuses user/collect/heap/window/x.c collect/heap/live/heap_live.h
refuses user/collect/heap/live/x.c collect/heap/heap_read.h
refuses user/collect/waits/looks/x.c collect/waits/engine/wait_engine.h
refuses user/collect/waits/engine/x.c collect/waits/wait/wait_window.h
refuses user/collect/waits/wait/x.c collect/waits/contention/sched.h
refuses user/collect/waits/wait/x.c collect/ratewrite/enable.h
refuses user/base/x.c base/sys/caps.h
refuses user/output/x.c collect/collect.h
refuses user/output/x.c cpu.skel.h
refuses user/cli/x.c goprof_abi.h
refuses user/go/image/x.c profile.pb-c.h
refuses user/collect/cpu/x.c target/target_priv.h
refuses user/go/image/x.c gobin.h
refuses user/ingest/exectrace/x.c target/target.h
refuses user/ingest/heapdump/x.c target/target.h
refuses user/ingest/heapdump/x.c ingest/typing/typing.h
refuses user/ingest/exectrace/x.c ingest/heapdump/heapdump.h
refuses user/ingest/x.c ingest/heapdump/heapdump.h
refuses user/ingest/typing/x.c ingest/heapdump/heapdump_priv.h
refuses bpf/x.bpf.c base/err.h
refuses bpf/x.bpf.c vmlinux.h
refuses include/x.h base/err.h
allows user/collect/cpu/x.c cpu.skel.h
allows user/collect/waits/looks/x.c goprof_abi.h
allows user/collect/waits/contention/x.c collect/waits/engine/wait_engine.h
allows user/collect/heap/x.c collect/heap/live/heap_live.h
allows user/base/sys/x.c base/err.h
allows user/collect/heap/x.c go/image/gobin.h
allows user/collect/heap/x.c collect/ratewrite/enable.h
allows user/collect/heap/x.c engine/probing.h
allows user/engine/x.c sampling/tally.h
allows user/probe/x.c subject/subject.h
allows user/inspect/x.c collect/collect.h
allows user/ingest/exectrace/x.c profile/profile.h
allows user/target/x.c target/target_priv.h
allows user/cli/x.c output/output.h
allows user/cli/x.c ingest/typing/typing.h
allows user/ingest/heapdump/x.c ingest/stream.h
allows user/ingest/heapdump/x.c ingest/heapdump/heapdump_priv.h
allows user/ingest/typing/x.c ingest/heapdump/heapdump.h
allows bpf/x.bpf.c common.bpf.h
plant user/base/x.c base/err.h
touch "$tree"/user/base/{a..t}.h
if (cd "$tree" && sh "$rule") >"$tree/said" 2>&1 || ! grep -q '^user/base: 21 files, 20 at most' "$tree/said"; then
	echo "not ok layering/a crowded folder - was let through"
	bad=1
else
	echo "ok layering/a crowded folder is refused"
fi
exit $bad
