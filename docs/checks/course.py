#!/usr/bin/env python3
"""Writes what the pages of the course (docs/course) show of code and of runs, or compares it.

    course.py --variants NN OUT    writes a source file with all edits of chapter NN's page, for one compiler run
    course.py BUILD                writes code, outputs, counts and diagrams into the pages
    course.py BUILD --check        fails if a page or a diagram is not what code and runs give
    --chapter NN                   of this chapter alone
    --toolkit X.Y.Z                nvcc's release. Counts of instructions and schedules are compared for that of TOOLKIT alone

A page has these marks. What is between one and the next line `<!--end-->` is written by this script.

    <!--code:FILE REGION-->        the lines of examples/course/FILE between `// [REGION]` and `// [end]`
    <!--output:NAME OPTIONS-->     what program NAME prints under the emulated device: `plain` is the chapter's, others are edits.
                                   OPTIONS: those of tessera-emu; `lines=N` shows N lines,
                                   `only=WORD,...` those with one of these words, in which `_` may stand for a space
    <!--counts:KEY ...-->          a table of counts, of this chapter's kernels and the last of the chapter before
                                   (`before=NN`: of that chapter, or none for 00); `of=NAME` of an edit, `last=N` of the last
                                   launches, `paper=KEY,...` with what the program prints as the least
    <!--edit:NAME-->               above a block `diff`, which the reader's editor makes: it is applied to the chapter's source
"""

import argparse
import difflib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

import course_steps  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "course"
SOURCES = ROOT / "examples" / "course"
TOOLKIT = "13.0"  # made the counts of instructions and schedules that the pages show
MARKED = re.compile(r"(<!--(code|output|counts):([^\n]*?)-->\n)(.*?)(<!--end-->)", re.DOTALL)
EDIT = re.compile(r"<!--edit:([a-z0-9-]+)-->\n\s*```diff\n(.*?)\n\s*```", re.DOTALL)

# Rows of the tables: what they say, from where, and whether they are the same with every compiler.
KIB = 1024
COUNTS = {
    "global-read": ("KiB that threads read from global memory", "global_read_bytes", KIB, True),
    "global-write": ("KiB that threads store to global memory", "global_write_bytes", KIB, True),
    "shared-read": ("KiB that threads read from shared memory", "shared_read_bytes", KIB, True),
    "shared-write": ("KiB that threads write to shared memory", "shared_write_bytes", KIB, True),
    "tma-read": ("KiB that TMA reads from global memory", "tma_global_read_bytes", KIB, True),
    "tma-load": ("KiB that TMA writes to shared memory", "tma_load_bytes", KIB, True),
    "tma-store": ("KiB that TMA stores to global memory", "tma_store_bytes", KIB, True),
    "mmas": ("MMAs", "mma_issued", 1, True),
    "mma-operands": ("KiB that MMAs read from shared memory", "mma_operand_bytes", KIB, True),
    "instructions": ("instructions of warps", "warp_instructions", 1, False),
    "waits": ("waits at mbarriers", "barrier_waits", 1, True),
    "stalls": ("stalls: a warp had to wait at a barrier", "barrier_stalls", 1, False),
    "ctas": ("CTAs that ran", "ctas", 1, True),
    "loads-alone": ("steps with loads in flight, and no MMA", ("loads", "loads+epilogue"), 1, False),
    "mmas-alone": ("steps with MMAs in flight, and no load", ("mmas", "mmas+epilogue"), 1, False),
    "loads+mmas": ("steps with loads and MMAs in flight", ("loads+mmas", "loads+mmas+epilogue"), 1, False),
    "epilogue+mmas": ("steps with MMAs and stores of TMA in flight", ("mmas+epilogue", "loads+mmas+epilogue"), 1, False),
}


class Wrong(Exception):
    """What does not fit, in a sentence."""


def page_of(number: str) -> Path:
    pages = list(PAGES.glob(f"{number}-*.md"))
    if len(pages) != 1:
        raise Wrong(f"docs/course has {len(pages)} pages {number}-*.md instead of one")
    return pages[0]


def source_of(number: str) -> Path:
    sources = list(SOURCES.glob(f"{number}_*.cu"))
    if len(sources) != 1:
        raise Wrong(f"examples/course has {len(sources)} programs {number}_*.cu instead of one")
    return sources[0]


