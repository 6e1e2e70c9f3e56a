"""Operators and layers for PyTorch, with gradients, for torch.compile and CUDA graphs.

    layer = tessera.torch.Linear(1024, 4096, activation="gelu", device="cuda", dtype=torch.bfloat16)
    y = layer(x)  # one kernel

matmul(a, b)                              a @ b
linear(x, weight, bias, activation)       act(x @ weight.T + bias)
gated_linear(x, weight, bias, activation) act(gate) * up, where gate and up are the halves of x @ weight.T + bias
Linear, MLP                               the same as modules

All of them are operators of torch.ops.tessera. Their results, and the workspaces of their kernels, are of PyTorch's caching
allocator, and they run on its current stream. Gradients are products of tessera, too.
"""

try:
    import torch
except ImportError as error:
    raise ImportError("tessera.torch needs PyTorch 2.10 or later, which is not installed\n  try: pip install torch") from error
if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
    raise ImportError(f"tessera.torch needs PyTorch 2.10 or later, and this is {torch.__version__}\n  try: pip install -U torch")

from tessera import _core
from tessera._error import Error

__all__ = ["MLP", "Linear", "gated_linear", "linear", "matmul"]

ACTIVATIONS = ("none", "relu", "gelu", "silu", "gelu_tanh", "sigmoid", "tanh")
_aten = torch.ops.aten
_library = torch.library.Library("tessera", "DEF")
_library.define("gemm(Tensor a, Tensor b) -> Tensor")
_library.define("linear(Tensor input, Tensor weight, Tensor? bias, str activation) -> Tensor")
_library.define("linear_for_training(Tensor input, Tensor weight, Tensor? bias, str activation) -> (Tensor, Tensor)")
_library.define("gated_linear(Tensor input, Tensor weight, Tensor? bias, str activation) -> Tensor")


# On the device.

def _run(a, b, *rest):
    """A product. Operands that a kernel cannot read, with gaps between rows and between columns, are copied, as PyTorch does."""
    try:
        return _core._layer(a, b, *rest)
    except Error as error:
        if error.code != "invalid_argument" or (a.is_contiguous() and b.is_contiguous()):
            raise
    return _core._layer(a.contiguous(), b.contiguous(), *rest)


def _gemm(a, b):
    return _run(a, b)


def _linear(input, weight, bias, activation):
    return _run(input, weight, False, True, bias, activation)


def _linear_for_training(input, weight, bias, activation):
    """The result, and the argument of the activation."""
    pre_activation = torch.empty((*input.shape[:-1], weight.shape[0]), dtype=input.dtype, device=input.device)
    return _run(input, weight, False, True, bias, activation, None, pre_activation), pre_activation


def _gated_linear(input, weight, bias, activation):
    return _run(input, weight, False, True, bias, activation, "side_by_side")


for _name, _function in (("gemm", _gemm), ("linear", _linear), ("linear_for_training", _linear_for_training),
                         ("gated_linear", _gated_linear)):
    _library.impl(_name, _function, "CUDA")


# Without data: what torch.compile asks.

def _require_features(input, weight):
    if input.shape[-1] != weight.shape[-1]:
        raise Error(f"shape_mismatch: the input has {input.shape[-1]} features and the weight {tuple(weight.shape)} takes "
                    f"{weight.shape[-1]}\n  try: an input whose last dimension is {weight.shape[-1]}", "shape_mismatch")


@torch.library.register_fake("tessera::gemm", lib=_library)
def _(a, b):
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return a.new_empty((*batch, a.shape[-2], b.shape[-1]))


@torch.library.register_fake("tessera::linear", lib=_library)
def _(input, weight, bias, activation):
    _require_features(input, weight)
    return input.new_empty((*input.shape[:-1], weight.shape[0]))


@torch.library.register_fake("tessera::linear_for_training", lib=_library)
def _(input, weight, bias, activation):
    _require_features(input, weight)
    shape = (*input.shape[:-1], weight.shape[0])
    return input.new_empty(shape), input.new_empty(shape)


