"""Scalar expressions: what a pointwise op does to one element of each of its arrays.

An op states its expression once, beside its kernel. Machine code for groups of ops is written from
it, and `check_op` holds it against the kernel, which stays the definition.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from oneflow_lite.errors import RegistrationError
from oneflow_lite.registry import KERNELS


def _erf(x: Any) -> Any:
    from scipy.special import erf

    return erf(x)


# What an expression may call, and what NumPy does for it.
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
_ALLOWED = (
    ast.Name, ast.Load, ast.Constant, ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare,
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.USub, ast.Invert, ast.BitAnd, ast.BitOr, ast.BitXor,
    ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq,
)  # fmt: skip

Attributes = Mapping[str, Any]


class Scalar:
    """One op's expression in the names of its inputs and attributes.

    Parameters
    ----------
    text : str
        In Python's syntax: steps `name = expression`, divided by semicolons, then the expression of
        the result. It may use operators, comparisons and `FUNCTIONS`.
    inputs, attributes : collection of str
        The names that it may use.

    Raises
    ------
    RegistrationError
        When the text has anything else in it.

    Examples
    --------
    >>> import numpy as np
    >>> from oneflow_lite.scalar_expression import Scalar
    >>> silu = Scalar("s = sigmoid(x); x * s", ["x"])
    >>> silu.evaluate({"x": np.array([-1.0, 0.0, 2.0])}).round(4)
    array([-0.2689,  0.    ,  1.7616])
    >>> silu.steps({"x": "a0"}, "t0", str)
    ['t0_s = sigmoid(a0)', 't0 = a0 * t0_s']
    """

    def __init__(
        self, text: str, inputs: Collection[str], attributes: Collection[str] = ()
    ) -> None:
        self.text = text
        *steps, last = text.split(";")
        self._steps = []
        for step in steps:
            name, _, value = step.strip().partition(" = ")
            self._steps.append((name, _parsed(value, text)))
        self._steps.append(("", _parsed(last, text)))
        known = {*inputs, *attributes}
        for name, tree in self._steps:
            used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
            if unknown := used - known - FUNCTIONS.keys():
                raise RegistrationError(
                    f"the scalar expression {text!r} names {', '.join(sorted(unknown))}; it may "
                    f"use {', '.join(sorted(known))} and the functions {', '.join(FUNCTIONS)}"
                )
            known.add(name)

    def steps(
        self,
        names: Mapping[str, str],
        result: str,
        literal: Callable[[Any], str],
        attributes: Attributes | None = None,
    ) -> list[str]:
        """Return lines of Python that compute the result.

        Parameters
        ----------
        names : mapping of str to str
            What stands for each input.
        result : str
            The name to assign.
        literal : callable
            Returns the text of a number.
        attributes : mapping, optional
            Numbers that stand for the attributes.
        """
        known = {n: ast.Name(text) for n, text in names.items()}
        lines = []
        for name, tree in self._steps:
            written = _Writer(known, attributes or {}, literal).visit(_copied(tree))
            target = f"{result}_{name}" if name else result
            lines.append(f"{target} = {ast.unparse(written)}")
            known[name] = ast.Name(target)
        return lines

    def evaluate(self, inputs: Mapping[str, Any], attributes: Attributes | None = None) -> Any:
        """Return what NumPy makes of arrays; the definition that machine code is held against."""
        found: dict[str, Any] = {}
        lines = self.steps({name: name for name in inputs}, "result", repr, attributes)
        scope = {"inf": np.inf, "nan": np.nan, **FUNCTIONS, **inputs}
        exec("\n".join(lines), scope, found)
        return found["result"]


@functools.cache
def _made(text: str, inputs: tuple[str, ...], attributes: tuple[str, ...]) -> Scalar:
    return Scalar(text, inputs, attributes)


def scalar_of(op_type: str, attributes: Attributes) -> Scalar | None:
    """Return the expression of a call of an op; None where it has none."""
    entry = KERNELS.get(op_type)
    text, schema = entry.scalar, entry.schema
    if callable(text):
        text = text(**attributes)
    elif text is None and entry.ufunc is not None:
        names = ", ".join(schema.inputs)
        known = entry.ufunc in FUNCTIONS
        text = f"{entry.ufunc}({names})" if known else _OF_UFUNCS.get(entry.ufunc)
    return None if text is None else _made(text, schema.inputs, tuple(schema.attrs))


class _Writer(ast.NodeTransformer):
    """Puts other names, and numbers for attributes, into an expression."""

    def __init__(
        self, names: Mapping[str, ast.expr], attributes: Attributes, literal: Callable[[Any], str]
    ) -> None:
        self.names, self.attributes, self.literal = names, attributes, literal

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Replace a name."""
        if node.id in self.attributes:
            return ast.Name(self.literal(self.attributes[node.id]))
        return self.names.get(node.id, node)

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        """Write a number."""
        return ast.Name(self.literal(node.value))


def _copied(tree: ast.expr) -> ast.expr:
    return ast.parse(ast.unparse(tree), mode="eval").body


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
            and not (isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS)
        ):
            raise RegistrationError(
                f"the scalar expression {whole!r} has {ast.unparse(node)!r} in it; it is made of "
                f"operators, comparisons and the functions {', '.join(FUNCTIONS)}"
            )
    return tree
