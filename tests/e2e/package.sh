#!/bin/bash
# The Debian package on a clean root: a minimal Debian, made here from the machine's own mirrors, in
# which nothing is that the package does not ask for. It is installed there by apt, profiles a Go
# process from in there, and leaves nothing when it is purged. The same source makes the same package.
# The root is kept under build/ for a day.
set -u
. tests/support/lib.sh
need_root
need_bpf
command -v apt-get >/dev/null && command -v mmdebstrap >/dev/null || skip_all "needs apt-get and mmdebstrap: a Debian"
suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
ARCHIVE=$O/package/root-$suite-$(date +%Y%m%d).tar
R=$TMP/root

build_deb() {
	env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make O="${O#"$PWD"/}" deb >"$TMP/said" 2>&1
	tail -n 1 "$TMP/said"
}

# What apt on this machine fetches Debian from, as sources of the new root.
sources() {
	apt-get indextargets --no-release-info --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' \
		'Created-By: Packages' | sort -u |
		awk -v suite="$suite" '$3 == "main" && ($2 == suite || $2 ~ "^" suite "-(security|updates)$") {
			print "deb " $1 " " $2 " " $3 }'
}

make_root() {
	[ -s "$ARCHIVE" ] && return
	rm -rf "$O"/package/root-*
	sources >"$TMP/sources"
	# apt's lists stay, so that no second look at the mirror is needed.
	mmdebstrap --quiet --variant=apt --include=man-db --skip=cleanup/apt,cleanup/reproducible \
		--aptopt='Acquire::Retries "3"' "$suite" "$TMP/new.tar" "$TMP/sources" >"$TMP/said" 2>&1 &&
		mv "$TMP/new.tar" "$ARCHIVE"
}

# In the root, with the kernel's file systems, in a mount namespace that goes with the command.
inside_exec() {
	exec unshare -m sh -c '
		r=$1; shift
		mount -t proc proc $r/proc && mount --rbind /sys $r/sys && mount --rbind /dev $r/dev &&
		exec chroot $r env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C \
			DEBIAN_FRONTEND=noninteractive "$@"' - "$R" "$@" </dev/null
}
inside() { (inside_exec "$@"); }

# Every file that is there but the traces of apt itself.
files() { (cd "$R" && find . -xdev \( -path ./proc -o -path ./sys -o -path ./dev -o -path ./tmp -o -path ./var/lib/apt \
	-o -path ./var/cache -o -path ./var/log -o -path ./opt \) -prune -o -type f -printf '%P\n' | sort); }

deb=$(build_deb)
[ -f "$deb" ] || { fail package/built "$deb"; finish; }
grep -qi warning "$TMP/said" && fail package/quiet "$(grep -i -m 1 warning "$TMP/said")" || pass package/quiet
cp "$deb" "$TMP/first.deb"
touch user/package/changelog # other times in, the same package out
build_deb >/dev/null
cmp -s "$deb" "$TMP/first.deb" && pass "package/built, and again the same" || fail package/reproducible "two builds differ"

if ! make_root; then
	fail package/root "no minimal Debian could be made: $(tail -n 3 "$TMP/said" | tr '\n' ' ')"
	finish
fi
mkdir "$R" && tar -C "$R" --exclude='./dev/*' -xf "$ARCHIVE" || { fail package/root "cannot be unpacked"; finish; }
cp -L /etc/resolv.conf /etc/hosts "$R/etc/"
[ ! -e "$R/usr/bin/gcc" ] && [ ! -e "$R/usr/lib/$(uname -m)-linux-gnu/libbpf.so.1" ] && pass package/clean ||
	fail package/clean "the root has already what the package needs"
inside dpkg-query -W -f '${Package}\n' | sort >"$TMP/packages"
files >"$TMP/before"

# ---- installed ----

cp "$deb" "$R/opt/x.deb" # not /tmp: apt's own user reads it
if inside apt-get -qq install -y --no-install-recommends /opt/x.deb >"$TMP/said" 2>&1; then
	pass package/installed
else
	fail package/installed "$(tail -n 3 "$TMP/said" | tr '\n' ' ')"
	finish
fi
said=$(inside goprof-bpf --version 2>&1)
[ "$said" = "$("$GOPROF" --version)" ] && pass package/version || fail package/version "$said"
said=$(inside dpkg -V goprof-bpf 2>&1)
[ -z "$said" ] && pass "package/files are as packed" || fail package/files "$said"
said=$(inside man -w goprof-bpf 2>&1)
[ "$said" = /usr/share/man/man1/goprof-bpf.1.gz ] && pass package/man || fail package/man "$said"
inside goprof-bpf doctor >"$TMP/doctor" 2>&1 && pass package/doctor ||
	fail package/doctor "$(grep -m 3 '^  no' "$TMP/doctor" | tr '\n' ' ')"

# ---- it works ----

go=$(subject 1.22.12 demo -ldflags='-s -w') && cp "$go" "$R/opt/demo" || { fail package/profile "no Go program"; finish; }
inside_exec /opt/demo >/dev/null 2>&1 &
outer=$! # all is exec'ed away: this is the program
STARTED+=("$outer")
for _ in $(seq 100); do
	[ "$(cat "/proc/$outer/comm" 2>/dev/null)" = demo ] && break
	sleep 0.05
done
inside goprof-bpf -p "$outer" --cpu --heap -d 2s -o /opt/out --format pprof --format flame >"$TMP/out" 2>"$TMP/err"
rc=$?
if { [ $rc = 0 ] || [ $rc = 3 ]; } && # what may be lost is for other tests
	[ "$(grep -c '^/opt/out/demo\..*\.\(pb.gz\|html\)$' "$TMP/out")" = 4 ]; then
	pass package/profiles
else
	fail package/profiles "exit $rc: $(head -n 3 "$TMP/err" | tr '\n' ' ')"
fi
total=$("$PPROFCHECK" sum "$R"/opt/out/demo.*.cpu.pb.gz 2>&1 | awk '$2 == "cpu" { print $1 }')
[ "${total:-0}" -gt 100000000 ] 2>/dev/null && pass "package/CPU is in it" || fail package/cpu "sum $total"

# ---- and gone ----

inside apt-get -qq purge -y --autoremove goprof-bpf >"$TMP/said" 2>&1 || fail package/purge "$(tail -n 2 "$TMP/said")"
inside dpkg-query -W -f '${Package}\n' | sort | diff "$TMP/packages" - >"$TMP/diff" &&
	files | diff "$TMP/before" - >>"$TMP/diff" && pass "package/purged, nothing is left" ||
	fail package/purged "$(grep '^[<>]' "$TMP/diff" | head -n 5 | tr '\n' ' ')"
finish
