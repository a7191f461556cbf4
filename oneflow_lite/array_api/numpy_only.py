"""Functions of NumPy that the standard lacks or spells otherwise, in NumPy's spelling."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from oneflow_lite.array_api import functions as standard
from oneflow_lite.array_api.adapter import ADAPTERS, adapter, functor, tensors_in, through_numpy
from oneflow_lite.array_api.elementwise import meet, operate, tensor
from oneflow_lite.array_api.functions import as_float, axes_of, cast, to_end
from oneflow_lite.errors import ArgumentError, arg_error
from oneflow_lite.tensors.tensor import Tensor

# NumPy's second names, where the function does not tell its own.
for _second, _first in {
    "amax": "max",
    "amin": "min",
    "around": "round",
    "permute_dims": "transpose",
    "concat": "concatenate",
}.items():
    ADAPTERS[_second] = ADAPTERS[_first]


# Creation, for `like=`: no other argument of these is asked


def _array(name: str) -> None:
    @adapter(name)
    def array(x: Any, /, dtype: Any = None, *, copy: bool | None = None, ndmin: int = 0) -> Tensor:
        if not tensors_in(x):
            options = {} if name != "array" else {"ndmin": ndmin}
            return through_numpy(name, (x, dtype), options)
        y = cast(x, dtype)
        y = y.clone() if y is x and (copy or (copy is None and name == "array")) else y
        return y.reshape(*[1] * (ndmin - y.ndim), *y.shape) if ndmin > y.ndim else y


for _name in ("array", "asanyarray", "asarray", "ascontiguousarray"):
    _array(_name)


@adapter("full")
def full(shape: Any, value: Any, /, dtype: Any = None) -> Tensor:
    """Return a value, repeated."""
    if not tensors_in(value):
        return through_numpy("full", (shape, value, dtype), {})
    return standard.broadcast_to(cast(value, dtype), shape).clone()


# Reductions


@adapter("average")
def average(
    x: Any,
    /,
    axis: Any = None,
    weights: Any = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
) -> Any:
    """Return the weighted mean over axes."""
    if weights is None:
        weights = functor("ones_like")(tensor(x))
    x, w = map(as_float, meet("average", x, weights))
    if w.shape != x.shape:
        axes = axes_of(x, axis)
        sizes = dict(zip(axes, w.shape, strict=True))
        w = w.reshape([sizes.get(i, 1) for i in range(x.ndim)]).expand(x.shape)
    total = standard.sum(w, axis, keepdims=keepdims)
    mean = standard.sum(x * w, axis, keepdims=keepdims) / total
    return (mean, total) if returned else mean


@adapter("ptp")
def ptp(x: Any, /, axis: Any = None, out: None = None, keepdims: bool = False) -> Tensor:
    """Return the distance of the smallest to the largest element over axes."""
    return standard.max(x, axis, None, keepdims) - standard.min(x, axis, None, keepdims)


def _without_nan(x: Any, value: float) -> Tensor:
    x = tensor(x)
    return functor("where")(functor("isnan")(x), value, x) if x.dtype.kind in "fc" else x


def _numbers(x: Tensor, axis: Any, keepdims: bool) -> Tensor:
    return standard.sum(functor("logical_not")(functor("isnan")(x)), axis, keepdims=keepdims)


@adapter("nansum")
def nansum(
    x: Any, /, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False
) -> Tensor:
    """Return the sum over axes, NaN taken for 0."""
    return standard.sum(_without_nan(x, 0), axis, dtype, out, keepdims)


@adapter("nanprod")
def nanprod(
    x: Any, /, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False
) -> Tensor:
    """Return the product over axes, NaN taken for 1."""
    return standard.prod(_without_nan(x, 1), axis, dtype, out, keepdims)


@adapter("nanmean")
def nanmean(
    x: Any, /, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False
) -> Tensor:
    """Return the mean over axes of the elements that are numbers."""
    x = as_float(cast(x, dtype))
    total = standard.sum(_without_nan(x, 0), axis, keepdims=keepdims)
    return total / _numbers(x, axis, keepdims)


@adapter("nanvar")
def nanvar(
    x: Any,
    /,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
) -> Tensor:
    """Return the variance over axes of the elements that are numbers."""
    x = as_float(cast(x, dtype))
    apart = _without_nan(x - nanmean(x, axis, keepdims=True), 0)
    square = functor("abs")(apart) ** 2
    return standard.sum(square, axis, keepdims=keepdims) / (_numbers(x, axis, keepdims) - ddof)


@adapter("nanstd")
def nanstd(x: Any, /, *args: Any, **options: Any) -> Tensor:
    """Return the standard deviation over axes of the elements that are numbers."""
    return functor("sqrt")(nanvar(x, *args, **options))


@adapter("nanmax")
def nanmax(x: Any, /, axis: Any = None, out: Any = None, keepdims: bool = False) -> Tensor:
    """Return the largest number over axes; -inf where all are NaN."""
    return standard.max(_without_nan(x, -math.inf), axis, out, keepdims)


@adapter("nanmin")
def nanmin(x: Any, /, axis: Any = None, out: Any = None, keepdims: bool = False) -> Tensor:
    """Return the smallest number over axes; inf where all are NaN."""
    return standard.min(_without_nan(x, math.inf), axis, out, keepdims)


def _quantiles(name: str, percent: str) -> None:
    @adapter(name)
    def quantile(
        x: Any,
        q: Any,
        /,
        axis: Any = None,
        out: None = None,
        overwrite_input: bool = False,
        method: str = "linear",
        keepdims: bool = False,
    ) -> Tensor:
        x = as_float(x)
        levels = cast(q, x.dtype).to(x.device)
        merged, kept = to_end(x, axis)
        flat = functor(name)(merged, levels.reshape(-1), -1, interpolation=method)
        return flat.reshape(*levels.shape, *(kept if keepdims else merged.shape[:-1]))

    @adapter(percent)
    def percentile(x: Any, q: Any, /, *args: Any, **options: Any) -> Tensor:
        return quantile(x, cast(q, as_float(x).dtype) / 100, *args, **options)


_quantiles("quantile", "percentile")
_quantiles("nanquantile", "nanpercentile")


@adapter("median")
def median(
    x: Any,
    /,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Tensor:
    """Return the middle element over axes, or the mean of the middle two."""
    merged, kept = to_end(as_float(x), axis)
    count = merged.shape[-1]
    ordered = functor("sort")(merged, -1)[0]
    low = functor("select")(ordered, -1, (count - 1) // 2)
    high = functor("select")(ordered, -1, count // 2)
    middle = (low + high) / 2
    # NaN sorts to the end and would go unseen; NumPy's median of it is NaN.
    middle = functor("where")(functor("isnan")(merged).any(-1), math.nan, middle)
    return middle.reshape(kept) if keepdims else middle


@adapter("nanmedian")
def nanmedian(
    x: Any,
    /,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Tensor:
    """Return the middle number over axes, or the mean of the middle two."""
    return ADAPTERS["nanquantile"](x, 0.5, axis, keepdims=keepdims)


def _running(name: str) -> Callable[..., Tensor]:
    @adapter(f"cum{name}")
    def running(x: Any, /, axis: int | None = None, dtype: Any = None, out: Any = None) -> Tensor:
        x = tensor(x)
        x, axis = (functor("flatten")(x), 0) if axis is None else (x, axis)
        return ADAPTERS[f"cumulative_{name}"](x, axis=axis, dtype=dtype, out=out)

    return running


def _running_without_nan(name: str, value: int) -> None:
    @adapter(f"nancum{name}")
    def running(x: Any, /, axis: int | None = None, dtype: Any = None, out: Any = None) -> Tensor:
        return ADAPTERS[f"cum{name}"](_without_nan(x, value), axis, dtype, out)


cumsum, cumprod = _running("sum"), _running("prod")
_running_without_nan("sum", 0)
_running_without_nan("prod", 1)


@adapter("cov")
def cov(
    x: Any,
    /,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
) -> Tensor:
    """Return the covariance matrix of variables that are the rows."""
    return functor("cov")(
        _variables(x, y, rowvar),
        correction=int(not bias) if ddof is None else ddof,
        fweights=None if fweights is None else tensor(fweights),
        aweights=None if aweights is None else tensor(aweights),
    )


@adapter("corrcoef")
def corrcoef(x: Any, /, y: Any = None, rowvar: bool = True) -> Tensor:
    """Return the correlation matrix of variables that are the rows."""
    return functor("corrcoef")(_variables(x, y, rowvar))


def _variables(x: Any, y: Any, rowvar: bool) -> Tensor:
    parts = list(map(as_float, meet("cov", *[part for part in (x, y) if part is not None])))
    parts = [p.t() if p.ndim == 2 and not rowvar else p for p in parts]
    if len(parts) == 1:
        return parts[0]
    return functor("cat")([p if p.ndim == 2 else p.reshape(1, -1) for p in parts], 0)


# Joining, splitting


def _joined(name: str) -> None:
    @adapter(name)
    def join(arrays: Any, /, *, dtype: Any = None) -> Tensor:
        return functor(name)(standard.alike(name, arrays, dtype))


for _name in ("vstack", "hstack", "dstack", "column_stack"):
    _joined(_name)


@adapter("append")
def append(x: Any, values: Any, /, axis: int | None = None) -> Tensor:
    """Return the tensor with values behind it."""
    return standard.concat([x, values], axis)


def _pieces(x: Tensor, cuts: Any, axis: int, even: bool) -> list[Tensor]:
    size = x.shape[axis]
    if isinstance(cuts, (int, np.integer)):
        if even and size % cuts:
            raise arg_error(
                "split",
                "indices_or_sections",
                expected=f"a number that divides {size}, the size of axis {axis}",
                got=cuts,
                hint="use array_split() for parts of different sizes",
                kind=ArgumentError,
            )
        whole, more = divmod(size, cuts)
        ends = np.cumsum([whole + (i < more) for i in range(cuts)])[:-1].tolist()
    else:
        ends = [int(end) for end in cuts]
    places = [slice(low, high) for low, high in zip([0, *ends], [*ends, size], strict=True)]
    places[-1:] = [slice(ends[-1] if ends else 0, None)]
    axis %= x.ndim
    return [x[(*[slice(None)] * axis, place)] for place in places]


@adapter("split")
def split(x: Any, indices_or_sections: Any, /, axis: int = 0) -> list[Tensor]:
    """Return equal parts, or the parts between the indices."""
    return _pieces(tensor(x), indices_or_sections, axis, True)


@adapter("array_split")
def array_split(x: Any, indices_or_sections: Any, /, axis: int = 0) -> list[Tensor]:
    """Return parts as equal as can be, or the parts between the indices."""
    return _pieces(tensor(x), indices_or_sections, axis, False)


@adapter("hsplit")
def hsplit(x: Any, indices_or_sections: Any, /) -> list[Tensor]:
    """Return parts side by side."""
    return _pieces(tensor(x), indices_or_sections, int(tensor(x).ndim > 1), True)


@adapter("vsplit")
def vsplit(x: Any, indices_or_sections: Any, /) -> list[Tensor]:
    """Return parts below one another."""
    return _pieces(tensor(x), indices_or_sections, 0, True)


@adapter("dsplit")
def dsplit(x: Any, indices_or_sections: Any, /) -> list[Tensor]:
    """Return parts behind one another."""
    return _pieces(tensor(x), indices_or_sections, 2, True)


# Shapes and orders


@adapter("ravel")
def ravel(x: Any, /) -> Tensor:
    """Return the tensor with one dimension."""
    return functor("ravel")(tensor(x))


@adapter("swapaxes")
def swapaxes(x: Any, axis1: int, axis2: int, /) -> Tensor:
    """Return the tensor with two axes exchanged."""
    return functor("transpose")(tensor(x), axis1, axis2)


@adapter("fliplr")
def fliplr(x: Any, /) -> Tensor:
    """Return the tensor with its columns reversed."""
    return standard.flip(x, 1)


@adapter("flipud")
def flipud(x: Any, /) -> Tensor:
    """Return the tensor with its rows reversed."""
    return standard.flip(x, 0)


@adapter("rot90")
def rot90(x: Any, /, k: int = 1, axes: Any = (0, 1)) -> Tensor:
    """Return the tensor turned by k quarters in a plane."""
    x = tensor(x)
    first, second = axes_of(x, tuple(axes))
    for _ in range(k % 4):
        x = functor("transpose")(standard.flip(x, second), first, second)
    return x


def _at_least(count: int) -> None:
    @adapter(f"atleast_{count}d")
    def at_least(*arrays: Any) -> Any:
        shaped = [_grown(tensor(x), count) for x in arrays]
        return shaped[0] if len(shaped) == 1 else tuple(shaped)


def _grown(x: Tensor, count: int) -> Tensor:
    places = {
        (1, 0): [0],
        (2, 0): [0, 0],
        (2, 1): [0],
        (3, 0): [0, 0, 0],
        (3, 1): [0, 2],
        (3, 2): [2],
    }
    for place in places.get((count, x.ndim), []):
        x = functor("unsqueeze")(x, place)
    return x


for _count in (1, 2, 3):
    _at_least(_count)


@adapter("copy")
def copy(x: Any, /) -> Tensor:
    """Return a copy."""
    return functor("clone")(tensor(x))


@adapter("diag")
def diag(x: Any, /, k: int = 0) -> Tensor:
    """Return a diagonal of a matrix, or the matrix with this diagonal."""
    return functor("diag")(tensor(x), k)


@adapter("diagflat")
def diagflat(x: Any, /, k: int = 0) -> Tensor:
    """Return the matrix with all elements on a diagonal."""
    return functor("diag")(functor("flatten")(tensor(x)), k)


@adapter("diagonal")
def diagonal(x: Any, /, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Return a diagonal."""
    return functor("diagonal")(tensor(x), offset, axis1, axis2)


