#!/bin/bash
# Makes a Debian package of an installed tree:
#
#	deb.sh STAGE DIR	STAGE: made by make install DESTDIR=STAGE PREFIX=/usr; prints the path
#				of DIR/goprof-bpf_VERSION_ARCH.deb
#
# What it depends on is asked of the libraries it was linked with (dpkg-shlibdeps). The same tree
# makes the same package: times are the changelog's. MAINTAINER="Name <mail>" says who built it.
set -eu
stage=$1 out=$2
src=$(cd "$(dirname "$0")" && pwd)
name=goprof-bpf
maintainer=${MAINTAINER:-$(sed -n 's/^ -- \(.*>\)  .*/\1/p' "$src/changelog" | head -n 1)}
version=$("$stage/usr/bin/$name" --version | sed 's/.* //')
arch=$(dpkg --print-architecture)
SOURCE_DATE_EPOCH=$(date -d "$(sed -n 's/^ -- .*>  //p' "$src/changelog" | head -n 1)" +%s)
export SOURCE_DATE_EPOCH
said=$(sed -n '1s/.*(\(.*\)).*/\1/p' "$src/changelog")
[ "$said" = "$version" ] || { echo "deb.sh: the changelog is of $said, the program of $version" >&2; exit 1; }

strip --strip-unneeded -R .comment -R .note "$stage/usr/bin/$name"
doc=$stage/usr/share/doc/$name
mkdir -p "$doc" "$stage/DEBIAN"
cp "$src/copyright" "$doc/copyright"
gzip -9n <"$src/changelog" >"$doc/changelog.gz"
# Nobody answers mail about a package that one builds for oneself, so lintian is told to ignore
# that.
overrides=$stage/usr/share/lintian/overrides
mkdir -p "$overrides"
cat >"$overrides/$name" <<END
$name: bogus-mail-host Maintainer *@localhost
$name: bogus-mail-host-in-debian-changelog *
END
find "$stage/usr/share/man" -name '*.1' -exec gzip -9n {} +

# dpkg-shlibdeps wants the source package's control file to be there.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/debian"
printf 'Source: %s\n\nPackage: %s\nArchitecture: any\n' $name $name >"$work/debian/control"
depends=$(cd "$work" && dpkg-shlibdeps -O -e"$stage/usr/bin/$name" 2>"$work/said" |
	sed -n 's/^shlibs:Depends=//p')
[ -n "$depends" ] || { cat "$work/said" >&2; exit 1; }

cat >"$stage/DEBIAN/control" <<END
Package: $name
Version: $version
Architecture: $arch
Maintainer: $maintainer
Installed-Size: $(du -sk --apparent-size --exclude=DEBIAN "$stage" | cut -f1)
Depends: $depends
Suggests: golang-go
Section: devel
Priority: optional
Description: profile running Go programs from outside
 Takes CPU, heap, block, mutex, wait and goroutine profiles of a Go program
 while it runs: no rebuild, no restart, no endpoint in it; stripped is fine. It
 writes the files that the program's own /debug/pprof would have given, with
 Go's numbers, stacks, inlined frames and units, for "go tool pprof", and flame
 graphs that a browser shows without anything else.
 .
 Needs root or CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE, and a kernel with BTF.
END
(cd "$stage" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum >DEBIAN/md5sums)
find "$stage" -type d -exec chmod 755 {} +
find "$stage" -type f ! -path "$stage/usr/bin/*" -exec chmod 644 {} +
find "$stage" -newermt "@$SOURCE_DATE_EPOCH" -exec touch -hd "@$SOURCE_DATE_EPOCH" {} +
deb=$out/${name}_${version}_$arch.deb
dpkg-deb --root-owner-group -Zxz --build "$stage" "$deb" >/dev/null
echo "$deb"
