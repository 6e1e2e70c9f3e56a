"""All-gather and product on two GPUs: one after the other, and in chunks."""

from svg import BLUE, GREEN, GREY, MUTED, ORANGE, Picture, drawing


@drawing
def tensor_parallel() -> Picture:
    p = Picture(
        "Communication under the product",
        "One after the other, the product waits until all rows of A have arrived. In chunks, a GPU multiplies its own "
        "rows while the first rows of the other GPU arrive, and each chunk while the next one arrives. For a sum over "
        "GPUs, it multiplies the other GPU's rows first, and adds what arrives to its own.",
        height=470,
    )
    left, width = 150, 526

    def lane(y: float, name: str) -> None:
        p.text(24, y + 20, name, size=12.5, bold=True)
        p.rect(left, y, width, 32, GREY.tint, "none", radius=4)

    def work(y: float, start: float, end: float, hue, text: str) -> None:
        p.box(left + start, y, end - start - 2, 32, hue, text, size=11.5, strong=True, bold=False, radius=4)

    def after(start: float, upper: float, lower: float) -> None:
        p.arrow((left + start, upper + 32), (left + start, lower), color=MUTED, width=1.4)

    p.text(24, 32, "All-gather of A, one after the other", size=14, bold=True)
    lane(48, "communication")
    lane(96, "product")
    work(48, 0, 180, ORANGE, "the other GPU's rows of A")
    work(96, 180, 520, BLUE, "all rows of A, times B")
    after(180, 48, 96)

    p.text(24, 172, "All-gather of A, in three chunks", size=14, bold=True, color=GREEN.dark)
    lane(188, "communication")
    lane(236, "product")
    for i in range(3):
        work(188, 62 * i, 62 * (i + 1), ORANGE, f"chunk {i}")
    work(236, 0, 170, BLUE, "the own rows")
    for i in range(3):
        work(236, 170 + 58 * i, 170 + 58 * (i + 1), BLUE, f"chunk {i}")

    p.text(24, 312, "Reduce-scatter of D, in three chunks", size=14, bold=True, color=GREEN.dark)
    lane(328, "product")
    lane(376, "communication")
    for i in range(3):
        work(328, 58 * i, 58 * (i + 1), BLUE, f"chunk {i}")
        work(376, 58 * (i + 1), 58 * (i + 1) + 56, ORANGE, f"sum {i}")
        work(328, 176 + 62 * i, 176 + 62 * (i + 1), BLUE, f"own {i}")
    p.text(left, 436, "First the rows that belong to the other GPU. Its sums come meanwhile,", size=12, color=MUTED)
    p.text(left, 454, "and the product of the own rows adds them as its C.", size=12, color=MUTED)
    p.arrow((610, 28), (676, 28), label="time")
    return p
