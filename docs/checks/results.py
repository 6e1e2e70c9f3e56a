#!/usr/bin/env python3
"""Writes the tables and sentences of the pages that come from the stored results (bench/results).

    results.py           writes them into the pages
    results.py --check   fails if a page says something else

A page marks each by a line `<!--results:NAME-->` before and a line `<!--end-->` after it.
"""

import re
import statistics
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "docs" / "pictures"))

from charts.scenarios import device, stored_scenarios, time_text  # noqa: E402
from charts.simt import ORDERS, RUNGS  # noqa: E402
from charts.speed_cublaslt import by_shape  # noqa: E402
from charts.speed_fused import fused_products, fused_ratio  # noqa: E402
from charts.stored import Row, Stored, geometric_mean, shape  # noqa: E402

PAGES = ["README.md", "docs/performance.md", "docs/scenarios.md", "docs/simt-ladder.md", "docs/limitations.md",
         "docs/notes/blackwell-kernel.md", "docs/notes/simt-kernels.md"]
LARGE = 1500  # a product is large if all of its extents are above this
MARKED = re.compile(r"(<!--results:([a-z0-9-]+)-->\n)(.*?)(<!--end-->)", re.DOTALL)

_makers: dict[str, Callable[[], str]] = {}


def maker(function: Callable[[], str]) -> Callable[[], str]:
    """Registers a function that makes the text of its own name, with dashes."""
    _makers[function.__name__.replace("_", "-")] = function
    return function


def table(titles: list[str], rows: list[list[str]]) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n" + "".join("| " + " | ".join(line) + " |\n" for line in lines).replace("| --- ", "|---").replace(
        "--- |\n", "---|\n") + "\n"


def paragraph(text: str) -> str:
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False) + "\n"


def teraflops(row: Row) -> str:
    value = float(row["gflops"]) / 1e3
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 else \
        f"{value:.2g}"


def ratio(ours: Row, theirs: Row) -> float:
    """How much faster ours is."""
    return float(theirs["median_us"]) / float(ours["median_us"])


# bf16 against cuBLASLt


class Ratios:
    """Speed ratios of the products of a list, by shape."""

    def __init__(self, ours: str, theirs: str):
        products = by_shape(Stored("h200/gemm.csv"))
        self.by_shape = {name: ratio(rows[ours], rows[theirs]) for name, rows in products.items()}
        self.all = sorted(self.by_shape.values())
        self.large = sorted(value for name, value in self.by_shape.items()
                            if all(int(extent) > LARGE for extent in name.split("x")))
        self.mean = geometric_mean(self.all)
        self.median = statistics.median(self.all)
        self.slower = sum(value < 1 for value in self.all)
        self.worst = min(self.by_shape, key=self.by_shape.__getitem__)


def automatic() -> Ratios:
    return Ratios("tessera_automatic", "cublaslt_heuristic")


def tuned() -> Ratios:
    return Ratios("tessera_tuned", "cublaslt_best_of_16")


@maker
def speed() -> str:
    """What the front page says."""
    first, best = automatic(), tuned()
    small = sorted(set(best.all) - set(best.large))
    if small[0] < 1:
        raise ValueError("a small product is slower: the sentence below must say so")
    return paragraph(
        f"[Measured on an H200](docs/performance.md), {len(first.all)} bf16 products run at {first.all[0]:.2f} to "
        f"{first.all[-1]:.2f} times the speed of cuBLASLt's own choice (median {first.median:.2f}); {first.slower} of them are "
        f"slower. Tuned, against the fastest that cuBLASLt proposes, they run at {best.all[0]:.2f} to {best.all[-1]:.2f} "
        f"(median {best.median:.2f}); {best.slower} are slower, all of them large (every extent above {LARGE}).")


