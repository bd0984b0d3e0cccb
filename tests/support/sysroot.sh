#!/bin/bash
# Libraries and headers of another architecture, and programs for its kernels, from this machine's Debian
# archive. The machine's own packages stay as they are: nothing is installed, and root is not needed.
#
#	sysroot.sh ARCH DIR PACKAGE...	unpacks them, and what they depend on, into DIR
#
# DIR/.packages lists what is there; what is there already is not fetched again.
set -eu -o pipefail
arch=${1:?ARCH} dir=${2:?DIR}
shift 2
state=$dir/.apt
want=$(printf '%s\n' "$@" | sort)
[ "$(cat "$dir/.packages" 2>/dev/null || :)" != "$want" ] || exit 0

mkdir -p "$state"/{lists/partial,cache/archives/partial}
: >"$state/status"
options=(-q -y -o Dir::State="$state" -o Dir::State::Lists="$state/lists" -o Dir::State::Status="$state/status" -o Dir::Cache="$state/cache"
	-o APT::Architecture="$arch" -o APT::Architectures::="$arch" -o APT::Install-Recommends=false -o Acquire::Languages=none
	-o Acquire::Retries=3 -o Debug::NoLocking=true -o APT::Sandbox::User=)
apt-get "${options[@]}" update
apt-get "${options[@]}" --download-only install "$@"
for deb in "$state"/cache/archives/*.deb; do dpkg-deb -x "$deb" "$dir"; done
rm -rf "$state"
echo "$want" >"$dir/.packages"
