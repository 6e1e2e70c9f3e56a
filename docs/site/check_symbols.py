#!/usr/bin/env python3
"""Every public declaration that the headers document is on a page of the site, and its search finds it by name."""

import re
import sys
import xml.etree.ElementTree as ET
import zlib
from pathlib import Path


def documented(xml: Path):
    """Names and ids of what Doxygen read in namespace tessera: compounds and members with a comment."""
    for entry in ET.parse(xml / "index.xml").getroot():
        compound = ET.parse(xml / f"{entry.get('refid')}.xml").getroot().find("compounddef")
        kind, name = compound.get("kind"), compound.findtext("compoundname")
        if kind in ("class", "struct", "union", "concept"):
            if not name.startswith("tessera::") or compound.get("prot", "public") != "public":
                continue
            yield name, compound.get("id")
        elif kind not in ("namespace", "group"):
            continue
        for member in compound.iter("memberdef"):
            qualified = member.findtext("qualifiedname") or ""
            words = "".join(text for tag in ("briefdescription", "detaileddescription")
                            for text in member.find(tag).itertext()).strip()
            if member.findtext("name").startswith("operator "):  # Doxygen's qualified name of a conversion lacks a part
                qualified = f"{qualified.rpartition('::')[0]}::{member.findtext('name')}"
            if "->" in (member.findtext("argsstring") or "") and member.findtext("name")[0].isupper():
                continue  # a deduction guide, which is on the page of its class
            if member.get("prot") == "public" and qualified.startswith("tessera::") and words:
                yield qualified, member.get("id")


def plain(name: str) -> str:
    """Without template arguments and spaces."""
    if "operator" not in name:
        while re.search(r"<[^<>]*>", name):
            name = re.sub(r"<[^<>]*>", "", name)
    return name.replace(" ", "")


def inventory(file: Path) -> set[str]:
    content = file.read_bytes().split(b"\n", 4)[4]
    lines = zlib.decompress(content).decode().splitlines()
    return {plain(re.split(r" cpp:\w+ ", line)[0]) for line in lines if " cpp:" in line}


def main() -> int:
    xml, html = Path(sys.argv[1]), Path(sys.argv[2])
    names = inventory(html / "objects.inv")
    anchors = {page.name: set(re.findall(r'id="([^"]+)"', page.read_text()))
               for page in (html / "reference").glob("*.html")}
    found = list(documented(xml))

    def absent(pages: set[str]) -> list[str]:
        there = set().union(*(anchors[page] for page in pages))
        return sorted({name for name, identifier in found if plain(name) not in names or identifier not in there})

    missing = absent(set(anchors))
    if "tessera::Gemm::launch" not in absent(set(anchors) - {"Gemm.html"}):
        print("check_symbols.py: does not see that a page is missing", file=sys.stderr)
        return 1
    for name in missing:
        print(f"check_symbols.py: {name} is on no page of the reference", file=sys.stderr)
    if len(found) < 100:
        print(f"check_symbols.py: only {len(found)} declarations found in {xml}", file=sys.stderr)
        return 1
    print(f"{len(found)} public declarations are in the reference" if not missing else f"{len(missing)} are missing")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
