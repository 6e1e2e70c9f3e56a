"""Which calls exist in which state of tensor memory and for which kind of barrier."""

from code_facts import barrier_kinds
from svg import BLUE, GREEN, GREY, INK, MUTED, Picture, drawing


@drawing
def typestate() -> Picture:
    p = Picture(
        "States and kinds in the types of tensor memory and barriers",
        "Tensor memory goes from Unallocated by allocate to Allocated, and release ends it; an address exists in the "
        "Allocated state only. A BarrierWord becomes a Barrier by publishing. A table says which calls each of the seven "
        "barrier kinds has.",
        height=560,
    )
    p.text(24, 32, "Tensor memory: Tmem<State, Columns, Group>", size=13.5, bold=True)
    states = [
        p.box(24, 50, 130, 76, GREY, "Unallocated", "no address"),
        p.box(270, 50, 160, 76, GREEN, "Allocated", "accumulator<N>(i)\nscales, operand", sub_mono=False),
        p.box(546, 50, 130, 76, GREY, "gone", "use stops the kernel", sub_mono=False),
    ]
    p.arrow(states[0].right, states[1].left, width=2, color=INK)
    p.arrow(states[1].right, states[2].left, width=2, color=INK)
    p.text(212, 80, "allocate()", size=11.5, mono=True, anchor="middle")
    p.text(488, 80, "release()", size=11.5, mono=True, anchor="middle")
    p.text(212, 108, "once", size=11, anchor="middle", color=MUTED)
    p.text(488, 108, "once", size=11, anchor="middle", color=MUTED)
    p.text(
        24,
        148,
        "A pair needs a proof for both: BarriersPublishedToCluster to allocate, PairFinished to release.",
        size=12,
        color=MUTED,
    )

    y = 190
    p.text(24, y, "Barriers", size=13.5, bold=True)
    first = p.box(24, y + 16, 160, 54, GREY, "BarrierWord<Kind>", "memory", sub_mono=False)
    second = p.box(486, y + 16, 190, 54, BLUE, "Barrier<Kind>", "wait(parity), and by kind:")
    p.arrow(first.right, second.left, width=2, color=INK)
    p.label(335, y + 43, "publish_barriers(initialize)", size=11.5, color=INK, mono=True)
    p.text(335, y + 68, "gives a BarriersPublished", size=11, anchor="middle", color=MUTED)

    y = 300
    columns = (350, 478, 602)
    heads = ("arrive_and_expect", "arrive", "tensor core's commit")
    p.text(24, y, "kind", size=11.5, color=MUTED)
    for x, head in zip(columns, heads):
        p.text(x, y, head, size=11.5, color=MUTED, anchor="middle")
    row_height = 31
    for row, (kind, *calls) in enumerate(barrier_kinds()):
        top = y + 12 + row * row_height
        p.text(24, top + 20, kind, size=12.5, mono=True)
        for x, allowed in zip(columns, calls):
            hue = GREEN if allowed else GREY
            p.rect(x - 56, top + 2, 112, row_height - 5, hue.tint, hue.mid, radius=4)
            p.text(
                x,
                top + 19,
                "yes" if allowed else "–",
                size=12,
                anchor="middle",
                bold=allowed,
                color=GREEN.dark if allowed else MUTED,
            )
    p.text(
        24,
        y + 250,
        "What is not in the table does not compile, and the compiler prints a sentence that says why.",
        size=12,
        color=MUTED,
    )
    return p
