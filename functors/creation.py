"""Tensors made from data, sizes and ranges."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from oneflow_lite.device import CPU, array_module, as_device, to_device
from oneflow_lite.dtype import DType, as_dtype, default_float, scalar_dtype
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, bad_argument
from oneflow_lite.functors.checks import check_int, check_shape, check_tensor
from oneflow_lite.functors.fill_value import fill_value as fill_value_of
from oneflow_lite.functors.out import fill_out, out_options
from oneflow_lite.interpreter import dispatch, dispatch1
from oneflow_lite.op_expr import op_expr
from oneflow_lite.registry import register_functor
from oneflow_lite.tensor import Tensor, make_constant, make_tensor, to_array

_FULL = op_expr("full")
_EMPTY = op_expr("empty")
_ZEROS_LIKE = op_expr("zeros_like")
_ONES_LIKE = op_expr("ones_like")
_ARANGE = op_expr("arange")
_LINSPACE = op_expr("linspace")
_EYE = op_expr("eye")


def tensor(
    data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Make a tensor by copying data.

    Parameters
    ----------
    data : number, nested sequences, NumPy array or Tensor
        Python floats take the default dtype, integers int64; arrays keep their dtype.
    dtype, device, optional
        Of the result.
    requires_grad : bool
        Whether autograd records operations on it.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.tensor([[1.0, 2.5], [3.0, 4.0]])
    tensor([[1.0000, 2.5000],
            [3.0000, 4.0000]])
    >>> flow.tensor([1, 2]).dtype
    dtype('int64')
    """
    target = as_device(device)
    array = to_array("tensor", data, None if dtype is None else as_dtype("tensor", dtype))
    made = make_constant(array if target is CPU else to_device(array, target))
    made.requires_grad = requires_grad
    return made


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Return data as a tensor, sharing memory and history where nothing has to change."""
    if isinstance(data, Tensor):
        return data.to(device=device, dtype=dtype) if device or dtype else data
    if isinstance(data, np.ndarray):
        shared = from_numpy(data)
        return shared.to(device=device, dtype=dtype) if device or dtype else shared
    return tensor(data, dtype=dtype, device=device)


def from_numpy(array: np.ndarray[Any, Any]) -> Tensor:
    """Wrap a NumPy array; the tensor and the array share memory.

    >>> import numpy as np
    >>> import oneflow_lite as flow
    >>> a = np.zeros(2)
    >>> t = flow.from_numpy(a)
    >>> a[0] = 5
    >>> t
    tensor([5., 0.], dtype=float64)
    """
    if not isinstance(array, np.ndarray):
        raise bad_argument(
            ArgumentTypeError,
            "from_numpy",
            "array",
            expected="a NumPy array",
            got=type(array).__name__,
            mend="use flow.tensor(...)",
        )
    dtype = as_dtype("from_numpy", array.dtype)
    if not array.dtype.isnative:
        raise bad_argument(
            ArgumentError,
            "from_numpy",
            "array",
            expected="native byte order",
            got=array.dtype.str,
            mend="convert it with array.astype(array.dtype.newbyteorder('='))",
        )
    if type(array) is not np.ndarray or array.dtype is not dtype:
        array = array.view(dtype, np.ndarray)
    return make_tensor(array)


def from_dlpack(ext_tensor: Any) -> Tensor:
    """Wrap an array of another library, sharing memory, through the DLPack protocol."""
    if not (hasattr(ext_tensor, "__dlpack__") and hasattr(ext_tensor, "__dlpack_device__")):
        raise bad_argument(
            ArgumentTypeError,
            "from_dlpack",
            "ext_tensor",
            expected="an array with the methods __dlpack__ and __dlpack_device__",
            got=type(ext_tensor).__name__,
            mend="use flow.tensor(...)",
        )
    kind = ext_tensor.__dlpack_device__()[0]
    if int(kind) == 2:  # kDLCUDA
        device = as_device("cuda")
        return make_tensor(array_module(device).from_dlpack(ext_tensor))
    return make_tensor(np.from_dlpack(ext_tensor))


def check_sizes(op: str, sizes: tuple[Any, ...], size: Any = None) -> tuple[int, ...]:
    """Return sizes given as ints, as one sequence, or by keyword; raise where one is negative."""
    shape = check_shape(op, sizes if size is None else (size,))
    if any(n < 0 for n in shape):
        raise bad_argument(
            ArgumentError,
            op,
            "size",
            expected="sizes of at least 0",
            got=shape,
            mend="pass sizes of at least 0",
        )
    return shape


def check_real(op: str, argument: str, value: Any) -> Any:
    """Return a finite real number as a Python number; a 0-d tensor counts as its element."""
    if isinstance(value, Tensor) and value.numel() == 1:
        value = value.item()
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (int, float)) and math.isfinite(value):
        return value
    raise bad_argument(
        ArgumentError if isinstance(value, float) else ArgumentTypeError,
        op,
        argument,
        expected="a finite real number",
        got=repr(value),
        mend="pass a Python number",
    )


def _filled(
    name: str,
    shape: tuple[int, ...],
    value: Any,
    dtype: Any,
    device: Any,
    requires_grad: bool,
    out: Tensor | None = None,
) -> Tensor:
    if out is not None:
        dtype, device = out_options(name, out, dtype, device)
    chosen = default_float() if dtype is None else as_dtype(name, dtype)
    attrs = {"shape": shape, "value": value, "dtype": chosen, "device": as_device(device)}
    made: Tensor = dispatch(_FULL, (), attrs).requires_grad_(requires_grad)
    return made if out is None else fill_out(name, out, made)


@register_functor("zeros")
def zeros(
    *sizes: Any,
    size: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return zeros of a size given as ints or as one sequence.

    >>> import oneflow_lite as flow
    >>> flow.zeros(2, 2)
    tensor([[0., 0.],
            [0., 0.]])
    """
    shape = check_sizes("zeros", sizes, size)
    return _filled("zeros", shape, 0, dtype, device, requires_grad, out)