@maker
def cublaslt() -> str:
    first, best = automatic(), tuned()
    rows = []
    for name, contenders in by_shape(Stored("h200/gemm.csv")).items():
        columns = ("tessera_automatic", "tessera_tuned", "cublaslt_heuristic", "cublaslt_best_of_16")
        rows.append([name, *(teraflops(contenders[column]) for column in columns),
                     f"{first.by_shape[name]:.3f}", f"{best.by_shape[name]:.3f}"])
    titles = ["MxNxK", "automatic", "tuned", "heuristic", "best", "automatic / heuristic", "tuned / best"]
    rows.append(["geometric mean", "", "", "", "", f"**{first.mean:.3f}**", f"**{best.mean:.3f}**"])
    rows.append(["worst", "", "", "", "", f"**{first.all[0]:.3f}**", f"**{best.all[0]:.3f}**"])
    return table(titles, rows) + paragraph(
        f"Automatic is slower in {first.slower} of the {len(first.all)} products, tuned in {best.slower}. The "
        f"{len(first.large)} products whose extents are all above {LARGE} run at {first.large[0]:.3f} to "
        f"{first.large[-1]:.3f} and {best.large[0]:.3f} to {best.large[-1]:.3f}.")


@maker
def scenarios() -> str:
    document = stored_scenarios()
    if any(scenario["outcome"] not in ("agrees", "skipped") for scenario in document["scenarios"]):
        raise ValueError("a scenario is wrong or failed")
    rows = []
    for scenario in document["scenarios"]:
        name = f"{scenario['number']} `{scenario['name']}`"
        if scenario["outcome"] == "skipped":
            rows.append([name, "skipped", "", "", scenario["reason"]])
        else:
            entries = [time_text(scenario[entry]["median_seconds"]) for entry in ("baseline", "optimized")]
            rows.append([name, *entries, f"{scenario['speedup']:.2f}", scenario["work"]])
    facts = document["environment"]
    return (f"One {device(document)}, {facts['date'][:10]}, CUDA {facts['CUDA runtime']}, {facts['CPU'].split(', ')[-1]} of the host; `tessera-scenarios "
            "run --full`:\n" + table(["", "baseline", "optimized", "times as fast", "the job"], rows))


