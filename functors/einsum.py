"""einsum and tensordot: an equation is taken apart here into views, sums and pairwise contractions.

Each step is an op with its own gradient, so the gradient of the whole costs what the best order of
contraction costs, and exists to any order.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F as F
from oneflow_lite.errors import ArgumentTypeError, FlowError, arg_error
from oneflow_lite.functors.declaring.checks import check_dims, check_int, check_tensor
from oneflow_lite.functors.declaring.declare import functor
from oneflow_lite.functors.declaring.domains import AnyTensor
from oneflow_lite.functors.matmul import Fits, check_same_dtype
from oneflow_lite.interpreter.dispatch import dispatch1
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.tensors.tensor import Tensor

PERMUTE = op_expr("permute")
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def _bad_equation_error(equation: str, expected: str, got: object) -> FlowError:
    got = f"{got} in {equation!r}"
    return arg_error("einsum", "equation", expected, got, "write it as in 'bij,bjk->bik'")


@functools.lru_cache(maxsize=1024)
def _parse(equation: str, ndims: tuple[int, ...]) -> tuple[tuple[str, ...], str]:
    """Return the labels of each operand and of the result, one character per dimension.

    Labels of an ellipsis are counted from the right, so that dimensions broadcast as in NumPy.
    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ndims):
        raise _bad_equation_error(equation, f"{len(ndims)} terms, one per operand", len(terms))
    ellipsis = ""
    operands = []
    for term, ndim in zip(terms, ndims, strict=True):
        named = term.replace("...", "", 1)
        free = ndim - len(named)
        if any(c not in LETTERS for c in named):
            raise _bad_equation_error(
                equation, "letters, one '...' per term, ',' and '->'", repr(term)
            )
        if free < 0 or (free and named == term):
            raise _bad_equation_error(
                equation, f"{ndim} labels for an operand of that rank", repr(term)
            )
        labels = "".join(chr(0x100 + k) for k in reversed(range(free)))
        ellipsis = max(ellipsis, labels, key=len)
        operands.append(term.replace("...", labels))
    if arrow:
        named = right.replace("...", "", 1)
        result = right.replace("...", ellipsis)
        if any(c not in LETTERS for c in named) or len(set(named)) != len(named):
            raise _bad_equation_error(equation, "each label once after '->'", repr(right))
        unknown = [c for c in named if c not in left]
        if unknown:
            raise _bad_equation_error(
                equation, "labels of the operands after '->'", repr(unknown[0])
            )
    else:
        every = "".join(operands)
        once = [c for c in sorted(set(every)) if every.count(c) == 1 and c in LETTERS]
        result = ellipsis + "".join(once)
    return tuple(operands), result


def _from_sublists(args: Sequence[Any]) -> tuple[str, list[Any]]:
    """Turn `x, [0, 1], y, [1, 2], [0, 2]` into an equation and operands."""

    def letter(label: Any) -> str:
        if check_int("einsum", "equation", label, 0) < len(LETTERS):
            return LETTERS[label]
        raise _bad_equation_error(str(label), f"labels below {len(LETTERS)}", label)

    def term(sublist: Any) -> str:
        if not isinstance(sublist, (list, tuple)):
            expected = "a string, or operands each followed by a list of labels"
            got, hint = type(sublist).__name__, "write einsum('ij,jk->ik', x, y)"
            raise arg_error("einsum", "equation", expected, got, hint, ArgumentTypeError)
        return "".join("..." if s is Ellipsis else letter(s) for s in sublist)

    pairs = len(args) // 2
    equation = ",".join(term(args[2 * i + 1]) for i in range(pairs))
    if len(args) % 2:
        equation += "->" + term(args[-1])
    return equation, [args[2 * i] for i in range(pairs)]


