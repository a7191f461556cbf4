"""SBP rules: which signatures of an op's inputs go with which of its outputs.

A rule gets the shapes of the inputs (None for one left out) and the attributes, and returns the
`Way`s in which ranks can do the op with parts: a signature for each input and output, an int for a
split dimension, "B" or "P". That all ranks do all of it is a way of every op. Most rules are
written by letters, one for each dimension: a letter that an output has may be split, one that is
summed over leaves a partial sum. `register_sbp` declares a rule for any op.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Any

import attrs as attrs_library

from oneflow_lite.op_expr import OpExpr
from oneflow_lite.registry import KERNELS, Lines

Sig = int | str
Attrs = dict[str, Any]
Shapes = Sequence[Any]


@attrs_library.frozen(eq=False)
class Way:
    """One way to do an op with parts.

    Attributes
    ----------
    ins, outs : tuple
        A signature for each input and output; one for all outputs alike.
    size : int
        How long the dimension that is split is as a whole, 0 where none is.
    out_sizes : tuple of int
        The same of each output, where one differs.
    unit : int
        What the number of ranks has to divide, 0 where it does not matter.
    fit : callable, optional
        Attributes for a part: `fit(attrs, share)`, `share(n)` the part of a size n.
    mean : bool
        Whether the parts' results count by their sizes.
    run : callable, optional
        Does the op itself: `run(line, arrays, attrs)`, with the ranks in line.
    moved : int
        Elements that `run` lets each rank send.
    """

    ins: tuple[Sig, ...]
    outs: tuple[Sig, ...]
    size: int = 0
    out_sizes: tuple[int, ...] = ()
    unit: int = 0
    fit: Callable[[Attrs, Callable[[int], int]], Attrs] | None = None
    mean: bool = False
    run: Callable[..., Any] | None = None
    moved: float = 0


Rule = Callable[[Shapes, Attrs], Iterable[Way]]
_RULES: dict[str, Rule] = {}


def register_sbp(*op_type_names: str) -> Callable[[Rule], Rule]:
    """Register the rule of ops of these names; a later one takes the place of an earlier one.

    >>> from oneflow_lite.distributed.sbp_rules import by_letters, register_sbp
    >>> rule = register_sbp("outer_product")(by_letters("i,j->ij"))
    >>> [(way.ins, way.outs) for way in rule([(4,), (6,)], {})]
    [((0, 'B'), (0,)), (('B', 0), (1,))]
    """

    def decorator(rule: Rule) -> Rule:
        for name in op_type_names:
            _RULES[name] = rule
        return rule

    return decorator


def rule_of(op: OpExpr) -> Rule | None:
    """Return the rule of an op; elementwise ones have it by what they declare of elements."""
    name = op.op_type_name
    found = _RULES.get(name)
    if found is None and op.schema.variadic is None and op.schema.inputs:
        entry = KERNELS.get(name)
        scalar = entry.scalar
        plain = (
            scalar is not None and not isinstance(scalar, Lines) and "dim" not in op.schema.attrs
        )
        if entry.ufunc or plain or name in _ELEMENTWISE or name in _UPDATES:
            terms: tuple[tuple[int, ...], ...] = _LINEAR.get(name, ())
            if name.endswith("_grad") and op.schema.inputs[0] == "dy":
                terms = ((0,),)
            found = _RULES[name] = functools.partial(_elementwise, linear=terms)
    return found


# Ops of single elements whose kernels do not say so, and those that keep sums as they are: of which
# inputs together.
_ELEMENTWISE = frozenset(
    """
    digamma erfinv erfcx ndtr ndtri log_ndtr entr i0 i0e i1 i1e lgamma logit elu elu_grad softplus
    softplus_grad mish mish_grad logsigmoid softshrink sign floor_divide div_trunc fmod remainder
    pow_integer pow_grad_exponent floor ceil trunc frac round lerp heaviside nan_to_num mask_finite
    conj sgn angle complex polar isclose binary_cross_entropy real imag cast copy_ fill_ erfc xlogy
    atan2 sinc clone least_variance
    """.split()
)
_UPDATES = frozenset(
    f"{name}_update"
    for name in "sgd adam nadam radam adamax adagrad adadelta rmsprop rprop asgd".split()
)
_LINEAR: dict[str, tuple[tuple[int, ...], ...]] = {
    "add": ((0, 1),),
    "sub": ((0, 1),),
    "mul": ((0,), (1,)),
    "div": ((0,),),
    "where": ((1, 2),),
    **dict.fromkeys("neg clone mul_scalar real imag conj".split(), ((0,),)),
}


def _aligned(shape: Any, ndim: int, dim: int, size: int) -> Sig:
    """Return the signature of an input that broadcasts where one of `ndim` dimensions is split."""
    own = -1 if shape is None else dim - (ndim - len(shape))
    return own if own >= 0 and shape[own] == size else "B"


def _sums(count: int, linear: Iterable[tuple[int, ...]], outs: int = 1) -> Iterator[Way]:
    """Yield the ways in which terms of sums go through: of some inputs together, others whole."""
    for together in linear:
        yield Way(tuple("P" if i in together else "B" for i in range(count)), ("P",) * outs)


def _elementwise(
    shapes: Shapes, attrs: Attrs, linear: tuple[tuple[int, ...], ...] = ()
) -> Iterator[Way]:
    given = [shape for shape in shapes if shape is not None]
    ndim = max(map(len, given))
    for dim in range(ndim):
        size = max(s[dim - ndim] for s in given if len(s) >= ndim - dim)
        yield Way(tuple(_aligned(s, ndim, dim, size) for s in shapes), (dim,), size)
    yield from _sums(len(shapes), linear)


for _name in ("zeros_like", "ones_like"):  # which read no values

    @register_sbp(_name)
    def _of_no_values(shapes: Shapes, attrs: Attrs) -> Iterator[Way]:
        yield from _elementwise(shapes, attrs)
        yield Way(("P",), ("B",))


@register_sbp("cast")
def _cast(shapes: Shapes, attrs: Attrs) -> Iterator[Way]:
    yield from _elementwise(shapes, attrs, ((0,),) if attrs["dtype"].kind in "fc" else ())


def by_letters(
    text: str, linear: tuple[tuple[int, ...], ...] = (), fit: Any = None, mean: bool = False
) -> Rule:
    """Return the rule of an op whose dimensions have letters: "mk,kn->mn".

    A letter that no output has is summed over. "..." stands for dimensions that broadcast. With
    `linear` the op is linear in some inputs together.
    """
    inputs, _, outputs = text.partition("->")

    def rule(shapes: Shapes, attrs: Attrs) -> Iterator[Way]:
        return letters(inputs.split(","), outputs.split(","), shapes, linear, fit, mean)

    return rule


def letters(
    inputs: Sequence[Sequence[Any] | str],
    outputs: Sequence[Sequence[Any] | str],
    shapes: Shapes,
    linear: tuple[tuple[int, ...], ...] = (),
    fit: Any = None,
    mean: bool = False,
    kept: Container[Any] = (),
) -> Iterator[Way]:
    """Yield the ways of an op by the letters of its inputs' and outputs' dimensions.

    kept: letters that are never split.
    """
    names: list[list[Any]] = []
    longest: list[Any] = []
    for given, shape in zip(inputs, shapes, strict=True):
        listed = list(given.replace("...", ".")) if isinstance(given, str) else list(given)
        if shape is None:
            names.append([])
            continue
        if "." in listed:
            more = len(shape) - len(listed) + 1
            dots = [-(k + 1) for k in reversed(range(more))]
            longest = max(longest, dots, key=len)
            i = listed.index(".")
            listed[i : i + 1] = dots
        names.append(listed)
    made = []
    for given in outputs:
        listed = list(given.replace("...", ".")) if isinstance(given, str) else list(given)
        if "." in listed:
            i = listed.index(".")
            listed[i : i + 1] = longest
        made.append(listed)
    found: dict[Any, int] = {}
    for listed, shape in zip(names, shapes, strict=True):
        for letter, n in zip(listed, shape or (), strict=True):
            if letter is not None:
                found[letter] = max(n, found.get(letter, 0))
    for letter, size in found.items():
        if letter in kept:
            continue
        ins = tuple(
            listed.index(letter)
            if shape is not None and letter in listed and shape[listed.index(letter)] == size
            else "B"
            for listed, shape in zip(names, shapes, strict=True)
        )
        outs = tuple(listed.index(letter) if letter in listed else "P" for listed in made)
        yield Way(ins, outs, size, fit=fit, mean=mean and "P" in outs)
    yield from _sums(len(shapes), linear, len(made))


BOTH = ((0,), (1,))
register_sbp("matmul")(by_letters("...mk,...kn->...mn", BOTH))
register_sbp("matmul_nt")(by_letters("...mk,...nk->...mn", BOTH))
register_sbp("dot")(by_letters("k,k->", BOTH))


@register_sbp("matmul_tn")
def _matmul_tn(shapes: Shapes, attrs: Attrs) -> Iterator[Way]:
    out = "mn" if attrs["merge"] else "...mn"
    return letters(["...km", "...kn"], [out], shapes, BOTH)


@register_sbp("contract")
def _contract(shapes: Shapes, attrs: Attrs) -> Iterator[Way]:
    return letters([attrs["xs"], attrs["ys"]], [attrs["zs"]], shapes, BOTH)


# Reductions and what works along one dimension


def _dims(attrs: Attrs, ndim: int) -> set[int]:
    dim = attrs.get("dim")
    if dim is None:
        return set(range(ndim))
    return {d % ndim if ndim else d for d in (dim if isinstance(dim, (tuple, list)) else (dim,))}


def _reduced(shape: Any, attrs: Attrs) -> tuple[list[int], list[Any], set[int]]:
    dims = _dims(attrs, len(shape))
    names = list(range(len(shape)))
    keep = attrs.get("keepdim", False)
    return names, [None if d in dims else d for d in names if keep or d not in dims], dims


@register_sbp("sum")
def _sum(shapes: Shapes, attrs: Attrs) -> Iterator[Way]:
    names, left, _ = _reduced(shapes[0], attrs)
    return letters([names], [left], shapes, ((0,),))


@register_sbp("mean")
def _mean(shapes: Shapes, attrs: Attrs) -> Iterator[Way]:
    names, left, _ = _reduced(shapes[0], attrs)
    return letters([names], [left], shapes, ((0,),), mean=True)


@register_sbp("prod", "any", "all", "amax", "amin", "argmax", "argmin", "logsumexp", "var", "std")
@register_sbp("norm", "count_nonzero")
def _reduction(shapes: Shapes, attrs: Attrs) -> Iterator[Way]:
    names, left, dims = _reduced(shapes[0], attrs)
    given = [names] + [list(range(len(s))) if s else [] for s in shapes[1:]]
    return letters(given, [left], shapes, kept=dims)


@register_sbp("max", "min", "kthvalue", "median", "nanmedian", "mode")
def _chosen(shapes: Shapes, attrs: Attrs) -> Iterator[Way]:
    names, left, dims = _reduced(shapes[0], attrs)
    return letters([names], [left, left], shapes, kept=dims)


def _along(outs: int = 1, linear: tuple[tuple[int, ...], ...] = ()) -> Rule:
    def rule(shapes: Shapes, attrs: Attrs) -> Iterator[Way]:
        names = list(range(len(shapes[0])))
        given = [names if s is not None else [] for s in shapes]
        dims = _dims(attrs, len(names))
        for way in letters(given, [names] * outs, shapes, linear, kept=dims):
            if "P" in way.ins or all(s is None or len(s) == len(names) for s in shapes):
                yield way

    return rule


register_sbp("cumprod", "logcumsumexp", "argsort", "shift")(_along())
register_sbp("cumsum", "cumsum_grad")(_along(linear=((0,),)))
register_sbp("cummax", "cummin", "sort", "topk")(_along(2))


@register_sbp("tie_weights")
def _tie_weights(shapes: Shapes, attrs: Attrs) -> Iterator[Way]:
    x, y = shapes
    if len(x) == len(y):
        names = list(range(len(x)))
        yield from letters([names, names], [names], shapes, kept=_dims(attrs, len(x)))


@register_sbp("flip", "roll")
def _turned(shapes: Shapes, attrs: Attrs) -> Iterator[Way]:
    names = list(range(len(shapes[0])))
    return letters(
        [names], [names], shapes, ((0,),), kept=_dims({"dim": attrs["dims"]}, len(names))
    )


@register_sbp("tril", "triu")
def _triangle(shapes: Shapes, attrs: Attrs) -> Iterator[Way]:
    names = list(range(len(shapes[0])))
    return letters([names], [names], shapes, ((0,),), kept=names[-2:])


# Softmax along the split dimension: two numbers of each line are exchanged, not the line


def _in_line(name: str) -> Rule:
    def rule(shapes: Shapes, attrs: Attrs) -> Iterator[Way]:
        names = list(range(len(shapes[0])))
        linear = ((0,),) if name == "log_softmax_grad" or name == "softmax_grad" else ()
        same = [names] * len(shapes)
        dim = attrs["dim"] % len(names) if names else 0
        yield from letters(same, [names], shapes, linear, kept=[dim])
        if names and shapes[0][dim] > 1:
            size = shapes[0][dim]
            lines = math.prod(shapes[0]) / size * (2 if len(shapes) == 1 else 1)
            ways = (dim,) * len(shapes)
            yield Way(ways, (dim,), size, run=functools.partial(_softmax, name), moved=2 * lines)

    return rule


def _softmax(name: str, line: Any, arrays: Sequence[Any], attrs: Attrs) -> Any:
    xp, dim, x = line.xp, attrs["dim"], arrays[0]
    wide = x.astype(xp.float32) if x.dtype.char == "e" else x
    if name.endswith("_grad"):
        y = arrays[1].astype(wide.dtype)
        log = name == "log_softmax_grad"
        total = line.reduce((wide if log else wide * y).sum(dim, keepdims=True), "sum")
        made = wide - xp.exp(y) * total if log else (wide - total) * y
    else:
        if x.shape[dim]:
            top = wide.max(dim, keepdims=True)
        else:
            shape = tuple(1 if d == dim % x.ndim else n for d, n in enumerate(x.shape))
            top = xp.full(shape, -math.inf, wide.dtype)
        shifted = wide - line.reduce(top, "max")
        total = line.reduce(xp.exp(shifted).sum(dim, keepdims=True), "sum")
        made = shifted - xp.log(total) if name == "log_softmax" else xp.exp(shifted) / total
    return made.astype(x.dtype, copy=False)


for _name in ("softmax", "log_softmax", "softmax_grad", "log_softmax_grad"):
    register_sbp(_name)(_in_line(_name))


# Losses and rows that are looked up, by batch or by classes


def _shape_at(dim: int) -> Callable[[Attrs, Callable[[int], int]], Attrs]:
    """Return what gives the attribute `shape` the share of one dimension."""

    def fit(attrs: Attrs, share: Callable[[int], int]) -> Attrs:
        shape = list(attrs["shape"])
        shape[dim] = share(shape[dim])
        return {**attrs, "shape": tuple(shape)}

    return fit


@register_sbp("nll_loss", "nll_loss_grad")
def _nll_loss(shapes: Shapes, attrs: Attrs) -> Iterator[Way]:
    grad = "shape" in attrs
    first = shapes[0]
    shape = tuple(attrs["shape"]) if grad else first
    classes = 0 if len(shape) == 1 else 1
    each = attrs["reduction"] == "none"
    run = functools.partial(_nll, grad, False)
    if len(shape) > 1 and shape[0] > 1:
        given: Sig = 0 if each or not grad else "B"
        out: Sig = 0 if each or grad else "P"
        yield Way((given, 0, "B"), (out,), shape[0], run=run, moved=2)
    if shape[classes] > 1:
        run = functools.partial(_nll, grad, True)
        if grad:
            yield Way(("B", "B", "B"), (classes,), shape[classes], run=run)
        else:
            yield Way((classes, "B", "B"), ("P",), shape[classes], run=run)
    yield from _sums(3, ((0,),))


def _nll(grad: bool, by_class: bool, line: Any, arrays: Sequence[Any], attrs: Attrs) -> Any:
    """Do the loss, or its gradient, of some rows or of some classes; a mean is over all of them."""
    first, target, weight = arrays
    xp, ignore = line.xp, attrs["ignore_index"]
    attrs = dict(attrs)
    mean = attrs["reduction"] == "mean"
    counted = target != ignore
    total = None
    if mean:
        counts = counted.astype(first.dtype)
        if weight is not None:
            counts = counts * weight[xp.where(counted, target, 0)]
        total = counts.sum(keepdims=True).reshape(())
        total = total if by_class else line.reduce(total, "sum")
        attrs["reduction"] = "sum"
    shape = list(attrs["shape"] if grad else first.shape)
    if by_class:
        classes = 0 if len(shape) == 1 else 1
        begin, end = line.begin, line.end
        outside = (target < 0) | (target >= line.size)
        if not grad and bool((outside & counted).any()):
            line.check_range(attrs.get("op", "nll_loss"), target[counted], line.size)
        inside = counted & (target >= begin) & (target < end)
        target = xp.where(inside, target - begin, -100)
        attrs["ignore_index"] = -100
        weight = None if weight is None else weight[begin:end]
        shape[classes] = end - begin
        if begin == end:
            return xp.zeros(
                tuple(shape)
                if grad
                else target.shape
                if not mean and attrs["reduction"] == "none"
                else (),
                first.dtype,
            )
    elif grad:
        shape[0] = line.end - line.begin
    if grad:
        attrs["shape"] = tuple(shape)
        first = first if total is None else first / total
    found = line.local([xp.asarray(first), target, weight], attrs)
    return found if grad or total is None else found / total


@register_sbp("embedding")
def _embedding(shapes: Shapes, attrs: Attrs) -> Iterator[Way]:
    ids, weight = shapes
    names = [f"i{k}" for k in range(len(ids))]
    for way in letters([names, ["v", "e"]], [[*names, "e"]], shapes, ((1,),), kept="v"):
        if not (attrs.get("scale_grad_by_freq") and way.ins[0] != "B"):
            yield way
    if weight[0] > 1:
        yield Way(("B", 0), ("P",), weight[0], run=_looked_up)


def _looked_up(line: Any, arrays: Sequence[Any], attrs: Attrs) -> Any:
    """Look up the rows that this rank has; the others are zeros here."""
    ids, weight = arrays
    if bool(((ids < 0) | (ids >= line.size)).any()):
        line.check_range("embedding", ids, line.size)
    inside = (ids >= line.begin) & (ids < line.end)
    made = line.xp.zeros((*ids.shape, weight.shape[1]), weight.dtype)
    made[inside] = weight[ids[inside] - line.begin]
    return made


@register_sbp("getitem_advanced")
def _advanced(shapes: Shapes, attrs: Attrs) -> Iterator[Way]:
    x, *indices = shapes
    if len(indices) == 1 and len(attrs["dims"]) == 1:
        d = attrs["dims"][0]
        names = list(range(len(x)))
        own = [f"i{k}" for k in range(len(indices[0]))]
        out = [*names[:d], *own, *names[d + 1 :]]
        yield from letters([names, own], [out], shapes, ((0,),), kept=[d])
    else:
        yield from _sums(len(shapes), ((0,),))


@register_sbp("getitem_advanced_grad")
def _advanced_grad(shapes: Shapes, attrs: Attrs) -> Iterator[Way]:
    indices = shapes[1:]
    shape = attrs["shape"]
    if len(indices) == 1 and len(attrs["dims"]) == 1:
        d, more = attrs["dims"][0], len(indices[0])
        names = list(range(len(shape)))
        own = [f"i{k}" for k in range(more)]
        given = [*names[:d], *own, *names[d + 1 :]]
        for way in letters([given, own], [names], shapes, kept=[d]):
            out = way.outs[0]
            yield attrs_library.evolve(way, fit=_shape_at(out)) if isinstance(out, int) else way
        if d == 0 and shape[0] > 1:
            yield Way(("B", "B"), (0,), shape[0], run=_put_back)
    yield from _sums(len(shapes), ((0,),))


def _put_back(line: Any, arrays: Sequence[Any], attrs: Attrs) -> Any:
    """Sum the rows that belong to what this rank has."""
    dy, ids = arrays
    ids = line.xp.where(ids < 0, ids + line.size, ids)
    inside = (ids >= line.begin) & (ids < line.end)
    shape = (line.end - line.begin, *attrs["shape"][1:])
    return line.local([dy[inside], ids[inside] - line.begin], {**attrs, "shape": shape})


@register_sbp("index_select")
def _index_select(shapes: Shapes, attrs: Attrs) -> Iterator[Way]:
    names = list(range(len(shapes[0])))
    d = attrs["dim"] % len(names)
    out = [*names[:d], "i", *names[d + 1 :]]
    return letters([names, ["i"] * len(shapes[1])], [out], shapes, ((0,),), kept=[d])


@register_sbp("gather")
def _gather(shapes: Shapes, attrs: Attrs) -> Iterator[Way]:
    x, index = shapes
    names = list(range(len(x)))
    uneven = [d for d in names if x[d] != index[d]]
    return letters([names, names], [names], shapes, ((0,),), kept=[attrs["dim"] % len(x), *uneven])


@register_sbp("gather_grad")
def _gather_grad(shapes: Shapes, attrs: Attrs) -> Iterator[Way]:
    shape = attrs["shape"]
    names = list(range(len(shape)))
    d = attrs["dim"] % len(shape)
    for k in names:
        if k != d and shape[k] == shapes[1][k] > 1:
            yield Way((k, k), (k,), shape[k], fit=_shape_at(k))
    yield from _sums(2, ((0,),))


@register_sbp("one_hot")
def _one_hot(shapes: Shapes, attrs: Attrs) -> Iterator[Way]:
    names = list(range(len(shapes[0])))
    if attrs["num_classes"] >= 0:
        yield from letters([names], [[*names, None]], shapes)


# Normalization, by rows


def _rows_norm(count: int, outs: int, grad: bool) -> Rule:
    def rule(shapes: Shapes, attrs: Attrs) -> Iterator[Way]:
        x, groups = shapes[0], attrs["groups"]
        sums = ((0,),) if grad else ()
        if len(groups) == 2 and x and x[0] > 1 and groups[0] % x[0] == 0:
            ins = tuple(0 if i < count else "B" for i in range(len(shapes)))
            if grad and "needs" in attrs:
                needs = attrs["needs"]
                every: tuple[Sig, ...] = (0, "P", "P")
                made = tuple(s for s, n in zip(every, needs, strict=True) if n)
            else:
                made = (0,) * outs
            unit = x[0] if len(x) > 2 else 0
            fit = functools.partial(_fit_rows, x[0])
            sizes = () if grad else (*(x[0],) * (outs - 1), groups[0])
            yield Way(ins, made, x[0], sizes, unit, fit)
        if grad:
            number = sum(attrs["needs"]) if "needs" in attrs else outs
            yield from _sums(len(shapes), sums, number)

    return rule


def _fit_rows(rows: int, attrs: Attrs, share: Callable[[int], int]) -> Attrs:
    part = share(rows)
    fitted = dict(attrs)
    for name in ("groups", "channels"):
        if name in attrs:
            fitted[name] = (attrs[name][0] // rows * part, *attrs[name][1:])
    return fitted


register_sbp("standardize")(_rows_norm(1, 2, False))
register_sbp("affine_norm", "rms_norm")(_rows_norm(1, 3, False))
register_sbp("standardize_grad")(_rows_norm(3, 1, True))
register_sbp("affine_norm_grad")(_rows_norm(3, 1, True))


# Shapes


def _factors(a: Sequence[int], b: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield pairs of dimensions that begin at the same place of two shapes of one size."""
    i = j = 0
    before_a = before_b = 1
    while i < len(a) and j < len(b):
        if before_a == before_b:
            if a[i] > 1 and b[j] > 1:
                yield i, j
            if a[i] == 1:
                i += 1
                continue
            if b[j] == 1:
                j += 1
                continue
        if before_a * a[i] <= before_b * b[j]:
            before_a *= a[i]
            i += 1
        else:
            before_b *= b[j]
            j += 1