@adapter("trace")
def trace(
    x: Any, /, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None
) -> Tensor:
    """Return the sum of a diagonal."""
    return standard.sum(functor("diagonal")(tensor(x), offset, axis1, axis2), -1, dtype, out)


@adapter("argwhere")
def argwhere(x: Any, /) -> Tensor:
    """Return the indices of the elements that are not zero, one row each."""
    return functor("nonzero")(tensor(x))


@adapter("flatnonzero")
def flatnonzero(x: Any, /) -> Tensor:
    """Return the places in the flattened tensor of the elements that are not zero."""
    return functor("nonzero")(functor("flatten")(tensor(x)), as_tuple=True)[0]


@adapter("compress")
def compress(condition: Any, x: Any, /, axis: int | None = None) -> Tensor:
    """Return the entries of an axis for which the condition holds."""
    return standard.take(x, flatnonzero(tensor(condition)), axis)


@adapter("extract")
def extract(condition: Any, x: Any, /) -> Tensor:
    """Return the elements for which the condition holds."""
    return compress(functor("flatten")(tensor(condition)), x)


@adapter("partition")
def partition(x: Any, kth: Any, /, axis: int | None = -1, kind: str = "introselect") -> Tensor:
    """Return the elements with the kth in their sorted place, smaller ones before them."""
    x, axis = (functor("flatten")(tensor(x)), 0) if axis is None else (tensor(x), axis)
    places = through_numpy("argpartition", (x.detach(), kth, axis, kind), {})
    return standard.take_along_axis(x, places, axis)


