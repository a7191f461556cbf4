"""The coverage table of the documentation: what is certified of every declared functor.

`python -m tests.coverage --write` writes docs/coverage.md, `--check` says whether it is up to date.
The facts are those of `tests/functors/test_declared.py`: the order to which the samples are
differentiable is run here, the exceptions are its dictionaries.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np

import oneflow_lite as flow
from oneflow_lite.errors import TransformError
from oneflow_lite.functors.declaring.declare import DECLARATIONS, Declaration
from oneflow_lite.ops.exposure import ROOMS, load_all
from oneflow_lite.ops.registry import FUNCTORS
from tests.functors import test_declared as sweep
from tests.functors.declared import Call, calls
from tests.functors.meant import meant
from tests.transforms.agreement import batches, tangents, tensors_of

PAGE = Path(__file__).resolve().parents[1] / "docs" / "coverage.md"
YES, NONE = "✓", "–"

# What users of PyTorch expect, by where they look for it; `Tensor` stands for `flow` and methods.
CATALOGUE: dict[str, str] = {
    "Tensor": """
        H T acos acosh add addbmm addcdiv addcmul addmm addmv addr alias_copy amax amin aminmax
        angle as_strided_copy asin asinh atan atan2 atanh atleast_1d atleast_2d atleast_3d
        baddbmm block_diag bmm broadcast_tensors broadcast_to cartesian_prod cat cdist cdouble
        ceil cfloat cholesky cholesky_inverse cholesky_solve chunk clamp clamp_max clamp_min
        clone column_stack combinations complex conj conj_physical constant_pad_nd contiguous
        copysign corrcoef cos cosh cov cross cummax cummin cumprod cumsum cumulative_trapezoid
        deg2rad diag diag_embed diagflat diagonal diagonal_copy diagonal_scatter diff digamma
        dist div dot double dsplit dstack einsum erf erfc erfinv exp exp2 expand expand_as
        expand_copy expm1 fill flatten flip fliplr flipud float float_power floor fmax fmin fmod
        frac frexp gather gradient grid_sampler_2d grid_sampler_3d half hsplit hstack hypot i0
        index_add index_copy index_fill index_put index_reduce index_select inner kron kthvalue
        ldexp lerp lgamma log log10 log1p log2 log_softmax logaddexp logaddexp2 logcumsumexp
        logdet logit logsumexp lu lu_solve lu_unpack mH mT masked_fill masked_scatter
        masked_select matmul matrix_exp max maximum mean median meshgrid min minimum mm mode
        movedim msort mul mv mvlgamma nan_to_num nanmean nanmedian nanquantile nansum narrow
        narrow_copy native_batch_norm native_group_norm native_layer_norm neg nextafter norm
        ormqr outer permute permute_copy pinverse polar polygamma positive pow prod put qr
        quantile rad2deg ravel real reciprocal remainder renorm repeat repeat_interleave reshape
        reshape_as resolve_conj resolve_neg roll rot90 round rsqrt rsub scatter scatter_add
        scatter_reduce select select_scatter sigmoid sign sin sinc sinh slice_scatter softmax
        sort split split_with_sizes split_with_sizes_copy sqrt square squeeze squeeze_copy stack
        std std_mean stft sub sum sum_to_size svd t t_copy take take_along_dim tan tanh
        tensor_split tensordot tile to topk trace transpose transpose_copy trapezoid trapz
        triangular_solve tril triu true_divide trunc unbind unbind_copy unflatten unfold
        unfold_copy unsafe_chunk unsafe_split unsqueeze unsqueeze_copy var var_mean vdot view
        view_as view_as_complex view_copy vsplit vstack where xlogy zero_
    """,
    "fft": """
        fft fft2 fftn fftshift hfft hfft2 hfftn ifft ifft2 ifftn ifftshift ihfft ihfft2 ihfftn
        irfft irfft2 irfftn rfft rfft2 rfftn
    """,
    "linalg": """
        cholesky cholesky_ex cond cross det diagonal eig eigh eigvals eigvalsh
        householder_product inv inv_ex lstsq lu lu_factor lu_factor_ex lu_solve matrix_norm
        matrix_power multi_dot norm pinv qr slogdet solve solve_ex solve_triangular svd svdvals
        tensorinv tensorsolve vander vecdot vector_norm
    """,
    "masked": """
        amax amin cumprod cumsum log_softmax logaddexp logsumexp mean median norm normalize prod
        softmax softmin sum var
    """,
    "functional": """
        adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
        adaptive_max_pool2d adaptive_max_pool3d avg_pool1d avg_pool2d avg_pool3d batch_norm
        bilinear binary_cross_entropy binary_cross_entropy_with_logits celu channel_shuffle
        conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d
        cosine_embedding_loss cosine_similarity cross_entropy elu embedding embedding_bag
        gaussian_nll_loss gelu glu grid_sample group_norm hardshrink hardsigmoid hardswish
        hardtanh hinge_embedding_loss huber_loss instance_norm interpolate kl_div layer_norm
        leaky_relu linear linear_cross_entropy local_response_norm logsigmoid
        margin_ranking_loss max_pool1d max_pool2d max_pool3d max_unpool1d max_unpool2d
        max_unpool3d mish mse_loss multi_margin_loss multilabel_margin_loss
        multilabel_soft_margin_loss nll_loss normalize pad pairwise_distance pdist pixel_shuffle
        pixel_unshuffle poisson_nll_loss prelu relu relu6 rms_norm selu silu smooth_l1_loss
        soft_margin_loss softmin softplus softshrink softsign tanhshrink threshold
        triplet_margin_loss triplet_margin_with_distance_loss unfold upsample_bilinear
        upsample_nearest
    """,
    "special": """
        entr erfcx i0e i1 i1e log_ndtr ndtr ndtri polygamma xlog1py
    """,
    "without derivatives": """
        all any allclose isclose equal argmax argmin argsort argwhere nonzero bincount bucketize
        searchsorted count_nonzero unique unique_consecutive histc isin isfinite isinf isnan
        isposinf isneginf isreal signbit eq ne lt le gt ge logical_and logical_or logical_xor
        logical_not bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_left_shift
        bitwise_right_shift floor_divide gcd lcm heaviside arange linspace logspace eye full
        full_like ones ones_like zeros zeros_like empty empty_like tril_indices triu_indices
        rand randn randint randperm rand_like randn_like bernoulli multinomial normal one_hot
        dropout dropout1d dropout2d dropout3d alpha_dropout rrelu gumbel_softmax
        scaled_dot_product_attention multi_head_attention_forward ctc_loss numel is_tensor
        is_floating_point is_complex result_type promote_types can_cast finfo iinfo
        set_default_dtype
    """,
}
# What of it is not there, and why.
ABSENT: dict[str, str] = {}

# The columns of the last table, and the marks that so many functions have that a list names them.
_COLUMNS = "1st 2nd complex CUDA captured vmap jvp jet".split()
LISTS = {
    (YES, YES, YES, YES, YES, YES, YES, YES): "every mark",
    (YES, YES, NONE, YES, YES, YES, YES, YES): "every mark, for real numbers",
    (NONE, NONE, YES, YES, YES, YES, NONE, NONE): "no derivative",
    (NONE, NONE, NONE, YES, YES, YES, NONE, NONE): "no derivative, for real numbers",
    (NONE, NONE, NONE, YES, YES, NONE, NONE, NONE): "no derivative, no floating arrays taken",
}

_HEAD = f"""# Coverage