def three_digits(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def figures_of(name: str) -> dict[str, str]:
    """What a scenario measured besides its times, with the units."""
    scenario = next(one for one in stored_scenarios()["scenarios"] if one["name"] == name)
    return {figure["name"]: f"{three_digits(figure['value'])} {figure['unit']}".strip() for figure in scenario["figures"]}


@maker
def scenario_figures() -> str:
    names = ("transfers", "clusters", "npy-streaming", "ladder", "graphs", "compilation")
    return table(["", "", ""], [[f"`{name}`", figure, value] for name in names for figure, value in figures_of(name).items()])


@maker
def scenario_errors() -> str:
    """The table of low precision: a row for each way to multiply."""
    figures = figures_of("low-precision")
    errors = [figure.removesuffix(": largest error") for figure in figures if figure.endswith(": largest error")]
    return table(["", "speed", "root mean square error", "largest error"],
                 [[name, figures.get(name, ""), figures[f"{name}: root mean square error"], figures[f"{name}: largest error"]]
                  for name in errors])


FUSED = {"bias": "bias", "bias+relu": "bias, ReLU", "bias+gelu": "bias, exact GELU", "bias+gelu_tanh": "bias, GELU with tanh",
         "residual": "beta * C"}
UNMATCHED = {"bias+silu": "bias, SiLU", "swiglu": "SwiGLU"}  # a kernel behind cuBLASLt's product


class Fused:
    """Speed ratios with a fused epilogue."""

    def __init__(self) -> None:
        products = fused_products()
        self.shapes = len(products)
        self.by_case = {(name, epilogue): fused_ratio(contenders) for name, rows in products.items()
                        for epilogue, contenders in rows.items() if epilogue != "none"}
        self.all = sorted(ratio for (_, epilogue), ratio in self.by_case.items() if epilogue in FUSED)
        self.slower = sum(ratio < 1 for ratio in self.all)
        if min(map(self.mean, ("bias", "bias+relu", "bias+gelu_tanh", "residual"))) < 1 or self.mean("bias+gelu") >= 1:
            raise ValueError("docs/performance.md and the chart say which epilogues are slower than cuBLASLt's: others are")
        if self.all[0] != self.least("bias+gelu") or any(self.mean(name) < self.mean("bias+gelu") for name in FUSED):
            raise ValueError("docs/limitations.md says that those with exact GELU are the slowest: others are")

    def of(self, epilogue: str) -> dict[str, float]:
        """Ratios by shape."""
        return {shape: ratio for (shape, found), ratio in self.by_case.items() if found == epilogue}

    def mean(self, epilogue: str) -> float:
        return geometric_mean(self.of(epilogue).values())

    def least(self, epilogue: str) -> float:
        return min(self.of(epilogue).values())


@maker
def fused_speed() -> str:
    """What the front page says."""
    fused = Fused()
    return paragraph(f"These are plain products. With a fused bias, activation or residual, measured on {fused.shapes} shapes, "
                     f"{fused.slower} of {len(fused.all)} are slower than cuBLASLt's fused kernels: {fused.all[0]:.2f} to {fused.all[-1]:.2f} of their speed, {geometric_mean(fused.all):.2f} "
                     f"on average; with a bias alone {fused.mean('bias'):.2f} on average, at least {fused.least('bias'):.2f}; with exact "
                     f"GELU {fused.mean('bias+gelu'):.2f}, at least {fused.least('bias+gelu'):.2f}. No Blackwell GPU has run the kernels yet.")


@maker
def fused() -> str:
    return fused_table("h200/fused.csv")


@maker
def fused_h100() -> str:
    return fused_table("h100/fused.csv")


def fused_table(file: str) -> str:
    """By epilogue, then all of them together, the plain product among them."""
    contenders: dict[str, dict[str, dict[str, Row]]] = {}
    for row in Stored(file).rows:
        contenders.setdefault(row["epilogue"], {}).setdefault(shape(row), {})[row["contender"]] = row
    ratios = {epilogue: {name: fused_ratio(rows) for name, rows in products.items()}
              for epilogue, products in contenders.items()}
    lines = []
    for epilogue, name in (FUSED | UNMATCHED | {"none": "plain"}).items():
        worst = min(ratios[epilogue], key=ratios[epilogue].__getitem__)
        lines.append([name, f"{geometric_mean(ratios[epilogue].values()):.3f}", f"{ratios[epilogue][worst]:.3f}", worst])
    everything = sorted(ratio for products in ratios.values() for ratio in products.values())
    slow = sum(ratio < 0.93 for ratio in everything)
    return table(["", "geometric mean", "worst", "at"], lines) + paragraph(
        f"All {len(everything)} together: {geometric_mean(everything):.3f}, worst {everything[0]:.3f}; {slow} of them {'is' if slow == 1 else 'are'} below 0.93.")


@maker
def other_shapes() -> str:
    """The lists of layers and of random products."""
    cells = []
    for name, file, chosen in (("layers of models, bf16", "h200/models.csv", lambda row: True),
                               ("random, TMA can address A and B", "h200/random.csv", lambda row: row["padding"] == "0"),
                               ("random, it cannot", "h200/random.csv", lambda row: row["padding"] != "0")):
        products: dict[tuple[str, ...], dict[str, Row]] = {}
        for row in Stored(file).rows:
            if chosen(row) and row["outcome"] == "right":
                key = tuple(row[part] for part in ("m", "n", "k", "input", "orders", "padding", "layer"))
                products.setdefault(key, {})[row["contender"]] = row
        ratios = sorted(ratio(rows["tessera_automatic"], rows["cublaslt_best_of_16"]) for rows in products.values())
        cells.append([name, str(len(ratios)), f"{geometric_mean(ratios):.3f}", f"{ratios[len(ratios) // 2]:.3f}",
                      f"{ratios[len(ratios) // 10]:.3f}", f"{ratios[0]:.3f}", str(sum(value < 0.9 for value in ratios))])
    return table(["automatic / best", "products", "geometric mean", "median", "p10", "worst", "below 0.90"], cells)


@maker
def eight_bit() -> str:
    """8-bit products in both ways to accumulate."""
    return eight_bit_table("h200/fp8.csv")


@maker
def eight_bit_h100() -> str:
    return eight_bit_table("h100/fp8.csv")


def eight_bit_table(file: str) -> str:
    lines: dict[str, dict[str, dict[str, Row]]] = {}
    for row in Stored(file).rows:
        lines.setdefault(shape(row), {}).setdefault(row["fp8_accumulation"], {})[row["contender"]] = row
    cells = []
    for name, ways in lines.items():
        cells.append([name])
        for way in ("two-level", "fast"):
            ours, best = ways[way]["tessera_automatic"], ways[way]["cublaslt_best_of_16"]
            cells[-1] += [teraflops(ours), teraflops(best), f"{ratio(ours, best):.3f}"]
    return table(["e4m3 to bf16", "default", "best", "ratio", "fast", "best", "ratio"], cells)


@maker
def limits() -> str:
    """The measured limits, as a list."""
    first = automatic()
    cube = "4096x4096x4096"
    on_cuda_cores = by_shape(Stored("h200/simt.csv"))[cube]["simt_register_blocked"]
    on_tensor_cores = by_shape(Stored("h200/gemm.csv"))[cube]["tessera_automatic"]
    skinny = simt_ratios()["64x4096x4096"]
    fused = Fused()
    items = [
        f"Without tensor cores: `f32` everywhere, `bf16` and `tf32` on 7.5, `f8` below 8.9. At 4096 cubed an H200's "
        f"CUDA cores do {float(on_cuda_cores['gflops']) / 1e3:.0f} TFLOP/s in `f32`, its tensor cores "
        f"{float(on_tensor_cores['gflops']) / 1e3:.0f} in `bf16`.",
        f"{first.slower} of the {len(first.all)} products that are compared are slower than cuBLASLt's own choice, down to "
        f"{first.all[0]:.2f}.",
        f"SIMT kernels do not split K: {skinny:.2f} of cuBLAS at 64x4096x4096.",
        f"Products with a fused epilogue (bias, activation, beta) run at {fused.all[0]:.2f} to {fused.all[-1]:.2f} of "
        f"cuBLASLt's speed on an H200 in {fused.shapes} shapes; those with exact GELU, which cuBLASLt lacks, are the slowest."]
    return "\n" + "".join(textwrap.fill(item, 120, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False,
                                        break_long_words=False) + "\n" for item in items)


# Other types, storage orders and alignments

OTHER = {  # by input, orders, padding
    ("f8e4m3", "rc", "0"): "e4m3 to bf16, fast accumulation",
    ("bf16", "rc", "0"): "bf16, row, column",
    ("bf16", "rr", "0"): "bf16, row, row",
    ("bf16", "cc", "0"): "bf16, column, column",
    ("bf16", "cr", "0"): "bf16, column, row",
    ("bf16", "rc", "1"): "bf16, leading dimensions of 4097",
}


@maker
def other_types() -> str:
    found: list[tuple[str, str, dict[str, Row]]] = []
    for row in Stored("h200/gemm-other.csv").rows:
        if row["contender"] == "tessera_automatic":
            name = OTHER[row["input"], row["orders"], row["padding"]]
            found.append((name, shape(row), {}))
        found[-1][2][row["contender"]] = row
    lines = []
    for name, extents, rows in found:
        ours, best = rows["tessera_automatic"], rows["cublaslt_best_of_16"]
        title = name if extents == "4096x4096x4096" else f"{name}, {extents.split('x')[0]} cubed"
        title += " (again)" if any(line[0] == title for line in lines) else ""
        lines.append([title, teraflops(ours), teraflops(best), f"{ratio(ours, best):.3f}"])
    return table(["", "automatic", "best", "ratio"], lines)


# The SIMT ladder


def against_cublas(row: Row) -> str:
    return f"{teraflops(row)} ({float(row['ratio']):.3f})"


@maker
def simt() -> str:
    columns = ["cpu_plain_loop", "cpu_openblas", *RUNGS]
    lines = []
    for name, rows in by_shape(Stored("h200/simt.csv")).items():
        cells = [teraflops(rows[column]) if rows[column]["gflops"] else "-" for column in columns[:2]]
        cells += [against_cublas(rows[column]) for column in RUNGS]
        lines.append([name, *cells, teraflops(rows["cublas_fp32_pedantic"])])
    return table(["MxNxK", *(f"`{column}`" for column in columns), "cuBLAS"], lines)


def simt_ratios() -> dict[str, float]:
    """Speed of the ladder's last configuration relative to cuBLAS, by shape."""
    return {name: ratio(rows["simt_register_blocked"], rows["cublas_fp32_pedantic"])
            for name, rows in by_shape(Stored("h200/simt.csv")).items()}


@maker
def simt_summary() -> str:
    ratios = simt_ratios()
    worst = min(ratios, key=ratios.__getitem__)
    others = sorted(value for name, value in ratios.items() if name != worst)
    return paragraph(f"`simt_register_blocked` runs at {others[0]:.2f} to {others[-1]:.2f} of cuBLAS in true fp32, except at "
                     f"**{worst}: {ratios[worst]:.2f}**. There are too few tiles to fill the chip, and no SIMT kernel "
                     "splits K.")


@maker
def simt_orders() -> str:
    rows = {(row["contender"], row["orders"]): row for row in Stored("h200/simt-orders.csv").rows}
    lines = [[f"`{rung}`", *(against_cublas(rows[rung, order]) for order in ORDERS)] for rung in RUNGS]
    lines.append(["cuBLAS", *(teraflops(rows["cublas_fp32_pedantic", order]) for order in ORDERS)])
    return table(["", *ORDERS.values()], lines)


@maker
def launch() -> str:
    rows = Stored("h200/launch.csv").rows
    kernels = {row["kernel"] for row in rows}
    lines = []
    for way in ("Gemm::launch", "GemmPlan::launch, first", "GemmPlan::launch, seen"):
        ratios = sorted(float(row["ratio"]) for row in rows if row["launch"] == way)
        lines.append([f"`{way.split(',')[0]}`{way.removeprefix(way.split(',')[0])}", f"{statistics.median(ratios):.2f}",
                      f"{ratios[-1]:.2f}"])
    allocations = sum(float(row["heap_allocations"]) for row in rows)
    return table(["times a raw launch", "median", "worst"], lines) + paragraph(
        f"{len(kernels)} kernels: one SIMT kernel, and Hopper's configurations of each kind. "
        f"{'No launch allocates' if allocations == 0 else 'Launches allocate'} heap memory.")


# The Blackwell ladder's counts


def with_least(row: Row, name: str, unit: int = 1) -> str:
    return f"{int(row[name]) / unit:g} ({int(row[name + '_least']) / unit:g})"


@maker
def ladder() -> str:
    titles = ["Configuration", "Tile of a cluster", "Stages", "CTAs that ran", "MiB read by TMA",
              "MiB brought to shared memory", "MiB stored by TMA", "MMAs", "Barrier waits", "Stalls",
              "Warp instructions", "Loads and MMAs in flight", "Epilogue and MMAs in flight"]
    mebibyte = 1 << 20
    return table(titles, [
        [f"`{row['name']}`", f"{row['tile_m']}x{row['tile_n']}", row["stages"], row["ctas"],
         with_least(row, "tma_read_bytes", mebibyte), with_least(row, "shared_bytes", mebibyte),
         with_least(row, "tma_store_bytes", mebibyte), with_least(row, "mmas"), with_least(row, "barrier_waits"),
         row["stalls"], row["warp_instructions"], f"{100 * float(row['loads_and_mmas']):.0f} %",
         f"{100 * float(row['epilogue_and_mmas']):.0f} %"]
        for row in Stored("emulated-b200/ladder.csv").rows])


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    findings: list[str] = []
    used: set[str] = set()
    for name in PAGES:
        page = ROOT / name
        text = page.read_text(encoding="utf-8")

        marked = {match[2] for match in MARKED.finditer(text)}
        findings += [f"{name}: nothing makes \"{maker_name}\"" for maker_name in sorted(marked - _makers.keys())]
        used |= marked
        new = MARKED.sub(lambda match: match[1] + _makers[match[2]]() + match[4] if match[2] in _makers else match[0], text)
        if new != text and arguments:
            wrong = [line for line in new.splitlines() if line not in text.splitlines()]
            findings.append(f"{name} does not say what bench/results does; run docs/checks/results.py. It would say:\n" +
                            "\n".join(wrong[:5]))
        elif new != text:
            page.write_text(new, encoding="utf-8")
    findings += [f"no page has \"{name}\"" for name in _makers if name not in used]
    for finding in findings:
        print(finding, file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