@register_sbp("reshape")
def _reshape(shapes: Shapes, attrs: Attrs) -> Iterator[Way]:
    x, shape = shapes[0], attrs["shape"]
    if math.prod(x) == math.prod(shape) and math.prod(x):
        for i, j in _factors(x, shape):
            unit = math.gcd(x[i], shape[j]) if x[i] != shape[j] else 0
            fit = functools.partial(_fit_reshape, j, x[i])
            yield Way((i,), (j,), x[i], (shape[j],), unit, fit)
    yield from _sums(1, ((0,),))


def _fit_reshape(j: int, size: int, attrs: Attrs, share: Callable[[int], int]) -> Attrs:
    shape = list(attrs["shape"])
    shape[j] = shape[j] * share(size) // size
    return {**attrs, "shape": tuple(shape)}


@register_sbp("expand", "sum_to")
def _expand(shapes: Shapes, attrs: Attrs) -> Iterator[Way]:
    x, shape = shapes[0], attrs["shape"]
    more = len(shape) - len(x)
    for i in range(len(x)):
        j = i + more
        if x[i] > 1:
            if j >= 0 and shape[j] == x[i]:
                yield Way((i,), (j,), x[i], fit=_shape_at(j))
            elif j < 0 or shape[j] == 1:
                yield Way((i,), ("P",), x[i])
    yield from _sums(1, ((0,),))


