"""asarray, empty and Array: copies, types, shapes."""

import numpy
import pytest

import tessera


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("shape", [(3, 5), (2, 3, 4), (7,), (), (0, 4)])
def test_a_round_trip_keeps_the_values(random, shape, dtype):
    values = random.standard_normal(shape).astype(dtype)
    array = tessera.asarray(values)
    assert array.shape == shape and array.dtype == {"float32": "f32", "float16": "f16"}[dtype]
    assert array.size == values.size and array.nbytes == values.nbytes and array.ndim == values.ndim
    numpy.testing.assert_array_equal(array.numpy(), values)


def test_values_are_rounded_to_nearest():
    values = [1.0, 1.00390625, -3.0, 65504.0, float("inf"), 448.0, 1 / 3]
    assert list(tessera.asarray(values, "bf16").numpy()) == [1.0, 1.0, -3.0, 65536.0, float("inf"), 448.0, 0.333984375]
    assert list(tessera.asarray(values, "f16").numpy()) == [1.0, 1.00390625, -3.0, 65504.0, float("inf"), 448.0, 0.333251953125]
    assert list(tessera.asarray([1.0, 1.0624, 449.0, 0.3], "f8e4m3").numpy()) == [1.0, 1.0, 448.0, 0.3125]
    assert list(tessera.asarray([1.0, 1.2, 3e4], "f8e5m2").numpy()) == [1.0, 1.25, 28672.0]


def test_types_have_many_names():
    for name in ("f32", "float32", numpy.float32, numpy.dtype("float32")):
        assert tessera.empty((2, 2), name).dtype == "f32"
    with pytest.raises(tessera.Error, match="'?int8'? is no element type"):
        tessera.empty((2, 2), "int8")


def test_values_of_other_types_are_not_converted_unasked():
    with pytest.raises(tessera.Error, match="float64") as caught:
        tessera.asarray(numpy.ones((2, 2)))
    assert caught.value.code == "invalid_argument"
    assert tessera.asarray(numpy.ones((2, 2)), "f32").dtype == "f32"
    assert tessera.asarray([[1, 2]], "f32").numpy().tolist() == [[1, 2]]


def test_an_array_stays_itself():
    array = tessera.empty((2, 3))
    assert tessera.asarray(array) is array


def test_a_transposed_array_shares_its_memory(random):
    values = random.standard_normal((2, 3, 5)).astype("f")
    array = tessera.asarray(values)
    assert array.T.shape == (2, 5, 3) and array.T.strides == (15, 1, 5)
    assert array.T.data_ptr == array.data_ptr
    numpy.testing.assert_array_equal(array.T.numpy(), values.swapaxes(1, 2))
    with pytest.raises(tessera.Error, match="no rows and columns"):
        tessera.empty((3,)).T


def test_a_copy_has_its_own_memory():
    array = tessera.asarray(numpy.ones((2, 2), "f"))
    copy = array.copy()
    assert copy.data_ptr != array.data_ptr
    numpy.testing.assert_array_equal(copy.numpy(), array.numpy())


def test_impossible_shapes_are_refused():
    with pytest.raises(tessera.Error, match="-1"):
        tessera.empty((2, -1))
    with pytest.raises(tessera.Error, match="63 bits"):
        tessera.empty((2**40, 2**40))
    with pytest.raises(tessera.Error) as caught:
        tessera.empty((2**38,))
    assert caught.value.code == "out_of_memory"


def test_what_it_looks_like():
    array = tessera.empty((2, 3), "bf16")
    assert repr(array) == "tessera.Array(2x3, bf16, device 0)"
    assert len(array) == 2 and array.device == 0 and array.stream == 1
