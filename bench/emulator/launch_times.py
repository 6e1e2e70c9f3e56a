#!/usr/bin/env python3
"""Times emulated launches of one or several builds, side by side.

    bench/emulator/launch_times.py build [older-build ...]

A build is the folder of a build, or `TESSERA-EMU,GEMM_NPY` (the paths of the two programs). For each case it runs
gemm_npy on the emulated device with the case's matrices and with matrices of one row, in turn, and prints the
difference of the least times: the launch without the start of the program and the translation of its PTX. The last
columns are the first build's time divided into the others'. Needs nothing but these programs, and idle cores.
"""

import argparse
import ast
import os
import struct
import subprocess
import sys
import tempfile
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
DIGITS = os.path.join(ROOT, "examples", "digits", "data")
SIMT = ["simt_naive", "simt_tiled", "simt_vectorized", "simt_register_blocked"]


def read_npy(path):
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack("<H", data[8:10])[0]
    header = ast.literal_eval(data[10:10 + size].decode())
    return header["shape"], data[10 + size:]


def write_npy(path, shape, data):
    header = repr({"descr": "<f4", "fortran_order": False, "shape": shape})
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)


def first_row(source, path):
    shape, data = read_npy(source)
    write_npy(path, (1, shape[1]), data[:4 * shape[1]])
    return path


def square(path, extent, seed):
    """Values that bf16 holds exactly, in no order that a cache or a sum could like."""
    values = []
    state = seed
    for _ in range(extent):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        values.append(((state >> 33) % 255 - 127) / 64)
    data = b""
    for row in range(extent):
        shift = row * 37 % extent
        data += struct.pack(f"<{extent}f", *(values[shift:] + values[:shift]))
    write_npy(path, (extent, extent), data)
    return path


def programs_of(build):
    if "," in build:
        return build.split(",", 1)
    return [os.path.join(build, "sdk", "emulator", "tessera-emu"), os.path.join(build, "examples", "gemm_npy", "gemm_npy")]


def seconds(build, case, a):
    emulator, program = programs_of(build)
    command = [emulator, "--threads", str(case["threads"]), "--check", str(case["check"]), "--device", case["device"],
               "--numerics", case["numerics"], "--", program, a, case["b"], "--variant", case["variant"], "--type",
               case["type"]]
    start = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError((done.stderr or done.stdout).strip().splitlines()[-1])
    return time.monotonic() - start


def launch_seconds(builds, case, repetitions):
    """By build: seconds, or why there are none. The builds take turns, so that other load meets all of them."""
    least = {}
    failed = {}
    for _ in range(repetitions):
        for build in builds:
            for kind in ("a", "row"):
                try:
                    taken = seconds(build, case, case[kind])
                    least[build, kind] = min(taken, least.get((build, kind), taken))
                except (OSError, RuntimeError, IndexError) as error:
                    failed[build] = str(error)
    return [failed.get(build) or least[build, "a"] - least[build, "row"] for build in builds]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs="+", metavar="build")
    parser.add_argument("-n", "--repetitions", type=int, default=5, help="runs of each; the least time counts [5]")
    parser.add_argument("--threads", type=int, nargs="+", default=[1], help="CPU threads: one or several numbers [1]")
    parser.add_argument("--extent", type=int, default=2048, help="of the bf16 product; 0: without it [2048]")
    parser.add_argument("--numerics", choices=["exact", "fast"], default="fast", help="of the bf16 product [fast]")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        images = os.path.join(DIGITS, "images.npy")
        simt = {"a": images, "row": first_row(images, os.path.join(folder, "row.npy")),
                "b": os.path.join(DIGITS, "layer1_weight.npy"), "type": "f32", "device": "b200", "numerics": "exact"}
        cases = [dict(simt, variant=variant, name=f"{variant} 1797x128x64 f32") for variant in SIMT]
        if options.extent > 0:
            a = square(os.path.join(folder, "a.npy"), options.extent, 1)
            bf16 = {"a": a, "row": first_row(a, os.path.join(folder, "a_row.npy")),
                    "b": square(os.path.join(folder, "b.npy"), options.extent, 2), "type": "bf16",
                    "variant": "automatic", "numerics": options.numerics}
            cases += [dict(bf16, device=device, name=f"{device} {options.extent}^3 bf16 {options.numerics}")
                      for device in ("b200", "h200")]
        print(f"{'launch, ms':<36}{'threads':>8}{'checks':>8}" +
              "".join(f"{'build ' + str(i + 1):>12}" for i in range(len(options.builds))) +
              "".join(f"{str(i + 2) + '/1':>8}" for i in range(len(options.builds) - 1)))
        for case in cases:
            for threads in options.threads:
                for check in (1, 0):
                    times = launch_seconds(options.builds, dict(case, threads=threads, check=check),
                                           options.repetitions)
                    line = f"{case['name']:<36}{threads:>8}{'on' if check else 'off':>8}"
                    for taken in times:
                        line += f"{1000 * taken:>12.1f}" if isinstance(taken, float) else f"{'failed':>12}"
                    for taken in times[1:]:
                        both = isinstance(taken, float) and isinstance(times[0], float) and times[0] > 0
                        line += f"{taken / times[0]:>8.2f}" if both else f"{'':>8}"
                    print(line, flush=True)
                    for build, taken in zip(options.builds, times):
                        if isinstance(taken, str):
                            print(f"  {build}: {taken}", file=sys.stderr)


if __name__ == "__main__":
    main()
