"""The parts of the emulated device."""

from svg import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, RED, YELLOW, Picture, drawing


@drawing
def emulated_device() -> Picture:
    p = Picture(
        "The parts of the emulated device",
        "The emulated CUDA runtime loads fat binaries; the PTX parser and the lowering make operations of them. A "
        "seeded scheduler lets warps and asynchronous units take steps. Both use the memories. Checks watch all of "
        "it and write the report.",
        height=520,
    )
    p.box(24, 20, 652, 48, YELLOW, "runtime", "libcudart.so.13: calls, streams, graphs, fat binaries")
    parser = p.box(24, 104, 196, 48, PURPLE, "ptx", "parser: text to a tree")
    program = p.box(252, 104, 196, 48, PURPLE, "program", "lowers it to operations")
    launch = p.box(480, 104, 196, 48, GREY, "launch", "grid, clusters, CTAs")
    p.arrow((122, 68), parser.top, color=INK, width=2)
    p.arrow(parser.right, program.left, color=INK, width=2)
    p.arrow(program.right, launch.left, color=INK, width=2)
    p.arrow((578, 68), launch.top, color=INK, width=2)
    p.rect(24, 186, 492, 318, "#f3f6f9", GREY.mid, radius=8)
    p.text(38, 208, "machine", size=13, bold=True)
    p.arrow((578, 152), (578, 170), (270, 170), (270, 196), color=INK, width=2)
    p.box(140, 196, 260, 46, ORANGE, "scheduler", "one seed decides all orders")
    warps = p.box(
        40,
        280,
        218,
        92,
        BLUE,
        "warps",
        "32 lanes, registers,\ndivergence; execute: a file for\neach instruction family",
    )
    units = p.box(
        282, 280, 218, 92, ORANGE, "asynchronous units", "TMA, tensor cores, commits,\ncluster launch control"
    )
    p.arrow((210, 242), (210, 280), color=ORANGE.dark, width=2)
    p.arrow((330, 242), (330, 280), color=ORANGE.dark, width=2)
    p.arrow(warps.right, units.left, color=INK, width=2)
    p.rect(40, 408, 460, 82, GREEN.tint, GREEN.dark, radius=5, width=1.3)
    p.text(270, 426, "memories", size=12.5, bold=True, color=GREEN.dark, anchor="middle")
    for index, name in enumerate(("global", "shared", "tensor", "mbarriers", "local")):
        p.box(50 + index * 89, 436, 84, 42, GREEN, name, size=12, fill="#ffffff", bold=False)
    p.arrow((149, 372), (149, 408), color=INK, width=2, both=True)
    p.arrow((391, 372), (391, 408), color=INK, width=2, both=True)
    checks = p.box(
        548, 240, 128, 132, RED, "checks", "vector clocks,\nshadow memory,\nwho wrote what,\nthrough which\nproxy"
    )
    report = p.box(548, 418, 128, 62, RED, "report", "text, HTML,\nJSON")
    p.arrow((516, 306), checks.left, color=RED.dark, width=2)
    p.arrow(checks.bottom, report.top, color=RED.dark, width=2)
    return p
