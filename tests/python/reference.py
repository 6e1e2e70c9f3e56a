"""Products in float64, and by how much the device's may differ from them."""

import math

import numpy

UNIT = {"f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8, "f8e4m3": 2.0**-4, "f8e5m2": 2.0**-3}

erf = numpy.vectorize(math.erf, otypes=[float])


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


ACTIVATIONS = {
    None: lambda x: x,
    "none": lambda x: x,
    "relu": lambda x: numpy.maximum(x, 0),
    "gelu": lambda x: x / 2 * (1 + erf(x / math.sqrt(2))),
    "silu": lambda x: x * sigmoid(x),
    "gelu_tanh": lambda x: x / 2 * (1 + numpy.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "sigmoid": sigmoid,
    "tanh": numpy.tanh,
}


def close(result, a, b, *, activation=None, c=0.0, alpha=1.0, beta=1.0, bias=0.0, scale=1.0):
    """Whether `result` is act(alpha * scale * a @ b + beta * c + bias) within rounding.

    The bound: sums of k products in any order, in fp32, or for 8-bit inputs in the 14 bits that Hopper's tensor cores keep; the
    terms that are added; and one rounding to the result's type. No activation here grows an error by more than a factor of 1.13
    (gelu's slope).
    """
    sums = 2.0**-13 if a.dtype.startswith("f8") else UNIT["f32"]
    a64, b64 = a.numpy().astype(float), b.numpy().astype(float)
    k = a64.shape[-1]
    exact = ACTIVATIONS[activation](alpha * scale * (a64 @ b64) + beta * c + bias)
    size = numpy.abs(alpha * scale) * (numpy.abs(a64) @ numpy.abs(b64)) + numpy.abs(beta * c) + numpy.abs(bias)
    bound = 1.13 * (k + 8) * sums * size + UNIT[result.dtype] * numpy.abs(exact) + 2.0**-24
    return result.shape == exact.shape and bool(numpy.all(numpy.abs(result.numpy() - exact) <= bound))
