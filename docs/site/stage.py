#!/usr/bin/env python3
"""Copies the Markdown pages of the repository to the folder that Sphinx reads, with links that work on the site.

The pages link to each other, to pictures and to sources by relative paths of the repository. On the site a link to a
page leads to its rendered form, a link to a source file to a highlighted copy, a link to a folder to a list of its
files. A link to what does not exist is an error. Files whose content has not changed keep their time, so that Sphinx
skips them.
"""

import argparse
import json
import os
import posixpath
import re
import sys
from pathlib import Path

# Pages outside of docs/, and the pages of docs/ with another place on the site than in the repository.
PLACES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "bench/README.md": "bench.md",
    "examples/README.md": "examples.md",
    "packaging/README.md": "packaging.md",
    "docs/index.md": "contents.md",
    "docs/course/README.md": "course/index.md",
    "docs/errors/README.md": "errors/index.md",
    "docs/notes/README.md": "notes/index.md",
}
LANGUAGES = {
    ".cpp": "cpp", ".hpp": "cpp", ".cu": "cuda", ".cuh": "cuda", ".cmake": "cmake", ".py": "python", ".sh": "bash",
    ".json": "json",
}
# A diagram that one steps through: static/course.js shows the data of docs/course/steps.
STEPS = re.compile(r"^<!--steps:([a-z0-9-]+)-->$", re.MULTILINE)
# Fenced code, code in a line, or a link: whichever comes first.
LINK = re.compile(r"^ *```.*?^ *```|``[^`].*?``|`[^`\n]+`"
                  r"|(!?\[(?:[^\[\]]|\[[^\]]*\])*\]\()([^()\s]+)(\s+\"[^\"]*\")?\)", re.MULTILINE | re.DOTALL)
# Pages whose folder is listed below them in the navigation.
PARENTS = ("docs/course/README.md", "docs/errors/README.md", "docs/notes/README.md")
COURSE_PDF = "blackwell-course.pdf"  # build.sh makes it
BELOW = "\n```{toctree}\n:hidden:\n:glob:\n\n*\n```\n"


