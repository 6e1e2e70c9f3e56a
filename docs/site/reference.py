#!/usr/bin/env python3
"""Makes the pages of the API reference from Doxygen's XML: a page for each side (host, device), group and class.

Breathe renders the declarations and their comments. This script decides what is on which page, and gives Breathe XML in
which

  - a free function, enum, constant or type belongs to the group that it names, or else to the group of its header;
  - a name in code type leads to what it names, and the name of an error code to its page;
  - the defaulted last parameter `caller` of most functions is left out: the page of the errors describes it once;
  - examples are highlighted as C++.

A public declaration without a group is an error.
"""

import argparse
import copy
import hashlib
import re
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from pathlib import Path

CLASS_KINDS = ("class", "struct", "union")
CALLER = re.compile(r",? ?(const )?std::source_location ?&?caller(=std::source_location::current\(\))?")


def text_of(element: ET.Element | None) -> str:
    return "" if element is None else " ".join("".join(element.itertext()).split())


@dataclass
class Header:
    """What one header adds to one group."""

    path: str
    description: list[ET.Element] = field(default_factory=list)
    concepts: list[ET.Element] = field(default_factory=list)
    members: list[ET.Element] = field(default_factory=list)


@dataclass
class Group:
    name: str
    title: str
    description: list[ET.Element]
    parent: str = ""
    classes: dict[str, list[ET.Element]] = field(default_factory=dict)  # name: the template and its specializations
    headers: dict[str, Header] = field(default_factory=dict)

    def header(self, path: str) -> Header:
        return self.headers.setdefault(path, Header(path))


