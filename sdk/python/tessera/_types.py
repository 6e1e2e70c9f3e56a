"""Plain values that functions return."""

from typing import NamedTuple


class TuningResult(NamedTuple):
    """What tune found.

    variant, configuration  the kernel that gemm runs from now on
    seconds                 its time for a product
    untuned_seconds         the time of the kernel that ran before
    candidates              how many kernels were measured
    """

    variant: str
    configuration: str
    seconds: float
    untuned_seconds: float
    candidates: int


TuningResult.__module__ = "tessera"