@register_sbp("transpose")
def _transpose(shapes: Shapes, attrs: Attrs) -> Iterator[Way]:
    names = list(range(len(shapes[0])))
    out = list(names)
    if names:
        a, b = attrs["dim0"], attrs["dim1"]
        out[a], out[b] = out[b], out[a]
    return letters([names], [out], shapes, ((0,),))


@register_sbp("permute")
def _permute(shapes: Shapes, attrs: Attrs) -> Iterator[Way]:
    names = list(range(len(shapes[0])))
    return letters([names], [[names[d] for d in attrs["dims"]]], shapes, ((0,),))


@register_sbp("squeeze")
def _squeeze(shapes: Shapes, attrs: Attrs) -> Iterator[Way]:
    x = shapes[0]
    dims = _dims(attrs, len(x)) if attrs.get("dim") is not None else range(len(x))
    names = list(range(len(x)))
    gone = [d for d in names if d in dims and x[d] == 1]
    left = [d for d in names if d not in gone]
    return letters([names], [left], shapes, ((0,),), kept=gone)


@register_sbp("unsqueeze")
def _unsqueeze(shapes: Shapes, attrs: Attrs) -> Iterator[Way]:
    names: list[Any] = list(range(len(shapes[0])))
    out = list(names)
    dims = attrs["dim"] if isinstance(attrs["dim"], tuple) else (attrs["dim"],)
    for dim in dims:
        out.insert(dim % (len(out) + 1), None)
    return letters([names], [out], shapes, ((0,),))


