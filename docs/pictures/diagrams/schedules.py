"""One program under the three schedules of the emulated device."""

from svg import BLUE, GREEN, MUTED, ORANGE, Picture, drawing

# What happens, in order. a to d are instructions of warp 0; b and c issue a load each. e, f and h are of warp 1;
# "wait" passes when both loads are complete. 1 and 2 are loads that complete; "1 ½" is a half of load 1.
ORDERS = (
    (
        "in-order",
        "Warps take turns. Loads complete soon, in the order of issue.",
        ("a", "e", "b", "f", "1", "c", "2", "wait", "d", "h"),
    ),
    (
        "random",
        "Any warp next, any load next, in pieces.",
        ("e", "a", "b", "f", "c", "2", "d", "1 ½", "1 ½", "wait", "h"),
    ),
    (
        "adversarial",
        "One warp runs as far as it can. Loads complete late, or the newest first.",
        ("a", "b", "c", "d", "e", "f", "2", "1", "wait", "h"),
    ),
)


@drawing
def schedules() -> Picture:
    p = Picture(
        "One program in three orders",
        "Two warps and two asynchronous loads. Under in-order the warps take turns and loads complete soon. Under "
        "random anything that is allowed may come next. Under adversarial one warp runs ahead and loads complete "
        "late and in the wrong order. The wait holds in all three.",
        height=410,
    )
    p.text(24, 32, "The program", size=13.5, bold=True)
    cell, high, left = 47, 32, 128

    def draw(x: float, y: float, step: str) -> None:
        hue = ORANGE if step[0] in "12" else (BLUE if step in "abcd" else GREEN)
        p.box(x, y, cell - 3, high, hue, step, size=12, strong=True, bold=step == "wait", radius=4)

    p.text(24, 66, "warp 0", size=12, bold=True, color=BLUE.dark)
    p.text(24, 104, "warp 1", size=12, bold=True, color=GREEN.dark)
    for index, step in enumerate("abcd"):
        draw(left + index * cell, 46, step)
    for index, step in enumerate(("e", "f", "wait", "h")):
        draw(left + index * cell, 84, step)
    p.text(left + 4 * cell + 14, 66, "b issues load 1, c issues load 2", size=12, color=MUTED)
    p.text(left + 4 * cell + 14, 104, "waits for both loads, h uses them", size=12, color=MUTED)
    for row, (name, text, steps) in enumerate(ORDERS):
        y = 144 + row * 76
        p.text(24, y + 12, text, size=12, color=MUTED)
        p.text(24, y + 42, name, size=12.5, bold=True)
        for index, step in enumerate(steps):
            draw(left + index * cell, y + 22, step)
    p.note(
        24,
        378,
        652,
        "PTX allows all three. A right kernel gives the same result in each. One that forgets the wait may "
        "pass under one schedule and fail under another. The seed repeats an order.",
        size=12,
    )
    return p
