"""Three ways to share one tile's sum along K: inside of a CTA, inside of a cluster, among clusters."""

from svg import BLUE, GREEN, GREY, INK, MUTED, ORANGE, PURPLE, Picture, drawing

HUES = (GREEN, PURPLE, ORANGE, BLUE)


@drawing
def split_k() -> Picture:
    p = Picture(
        "Three ways to divide K",
        "Inside of a CTA two consumers take turns at the stages and one adds the other's sums through shared memory. "
        "Inside of a cluster each CTA has a range of K and all add through distributed shared memory. Among "
        "clusters, stream-K, parts go through a workspace in global memory.",
        height=330,
    )
    count, cell, left = 12, 22, 178
    rows = (
        (
            "Intra-CTA split-K",
            "two consumers of a CTA",
            lambda k: HUES[k % 2],
            "shared memory",
            "alternate stages, one adds",
        ),
        (
            "Cluster split-K",
            "2, 4 or 8 CTAs of a cluster",
            lambda k: HUES[k * 4 // count],
            "peers' shared memory",
            "each adds a slice",
        ),
        (
            "Stream-K",
            "clusters, equal work",
            lambda k: HUES[0] if k < 5 else HUES[1],
            "workspace, global",
            "cut anywhere",
        ),
    )
    p.text(left, 30, "stages of one tile along K", size=12, color=MUTED)
    p.text(498, 30, "sums meet in", size=12, color=MUTED)
    for row, (title, who, hue, where, how) in enumerate(rows):
        y = 48 + row * 92
        p.text(24, y + 20, title, size=13, bold=True)
        for k in range(count):
            p.rect(left + k * cell, y, cell, 34, hue(k).mid, hue(k).dark)
        p.arrow((left + count * cell + 6, y + 17), (492, y + 17), color=INK, width=2)
        p.box(498, y - 4, 178, 42, GREY, where, size=12)
        p.text(left, y + 54, f"{who}: {how}", size=12, color=MUTED)
    p.text(
        24,
        314,
        "Each colour is one consumer, CTA or cluster. For products with too few tiles to fill the SMs.",
        size=12,
        color=MUTED,
    )
    return p
