"""Points and rectangles."""

import math
from typing import NamedTuple


class Point(NamedTuple):
    x: float
    y: float


class Rect(NamedTuple):
    x: float
    y: float
    w: float
    h: float

    @property
    def left(self) -> Point:
        return Point(self.x, self.y + self.h / 2)

    @property
    def right(self) -> Point:
        return Point(self.x + self.w, self.y + self.h / 2)

    @property
    def top(self) -> Point:
        return Point(self.x + self.w / 2, self.y)

    @property
    def bottom(self) -> Point:
        return Point(self.x + self.w / 2, self.y + self.h)

    @property
    def center(self) -> Point:
        return Point(self.x + self.w / 2, self.y + self.h / 2)

    @property
    def x2(self) -> float:
        return self.x + self.w

    @property
    def y2(self) -> float:
        return self.y + self.h

    def at(self, along: float, down: float) -> Point:
        """The point at these fractions of the width and the height."""
        return Point(self.x + along * self.w, self.y + down * self.h)

    def inset(self, by: float) -> "Rect":
        return Rect(self.x + by, self.y + by, self.w - 2 * by, self.h - 2 * by)

    def meets(self, other: "Rect", slack: float = 0.5) -> bool:
        return (
            self.x < other.x2 - slack
            and other.x < self.x2 - slack
            and self.y < other.y2 - slack
            and other.y < self.y2 - slack
        )

    def holds(self, other: "Rect", slack: float = 0.5) -> bool:
        return (
            other.x >= self.x - slack
            and other.x2 <= self.x2 + slack
            and other.y >= self.y - slack
            and other.y2 <= self.y2 + slack
        )


def towards(start: Point, end: Point, by: float) -> Point:
    length = math.dist(start, end) or 1
    return Point(start.x + (end.x - start.x) * by / length, start.y + (end.y - start.y) * by / length)


def crosses(start: Point, end: Point, area: Rect) -> bool:
    """Returns true if the segment meets the rectangle (Liang and Barsky's clipping)."""
    low, high = 0.0, 1.0
    for position, step, first, last in (
        (start.x, end.x - start.x, area.x, area.x2),
        (start.y, end.y - start.y, area.y, area.y2),
    ):
        if step == 0:
            if not first < position < last:
                return False
            continue
        enter, leave = sorted(((first - position) / step, (last - position) / step))
        low, high = max(low, enter), min(high, leave)
    return low < high
