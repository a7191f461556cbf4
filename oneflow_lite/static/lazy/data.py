"""`data` declares the variables of a Program that are fed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from oneflow_lite.arrays.dtype import DTypeLike, as_dtype
from oneflow_lite.arrays.dtype_object import CHAR
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, DTypeError, arg_error
from oneflow_lite.functors.declaring.checks import check_int
from oneflow_lite.static.ir.program import VarDesc
from oneflow_lite.static.lazy.default_programs import lazy_interpreter
from oneflow_lite.tensors.tensor import Tensor


def data(name: str, shape: Any, dtype: DTypeLike = "float32") -> Tensor:
    """Add a variable that every run is fed, and return it as a symbolic tensor.

    Parameters
    ----------
    name : str
        The key of the feed.
    shape : sequence of int
        The sizes, all of them known: there is one Program for each shape.
    dtype : dtype or str

    Raises
    ------
    CaptureError
        Outside `program_guard`.
    ArgumentError
        When the name is taken, or a size is None or negative.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> with flow.static.program_guard(flow.static.Program()):
    ...     x = flow.static.data("x", [4, 2])
    >>> x.name, x.shape, x.dtype
    ('x', (4, 2), dtype('float32'))
    """
    lazy = lazy_interpreter("data")
    if not name or type(name) is not str:
        raise arg_error(
            "data",
            "name",
            expected="a str that is not empty",
            got=repr(name),
            hint="name the variable as it is fed",
            kind=ArgumentTypeError,
        )
    if not isinstance(shape, Iterable):
        raise arg_error(
            "data",
            "shape",
            expected="a sequence of ints",
            got=repr(shape),
            hint="pass a list such as [64, 16]",
            kind=ArgumentTypeError,
        )
    sizes = tuple(shape)
    if any(size is None or (isinstance(size, int) and size < 0) for size in sizes):
        raise arg_error(
            "data",
            "shape",
            expected="sizes that are known",
            got=list(sizes),
            hint="capture one Program for each shape, or use flow.compile, which records again "
            "for a new one by itself",
            kind=ArgumentError,
        )
    sizes = tuple([check_int("data", "shape", size, 0) for size in sizes])
    chosen = as_dtype("data", dtype)
    if chosen.char == CHAR:
        raise arg_error(
            "data",
            "dtype",
            expected="a dtype of NumPy",
            got=chosen,
            hint="use flow.float16 or flow.float32; bfloat16 is computed eagerly",
            kind=DTypeError,
        )
    desc = VarDesc(name, sizes, chosen, need_check_feed=True)
    return lazy.data(desc)
