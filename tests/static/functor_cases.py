"""A call or more of every functor, Tensor method and function of `flow` and `nn.functional`.

The first are the samples of declarations, in single precision; by hand is what those do not say:
other spellings, dtypes and layouts, over the tensors of `functor_calls.TENSORS`. The in-place twins
and the calls with `out=` are made from the first expression of their functor.
"""

from __future__ import annotations

from oneflow_lite.functors.declaring.declare import DECLARATIONS
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.ops.registry import FUNCTORS
from tests.declared_samples import expressions
from tests.functors.test_declared import FALLS_BACK
from tests.op_samples import UPDATE_NUMBERS, UPDATE_OPTIONS, UPDATES, every_op

DECLARED = 1  # samples of each declared functor; test_declared.py runs all of them

_INPLACE_ACTIVATIONS = "celu elu hardtanh leaky_relu mish relu relu6 selu silu hardsigmoid".split()
_WITH_NUMBERS = "add sub mul div pow floor_divide fmod remainder".split()
_ALONG = """
    sum mean prod amax amin max min std var var_mean std_mean logsumexp cumsum cumprod softmax
    softmin log_softmax argmax argmin any all count_nonzero sort argsort
""".split()
_COMPLEX = """
    abs angle conj sgn real imag exp log sqrt sin tanh neg reciprocal square view_as_real sum prod
    cumprod sigmoid isfinite clone mean norm
""".split()
_IS = """
    is_cpu is_ipu is_maia is_meta is_mkldnn is_mps is_mtia is_nested is_quantized is_sparse
    is_sparse_csr is_vulkan is_xla is_xpu
""".split()
_ASKED = """
    dim_order() get_device() is_conj() is_distributed() is_neg() is_same_size(y) is_signed()
    sparse_dim()
""".split()
_METHOD_TYPES = "bool byte cdouble cfloat char double float half int long short".split()

# Functors that are not declared, or have no sample.
HAND: dict[str, list[str]] = {
    "allclose": ["x * allclose(x, y)"],
    "equal": ["x * equal(x, y)"],
    "histogramdd": ["histogramdd(tall.detach(), 2)[0]"],
    "empty": ["empty(2, 3).fill_(2.5) * x", "flow.empty((0, 2))"],
    "empty_like": ["empty_like(x).copy_(y)"],
    "new_empty_strided": ["new_empty_strided(x, (2, 3), (1, 2)).zero_()"],
    "new_empty": ["new_empty(x, (2, 3)).copy_(y)"],
    "getitem": ["getitem(x, 0)", "x[1]", "x[:, 1:]", "c[..., 1]", "c[:, None, -1]",
        "c[1, ..., ::2]", "x[index[0, 0]]", "m[pick[1]]", "m[pick]", "m[:, pick]",
        "m[pick, rows[:2]]", "m[rows, 1:]", "c[rows, :, pick[:1]]", "x[[1, 0]]",
        "c[:, [2, 0], 1:3]", "x[-1, -1]", "x[()]", "x[...]", "x[None]", "x[True]", "x[1:1]",
        "m[index]", "c[0][1][2]", "c[..., small[0, :2].long()]", "x[rows][:, pick]"],
    "setitem": ["setitem(x * 1, 0, v)", "setitem(x * 1, (0, slice(1, None)), 2.5)",
        "setitem(m * 1, pick, x)", "setitem(x * 1, (slice(None), pick), s)",
        "setitem(x * 1, mask, 2.0)", "setitem(x * 1, mask, s)", "setitem(x * 1, 0, i[0])",
        "setitem(c * 1, (..., None, 1), y[..., None])", "setitem(m * 1, (rows[:1], 1), s)",
        "setitem(x.t() * 1, 0, two)", "setitem((x * 1)[:, ::2], 0, s)"],
    "sum_to": ["sum_to(x, 3)", "x.sum_to_size(2, 1)"],
    "to_device": ["to_device(x, flow.device('cpu'))"],
    "copy_": ["copy_(x * 1, y)", "(x * 1).copy_(v)", "(x * 1).copy_(i)", "i.clone().copy_(x)",
        "(x * 1).copy_(2)"],
    "fill_": ["fill_(x * 1, 2)", "(x * 1).fill_(s)", "(x * 1).fill_(True)"],
    "zero_": ["zero_(x * 1)", "(x * 1).zero_() + y"],
    "cast": ["cast(x, flow.float64)", "x.to(flow.float64)", "x.to(y)", "x.to('cpu')", "x.to(wide)",
        "x.to(flow.float32, copy=True)", "x.to(flow.float32)", "x.to(device='cpu')", "u.to(int)",
        "x.to('cpu', flow.float16)", "z.to(flow.complex128)", "x.type_as(wide)", "x.cpu()",
        "u.to(dtype=flow.int8) + small", "x + wide", "x * small", "i / j", "i * 0.5", "half * x",
        "mask + mask", "small + i", "z * x", "z + wide", "x + 1j",
        *[f"u.abs().{name}()" for name in _METHOD_TYPES],
    ],
}  # fmt: skip
HAND |= {
    "is_tensor": ["x * is_tensor(x)"],
    "is_complex": ["x * is_complex(x)"],
    "is_floating_point": ["x * is_floating_point(x)"],
    "numel": ["x * numel(x)"],
    "result_type": ["x.to(result_type(x, wide))"],
}
_SCALAR = "full((), {}, dtype=flow.float64)"
HAND["sgd_update"] = [
    f"sgd_update(x.detach(), y.detach(), None, None, {_SCALAR.format(0.5)}, None, None, None)",
]
HAND["adam_update"] = [
    "adam_update(x.detach(), y.detach(), zeros(2, 3), zeros(2, 3), None, "
    "zeros((), dtype=flow.float64), "
    + ", ".join(_SCALAR.format(n) for n in (0.5, 0.9, 0.99, 1e-8))
    + ", None)",
]
_SHAPES = {"row_var": "zeros(2, 1)", "col_var": "zeros(1, 3)", "variance": "None"}


