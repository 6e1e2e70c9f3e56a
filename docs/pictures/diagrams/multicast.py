"""TMA multicast: each CTA of a cluster loads a part of B, for both."""

from code_facts import blackwell_config, expect
from svg import GREEN, GREY, ORANGE, PURPLE, Picture, drawing


@drawing
def multicast() -> Picture:
    p = Picture(
        "One TMA load fills the shared memory of two CTAs",
        "Two CTAs of a cluster need the same B. CTA 0 loads the first half of it and CTA 1 the second half, each "
        "by a multicast into the same place of both shared memories. Each CTA loads its own rows of A.",
        height=418,
    )
    config = blackwell_config("ClcMulticast")
    expect("ClcMulticast", config, cluster=2, multicast=True, group_size=1, a_kib=16, b_kib=16)
    sources = [
        p.box(24, 52, 130, 54, ORANGE, "A rows 0–127", "16 KiB", size=12),
        p.box(196, 52, 130, 54, GREEN, "B, first half", "8 KiB", size=12),
        p.box(374, 52, 130, 54, PURPLE, "B, second half", "8 KiB", size=12),
        p.box(546, 52, 130, 54, ORANGE, "A rows 128–255", "16 KiB", size=12),
    ]
    p.text(24, 34, "Global memory, through L2: each part is read once", size=13, bold=True)
    panels = []
    for index, x in enumerate((24, 364)):
        panels.append(p.rect(x, 226, 312, 116, "#f3f6f9", GREY.mid, radius=8))
        p.text(x + 12, 330, f"CTA {index}: a stage in shared memory, 32 KiB", size=12, bold=True)
    stages = []
    for x in (24, 364):
        stages.append(
            (
                p.box(x + 12, 244, 112, 64, ORANGE, "A", "own rows", size=13),
                p.box(x + 132, 244, 80, 64, GREEN, "B", "first half", size=13),
                p.box(x + 220, 244, 80, 64, PURPLE, "B", "second half", size=13),
            )
        )
    p.arrow(sources[0].bottom, (sources[0].center.x, 244), color=ORANGE.dark, width=2)
    p.arrow(
        sources[3].bottom,
        (sources[3].center.x, 190),
        (stages[1][0].center.x + 20, 190),
        (stages[1][0].center.x + 20, 244),
        color=ORANGE.dark,
        width=2,
    )
    for source, hue, part, lane in ((1, GREEN, 1, 150), (2, PURPLE, 2, 170)):
        x = sources[source].center.x
        p.line((x, 106), (x, lane), color=hue.dark, width=3)
        for stage in stages:
            p.arrow(
                (x, lane), (stage[part].center.x, lane), (stage[part].center.x, 244), color=hue.dark, width=3, head=9
            )
    p.label(261, 128, "CTA 0, mask 0b11", size=11.5, color=GREEN.dark, bold=True)
    p.label(439, 128, "CTA 1, mask 0b11", size=11.5, color=PURPLE.dark, bold=True)
    p.note(
        24,
        366,
        652,
        "Each CTA's full barrier expects 32 KiB: what both CTAs send to it. A stage is free when the MMAs of "
        "both CTAs have read it, so the empty barrier counts two commits.",
        size=12,
    )
    return p
