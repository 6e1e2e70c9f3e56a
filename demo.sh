#!/usr/bin/env bash
# Sets up what is missing, builds, and runs the main job: real matrices through Gemm::launch, verified against float64,
# and 1797 handwritten digits classified.
#
# On a machine without a GPU it runs on the emulated device (TESSERA_EMU_DEVICE: b200, h200 or t4; default b200).
#
# Exit codes: 0 done and right; 1 something failed.
set -euo pipefail
cd "$(dirname "$0")"
. .ci/setup.sh

install_missing
configure_and_build

data=examples/digits/data
run=()
if ! have_gpu; then
    device=${TESSERA_EMU_DEVICE:-b200}
    [ -x build/sdk/emulator/tessera-emu ] ||
        fail "there is no CUDA device, and the emulated one was not built: it needs pkg-config, libzstd-dev and liblz4-dev"
    run=(build/sdk/emulator/tessera-emu --device "$device" --)
    say "no CUDA device was found: everything runs on the emulated device '$device'. Results are real, times are the emulator's"
fi

say "1797x64 images times 64x128 weights, read from .npy files, with bias and ReLU, each variant verified against float64"
for variant in simt_naive simt_tiled simt_vectorized simt_coarsened simt_register_blocked automatic; do
    "${run[@]}" build/examples/gemm_npy/gemm_npy "$data/images.npy" "$data/layer1_weight.npy" -o build/demo_product.npy --variant "$variant" \
        --bias-per-column "$data/layer1_bias.npy" --epilogue relu --verify
done
for type in f16 bf16; do
    "${run[@]}" build/examples/gemm_npy/gemm_npy "$data/images.npy" "$data/layer1_weight.npy" -o build/demo_product.npy --type "$type" --verify
done

say "a neural network reads 1797 handwritten digits"
"${run[@]}" build/examples/digits/digits --data "$data"
say "done"
