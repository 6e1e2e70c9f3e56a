"""The colours of the pictures, and which go together."""

from typing import NamedTuple

INK = "#17212b"
MUTED = "#4a5865"
LINE = "#7d8b99"
FAINT = "#d3dbe3"
PANEL = "#fbfcfd"
WHITE = "#ffffff"


class Hue(NamedTuple):
    """One colour in three strengths: `tint` fills boxes, `mid` fills marks and bars, `dark` draws lines and text."""

    tint: str
    mid: str
    dark: str


# Told apart with every common kind of colour blindness; blue against orange is the strongest pair.
BLUE = Hue("#dbeaf7", "#4a97d2", "#0b5394")
ORANGE = Hue("#fdebcf", "#eda63a", "#8a5200")
GREEN = Hue("#d6f0e6", "#2fa884", "#05664b")
PURPLE = Hue("#efe2f4", "#d3abe6", "#6c3483")
RED = Hue("#fbe0d5", "#e0703c", "#a63603")
YELLOW = Hue("#fbf6c9", "#ddcb3b", "#6b6000")
GREY = Hue("#e9edf1", "#a9b4bf", "#42505d")
HUES = (BLUE, ORANGE, GREEN, PURPLE, RED, YELLOW, GREY)


def _luminance(color: str) -> float:
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first: str, second: str) -> float:
    """The contrast ratio of WCAG, 1 to 21."""
    low, high = sorted((_luminance(first), _luminance(second)))
    return (high + 0.05) / (low + 0.05)


def ink_on(fill: str) -> str:
    """Ink or white, whichever reads better on this colour."""
    return INK if contrast(INK, fill) >= contrast(WHITE, fill) else WHITE
