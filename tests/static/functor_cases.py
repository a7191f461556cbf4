"""A call or more of every functor, Tensor method and function of `flow` and `nn.functional`.

The first are the samples of declarations, in single precision; by hand is what those do not say:
other spellings, dtypes and layouts, over the tensors of `functor_calls.TENSORS`. The in-place twins
and the calls with `out=` are made from the first expression of their functor.
"""

from __future__ import annotations

from oneflow_lite.functors.declare import DECLARATIONS
from oneflow_lite.op_expr import op_expr
from oneflow_lite.registry import FUNCTORS
from tests.declared_samples import dispatched, expressions
from tests.functors.test_declared import FALLS_BACK

DECLARED = 1  # samples of each declared functor; test_declared.py runs all of them

_UNARY = """
    abs acos asin asinh atan atanh ceil clone cos cosh erf erfc exp exp2 expm1 floor frac log log10
    log1p log2 neg positive reciprocal round rsqrt sgn sign sin sinc sinh sqrt square tan tanh trunc
    nan_to_num sigmoid isfinite isinf isnan logical_not zeros_like ones_like contiguous conj real
    angle flatten ravel tril triu diag_embed trace diagonal any all sum mean prod amax amin argmax
    argmin max min std var var_mean std_mean count_nonzero norm sort argsort squeeze normalize
""".split()
_ACTIVATIONS = """
    celu elu gelu hardshrink hardsigmoid hardswish hardtanh leaky_relu logsigmoid mish relu relu6
    selu silu softplus softshrink softsign tanhshrink
""".split()
_INPLACE_ACTIVATIONS = "celu elu hardtanh leaky_relu mish relu relu6 selu silu hardsigmoid".split()
_BINARY = """
    add sub mul div pow maximum minimum atan2 hypot logaddexp floor_divide fmod remainder xlogy
    eq ne lt le gt ge isclose logical_and logical_or logical_xor complex polar clamp_min clamp_max
""".split()
_WITH_NUMBERS = "add sub mul div pow floor_divide fmod remainder".split()
_LOSSES = """
    mse_loss l1_loss smooth_l1_loss huber_loss kl_div poisson_nll_loss binary_cross_entropy
    binary_cross_entropy_with_logits
""".split()
_ALONG = """
    sum mean prod amax amin max min std var var_mean std_mean logsumexp cumsum cumprod softmax
    softmin log_softmax argmax argmin any all count_nonzero sort argsort
""".split()
_COMPLEX = """
    abs angle conj sgn real imag exp log sqrt sin tanh neg reciprocal square view_as_real sum prod
    cumprod sigmoid isfinite clone mean norm
""".split()
_METHOD_TYPES = "bool byte cdouble cfloat char double float half int long short".split()

