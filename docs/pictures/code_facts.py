"""Facts that pictures take from the code, so that a picture cannot say what the code does not.

What is not found is an error that names the file: then the picture is to be looked at again.
"""

import re
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).resolve().parent.parent.parent


class MissingFact(Exception):
    """The code no longer says what a picture shows."""


def _search(pattern: str, file: str) -> "re.Match[str]":
    found = re.search(pattern, (ROOT / file).read_text(encoding="utf-8"), re.DOTALL)
    if not found:
        raise MissingFact(f"{file} has no match of {pattern!r}, which a picture is drawn from")
    return found


def _value(text: str):
    if re.fullmatch(r"\d+", text):
        return int(text)
    return {"true": True, "false": False}.get(text, text.split("::")[-1])


def constant(file: str, name: str) -> int:
    """An integer constant, `name = 4;`."""
    return int(_search(rf"\b{name}\s*=\s*(\d+);", file)[1])


def blackwell_config(name: str) -> SimpleNamespace:
    """A rung of the Blackwell ladder: its fields, and `stage_bytes`, of one CTA."""
    file = "kernels/blackwell/blackwell_config.hpp"
    defaults = _search(r"struct BlackwellConfig \{(.*?)\n\n", file)[1]
    rungs = "examples/blackwell_ladder/rungs.hpp"
    chosen = _search(rf"struct {name} \{{\s*static constexpr BlackwellConfig config\{{(.*?)\}};", rungs)[1]
    fields = dict(re.findall(r"(\w+) = ([\w:]+);", defaults))
    fields.update(re.findall(r"\.(\w+) = ([\w:]+)", chosen))
    config = SimpleNamespace(**{field: _value(text) for field, text in fields.items()})
    config.group_size = 2 if config.group == "pair" else 1
    config.rows = 128 * config.m_tiles * config.cluster  # of a work tile
    row_bytes = constant(file, "stage_row_bytes")
    config.stage_k = row_bytes // 2  # elements of 16 bits
    config.a_kib = 128 * config.m_tiles * row_bytes // 1024
    config.b_kib = config.block_n // config.group_size * row_bytes // 1024
    return config


def blackwell_warps() -> SimpleNamespace:
    """The warps of each role, how many store, and how many staging buffers one of those has."""
    kernel, config = "kernels/blackwell/blackwell_gemm.cuh", "kernels/blackwell/blackwell_config.hpp"
    return SimpleNamespace(
        load=constant(kernel, "load_warp"),
        mma=constant(kernel, "mma_warp"),
        scheduler=constant(kernel, "scheduler_warp"),
        epilogue=constant(config, "epilogue_warps"),
        staging=constant(config, "staging_buffers"),
    )


def hopper_config(name: str) -> SimpleNamespace:
    """A configuration of kernels/hopper: its fields."""
    chosen = _search(rf"TESSERA_HOPPER_CONFIG\({name},(.*?)\);", "kernels/hopper/hopper_config.hpp")[1]
    return SimpleNamespace(**{field: _value(text) for field, text in re.findall(r"\.(\w+) = ([\w:]+)", chosen)})


def simt_config(name: str) -> SimpleNamespace:
    """A configuration of kernels/simt: its fields."""
    chosen = _search(
        rf"struct {name} \{{\s*static constexpr SimtConfig config\{{(.*?)\}};", "kernels/simt/simt_config.hpp"
    )
    return SimpleNamespace(**{field: _value(text) for field, text in re.findall(r"\.(\w+) = ([\w:]+)", chosen[1])})


def barrier_kinds() -> list[tuple[str, bool, bool, bool]]:
    """Each kind of barrier, and whether it takes bytes, arrivals of threads, and commits of the tensor core."""
    file = "sdk/include/tessera/device/barrier.cuh"
    states = ("Uninitialized", "Ready")
    structs = re.findall(r"^struct (\w+) \{\};", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
    rules = [
        _search(r"bool takes_bytes =(.*?);", file)[1],
        _search(r"bool takes_threads =(.*?);", file)[1],
        _search(r"bool takes_commits =(.*?);", "sdk/include/tessera/device/mma.cuh")[1],
    ]
    rules = [rule.replace("filled_by_tma", "is_same_v<Kind, FilledByTma>") for rule in rules]
    return [(kind, *(f"Kind, {kind}>" in rule for rule in rules)) for kind in structs if kind not in states]


def expect(subject: str, facts: SimpleNamespace, **drawn) -> None:
    """Checks facts that are drawn as shapes or words."""
    wrong = {name: getattr(facts, name, None) for name, value in drawn.items() if getattr(facts, name, None) != value}
    if wrong:
        raise MissingFact(f"{subject} has {wrong}, the picture has {({name: drawn[name] for name in wrong})}")
