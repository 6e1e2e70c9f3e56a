#!/usr/bin/env python3
"""What the drawing kit and the check of the pages must refuse."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

import code_facts  # noqa: E402
import make  # noqa: E402
from svg import BLUE, LayoutError, Picture, WHITE, contrast  # noqa: E402


class Refusals(unittest.TestCase):
    """Each draws one mistake."""

    def setUp(self) -> None:
        self.picture = Picture("title", "description", height=200)

    def refused(self, words: str) -> None:
        with self.assertRaisesRegex(LayoutError, words):
            self.picture.svg()

    def test_text_wider_than_its_box(self) -> None:
        self.picture.box(20, 20, 60, 40, BLUE, "far too long a title")
        self.refused("wide, its box has room")

    def test_text_higher_than_its_box(self) -> None:
        self.picture.box(20, 20, 200, 30, BLUE, "a title", "and\nthree\nlines")
        self.refused("high, its box")

    def test_text_across_an_edge(self) -> None:
        self.picture.rect(20, 20, 60, 40, BLUE.tint)
        self.picture.text(60, 44, "half outside")
        self.refused("crosses the edge")

    def test_text_below_a_box(self) -> None:
        self.picture.text(30, 44, "hidden")
        self.picture.rect(20, 20, 200, 40, BLUE.tint)
        self.refused("below a box")

    def test_text_outside_of_the_panel(self) -> None:
        self.picture.text(690, 100, "outside")
        self.refused("leaves the panel")

    def test_text_on_text(self) -> None:
        self.picture.text(100, 100, "one")
        self.picture.text(110, 104, "two")
        self.refused("overlaps")

    def test_circle_on_text(self) -> None:
        self.picture.text(100, 100, "a mark on it")
        self.picture.circle((150, 96), 5, BLUE.mid)
        self.refused("meets a circle")

    def test_line_through_text(self) -> None:
        self.picture.text(100, 100, "crossed")
        self.picture.arrow((50, 96), (300, 96))
        self.refused("crossed by a line")

    def test_line_below_a_halo_is_fine(self) -> None:
        self.picture.arrow((50, 96), (300, 96), label="not crossed")
        self.assertIn("not crossed", self.picture.svg())

    def test_tiny_text(self) -> None:
        self.picture.text(100, 100, "tiny", size=9)
        self.refused("the smallest is 11")

    def test_pale_text(self) -> None:
        self.picture.text(100, 100, "pale", color="#cccccc")
        self.refused("contrast")

    def test_character_of_unknown_width(self) -> None:
        with self.assertRaisesRegex(ValueError, "no width is known"):
            self.picture.text(100, 100, "\N{SNOWMAN}")

    def test_contrast_of_black_and_white(self) -> None:
        self.assertAlmostEqual(contrast("#000000", WHITE), 21)


class Files(unittest.TestCase):
    """Committed files that are not what is drawn."""

    def findings(self, drawn: dict[str, str]) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "one.svg").write_text("<svg/>", encoding="utf-8")
            return make.check_files(drawn, Path(folder))

    def test_same(self) -> None:
        self.assertEqual(self.findings({"one": "<svg/>"}), [])

    def test_changed(self) -> None:
        self.assertIn("one.svg is not what is drawn", self.findings({"one": "<svg></svg>"})[0])

    def test_missing(self) -> None:
        self.assertIn("two.svg is missing", self.findings({"one": "<svg/>", "two": "<svg/>"})[0])

    def test_not_drawn(self) -> None:
        self.assertEqual(self.findings({}), ["nothing draws one.svg"])


class Pages(unittest.TestCase):
    """Pages and pictures that do not match."""

    def findings(self, page: str) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            pictures = root / "docs" / "pictures"
            pictures.mkdir(parents=True)
            (pictures / "one.svg").write_text("<svg/>", encoding="utf-8")
            (root / "docs" / "page.md").write_text(page, encoding="utf-8")
            return make.check_pages(root, pictures)

    def test_shown(self) -> None:
        self.assertEqual(self.findings("![A sentence that says what one sees](pictures/one.svg)"), [])

    def test_not_shown(self) -> None:
        self.assertEqual(self.findings("nothing"), ["one.svg is on no page"])

    def test_missing(self) -> None:
        page = "![A sentence that says what one sees](pictures/one.svg) ![Another of these sentences](pictures/two.svg)"
        self.assertEqual(self.findings(page), ["docs/page.md shows pictures/two.svg, which does not exist"])

    def test_no_sentence(self) -> None:
        self.assertIn("alternative text", self.findings("![one](pictures/one.svg)")[0])


class Facts(unittest.TestCase):
    """Pictures of what the code does not say."""

    def test_unknown_constant(self) -> None:
        with self.assertRaisesRegex(code_facts.MissingFact, "blackwell_config.hpp has no match"):
            code_facts.constant("kernels/blackwell/blackwell_config.hpp", "no_such_constant")

    def test_other_value(self) -> None:
        config = code_facts.blackwell_config("CtaPair256")
        with self.assertRaisesRegex(code_facts.MissingFact, "the picture has {'stages': 99}"):
            code_facts.expect("CtaPair256", config, stages=99)


if __name__ == "__main__":
    unittest.main()
