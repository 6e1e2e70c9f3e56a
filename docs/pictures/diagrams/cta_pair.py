"""A pair of CTAs that executes one matrix instruction."""

from code_facts import blackwell_config, expect
from svg import BLUE, GREEN, GREY, INK, MUTED, ORANGE, PURPLE, Picture, drawing


@drawing
def cta_pair() -> Picture:
    p = Picture(
        "Two CTAs execute one matrix instruction",
        "A pair of CTAs. Each holds 128 rows of A and half of the columns of B in its shared memory. The leader "
        "issues one instruction of 256 rows and 256 columns. Each CTA's tensor memory gets 128 rows of the "
        "result, computed with both halves of B.",
        height=464,
    )
    expect(
        "CtaPair256", blackwell_config("CtaPair256"), group_size=2, rows=256, block_n=256, stage_k=64
    )
    width = 312
    lefts = (24, 364)
    y = 24
    for index, x in enumerate(lefts):
        name = "CTA 0: the leader" if index == 0 else "CTA 1: the peer"
        p.rect(x, y, width, 306, "#f3f6f9", GREY.mid, radius=8)
        p.text(x + 14, y + 24, name, size=14, bold=True)
        p.text(x + 14, y + 48, "shared memory of one stage", size=11.5, color=MUTED)
    a = [
        p.box(x + 14, y + 58, 130, 66, ORANGE, f"A rows {128 * i}–{128 * i + 127}", "128 × 64", size=11.5)
        for i, x in enumerate(lefts)
    ]
    b = [
        p.box(lefts[0] + 158, y + 58, 142, 66, GREEN, "B columns 0–127", "64 × 128", size=11.5),
        p.box(lefts[1] + 158, y + 58, 142, 66, GREEN, "B columns 128–255", "64 × 128", size=11.5),
    ]
    d = []
    for index, x in enumerate(lefts):
        d.append(
            p.box(
                x + 14,
                y + 204,
                286,
                86,
                BLUE if index == 0 else PURPLE,
                f"D rows {128 * index}–{128 * index + 127}",
                "all 256 columns, in tensor memory",
                radius=4,
            )
        )
    # A goes to its own D, each half of B to both.
    for index in range(2):
        p.arrow((a[index].x + 40, a[index].y2), (a[index].x + 40, d[index].y), color=ORANGE.dark, width=2)
    p.arrow((b[0].x + 100, b[0].y2), (b[0].x + 100, d[0].y), color=GREEN.dark, width=2)
    p.arrow((b[1].x + 100, b[1].y2), (b[1].x + 100, d[1].y), color=GREEN.dark, width=2)
    lane = b[0].y2 + 22
    p.arrow(
        (b[0].x + 124, b[0].y2),
        (b[0].x + 124, lane),
        (d[1].x + 86, lane),
        (d[1].x + 86, d[1].y),
        color=GREEN.dark,
        width=2,
    )
    lane += 16
    p.arrow(
        (b[1].x + 40, b[1].y2),
        (b[1].x + 40, lane),
        (d[0].x + 200, lane),
        (d[0].x + 200, d[0].y),
        color=GREEN.dark,
        width=2,
    )
    # The instruction.
    p.box(24, 348, 316, 46, GREY, "MMA warp of the leader", "tcgen05.mma.cta_group::2, 256 × 256 × 16")
    p.box(364, 348, 312, 46, GREY, "MMA warp of the peer", "issues nothing", dash="4 4")
    p.arrow((182, 348), (182, 331), color=INK, width=2)
    p.arrow((300, 348), (300, 339), (420, 339), (420, 331), color=INK, width=2, loose=True)
    p.note(
        24,
        420,
        652,
        "Both CTAs' TMA loads count at the leader's full barrier. The commit frees the stage in both. "
        "Each CTA loads half of B. Without a pair, each would load all of it.",
        size=12,
    )
    return p
