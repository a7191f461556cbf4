"""Complex numbers in every op: what PyTorch computes we compute, what it refuses we refuse."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.functors.declaring.declare import DECLARATIONS
from oneflow_lite.ops.registry import FUNCTORS
from oneflow_lite.testing import Sample, check_op
from tests.functors.agreement import compare

_rng = np.random.default_rng(7)


def _complex(*shape: int) -> Any:
    """Random numbers in all four quadrants, away from 0."""
    size = _rng.uniform(0.5, 1.5, shape)
    return np.asarray(size * np.exp(1j * _rng.uniform(-3, 3, shape)))


def _real(*shape: int) -> Any:
    return np.asarray(_rng.uniform(0.5, 1.5, shape) * _rng.choice([-1, 1], shape))


# The tensors that an expression may name; they are differentiated.
ARRAYS = {
    "z": _complex(2, 3),
    "w": _complex(2, 3),
    "row": _complex(3),
    "column": _complex(2, 1),
    "pairs": _complex(2, 2),
    "square_matrix": _complex(3, 3),
    "tall": _complex(3, 2),
    "batch": _complex(2, 2, 3),
    "other_batch": _complex(2, 3, 2),
    "line": _complex(1, 1, 4),
    "kernel": _complex(1, 1, 2),
    "plane": _complex(1, 1, 3, 3),
    "plane_kernel": _complex(1, 1, 2, 2),
    "scalar": _complex(),
    "one_zero": np.array([1 - 2j, 0, 3 + 1j]),
    "two_zeros": np.array([0, 1 - 2j, 0]),
    "x": _real(2, 3),
    "y": _real(2, 3),
    "real_row": _real(3),
    "real_pairs": _real(2, 2),
    "real_scalar": _real(),
    "size": _rng.uniform(0.5, 1.5, (2, 3)),
}
# Those that are not.
INDICES = {
    "mask": np.array([[True, False, True], [False, True, True]]),
    "grid": np.array([[0, 1, 1], [1, 0, 0]]),
    "places": np.array([[0, 2], [1, 0]]),
    "vector": np.array([2, 0, 2]),
    "distinct": np.array([2, 0]),
}


def setitem(tensor: Any, index: Any, value: Any) -> Any:
    tensor[index] = value
    return tensor


class Names(dict):
    """Names that an expression may use: tensors, indices, and the ops of a library."""

    def __init__(self, lib: Any, tensors: dict[str, Any]) -> None:
        super().__init__(tensors, setitem=setitem, slice=slice)
        self.lib = lib

    def __missing__(self, name: str) -> Any:
        if name in INDICES:
            return self.lib.tensor(INDICES[name])
        for place in (self.lib, self.lib.nn.functional):
            if hasattr(place, name):
                return getattr(place, name)
        return FUNCTORS.get(name)  # the in-place twins


def _names(expression: str) -> list[str]:
    return [name for name in ARRAYS if name in re.findall(r"\w+", expression)]


def _function(lib: Any, expression: str) -> Callable[..., Any]:
    """Return the expression as a function of the tensors that it names, in their order."""
    names = _names(expression)

    def function(*tensors: Any) -> Any:
        scope = Names(lib, dict(zip(names, tensors, strict=True)))
        return eval(expression, {"__builtins__": {"__import__": __import__}}, scope)

    return function


def _arrays(expression: str) -> list[Any]:
    return [ARRAYS[name] for name in _names(expression)]


# --- The table ----------------------------------------------------------------------------------

_HOLOMORPHIC = """
    acos acosh asin asinh atan atanh cos cosh exp exp2 expm1 log log10 log1p log2 neg positive
    reciprocal rsqrt sigmoid silu sin sinc sinh sqrt square tan tanh tanhshrink