@register_sbp("select")
def _select(shapes: Shapes, attrs: Attrs) -> Iterator[Way]:
    names = list(range(len(shapes[0])))
    d = attrs["dim"] % len(names)
    return letters([names], [[k for k in names if k != d]], shapes, ((0,),), kept=[d])


@register_sbp("narrow")
def _narrow(shapes: Shapes, attrs: Attrs) -> Iterator[Way]:
    names = list(range(len(shapes[0])))
    return letters([names], [names], shapes, ((0,),), kept=[attrs["dim"] % len(names)])


def _indexed(index: Any, shape: Any) -> list[tuple[int, int]]:
    """Return pairs of a dimension of x and one of x[index], of those that are taken as they are."""
    items = list(index) if isinstance(index, tuple) else [index]
    used = sum(each is not None and each is not Ellipsis for each in items)
    if Ellipsis not in [each if each is Ellipsis else None for each in items]:
        items.append(Ellipsis)
    pairs: list[tuple[int, int]] = []
    i = j = 0
    for each in items:
        if each is Ellipsis:
            for _ in range(len(shape) - used):
                pairs.append((i, j))
                i, j = i + 1, j + 1
        elif each is None:
            j += 1
        elif isinstance(each, slice):
            if each == slice(None) or each.indices(shape[i]) == (0, shape[i], 1):
                pairs.append((i, j))
            i, j = i + 1, j + 1
        else:
            i += 1
    return pairs