# By functor; the first expression is the one that `out=` and the in-place twin are made from.
CASES: dict[str, list[str]] = {
    **{name: [f"{name}(x)"] for name in _UNARY},
    **{name: [f"{name}(u)"] for name in _ACTIVATIONS},
    **{name: [f"{name}(x, y)"] for name in _BINARY},
    **{name: [f"{name}(x, y)", f"{name}(x, y, reduction='sum')", f"{name}(x, y, reduction='none')"]
       for name in _LOSSES},
    "acosh": ["acosh(x + 1)"],
    "adaptive_avg_pool1d": ["adaptive_avg_pool1d(line, 2)"],
    "adaptive_avg_pool2d": ["adaptive_avg_pool2d(plane, 3)",
                            "adaptive_avg_pool2d(plane, (1, None))"],
    "adaptive_max_pool1d": ["adaptive_max_pool1d(line, 2, return_indices=True)"],
    "adaptive_max_pool2d": ["adaptive_max_pool2d(plane, 3)"],
    "addcdiv": ["addcdiv(x, y, x + 1)", "addcdiv(x, y, r, value=0.5)"],
    "addcmul": ["addcmul(x, y, r)", "addcmul(x, y, s, value=-2)"],
    "addmm": ["addmm(m, m, m)", "addmm(v, x, m, beta=0.5, alpha=2)"],
    "addmv": ["addmv(two, x, v, alpha=2)"],
    "allclose": ["x * allclose(x, y)"],
    "arange": ["arange(3)", "x + arange(3)", "arange(1, 2, 0.25) * s", "arange(5, 0, -2)"],
    "avg_pool1d": ["avg_pool1d(line, 2, 1, 1)"],
    "avg_pool2d": ["avg_pool2d(plane, 2)", "avg_pool2d(plane, 3, 2, 1, ceil_mode=True)",
                   "avg_pool2d(plane, 2, divisor_override=3)"],
    "baddbmm": ["baddbmm(a, c, d)", "baddbmm(s, c, d, beta=2, alpha=0.5)"],
    "batch_norm": ["batch_norm(line, None, None, training=True)",
                   "batch_norm(x, v.detach(), r.detach(), None, None, True, 0.3)",
                   "batch_norm(x, v, r, r, v)"],
    "bernoulli": ["bernoulli(x)"],
    "binary_cross_entropy": ["binary_cross_entropy(x, zero_one)",
                             "binary_cross_entropy(x, zero_one, r, reduction='none')"],
    "bitwise_and": ["bitwise_and(i, j)", "i & mask.long()", "mask & other_mask", "i & 3", "6 & i"],
    "bitwise_not": ["bitwise_not(i)", "~mask"],
    "bitwise_or": ["bitwise_or(i, j)", "i | small", "2 | i"],
    "bitwise_xor": ["bitwise_xor(i, j)", "mask ^ other_mask", "5 ^ i"],
    "bmm": ["bmm(c, d)"],
    "broadcast_to": ["broadcast_to(v, (2, 3))"],
    "cast": ["cast(x, flow.float64)", "x.to(flow.float64)", "x.to(y)", "x.to('cpu')", "x.to(wide)",
             "x.to(flow.float32, copy=True)", "x.to(flow.float32)", "x.to(device='cpu')",
             "u.to(int)",
             "x.to('cpu', flow.float16)", "z.to(flow.complex128)", "x.type_as(wide)", "x.cpu()",
             "u.to(dtype=flow.int8) + small", "x + wide", "x * small", "i / j", "i * 0.5",
             "half * x", "mask + mask", "small + i", "z * x", "z + wide", "x + 1j",
             *[f"u.abs().{name}()" for name in _METHOD_TYPES]],
    "cat": ["cat([x, y])", "cat((x, wide), 1)", "cat([x, empty_rows])", "cat((i, x), -1)"],
    "chunk": ["chunk(c, 2, 2)", "chunk(x, 5)"],
    "clamp": ["clamp(u, -0.5, 0.75)", "clamp(u, max=0.4)", "clamp(u, -x, x)", "u.clamp(min=x)"],
    "clamp_max": ["clamp_max(u, 0.4)", "clamp_max(u, x)"],
    "column_stack": ["column_stack((r, v))", "column_stack((two, x))"],
    "concat": ["concat((x, y), -1)"],
    "concatenate": ["concatenate((x, y))"],
    "conv1d": ["conv1d(line, line_kernel)", "conv1d(line, line_kernel, v, stride=2, padding=1)"],
    "conv2d": ["conv2d(plane, plane_kernel, v)", "conv2d(plane, plane_kernel, padding='same')",
               "conv2d(plane, plane_kernel[:2, :1], stride=2, dilation=2, groups=2)"],
    "copy_": ["copy_(x * 1, y)", "(x * 1).copy_(v)", "(x * 1).copy_(i)", "i.clone().copy_(x)",
              "(x * 1).copy_(2)"],
    "cosine_embedding_loss": ["cosine_embedding_loss(x, y, plus_minus, margin=0.5)"],
    "cosine_similarity": ["cosine_similarity(x, y)", "cosine_similarity(c, c[0], dim=-1)"],
    "cross_entropy": ["cross_entropy(u, pick)", "cross_entropy(u, y.detach())",
                      "cross_entropy(u, pick, r.detach(), label_smoothing=0.1)",
                      "cross_entropy(u, pick, ignore_index=2, reduction='none')",
                      "cross_entropy(c[..., None], index[:, :1, None].repeat(1, 4, 1))"],
    "cumprod": ["cumprod(u, 1)", "cumprod(i, 0)", "cumprod(x, 0, dtype=flow.float64)"],
    "cumsum": ["cumsum(u, 1)", "cumsum(mask, 0)", "cumsum(empty_rows, 0)"],
    "diag": ["diag(v)", "diag(m, 1)", "diag(v, -1)"],
    "diagonal": ["diagonal(m, 1)", "diagonal(c, 0, 0, 2)"],
    "dot": ["dot(v, r)"],
    "dropout": ["dropout(u, 0.4)", "dropout(u, 0.4, False)", "dropout(u, 1.0)", "dropout(u, 0.0)",
                "dropout(u * 1, 0.5, inplace=True)"],
    "dropout_mask": ["u * dropout_mask(u, 0.4)"],
    "dstack": ["dstack((x, y))", "dstack((v, r))"],
    "einsum": ["einsum('ij,kj->ik', x, y)", "einsum('bij,bjk', c, d)", "einsum('ii', m)",
               "einsum('i,j,ij->', two, v, x)", "einsum('...ij->...ji', c)",
               "flow.einsum('ij,ij->i', [x, y])"],
    "embedding": ["embedding(index, m)", "embedding(index, m, padding_idx=1)",
                  "embedding(rows, x, scale_grad_by_freq=True)"],
    "empty": ["empty(2, 3).fill_(2.5) * x", "flow.empty((0, 2))"],
    "empty_like": ["empty_like(x).copy_(y)"],
    "equal": ["x * equal(x, y)"],
    "expand": ["expand(v, 2, 3)", "col.expand(-1, 4)", "s.expand(2, 2)", "col.expand(2, 3) * x"],
    "expand_as": ["expand_as(v, x)"],
    "eye": ["eye(3)", "eye(3) @ m", "eye(2, 3) * x"],
    "fill_": ["fill_(x * 1, 2)", "(x * 1).fill_(s)", "(x * 1).fill_(True)"],
    "flatten": ["flatten(c, 1)", "flatten(s)", "flatten(c.transpose(0, 1))"],
    "flip": ["flip(c, (0, 2))", "x.flip(-1)"],
    "full": ["full((2, 3), 2.5)", "full((2, 3), 2.5) * x", "full((), 1.5) + x", "full((2,), 7)"],
    "full_like": ["x * full_like(x, 2)", "full_like(i, 2)"],
    "gather": ["gather(x, 1, index)", "x.gather(0, index)"],
    "gaussian_nll_loss": ["gaussian_nll_loss(u, y, x)", "gaussian_nll_loss(u, y, 0.5, full=True)"],
    "gelu": ["gelu(u)", "gelu(u, 'tanh')"],
    "getitem": ["getitem(x, 0)", "x[1]", "x[:, 1:]", "c[..., 1]", "c[:, None, -1]",
                "c[1, ..., ::2]",
                "x[index[0, 0]]", "m[pick[1]]", "m[pick]", "m[:, pick]", "m[pick, rows[:2]]",
                "m[rows, 1:]", "c[rows, :, pick[:1]]", "x[[1, 0]]", "c[:, [2, 0], 1:3]",
                "x[-1, -1]",
                "x[()]", "x[...]", "x[None]", "x[True]", "x[1:1]", "m[index]", "c[0][1][2]",
                "c[..., small[0, :2].long()]", "x[rows][:, pick]"],
    "glu": ["glu(line[..., :4])", "glu(u, 0)"],
    "group_norm": ["group_norm(line, 1)", "group_norm(line, 2, two, two)"],
    "hinge_embedding_loss": ["hinge_embedding_loss(u, signs)",
                             "hinge_embedding_loss(u, signs, 0.5)"],
    "hstack": ["hstack((x, y))", "hstack((v, r))"],
    "imag": ["imag(z) * 2", "z.imag * 2"],
    "index_add": ["index_add(x, 1, pick, y[:, :2])", "x.index_add(0, rows, m, alpha=2)"],
    "index_fill": ["index_fill(x, 1, pick, 2.0)", "x.index_fill(0, rows, s)"],
    "index_select": ["index_select(x, 1, pick)", "index_select(v, 0, pick)"],
    "instance_norm": ["instance_norm(line)", "instance_norm(line, weight=two, bias=two)"],
    "kl_div": ["kl_div(u, x.log(), log_target=True)", "kl_div(u, x, reduction='batchmean')"],
    "layer_norm": ["layer_norm(x, (3,))", "layer_norm(c, (3, 4))", "layer_norm(x, (3,), r, v)"],
    "lerp": ["lerp(x, y, 0.25)", "lerp(x, y, r)", "lerp(x, y, s)"],
    "linear": ["linear(x, m)", "linear(x, m, v)", "linear(d, m, v)"],
    "linspace": ["linspace(0, 1, 3)", "linspace(0, 1, 3) * x", "linspace(-1, 1, 1) + s"],
    "log_softmax": ["log_softmax(u, 1)", "log_softmax(u, 0, dtype=flow.float64)"],
    "logsumexp": ["logsumexp(u, 1)", "logsumexp(c, (0, 2), keepdim=True)"],
    "margin_ranking_loss": ["margin_ranking_loss(u, x, signs, 0.25)"],
    "masked_fill": ["masked_fill(x, mask, 2.0)", "masked_fill(x, mask[0], s)"],
    "masked_scatter": ["masked_scatter(x, mask, y)"],
    "masked_select": ["masked_select(x, mask)"],
    "matmul": ["matmul(x, tall)", "matmul(c, d)", "matmul(v, r)", "matmul(x, v)", "v @ tall",
               "c @ d[0]", "x.t() @ y", "fortran @ tall",
               "matmul(x, d.transpose(1, 2)[0].t()[:3])"],
    "matmul_nt": ["matmul_nt(x, y)"],
    "matmul_tn": ["matmul_tn(x, y, merge=False)"],
    "max": ["max(u, 1)", "max(u, dim=0, keepdim=True)", "max(u, x)", "x.max(1).values"],
    "max_pool1d": ["max_pool1d(line, 2)", "max_pool1d(line, 2, 1, return_indices=True)"],
    "max_pool2d": ["max_pool2d(plane, 2)", "max_pool2d(plane, 3, 2, 1, ceil_mode=True)"],
    "meshgrid": ["meshgrid(v, r)", "meshgrid(v, r, indexing='xy')"],
    "min": ["min(u, 1)", "min(u, x)", "min(u, 0)[0]"],
    "mm": ["mm(x, tall)"],
    "movedim": ["movedim(c, 0, 2)", "movedim(c, (0, 1), (1, 2))", "flow.moveaxis(c, 0, -1)"],
    "mse_loss": ["mse_loss(x, y)", "mse_loss(x, y, reduction='none')", "mse_loss(x, y, weight=x)"],
    "mv": ["mv(x, v)"],
    "nan_to_num": ["nan_to_num(x)", "nan_to_num(u / (u - u), 0.5, 2.0, -2.0)"],
    "narrow": ["narrow(c, 2, 1, 2)"],
    "new_full": ["new_full(x, (2,), 2.5)", "new_full(i, (2,), 2)"],
    "new_ones": ["new_ones(x, 2, 3) * x", "new_ones(x, (3,), dtype=flow.float64) * x"],
    "new_tensor": ["new_tensor(x, [1.0, 2.0, 3.0]) * x"],
    "new_zeros": ["new_zeros(x, 2, 2)"],
    "nll_loss": ["nll_loss(u, pick)", "nll_loss(u, pick, r.detach(), reduction='sum')",
                 "nll_loss(u, pick, ignore_index=2)", "nll_loss(u, pick, reduction='none')"],
    "nonzero": ["nonzero(i)", "nonzero(mask, as_tuple=True)"],
    "norm": ["norm(u)", "norm(u, 1)", "norm(u, 3, 1)", "norm(u, 0)", "norm(u, 1e400, 0)",
             "norm(u, 2, (0, 1), keepdim=True)", "norm(m, 'fro', dtype=flow.float64)"],
    "normal_": ["normal_(x * 1)", "(x * 1).normal_(1.0, 0.5)"],
    "normalize": ["normalize(u)", "normalize(u, 1.0, 0)"],
    "one_hot": ["one_hot(index, 4)", "one_hot(index)"],
    "ones": ["ones(2, 3)", "ones(3) * x", "ones((2, 3), dtype=flow.float64) + x",
             "ones(3, requires_grad=True) * x"],
    "ones_like": ["ones_like(x)", "ones_like(i, dtype=flow.float32) * x"],
    "orthogonal_": ["orthogonal_(m.detach().clone(), 1.0)"],
    "outer": ["outer(v, r)", "outer(two, v)"],
    "pad": ["pad(x, (1, 2))", "pad(x, (1, -1), value=2.5)", "pad(c, (1, 1), 'reflect')",
            "pad(c, (1, 1), mode='replicate')", "pad(line, (2, 1), 'circular')"],
    "permute": ["permute(c, (2, 0, 1))", "c.permute(1, 0, 2) * 2"],
    "poisson_nll_loss": ["poisson_nll_loss(u, y)", "poisson_nll_loss(x, j, False, full=True)"],
    "prod": ["prod(u)", "prod(u, 1)", "prod(i)", "prod(x, 0, True, dtype=flow.float64)"],
    "rand": ["rand(2, 3)", "rand(3) + x", "flow.rand((2, 3), dtype=flow.float64)"],
    "rand_like": ["rand_like(x) + x"],
    "randint": ["randint(0, 9, (3,))", "randint(0, 9, (3,)) + x", "flow.randint(5, (2,))"],
    "randn": ["randn(2, 3)", "randn(2, 3) * x"],
    "randn_like": ["randn_like(x) * x"],
    "randperm": ["randperm(4)", "x[:, randperm(3)]"],
    "remainder": ["remainder(u, y)", "5.0 % x", "i % j", "u % -2"],
    "repeat": ["repeat(x, 2, 1)", "x.repeat((2, 1, 2))"],
    "reshape": ["reshape(x, (3, 2))", "x.reshape(-1)", "x.t().reshape(6)", "c.reshape(3, -1) * 2"],
    "reshape_as": ["reshape_as(x, tall)"],
    "rms_norm": ["rms_norm(x, (3,))", "rms_norm(x, (3,), r, eps=1e-3)"],
    "roll": ["roll(x, 1)", "roll(c, (1, -1), (0, 2))"],
    "round": ["round(u)", "round(u, decimals=1)"],
    "scatter": ["scatter(x, 1, index, y)", "x.scatter(0, index[:1], 2.5)",
                "scatter(x, 1, index, value=1)"],
    "scatter_add": ["scatter_add(x, 1, index, y)"],
    "select": ["select(c, 1, -1)", "select(x, 0, 1) * 2"],
    "setitem": ["setitem(x * 1, 0, v)", "setitem(x * 1, (0, slice(1, None)), 2.5)",
                "setitem(m * 1, pick, x)", "setitem(x * 1, (slice(None), pick), s)",
                "setitem(x * 1, mask, 2.0)", "setitem(x * 1, mask, s)", "setitem(x * 1, 0, i[0])",
                "setitem(c * 1, (..., None, 1), y[..., None])", "setitem(m * 1, (rows[:1], 1), s)",
                "setitem(x.t() * 1, 0, two)", "setitem((x * 1)[:, ::2], 0, s)"],
    "smooth_l1_loss": ["smooth_l1_loss(x, y)", "smooth_l1_loss(u, y, beta=0.5, reduction='sum')"],
    "huber_loss": ["huber_loss(u, y, delta=0.5)"],
    "softmax": ["softmax(u, 1)", "F.softmax(u, dim=-1, dtype=flow.float64)"],
    "softmin": ["softmin(u, 1)"],
    "softplus": ["softplus(u)", "softplus(u, 2.0, 1.0)"],
    "sort": ["sort(u)", "sort(u, 0, descending=True)", "u.sort(stable=True).indices"],
    "argsort": ["argsort(u)", "argsort(u, 0, descending=True)"],
    "split": ["split(c, 3, 2)", "split(x, [1, 2], 1)", "x.split(1)[1]"],
    "squeeze": ["squeeze(col, 1)", "plane.squeeze()", "plane.squeeze((0,))", "x.squeeze(0) * 2"],
    "stack": ["stack([x, y])", "stack((x, wide), -1)"],
    "std": ["std(u)", "std(u, 1, unbiased=False)", "std(u, (0, 1), correction=0, keepdim=True)"],
    "sub": ["sub(x, y, alpha=2)", "2 - x", "flow.rsub(x, y)", "i - j"],
    "sum": ["sum(x)", "sum(c, (0, 2), True)", "sum(mask)", "sum(half)", "sum(empty_rows)",
            "sum(x, dtype=flow.float64)", "empty_rows.sum(0)", "fortran.sum()",
            "c.transpose(0, 2).sum(1)"],
    "sum_to": ["sum_to(x, 3)", "x.sum_to_size(2, 1)"],
    "t": ["t(x)", "t(x) * 2", "x.T @ y", "c.mT + d", "v.t()"],
    "take": ["take(x, pick)", "take(x, index)"],
    "take_along_dim": ["take_along_dim(x, index, 1)", "x.take_along_dim(pick)"],
    "tensordot": ["tensordot(x, tall, dims=1)", "tensordot(c, c, ([0, 2], [0, 2]))"],
    "threshold": ["threshold(u, 0.3, -1.0)", "threshold(u * 1, 0.3, -1.0, True)"],
    "tile": ["tile(x, (2,))", "x.tile(2, 1)"],
    "to_device": ["to_device(x, flow.device('cpu'))"],
    "topk": ["topk(u, 2)", "topk(u, 1, 0, largest=False)", "u.topk(2).values"],
    "transpose": ["transpose(c, 0, 2)", "flow.swapaxes(x, 0, 1) * 2", "x.swapdims(0, -1)"],
    "tril": ["tril(m)", "tril(c, -1)"],
    "triu": ["triu(m, 1)"],
    "trunc_normal_": ["trunc_normal_(x.detach().clone(), 0.0, 1.0, -1.0, 1.0)"],
    "unbind": ["unbind(c, 1)", "list(x.unbind())"],
    "unflatten": ["unflatten(c, 2, (2, -1))"],
    "unfold": ["unfold(c, 2, 2, 1)"],
    "uniform_": ["uniform_(x * 1)", "(x * 1).uniform_(-1.0, 1.0)"],
    "bernoulli_": ["bernoulli_(x * 1, 0.5)"],
    "unsqueeze": ["unsqueeze(x, 1)", "x.unsqueeze(-1) * 2"],
    "var": ["var(u)", "var(u, 1, False)", "var(c, (0, 2))"],
    "view": ["view(x, 3, 2)", "x.view(-1) * 2", "wide.view(flow.int64)", "x.view((6,))"],
    "view_as": ["view_as(x, tall)"],
    "view_as_real": ["view_as_real(z)", "view_as_real(z.t()) * 2"],
    "view_as_complex": ["view_as_complex(tall)", "view_as_complex(stack((x, y), -1))"],
    "vstack": ["vstack((x, y))", "vstack((v, r))"],
    "where": ["where(mask, x, y)", "where(mask, x, 2.0)", "where(mask, 1.5, wide)", "where(mask)",
              "where(mask[0], x, s)", "where(x > y, x, y)"],
    "zero_": ["zero_(x * 1)", "(x * 1).zero_() + y"],
    "zeros": ["zeros(2, 3)", "zeros(3) + x", "zeros(())"],
    "zeros_like": ["zeros_like(x)", "zeros_like(x).add_(y)"],
}  # fmt: skip
_SCALAR = "full((), {}, dtype=flow.float64)"
CASES["sgd_update"] = [
    f"sgd_update(x.detach(), y.detach(), None, None, {_SCALAR.format(0.5)}, None, None, None)",
]
CASES["adam_update"] = [
    "adam_update(x.detach(), y.detach(), zeros(2, 3), zeros(2, 3), None, "
    "zeros((), dtype=flow.float64), "
    + ", ".join(_SCALAR.format(n) for n in (0.5, 0.9, 0.99, 1e-8))
    + ", None)",
]


