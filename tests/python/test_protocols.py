"""Arrays of others: what they are asked, what is given back, and which stream waits for which.

A stream that is being captured shows an order: a stream that waits for it is captured, too, and the capture ends only when all
of them have come back.
"""

import gc
import tracemalloc

import numpy
import pytest

import tessera
from frameworks import Cuda, Dlpack, HostDlpack, Interface, OldDlpack, Standard, Tensor
from reference import close


@pytest.fixture
def operands(random):
    return tessera.asarray(random.standard_normal((24, 16)), "f32"), tessera.asarray(random.standard_normal((16, 40)), "f32")


@pytest.fixture
def cuda():
    return Cuda()


@pytest.fixture
def two_streams(cuda):
    streams = cuda.stream(), cuda.stream()
    yield streams
    gc.collect()
    for stream in streams:
        cuda.destroy(stream)


@pytest.fixture
def framework():
    yield Tensor
    tessera._core._release_workspaces()
    Tensor.stream, Tensor.is_full = 0, False
    Tensor.allocated.clear()
    Tensor.made.clear()


def test_dlpack_is_asked_for_our_stream(operands):
    a, b = map(Dlpack, operands)
    result = tessera.gemm(a, b)
    assert a.asked == b.asked == [{"stream": 1, "max_version": (1, 0)}]
    assert isinstance(result, tessera.Array) and close(result, *operands)


def test_dlpack_is_asked_for_the_stream_that_was_passed(operands, two_streams):
    a, b = map(Dlpack, operands)
    result = tessera.gemm(a, b, stream=two_streams[0])
    assert a.asked[0]["stream"] == two_streams[0] == result.stream
    tessera.synchronize(two_streams[0])
    assert close(result, *operands)


def test_dlpack_before_version_1(operands):
    a, b = map(OldDlpack, operands)
    assert close(tessera.gemm(a, b), *operands)
    assert a.asked == [{"stream": 1}]


def test_an_array_of_the_standard_gives_its_own_kind(operands):
    result = tessera.gemm(Standard(operands[0]), operands[1])
    assert isinstance(result, Standard) and close(result.array, *operands)


def test_a_package_that_imports_dlpack_gives_its_own_kind(operands, monkeypatch):
    import sys
    import types

    package = types.ModuleType("package")  # torch before it had a function table
    package.from_dlpack = lambda array: package.Tensor(array)
    package.Tensor = type("Tensor", (Dlpack,), {"__module__": "package.tensors"})
    monkeypatch.setitem(sys.modules, "package", package)
    result = tessera.gemm(package.Tensor(operands[0]), operands[1])
    assert isinstance(result, package.Tensor) and close(result.array, *operands)


def test_cupy_is_asked_for_its_current_stream(operands, monkeypatch, two_streams):
    import sys
    import types

    cupy = types.ModuleType("cupy")  # a stand-in; the real one is in test_others.py
    cupy.cuda = types.SimpleNamespace(get_current_stream=lambda: types.SimpleNamespace(ptr=two_streams[1]))
    cupy.ndarray = type("ndarray", (Dlpack,), {"__module__": "cupy"})
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    a = cupy.ndarray(operands[0])
    result = tessera.gemm(a, operands[1])
    assert a.asked[0]["stream"] == two_streams[1] == result.stream
    assert close(result, *operands)


def test_the_cuda_array_interface(operands):
    a, b = operands
    assert close(tessera.gemm(Interface(a), Interface(b)), a, b)
    assert close(tessera.gemm(Interface(a, strides=None), Interface(b, stream=None)), a, b)
    assert close(tessera.gemm(Interface(b).array.T, Interface(a.T)), b.T, a.T)
    half = tessera.asarray(a.numpy(), "f16")
    assert half.__cuda_array_interface__["typestr"] == "<f2" and half.__cuda_array_interface__["stream"] == 1
    assert not hasattr(tessera.empty((2, 2), "bf16"), "__cuda_array_interface__")
    with pytest.raises(tessera.Error, match="'<i4'"):
        tessera.gemm(Interface(a, typestr="<i4"), b)
    with pytest.raises(tessera.Error, match="stride of 6 bytes"):
        tessera.gemm(Interface(a, strides=(6, 4)), b)


def test_what_is_read_only_is_no_result(operands):
    a, b = operands
    out = tessera.empty((24, 40))
    with pytest.raises(tessera.Error, match="read-only"):
        tessera.gemm(a, b, out=Interface(out, data=(out.data_ptr, True)))
    written = Interface(out)
    assert tessera.gemm(a, b, out=written) is written
    assert close(out, a, b)