@torch.library.register_fake("tessera::gated_linear", lib=_library)
def _(input, weight, bias, activation):
    _require_features(input, weight)
    return input.new_empty((*input.shape[:-1], weight.shape[0] // 2))


# Gradients. The operators' are made of operators, which can be traced and differentiated again. Eager ones are functions of autograd
# that call the library: the dispatcher would cost more than the calls.

def _operator(a, b, transpose_a=False, transpose_b=False):
    return torch.ops.tessera.gemm(a.mT if transpose_a else a, b.mT if transpose_b else b)


def _eager(a, b, transpose_a=False, transpose_b=False):
    if torch.is_grad_enabled():  # create_graph=True
        return _operator(a, b, transpose_a, transpose_b)
    return _run(a, b, transpose_a, transpose_b)


def _matrix(tensor):
    """All of a tensor's last dimension as the rows of one matrix."""
    return tensor if tensor.dim() == 2 else tensor.reshape(-1, tensor.shape[-1])


def _summed(gradient, like):
    """The gradient of an operand that was broadcast."""
    return gradient if gradient.shape == like.shape else gradient.sum_to_size(like.shape)


def _setup_gemm(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _gemm_backward(ctx, gradient, product=_operator):
    a, b = ctx.saved_tensors
    of_a = _summed(product(gradient, b, False, True), a) if ctx.needs_input_grad[0] else None
    of_b = _summed(product(a, gradient, True), b) if ctx.needs_input_grad[1] else None
    return of_a, of_b


def _through(activation, gradient, x, y):
    """The gradient of the activation's argument x, of which y is the value. Only one of the two is needed."""
    if activation == "none":
        return gradient
    if activation == "relu":
        return _aten.threshold_backward(gradient, y, 0)
    if activation == "sigmoid":
        return _aten.sigmoid_backward(gradient, y)
    if activation == "tanh":
        return _aten.tanh_backward(gradient, y)
    if activation == "silu":
        if torch.is_grad_enabled() and (gradient.requires_grad or x.requires_grad):  # silu_backward has no gradient of its own
            sigmoid = torch.sigmoid(x)
            return gradient * sigmoid * (1 + x * (1 - sigmoid))
        return _aten.silu_backward(gradient, x)
    return _aten.gelu_backward(gradient, x, approximate="tanh" if activation == "gelu_tanh" else "none")


NEEDS_ARGUMENT = ("gelu", "gelu_tanh", "silu")  # whose gradient the result does not tell


def _layer_gradients(needs, gradient, input, weight, product):
    """Of the input, the weight and the bias: two products and a sum."""
    of_input = product(gradient, weight) if needs[0] else None
    rows = _matrix(gradient)
    of_weight = product(rows, _matrix(input), True) if needs[1] else None
    of_bias = rows.sum(0) if needs[2] else None
    return of_input, of_weight, of_bias, None


def _setup_linear(ctx, inputs, output):
    input, weight, bias, ctx.activation = inputs
    ctx.save_for_backward(input, weight, None if ctx.activation == "none" else output)


def _linear_backward(ctx, gradient, product=_operator):
    input, weight, y = ctx.saved_tensors
    return _layer_gradients(ctx.needs_input_grad, _through(ctx.activation, gradient, None, y), input, weight, product)


def _setup_training(ctx, inputs, output):
    input, weight, bias, ctx.activation = inputs
    ctx.save_for_backward(input, weight, bias, output[1])
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)


def _training_backward(ctx, gradient, _, product=_operator):
    input, weight, bias, x = ctx.saved_tensors
    if torch.is_grad_enabled():  # to be differentiated again: the stored x does not know what it was computed from
        x = torch.ops.tessera.linear(input, weight, bias, "none")
    return _layer_gradients(ctx.needs_input_grad, _through(ctx.activation, gradient, x, None), input, weight, product)


def _setup_gated(ctx, inputs, output):
    input, weight, bias, ctx.activation = inputs
    ctx.save_for_backward(input, weight, bias)


def _activated(activation, x):
    if activation in ("gelu", "gelu_tanh"):
        return torch.nn.functional.gelu(x, approximate="tanh" if activation == "gelu_tanh" else "none")
    return x if activation == "none" else getattr(torch.nn.functional, activation)(x)


def _gated_backward(ctx, gradient, product=_operator):
    input, weight, bias = ctx.saved_tensors
    x = torch.ops.tessera.linear(input, weight, bias, "none")  # both halves: cheaper to compute again than to keep
    gate, up = x.chunk(2, dim=-1)
    y = _activated(ctx.activation, gate)
    gradient = torch.cat((_through(ctx.activation, gradient * up, gate, y), gradient * y), dim=-1)
    return _layer_gradients(ctx.needs_input_grad, gradient, input, weight, product)


for _name, _setup, _backward in (("gemm", _setup_gemm, _gemm_backward), ("linear", _setup_linear, _linear_backward),
                                 ("linear_for_training", _setup_training, _training_backward),
                                 ("gated_linear", _setup_gated, _gated_backward)):
    torch.library.register_autograd(f"tessera::{_name}", _backward, lib=_library, setup_context=_setup)


class _Gemm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return _gemm(a, b)

    @staticmethod
    def backward(ctx, gradient):
        return _gemm_backward(ctx, gradient, _eager)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, *inputs):
        output = _linear(*inputs)
        _setup_linear(ctx, inputs, output)
        return output

    @staticmethod
    def backward(ctx, gradient):
        return _linear_backward(ctx, gradient, _eager)


class _LinearForTraining(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input, weight, bias, activation):
        output, pre_activation = _linear_for_training(input, weight, bias, activation)
        ctx.activation = activation
        ctx.save_for_backward(input, weight, bias, pre_activation)
        return output

    @staticmethod
    def backward(ctx, gradient):
        return _training_backward(ctx, gradient, None, _eager)


class _GatedLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, *inputs):
        _setup_gated(ctx, inputs, None)
        return _gated_linear(*inputs)

    @staticmethod
    def backward(ctx, gradient):
        return _gated_backward(ctx, gradient, _eager)


