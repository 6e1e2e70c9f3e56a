#!/usr/bin/env python3
"""Fits the constants of the Hopper cost model to measured times, and reports what its choice loses.

    tessera-bench gemm models random --variant none --peers none --config "" --sample 3 --candidates candidates.csv
    fit_chooser.py candidates.csv              # loss with the constants as they are
    fit_chooser.py candidates.csv --passes 4   # and with fitted ones, which are printed

The model is the one of sdk/src/gemm/hopper/hopper_cycles.cpp, written a second time: every run first checks that both
expect the same cycles, and stops if they do not. The constants are read from that file. They are
fitted to the rows of the split `fit`; the loss on `held-out` is the one to believe.

The loss of a problem is the time of the best candidate divided by the time of the model's choice.
"""

import argparse
import csv
import math
import re
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "sdk/src/gemm/hopper/hopper_cycles.cpp"
# Given by the architecture, or of kernels and epilogues that a list may lack: not fitted unless they are named.
FIXED = {"shared_memory_bytes_per_cycle", "fused_output_cycles", "activation_output_cycles", "other_output_cycles",
         "other_activation_output_cycles", "crowded_output_cycles", "general_activation_output_cycles", "copied_bytes_per_cycle",
         "repack_cycles"}
TEXTS = {"problem", "split", "config", "activation"}
ERROR_WEIGHT = 0.05  # of the predicted times' error beside the loss: it keeps constants apart that no choice shows
DISAGREEMENT = 1e-6  # relative; the file has nine digits


def constants_of(source: Path) -> dict[str, float]:
    pattern = re.compile(r"^constexpr double (\w+) = ([0-9.e+-]+);", re.MULTILINE)
    return {name: float(value) for name, value in pattern.findall(source.read_text(encoding="utf-8"))}


def divide_up(value: float, by: float) -> float:
    return float(int((value + by - 1) / by))


def loads_straddle(row: dict, of_a: bool) -> bool:
    """Whether rows of the kernel's A (or B) begin inside a sector. Operands of the benchmark are aligned to one."""
    row_bytes = row["a_row_bytes" if of_a != bool(row["swapped"]) else "b_row_bytes"]
    return not row["a_by_threads" if of_a else "b_by_threads"] and row_bytes % 32 != 0


def stage_cycles(row: dict, c: dict[str, float], beside: float, in_step: bool) -> float:
    rows, columns = row["tile_m"], row["tile_n"]

    def block_cycles(width: float) -> float:
        return 4 * max(width / 2, (64 + width) * 32 / c["shared_memory_bytes_per_cycle"])

    loaded_rows, loaded_columns = min(rows, row["m"]), min(columns, row["n"])
    reads = rows / 64 * (64 + columns) * 128 / c["shared_memory_bytes_per_cycle"]
    writes = (loaded_rows + loaded_columns) * 128 / c["shared_memory_bytes_per_cycle"]
    tensor = max(rows / 64 * 2 * columns, reads + c["written_share"] * writes)
    promoted = 0.0
    if row["two_level_columns"] > 0:
        part = block_cycles(row["two_level_columns"])
        parts = rows / 64 * columns / row["two_level_columns"]
        together = row["consumers"] > 1 and not row["ping_pong"]
        contended = together or beside > 1
        both = part + c["promotion_cycles"] + (part * part / (part + c["promotion_cycles"]) if contended else 0)
        promoted = max(parts * part, parts * both / (row["consumers"] if together else 1))
    a_bytes = 128 * loaded_rows
    b_bytes = 128 * loaded_columns

    def asked_rate(of_a: bool) -> float:
        if loads_straddle(row, of_a):
            return c["straddled_bytes_per_cycle"]
        shared = row["cluster_n" if of_a else "cluster_m"] > 1
        return c["multicast_bytes_per_cycle"] if shared else c["ingest_bytes_per_cycle"]

    loads = (a_bytes + b_bytes) / c["ingest_bytes_per_cycle" if in_step else "ingest_bytes_out_of_step"]

    def straddled_lines(of_a: bool) -> float:
        k_major, extent = row["a_k_major" if of_a else "b_k_major"], loaded_rows if of_a else loaded_columns
        if k_major or not loads_straddle(row, of_a):
            return 0
        lines = row["block_k"] * divide_up(extent, 128 / row["input_bytes"])
        return lines * (1 + 1 / row["cluster_n" if of_a else "cluster_m"]) / 2

    lines = straddled_lines(True) + straddled_lines(False)
    asked = a_bytes / row["cluster_n"] / asked_rate(True) + b_bytes / row["cluster_m"] / asked_rate(False)
    copied = (rows if row["a_by_threads"] else 0) + (columns if row["b_by_threads"] else 0)
    copies = copied * 128 / c["copied_bytes_per_cycle"] if row["copies"] else 0
    alone = max(c["consumer_stage_cycles"] / row["stages_in_turn"], c["latency_cycles"] / row["stages"], asked, promoted)
    return max(alone, max(tensor, loads, copies, lines * c["straddled_line_cycles"]) * beside)


