"""What each configuration of the Blackwell ladder was counted to do on the emulated B200."""

from svg import BLUE, FAINT, GREEN, INK, MUTED, ORANGE, PURPLE, RED, Picture, drawing, linear

from charts.stored import Stored

MEBIBYTE = 1 << 20
TOP, PITCH, BAR = 74, 24, 15
FIRST, PANEL, GAP = 134, 96, 17

PANELS = (
    ("MiB read\nby TMA", BLUE, lambda row: int(row["tma_read_bytes"]) / MEBIBYTE, "{:.0f}"),
    ("MMA instructions,\nthousands", ORANGE, lambda row: int(row["mmas"]) / 1e3, "{:.0f}"),
    ("barrier waits,\nthousands", GREEN, lambda row: int(row["barrier_waits"]) / 1e3, "{:.0f}"),
    ("warp instructions,\nmillions", PURPLE, lambda row: int(row["warp_instructions"]) / 1e6, "{:.1f}"),
    ("loads under\nMMAs, % of steps", RED, lambda row: 100 * float(row["loads_and_mmas"]), "{:.0f}"),
)


@drawing
def ladder_counts() -> Picture:
    stored = Stored("emulated-b200/ladder.csv")
    rows = stored.rows
    problem = "x".join(rows[0][extent] for extent in "mnk")
    p = Picture(
        "Counts of the Blackwell ladder",
        f"Bars for ten configurations and a product of {problem}: bytes, instructions and waits fall from top to bottom.",
        height=TOP + PITCH * len(rows) + 40,
    )
    p.text(16, 26, f"The ladder in counts: {problem}, bf16 to f32, emulated B200", size=13, bold=True)
    bottom = TOP + PITCH * len(rows)
    for index, (title, hue, value, form) in enumerate(PANELS):
        left = FIRST + index * (PANEL + GAP)
        draw_panel(p, left, title, hue.mid, [value(row) for row in rows], form, bottom)
    for index, row in enumerate(rows):
        p.text(FIRST - 10, TOP + PITCH * index + 12, row["name"], size=11.5, anchor="end")
    p.text(16, bottom + 24, "Counts, not times. A count is equal on a real B200 only as far as the emulated device is right.",
           size=11, color=MUTED)
    return p


def draw_panel(p: Picture, left: float, title: str, fill: str, values: list[float], form: str, bottom: float) -> None:
    for line, text in enumerate(title.split("\n")):
        p.text(left, 48 + 14 * line, text, size=11, color=MUTED)
    scale = linear(0, max(values), 0, PANEL - 26)
    p.line((left, TOP - 4), (left, bottom), color=FAINT, width=1, loose=True)
    for index, value in enumerate(values):
        y = TOP + PITCH * index
        length = scale(value)
        if length > 0:
            p.rect(left, y, length, BAR, fill)
        p.text(left + length + 4, y + 12, form.format(value), size=11, color=INK)


