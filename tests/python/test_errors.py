"""What is refused, and in which words."""

import pickle

import numpy
import pytest

import tessera


def ones(*shape, dtype="f32"):
    return tessera.asarray(numpy.ones(shape), dtype)


MISTAKES = [
    ("shape_mismatch", "A is 4x3 and B is 4x3: A*B needs A's columns (3) equal to B's rows (4)\n  try: B looks transposed: pass b.T",
     lambda: tessera.gemm(ones(4, 3), ones(4, 3))),
    ("shape_mismatch", "A has 1 dimension\n  try: two or more", lambda: tessera.gemm(ones(3), ones(3, 4))),
    ("shape_mismatch", "A is 2x4x3 and B is 5x3x4: their batches of 2 and 5 differ", lambda: tessera.gemm(ones(2, 4, 3), ones(5, 3, 4))),
    ("shape_mismatch", "so D is 4x4, but out is 4x5", lambda: tessera.gemm(ones(4, 3), ones(3, 4), out=ones(4, 5))),
    ("shape_mismatch", "so D is 4x4, but out is 4", lambda: tessera.gemm(ones(4, 3), ones(3, 4), out=ones(4))),
    ("shape_mismatch", "C is 4x3 and D is 4x4", lambda: tessera.gemm(ones(4, 3), ones(3, 4), c=ones(4, 3))),
    ("shape_mismatch", "the bias has 3 elements and D is 4x4", lambda: tessera.gemm(ones(4, 3), ones(3, 4), bias=ones(3))),
    ("shape_mismatch", "the bias is 2x2: it is a vector", lambda: tessera.gemm(ones(4, 3), ones(3, 4), bias=ones(2, 2))),
    ("shape_mismatch", "scale_a has 3 elements", lambda: tessera.gemm(ones(4, 3), ones(3, 4), scale_a=ones(3))),
    ("invalid_argument", "A has elements of f32 and B of f16", lambda: tessera.gemm(ones(4, 3), ones(3, 4, dtype="f16"))),
    ("invalid_argument", "C has elements of f16 and D of f32", lambda: tessera.gemm(ones(4, 3), ones(3, 4), c=ones(4, 4, dtype="f16"))),
    ("invalid_argument", "'gelo' is no activation\n  try: none, relu, gelu", lambda: tessera.gemm(ones(4, 3), ones(3, 4), activation="gelo")),
    ("invalid_argument", "beta is 2, but there is no C\n  try: pass c, or leave beta out",
     lambda: tessera.gemm(ones(4, 3), ones(3, 4), beta=2)),
    ("invalid_argument", "alpha is no number", lambda: tessera.gemm(ones(4, 3), ones(3, 4), alpha="2")),
    ("invalid_argument", "A is a list", lambda: tessera.gemm([[1.0]], ones(3, 4))),
    ("invalid_argument", "tf32 is for inputs of f32", lambda: tessera.gemm(ones(4, 3, dtype="f16"), ones(3, 4, dtype="f16"), tf32=True)),
    ("invalid_argument", "hopper", lambda: tessera.gemm(ones(4, 3), ones(3, 4), variant="hoper")),
    ("invalid_argument", "a str is no stream", lambda: tessera.gemm(ones(4, 3), ones(3, 4), stream="fast")),
    ("wrong_memory", "A is a numpy.ndarray in host memory\n  try: copy it to the device: tessera.asarray(array)",
     lambda: tessera.gemm(numpy.ones((4, 3), "f"), ones(3, 4))),
    ("aliasing", "D", lambda: (lambda a: tessera.gemm(a, a, out=a))(ones(4, 4))),
]


@pytest.mark.parametrize("code, words, mistake", MISTAKES, ids=[words[:40] for _, words, _ in MISTAKES])
def test_a_mistake_gets_our_sentence(code, words, mistake):
    with pytest.raises(tessera.Error) as caught:
        mistake()
    assert caught.value.code == code
    assert words in str(caught.value)
    for foreign in ("Gemm::", "transposed()", "tessera_gemm", ".c,"):
        assert foreign not in str(caught.value)


def test_an_unknown_argument_is_a_type_error():
    with pytest.raises(TypeError, match="axtivation"):
        tessera.gemm(ones(4, 3), ones(3, 4), axtivation="relu")


def test_an_error_is_a_runtime_error_that_can_be_pickled():
    with pytest.raises(RuntimeError) as caught:
        tessera.gemm(ones(4, 3), ones(4, 3))
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value) and copy.code == "shape_mismatch" and copy.cuda_error == 0
    assert type(copy).__module__ == "tessera"
