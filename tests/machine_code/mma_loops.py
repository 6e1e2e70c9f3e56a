"""Checks the main loops of the mma.sync kernels that TMA fills: the ring's counters are in uniform registers.

    mma_loops.py <settings>

ptxas may hold them in a register per thread instead, because of code far from the loop: two nested loops in the epilogue made it do
so, and products 4 % slower on an H200, with the same number of registers and matrix instructions. Settings are those of machine_code.py.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import disassembly

KERNEL = re.compile(r"mma_gemmINS0_\d+(Mma\w+?)ENS")
PRODUCT = re.compile(r"^(@!?U?P\d+ )?HMMA\b")
SELECTION = re.compile(r"^(@!?U?P\d+ )?SEL\b")


def main(path):
    with open(path, encoding="utf-8") as file:
        settings = json.load(file)
    kernels = 0
    bad = []
    for built in settings["mma_objects"]:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([settings["cuobjdump"], "--extract-elf", "sm_90", built], cwd=folder, stdout=subprocess.DEVNULL, check=True)
            functions = {}
            for cubin in Path(folder).iterdir():
                functions |= disassembly.disassembled(settings["nvdisasm"], cubin)
        for name, (instructions, _) in functions.items():
            match = KERNEL.search(name)
            if not match or match[1].endswith("Any"):  # threads copy for that one
                continue
            products = [index for index, text in enumerate(instructions) if PRODUCT.search(text)]
            if not products:  # one for 7.5 only
                continue
            selections = sum(1 for text in instructions[products[0] : products[-1]] if SELECTION.search(text))
            kernels += 1
            if selections:
                bad.append(f"{name}: {selections} selections per thread between its first and last product")
    print(f"mma_loops: {kernels} kernels")
    print(*sorted(bad), sep="\n", file=sys.stderr)
    return 1 if bad or not kernels else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