def stored_share(row: dict) -> float:
    """Columns of D per column of A * B."""
    return 0.5 if row["gated"] else 1


def consumer_accumulators(row: dict) -> float:
    shared = not row["ping_pong"] and row["stages_in_turn"] == 1
    return row["tile_m"] / (row["consumers"] if shared else 1) * row["tile_n"] / 128


def has_own_epilogue(row: dict) -> bool:
    if row["copies"] or row["input_bytes"] == 4 or row["output_bytes"] != 2:
        return False
    streams_parts = consumer_accumulators(row) <= 128
    if row["gated"]:
        return streams_parts and row["activation"] == "silu"
    if row["has_c"]:
        return row["stages_in_turn"] == 1 and row["activation"] == "none"
    return row["activation"] in ("none", "relu", "gelu_tanh") or (row["activation"] in ("gelu", "silu") and streams_parts)


def row_cycles(row: dict, c: dict[str, float], shared: bool) -> float:
    columns = row["tile_n"]
    activated = 0 if row["activation"] in ("none", "relu") else stored_share(row)
    if row["swapped"]:
        general_row = 0 if shared else c["general_row_cycles"]
        return c["epilogue_row_cycles"] + general_row + min(columns, row["n"]) * (
            c["general_output_cycles"] + activated * c["general_activation_output_cycles"])
    if not row["fused"]:
        return c["epilogue_row_cycles"] + columns * c["epilogue_output_cycles"]
    if has_own_epilogue(row):
        return c["epilogue_row_cycles"] + columns * (
            c["epilogue_output_cycles"] + c["fused_output_cycles"] + activated * c["activation_output_cycles"])
    crowded = c["crowded_output_cycles"] if consumer_accumulators(row) > 128 else 0
    return c["epilogue_row_cycles"] + columns * (
        c["other_output_cycles"] + crowded + activated * c["other_activation_output_cycles"])


def memory_cycles(row: dict, c: dict[str, float], sms: float, in_step: bool) -> float:
    m, n = row["m"], row["n"]
    down = divide_up(m, row["tile_m"] * row["cluster_m"])
    across = divide_up(n, row["tile_n"] * row["cluster_n"])
    row_bytes = row["batches"] * row["k"] * row["input_bytes"]
    d_bytes = row["batches"] * m * n * stored_share(row) * row["output_bytes"] * (1 + row["has_c"])
    share = c["small_operand_share"]
    repeated = max(m * (across - 1) * (share if m < n else 1), n * (down - 1) * (share if n < m else 1))
    matrix_row_bytes = row_bytes / row["batches"]
    keeps_all = in_step or (m + n) * matrix_row_bytes <= row["l2_bytes"]

    def reads(extent: float, times: float, of_a: bool) -> float:
        if keeps_all or extent * matrix_row_bytes <= row["l2_bytes"] / 4:
            return extent * row_bytes
        along_k = row["a_k_major" if of_a else "b_k_major"]
        return extent * row_bytes * times * (2 if not along_k and loads_straddle(row, of_a) else 1)

    def pauses(extent: float, read: float, k_major: float) -> float:
        return 0 if k_major or read >= extent else extent * row_bytes * c["piece_bytes"] / (read * row["input_bytes"])

    rate = min(c["memory_bytes_per_cycle"], sms * c["sm_memory_bytes_per_cycle"])
    read_bytes = (reads(m, across, True) + reads(n, down, False) + d_bytes +
                  pauses(m, row["tile_m"] * row["cluster_m"], row["a_k_major"]) +
                  pauses(n, row["tile_n"] * row["cluster_n"], row["b_k_major"]))
    return read_bytes / rate + repeated * row_bytes / c["repeated_bytes_per_cycle"]


