"""Hopper's kernel: a producer and two consumer warpgroups, cooperative and ping-pong."""

from code_facts import expect, hopper_config
from svg import BLUE, GREEN, GREY, MUTED, ORANGE, PURPLE, Picture, drawing


@drawing
def hopper_pipeline() -> Picture:
    p = Picture(
        "Hopper's pipeline: cooperative and ping-pong schedules",
        "A producer warpgroup fills a ring of stages by TMA for two consumer warpgroups, which multiply with wgmma. "
        "Cooperative: both share a tile, and the tensor cores are idle while both write it. Ping-pong: each has "
        "its own tile, and one multiplies while the other writes.",
        height=500,
    )
    for name, schedule in (("Tile128x128", "cooperative"), ("PingPong128x128", "ping_pong")):
        expect(name, hopper_config(name), consumers=2, stages=6, schedule=schedule)
    producer = p.box(24, 24, 152, 62, ORANGE, "producer", "one warpgroup, one\nwarp issues TMA")
    ring = p.rect(222, 24, 196, 62, BLUE.tint, BLUE.dark, radius=5, width=1.3)
    p.text(320, 42, "ring of 6 stages, shared", size=12, bold=True, color=BLUE.dark, anchor="middle")
    for index, hue in enumerate((GREEN, GREEN, BLUE, BLUE, ORANGE, ORANGE)):
        p.rect(230 + index * 30, 50, 30, 28, hue.mid, BLUE.dark)
    consumers = [
        p.box(470, 16, 206, 36, GREEN, "consumer 0: wgmma, store", size=12),
        p.box(470, 60, 206, 36, PURPLE, "consumer 1: wgmma, store", size=12),
    ]
    p.arrow(producer.right, ring.left, color=ORANGE.dark, width=2.4)
    for consumer, hue in zip(consumers, (GREEN, PURPLE)):
        p.arrow(ring.right, (444, 55), (444, consumer.center.y), consumer.left, color=hue.dark, width=2.4)

    left, unit = 116, 46.5

    def timeline(top: float, title: str, text: str, rows) -> None:
        p.text(24, top, title, size=13.5, bold=True)
        p.text(24, top + 18, text, size=12, color=MUTED)
        for index, (name, works) in enumerate(rows):
            y = top + 30 + index * 36
            p.text(24, y + 19, name, size=12)
            p.rect(left, y, unit * 12, 28, GREY.tint)
            for start, length, hue, strong, label in works:
                p.rect(left + unit * start, y, unit * length, 28, hue.mid if strong else hue.tint, hue.dark)
                p.text(left + unit * (start + length / 2), y + 18, label, size=11.5, anchor="middle")

    timeline(
        132,
        "Cooperative",
        "Each consumer has half of the rows of a tile.",
        (
            (
                "consumer 0",
                [
                    (0, 3, GREEN, True, "MMA tile 0"),
                    (3, 2, GREEN, False, "write 0"),
                    (5, 3, GREEN, True, "MMA tile 1"),
                    (8, 2, GREEN, False, "write 1"),
                    (10, 2, GREEN, True, "MMA 2"),
                ],
            ),
            (
                "consumer 1",
                [
                    (0, 3, PURPLE, True, "MMA tile 0"),
                    (3, 2, PURPLE, False, "write 0"),
                    (5, 3, PURPLE, True, "MMA tile 1"),
                    (8, 2, PURPLE, False, "write 1"),
                    (10, 2, PURPLE, True, "MMA 2"),
                ],
            ),
            (
                "tensor cores",
                [
                    (0, 3, BLUE, True, "busy"),
                    (3, 2, GREY, False, "idle"),
                    (5, 3, BLUE, True, "busy"),
                    (8, 2, GREY, False, "idle"),
                    (10, 2, BLUE, True, "busy"),
                ],
            ),
        ),
    )
    timeline(
        306,
        "Ping-pong",
        "Each consumer has a tile of its own. They take turns at the ring.",
        (
            (
                "consumer 0",
                [
                    (0, 3, GREEN, True, "MMA tile 0"),
                    (3, 2, GREEN, False, "write 0"),
                    (6, 3, GREEN, True, "MMA tile 2"),
                    (9, 2, GREEN, False, "write 2"),
                ],
            ),
            (
                "consumer 1",
                [
                    (3, 3, PURPLE, True, "MMA tile 1"),
                    (6, 2, PURPLE, False, "write 1"),
                    (9, 3, PURPLE, True, "MMA tile 3"),
                ],
            ),
            ("tensor cores", [(0, 12, BLUE, True, "busy")]),
        ),
    )
    p.arrow((590, 470), (676, 470), label="time")
    p.text(24, 474, "Schematic, not measured. The producer loads ahead in both.", size=12, color=MUTED)
    return p
