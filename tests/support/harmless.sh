# shellcheck shell=bash
# Is the target as it was, and does the kernel hold nothing of ours? For testdata/programs/checksum, started
# by `start`; source this file after lib.sh. OURS is the user who profiles.
#
#	code BINARY	once, before it is probed
#	judge harmless

# code BINARY: its segment of code: OFF in the file, ADDR, SIZE, and the bytes in $TMP/text.
code() {
	read -r OFF ADDR SIZE < <(readelf -lW "$1" | awk '/^  LOAD/ && / R E / { print $2, $3, $5 }')
	dd if="$1" bs=1M iflag=skip_bytes,count_bytes skip=$((OFF)) count=$((SIZE)) of="$TMP/text" status=none
}

# How many bytes of the target's code are not the file's.
changed() {
	dd if="/proc/$PID/mem" bs=1M iflag=skip_bytes,count_bytes skip=$((ADDR)) count=$((SIZE)) \
		status=none 2>/dev/null | cmp -l - "$TMP/text" 2>&1 | wc -l
}

good() { sed -n 's/^good //p' "$OUT" | tail -n 1; }

# The sums go on and are right.
computes() {
	local before i now
	kill -USR1 "$PID" || return 1
	sleep 0.1
	before=$(good)
	for ((i = 0; i < 200; i++)); do
		kill -USR1 "$PID" 2>/dev/null || return 1
		sleep 0.05
		now=$(good)
		[ "${now:-0}" -gt "${before:-0}" ] && ! grep -q '^wrong' "$OUT" && return 0
	done
	return 1
}

left() { "$O/tests/cycles" -left $OURS; }

# Taking probes out is the kernel's work after a death, and it frees what nobody holds any more later.
restored() {
	local i
	for ((i = 0; i < 200; i++)); do
		[ "$(changed)" = 0 ] && [ "$(left)" = "0 programs, 0 links" ] && return 0
		sleep 0.05
	done
	return 1
}

# A judge: the target is as it was.
harmless() {
	restored || { echo "$(changed) bytes of its code are not the file's, $(left) are left"; return 1; }
	computes || { echo "its sums: $(tail -n 1 "$OUT")"; return 1; }
}