def _cases(name: str) -> list[str]:
    """Return the calls of a functor: of its declaration, then those by hand."""
    declared = expressions(name, single=True)[:DECLARED] if name in DECLARATIONS else ()
    return [*declared, *CASES.get(name, [])]


CASES = {name: _cases(name) for name in FUNCTORS if name in DECLARATIONS or name in CASES}

# What may run eagerly: `tests/functors/test_declared.py` says why.
MAY_FALL_BACK = {e for name in FALLS_BACK for e in expressions(name, single=True)}


def reshapes(expression: str) -> bool:
    """Whether the call of a twin gives an argument another shape."""
    name = expression.partition("_(")[0]
    return name in DECLARATIONS and DECLARATIONS.get(name).reshapes


def is_random(expression: str) -> bool:
    """Whether a declared sample draws random numbers."""
    return any(op_expr(op).schema.random for op in dispatched(expression, 0))


# More ways to say it, and what belongs to no functor alone.
MORE: list[str] = [
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
    "one_hot(index)",
    "setitem(x * 1, mask, s)",
    "where(mask)",
    "x[mask]",
    "x[x > 0.5]",
    "x * x.sum().item()",
    "x.tolist()",
    "x.numpy()",
    "x.__array__()",
    "x * bool(x.sum() > 0)",
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
    "list(range(pick[0]))",
    "x.sum().__bool__() and x",
    "stack([row for row in x if row.sum() > 0])",
    "m[mask[0]]",
    "m[:, mask[0]]",
    "x.masked_select(x > 0.5).sum()",
    "x.nonzero()[:, 0]",
    "x.sum().tolist()",
]

# These a Program captures: they show a symbolic tensor.
SHOWS_SYMBOLIC = ["str(x)", "repr(x)"]
# They give an argument another array; a call that does is eager, and Programs take it.
RESHAPES_ARGUMENT = ["squeeze_(col, 1)", "t_(x)", "transpose_(c, 0, 2)", "unsqueeze_(x, 1)"]
# A replay cannot be run again for a second derivative; it says so.
SECOND_DERIVATIVE_REFUSED = [
    "bernoulli(x)",
    "bernoulli_(x * 1, 0.5)",
    "bernoulli_((x) * 1)",
    "normal_(x * 1)",
    "(x * 1).normal_(1.0, 0.5)",
    "uniform_(x * 1)",
    "(x * 1).uniform_(-1.0, 1.0)",
    "ones(3, requires_grad=True) * x",
]
# Their last expression makes tensors on the CPU, which do not meet those of another device.
ON_THE_CPU = ["eye", "linspace", "ones", "randn", "randperm", "sgd_update", "adam_update"]