class Reference:
    def __init__(self, xml: Path):
        self.compounds = {}
        for entry in ET.parse(xml / "index.xml").getroot():
            compound = ET.parse(xml / f"{entry.get('refid')}.xml").getroot().find("compounddef")
            self.compounds[entry.get("refid")] = compound
        self.errors: dict[str, list[str]] = {}  # header: names without a group
        self.xml: dict[str, str] = {}  # name of a compound: what Breathe reads of it
        self.groups: dict[str, Group] = {}
        self.group_of: dict[str, str] = {}  # id of a file, class or concept: name of its group
        self.names: dict[str, tuple[str, str]] = {}  # name as a comment writes it: id, kind of reference
        self.guides: dict[str, dict[str, ET.Element]] = {}  # class: its deduction guides
        self.known: set[str] = set()  # ids of all that is on a page
        self.read_groups()
        self.read_files()
        self.read_compounds()

    def of_kind(self, *kinds: str) -> list[ET.Element]:
        return [compound for compound in self.compounds.values() if compound.get("kind") in kinds]

    def read_groups(self) -> None:
        for compound in self.of_kind("group"):
            name = compound.findtext("compoundname")
            description = [compound.find("briefdescription"), compound.find("detaileddescription")]
            self.groups[name] = Group(name, compound.findtext("title"), description)
            for tag in ("innerfile", "innerclass", "innerconcept"):
                for inner in compound.iter(tag):
                    self.group_of[inner.get("refid")] = name
        for compound in self.of_kind("group"):
            for inner in compound.iter("innergroup"):
                child = self.compounds[inner.get("refid")].findtext("compoundname")
                self.groups[child].parent = compound.findtext("compoundname")

    def read_files(self) -> None:
        self.files: dict[str, ET.Element] = {}  # path as one includes it
        for compound in self.of_kind("file"):
            path = compound.find("location").get("file")
            self.files[path] = compound
            group = self.group_of.get(compound.get("id"))
            if group:
                self.groups[group].header(path).description = [
                    compound.find("briefdescription"), compound.find("detaileddescription")]

    def group_for(self, element: ET.Element, explicit: str | None, what: str) -> Group | None:
        path = element.find("location").get("file")
        name = explicit or self.group_of.get(self.files[path].get("id"))
        if name is None:
            self.errors.setdefault(path, []).append(what.removeprefix("tessera::"))
            return None
        return self.groups[name]

    def add_name(self, name: str, identifier: str, kind: str) -> None:
        self.names.setdefault(name.removeprefix("tessera::"), (identifier, kind))
        self.known.add(identifier)

    def read_compounds(self) -> None:
        nested = {inner.get("refid")
                  for compound in self.of_kind(*CLASS_KINDS) for inner in compound.iter("innerclass")}
        for compound in self.of_kind(*CLASS_KINDS, "concept"):
            name, identifier = compound.findtext("compoundname"), compound.get("id")
            if not name.startswith("tessera::"):
                continue  # std::formatter and its like
            self.add_name(name, identifier, "compound")
            for member in compound.iter("memberdef"):
                if member.get("prot") == "public":
                    self.add_name(f"{name.split('<')[0]}::{member.findtext('name')}", member.get("id"), "member")
            if identifier in nested:
                continue
            group = self.group_for(compound, self.group_of.get(identifier), name)
            if group and compound.get("kind") == "concept":
                group.header(compound.find("location").get("file")).concepts.append(compound)
            elif group:
                path = compound.find("location").get("file")
                if not self.group_of.get(identifier):
                    self.group_of[identifier] = group.name
                group.classes.setdefault(name.split("<")[0].removeprefix("tessera::"), []).append(compound)
                group.header(path)
        for compound in self.of_kind("namespace", "group", "file"):
            explicit = compound.findtext("compoundname") if compound.get("kind") == "group" else None
            for section in compound.iter("sectiondef"):
                for member in section.iter("memberdef"):
                    self.read_member(compound, section, member, explicit)

    def read_member(self, compound: ET.Element, section: ET.Element, member: ET.Element, explicit: str | None) -> None:
        qualified = member.findtext("qualifiedname") or member.findtext("name")
        kind = member.get("kind")
        if kind == "define":
            if compound.get("kind") == "namespace" or not has_words(member):
                return
        elif not qualified.startswith("tessera::") or "::detail::" in qualified:
            return
        if is_deduction_guide(member):
            self.guides.setdefault(member.findtext("name"), {})[member.get("id")] = member
            return
        self.add_name(qualified, member.get("id"), "member")
        for value in member.iter("enumvalue"):
            self.add_name(f"{qualified}::{value.findtext('name')}", value.get("id"), "member")
        group = self.group_for(member, explicit, qualified)
        if group:
            members = group.header(member.find("location").get("file")).members
            if all(other.get("id") != member.get("id") for other in members):
                member.set("section", section.get("kind"))
                members.append(member)

    # XML for Breathe

    def polish(self, compound: ET.Element) -> ET.Element:
        compound = copy.deepcopy(compound)
        for tag in ("includes", "includedby", "incdepgraph", "invincdepgraph", "inheritancegraph", "collaborationgraph",
                    "programlisting", "listofallmembers"):
            for element in compound.findall(tag):
                compound.remove(element)
        for member in compound.iter("memberdef"):
            member.set("inline", "no")
        for constrained in [compound, *compound.iter("memberdef")]:
            show_requirement(constrained)
        for parent in list(compound.iter()):
            for child in list(parent):
                if child.tag == "verbatim":
                    as_listing(child)
                elif child.tag == "programlisting":
                    plain_listing(child)
                elif child.tag == "param" and child.findtext("declname") == "caller" and \
                        "source_location" in text_of(child.find("type")):
                    parent.remove(child)
                elif child.tag == "argsstring" and child.text:
                    child.text = CALLER.sub("", child.text).replace("detail::", "")
                elif child.tag == "type" and child.text:
                    child.text = child.text.replace("detail::", "")
                elif child.tag == "ref" and (child.get("refid") not in self.known or is_plain_word(parent, child)):
                    dissolve(parent, child)
                elif child.tag == "computeroutput":
                    self.link_code(child)
        return compound

    def link_code(self, code: ET.Element) -> None:
        """Makes a link of `Gemm::launch`, `launch()` or `shape_mismatch` in code type."""
        if len(code):
            return
        name = (code.text or "").removesuffix("()").removeprefix("tessera::")
        found = self.names.get(name)
        if found is None and re.match(r"[\w:]+<.*>$", name):
            found = self.names.get(name.split("<")[0])
        if f"ErrorCode::{name}" in self.names:
            link = ET.SubElement(code, "ulink", {"url": f"../errors/{name}.html"})
        elif found:
            link = ET.SubElement(code, "ref", {"refid": found[0], "kindref": found[1]})
        else:
            return
        link.text, code.text = code.text, None

    def group_compound(self, name: str, title: str, description: list[ET.Element],
                       members: list[ET.Element]) -> ET.Element:
        compound = ET.Element("compounddef", {"id": f"site_{name}", "kind": "group"})
        ET.SubElement(compound, "compoundname").text = name
        ET.SubElement(compound, "title").text = title
        sections: dict[str, ET.Element] = {}
        for member in members:
            kind = member.get("section")
            if kind not in sections:
                sections[kind] = ET.SubElement(compound, "sectiondef", {"kind": kind})
            plain = copy.deepcopy(member)
            del plain.attrib["section"]
            sections[kind].append(plain)
        compound.extend(description or [ET.Element("briefdescription"), ET.Element("detaileddescription")])
        return compound

    def write_xml(self, out: Path) -> None:
        index = ET.Element("doxygenindex", {"version": "1.9.4"})
        compounds = []
        for group in self.groups.values():
            compounds.append(self.group_compound(group.name, group.title, group.description, []))
            for number, header in enumerate(group.headers.values()):
                header.name = f"{group.name}_{number}"
                compounds.append(self.group_compound(header.name, header.path, header.description, header.members))
                compounds.extend(header.concepts)
        compounds.extend(compound for compound in self.of_kind(*CLASS_KINDS)
                         if compound.findtext("compoundname").startswith("tessera::"))
        for compound in compounds:
            compound = self.polish(compound)
            entry = ET.SubElement(index, "compound", {"refid": compound.get("id"), "kind": compound.get("kind")})
            ET.SubElement(entry, "name").text = compound.findtext("compoundname")
            for member in compound.iter("memberdef"):
                listed = ET.SubElement(entry, "member", {"refid": member.get("id"), "kind": member.get("kind")})
                ET.SubElement(listed, "name").text = member.findtext("name")
            root = ET.Element("doxygen", {"version": "1.9.4"})
            root.append(compound)
            text = ET.tostring(root, encoding="unicode")
            text = re.sub(r"\bdocs/([\w/-]+)\.md\b", r'<ulink url="../\1.html">docs/\1.md</ulink>', text)
            self.xml[compound.findtext("compoundname")] = text
            write(out / f"{compound.get('id')}.xml", text)
        write(out / "index.xml", ET.tostring(index, encoding="unicode"))

    # Pages for Sphinx

    def write_pages(self, out: Path) -> None:
        # Sphinx reads a page again when its text has changed: the mark stands for all that pages show and link to.
        state = "".join(self.xml.values()) + Path(__file__).read_text()
        mark = hashlib.sha256(state.encode()).hexdigest()[:16]
        written = set()
        for name, text in self.pages():
            written.add(write(out / f"{name}.rst", f".. {mark}\n\n.. highlight:: cpp\n\n{text}"))
        for page in out.glob("*.rst"):
            if page not in written:
                page.unlink()

    def pages(self):
        for side in (group for group in self.groups.values() if not group.parent):
            yield f"{side.name}_api", self.side_page(side)
        for group in self.groups.values():
            if group.parent:
                yield group.name, self.group_page(group)
                for name, compounds in group.classes.items():
                    yield name, self.class_page(group, name, compounds)

    def side_page(self, side: Group) -> str:
        groups = [group for group in self.groups.values() if group.parent == side.name]
        text = heading(f"{side.title} API", "=") + description(side.name)
        for group in groups:
            text += heading(f":doc:`{group.title} <{group.name}>`", "-") + sentence(group.description) + "\n\n"
            if group.classes:
                links = " · ".join(f":doc:`{name} <{name}>`" for name in group.classes)
                text += f".. rst-class:: names\n\n{links}\n\n"
        return text + toctree([group.name for group in groups])

    def group_page(self, group: Group) -> str:
        text = heading(group.title, "=") + description(group.name)
        if group.classes:
            text += ".. list-table::\n   :class: summary\n   :widths: auto\n\n"
            for name, compounds in group.classes.items():
                text += f"   * - :doc:`{name} <{name}>`\n     - {sentence(descriptions(compounds[0]))}\n"
            text += "\n"
        for header in group.headers.values():
            if not (header.members or header.concepts or any(map(text_of, header.description))):
                continue
            text += heading(header.path, "-") + include_line(header.path)
            if any(map(text_of, header.description)):
                text += description(header.name)
            for concept in header.concepts:
                text += f".. doxygenconcept:: {concept.findtext('compoundname')}\n\n"
                text += code_block(concept_definition(concept))
            if header.members:
                qualified = header.members[0].findtext("qualifiedname") or "tessera::"
                text += f".. cpp:namespace:: {qualified.rpartition('::')[0] or 'tessera'}\n\n"
                text += f".. doxygengroup:: {header.name}\n   :content-only:\n\n.. cpp:namespace:: NULL\n\n"
        return text + toctree(group.classes)

    def class_page(self, group: Group, name: str, compounds: list[ET.Element]) -> str:
        text = heading(name, "=") + include_line(compounds[0].find("location").get("file"))
        text += f".. rst-class:: in-group\n\nIn :doc:`{group.title} <{group.name}>`\n\n"
        for compound in compounds:
            text += f".. doxygen{compound.get('kind')}:: {compound.findtext('compoundname')}\n   :members:\n\n"
        if name in self.guides:
            text += ".. rubric:: Deduction guides\n\n"
        for guide in self.guides.get(name, {}).values():
            parameters = ", ".join(text_of(parameter) for parameter in guide.find("templateparamlist").iter("param"))
            signature = f"{name}{guide.findtext('argsstring')}".replace("< ", "<").replace(" >", ">")
            text += code_block(f"template <{parameters}>\n{signature};")
            text += sentence(descriptions(guide)) + "\n\n"
        return text


