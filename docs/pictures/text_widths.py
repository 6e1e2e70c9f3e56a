"""Advance widths, in thousandths of the font size, of the widest font in the pictures' font list.

A reader's browser takes the first font of the list that it has. The others are narrower than this one, so a text that
fits by these widths fits everywhere.
"""

CHARACTERS = "".join(map(chr, range(32, 127))) + "×·±→←↑↓↔≥≤…–−²³αβΔµ½✓✗∞"

REGULAR = (
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, 636, 636, 636, 636, 636,
    636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632, 575, 775, 752, 295,
    295, 656, 557, 863, 748, 787, 603, 787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838,
    500, 500, 613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612, 635, 635, 411, 521,
    392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838, 838, 318, 838, 838, 838, 838, 838, 838, 838, 838,
    1000, 500, 838, 401, 401, 659, 638, 684, 636, 969, 838, 838, 833,
)

BOLD = (
    348, 456, 521, 838, 696, 1002, 872, 306, 457, 457, 523, 838, 380, 415, 380, 365, 696, 696, 696, 696, 696,
    696, 696, 696, 696, 696, 400, 400, 838, 838, 838, 580, 1000, 774, 762, 734, 830, 683, 683, 821, 837, 372,
    372, 775, 637, 995, 837, 850, 733, 850, 770, 720, 682, 812, 774, 1103, 771, 724, 725, 457, 365, 457, 838,
    500, 500, 675, 716, 593, 716, 678, 435, 716, 712, 343, 343, 665, 343, 1042, 712, 687, 716, 716, 493, 595,
    478, 712, 652, 924, 645, 652, 582, 712, 365, 712, 838, 838, 380, 838, 838, 838, 838, 838, 838, 838, 838,
    1000, 500, 838, 438, 438, 687, 716, 774, 736, 1035, 838, 838, 833,
)

MONOSPACED = 602  # every character


def text_width(text: str, size: float, bold: bool = False, mono: bool = False) -> float:
    """Returns the width of a line of text. A character that is not in the table is an error."""
    if mono:
        return len(text) * MONOSPACED * size / 1000
    table = BOLD if bold else REGULAR
    try:
        return sum(table[CHARACTERS.index(character)] for character in text) * size / 1000
    except ValueError:
        unknown = sorted(set(text) - set(CHARACTERS))
        raise ValueError(f"no width is known for {unknown} in {text!r}; add them to text_widths.py") from None