def _update(name: str) -> str:
    """Return one step of an optimizer's update."""
    numbers = UPDATE_OPTIONS | UPDATE_NUMBERS
    inputs = [
        _SCALAR.format(numbers[key]) if key in numbers else _SHAPES.get(key, "zeros(2, 3)")
        for key in op_expr(name).schema.inputs[2:]
    ]
    return f"{name}(x.detach(), y.detach(), {', '.join(inputs)})"


HAND |= {name: [_update(name)] for name in UPDATES if name not in HAND}


def _cases(name: str) -> list[str]:
    """Return the calls of a functor: of its declaration, then those by hand."""
    declared = expressions(name, single=True)[:DECLARED] if name in DECLARATIONS else ()
    return [*declared, *HAND.get(name, [])]


# The first expression is the one that `out=` and the in-place twin are made from.
CASES = {name: _cases(name) for name in FUNCTORS if name in DECLARATIONS or name in HAND}

# The twins in single precision of what the sweep of ops compiles and captures.
OF_OPS = {
    expression
    for name in CASES
    if name in DECLARATIONS and {name, DECLARATIONS.get(name).op} & {*every_op()}
    for expression in expressions(name, single=True)[:1]
}

# What may run eagerly: `tests/functors/test_declared.py` says why.
MAY_FALL_BACK = {e for name in FALLS_BACK for e in expressions(name, single=True)}
MAY_FALL_BACK |= {"x[index[0, 0]]", "m[pick[1]]"}  # a 0-d index is read: the result is a view


def reshapes(expression: str) -> bool:
    """Return whether the call of a twin gives an argument another shape."""
    name = expression.partition("_(")[0]
    return name in DECLARATIONS and DECLARATIONS.get(name).reshapes