@adapter("select")
def select(condlist: Any, choicelist: Any, /, default: Any = 0) -> Tensor:
    """Return the elements of the first choice whose condition holds."""
    if len(condlist) != len(choicelist):
        raise arg_error(
            "select",
            "choicelist",
            expected=f"as many choices as conditions, {len(condlist)}",
            got=len(choicelist),
            hint="give one for each",
            kind=ArgumentError,
        )
    *choices, y = meet("select", *choicelist, default)
    for condition, choice in zip(condlist[::-1], choices[::-1], strict=True):
        y = functor("where")(tensor(condition), choice, y)
    return y


# Functions of the user


@adapter("piecewise")
def piecewise(x: Any, condlist: Any, funclist: Any, /, *args: Any, **options: Any) -> Tensor:
    """Return what functions make of the elements for which their conditions hold, or numbers."""
    x, conditions = tensor(x), tensor(condlist).bool()
    if conditions.ndim <= bool(x.ndim):  # a single one
        conditions = functor("unsqueeze")(conditions, 0)
    if len(funclist) == len(conditions) + 1:
        rest = functor("logical_not")(functor("any")(conditions, 0, True))
        conditions = functor("cat")([conditions, rest], 0)
    if len(funclist) != len(conditions):
        raise arg_error(
            "piecewise",
            "funclist",
            expected=f"a function for each of {len(conditions)} conditions, and one for the rest",
            got=len(funclist),
            hint="give as many",
            kind=ArgumentError,
        )
    y = functor("zeros_like")(x)
    for condition, value in zip(conditions, funclist, strict=True):
        if callable(value):
            chosen = x[condition]
            if not chosen.numel():
                continue
            value = value(chosen, *args, **options)
        y = functor("index_put")(y, (condition,), tensor(value, x.dtype).to(x.device))
    return y


