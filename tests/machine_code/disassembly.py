"""Reads figures about the kernels of an object file or cubin with NVIDIA's cuobjdump and nvdisasm.

A kernel's *main loops* are the innermost loops around its matrix instructions; a loop is the code between a label
and a branch back to it. The *epilogue* of a Blackwell kernel is the shortest way around its loop over columns that converts
to 16 bits and stores by TMA: about what a plain product executes. A *lone wait* is a YIELD (which waiting loops contain)
in code that only the elected thread of a warp executes while the others branch ahead to where the paths meet. The YIELD
lets them pass; see `exit_thread` in tessera/device/warp.cuh.
"""

import re
import subprocess
import tempfile
from collections import deque
from dataclasses import dataclass
from pathlib import Path

SECTION = re.compile(r"^\.text\.(\S+):$")
LABEL = re.compile(r"^(\.L_x_\d+):")
INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]+\*/\s+(.*?)\s*;")
BRANCH = re.compile(r"\bBRA\b.*`\((\.L_x_\d+)\)")
MATRIX = re.compile(r"\b(UTC\w*MMA|[HQI]GMMA)[.\w]*")  # Blackwell; Hopper
LOCAL_MEMORY = re.compile(r"\b(LDL|STL)\b")
ELECTION = re.compile(r"\bELECT (P\d)")
YIELD = re.compile(r"\bYIELD\b")
LOAD_OF_SUMS = re.compile(r"\bLDTM\b")  # from tensor memory
CONVERSION = re.compile(r"\bF2FP\b")  # of two values to 16 bits
STORE_BY_TMA = re.compile(r"\bUTMASTG\b")
END = re.compile(r"^(EXIT|RET|BRX|JMP)\b")


@dataclass(frozen=True)
class Loop:
    """A main loop."""

    instructions: int
    matrix: int  # matrix instructions among them
    local: int  # loads and stores of local memory among them


@dataclass(frozen=True)
class Kernel:
    """A compiled kernel; bytes are per thread for the stack, per CTA for static shared memory."""

    registers: int
    stack_bytes: int
    static_shared_bytes: int
    local: int  # loads and stores of local memory
    matrix_names: frozenset  # with suffixes
    lone_waits: int
    loops: tuple
    epilogue: float  # instructions per 16 columns; 0 without such a loop

    def longest_loop(self):
        """Returns the main loop with the most instructions per matrix instruction."""
        return max(self.loops, key=lambda loop: loop.instructions / loop.matrix)


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True).stdout


def main_loops(instructions, labels):
    """`labels` maps a label to the index of the instruction after it."""
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


def region_of_elected(instructions, labels, election):
    """Returns the indices of the code that only the elected thread executes, if the others branch ahead."""
    predicate = ELECTION.search(instructions[election])[1]
    for index in range(election + 1, len(instructions)):
        text = instructions[index]
        branch = BRANCH.search(text)
        if branch and text.startswith(f"@!{predicate} "):
            return range(index + 1, labels.get(branch[1], 0))
        if branch and "BRA.DIV" not in text:  # this one meets the others and returns
            break
        if re.search(rf"^[^,]*\b{predicate}\b,", text):  # overwritten: another predicate from here on
            break
    return range(0)


def lone_waits(instructions, labels):
    """Counts lone waits: in the elected thread's code, or at the start of a branch target (rare loops are placed apart)."""
    waits = set()
    for election in (index for index, text in enumerate(instructions) if ELECTION.search(text)):
        region = region_of_elected(instructions, labels, election)
        reached = set(region)
        for index in region:
            branch = BRANCH.search(instructions[index])
            target = labels.get(branch[1], 0) if branch else 0
            if target >= region.stop:
                reached |= set(range(target, min(target + 3, len(instructions))))
        waits |= {index for index in reached if YIELD.search(instructions[index])}
    return len(waits)


def successors(instructions, labels):
    """Returns for each instruction those that may be executed after it."""
    after = []
    for index, text in enumerate(instructions):
        branch = BRANCH.search(text)
        targets = [labels[branch[1]]] if branch and "BRA.DIV" not in text and branch[1] in labels else []
        leaves = END.match(text) or re.match(r"BRA `", text)
        after.append(targets if leaves or index + 1 == len(instructions) else [*targets, index + 1])
    return after


def epilogue(instructions, labels):
    """Returns the instructions for 16 columns of the epilogue, or 0."""
    after = successors(instructions, labels)
    passed = [CONVERSION, STORE_BY_TMA]  # in this order
    shortest = []
    for load in (index for index, text in enumerate(instructions) if LOAD_OF_SUMS.search(text)):
        queue = deque([(load, 0)])
        before = {(load, 0): None}
        while queue:
            state = queue.popleft()
            index, found = state
            if index == load and found == len(passed):
                path = []
                while state := before[state]:
                    path.append(instructions[state[0]])
                columns = 2 * sum(1 for text in path if CONVERSION.search(text))
                shortest.append(16 * len(path) / columns)
                break
            for target in after[index]:
                step = found < len(passed) and passed[found].search(instructions[target])
                following = (target, found + 1 if step else found)
                if following not in before:
                    before[following] = state
                    queue.append(following)
    return min(shortest, default=0)


def disassembled(nvdisasm, cubin):
    """Returns function name -> (instructions, labels)."""
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
    """Returns function name -> (registers, stack bytes, static shared bytes)."""
    pattern = re.compile(r"Function (\S+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+)")
    text = run(cuobjdump, "--dump-resource-usage", cubin)
    return {match[1]: tuple(map(int, match.groups()[1:])) for match in pattern.finditer(text)}


def kernels_of_cubin(cuobjdump, nvdisasm, cubin):
    """Returns mangled name -> Kernel."""
    usage = resource_usage(cuobjdump, cubin)
    kernels = {}
    for name, (instructions, labels) in disassembled(nvdisasm, cubin).items():
        if name not in usage:
            continue  # a function called by a kernel
        names = {match[0] for text in instructions if (match := MATRIX.search(text))}
        local = sum(1 for text in instructions if LOCAL_MEMORY.search(text))
        loops = main_loops(instructions, labels)
        waits = lone_waits(instructions, labels)
        kernels[name] = Kernel(*usage[name], local, frozenset(names), waits, loops, epilogue(instructions, labels))
    return kernels


def kernels_of_object(cuobjdump, nvdisasm, path):
    """The same for an object file with one or more cubins."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([cuobjdump, "--extract-elf", "all", path], cwd=folder, stdout=subprocess.DEVNULL, check=True)
        kernels = {}
        for cubin in sorted(Path(folder).iterdir()):
            kernels |= kernels_of_cubin(cuobjdump, nvdisasm, cubin)
        return kernels
