"""The 128-byte swizzle: where a 16-byte chunk of a row is in shared memory, and why."""

from svg import GREEN, INK, MUTED, RED, Picture, drawing

CHUNKS = ("#cfe3f5", "#f9d9a6", "#bfe6d6", "#e3cdec", "#f6c6b0", "#f1e99a", "#d5dae0", "#a9cdea")


@drawing
def swizzle_128b() -> Picture:
    p = Picture(
        "The 128-byte swizzle of shared memory",
        "Eight rows of eight chunks of 16 bytes, as the matrix has them and as they are in shared memory. In "
        "memory, chunk c of row r is at place c xor r, so the eight chunks of one column are in eight different "
        "groups of banks.",
        height=452,
    )
    cell, left, right, y = 34, 66, 402, 104
    read = 2
    p.text(left, 34, "Logical: row, chunk of 16 bytes", size=13.5, bold=True)
    p.text(right, 34, "In shared memory", size=13.5, bold=True)
    p.text(right, 54, "place = chunk xor (row mod 8)", size=12, mono=True, color=MUTED)
    p.text(left, 54, "a box row is 128 bytes = 8 chunks", size=12, color=MUTED)

    def name(x: float, title: str, bank: bool) -> None:
        for index in range(8):
            p.text(
                x + index * cell + cell / 2,
                y - 8,
                f"{4 * index}–" if bank else str(index),
                size=11,
                anchor="middle",
                color=MUTED,
            )
        for row in range(8):
            p.text(x - 8, y + row * cell + cell / 2 + 4, str(row), size=11, anchor="end", color=MUTED)
        p.text(x - 8, y - 8, title, size=11, anchor="end", color=MUTED)

    name(left, "row", False)
    name(right, "row", False)
    p.text(left + 4 * cell, y - 26, "chunk", size=11, anchor="middle", color=MUTED)
    p.text(right + 4 * cell, y - 26, "place", size=11, anchor="middle", color=MUTED)
    p.grid(left, y, 8, 8, cell, cell, lambda c, r: (CHUNKS[c], str(c)), size=12)
    p.grid(right, y, 8, 8, cell, cell, lambda place, r: (CHUNKS[place ^ r], str(place ^ r)), size=12)
    for row in range(8):
        for x, place in ((left, read), (right, read ^ row)):
            p.rect(x + place * cell + 1.5, y + row * cell + 1.5, cell - 3, cell - 3, "none", INK, width=2.4)
    bottom = y + 8 * cell
    p.bracket(left + read * cell, left + (read + 1) * cell, bottom + 4, side="bottom", color=RED.dark)
    p.text(left, bottom + 28, "Unswizzled, chunk 2 of eight rows", size=12, color=RED.dark, bold=True)
    p.text(left, bottom + 44, "is in the same four banks: 8 accesses,", size=12, color=MUTED)
    p.text(left, bottom + 60, "one after the other.", size=12, color=MUTED)
    p.bracket(right, right + 8 * cell, bottom + 4, side="bottom", color=GREEN.dark)
    p.text(right, bottom + 28, "Swizzled, the eight are in eight", size=12, color=GREEN.dark, bold=True)
    p.text(right, bottom + 44, "places: all 32 banks at once.", size=12, color=MUTED)
    p.text(right, bottom + 60, "A place is four banks of 4 bytes.", size=12, color=MUTED)
    return p
