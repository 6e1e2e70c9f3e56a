"""Finds the CUDA runtime before the library that needs it is loaded."""

import ctypes
import os
import sys

SONAME = "libcudart.so.13"


def candidates():
    """Where the runtime may be: where the loader looks, in a package of NVIDIA's, in the toolkit."""
    yield SONAME
    for folder in sys.path:
        yield os.path.join(folder, "nvidia", "cu13", "lib", SONAME)
    for root in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"):
        if root:
            yield os.path.join(root, "lib64", SONAME)


def load():
    """Loads the runtime. torch for CUDA 13 has loaded it already, and tessera-emu has put its own first."""
    for path in candidates():
        try:
            ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
            return
        except OSError:
            pass
    raise ImportError(
        f"tessera needs the CUDA runtime, {SONAME}, which is neither on the loader's path, nor in a package, nor in /usr/local/cuda\n"
        "  try: pip install nvidia-cuda-runtime, or set CUDA_HOME to a CUDA Toolkit 13")