def descriptions(element: ET.Element) -> list[ET.Element]:
    return [element.find("briefdescription"), element.find("detaileddescription")]


def is_plain_word(parent: ET.Element, reference: ET.Element) -> bool:
    """Whether Doxygen has made a link of a word of the text that is also the name of a type, like "Device"."""
    return parent.tag == "para" and re.fullmatch(r"[A-Z]?[a-z]+", text_of(reference)) is not None


def show_requirement(declaration: ET.Element) -> None:
    """Breathe leaves requires-clauses out, so the description has them."""
    clause = text_of(declaration.find("requiresclause"))
    if not clause:
        return
    paragraph = ET.Element("para")
    ET.SubElement(paragraph, "bold").text = "Requires"
    paragraph[0].tail = " "
    ET.SubElement(paragraph, "computeroutput").text = clause.replace("detail::", "")
    first = declaration.find("briefdescription")
    (first if text_of(first) else declaration.find("detaileddescription")).append(paragraph)


def is_deduction_guide(member: ET.Element) -> bool:
    return "->" in (member.findtext("argsstring") or "") and member.findtext("name")[0].isupper()


def has_words(element: ET.Element) -> bool:
    return any(map(text_of, descriptions(element)))


def sentence(description: list[ET.Element]) -> str:
    """The first sentence of a description, as reStructuredText."""
    for element in description:
        paragraph = None if element is None else element.find("para")
        if text_of(paragraph):
            words = paragraph.text or ""
            for child in paragraph:
                if child.tag in ("parameterlist", "itemizedlist", "verbatim", "programlisting", "simplesect"):
                    break
                inner = text_of(child)
                words += f"\2{inner}\3" if child.tag == "computeroutput" else inner
                words += child.tail or ""
            words = " ".join(re.sub(r"([\\*`|_])", r"\\\1", words).split())
            words = re.split(r"(?<=[.!?])\s", words + " ")[0].rstrip(": ")
            return re.sub("\2(.*?)\3", lambda code: "``" + code[1].replace("\\", "") + "``\\ ", words)
    return ""