@register_functor("ones")
def ones(
    *sizes: Any,
    size: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return ones of a size given as ints or as one sequence."""
    shape = check_sizes("ones", sizes, size)
    return _filled("ones", shape, 1, dtype, device, requires_grad, out)


@register_functor("full")
def full(
    size: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return a tensor filled with a number, whose kind gives the dtype unless one is given.

    >>> import oneflow_lite as flow
    >>> flow.full((2,), 7)
    tensor([7, 7])
    """
    if out is not None:
        dtype, device = out_options("full", out, dtype, device)
    if isinstance(fill_value, Tensor) and fill_value.ndim == 0:
        fill_value = fill_value.item()
    given = fill_value_of("full", "fill_value", fill_value, np.dtype(complex))  # is it a number?
    chosen = scalar_dtype(fill_value) if dtype is None else as_dtype("full", dtype)
    if chosen.kind != "c":
        given = fill_value_of("full", "fill_value", fill_value, chosen)
    shape = check_sizes("full", (size,))
    return _filled("full", shape, given, chosen, device, requires_grad, out)


@register_functor("empty")
def empty(
    *sizes: Any,
    size: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return an uninitialised tensor."""
    if out is not None:
        dtype, device = out_options("empty", out, dtype, device)
    chosen = default_float() if dtype is None else as_dtype("empty", dtype)
    shape = check_sizes("empty", sizes, size)
    attrs = {"shape": shape, "dtype": chosen, "device": as_device(device)}
    made: Tensor = dispatch(_EMPTY, (), attrs).requires_grad_(requires_grad)
    return made if out is None else fill_out("empty", out, made)


def _like(
    name: str, input: Tensor, value: Any, dtype: Any, device: Any, requires_grad: bool
) -> Tensor:
    check_tensor(name, "input", input)
    dtype = input.dtype if dtype is None else dtype
    device = input.device if device is None else device
    return _filled(name, input.shape, value, dtype, device, requires_grad)


@register_functor("zeros_like")
def zeros_like(
    input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return zeros in the shape, dtype and device of `input`."""
    if dtype is None and device is None:
        made: Tensor = dispatch1(_ZEROS_LIKE, check_tensor("zeros_like", "input", input).detach())
        return made.requires_grad_(requires_grad)
    return _like("zeros_like", input, 0, dtype, device, requires_grad)


@register_functor("ones_like")
def ones_like(
    input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return ones in the shape, dtype and device of `input`."""
    if dtype is None and device is None:
        made: Tensor = dispatch1(_ONES_LIKE, check_tensor("ones_like", "input", input).detach())
        return made.requires_grad_(requires_grad)
    return _like("ones_like", input, 1, dtype, device, requires_grad)


@register_functor("full_like")
def full_like(
    input: Tensor,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a number in the shape, dtype and device of `input`."""
    check_tensor("full_like", "input", input)
    chosen = input.dtype if dtype is None else as_dtype("full_like", dtype)
    given = fill_value_of("full_like", "fill_value", fill_value, chosen)
    return _like("full_like", input, given, chosen, device, requires_grad)


@register_functor("empty_like")
def empty_like(
    input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return an uninitialised tensor in the shape, dtype and device of `input`."""
    check_tensor("empty_like", "input", input)
    dtype = input.dtype if dtype is None else dtype
    device = input.device if device is None else device
    return empty(input.shape, dtype=dtype, device=device, requires_grad=requires_grad)


@register_functor("arange")
def arange(
    start: Any = 0,
    end: Any = None,
    step: Any = 1,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return numbers from `start` (0 when only one bound is given) up to, not with, `end`.

    >>> import oneflow_lite as flow
    >>> flow.arange(4), flow.arange(1, 2, 0.25)
    (tensor([0, 1, 2, 3]), tensor([1.0000, 1.2500, 1.5000, 1.7500]))
    """
    if out is not None:
        dtype, device = out_options("arange", out, dtype, device)
    if end is None:
        start, end = 0, start
    given = {"start": start, "end": end, "step": step}
    start, end, step = bounds = [check_real("arange", n, v) for n, v in given.items()]
    if step == 0 or (end - start) * step < 0:
        raise bad_argument(
            ArgumentError,
            "arange",
            "step",
            expected="a step that leads from start to end",
            got=f"start {start}, end {end}, step {step}",
            mend="change its sign or size",
        )
    whole = all(isinstance(v, int) for v in bounds)
    inferred: DType = np.dtype(np.int64) if whole else default_float()
    chosen = inferred if dtype is None else as_dtype("arange", dtype)
    count = math.ceil((end - start) / step)
    attrs = {
        "start": start,
        "end": end if whole else start + count * step - step / 2 if count else start,
        "step": step,
        "dtype": chosen,
        "device": as_device(device),
    }
    made: Tensor = dispatch(_ARANGE, (), attrs).requires_grad_(requires_grad)
    return made if out is None else fill_out("arange", out, made)


@register_functor("linspace")
def linspace(
    start: Any,
    end: Any,
    steps: int,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return `steps` numbers at equal distances from `start` to `end`, both included.

    >>> import oneflow_lite as flow
    >>> flow.linspace(0, 1, 3)
    tensor([0.0000, 0.5000, 1.0000])
    """
    if out is not None:
        dtype, device = out_options("linspace", out, dtype, device)
    attrs = {
        "start": float(check_real("linspace", "start", start)),
        "end": float(check_real("linspace", "end", end)),
        "steps": check_int("linspace", "steps", steps, 0),
        "dtype": default_float() if dtype is None else as_dtype("linspace", dtype),
        "device": as_device(device),
    }
    made: Tensor = dispatch(_LINSPACE, (), attrs).requires_grad_(requires_grad)
    return made if out is None else fill_out("linspace", out, made)


@register_functor("eye")
def eye(
    n: int,
    m: int | None = None,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return the identity matrix of n rows and m (or n) columns."""
    if out is not None:
        dtype, device = out_options("eye", out, dtype, device)
    attrs = {
        "n": check_int("eye", "n", n, 0),
        "m": check_int("eye", "m", n if m is None else m, 0),
        "dtype": default_float() if dtype is None else as_dtype("eye", dtype),
        "device": as_device(device),
    }
    made: Tensor = dispatch(_EYE, (), attrs).requires_grad_(requires_grad)
    return made if out is None else fill_out("eye", out, made)


def _new(
    name: str, input: Tensor, size: Any, value: Any, dtype: Any, device: Any, requires_grad: bool
) -> Tensor:
    check_tensor(name, "input", input)
    dtype = input.dtype if dtype is None else dtype
    device = input.device if device is None else device
    return _filled(name, check_shape(name, size), value, dtype, device, requires_grad)


@register_functor("new_zeros")
def new_zeros(
    input: Tensor, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return zeros of a size, in the dtype and on the device of `input`."""
    return _new("new_zeros", input, size, 0, dtype, device, requires_grad)


@register_functor("new_ones")
def new_ones(
    input: Tensor, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return ones of a size, in the dtype and on the device of `input`."""
    return _new("new_ones", input, size, 1, dtype, device, requires_grad)


@register_functor("new_full")
def new_full(
    input: Tensor,
    size: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a number in a size, in the dtype and on the device of `input`."""
    return _new("new_full", input, (size,), fill_value, dtype, device, requires_grad)


@register_functor("new_tensor")
def new_tensor(
    input: Tensor, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Make a tensor by copying data, in the dtype and on the device of `input`."""
    check_tensor("new_tensor", "input", input)
    dtype = input.dtype if dtype is None else dtype
    device = input.device if device is None else device
    return tensor(data, dtype=dtype, device=device, requires_grad=requires_grad)
