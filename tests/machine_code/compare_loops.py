"""Checks that the typed device layer costs nothing: the main loop of a rung must have the same machine code with and
without the types.

    compare_loops.py <settings> <typed source> <raw source>

Compiles both for sm_100a. Loops count as equal if they have as many instructions and as many matrix instructions.
"""

import json
import sys
import tempfile
from pathlib import Path

import disassembly


def measure_loop(settings, source):
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder) / "loop.cubin"
        includes = [f"-I{path}" for path in settings["include_directories"]]
        disassembly.run(settings["nvcc"], "-std=c++20", "-arch=sm_100a", *includes, "-cubin", "-o", cubin, source)
        kernel = disassembly.kernels_of_cubin(settings["cuobjdump"], settings["nvdisasm"], cubin)["main_loop"]
        (loop,) = kernel.loops
        return loop


def main(path, typed_source, raw_source):
    with open(path, encoding="utf-8") as file:
        settings = json.load(file)
    typed = measure_loop(settings, typed_source)
    raw = measure_loop(settings, raw_source)
    print(f"typed: {typed}", f"raw:   {raw}", sep="\n")
    return 0 if typed == raw else "the typed loop differs from the raw loop"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
