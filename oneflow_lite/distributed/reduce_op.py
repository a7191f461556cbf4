"""The reductions of collectives, and the dtypes that have them."""

from __future__ import annotations

import enum
from typing import Any

from oneflow_lite.errors import ArgumentError, ArgumentTypeError, DTypeError, arg_error


class ReduceOp(enum.Enum):
    """Ways to reduce the ranks' elements: sum, mean, product, extreme, bits.

    Of booleans the sum is "or", the product "and", as in PyTorch.
    """

    SUM = "sum"
    AVG = "avg"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"
    BAND = "band"
    BOR = "bor"
    BXOR = "bxor"


setattr(ReduceOp, "RedOpType", ReduceOp)  # noqa: B010  # PyTorch's name of the type in annotations


def supports_complex(reduceOp: ReduceOp) -> bool:
    """Return whether complex numbers have a reduction: sums, means and products."""
    return reduceOp in (ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PRODUCT)


def reduction(op: str, value: Any, dtype: Any) -> str:
    """Return the name of a reduction; check that it has a meaning for the dtype."""
    if isinstance(value, str) and value.upper() in ReduceOp.__members__:
        value = ReduceOp[value.upper()]
    if not isinstance(value, ReduceOp):
        hint = "pass ReduceOp.SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR or BXOR"
        got = type(value).__name__ if not isinstance(value, str) else repr(value)
        kind = ArgumentError if isinstance(value, str) else ArgumentTypeError
        raise arg_error(op, "op", "a ReduceOp", got, hint, kind)
    name: str = value.value
    kinds = {"avg": "fc", "min": "biuf", "max": "biuf", "band": "biu", "bor": "biu", "bxor": "biu"}
    if dtype.kind not in kinds.get(name, "biufc"):
        expected, hint = f"a dtype that has {value.name}", "convert the tensor, or reduce otherwise"
        raise arg_error(op, "tensor", expected, dtype, hint, DTypeError)
    return name
