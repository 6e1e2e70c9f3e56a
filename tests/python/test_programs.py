"""Tile programs that are compiled at run time."""

import numpy
import pytest

import tessera

SOURCE = """
using namespace tessera;
template <class T>
struct Scaled {
    tile::Input<T, 4, 32> x;
    tile::Numbers<int> steps;
    tile::Output<float, 4, 32> y;
    float factor;
    bool negative;
    std::int16_t offset;
    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
            const auto value = tile::convert<float>(x.load(at)) * factor + steps[at.tile_row()] * STEP + offset;
            y.store(at, negative ? -value : value + 0.0F);
        }
    }
};
template <int M, int N, int K>
struct Layer {
    tile::Input<f16, M, K> a;
    tile::Input<f16, K, N, ColumnMajor> b;
    tile::Input<float, 1, N> bias;
    tile::Output<f16, M, N> d;
    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : d.tiles(cta)) {
            auto sum = tile::zeros<float, M, N>(cta);
            for (auto [left, right] : tile::stream(cta, a.row(at), b.column(at))) {
                sum = mma(left, right, sum);
            }
            d.store(at, tile::convert<f16>(tile::relu(sum + bias.load(at))));
        }
    }
};
"""


@pytest.fixture(scope="module")
def program():
    return tessera.Program(SOURCE, name="programs.cu", definitions=["STEP=10"])


class Int32:
    """A vector of int32 as another framework shows it: the bits are those of a float32 array."""

    def __init__(self, values):
        self.memory = tessera.asarray(numpy.asarray(values, numpy.int32).view(numpy.float32))

    @property
    def __cuda_array_interface__(self):
        return {**self.memory.__cuda_array_interface__, "typestr": "<i4"}


def test_values_of_every_kind(program):
    x = numpy.arange(6 * 40, dtype=numpy.float32).reshape(6, 40)
    y = tessera.empty((6, 40))
    kernel = program.kernel("Scaled<float>")
    for negative in (False, True):
        kernel(tessera.asarray(x), Int32([1, 3]), y, 0.5, negative, -7)
        expected = x * 0.5 + numpy.where(numpy.arange(6) < 4, 10, 30)[:, None] - 7
        assert (y.numpy() == (-expected if negative else expected)).all()


def test_a_product_with_a_transposed_operand(program, random):
    a = random.integers(-3, 4, (50, 40)).astype(numpy.float16)
    b = random.integers(-3, 4, (70, 40)).astype(numpy.float16)
    bias = random.integers(-3, 4, 70).astype(numpy.float32)
    d = tessera.empty((50, 70), "f16")
    layer = program.kernel("Layer<128, 64, 32>")
    layer(tessera.asarray(a), tessera.asarray(b).T, tessera.asarray(bias), d)
    expected = numpy.maximum(a.astype(numpy.float32) @ b.T.astype(numpy.float32) + bias, 0)
    assert (d.numpy() == expected.astype(numpy.float16)).all()


def test_batches(program, random):
    a = random.integers(-3, 4, (3, 20, 16)).astype(numpy.float16)
    b = random.integers(-3, 4, (3, 24, 16)).astype(numpy.float16)
    bias = numpy.zeros(24, numpy.float32)
    d = tessera.empty((3, 20, 24), "f16")
    program.kernel("Layer<128, 64, 32>")(tessera.asarray(a), tessera.asarray(b).T, tessera.asarray(bias), d)
    expected = numpy.maximum(numpy.einsum("bik,bjk->bij", a.astype(numpy.float32), b.astype(numpy.float32)), 0)
    assert (d.numpy() == expected).all()


@pytest.mark.parametrize("change, words", [
    ({3: "half"}, "argument 4 is 'half'"),
    ({5: 40000}, "argument 6 is 40000"),
    ({0: "x"}, "argument 1 is a str"),
    ({1: numpy.zeros(2, numpy.float32)}, "DLPack type 2 with 32 bits"),
    ({0: numpy.zeros((6, 40), numpy.float16)}, "argument 1 has elements of type"),
    ({2: None}, "has 6 members, and the launch 5 arguments"),
])
def test_arguments_that_do_not_fit(program, change, words):
    arguments = [tessera.empty((6, 40)), Int32([1, 3]), tessera.empty((6, 40)), 0.5, False, -7]
    for place, value in change.items():
        arguments[place] = tessera.asarray(value) if isinstance(value, numpy.ndarray) else value
    with pytest.raises(tessera.Error) as caught:
        program.kernel("Scaled<float>")(*[argument for argument in arguments if argument is not None])
    assert words in str(caught.value)


def test_errors_are_at_lines_of_the_source():
    source = SOURCE.replace("y.store(at, negative", "y.stor(at, negative")
    with pytest.raises(tessera.Error) as caught:
        tessera.Program(source, name="wrong.cu", definitions=["STEP=1"]).kernel("Scaled<float>")
    assert caught.value.code == "compilation_failed"
    assert "wrong.cu(15): error" in str(caught.value)


def test_other_gpus(program):
    assert ".target sm_100a" in program.compile("Layer<128, 64, 32>", 10, 0)
