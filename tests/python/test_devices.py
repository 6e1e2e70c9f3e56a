"""Two devices: what is on one stays there, also where a stream's number says nothing of its device."""

import numpy
import pytest

import tessera
from frameworks import Dlpack
from reference import close

pytestmark = pytest.mark.skipif(tessera.device_count() < 2, reason="there is one device")


@pytest.fixture
def operands(random):
    return [tessera.asarray(random.standard_normal(shape), "f32", device=1) for shape in ((24, 16), (16, 40))]


def test_a_product_is_computed_where_its_arrays_are(operands):
    a, b = operands
    assert a.device == 1 and a.__dlpack_device__() == (2, 1)
    result = tessera.gemm(a, b)
    assert result.device == 1 and close(result, a, b)
    result = tessera.gemm(Dlpack(a), Dlpack(b))
    assert result.device == 1 and close(result, a, b)
    plan = tessera.Plan(a, b)
    assert close(plan(a, b), a, b)


def test_arrays_of_two_devices_are_refused(operands):
    with pytest.raises(tessera.Error) as caught:
        tessera.gemm(operands[0], tessera.asarray(numpy.ones((16, 40), "f"), device=0))
    assert caught.value.code == "device_mismatch"


def test_a_missing_device_is_named():
    with pytest.raises(tessera.Error, match="99"):
        tessera.empty((2, 2), device=99)


def test_tensors_of_the_second_device(operands):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    import tessera.torch

    a, b = (torch.from_numpy(array.numpy()).to("cuda:1") for array in operands)
    result = tessera.gemm(a, b)
    assert result.device == torch.device("cuda:1")
    exact = operands[0].numpy().astype(float) @ operands[1].numpy()
    numpy.testing.assert_allclose(result.cpu().numpy(), exact, rtol=1e-4, atol=1e-4)
    stream = torch.cuda.Stream("cuda:1")
    result = tessera.gemm(a, b, stream=stream)
    numpy.testing.assert_allclose(result.cpu().numpy(), exact, rtol=1e-4, atol=1e-4)
    with torch.no_grad():
        weight = torch.from_numpy(numpy.ascontiguousarray(operands[1].numpy().T)).to("cuda:1")
        numpy.testing.assert_allclose(tessera.torch.linear(a, weight).cpu().numpy(), exact, rtol=1e-4, atol=1e-4)
    zeros = torch.zeros(128, 8192, dtype=torch.bfloat16).to("cuda:1")  # whose kernel may need a workspace
    assert not tessera.gemm(zeros, zeros.T).cpu().any()
