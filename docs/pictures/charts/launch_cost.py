"""CPU time of one launch."""

from svg import BLUE, GREY, MUTED, Picture, drawing, linear

from charts.bars import BAR, whisker
from charts.stored import Stored

LEFT, WIDTH, TOP, PITCH = 208, 390, 50, 28


@drawing
def launch_cost() -> Picture:
    stored = Stored("h200/launch.csv").rows
    first = next(row["kernel"] for row in stored if row["kernel"].startswith("hopper"))
    rows = [row for row in stored if row["kernel"] == first]
    bottom = TOP + PITCH * len(rows)
    p = Picture("What a launch costs on the CPU",
                "Microseconds of CPU time with Hopper's Tile128x256: 3.8 for a raw cudaLaunchKernelExC, 4.2 for a plan "
                "with operands it has seen, 5.9 for Gemm::launch.", height=bottom + 36)
    scale = linear(0, max(float(row["p90_ns"]) for row in rows) / 1e3, 0, WIDTH)
    p.text(16, 26, "CPU time of one launch, microseconds", size=13, bold=True)
    for index, row in enumerate(rows):
        y = TOP + PITCH * index
        median, low, high = (float(row[name]) / 1e3 for name in ("median_ns", "p10_ns", "p90_ns"))
        raw = row["launch"] == "cudaLaunchKernelExC"
        p.text(LEFT - 10, y + 11, row["launch"], size=11.5, anchor="end")
        p.rect(LEFT, y, scale(median), BAR, (GREY if raw else BLUE).mid, loose=True)
        whisker(p, LEFT + scale(low), LEFT + scale(high), y + BAR / 2)
        ratio = "" if raw else f", {float(row['ratio']):.2f} x"
        p.text(LEFT + scale(high) + 8, y + 11, f"{median:.2f}{ratio}", size=11)
    p.text(16, bottom + 16, "Medians of 200 samples of 256 launches. Thin lines: 10th to 90th percentile.", size=11,
           color=MUTED)
    return p
