"""The pages show programs that run, and what they print."""

import contextlib
import importlib.util
import io
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
BLOCK = re.compile(r"(<!-- needs torch -->\n)?```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)


def printed(code, names):
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(code, "page", "exec"), names)
    return output.getvalue()


def test_the_front_page_shows_a_program_that_runs():
    [(_, code, _)] = BLOCK.findall((ROOT / "README.md").read_text())
    assert len([line for line in code.splitlines() if line]) == 5
    assert printed(code, {}).startswith("[[")


@pytest.mark.parametrize("page", ["docs/python.md"])
def test_a_page_shows_what_its_programs_print(page):
    names, blocks = {}, BLOCK.findall((ROOT / page).read_text())
    assert len(blocks) >= 4
    for needs_torch, code, expected in blocks:
        if not needs_torch or importlib.util.find_spec("torch"):
            assert printed(code, names) == expected, code