def test_host_memory_is_refused_by_its_device(operands):
    with pytest.raises(tessera.Error, match="B is a frameworks.HostDlpack in host memory"):
        tessera.gemm(operands[0], HostDlpack(operands[1]))


def test_streams_have_many_forms(operands, two_streams):
    class Torch:
        cuda_stream = two_streams[0]

    class Cupy:
        ptr = two_streams[0]

    class Core:
        def __cuda_stream__(self):
            return (0, two_streams[0])

    for stream in (two_streams[0], Torch(), Cupy(), Core()):
        assert tessera.gemm(*operands, stream=stream).stream == two_streams[0]
    tessera.synchronize(two_streams[0])


def test_an_export_makes_the_consumer_wait(cuda, two_streams):
    home, consumer = two_streams
    array = tessera.asarray(numpy.ones((4, 4), "f"), stream=home)
    cuda.begin_capture(home)
    unused = array.__dlpack__(stream=-1)
    assert not cuda.is_capturing(consumer)  # -1: the consumer synchronizes itself
    capsule = array.__dlpack__(stream=consumer)
    assert cuda.is_capturing(consumer)
    # Come back, so that the capture can end.
    cuda_wait(cuda, home, consumer)
    cuda.end_capture(home)
    del capsule, unused


def cuda_wait(cuda, waiting, other):
    import ctypes

    event = ctypes.c_void_p()
    cuda.call("cudaEventCreateWithFlags", ctypes.byref(event), 2)
    cuda.call("cudaEventRecord", event, ctypes.c_void_p(other))
    cuda.call("cudaStreamWaitEvent", ctypes.c_void_p(waiting), event, 0)
    cuda.call("cudaEventDestroy", event)


def test_the_free_waits_for_the_consumer(cuda, two_streams):
    home, consumer = two_streams
    array = tessera.asarray(numpy.ones(1024, "f"), stream=home)
    seen = tessera.asarray(numpy.zeros(1024, "f"), stream=consumer)
    address, used = array.data_ptr, cuda.used_bytes()
    with cuda.held(consumer):
        capsule = array.__dlpack__(stream=consumer)
        cuda.copy(seen.data_ptr, address, 4096, consumer)  # has not begun
        del array
        assert cuda.becomes_done(home)  # the consumer has not given the memory back: nothing waits for it yet
        del capsule
        assert not cuda.is_done(home)  # the free is behind what the consumer reads
    assert (seen.numpy() == 1).all()
    assert cuda.used_bytes() < used


def test_what_comes_after_the_consumer_waits_for_it(cuda, two_streams):
    """The owner overwrites the array that it lent, as soon as it has it back."""
    home, consumer = two_streams
    array = tessera.asarray(numpy.ones(1024, "f"), stream=home)
    zeros = tessera.asarray(numpy.zeros(1024, "f"), stream=home)
    seen = tessera.asarray(numpy.zeros(1024, "f"), stream=consumer)
    with cuda.held(consumer):
        capsule = array.__dlpack__(stream=consumer)
        cuda.copy(seen.data_ptr, array.data_ptr, 4096, consumer)
        del capsule
        cuda.copy(array.data_ptr, zeros.data_ptr, 4096, home)
    tessera.synchronize(home)
    assert (seen.numpy() == 1).all()
    assert (array.numpy() == 0).all()


def test_an_operand_of_others_is_given_back_behind_the_product(cuda, operands, two_streams):
    """What we consume: its owner's later work waits for our product, which runs on another stream."""
    home, other = two_streams
    a, b = (tessera.asarray(array.numpy(), stream=home) for array in operands)
    tessera.gemm(a, b)  # loads the kernel, which may wait for the device
    with cuda.held(other):
        result = tessera.gemm(Dlpack(a), Dlpack(b), stream=other)
        assert not cuda.is_done(home)
    assert close(result, *operands)


def test_an_export_on_the_own_stream_waits_for_nothing(cuda, two_streams):
    array = tessera.empty((4, 4), stream=two_streams[0])
    cuda.begin_capture(two_streams[0])
    capsule = array.__dlpack__(stream=two_streams[0])
    assert cuda.end_capture(two_streams[0]) == 0
    del capsule
    with pytest.raises(tessera.Error, match="stream 0"):
        array.__dlpack__(stream=0)
    with pytest.raises(BufferError, match="numpy"):
        array.__dlpack__(dl_device=(1, 0))


