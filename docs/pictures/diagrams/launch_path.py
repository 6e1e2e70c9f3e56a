"""What happens in one Gemm::launch."""

from svg import BLUE, GREEN, GREY, INK, MUTED, ORANGE, PURPLE, RED, YELLOW, Picture, drawing


@drawing
def launch_path() -> Picture:
    p = Picture(
        "The way of one Gemm::launch from the call to the kernel",
        "Seven steps from top to bottom: types are checked at compile time, operands at run time, a problem is made "
        "of plain values, a kernel is chosen, an empty result ends, the arguments are filled in, one kernel is "
        "enqueued. Refusals leave to the right before anything is enqueued.",
        height=548,
    )
    p.box(24, 20, 430, 40, GREY, "Gemm::launch(stream, a, b, d, options)", size=12.5, mono=True)
    steps = (
        ("1", "Compile time", "element types, orders, D is not const", GREEN),
        ("2", "Operands", "extents agree, one device, D overlaps no input", GREEN),
        ("3", "GemmProblem", "extents, types, orders, alignment as plain values", BLUE),
        ("4", "Choice", "eligible variants; measured or modelled to be fastest", PURPLE),
        ("5", "Nothing to do?", "an empty D ends here", GREY),
        ("6", "Arguments", "one struct; column-major D: A and B change places", BLUE),
        ("7", "Launch", "one kernel on your stream; the host does not wait", ORANGE),
    )
    areas = []
    for index, (number, title, text, hue) in enumerate(steps):
        y = 82 + index * 66
        areas.append(p.box(24, y, 430, 46, hue, "", ""))
        p.circle((48, y + 23), 12, hue.dark)
        p.text(48, y + 27.5, number, size=13, bold=True, anchor="middle", color="#ffffff", on=hue.dark)
        p.text(72, y + 20, title, size=12.5, bold=True, color=hue.dark)
        p.text(72, y + 37, text, size=11.5)
    p.arrow((239, 60), (239, 82), color=INK, width=2)
    for first, second in zip(areas, areas[1:]):
        p.arrow(first.bottom, second.top, color=INK, width=2)
    refusals = (
        (0, "does not compile", "one sentence says why"),
        (1, "Error", "names values and the cure"),
        (3, "Error", "the named variant cannot run"),
        (4, "return", "nothing was enqueued"),
    )
    for index, title, text in refusals:
        area = areas[index]
        hue = GREY if title == "return" else RED
        box = p.box(500, area.y, 176, 46, hue, title, text, size=12.5)
        p.arrow(area.right, box.left, color=hue.dark, width=2)
    side = p.box(500, areas[6].y, 176, 46, YELLOW, "only some plans", "workspace, repacking", size=12.5, dash="4 4")
    p.arrow(side.left, areas[6].right, color=YELLOW.dark, width=2)
    p.text(500, areas[2].y + 20, "GemmPlan::prepare does", size=11.5, color=MUTED)
    p.text(500, areas[2].y + 36, "3 and 4 once", size=11.5, color=MUTED)
    return p
