#!/usr/bin/env python3
"""Runs tessera-scenarios and checks its JSON and its page.

    check.py FOLDER SKIPPED command...

FOLDER receives the files. SKIPPED names the scenarios that must be skipped, with commas between; all others must run and agree.
"""

import html.parser
import json
import pathlib
import subprocess
import sys

NAMES = ["transfers", "clusters", "npy-streaming", "ladder", "graphs", "compilation", "transformer", "low-precision", "training"]


def require(holds, *facts):
    if not holds:
        sys.exit("check.py: " + " ".join(map(str, facts)))


def members(value, /, **types):
    require(isinstance(value, dict) and set(value) == set(types), "members", sorted(types), "expected of", value)
    for name, kind in types.items():
        require(isinstance(value[name], kind) and not (kind is str and not value[name]), f"{name} must be {kind}:", value)


NUMBER = (int, float)


def check_entry(entry):
    members(entry, what=str, median_seconds=NUMBER, samples_seconds=list, phases=list)
    require(entry["samples_seconds"] and entry["median_seconds"] > 0 and entry["phases"], "an entry without times:", entry)
    for phase in entry["phases"]:
        members(phase, name=str, host_seconds=NUMBER, device_seconds=(*NUMBER, type(None)))
        require(phase["host_seconds"] >= 0 and (phase["device_seconds"] is None or phase["device_seconds"] >= 0), phase)
    require(any(phase["device_seconds"] for phase in entry["phases"]), "no phase has time on the device:", entry)


def check_scenario(scenario, number, skipped):
    require((scenario["number"], scenario["name"]) == (number, NAMES[number - 1]), "out of order:", scenario)
    if scenario["name"] in skipped:
        members(scenario, number=int, name=str, title=str, outcome=str, reason=str)
        require(scenario["outcome"] == "skipped" and "it needs" in scenario["reason"], "not skipped with a reason:", scenario)
        return
    require(scenario["outcome"] == "agrees", scenario["name"], "did not run, or disagrees:", scenario)
    members(scenario, number=int, name=str, title=str, outcome=str, work=str, speedup=NUMBER, baseline=dict, optimized=dict,
            checks=list, figures=list, notes=list)
    check_entry(scenario["baseline"])
    check_entry(scenario["optimized"])
    ratio = scenario["baseline"]["median_seconds"] / scenario["optimized"]["median_seconds"]
    require(abs(scenario["speedup"] / ratio - 1) < 1e-3, "the speed-up is not that of the medians:", scenario)
    require(len(scenario["checks"]) >= 2, "too few checks:", scenario)
    for check in scenario["checks"]:
        members(check, what=str, bound=str, error_over_bound=NUMBER, passed=bool)
        require(check["passed"] and 0 <= check["error_over_bound"] <= 1, check)
    require(any("float64" in check["what"] for check in scenario["checks"]), "no check against float64:", scenario)
    for figure in scenario["figures"]:
        members(figure, name=str, value=NUMBER, unit=object)  # a unit may be empty


class Page(html.parser.HTMLParser):
    """Counts charts, and sees that all elements are closed."""

    def __init__(self):
        super().__init__()
        self.open, self.charts, self.bars, self.outside = [], 0, 0, []

    def handle_starttag(self, tag, attributes):
        self.charts += tag == "svg"
        self.bars += tag == "rect"
        self.outside += [value for name, value in attributes if name in ("src", "href") and not value.startswith("#")]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in ("meta", "br"):
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        require(self.open and self.open.pop() == tag, "the page closes", tag, "out of turn")


def main():
    folder, skipped, command = pathlib.Path(sys.argv[1]), sys.argv[2].split(",") if sys.argv[2] else [], sys.argv[3:]
    folder.mkdir(parents=True, exist_ok=True)
    data, page_file = folder / "scenarios.json", folder / "scenarios.html"
    status = subprocess.run([*command, "--json", data, "--html", page_file, "--scratch", folder]).returncode
    require(status == 0, "exit status", status)
    document = json.loads(data.read_text())
    members(document, program=str, environment=dict, scenarios=list)
    require("emulated" in document["environment"]["device"], document["environment"])
    require(len(document["scenarios"]) == len(NAMES), "not all scenarios are there")
    for number, scenario in enumerate(document["scenarios"], 1):
        check_scenario(scenario, number, skipped)
    page = Page()
    page.feed(page_file.read_text())
    page.close()
    require(not page.open and not page.outside, "not closed, or from elsewhere:", page.open, page.outside)
    require(page.charts == len(NAMES) - len(skipped) and page.bars > 4 * page.charts, page.charts, "charts,", page.bars, "bars")
    require({path.name for path in folder.iterdir()} == {data.name, page_file.name}, "files were left:", list(folder.iterdir()))


main()