""".split()
_TWO = "add sub mul div pow".split()
_PAIRS = [
    "z, w", "z, x", "x, z", "z, row", "row, z", "z, real_row", "real_row, z", "column, real_row",
    "z, scalar", "x, scalar", "z, real_scalar", "z, 1.5", "z, 2", "z, -1", "z, 0.7-1.3j",
    "x, 0.7-1.3j",
]  # fmt: skip
_REDUCTIONS = "mean var std".split()
_COMPARISONS = "eq ne logical_and logical_or logical_xor".split()

# functor: expressions with complex numbers.
COMPARED: dict[str, list[str]] = {
    **{name: [f"{name}(z)"] for name in _HOLOMORPHIC},
    **{name: [f"{name}({pair})" for pair in _PAIRS] for name in _TWO},
    **{
        name: [f"{name}(z)", f"{name}(z, 1)", f"{name}(batch, (0, 2), keepdim=True)"]
        for name in _REDUCTIONS
    },
    **{name: [f"{name}(z, w)", f"{name}(z, x)", f"{name}(row, z)"] for name in _COMPARISONS},
    **{name: [f"{name}(z)"] for name in "isfinite isinf isnan logical_not nonzero".split()},
    **{name: [f"{name}(z)", f"{name}(z, 1)"] for name in "any all count_nonzero".split()},
    "allclose": ["z * allclose(z, w)", "z * allclose(z, z + 1e-9)"],
    "equal": ["z * equal(z, w)", "z * equal(z, z * 1)"],
    "isclose": ["isclose(z, w)", "isclose(z, z + 1e-9)"],
    # Parts
    "abs": ["abs(z)"],
    "angle": ["angle(z)", "angle(x)"],
    "cast": ["z.to(complex128)", "x.to(complex128) * 1j", "z.to(float64)", "z.bool()"],
    "complex": ["complex(x, y)", "complex(x, real_row)", "complex(real_scalar, x)"],
    "conj": ["conj(z)", "conj(x)"],
    "imag": ["imag(z)", "z.imag"],
    "polar": ["polar(size, x)", "polar(x, real_row)", "polar(real_scalar, x)"],
    "real": ["real(z)", "z.T.real", "real(x)"],
    "sgn": ["sgn(z)", "sgn(x)"],
    "view_as_complex": ["view_as_complex(real_pairs)", "view_as_complex(stack((x, y), -1))"],
    "view_as_real": ["view_as_real(z)", "view_as_real(z.T)", "view_as_real(scalar) * real_scalar"],
    # More arithmetic
    "addcdiv": ["addcdiv(z, w, row)", "addcdiv(z, x, y, value=2-1j)", "addcdiv(x, z, w)"],
    "addcmul": ["addcmul(z, w, row)", "addcmul(z, x, y, value=2-1j)", "addcmul(x, z, w)"],
    "lerp": ["lerp(z, w, 0.3)", "lerp(z, w, 0.3-0.6j)", "lerp(z, w, row)", "lerp(z, w, 0.8)"],
    "logaddexp": ["logaddexp(z, w)", "logaddexp(z, row)", "logaddexp(z, 20 * w)"],
    "nan_to_num": ["nan_to_num(z)"],
    "softsign": ["softsign(z)"],
    "where": ["where(mask, z, w)", "where(mask, z, 2-1j)", "where(mask, x, 2-1j)",
              "where(mask, 1.5, row)", "where(mask, z, x)", "where(mask, real_row, z)"],
    # Products
    "addmm": ["addmm(pairs, z, tall)", "addmm(scalar, z, tall, beta=0.5-1j, alpha=2+1j)"],
    "addmv": ["addmv(scalar, z, row, beta=0.5-1j, alpha=2+1j)"],
    "baddbmm": ["baddbmm(pairs, batch, other_batch, beta=0.5-1j, alpha=2+1j)"],
    "bmm": ["bmm(batch, other_batch)"],
    "conv1d": ["conv1d(line, kernel)"],
    "conv2d": ["conv2d(plane, plane_kernel, padding=1)"],
    "dot": ["dot(row, z[0])"],
    "einsum": ["einsum('ij,kj->ik', z, w)", "einsum('bij,bjk->bik', batch, other_batch)",
               "einsum('ii->i', square_matrix)", "einsum('i,j,ij->', column[:, 0], row, z)"],
    "linear": ["linear(batch, square_matrix, row)", "linear(z, w)"],
    "matmul": ["matmul(z, tall)", "matmul(row, tall)", "matmul(z, row)", "matmul(row, row * 2)",
               "matmul(batch, tall)", "matmul(z, other_batch)", "matmul(batch, other_batch)",
               "matmul(batch, row)", "z @ tall"],
    "mm": ["mm(z, tall)"],
    "mv": ["mv(z, row)"],
    "outer": ["outer(row, z[0])", "outer(row, real_row)", "outer(real_row, row)"],
    "tensordot": ["tensordot(z, tall, dims=1)", "tensordot(z, w, dims=([0, 1], [0, 1]))"],
    # Reductions and scans
    "cumprod": ["cumprod(z, 1)", "cumprod(one_zero, 0)", "cumprod(two_zeros, 0)"],
    "cumsum": ["cumsum(z, 1)"],
    "logsumexp": ["logsumexp(z, 1)", "logsumexp(z, (0, 1), keepdim=True)"],
    "norm": ["norm(z)", *[f"norm(z, {p})" for p in (0, 0.5, 1, 3, -1, "1e400", "-1e400")],
             "norm(z, 2, 1)"],
    "prod": ["prod(z)", "prod(z, 1)", "prod(one_zero)", "prod(two_zeros)"],
    "std_mean": ["std_mean(z, 1)"],
    "sum": ["sum(z)", "sum(z, 1)", "sum(batch, (0, 2), keepdim=True)", "sum(x, dtype=complex128)"],
    "sum_to": ["z.sum_to_size(1, 3)"],
    "trace": ["trace(square_matrix)"],
    "var_mean": ["var_mean(z)"],
    # Reading
    "chunk": ["chunk(z, 2, 1)"],
    "diag": ["diag(row)", "diag(square_matrix)"],
    "diagonal": ["diagonal(square_matrix, 1)"],
    "embedding": ["embedding(vector, square_matrix)"],
    "flip": ["flip(z, (1,))"],
    "gather": ["gather(z, 1, grid)"],
    "getitem": ["z[0]", "z[:, 1]", "z[..., None]", "z[::2]", "z[distinct % 2]", "z[mask]",
                "z[:, vector]", "z[grid, grid]"],
    "index_select": ["index_select(z, 1, vector)"],
    "masked_select": ["masked_select(z, mask)"],
    "narrow": ["narrow(z, 1, 1, 2)"],
    "roll": ["roll(z, 1, 1)"],
    "select": ["select(z, 1, 2)"],
    "split": ["split(z, 2, 1)"],
    "take": ["take(z, vector)"],
    "take_along_dim": ["take_along_dim(z, grid, 1)"],
    "tril": ["tril(square_matrix)"],
    "triu": ["triu(square_matrix, 1)"],
    "unbind": ["unbind(z, 1)"],
    # Writing
    "copy_": ["(z * 1).copy_(w)", "(z * 1).copy_(row)", "(z * 1).copy_(x)", "(x * 1).copy_(z)"],
    "fill_": ["(z * 1).fill_(scalar)", "(z * 1).fill_(2-1j)", "(z * 1).fill_(real_scalar)"],
    "index_add": ["index_add(z, 1, vector, w)", "index_add(z, 1, vector, w, alpha=2)",
                  "index_add(z, 1, vector, w, alpha=2-1j)"],
    "index_fill": ["index_fill(z, 1, vector, scalar)", "index_fill(z, 1, vector, 2-1j)",
                   "index_fill(z, 1, vector, real_scalar)"],
    "masked_fill": ["masked_fill(z, mask, scalar)", "masked_fill(z, mask, 2-1j)",
                    "masked_fill(z, mask, real_scalar)"],
    "masked_scatter": ["masked_scatter(z, mask, w)"],
    "scatter": ["scatter(z, 1, places, pairs)", "scatter(z, 1, places, 2-1j)",
                "scatter(z, 1, places, 1.5)"],
    "scatter_add": ["scatter_add(z, 1, grid, w)"],
    "setitem": ["setitem(z * 1, 0, row)", "setitem(z * 1, 0, scalar)", "setitem(z * 1, 0, 2-1j)",
                "setitem(z * 1, (slice(None), slice(0, 2)), pairs)", "setitem(z * 1, 0, real_row)",
                "setitem(z * 1, (slice(None), distinct), pairs)", "setitem(z * 1, mask, scalar)",
                "setitem(z * 1, mask, 2-1j)", "setitem(x * 1, 0, row)",
                "setitem(z * 1, mask, real_scalar)"],
    "zero_": ["(z * 1).zero_() + w"],
    # Joining and shape
    "broadcast_to": ["broadcast_to(row, (2, 3))"],
    "cat": ["cat((z, w), 1)", "cat((z, x), 1)", "cat((x, z))"],
    "clone": ["clone(z)"],
    "column_stack": ["column_stack((row, real_row))"],
    "concat": ["concat((z, x))"],
    "concatenate": ["concatenate((z, x))"],
    "contiguous": ["z.T.contiguous()"],
    "diag_embed": ["diag_embed(z)"],
    "dstack": ["dstack((z, x))"],
    "expand": ["row.expand(2, 3)"],
    "expand_as": ["row.expand_as(z)"],
    "flatten": ["flatten(z)"],
    "hstack": ["hstack((z, x))"],
    "meshgrid": ["meshgrid(row, row * 2j, indexing='ij')"],
    "movedim": ["movedim(batch, 0, 2)"],
    "pad": ["pad(z, (1, 2))", "pad(z, (1, -1))", "pad(z, (1, 2), 'constant', 2.5)",
            "pad(z, (1, 1), 'reflect')", "pad(z, (1, 1), 'replicate')",
            "pad(z, (1, 1), 'circular')"],
    "permute": ["permute(batch, (1, 2, 0))"],
    "ravel": ["ravel(z)"],
    "repeat": ["z.repeat(2, 1)"],
    "reshape": ["reshape(z, (3, 2))", "z.T.reshape(6)"],
    "reshape_as": ["z.reshape_as(tall)"],
    "squeeze": ["squeeze(column)"],
    "stack": ["stack((z, w), 1)", "stack((z, x))"],
    "t": ["t(z)"],
    "tile": ["tile(z, (2, 1))"],
    "transpose": ["transpose(batch, 0, 2)"],
    "unfold": ["z.unfold(1, 2, 1)", "batch.unfold(-1, 2, 2)"],
    "unflatten": ["unflatten(z, 1, (3, 1))"],
    "unsqueeze": ["unsqueeze(z, 1)"],
    "view": ["z.view(3, 2)"],
    "view_as": ["z.view_as(tall)"],
    "vstack": ["vstack((z, x))"],
    "l1_loss": ["l1_loss(z, w)"],
    "normalize": ["normalize(z)", "normalize(z, 3.0, 0)"],
}  # fmt: skip

_MIXED = "PyTorch takes no gradient of a real tensor through the cast that this op makes"
# Where PyTorch raises or is wrong, and we are neither: finite differences decide.
PYTORCH_LACKS = {
    "silu(z)": "PyTorch computes the value, and takes no gradient",
    "nan_to_num(z)": "PyTorch computes the value, and takes no gradient",
    "embedding(vector, square_matrix)": "PyTorch takes no gradient",
    "polar(x, real_row)": "PyTorch takes a negative length for a positive one",
    "polar(real_scalar, x)": "PyTorch takes a negative length for a positive one",
    "index_add(z, 1, vector, w, alpha=2-1j)": "PyTorch does not conjugate alpha in the gradient",
    "addcdiv(z, x, y, value=2-1j)": _MIXED,
    "where(mask, z, x)": _MIXED,
    "where(mask, real_row, z)": _MIXED,
    "index_fill(z, 1, vector, real_scalar)": _MIXED,
    "masked_fill(z, mask, real_scalar)": _MIXED,
    "(z * 1).fill_(real_scalar)": _MIXED,
    "sum(x, dtype=complex128)": _MIXED,
    "setitem(z * 1, mask, real_scalar)": _MIXED,
}

_ONE_REFUSED = """
    ceil erf erfc floor frac round sign trunc relu relu6 celu elu gelu glu hardshrink hardsigmoid
    hardswish hardtanh leaky_relu logsigmoid mish selu softplus softshrink bitwise_not softmin
    amin argmin argsort sort
