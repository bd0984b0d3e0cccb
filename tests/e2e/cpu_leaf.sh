#!/bin/bash
# A frameless leaf that is called 3:1 from two functions shows 3:1: its direct caller is
# neither lost nor taken for another. Go 1.16 (late frame setup, g in TLS), 1.19, 1.27.
. tests/support/lib.sh
. tests/support/judges.sh
need_root && need_bpf && need_go

for v in 1.16.15 1.19.13 1.27.4; do
	name=cpu_leaf/$v
	bin=$(subject $v leaf31 -ldflags='-s -w') || { fail $name "does not build"; continue; }
	start_quiet "$bin" || { fail $name "does not start"; continue; }
	judge leaf_callers
	kill $PID
	outcome $name
done
finish