@adapter("apply_along_axis")
def apply_along_axis(
    func1d: Callable[..., Any], axis: int, x: Any, /, *args: Any, **options: Any
) -> Tensor:
    """Return the results of a function that is called with each vector along an axis."""
    x = tensor(x)
    (axis,) = axes_of(x, axis)
    x = functor("movedim")(x, axis, -1)
    vectors = functor("unbind")(x.reshape(-1, x.shape[-1]))
    y = standard.stack([func1d(vector, *args, **options) for vector in vectors])
    own = y.shape[1:]  # stand where the axis was
    y = y.reshape(*x.shape[:-1], *own)
    places = range(len(own))
    return functor("movedim")(y, [x.ndim - 1 + i for i in places], [axis + i for i in places])


@adapter("apply_over_axes")
def apply_over_axes(func: Callable[..., Any], x: Any, axes: Any, /) -> Tensor:
    """Return what a function makes of the tensor that reduces one axis after another."""
    x = tensor(x)
    for axis in axes_of(x, axes):
        y = tensor(func(x, axis))
        x = y if y.ndim == x.ndim else functor("unsqueeze")(y, axis)
    return x


# Products


@adapter("dot")
def dot(x: Any, y: Any, /, out: Any = None) -> Tensor:
    """Return NumPy's dot product: over the last axis of x and the last but one of y."""
    x, y = meet("dot", x, y)
    if not x.ndim or not y.ndim:
        result = functor("mul")(x, y)
    elif x.ndim <= 2 and y.ndim <= 2:  # matmul broadcasts further dimensions, and dot pairs them
        result = functor("matmul")(x, y)
    else:
        result = functor("tensordot")(x, y, ([x.ndim - 1], [max(y.ndim - 2, 0)]))
    return result if out is None else out.copy_(result)


