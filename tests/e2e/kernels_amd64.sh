#!/bin/bash
# The short suite on the oldest and the newest kernel for amd64 of vmtest/kernels.txt.
. tests/support/lib.sh
. tests/support/kernels.sh
on_kernels amd64
finish