def expected_cycles(row: dict, c: dict[str, float]) -> float:
    rows, columns, clusters, layers = row["tile_m"], row["tile_n"], row["clusters"], row["cluster_k"]
    down = divide_up(row["m"], rows * row["cluster_m"])
    across = divide_up(row["n"], columns * row["cluster_n"])
    tiles = down * across * row["batches"]
    stages = max(divide_up(row["k"], row["block_k"] * row["stages_in_turn"]), 1) * row["stages_in_turn"]
    layer_size = row["cluster_m"] * row["cluster_n"]
    cluster_size = layer_size * layers
    shares_tiles = bool(row["stream_k"]) and tiles % clusters != 0

    waves = divide_up(clusters, row["slots"])
    beside = min(divide_up(clusters, row["slots"] / row["ctas"]), row["ctas"])
    units = waves * (max(1.0, tiles / clusters) if shares_tiles else divide_up(tiles, clusters))
    all_stages = (waves * divide_up(stages * tiles / clusters, layers) if shares_tiles
                  else units * divide_up(stages, layers))
    in_step = not row["has_c"] or cluster_size > 1 or units <= 1
    loop = all_stages * stage_cycles(row, c, beside, in_step)

    paired = row["consumers"] > 1 and not row["ping_pong"] and row["stages_in_turn"] == 1
    written_rows = rows / row["consumers"] if paired else rows
    epilogue = written_rows * row_cycles(row, c, shares_tiles) / layers
    if row["stages_in_turn"] > 1:
        epilogue += c["turns_cycles"]
    if layers > 1:
        epilogue += c["layers_cycles"] + rows * columns * (layers - 1) / layers / c["added_outputs_per_cycle"]
    work = loop + epilogue * (units - 1)
    if row["ping_pong"]:
        own = math.ceil(units / 2)
        work = max(loop, own * loop / units + epilogue * (own - 1))

    own_tiles = divide_up(row["m"], rows) * divide_up(row["n"], columns) * row["batches"]
    even_clusters = clusters / waves if shares_tiles else tiles / units
    even_sms = even_clusters * layers * own_tiles / tiles / beside
    memory = memory_cycles(row, c, even_sms, not shares_tiles)
    loaded_rows, loaded_columns = min(rows, row["m"]), min(columns, row["n"])
    if layers > 1 or shares_tiles:
        requested = loaded_rows / row["cluster_n"] + loaded_columns / row["cluster_m"]
        memory = max(memory, own_tiles * stages * 128 * requested / c["l2_bytes_per_cycle"])
    exponent = c["side_by_side_exponent"]
    both = (work ** exponent + memory ** exponent) ** (1 / exponent)
    stage_heat = 2 * loaded_rows / 64 * loaded_columns + c["byte_heat"] * 128 * (loaded_rows + loaded_columns)
    heat = tiles * layer_size * stages * stage_heat / row["sm_count"]
    shortness = min(max(2 - stages / c["short_stages"], 0), 1)
    readers = min(max(down, across), clusters)
    cycles = (c["start_cycles"] * waves + both + epilogue +
              (1 - shortness) * c["cluster_cycles"] * math.log2(cluster_size) +
              shortness * (c["same_line_cycles"] * readers + c["short_output_cycles"] * written_rows * columns / layers))
    if paired:
        cycles += c["pair_cycles"] + shortness * c["short_pair_cycles"]
    if 2 * clusters <= row["slots"] / row["ctas"]:
        cycles -= c["overlap_cycles"]
    elif 2 * clusters <= row["slots"]:
        cycles -= c["shared_overlap_cycles"]
    if row["repacked_bytes"] > 0:
        cycles += c["repack_cycles"] + 2 * row["repacked_bytes"] / c["memory_bytes_per_cycle"]
    if shares_tiles:
        parts = 1 if clusters % tiles == 0 else 2
        part_bytes = 4 * rows * columns / layers
        consumers = row["consumers"] if paired else 1
        cycles += parts * (c["sharing_cycles"] + part_bytes * 2 / (c["shared_bytes_per_cycle"] * consumers))
    return cycles * max(1.0, (heat / (c["sustained_share"] * cycles)) ** (1 / 3))


