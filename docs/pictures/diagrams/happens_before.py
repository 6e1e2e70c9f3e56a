"""How a race is found in any order: vector clocks of two warps, in the example planted_race."""

from svg import BLUE, GREEN, GREY, MUTED, RED, Picture, drawing


@drawing
def happens_before() -> Picture:
    p = Picture(
        "A race is found by what each warp knows of the other",
        "Two warps write and read shared memory. At a barrier each learns the other's clock. Without a second "
        "barrier warp 0 writes while it knows warp 3 up to time 1, and warp 3 read at time 2: a race. With the second "
        "barrier warp 0 knows time 2: in order.",
        height=424,
    )
    left = 104

    def lanes(top: float) -> tuple[float, float]:
        for index, name in enumerate(("warp 0", "warp 3")):
            y = top + index * 62
            p.text(24, y + 22, name, size=12.5, bold=True)
            p.rect(left, y, 572, 34, GREY.tint, radius=4)
        return top, top + 62

    def work(y: float, start: float, width: float, hue, text: str):
        return p.box(left + start, y, width, 34, hue, text, size=12, strong=True, bold=False, radius=4)

    def barrier(first: float, second: float, x: float) -> None:
        p.rect(left + x, first - 4, 12, second - first + 42, GREY.dark, radius=3)

    p.text(24, 32, "A barrier is forgotten", size=14, bold=True, color=RED.dark)
    a, b = lanes(48)
    work(a, 8, 96, BLUE, "write piece")
    work(b, 8, 96, BLUE, "write piece")
    barrier(a, b, 118)
    work(a, 144, 96, GREEN, "read all")
    work(b, 144, 250, GREEN, "read all, at time 2")
    work(a, 250, 160, RED, "write next piece")
    p.text(left + 250, a + 51, "knows warp 3 up to time 1", size=11, color=RED.dark)
    p.text(left + 420, a + 22, "2 is after 1: a race", size=11.5, bold=True, color=RED.dark)
    p.text(
        24,
        182,
        "A clock ticks when its warp passes a barrier. There, each warp learns the other's time: 1.",
        size=12,
        color=MUTED,
    )

    p.text(24, 228, "With the second barrier", size=14, bold=True, color=GREEN.dark)
    a, b = lanes(244)
    work(a, 8, 96, BLUE, "write piece")
    work(b, 8, 96, BLUE, "write piece")
    barrier(a, b, 118)
    work(a, 144, 96, GREEN, "read all")
    work(b, 144, 190, GREEN, "read all, at time 2")
    barrier(a, b, 348)
    work(a, 374, 140, BLUE, "write next piece")
    p.text(left + 374, a + 51, "knows warp 3 up to time 2: in order", size=11, color=GREEN.dark)
    p.note(
        24,
        384,
        652,
        "The comparison does not depend on which warp happened to run first. So the race is reported also in a "
        "run in which all numbers came out right.",
        size=12,
    )
    return p
