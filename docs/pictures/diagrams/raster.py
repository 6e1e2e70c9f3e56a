"""The order in which work tiles are taken, and what sixteen clusters that run at one time have to read."""

from svg import BLUE, GREEN, GREY, INK, MUTED, ORANGE, Picture, drawing

ROWS, COLUMNS, RUNNING, GROUP = 8, 16, 16, 4


def by_rows(index: int) -> tuple[int, int]:
    return divmod(index, COLUMNS)


def by_groups(index: int) -> tuple[int, int]:
    group, rest = divmod(index, GROUP * COLUMNS)
    return group * GROUP + rest % GROUP, rest // GROUP


@drawing
def raster() -> Picture:
    p = Picture(
        "Raster groups keep what L2 holds small",
        "D in 8 by 16 work tiles; 16 run at one time. Taken row by row, the 16 need one row panel of A and "
        "16 column panels of B. Taken column by column in raster groups of four tile rows, they need four row "
        "panels of A and four column panels of B.",
        height=362,
    )
    cell = 17

    def picture(x: float, title: str, place, count: str) -> None:
        y = 118
        running = {place(index) for index in range(RUNNING)}
        rows = {row for row, _ in running}
        columns = {column for _, column in running}
        p.text(x, 34, title, size=13.5, bold=True)
        p.text(x + 24 + COLUMNS * cell / 2, 62, "column panels of B", size=11, anchor="middle", color=MUTED)
        for column in range(COLUMNS):
            hot = column in columns
            p.rect(
                x + 24 + column * cell, 70, cell, 34, GREEN.mid if hot else GREY.tint, GREEN.dark if hot else GREY.mid
            )
        for row in range(ROWS):
            hot = row in rows
            p.rect(x - 2, y + row * cell, 20, cell, ORANGE.mid if hot else GREY.tint, ORANGE.dark if hot else GREY.mid)
        p.grid(
            x + 24,
            y,
            COLUMNS,
            ROWS,
            cell,
            cell,
            lambda c, r: (BLUE.mid if (r, c) in running else BLUE.tint, ""),
            stroke="#ffffff",
        )
        at = [(x + 24 + (c + 0.5) * cell, y + (r + 0.5) * cell) for r, c in (place(i) for i in range(GROUP * COLUMNS))]
        points = at if place is by_groups else at[: RUNNING * 3]
        p.line(*points, color=INK, width=1.1, bend=2)
        p.circle(points[0], 3, INK)
        last, before = points[-1], points[-2]
        p.arrow(before, last, color=INK, width=1.1, head=6)
        p.text(x - 2, y + ROWS * cell + 20, "A", size=12, bold=True, color=ORANGE.dark)
        p.text(x + 24, y + ROWS * cell + 20, count, size=12.5)

    picture(28, "Row by row", by_rows, "16 tiles read 1 + 16 = 17 panels")
    picture(372, "Raster groups of 4 tile rows", by_groups, "16 tiles read 4 + 4 = 8 panels")
    p.legend(
        28,
        304,
        [
            (BLUE.mid, "16 work tiles that run at one time"),
            (ORANGE.mid, "what they read of A"),
            (GREEN.mid, "what they read of B"),
        ],
    )
    p.text(
        28,
        340,
        "The library chooses the height of a group so that the running tiles cover about a square of D.",
        size=12,
        color=MUTED,
    )
    return p