@adapter("inner")
def inner(x: Any, y: Any, /) -> Tensor:
    """Return the sum of products over the last axes."""
    x, y = meet("inner", x, y)
    if not x.ndim or not y.ndim:
        return functor("mul")(x, y)
    return functor("tensordot")(x, y, ([x.ndim - 1], [y.ndim - 1]))


@adapter("outer")
def outer(x: Any, y: Any, /, out: Any = None) -> Tensor:
    """Return the products of all pairs of elements."""
    x, y = meet("outer", x, y)
    result = functor("outer")(functor("flatten")(x), functor("flatten")(y))
    return result if out is None else out.copy_(result)


@adapter("vdot")
def vdot(x: Any, y: Any, /) -> Tensor:
    """Return the sum of all products, the first factor conjugated."""
    x, y = meet("vdot", x, y)
    x = functor("conj")(x) if x.is_complex() else x
    return functor("dot")(functor("flatten")(x), functor("flatten")(y))


@adapter("matvec")
def matvec(x: Any, y: Any, /) -> Tensor:
    """Return the products of matrices and vectors."""
    x, y = meet("matvec", x, y)
    return functor("matmul")(x, y.unsqueeze(-1)).squeeze(-1)


@adapter("vecmat")
def vecmat(x: Any, y: Any, /) -> Tensor:
    """Return the products of vectors, conjugated, and matrices."""
    x, y = meet("vecmat", x, y)
    x = functor("conj")(x) if x.is_complex() else x
    return functor("matmul")(x.unsqueeze(-2), y).squeeze(-2)


