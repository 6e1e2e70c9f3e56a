"""A TMA load of a box at the edge of a matrix."""

from svg import BLUE, GREEN, GREY, INK, MUTED, ORANGE, WHITE, Picture, drawing


@drawing
def tma_box() -> Picture:
    p = Picture(
        "TMA loads a box of a matrix",
        "One thread issues a load with a tensor map and the coordinates of a box. TMA copies the box to shared memory, "
        "swizzled. What is outside of the matrix arrives as zeros. The barrier counts all bytes of the box.",
        height=366,
    )
    x, y, cell = 30, 84, 19
    rows, columns, box_rows, box_columns = 9, 12, 4, 6
    row, column = 6, 3
    p.text(24, 32, "Global memory: a matrix", size=13.5, bold=True)
    p.text(24, 52, "element, extents, strides: in the tensor map", size=12, color=MUTED)
    for r in range(row + box_rows):
        for c in range(columns):
            in_box = row <= r and column <= c < column + box_columns
            inside = r < rows
            if inside or in_box:
                fill = (BLUE.mid if in_box else BLUE.tint) if inside else WHITE
                p.rect(
                    x + c * cell,
                    y + r * cell,
                    cell,
                    cell,
                    fill,
                    BLUE.dark if inside else GREY.mid,
                    width=0.8,
                    dash="" if inside else "2 2",
                    loose=True,
                )
    p.rect(x, y, columns * cell, rows * cell, "none", INK, width=2)
    p.rect(x + column * cell, y + row * cell, box_columns * cell, box_rows * cell, "none", ORANGE.dark, width=2.6)
    p.text(x, y - 8, "(0, 0)", size=11, color=MUTED)
    p.text(
        x + column * cell,
        y + (row + box_rows) * cell + 18,
        "box of 4 × 6 at row 6, column 3",
        size=12,
        color=ORANGE.dark,
    )

    sx, sy, big = 428, 108, 30
    p.text(412, 32, "Shared memory: a stage", size=13.5, bold=True)
    p.text(412, 52, "the whole box, swizzled", size=12, color=MUTED)
    for r in range(box_rows):
        for c in range(box_columns):
            zero = row + r >= rows
            area = p.rect(
                sx + c * big,
                sy + r * big,
                big,
                big,
                WHITE if zero else BLUE.mid,
                GREY.mid if zero else BLUE.dark,
                width=0.8,
            )
            if zero:
                p.text(area.center.x, area.center.y + 4.5, "0", size=12, anchor="middle", color=MUTED)
    p.rect(sx, sy, box_columns * big, box_rows * big, "none", ORANGE.dark, width=2.6)
    p.text(sx, sy + box_rows * big + 20, "outside of the matrix: zeros", size=12)
    p.arrow((x + (column + box_columns) * cell + 8, 215), (sx - 10, 215), color=ORANGE.dark, width=3, head=10)
    p.text(346, 202, "TMA load", size=12, bold=True, color=ORANGE.dark, anchor="middle")
    p.box(412, 276, 264, 52, GREEN, "full barrier", "expects the bytes of the box, zeros included")
    p.text(
        24, 350, "A TMA store goes the other way, and writes only what is inside of the matrix.", size=12, color=MUTED
    )
    return p