# Edits


def edits_of(number: str) -> dict[str, str]:
    """The text of each edit of a page, by its name."""
    found = EDIT.findall(page_of(number).read_text(encoding="utf-8"))
    names = [name for name, _ in found]
    if len(set(names)) != len(names):
        raise Wrong(f"{page_of(number).name} has two edits of one name: {names}")
    return dict(found)


def applied(source: str, diff: str, where: str) -> str:
    """The source after an edit. Parts of the edit are separated by a line `...`."""
    for part in re.split(r"^\s*\.\.\.\s*$", diff, flags=re.MULTILINE):
        lines = part.strip("\n").split("\n")
        before = "".join(f"{line[1:]}\n" for line in lines if line[:1] in (" ", "-", ""))
        after = "".join(f"{line[1:]}\n" for line in lines if line[:1] in (" ", "+", ""))
        if source.count(before) != 1:
            raise Wrong(f"{where}: these lines are {source.count(before)} times in the source instead of once:\n{before}")
        source = source.replace(before, after)
    return source


def variant_name(name: str) -> str:
    return "variant_" + name.replace("-", "_")


def write_variants(number: str, out: Path) -> None:
    """One source file in which each edit is a namespace. An edited copy of the source lies beside it, for reports."""
    source = source_of(number)
    text = source.read_text(encoding="utf-8")
    includes, bodies = [], []
    for name, diff in edits_of(number).items():
        edited = applied(text, diff, f"{page_of(number).name}, edit {name}")
        copy = out.parent / name / "examples" / "course" / source.name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(edited, encoding="utf-8")
        lines = edited.split("\n")
        last = max(i for i, line in enumerate(lines) if line.startswith("#include"))
        includes += [line for line in lines[: last + 1] if line.startswith("#include") and line not in includes]
        body = "\n".join(lines[last + 1 :])
        bodies.append(f"namespace {variant_name(name)} {{\n#line {last + 2} \"{copy}\"\n{body}\n}}\n")
    head = f"// The edits of docs/course/{page_of(number).name}, by docs/checks/course.py.\n"
    cases = "".join(f'    if (name == "{name}") return {variant_name(name)}::main();\n' for name in edits_of(number))
    main = ("#line 1 \"main\"\n#include <string_view>\nint main(int argc, char** argv)\n{\n"
            f"    const std::string_view name = argc == 2 ? argv[1] : \"\";\n{cases}    return 2;\n}}\n")
    out.write_text(head + "\n".join(includes) + "\n" + "".join(bodies) + main, encoding="utf-8")


# Runs