@adapter("einsum")
def einsum(equation: Any, /, *operands: Any, optimize: Any = False) -> Tensor:
    """Return the sum of products that the equation describes."""
    if not isinstance(equation, str):
        return functor("einsum")(equation, *operands)
    return functor("einsum")(equation, *meet("einsum", *operands))


@adapter("kron")
def kron(x: Any, y: Any, /) -> Tensor:
    """Return the Kronecker product."""
    return functor("kron")(*meet("kron", x, y))


@adapter("cross")
def cross(
    x: Any, y: Any, /, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Tensor:
    """Return the cross product of vectors of three elements."""
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = meet("cross", x, y)
    x, y = functor("movedim")(x, axisa, -1), functor("movedim")(y, axisb, -1)
    return functor("movedim")(functor("linalg.cross")(x, y, dim=-1), -1, axisc)


@adapter("trapezoid")
def trapezoid(y: Any, /, x: Any = None, dx: float = 1.0, axis: int = -1) -> Tensor:
    """Return the integral along an axis by the trapezoidal rule."""
    y = as_float(y)
    (axis,) = axes_of(y, axis)
    low = functor("narrow")(y, axis, 0, y.shape[axis] - 1)
    high = functor("narrow")(y, axis, 1, y.shape[axis] - 1)
    steps: Any = dx
    if x is not None:
        x = tensor(x)
        steps = standard.diff(x, axis=-1 if x.ndim == 1 else axis)
        if x.ndim == 1:
            steps = steps.reshape([-1 if i == axis else 1 for i in range(y.ndim)])
    return functor("sum")((low + high) * steps / 2, axis)


# Elementwise


@adapter("nan_to_num")
def nan_to_num(
    x: Any, /, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None
) -> Tensor:
    """Return the elements with NaN and the infinities replaced."""
    x = tensor(x)
    return functor("nan_to_num" if copy else "nan_to_num_")(x, nan, posinf, neginf)


@adapter("angle")
def angle(z: Any, /, deg: bool = False) -> Tensor:
    """Return the angle of complex numbers."""
    radians = functor("angle")(tensor(z))
    return radians * (180 / math.pi) if deg else radians


@adapter("real_if_close")
def real_if_close(z: Any, /, tol: float = 100) -> Tensor:
    """Return the real parts where all imaginary ones are as good as 0."""
    z = tensor(z)
    if not z.is_complex():
        return z
    tolerance = tol * np.finfo(z.dtype).eps if tol > 1 else tol
    return z.real if bool((functor("abs")(z.imag) < tolerance).all()) else z


@adapter("sinc")
def sinc(x: Any, /) -> Tensor:
    """Return sin(πx) / (πx)."""
    return operate("sinc", tensor(x))


@adapter("i0")
def i0(x: Any, /) -> Tensor:
    """Return the modified Bessel function of order 0."""
    return functor("special.i0")(tensor(x))


@adapter("fix")
def fix(x: Any, /) -> Tensor:
    """Return the elements without their fractions."""
    return functor("trunc")(tensor(x))


@adapter("interp")
def interp(x: Any, xp: Any, fp: Any, /, left: Any = None, right: Any = None) -> Tensor:
    """Return the piecewise linear function through (xp, fp) at x."""
    x, xs, ys = map(as_float, meet("interp", x, xp, fp))
    # The place is constant between the points: gradients flow through the share.
    right_of = functor("searchsorted")(xs.detach(), x.detach(), side="right")
    high = right_of.clamp(1, len(xs) - 1)
    low = high - 1
    share = (x - xs[low]) / (xs[high] - xs[low])
    y = ys[low] + (ys[high] - ys[low]) * share.clamp(0, 1)
    y = y if left is None else functor("where")(x < xs[0], left, y)
    return y if right is None else functor("where")(x > xs[-1], right, y)


@adapter("copyto")
def copyto(dst: Any, src: Any, /) -> None:
    """Write into a tensor, recorded as `Tensor.copy_`."""
    functor("copy_")(dst, src if isinstance(src, Tensor) else tensor(src).to(dst.dtype))
