"""Tensors made from data, sizes and ranges."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from oneflow_lite.bfloat16_arrays import adopted
from oneflow_lite.device import CPU, array_module, as_device, to_device
from oneflow_lite.dtype import DType, as_dtype, default_float, scalar_dtype
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, DTypeError
from oneflow_lite.functors.checks import check_shape, check_tensor, wrong
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.domains import AnyTensor, Count
from oneflow_lite.functors.fill_value import fill_value as fill_value_of
from oneflow_lite.functors.out import fill_out, out_options
from oneflow_lite.interpreter import dispatch, dispatch1
from oneflow_lite.memory_format import check_memory_format
from oneflow_lite.op_expr import op_expr
from oneflow_lite.tensor import Tensor, make_constant, make_tensor, to_array

_FULL = op_expr("full")
_EMPTY = op_expr("empty")
_ZEROS_LIKE = op_expr("zeros_like")
_ONES_LIKE = op_expr("ones_like")
_ARANGE = op_expr("arange")
_LINSPACE = op_expr("linspace")
_LOGSPACE = op_expr("logspace")
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
        raise wrong(
            "from_numpy",
            "array",
            "a NumPy array",
            type(array).__name__,
            "use flow.tensor(...)",
            ArgumentTypeError,
        )
    dtype = as_dtype("from_numpy", array.dtype)
    if not array.dtype.isnative:
        raise wrong(
            "from_numpy",
            "array",
            "native byte order",
            array.dtype.str,
            "convert it with array.astype(array.dtype.newbyteorder('='))",
            ArgumentError,
        )
    if type(array) is not np.ndarray or array.dtype is not dtype:
        array = adopted(array.view(dtype, np.ndarray))
    return make_tensor(array)


def from_dlpack(ext_tensor: Any) -> Tensor:
    """Wrap an array of another library, sharing memory, through the DLPack protocol."""
    if not (hasattr(ext_tensor, "__dlpack__") and hasattr(ext_tensor, "__dlpack_device__")):
        raise wrong(
            "from_dlpack",
            "ext_tensor",
            "an array with the methods __dlpack__ and __dlpack_device__",
            type(ext_tensor).__name__,
            "use flow.tensor(...)",
            ArgumentTypeError,
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
        at_least = "sizes of at least 0"
        raise wrong(op, "size", at_least, shape, f"pass {at_least}", ArgumentError)
    return shape


def check_real(op: str, argument: str, value: Any) -> Any:
    """Return a finite real number as a Python number; a 0-d tensor counts as its element."""
    if isinstance(value, Tensor) and value.numel() == 1:
        value = value.item()
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (int, float)) and math.isfinite(value):
        return value
    kind = ArgumentError if isinstance(value, float) else ArgumentTypeError
    raise wrong(op, argument, "a finite real number", repr(value), "pass a Python number", kind)


def made(
    op: Any,
    name: str,
    options: tuple[Any, Any, bool, Tensor | None],
    inferred: DType | None = None,
    floats: bool = False,
    **attrs: Any,
) -> Tensor:
    """Dispatch an op that creates, with the options dtype, device, requires_grad and out.

    The dtype is the given one, or that of `out`, or inferred; with `floats` a floating one.
    """
    dtype, device, requires_grad, out = options
    if out is not None:
        dtype, device = out_options(name, out, dtype, device)
    chosen = (inferred or default_float()) if dtype is None else as_dtype(name, dtype)
    if floats and chosen.kind not in "fc":
        mend = "use randint for integers"
        raise wrong(name, "dtype", "a floating point dtype", chosen, mend, DTypeError)
    attrs.update(dtype=chosen, device=as_device(device))
    result: Tensor = dispatch(op, (), attrs).requires_grad_(requires_grad)
    return result if out is None else fill_out(name, out, result)


def declared(name: str, summary: str, author: Callable[..., Tensor], **options: Any) -> Any:
    """Declare a function that several names share under one of them."""
    author.__name__ = author.__qualname__ = name
    author.__doc__ = summary
    return functor(options.pop("on", "flow"), **options)(author)


def _sized(name: str, summary: str, op: Any, samples: str = "2, 3; size=(2,)", **attrs: Any) -> Any:
    """Declare a function of sizes, given as ints or as one sequence."""

    def author(
        *sizes: Any,
        size: Any = None,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        out: Tensor | None = None,
    ) -> Tensor:
        shape = check_sizes(name, sizes, size)
        return made(op, name, (dtype, device, requires_grad, out), shape=shape, **attrs)

    return declared(name, summary, author, samples=samples)


def like(name: str, summary: str, make: Callable[..., Tensor]) -> Any:
    """Declare a function that makes a tensor of another's shape, dtype and device."""

    def author(
        input: Any,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        memory_format: Any = None,
    ) -> Tensor:
        check_tensor(name, "input", input)
        if memory_format is not None:
            check_memory_format(name, memory_format)
        dtype = input.dtype if dtype is None else dtype
        device = input.device if device is None else device
        return make(input.shape, dtype=dtype, device=device, requires_grad=requires_grad)

    samples = "fixed(x(2, 3)); fixed(i(2, 3)), dtype=float32"
    return declared(name, summary, author, samples=samples if name != "empty_like" else "")


