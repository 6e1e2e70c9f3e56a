"""Speed of products with a fused epilogue against cuBLASLt's, as stored."""

from svg import INK, LINE, MUTED, Picture, drawing, linear

from charts.bars import BAR, FASTER, SLOWER
from charts.stored import Row, Stored, shape

TOP, PITCH = 80, 23
FIRST, PANEL, GAP = 118, 86, 10
EPILOGUES = {"none": "plain", "bias": "bias", "bias+relu": "bias, ReLU", "bias+gelu": "exact GELU",
             "bias+gelu_tanh": "tanh GELU",
             "residual": "beta * C"}
OURS, THEIRS = "tessera_automatic", "cublaslt_best_of_16"


def fused_products() -> dict[str, dict[str, dict[str, Row]]]:
    """Contenders by name, by epilogue, by shape: of the shapes for which the run had time for all epilogues."""
    result: dict[str, dict[str, dict[str, Row]]] = {}
    for row in Stored("h200/fused.csv").rows:
        result.setdefault(shape(row), {}).setdefault(row["epilogue"], {})[row["contender"]] = row
    return {name: rows for name, rows in result.items()
            if all({OURS, THEIRS} <= rows.get(epilogue, {}).keys() for epilogue in EPILOGUES)}


def fused_ratio(contenders: dict[str, Row]) -> float:
    return float(contenders[THEIRS]["median_us"]) / float(contenders[OURS]["median_us"])


@drawing
def speed_fused() -> Picture:
    products = fused_products()
    bottom = TOP + PITCH * len(products)
    p = Picture("Speed of fused epilogues against cuBLASLt on an H200",
                "Bars of speed ratios for six bf16 products. Plain products run at about the speed of cuBLASLt, with a "
                "bias, tanh GELU or a residual, too, with exact GELU slower.",
                height=bottom + 58)
    p.text(16, 26, "Speed of Gemm::launch relative to cuBLASLt with the same epilogue: bf16, one H200", size=13, bold=True)
    for index, (epilogue, title) in enumerate(EPILOGUES.items()):
        left = FIRST + index * (PANEL + GAP)
        scale = linear(0, 1.1, left, left + PANEL - 30)
        p.text(left, 52, title, size=11.5, bold=True)
        p.line((left, TOP - 6), (left, bottom - 4), color=LINE, width=1, loose=True)
        p.line((scale(1), TOP - 6), (scale(1), bottom - 4), color=LINE, width=1.4, loose=True)
        p.text(scale(1), TOP - 11, "1", size=11, anchor="middle", color=MUTED)
        for row, contenders in enumerate(products.values()):
            ratio = fused_ratio(contenders[epilogue])
            hue = FASTER if ratio >= 1 else SLOWER
            y = TOP + PITCH * row
            p.rect(left, y, scale(ratio) - left, BAR, hue.mid, loose=True)
            p.text(max(scale(ratio), scale(1)) + 4, y + 11, f"{ratio:.2f}", size=11, color=INK if ratio >= 1 else hue.dark,
                   bold=ratio < 1)
    for row, name in enumerate(products):
        p.text(FIRST - 8, TOP + PITCH * row + 11, name, size=11, anchor="end")
    p.legend(16, bottom + 16, [(FASTER.mid, "Tessera is faster"), (SLOWER.mid, "Tessera is slower")])
    p.text(16, bottom + 40, "Ratios of the medians of 3 rounds, automatic choice against cuBLASLt's best of 16.", size=11,
           color=MUTED)
    return p
