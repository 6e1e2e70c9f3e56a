"""Diagrams of the course that a reader steps through: their states, computed from a trace of the emulated device.

A diagram is rows of cells, and steps that say what happens and which cells change:

    {"title": ..., "rows": [{"label": ..., "cells": [id, ...]}], "steps": [{"text": ..., "cells": {id: [state, text]}}]}

`state` is one of idle, run, wait, load, full, use, done: the site's colours (docs/site/static/course.css).
"""

import json
import re
from collections import defaultdict


def own_address(address: str) -> str:
    """An address without the rank of its CTA in the cluster."""
    return f"{int(address, 16) & 0xFFFFFF:#x}"


class Trace:
    """One CTA of a trace (`tessera-emu --trace`)."""

    def __init__(self, events: list[dict], kernel: str, cta: int):
        names = {event["pid"]: event["args"]["name"] for event in events
                 if event["ph"] == "M" and event["name"] == "process_name"}
        # In the order of the grid; CTAs of a cluster are neighbours in x.
        processes = sorted((re.findall(r"\d+", name)[2::-1], pid) for pid, name in names.items()
                           if kernel in name.rpartition(" of ")[2])
        self.pid = processes[cta][1]
        own = [event for event in events if event["pid"] == self.pid]
        tracks = {event["tid"]: event["args"]["name"] for event in own
                  if event["ph"] == "M" and event["name"] == "thread_name"}
        self.slices = defaultdict(list)  # by track: (begin, end, name, arguments)
        for event in own:
            if event["ph"] == "X":
                self.slices[tracks[event["tid"]]].append(
                    (event["ts"], event["ts"] + event["dur"], event["name"], event["args"]))
        for track in self.slices.values():
            track.sort(key=lambda part: part[:2])

    def works(self, kind: str) -> list[tuple]:
        """Asynchronous work of a kind (copies, MMAs, commits), in the order of its issue."""
        found = [part for name, parts in self.slices.items() if name.startswith(kind) for part in parts]
        return sorted(found, key=lambda part: (part[0], part[1]))

    def barriers(self) -> list[str]:
        """Addresses of mbarriers, ascending."""
        return sorted((name.split()[1] for name in self.slices if name.startswith("mbarrier ")), key=lambda at: int(at, 16))

    def phases(self, address: str) -> list[int]:
        """When each phase ended."""
        return [end for _, end, _, _ in self.slices[f"mbarrier {address}"]]

    def warp_at(self, warp: int, time: int, names: dict[str, str]) -> list[str]:
        """State and text of a warp just after `time`."""
        parts = self.slices[f"warp {warp}"]
        for begin, end, name, arguments in parts:
            if begin <= time < end:
                if name == "runs":
                    return ["run", "runs"]
                if "mbarrier" in name:
                    return ["wait", f"waits: {names.get(own_address(arguments['object']), 'an mbarrier')}"]
                return ["wait", "waits for the other warps"]
        if parts and time >= parts[-1][1]:
            return ["done", "has ended"]
        return ["idle", "ready"]


class Diagram:
    def __init__(self, title: str):
        self.title = title
        self.rows: list[dict] = []
        self.steps: list[dict] = []
        self.state: dict[str, list[str]] = {}

    def row(self, label: str, cells: list[str], state: str = "idle", text: str = "") -> None:
        self.rows.append({"label": label, "cells": cells})
        for cell in cells:
            self.state[cell] = [state, text]

    def step(self, text: str, **changes) -> None:
        self.step_of(text, changes)

    def step_of(self, text: str, changes: dict[str, list[str]]) -> None:
        """Adds a step; the first one has all cells."""
        before = dict(self.state)
        self.state.update(changes)
        new = self.state if not self.steps else {cell: value for cell, value in self.state.items() if before[cell] != value}
        self.steps.append({"text": text, "cells": dict(new)})

    def data(self) -> dict:
        return {"title": self.title, "rows": self.rows, "steps": self.steps}


