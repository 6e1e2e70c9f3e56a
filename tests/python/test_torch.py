"""tessera with torch tensors: on a GPU with PyTorch. Under tessera-emu, PyTorch's own kernels cannot run (they are machine code);
what needs them is skipped there."""

import copy
import gc
import os
import sys

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import tessera  # noqa: E402
import tessera.torch  # noqa: E402
from conftest import SEED  # noqa: E402

emulated = "emulated" in torch.cuda.get_device_name() if tessera.device_count() else True
needs_kernels = pytest.mark.skipif(emulated, reason="PyTorch's kernels are machine code, which tessera-emu does not run")
ACTIVATIONS = tessera.torch.ACTIVATIONS


def randn(*shape, dtype=torch.float32, requires_grad=False):
    generator = torch.Generator().manual_seed(randn.seed)
    randn.seed += 1
    return torch.randn(*shape, generator=generator).to(dtype).cuda().requires_grad_(requires_grad)


randn.seed = SEED


def act(activation, x):
    return tessera.torch._activated(activation, x)


def close(result, exact, dtype=torch.float32, factor=1.0):
    """Compares with float64 on the host. Inputs are rounded by now, so what differs is sums in fp32 and the result's rounding."""
    unit = {torch.float32: 2.0**-18, torch.float16: 2.0**-10, torch.bfloat16: 2.0**-7}[dtype]
    return torch.allclose(result.detach().cpu().double(), exact.detach(), rtol=factor * unit, atol=factor * unit * float(exact.abs().max()))


def host(*tensors):
    return [None if tensor is None else tensor.detach().cpu().double() for tensor in tensors]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_tensors_in_and_out(dtype):
    a, b, bias = randn(5, 33, 64, dtype=dtype), randn(40, 64, dtype=dtype), randn(40, dtype=dtype)
    result = tessera.gemm(a, b.T, bias=bias, activation="gelu")
    a64, b64, bias64 = host(a, b, bias)
    assert type(result) is torch.Tensor and result.dtype == dtype and result.device == a.device and result.is_contiguous()
    assert close(result, act("gelu", a64 @ b64.T + bias64), dtype)
    out = torch.empty_like(result)
    assert tessera.gemm(a, b.T, bias=bias, activation="gelu", out=out) is out
    assert torch.equal(out.cpu(), result.cpu())


def test_eight_bits():
    a = torch.randn(64, 64, generator=torch.Generator().manual_seed(SEED)).to(torch.float8_e4m3fn).cuda()
    result = tessera.gemm(a, a.T, out_dtype=torch.float32)
    a64 = a.cpu().double()
    assert result.dtype == torch.float32
    error = (result.cpu().double() - a64 @ a64.T).abs()
    assert torch.all(error <= 72 * 2.0**-13 * (a64.abs() @ a64.abs().T))  # 64 products in the 14 bits that Hopper keeps


def test_slices_and_transposes_are_not_copied():
    big = randn(100, 200)
    [big64] = host(big)
    a, b = big[10:43, 8:72], big[:64, 100:140]
    a64, b64 = big64[10:43, 8:72], big64[:64, 100:140]
    assert close(tessera.gemm(a, b), a64 @ b64)
    assert close(tessera.gemm(a.T, a), a64.T @ a64)
    with pytest.raises(tessera.Error, match="strides of 400 and 2: rows or columns must be contiguous"):
        tessera.gemm(big[::2, ::2], b)


@needs_kernels
def test_layers_take_any_strides():
    x, w = randn(40, 128), randn(64, 128)
    x64, w64 = host(x, w)
    assert close(tessera.torch.linear(x[::2, ::2], w[:, ::2], None, "relu"), (x64[::2, ::2] @ w64[:, ::2].T).clamp(min=0))
    many = randn(2, 3, 4, 5, 16).permute(2, 0, 1, 3, 4)
    assert close(tessera.torch.matmul(many, many.mT), host(many)[0] @ host(many)[0].mT)


def test_mistakes():
    a = randn(4, 4)
    with pytest.raises(tessera.Error, match=r"torch.Tensor in host memory\n  try: move it to the device: tensor.cuda"):
        tessera.gemm(a.cpu(), a)
    with pytest.raises(tessera.Error, match="requires a gradient"):
        tessera.gemm(randn(4, 4, requires_grad=True), a)
    with torch.no_grad():
        tessera.gemm(randn(4, 4, requires_grad=True), a)
    with pytest.raises(tessera.Error, match="'gelo' is no activation"):
        tessera.torch.linear(a, a, activation="gelo")
    with pytest.raises(tessera.Error, match="A is 4x4 and B is 8x4"):
        tessera.torch.linear(a, randn(4, 8))