def heading(title: str, underline: str) -> str:
    return f"{title}\n{underline * len(title)}\n\n"


def description(group: str) -> str:
    return f".. container:: description\n\n   .. doxygengroup:: {group}\n      :desc-only:\n      :no-title:\n\n"


def code_block(code: str) -> str:
    return ".. code-block:: cpp\n\n" + "".join(f"   {line}\n" for line in code.splitlines()) + "\n"


def include_line(path: str) -> str:
    return ".. rst-class:: include\n\n" + code_block(f"#include <{path}>")


def toctree(names) -> str:
    return ".. toctree::\n   :hidden:\n\n" + "".join(f"   {name}\n" for name in names)


def concept_definition(concept: ET.Element) -> str:
    return "".join(concept.find("initializer").itertext()).replace("tessera::", "", 1).strip() + ";"


def as_listing(verbatim: ET.Element) -> None:
    """An example in a comment, which Doxygen takes for plain text."""
    lines = (verbatim.text or "").strip("\n").splitlines()
    verbatim.text, verbatim.tag = None, "programlisting"
    verbatim.set("filename", "example.cpp" if any(mark in line for line in lines for mark in ";{#") else "example.txt")
    for line in lines:
        highlight = ET.SubElement(ET.SubElement(verbatim, "codeline"), "highlight", {"class": "normal"})
        highlight.text = line


