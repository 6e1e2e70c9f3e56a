"""How a variant and its configuration are chosen."""

from svg import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, RED, Picture, drawing


@drawing
def choice() -> Picture:
    p = Picture(
        "How a variant and its configuration are chosen",
        "First question: which variants give the right result for this problem on this device? The others have a "
        "reason. Second question: which of them runs? One that was tuned for the problem; else the first in order "
        "of preference, with a configuration from a cost model.",
        height=390,
    )
    problem = p.box(24, 24, 180, 54, GREY, "problem and device", "plain values")
    eligible = p.box(260, 24, 196, 54, GREEN, "eligible?", "gives the right result here")
    p.arrow(problem.right, eligible.left, color=INK, width=2)
    refused = p.box(512, 24, 164, 54, RED, "refused", "with the reason")
    p.arrow(eligible.right, refused.left, color=RED.dark, width=2)
    p.label(484, 40, "no", size=11.5, color=RED.dark)
    tuned = p.box(260, 126, 196, 54, PURPLE, "tuned?", "Gemm::tune measured it")
    p.arrow(eligible.bottom, tuned.top, color=INK, width=2, label="yes")
    measured = p.box(512, 126, 164, 54, PURPLE, "measured choice", "variant, configuration")
    p.arrow(tuned.right, measured.left, color=PURPLE.dark, width=2)
    p.label(484, 142, "yes", size=11.5, color=PURPLE.dark)
    first = p.box(260, 228, 196, 54, BLUE, "first by preference", "hopper, blackwell, SIMT")
    p.arrow(tuned.bottom, first.top, color=INK, width=2, label="no")
    model = p.box(512, 228, 164, 54, BLUE, "cost model", "chooses a configuration")
    p.arrow(first.right, model.left, color=BLUE.dark, width=2)
    launch = p.box(512, 318, 164, 46, ORANGE, "launch")
    p.arrow(model.bottom, launch.top, color=INK, width=2)
    p.line((676, 153), (688, 153), (688, 341), color=INK, width=2)
    p.arrow((688, 341), launch.right, color=INK, width=2)
    p.note(24, 140, 190, "GemmPlan::explain prints all of this, for any device, without running anything.", size=12)
    p.note(
        24,
        306,
        440,
        "If you name a variant, only its eligibility is checked. Preference never makes a variant eligible.",
        size=12,
    )
    return p