""".split()
_TWO_REFUSED = """
    bitwise_and bitwise_or bitwise_xor hypot cosine_similarity mse_loss smooth_l1_loss huber_loss
    binary_cross_entropy binary_cross_entropy_with_logits cross_entropy kl_div
""".split()
_EITHER_REFUSED = "atan2 lt le gt ge floor_divide fmod remainder maximum minimum xlogy".split()

# functor: expressions that PyTorch refuses because a number is complex.
REFUSED: dict[str, list[str]] = {
    **{name: [f"{name}(z)"] for name in _ONE_REFUSED},
    **{name: [f"{name}(z, w)"] for name in _TWO_REFUSED},
    **{name: [f"{name}(z, w)", f"{name}(z, x)", f"{name}(x, z)"] for name in _EITHER_REFUSED},
    "amax": ["amax(z)", "amax(z, 1)"],
    "max": ["max(z)", "max(z, 1)", "max(z, w)", "max(x, z)"],
    "min": ["min(z)", "min(z, 1)", "min(z, w)", "min(x, z)"],
    "argmax": ["argmax(z)", "argmax(z, 1)"],
    "topk": ["topk(z, 1)"],
    "clamp": ["clamp(z, 0, 1)", "clamp(x, z)"],
    "clamp_min": ["clamp_min(z, 0)"],
    "clamp_max": ["clamp_max(z, 0)"],
    "threshold": ["threshold(z, 0.5, 0.1)"],
    "softmax": ["softmax(z, 0)"],
    "log_softmax": ["log_softmax(z, 0)"],
    "cosine_embedding_loss": ["cosine_embedding_loss(z, w, distinct)"],
    "hinge_embedding_loss": ["hinge_embedding_loss(z, w)"],
    "margin_ranking_loss": ["margin_ranking_loss(z, w, z)"],
    "nll_loss": ["nll_loss(z, distinct)"],
    "layer_norm": ["layer_norm(z, (3,))"],
    "group_norm": ["group_norm(z, 1)"],
    "max_pool1d": ["max_pool1d(line, 2)"],
    "max_pool2d": ["max_pool2d(plane, 2)"],
    "adaptive_max_pool1d": ["adaptive_max_pool1d(line, 2)"],
    "adaptive_max_pool2d": ["adaptive_max_pool2d(plane, 2)"],
}  # fmt: skip
# More that is refused, of functors that take complex numbers elsewhere.
REFUSED_TOO = [
    "masked_fill(x, mask, 2-1j)", "masked_fill(x, mask, scalar)",
    "index_fill(x, 1, vector, 2-1j)", "index_fill(x, 1, vector, scalar)",
    "add(x, y, alpha=2-1j)", "div(z, w, rounding_mode='floor')", "div(z, w, rounding_mode='trunc')",
    "imag(x)", "view_as_real(x)", "view_as_complex(real_row)", "view_as_complex(row)",
    "view_as_complex(real_scalar)", "view_as_complex(real_pairs.T)", "polar(z, x)", "polar(x, z)",
    "complex(z, x)", "matmul(z, tall.real)", "setitem(x, 0, 2-1j)", "isclose(z, x)",
]  # fmt: skip

_BY_REASON = {
    "makes a tensor of numbers": """
        arange empty empty_like eye full full_like linspace new_full new_ones new_tensor new_zeros
        one_hot ones ones_like zeros zeros_like""",
    "draws random numbers": """
        bernoulli bernoulli_ dropout dropout_mask normal_ orthogonal_ rand rand_like randint randn
        randn_like randperm trunc_normal_ uniform_""",
    "normalizes activations: real, in PyTorch but for rms_norm": """
        batch_norm instance_norm rms_norm""",
    "a loss of distributions": "gaussian_nll_loss poisson_nll_loss",
    "pools: linear, taken of complex numbers where PyTorch takes none (test_pooling)": """
        avg_pool1d avg_pool2d adaptive_avg_pool1d adaptive_avg_pool2d""",
    "the gradient of matmul, reached by its second derivatives": "matmul_nt matmul_tn",
    "an optimizer's step (tests/optim/test_every_optimizer.py)": """
        adadelta_update adafactor_update adagrad_update adam_update adamax_update asgd_update
        muon_update nadam_update radam_update rmsprop_update rprop_update sgd_update""",
    "moves memory between devices": "to_device",
}
ELSEWHERE = {name: why for why, names in _BY_REASON.items() for name in names.split()}


def test_the_tables_cover_every_functor():
    tables = [set(COMPARED), set(REFUSED), set(ELSEWHERE)]
    covered = set.union(*tables)
    twins = {f"{name}_" for name in covered}
    # Those that are in no table are in the sweep over the declarations.
    uncovered = {name for name in set(FUNCTORS) - twins - covered if name[:-1] not in DECLARATIONS}
    assert uncovered <= set(DECLARATIONS)
    assert covered - {"concat", "concatenate"} <= set(FUNCTORS)  # other names of cat
    assert sum(map(len, tables)) == len(covered)  # each functor stands in one


# --- What is computed ---------------------------------------------------------------------------

# Numbers on the left.
_REFLECTED = [
    f"({number}) {operator} {name}"
    for operator in "+ - * / **".split()
    for number in ("1.5", "2-1j")
    for name in ("z", "size")
]
EXPRESSIONS = [*dict.fromkeys(e for cases in COMPARED.values() for e in cases), *_REFLECTED]


@pytest.mark.slow(but=60)
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_derivatives_are_those_of_differences(expression):
    result = _function(flow, expression)(*map(flow.tensor, _arrays(expression)))
    if isinstance(result, tuple) or result.is_floating_point() or result.is_complex():
        check_op(
            _function(flow, expression),
            [Sample(*_arrays(expression))],
            degenerate=False,
            layouts=False,
            single_precision=".to(" not in expression and "dtype" not in expression,
        )


@pytest.mark.filterwarnings("ignore:Casting complex values to real")
@pytest.mark.parametrize("expression", [e for e in EXPRESSIONS if e not in PYTORCH_LACKS])
def test_values_and_derivatives_are_pytorchs(expression):
    torch = pytest.importorskip("torch")
    compare(_function(flow, expression), _function(torch, expression), *_arrays(expression))


@pytest.mark.parametrize("expression", PYTORCH_LACKS)
def test_pytorch_lacks_what_we_say(expression):
    torch = pytest.importorskip("torch")
    assert expression in EXPRESSIONS
    with pytest.raises((RuntimeError, AssertionError)):
        compare(_function(flow, expression), _function(torch, expression), *_arrays(expression))


# --- Cuts, zeros and extremes -------------------------------------------------------------------


def _from_parts(real: Any, imag: Any) -> Any:
    """Return complex numbers whose zeros keep their signs, which a sum of parts would lose."""
    z = np.empty(np.broadcast_shapes(np.shape(real), np.shape(imag)), complex)
    z.real, z.imag = real, imag
    return z


# On both sides of every cut that an elementary function has.
_SIDES = np.array([[0.0], [-0.0]])
ON_REAL_AXIS = _from_parts([-2.0, -0.5, 0.5, 2.0], _SIDES)
ON_IMAGINARY_AXIS = _from_parts(_SIDES, [-2.0, -0.5, 0.5, 2.0])


# PyTorch takes no gradient of silu, and that of acosh on the wrong side where |Re z| < 1.
_COMPARED_AT_CUTS = [name for name in _HOLOMORPHIC if name not in ("silu", "acosh")]


@pytest.mark.parametrize("points", [ON_REAL_AXIS, ON_IMAGINARY_AXIS])
@pytest.mark.parametrize("name", [*_COMPARED_AT_CUTS, "sgn", "angle", "abs", "softsign"])
def test_both_sides_of_a_cut_are_pytorchs(name, points):
    torch = pytest.importorskip("torch")
    compare(_function(flow, f"{name}(z)"), _function(torch, f"{name}(z)"), points)


@pytest.mark.parametrize("points", [ON_REAL_AXIS, ON_IMAGINARY_AXIS])
@pytest.mark.parametrize("name", ["acosh", "log", "sqrt", "rsqrt"])
def test_the_derivative_changes_sides_with_the_function(name, points, device):
    """f(conj z) = conj f(z), and so for f'."""
    z = flow.tensor(points, device=device, requires_grad=True)
    y = getattr(flow, name)(z)
    (dz,) = flow.autograd.grad(y, z, flow.ones_like(y))
    got = dz.cpu().numpy()
    other_side = (
        (slice(None), slice(None, None, -1))
        if points is ON_IMAGINARY_AXIS
        else slice(None, None, -1)
    )
    np.testing.assert_allclose(got[other_side], got.conj(), 1e-12)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_the_angle_of_any_size_has_a_derivative(scale, device):
    z = flow.tensor(np.array((3 + 4j) * scale), device=device, requires_grad=True)
    (dz,) = flow.autograd.grad(flow.angle(z), z)
    np.testing.assert_allclose(dz.item() * scale, (-4 + 3j) / 25, 1e-12)