@register_sbp("getitem")
def _getitem(shapes: Shapes, attrs: Attrs) -> Iterator[Way]:
    for i, j in _indexed(attrs["index"], shapes[0]):
        if shapes[0][i] > 1:
            yield Way((i,), (j,), shapes[0][i])
    yield from _sums(1, ((0,),))


@register_sbp("getitem_grad")
def _getitem_grad(shapes: Shapes, attrs: Attrs) -> Iterator[Way]:
    shape = attrs["shape"]
    for i, j in _indexed(attrs["index"], shape):
        if shape[i] > 1:
            yield Way((j,), (i,), shape[i], fit=_shape_at(i))
    yield from _sums(1, ((0,),))


@register_sbp("setitem_", "setitem_grad")
def _setitem(shapes: Shapes, attrs: Attrs) -> Iterator[Way]:
    x, value, *indices = (*shapes, None) if len(shapes) == 1 else shapes
    if "fill" not in attrs and len(shapes) == 2:  # setitem_grad, whose second input is an index
        return
    pairs = [] if indices and shapes[2:] else _indexed(attrs["index"], x)
    items = attrs["index"] if isinstance(attrs["index"], tuple) else (attrs["index"],)
    numbers = sum(
        not (each is None or each is Ellipsis or isinstance(each, slice)) for each in items
    )
    ndim = len(x) + sum(each is None for each in items) - numbers
    for i, j in pairs:
        ins: list[Sig] = [i]
        if len(shapes) > 1:
            ins.append(_aligned(value, ndim, j, x[i]))
        yield Way(tuple(ins), (i,), x[i])


