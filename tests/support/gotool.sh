#!/bin/bash
# gotool.sh DIR OUT: build the Go module in DIR, a tool that the tests judge with.
# Its modules may ask for a newer Go than the machine's, so an official one builds it.
set -eu
cd "$(dirname "$0")/../.."
. tests/support/toolchains.sh
gobuild "${GOTOOL_VERSION:-1.27.4}" "$2" "$1" -trimpath
