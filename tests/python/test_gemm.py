"""tessera.gemm against numpy in float64."""

import numpy
import pytest

import tessera
from reference import ACTIVATIONS, close


def arrays(random, *shapes, dtype="f32"):
    return [tessera.asarray(random.standard_normal(shape), dtype) for shape in shapes]


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "f8e4m3", "f8e5m2"])
@pytest.mark.parametrize("transposed", ["", "a", "b", "ab"])
def test_types_and_orders(random, dtype, transposed):
    a, b = arrays(random, (37, 24) if "a" not in transposed else (24, 37), (24, 40) if "b" not in transposed else (40, 24), dtype=dtype)
    a = a.T if "a" in transposed else a
    b = b.T if "b" in transposed else b
    result = tessera.gemm(a, b)
    assert result.dtype == ("bf16" if dtype.startswith("f8") else dtype)
    assert close(result, a, b)
    assert close(tessera.gemm(a, b, out_dtype="f32"), a, b)


def test_eight_bit_types_may_be_mixed(random):
    [a] = arrays(random, (32, 64), dtype="f8e4m3")
    [b] = arrays(random, (64, 32), dtype="f8e5m2")
    assert close(tessera.gemm(a, b, out_dtype="f32", fp8_accumulation="two_level"), a, b)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations(random, activation):
    a, b = arrays(random, (33, 16), (16, 24))
    assert close(tessera.gemm(a, b, activation=activation), a, b, activation=activation)


def test_everything_that_is_fused(random):
    a, b, c, bias = arrays(random, (33, 16), (16, 24), (33, 24), (24,))
    scale_a = tessera.asarray(random.uniform(0.5, 2, 33), "f32")
    scale_b = tessera.asarray(random.uniform(0.5, 2, 24), "f32")
    x = tessera.empty((33, 24))
    result = tessera.gemm(a, b, c=c, alpha=0.5, beta=-2, bias=bias, activation="silu", scale_a=scale_a, scale_b=scale_b, pre_activation=x)
    known = dict(c=c.numpy().astype(float), alpha=0.5, beta=-2, bias=bias.numpy().astype(float),
                 scale=numpy.outer(scale_a.numpy(), scale_b.numpy()).astype(float))
    assert close(result, a, b, activation="silu", **known)
    assert close(x, a, b, **known)


def test_a_bias_runs_along_columns_or_rows(random):
    a, b = arrays(random, (6, 16), (16, 8))
    for shape in [(8,), (1, 8), (6, 1)]:
        [bias] = arrays(random, shape)
        assert close(tessera.gemm(a, b, bias=bias), a, b, bias=bias.numpy().astype(float))


def test_beta_is_one_if_it_is_left_out(random):
    a, b, c = arrays(random, (6, 16), (16, 8), (6, 8))
    assert close(tessera.gemm(a, b, c=c), a, b, c=c.numpy().astype(float))
    assert close(tessera.gemm(a, b, c=c, beta=0), a, b)


def test_the_result_goes_where_it_is_told(random):
    a, b = arrays(random, (6, 16), (16, 8))
    out = tessera.empty((8, 6))
    assert tessera.gemm(a, b, out=out.T).shape == (6, 8)
    assert close(out.T, a, b)
    same = tessera.asarray(numpy.ones((6, 8), "f"))
    assert tessera.gemm(a, b, out=same, c=same, beta=2) is same
    assert close(same, a, b, c=2.0)


