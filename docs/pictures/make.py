#!/usr/bin/env python3
"""Draws the pictures of the documentation: docs/pictures/*.svg.

make.py [NAME ...]       draws all pictures, or those named
make.py --check          fails if a committed picture is not what is drawn, or nothing draws it
make.py --check --pages  also fails if a picture is on no page, or a page shows a picture that does not exist
"""

import argparse
import importlib
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE))

import svg  # noqa: E402
from code_facts import MissingFact  # noqa: E402

IMAGE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")
SHORTEST_ALT = 20  # characters; an alternative text is a sentence that says what one sees


def draw(names: list[str]) -> tuple[dict[str, str], list[str]]:
    """Returns the drawn pictures by name, and the findings of those that cannot be drawn."""
    for folder in ("diagrams", "charts"):
        for file in sorted((HERE / folder).glob("*.py")):
            importlib.import_module(f"{folder}.{file.stem}")
    unknown = set(names) - set(svg.drawings())
    drawn, findings = {}, [f"nothing draws {name}" for name in sorted(unknown)]
    for name, function in svg.drawings().items():
        if names and name not in names:
            continue
        try:
            drawn[name] = function().svg()
        except (svg.LayoutError, MissingFact) as error:
            findings += [f"{name}.svg: {line}" for line in str(error).splitlines()]
    return drawn, findings


def check_files(drawn: dict[str, str], pictures: Path = HERE) -> list[str]:
    """What differs between the drawn pictures and the committed files."""
    findings = []
    for name, text in drawn.items():
        file = pictures / f"{name}.svg"
        if not file.exists():
            findings.append(f"{name}.svg is missing; run docs/pictures/make.py")
        elif file.read_text(encoding="utf-8") != text:
            findings.append(f"{name}.svg is not what is drawn; run docs/pictures/make.py")
    known = {*drawn, *svg.drawings()}
    findings += [f"nothing draws {file.name}" for file in sorted(pictures.glob("*.svg")) if file.stem not in known]
    return findings


def check_pages(root: Path = ROOT, pictures: Path = HERE) -> list[str]:
    """What is wrong with how the pages of a repository show its pictures."""
    findings, shown = [], set()
    for page in [*sorted(root.glob("*.md")), *sorted((root / "docs").rglob("*.md"))]:
        for alt, target in IMAGE.findall(page.read_text(encoding="utf-8")):
            if not target.endswith(".svg") or "://" in target:
                continue
            where = f"{page.relative_to(root)} shows {target}"
            file = (page.parent / target).resolve()
            if not file.exists():
                findings.append(f"{where}, which does not exist")
            if len(alt) < SHORTEST_ALT:
                findings.append(f"{where} with the alternative text {alt!r}; a sentence should say what one sees")
            shown.add(file)
    unseen = [file.name for file in sorted(pictures.resolve().glob("*.svg")) if file not in shown]
    return findings + [f"{name} is on no page" for name in unseen]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--check", action="store_true", help="compare with the committed files, write nothing")
    parser.add_argument("--pages", action="store_true", help="with --check: look at the pages, too")
    arguments = parser.parse_args()

    drawn, findings = draw(arguments.names)
    if arguments.check:
        findings += check_files(drawn) if not arguments.names else []
        findings += check_pages() if arguments.pages else []
    else:
        for name, text in drawn.items():
            (HERE / f"{name}.svg").write_text(text, encoding="utf-8")
    for finding in findings:
        print(finding, file=sys.stderr)
    if not findings and arguments.check:
        print(f"{len(drawn)} pictures are as drawn")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
