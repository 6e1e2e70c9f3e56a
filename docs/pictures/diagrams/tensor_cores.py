"""Where operands and sums are for three generations of tensor core instructions."""

from svg import BLUE, GREEN, INK, MUTED, ORANGE, PURPLE, Picture, drawing


@drawing
def tensor_cores() -> Picture:
    p = Picture(
        "Three generations of tensor core instructions",
        "mma.sync: a warp loads A and B from shared memory into registers, and the sums are in registers. wgmma: the"
        " tensor core reads A and B from shared memory itself, the sums are in the registers of a warpgroup. tcgen05:"
        " one thread issues, the sums are in tensor memory.",
        height=470,
    )
    width = 196
    columns = (
        ("mma.sync", "since Volta", "a warp, 32 threads", "16 × 8 × 16", "in step with its warp"),
        ("wgmma", "Hopper", "a warpgroup, 128 threads", "64 × 256 × 16", "asynchronously"),
        ("tcgen05.mma", "Blackwell", "one thread", "256 × 256 × 16, a pair", "asynchronously"),
    )
    for index, (name, chip, issuer, shape, wait) in enumerate(columns):
        x = 24 + index * (width + 32)
        p.text(x, 34, name, size=14, bold=True)
        p.text(x, 53, chip, size=12, color=MUTED)
        shared = p.box(x, 70, width, 46, BLUE, "shared memory", "A, B")
        core = p.box(x, 210, width, 50, ORANGE, "tensor core", shape)
        if index == 0:
            registers = p.box(x, 144, width, 38, GREEN, "registers: A, B", size=12)
            p.arrow(shared.bottom, registers.top, color=INK, width=2)
            p.arrow(registers.bottom, core.top, color=INK, width=2)
        else:
            p.arrow(shared.bottom, core.top, color=INK, width=3, head=10)
        hue = PURPLE if index == 2 else GREEN
        where = "tensor memory: sums" if index == 2 else "registers: sums"
        sums = p.box(x, 296, width, 46, hue, where, size=12.5)
        p.arrow(core.bottom, sums.top, color=INK, width=2, both=True)
        for line, (what, value) in enumerate((("issued by", issuer), ("runs", wait))):
            p.text(x, 372 + 20 * line, what, size=11.5, color=MUTED)
            p.text(x + 62, 372 + 20 * line, value, size=11.5)
    p.note(
        24,
        424,
        652,
        "Operands and sums leave the registers step by step. What is left for threads is to issue, to wait, "
        "and to bring the sums to D. Shapes are the largest for 16-bit elements: M × N × K.",
        size=12,
    )
    return p
