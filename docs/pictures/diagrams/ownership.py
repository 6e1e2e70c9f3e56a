"""Who owns, who borrows, and what moves: buffers, streams, views."""

from svg import BLUE, GREEN, GREY, INK, MUTED, Picture, drawing


@drawing
def ownership() -> Picture:
    p = Picture(
        "Owners and the views that borrow from them",
        "Three columns: what borrows, what owns, and the resource. MatrixView, BatchView and DeviceSpan borrow from "
        "a DeviceBuffer, which owns device memory and keeps its home stream alive. A StreamRef borrows from a "
        "Stream. Owners can be moved, not copied; views can be copied.",
        height=484,
    )
    for x, title, text in (
        (24, "Borrow", "can be copied"),
        (262, "Own", "can be moved, not copied"),
        (520, "Resource", "given back once"),
    ):
        p.text(x, 32, title, size=14, bold=True)
        p.text(x, 50, text, size=12, color=MUTED)
    views = [
        p.box(24, 74, 140, 30, GREEN, "MatrixView", size=12.5),
        p.box(24, 110, 140, 30, GREEN, "BatchView", size=12.5),
        p.box(24, 146, 140, 30, GREEN, "DeviceSpan", size=12.5),
    ]
    buffer = p.box(262, 96, 160, 58, BLUE, "DeviceBuffer<T>")
    memory = p.box(520, 96, 156, 58, GREY, "device memory", "freed in stream order")
    reference = p.box(24, 222, 140, 36, GREEN, "StreamRef", size=12.5)
    stream = p.box(262, 211, 160, 58, BLUE, "Stream")
    native = p.box(520, 206, 156, 68, GREY, "CUDA stream", "counted: gone with\nits last user")
    span = p.box(24, 312, 140, 36, GREEN, "HostSpan", size=12.5)
    pinned = p.box(262, 301, 160, 58, BLUE, "PinnedBuffer<T>")
    host = p.box(520, 301, 156, 58, GREY, "pinned host memory")
    for view in views:
        p.arrow(view.right, (232, view.center.y), (232, buffer.center.y), buffer.left, color=GREEN.dark, dash="5 4")
    p.arrow(reference.right, stream.left, color=GREEN.dark, dash="5 4")
    p.arrow(span.right, pinned.left, color=GREEN.dark, dash="5 4")
    for owner, thing in ((buffer, memory), (stream, native), (pinned, host)):
        p.arrow(owner.right, thing.left, color=BLUE.dark, width=2.2)
    p.arrow(buffer.bottom, (buffer.center.x, 184), (598, 184), native.top, color=BLUE.dark, width=2.2)
    p.label(470, 184, "its home stream", size=11.5, color=BLUE.dark)
    # A move.
    y = 392
    first = p.box(262, y, 118, 46, GREY, "a", "empty now", dash="4 4")
    second = p.box(520, y, 156, 46, BLUE, "b", "owns the memory")
    p.arrow(first.right, second.left, width=2.2, color=INK)
    p.text(450, y + 15, "b = std::move(a)", size=11, mono=True, anchor="middle")
    p.text(
        24, 466, "Event and Graph are owners, too. A view of a temporary buffer does not compile.", size=12, color=MUTED
    )
    p.arrow((26, 404), (66, 404), color=GREEN.dark, dash="5 4")
    p.text(74, 408, "must not outlive", size=11.5)
    p.arrow((26, 428), (66, 428), color=BLUE.dark, width=2.2)
    p.text(74, 432, "keeps alive", size=11.5)
    return p
