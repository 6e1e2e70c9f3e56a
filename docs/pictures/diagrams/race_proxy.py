"""A missing proxy fence: ordinary stores to shared memory, and a TMA store that reads it."""

from svg import BLUE, GREEN, GREY, MUTED, ORANGE, RED, Picture, drawing


@drawing
def race_proxy() -> Picture:
    p = Picture(
        "A race between ordinary stores and TMA",
        "Threads write shared memory through the generic proxy, TMA reads it through the async proxy. Without a "
        "proxy fence the order is open: TMA may read new or old values. With a fence in each writing thread, then a "
        "barrier, TMA reads the new values.",
        height=458,
    )
    left = 150

    def lanes(top: float, title: str, hue) -> tuple[float, float]:
        p.text(24, top, title, size=14, bold=True, color=hue.dark)
        for index, (name, proxy) in enumerate((("threads", "generic proxy"), ("TMA store", "async proxy"))):
            y = top + 14 + index * 44
            p.text(24, y + 15, name, size=12, bold=True)
            p.text(24, y + 29, proxy, size=11, color=MUTED)
            p.rect(left, y, 526, 34, GREY.tint, radius=4)
        return top + 14, top + 58

    def work(y: float, start: float, width: float, hue, text: str, strong: bool = True):
        return p.box(left + start, y, width, 34, hue, text, size=12, strong=strong, bold=False, radius=4)

    threads, tma = lanes(34, "No fence, lucky: TMA reads the new values", GREY)
    work(threads, 10, 126, BLUE, "store to shared")
    work(threads, 140, 76, GREY, "barrier")
    work(threads, 220, 76, ORANGE, "issue")
    work(tma, 330, 150, GREEN, "reads new values")

    threads, tma = lanes(174, "No fence, unlucky: the same program, another order", RED)
    work(threads, 10, 126, BLUE, "store to shared")
    work(threads, 140, 76, GREY, "barrier")
    work(threads, 220, 76, ORANGE, "issue")
    work(tma, 310, 130, RED, "reads old values")
    ghost = p.box(left + 444, threads, 78, 34, BLUE, "visible", size=12, bold=False, radius=4, dash="4 3")
    p.line(
        (left + 73, threads),
        (left + 73, threads - 7),
        (ghost.center.x, threads - 7),
        ghost.top,
        color=BLUE.dark,
        width=1.3,
        dash="4 3",
    )

    threads, tma = lanes(314, "With a fence: one order only", GREEN)
    work(threads, 10, 126, BLUE, "store to shared")
    fence = work(threads, 140, 96, GREEN, "proxy fence")
    work(threads, 240, 76, GREY, "barrier")
    work(threads, 320, 66, ORANGE, "issue")
    work(tma, 392, 130, GREEN, "reads new values")
    p.line(fence.bottom, (fence.center.x, tma + 6), color=GREEN.dark, width=1.3, loose=True)
    p.text(left + 10, tma + 21, "make_visible_to_tma(), in each thread", size=11, mono=True, color=GREEN.dark)
    p.note(24, 434, 652, "The emulated device reports missing-proxy-fence also in the lucky order.", size=12)
    return p
