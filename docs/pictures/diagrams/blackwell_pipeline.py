"""The roles of one CTA of the Blackwell kernel, the memories between them, and the barriers that join them."""

from code_facts import blackwell_config, blackwell_warps, expect
from svg import BLUE, GREEN, GREY, INK, MUTED, ORANGE, PURPLE, YELLOW, Picture, drawing


@drawing
def blackwell_pipeline() -> Picture:
    p = Picture(
        "The pipeline of a Blackwell kernel from TMA load to TMA store",
        "A load warp fills a ring of six shared-memory stages by TMA. An MMA warp multiplies them into one of two "
        "accumulators in tensor memory. Four epilogue warps read the other accumulator, and store it through "
        "staging buffers by TMA. Full and empty barriers join each two neighbours.",
        height=446,
    )
    config = blackwell_config("Clc")
    expect("Clc", config, cluster=1, stages=6, accumulators=2, scheduling="launch_control")
    expect("the kernel", blackwell_warps(), load=4, mma=5, scheduler=6, epilogue=4, staging=2)
    load, mma, epilogue, store = 103, 318, 474, 600
    top, memory = 78, 162

    p.box(24, 18, 652, 28, YELLOW, "scheduler warp 6: asks the hardware for the next work tile", size=12)
    roles = [
        p.box(load - 62, top, 124, 46, ORANGE, "load warp 4", "one thread issues"),
        p.box(mma - 62, top, 124, 46, PURPLE, "MMA warp 5", "one thread issues"),
        p.box(epilogue - 62, top, 264, 46, GREEN, "epilogue warps 0 to 3", "32 rows of the tile each"),
    ]
    for role in roles:
        p.arrow((role.center.x, 46), (role.center.x, top), color=YELLOW.dark)
    for at, hue in ((load, ORANGE), (mma, PURPLE), (epilogue, GREEN), (store, GREEN)):
        p.line(
            (at, top + 46), (at, memory + 36 if at == store else 412), color=hue.dark, width=1.2, dash="4 4", loose=True
        )

    p.box(14, memory, 62, 72, GREY, "A, B", "global\nmemory")
    ring = p.rect(130, memory, 162, 72, BLUE.tint, BLUE.dark, radius=5, width=1.3)
    # In the order of the ring: stage 2 is the oldest one in use, stage 1 is loaded next.
    fills = [ORANGE.mid, BLUE.tint, PURPLE.mid, BLUE.mid, BLUE.mid, ORANGE.mid]
    for index, fill in enumerate(fills):
        p.rect(134 + index * 25.6, memory + 26, 25.6, 42, fill, BLUE.dark)
        p.text(134 + index * 25.6 + 12.8, memory + 52, str(index), size=12, anchor="middle")
    p.text(ring.center.x, memory + 17, "6 stages, shared", size=12, bold=True, anchor="middle", color=BLUE.dark)
    tmem = p.rect(344, memory, 104, 72, BLUE.tint, BLUE.dark, radius=5, width=1.3)
    for index, fill in enumerate((GREEN.mid, PURPLE.mid)):
        p.rect(348 + index * 48, memory + 26, 48, 42, fill, BLUE.dark)
        p.text(372 + index * 48, memory + 52, str(index), size=12, anchor="middle")
    p.text(tmem.center.x, memory + 17, "2 accumulators", size=11, bold=True, anchor="middle", color=BLUE.dark)
    p.rect(500, memory, 76, 72, BLUE.tint, BLUE.dark, radius=5, width=1.3)
    for index in range(2):
        p.rect(504 + index * 34, memory + 26, 34, 42, GREEN.mid if index == 0 else BLUE.tint, BLUE.dark)
    p.text(538, memory + 17, "staging", size=12, bold=True, anchor="middle", color=BLUE.dark)
    p.box(624, memory, 62, 72, GREY, "D", "global\nmemory")

    y = memory + 36
    for start, end, hue in ((76, 130, ORANGE), (292, 344, PURPLE), (448, 500, GREEN), (576, 624, GREEN)):
        p.arrow((start, y), (end, y), color=hue.dark, width=3.2, head=10)
    captions = ((load, "TMA load"), (mma, "MMA"), (epilogue, "tcgen05.ld"), (store, "TMA store"))
    for at, text in captions:
        p.label(at, memory + 84, text, size=11.5, color=INK)

    # The barriers.
    def barrier(start: float, end: float, at: float, name: str, first: str, second: str, hue) -> None:
        p.arrow((start, at), (end, at), color=hue.dark, width=2)
        middle = (start + end) / 2
        p.label(middle, at, name, size=12, color=hue.dark, bold=True)
        p.text(middle, at + 20, first, size=11, anchor="middle", color=MUTED)
        if second:
            p.text(middle, at + 33, second, size=11, anchor="middle", color=MUTED)

    barrier(load, mma, 284, "full", "TMA: all bytes have landed", "", ORANGE)
    barrier(mma, load, 344, "empty", "tcgen05.commit: the products", "have read the stage", PURPLE)
    barrier(mma, epilogue, 284, "full", "tcgen05.commit:", "the tile is complete", PURPLE)
    barrier(epilogue, mma, 344, "empty", "4 warps arrive:", "it is in registers", GREEN)
    p.text(500, 288, "barriers: a solid arrow goes", size=11.5, color=MUTED)
    p.text(500, 303, "from who completes a phase", size=11.5, color=MUTED)
    p.text(500, 318, "to who waits for it", size=11.5, color=MUTED)
    p.legend(
        24,
        428,
        [
            (ORANGE.mid, "loading"),
            (BLUE.mid, "loaded"),
            (PURPLE.mid, "being multiplied"),
            (GREEN.mid, "being stored"),
            (BLUE.tint, "free"),
        ],
    )
    p.text(684, 432, "configuration clc", size=11.5, anchor="end", color=MUTED)
    return p
