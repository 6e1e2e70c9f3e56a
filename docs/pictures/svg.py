"""A small kit for drawing the pictures of the documentation as SVG. Standard library only, and deterministic.

A picture is 700 units wide, about the width of a page's text, so a text size of 11 is 11 pixels on the page. Every
picture is drawn on an opaque light panel and reads alike on a dark page.

    @drawing
    def my_picture() -> Picture:                       # becomes my-picture.svg
        p = Picture("What it shows", "One sentence for readers who cannot see it.", height=200)
        a = p.box(20, 20, 120, 50, BLUE, "Title", "small text")
        b = p.box(300, 20, 120, 50, GREEN, "Other")
        p.arrow(a.right, b.left, label="loads")
        return p

`Picture.svg()` refuses, with every finding, a picture in which text is smaller than 11, has too little contrast,
leaves the panel, crosses the edge of a box, overlaps other text, or is crossed by a line.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from geometry import Point, Rect, crosses, towards
from palette import (
    BLUE,
    FAINT,
    GREEN,
    GREY,
    HUES,
    INK,
    LINE,
    MUTED,
    ORANGE,
    PANEL,
    PURPLE,
    RED,
    WHITE,
    YELLOW,
    Hue,
    contrast,
    ink_on,
)
from text_widths import text_width

__all__ = [  # fmt: skip
    "BLUE", "FAINT", "GREEN", "GREY", "HUES", "Hue", "INK", "LINE", "LayoutError", "MUTED", "ORANGE", "PANEL",
    "PURPLE", "Picture", "Point", "RED", "Rect", "SMALLEST_TEXT", "WHITE", "WIDTH", "YELLOW", "contrast",
    "drawing", "drawings", "ink_on", "linear", "logarithmic", "number", "text_width",
]

WIDTH = 700
SMALLEST_TEXT = 11
FONTS = "'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"
MONO_FONTS = "ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace"


class LayoutError(Exception):
    """A picture whose text cannot be read. Names every finding."""


class _Text(NamedTuple):
    text: str
    area: Rect
    halo: bool
    order: int


class _Frame(NamedTuple):
    area: Rect
    filled: bool
    order: int


def number(value: float) -> str:
    """A coordinate as SVG text: at most two decimals, and no -0."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def linear(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    """A linear scale from values to coordinates."""
    return lambda value: start + (value - low) / (high - low) * (end - start)


def logarithmic(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    """A logarithmic scale from values to coordinates."""
    return lambda value: start + math.log(value / low) / math.log(high / low) * (end - start)


class Picture:
    """One picture. `title` and `description` are for screen readers; they are not drawn."""

    def __init__(self, title: str, description: str, height: float, width: float = WIDTH):
        self.title = title
        self.description = description
        self.area = Rect(0, 0, width, height)
        self._parts: list[str] = []
        self._texts: list[_Text] = []
        self._frames: list[_Frame] = []
        self._segments: list[tuple[Point, Point]] = []
        self._discs: list[Rect] = []
        self._fills: list[tuple[Rect, str]] = [(self.area, PANEL)]
        self._findings: list[str] = []

    # Shapes

    def raw(self, element: str) -> None:
        """Adds an SVG element that the checks do not see."""
        self._parts.append(element)

    def rect(
        self,
        x: float,
        y: float,
        w: float,
        h: float,
        fill: str = "none",
        stroke: str = "none",
        *,
        radius: float = 0,
        width: float = 1,
        dash: str = "",
        opacity: float = 1,
        loose: bool = False,
    ) -> Rect:
        """A rectangle. Text may not cross its edge, nor lie under its fill, unless it is `loose`."""
        area = Rect(x, y, w, h)
        attributes = f'x="{number(x)}" y="{number(y)}" width="{number(w)}" height="{number(h)}" fill="{fill}"'
        if stroke != "none":
            attributes += f' stroke="{stroke}" stroke-width="{number(width)}"'
        if radius:
            attributes += f' rx="{number(radius)}"'
        if dash:
            attributes += f' stroke-dasharray="{dash}"'
        if opacity != 1:
            attributes += f' fill-opacity="{number(opacity)}"'
        self._parts.append(f"<rect {attributes}/>")
        if not self.area.holds(area):
            self._findings.append(f"the rectangle {tuple(area)} leaves the panel")
        if not loose:
            self._frames.append(_Frame(area, fill != "none" and opacity == 1, len(self._parts)))
            if fill != "none" and opacity == 1:
                self._fills.append((area, fill))
        return area

    def circle(self, center: Sequence[float], radius: float, fill: str, stroke: str = "none", width: float = 1) -> None:
        """A disc. Text is inside of it or does not meet it."""
        self._discs.append(Rect(center[0] - radius, center[1] - radius, 2 * radius, 2 * radius))
        line = f' stroke="{stroke}" stroke-width="{number(width)}"' if stroke != "none" else ""
        self._parts.append(
            f'<circle cx="{number(center[0])}" cy="{number(center[1])}" r="{number(radius)}" fill="{fill}"{line}/>'
        )

    def polygon(
        self, points: Iterable[Sequence[float]], fill: str, stroke: str = "none", width: float = 1, opacity: float = 1
    ) -> None:
        line = f' stroke="{stroke}" stroke-width="{number(width)}" stroke-linejoin="round"' if stroke != "none" else ""
        clear = f' fill-opacity="{number(opacity)}"' if opacity != 1 else ""
        at = " ".join(f"{number(x)},{number(y)}" for x, y in points)
        self._parts.append(f'<polygon points="{at}" fill="{fill}"{clear}{line}/>')

    def line(
        self,
        *points: Sequence[float],
        color: str = LINE,
        width: float = 1.5,
        dash: str = "",
        bend: float = 6,
        loose: bool = False,
    ) -> None:
        """A line through these points with rounded bends. It may not cross text unless it is `loose`."""
        at = [Point(*point) for point in points]
        path = f"M{number(at[0].x)} {number(at[0].y)}"
        for before, here, after in zip(at, at[1:], at[2:]):
            radius = min(bend, math.dist(before, here) / 2, math.dist(here, after) / 2)
            enter, leave = towards(here, before, radius), towards(here, after, radius)
            path += (
                f"L{number(enter.x)} {number(enter.y)}Q{number(here.x)} {number(here.y)} "
                f"{number(leave.x)} {number(leave.y)}"
            )
        path += f"L{number(at[-1].x)} {number(at[-1].y)}"
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        self._parts.append(
            f'<path d="{path}" fill="none" stroke="{color}" stroke-width="{number(width)}"{dashes} '
            'stroke-linecap="round"/>'
        )
        if not loose:
            self._segments.extend(zip(at, at[1:]))

    def arrow(
        self,
        *points: Sequence[float],
        color: str = MUTED,
        width: float = 1.6,
        dash: str = "",
        bend: float = 6,
        both: bool = False,
        label: str = "",
        at: float = 0.5,
        offset: tuple[float, float] = (0, 0),
        size: float = 11,
        bold: bool = False,
        loose: bool = False,
        head: float = 7,
    ) -> None:
        """A line with a head at its end, or at both. A label sits on the middle of its longest part, or at `at`."""
        track = [Point(*point) for point in points]
        shaft = list(track)
        shaft[-1] = towards(track[-1], track[-2], head - 1)
        if both:
            shaft[0] = towards(track[0], track[1], head - 1)
        self.line(*shaft, color=color, width=width, dash=dash, bend=bend, loose=loose)
        self._head(track[-2], track[-1], color, head)
        if both:
            self._head(track[1], track[0], color, head)
        if label:
            start, end = max(zip(track, track[1:]), key=lambda part: math.dist(*part))
            self.label(
                start.x + at * (end.x - start.x) + offset[0],
                start.y + at * (end.y - start.y) + offset[1],
                label,
                size=size,
                color=color,
                bold=bold,
            )

    def _head(self, start: Point, end: Point, color: str, size: float) -> None:
        length = math.dist(start, end) or 1
        dx, dy = (end.x - start.x) / length, (end.y - start.y) / length
        base = Point(end.x - size * dx, end.y - size * dy)
        half = size * 0.55
        self.polygon([end, (base.x - half * dy, base.y + half * dx), (base.x + half * dy, base.y - half * dx)], color)

    def bracket(
        self,
        start: float,
        end: float,
        at: float,
        label: str = "",
        *,
        side: str = "top",
        depth: float = 7,
        color: str = MUTED,
        size: float = 11,
        bold: bool = False,
    ) -> None:
        """A square bracket from `start` to `end` along one side of something, with a label outside of it.

        `side` is "top" or "bottom" (`start`, `end` are x, `at` is y) or "left" or "right" (y, y and x)."""
        sign = -1 if side in ("top", "left") else 1
        middle, edge = (start + end) / 2, at + sign * depth
        if side in ("top", "bottom"):
            self.line((start, at), (start, edge), (end, edge), (end, at), color=color, width=1.2, bend=3)
            if label:
                below = edge + 4 + 0.76 * size if side == "bottom" else edge - 4 - 0.1 * size
                self.text(middle, below, label, size=size, color=color, anchor="middle", bold=bold)
        else:
            self.line((at, start), (edge, start), (edge, end), (at, end), color=color, width=1.2, bend=3)
            if label:
                lines = label.split("\n")
                top = middle - (len(lines) - 1) * 0.62 * size + 0.36 * size
                for index, text in enumerate(lines):
                    self.text(
                        edge + sign * 5,
                        top + index * 1.25 * size,
                        text,
                        size=size,
                        color=color,
                        bold=bold,
                        anchor="end" if side == "left" else "start",
                    )

    # Text

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = 12,
        color: str = INK,
        anchor: str = "start",
        bold: bool = False,
        italic: bool = False,
        mono: bool = False,
        rotate: int = 0,
        halo: bool = False,
        on: str = "",
    ) -> Rect:
        """One line of text with its baseline at `y`. `rotate` is 0 or -90, then it reads upwards from (x, y).

        A `halo` hides the lines below the text. `on` names the colour below it where the kit cannot know."""
        if size < SMALLEST_TEXT:
            self._findings.append(f"{text!r} has size {size}; the smallest is {SMALLEST_TEXT}")
        width = text_width(text, size, bold, mono)
        before = {"start": 0, "middle": width / 2, "end": width}[anchor]
        if rotate:
            area = Rect(x - 0.76 * size, y - width + before, 0.98 * size, width)
        else:
            area = Rect(x - before, y - 0.76 * size, width, 0.98 * size)
        fill = on
        if halo:
            fill = on or self._fill_at(area)
            self._parts.append(
                f'<rect x="{number(area.x - 3)}" y="{number(area.y - 1)}" '
                f'width="{number(area.w + 6)}" height="{number(area.h + 2)}" fill="{fill}"/>'
            )
        attributes = f'x="{number(x)}" y="{number(y)}" font-size="{number(size)}" fill="{color}"'
        if anchor != "start":
            attributes += f' text-anchor="{anchor}"'
        if bold:
            attributes += ' font-weight="bold"'
        if italic:
            attributes += ' font-style="italic"'
        if mono:
            attributes += f" font-family={quoteattr(MONO_FONTS)}"
        if rotate:
            attributes += f' transform="rotate({rotate} {number(x)} {number(y)})"'
        self._parts.append(f"<text {attributes}>{escape(text)}</text>")
        self._texts.append(_Text(text, area, halo, len(self._parts)))
        ratio = contrast(color, fill or self._fill_at(area))
        if ratio < 4.5:
            self._findings.append(f"{text!r} has a contrast of {ratio:.1f} to what is below it; it needs 4.5")
        return area

    def label(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = 11,
        color: str = MUTED,
        bold: bool = False,
        mono: bool = False,
    ) -> Rect:
        """A line of text whose middle is at (x, y) and which hides the lines below it."""
        return self.text(
            x, y + 0.36 * size, text, size=size, color=color, anchor="middle", bold=bold, mono=mono, halo=True
        )

    def note(
        self,
        x: float,
        y: float,
        width: float,
        text: str,
        *,
        size: float = 12,
        color: str = MUTED,
        anchor: str = "start",
        bold: bool = False,
        leading: float = 1.35,
    ) -> float:
        """Text broken into lines of at most `width`; the first baseline is at `y`. Returns the next baseline."""
        line = ""
        for word in text.split():
            longer = f"{line} {word}".strip()
            if line and text_width(longer, size, bold) > width:
                self.text(x, y, line, size=size, color=color, anchor=anchor, bold=bold)
                y += leading * size
                line = word
            else:
                line = longer
        if text_width(line, size, bold) > width:
            self._findings.append(f"{line!r} is wider than its note of {width}")
        self.text(x, y, line, size=size, color=color, anchor=anchor, bold=bold)
        return y + leading * size

    def box(
        self,
        x: float,
        y: float,
        w: float,
        h: float,
        hue: Hue = GREY,
        title: str = "",
        sub: str = "",
        *,
        size: float = 12.5,
        sub_size: float = 11,
        mono: bool = False,
        sub_mono: bool = False,
        radius: float = 5,
        valign: str = "middle",
        align: str = "middle",
        dash: str = "",
        strong: bool = False,
        bold: bool = True,
        fill: str = "",
        width: float = 1.3,
    ) -> Rect:
        """A rounded box with a title and smaller lines below it. Text that does not fit is an error.

        `strong` fills it with the hue's middle strength. `valign` is "top" or "middle", `align` "start" or "middle"."""
        fill = fill or (hue.mid if strong else hue.tint)
        area = self.rect(x, y, w, h, fill, hue.dark, radius=radius, width=width, dash=dash)
        color = ink_on(fill) if strong else hue.dark
        lines = [(text, size, bold, mono, color) for text in title.split("\n") if title]
        lines += [(text, sub_size, False, sub_mono, INK) for text in sub.split("\n") if sub]
        height = sum(1.28 * line[1] for line in lines)
        baseline = y + 4 if valign == "top" else y + (h - height) / 2
        for text, text_size, is_bold, is_mono, ink in lines:
            room = w - 6
            need = text_width(text, text_size, is_bold, is_mono)
            if need > room:
                self._findings.append(f"{text!r} is {need:.0f} wide, its box has room for {room:.0f}")
            baseline += 1.28 * text_size
            self.text(
                x + w / 2 if align == "middle" else x + 8,
                baseline - 0.3 * text_size,
                text,
                size=text_size,
                color=ink,
                anchor="middle" if align == "middle" else "start",
                bold=is_bold,
                mono=is_mono,
            )
        if height > h - 2:
            self._findings.append(f"the text of {title!r} is {height:.0f} high, its box {h:.0f}")
        return area

    def grid(
        self,
        x: float,
        y: float,
        columns: int,
        rows: int,
        w: float,
        h: float,
        cell: Callable[[int, int], tuple[str, str]],
        *,
        size: float = 11,
        stroke: str = WHITE,
        width: float = 1,
        bold: bool = False,
        mono: bool = False,
    ) -> Rect:
        """A grid of cells. `cell(column, row)` returns a cell's fill and its text, which may be empty."""
        for row in range(rows):
            for column in range(columns):
                fill, text = cell(column, row)
                area = self.rect(x + column * w, y + row * h, w, h, fill, stroke, width=width)
                if text:
                    self.text(
                        area.center.x,
                        area.center.y + 0.36 * size,
                        text,
                        size=size,
                        anchor="middle",
                        color=ink_on(fill),
                        bold=bold,
                        mono=mono,
                    )
        return Rect(x, y, columns * w, rows * h)

    def legend(
        self, x: float, y: float, entries: Iterable[tuple[str, str]], *, size: float = 11, gap: float = 18
    ) -> float:
        """Swatches with names in a row from `x`, their middle at `y`. Returns the x after the last."""
        for fill, text in entries:
            self.rect(x, y - 6, 12, 12, fill, LINE, radius=2, width=0.8)
            self.text(x + 17, y + 0.36 * size, text, size=size)
            x += 17 + text_width(text, size) + gap
        return x

    def _fill_at(self, area: Rect) -> str:
        return next(fill for frame, fill in reversed(self._fills) if frame.meets(area))

    # Result

    def findings(self) -> list[str]:
        """What keeps this picture's text from being read."""
        found = list(self._findings)
        margin = self.area.inset(6)
        for text in self._texts:
            if not margin.holds(text.area):
                found.append(f"{text.text!r} leaves the panel")
            for frame in self._frames:
                if text.area.meets(frame.area) and not frame.area.holds(text.area) and not text.halo:
                    found.append(f"{text.text!r} crosses the edge of a box at {tuple(map(round, frame.area))}")
                elif frame.filled and frame.order > text.order and text.area.meets(frame.area):
                    found.append(f"{text.text!r} is below a box at {tuple(map(round, frame.area))}")
            if any(text.area.meets(disc, 1.5) and not disc.holds(text.area) for disc in self._discs):
                found.append(f"{text.text!r} meets a circle")
            if not text.halo:
                core = Rect(text.area.x, text.area.y + 2, text.area.w, text.area.h - 4)
                if any(crosses(start, end, core) for start, end in self._segments):
                    found.append(f"{text.text!r} is crossed by a line")
        for index, text in enumerate(self._texts):
            for other in self._texts[:index]:
                if text.area.meets(other.area, 1.5):
                    found.append(f"{text.text!r} overlaps {other.text!r}")
        return found

    def svg(self) -> str:
        """The picture as SVG text. Throws LayoutError if it cannot be read."""
        found = self.findings()
        if found:
            raise LayoutError("\n".join(found))
        width, height = number(self.area.w), number(self.area.h)
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img" aria-labelledby="title description">\n'
            f'<title id="title">{escape(self.title)}</title>\n'
            f'<desc id="description">{escape(self.description)}</desc>\n'
            f'<rect x="0.5" y="0.5" width="{number(self.area.w - 1)}" height="{number(self.area.h - 1)}" rx="10" '
            f'fill="{PANEL}" stroke="{FAINT}"/>\n<g font-family={quoteattr(FONTS)}>\n'
        )
        return head + "\n".join(self._parts) + "\n</g>\n</svg>\n"


_drawings: dict[str, Callable[[], Picture]] = {}


def drawing(function: Callable[[], Picture]) -> Callable[[], Picture]:
    """Registers a function without parameters that draws one picture; its name, with dashes, is the file's."""
    name = function.__name__.replace("_", "-")
    if name in _drawings:
        raise ValueError(f"two functions draw {name}.svg")
    _drawings[name] = function
    return function


def drawings() -> dict[str, Callable[[], Picture]]:
    """All registered drawings by name."""
    return dict(sorted(_drawings.items()))