def _new(name: str, summary: str, make: Callable[..., Tensor]) -> Any:
    """Declare a method that makes a tensor of some size in the dtype and on the device of one."""

    def author(
        input: Any,
        *size: Any,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
    ) -> Tensor:
        check_tensor(name, "input", input)
        dtype = input.dtype if dtype is None else dtype
        device = input.device if device is None else device
        shape = check_shape(name, size)
        return make(shape, dtype=dtype, device=device, requires_grad=requires_grad)

    samples = "fixed(x(2)), 2, 3" if name != "new_empty" else ""
    return declared(name, summary, author, on="Tensor", samples=samples)


zeros = _sized(
    "zeros",
    """Return zeros of a size given as ints or as one sequence.

    >>> flow.zeros(2, 2)
    tensor([[0., 0.],
            [0., 0.]])
    """,
    _FULL,
    value=0,
)
ones = _sized("ones", "Return ones of a size given as ints or as one sequence.", _FULL, value=1)
empty = _sized("empty", "Return an uninitialised tensor.", _EMPTY, samples="")
empty_like = like(
    "empty_like", "Return an uninitialised tensor in the shape, dtype and device of another.", empty
)
new_zeros = _new("new_zeros", "Return zeros of a size, in the dtype and on the device.", zeros)
new_ones = _new("new_ones", "Return ones of a size, in the dtype and on the device.", ones)
new_empty = _new("new_empty", "Return an uninitialised tensor of a size.", empty)


def _constant_like(name: str, summary: str, op: Any, make: Callable[..., Tensor]) -> Any:
    """Declare what gradient rules call often: one op, unless a dtype or device is given."""

    def author(
        input: Any,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        memory_format: Any = None,
    ) -> Tensor:
        check_tensor(name, "input", input)
        if memory_format is not None:
            check_memory_format(name, memory_format)
        if dtype is None and device is None:
            result: Tensor = dispatch1(op, input.detach())
            return result.requires_grad_(requires_grad)
        return make(input, input.shape, dtype=dtype, device=device, requires_grad=requires_grad)

    return declared(name, summary, author, samples="fixed(x(2, 3)); fixed(i(2, 3)), dtype=float32")


_AS = "in the shape, dtype and device of `input`."
zeros_like = _constant_like("zeros_like", f"Return zeros {_AS}", _ZEROS_LIKE, new_zeros)
ones_like = _constant_like("ones_like", f"Return ones {_AS}", _ONES_LIKE, new_ones)


@functor("flow", samples="(2, 3), 7; (2,), 0.5, dtype=float64")
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
    return made(_FULL, "full", (chosen, device, requires_grad, out), shape=shape, value=given)


