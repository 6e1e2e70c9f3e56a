"""The SIMT ladder's speed: by rung, by shape and by storage order."""

from svg import BLUE, GREEN, GREY, MUTED, Picture, drawing, linear

from charts.bars import Ratio, axis, bars, ratio_bar
from charts.speed_cublaslt import by_shape, ratio_of
from charts.stored import Row, Stored

PITCH = 23
RUNGS = ("simt_naive", "simt_tiled", "simt_vectorized", "simt_coarsened", "simt_register_blocked")
ORDERS = {"rr": "A row, B row", "rc": "A row, B column", "cr": "A column, B row", "cc": "A column, B column"}


def teraflops(row: Row) -> float:
    return float(row["gflops"]) / 1e3


def bar_of(row: Row, name: str, fill: str) -> tuple[str, float, str, str]:
    value = teraflops(row)
    return name, value, f"{value:.1f}" if value >= 1 else f"{value:.2f}", fill


@drawing
def simt_ladder() -> Picture:
    products = by_shape(Stored("h200/simt.csv"))
    cube = products["4096x4096x4096"]
    top = 66
    p = Picture("The SIMT ladder on an H200",
                "Left: TFLOP/s at 4096 cubed, from 3 for the naive kernel to 48 for the register-blocked one, beside "
                "cuBLAS with 51. Right: the register-blocked kernel relative to cuBLAS for nine shapes, from 0.53 to "
                "1.08.", height=top + PITCH * len(products) + 50)
    p.text(16, 26, "The SIMT ladder, and register_blocked by shape: f32 on CUDA cores, one H200", size=13, bold=True)
    p.text(130, 52, "TFLOP/s, 4096x4096x4096", size=11.5, bold=True)
    rows = [bar_of(cube["cpu_openblas"], "OpenBLAS", GREY.mid)]
    rows += [bar_of(cube[rung], rung.removeprefix("simt_"), BLUE.mid) for rung in RUNGS]
    rows += [bar_of(cube["cublas_fp32_pedantic"], "cuBLAS", GREEN.mid)]
    bars(p, 130, top, 180, PITCH, rows, max(row[1] for row in rows))
    left, right = 484, 664
    scale = linear(0.45, 1.15, left, right)
    p.text(left - 14, 52, "relative to cuBLAS", size=11.5, bold=True, anchor="end")
    bottom = top + PITCH * len(products)
    axis(p, scale, (0.6, 0.8, 1.0), top - 6, bottom, "{:.1f}", marked=1.0)
    for index, (name, contenders) in enumerate(products.items()):
        ratio = ratio_of(contenders["simt_register_blocked"], contenders["cublas_fp32_pedantic"])
        y = top + PITCH * index
        p.text(left - 14, y + 11, name, size=11, anchor="end")
        ratio_bar(p, scale, y, Ratio(ratio.value, ratio.value, ratio.value))
    p.text(16, bottom + 28, "Medians of 20 rounds. cuBLAS: CUBLAS_COMPUTE_32F_PEDANTIC. OpenBLAS: 16 threads of a Xeon.",
           size=11, color=MUTED)
    return p


@drawing
def storage_orders() -> Picture:
    orders: dict[str, dict[str, Row]] = {}
    for row in Stored("h200/simt-orders.csv").rows:
        orders.setdefault(row["orders"], {})[row["contender"]] = row
    contenders = {rung: (rung.removeprefix("simt_"), BLUE.mid) for rung in RUNGS}
    contenders["cublas_fp32_pedantic"] = ("cuBLAS", GREEN.mid)
    highest = max(teraflops(rows[name]) for rows in orders.values() for name in contenders)
    top, height = 74, PITCH * len(contenders)
    p = Picture("Storage orders on the SIMT ladder",
                "TFLOP/s of five kernels and cuBLAS for four storage orders of A and B. All but the naive kernel are "
                "nearly independent of the order; the naive one drops from 3.1 to 0.9 with a column-major B.",
                height=2 * (height + 50) + 68)
    p.text(16, 26, "Storage orders: f32, 4096x4096x4096, TFLOP/s, one H200", size=13, bold=True)
    for index, (order, title) in enumerate(ORDERS.items()):
        left, y = 130 + index % 2 * 330, top + index // 2 * (height + 50)
        p.text(left, y - 14, title, size=11.5, bold=True)
        rows = []
        for name, (label, fill) in contenders.items():
            rows.append(bar_of(orders[order][name], label if index % 2 == 0 else "", fill))
        bars(p, left, y, 190, PITCH, rows, highest)
    p.text(16, 2 * (height + 50) + 52, "Row and column stand for row-major and column-major. D is row-major.", size=11,
           color=MUTED)
    return p
