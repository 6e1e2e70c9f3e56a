#!/usr/bin/env python3
"""Runs the cells of the course's notebook and compares what they print with what the notebook shows.

    tessera-emu --device b200 --statistics json:COUNTS -- notebook.py run NOTEBOOK     runs the cells; fails on a difference
    tessera-emu ... -- notebook.py write NOTEBOOK                                      writes what they print into the notebook
    notebook.py counts COUNTS BYTES ...      fails unless its tile programs, in their order, loaded so many bytes to shared memory
"""

import contextlib
import io
import json
import sys
from pathlib import Path


def run(path: Path, write: bool) -> int:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    names: dict = {}
    wrong = 0
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] != "code":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("".join(cell["source"]), f"{path.name}, cell {number}", "exec"), names)  # noqa: S102
        shown = "".join(line for output in cell["outputs"] for line in output.get("text", []))
        if write:
            cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": printed.getvalue().splitlines(keepends=True)}]
        elif shown != printed.getvalue():
            print(f"{path.name}, cell {number} shows\n{shown}and prints\n{printed.getvalue()}", file=sys.stderr)
            wrong += 1
    if write:
        path.write_text(json.dumps(notebook, indent=1) + "\n", encoding="utf-8")
    return 1 if wrong else 0


def counts(path: Path, expected: list[int]) -> int:
    launches = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    copied = [launch["statistics"]["tma_load_bytes"] for launch in launches if "tile" in launch["kernel_name"]]
    if copied != expected:
        print(f"the tile programs loaded {copied} bytes; on paper {expected}", file=sys.stderr)
    return 0 if copied == expected else 1


if __name__ == "__main__":
    what, file, *numbers = sys.argv[1:]
    sys.exit(counts(Path(file), [int(number) for number in numbers]) if what == "counts" else run(Path(file), what == "write"))