# More ways to say it, and what belongs to no functor alone.
MORE: list[str] = [
    "x.H", "x.mH",
    "acosh(x + 1)", "addcdiv(x, y, x + 1)", "addcmul(x, y, s, value=-2)",
    "addmv(two, x, v, alpha=2)", "x + arange(3)", "arange(1, 2, 0.25) * s",
    "baddbmm(s, c, d, beta=2, alpha=0.5)",
    "batch_norm(x, v.detach(), r.detach(), None, None, True, 0.3)", "bernoulli_(x * 1, 0.5)",
    "bitwise_and(i, j)", "i & mask.long()", "mask & other_mask", "i & 3", "6 & i", "bitwise_not(i)",
    "~mask", "bitwise_or(i, j)", "i | small", "2 | i", "bitwise_xor(i, j)", "mask ^ other_mask",
    "5 ^ i", "cat((x, wide), 1)", "cat([x, empty_rows])", "cat((i, x), -1)", "u.clamp(min=x)",
    "conv2d(plane, plane_kernel[:2, :1], stride=2, dilation=2, groups=2)",
    "cosine_similarity(c, c[0], dim=-1)", "cross_entropy(u, y.detach())",
    "cross_entropy(u, pick, r.detach(), label_smoothing=0.1)",
    "cross_entropy(c[..., None], index[:, :1, None].repeat(1, 4, 1))", "cumprod(i, 0)",
    "cumprod(x, 0, dtype=flow.float64)", "cumsum(empty_rows, 0)",
    "dropout(u * 1, 0.5, inplace=True)", "u * dropout_mask(u, 0.4)",
    "flow.einsum('ij,ij->i', [x, y])", "embedding(rows, x, scale_grad_by_freq=True)",
    "col.expand(-1, 4)", "s.expand(2, 2)", "col.expand(2, 3) * x", "eye(3) @ m", "eye(2, 3) * x",
    "flatten(s)", "flatten(c.transpose(0, 1))", "x.flip(-1)", "full((2, 3), 2.5) * x",
    "full((), 1.5) + x", "x * full_like(x, 2)", "full_like(i, 2)", "x.gather(0, index)",
    "glu(line[..., :4])", "imag(z) * 2", "z.imag * 2", "index_add(x, 1, pick, y[:, :2])",
    "x.index_add(0, rows, m, alpha=2)", "x.index_fill(0, rows, s)",
    "kl_div(u, x.log(), log_target=True)", "lerp(x, y, s)", "linspace(0, 1, 3) * x",
    "linspace(-1, 1, 1) + s", "log_softmax(u, 0, dtype=flow.float64)", "masked_fill(x, mask[0], s)",
    "v @ tall", "c @ d[0]", "x.t() @ y", "fortran @ tall",
    "matmul(x, d.transpose(1, 2)[0].t()[:3])", "x.max(1).values", "min(u, 0)[0]",
    "flow.moveaxis(c, 0, -1)", "nan_to_num(u / (u - u), 0.5, 2.0, -2.0)", "new_full(i, (2,), 2)",
    "new_ones(x, 2, 3) * x", "new_ones(x, (3,), dtype=flow.float64) * x",
    "new_tensor(x, [1.0, 2.0, 3.0]) * x", "nll_loss(u, pick, r.detach(), reduction='sum')",
    "nonzero(i)", "norm(m, 'fro', dtype=flow.float64)", "normal_(x * 1)",
    "(x * 1).normal_(1.0, 0.5)", "ones(3) * x", "ones((2, 3), dtype=flow.float64) + x",
    "ones(3, requires_grad=True) * x", "ones_like(i, dtype=flow.float32) * x",
    "orthogonal_(m.detach().clone(), 1.0)", "c.permute(1, 0, 2) * 2",
    "poisson_nll_loss(x, j, False, full=True)", "prod(i)", "prod(x, 0, True, dtype=flow.float64)",
    "rand(3) + x", "flow.rand((2, 3), dtype=flow.float64)", "rand_like(x) + x",
    "randint(0, 9, (3,)) + x", "flow.randint(5, (2,))", "randn(2, 3) * x", "randn_like(x) * x",
    "x[:, randperm(3)]", "5.0 % x", "i % j", "u % -2", "x.repeat((2, 1, 2))", "x.reshape(-1)",
    "x.t().reshape(6)", "c.reshape(3, -1) * 2", "x.scatter(0, index[:1], 2.5)",
    "select(x, 0, 1) * 2", "F.softmax(u, dim=-1, dtype=flow.float64)",
    "u.sort(stable=True).indices", "x.split(1)[1]", "plane.squeeze()", "plane.squeeze((0,))",
    "x.squeeze(0) * 2", "stack((x, wide), -1)", "2 - x", "flow.rsub(x, y)", "i - j", "sum(half)",
    "sum(empty_rows)", "sum(x, dtype=flow.float64)", "empty_rows.sum(0)", "fortran.sum()",
    "c.transpose(0, 2).sum(1)", "t(x) * 2", "x.T @ y", "c.mT + d", "v.t()",
    "x.take_along_dim(pick)", "threshold(u * 1, 0.3, -1.0, True)", "x.tile(2, 1)",
    "u.topk(2).values", "flow.swapaxes(x, 0, 1) * 2", "x.swapdims(0, -1)",
    "trunc_normal_(x.detach().clone(), 0.0, 1.0, -1.0, 1.0)", "list(x.unbind())", "uniform_(x * 1)",
    "(x * 1).uniform_(-1.0, 1.0)", "x.unsqueeze(-1) * 2", "x.view(-1) * 2", "wide.view(flow.int64)",
    "x.view((6,))", "view_as_complex(stack((x, y), -1))", "view_as_real(z)",
    "view_as_real(z.t()) * 2", "where(mask, 1.5, wide)", "where(mask[0], x, s)",
    "where(x > y, x, y)", "zeros(3) + x", "zeros_like(x).add_(y)",
    *[f"x if x.{name} else x * 2" for name in [*_IS, *_ASKED]],
    "x if flow.is_inference_mode_enabled() else x * 2", "x.to_dense() * 2",
    "x if x.layout == y.layout else x * 2", "x if x.type() == y.type() else x * 2",
    *[f"{name}(u, 1)" for name in _ALONG],
    *[f"{name}(z{', 1' * (name == 'cumprod')})" for name in _COMPLEX],
    *[f"z {operator} q" for operator in "+ - * /".split()],
    *[f"flow.{name}(x, 1.5)" for name in _WITH_NUMBERS],
    *[f"{name}(i, j)" for name in "add sub mul floor_divide fmod remainder maximum eq lt".split()],
    *[f"{name}(x, r)" for name in "add mul div maximum pow".split()],
    *[f"{name}(col, r)" for name in "sub div lt".split()],
    *[f"{name}(s, x)" for name in "add mul".split()],
    *[f"{name}(empty_rows, r)" for name in "add mul lt".split()],
    *[f"{name}(fortran, x)" for name in "add mul div".split()],
    *[f"{name}(fortran)" for name in "exp sum relu".split()],
    *[f"{name}(x.t(), tall)" for name in "add mul".split()],
    *[f"{name}(c[:, ::2, 1:])" for name in "exp sum clone contiguous flatten relu".split()],
    *[f"{name}(s)" for name in "exp sum neg relu".split()],
    *[f"F.{name}(u * 1, inplace=True)" for name in _INPLACE_ACTIVATIONS],
    *[f"x {operator} 2" for operator in "+ - * / // % ** < <= > >= == !=".split()],
    *[f"2 {operator} x" for operator in "+ - * / // % ** < <= > >= == !=".split()],
    "-x", "+x", "abs(-x)", "x @ tall", "x.add(y, alpha=3)", "div(u, y, rounding_mode='floor')",
    "div(u, y, rounding_mode='trunc')", "x ** 2", "x ** 3.0", "x ** 0.5", "x ** -1", "i ** 2",
    "flow.true_divide(x, y)", "flow.divide(x, y)", "x.multiply(y)", "flow.clip(u, -1, 1)",
    "u.clip(max=0.5)", "x.subtract(y)", "x.not_equal(y)", "x.absolute()", "x.logsumexp(1)",
    "x.log_softmax(-1)", "x * x.dim()", "x * x.numel()", "x * x.nelement()", "x * x.size(1)",
    "x * x.size()[0]", "x * x.shape[1]", "x * len(x)", "x * x.ndim", "x * x.element_size()",
    "x * x.itemsize", "x * x.nbytes", "x * x.is_contiguous()", "x * x.is_complex()",
    "x * x.is_floating_point()", "x * x.stride()[0]", "x * x.stride(0)", "x * x.is_cuda",
    "x * flow.is_tensor(x)", "x * flow.numel(x)", "x * flow.is_complex(x)",
    "x * flow.is_floating_point(x)", "x * (x.dtype == flow.float32)", "x * x.requires_grad",
    "x * x.is_leaf", "x.t() * x.t().is_contiguous()", "x * (x.device == flow.device('cpu'))",
    "x * flow.is_grad_enabled()", "x.to(flow.result_type(x, wide))",
    "x * flow.can_cast(i.dtype, x.dtype)",
    "x.to(flow.promote_types(flow.float32, flow.float64))", "x * flow.finfo(x.dtype).bits",
    "x * flow.iinfo(i.dtype).bits", "x.to(flow.get_default_dtype())",
    "x * 2 if x.shape == (2, 3) else x",
    "x.detach() * x", "(x * 2).detach_()", "x.data * y", "stack([row * 2 for row in x])",
    "flow.tensor([1.0, 2.0, 3.0]) * x", "flow.tensor(2.0) + x", "flow.tensor([[1], [2]]) + x",
    "flow.as_tensor(x) * 2", "flow.as_tensor([1.0, 2.0, 3.0]) * x", "flow.Tensor([1, 2, 3]) * x",
    "x.requires_grad_() * 2", "x.clone().requires_grad_() * 2", "x, y", "x", "[x * 2, (y, None)]",
    "x * 2, 3, 'text'", "x[0], x", "{'a': x * 2}['a']",
    "x.narrow(1, 1, 2).mul(2)", "x.real * 2", "x.mT * 2",
    "x.new_zeros(x.shape) + x", "x.flatten().unflatten(0, (3, 2)).sum(0)",
    "(x * 2).t().contiguous().view(6)", "(x * 1).exp_().sum()", "(x * 1).t().add_(tall).t()",
    "(u * 1).mul_(zero_one)", "(u * 1)[0].mul_(zero_one[0])",
    "(x * 1)[0].mul_(2)", "(c * 1).transpose(0, 2)[1].zero_()", "exp(x.expand(2, 2, 3))",
    "x.pow(2).sum().backward() or x.grad * 2", "c.squeeze().unbind(0)[1].chunk(2, 1)[0]",
]  # fmt: skip
MORE = list(
    dict.fromkeys(e for e in MORE if e not in {c for cases in CASES.values() for c in cases})
)

