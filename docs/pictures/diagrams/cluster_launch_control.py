"""Cluster launch control against a fixed distribution of work tiles, while another kernel keeps an SM busy."""

from svg import BLUE, GREEN, GREY, RED, Picture, drawing

TILES, SMS, LENGTH, BUSY = 12, 4, 3, 5  # SM 3 is busy until BUSY


def fixed() -> list[list[tuple[float, int, bool]]]:
    """SM i has the tiles i, i + 4, and so on."""
    rows = []
    for sm in range(SMS):
        start = BUSY if sm == SMS - 1 else 0
        rows.append([(start + LENGTH * index, tile, index == 0) for index, tile in enumerate(range(sm, TILES, SMS))])
    return rows


def taken() -> list[list[tuple[float, int, bool]]]:
    """Whoever is free next gets the next tile: it starts as a cluster of its own, or is taken over."""
    rows: list[list[tuple[float, int, bool]]] = [[] for _ in range(SMS)]
    asks = [(0.0, sm, 0.0) for sm in range(SMS - 1)] + [(float(BUSY), SMS - 1, float(BUSY))]  # when, who, free from
    for tile in range(TILES):
        asks.sort()
        when, sm, free = asks.pop(0)
        rows[sm].append((free, tile, not rows[sm]))
        asks.append((free + 0.1, sm, free + LENGTH))  # the next request is made while this tile runs
    return rows


@drawing
def cluster_launch_control() -> Picture:
    p = Picture(
        "Work tiles dealt out beforehand, and taken with cluster launch control",
        "Four SMs and twelve work tiles; another kernel keeps SM 3 busy at first. With a fixed distribution SM 3 "
        "still has to do its three tiles and ends last. With cluster launch control running clusters take over "
        "tiles that have not started, and all end earlier.",
        height=420,
    )
    left, unit = 84, 40

    def timeline(top: float, rows: list[list[tuple[float, int, bool]]], later: str) -> None:
        end = max(row[-1][0] + LENGTH for row in rows)
        for sm, row in enumerate(rows):
            y = top + sm * 30
            p.text(24, y + 18, f"SM {sm}", size=12)
            p.rect(left, y, unit * 14.6, 26, GREY.tint)
            if sm == SMS - 1:
                area = p.rect(left, y, unit * BUSY, 26, GREY.mid, GREY.dark)
                p.text(area.center.x, y + 18, "another kernel", size=11.5, anchor="middle")
            for start, tile, launched in row:
                p.rect(left + unit * start, y, unit * LENGTH, 26, BLUE.mid if launched else later, GREY.dark)
                p.text(left + unit * (start + LENGTH / 2), y + 18, f"tile {tile}", size=12, anchor="middle")
        p.line((left + unit * end, top - 4), (left + unit * end, top + 4 * 30), color=RED.dark, width=2)

    p.text(24, 32, "Fixed: SM i does tiles i, i + 4, i + 8", size=13.5, bold=True)
    timeline(48, fixed(), BLUE.tint)
    p.text(24, 204, "Cluster launch control: a running cluster takes the next tile", size=13.5, bold=True)
    timeline(220, taken(), GREEN.mid)
    p.arrow((left + unit * 12 + 4, 360), (left + unit * 14.6, 360), label="time")
    p.legend(24, 360, [(BLUE.mid, "first tile"), (BLUE.tint, "next by the fixed order"), (GREEN.mid, "taken over")])
    p.note(
        24,
        389,
        652,
        "The grid has a cluster for each tile. clusterlaunchcontrol.try_cancel, issued while a tile runs, "
        "answers with the number of a cluster that will no longer start, or with none. (Schematic, not measured.)",
        size=11.5,
    )
    return p