def test_nan_to_num_passes_the_gradient_of_the_finite_part(device):
    parts = _from_parts([np.nan, 1.0, np.inf, 2.0], [1.0, -np.inf, np.nan, 3.0])
    z = flow.tensor(parts, device=device, requires_grad=True)
    dy = flow.tensor(np.full(4, 2 - 5j), device=device, requires_grad=True)
    (dz,) = flow.autograd.grad(flow.nan_to_num(z), z, dy, create_graph=True)
    assert dz.tolist() == [-5j, 2, 0, 2 - 5j]
    (ddy,) = flow.autograd.grad(dz, dy, flow.ones_like(dz) * (1 + 1j))
    assert ddy.tolist() == [1j, 1, 0, 1 + 1j]


def test_a_length_may_be_negative_or_zero(device):
    """polar is linear in its first argument."""
    size = flow.tensor([-2.0, 0.0], device=device, requires_grad=True)
    y = flow.polar(size, flow.tensor([0.5, 0.5], device=device))
    (dsize,) = flow.autograd.grad(y, size, flow.ones_like(y))
    np.testing.assert_allclose(dsize.cpu().numpy(), np.cos([0.5, 0.5]).astype("f"), 1e-6)


# --- Views --------------------------------------------------------------------------------------


def test_pairs_are_views(device):
    z = flow.tensor([[1 + 2j, 3 - 1j]], device=device)
    pairs = flow.view_as_real(z)
    back = flow.view_as_complex(pairs)
    assert pairs._base is z and back._base is z
    pairs[0, 1, 0] = 7.0
    assert z.tolist() == back.tolist() == [[1 + 2j, 7 - 1j]]
    assert z._version == back._version == 1