@register_sbp("cat")
def _joined(shapes: Shapes, attrs: Attrs) -> Iterator[Way]:
    names = list(range(len(shapes[0])))
    together = (tuple(range(len(shapes))),)
    if any(len(s) != len(names) for s in shapes):
        yield from _sums(len(shapes), together)
        return
    yield from letters([names] * len(shapes), [names], shapes, together, kept=[attrs["dim"]])


@register_sbp("stack")
def _stacked(shapes: Shapes, attrs: Attrs) -> Iterator[Way]:
    names: list[Any] = list(range(len(shapes[0])))
    out = [*names[: attrs["dim"]], None, *names[attrs["dim"] :]]
    together = (tuple(range(len(shapes))),)
    return letters([names] * len(shapes), [out], shapes, together)


# Convolution and pooling, by batch; convolution also by channels of the output


@register_sbp("conv")
def _conv(shapes: Shapes, attrs: Attrs) -> Iterator[Way]:
    x, weight, _ = shapes
    if x[0] > 1:
        yield Way((0, "B", "B"), (0,), x[0])
    if attrs["groups"] == 1 and weight[0] > 1:
        yield Way(("B", 0, 0), (1,), weight[0])


@register_sbp("conv_weight_grad")
def _conv_weight_grad(shapes: Shapes, attrs: Attrs) -> Iterator[Way]:
    if shapes[0][0] > 1:
        yield Way((0, 0), ("P",), shapes[0][0])
    if attrs["groups"] == 1 and shapes[0][1] > 1:
        yield Way((1, "B"), (0,), shapes[0][1])
    yield from _sums(2, BOTH)


@register_sbp("conv_input_grad")
def _conv_input_grad(shapes: Shapes, attrs: Attrs) -> Iterator[Way]:
    dy = shapes[0]
    if dy[0] > 1 and len(attrs["input_size"]) == len(dy) - 2:
        yield Way((0, "B"), (0,), dy[0])
    if attrs["groups"] == 1 and dy[1] > 1:
        yield Way((1, 0), ("P",), dy[1])
    yield from _sums(2, BOTH)


def _by_batch(outs: int = 1) -> Rule:
    def rule(shapes: Shapes, attrs: Attrs) -> Iterator[Way]:
        if shapes[0][0] > 1:
            yield Way((0,) * len(shapes), (0,) * outs, shapes[0][0])

    return rule


register_sbp("avg_pool", "adaptive_avg_pool", "plane_take", "im2col", "resample")(_by_batch())
register_sbp("avg_pool_grad", "adaptive_avg_pool_grad", "resample_grad", "plane_put")(_by_batch())
register_sbp("max_pool", "adaptive_max_pool")(_by_batch(2))


@register_sbp("update_running")
def _update_running(shapes: Shapes, attrs: Attrs) -> Iterable[Way]:
    return ()  # a few numbers, of which all ranks keep a copy
