#!/usr/bin/env python3
"""Checks what tessera-emu --trace writes: trace.py <folder for files> <tessera-emu> [<option>...] -- <program> [<argument>...]

The file is JSON, also after a fault; slices of a track do not overlap, arrows begin, pass and end in slices, and the
counts are those of --statistics. --arrows: there must be some; --status N: of the program.
"""
import json
import os
import subprocess
import sys
from collections import defaultdict


def fail(sentence):
    sys.exit(f"FAILED: {sentence}")


folder, words = sys.argv[1], sys.argv[2:]
needs_arrows = "--arrows" in words
status = 0
if needs_arrows:
    words.remove("--arrows")
if "--status" in words:
    at = words.index("--status")
    status = int(words[at + 1])
    del words[at : at + 2]
os.makedirs(folder, exist_ok=True)
trace, statistics = (os.path.join(folder, name) for name in ("trace.json", "statistics.json"))
for path in (trace, statistics):
    if os.path.exists(path):
        os.remove(path)
command = [words[0], "--trace", trace, "--statistics", "json:" + statistics, *words[1:]]
run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
if run.returncode != status:
    fail(f"{command} gives {run.returncode}, not {status}:\n{run.stdout}")

with open(trace, encoding="utf-8") as file:
    events = json.load(file)["traceEvents"]
with open(statistics, encoding="utf-8") as file:
    counted = [json.loads(line)["statistics"] for line in file]

slices = defaultdict(list)  # by process and track
for event in events:
    if event["ph"] not in "XMstf":
        fail(f"an event of another kind: {event}")
    if event["ph"] == "X":
        if event["dur"] <= 0 or event["ts"] < 0 or not event["name"]:
            fail(f"a slice without length, time or name: {event}")
        slices[event["pid"], event["tid"]].append(event)
for track in slices.values():
    track.sort(key=lambda slice: slice["ts"])
    for first, second in zip(track, track[1:]):
        if second["ts"] < first["ts"] + first["dur"]:
            fail(f"two slices of a track overlap: {first} {second}")

names = {kind: {} for kind in ("process_name", "thread_name")}
for event in events:
    if event["ph"] == "M" and event["name"] in names:
        names[event["name"]][event["pid"], event.get("tid")] = event["args"]["name"]
for process, track in slices:
    if (process, None) not in names["process_name"]:
        fail(f"process {process} has no name")
    if process != 0 and (process, track) not in names["thread_name"]:
        fail(f"track {track} of process {process} has no name")


def slice_at(event):
    for candidate in slices[event["pid"], event["tid"]]:
        if candidate["ts"] <= event["ts"] < candidate["ts"] + candidate["dur"]:
            return candidate
    fail(f"an arrow's end is in no slice: {event}")
    return None


arrows = defaultdict(dict)
for event in events:
    if event["ph"] in "stf":
        if event["ph"] in arrows[event["id"]]:
            fail(f"two arrows have one number: {event}")
        arrows[event["id"]][event["ph"]] = event
for arrow in arrows.values():
    if len(arrow) != 3:
        fail(f"an arrow is not whole: {arrow}")
    ends = {kind: slice_at(event) for kind, event in arrow.items()}
    track = names["thread_name"][arrow["t"]["pid"], arrow["t"]["tid"]]
    if not track.startswith("mbarrier ") or not ends["t"]["name"].startswith("phase "):
        fail(f"an arrow does not pass an mbarrier: {arrow}")
    if not names["thread_name"][arrow["f"]["pid"], arrow["f"]["tid"]].startswith("warp ") or ends["f"]["name"] != "runs":
        fail(f"an arrow does not end at a warp that goes on: {arrow}")
    if arrow["s"]["ts"] > arrow["f"]["ts"]:
        fail(f"an arrow goes back in time: {arrow}")
if needs_arrows and not arrows:
    fail("there are no arrows")

launches = slices[0, 0]
if len(launches) != len(counted):
    fail(f"{len(launches)} launches in the trace, {len(counted)} in the statistics")
for launch, counts in zip(launches, counted):
    inside = [
        (process, slice)
        for (process, _), track in slices.items()
        if process != 0
        for slice in track
        if launch["ts"] <= slice["ts"] and slice["ts"] + slice["dur"] <= launch["ts"] + launch["dur"]
    ]
    if launch["args"]["error"] != 0:
        continue  # clusters that failed are not counted
    ran = sum(slice["dur"] for _, slice in inside if slice["name"] == "runs")
    steps = sum(slice["args"].get("steps", 0) for _, slice in inside)
    if ran + steps != counts["scheduler_steps"]:
        fail(f"{ran} operations and {steps} steps of other work, of {counts['scheduler_steps']} in the statistics")
    ctas = len({process for process, _ in inside})
    if ctas != counts["ctas"]:
        fail(f"{ctas} CTAs in the trace, {counts['ctas']} in the statistics")
waits = sum(counts["barrier_waits"] for counts in counted)
if len(arrows) > waits:
    fail(f"{len(arrows)} arrows to {waits} waits")
print(f"{len(launches)} launches, {sum(len(track) for track in slices.values())} slices, {len(arrows)} arrows")
