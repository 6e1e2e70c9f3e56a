"""From the whole result to one instruction, with the sizes of the configuration `cta_pair_256`."""

from code_facts import blackwell_config, expect
from svg import BLUE, GREEN, GREY, INK, LINE, MUTED, ORANGE, PURPLE, Picture, drawing


@drawing
def tile_hierarchy() -> Picture:
    p = Picture(
        "The tile hierarchy of a matrix product, from the grid to one instruction",
        "Six steps for D of 2048 by 2048 elements in bf16: the grid of 64 work tiles, a work tile of 256 by 256 "
        "for a cluster of two CTAs, one CTA with 128 rows and four epilogue warps, the loop over K in slices "
        "of 64, one stage of 64 KiB, and one instruction of 256 by 256 by 16.",
        height=560,
    )
    config = blackwell_config("CtaPair256")
    expect("CtaPair256", config, rows=256, block_n=256, cluster=2, stages=6, stage_k=64, a_kib=16, b_kib=16)
    side = 128
    lefts, tops = (24, 260, 496), (80, 340)

    def heading(column: int, row: int, step: str, title: str, below: str) -> tuple[float, float]:
        x, y = lefts[column], tops[row]
        p.circle((x + 9, y - 50), 10, INK)
        p.text(x + 9, y - 46, step, size=12, color="#ffffff", anchor="middle", bold=True, on=INK)
        p.text(x + 26, y - 45, title, size=14, bold=True)
        p.text(x, y - 24, below, size=12, color=MUTED)
        return x, y

    x, y = heading(0, 0, "1", "Grid", "D: 2048 × 2048")
    cell = side / 8
    p.grid(x, y, 8, 8, cell, cell, lambda c, r: (BLUE.mid if (c, r) == (5, 2) else BLUE.tint, ""), stroke=BLUE.dark)
    p.text(x, y + side + 22, "64 work tiles of 256 × 256", size=12)
    chosen = (x + 6 * cell, y + 2 * cell)

    x, y = heading(1, 0, "2", "Work tile", "256 × 256, one cluster")
    p.box(x, y, side, side / 2, BLUE, "CTA 0", "128 rows", radius=0)
    p.box(x, y + side / 2, side, side / 2, PURPLE, "CTA 1", "128 rows", radius=0)
    p.text(x, y + side + 22, "2 CTAs, one tensor-core", size=12)
    p.text(x, y + side + 38, "instruction for both", size=12)
    p.line(chosen, (x - 3, y), color=LINE, width=1, dash="3 3")
    p.line((chosen[0], chosen[1] + cell), (x - 3, y + side), color=LINE, width=1, dash="3 3")

    nx, ny = heading(2, 0, "3", "CTA", "128 × 256 of D")
    for warp in range(4):
        p.box(nx, ny + warp * 32, side + 40, 32, BLUE, f"epilogue warp {warp}", size=11.5, radius=0, bold=False)
    p.text(nx, ny + side + 22, "32 rows for each epilogue", size=12)
    p.text(nx, ny + side + 38, "warp; others load, multiply", size=12)
    p.line((x + side, y), (nx - 3, ny), color=LINE, width=1, dash="3 3")
    p.line((x + side, y + side / 2), (nx - 3, ny + side), color=LINE, width=1, dash="3 3")

    # 4: the K loop
    x, y = heading(0, 1, "4", "Loop over K", "one slice of 64 at a time")
    thick, long = 46, 112
    p.text(x + 2, y + thick / 2 + 4, "A and B of", size=11, color=MUTED)
    p.text(x + 2, y + thick / 2 + 18, "the work tile", size=11, color=MUTED)
    bx, by = x + long + 8, y
    slices = 7
    step = long / slices
    for index in range(slices):
        hot = index == 3
        p.rect(x + index * step, by + long + 8, step, thick, ORANGE.mid if hot else ORANGE.tint, ORANGE.dark)
        p.rect(bx, by + index * step, thick, step, GREEN.mid if hot else GREEN.tint, GREEN.dark)
    p.rect(bx, by + long + 8, thick, thick, BLUE.tint, BLUE.dark)
    p.text(bx + thick / 2, by + long + 8 + thick / 2 + 5, "D", size=14, bold=True, anchor="middle", color=BLUE.dark)
    p.text(x, by + long + thick + 26, "A", size=12, bold=True, color=ORANGE.dark)
    p.arrow((x + 16, by + long + thick + 22), (x + long, by + long + thick + 22), label="K")
    p.text(bx + thick + 6, by + 12, "B", size=12, bold=True, color=GREEN.dark)
    p.text(x, y + 208, "A: 256 × K, B: K × 256", size=12)

    # 5: a stage
    sx, sy = heading(1, 1, "5", "Stage", "one slot of the ring of six")
    p.box(sx, sy, 76, 76, ORANGE, "A, CTA 0", "128 × 64\n16 KiB", radius=0, size=11.5)
    p.box(sx, sy + 76, 76, 76, ORANGE, "A, CTA 1", "128 × 64\n16 KiB", radius=0, size=11.5)
    p.box(sx + 88, sy, 76, 76, GREEN, "B, CTA 0", "64 × 128\n16 KiB", radius=0, size=11.5)
    p.box(sx + 88, sy + 76, 76, 76, GREEN, "B, CTA 1", "64 × 128\n16 KiB", radius=0, size=11.5)
    p.text(sx, sy + 174, "64 KiB in both CTAs,", size=12)
    p.text(sx, sy + 190, "brought by TMA", size=12)
    p.line((bx + thick, by + 3 * step), (sx - 3, sy), color=LINE, width=1, dash="3 3")
    p.line((bx + thick, by + 4 * step), (sx - 3, sy + 152), color=LINE, width=1, dash="3 3")

    # 6: an instruction
    ix, iy = heading(2, 1, "6", "Instruction", "four for each stage")
    p.rect(ix, iy + 44, 14, 108, ORANGE.mid, ORANGE.dark)
    p.rect(ix + 26, iy + 16, 108, 14, GREEN.mid, GREEN.dark)
    p.box(ix + 26, iy + 44, 108, 108, GREY, "D += A × B", "in tensor\nmemory", radius=0, size=12)
    p.text(ix + 80, iy + 8, "B: 16 × 256", size=11, anchor="middle", color=GREEN.dark)
    p.text(ix - 2, iy + 36, "A", size=11, color=ORANGE.dark, bold=True)
    p.arrow((sx + 172, sy + 76), (ix - 18, sy + 76), color=MUTED, width=2)
    p.text(ix, iy + 174, "tcgen05.mma, 256 × 256 × 16,", size=12)
    p.text(ix, iy + 190, "issued by one thread", size=12)
    return p
