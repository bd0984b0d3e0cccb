# shellcheck shell=bash
# Official Go toolchains for the tests; source this file.
#
#	goroot V			print the GOROOT of Go V ("1.22.12"), fetched when it is not there
#	gobuild V OUT DIR_OR_FILE [FLAG...]	build with it, and check that the result is of that version
#	gorun V ARG...			run that toolchain's go command ("gorun 1.27.4 tool pprof ...")
#
# Every official release is a module of the Go module proxy, checked against the checksum
# database. Any go from 1.19 on can fetch any other. The machine's own settings must not
# reach the builds, hence GOENV=off, GOFLAGS= and GOTOOLCHAIN=local.
# CGO=1 builds with cgo; GOARCH, GOOS and GOEXPERIMENT pass through.

# The newest point release of every minor that we profile, and of those before whose heap dumps we read.
# shellcheck disable=SC2034
OLD_MINORS="1.4.3 1.5.4 1.6.2 1.7.6 1.8.3 1.9.7 1.10.8 1.11.13 1.12.17 1.13.15 1.14.15 1.15.15"
# shellcheck disable=SC2034
ALL_MINORS="1.16.15 1.17.13 1.18.10 1.19.13 1.20.14 1.21.13 1.22.12 1.23.12 1.24.13 1.25.14 1.26.11 1.27.4"

case ${O:=build} in /*) ;; *) O=$PWD/$O ;; esac
# Packages that programs of testdata/programs share.
GOPROF_PACKAGES=$PWD/testdata/gopath
export GOPROF_PACKAGES
GOARCH_HOST=$(uname -m | sed 's/x86_64/amd64/; s/aarch64/arm64/')
# The ways to modules and the caches are the machine settings that we keep: the standard library of a Go
# version is compiled once a machine and not once a clone.
if [ -z "${GOPROF_GOPROXY:-}${PREBUILT:-}" ]; then
	GOPROF_GOPROXY=$(cd / && go env GOPROXY 2>/dev/null)
	GOPROF_GOSUMDB=$(cd / && go env GOSUMDB 2>/dev/null)
	GOPROF_MODCACHE=$(cd / && go env GOMODCACHE 2>/dev/null)
	GOPROF_GOCACHE=$(cd / && go env GOCACHE 2>/dev/null)
	case $GOPROF_GOCACHE in /*) ;; *) GOPROF_GOCACHE=$O/go/cache ;; esac # "off", or no go yet
	export GOPROF_GOPROXY GOPROF_GOSUMDB GOPROF_MODCACHE GOPROF_GOCACHE
fi

# The answer is JSON with a field a line: "Dir": "..." or "Error": "...".
goroot_fetch() {
	local said
	said=$(cd / && GOFLAGS='' GOTOOLCHAIN=local GO111MODULE=on timeout 600 \
		go mod download -json "golang.org/toolchain@v0.0.1-go$1.linux-$GOARCH_HOST" 2>&1)
	printf '%s\n' "$said" | sed -n 's/^[[:space:]]*"Error": /Go '"$1"': /p' >&2
	printf '%s\n' "$said" | sed -n 's/^[[:space:]]*"Dir": "\(.*\)",*$/\1/p'
}

goroot() {
	local dir=$GOPROF_MODCACHE/golang.org/toolchain@v0.0.1-go$1.linux-$GOARCH_HOST try
	for try in 1 2 3; do
		# bin/go is the last thing needed; a half unpacked tree has another name.
		[ -n "$dir" ] && [ -f "$dir/bin/go" ] && break
		[ "$try" = 1 ] || sleep $((try * 3))
		dir=$(goroot_fetch "$1")
	done
	if [ -z "$dir" ] || [ ! -f "$dir/bin/go" ]; then
		echo "Go $1 could not be fetched" >&2
		return 1
	fi
	# A go older than 1.21 leaves the run bits off.
	[ -x "$dir/bin/go" ] && [ -x "$dir/pkg/tool/linux_$GOARCH_HOST/compile" ] ||
		chmod +x "$dir"/bin/* "$dir/pkg/tool/linux_$GOARCH_HOST"/* || return 1
	echo "$dir"
}

# Nothing of the machine's Go settings gets in but the way to modules. Compilers that collect their garbage less
# often take a fifth less CPU time and 80 MB more (net/http and what it imports, Go 1.22 and 1.27).
go_env() {
	local root=$1
	shift
	env -u GOBIN -u GOROOT_FINAL GOENV=off GOFLAGS='' GOTOOLCHAIN=local GOROOT="$root" \
		GOPROXY="$GOPROF_GOPROXY" GOSUMDB="$GOPROF_GOSUMDB" \
		GOPATH="$O/go/path:$GOPROF_PACKAGES" GOMODCACHE="$GOPROF_MODCACHE" GOCACHE="$GOPROF_GOCACHE" \
		CGO_ENABLED="${CGO:-0}" GOGC=400 "$@"
}

gorun() {
	local root
	root=$(goroot "$1") || return 1
	shift
	go_env "$root" "$root/bin/go" "$@"
}

gobuild() {
	local v=$1 out=$2 src=$3 root dir pkg=. mod=off said
	shift 3
	case $out in /*) ;; *) out=$PWD/$out ;; esac
	case $src in /*) ;; *) src=$PWD/$src ;; esac
	root=$(goroot "$v") || return 1
	dir=$src
	[ -d "$src" ] || { dir=$(dirname "$src") pkg=$(basename "$src"); }
	[ ! -f "$dir/go.mod" ] || mod=on
	mkdir -p "$(dirname "$out")" "$O/go" || return 1
	(cd "$dir" && GO111MODULE=$mod go_env "$root" "$root/bin/go" build "$@" -o "$out" "$pkg") || return 1
	# A build that fell back to another Go proves nothing. Old Gos do not tell a library's.
	case $out in *.so) [ "$("$root/bin/go" env GOVERSION)" = "go$v" ]; return ;; esac
	case $v in 1.[4-9].*|1.1[0-2].*) # which cannot tell the version of a program
		LC_ALL=C command grep -aqF "go$v" "$out" && return
		echo "$out: not built by go$v" >&2
		return 1 ;;
	esac
	said=$(go_env "$root" "$root/bin/go" version "$out") || return 1
	case $said in
	*": go$v"|*": go$v "*|*": go$v-X:"*) ;;
	*) echo "$out: built by ${said##*: }, not by go$v" >&2; return 1 ;;
	esac
}
