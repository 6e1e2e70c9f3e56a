#!/usr/bin/env bash
# Runs the device tests and examples on the emulated devices under many seeds of the schedules that choose. All of them are
# right, so whatever the emulated device reports is a false alarm, or a fault that one order shows.
#
#   tests/emulator/seeds.sh [--build <directory>] [--seeds <n>] [--devices "<device>..."]
#
# Defaults: build, 50 seeds, "b200 h200 t4". One seed of both takes 13 s of CPU time on a device: half an hour in all.
# Exit codes: 0 nothing reported, 1 something reported or a program failed, 2 bad usage.
#
# Left out: context_lost_test, which breaks the device's context on purpose; graph_and_streams and the larger cases of
# gemm_test, which take minutes for one seed.
set -u

build=build
seeds=50
devices="b200 h200 t4"
while [ $# -gt 0 ]; do
    if [ $# -lt 2 ]; then
        echo "$0: $1 needs a value" >&2
        exit 2
    fi
    case "$1" in
        --build) build=$2 ;;
        --seeds) seeds=$2 ;;
        --devices) devices=$2 ;;
        *)
            echo "usage: $0 [--build <directory>] [--seeds <n>] [--devices \"<device>...\"]" >&2
            exit 2
            ;;
    esac
    shift 2
done

programs=(
    "tests/device/gemm_test --quick -tc=NaN*,*SIMT?ladder*"
    "tests/device/gemm_views_test --quick"
    "tests/device/gemm_cost_test --quick"
    "tests/device/tensor_map_test --quick"
    "tests/device/static_owners_test --quick"
    "examples/quickstart/quickstart"
    "examples/vector_add/vector_add"
)
# These do much that does not depend on the kind of device.
on_b200=(
    "tests/device/host_sdk_test --quick"
    "tests/stress/memory_stress --quick"
)
emulator=$build/sdk/emulator/tessera-emu
if [ ! -x "$emulator" ]; then
    echo "$0: $emulator is not there: build it, or name the build directory with --build" >&2
    exit 2
fi

output=$(mktemp)
trap 'rm -f "$output"' EXIT
runs=0
failures=0
run() { # <device> <schedule> <seed> <program and arguments>
    local device=$1 schedule=$2 seed=$3 command
    read -r -a command <<< "$4"
    command[0]=$build/${command[0]}
    if [ ! -x "${command[0]}" ]; then
        echo "$0: ${command[0]} is not there" >&2
        exit 2
    fi
    runs=$((runs + 1))
    "$emulator" --strict --device "$device" --schedule "$schedule" --seed "$seed" -- "${command[@]}" > "$output" 2>&1
    local status=$?
    if [ $status -ne 0 ]; then
        failures=$((failures + 1))
        echo "exit status $status: $emulator --strict --device $device --schedule $schedule --seed $seed -- ${command[*]}"
        tail -n 40 "$output"
    fi
}

for device in $devices; do
    list=("${programs[@]}")
    [ "$device" != b200 ] || list+=("${on_b200[@]}")
    for program in "${list[@]}"; do
        for schedule in random adversarial; do
            for seed in $(seq "$seeds"); do
                run "$device" "$schedule" "$seed" "$program"
            done
        done
        echo "$device: ${program}: $seeds seeds of each schedule, $failures failures so far"
    done
done
echo "$runs runs, $failures with a report or a failure"
[ $failures -eq 0 ]