def plain_listing(listing: ET.Element) -> None:
    """Code as lines of text: Breathe drops an indentation that is an element of its own. Sphinx highlights the text."""
    for line in listing.iter("codeline"):
        for space in line.iter("sp"):
            space.text = " "
        text = "".join(line.itertext())
        line[:] = []
        ET.SubElement(line, "highlight", {"class": "normal"}).text = text


def dissolve(parent: ET.Element, child: ET.Element) -> None:
    """Replaces `child` by its text."""
    position = list(parent).index(child)
    text = "".join(child.itertext()) + (child.tail or "")
    if position == 0:
        parent.text = (parent.text or "") + text
    else:
        before = parent[position - 1]
        before.tail = (before.tail or "") + text
    parent.remove(child)


def write(path: Path, text: str) -> Path:
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draft", action="store_true", help="leave out what is wrong")
    parser.add_argument("--comments", action="store_true", help="only check that every declaration is in a group")
    parser.add_argument("--check", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("xml", type=Path, help="Doxygen's XML")
    parser.add_argument("polished", type=Path, help="where the XML for Breathe goes")
    parser.add_argument("pages", type=Path, help="where the pages go")
    arguments = parser.parse_args()
    reference = Reference(arguments.xml)
    for path, names in reference.errors.items():
        print(f"reference.py: {path}: in no group: {', '.join(names)}. Write @ingroup in the comment of the file",
              file=sys.stderr)
    if reference.errors and not arguments.draft:
        return 1
    if arguments.comments:
        return 0
    reference.write_xml(arguments.polished)
    reference.write_pages(arguments.pages)
    return 0


if __name__ == "__main__":
    sys.exit(main())