@functor("flow", samples="fixed(x(2, 3)), 7; fixed(i(2, 3)), 0.5, dtype=float32")
def full_like(
    input: AnyTensor,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Return a number in the shape, dtype and device of `input`."""
    check_memory_format("full_like", memory_format)
    return _filled("full_like", input, input.shape, fill_value, (dtype, device, requires_grad))


@functor("Tensor", samples="fixed(x(2)), (2, 3), 7")
def new_full(
    input: AnyTensor,
    size: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a number in a size, in the dtype and on the device of `input`."""
    return _filled("new_full", input, (size,), fill_value, (dtype, device, requires_grad))


def _filled(name: str, input: Tensor, size: Any, value: Any, options: Any) -> Tensor:
    dtype, device, requires_grad = options
    chosen = input.dtype if dtype is None else as_dtype(name, dtype)
    given = fill_value_of(name, "fill_value", value, chosen)
    options = (chosen, input.device if device is None else device, requires_grad, None)
    return made(_FULL, name, options, shape=check_shape(name, size), value=given)


@functor("Tensor", samples="fixed(x(2)), [1.5, 2.0]")
def new_tensor(
    input: AnyTensor,
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Make a tensor by copying data, in the dtype and on the device of `input`."""
    dtype = input.dtype if dtype is None else dtype
    device = input.device if device is None else device
    return tensor(data, dtype=dtype, device=device, requires_grad=requires_grad)


@functor("flow", samples="4; 1, 2, 0.25; 5, 0, -2, dtype=float64")
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

    >>> flow.arange(4), flow.arange(1, 2, 0.25)
    (tensor([0, 1, 2, 3]), tensor([1.0000, 1.2500, 1.5000, 1.7500]))
    """
    if end is None:
        start, end = 0, start
    given = {"start": start, "end": end, "step": step}
    start, end, step = bounds = [check_real("arange", n, v) for n, v in given.items()]
    if step == 0 or (end - start) * step < 0:
        got = f"start {start}, end {end}, step {step}"
        expected, mend = "a step that leads from start to end", "change its sign or size"
        raise wrong("arange", "step", expected, got, mend, ArgumentError)
    whole = all(isinstance(v, int) for v in bounds)
    count = math.ceil((end - start) / step)
    return made(
        _ARANGE,
        "arange",
        (dtype, device, requires_grad, out),
        np.dtype(np.int64) if whole else None,
        start=start,
        end=end if whole else start + count * step - step / 2 if count else start,
        step=step,
    )


@functor("flow", samples="0, 1, 3; -2.5, 4, steps=5, dtype=float64; 0, 1, 0")
def linspace(
    start: Any,
    end: Any,
    steps: Count,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return `steps` numbers at equal distances from `start` to `end`, both included.

    >>> flow.linspace(0, 1, 3)
    tensor([0.0000, 0.5000, 1.0000])
    """
    bounds: dict[str, Any] = {
        "start": float(check_real("linspace", "start", start)),
        "end": float(check_real("linspace", "end", end)),
    }
    options = (dtype, device, requires_grad, out)
    return made(_LINSPACE, "linspace", options, steps=steps, **bounds)


@functor("flow", samples="0, 2, 3; -1.5, 1, 4, 2.0, dtype=float64")
def logspace(
    start: Any,
    end: Any,
    steps: Count,
    base: Any = 10.0,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return `steps` powers of `base`, with exponents at equal distances from `start` to `end`.

    >>> flow.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    given = {"start": start, "end": end, "base": base}
    attrs: dict[str, Any] = {n: float(check_real("logspace", n, v)) for n, v in given.items()}
    return made(_LOGSPACE, "logspace", (dtype, device, requires_grad, out), steps=steps, **attrs)


@functor("flow", samples="2; 2, 3, dtype=float64")
def eye(
    n: Count,
    m: Count | None = None,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return the identity matrix of n rows and m (or n) columns."""
    return made(_EYE, "eye", (dtype, device, requires_grad, out), n=n, m=n if m is None else m)
