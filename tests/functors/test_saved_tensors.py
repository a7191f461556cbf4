"""The tensors that each op keeps for its gradient: overwriting one raises where PyTorch raises.

Every op runs once for each set of inputs that require a gradient and each tensor that is then
overwritten, an input or the result. Where the two libraries differ, the reason stands in a table.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import StaleTensorError
from oneflow_lite.ops.registry import FUNCTORS, GRAD_FUNCS
from tests.declared_samples import Names
from tests.functors.declared import Call, calls, counterpart
from tests.op_samples import samples

A = np.array([[0.3, 0.7, 0.45], [0.6, 0.2, 0.9]])
B = np.array([[0.5, 0.4, 0.8], [0.35, 0.75, 0.1]])
SQUARE = np.random.default_rng(0).normal(size=(3, 3))
VECTOR = np.array([0.3, 0.5, 0.2])
COMPLEX = A + 1j * B
LINE = np.random.default_rng(1).normal(size=(2, 2, 5))
PLANE = np.random.default_rng(2).normal(size=(1, 2, 4, 4))
MASK = np.array([[True, False, True], [False, True, False]])
PLACES = np.array([[0, 1, 1], [1, 0, 1]])
COLUMNS = np.array([2, 0])
SIGNS = np.array([1.0, -1.0, 1.0])


def method(name, *args, **options):
    return lambda lib, x, *others: getattr(x, name)(*others, *args, **options)


def function(name, *args, **options):
    return lambda lib, *xs: getattr(lib, name)(*xs, *args, **options)


def nn(name, *args, **options):
    return lambda lib, *xs: getattr(lib.nn.functional, name)(*xs, *args, **options)


UNARY = """
    abs acos asin asinh atan atanh ceil clone cos cosh erf erfc exp exp2 expm1 floor frac log log10
    log1p log2 nan_to_num neg reciprocal relu round rsqrt sigmoid sign sin sinc sinh sqrt square
    tan tanh tril triu trunc amax amin max min mean norm prod std sum var trace ravel diagonal
    diag_embed
""".split()
ACTIVATIONS = """
    celu elu gelu hardshrink hardsigmoid hardswish hardtanh leaky_relu logsigmoid mish relu6 selu
    silu softplus softshrink softsign normalize
""".split()
BINARY = """
    add atan2 div fmod hypot logaddexp maximum minimum mul pow remainder sub xlogy
""".split()
LOSSES = """
    binary_cross_entropy binary_cross_entropy_with_logits huber_loss kl_div l1_loss mse_loss
    poisson_nll_loss smooth_l1_loss
