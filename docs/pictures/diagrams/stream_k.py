"""Stream-K: five tiles on four clusters, and how the parts of a shared tile are added up."""

from svg import BLUE, GREEN, GREY, MUTED, ORANGE, PURPLE, YELLOW, Picture, drawing

TILES, STAGES, CLUSTERS = 5, 8, 4
HUES = (BLUE, ORANGE, GREEN, PURPLE, YELLOW)


@drawing
def stream_k() -> Picture:
    p = Picture(
        "Stream-K shares tiles between clusters",
        "Five tiles of eight stages each on four clusters. With whole tiles one cluster does two tiles while three "
        "are idle. Stream-K gives each cluster ten stages; tiles that are cut are added up from parts in a "
        "workspace, in a fixed order.",
        height=496,
    )
    left, unit = 110, 34

    def lanes(top: float, parts: list[list[tuple[int, int]]]) -> None:
        for cluster, row in enumerate(parts):
            y = top + cluster * 30
            p.text(24, y + 18, f"cluster {cluster}", size=12)
            p.rect(left, y, unit * 16, 26, GREY.tint)
            at = 0
            for tile, count in row:
                for stage in range(count):
                    p.rect(
                        left + unit * (at + stage), y, unit, 26, HUES[tile].mid, HUES[tile].tint, width=0.8, loose=True
                    )
                p.rect(left + unit * at, y, unit * count, 26, "none", HUES[tile].dark, width=1.4)
                p.text(
                    left + unit * (at + count / 2),
                    y + 18,
                    f"tile {tile}",
                    size=12,
                    anchor="middle",
                    halo=True,
                    on=HUES[tile].mid,
                )
                at += count

    p.text(24, 32, "Whole tiles: 16 steps, and 3 of 4 clusters are idle for half of them", size=13.5, bold=True)
    lanes(46, [[(0, 8), (4, 8)], [(1, 8)], [(2, 8)], [(3, 8)]])
    p.text(24, 198, "Stream-K: 10 steps and the sums of three shared tiles", size=13.5, bold=True)
    parts: list[list[tuple[int, int]]] = []
    share = TILES * STAGES // CLUSTERS
    for cluster in range(CLUSTERS):
        at, end, row = cluster * share, (cluster + 1) * share, []
        while at < end:
            count = min(STAGES - at % STAGES, end - at)
            row.append((at // STAGES, count))
            at += count
        parts.append(row)
    lanes(212, parts)
    # The sum of tile 1.
    y = 366
    p.text(24, y, "The sum of tile 1", size=13.5, bold=True)
    first = p.box(24, y + 14, 128, 46, ORANGE, "cluster 0", "2 stages of K")
    second = p.box(170, y + 14, 128, 46, ORANGE, "cluster 1", "6 stages of K")
    space = p.box(346, y + 14, 130, 46, GREY, "workspace", "both parts, f32")
    result = p.box(546, y + 14, 130, 46, ORANGE, "tile 1 of D", "epilogue, once")
    p.arrow(
        first.bottom,
        (first.center.x, y + 76),
        (space.center.x - 20, y + 76),
        (space.center.x - 20, space.y2),
        color=ORANGE.dark,
        width=2,
    )
    p.arrow(second.right, space.left, color=ORANGE.dark, width=2)
    p.arrow(space.right, result.left, color=ORANGE.dark, width=2)
    p.text(511, y + 30, "add", size=11.5, anchor="middle", color=MUTED)
    p.note(
        24,
        y + 98,
        652,
        "Clusters that have nothing else to do stay, and add up a slice of the tile each. The order of "
        "the parts is fixed, so results repeat bit by bit.",
        size=12,
    )
    return p
