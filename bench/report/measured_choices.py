#!/usr/bin/env python3
"""Writes the table of measured Hopper configurations: where a layer's fastest candidate beats the cost model's choice.

    tessera-bench gemm models --variant none --peers none --config "" --shortlist 1.6 --sample 2 --candidates candidates.csv
    measured_choices.py candidates.csv > sdk/src/gemm/hopper/hopper_measured.inc

Of the file, problems of 16-bit types without an epilogue count, whose A and B are contiguous along K. The model is the one of
fit_chooser.py, with the constants as they are in the source.
"""

import argparse
import sys
from pathlib import Path

import fit_chooser

LEAST_GAIN = 1.03  # of the fastest over the model's choice: less may be noise
NOISE = 1.01  # between two that are as fast
# Short samples show the full clock: near the power limit, another tile may be ahead in them and behind in a long run.
LEAST_GAIN_AT_POWER_LIMIT = 1.06
POWER_LIMIT_FLOPS = 550e12


def row_of(rows: list[dict], constants: dict[str, float]) -> str:
    """A line of the table, empty if the model's choice is fast enough."""
    chosen = min(rows, key=lambda row: fit_chooser.expected_cycles(row, constants))
    fastest = min(rows, key=lambda row: row["us"])
    # Of those that are as fast, without stream-K and with ping-pong: an activation takes longer where tiles are shared, and less
    # long where another tile hides it.
    alike = [row for row in rows if row["us"] < NOISE * fastest["us"]]
    best = min(alike, key=lambda row: (row["stream_k"], -row["ping_pong"], row["us"]))
    flops = 2 * best["m"] * best["n"] * best["k"] / (best["us"] * 1e-6)
    is_limited = flops > POWER_LIMIT_FLOPS and best["config"] != chosen["config"]
    least_gain = LEAST_GAIN_AT_POWER_LIMIT if is_limited else LEAST_GAIN
    if chosen["us"] < least_gain * best["us"]:
        return ""
    m, n = (best["n"], best["m"]) if best["swapped"] else (best["m"], best["n"])
    flags = ", ".join("true" if best[name] else "false" for name in ("swapped", "stream_k"))
    clusters = ", ".join(f"{best[name]:.0f}" for name in ("clusters", "cluster_m", "cluster_n", "cluster_k"))
    return (f'MeasuredChoice{{{m:.0f}, {n:.0f}, {best["k"]:.0f}, "{best["config"]}", {clusters}, {flags}}},'
            f'  // {best["us"]:.1f} us, {chosen["us"]:.1f} as the model chooses')


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path, help="written by tessera-bench gemm --candidates")
    options = parser.parse_args()

    constants = fit_chooser.constants_of(fit_chooser.SOURCE)
    problems: dict[tuple, list[dict]] = {}
    for row in fit_chooser.rows_of(options.files):
        plain = not (row["fused"] or row["has_c"] or row["gated"]) and row["batches"] == 1
        if plain and row["a_k_major"] and row["b_k_major"] and row["input_bytes"] == row["output_bytes"] == 2:
            problems.setdefault(row["problem"], []).append(row)
    by_layer = sorted(problems.values(), key=lambda rows: (rows[0]["n"], rows[0]["k"], rows[0]["m"]))
    lines = list(filter(None, (row_of(rows, constants) for rows in by_layer)))
    print("// m, n, k, configuration, clusters, their CTAs along M, N and K, of the transposed product, stream-K")
    print("\n".join(lines))
    print(f"{len(lines)} of {len(problems)} problems", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
