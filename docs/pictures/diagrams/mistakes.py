"""Where a mistake shows."""

from svg import BLUE, GREEN, INK, ORANGE, RED, YELLOW, Picture, drawing


@drawing
def mistakes() -> Picture:
    p = Picture(
        "Where a mistake shows, from the compiler to nowhere",
        "Five places from early to late. The compiler finds wrong types and states. A call finds sizes and devices that"
        " do not fit. The emulated device finds races and wrong protocols. A later call reports a kernel that failed."
        " Nobody finds a missing order between streams.",
        height=282,
    )
    places = (
        ("Compiler", GREEN, ("types, states,", "views of", "temporaries,", "wrong barrier")),
        ("The call", BLUE, ("extents, devices,", "overlap, length;", "an Error with", "values and cure")),
        ("Emulated device", YELLOW, ("races, fences,", "deadlocks, leaks,", "uninitialized", "reads")),
        ("A later call", ORANGE, ("a kernel that", "failed: an index", "outside of a", "view")),
        ("Nobody", RED, ("order of streams,", "last use on a", "stream, races in", "global memory")),
    )
    width = 124
    p.arrow((24, 34), (676, 34), width=2, color=INK)
    p.label(90, 34, "found early", size=12, color=GREEN.dark, bold=True)
    p.label(606, 34, "found late", size=12, color=RED.dark, bold=True)
    for index, (title, hue, lines) in enumerate(places):
        x = 24 + index * (width + 8)
        p.rect(x, 58, width, 158, hue.tint, hue.dark, radius=6, width=1.4)
        p.rect(x, 58, width, 34, hue.tint, hue.dark, radius=6, width=1.4)
        p.text(x + width / 2, 80, title, size=12.5, bold=True, anchor="middle", color=hue.dark)
        for line, text in enumerate(lines):
            p.text(x + 10, 116 + 23 * line, text, size=12)
    p.note(
        24,
        244,
        652,
        "Types move mistakes to the left. Run your tests on the emulated device: it finds what a GPU would let "
        "pass, in the code that the run executes.",
        size=12,
    )
    return p
