#!/usr/bin/env python3
"""Makes the data of the digits example: images, a trained MLP and its reference outputs.

The images are the 1797 handwritten digits (8x8 pixels) that scikit-learn bundles as
`load_digits`; data/README.md names their source and licence. The network is
64 -> 128 -> 64 -> 10 with ReLU between the layers, trained here in plain NumPy (Adam, fixed
seed, a few seconds on a CPU).

Files written (.npy format 1.0, C order, little endian):

    images.npy                 float32 (1797, 64)   pixels / 16, so 0..1
    labels.npy                 int32   (1797,)      the digit, 0..9
    split.npy                  int32   (1797,)      0 = training row, 1 = test row
    layer{1,2,3}_weight.npy    float32 (in, out)    y = x @ weight + bias
    layer{1,2,3}_bias.npy      float32 (out,)
    reference_logits.npy       float64 (1797, 10)   forward pass in float64 with those weights
    reference_predictions.npy  int32   (1797,)      argmax of the reference logits

Usage:

    python3 examples/digits/train.py [--out DIR]           train and write the files
    python3 examples/digits/train.py --check [--out DIR]   check the stored files, write nothing

DIR is the folder `data` next to this script unless given. Needs the packages numpy and
scikit-learn; --check needs numpy only. Two runs with the same NumPy build on the same kind of
CPU write the same bytes; another NumPy build or CPU may round differently while training and
so reach slightly different weights.
"""

import argparse
import os
import pathlib
import sys

# The order of summation inside BLAS depends on the number of threads, so one thread, always.
# Must be set before NumPy is imported.
for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS",
              "VECLIB_MAXIMUM_THREADS"):
    os.environ[_name] = "1"

import numpy as np  # noqa: E402

LAYER_SIZES = (64, 128, 64, 10)
SAMPLES = 1797
TRAIN_SAMPLES = 1437
SEED = 2024
EPOCHS = 60
BATCH = 32
LEARNING_RATE = 1e-3
WEIGHT_DECAY = 1e-4
MIN_GAP = 1e-3        # wanted between the best and the second logit, over all images
MIN_TEST_ACCURACY = 0.96
CHECK_TOLERANCE = 1e-9  # recomputed float64 logits may differ by their summation order only

EXPECTED = {
    "images": ("<f4", (SAMPLES, LAYER_SIZES[0])),
    "labels": ("<i4", (SAMPLES,)),
    "split": ("<i4", (SAMPLES,)),
    "reference_logits": ("<f8", (SAMPLES, LAYER_SIZES[-1])),
    "reference_predictions": ("<i4", (SAMPLES,)),
}
for _i, (_in, _out) in enumerate(zip(LAYER_SIZES[:-1], LAYER_SIZES[1:]), start=1):
    EXPECTED[f"layer{_i}_weight"] = ("<f4", (_in, _out))
    EXPECTED[f"layer{_i}_bias"] = ("<f4", (_out,))


def save(folder, name, array):
    dtype, shape = EXPECTED[name]
    array = np.ascontiguousarray(array, dtype=dtype)
    assert array.shape == shape, (name, array.shape)
    with open(folder / f"{name}.npy", "wb") as file:
        np.lib.format.write_array(file, array, version=(1, 0), allow_pickle=False)


def load(folder, name):
    dtype, shape = EXPECTED[name]
    path = folder / f"{name}.npy"
    with open(path, "rb") as file:
        version = np.lib.format.read_magic(file)
        if version != (1, 0):
            raise ValueError(f"{path}: .npy format {version}, expected 1.0")
        header_shape, fortran_order, header_dtype = np.lib.format.read_array_header_1_0(file)
    if (header_shape, fortran_order, header_dtype.str) != (shape, False, dtype):
        raise ValueError(f"{path}: {header_dtype.str} {header_shape}, fortran_order="
                         f"{fortran_order}; expected {dtype} {shape} in C order")
    return np.load(path, allow_pickle=False)


def forward(images, layers, dtype):
    """Returns the input of every layer and, last, the logits."""
    activations = [images.astype(dtype)]
    for i, (weight, bias) in enumerate(layers):
        x = activations[-1] @ weight.astype(dtype) + bias.astype(dtype)
        activations.append(x if i + 1 == len(layers) else np.maximum(x, 0))
    return activations


