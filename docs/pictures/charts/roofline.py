"""Attained TFLOP/s against arithmetic intensity, under the limits of the data sheet."""

from svg import BLUE, FAINT, INK, LINE, MUTED, ORANGE, Picture, drawing, logarithmic

from charts.speed_cublaslt import by_shape
from charts.stored import Row, Stored

PEAK = 989.5  # TFLOP/s of bf16 without sparsity, NVIDIA's data sheet for the H200 SXM
BANDWIDTH = 4.8  # TB/s, likewise
LEFT, RIGHT, TOP, BOTTOM = 64, 684, 60, 372
X_LOW, X_HIGH, Y_LOW, Y_HIGH = 8, 16384, 40, 1400
# Where a label is relative to its point: dx, dy, anchor.
LABELS = {
    "16x14336x4096": (9, 4, "start"),
    "64x4096x4096": (9, 14, "start"),
    "4096x4096x64": (9, -1, "start"),
    "128x8192x8192": (9, 3, "start"),
    "256x256x65536": (20, 20, "middle"),
    "1000x1000x1000": (9, 12, "start"),
    "1024x1024x1024": (10, -1, "start"),
    "2048x2048x2048": (-10, -12, "middle"),
    "16384x16384x16384": (4, 24, "middle"),
}


def intensity(row: Row) -> float:
    """Floating-point operations for each byte, when A, B and D move once."""
    m, n, k = (int(row[extent]) for extent in "mnk")
    element = 2  # bytes of a bf16
    return 2 * m * n * k / (element * (m * k + k * n + m * n))


@drawing
def roofline() -> Picture:
    products = by_shape(Stored("h200/gemm.csv"))
    p = Picture("Roofline of fifteen products on an H200",
                "Speed against arithmetic intensity on logarithmic axes. Skinny products lie just under the memory roof "
                "of 4.8 TB/s. Large products are level at about 680 TFLOP/s, two thirds of the peak of 989, where the "
                "power limit holds them.", height=440)
    x = logarithmic(X_LOW, X_HIGH, LEFT, RIGHT)
    y = logarithmic(Y_LOW, Y_HIGH, BOTTOM, TOP)
    p.text(16, 26, "Attained speed and the limits of an H200: bf16", size=13, bold=True)
    p.text(16, 46, "TFLOP/s", size=11, color=MUTED)
    for tick in (50, 100, 200, 500, 1000):
        p.line((LEFT, y(tick)), (RIGHT, y(tick)), color=FAINT, width=1, loose=True)
        p.text(LEFT - 8, y(tick) + 4, str(tick), size=11, color=MUTED, anchor="end")
    for tick in (10, 30, 100, 300, 1000, 3000, 10000):
        p.line((x(tick), TOP), (x(tick), BOTTOM), color=FAINT, width=1, loose=True)
        p.text(x(tick), BOTTOM + 16, str(tick), size=11, color=MUTED, anchor="middle")
    p.text((LEFT + RIGHT) / 2, BOTTOM + 34, "floating-point operations per byte, if A, B and D move once", size=11,
           color=MUTED, anchor="middle")
    ridge = PEAK / BANDWIDTH
    p.line((x(Y_LOW / BANDWIDTH), y(Y_LOW)), (x(ridge), y(PEAK)), (RIGHT, y(PEAK)), color=LINE, width=2, bend=0,
           loose=True)
    p.text(RIGHT, y(PEAK) - 8, "data sheet: 989 TFLOP/s, at a clock that the power limit does not allow", size=11, anchor="end")
    p.text(x(32), y(105), f"data sheet: {BANDWIDTH} TB/s", size=11)
    for rows in products.values():
        theirs, ours = rows["cublaslt_heuristic"], rows["tessera_automatic"]
        p.circle((x(intensity(theirs)), y(float(theirs["gflops"]) / 1e3)), 5, ORANGE.mid, ORANGE.dark)
        p.circle((x(intensity(ours)), y(float(ours["gflops"]) / 1e3)), 4, BLUE.mid, BLUE.dark)
    for name, (dx, dy, anchor) in LABELS.items():
        row = products[name]["tessera_automatic"]
        p.text(x(intensity(row)) + dx, y(float(row["gflops"]) / 1e3) + dy, name, size=11, color=INK, anchor=anchor)
    p.legend(16, 424, [(BLUE.mid, "Gemm::launch, automatic"), (ORANGE.mid, "cuBLASLt's first proposal")])
    return p
