"""`torch._foreach_*`: an op on each tensor of a list, as optimizers of packages call it.

All follow from the methods of Tensor by one rule: a list gives each tensor an argument of its own,
any other argument serves all tensors. `names.py` has the names.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from oneflow_lite.errors import ArgumentError, ArgumentTypeError, arg_error
from oneflow_lite.ops.registry import FUNCTORS
from oneflow_lite.tensors.tensor import Tensor

_METHODS = {
    "maximum": "clamp_min",  # which takes a number, too
    "maximum_": "clamp_min_",
    "minimum": "clamp_max",
    "minimum_": "clamp_max_",
}
_KEYWORDS = ("alpha", "dtype", "memory_format", "non_blocking", "ord")


def _norm(x: Tensor, ord: Any = 2, *, dtype: Any = None) -> Any:
    return FUNCTORS.get("linalg_vector_norm")(x, ord, dtype=dtype)


def _powsum(x: Tensor, ord: Any = 2, *, dtype: Any = None) -> Any:
    return x.abs().pow(ord).sum(dtype=dtype)


@functools.cache
def _of_lists(name: str) -> Callable[..., Any]:
    """Return the function of lists by the name of the function of tensors."""
    own = {"norm": _norm, "powsum": _powsum}.get(name)
    method: Any = own or getattr(Tensor, _METHODS.get(name, name))
    op = f"_foreach_{name}"

    def each(*args: Any, **keywords: Any) -> Any:
        kept = {key: value for key, value in keywords.items() if key in _KEYWORDS}
        args = (*args, *(value for key, value in keywords.items() if key not in _KEYWORDS))
        # An exponent of which each power is taken may be the first list.
        lists = [x for x in args if isinstance(x, (list, tuple))]
        if not lists or not (name == "pow" or lists[0] is args[0]):
            got = type(args[0]).__name__ if args else "nothing"
            hint = "call the method of the tensor itself"
            raise arg_error(op, "self", "a list of tensors", got, hint, ArgumentTypeError)
        count = len(lists[0])
        if not count or any(len(x) != count for x in lists):
            got = ", ".join(str(len(x)) for x in lists)
            expected = "lists of one length, and at least one tensor"
            raise arg_error(op, "self", expected, got, "pair each with its own", ArgumentError)
        columns = [
            # The numbers of `addcmul` and `addcdiv` may be a tensor.
            x.unbind() if position == 3 and isinstance(x, Tensor) and x.ndim else x
            for position, x in enumerate(args)
        ]
        found = []
        for i in range(count):
            row = [x[i] if isinstance(x, (list, tuple)) else x for x in columns]
            scale = {"value": row.pop()} if len(row) == 4 else {}
            found.append(method(*row, **scale, **kept))
        return args[0] if name.endswith("_") else tuple(found)

    each.__name__ = each.__qualname__ = op
    each.__module__ = __name__
    each.__doc__ = f"Apply `Tensor.{name}` to each tensor of a list; other lists give it its own."
    return each


def __getattr__(name: str) -> Any:
    if name.startswith("_foreach_"):
        return _of_lists(name.removeprefix("_foreach_"))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
