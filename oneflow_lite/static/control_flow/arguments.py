"""Checks of the arguments of `cond`, `switch_case` and `while_loop`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from oneflow_lite.errors import ArgumentError, ArgumentTypeError, arg_error, type_error
from oneflow_lite.tensors.tensor import Tensor

Branch = Callable[[], Any]


def as_list(result: Any, count: int) -> list[Any]:
    """Return the result of a loop's body as a list, with as many values as the body takes."""
    values = list(result) if isinstance(result, (list, tuple)) else [result]
    if count == 1 and len(values) != 1:
        values = [result]
    if len(values) != count:
        raise arg_error(
            "while_loop",
            "body",
            expected=f"a function that returns {count} loop variable(s), as it takes",
            got=f"{len(values)}",
            hint="return all of them, those that stay the same too",
            kind=ArgumentError,
        )
    return values


def check_callable(op: str, argument: str, function: Any, optional: bool = False) -> None:
    """Check that an argument is a function, or None where it may be left out."""
    if not callable(function) and not (optional and function is None):
        raise type_error(op, argument, "a function", function, "wrap the computation in a lambda")


def check_loop_vars(loop_vars: Any) -> None:
    """Check that loop variables are a list or tuple that is not empty."""
    if not isinstance(loop_vars, (list, tuple)) or not loop_vars:
        raise arg_error(
            "while_loop",
            "loop_vars",
            expected="a list or tuple with at least one entry",
            got=repr(loop_vars),
            hint="put the loop variables into a list",
            kind=ArgumentTypeError,
        )


def check_one_element(op: str, argument: str, value: Any) -> None:
    """Check that a predicate or index has one element."""
    if isinstance(value, Tensor) and value.numel() != 1:
        raise arg_error(
            op,
            argument,
            expected="one element",
            got=f"shape {value.shape}",
            hint="reduce it, as with all() or any()",
            kind=ArgumentError,
        )


def functions_by_index(branch_fns: Any) -> dict[int, Branch]:
    """Return the functions of a switch by their index."""
    if isinstance(branch_fns, Mapping):
        pairs = list(branch_fns.items())
    elif isinstance(branch_fns, (list, tuple)):
        pairs = [
            x if isinstance(x, tuple) and len(x) == 2 else (i, x) for i, x in enumerate(branch_fns)
        ]
    else:
        pairs = []
    functions: dict[int, Branch] = {}
    for pair in pairs:
        if type(pair[0]) is not int or pair[0] in functions:
            raise arg_error(
                "switch_case",
                "branch_fns",
                expected="functions with an int each, all of them different",
                got=repr(pair),
                hint="pass {0: f, 1: g}",
                kind=ArgumentError,
            )
        check_callable("switch_case", f"branch_fns[{pair[0]}]", pair[1])
        functions[pair[0]] = pair[1]
    if not functions:
        raise arg_error(
            "switch_case",
            "branch_fns",
            expected="a dict or sequence with at least one function",
            got=repr(branch_fns),
            hint="pass {0: f, 1: g}",
            kind=ArgumentTypeError,
        )
    return functions
