"""What a matrix view is: an address, extents and a leading dimension over memory that something else owns."""

from svg import BLUE, GREY, INK, MUTED, ORANGE, Picture, drawing


@drawing
def matrix_view() -> Picture:
    p = Picture(
        "Row-major and column-major views of the same memory",
        "A buffer of 20 elements seen as a matrix of 3 rows and 4 columns with leading dimension 5. Row-major, "
        "each row has four elements and one gap. Column-major with leading dimension 5, each column has three "
        "elements and two gaps. Below, the elements in the order of memory.",
        height=402,
    )
    rows, columns = 3, 4
    cell = 34

    def picture(left: float, title: str, code: str, order: str, row_major: bool) -> None:
        hue = BLUE if row_major else ORANGE
        p.text(left, 30, title, size=14, bold=True, color=hue.dark)
        p.text(left, 49, code, size=11, mono=True)
        x, y = left + 64, 88
        p.grid(
            x,
            y,
            columns,
            rows,
            cell,
            cell,
            lambda c, r: ((hue.mid if (r if row_major else c) % 2 == 0 else hue.tint), f"{r},{c}"),
            stroke=hue.dark,
        )
        p.bracket(x, x + columns * cell, y - 4, "4 columns", side="top")
        p.bracket(y, y + rows * cell, x - 4, "3 rows", side="left")
        p.text(left, 232, order, size=12, color=MUTED)
        memory_y, width = 252, 15.6
        for index in range(20):
            line, place = divmod(index, 5)
            inside = line < (rows if row_major else columns) and place < (columns if row_major else rows)
            fill = GREY.tint if not inside else (hue.mid if line % 2 == 0 else hue.tint)
            p.rect(left + index * width, memory_y, width, 30, fill, hue.dark if inside else GREY.mid)
        p.bracket(left, left + 5 * width, memory_y + 34, side="bottom", color=INK)
        p.text(left, 308, "leading dimension 5", size=11)
        p.text(
            left,
            330,
            "address + row × 5 + column" if row_major else "address + row + column × 5",
            size=12,
            mono=True,
            color=hue.dark,
        )

    picture(24, "Row-major", "buffer.matrix(3, 4, 5)", "In memory, row after row:", True)
    picture(364, "Column-major", "buffer.matrix(3, 4, 5, ColumnMajor{})", "In memory, column after column:", False)
    p.legend(24, 360, [(BLUE.mid, "row 0, 2"), (BLUE.tint, "row 1"), (GREY.tint, "gap: not in the matrix")])
    p.legend(364, 360, [(ORANGE.mid, "column 0, 2"), (ORANGE.tint, "column 1, 3")])
    p.text(24, 388, "transposed() swaps the extents and the order. No element moves.", size=12, color=MUTED)
    return p
