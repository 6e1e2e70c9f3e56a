#!/usr/bin/env bash
# Shows what Tessera is, in minutes: a product on Blackwell's tensor cores, verified; a data race found, with its line; a
# handwritten digit, read. Sets up what is missing, and builds only what it runs, for one architecture (in build-demo/).
#
# With a GPU it runs there. Without one it runs on the emulated device (TESSERA_EMU_DEVICE: b200, h200 or t4; default
# b200). The race is searched for on the emulated device in any case.
#
# Usage: ./demo.sh [-y]     -y: install missing packages without asking
# Exit codes: 0 done and right; 1 something failed; 2 wrong usage.
set -euo pipefail
cd "$(dirname "$0")"
. .ci/setup.sh

case "${1:-}" in
    '') ;;
    -y | --yes) TESSERA_YES=1 ;;
    *)
        sed -n '2,/^set /s/^# \{0,1\}//p' "$0"
        [ "$1" = -h ] || [ "$1" = --help ] || exit 2
        exit 0
        ;;
esac

install_missing

device=${TESSERA_EMU_DEVICE:-b200}
run=()
if have_gpu; then
    # Machine code runs on later devices of its generation, too.
    generation=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | cut -d. -f1)
    case $generation in
        7) architecture=75-real ;;
        *) architecture=${generation}0-real ;;
    esac
    where="your $(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1)"
    cpu_seconds=450
else
    case $device in
        b200) architecture=100-virtual ;;
        h200) architecture=90-virtual ;;
        t4) architecture=75-virtual ;;
        *) fail "TESSERA_EMU_DEVICE is \"$device\", and this demo knows b200, h200 and t4" ;;
    esac
    where="an emulated $device"
    cpu_seconds=300
    run=(build-demo/sdk/emulator/tessera-emu --device "$device" --)
fi
emulated=(build-demo/sdk/emulator/tessera-emu --device "$device" --)

if [ ! -x build-demo/examples/digits/digits ]; then
    minutes=$(((cpu_seconds / $(nproc) + 59) / 60))
    say "building the library, the emulated device and three programs: about $minutes min on $(nproc) cores, this once"
fi
start=$SECONDS
configure demo -DCMAKE_CUDA_ARCHITECTURES=$architecture
build demo tessera-emu gemm_npy
[ -x build-demo/sdk/emulator/tessera-emu ] ||
    fail "the emulated device was not built: it needs pkg-config, libzstd-dev and liblz4-dev"
examples=build-demo/examples
data=examples/digits/data

echo
say "1. A matrix product"
echo "   1797 images of 64 pixels times a layer of 64x128 weights in bf16, on $where:"
echo
"${run[@]}" $examples/gemm_npy/gemm_npy $data/images.npy $data/layer1_weight.npy --type bf16 --output-type f32 \
    --bias-per-column $data/layer1_bias.npy --epilogue relu --verify
printf '%s   first result after %d s%s\n' "$dim" $((SECONDS - start)) "$plain"

build demo planted_race digits
race=$examples/planted_race/planted_race
echo
say "2. A race, found"
echo "   examples/planted_race/main.cu forgets one barrier. The emulated device sees it in one run:"
echo
"${emulated[@]}" $race forgotten || true  # its answer may be wrong, too
status=0
"${emulated[@]:0:3}" --strict -- $race forgotten >/dev/null 2>&1 || status=$?
[ $status = 86 ] || fail "the race was not found"
echo
echo "   A GPU says nothing about it, and may well give the right answer. With the barrier there is no finding:"
echo
"${emulated[@]:0:3}" --strict -- $race corrected

echo
say "3. A handwritten digit, read"
echo "   1797 images through a network of three layers, one launch each; one of them, drawn at random:"
echo
"${run[@]}" $examples/digits/digits --data $data --show $((RANDOM % 1797))

echo
say "All of it in $((SECONDS - start)) s. Next:"
cat <<END
   docs/guide.md                    the API, from the first product on
   examples/README.md               programs to copy from; examples/planted_race is the one with the race
   docs/emulator.md                 your own CUDA program on an emulated B200: ${emulated[0]} -- ./program
   ./test.sh                        builds everything and runs the test suite
END