def test_pairs_of_every_layout(device):
    z = flow.tensor([[1 + 2j, 3 - 1j], [0j, 5j]], device=device)
    assert flow.view_as_real(z[0, 1]).tolist() == [3, -1]
    assert flow.view_as_real(z.flip(1)).tolist()[0] == [[3, -1], [1, 2]]
    assert flow.view_as_real(z[:0]).shape == (0, 2, 2)
    assert flow.view_as_complex(flow.view_as_real(z)[1]).tolist() == [0j, 5j]
    assert flow.view_as_complex(flow.zeros(0, 2, device=device)).shape == (0,)
    assert flow.view_as_complex(flow.zeros(3, 2, device=device)).dtype == flow.complex64
    assert flow.view_as_complex(flow.zeros(2, device=device).double()).dtype == flow.complex128


def _written_through(lib: Any, view: str) -> Callable[..., Any]:
    def function(base: Any, factor: Any) -> Any:
        base = base * 1
        part = getattr(lib, view)(base)
        part.mul_(factor)
        return base * base, part * 2

    return function


PARTS = [
    ("real", ARRAYS["z"], ARRAYS["x"]),
    ("imag", ARRAYS["z"], ARRAYS["real_row"]),
    ("view_as_real", ARRAYS["z"], np.array([2.0, -1.5])),
    ("view_as_complex", ARRAYS["real_pairs"], ARRAYS["pairs"][0]),
]


