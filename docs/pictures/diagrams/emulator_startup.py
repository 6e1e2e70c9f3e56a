"""The same program on a GPU and on the emulated device."""

from svg import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, YELLOW, Picture, drawing


@drawing
def emulator_startup() -> Picture:
    p = Picture(
        "The same program on a GPU and on the emulated device",
        "A program with a fat binary calls the CUDA runtime. Started directly, NVIDIA's runtime and driver run machine "
        "code on a GPU. Started by tessera-emu, the emulated runtime takes the PTX out of the fat binary, parses it, "
        "executes it on the CPU and reports what it found.",
        height=560,
    )
    p.rect(150, 20, 400, 92, GREY.tint, GREY.dark, radius=6, width=1.3)
    p.text(350, 42, "your program, not changed", size=13, bold=True, anchor="middle")
    p.box(166, 54, 172, 46, GREY, "host code", "cudaLaunchKernel, ...", fill="#ffffff")
    p.box(350, 54, 184, 46, PURPLE, "fat binary", "PTX, machine code")
    left, right = 176, 524
    width = 250
    p.arrow((260, 112), (260, 138), (left, 138), (left, 172), color=INK, width=2)
    p.arrow((440, 112), (440, 138), (right, 138), (right, 172), color=INK, width=2)
    p.text(188, 160, "./program", size=12, mono=True, bold=True)
    p.text(512, 160, "tessera-emu ./program", size=12, mono=True, bold=True, anchor="end")

    def column(x: float, steps) -> None:
        previous = None
        for index, (hue, title, text) in enumerate(steps):
            box = p.box(x - width / 2, 172 + index * 76, width, 52, hue, title, text)
            if previous is not None:
                p.arrow(previous.bottom, box.top, color=INK, width=2)
            previous = box

    column(
        left,
        (
            (GREY, "libcudart.so.13", "of the CUDA Toolkit"),
            (GREY, "driver", "compiles PTX if it must"),
            (GREY, "GPU", "executes machine code"),
            (GREY, "result", ""),
        ),
    )
    column(
        right,
        (
            (YELLOW, "libcudart.so.13", "of tessera-emu, found first"),
            (PURPLE, "PTX for the device", "taken out and parsed"),
            (BLUE, "execution on the CPU", "warp by warp, all choices by seed"),
            (GREEN, "result", "copied back as on a GPU"),
            (ORANGE, "report", "races, leaks, wrong protocols"),
        ),
    )
    p.note(
        24,
        500,
        290,
        "Link the runtime dynamically and carry PTX. Then nothing is compiled again, and no driver is needed.",
        size=12,
    )
    return p