class Stage:
    def __init__(self, root: Path, out: Path, pdf: bool):
        self.root, self.out, self.pdf = root, out.resolve(), pdf
        self.written: set[Path] = set()
        self.errors: list[str] = []
        self.others: list[str] = []  # pages that are in no list, but linked to
        self.sources: list[str] = []  # files and folders that pages link to, paths in the repository
        self.places = {path: place for path, place in PLACES.items() if (root / path).exists()}
        for page in sorted((root / "docs").rglob("*.md")):
            path = page.relative_to(root).as_posix()
            if not path.startswith("docs/site/"):
                self.places.setdefault(path, path.removeprefix("docs/"))

    def write(self, place: str, text: str) -> None:
        target = self.out / place
        self.written.add(target)
        if target.exists() and target.read_text() == text:
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def copy(self, path: str, place: str) -> None:
        target = self.out / place
        content = (self.root / path).read_bytes()
        self.written.add(target)
        if not target.exists() or target.read_bytes() != content:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)

    def target_of(self, path: str) -> str:
        """Where a file or folder of the repository is on the site."""
        if path in self.places:
            return self.places[path]
        if (self.root / path / "README.md").exists() and f"{path}/README.md" in self.places:
            return self.places[f"{path}/README.md"]
        if path.startswith("docs/pictures/"):
            self.copy(path, path.removeprefix("docs/"))
            return path.removeprefix("docs/")
        if path.endswith(".md"):
            self.places[path] = f"{path.removesuffix('/README.md').removesuffix('.md').replace('/', '-')}.md"
            self.others.append(path)
            return self.places[path]
        if path not in self.sources:
            self.sources.append(path)
        return f"source/{path}.md"

    def links(self, path: str, place: str, text: str) -> str:
        """The text of page `path` with links that are right at `place`."""

        def replace(match: re.Match) -> str:
            before, target, title = match[1], match[2], match[3] or ""
            if not before or re.match(r"[a-z]+:", target) or target.startswith("#"):
                return match[0]
            file, _, anchor = target.partition("#")
            resolved = posixpath.normpath(posixpath.join(posixpath.dirname(path), file))
            if resolved.startswith("..") or not (self.root / resolved).exists():
                self.errors.append(f"{path} links to {target}, which does not exist")
                return match[0]
            relative = posixpath.relpath(self.target_of(resolved), posixpath.dirname(place) or ".")
            return f"{before}{relative}{'#' + anchor if anchor else ''}{title})"

        return LINK.sub(replace, text)

    def diagrams(self, text: str) -> str:
        """The text with the data of its diagrams."""

        def replace(match: re.Match) -> str:
            file = self.root / "docs/course/steps" / f"{match[1]}.json"
            if not file.exists():
                self.errors.append(f"a page shows the diagram {match[1]}, and {file} does not exist")
                return match[0]
            data = json.dumps(json.loads(file.read_text()), separators=(",", ":"))
            return f'<div class="steps" id="steps-{match[1]}"><script type="application/json">{data}</script></div>'

        return STEPS.sub(replace, text)

    def course_in_print(self) -> None:
        """All chapters of the course on one page, of which build.sh makes a PDF; and a link to that in the course's list."""
        place = "course-print.md"
        texts = []
        for file in sorted((self.root / "docs/course").glob("[0-9R]*.md"), key=lambda file: (file.name[0] != "R", file.name)):
            path = file.relative_to(self.root).as_posix()
            text = STEPS.sub("", self.links(path, place, file.read_text()))
            text = re.sub(r"</?details>\n|^Next: .*\n", "", text, flags=re.MULTILINE)
            text = re.sub(r"<summary>(.*)</summary>", r"**\1**", text)
            fenced = re.split(r"(^```.*?^```)", text, flags=re.MULTILINE | re.DOTALL)
            first = file.name[0] == "R"
            texts.append("".join(part if part.startswith("```") or first else re.sub(r"^#", "##", part, flags=re.MULTILINE)
                                 for part in fenced))
        self.write(place, "---\norphan: true\nnosearch: true\n---\n" + "\n".join(texts))
        index = self.out / self.places["docs/course/README.md"]
        link = f'<p><a href="../{COURSE_PDF}">The course as one PDF</a></p>'
        self.write(self.places["docs/course/README.md"], index.read_text().replace("\n## Chapters\n", f"\n{link}\n\n## Chapters\n"))

    def source_page(self, path: str) -> None:
        place = f"source/{path}.md"
        head = "---\norphan: true\nnosearch: true\n---\n"
        if (self.root / path).is_dir():
            files = sorted(file.name for file in (self.root / path).iterdir() if file.is_file())
            here = posixpath.dirname(place)
            links = {name: posixpath.relpath(self.target_of(f"{path}/{name}"), here) for name in files}
            rows = "".join(f"- [`{name}`]({link})\n" for name, link in links.items())
            self.write(place, f"{head}# `{path}/`\n\nThe files of this folder of the repository:\n\n{rows}")
            return
        name = posixpath.basename(path)
        language = "cmake" if name == "CMakeLists.txt" else LANGUAGES.get(posixpath.splitext(name)[1], "text")
        source = os.path.relpath(self.root / path, (self.out / place).parent)
        include = f"```{{literalinclude}} {source}\n:language: {language}\n:linenos:\n```\n"
        self.write(place, f"{head}# `{path}`\n\n{include}")

    def front_page(self) -> None:
        """The site's own index.md, with the README in the place of its marks."""
        readme = self.links("README.md", "index.md", (self.root / "README.md").read_text())
        before, heading, after = readme.partition("\n## Four ways in\n")
        if not heading:
            self.errors.append("README.md has no section 'Four ways in', in whose place the site has cards")
        _, next_heading, after = after.partition("\n## ")
        introduction, mark, rest = f"{before}{next_heading}{after}".partition("\n![")
        text = (self.root / "docs/site/index.md").read_text()
        for name, part in (("introduction", introduction), ("rest", mark + rest)):
            if text.count(f"<!-- README: {name} -->") != 1:
                self.errors.append(f"docs/site/index.md needs the line <!-- README: {name} --> once")
            text = text.replace(f"<!-- README: {name} -->", part.strip())
        self.write("index.md", text)

    def run(self) -> None:
        for path, place in list(self.places.items()):
            if path != "README.md":
                text = self.diagrams(self.links(path, place, (self.root / path).read_text()))
                self.write(place, text + (BELOW if path in PARENTS else ""))
        self.front_page()
        if self.pdf:
            self.course_in_print()
        for path in self.others:
            text = self.links(path, self.places[path], (self.root / path).read_text())
            self.write(self.places[path], f"---\norphan: true\n---\n{text}")
        for path in self.sources:  # grows while folders are listed
            self.source_page(path)
        for file in self.out.rglob("*"):
            if file.is_file() and file not in self.written and "reference" not in file.relative_to(self.out).parts[:1]:
                file.unlink()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", type=Path, help="the repository")
    parser.add_argument("out", type=Path, help="the folder that Sphinx reads")
    parser.add_argument("--pdf", action="store_true", help="the course is printed, too")
    arguments = parser.parse_args()
    stage = Stage(arguments.root.resolve(), arguments.out, arguments.pdf)
    stage.run()
    for error in stage.errors:
        print(f"stage.py: {error}", file=sys.stderr)
    return 1 if stage.errors else 0


if __name__ == "__main__":
    sys.exit(main())
