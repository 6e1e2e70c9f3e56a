"""Real arrays of CuPy, JAX and numba, on a GPU."""

import gc
import os

import numpy
import pytest

import tessera

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # JAX would take the memory of everyone else
pytestmark = pytest.mark.skipif("cudart" in os.environ.get("LD_PRELOAD", ""), reason="tessera-emu does not run these packages")


def test_cupy(random):
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    a, b = random.standard_normal((33, 64)).astype("f"), random.standard_normal((64, 40)).astype("f")
    result = tessera.gemm(cupy.asarray(a), cupy.asarray(b), activation="relu")
    assert isinstance(result, cupy.ndarray)
    numpy.testing.assert_allclose(cupy.asnumpy(result), numpy.maximum(a.astype(float) @ b, 0), rtol=1e-4, atol=1e-4)
    array = tessera.asarray(a)
    numpy.testing.assert_array_equal(cupy.asnumpy(cupy.from_dlpack(array)), a)
    numpy.testing.assert_array_equal(cupy.asnumpy(cupy.asarray(array)), a)  # the CUDA array interface
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        x = cupy.asarray(a)
        result = tessera.gemm(x, cupy.asarray(b), stream=stream)
        numpy.testing.assert_allclose(cupy.asnumpy(result), a.astype(float) @ b, rtol=1e-4, atol=1e-4)


def test_round_trips_with_cupy_leak_nothing(random):
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    values = random.standard_normal((64, 64)).astype("f")

    def round_trip():
        return tessera.gemm(cupy.from_dlpack(tessera.asarray(values)), cupy.asarray(values))

    for _ in range(20):
        round_trip()
    gc.collect()
    cupy.cuda.Device().synchronize()
    before = cupy.cuda.runtime.memGetInfo()[0]
    for _ in range(1000):
        round_trip()
    gc.collect()
    cupy.cuda.Device().synchronize()
    assert cupy.cuda.runtime.memGetInfo()[0] == before


def test_jax(random):
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX has no GPU")
    a, b = random.standard_normal((33, 64)).astype("f"), random.standard_normal((64, 40)).astype("f")
    result = tessera.gemm(jax.numpy.asarray(a), jax.numpy.asarray(b))
    assert isinstance(result, jax.Array)
    numpy.testing.assert_allclose(numpy.asarray(result), a.astype(float) @ b, rtol=1e-4, atol=1e-4)


def test_numba(random):
    cuda = pytest.importorskip("numba.cuda", reason="numba is not installed")
    if not cuda.is_available():
        pytest.skip("numba has no GPU")
    a, b = random.standard_normal((33, 64)).astype("f"), random.standard_normal((64, 40)).astype("f")
    result = tessera.gemm(cuda.to_device(a), cuda.to_device(b))
    numpy.testing.assert_allclose(cuda.as_cuda_array(result).copy_to_host(), a.astype(float) @ b, rtol=1e-4, atol=1e-4)