# A Python value, or a shape that depends on values: eager when compiled, refused in a Program.
READS_VALUES: list[str] = [
    "x * allclose(x, y)",
    "x * equal(x, y)",
    "x[True]",
    "masked_select(x, mask)",
    "nonzero(i)",
    "nonzero(mask, as_tuple=True)",
    "nonzero_static(n2x3a, size=2)",
    "one_hot(index)",
    "setitem(x * 1, mask, s)",
    "where(mask)",
    "x[mask]",
    "x[x > 0.5]",
    "x * x.sum().item()",
    "x.tolist()",
    "x.numpy()",
    "x.detach().__array__()",
    "x * bool(x.sum() > 0)",
    "x * s.is_nonzero()",
    "x * flow.is_nonzero(s)",
    "x * int(i[0, 0])",
    "x * float(s)",
    "x * x.max().item()",
    "x if x.sum() > 0 else y",
    "x * (not x.sum() > 0)",
    "str(x)",
    "repr(x)",
    "f'{s:.2f}'",
    "x * (2 in i)",
    "x[0 : int(pick[1]) + 1]",
    "[1, 2, 3][pick[1]]",
    "'ab' * pick[0]",
    "x.sum().__bool__() and x",
    "stack([row for row in x if row.sum() > 0])",
    "m[mask[0]]",
    "m[:, mask[0]]",
    "x.masked_select(x > 0.5).sum()",
    "x.nonzero()[:, 0]",
]

# These a Program captures: they show a symbolic tensor.
SHOWS_SYMBOLIC = ["str(x)", "repr(x)"]
# They give an argument another array; a call that does is eager, and Programs take it.
RESHAPES_ARGUMENT = ["squeeze_(col, 1)", "t_(x)", "transpose_(c, 0, 2)", "unsqueeze_(x, 1)"]
# What functors check in values makes a Program impossible, not a recording.
CHECKS_VALUES = {e for name in ("istft",) for e in expressions(name, single=True)}
# Their last expression makes tensors on the CPU, which do not meet those of another device.
ON_THE_CPU = ["eye", "linspace", "ones", "randn", "randperm", *UPDATES]