class Runs:
    def __init__(self, build: Path):
        self.build = build
        self.emulator = build / "sdk/emulator/tessera-emu"
        self._statistics: dict[tuple[str, str], list[dict]] = {}
        self._outputs: dict[tuple, tuple[str, int]] = {}

    def program(self, number: str) -> Path:
        return self.build / f"examples/course/course_{number}"

    def run(self, program: list[str], options: list[str], folder: Path = ROOT) -> tuple[str, int]:
        """What a terminal would show. Lines of the program come when it writes them."""
        environment = {key: value for key, value in os.environ.items() if not key.startswith("TESSERA_EMU")}
        environment["TESSERA_EMU_THREADS"] = "1"  # CTAs side by side would report in any order
        done = subprocess.run(["stdbuf", "-oL", self.emulator, "--device", "b200", *options, "--", *program], cwd=folder,
                              env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        text = re.sub(r"variant_[a-z0-9_]+::", "", done.stdout)
        text = re.sub(r"_INTERNAL_[0-9a-f]+_\w+?_cu_[0-9a-f]{8}", "_INTERNAL_...", text)  # hashes of the source's path
        return text.replace(f"{ROOT}/", "").replace(f"{folder}/", ""), done.returncode

    def output(self, number: str, name: str, options: list[str]) -> tuple[str, int]:
        """Text and exit status of a program of a chapter; a run is made once."""
        key = (number, name, *options)
        if key not in self._outputs:
            self._outputs[key] = self._output(number, name, options)
        return self._outputs[key]

    def _output(self, number: str, name: str, options: list[str]) -> tuple[str, int]:
        if name == "plain":
            return self.run([str(self.program(number))], options)
        if name in edits_of(number):
            folder = self.build / f"docs/course/{number}/{name}"
            return self.run([str(self.build / f"docs/course/course_variants_{number}"), name], options, folder)
        return self.run([str(self.build / f"examples/course/course_{name}")], options)

    def statistics(self, number: str, name: str = "plain") -> list[dict]:
        """Counts of each launch."""
        if (number, name) not in self._statistics:
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / "counts.json"
                text, _ = self._output(number, name, [f"--statistics=json:{file}"])
                self._outputs.setdefault((number, name), (text, 0))
                lines = file.read_text(encoding="utf-8").splitlines()
            self._statistics[number, name] = [json.loads(line) for line in lines]
        return self._statistics[number, name]

    def trace(self, number: str, options: list[str]) -> list[dict]:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "trace.json"
            self.run([str(self.program(number))], [f"--trace={file}", *options])
            return json.loads(file.read_text(encoding="utf-8"))["traceEvents"]


def value_of(statistics: dict, key) -> int:
    if isinstance(key, tuple):
        return sum(statistics["overlap_steps"][name] for name in key)
    value = statistics[key]
    return sum(value.values()) if isinstance(value, dict) else value


def short_name(launch: dict) -> str:
    name = launch["kernel_name"].split("::")[-1]
    return {"tile_kernel": "the tile program", "blackwell_g": "`Gemm::launch`"}.get(name[:11], f"`{name}`")


class Page:
    def __init__(self, number: str, runs: Runs, exact: bool):
        self.number, self.runs, self.exact = number, runs, exact
        self.path = page_of(number)
        self.text = self.path.read_text(encoding="utf-8")

    def code(self, arguments: list[str]) -> str:
        file, region = arguments
        text = (SOURCES / file).read_text(encoding="utf-8")
        begin, end = text.find(f"// [{region}]\n"), -1
        if begin >= 0:
            begin += len(f"// [{region}]\n")
            end = text.find("// [end]\n", begin)
        if end < 0:
            raise Wrong(f"{self.path.name}: examples/course/{file} has no lines between '// [{region}]' and '// [end]'")
        return f"\n```c++\n{text[begin:end]}```\n\n"

    def output(self, arguments: list[str]) -> str:
        name, *options = arguments
        lines = next((int(option[6:]) for option in options if option.startswith("lines=")), None)
        only = next((option[5:].replace("_", " ").split(",") for option in options if option.startswith("only=")), [""])
        options = [option for option in options if not option.startswith(("lines=", "only="))]
        text, _ = self.runs.output(self.number, name, options)
        shown = [line for line in text.splitlines() if any(word in line.replace("_", " ") for word in only)]
        if lines is not None and len(shown) > lines:
            shown = [*shown[:lines], "..."]
        what = self.number.lstrip("0") if name == "plain" or name in edits_of(self.number) else name
        command = " ".join(["./course.sh", what, *options])
        return "\n```text\n" + "\n".join([f"$ {command}", *shown]) + "\n```\n\n"

    def counts(self, arguments: list[str]) -> str:
        options = dict(word.split("=") for word in arguments if "=" in word)
        keys = [word for word in arguments if "=" not in word]
        launches = list(self.runs.statistics(self.number, options.get("of", "plain")))[-int(options.get("last", 0)):]
        titles = [short_name(launch) for launch in launches]
        before = options.get("before", f"{int(self.number) - 1:02}")
        if int(before) > 0:
            launches.insert(0, self.runs.statistics(before)[-1])
            titles.insert(0, f"{short_name(launches[0])} of chapter {int(before)}")
        rows = [[COUNTS[key][0], *(self.cell(launch, key) for launch in launches)] for key in keys]
        if "paper" in options:
            titles.insert(0, "on paper")
            for row, least in zip(rows, self.paper(options.get("of", "plain"), launches[0], options["paper"].split(","))):
                row.insert(1, least)
        table = [["", *titles], ["---", *["---:"] * len(titles)], *rows]
        return "\n" + "".join("| " + " | ".join(row) + " |\n" for row in table) + "\n"

    def cell(self, launch: dict, key: str) -> str:
        _, place, unit, _ = COUNTS[key]
        value = value_of(launch["statistics"], place)
        return f"{value / unit:g}" if value < unit * 1e6 else str(value // unit)

    def paper(self, name: str, launch: dict, keys: list[str]) -> list[str]:
        """The least that the program prints, in the order of `keys`. One more or less in the run is a mistake."""
        self.runs.statistics(self.number, name)
        text, _ = self.runs.output(self.number, name, [])
        numbers = [int(number) for number in re.findall(r"[0-9]+", re.search(r"on paper: (.*)", text)[1])]
        for key, number in zip(keys, numbers):
            if value_of(launch["statistics"], COUNTS[key][1]) != number:
                raise Wrong(f"{self.path.name}, {name}: {key} is {value_of(launch['statistics'], COUNTS[key][1])}, on paper {number}")
        return [f"{number / COUNTS[key][2]:g}" for key, number in zip(keys, numbers)] + [""] * 9

    def made(self) -> str:
        """The page as code and runs give it."""
        def make(match: re.Match) -> str:
            return match[1] + getattr(self, match[2])(match[3].split()) + match[5]
        return MARKED.sub(make, self.text)

    def comparable(self, text: str) -> str:
        """Without what depends on the compiler's version."""
        if self.exact:
            return text
        text = re.sub(r"PTX line [0-9]+", "PTX line N", text)
        text = re.sub(r"%[a-z]+[0-9]+", "%r", text)
        for title, _, _, same in COUNTS.values():
            if not same:
                text = re.sub(rf"^\| {re.escape(title)} \|.*$", f"| {title} |", text, flags=re.MULTILINE)
        return text

    def mistakes(self) -> list[str]:
        """Edits that do not do what the page says: solutions succeed, and what is planted is found."""
        found = []
        for name in edits_of(self.number):
            text, status = self.runs.output(self.number, name, ["--strict"])
            if name.startswith("solution") and (status != 0 or "tessera-emu:" in text):
                found.append(f"{self.path.name}: {name} fails with status {status}:\n{text}")
            if name.startswith("bug") and (status == 0 or "tessera-emu:" not in text):
                found.append(f"{self.path.name}: nothing is found in {name}:\n{text}")
        return found


def chapters() -> list[str]:
    return sorted(page.name[:2] for page in PAGES.glob("[0-9][0-9]-*.md"))


def compare(what: str, old: str, new: str) -> list[str]:
    if old == new:
        return []
    lines = list(difflib.unified_diff(old.splitlines(), new.splitlines(), "now", "would be", lineterm="", n=1))
    return [f"{what} is not what code and runs give; run docs/checks/course.py. It differs in\n" + "\n".join(lines[:40])]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path, nargs="?", metavar="BUILD")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--chapter")
    parser.add_argument("--toolkit", default=TOOLKIT)
    parser.add_argument("--variants", nargs=2, metavar=("NN", "OUT"))
    arguments = parser.parse_args()
    try:
        if arguments.variants:
            write_variants(arguments.variants[0], Path(arguments.variants[1]).absolute())
            return 0
        if arguments.build is None:
            parser.error("name the build folder")
        runs = Runs(arguments.build.absolute())
        exact = arguments.toolkit.startswith(TOOLKIT)
        findings = []
        for number in [arguments.chapter] if arguments.chapter else chapters():
            page = Page(number, runs, exact)
            findings += page.mistakes()
            new = page.made()
            steps = course_steps.make(number, runs) if exact else {}
            if arguments.check:
                findings += compare(f"docs/course/{page.path.name}", page.comparable(page.text), page.comparable(new))
            elif new != page.text:
                page.path.write_text(new, encoding="utf-8")
            for name, data in steps.items():
                file = PAGES / "steps" / f"{name}.json"
                text = course_steps.text_of(data)
                if arguments.check:
                    findings += compare(f"docs/course/steps/{name}.json", file.read_text(encoding="utf-8"), text)
                else:
                    file.write_text(text, encoding="utf-8")
                if f"<!--steps:{name}-->" not in new:
                    findings.append(f"{page.path.name} has no line <!--steps:{name}-->")
    except Wrong as wrong:
        findings = [str(wrong)]
    for finding in findings:
        print(finding, file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
