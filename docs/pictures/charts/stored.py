"""Reads the stored results: the CSV files in bench/results, as tessera-bench and blackwell_statistics write them."""

import csv
import math
from collections.abc import Iterable
from pathlib import Path

RESULTS = Path(__file__).resolve().parents[3] / "bench" / "results"

Row = dict[str, str]


class Stored:
    """One file: the facts from its comment lines, and its rows."""

    def __init__(self, name: str):
        with open(RESULTS / name, encoding="utf-8", newline="") as file:
            lines = file.readlines()
        comments = [line[1:].strip() for line in lines if line.startswith("#")]
        self.facts = dict(line.split(": ", 1) for line in comments if ": " in line)
        self.rows: list[Row] = list(csv.DictReader(line for line in lines if not line.startswith("#")))
        if not self.rows:
            raise ValueError(f"{name} has no rows")


def shape(row: Row) -> str:
    return f"{row['m']}x{row['n']}x{row['k']}"


def geometric_mean(values: Iterable[float]) -> float:
    logarithms = [math.log(value) for value in values]
    return math.exp(sum(logarithms) / len(logarithms))
