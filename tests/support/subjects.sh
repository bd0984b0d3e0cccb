#!/bin/bash
# The programs that scripts of tests/e2e need while they measure, and that are therefore built before.
#
#	subjects.sh toolchains	fetch every Go toolchain of the tests, several at a time
#	subjects.sh list	one line each: the command of tests/support/lib.sh that builds it
#	subjects.sh build	build all of the list, $JOBS at a time, the first of the list first
#
# Whatever is not in the list is built by the script that needs it: that costs its time and nothing
# else. tests/run.sh says at its end which programs were built so.
set -u
cd "$(dirname "$0")/../.." || exit 1

. tests/support/toolchains.sh
S="-ldflags='-s -w'"

# each "V..." COMMAND REST: one line for each version; V in COMMAND and REST is left out.
each() {
	local v
	for v in $1; do echo "$2 $v $3"; done
}

list() {
	local cell
	echo "INSTALL_ONLY=1 bash tests/e2e/realsoft.sh"
	echo "INSTALL_ONLY=1 bash tests/e2e/realwait.sh"
	echo "INSTALL_ONLY=1 bash tests/e2e/heapdump_hprof.sh"
	each "1.27.4" subject "checksum"
	each "1.27.4" subject "alloctruth $S"
	each "1.19.13 1.27.4" subject dumped
	each "1.19.13" subject knownheap
	each "1.27.4" subject "knownheap -buildmode=pie"
	each "1.27.4" subject "knownheap -ldflags=-w"
	each "1.27.4" subject "knownheap $S"
	each "1.16.15 1.19.13 1.22.12 1.24.13" subject "alloctruth $S"
	each "1.16.15 1.22.12 1.24.13 1.27.4" subject heaplabels
	each "1.18.10 1.27.4" subject "typed $S"
	each "1.18.10 1.21.13" subject "typed -buildmode=pie $S"
	each "1.24.13" subject typed
	each "1.27.4" "CGO=1 subject" "typed -buildmode=pie -ldflags='-linkmode external -s -w'"
	each "1.19.13 1.21.13 1.22.12 1.27.4" subject "churn $S"
	each "1.19.13 1.27.4" subject "relay $S"
	each "1.19.13 1.22.12 1.24.13 1.26.11 1.27.4" subject "liveset $S"
	each "1.27.4" subject "liveset -buildmode=pie $S"
	each "1.16.15 1.18.10 1.19.13 1.27.4" subject liveset
	each "1.27.4" subject "liveset -tags sampled"
	each "1.18.10 1.22.12 1.27.4" subject "waits $S"
	each "1.18.10" subject "waits -buildmode=pie $S"
	each "1.18.10 1.22.12 1.27.4" subject "waits -tags=self $S"
	each "1.27.4" subject "waits -tags=self"
	each "1.27.4" subject "hotwaits $S"
	echo "PREPARE=1 bash tests/e2e/contention_probe.sh"
	each "1.27.4" subject "storm $S"
	each "1.27.4" subject deaf
	each "1.27.4" "GOARCH=386 subject" knownheap
	each "1.27.4" "GOARCH=386 subject" "knownheap $S"
	each "1.27.4" "GOARCH=s390x subject" knownheap
	each "1.22.12" library "waits plugin -ldflags=-w"
	each "1.22.12 1.27.4" library "liveset plugin -ldflags=-w"
	each "1.16.15 1.19.13 1.22.12 1.27.4" subject cpuself
	each "1.16.15 1.19.13 1.27.4" subject "cpuself $S"
	each "1.19.13 1.27.4" subject "cpuself -buildmode=pie $S"
	each "1.19.13 1.27.4" "CGO=1 subject" "cpuself -tags=withcgo -ldflags='-s -w -linkmode=external'"
	each "1.16.15 1.19.13 1.23.12 1.27.4" subject "hardstacks $S"
	each "1.16.15 1.19.13 1.27.4" subject "leaf31 $S"
	each "1.27.4" subject "threads $S"
	each "1.27.4" subject hosted
	each "1.16.15 1.19.13 1.22.12 1.27.4" subject "hosted $S"
	each "1.27.4" subject "hosted -tags=records $S"
	each "1.27.4" subject ratewatch
	each "1.19.13" subject ratewatch
	each "1.19.13 1.24.13 1.27.4" subject alloctruth
	each "1.19.13 1.27.4" subject "alloctruth -buildmode=pie $S"
	each "1.27.4" subject "checksum -tags sampled"
	each "1.27.4" subject "checksum -tags=sampled"
	each "1.19.13" subject checksum
	each "1.27.4" subject waitself
	each "1.27.4" subject heapself
	each "1.22.12" subject heapself
	each "1.19.13" subject "heapself -buildmode=pie $S"
	each "1.24.13" subject "goroutines $S"
	each "1.27.4" subject "rtvars -tags=profiles"
	each "1.22.12" subject "demo $S"
	each "1.27.4 1.16.15 1.19.13" "CGO=1 subject" "callback $S"
	each "1.27.4 1.16.15" subject "command $S"
	each "1.18.10 1.27.4" subject "command -buildmode=pie $S"
	each "1.27.4" "CGO=1 subject" "command -ldflags='-linkmode=external'"
	each "1.27.4" "CGO=1 subject" "command -buildmode=pie -ldflags='-linkmode=external -s -w'"
	each "1.18.10 1.27.4" subject "command -tags sampled $S"
	each "1.16.15 1.22.12 1.27.4" library "leaf31 cshared $S"
	each "1.16.15 1.22.12 1.27.4" library "alloctruth cshared $S"
	each "1.16.15 1.22.12 1.27.4" library "heapself cshared $S"
	each "1.16.15 1.22.12 1.27.4" pluginhost "-ldflags=-w"
	each "1.16.15 1.22.12 1.27.4" library "leaf31 plugin -ldflags=-w"
	each "1.16.15 1.22.12 1.27.4" library "alloctruth plugin -ldflags=-w"
	each "1.16.15 1.22.12 1.27.4" library "heapself plugin -ldflags=-w"
	each "1.16.15 1.27.4" subject leaf31
	each "1.27.4" subject "leaf31 -buildmode=pie"
	each "1.22.12" "CGO=1 subject" "leaf31 -race"
	each "1.27.4" subject pingpong
	each "1.27.4" subject births
	each "1.16.15 1.19.13 1.21.13 1.22.12 1.24.13 1.25.14 1.26.11 1.27.4" subject traced
	each "1.4.3 1.16.15 1.22.12 1.27.4" subject heapworld
	each "1.27.4" "GOARCH=386 subject" heapworld
	each "1.27.4" "GOARCH=s390x subject" heapworld
	for cell in $(sed -n 's/^set -- ${CELLS:-\(.*\)}$/\1/p' tests/e2e/matrix.sh); do
		echo "cell ${cell%%:*} ${cell#*:}"
	done
}

# cell V KIND: of the support matrix, with the twin that its variables are compared with
cell() {
	. tests/matrix/kinds.sh
	matrix_build "$1" "$2" && { [ "$(twin "$2")" = "$2" ] || matrix_build "$1" "$(twin "$2")"; }
}

one() {
	. tests/support/lib.sh
	FINISHED=1 # there is nothing to ask here
	eval "$1" >/dev/null
}

case ${1:-} in
toolchains)
	. tests/support/toolchains.sh
	export -f goroot goroot_fetch
	export GOARCH_HOST
	# shellcheck disable=SC2086
	printf '%s\n' 1.4.3 $ALL_MINORS | tac | xargs -P 4 -I{} bash -c 'goroot {} >/dev/null || exit 1' ;;
list)  list ;;
build)
	. tests/support/toolchains.sh
	list | tr '\n' '\0' | xargs -0 -P "${JOBS:-2}" -I{} bash "$0" one {} ;;
one)   one "$2" ;;
*)     sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
