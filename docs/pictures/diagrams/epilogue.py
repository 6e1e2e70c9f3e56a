"""What happens to a sum of products on its way to D."""

from svg import BLUE, GREEN, GREY, INK, MUTED, ORANGE, PURPLE, Picture, drawing


@drawing
def epilogue() -> Picture:
    p = Picture(
        "The epilogue: from a sum of products to an element of D",
        "Six steps from left to right: the sum of products in f32, times alpha and the scales of A and B, plus beta "
        "times C, plus the bias, the activation, rounding to D's type. Each is left out if it is not needed.",
        height=236,
    )
    y, high = 100, 56
    steps = (
        (22, 84, GREY, "A × B", "sum in f32"),
        (134, 92, BLUE, "× alpha", "× scales"),
        (254, 92, GREEN, "+ beta × C", ""),
        (374, 76, ORANGE, "+ bias", ""),
        (478, 88, PURPLE, "activation", ""),
        (594, 84, GREY, "D", "rounded"),
    )
    boxes = [p.box(x, y, w, high, hue, title, text) for x, w, hue, title, text in steps]
    for first, second in zip(boxes, boxes[1:]):
        p.arrow(first.right, second.left, color=INK, width=2)
    inputs = (
        (1, BLUE, "scale_a, scale_b", "in device memory"),
        (2, GREEN, "C", "may be D itself"),
        (3, ORANGE, "bias", "per row or column"),
        (4, PURPLE, "relu, gelu, silu", "or none"),
    )
    for index, hue, first, second in inputs:
        x = boxes[index].center.x
        p.text(x, 44, first, size=12, anchor="middle", color=hue.dark, bold=True)
        p.text(x, 60, second, size=11, anchor="middle", color=MUTED)
        p.arrow((x, 68), boxes[index].top, color=hue.dark, width=2)
    p.bracket(22, 678, y + high + 8, "in the product's kernel; D is written once", side="bottom", size=12)
    p.text(
        24,
        222,
        "With beta = 0, C is not read. Every kernel does the same operations in the same order.",
        size=12,
        color=MUTED,
    )
    return p