@pytest.mark.parametrize(("view", "base", "factor"), PARTS)
def test_a_write_through_a_part_reaches_the_whole(view, base, factor):
    sample = Sample(base, factor)
    check_op(_written_through(flow, view), [sample], degenerate=False, layouts=False)


def test_parts_are_assigned(device):
    z = flow.tensor([1 + 2j, 3 - 1j], device=device)
    z.real = 5.0
    z.imag = flow.tensor([7.0, 8.0], device=device)
    assert z.tolist() == [5 + 7j, 5 + 8j] and z._version == 2
    x = flow.tensor([1.0, 2.0], device=device)
    x.real = z.imag
    assert x.tolist() == [7, 8]
    with pytest.raises(flow.errors.DTypeError, match=r"imag\(\).*complex dtype"):
        x.imag = 1.0


@pytest.mark.parametrize("part", ["real", "imag"])
def test_an_assigned_part_has_a_gradient(part):
    pytest.importorskip("torch")

    def assigned(z: Any, x: Any) -> Any:
        z = z * 1
        setattr(z, part, x)
        return z * z

    compare(assigned, assigned, ARRAYS["z"], ARRAYS["x"])


@pytest.mark.parametrize(("view", "base", "factor"), PARTS)
def test_a_write_through_a_part_is_pytorchs(view, base, factor):
    torch = pytest.importorskip("torch")
    compare(_written_through(flow, view), _written_through(torch, view), base, factor)