def plural(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


class Timeline:
    """Warps, stages, barriers, tensor core and accumulators of some CTAs of a cluster, event by event.

    layout: the rings in shared memory: (name, number of slots, bytes after the first barrier). A ring has its full barriers, then
    its empty ones. `stages` is the ring that TMA fills, `sums` the accumulators'.
    """

    def __init__(self, title: str, traces: list[Trace], warps: list[tuple[int, str]], layout: list[tuple[str, int, int]],
                 mmas_of_step: int = 4, longest: int = 80):
        self.diagram = Diagram(title)
        self.traces, self.warps, self.mmas_of_step, self.longest = traces, warps, mmas_of_step, longest
        self.layout = {ring: slots for ring, slots, _ in layout}
        self.issued = dict.fromkeys(range(len(traces)), 0)  # steps whose MMAs are issued
        self.in_flight = dict.fromkeys(range(len(traces)), 0)  # copies, where stages are not known
        self.names: list[dict[str, str]] = []
        self.rings: list[dict[str, tuple[list[str], list[str]]]] = []
        first = int(traces[0].barriers()[0], 16) if layout else 0  # at the same places in each CTA
        for trace in traces:
            names, rings = {}, {}
            for ring, slots, offset in layout:
                full, empty = ([f"{first + offset + 8 * (i + side * slots):#x}" for i in range(slots)] for side in range(2))
                rings[ring] = (full, empty)
                what = {"stages": "stage", "sums": "accumulator", "answers": "answer"}[ring]
                for i in range(slots):
                    number = f" {i}" if slots > 1 else ""
                    names[full[i]] = f"{what}{number} full"
                    names[empty[i]] = f"{what}{number} free"
            unknown = set(trace.barriers()) - names.keys() if layout else ()
            if unknown:
                raise ValueError(f"{title}: barriers at {sorted(unknown)} are not in the layout {layout}")
            self.names.append(names)
            self.rings.append(rings)

    def cta(self, index: int) -> str:
        return f"CTA {index}: " if len(self.traces) > 1 else ""

    def rows(self) -> None:
        for c, trace in enumerate(self.traces):
            for warp, role in self.warps:
                if f"warp {warp}" in trace.slices:
                    self.diagram.row(f"{self.cta(c)}{role}", [f"{c}w{warp}"], text="ready")
            for ring, label in (("stages", "stages"), ("sums", "accumulator"), ("answers", "answers")):
                if ring in self.layout:
                    slots = self.layout[ring]
                    self.diagram.row(f"{self.cta(c)}{label}", [f"{c}{ring}{i}" for i in range(slots)], text="empty")
                    if ring == "stages" and self.counts(c):
                        for side in ("full", "empty"):
                            self.diagram.row(f"{self.cta(c)}{side} barriers", [f"{c}{side}{i}" for i in range(slots)],
                                             text="phase 0")
            if not self.layout:
                self.diagram.row(f"{self.cta(c)}TMA", [f"{c}copies"], text="idle")
            if trace.works("MMAs"):
                self.diagram.row(f"{self.cta(c)}tensor core", [f"{c}tensor"], text="idle")

    def counts(self, c: int) -> bool:
        """Bytes for a pair are counted in its first CTA."""
        return bool(self.traces[c].phases(self.rings[c]["stages"][0][0]))

    def events(self) -> list[tuple]:
        found = []
        for c, trace in enumerate(self.traces):
            stages = self.layout.get("stages", 0)
            copies = trace.works("copies")
            loads = [copy for copy in copies if "bulk" in copy[2]]
            if stages:
                full, empty = self.rings[c]["stages"]
                counting = [self.traces[0].phases(at) for at in self.rings[0]["stages"][0]] if not trace.phases(full[0]) \
                    else [trace.phases(at) for at in full]
                fills = sum(map(len, counting))
                warp = self.load_warp(trace)
                loads = [copy for copy in loads if copy[3]["warp"] == warp]
                each = len(loads) // fills
                if each * fills != len(loads):
                    raise ValueError(f"{self.diagram.title}: {len(loads)} loads do not fill {fills} stages")
                for i in range(0, len(loads), each):
                    found.append((loads[i][0], 3, c, "load", i // each, (i // each) % stages, each))
                for s in range(stages):
                    found += [(end, 0, c, "filled", s, phase) for phase, end in enumerate(trace.phases(full[s]))]
                    found += [(end, 0, c, "freed", s, phase) for phase, end in enumerate(trace.phases(empty[s]))]
            else:
                for warp in sorted({copy[3]["warp"] for copy in loads}):
                    for begin in sorted({copy[0] for copy in loads if copy[3]["warp"] == warp}):
                        found.append((begin, 3, c, "copies", warp,
                                      sum(copy[0] == begin and copy[3]["warp"] == warp for copy in loads)))
                found += [(copy[1], 0, c, "landed") for copy in loads]
            if stages:
                stores: dict[tuple, int] = defaultdict(int)
                for copy in copies:
                    if copy[3]["warp"] != self.load_warp(trace):
                        stores[copy[0], copy[3]["warp"]] += 1
                found += [(begin, 3, c, "store", warp, count) for (begin, warp), count in stores.items()]
            mmas = trace.works("MMAs")
            for i in range(0, len(mmas), self.mmas_of_step):
                part = mmas[i : i + self.mmas_of_step]
                found.append((part[0][0], 4, c, "issue", i // self.mmas_of_step, len(part), part[0][3]["warp"]))
                found.append((part[-1][1], 0, c, "multiplied", i // self.mmas_of_step))
            for i in range(self.layout.get("sums", 0)):
                full, empty = self.rings[c]["sums"]
                found += [(end, 1, c, "sum", i, phase) for phase, end in enumerate(trace.phases(full[i]))]
                found += [(end, 1, c, "sum-read", i, phase) for phase, end in enumerate(trace.phases(empty[i]))]
            for i in range(self.layout.get("answers", 0)):
                full, _ = self.rings[c]["answers"]
                found += [(end, 1, c, "answer", i, phase) for phase, end in enumerate(trace.phases(full[i]))]
            for warp, _ in self.warps:
                for begin, end, name, arguments in trace.slices.get(f"warp {warp}", []):
                    if "mbarrier" in name and end - begin > 2:
                        found.append((begin, 5, c, "waits", warp, arguments["object"]))
                        found.append((end, 2, c, "wakes", warp, arguments["object"]))
        return sorted(found)

    def load_warp(self, trace: Trace) -> int:
        """The warp that issues the first copy."""
        return trace.works("copies")[0][3]["warp"]

    def data(self) -> dict:
        self.rows()
        self.diagram.step_of("The kernel begins. Its barriers are initialized, and every stage is empty."
                             if "stages" in self.layout else "The kernel begins.", {})
        time_before, texts, changes = None, [], {}
        for event in [*self.events(), None]:
            if event is None or (time_before is not None and event[0] != time_before):
                for c, trace in enumerate(self.traces):
                    for warp, _ in self.warps:
                        if f"{c}w{warp}" in self.diagram.state:
                            changes[f"{c}w{warp}"] = trace.warp_at(warp, time_before, self.names[c])
                more = event is not None and len(self.diagram.steps) + 1 >= self.longest
                self.diagram.step_of(" ".join(texts) + (" And so on." if more else ""), changes)
                if more:
                    break
                texts, changes = [], {}
            if event is not None:
                time_before = event[0]
                texts.append(getattr(self, event[3].replace("-", "_"))(changes, event[2], *event[4:]))
        return self.diagram.data()

    # What each event says and changes

    def role(self, warp: int) -> str:
        return f"Warp {warp}"

    def load(self, changes, c, step, stage, each) -> str:
        changes[f"{c}stages{stage}"] = ["load", f"step {step} is loading"]
        return f"{self.cta(c)}{self.role(self.load_warp(self.traces[c]))} issues {plural(each, 'load')} of step {step} into stage {stage}."

    def filled(self, changes, c, stage, phase) -> str:
        stages = self.layout["stages"]
        for cta in range(len(self.traces)):
            if self.diagram.state.get(f"{cta}stages{stage}", [""])[0] == "load" or f"{cta}stages{stage}" in changes:
                if cta == c or not self.traces[cta].phases(self.rings[cta]["stages"][0][stage]):
                    changes[f"{cta}stages{stage}"] = ["full", f"step {phase * stages + stage} is there"]
        changes[f"{c}full{stage}"] = ["run", f"phase {phase + 1}"]
        return f"{self.cta(c)}All bytes of stage {stage} have landed: its full barrier ends phase {phase}."

    def freed(self, changes, c, stage, phase) -> str:
        changes[f"{c}stages{stage}"] = ["idle", "empty"]
        if self.counts(c):
            changes[f"{c}empty{stage}"] = ["run", f"phase {phase + 1}"]
        return f"{self.cta(c)}Stage {stage} has been read: its empty barrier ends phase {phase}."

    def issue(self, changes, c, step, count, warp) -> str:
        if "stages" in self.layout:
            stage = step % self.layout["stages"]
            for cta, trace in enumerate(self.traces):
                if cta == c or not trace.works("MMAs"):  # one instruction reads the stages of both CTAs of a pair
                    changes[f"{cta}stages{stage}"] = ["use", f"step {step} is multiplied"]
        self.issued[c] = step + 1
        if self.diagram.state[f"{c}tensor"][0] == "idle":
            changes[f"{c}tensor"] = ["use", f"MMAs of step {step}"]
        return f"{self.cta(c)}{self.role(warp)} issues {plural(count, 'MMA')} of step {step}."

    def multiplied(self, changes, c, step) -> str:
        more = self.issued[c] > step + 1
        changes[f"{c}tensor"] = ["use", f"MMAs of step {step + 1}"] if more else ["idle", f"idle, step {step} done"]
        return f"{self.cta(c)}The tensor core has completed step {step}."

    def sum(self, changes, c, slot, phase) -> str:
        changes[f"{c}sums{slot}"] = ["full", f"sums of tile {phase * self.layout['sums'] + slot}"]
        return f"{self.cta(c)}The accumulator is complete: its full barrier ends phase {phase}."

    def sum_read(self, changes, c, slot, phase) -> str:
        for cta in range(len(self.traces)):
            changes[f"{cta}sums{slot}"] = ["idle", "read"]
        return f"{self.cta(c)}All warps have read the accumulator: the tensor core may overwrite it."

    def answer(self, changes, c, slot, phase) -> str:
        changes[f"{c}answers{slot}"] = ["full", f"answer {phase * self.layout['answers'] + slot}"]
        return f"{self.cta(c)}Cluster launch control has answered."

    def store(self, changes, c, warp, count) -> str:
        return f"{self.cta(c)}{self.role(warp)} has begun {plural(count, 'TMA store')}."

    def copies(self, changes, c, warp, count) -> str:
        self.in_flight[c] += count
        changes[f"{c}copies"] = ["load", f"{plural(self.in_flight[c], 'load')} in flight"]
        return f"{self.cta(c)}{self.role(warp)} issues {plural(count, 'load')}."

    def landed(self, changes, c) -> str:
        self.in_flight[c] -= 1
        changes[f"{c}copies"] = ["load", f"{plural(self.in_flight[c], 'load')} in flight"] if self.in_flight[c] else ["idle", "idle"]
        return f"{self.cta(c)}A load has landed."

    def waits(self, changes, c, warp, barrier) -> str:
        return f"{self.cta(c)}{self.role(warp)} waits until {self.waited(c, barrier)}."

    def wakes(self, changes, c, warp, barrier) -> str:
        name = self.names[c].get(own_address(barrier), "").split()
        if name[:1] == ["stage"] and name[-1] == "full" and not self.traces[c].works("MMAs"):
            stage = f"{c}stages{name[1] if len(name) > 2 else 0}"
            changes[stage] = ["use", (changes.get(stage) or self.diagram.state[stage])[1].replace("there", "read")]
        return f"{self.cta(c)}{self.role(warp)} goes on: {self.waited(c, barrier)}."

    def waited(self, c, barrier) -> str:
        name = self.names[c].get(own_address(barrier))
        return f"{' '.join(name.split()[:-1])} is {name.split()[-1]}" if name else "its barrier's phase has ended"


def threads_and_tiles(runs) -> dict:
    """Chapter 1: the warps of a CTA between two barriers."""
    trace = Trace(runs.trace("01", []), "by_tile", 0)
    diagram = Diagram("by_tile: the eight warps of the first CTA")
    for warp in range(8):
        diagram.row(f"warp {warp}", [f"w{warp}"], text="ready")
    waits = [[part for part in trace.slices[f"warp {warp}"] if part[2].startswith("waits at a barrier")] for warp in range(8)]
    # A barrier has no wait of the warp that arrives last.
    arrivals = sorted((begin, warp) for warp in range(8) for begin, _, _, _ in waits[warp])
    ends = sorted({end for parts in waits for _, end, _, _ in parts})
    diagram.step("All eight warps are ready. Two barriers separate the steps along K: one after the loads, one after the products.")
    rounds = [arrivals[i : i + 7] for i in range(0, len(arrivals), 7)]
    if any(len({warp for _, warp in part}) != len(part) for part in rounds) or not ends:
        raise ValueError("by_tile: a warp waits twice at one barrier")
    for number, part in enumerate(rounds[:8]):
        what = f"A and B of step {number // 2} are in shared memory" if number % 2 == 0 else f"step {number // 2} is multiplied"
        verb = "brings its part of" if number % 2 == 0 else "multiplies"
        for _, warp in part:
            diagram.step_of(f"Warp {warp} {verb} step {number // 2} and waits at the barrier.",
                            {f"w{warp}": ["wait", f"waits, {'loaded' if number % 2 == 0 else 'multiplied'} step {number // 2}"]})
        last = ({*range(8)} - {warp for _, warp in part}).pop()
        diagram.step_of(f"Warp {last} comes last: {what}, and all go on.",
                        {f"w{warp}": ["run", "multiplies" if number % 2 == 0 else "loads"] for warp in range(8)})
    return diagram.data()


def swizzle(runs) -> dict:
    """Chapter 2: chunks of 16 bytes as a program prints them."""
    text, _ = runs.output("02", "layouts", [])
    places = re.findall(r"bytes +(\d+):((?: +\d+,\d+)+)", text.split("Swizzle::b128\n")[1])
    chunks = [[tuple(map(int, pair.split(","))) for pair in pairs.split()] for _, pairs in places]
    diagram = Diagram("Swizzle::b128: eight rows of 128 bytes, as TMA wrote them. A cell is a chunk of 16 bytes: row, first column")
    for line in range(8):
        diagram.row(f"byte {128 * line}", [f"c{line}-{place}" for place in range(8)])
        for place in range(8):
            diagram.state[f"c{line}-{place}"] = ["idle", "{}, {}".format(*chunks[line][place])]
    diagram.step_of("Eight rows as they are in shared memory. Point at a chunk to see its column and its banks.", {})
    for column in range(0, 64, 8):
        here = {(line, place) for line in range(8) for place in range(8) if chunks[line][place][1] == column}
        changes = {f"c{line}-{place}": ["use" if (line, place) in here else "idle", diagram.state[f"c{line}-{place}"][1]]
                   for line in range(8) for place in range(8)}
        distinct = len({place for _, place in here})
        diagram.step_of(f"Eight threads read columns {column} to {column + 7} of the eight rows: the chunks are at {distinct} different "
                        f"places of their lines, so in {4 * distinct} different banks. Without the swizzle all would be at place "
                        f"{column // 8}, in 4 banks.", changes)
    data = diagram.data()
    data["links"], data["notes"] = {}, {}
    for line in range(8):
        for place in range(8):
            row, column = chunks[line][place]
            data["links"][f"c{line}-{place}"] = [f"c{other}-{p}" for other in range(8) for p in range(8)
                                                 if chunks[other][p][1] == column and other != line]
            data["notes"][f"c{line}-{place}"] = (
                f"Row {row}, columns {column} to {column + 7}: chunk {column // 8} of its row, at place {place} of line {line}, "
                f"byte {128 * line + 16 * place}, banks {4 * place} to {4 * place + 3}.")
    return data


def descriptors(runs) -> dict:
    """Chapter 5: what each of a stage's four instructions reads."""
    text, _ = runs.output("05", "layouts", [])
    places = re.findall(r"bytes +(\d+):((?: +\d+,\d+)+)", text.split("Swizzle::b128\n")[1])
    chunks = [[tuple(map(int, pair.split(","))) for pair in pairs.split()] for _, pairs in places]
    begins = {name: [tuple(map(int, part)) for part in re.findall(r"k (\d+) at \+(\d+) bytes", line)]
              for name, line in re.findall(r"(K-major|N-major)[^:]*:(.*)", text)}
    diagram = Diagram("What the four instructions of a stage read, and where their descriptors begin")
    for line in range(8):
        cells = [f"a{line}-{place}" for place in range(8)]
        diagram.row(f"A, byte {128 * line}", cells)
        for place, cell in enumerate(cells):
            row, column = chunks[line][place]
            diagram.state[cell] = ["idle", f"m {row}, k {column}"]
    groups = [begin // 1024 for _, begin in begins["N-major"]] + [64 // 8]
    for block in range(2):
        cells = [f"b{block}-{group}" for group in range(8)]
        diagram.row(f"B, n {64 * block} to {64 * block + 63}", cells)
        for group, cell in enumerate(cells):
            diagram.state[cell] = ["idle", f"k {8 * group} to {8 * group + 7}"]
    diagram.step_of("The first eight rows of A, K-major: a line is a row of M. B, N-major: a cell is 1024 bytes, eight lines, each of them "
                    "one k and 64 elements of N. Two blocks make 128 columns, 8192 bytes apart.", {})
    for i, (k, a_begin) in enumerate(begins["K-major"]):
        b_begin = begins["N-major"][i][1]
        changes = {}
        for line in range(8):
            for place in range(8):
                used = k <= chunks[line][place][1] < k + 16
                changes[f"a{line}-{place}"] = ["use" if used else "idle", diagram.state[f"a{line}-{place}"][1]]
        for block in range(2):
            for group in range(8):
                used = groups[i] <= group < groups[i + 1]
                changes[f"b{block}-{group}"] = ["use" if used else "idle", diagram.state[f"b{block}-{group}"][1]]
        diagram.step_of(f"k = {k} to {k + 15}: A's descriptor begins at +{a_begin} bytes, inside of the swizzle's span; B's begins at "
                        f"+{b_begin} bytes, two groups of eight lines for each instruction.", changes)
    return diagram.data()


def text_of(data: dict) -> str:
    """A diagram as a file: a row or a step on a line."""
    parts = {key: "[\n" + ",\n".join(json.dumps(part) for part in data[key]) + "]" for key in ("rows", "steps")}
    more = "".join(f',\n"{key}": {json.dumps(data[key])}' for key in ("links", "notes") if key in data)
    return f'{{"title": {json.dumps(data["title"])},\n"rows": {parts["rows"]},\n"steps": {parts["steps"]}{more}}}\n'


ROLES = [(4, "warp 4: loads"), (5, "warp 5: multiplies"), (0, "warp 0: stores")]
# By chapter: the file, the kernel, CTAs, warps that are shown, and the rings.
TIMELINES = {
    "03": ("03-ring", "by_ring", 1, [(8, "warp 8: loads"), (0, "warp 0: multiplies"), (7, "warp 7: multiplies")],
           [("stages", 3, 0)]),
    "04": ("04-tensor-memory", "by_tensor_core", 1, [(0, "warp 0: does all"), (1, "warp 1: reads")],
           [("stages", 1, 0), ("sums", 1, 16)]),
    "06": ("06-roles", "by_roles", 1, ROLES, [("stages", 3, 0), ("sums", 1, 48)]),
    "07": ("07-epilogue", "by_epilogue", 1, ROLES, [("stages", 3, 0), ("sums", 1, 48)]),
    "08": ("08-pair", "by_pair", 2, ROLES, [("stages", 3, 0), ("sums", 1, 48)]),
    "09": ("09-work-queue", "by_work_queue", 2, [*ROLES[:2], (6, "warp 6: asks for work"), ROLES[2]],
           [("stages", 6, 0), ("sums", 2, 96), ("answers", 2, 160)]),
    "10": ("10-tile-program", "tile_kernel_on_tcgen05", 2, [], []),  # its roles are found in the trace
}


def make(number: str, runs) -> dict[str, dict]:
    """The diagrams of a chapter, by the name of their file."""
    if number in ("01", "02", "05"):
        name, maker = {"01": ("01-tiles", threads_and_tiles), "02": ("02-swizzle", swizzle), "05": ("05-descriptors", descriptors)}[number]
        return {name: maker(runs)}
    if number not in TIMELINES:
        return {}
    name, kernel, ctas, warps, layout = TIMELINES[number]
    events = runs.trace(number, [])
    traces = [Trace(events, kernel, cta) for cta in range(ctas)]
    if not warps:
        loads, multiplies = (traces[0].works(kind)[0][3]["warp"] for kind in ("copies", "MMAs"))
        warps = [(loads, f"warp {loads}: loads"), (multiplies, f"warp {multiplies}: multiplies"), (0, "warp 0: computes")]
    return {name: Timeline(f"{kernel}: {'the first cluster' if ctas > 1 else 'the first CTA'}", traces, warps, layout).data()}
