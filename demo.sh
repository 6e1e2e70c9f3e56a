#!/usr/bin/env bash
# Sets up what is missing, builds, and runs the main job: real matrices through Gemm::launch, verified against float64,
# and 1797 handwritten digits classified.
#
# Exit codes: 0 done and right; 1 something failed; 77 built, but there is no CUDA device to run on.
set -euo pipefail
cd "$(dirname "$0")"
. .ci/setup.sh

install_missing
configure_and_build

data=examples/digits/data
if ! have_gpu; then
    say "no CUDA device was found, so nothing can be multiplied here. What would run on an H200:"
    build/examples/gemm_npy/gemm_npy "$data/images.npy" "$data/layer1_weight.npy" --explain --compute-capability 9.0
    say "run ./demo.sh on a machine with an NVIDIA GPU of compute capability 7.5 or later (exit code 77)"
    exit 77
fi

say "1797x64 images times 64x128 weights, read from .npy files, with bias and ReLU, each variant verified against float64"
for variant in simt_naive simt_tiled simt_vectorized simt_coarsened simt_register_blocked automatic; do
    build/examples/gemm_npy/gemm_npy "$data/images.npy" "$data/layer1_weight.npy" -o build/demo_product.npy --variant "$variant" \
        --bias-per-column "$data/layer1_bias.npy" --epilogue relu --verify
done
for type in f16 bf16; do
    build/examples/gemm_npy/gemm_npy "$data/images.npy" "$data/layer1_weight.npy" -o build/demo_product.npy --type "$type" --verify
done

say "a neural network reads 1797 handwritten digits"
build/examples/digits/digits --data "$data"
say "done"