# --- In place -----------------------------------------------------------------------------------


def _reshapes(name: str) -> bool:
    return name in DECLARATIONS and DECLARATIONS.get(name).reshapes


def _in_place(expression: str) -> str | None:
    """Return `name_(x * 1, ...)` for `name(x, ...)` where that twin exists."""
    match = re.fullmatch(r"(\w+)\((\w+)(.*)\)", expression)
    if match and f"{match[1]}_" in FUNCTORS and not _reshapes(match[1]):
        return f"{match[1]}_({match[2]} * 1{match[3]})"
    return None


def _result(expression: str) -> tuple[Any, list[Any]]:
    leaves = [flow.tensor(array, requires_grad=True) for array in _arrays(expression)]
    return _function(flow, expression)(*leaves), leaves


def _in_place_cases() -> list[str]:
    return [e for e in EXPRESSIONS if _in_place(e) is not None]


@pytest.mark.parametrize("expression", _in_place_cases())
def test_in_place_is_what_it_is_out_of_place(expression):
    """Or is refused, where the result has another shape, or is of real numbers; not so of bools."""
    expected, leaves = _result(expression)
    first = leaves[_names(expression).index(re.findall(r"\w+", expression)[1])]
    if expected.dtype == flow.bool and expected.shape == first.shape:
        got, _ = _result(_in_place(expression))
        assert got.is_complex() and got.tolist() == expected.tolist()
        return
    if expected.dtype != first.dtype or expected.shape != first.shape:
        with pytest.raises(flow.errors.FlowError):
            _result(_in_place(expression))
        return
    got, same_leaves = _result(_in_place(expression))
    np.testing.assert_array_equal(got.detach().numpy(), expected.detach().numpy())
    weight = flow.tensor(np.full(expected.shape, 0.5 - 2j) if expected.is_complex() else 1.5)
    for order in range(2):
        totals = [(y * weight).sum() for y in (got, expected)]
        grads = [
            flow.autograd.grad(
                total, xs, flow.ones_like(total), create_graph=True, materialize_grads=True
            )[0]
            for total, xs in zip(totals, (same_leaves, leaves), strict=True)
        ]
        np.testing.assert_allclose(grads[0].detach().numpy(), grads[1].detach().numpy(), 1e-12)
        if not grads[1].requires_grad:
            assert not grads[0].requires_grad
            break
        got, expected = grads
        weight = flow.tensor(0.5 - 2j if expected.is_complex() else 1.5)


