#!/usr/bin/env bash
# Sets up what is missing, builds everything, and runs the whole test suite. The device tests run on the emulated device
# everywhere, and on a machine with a CUDA device on that, too; without one these are reported as skipped.
#
# Usage: ./test.sh [-y] [argument of ctest]...    e.g. ./test.sh -L unit; -y: install missing packages without asking
# Exit codes: 0 all tests that can run here passed; anything else: something failed.
set -euo pipefail
cd "$(dirname "$0")"
. .ci/setup.sh

if [ "${1:-}" = -y ]; then
    TESSERA_YES=1
    shift
fi
install_missing tests
configure_and_build

if have_gpu; then
    say "testing on $(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1)"
else
    say "no CUDA device was found: the tests labelled 'device' will be skipped, and run on the emulated device instead"
fi
# Device tests share one GPU and measure its free memory, so they run one at a time; see RUN_SERIAL in tests/.
ctest --preset default -j "$(nproc)" "$@"
