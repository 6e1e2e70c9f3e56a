"""A batch with two levels of strides: the heads of a transformer, inside of batches."""

from svg import BLUE, GREEN, GREY, INK, MUTED, ORANGE, PURPLE, Picture, drawing


@drawing
def batches() -> Picture:
    p = Picture(
        "A batch of matrices on two levels: heads within batches",
        "Memory in the order batch, token, head, feature. A head of a batch is a matrix whose rows are tokens: its "
        "leading dimension is a whole token, the stride to the next head is the features of one head, the outer "
        "stride to the next batch is all tokens.",
        height=414,
    )
    hues = (BLUE, ORANGE, GREEN, PURPLE)
    tokens, features = 5, 4
    cell, high = 17, 24
    lefts = (44, 384)
    top = 108
    p.text(24, 32, "elements in memory: [batch][token][head][feature]", size=13, bold=True)
    for batch, x in enumerate(lefts):
        p.text(x, 62, f"batch {batch}", size=13, bold=True)
        for head, hue in enumerate(hues):
            hot = batch == 1 and head == 2
            p.text(
                x + (head + 0.5) * features * cell,
                top - 8,
                f"head {head}",
                size=11.5,
                anchor="middle",
                color=hue.dark,
                bold=hot,
            )
            for token in range(tokens):
                for feature in range(features):
                    p.rect(
                        x + (head * features + feature) * cell,
                        top + token * high,
                        cell,
                        high,
                        hue.mid if hot else hue.tint,
                        hue.dark,
                        width=0.7,
                    )
    x0, x1 = lefts
    bottom = top + tokens * high
    p.line(
        (x1 + 8 * cell, top),
        (x1 + 12 * cell, top),
        (x1 + 12 * cell, bottom),
        (x1 + 8 * cell, bottom),
        (x1 + 8 * cell, top),
        color=INK,
        width=2.4,
        bend=0,
    )
    # Strides.
    p.arrow((x0 + 2, bottom + 14), (x0 + 4 * cell, bottom + 14), color=ORANGE.dark, width=2)
    p.text(x0, bottom + 36, "stride: 4", size=12, bold=True, color=ORANGE.dark)
    p.text(x0, bottom + 51, "to the next head", size=11, color=MUTED)
    p.arrow((x0 - 10, top + 8), (x0 - 10, top + high + 8), color=BLUE.dark, width=2)
    p.text(x0 + 130, bottom + 36, "leading dimension: 16", size=12, bold=True, color=BLUE.dark)
    p.text(x0 + 130, bottom + 51, "to the next token", size=11, color=MUTED)
    p.arrow((x0 + 2, 76), (x1 - 4, 76), color=PURPLE.dark, width=2)
    p.label(252, 76, "outer stride: 80", size=12, color=PURPLE.dark, bold=True)
    p.text(x1, bottom + 36, "heads.at(1, 2): one matrix,", size=12)
    p.text(x1, bottom + 51, "5 tokens × 4 features", size=12)
    y = 316
    p.rect(24, y - 4, 652, 84, "#f3f6f9", GREY.mid, radius=6)
    for line, (indent, text) in enumerate(
        (
            (0, "buffer.matrices({.rows = 5, .columns = 4, .leading_dimension = 16,"),
            (17, ".count = 4, .stride = 4,"),
            (17, ".outer_count = 2, .outer_stride = 80})"),
        )
    ):
        p.text(36 + indent * 12 * 0.602, y + 20 + 22 * line, text, size=12, mono=True)
    return p
