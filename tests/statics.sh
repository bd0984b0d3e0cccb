#!/bin/sh
# No state of the whole process but the command line's: what one target has is in a struct that somebody owns.
#	tests/statics.sh DIR		the folder of user/'s object files
# A variable that lives as long as the process and may be written to is an error, whatever its name and scope. Reads the
# sources of the tree it is started in, so that its own test can give it a bad one.
set -u
obj=$1

# The exceptions: where, its name, and why no owner can have it.
allowed() {
	cat <<-'EOF'
		base/loop/cancel	stop_since	a question to whoever has our signals; asked from everywhere, answered by the command line
		base/hash	secret		drawn once, and a constant from then on; tables of all parts are compared by hashes
		base/sys/oom	raised_by	by what our own oom_score_adj was raised: the kernel has one for a process
		base/sys/spill	all		bounds the memory of the process; a handler of SIGBUS, which has no argument, needs it
		probe/bpf	log_last	libbpf reports through one callback of the process, which has no argument
		probe/bpf_old	old		a fact about the kernel, found out once
		probe/bpf_reads	kept		libbpf has one table of handlers for a process, and forgets none
		probe/uprobes/attacher	the_job		what this executable does when it is run as a helper: set by main() before all else
	EOF
}

# "FOLDER/FILE NAME" of each variable in memory that stays writable. What is constant but for addresses is in .data.rel.ro.
variables() {
	readelf -SsW "$@" | awk '
		/^File: / { f = $2; split("", writable) }
		{ sub(/^ *\[ */, "[") }
		/^\[[0-9]+\]/ {
			writable[substr($1, 2, length($1) - 2)] = $8 ~ /W/ && $2 !~ /^\.data\.rel\.ro/
			next
		}
		($4 == "OBJECT" || $4 == "TLS") && ($7 == "COM" || writable[$7]) {
			sub(/\.[0-9]+$/, "", $8) # of a static within a function
			sub(/\.o$/, "", f)
			print f, $8
		}' | sed "s|^$obj/||" | sort -u
}

objects=
for f in user/*/*.c user/*/*/*.c user/*/*/*/*.c; do
	[ -f "$f" ] || continue
	f=${f#user/}
	case $f in cli/*) continue ;; esac
	f=$obj/${f%.c}.o
	[ -f "$f" ] || { echo "$f: it was not compiled" >&2; exit 1; }
	objects="$objects $f"
done
# Of a single file readelf does not say the name.
# shellcheck disable=SC2086
set -- ${objects:?no sources}
found=$(variables "$1" "$@")
bad=0
while read -r f name; do
	[ -z "$f" ] || allowed | grep -q "^$f	*$name	" ||
		{ echo "user/$f.c: $name is state of the whole process: its owner is to have it (tests/statics.sh)" >&2; bad=1; }
done <<EOF
$found
EOF
while read -r f name why; do
	[ ! -f "$obj/$f.o" ] || printf '%s\n' "$found" | grep -qx "$f $name" ||
		{ echo "tests/statics.sh: user/$f.c has no $name any more: $why" >&2; bad=1; }
done <<EOF
$(allowed)
EOF
exit $bad
