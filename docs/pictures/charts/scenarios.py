"""How much faster the optimized entry of each scenario is."""

import json

from svg import BLUE, MUTED, ORANGE, Picture, drawing, logarithmic

from charts.bars import BAR, axis
from charts.stored import RESULTS

FILE = "h200/scenarios.json"
LEFT, WIDTH, TOP, PITCH = 226, 240, 66, 26
TICKS = (1, 2, 5, 10, 20, 50, 100, 200, 500)


def stored_scenarios() -> dict:
    return json.loads((RESULTS / FILE).read_text(encoding="utf-8"))


def device(document: dict) -> str:
    """"NVIDIA H200, compute capability ..." is "H200"."""
    return document["environment"]["device"].split(",")[0].removeprefix("NVIDIA ")


def time_text(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f} us"


@drawing
def scenarios() -> Picture:
    document = stored_scenarios()
    ran = [scenario for scenario in document["scenarios"] if scenario["outcome"] == "agrees"]
    bottom = TOP + PITCH * len(ran)
    p = Picture(f"What the optimized entry of each scenario gains on an {device(document)}",
                "A bar for each scenario: how many times as fast its optimized entry is as its baseline, on a logarithmic axis, and the "
                "two times.", height=bottom + 36)
    p.text(16, 26, f"Times as fast as the baseline: {device(document)}", size=13, bold=True)
    fastest = max(scenario["speedup"] for scenario in ran)
    lowest = min(1, *(scenario["speedup"] for scenario in ran))
    scale = logarithmic(lowest, fastest, LEFT, LEFT + WIDTH)
    axis(p, scale, [tick for tick in TICKS if lowest <= tick <= fastest], TOP - 8, bottom - 6, "{:g}", marked=1)
    for index, scenario in enumerate(ran):
        y = TOP + PITCH * index
        speedup = scenario["speedup"]
        faster = speedup >= 1
        begin, end = sorted((scale(1), scale(speedup)))
        p.text(16, y + 11, f"{scenario['number']}. {scenario['title']}", size=11.5)
        p.rect(begin, y, max(end - begin, 0.8), BAR, (BLUE if faster else ORANGE).mid, loose=True)
        both = " to ".join(time_text(scenario[entry]["median_seconds"]) for entry in ("baseline", "optimized"))
        p.text(max(end, scale(1)) + 6, y + 11, f"{speedup:.0f}" if speedup >= 100 else f"{speedup:.2f}", size=11.5, bold=True)
        p.text(max(end, scale(1)) + 52, y + 11, both, size=11, color=MUTED)
    p.text(16, bottom + 16, "Medians of seven runs (compilation: three), from an idle device to the complete result.",
           size=11, color=MUTED)
    return p