@functools.lru_cache(maxsize=1024)
def _path(operands: tuple[str, ...], result: str, sizes: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return which operands to contract, step by step; the results go to the end of the list.

    `sizes` are those of the labels in alphabetical order.
    """
    labels = sorted(set("".join(operands)))
    if len(operands) < 3 or len(labels) > len(LETTERS):
        return [(0, 1)] * (len(operands) - 1)
    letter = str.maketrans(dict(zip(labels, LETTERS, strict=False)))
    size = dict(zip(labels, sizes, strict=True))
    shapes = [np.broadcast_to(np.int8(0), [size[c] for c in term]) for term in operands]
    equation = f"{','.join(operands)}->{result}".translate(letter)
    steps = np.einsum_path(equation, *shapes, optimize="greedy")[0][1:]
    return [step for step in steps if len(step) > 1]


def _sum_out(x: Tensor, labels: str, kept: set[str]) -> tuple[Tensor, str]:
    """Sum over the dimensions whose label is not kept; return the tensor and its labels."""
    dim = tuple(d for d, c in enumerate(labels) if c not in kept)
    if dim:
        x = x.sum(dim)
    return x, "".join(c for c in labels if c in kept)


def _diagonals(x: Tensor, labels: str) -> tuple[Tensor, str]:
    """Take the diagonal where a label is repeated."""
    for c in labels:
        while labels.count(c) > 1:
            first = labels.index(c)
            second = labels.index(c, first + 1)
            if x._data.shape[first] != x._data.shape[second]:
                expected = f"equal sizes where label {c!r} is repeated"
                hint = "give the dimensions labels of their own"
                raise arg_error("einsum", "operands", expected, x, hint)
            x = x.diagonal(0, first, second)
            labels = labels.replace(c, "", 2) + c
    return x, labels


def _drop_broadcast(x: Tensor, labels: str, size: dict[str, int]) -> tuple[Tensor, str]:
    """Drop dimensions of size 1 that another operand has in full: they only repeat."""
    shape = x._data.shape
    kept = [d for d, c in enumerate(labels) if shape[d] != 1 or size[c] == 1]
    if len(kept) < len(labels):
        x = x.reshape([shape[d] for d in kept])
    return x, "".join(labels[d] for d in kept)


def _label_sizes(operands: list[tuple[Tensor, str]]) -> dict[str, int]:
    size: dict[str, int] = {}
    for x, labels in operands:
        for c, n in zip(labels, x._data.shape, strict=True):
            if size.setdefault(c, n) == 1:
                size[c] = n
            elif n not in (1, size[c]):
                expected = f"size {size[c]} or 1 wherever label {c!r} stands"
                if c not in LETTERS:
                    expected = "ellipsis dimensions that broadcast"
                got = f"{n}, with shapes {' and '.join(str(x.shape) for x, _ in operands)}"
                hint = "check the equation and the shapes"
                raise arg_error("einsum", "operands", expected, got, hint)
    return size


_SAMPLES = "'bij,bjk->bik', x(2, 2, 3), x(2, 3, 2); 'ii->', x(2, 2); '...i,i', x(2, 3), x(3)"


@functor("flow", samples=_SAMPLES)
def einsum(equation: Any, *operands: Any) -> Tensor:
    """Sum products of elements along dimensions named by labels (Einstein's convention).

    equation: labels such as `"bij,bjk->bik"`. A label that the result lacks is summed over; a label
        repeated within an operand takes the diagonal; `...` stands for any dimensions, which
        broadcast. Without `->` the result has these, and then, sorted, the labels that occur once.
    operands: of one dtype. `einsum(x, [0, 1], y, [1, 2], [0, 2])` is accepted too.
    ShapeError: when the equation is malformed or does not fit the shapes.
    DTypeError: when the dtypes differ.

    >>> x = flow.tensor([[1., 2.], [3., 4.]])
    >>> flow.einsum("ii->", x), flow.einsum("ij,j->i", x, flow.ones(2))
    (tensor(5.), tensor([3., 7.]))
    """
    if not isinstance(equation, str):
        equation, tensors = _from_sublists((equation, *operands))
    else:
        if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
            return F.einsum(equation, *operands[0])
        tensors = list(operands)
    for i, x in enumerate(tensors):
        check_tensor("einsum", f"operands[{i}]", x)
        check_same_dtype("einsum", tensors[0], f"operands[{i}]", x)
    terms, result = _parse(equation, tuple(x._data.ndim for x in tensors))
    return _contract_all([_diagonals(x, t) for x, t in zip(tensors, terms, strict=True)], result)


def _contract_all(operands: list[tuple[Tensor, str]], result: str) -> Tensor:
    """Contract labelled operands pairwise, then bring the labels into the order of the result."""
    size = _label_sizes(operands)
    operands = [_drop_broadcast(x, labels, size) for x, labels in operands]
    order = tuple(size[c] for c in sorted(set("".join(labels for _, labels in operands))))
    for step in _path(tuple(labels for _, labels in operands), result, order):
        group = [operands[i] for i in step]
        operands = [o for i, o in enumerate(operands) if i not in step]
        while len(group) > 1:
            (x, xs), (y, ys), *group = group
            last = not operands and not group
            others = set(result).union(*[labels for _, labels in operands + group])
            x, xs = _sum_out(x, xs, others | set(ys))
            y, ys = _sum_out(y, ys, others | set(xs))
            made = dict.fromkeys(c for c in xs + ys if c in others)
            zs = result if last else "".join(made)
            group.insert(0, (F.contract(x, y, xs=xs, ys=ys, zs=zs), zs))
        operands.append(group[0])
    x, labels = _sum_out(*operands[0], set(result))
    return dispatch1(PERMUTE, x, {"dims": tuple(labels.index(c) for c in result)})


@functor(
    "flow",
    out="same",
    spelled="axes=dims",
    samples="x(2, 3), x(3, 2), 1; x(2, 3), x(4, 3), ([1], [1]); x(2), x(3), 0",
)
def tensordot(a: AnyTensor, b: Fits, dims: Any = 2) -> Tensor:
    """Return the products of a and b summed over pairs of dimensions.

    dims: the number of last dimensions of `a` and first of `b` to sum over, or the dimensions of
        each by name.
    DimError: when a dimension is out of range or given twice.

    >>> flow.tensordot(flow.ones(2, 3), flow.ones(4, 3), dims=([1], [1])).shape
    (2, 4)
    """
    x, y = a._data.shape, b._data.shape
    if isinstance(dims, (tuple, list)):
        if len(dims) != 2:
            raise _bad_pairs_error("two sequences of dimensions", dims, x, y)
        x_dims, y_dims = [
            check_dims("tensordot", d, len(s), "dims") if d != [] and d != () else ()
            for d, s in zip(dims, (x, y), strict=True)
        ]
    else:
        n = check_int("tensordot", "dims", dims, 0)
        if n > min(len(x), len(y)):
            raise _bad_pairs_error(f"at most {min(len(x), len(y))}", dims, x, y)
        x_dims, y_dims = tuple(range(len(x) - n, len(x))), tuple(range(n))
    sizes = [(x[i], y[k]) for i, k in zip(x_dims, y_dims, strict=False)]
    if len(x_dims) != len(y_dims) or any(n != m and 1 not in (n, m) for n, m in sizes):
        raise _bad_pairs_error("paired dimensions of equal size", dims, x, y)
    for i, k, (n, m) in zip(x_dims, y_dims, sizes, strict=True):  # a size of 1 broadcasts
        a = a if n == m or n == 1 else a.sum(i, True)
        b = b if n == m or m == 1 else b.sum(k, True)
    xs = [chr(0x100 + d) for d in range(len(x))]
    ys = [chr(0x200 + d) for d in range(len(y))]
    for i, k in zip(x_dims, y_dims, strict=True):
        ys[k] = xs[i]
    zs = [c for c in xs if c not in ys] + [c for c in ys if c not in xs]
    return F.contract(a, b, xs="".join(xs), ys="".join(ys), zs="".join(zs))


def _bad_pairs_error(expected: str, dims: Any, x: tuple[int, ...], y: tuple[int, ...]) -> FlowError:
    got, hint = f"{dims} for shapes {x} and {y}", "pair each dimension of a with one of b"
    return arg_error("tensordot", "dims", expected, got, hint)
