#!/usr/bin/env bash
# Builds and runs a chapter's program of the course (docs/course) on the emulated B200. Sets up what is missing.
#
# Usage: ./course.sh [-y] PROGRAM [OPTION ...]
#   PROGRAM  a chapter's number, 1 to 11, or the name of another program of examples/course: layouts
#   OPTION   of tessera-emu, such as: --statistics text, --strict, --schedule adversarial, --trace trace.json
#   -y       install missing packages without asking
# Exit codes: those of tessera-emu; 2 wrong usage.
set -euo pipefail
cd "$(dirname "$0")"
. .ci/setup.sh

usage() { sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; }
case "${1:-}" in
    -y | --yes)
        TESSERA_YES=1
        shift
        ;;
    -h | --help)
        usage
        exit 0
        ;;
esac
program=${1:-}
[ -n "$program" ] || { usage >&2; exit 2; }
shift
case $program in
    [1-9]) target=course_0$program ;;
    *) target=course_$program ;;
esac
if ! ls examples/course/"${target#course_}"[_.]*cu >/dev/null 2>&1; then
    printf 'course.sh: there is no program "%s": examples/course has\n' "$program" >&2
    ls examples/course/*.cu >&2
    exit 2
fi

emulator=build-demo/sdk/emulator/tessera-emu
if [ ! -x $emulator ]; then
    install_missing
    cpu_seconds=360
    say "building the library and the emulated device: about $(((cpu_seconds / $(nproc) + 59) / 60)) min on $(nproc) cores, this once"
fi
[ -f build-demo/build.ninja ] || configure demo
[ -x $emulator ] || build demo tessera-emu "$target"  # shows its progress
NINJA_STATUS='' cmake --build --preset demo --target tessera-emu "$target" >build-demo/course.log 2>&1 || {
    cat build-demo/course.log >&2
    fail "the program does not compile"
}
exec $emulator --device b200 "$@" -- build-demo/examples/course/"$target"
