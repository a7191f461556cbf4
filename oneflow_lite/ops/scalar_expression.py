"""Scalar expressions: formulas by which ops compute single elements, and reduce lines of elements.

An op states its expression once, beside its kernel. Machine code for groups of ops is written from
it, and `check_op` holds it against the kernel, which stays the definition.

A *line* is a row of elements that an op reduces: it sums the line, or takes its maximum. `sum(x)`
in an expression is the sum of the element's line, the same value for all elements of the line.
`array_places.py` says along which dimensions lines run.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from oneflow_lite.arrays.locks import cached_property
from oneflow_lite.errors import RegistrationError
from oneflow_lite.ops.registry import KERNELS, Lines


def _erf(x: Any) -> Any:
    from scipy.special import erf

    x = np.asanyarray(x)  # SciPy knows no long doubles
    return erf(x.astype(np.float64)).astype(x.dtype) if x.dtype.char == "g" else erf(x)


# The functions that an expression may call, as NumPy computes them.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "where": np.where, "maximum": np.maximum, "minimum": np.minimum, "isnan": np.isnan,
    "abs": np.abs, "sqrt": np.sqrt, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc,
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "pow": np.power,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "tanh": np.tanh, "erf": _erf,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}  # fmt: skip
# The expressions of ops whose kernel is one function of NumPy's that is not in `FUNCTIONS`.
_OF_UFUNCS = {
    "add": "x + y", "subtract": "x - y", "multiply": "x * y", "divide": "x / y",
    "negative": "-x", "reciprocal": "1 / x", "power": "pow(x, y)",
    "greater": "x > y", "greater_equal": "x >= y", "less": "x < y", "less_equal": "x <= y",
    "equal": "x == y", "not_equal": "x != y",
}  # fmt: skip
# Functions of all elements of a line. `take(x, i)` is x at place i of the line, or at the nearest
# place. `total` adds the elements of all lines, over the dimensions that the result does not have;
# `total_lines` adds one value of each line.
REDUCTIONS = ("sum", "amax", "amin", "take", "total", "total_lines")
# Further names of an expression: an element's place in its line, the line's length, infinity.
NAMES = ("index", "count", "inf")
_CALLED = (*FUNCTIONS, *REDUCTIONS, "mean")
_ALLOWED = (
    ast.Name, ast.Load, ast.Constant, ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Tuple,
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.USub, ast.Invert, ast.BitAnd, ast.BitOr, ast.BitXor,
    ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq,
)  # fmt: skip

Attributes = Mapping[str, Any]


@attrs.frozen
class Step:
    """An assignment of an expression, in the names of a caller.

    Attributes
    ----------
    name : str
    value : str
        The formula for each element.
    combine : str
        The member of `REDUCTIONS` that is applied to the values of a line; empty for none.
    at : str
        The place in the line, of `take`.
    """

    name: str
    value: str
    combine: str = ""
    at: str = ""

    def __str__(self) -> str:
        if not self.combine:
            return f"{self.name} = {self.value}"
        return f"{self.name} = {self.combine}({', '.join(filter(None, (self.value, self.at)))})"


class Scalar:
    """The expression of an op in the names of its inputs and attributes.

    Parameters
    ----------
    text : str
        In Python's syntax: steps `name = expression`, divided by semicolons, then the expression of
        the result, or of several, divided by commas. It may use operators, comparisons,
        `FUNCTIONS`, `REDUCTIONS`, `mean` and `NAMES`.
    inputs, attributes : collection of str
        The names that it may use.
    lines : Lines, optional
        The places and checks of an op with lines.

    Raises
    ------
    RegistrationError
        When the text has anything else in it.

    Examples
    --------
    >>> import numpy as np
    >>> from oneflow_lite.ops.scalar_expression import Scalar
    >>> silu = Scalar("s = sigmoid(x); x * s", ["x"])
    >>> silu.evaluate({"x": np.array([-1.0, 0.0, 2.0])}).round(4)
    array([-0.2689,  0.    ,  1.7616])
    >>> [str(step) for step in silu.steps({"x": "a0"}, "t0", str)]
    ['t0_s = sigmoid(a0)', 't0 = a0 * t0_s']
    >>> share = Scalar("x / sum(x)", ["x"])
    >>> share.evaluate({"x": np.array([[1.0, 3.0]])}, over=[1])
    array([[0.25, 0.75]])
    >>> [str(step) for step in share.steps({"x": "a0"}, "t0", str)]
    ['t0_1 = sum(a0)', 't0 = a0 / t0_1']
    """

    def __init__(
        self,
        text: str,
        inputs: Collection[str],
        attributes: Collection[str] = (),
        lines: Lines | None = None,
    ) -> None:
        self.text = text
        self.lines = lines
        *steps, last = text.split(";")
        self._steps: list[tuple[str, str, ast.expr, ast.expr | None]] = []
        known = {*inputs, *attributes, *NAMES}
        for step in steps:
            name, _, value = step.strip().partition(" = ")
            self._add(name, _parsed(value, text), known)
        ends = _parsed(last, text)
        trees = ends.elts if isinstance(ends, ast.Tuple) else [ends]
        self.results = len(trees)
        for i, tree in enumerate(trees):
            self._add(f"=out{i}" if len(trees) > 1 else "=", tree, known)
        self.reduces = any([combine for _, combine, _, _ in self._steps])

    def _add(self, name: str, tree: ast.expr, known: set[str]) -> None:
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        if unknown := used - known - {*_CALLED}:
            raise RegistrationError(
                f"the scalar expression {self.text!r} names {', '.join(sorted(unknown))}; it may "
                f"use {', '.join(sorted(known))} and the functions {', '.join(_CALLED)}"
            )
        tree = _Reductions(self._steps).visit(tree)
        combine, at = "", None
        # A bare reduction was just made a step of its own; that step gets the name instead.
        if isinstance(tree, ast.Name) and tree.id[0] == "_":
            _, combine, tree, at = self._steps.pop()
        self._steps.append((name, combine, tree, at))
        known.add(name)

    def steps(
        self,
        names: Mapping[str, str],
        result: str,
        literal: Callable[[Any], str],
        attributes: Attributes | None = None,
    ) -> list[Step]:
        """Return steps of Python that compute the result, or the results in order, at the end.

        Parameters
        ----------
        names : mapping of str to str
            The text that stands for each input.
        result : str
            The name to assign; for several results the beginning of their names.
        literal : callable
            Returns the text of a number.
        attributes : mapping, optional
            Numbers that stand for the attributes.
        """
        texts, numbers = self._texts
        known = {name: name for name in self._named} | dict(names)
        given = attributes or {}
        known.update({name: literal(given[name]) for name in self._named if name in given})
        known.update({name: literal(value) for name, value in numbers.items()})
        made = []
        for name, combine, value, at in texts:
            own = name.lstrip("=_")
            target = f"{result}_{own}" if own else result
            made.append(Step(target, value % known, combine, at % known))
            known[name] = target
        return made

    @cached_property
    def _texts(self) -> tuple[list[tuple[str, str, str, str]], dict[str, Any]]:
        """The steps as templates with a place for each name, and their numbers by name."""
        numbers: dict[str, Any] = {}
        texts = [
            (name, combine, _template(value, numbers), _template(at, numbers) if at else "")
            for name, combine, value, at in self._steps
        ]
        return texts, numbers

    @cached_property
    def _nodes(self) -> list[ast.AST]:
        trees = [each for _, _, *trees in self._steps for each in trees if each is not None]
        return [node for tree in trees for node in ast.walk(tree)]

    @cached_property
    def _named(self) -> list[str]:
        return [node.id for node in self._nodes if isinstance(node, ast.Name)]

    @cached_property
    def operations(self) -> int:
        """The number of operations in it; a reduction counts as two."""
        kinds = (ast.BinOp, ast.UnaryOp, ast.Call, ast.Compare)
        own = sum([isinstance(node, kinds) for node in self._nodes])
        return own + 2 * sum([bool(combine) for _, combine, _, _ in self._steps])

    def calls(self, functions: Collection[str]) -> int:
        """Return how often it calls some functions."""
        return sum([name in functions for name in self._named])

    def is_total(self, result: int, has_dims: bool) -> bool:
        """Return whether a result is known only when all lines have been added."""
        totals = [combine.startswith("total") for _, combine, _, _ in self._steps]
        return totals[len(totals) - self.results + result] or (not has_dims and any(totals))

    @cached_property
    def is_sum(self) -> bool:
        """Whether it is a function of a single sum, which may then run over any dimensions."""
        combines = [combine for _, combine, _, _ in self._steps]
        if list(filter(None, combines)) != ["sum"] or self.results != 1:
            return False
        position = combines.index("sum")
        after = [tree for _, _, tree, _ in self._steps[position + 1 :]]
        names = {n.id for tree in after for n in ast.walk(tree) if isinstance(n, ast.Name)}
        return names <= {*FUNCTIONS, self._steps[position][0], "count", "inf"}

    def evaluate(
        self,
        inputs: Mapping[str, Any],
        attributes: Attributes | None = None,
        over: Sequence[int] = (),
        followed: Sequence[Collection[int]] = ((),),
        shape: tuple[int, ...] | None = None,
    ) -> Any:
        """Return the results for arrays, by NumPy: the values that machine code has to match.

        Parameters
        ----------
        inputs : mapping of str to array
            All of one number of dimensions, where there are lines.
        attributes : mapping, optional
        over : sequence of int
            The dimensions of a line.
        followed : sequence of collection of int
            For each result the dimensions that it has; a `total` sums the rest.
        shape : tuple of int, optional
            The shape that the op goes over, where the inputs do not tell.

        Returns
        -------
        array or list
            A list where there are several results.
        """
        arrays = {n: np.asanyarray(x) for n, x in inputs.items() if x is not None}
        absent = {} if self.lines is None else self.lines.absent
        names = {n: n if n in arrays else repr(absent[n]) for n in inputs}
        if shape is None:
            shape = np.broadcast_shapes(*[x.shape for x in arrays.values()])
        line = tuple([n if i in over else 1 for i, n in enumerate(shape)])
        scope: dict[str, Any] = {**FUNCTIONS, **arrays, "inf": np.inf, "nan": np.nan}
        scope["count"] = int(np.prod(line))
        scope["index"] = np.arange(scope["count"]).reshape(line)
        steps = self.steps(names, "result", repr, attributes)
        first = len(steps) - self.results
        for i, step in enumerate(steps):
            x = eval(step.value, scope)
            if step.combine:
                at = eval(step.at, scope) if step.at else None
                kept = followed[i - first] if i >= first else ()
                x = _combined(step.combine, x, at, shape, tuple(over), kept)
            scope[step.name] = x
        results = [scope[step.name] for step in steps[first:]]
        return results if self.results > 1 else results[0]


def _combined(
    combine: str, x: Any, at: Any, shape: Any, over: tuple[int, ...], kept: Collection[int]
) -> Any:
    dims = range(len(shape))
    if combine == "total_lines":
        return np.sum(
            np.broadcast_to(x, [1 if i in over else shape[i] for i in dims]), keepdims=True
        )
    x = np.broadcast_to(x, shape)
    if combine == "total":
        return np.sum(x, tuple([i for i in dims if i not in kept]), keepdims=True)
    if combine == "take":
        at = np.broadcast_to(at, [1 if i in over else shape[i] for i in dims])
        return np.take_along_axis(x, np.clip(at, 0, shape[over[0]] - 1), over[0])
    return getattr(np, combine)(x, axis=over, keepdims=True)


class _Reductions(ast.NodeTransformer):
    """Turns each reduction in an expression into a step of its own, called `_1` and so on."""

    def __init__(self, steps: list[tuple[str, str, ast.expr, ast.expr | None]]) -> None:
        self.steps = steps

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Take a reduction out; a mean is a sum and a division."""
        self.generic_visit(node)
        assert isinstance(node.func, ast.Name)
        called = node.func.id
        if called not in REDUCTIONS and called != "mean":
            return node
        name = f"_{len(self.steps) + 1}"
        at = node.args[1] if called == "take" else None
        self.steps.append((name, "sum" if called == "mean" else called, node.args[0], at))
        if called == "mean":
            mean = ast.BinOp(ast.Name(name), ast.Div(), ast.Name("count"))
            name = f"_{len(self.steps) + 1}"
            self.steps.append((name, "", mean, None))
        return ast.Name(name)


