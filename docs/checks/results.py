#!/usr/bin/env python3
"""Writes the tables and sentences of the pages that come from the stored results (bench/results).

    results.py           writes them into the pages
    results.py --check   fails if a page says something else

A page marks each by a line `<!-- results: NAME -->` before and a line `<!-- end -->` after it.
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "docs" / "pictures"))

from charts.stored import Stored  # noqa: E402

PAGES = ["README.md", "docs/performance.md", "docs/simt-ladder.md", "docs/notes/blackwell-kernel.md"]
MARKED = re.compile(r"(<!-- results: ([a-z-]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)

_makers: dict[str, Callable[[], str]] = {}


def maker(function: Callable[[], str]) -> Callable[[], str]:
    """Registers a function that makes the text of its own name, with dashes."""
    _makers[function.__name__.replace("_", "-")] = function
    return function


def table(titles: list[str], rows: list[list[str]]) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n" + "".join("| " + " | ".join(line) + " |\n" for line in lines).replace("| --- ", "|---").replace(
        "--- |\n", "---|\n") + "\n"


# The Blackwell ladder's counts


def with_least(row: dict[str, str], name: str, unit: int = 1) -> str:
    return f"{int(row[name]) / unit:g} ({int(row[name + '_least']) / unit:g})"


@maker
def ladder() -> str:
    titles = ["Configuration", "Tile of a cluster", "Stages", "CTAs that ran", "MiB read by TMA",
              "MiB brought to shared memory", "MiB stored by TMA", "MMAs", "Barrier waits", "Stalls",
              "Warp instructions", "Loads and MMAs in flight", "Epilogue and MMAs in flight"]
    mebibyte = 1 << 20
    return table(titles, [
        [f"`{row['name']}`", f"{row['tile_m']}x{row['tile_n']}", row["stages"], row["ctas"],
         with_least(row, "tma_read_bytes", mebibyte), with_least(row, "shared_bytes", mebibyte),
         with_least(row, "tma_store_bytes", mebibyte), with_least(row, "mmas"), with_least(row, "barrier_waits"),
         row["stalls"], row["warp_instructions"], f"{100 * float(row['loads_and_mmas']):.0f} %",
         f"{100 * float(row['epilogue_and_mmas']):.0f} %"]
        for row in Stored("emulated-b200/ladder.csv").rows])


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    findings, used = [], set()
    for name in PAGES:
        page = ROOT / name
        text = page.read_text(encoding="utf-8")

        def made(match: re.Match[str]) -> str:
            used.add(match[2])
            if match[2] not in _makers:
                findings.append(f"{name}: nothing makes \"{match[2]}\"")
                return match[0]
            return match[1] + _makers[match[2]]() + match[4]

        new = MARKED.sub(made, text)
        if new != text and arguments:
            wrong = [line for line in new.splitlines() if line not in text.splitlines()]
            findings.append(f"{name} does not say what bench/results does; run docs/checks/results.py. It would say:\n" +
                            "\n".join(wrong[:5]))
        elif new != text:
            page.write_text(new, encoding="utf-8")
    findings += [f"no page has \"{name}\"" for name in _makers if name not in used]
    for finding in findings:
        print(finding, file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