def test_a_size_is_not_put_in_the_place_of_a_complex_number():
    z = flow.tensor(ARRAYS["z"])
    with pytest.raises(flow.errors.DTypeError, match=r"abs_\(\).*real dtype.*complex128.*abs\(\)"):
        z.abs_()
    np.testing.assert_array_equal(z.numpy(), ARRAYS["z"])
    assert z._version == 0


# --- What is refused ----------------------------------------------------------------------------

ALL_REFUSED = [e for cases in REFUSED.values() for e in cases] + REFUSED_TOO


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("expression", ALL_REFUSED)
def test_refuses(expression):
    arrays = _arrays(expression)
    tensors = [flow.tensor(array) for array in arrays]
    name = expression.partition("(")[0]
    with pytest.raises(flow.errors.FlowError, match=rf"^{name}\(\)") as caught:
        _function(flow, expression)(*tensors)
    assert isinstance(caught.value, (RuntimeError, TypeError))
    for tensor, array in zip(tensors, arrays, strict=True):
        np.testing.assert_array_equal(tensor.numpy(), array)
        assert tensor._version == 0


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("expression", ALL_REFUSED)
def test_pytorch_refuses(expression):
    torch = pytest.importorskip("torch")
    with pytest.raises((RuntimeError, TypeError)):
        _function(torch, expression)(*map(torch.tensor, _arrays(expression)))


@pytest.mark.parametrize("expression", [e for e in ALL_REFUSED if _in_place(e)])
def test_refuses_in_place(expression):
    arrays = _arrays(expression)
    tensors = [flow.tensor(array) for array in arrays]
    with pytest.raises(flow.errors.FlowError):
        _function(flow, _in_place(expression).replace(" * 1", ""))(*tensors)
    for tensor, array in zip(tensors, arrays, strict=True):
        np.testing.assert_array_equal(tensor.numpy(), array)
        assert tensor._version == 0


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_number_overwritten_has_no_gradient(create_graph):
    x = flow.tensor(1.5 + 2j, requires_grad=True)
    y = x * 2
    y[()] = 0.35
    (g,) = flow.autograd.grad(y.real * 3, x, create_graph=create_graph)
    assert g.item() == 0
