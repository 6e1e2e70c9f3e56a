"""Arrays of the host to the device and back, through numpy."""

from tessera import _core
from tessera._error import Error

_NATIVE = {"float32": "f32", "float16": "f16"}
_HAVE_BITS = {"bfloat16": "bf16", "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2"}  # of ml_dtypes


def asarray(values, dtype=None, *, stream=None, device=None):
    """Copies values of the host to a new Array on the device, without gaps. Blocks.

    values  what numpy.asarray takes
    dtype   "f32", "f16", "bf16", "f8e4m3" or "f8e5m2", or such a type of numpy, torch or ml_dtypes; the values are rounded to it,
            to nearest. Left out: the type of the values, which must be one of these
    stream  the stream that the array is used on, the legacy default stream if it is left out
    device  CUDA's number of the device; left out: the stream's, for a default stream the current device
    """
    import numpy

    if isinstance(values, _core.Array):
        return values
    host = numpy.asarray(values)
    own = _NATIVE.get(host.dtype.name) or _HAVE_BITS.get(host.dtype.name)
    if dtype is None:
        if own is None:
            raise Error(f"invalid_argument: the values are of {host.dtype.name}, which tessera does not multiply\n"
                        '  try: asarray(values, "f32"), or another of its types', "invalid_argument")
        wanted = own
    else:
        wanted = _core._name_of_type(dtype)
    if own == wanted:
        contents = numpy.ascontiguousarray(host)
    elif wanted in _NATIVE.values():
        contents = numpy.ascontiguousarray(host, dtype="float32" if wanted == "f32" else "float16")
    else:
        contents = numpy.empty(host.shape, "uint16" if wanted == "bf16" else "uint8")
        _core._round(numpy.ascontiguousarray(host, dtype="float32"), contents, wanted)
    array = _core.empty(host.shape, wanted, stream=stream, device=device)
    if contents.size:
        array._upload(contents.view("uint8") if contents.ndim else contents.reshape(1).view("uint8"))
    return array


def to_numpy(array):
    """Copies the array to a numpy array. Blocks until the contents are ready.

    Elements of bf16 and of 8 bits become float32, exactly: numpy has no type for them.
    """
    import numpy

    dtype = array.dtype
    raw = numpy.empty(array._extent, {"f32": "float32", "f16": "float16", "bf16": "uint16"}.get(dtype, "uint8"))
    if raw.size:
        array._download(raw.view("uint8"))
    if raw.dtype.name not in _NATIVE:
        widened = numpy.empty(raw.shape, "float32")
        _core._widen(raw, widened, dtype)
        raw = widened
    strides = [stride * raw.itemsize for stride in array.strides]
    return numpy.lib.stride_tricks.as_strided(raw, array.shape, strides)


_core.Array.numpy = to_numpy
