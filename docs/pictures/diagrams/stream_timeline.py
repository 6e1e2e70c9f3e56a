"""A buffer that another stream uses: what `wait` and `used_on` order."""

from svg import BLUE, GREEN, GREY, MUTED, ORANGE, RED, Picture, drawing


@drawing
def stream_timeline() -> Picture:
    p = Picture(
        "A timeline of wait and used_on",
        "The home stream allocates and fills a buffer. Another stream waits for it, then multiplies. used_on makes "
        "the home stream's free wait for the product. Without used_on the memory is freed and reused while the "
        "product still reads it.",
        height=430,
    )
    left = 104

    def lanes(top: float, names: tuple[str, ...]) -> list[float]:
        middles = []
        for index, name in enumerate(names):
            y = top + index * 58
            p.text(24, y + 20, name, size=12.5, bold=True)
            p.rect(left, y, 572, 32, GREY.tint, "none", radius=4)
            middles.append(y)
        return middles

    def work(y: float, start: float, end: float, hue, text: str) -> None:
        p.box(left + start, y, end - start, 32, hue, text, size=12, strong=True, bold=False, radius=4)

    p.text(24, 32, "With wait and used_on", size=14, bold=True, color=GREEN.dark)
    host, home, other = lanes(50, ("host", "home", "other"))
    calls = (
        (4, "allocate"),
        (84, "fill"),
        (130, "wait"),
        (180, "Gemm::launch"),
        (290, "used_on"),
        (364, "~DeviceBuffer"),
    )
    for x, text in calls:
        p.text(left + x, host + 21, text, size=11.5)
    work(home, 30, 110, BLUE, "allocate")
    work(home, 114, 224, BLUE, "fill")
    work(home, 474, 544, BLUE, "free")
    work(other, 250, 450, ORANGE, "product reads the buffer")
    p.arrow(
        (left + 224, home + 16),
        (left + 238, home + 16),
        (left + 238, other + 16),
        (left + 250, other + 16),
        color=GREEN.dark,
        width=2.2,
    )
    p.label(left + 172, (home + other) / 2 + 17, "other.wait(home)", size=11.5, color=GREEN.dark, bold=True)
    p.arrow(
        (left + 450, other + 16),
        (left + 462, other + 16),
        (left + 462, home + 16),
        (left + 474, home + 16),
        color=GREEN.dark,
        width=2.2,
    )
    p.label(left + 406, (home + other) / 2 + 17, "used_on(other)", size=11.5, color=GREEN.dark, bold=True)
    p.text(24, 234, "No call blocks the host.", size=12, color=MUTED)

    p.text(24, 280, "Without used_on", size=14, bold=True, color=RED.dark)
    home, other = lanes(298, ("home", "other"))
    work(home, 30, 110, BLUE, "allocate")
    work(home, 114, 224, BLUE, "fill")
    work(home, 228, 288, BLUE, "free")
    work(home, 300, 544, RED, "another buffer gets the memory")
    work(other, 250, 450, ORANGE, "product reads the buffer")
    p.arrow((left + 214, home + 32), (left + 214, other + 16), (left + 250, other + 16), color=GREEN.dark, width=2.2)
    for x in (301, 449):
        p.line((left + x, home + 32), (left + x, other), color=RED.dark, width=2, dash="4 3")
    p.text(left + 375, other - 9, "one memory, two uses", size=11, color=RED.dark, bold=True, anchor="middle")
    p.text(
        left,
        other + 56,
        "The product may read what the other buffer's owner writes: wrong numbers.",
        size=12,
        color=RED.dark,
    )
    p.arrow((610, 28), (676, 28), label="time")
    return p
