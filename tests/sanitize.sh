#!/usr/bin/env bash
# Runs the device tests and the memory stress under compute-sanitizer with every tool, and prints the findings.
#
#   tests/sanitize.sh [build directory]     default: build
#
#   TESSERA_SANITIZE_TOOLS     tools to run; default: memcheck racecheck initcheck synccheck
#   TESSERA_SANITIZE_TIMEOUT   seconds for one program under one tool; default: 900
#   TESSERA_SEED               repeats a run with its seed
#
# Exit codes: 0 nothing found, 1 something found, 2 bad usage, 77 no GPU or no compute-sanitizer.
#
# context_lost_test is left out, because it breaks the device's context on purpose.
set -u

cd "$(dirname "$0")/.." || exit 2
if [ $# -gt 1 ]; then
    echo "usage: $0 [build directory]" >&2
    exit 2
fi
build=${1:-build}
limit=${TESSERA_SANITIZE_TIMEOUT:-900}
read -r -a tools <<< "${TESSERA_SANITIZE_TOOLS:-memcheck racecheck initcheck synccheck}"
programs=(
    device/gemm_test
    device/gemm_views_test
    device/gemm_batches_test
    device/gemm_cost_test
    device/gemm_offsets_test
    device/mma_test
    device/mma_sync_test
    device/gated_test
    device/hopper_test
    device/hopper_repack_test
    device/hopper_sharing_test
    device/captured_hopper_test
    device/host_sdk_test
    device/tensor_map_test
    device/view_test
    device/static_owners_test
    stress/memory_stress
)

sanitizer=$(command -v compute-sanitizer || true)
for directory in "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda; do
    if [ -z "$sanitizer" ] && [ -n "$directory" ] && [ -x "$directory/bin/compute-sanitizer" ]; then
        sanitizer=$directory/bin/compute-sanitizer
    fi
done
if [ -z "$sanitizer" ]; then
    echo "skipped: compute-sanitizer not found; it comes with the CUDA Toolkit (cuda-sanitizer)"
    exit 77
fi
for program in "${programs[@]}"; do
    if [ ! -x "$build/tests/$program" ]; then
        echo "$build/tests/$program does not exist: build first, or name the build directory" >&2
        exit 2
    fi
done
"$build/tests/device/static_owners_test" > /dev/null
if [ $? -eq 77 ]; then
    echo "skipped: no CUDA device"
    exit 77
fi

logs=$build/sanitize
mkdir -p "$logs"
table=$(printf '%-10s  %-28s  %8s  %12s  %s' tool program errors 'leaked bytes' result)
failed=0
for tool in "${tools[@]}"; do
    for program in "${programs[@]}"; do
        name=$(basename "$program")
        log=$logs/$tool-$name.log
        options=(--tool "$tool" --error-exitcode 99)
        if [ "$tool" = memcheck ]; then
            options+=(--leak-check full)
            case $name in
                # These make calls fail on purpose, to check the errors. Memory errors are still found.
                host_sdk_test | memory_stress | tensor_map_test) options+=(--report-api-errors no) ;;
            esac
        fi
        printf '%s: %s ... ' "$tool" "$name"
        arguments=(--quick)
        # Owners that outlive the CUDA runtime leave their memory to the driver, which looks like a leak.
        [ "$name" = static_owners_test ] && arguments=(--before-runtime)
        timeout --kill-after=10 "$limit" "$sanitizer" "${options[@]}" "$build/tests/$program" "${arguments[@]}" \
            > "$log" 2>&1
        code=$?
        errors=$(sed -n 's/.*ERROR SUMMARY: \([0-9]*\) error.*/\1/p; s/.*RACECHECK SUMMARY: \([0-9]*\) hazard.*/\1/p' \
            "$log" | tail -1)
        leaked=-
        if [ "$tool" = memcheck ]; then
            leaked=$(sed -n 's/.*LEAK SUMMARY: \([0-9]*\) bytes.*/\1/p' "$log" | tail -1)
        fi
        case $code in
            0) result=ok ;;
            124 | 137) result="more than $limit s" ;;
            99) result=findings ;;
            *) result="exit code $code" ;;
        esac
        if [ "$result" = ok ]; then
            if [ -z "$errors" ] || [ -z "$leaked" ]; then
                result="no summary"  # an incomplete run proves nothing
            elif [ "$errors" != 0 ] || { [ "$leaked" != 0 ] && [ "$leaked" != - ]; }; then
                result=findings
            fi
        fi
        [ "$result" = ok ] || failed=1
        echo "$result"
        table+=$'\n'$(printf '%-10s  %-28s  %8s  %12s  %s' "$tool" "$name" "${errors:-?}" "${leaked:-?}" "$result")
        [ "$result" = ok ] || table+=", see $log"
    done
done
echo
echo "$table"
exit $failed