@pytest.mark.parametrize("of_a, of_b", [((3,), (3,)), ((3,), ()), ((), (3,)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((2, 3), (2, 3)), ((0,), ()),
                                        ((2, 1, 3), (2, 1, 3)), ((1,), (1,))])
def test_batches_are_broadcast(random, of_a, of_b):
    a, b = arrays(random, (*of_a, 5, 16), (*of_b, 16, 8))
    assert close(tessera.gemm(a, b), a, b)


def test_samples_of_a_batch_are_rows_of_one_product(random):
    a, w, bias = arrays(random, (4, 7, 16), (24, 16), (24,))
    assert close(tessera.gemm(a, w.T, bias=bias, activation="relu"), a, w.T, bias=bias.numpy().astype(float), activation="relu")
    assert "28x24x16" in tessera.explain(a, w.T)  # one product of 4 * 7 rows
    single = tessera.asarray(random.standard_normal((5, 1, 16)), "f32")
    assert "5x24x16" in tessera.explain(single, w.T)
    assert close(tessera.gemm(single, w.T), single, w.T)


def test_a_scale_or_bias_per_row_is_shared_by_a_batch(random):
    a, b = arrays(random, (4, 7, 16), (16, 24))
    scale = tessera.asarray(random.uniform(0.5, 2, (7, 1)), "f32")
    bias = tessera.asarray(random.standard_normal((7, 1)), "f32")
    result = tessera.gemm(a, b, scale_a=scale, bias=bias)
    assert close(result, a, b, scale=scale.numpy().astype(float), bias=bias.numpy().astype(float))


@pytest.mark.parametrize("gating", ["interleaved", "side_by_side"])
def test_gated_pairs(random, gating):
    a, b = arrays(random, (9, 16), (16, 24))
    x = a.numpy().astype(float) @ b.numpy().astype(float)
    gate, up = (x[:, 0::2], x[:, 1::2]) if gating == "interleaved" else (x[:, :12], x[:, 12:])
    result = tessera.gemm(a, b, gating=gating, activation="silu").numpy()
    numpy.testing.assert_allclose(result, ACTIVATIONS["silu"](gate) * up, rtol=1e-5, atol=1e-5)


def test_an_eight_bit_result_has_a_scale_and_a_maximum(random):
    a, b = arrays(random, (32, 16), (16, 32))
    scale = tessera.asarray([2.0], "f32")
    maximum = tessera.asarray([0.0], "f32")
    result = tessera.gemm(a, b, out_dtype="f8e4m3", scale_d=scale, amax_d=maximum)
    exact = a.numpy().astype(float) @ b.numpy()
    assert result.dtype == "f8e4m3"
    numpy.testing.assert_allclose(result.numpy(), 2 * exact, rtol=2**-4 * 1.01, atol=2**-9)
    numpy.testing.assert_allclose(maximum.numpy()[0], numpy.abs(exact).max(), rtol=1e-5)


def test_tf32_reads_ten_bits(random):
    a, b = arrays(random, (64, 32), (32, 64))
    exact = a.numpy().astype(float) @ b.numpy()
    error = numpy.abs(tessera.gemm(a, b, tf32=True).numpy() - exact)
    bound = (numpy.abs(a.numpy()).astype(float) @ numpy.abs(b.numpy())) * 2.0**-9
    assert numpy.all(error <= bound)
    assert "tf32" in tessera.explain(a, b, tf32=True)


def test_empty_products(random):
    assert tessera.gemm(*arrays(random, (0, 16), (16, 8))).shape == (0, 8)
    assert tessera.gemm(*arrays(random, (3, 16), (16, 0))).shape == (3, 0)
    assert not tessera.gemm(*arrays(random, (3, 0), (0, 8))).numpy().any()


def test_a_variant_can_be_asked_for(random):
    a, b = arrays(random, (40, 16), (16, 24))
    assert close(tessera.gemm(a, b, variant="simt_naive"), a, b)
    with pytest.raises(tessera.Error) as caught:
        tessera.gemm(a, b, variant="blackwell", workspace_limit=0)
    assert caught.value.code == "variant_refused"


def test_a_plan_is_the_product_prepared(random):
    a, b, bias = arrays(random, (40, 16), (16, 24), (24,))
    plan = tessera.Plan(a, b, bias=bias, activation="tanh", alpha=0.5, out_dtype="f16")
    other_a, other_b, other_bias = arrays(random, (40, 16), (16, 24), (24,))
    result = plan(other_a, other_b, bias=other_bias)
    assert result.dtype == "f16"
    assert close(result, other_a, other_b, alpha=0.5, bias=other_bias.numpy().astype(float), activation="tanh")
    out = tessera.empty((40, 24), "f16")
    assert plan(a, b, bias=bias, out=out) is out
    assert plan.variant in plan.explain() and plan.workspace_bytes >= 0
    with pytest.raises(tessera.Error) as caught:
        plan(a, b)  # without the bias
    assert caught.value.code == "shape_mismatch" and "bias" in str(caught.value)
    with pytest.raises(TypeError, match="'activtion'"):
        tessera.Plan(a, b, activtion="tanh")


def test_explain_needs_no_arrays_and_no_such_device():
    text = tessera.explain((4096, 512), (512, 1024), dtype="bf16", device="b200")
    assert text.startswith("4096x1024x512 (MxNxK) bf16 -> bf16") and "runs: blackwell" in text
    assert "hopper" in tessera.explain((4096, 512), (512, 1024), dtype="bf16", device=(9, 0), activation="gelu")
    with pytest.raises(tessera.Error, match="b200"):
        tessera.explain((1, 1), (1, 1), device="b2000")


def test_tuning_is_measured_and_stored(random, tmp_path):
    a, b = arrays(random, (48, 32), (32, 48))
    found = tessera.tune(a, b, time_limit=1e-3)
    assert found.seconds > 0 and found.candidates > 1 and found.variant
    assert close(tessera.gemm(a, b), a, b)
    file = tmp_path / "gemm.tuning"
    tessera.save_tuning(str(file))
    assert tessera.load_tuning(str(file)) >= 1
    assert tessera.load_tuning(str(tmp_path / "none")) == 0


def test_many_threads(random):
    import threading

    a, b = arrays(random, (40, 16), (16, 24))
    wrong = []

    def multiply():
        for _ in range(20):
            if not close(tessera.gemm(a, b), a, b):
                wrong.append(1)

    threads = [threading.Thread(target=multiply) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