def test_the_current_stream():
    a, b = randn(33, 64), randn(64, 40)
    expected = tessera.gemm(a, b).cpu()
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        result = tessera.gemm(a, b)
    stream.synchronize()
    assert torch.equal(result.cpu(), expected)
    # Named: PyTorch's current stream is ordered before and after it.
    result = tessera.gemm(a, b, stream=stream)
    assert torch.equal(result.cpu(), expected)


def test_arrays_of_both_kinds():
    a = randn(33, 64)
    array = tessera.asarray(a.cpu().numpy())
    assert torch.equal(torch.from_dlpack(array).cpu(), a.cpu())
    assert isinstance(tessera.gemm(a, array.T), torch.Tensor)
    assert isinstance(tessera.gemm(array, a.T), tessera.Array)
    with torch.cuda.stream(torch.cuda.Stream()):
        assert torch.equal(torch.from_dlpack(array).cpu(), a.cpu())


def test_a_thousand_round_trips_leak_nothing():
    values = randn(8, 8).cpu().numpy()

    def round_trip():
        tensor = torch.from_dlpack(tessera.asarray(values))
        return tessera.gemm(tensor, tensor)

    for _ in range(10):
        round_trip()
    gc.collect()
    torch.cuda.synchronize()
    free, _ = torch.cuda.mem_get_info()
    allocated = torch.cuda.memory_allocated()
    for _ in range(1000):
        round_trip()
    gc.collect()
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() == allocated
    assert torch.cuda.mem_get_info()[0] == free


def test_workspaces_are_of_the_caching_allocator():
    tessera._core._release_workspaces()
    a = torch.zeros(128, 8192, dtype=torch.bfloat16).cuda()
    need = tessera.Plan(a, a.T).workspace_bytes
    if need == 0:
        pytest.skip("no kernel for this device needs a workspace")
    before = torch.cuda.memory_allocated()
    result = tessera.gemm(a, a.T)
    size = torch.cuda.memory_allocated() - before
    assert need <= size <= need + result.nbytes + 4096
    tessera._core._release_workspaces()
    del result
    assert torch.cuda.memory_allocated() == before


def parts(dtype=torch.float32, requires_grad=False, bias=True):
    return (randn(3, 17, 64, dtype=dtype, requires_grad=requires_grad), randn(40, 64, dtype=dtype, requires_grad=requires_grad),
            randn(40, dtype=dtype, requires_grad=requires_grad) if bias else None)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("bias", [True, False])
def test_linear(activation, bias):
    x, w, b = parts(bias=bias)
    x64, w64, b64 = host(x, w, b)
    exact = act(activation, torch.nn.functional.linear(x64, w64, b64))
    assert close(tessera.torch.linear(x, w, b, activation), exact)
    assert close(torch.ops.tessera.linear(x, w, b, activation), exact)
    y, pre_activation = torch.ops.tessera.linear_for_training(x, w, b, activation)
    assert close(y, exact) and close(pre_activation, torch.nn.functional.linear(x64, w64, b64))


@pytest.mark.parametrize("activation", ["silu", "gelu", "sigmoid"])
def test_gated_linear(activation):
    x, w, b = parts()
    x64, w64, b64 = host(x, w, b)
    gate, up = torch.nn.functional.linear(x64, w64, b64).chunk(2, dim=-1)
    exact = act(activation, gate) * up
    assert close(tessera.torch.gated_linear(x, w, b, activation), exact)
    assert close(torch.ops.tessera.gated_linear(x, w, b, activation), exact)


def test_gradients_without_kernels_of_torch():
    """The products of a backward pass; a device that runs PyTorch's kernels has all of it, below."""
    x, w, _ = parts(requires_grad=True)
    gradient = randn(3, 17, 40)
    tessera.torch.linear(x, w).backward(gradient)
    x64, w64, g64 = host(x, w, gradient)
    assert close(x.grad, g64 @ w64)
    assert close(w.grad, g64.reshape(-1, 40).T @ x64.reshape(-1, 64))
    a, b = randn(5, 17, 64, requires_grad=True), randn(5, 64, 24, requires_grad=True)
    gradient = randn(5, 17, 24)
    tessera.torch.matmul(a, b).backward(gradient)
    a64, b64, g64 = host(a, b, gradient)
    assert close(a.grad, g64 @ b64.mT) and close(b.grad, a64.mT @ g64)


