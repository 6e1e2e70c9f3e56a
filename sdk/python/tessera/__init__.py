"""Matrix products on NVIDIA GPUs, for arrays of torch, CuPy, JAX, numba, or of the package's own.

    import numpy, tessera

    a = tessera.asarray(numpy.ones((64, 32)), "bf16")
    b = tessera.asarray(numpy.ones((32, 48)), "bf16")
    d = tessera.gemm(a, b, activation="relu")

gemm      one product with everything that is fused with it
Plan      the same product many times
explain   which kernel runs, and why
tune      which kernel is the fastest here
Program   kernels of your own, compiled when they are needed
asarray, empty, Array   arrays for programs without a framework
Error     what all of these raise; a CommunicationError is one of several GPUs
tessera.torch           operators with gradients, and layers, for PyTorch
"""

import atexit as _atexit

from tessera import _cudart

_cudart.load()

from tessera import _core  # noqa: E402  (it needs the CUDA runtime)
from tessera._arrays import asarray  # noqa: E402
from tessera._core import (  # noqa: E402
    Array, Kernel, Plan, Program, compute_capability, device_count, empty, explain, gemm, load_tuning, save_tuning, synchronize, tune)
from tessera._error import CommunicationError, Error  # noqa: E402
from tessera._types import TuningResult  # noqa: E402

__version__ = _core.version
__all__ = ["Array", "CommunicationError", "Error", "Kernel", "Plan", "Program", "TuningResult", "asarray", "compute_capability", "device_count", "empty", "explain", "gemm",
           "load_tuning", "save_tuning", "synchronize", "tune"]

# A framework frees its allocator at exit. What the library has of it must be back by then.
_atexit.register(_core._release_workspaces)
