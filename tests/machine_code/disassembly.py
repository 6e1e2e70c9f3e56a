"""Machine code as facts: what NVIDIA's cuobjdump and nvdisasm say about the kernels of an object file or a cubin.

A kernel's *main loops* are the innermost loops around its matrix instructions; a loop is what lies between a label and a
branch back to it.
"""

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

SECTION = re.compile(r"^\.text\.(\S+):$")
LABEL = re.compile(r"^(\.L_x_\d+):")
INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]+\*/\s+(.*?)\s*;")
BRANCH = re.compile(r"\bBRA\b.*`\((\.L_x_\d+)\)")
MATRIX = re.compile(r"\b(UTC\w*MMA|[HQI]GMMA)[.\w]*")  # of Blackwell, of Hopper
LOCAL_MEMORY = re.compile(r"\b(LDL|STL)\b")


@dataclass(frozen=True)
class Loop:
    """A main loop."""

    instructions: int
    matrix: int  # of them matrix instructions
    local: int  # of them loads from and stores to local memory


@dataclass(frozen=True)
class Kernel:
    """A compiled kernel; bytes are per thread for the stack, per CTA for static shared memory."""

    registers: int
    stack_bytes: int
    static_shared_bytes: int
    local: int  # instructions that load from or store to local memory
    matrix_names: frozenset  # with their suffixes
    loops: tuple

    def longest_loop(self):
        """The main loop with the most instructions for each of its matrix instructions."""
        return max(self.loops, key=lambda loop: loop.instructions / loop.matrix)


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True).stdout


def main_loops(instructions, labels):
    """`labels` maps a label to the index of the instruction behind it."""
    matrix = [index for index, text in enumerate(instructions) if MATRIX.search(text)]
    ranges = []
    for index, text in enumerate(instructions):
        branch = BRANCH.search(text)
        if branch and labels.get(branch[1], len(instructions)) <= index:  # back
            ranges.append(range(labels[branch[1]], index + 1))
    loops = []
    covered = set()
    for candidate in sorted(ranges, key=len):
        inside = {index for index in matrix if index in candidate}
        if inside and not inside & covered:
            covered |= inside
            local = sum(1 for index in candidate if LOCAL_MEMORY.search(instructions[index]))
            loops.append(Loop(len(candidate), len(inside), local))
    return tuple(loops)


def disassembled(nvdisasm, cubin):
    """Function name -> (instructions, labels)."""
    functions = {}
    instructions, labels = [], {}
    for line in run(nvdisasm, "-c", cubin).splitlines():
        if section := SECTION.match(line):
            instructions, labels = functions.setdefault(section[1], ([], {}))
        elif label := LABEL.match(line):
            labels[label[1]] = len(instructions)
        elif instruction := INSTRUCTION.match(line):
            instructions.append(instruction[1])
    return functions


def resource_usage(cuobjdump, cubin):
    """Function name -> (registers, stack bytes, static shared bytes)."""
    pattern = re.compile(r"Function (\S+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+)")
    text = run(cuobjdump, "--dump-resource-usage", cubin)
    return {match[1]: tuple(map(int, match.groups()[1:])) for match in pattern.finditer(text)}


def kernels_of_cubin(cuobjdump, nvdisasm, cubin):
    """Mangled name -> Kernel."""
    usage = resource_usage(cuobjdump, cubin)
    kernels = {}
    for name, (instructions, labels) in disassembled(nvdisasm, cubin).items():
        if name not in usage:
            continue  # a function that a kernel calls
        names = {match[0] for text in instructions if (match := MATRIX.search(text))}
        local = sum(1 for text in instructions if LOCAL_MEMORY.search(text))
        kernels[name] = Kernel(*usage[name], local, frozenset(names), main_loops(instructions, labels))
    return kernels


def kernels_of_object(cuobjdump, nvdisasm, path):
    """The same for an object file, with one cubin or more in it."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([cuobjdump, "--extract-elf", "all", path], cwd=folder, stdout=subprocess.DEVNULL, check=True)
        kernels = {}
        for cubin in sorted(Path(folder).iterdir()):
            kernels |= kernels_of_cubin(cuobjdump, nvdisasm, cubin)
        return kernels
