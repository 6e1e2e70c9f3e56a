"""Which folder may use which."""

from svg import BLUE, GREEN, GREY, INK, MUTED, ORANGE, PURPLE, YELLOW, Picture, drawing


@drawing
def dependencies() -> Picture:
    p = Picture(
        "Which folder may use which",
        "examples, tests and bench use sdk/include, which is implemented by sdk/src, which uses kernels, which uses "
        "the device layer. No arrow points back. The emulated device uses nothing of the SDK; they meet at the "
        "interface of the CUDA runtime.",
        height=424,
    )
    users = [
        p.box(24 + index * 134, 24, 122, 44, GREY, name, size=12.5)
        for index, name in enumerate(("examples", "tests", "bench"))
    ]
    include = p.box(24, 110, 390, 50, BLUE, "sdk/include/tessera", "host API: plain C++20, no nvcc")
    src = p.box(24, 202, 390, 50, GREEN, "sdk/src", "checks, choices, launches")
    kernels = p.box(24, 294, 188, 50, ORANGE, "kernels", "internal, not installed")
    device = p.box(24, 364, 390, 46, PURPLE, "sdk/include/tessera/device", "device layer: header-only")
    for user in users:
        p.arrow(user.bottom, (user.center.x, include.y), color=INK, width=2)
    p.arrow(include.bottom, src.top, color=INK, width=2)
    p.arrow((118, src.y2), kernels.top, color=INK, width=2)
    p.arrow(kernels.bottom, (118, device.y), color=INK, width=2)
    p.text(230, 185, "declared here, defined there", size=11.5, color=MUTED)
    authors = p.box(250, 294, 164, 50, GREY, "your kernels", dash="4 4")
    p.arrow(authors.bottom, (authors.center.x, device.y), color=INK, width=2)

    runtime = p.box(476, 202, 200, 50, YELLOW, "CUDA runtime", "libcudart.so.13")
    p.arrow(src.right, runtime.left, color=INK, width=2)
    emulator = p.box(476, 294, 200, 50, GREY, "sdk/emulator", "takes the runtime's place")
    p.arrow(emulator.top, runtime.bottom, color=YELLOW.dark, width=2, dash="5 4")
    p.note(
        476,
        110,
        200,
        "The emulated device and the SDK do not include each other. They meet at the runtime's interface.",
        size=12,
    )
    p.arrow((476, 392), (520, 392), color=INK, width=2)
    p.text(530, 396, "may use", size=12)
    return p
