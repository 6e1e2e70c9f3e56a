"""Checks the machine code of the tensor-core kernels, and prints its figures as docs/notes/machine-code.md.

    machine_code.py check  <settings> [blackwell|hopper]   compares with the page; exit code 1 if something is worse
    machine_code.py report <settings>                      prints the page

Settings are a JSON file written by CMake: the places of the tools, the object files and the page.

Rules for every compiler: no Blackwell kernel uses local memory; no main loop for Hopper does, except the known ones; no
thread waits apart from its warp; the matrix instructions match the operands; those of a pair are executed by a pair.
Figures are compared with the page only if the compiler is that of the page.
"""

import json
import math
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import disassembly

BLACKWELL_NAME = re.compile(r"blackwell_gemmINS0_\d+(\w+?)ELNS_7MmaKindE(\d)E")
HOPPER_NAME = re.compile(r"hopper_gemmINS0_\d+(\w+?)ELi(\d)E")
BLACKWELL_OPERANDS = ["16-bit", "tf32", "8-bit"]  # MmaKind
HOPPER_OPERANDS = {2: "16-bit", 4: "tf32", 1: "8-bit"}  # bytes of an element
MATRIX_NAMES = {  # for one CTA
    ("blackwell", "16-bit"): "UTCHMMA",
    ("blackwell", "tf32"): "UTCHMMA",
    ("blackwell", "8-bit"): "UTCQMMA",
    ("hopper", "16-bit"): "HGMMA",
    ("hopper", "tf32"): "HGMMA",
    ("hopper", "8-bit"): "QGMMA",
}

# Loads and stores of local memory in the main loops of Hopper kernels that are known to have them.
KNOWN_LOCAL_IN_LOOPS = {("hopper", "Copying128x192", "tf32"): 1}

COLUMNS = {
    "blackwell": "| Configuration | Operands | Registers | Stack, bytes | Shared memory, bytes | Columns of tensor memory "
    "| Matrix instruction | Main loop, instructions | MMAs in it | Epilogue, instructions |",
    "hopper": "| Configuration | Operands | Registers | Stack, bytes | Shared memory, bytes "
    "| Local loads and stores | in main loops | Matrix instruction | Main loop, instructions | MMAs in it |",
}

PAGE = """\
# What the kernels are compiled into

Printed by `cmake --build build --target machine_code_report`, compiled by {compiler}. The tests `machine_code.blackwell` and
`machine_code.hopper` fail if a figure gets worse. Page and tests need NVIDIA's disassembler: `cuda-nvdisasm` and
`cuda-cuobjdump` in the toolkit, or `nvidia-cuda-nvdisasm` and `nvidia-cuda-cuobjdump` in Python's package index.

Registers and stack are per thread; the stack holds spilled registers. Shared memory is per CTA, dynamic and static together. A
main loop is an innermost loop around matrix instructions, with everything in it counted. Where a kernel has several, it is the
one with the most instructions per MMA. The epilogue is the shortest way around Blackwell's loop over the columns of a tile that
converts sums to 16 bits and stores them, for 16 columns of a warp's 32 rows: about what a plain product executes.

## Blackwell

{blackwell}

## Hopper

{hopper}
"""


@dataclass(frozen=True)
class Row:
    """A kernel in the page."""

    key: tuple  # family, name, operands
    cells: tuple  # texts of the columns after name and operands

    def text(self):
        return "| " + " | ".join((f"`{self.key[1]}`", self.key[2], *self.cells)) + " |"


def identify(mangled):
    """Returns the key of a kernel, as printed by kernel_facts."""
    if match := BLACKWELL_NAME.search(mangled):
        return ("blackwell", match[1], BLACKWELL_OPERANDS[int(match[2])])
    if match := HOPPER_NAME.search(mangled):
        return ("hopper", match[1], HOPPER_OPERANDS[int(match[2])])
    sys.exit(f"machine_code: unknown kernel {mangled}")


def read_facts(settings):
    """Returns key -> numbers known to the host, in the order of the page."""
    facts = {}
    for line in disassembly.run(settings["facts"]).splitlines():
        family, name, operands, *numbers = line.split()
        facts[family, name, operands] = [int(number) for number in numbers]
    return facts


def measure(settings, families):
    """Returns key -> Kernel. Object files are read in parallel, because the disassembler needs most of the time."""
    objects = [path for family in families for path in settings["objects"][family]]
    with ThreadPoolExecutor() as pool:
        measured = pool.map(
            lambda path: disassembly.kernels_of_object(settings["cuobjdump"], settings["nvdisasm"], path), objects
        )
        pairs = [(identify(name), kernel) for kernels in measured for name, kernel in kernels.items()]
    if len(dict(pairs)) != len(pairs):
        sys.exit("machine_code: two kernels have the same name: was a template parameter added?")
    return dict(pairs)


