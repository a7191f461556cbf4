"""The functions that translate ops: `register_onnx`, a registry like that of kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from oneflow_lite.ops.registry import Registry

Function = TypeVar("Function", bound=Callable[..., Any])
TRANSLATIONS: Registry[Callable[..., Any]] = Registry("ONNX translation")


class NotTranslated(Exception):
    """A translation cannot serve this call of its op; the text says why.

    `export` collects these, and names all ops that cannot be translated in one error.
    """


def register_onnx(*ops: str) -> Callable[[Function], Function]:
    """Register a function that translates calls of ops.

    It is called as `function(g, *inputs, **attrs)`: the graph, the inputs of the op's kernel
    (`Value`, or None for an omitted input), and the attributes. It adds nodes with
    `g.OpName(*inputs, attribute=...)` and returns the name of the output, or a tuple of names, with
    None for outputs that only a backward pass needs.

    Raises
    ------
    RegistrationError
        When an op has a translation already.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> @flow.register_op("doc_cube_exported")
    ... def doc_cube_exported(xp, x):
    ...     return x * x * x
    >>> @flow.onnx.register_onnx("doc_cube_exported")
    ... def _(g, x):
    ...     return g.Mul(g.Mul(x, x), x)
    >>> model = flow.onnx.export(doc_cube_exported, flow.ones(2))
    >>> [node.op_type for node in model.graph.node]
    ['Mul', 'Mul', 'Identity']
    """

    def register(function: Function) -> Function:
        for op in ops:
            TRANSLATIONS.add(op, function)
        return function

    return register