def gradients(function, tensors, gradient):
    leaves = [None if tensor is None else tensor.detach().clone().requires_grad_() for tensor in tensors]
    function(*leaves).backward(gradient)
    return [None if leaf is None else leaf.grad for leaf in leaves]


@needs_kernels
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_gradients_of_linear(activation, dtype):
    tensors = parts(dtype)
    gradient = randn(3, 17, 40, dtype=dtype)
    ours = gradients(lambda *t: tessera.torch.linear(*t, activation), tensors, gradient)
    exact = gradients(lambda *t: act(activation, torch.nn.functional.linear(*t)), host(*tensors), host(gradient)[0])
    for one, other in zip(ours, exact):
        assert close(one, other, dtype, factor=4)  # the gradient of the pre-activation is rounded, too


@needs_kernels
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_gradients_of_gated_linear(activation):
    tensors = parts()
    gradient = randn(3, 17, 20)

    def exact(x, w, b):
        gate, up = torch.nn.functional.linear(x, w, b).chunk(2, dim=-1)
        return act(activation, gate) * up

    ours = gradients(lambda *t: tessera.torch.gated_linear(*t, activation), tensors, gradient)
    for one, other in zip(ours, gradients(exact, host(*tensors), host(gradient)[0])):
        assert close(one, other, factor=4)


@needs_kernels
def test_gradients_of_a_broadcast_product_and_of_an_expanded_gradient():
    tensors = randn(5, 17, 64), randn(64, 24)
    for reduce in (lambda y: y.sum(), lambda y: y.square().mean()):
        leaves = [tensor.clone().requires_grad_() for tensor in tensors]
        exact = [tensor.requires_grad_() for tensor in host(*tensors)]
        reduce(tessera.torch.matmul(*leaves)).backward()
        reduce(torch.matmul(*exact)).backward()
        for one, other in zip(leaves, exact):
            assert close(one.grad, other.grad, factor=4)


@needs_kernels
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_second_gradients(activation):
    x, w, b = parts(requires_grad=True)

    def second(function, x, w, b):
        [first] = torch.autograd.grad(function(x, w, b).square().sum(), x, create_graph=True)
        return torch.autograd.grad(first.square().sum(), (x, w, b))

    exact = second(lambda *t: act(activation, torch.nn.functional.linear(*t)), *(tensor.requires_grad_() for tensor in host(x, w, b)))
    for function in (tessera.torch.linear, torch.ops.tessera.linear if activation in ("none", "relu", "sigmoid", "tanh") else None):
        if function is not None:
            for one, other in zip(second(lambda *t: function(*t, activation), x, w, b), exact):
                assert close(one, other, factor=16)


@pytest.mark.parametrize("operator", ["gemm", "linear", "linear_for_training", "gated_linear"])
def test_operators_keep_the_rules_of_torch_library(operator):
    x, w, b = parts(requires_grad=True)
    arguments = (x, w.T) if operator == "gemm" else (x, w, b, "gelu" if operator != "linear" else "relu")
    checks = ("test_autograd_registration", "test_faketensor")
    if not emulated:
        checks += ("test_schema", "test_aot_dispatch_dynamic")
    torch.library.opcheck(getattr(torch.ops.tessera, operator).default, arguments, test_utils=checks)


def test_fake_tensors_have_the_shapes_of_real_ones():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        x, w, b = torch.empty(3, 17, 64, device="cuda"), torch.empty(40, 64, device="cuda"), torch.empty(40, device="cuda")
        assert tessera.torch.matmul(x, w.T).shape == (3, 17, 40)
        assert torch.ops.tessera.linear(x, w, b, "gelu").shape == (3, 17, 40)
        assert [y.shape for y in torch.ops.tessera.linear_for_training(x, w, b, "gelu")] == [(3, 17, 40)] * 2
        assert torch.ops.tessera.gated_linear(x, w, b, "silu").shape == (3, 17, 20)
        with pytest.raises(Exception, match="63 features"):
            torch.ops.tessera.linear(x[..., :63], w, b, "gelu")


def layers(**options):
    torch.manual_seed(SEED)
    return tessera.torch.Linear(64, 40, **options)


def test_linear_is_torchs_linear_with_an_activation():
    layer = layers(activation="gelu").cuda()
    plain = torch.nn.Linear(64, 40)
    assert layer.state_dict().keys() == plain.state_dict().keys() and isinstance(layer, torch.nn.Linear)
    plain.load_state_dict(layer.state_dict())
    assert "activation=gelu" in repr(layer)
    x = randn(3, 17, 64)
    with torch.no_grad():
        assert close(layer(x), act("gelu", plain.double()(x.cpu().double())))
        shared = tessera.torch.Linear.from_torch(layer, "relu")
        assert shared.weight is layer.weight and close(shared(x), act("relu", plain(x.cpu().double())))