def train(images, labels):
    """Trains in float64 and returns [(weight, bias), ...] rounded to float32."""
    rng = np.random.Generator(np.random.PCG64(SEED + 1))
    params = []
    for fan_in, fan_out in zip(LAYER_SIZES[:-1], LAYER_SIZES[1:]):
        params.append(rng.standard_normal((fan_in, fan_out)) * np.sqrt(2.0 / fan_in))
        params.append(np.zeros(fan_out))
    first = [np.zeros_like(p) for p in params]
    second = [np.zeros_like(p) for p in params]
    targets = np.eye(LAYER_SIZES[-1])[labels]
    beta1, beta2, epsilon, step = 0.9, 0.999, 1e-8, 0

    for _ in range(EPOCHS):
        order = rng.permutation(len(images))
        for start in range(0, len(order), BATCH):
            rows = order[start:start + BATCH]
            layers = list(zip(params[0::2], params[1::2]))
            activations = forward(images[rows], layers, np.float64)

            # Softmax and cross entropy: the gradient of the logits is (p - target) / batch.
            p = np.exp(activations[-1] - activations[-1].max(axis=1, keepdims=True))
            p /= p.sum(axis=1, keepdims=True)
            delta = (p - targets[rows]) / len(rows)

            grads = [None] * len(params)
            for i in reversed(range(len(layers))):
                grads[2 * i] = activations[i].T @ delta + WEIGHT_DECAY * params[2 * i]
                grads[2 * i + 1] = delta.sum(axis=0)
                if i > 0:
                    delta = (delta @ params[2 * i].T) * (activations[i] > 0)

            step += 1
            for param, grad, m, v in zip(params, grads, first, second):
                m += (1 - beta1) * (grad - m)
                v += (1 - beta2) * (grad * grad - v)
                m_hat = m / (1 - beta1 ** step)
                v_hat = v / (1 - beta2 ** step)
                param -= LEARNING_RATE * m_hat / (np.sqrt(v_hat) + epsilon)

    params = [p.astype(np.float32) for p in params]
    return list(zip(params[0::2], params[1::2]))


def make(folder):
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = (digits.data / 16.0).astype(np.float32)  # exact: the pixels are integers 0..16
    labels = digits.target.astype(np.int32)

    shuffled = np.random.Generator(np.random.PCG64(SEED)).permutation(SAMPLES)
    split = np.ones(SAMPLES, dtype=np.int32)
    split[shuffled[:TRAIN_SAMPLES]] = 0

    train_rows = shuffled[:TRAIN_SAMPLES]
    layers = train(images[train_rows], labels[train_rows])
    logits = forward(images, layers, np.float64)[-1]

    folder.mkdir(parents=True, exist_ok=True)
    save(folder, "images", images)
    save(folder, "labels", labels)
    save(folder, "split", split)
    for i, (weight, bias) in enumerate(layers, start=1):
        save(folder, f"layer{i}_weight", weight)
        save(folder, f"layer{i}_bias", bias)
    save(folder, "reference_logits", logits)
    save(folder, "reference_predictions", logits.argmax(axis=1))


def check(folder):
    """Recomputes everything derived from the stored weights; returns whether all of it holds."""
    data = {name: load(folder, name) for name in EXPECTED}
    layers = [(data[f"layer{i}_weight"], data[f"layer{i}_bias"])
              for i in range(1, len(LAYER_SIZES))]
    logits = forward(data["images"], layers, np.float64)[-1]
    logits32 = forward(data["images"], layers, np.float32)[-1]
    stored = data["reference_logits"]
    predictions = data["reference_predictions"]

    correct = predictions == data["labels"]
    is_train, is_test = data["split"] == 0, data["split"] == 1
    ordered = np.sort(stored, axis=1)
    gap = (ordered[:, -1] - ordered[:, -2]).min()
    difference = np.abs(logits - stored).max()
    difference32 = np.abs(logits32 - stored).max()
    test_accuracy = correct[is_test].mean()

    print(f"train accuracy       {correct[is_train].mean():.4f}"
          f"  ({correct[is_train].sum()} of {is_train.sum()})")
    print(f"test accuracy        {test_accuracy:.4f}"
          f"  ({correct[is_test].sum()} of {is_test.sum()})")
    print(f"smallest logit gap   {gap:.6f}  (best minus second, all {len(stored)} images)")
    print(f"largest |logit|      {np.abs(stored).max():.3f}")
    print(f"float64 recomputed   {difference:.3e}  (largest difference from the stored logits)")
    print(f"float32 recomputed   {difference32:.3e}  (the same, forward pass in float32)")

    tests = {
        "images lie within 0..1":
            data["images"].min() >= 0 and data["images"].max() <= 1,
        "labels lie within 0..9":
            data["labels"].min() >= 0 and data["labels"].max() <= 9,
        f"split marks {TRAIN_SAMPLES} training and {SAMPLES - TRAIN_SAMPLES} test rows":
            is_train.sum() == TRAIN_SAMPLES and is_test.sum() == SAMPLES - TRAIN_SAMPLES,
        "stored logits equal the recomputed ones": difference <= CHECK_TOLERANCE,
        "stored predictions are the argmax of the stored logits":
            np.array_equal(stored.argmax(axis=1), predictions),
        "a float32 forward pass predicts the same":
            np.array_equal(logits32.argmax(axis=1), predictions),
        f"smallest logit gap is above {MIN_GAP}": gap > MIN_GAP,
        f"test accuracy is at least {MIN_TEST_ACCURACY}": test_accuracy >= MIN_TEST_ACCURACY,
    }
    for what, holds in tests.items():
        print(f"{'ok    ' if holds else 'FAILED'}  {what}")
    return all(tests.values())


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", metavar="DIR", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent / "data",
                        help="folder of the .npy files (default: data, next to this script)")
    parser.add_argument("--check", action="store_true",
                        help="check the stored files against their weights, write nothing")
    args = parser.parse_args()
    if not args.check:
        make(args.out)
    try:
        return 0 if check(args.out) else 1
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
