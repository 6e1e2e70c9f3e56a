"""The bits of the element types."""

from svg import BLUE, GREY, MUTED, ORANGE, Picture, WHITE, drawing

# name, exponent bits, mantissa bits, bits that are zero, largest finite value, what follows from it
FORMATS = (
    ("f32", 8, 23, 0, "3.4e38"),
    ("tf32", 8, 10, 13, "3.4e38"),
    ("f16", 5, 10, 0, "65504"),
    ("bf16", 8, 7, 0, "3.4e38"),
    ("f8e4m3", 4, 3, 0, "448"),
    ("f8e5m2", 5, 2, 0, "57344"),
)


@drawing
def element_formats() -> Picture:
    p = Picture(
        "The bits of f32, tf32, f16, bf16, f8e4m3 and f8e5m2",
        "One row of bits for each element type: a sign bit, exponent bits, and mantissa bits. f32 has 1, 8 and 23; "
        "tf32 1, 8 and 10 of a 32-bit word; f16 1, 5 and 10; bf16 1, 8 and 7; f8e4m3 1, 4 and 3; f8e5m2 1, 5 and "
        "2.",
        height=364,
    )
    left, cell, high = 96, 15.2, 30
    p.text(24, 34, "type", size=11.5, color=MUTED)
    p.legend(left, 30, [(GREY.mid, "sign"), (ORANGE.mid, "exponent: the range"), (BLUE.mid, "mantissa: the precision")])
    p.text(676, 34, "largest", size=11.5, color=MUTED, anchor="end")
    for row, (name, exponent, mantissa, rest, largest) in enumerate(FORMATS):
        y = 58 + row * 49
        p.text(24, y + 20, name, size=13.5, bold=True, mono=True)
        x = left
        for count, hue in ((1, GREY), (exponent, ORANGE), (mantissa, BLUE)):
            for bit in range(count):
                p.rect(x + bit * cell, y, cell, high, hue.mid, WHITE, loose=True)
            p.rect(x, y, count * cell, high, "none", hue.dark, width=1.3)
            if count > 1:
                p.text(
                    x + count * cell / 2,
                    y + 20,
                    str(count),
                    size=12.5,
                    bold=True,
                    anchor="middle",
                    halo=True,
                    on=hue.mid,
                )
            x += count * cell
        if rest:
            p.rect(x, y, rest * cell, high, WHITE, GREY.mid, dash="3 3")
            p.text(
                x + rest * cell / 2, y + 20, f"{rest} bits, zero", size=11.5, anchor="middle", color=MUTED
            )
        p.text(676, y + 20, largest, size=12.5, anchor="end")
    return p