# For people. What runs before a kernel is written for few steps of Python.

_PLAIN = (torch.Tensor, torch.nn.Parameter)
_is_compiling = torch.compiler.is_compiling
_is_recording = torch.is_grad_enabled
_is_autocasting = torch.is_autocast_enabled


def _require_activation(activation):
    if activation is None:
        return "none"
    if activation not in ACTIVATIONS:
        raise Error(f"invalid_argument: '{activation}' is no activation\n  try: {', '.join(ACTIVATIONS)}", "invalid_argument")
    return activation


def _autocast(*tensors):
    """What torch.autocast makes of the operands of a product."""
    dtype = torch.get_autocast_dtype("cuda")
    return tuple(tensor if tensor is None or not tensor.is_floating_point() else tensor.to(dtype) for tensor in tensors)


def _is_traced(one, other):
    """Whether the call must be seen as an operator: by torch.compile, or by a subclass of tensors, such as fake ones."""
    return _is_compiling() or type(one) not in _PLAIN or type(other) not in _PLAIN


def _needs_gradients(one, other, bias):
    return _is_recording() and (one.requires_grad or other.requires_grad or (bias is not None and bias.requires_grad))


def _layer(input, weight, bias, activation):
    if _is_autocasting("cuda"):
        input, weight, bias = _autocast(input, weight, bias)
    records = _needs_gradients(input, weight, bias)
    if _is_traced(input, weight):
        if records and activation in NEEDS_ARGUMENT:
            return torch.ops.tessera.linear_for_training(input, weight, bias, activation)[0]
        return torch.ops.tessera.linear(input, weight, bias, activation)
    if records:
        return (_LinearForTraining if activation in NEEDS_ARGUMENT else _Linear).apply(input, weight, bias, activation)
    return _run(input, weight, False, True, bias, activation)


def matmul(a, b):
    """Returns a @ b, with gradients. Both have two or more dimensions; those before the last two are broadcast."""
    if _is_autocasting("cuda"):
        a, b = _autocast(a, b)
    if _is_traced(a, b):
        return torch.ops.tessera.gemm(a, b)
    return _Gemm.apply(a, b) if _needs_gradients(a, b, None) else _run(a, b)


def linear(input, weight, bias=None, activation=None):
    """Returns act(input @ weight.T + bias) in one kernel, with gradients.

    input       (..., in_features)
    weight      (out_features, in_features)
    bias        (out_features,) or None
    activation  "relu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh" or None
    """
    return _layer(input, weight, bias, _require_activation(activation))


def gated_linear(input, weight, bias=None, activation="silu"):
    """Returns act(gate) * up in one kernel, where gate and up are the halves of input @ weight.T + bias. With gradients.

    SwiGLU with "silu", GeGLU with "gelu". weight is (2 * out_features, in_features): the gates' rows come first.
    """
    activation = _require_activation(activation)
    if _is_autocasting("cuda"):
        input, weight, bias = _autocast(input, weight, bias)
    if _is_traced(input, weight):
        return torch.ops.tessera.gated_linear(input, weight, bias, activation)
    return (_GatedLinear.apply if _needs_gradients(input, weight, bias) else _gated_linear)(input, weight, bias, activation)


class Linear(torch.nn.Linear):
    """torch.nn.Linear with an activation in the same kernel. Has the same parameters and state_dict."""

    def __init__(self, in_features, out_features, bias=True, activation=None, device=None, dtype=None):
        super().__init__(in_features, out_features, bias, device, dtype)
        self.activation = _require_activation(activation)

    @classmethod
    def from_torch(cls, linear, activation=None):
        """Returns a layer that shares the parameters of a torch.nn.Linear."""
        with torch.device("meta"):
            layer = cls(linear.in_features, linear.out_features, linear.bias is not None, activation)
        layer.weight, layer.bias = linear.weight, linear.bias
        return layer.train(linear.training)

    def forward(self, input):
        return _layer(input, self.weight, self.bias, self.activation)

    def extra_repr(self):
        return super().extra_repr() + ("" if self.activation == "none" else f", activation={self.activation}")


class MLP(torch.nn.Module):
    """Two layers with an activation between them: down(act(up(x))), two kernels. Gated: down(act(gate(x)) * up(x)).

    The gated form keeps the gate's and the factor's weights in one parameter, `up.weight`: the gates' rows come first.
    """

    def __init__(self, features, hidden_features, out_features=None, activation="gelu", bias=True, gated=False, device=None,
                 dtype=None):
        super().__init__()
        options = {"bias": bias, "device": device, "dtype": dtype}
        self.gated = gated
        self.activation = _require_activation(activation)
        self.up = Linear(features, hidden_features * (2 if gated else 1), activation=None if gated else activation, **options)
        self.down = Linear(hidden_features, features if out_features is None else out_features, **options)

    def forward(self, input):
        if self.gated:
            return self.down(gated_linear(input, self.up.weight, self.up.bias, self.activation))
        return self.down(self.up(input))