@pytest.mark.parametrize("gated", [False, True])
def test_mlp(gated):
    torch.manual_seed(SEED)
    mlp = tessera.torch.MLP(64, 96, 48, activation="silu", gated=gated).cuda()
    x = randn(17, 64)
    with torch.no_grad():
        result = mlp(x)
        up = torch.nn.functional.linear(*host(x, mlp.up.weight, mlp.up.bias))
        gate, factor = up.chunk(2, dim=-1) if gated else (up, 1)
        exact = torch.nn.functional.linear(act("silu", gate) * factor, *host(mlp.down.weight, mlp.down.bias))
    assert result.shape == (17, 48) and close(result, exact)


@needs_kernels
def test_an_mlp_learns_what_torchs_learns():
    torch.manual_seed(SEED)
    ours = tessera.torch.MLP(64, 96, 48).cuda()
    theirs = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.GELU(), torch.nn.Linear(96, 48)).cuda()
    theirs[0].load_state_dict(ours.up.state_dict())
    theirs[2].load_state_dict(ours.down.state_dict())
    x, target = randn(128, 64), randn(128, 48)
    losses = []
    for model in (ours, theirs):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(20):
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(x), target)
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)


@pytest.mark.parametrize("gated", [False, True])
def test_compiled_modules_have_no_graph_break(gated):
    torch.manual_seed(SEED)
    mlp = tessera.torch.MLP(64, 96, 48, gated=gated).cuda()
    compiled = torch.compile(mlp, fullgraph=True, backend="aot_eager" if emulated else "inductor")
    with torch.no_grad():
        for rows in (17, 5, 33):  # the second one has made the number of rows a variable
            x = randn(rows, 64)
            assert torch.equal(compiled(x).cpu(), mlp(x).cpu())


def test_a_compiled_layer_has_gradients():
    layer = tessera.torch.Linear(64, 40, bias=False).cuda()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager" if emulated else "inductor")
    x, gradient = randn(17, 64, requires_grad=True), randn(17, 40)
    compiled(x).backward(gradient)
    x64, w64, g64 = host(x, layer.weight, gradient)
    assert close(x.grad, g64 @ w64) and close(layer.weight.grad, g64.T @ x64)


@needs_kernels
@pytest.mark.parametrize("gated", [False, True])
def test_compiled_modules_have_the_eager_gradients(gated):
    torch.manual_seed(SEED)
    mlp = tessera.torch.MLP(64, 96, 48, gated=gated).cuda()
    compiled = torch.compile(mlp, fullgraph=True)
    x = randn(17, 64)
    reference = copy.deepcopy(mlp)
    compiled(x).square().sum().backward()
    reference(x).square().sum().backward()
    for one, other in zip(mlp.parameters(), reference.parameters()):
        assert torch.allclose(one.grad, other.grad, rtol=1e-4, atol=1e-4)


@needs_kernels
def test_a_captured_graph_gives_the_eager_result():
    x, w, b = parts(torch.bfloat16)
    split = torch.zeros(128, 8192, dtype=torch.bfloat16).cuda()  # whose kernel needs a workspace
    with torch.no_grad():
        eager = tessera.torch.linear(x, w, b, "gelu").cpu()
        tessera.gemm(split, split.T)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = tessera.torch.linear(x, w, b, "gelu")
            z = tessera.gemm(split, split.T)
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(y.cpu(), eager)
        assert not z.cpu().any()
        x.copy_(randn(*x.shape, dtype=torch.bfloat16))
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(y.cpu(), tessera.torch.linear(x, w, b, "gelu").cpu())


@needs_kernels
def test_autocast():
    layer = layers(activation="gelu").cuda()
    x = randn(3, 17, 64)
    with torch.autocast("cuda", torch.bfloat16):
        y = layer(x)
        expected = torch.nn.functional.gelu(torch.nn.functional.linear(x, layer.weight, layer.bias))
    assert y.dtype == torch.bfloat16
    assert torch.allclose(y.float(), expected.float(), rtol=2**-6, atol=2**-6)
    y.sum().backward()
    assert layer.weight.grad.dtype == torch.float32


def test_nothing_of_torch_is_linked():
    folder = os.path.dirname(tessera.__file__)
    for name in os.listdir(folder):
        if ".so" in name:
            with open(os.path.join(folder, name), "rb") as file:
                assert b"libtorch" not in file.read()
    assert "torch" in sys.modules
