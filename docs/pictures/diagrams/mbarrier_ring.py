"""A ring of stages over time: phases and parities of its barriers, and the transaction bytes of one phase."""

from code_facts import blackwell_config, expect
from svg import BLUE, GREEN, GREY, INK, MUTED, ORANGE, PURPLE, Picture, drawing

STEPS = 7
LOAD, MULTIPLY, SLOTS = 4, 3, 3


def schedule() -> list[tuple[float, float, float, float]]:
    """Begin and end of the load and of the products of each step: loads wait for their slot, products for all else."""
    times: list[tuple[float, float, float, float]] = []
    for k in range(STEPS):
        begin = max(k if k < SLOTS else 0, times[k - SLOTS][3] if k >= SLOTS else 0)
        loaded = begin + LOAD
        start = max(loaded, times[-1][3] if times else 0)
        times.append((begin, loaded, start, start + MULTIPLY))
    return times


@drawing
def mbarrier_ring() -> Picture:
    p = Picture(
        "A ring of three stages over time, and one phase of a full barrier",
        "Three slots of shared memory are loaded and multiplied in turn. Each completed load ends a phase of the "
        "slot's full barrier, each completed product a phase of its empty barrier, and the parity flips. Below, "
        "one phase of a full barrier: one arrival announces 32768 bytes, two TMA loads bring them.",
        height=482,
    )
    expect("Clc", blackwell_config("Clc"), a_kib=16, b_kib=16)
    left, unit, end = 96, 25.5, 22.6

    def at(time: float) -> float:
        return left + unit * time

    times = schedule()
    p.text(24, 32, "A ring of three slots", size=13.5, bold=True)
    p.arrow((at(18.4), 28), (at(end), 28), label="time")
    top, high = 48, 34
    for slot in range(SLOTS):
        y = top + slot * (high + 8)
        p.text(24, y + 22, f"slot {slot}", size=12, bold=True)
        p.rect(at(0), y, unit * end, high, GREY.tint, GREY.mid)
        for k in range(slot, STEPS, SLOTS):
            begin, loaded, start, done = times[k]
            for first, last, hue, text in ((begin, loaded, ORANGE, f"load {k}"), (start, done, PURPLE, f"MMA {k}")):
                last = min(last, end)
                if last - first < 1:
                    continue
                area = p.rect(at(first), y, unit * (last - first), high, hue.mid, hue.dark)
                if last - first > 2:
                    p.text(area.center.x, area.center.y + 4, text, size=12, anchor="middle")
            if start > loaded:
                p.rect(at(loaded), y, unit * (min(start, end) - loaded), high, ORANGE.tint, ORANGE.dark)
                if min(start, end) - loaded >= 2:
                    p.text((at(loaded) + at(min(start, end))) / 2, y + 21, "loaded", size=11, anchor="middle")
    # The parities of slot 0.
    y = top + 3 * (high + 8) + 22
    p.text(24, y - 2, "barriers of slot 0:", size=12, color=MUTED)
    lanes = (
        ("full", BLUE, [times[k][1] for k in range(0, STEPS, SLOTS)], "completed by TMA"),
        ("empty", GREEN, [times[k][3] for k in range(0, STEPS, SLOTS)], "completed by the commit"),
    )
    for lane, (name, hue, flips, _) in enumerate(lanes):
        lane_y = y + 10 + lane * 36
        p.text(24, lane_y + 18, name, size=12, bold=True, color=hue.dark)
        marks = [0, *[flip for flip in flips if flip < end], end]
        for phase, (first, last) in enumerate(zip(marks, marks[1:])):
            area = p.rect(
                at(first), lane_y, unit * (last - first), 26, hue.tint if phase % 2 == 0 else hue.mid, hue.dark
            )
            text = f"phase {phase}, parity {phase % 2}"
            p.text(
                area.center.x,
                area.center.y + 4,
                text if last - first > 3.9 else f"phase {phase}",
                size=11,
                anchor="middle",
            )
    p.text(24, y + 106, "The consumer waits for full with parity 0, 1, 0, and so on.", size=12)
    p.text(24, y + 123, "The producer waits for empty with parity 1, 0, 1: its first wait passes at once.", size=12)

    # One phase.
    y = 346
    p.text(24, y, "One phase of a full barrier", size=13.5, bold=True)
    cards = (
        ("initialize(1)", "1", "0", "0"),
        ("arrive_and_expect", "0", "32768", "0"),
        ("A has landed", "0", "16384", "0"),
        ("B has landed", "1", "0", "1"),
    )
    width = 136
    for index, (title, arrivals, count, parity) in enumerate(cards):
        x = 24 + index * (width + 36)
        last = index == len(cards) - 1
        area = p.rect(x, y + 14, width, 92, BLUE.mid if last else BLUE.tint, BLUE.dark, radius=5, width=1.3)
        p.text(area.center.x, y + 33, title, size=12, bold=True, anchor="middle", color=INK)
        for line, (name, value) in enumerate(
            (("arrivals missing", arrivals), ("bytes missing", count), ("parity", parity))
        ):
            p.text(x + 8, y + 54 + 17 * line, name, size=11)
            p.text(x + width - 8, y + 54 + 17 * line, value, size=11.5, bold=True, anchor="end")
        if index:
            p.arrow((x - 34, y + 60), (x - 2, y + 60), width=2)
    p.text(
        676, y + 124, "both reached 0: the phase is over, and the next one begins", size=11.5, color=MUTED, anchor="end"
    )
    return p