def test_a_product_waits_for_its_arrays_and_they_for_it(cuda, operands, two_streams):
    home, other = two_streams
    a, b = (tessera.asarray(array.numpy(), stream=home) for array in operands)
    out = tessera.empty((24, 40), stream=home)
    cuda.begin_capture(home)
    tessera.gemm(a, b, out=out, stream=other)
    assert cuda.is_capturing(other)  # it waited for `home` ...
    assert cuda.end_capture(home) >= 1  # ... which has waited for it: the capture can end, and has the product


def test_a_product_runs_on_the_stream_of_its_first_array(cuda, operands, two_streams):
    a, b = (tessera.asarray(array.numpy(), stream=two_streams[0]) for array in operands)
    result = tessera.gemm(a, b)
    assert result.stream == two_streams[0]
    assert close(result, *operands)


def test_a_function_table_is_used(operands, framework, cuda, two_streams):
    framework.stream = two_streams[0]
    a, b = (Tensor(tessera.asarray(array.numpy(), stream=framework.stream)) for array in operands)
    result = tessera.gemm(a, b)
    assert isinstance(result, Tensor) and framework.allocated == [(24, 40)]
    assert result.array.stream == framework.stream and close(result.array, *operands)


def test_a_full_allocator_is_named(operands, framework):
    framework.is_full = True
    with pytest.raises(tessera.Error, match="MemoryError: the pool is empty") as caught:
        tessera.gemm(*map(Tensor, operands))
    assert caught.value.code == "out_of_memory"


def test_workspaces_come_from_the_framework(framework):
    tessera._core._release_workspaces()
    zeros = tessera.asarray(numpy.zeros((128, 8192)), "bf16")
    a = Tensor(zeros)
    need = tessera.Plan(zeros, zeros.T).workspace_bytes
    if need == 0:
        pytest.skip("no kernel for this device needs a workspace")
    assert not tessera.gemm(a, Tensor(zeros.T)).array.numpy().any()
    assert framework.allocated == [(128, 128), (need,)]
    tessera.gemm(a, Tensor(zeros.T))  # the library keeps the block of a stream
    assert framework.allocated == [(128, 128), (need,), (128, 128)]


def test_a_captured_product_takes_its_workspace_of_the_framework(framework, cuda, two_streams):
    zeros = tessera.asarray(numpy.zeros((128, 8192)), "bf16", stream=two_streams[0])
    need = tessera.Plan(zeros, zeros.T).workspace_bytes
    if need == 0:
        pytest.skip("no kernel for this device needs a workspace")
    framework.stream = two_streams[0]
    out = Tensor(tessera.empty((128, 128), "bf16", stream=framework.stream))
    cuda.begin_capture(framework.stream)
    assert tessera.gemm(Tensor(zeros), Tensor(zeros.T), out=out) is out
    assert cuda.end_capture(framework.stream) >= 2  # allocation, memset, kernel, free
    assert framework.allocated == [(need,)]


@pytest.mark.parametrize("kind", [Dlpack, OldDlpack, Standard, Interface, Tensor])
def test_a_thousand_products_leak_nothing(framework, cuda, operands, kind):
    def used_bytes():
        gc.collect()
        Tensor.made.clear()
        return cuda.used_bytes()

    a, b = map(kind, operands)

    def multiply(times):
        for _ in range(times):
            tessera.gemm(a, b)
            if hasattr(a, "asked"):
                a.asked.clear(), b.asked.clear()

    multiply(10)
    before = used_bytes()
    multiply(1000 if kind in (Dlpack, Tensor) else 50)
    assert used_bytes() == before


def test_a_thousand_round_trips_with_numpy_leak_nothing(cuda, random):
    """On the device, and on the host."""
    values = random.standard_normal((64, 64)).astype("f")

    def round_trips(times):
        for _ in range(times):
            assert (tessera.asarray(values, "f32").numpy() == values).all()

    round_trips(10)
    before = cuda.used_bytes()
    tracemalloc.start()
    try:
        round_trips(10)
        gc.collect()
        host = tracemalloc.get_traced_memory()[0]
        round_trips(1000)
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - host < values.nbytes  # one of the thousand arrays
    finally:
        tracemalloc.stop()
    assert cuda.used_bytes() == before


def test_an_unused_export_leaks_nothing(cuda):
    before = cuda.used_bytes()
    array = tessera.empty((4, 4))
    for _ in range(1000):
        array.__dlpack__(max_version=(1, 0)), array.__dlpack__()
    del array
    assert cuda.used_bytes() == before


def test_an_export_keeps_the_memory(cuda):
    before = cuda.used_bytes()
    array = tessera.empty((4, 4))
    capsule = array.__dlpack__()
    del array
    assert cuda.used_bytes() > before
    del capsule
    assert cuda.used_bytes() == before
