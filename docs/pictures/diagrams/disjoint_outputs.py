"""Outputs that no two threads and no two clusters share."""

from svg import BLUE, GREEN, GREY, INK, MUTED, ORANGE, PURPLE, RED, YELLOW, Picture, drawing


@drawing
def disjoint_outputs() -> Picture:
    p = Picture(
        "Each thread, or each cluster, writes a piece of its own",
        "On the left a matrix written through a DisjointMatrix: each thread of four CTAs has one element; threads "
        "outside of the matrix have none. On the right a matrix cut into tiles by an OutputPartition: each work "
        "item has one tile, and parts of it are stored and clipped at the edge.",
        height=398,
    )
    hues = (BLUE, ORANGE, GREEN, PURPLE)
    # Threads.
    x, y, cell = 30, 92, 25
    p.text(24, 32, "DisjointMatrix: an element per thread", size=13.5, bold=True)
    p.text(24, 52, "out[ThreadIndex2D::in_grid()]", size=12, mono=True, color=MUTED)
    rows, columns = 7, 10
    for row in range(8):
        for column in range(12):
            hue = hues[row // 4 * 2 + column // 6]
            inside = row < rows and column < columns
            p.rect(
                x + column * cell,
                y + row * cell,
                cell,
                cell,
                hue.mid if inside else "#ffffff",
                hue.dark if inside else GREY.mid,
                width=0.8,
                dash="" if inside else "2 2",
                loose=True,
            )
    p.rect(x, y, columns * cell, rows * cell, "none", INK, width=2.4)
    p.text(x, y - 10, "matrix of 7 × 10, four CTAs of 4 × 6 threads", size=11.5, color=MUTED)
    bottom = y + 8 * cell
    p.text(x, bottom + 22, "Outside: contains() is false.", size=12)
    p.text(x, bottom + 39, "A store there stops the kernel.", size=12)
    # Tiles.
    x, width, height = 372, 76, 50
    p.text(366, 32, "OutputPartition: a tile per work item", size=13.5, bold=True)
    p.text(366, 52, "partition.tile(work)", size=12, mono=True, color=MUTED)
    p.text(x, y - 10, "D of 450 × 900 in tiles of 128 × 256", size=11.5, color=MUTED)
    for row in range(4):
        for column in range(4):
            hue = (BLUE, GREEN)[(row + column) % 2]
            p.rect(x + column * width, y + row * height, width, height, hue.tint, hue.dark, width=0.9)
            number = row + 4 * column
            if (row, column) != (1, 1):
                p.text(x + column * width + 6, y + row * height + 15, str(number), size=11, color=hue.dark)
    tx, ty = x + width, y + height
    for part_row in range(4):
        for part_column in range(4):
            hot = (part_row, part_column) == (2, 1)
            p.rect(
                tx + part_column * width / 4,
                ty + part_row * height / 4,
                width / 4,
                height / 4,
                RED.mid if hot else YELLOW.tint,
                YELLOW.dark,
                width=0.8,
                loose=True,
            )
    right, low = x + width * 900 / 256, y + height * 450 / 128
    p.rect(x, y, right - x, low - y, "none", INK, width=2.4, loose=True)
    p.line(
        (tx + 1.5 * width / 4, ty + 2.5 * height / 4),
        (tx + 1.5 * width / 4, bottom + 10),
        color=RED.dark,
        width=1.3,
        loose=True,
    )
    p.text(x, bottom + 22, "part<32, 64>(2, 1): a warp stores it by TMA.", size=12, color=RED.dark)
    p.text(x, bottom + 39, "What is outside of D is not stored.", size=12)
    p.note(
        24,
        bottom + 72,
        652,
        "Only the thread's own position makes a ThreadIndex, and only a queue makes a WorkItem. An "
        "integer in their place does not compile. Work items are numbered here column by column.",
        size=12,
    )
    return p
