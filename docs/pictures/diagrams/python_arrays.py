"""How tessera.gemm reads arrays of each kind, and what it gives back."""

from svg import BLUE, GREEN, GREY, MUTED, ORANGE, Picture, drawing


@drawing
def python_arrays() -> Picture:
    p = Picture(
        "Arrays in, the same kind out",
        "Four kinds of arrays on the left. Tensors of PyTorch are read by DLPack's function table, arrays of CuPy and JAX by "
        "__dlpack__, arrays of numba by __cuda_array_interface__, tessera.Array directly. tessera.gemm runs on the stream of the "
        "first one. It gives back a tensor of PyTorch's caching allocator, an array of the same kind, or a tessera.Array.",
        height=330,
    )
    for x, title in ((24, "Passed"), (206, "Read by"), (410, "Multiplied"), (542, "Given back")):
        p.text(x, 32, title, size=14, bold=True)
    rows = (
        (54, "torch.Tensor", "DLPack's table of\nfunctions: no Python call", "torch.Tensor", "of its caching allocator"),
        (118, "CuPy, JAX", "__dlpack__(stream=...)", "CuPy, JAX", "by from_dlpack"),
        (182, "numba, others", "__cuda_array_interface__", "tessera.Array", "shares its memory"),
        (246, "tessera.Array", "its own members", "tessera.Array", "on the same stream"),
    )
    product = p.box(410, 126, 108, 108, BLUE, "gemm", "one kernel, on\nthe stream of the\nfirst array")
    for y, kind, protocol, result, note in rows:
        array = p.box(24, y, 142, 46, GREEN, kind, size=12.5)
        way = p.box(206, y, 168, 46, GREY, "", protocol)
        given = p.box(542, y, 148, 46, ORANGE, result, note, size=12.5)
        p.arrow(array.right, way.left)
        p.arrow(way.right, (392, way.center.y), (392, product.center.y), product.left)
        p.arrow(product.right, (530, product.center.y), (530, given.center.y), given.left)
    p.text(24, 318, "An array that is ready on another stream is waited for, and its owner's later work waits for the product.",
           size=12, color=MUTED)
    return p
