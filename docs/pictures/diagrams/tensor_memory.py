"""Tensor memory: lanes, columns, accumulators, and what a warp may read."""

from code_facts import blackwell_config, expect
from svg import BLUE, GREEN, GREY, INK, MUTED, ORANGE, PURPLE, RED, YELLOW, Picture, drawing


@drawing
def tensor_memory() -> Picture:
    p = Picture(
        "Tensor memory: 128 lanes of 512 columns",
        "Tensor memory of an SM as a grid of 128 lanes and 512 columns of 32 bits. Two accumulators of 256 "
        "columns fill it. Each of the four epilogue warps reads its own 32 lanes, 16 columns at a time. Below, an "
        "allocation for a block-scaled product, with scale factors after the accumulator.",
        height=458,
    )
    expect("CtaPair256", blackwell_config("CtaPair256"), block_n=256, accumulators=2)
    x, y = 128, 74
    hues = (BLUE, ORANGE, GREEN, PURPLE)
    for half in range(2):
        for warp, hue in enumerate(hues):
            p.rect(x + half * 256, y + warp * 44, 256, 44, hue.tint, hue.dark)
    for warp, hue in enumerate(hues):
        p.text(x - 12, y + warp * 44 + 20, f"warp {warp}", size=12.5, bold=True, color=hue.dark, anchor="end")
        p.text(x - 12, y + warp * 44 + 35, f"lanes {32 * warp}–{32 * warp + 31}", size=11, color=MUTED, anchor="end")
    p.bracket(x, x + 255, y - 6, "accumulator 0: columns 0–255", side="top", size=12, color=INK)
    p.bracket(x + 257, x + 512, y - 6, "accumulator 1: columns 256–511", side="top", size=12, color=INK)
    p.text(x, 34, "Tensor memory of an SM: 512 columns of 32 bits, 256 KiB", size=12.5, bold=True)
    p.text(24, 60, "128 lanes", size=12.5, bold=True)
    p.text(x + 128, y + 70, "read by the epilogue", size=12, anchor="middle")
    p.text(x + 384, y + 70, "written by the MMA", size=12, anchor="middle")
    # One load: 32 lanes x 16 columns.
    p.rect(x + 64, y + 88, 16, 44, GREEN.mid, GREEN.dark, width=2)
    p.line((x + 64, y + 132), (x + 64, 276), color=GREEN.dark, width=1.2, loose=True)
    p.line((x + 80, y + 132), (x + 80, 276), color=GREEN.dark, width=1.2, loose=True)
    p.text(x, 292, "One tcgen05.ld of warp 2: 32 lanes × 16 columns.", size=12, color=GREEN.dark, bold=True)
    p.text(x, 309, "Thread t gets lane 64 + t, which is row 64 + t of the tile.", size=12, color=MUTED)

    # Block-scaled.
    y2, h2 = 358, 44
    p.text(24, 340, "Another use: a block-scaled product, allocation of 512 columns", size=12.5, bold=True)
    parts = ((0, 256, BLUE, "accumulator"), (256, 4, RED, ""), (260, 8, YELLOW, ""), (268, 244, GREY, "not used"))
    for first, columns, hue, text in parts:
        area = p.rect(x + first, y2, columns, h2, hue.mid if columns < 20 else hue.tint, hue.dark)
        if text:
            p.text(area.center.x, area.center.y + 4, text, size=12, anchor="middle")
    p.text(x - 12, y2 + 20, "128", size=11, color=MUTED, anchor="end")
    p.text(x - 12, y2 + 34, "lanes", size=11, color=MUTED, anchor="end")
    p.line((x + 258, y2 + h2), (x + 258, 422), (x + 240, 422), color=RED.dark, width=1.3)
    p.text(x + 236, 426, "scale factors of A: 4 columns", size=11.5, anchor="end", color=RED.dark)
    p.line((x + 264, y2 + h2), (x + 264, 422), (x + 282, 422), color=YELLOW.dark, width=1.3)
    p.text(x + 286, 426, "scale factors of B: 8 columns", size=11.5, color=YELLOW.dark)
    p.text(x + 236, 442, "of 128 rows", size=11, anchor="end", color=MUTED)
    p.text(x + 286, 442, "of 256 columns", size=11, color=MUTED)
    return p