def rows_of(paths: list[Path]) -> list[dict]:
    rows = []
    for path in paths:
        with open(path, encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                rows.append({name: value if name in TEXTS else float(value) for name, value in row.items()})
    return rows


def by_problem(rows: list[dict], split: str) -> dict[str, list[dict]]:
    problems: dict[str, list[dict]] = {}
    for row in rows:
        if row["split"] == split:
            problems.setdefault(row["problem"], []).append(row)
    return problems


def disagreement(rows: list[dict], constants: dict[str, float]) -> str:
    """The first row for which the two models differ, in words; empty if there is none."""
    for row in rows:
        ours = expected_cycles(row, constants)
        if abs(ours - row["expected_cycles"]) > DISAGREEMENT * row["expected_cycles"]:
            return (f"{row['problem']} as {row['config']}: the library expects {row['expected_cycles']:.9g} cycles, this "
                    f"script {ours:.9g}. Use the sources that tessera-bench was built from, or correct the script's model.")
    return ""


class Outcome:
    """What a set of constants does to some problems."""

    def __init__(self, problems: dict[str, list[dict]], constants: dict[str, float]):
        self.losses: dict[str, float] = {}
        logarithms = []
        for name, rows in problems.items():
            expected = [expected_cycles(row, constants) for row in rows]
            chosen = rows[min(range(len(rows)), key=expected.__getitem__)]
            self.losses[name] = min(row["us"] for row in rows) / chosen["us"]
            logarithms += [math.log(row["us"] / cycles) for row, cycles in zip(rows, expected)]
        logarithms.sort()
        clock = logarithms[len(logarithms) // 2]  # cycles are compared up to a clock
        self.error = math.sqrt(sum((value - clock) ** 2 for value in logarithms) / len(logarithms))
        self.mean = math.exp(sum(map(math.log, self.losses.values())) / len(self.losses))

    def objective(self) -> float:
        return -math.log(self.mean) + ERROR_WEIGHT * self.error

    def describe(self) -> str:
        ordered = sorted(self.losses.values())
        position = 0.1 * (len(ordered) - 1)
        below = int(position)
        above = min(below + 1, len(ordered) - 1)
        p10 = ordered[below] + (position - below) * (ordered[above] - ordered[below])
        worst = min(self.losses, key=self.losses.__getitem__)
        return (f"geometric mean {self.mean:.4f} over {len(ordered)} problems, p10 {p10:.4f}, lowest "
                f"{self.losses[worst]:.4f} at {worst}; times are off by {100 * self.error:.0f} %")


def fitted(problems: dict[str, list[dict]], constants: dict[str, float], names: list[str],
           passes: int) -> dict[str, float]:
    """A search along one constant at a time, with smaller steps in each pass."""
    best = dict(constants)
    least = Outcome(problems, best).objective()
    for turn in range(passes):
        step = 1 + 0.2 / 2 ** turn
        for name in names:
            for factor in (step, 1 / step):
                tried = {**best, name: best[name] * factor}
                objective = Outcome(problems, tried).objective()
                if objective < least:
                    best, least = tried, objective
                    break
        print(f"pass {turn + 1} of {passes}: objective {least:.5f}", file=sys.stderr)
    return best


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path, help="written by tessera-bench gemm --candidates")
    parser.add_argument("--source", type=Path, default=SOURCE, help="hopper_cycles.cpp, whose constants are read")
    parser.add_argument("--passes", type=int, default=0, help="of the search; 0: no fit")
    parser.add_argument("--constants", help="only these are fitted, separated by commas")
    options = parser.parse_args()

    missing = [str(path) for path in options.files if not path.exists()]
    if missing:
        print(f"skipped: there is no {', '.join(missing)}")
        return 77
    constants = constants_of(options.source)
    rows = rows_of(options.files)
    if not rows:
        print(f"skipped: {', '.join(map(str, options.files))} has no candidates: no problem ran on Hopper kernels")
        return 77
    if fault := disagreement(rows, constants):
        print(f"the two models disagree: {fault}", file=sys.stderr)
        return 1
    names = options.constants.split(",") if options.constants else [n for n in constants if n not in FIXED]
    if unknown := [name for name in names if name not in constants]:
        print(f"{options.source.name} has no constant {', '.join(unknown)}; it has {', '.join(constants)}",
              file=sys.stderr)
        return 2

    splits = {split: problems for split in ("fit", "held-out") if (problems := by_problem(rows, split))}
    for split, problems in splits.items():
        print(f"{split}, as it is: {Outcome(problems, constants).describe()}")
    if options.passes > 0 and "fit" in splits:
        found = fitted(splits["fit"], constants, names, options.passes)
        for split, problems in splits.items():
            print(f"{split}, fitted: {Outcome(problems, found).describe()}")
        for name in names:
            if found[name] != constants[name]:
                print(f"constexpr double {name} = {found[name]:.3g};  // was {constants[name]:g}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