""".split()

CASES: dict[str, tuple[Any, list[Any]]] = {
    **{name: (method(name), [A]) for name in UNARY},
    **{name: (nn(name), [A]) for name in ACTIVATIONS},
    **{name: (function(name), [A, B]) for name in BINARY},
    **{name: (nn(name, reduction="sum"), [A, B]) for name in LOSSES},
    **{f"{name} of a number": (function(name, 0.7), [A]) for name in BINARY if name in "add sub "
       "mul div pow fmod remainder".split()},
    "acosh": (method("acosh"), [A + 1.2]),
    "a number minus x": (lambda lib, x: 2.0 - x, [A]),
    "a number over x": (lambda lib, x: 2.0 / x, [A]),
    "a number to x": (lambda lib, x: 2.0**x, [A]),
    "x squared": (lambda lib, x: x**2, [A]),
    "x times x": (lambda lib, x: x * x, [A]),
    "mul by a 0-d tensor": (function("mul"), [A, np.array(0.5)]),
    "div of integers' dtype": (lambda lib, x: x / lib.tensor([1, 2, 3]), [A]),
    "cast": (lambda lib, x: x.to(lib.float32), [A]),
    "threshold": (nn("threshold", 0.5, -1.0), [A]),
    "clamp": (method("clamp", 0.3, 0.6), [A]),
    "clamp of tensors": (method("clamp"), [A, B - 0.2, B + 0.2]),
    "clamp_min": (method("clamp_min", 0.4), [A]),
    "clamp_min of a tensor": (method("clamp_min"), [A, B]),
    "clamp_max": (method("clamp_max", 0.4), [A]),
    "clamp_max of a tensor": (method("clamp_max"), [A, B]),
    "add with alpha": (function("add", alpha=0.5), [A, B]),
    "sub with alpha": (function("sub", alpha=0.5), [A, B]),
    "addcmul with value": (method("addcmul", value=0.5), [A, B, B + 1]),
    "lerp": (method("lerp"), [A, B, np.full((2, 3), 0.3)]),
    "lerp of a number": (method("lerp", 0.3), [A, B]),
    "addcmul": (method("addcmul"), [A, B, B + 1]),
    "addcdiv": (method("addcdiv"), [A, B, B + 1]),
    "where": (lambda lib, x, y: lib.where(lib.tensor(MASK), x, y), [A, B]),
    **{f"{name} along a dimension": (method(name, 1), [A]) for name in
       "sum mean amax amin logsumexp std var prod cumsum cumprod softmax log_softmax".split()},
    "norm 1": (method("norm", 1), [A]),
    "norm 3": (method("norm", 3), [A]),
    "norm 3 along a dimension": (method("norm", 3, 1), [A]),
    "norm inf": (method("norm", math.inf), [A]),
    "max along a dimension": (lambda lib, x: x.max(1)[0], [A]),
    "min along a dimension": (lambda lib, x: x.min(1)[0], [A]),
    "sort": (lambda lib, x: x.sort(1)[0], [A]),
    "topk": (lambda lib, x: x.topk(2, 1)[0], [A]),
    "matmul": (function("matmul"), [A, SQUARE]),
    "matmul of three dimensions": (function("matmul"), [np.stack([A, B]), SQUARE]),
    "matmul with a vector": (function("matmul"), [A, VECTOR]),
    "mm": (function("mm"), [A, SQUARE]),
    "mv": (function("mv"), [A, VECTOR]),
    "dot": (function("dot"), [VECTOR, VECTOR + 1]),
    "outer": (function("outer"), [VECTOR, VECTOR + 1]),
    "bmm": (function("bmm"), [SQUARE[None], SQUARE[None] + 1]),
    "addmm": (function("addmm"), [A, B, SQUARE]),
    "addmv": (function("addmv"), [VECTOR[:2], A, VECTOR]),
    "baddbmm": (function("baddbmm"), [SQUARE[None], SQUARE[None] + 1, SQUARE[None] + 2]),
    "einsum": (lambda lib, x, y: lib.einsum("ij,jk->ik", x, y), [A, SQUARE]),
    "tensordot": (function("tensordot", 1), [A, SQUARE]),
    "linear": (nn("linear"), [A, SQUARE, VECTOR]),
    "cat": (lambda lib, x, y: lib.cat([x, y]), [A, B]),
    "stack": (lambda lib, x, y: lib.stack([x, y]), [A, B]),
    "gather": (lambda lib, x: x.gather(0, lib.tensor(PLACES)), [A]),
    "take_along_dim": (lambda lib, x: x.take_along_dim(lib.tensor(PLACES), 0), [A]),
    "take": (lambda lib, x: x.take(lib.tensor(COLUMNS)), [A]),
    "scatter": (lambda lib, x, s: x.scatter(0, lib.tensor(PLACES[:1]), s), [A, B[:1]]),
    "scatter_add": (lambda lib, x, s: x.scatter_add(0, lib.tensor(PLACES), s), [A, B]),
    "index_select": (lambda lib, x: x.index_select(1, lib.tensor(COLUMNS)), [A]),
    "index_add": (lambda lib, x, s: x.index_add(1, lib.tensor(COLUMNS), s), [A, B[:, :2]]),
    "index_fill": (lambda lib, x: x.index_fill(1, lib.tensor(COLUMNS), 5.0), [A]),
    "masked_fill": (lambda lib, x: x.masked_fill(lib.tensor(MASK), 0.5), [A]),
    "masked_fill with a tensor": (
        lambda lib, x, v: x.masked_fill(lib.tensor(MASK), v), [A, np.array(0.5)]
    ),
    "masked_select": (lambda lib, x: x.masked_select(lib.tensor(MASK)), [A]),
    "masked_scatter": (lambda lib, x, s: x.masked_scatter(lib.tensor(MASK), s), [A, B]),
    "x[:, 1:]": (lambda lib, x: x[:, 1:], [A]),
    "x[:, columns]": (lambda lib, x: x[:, lib.tensor(COLUMNS)], [A]),
    "x[mask]": (lambda lib, x: x[lib.tensor(MASK)], [A]),
    **{name: (method(name, *args), [A]) for name, args in {
        "repeat": (2, 1), "tile": (2,), "reshape": (3, 2), "transpose": (0, 1), "permute": (1, 0),
        "flip": (0,), "roll": (1, 0), "unsqueeze": (0,), "squeeze": (), "select": (0, 1),
        "narrow": (0, 0, 1), "unfold": (1, 2, 2),
    }.items()},
    "diag": (method("diag"), [VECTOR]),
    "real": (lambda lib, x: x.real, [COMPLEX]),
    "imag": (lambda lib, x: x.imag, [COMPLEX]),
    "conj": (lambda lib, x: lib.conj(x), [COMPLEX]),
    "angle": (method("angle"), [COMPLEX]),
    "abs of complex numbers": (method("abs"), [COMPLEX]),
    "sgn": (method("sgn"), [COMPLEX]),
    "exp of complex numbers": (method("exp"), [COMPLEX]),
    "complex": (lambda lib, x, y: lib.complex(x, y), [A, B]),
    "polar": (lambda lib, x, y: lib.polar(x, y), [A, B]),
    "view_as_real": (lambda lib, x: lib.view_as_real(x), [COMPLEX]),
    "view_as_complex": (lambda lib, x: lib.view_as_complex(x), [LINE[:, :, :2].copy()]),
    "mul of complex numbers": (function("mul"), [COMPLEX, COMPLEX + 1]),
    "mul of complex and real": (function("mul"), [COMPLEX, A]),
    "cosine_similarity": (nn("cosine_similarity"), [A, B]),
    "conv1d": (nn("conv1d"), [LINE, LINE[:, :, :2], VECTOR[:2]]),
    "conv2d": (nn("conv2d"), [PLANE, PLANE[:, :, :2, :2], VECTOR[:1]]),
    "avg_pool1d": (nn("avg_pool1d", 2), [LINE]),
    "max_pool1d": (nn("max_pool1d", 2), [LINE]),
    "max_pool2d": (nn("max_pool2d", 2), [PLANE]),
    "adaptive_avg_pool2d": (nn("adaptive_avg_pool2d", 3), [PLANE]),
    "adaptive_max_pool2d": (nn("adaptive_max_pool2d", 2), [PLANE]),
    "layer_norm": (
        lambda lib, x, w, b: lib.nn.functional.layer_norm(x, (3,), w, b), [A, VECTOR, VECTOR + 1]
    ),
    "rms_norm": (lambda lib, x, w: lib.nn.functional.rms_norm(x, (3,), w), [A, VECTOR]),
    "batch_norm": (
        lambda lib, x, w, b: lib.nn.functional.batch_norm(
            x, x.new_zeros(3), x.new_ones(3), w, b, True
        ),
        [A, VECTOR, VECTOR + 1],
    ),
    "group_norm": (
        lambda lib, x, w, b: lib.nn.functional.group_norm(x, 1, w, b),
        [LINE, VECTOR[:2], VECTOR[1:]],
    ),
    "instance_norm": (nn("instance_norm"), [LINE]),
    "gaussian_nll_loss": (nn("gaussian_nll_loss"), [A, B, B + 1]),
    "nll_loss": (lambda lib, x: lib.nn.functional.nll_loss(x, lib.tensor(COLUMNS)), [A]),
    "cross_entropy": (lambda lib, x: lib.nn.functional.cross_entropy(x, lib.tensor(COLUMNS)), [A]),
    "margin_ranking_loss": (
        lambda lib, x, y: lib.nn.functional.margin_ranking_loss(x, y, lib.tensor(SIGNS)),
        [VECTOR, VECTOR + 1],
    ),
    "hinge_embedding_loss": (
        lambda lib, x: lib.nn.functional.hinge_embedding_loss(x, lib.tensor(SIGNS)), [VECTOR]
    ),
    "embedding": (lambda lib, w: lib.nn.functional.embedding(lib.tensor(COLUMNS), w), [SQUARE]),
    "pad": (nn("pad", (1, 1)), [A]),
    "pad by reflection": (nn("pad", (1, 1), mode="reflect"), [A]),
}  # fmt: skip
SHAPE = "PyTorch keeps a tensor of which the gradient needs the shape or dtype alone"
ALWAYS = "PyTorch keeps it whichever input needs the gradient"
RESULT = "ours needs another tensor: the normalized result, or a difference that it computed"
CAST = "ours keeps the operand in the common dtype, which is a copy"
POLAR = "PyTorch keeps the result, which does not tell the angle where abs is 0; ours the angle"
# Where PyTorch raises and ours does not, with a gradient that is right.
KEEPS_LESS = {
    "pow": ALWAYS,
    "lerp": ALWAYS,
    "addcdiv": ALWAYS,
    "binary_cross_entropy": ALWAYS,
    "binary_cross_entropy_with_logits": ALWAYS,
    "conv1d": ALWAYS,
    "conv2d": ALWAYS,
    "polar": POLAR,
    "prod": "PyTorch divides the product by each element; ours multiplies the others",
    "prod along a dimension": "as prod",
    "gather": SHAPE,
    "take": SHAPE,
    "take_along_dim": SHAPE,
    "masked_select": SHAPE,
    "index_add": SHAPE,
    "complex": SHAPE,
    "avg_pool1d": SHAPE,
    "max_pool1d": SHAPE,
    "max_pool2d": SHAPE,
    "adaptive_avg_pool2d": SHAPE,
    "adaptive_max_pool2d": SHAPE,
    "nll_loss": SHAPE,
    "pad by reflection": SHAPE,
    "mul of complex and real": CAST,
    "layer_norm": RESULT,
    "rms_norm": RESULT,
    "batch_norm": RESULT,
    "group_norm": RESULT,
    "instance_norm": RESULT,
    "mse_loss": RESULT,
    "smooth_l1_loss": RESULT,
    "huber_loss": RESULT,
}
# Where ours raises and PyTorch does not.
KEEPS_MORE = {
    "a number over x": "PyTorch multiplies by the reciprocal and keeps that; ours divides once, "
    "which is more exact",
    "polar": POLAR,
}


def outcome(lib: Any, name: str, needs: tuple[bool, ...], written: int) -> str:
    """Return what a backward pass says after one tensor was overwritten; -1 is the result."""
    call, arrays = CASES[name]
    pairs = zip(arrays, needs, strict=True)
    xs = [lib.tensor(a).requires_grad_() if need else lib.tensor(a) for a, need in pairs]
    y = call(lib, *xs)
    total = (y.real if y.is_complex() else y).sum()
    with lib.no_grad():
        (y.detach() if written < 0 else xs[written]).mul_(1.0)
    try:
        lib.autograd.grad(total, [x for x in xs if x.requires_grad], allow_unused=True)
    except RuntimeError as error:
        assert lib is not flow or isinstance(error, StaleTensorError)
        assert "modified" in str(error)
        return "raises"
    return "goes on"


@pytest.mark.parametrize("name", CASES)
def test_overwriting_raises_where_pytorch_raises(name):
    torch = pytest.importorskip("torch")
    differences = Counter()
    count = len(CASES[name][1])
    for needs in itertools.product([False, True], repeat=count):
        if not any(needs):
            continue
        for written in range(-1, count):
            ours = outcome(flow, name, needs, written)
            theirs = outcome(torch, name, needs, written)
            if ours == theirs:
                continue
            table = KEEPS_MORE if ours == "raises" else KEEPS_LESS
            assert name in table, f"{needs} needed, {written} written: {ours}, PyTorch {theirs}"
            differences[ours] += 1
    assert (differences["raises"] > 0) == (name in KEEPS_MORE)
    assert (differences["goes on"] > 0) == (name in KEEPS_LESS)


# --- Declared functors --------------------------------------------------------------------------

# Of their first samples: what ours keeps and PyTorch does not, and why.
DECLARED_KEEP_MORE: dict[str, str] = {
    "ldexp": "a product, whose factors are kept",
    "polar": POLAR,
    "kron": "PyTorch multiplies copies, ours the tensors themselves",
    "linalg_svdvals": "the vectors are computed from the input, when the gradient is taken",
    "linalg_eigvalsh": "the vectors are computed from the input, when the gradient is taken",
    "linalg_eigvals": "the vectors are computed from the input, when the gradient is taken",
    "linalg_cond": "made of other functions",
    "lobpcg": "PyTorch's is a Function, which keeps the same and does not tell",
    "scaled_dot_product_attention": "made of other functions",
    "layer_norm": RESULT,
    "group_norm": RESULT,
    "ndtr": "PyTorch keeps the argument of erf, a copy",
    **{
        f"{kind}{cell}": "a layer is one op, which keeps its inputs to run again, step by step"
        for kind in ("lstm", "gru", "rnn_tanh", "rnn_relu")
        for cell in ("", "_cell")
    },
}
DECLARED = {
    call.declaration.name: call
    for call in calls()
    if call.number == 0 and call.arrays and call.declaration.places
}


def gradients_after_a_write(
    lib: Any, function: Any, call: Call, needs: tuple[bool, ...], written: int | None
) -> list[Any] | None:
    """Return the gradients after one tensor has got other values; None where that is refused.

    Raises LookupError where there is nothing to ask: no gradient, or nothing to write.
    """
    lib.manual_seed(0)
    pairs = zip(call.arrays, needs, strict=True)
    xs = [lib.tensor(a).requires_grad_() if need else lib.tensor(a) for a, need in pairs]
    result = call.run(lib, function, *xs)
    parts = result if isinstance(result, (tuple, list)) else [result]
    y = next((y for y in parts if isinstance(y, lib.Tensor) and y.requires_grad), None)
    if y is None:
        raise LookupError
    total = (lib.view_as_real(y) if y.is_complex() else y).sum()
    if written is not None:
        try:
            with lib.no_grad():
                (y.detach() if written < 0 else xs[written]).mul_(3.0)
        except RuntimeError as error:  # its elements share memory
            raise LookupError from error
    try:
        wanted = [x for x in xs if x.requires_grad]
        found = lib.autograd.grad(total, wanted, allow_unused=True)
    except (RuntimeError, NotImplementedError) as error:
        if "modified" not in str(error):
            raise LookupError from error
        return None
    return [None if g is None else g.detach().numpy() for g in found]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", DECLARED)
def test_declared_functors_keep_no_more_than_pytorch(name):
    """They may keep less: then a write does not change the gradient."""
    torch = pytest.importorskip("torch")
    call = DECLARED[name]
    ours, theirs = FUNCTORS.get(name), counterpart(torch, call.declaration)
    more = 0
    for needs in itertools.product([False, True], repeat=len(call.arrays)):
        for written in range(-1, len(needs) if any(needs) else -1):
            try:
                found = gradients_after_a_write(flow, ours, call, needs, written)
                if found is not None:
                    untouched = gradients_after_a_write(flow, ours, call, needs, None)
                    for x, y in zip(found, untouched, strict=True):
                        assert x is y or np.array_equal(x, y, equal_nan=True)
                elif theirs is not None:
                    other = gradients_after_a_write(torch, theirs, call, needs, written)
                    more += other is not None
            except LookupError:
                continue
    assert (more > 0) == (name in DECLARED_KEEP_MORE)


# Ops with a gradient that no case above reaches.
ELSEWHERE = {
    **dict.fromkeys(
        """
        all_gather all_reduce all_reduce_ all_to_all broadcast_from broadcast_from_ gather_to
        reduce_scatter reduce_to scatter_from
        local_to_global global_to_global global_to_local
        """.split(),
        "what ranks exchange, which keeps nothing: tests/distributed",
    ),
    "copy_": "in-place: tests/tensors/test_inplace.py",
    "fill_": "in-place: tests/tensors/test_inplace.py",
    "setitem_": "in-place: tests/functors/test_setitem.py",
    "setitem_grad": "in-place: tests/functors/test_setitem.py",
    "copy_slices": "writes through views: tests/tensors/test_views.py",
    "take_slices": "writes through views: tests/tensors/test_views.py",
    "take_slices_grad": "writes through views: tests/tensors/test_views.py",
    "embedding_scale": "not called alone",
    **dict.fromkeys(
        """
        cross_entropy_rows cross_entropy_rows_grad linear_cross_entropy_rows
        linear_cross_entropy_rows_grad
        """.split(),
        "for many classes: tests/functors/test_loss_vocabulary.py",
    ),
    "over_gaps": "gradients of vectors: tests/functors/test_linalg.py",
    "gamma_tail": "gradients of draws: tests/distributions",
    "beta_tail": "gradients of draws: tests/distributions",
    "gamma_slope": "gradients of draws: tests/distributions",
    "beta_slope": "gradients of draws: tests/distributions",
    "cauchy_": "keeps nothing",
    "exponential_": "keeps nothing",
    "geometric_": "keeps nothing",
    "log_normal_": "keeps nothing",
    "random_": "keeps nothing",
    "uniform_": "keeps nothing",
    "normal_": "keeps nothing",
    "bernoulli_": "keeps nothing",
    "bernoulli": "keeps nothing",
    "dropout_mask": "keeps nothing",
    "to_device": "keeps nothing",
    "cond": "control flow: tests/static/control_flow/test_control_flow.py",
    "switch_case": "control flow: tests/static/control_flow/test_control_flow.py",
    "while_loop": "control flow: tests/static/control_flow/test_control_flow.py",
    "while_loop_grad": "control flow: tests/static/control_flow/test_control_flow.py",
    **dict.fromkeys(
        "enter_batch leave_batch sum_batch enter_jet leave_jet".split(),
        "the border of a transform: tests/transforms/test_compositions.py",
    ),
}


@pytest.mark.slow
def test_every_op_with_a_gradient_is_in_the_table():
    """Or a declared functor reaches it: in a call, its backward pass or that one's."""
    with flow.push_interpreter(Names()) as ops:
        for call, arrays in CASES.values():
            xs = [flow.tensor(a, requires_grad=True) for a in arrays]
            y = call(flow, *xs)
            total = (y.real if y.is_complex() else y).sum()
            # What only backward passes run is reached by these.
            for _ in range(3):
                grads = flow.autograd.grad(total, xs, create_graph=True, allow_unused=True)
                terms = [(g.real if g.is_complex() else g).sum() for g in grads if g is not None]
                total = sum(terms, flow.tensor(0.0))
                if not total.requires_grad:
                    break
    missing = set(GRAD_FUNCS) - ops.seen
    missing = {op for op in missing if not any(s.declared for s in samples(op))}
    assert sorted(missing) == sorted(ELSEWHERE)