@functools.cache
def _made(
    text: str, inputs: tuple[str, ...], attributes: tuple[str, ...], lines: Lines | None
) -> Scalar:
    return Scalar(text, inputs, attributes, lines)


def scalar_of(op_type: str, attributes: Attributes) -> Scalar | None:
    """Return the expression of a call of an op; None where it has none."""
    entry = KERNELS.get(op_type)
    text, schema = entry.scalar, entry.schema
    lines = text if isinstance(text, Lines) else None
    if lines is not None:
        text = lines.text
    if callable(text):
        text = text(**attributes)
    elif text is None and entry.ufunc is not None:
        names = ", ".join(schema.inputs)
        known = entry.ufunc in FUNCTIONS
        text = f"{entry.ufunc}({names})" if known else _OF_UFUNCS.get(entry.ufunc)
    return None if text is None else _made(text, schema.inputs, tuple(schema.attrs), lines)


def _template(tree: ast.expr, numbers: dict[str, Any]) -> str:
    """Return the text of an expression with `%(name)s` for names and numbers, which it collects."""
    tree = ast.parse(ast.unparse(tree), mode="eval").body  # a copy: the visitor writes to it
    return ast.unparse(_Places(numbers).visit(tree))


class _Places(ast.NodeTransformer):
    """Replaces names and numbers by places to be filled."""

    def __init__(self, numbers: dict[str, Any]) -> None:
        self.numbers = numbers

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Return the place of a name."""
        return ast.Name(f"%({node.id})s")

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        """Return the place of a number."""
        name = f"number {len(self.numbers)}"
        self.numbers[name] = node.value
        return ast.Name(f"%({name})s")


def _parsed(text: str, whole: str) -> ast.expr:
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise RegistrationError(
            f"the scalar expression {whole!r} cannot be read: {error}"
        ) from None
    for node in ast.walk(tree):
        if not isinstance(node, _ALLOWED) or (
            isinstance(node, ast.Call)
            and not (isinstance(node.func, ast.Name) and node.func.id in _CALLED)
        ):
            raise RegistrationError(
                f"the scalar expression {whole!r} has {ast.unparse(node)!r} in it; it is made of "
                f"operators, comparisons and the functions {', '.join(_CALLED)}"
            )
    return tree
