"""Checks the loop of attention as a tile program on Hopper: bounds checks cost it nothing, and it waits once for products.

    tile_loops.py <settings> <source>

Compiles the source for sm_90a. Its kernels, with checks and without, must have the same instructions in the loop, in any order. None
exchanges a value between lanes by number (what is the same for a warp is found before the loop), and none is an empty group of products.
"""

import collections
import json
import re
import sys
import tempfile
from pathlib import Path

import disassembly


def loop_of(instructions, labels):
    """Returns the shortest loop with products of both kinds: scores, and sums of values."""
    loops = []
    for index, text in enumerate(instructions):
        branch = disassembly.BRANCH.search(text)
        first = labels.get(branch[1], index + 1) if branch else index + 1
        body = instructions[first : index + 1]
        if sum("HGMMA" in line for line in body) >= 12:
            loops.append(body)
    return min(loops, key=len)


def opcodes(loop):
    return collections.Counter(re.sub(r"^@\S+\s+", "", text).split()[0].rstrip(";") for text in loop)


def main(path, source):
    with open(path, encoding="utf-8") as file:
        settings = json.load(file)
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder) / "loops.cubin"
        includes = [f"-I{path}" for path in settings["include_directories"] + [str(Path(source).parents[2] / "bench")]]
        disassembly.run(settings["nvcc"], "-std=c++20", "-arch=sm_90a", *includes, "-cubin", "-o", cubin, source)
        functions = disassembly.disassembled(settings["nvdisasm"], cubin)
    loops = {name: opcodes(loop_of(*code)) for name, code in functions.items() if "tile_kernel" in name}
    for name, loop in loops.items():
        print(f"{sum(loop.values())} instructions: {name}")
    if len(loops) != 2:
        return "there are not two kernels"
    checked, unchecked = loops.values()
    if checked != unchecked:
        return f"bounds checks change the loop: {checked - unchecked} instead of {unchecked - checked}"
    if checked["SHFL.IDX"] > 0 or checked["HGMMA.64x8x16.F16"] > 0 or checked["WARPGROUP.DEPBAR.LE"] != 1:
        return f"the loop has exchanges between lanes, empty groups of products, or more than one wait: {checked}"
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