def make_row(key, kernel, facts):
    loop = kernel.longest_loop()
    shared = facts[0] + kernel.static_shared_bytes
    name = " ".join(sorted(operations(key[0], kernel)))
    cells = [kernel.registers, kernel.stack_bytes, shared]
    if key[0] == "blackwell":
        cells += [facts[1]]
    else:
        cells += [kernel.local, sum(loop.local for loop in kernel.loops)]
    cells += [f"`{name}`", loop.instructions, loop.matrix]
    if key[0] == "blackwell":
        cells += [math.ceil(kernel.epilogue)]
    return Row(key, tuple(map(str, cells)))


def operations(family, kernel):
    """Returns the names of the matrix instructions; on Hopper without the suffixes for shape and types."""
    return {name if family == "blackwell" else name.split(".")[0] for name in kernel.matrix_names}


def broken_rules(key, kernel, facts):
    """Yields a sentence per broken rule."""
    family, name, operands = key
    expected = MATRIX_NAMES[family, operands]
    if family == "blackwell":
        _, _, group_ctas, mmas_of_stage = facts
        expected += ".2CTA" if group_ctas == 2 else ""
        if kernel.local or kernel.stack_bytes:
            yield f"uses local memory: {kernel.local} instructions, {kernel.stack_bytes} bytes of stack"
        if [loop.matrix for loop in kernel.loops] != [mmas_of_stage]:
            yield f"should have one main loop with {mmas_of_stage} MMAs, but has {kernel.loops}"
    elif sum(loop.local for loop in kernel.loops) > KNOWN_LOCAL_IN_LOOPS.get(key, 0):
        yield "uses local memory in a main loop"
    if family == "blackwell" and not kernel.epilogue:
        yield "has no loop that loads sums, converts them to 16 bits and stores them by TMA"
    if kernel.lone_waits:
        yield f"has {kernel.lone_waits} waits of an elected thread apart from its warp: see exit_thread in warp.cuh"
    if not kernel.loops:
        yield "has no main loop"
    names = operations(family, kernel)
    if names != {expected}:
        yield f"should use {expected}, but uses {' '.join(sorted(names))}"


def read_page(path):
    """Returns the page's compiler, and key -> cells."""
    text = open(path, encoding="utf-8").read()
    rows = {}
    for family, section in zip(("blackwell", "hopper"), re.split(r"^## \w+$", text, flags=re.MULTILINE)[1:]):
        for match in re.finditer(r"^\| `(\w+)` \| (\S+) \| (.*) \|$", section, flags=re.MULTILINE):
            rows[family, match[1], match[2]] = tuple(match[3].split(" | "))
    compiler = re.search(r"compiled by (.*)\. The", text)
    return compiler[1] if compiler else None, rows


def changed_figures(key, cells, expected):
    """Yields pairs: whether the figure improved, and a sentence. Smaller is better, except for the number of MMAs."""
    titles = [title.strip() for title in COLUMNS[key[0]].strip("| ").split("|")][2:]
    for title, now, before in zip(titles, cells, expected):
        if now == before:
            continue
        sentence = f"{title}: {now}, but {before} on the page"
        improved = now.isdigit() and before.isdigit() and int(now) < int(before) and "MMA" not in title
        yield (improved, sentence)


def check(settings, families):
    facts = {key: numbers for key, numbers in read_facts(settings).items() if key[0] in families}
    kernels = measure(settings, families)
    compiler, page = read_page(settings["page"])
    bad = [f"{' '.join(key)} is not among the compiled kernels" for key in facts.keys() - kernels.keys()]
    bad += [f"{' '.join(key)} is compiled, but unknown to the library" for key in kernels.keys() - facts.keys()]
    better = []
    for key in facts.keys() & kernels.keys():
        bad += [f"{' '.join(key)} {sentence}" for sentence in broken_rules(key, kernels[key], facts[key])]
        if compiler != settings["compiler"] or not kernels[key].loops:
            continue
        cells = make_row(key, kernels[key], facts[key]).cells
        if key not in page:
            bad.append(f"{' '.join(key)} is not on the page")
            continue
        for improved, sentence in changed_figures(key, cells, page[key]):
            (better if improved else bad).append(f"{' '.join(key)}: {sentence}")
    print(f"machine_code: {len(kernels)} kernels, {settings['compiler']}")
    if compiler != settings["compiler"]:
        print(f"machine_code: the page is for {compiler}: its figures are not compared")
    print(*sorted(better), sep="\n")
    print(*sorted(bad), sep="\n", file=sys.stderr)
    if better or bad:
        print("machine_code: the page is out of date: cmake --build build --target machine_code_report")
    return 1 if bad else 0


def report(settings):
    facts = read_facts(settings)
    kernels = measure(settings, settings["objects"])
    tables = {}
    for family, titles in COLUMNS.items():
        rows = [make_row(key, kernels[key], numbers).text() for key, numbers in facts.items() if key[0] == family]
        tables[family] = "\n".join([titles, "|" + "---|" * (titles.count("|") - 1), *rows])
    with open(settings["page"], "w", encoding="utf-8") as page:
        page.write(PAGE.format(compiler=settings["compiler"], **tables))
    return 0


def main(arguments):
    command, path, *families = arguments
    with open(path, encoding="utf-8") as file:
        settings = json.load(file)
    return check(settings, families) if command == "check" else report(settings)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
