"""Array types as other packages have them, over tessera's memory: each shows one protocol alone."""

import contextlib
import ctypes
import threading
import time

import tessera


class Dlpack:
    """DLPack of today: says what it was asked."""

    def __init__(self, array):
        self.array = array
        self.asked = []

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        self.asked.append({"stream": stream, "max_version": max_version})
        return self.array.__dlpack__(stream=stream, max_version=max_version)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class OldDlpack(Dlpack):
    """DLPack before version 1."""

    def __dlpack__(self, stream=None):
        self.asked.append({"stream": stream})
        return self.array.__dlpack__(stream=stream)


class Standard(Dlpack):
    """An array of the Python array API standard, as CuPy and JAX have them."""

    def __array_namespace__(self, api_version=None):
        return Standard

    @staticmethod
    def from_dlpack(x):
        capsule = x.__dlpack__(stream=1, max_version=(1, 0))
        assert "dltensor_versioned" in repr(capsule)
        return Standard(x)


class HostDlpack(Dlpack):
    def __dlpack_device__(self):
        return (1, 0)


class Interface:
    """The CUDA array interface alone, as numba has it."""

    def __init__(self, array, **changes):
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, **changes}
        self.array = array


# DLPack's function table, which torch has since 2.10.

class DLDevice(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", DLDevice), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


SET_ERROR = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
ALLOCATE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(DLTensor), ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p, SET_ERROR)
EXPORT = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.c_void_p))
TO_OBJECT = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))
BORROW = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DLTensor))
CURRENT = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))


class Table(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("previous", ctypes.c_void_p), ("allocate", ALLOCATE),
                ("export", EXPORT), ("to_object", TO_OBJECT), ("borrow", BORROW), ("current", CURRENT)]


python = ctypes.pythonapi
python.PyCapsule_New.restype = ctypes.py_object
python.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
python.PyCapsule_GetPointer.restype = ctypes.c_void_p
python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
python.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
python.Py_IncRef.argtypes = [ctypes.py_object]


class Tensor:
    """An array whose type has a function table, with an allocator and a current stream of its own."""

    stream = 0
    allocated = []  # shapes
    is_full = False
    made = {}

    def __init__(self, array, managed=None):
        self.array = array
        self.managed = managed
        count = max(1, array.ndim)
        self.shape = (ctypes.c_int64 * count)(*array.shape)
        self.strides = (ctypes.c_int64 * count)(*array.strides)

    def __del__(self):
        if self.managed is not None:  # a function of its own member: version, context, deleter
            deleter = ctypes.cast(self.managed, ctypes.POINTER(ctypes.c_void_p))[2]
            ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleter)(self.managed)


TYPES = {(2, 32): "f32", (2, 16): "f16", (4, 16): "bf16", (1, 8): "f8e4m3"}  # workspaces are bytes
CODES = {"f32": (2, 32), "f16": (2, 16), "bf16": (4, 16)}


USED = b"used_dltensor_versioned"  # a capsule keeps the address


@ALLOCATE
def allocate(prototype, out, context, set_error):
    wanted = prototype.contents
    if Tensor.is_full:
        set_error(context, b"MemoryError", b"the pool is empty")
        return -1
    shape = tuple(wanted.shape[i] for i in range(wanted.ndim))
    Tensor.allocated.append(shape)
    array = tessera.empty(shape, TYPES[wanted.code, wanted.bits], stream=Tensor.stream or None)
    capsule = array.__dlpack__(stream=-1, max_version=(1, 0))
    out[0] = python.PyCapsule_GetPointer(capsule, b"dltensor_versioned")
    python.PyCapsule_SetName(capsule, USED)
    Tensor.made[out[0]] = array
    return 0


@EXPORT
def export(tensor, out):
    return -1


@TO_OBJECT
def to_object(managed, out):
    tensor = Tensor(Tensor.made.pop(managed), managed)
    python.Py_IncRef(tensor)
    out[0] = id(tensor)
    return 0


@BORROW
def borrow(tensor, out):
    code, bits = CODES[tensor.array.dtype]
    out[0] = DLTensor(tensor.array.data_ptr, DLDevice(2, tensor.array.device), tensor.array.ndim, code, bits, 1, tensor.shape,
                      tensor.strides, 0)
    return 0


@CURRENT
def current(kind, device, out):
    out[0] = Tensor.stream
    return 0


TABLE = Table(1, 3, None, allocate, export, to_object, borrow, current)
NAME = b"dlpack_exchange_api"  # a capsule keeps the address
Tensor.__dlpack_c_exchange_api__ = python.PyCapsule_New(ctypes.addressof(TABLE), NAME, None)


HOST_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Cuda:
    """Streams and captures of the CUDA runtime."""

    def __init__(self):
        self.runtime = ctypes.CDLL("libcudart.so.13")

    def call(self, name, *arguments):
        status = getattr(self.runtime, name)(*arguments)
        assert status == 0, (name, status)

    def stream(self):
        made = ctypes.c_void_p()
        self.call("cudaStreamCreateWithFlags", ctypes.byref(made), 1)  # non-blocking
        return made.value

    def used_bytes(self):
        """Bytes of the device's pool that are allocated now."""
        pool, used = ctypes.c_void_p(), ctypes.c_uint64()
        self.call("cudaDeviceSynchronize")
        self.call("cudaDeviceGetDefaultMemPool", ctypes.byref(pool), 0)
        self.call("cudaMemPoolGetAttribute", pool, 7, ctypes.byref(used))  # cudaMemPoolAttrUsedMemCurrent
        return used.value

    def destroy(self, stream):
        self.call("cudaStreamDestroy", ctypes.c_void_p(stream))

    def is_done(self, stream):
        status = self.runtime.cudaStreamQuery(ctypes.c_void_p(stream))
        assert status in (0, 600), status  # 600: cudaErrorNotReady
        return status == 0

    def becomes_done(self, stream, seconds=10):
        end = time.monotonic() + seconds
        while not self.is_done(stream) and time.monotonic() < end:
            time.sleep(1e-3)
        return self.is_done(stream)

    def copy(self, to, source, size, stream):
        self.call("cudaMemcpyAsync", ctypes.c_void_p(to), ctypes.c_void_p(source), ctypes.c_size_t(size), 4, ctypes.c_void_p(stream))

    @contextlib.contextmanager
    def held(self, stream):
        """While this lasts, work that is enqueued on the stream does not begin."""
        released = threading.Event()
        function = HOST_FUNCTION(lambda _: released.wait(60))
        self.call("cudaLaunchHostFunc", ctypes.c_void_p(stream), function, None)
        try:
            yield
        finally:
            released.set()
            self.call("cudaStreamSynchronize", ctypes.c_void_p(stream))  # the function must not outlive this

    def begin_capture(self, stream):
        self.call("cudaStreamBeginCapture", ctypes.c_void_p(stream), 2)  # relaxed

    def is_capturing(self, stream):
        status = ctypes.c_int()
        self.call("cudaStreamIsCapturing", ctypes.c_void_p(stream), ctypes.byref(status))
        return status.value == 1

    def end_capture(self, stream):
        """Returns the number of nodes. Fails if a stream that joined the capture has not come back."""
        graph = ctypes.c_void_p()
        self.call("cudaStreamEndCapture", ctypes.c_void_p(stream), ctypes.byref(graph))
        count = ctypes.c_size_t()
        self.call("cudaGraphGetNodes", graph, None, ctypes.byref(count))
        self.call("cudaGraphDestroy", graph)
        return count.value