Before you rely on a function, look it up here: the page says what the tests certify of it, and
where it does less than its neighbours. [The reference](reference/index.md) says where each function
is, and whether it has an in-place twin.

`python -m tests.coverage --write` writes the page, and a test compares it with the declarations.
Each mark stands for checks that run in `make test`, on all samples of a function's declaration. The
value of every function agrees with PyTorch's, where its remark does not say otherwise. The lists
name the functions with the same marks. The [last table](#functions-with-exceptions-or-remarks) has
the marks of every other function.

- *1st*, *2nd*: in float64, the derivatives agree with PyTorch's and with central differences.
  {NONE}: the result is no differentiable number.
- *complex*: the same in complex128. {NONE}: complex numbers are refused, as PyTorch refuses them.
- *CUDA*: it runs there. Without a CUDA device the tests have a stand-in, which shows plumbing and
  no numbers ([testing.md](testing.md)).
- *captured*: `flow.compile` replays it to the bit, and runs nothing eagerly
  ([compile.md](compile.md)).
- *vmap*: a batch gives what a loop gives, by one call of each op. loop: an op is called once for
  each entry, with a warning. no: a value or a shape would have to be read, and `vmap` refuses.
  {NONE} in this and the next two columns: it takes no floating arrays, or the result has no
  derivative.
- *jvp*: tangents agree with the gradients. *jet*: the second derivative by a series is that of
  `jvp` of `jvp`.

PyTorch's own operator database is run, too. `tests/functors/operator_database.py` has a list of
the entries that do not pass, and why.
"""


@attrs.frozen
class Row:
    """A line of the table."""

    name: str
    marks: tuple[str, ...]
    remarks: tuple[str, ...]

    @property
    def is_exception(self) -> bool:
        return bool(self.remarks) or self.marks not in LISTS

    def __str__(self) -> str:
        return f"| {' | '.join([f'`{self.name}`', *self.marks, '; '.join(self.remarks)])} |"


def rows(family: str) -> list[Row]:
    """Return the rows of the functors that a module declares."""
    found = []
    for name in DECLARATIONS:
        declaration = DECLARATIONS.get(name)
        if declaration.family == family and declaration.places and name[0] != "_":
            found.append(_row(declaration, _BY_NAME.get(name, [])))
    return sorted(found, key=lambda row: row.name)


def _row(declaration: Declaration, samples: list[Call]) -> Row:
    name = declaration.name
    tables = (sweep.DIFFERENT, sweep.FALLS_BACK, sweep.NOT_ON_CUDA, sweep.NOT_COMPLEX)
    remarks = [table[name] for table in tables if name in table]
    if any(map(sweep.is_random, samples[:1])):
        remarks.insert(0, "random: its shape and dtype are compared")
    order = _order(samples)
    orders = [NONE if order is None else YES if order >= n else "no" for n in (1, 2)]
    is_complex = YES if any(map(_takes_complex, samples)) else NONE
    on_cuda = "no" if name in sweep.NOT_ON_CUDA else YES
    captured = "no" if name in sweep.FALLS_BACK else YES
    marks = (*orders, is_complex, on_cuda, captured, *_transformed(samples))
    return Row(declaration.spoken, marks, tuple(remarks))


def _transformed(samples: list[Call]) -> tuple[str, str, str]:
    """Return the marks of vmap, jvp and jet: what the worst of the samples gives."""
    found: list[set[str]] = [set(), set(), set()]
    for call in samples:
        if not call.arrays:
            continue
        for marks, mark in zip(found, (_by_vmap, _by_jvp, _by_jet), strict=True):
            marks.add(mark(call))
    order = ("no", "loop", YES)
    worst = [next((mark for mark in order if mark in marks), NONE) for marks in found]
    return worst[0], worst[1], worst[2]


def _function(call: Call) -> Any:
    """Return a call as a function of its arrays, in what it is certified; from one seed."""
    functor = meant(call.declaration.name, FUNCTORS.get(call.declaration.name))

    def function(*leaves: Any) -> tuple[Any, ...]:
        flow.manual_seed(0)
        if call.declaration.name.endswith("_"):  # it writes its first argument
            leaves = (leaves[0] * 1, *leaves[1:])
        return tuple(tensors_of(call.run(flow, functor, *leaves)))

    return function


def _by_vmap(call: Call) -> str:
    try:
        looped = batches(_function(call), call.arrays, range(len(call.arrays)), "same")
    except TransformError:
        return "no"
    return "loop" if looped else YES


def _by_jvp(call: Call) -> str:
    try:
        compared = tangents(_function(call), call.arrays, range(len(call.arrays)))
    except (AssertionError, RuntimeError, NotImplementedError):
        return "no"
    return YES if compared else NONE


def _by_jet(call: Call) -> str:
    function, jvp = _function(call), flow.func.jvp
    xs = tuple(map(flow.tensor, call.arrays))
    vs = tuple(
        flow.tensor(np.cos(np.arange(x.size)).reshape(x.shape).astype(x.dtype)) for x in call.arrays
    )
    try:
        _, series = flow.func.jet(function, xs, tuple([v, v * 0] for v in vs))
        _, second = jvp(lambda *xs: jvp(function, xs, vs)[1], xs, vs)
    except (RuntimeError, NotImplementedError):
        return "no" if _by_jvp(call) != NONE else NONE
    if not second or _by_jvp(call) == NONE:
        return NONE
    same = [
        np.allclose(row[1].numpy(), y.numpy(), 1e-6, 1e-6, equal_nan=True)
        for row, y in zip(series, second, strict=True)
    ]
    return YES if all(same) else "no"


def _order(samples: list[Call]) -> int | None:
    """Return how often some call is differentiable, at most twice; None if it is not at all."""
    best = None
    for call in samples:
        leaves = sweep.leaves_of(call)
        order = -1
        try:
            for current in sweep.derivatives(_result(call, leaves), leaves):
                order += 1
                if not any(y.requires_grad for y in current):
                    break
        except (RuntimeError, NotImplementedError):
            best = max(best or 0, order)
        else:
            if order > 0:  # a derivative that depends on nothing any more is zero
                return 2
    return best


def _result(call: Call, leaves: list[Any]) -> Any:
    return call.run(flow, FUNCTORS.get(call.declaration.name), *leaves)


def _takes_complex(call: Call) -> bool:
    """Return whether a call takes complex numbers for its real ones, or has them already."""
    if not call.arrays:
        return False
    turned = call.with_arrays(lambda a: a + 0.5j)
    try:
        _result(turned, sweep.leaves_of(turned))
    except (RuntimeError, TypeError, ValueError):
        return any(a.dtype.kind == "c" for a in call.arrays)
    return True


_BY_NAME: dict[str, list[Call]] = {}


def absent() -> Iterator[tuple[str, str]]:
    """Yield the namespace and name of what the catalogue has and the library has not."""
    roots = {
        "Tensor": (flow, flow.Tensor),
        "functional": (flow.nn.functional,),
        "without derivatives": (flow, flow.Tensor, flow.nn.functional),
    }
    for place, names in CATALOGUE.items():
        for name in names.split():
            known = roots.get(place) or (getattr(flow, place, None),)
            if not any(hasattr(root, name) for root in known):
                yield place, name


def page() -> str:
    """Return the text of docs/coverage.md."""
    for room in ROOMS:
        load_all(room)
    _BY_NAME.clear()
    for call in calls():
        _BY_NAME.setdefault(call.declaration.name, []).append(call)
    families = sorted({DECLARATIONS.get(name).family for name in DECLARATIONS})
    parts, exceptions = [_HEAD], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for family in families:
            found = rows(family)
            exceptions += [row for row in found if row.is_exception]
            lines = list(_lists([row for row in found if not row.is_exception]))
            if lines:
                parts.append(f"## {family.replace('_', ' ').capitalize()}\n\n" + "".join(lines))
    parts.append("## Functions with exceptions or remarks\n\n" + _TOP)
    parts[-1] += "".join(f"{row}\n" for row in sorted(exceptions, key=lambda row: row.name))
    missing = [f"| `{_spoken(*each)}` | {ABSENT.get(each[1], '')} |" for each in absent()]
    if missing:
        parts.append("## Not there\n\n| | why |\n| --- | --- |\n" + "\n".join(missing) + "\n")
    return "\n".join(parts)


def _lists(found: list[Row]) -> Iterator[str]:
    """Yield a line for each family of marks, with the functions that have them."""
    for marks, words in LISTS.items():
        names = ", ".join(f"`{row.name}`" for row in found if row.marks == marks)
        if names:
            yield f"- *{words}:* {names}\n"


_TOP = f"| op | {' | '.join(_COLUMNS)} | remarks |\n|{' --- |' * (len(_COLUMNS) + 2)}\n"


def _spoken(place: str, name: str) -> str:
    prefix = {"Tensor": "", "functional": "nn.functional.", "without derivatives": ""}
    return prefix.get(place, f"{place}.") + name


def main() -> None:
    """Write the page, or compare it with the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/coverage.md")
    parser.add_argument("--check", action="store_true", help="fail if docs/coverage.md is old")
    options = parser.parse_args()
    text = page()
    if options.write:
        PAGE.write_text(text, "utf-8")
    elif options.check:
        if not PAGE.exists() or PAGE.read_text("utf-8") != text:
            sys.exit("docs/coverage.md is out of date: run `python -m tests.coverage --write`")
    else:
        print(text)


if __name__ == "__main__":
    main()
