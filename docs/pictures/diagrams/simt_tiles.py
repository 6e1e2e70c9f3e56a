"""The tiles of the register-blocked SIMT kernel, from the grid to one thread."""

from code_facts import expect, simt_config
from svg import BLUE, GREEN, INK, LINE, MUTED, ORANGE, PURPLE, Picture, drawing


@drawing
def simt_tiles() -> Picture:
    config = simt_config("RegisterBlockedLarge")
    expect("RegisterBlockedLarge", config, block_m=128, block_n=128, block_k=8, thread_m=8, thread_n=16)
    expect("RegisterBlockedLarge", config, lanes_m=4, lanes_n=8, buffers="two")
    p = Picture(
        "The tiles of the register-blocked SIMT kernel",
        "The grid has a CTA for each tile of 128 by 128. Each of its four warps has 32 rows. Each thread of a warp "
        "has eight pieces of 4 by 4 elements, spread over the warp's rows and columns. For one k, a thread loads 8 "
        "elements of A and 16 of B from shared memory and makes 128 products.",
        height=420,
    )

    def heading(x: float, y: float, step: str, title: str, below: str) -> None:
        p.circle((x + 9, y - 5), 10, INK)
        p.text(x + 9, y - 1, step, size=12, color="#ffffff", anchor="middle", bold=True, on=INK)
        p.text(x + 26, y, title, size=14, bold=True)
        p.text(x, y + 21, below, size=12, color=MUTED)

    heading(24, 32, "1", "Grid", "D: 1024 × 1024")
    cell = 16
    p.grid(24, 66, 8, 8, cell, cell, lambda c, r: (BLUE.mid if (c, r) == (5, 2) else BLUE.tint, ""), stroke=BLUE.dark)
    heading(236, 32, "2", "CTA", "128 × 128, 128 threads")
    for warp in range(4):
        p.box(236, 66 + 32 * warp, 128, 32, BLUE, f"warp {warp}", size=12, radius=0, bold=False, strong=warp == 1)
    p.line((24 + 6 * cell, 66 + 2 * cell), (233, 66), color=LINE, width=1, dash="3 3")
    p.line((24 + 6 * cell, 66 + 3 * cell), (233, 194), color=LINE, width=1, dash="3 3")

    heading(440, 32, "K", "Loop over K", "8 at a time, two buffers")
    p.box(440, 66, 110, 48, ORANGE, "A: 128 × 8", "shared memory", size=11.5)
    p.box(562, 66, 114, 48, GREEN, "B: 8 × 128", "shared memory", size=11.5)
    p.box(440, 122, 110, 48, ORANGE, "next A", "cp.async", size=11.5, dash="4 3", bold=False)
    p.box(562, 122, 114, 48, GREEN, "next B", "cp.async", size=11.5, dash="4 3", bold=False)
    p.text(440, 190, "one is multiplied, the other loaded", size=11.5, color=MUTED)

    # The warp's 32 x 128 elements; those of one thread in groups of 4 x 4.
    heading(24, 240, "3", "Warp", "32 × 128: a thread has 8 pieces of 4 × 4, that is 8 × 16")
    x, y, scale = 24, 274, 3.15
    p.rect(x, y, 128 * scale, 32 * scale, BLUE.tint, BLUE.dark)
    for row in range(8):
        for column in range(32):
            mine = row % 4 == 1 and column % 8 == 2
            p.rect(
                x + 4 * scale * column,
                y + 4 * scale * row,
                4 * scale,
                4 * scale,
                PURPLE.mid if mine else "none",
                PURPLE.dark if mine else "#c3d6e8",
                width=1 if mine else 0.5,
                loose=True,
            )
    p.text(x, y + 32 * scale + 22, "Neighbouring lanes read neighbouring vectors.", size=12, color=MUTED)

    heading(476, 240, "4", "Thread, one k", "128 products")
    tx, ty, unit = 512, 296, 7.5
    p.rect(tx - 26, ty, unit * 2, 8 * unit, ORANGE.mid, ORANGE.dark)
    p.rect(tx, ty - 18, 16 * unit, unit * 1.6, GREEN.mid, GREEN.dark)
    for row in range(8):
        for column in range(16):
            p.rect(tx + unit * column, ty + unit * row, unit, unit, PURPLE.mid, "#ffffff", width=0.7, loose=True)
    p.text(tx + 16 * unit + 8, ty - 8, "16 of B", size=11.5, color=GREEN.dark)
    p.text(tx - 26, ty + 8 * unit + 16, "8 of A", size=11.5, color=ORANGE.dark)
    p.text(tx + 30, ty + 8 * unit + 16, "sums in registers", size=11.5)
    p.text(476, y + 32 * scale + 22, "6 loads of 16 bytes", size=12, color=MUTED)
    return p
