"""Chapter 1 of the course: a tile of D and what it needs."""

from svg import BLUE, GREEN, MUTED, ORANGE, Picture, drawing


@drawing
def course_tiles() -> Picture:
    p = Picture(
        "A tile of D, and the bands of A and B that it needs",
        "Three squares of 256 by 256. A tile of 64 by 64 of D needs a band of 64 rows of A and a band of 64 rows of B. Both bands are "
        "cut into steps of 16 along K; shared memory holds one step of each.",
        height=240,
    )
    for x, name in ((40, "A (M, K)"), (265, "B (N, K)"), (490, "D (M, N)")):
        p.rect(x, 50, 160, 160, "#ffffff", "#7d8b99", loose=True)
        p.text(x, 36, name, bold=True)
    p.rect(40, 90, 160, 40, BLUE.tint, BLUE.dark, loose=True)
    p.rect(265, 130, 160, 40, GREEN.tint, GREEN.dark, loose=True)
    p.rect(490 + 80, 90, 40, 40, ORANGE.mid, ORANGE.dark, loose=True)
    for x, y, hue in ((40, 90, BLUE), (265, 130, GREEN)):
        p.rect(x + 18, y, 10, 40, hue.mid, hue.dark, loose=True)
    p.text(130, 115, "64 rows of A", anchor="middle", size=11)
    p.text(355, 155, "64 rows of B", anchor="middle", size=11)
    p.text(590, 148, "64 x 64", anchor="middle", size=11)
    p.text(40, 230, "dark: one step, 16 elements along K, in shared memory", size=11, color=MUTED)
    return p
