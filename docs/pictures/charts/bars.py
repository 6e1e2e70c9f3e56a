"""What the charts share: horizontal bars, and bars of speed ratios around 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from svg import BLUE, FAINT, INK, LINE, MUTED, ORANGE, Picture, linear

FASTER, SLOWER = BLUE, ORANGE
BAR = 14


class Ratio(NamedTuple):
    """A speed ratio, and the range of the single rounds' ratios."""

    value: float
    low: float
    high: float


def percentile(values: Sequence[float], part: float) -> float:
    """Linear between the closest ranks, as bench/method/statistics.cpp."""
    ordered = sorted(values)
    place = part * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def axis(p: Picture, scale: Callable[[float], float], ticks: Sequence[float], top: float, bottom: float, form: str,
         marked: float | None = None) -> None:
    """Vertical lines at these values with their numbers above; the marked one is strong."""
    for tick in ticks:
        strong = tick == marked
        p.line((scale(tick), top), (scale(tick), bottom), color=LINE if strong else FAINT, width=1.4 if strong else 1,
               loose=True)
        p.text(scale(tick), top - 5, form.format(tick), size=11, color=INK if strong else MUTED, anchor="middle",
               bold=strong)


def whisker(p: Picture, low: float, high: float, y: float) -> None:
    """A thin line over a range, with an end at each side."""
    p.line((low, y), (high, y), color=INK, width=1.2, loose=True)
    for edge in (low, high):
        p.line((edge, y - 3), (edge, y + 3), color=INK, width=1.2, loose=True)


def ratio_bar(p: Picture, scale: Callable[[float], float], y: float, ratio: Ratio) -> None:
    """A bar from 1 to the ratio, with a line over the range of its rounds, and the ratio at its end."""
    one, end = scale(1), scale(ratio.value)
    hue = FASTER if ratio.value >= 1 else SLOWER
    p.rect(min(one, end), y, max(abs(end - one), 0.6), BAR, hue.mid, loose=True)
    if ratio.low < ratio.high:
        whisker(p, scale(ratio.low), scale(ratio.high), y + BAR / 2)
    if ratio.value >= 1:
        p.text(max(end, scale(ratio.high)) + 5, y + 11, f"{ratio.value:.2f}", size=11)
    else:
        p.text(min(end, scale(ratio.low)) - 5, y + 11, f"{ratio.value:.2f}", size=11, anchor="end", color=hue.dark,
               bold=True)


def bars(p: Picture, left: float, top: float, width: float, pitch: float,
         rows: Sequence[tuple[str, float, str, str]], highest: float) -> None:
    """Horizontal bars from 0 of (name, value, text, fill); names are to the left of `left`."""
    scale = linear(0, highest, 0, width)
    p.line((left, top - 4), (left, top + pitch * len(rows) - (pitch - BAR) + 4), color=LINE, width=1.2, loose=True)
    for index, (name, value, text, fill) in enumerate(rows):
        y = top + pitch * index
        if name:
            p.text(left - 8, y + 11, name, size=11.5, anchor="end")
        p.rect(left, y, max(scale(value), 0.8), BAR, fill, loose=True)
        p.text(left + scale(value) + 5, y + 11, text, size=11)
