"""Speed of Gemm::launch against cuBLASLt by shape, as stored."""

from svg import MUTED, Picture, drawing, linear

from charts.bars import FASTER, SLOWER, Ratio, axis, percentile, ratio_bar
from charts.stored import Row, Stored, shape

TOP, PITCH = 84, 21
PANELS = ((150, 408), (430, 688))  # x of the ends of each axis
LOWEST, HIGHEST = 0.85, 1.43
TICKS = (0.9, 1.0, 1.1, 1.2, 1.3)


def ratio_of(ours: Row, theirs: Row) -> Ratio:
    """How much faster ours is. Samples of one round are neighbours in time, so their ratios are compared round by round."""
    pairs = list(zip(seconds(ours), seconds(theirs)))
    rounds = [their / our for our, their in pairs]
    return Ratio(float(theirs["median_us"]) / float(ours["median_us"]), percentile(rounds, 0.1), percentile(rounds, 0.9))


def seconds(row: Row) -> list[float]:
    return [float(sample) for sample in row["samples_us"].split(";")]


def by_shape(stored: Stored) -> dict[str, dict[str, Row]]:
    """Contenders by name, by shape, in the order of the file."""
    result: dict[str, dict[str, Row]] = {}
    for row in stored.rows:
        result.setdefault(shape(row), {})[row["contender"]] = row
    return result


@drawing
def speed_cublaslt() -> Picture:
    products = by_shape(Stored("h200/gemm.csv"))
    bottom = TOP + PITCH * len(products)
    p = Picture("Speed against cuBLASLt on an H200",
                "Bars of speed ratios for fifteen bf16 products, left the automatic choice against cuBLASLt's first "
                "proposal, right the tuned choice against the best of its proposals. Bars to the left of 1 are "
                "products where Tessera is slower.", height=bottom + 58)
    p.text(16, 26, "Speed of Gemm::launch relative to cuBLASLt: bf16, one H200", size=13, bold=True)
    titles = ("automatic / cuBLASLt's first proposal", "tuned / best of cuBLASLt's proposals")
    contenders = (("tessera_automatic", "cublaslt_heuristic"), ("tessera_tuned", "cublaslt_best_of_16"))
    for (left, right), title, (ours, theirs) in zip(PANELS, titles, contenders):
        scale = linear(LOWEST, HIGHEST, left, right)
        p.text((left + right) / 2, 52, title, size=11.5, anchor="middle", bold=True)
        axis(p, scale, TICKS, TOP - 6, bottom, "{:.1f}", marked=1.0)
        for index, rows in enumerate(products.values()):
            ratio_bar(p, scale, TOP + PITCH * index, ratio_of(rows[ours], rows[theirs]))
    for index, name in enumerate(products):
        p.text(PANELS[0][0] - 6, TOP + PITCH * index + 11, name, size=11, anchor="end")
    p.legend(16, bottom + 20, [(FASTER.mid, "Tessera is faster"), (SLOWER.mid, "Tessera is slower")])
    p.text(16, bottom + 44, "Bars: ratio of the medians of 8 rounds. Thin lines: 10th to 90th percentile of the rounds.",
           size=11, color=MUTED)
    return p
