"""Tensors made from data, sizes and ranges."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from oneflow_lite.arrays.bfloat16_arrays import adopted
from oneflow_lite.arrays.device import CPU, DeviceLike, array_module, as_device, to_device
from oneflow_lite.arrays.dtype import (
    DType,
    DTypeLike,
    as_dtype,
    complex128,
    default_float,
    int64,
    scalar_dtype,
    to_complex,
)
from oneflow_lite.arrays.memory_format import check_memory_format
from oneflow_lite.arrays.refusals import guarded
from oneflow_lite.arrays.size import Size
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError, arg_error
from oneflow_lite.functors.declaring.checks import check_int, check_shape, check_tensor
from oneflow_lite.functors.declaring.declare import (
    Declaration,
    Options,
    document,
    keyword,
    with_options,
)
from oneflow_lite.functors.declaring.domains import (
    AnyNumber,
    AnyTensor,
    Count,
    Domain,
    GivenTensor,
    IntOrInts,
    TensorOrNumber,
    attribute,
    flag,
)
from oneflow_lite.functors.declaring.fill_value import fill_value as fill_value_of
from oneflow_lite.functors.declaring.out import fill_out, out_dtype, out_options
from oneflow_lite.interpreter.dispatch import dispatch, dispatch1
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.ops.registry import FUNCTORS
from oneflow_lite.tensors.caller_warnings import warn_caller
from oneflow_lite.tensors.spellings import as_number
from oneflow_lite.tensors.tensor import Tensor, make_constant, make_marked, to_array
from oneflow_lite.tensors.tensor_methods import layout, strided


def check_layout(op: str, value: Any) -> None:
    """Raise unless a layout is `flow.strided`, that of dense tensors."""
    if value is not strided:
        hint = "make it dense, and call to_sparse()"
        raise arg_error(op, "layout", "flow.strided", repr(value), hint, ArgumentError)


def check_not_pinned(op: str, value: Any) -> None:
    """Raise for pin_memory=True: memory is pinned only while it is copied to a device."""
    if value:
        raise arg_error(op, "pin_memory", "False", value, "leave it out", ArgumentError)


def tensor(
    data: Any,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    placement: Any = None,
    sbp: Any = None,
) -> Tensor:
    """Make a tensor by copying data.

    data: numbers, nested sequences, a NumPy array or a Tensor.
    dtype: by default that of an array or a Tensor, int64 for Python integers, and the default dtype
        for Python floats.
    device: by default the default device.
    requires_grad: record the ops on the tensor, for gradients.
    pin_memory: False: memory is pinned for transfers only.
    placement, sbp: make a global tensor of the data; see `oneflow_lite.placement`.

    >>> flow.tensor([[1.0, 2.5], [3.0, 4.0]])
    tensor([[1.0000, 2.5000],
            [3.0000, 4.0000]])
    """
    check_not_pinned("tensor", pin_memory)
    if placement is not None:
        given: dict[str, Any] = {"dtype": dtype, "requires_grad": requires_grad}
        return _on_ranks("tensor", placement, sbp, lambda more: tensor(data, **given))
    target = as_device(device)
    array = to_array("tensor", data, None if dtype is None else as_dtype("tensor", dtype))
    made = make_constant(array if target is CPU else to_device(array, target))
    made.requires_grad = requires_grad
    return made


tensor.__doc__ = document(Declaration(tensor))


def as_tensor(
    data: Any, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """Return data as a tensor, sharing memory and history where nothing has to change.

    device: by default that of a tensor; anything else goes to the default device.
    """
    if isinstance(data, np.ndarray):
        data, device = from_numpy(data), as_device(device)
    if isinstance(data, Tensor):
        return data.to(device=device, dtype=dtype) if device or dtype else data
    return tensor(data, dtype=dtype, device=device)


def from_numpy(array: np.ndarray[Any, Any]) -> Tensor:
    """Wrap a NumPy array; the tensor and the array share memory.

    >>> import numpy as np
    >>> import oneflow_lite as flow
    >>> array = np.zeros(2)
    >>> shared = flow.from_numpy(array)
    >>> array[0] = 5
    >>> shared
    tensor([5., 0.], dtype=float64)
    """
    op = "from_numpy"
    if not isinstance(array, np.ndarray):
        got, hint = type(array).__name__, "use flow.tensor(...)"
        raise arg_error(op, "array", "a NumPy array", got, hint, ArgumentTypeError)
    dtype = as_dtype(op, array.dtype)
    if not array.dtype.isnative:
        hint = "convert it with array.astype(array.dtype.newbyteorder('='))"
        raise arg_error(op, "array", "native byte order", array.dtype.str, hint, ArgumentError)
    if type(array) is not np.ndarray or array.dtype is not dtype:
        array = adopted(array.view(dtype, np.ndarray))
    return make_marked(array)


@guarded
def from_dlpack(ext_tensor: Any) -> Tensor:
    """Wrap an array of another library, sharing memory, through the DLPack protocol."""
    if not (hasattr(ext_tensor, "__dlpack__") and hasattr(ext_tensor, "__dlpack_device__")):
        expected = "an array with the methods __dlpack__ and __dlpack_device__"
        got, hint = type(ext_tensor).__name__, "use flow.tensor(...)"
        raise arg_error("from_dlpack", "ext_tensor", expected, got, hint, ArgumentTypeError)
    on_cuda = int(ext_tensor.__dlpack_device__()[0]) == 2  # kDLCUDA
    xp = array_module(as_device("cuda")) if on_cuda else np
    return make_marked(xp.from_dlpack(ext_tensor))


@guarded
def asarray(
    obj: Any,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """Return anything as a tensor, sharing memory where it can be shared.

    obj: a tensor, a NumPy array or scalar, an object with `__dlpack__`, a buffer (read as elements
    of `dtype`), or numbers in nested sequences.
    device: by default that of a tensor, or of memory on a CUDA device; anything else goes to the
    default device.
    copy: True always copies, False raises where a copy is needed.
    requires_grad: by default that of `obj`; False cuts a tensor off from its history.

    Raises `ArgumentError` when `copy=False` cannot be kept.

    >>> import numpy as np
    >>> import oneflow_lite as flow
    >>> array = np.zeros(2)
    >>> shared = flow.asarray(array)
    >>> array[0] = 1
    >>> shared
    tensor([1., 0.], dtype=float64)
    """
    dtype = None if dtype is None else as_dtype("asarray", dtype)
    is_array = isinstance(obj, np.ndarray)
    shared: Tensor | None = None
    if isinstance(obj, Tensor):
        shared = obj
    elif is_array and obj.dtype.isnative and obj.dtype.kind in "biufc":
        shared = from_numpy(obj)
    elif not is_array and not isinstance(obj, np.generic) and hasattr(obj, "__dlpack__"):
        shared = from_dlpack(obj)
    elif isinstance(obj, (bytes, bytearray, memoryview)):
        shared = frombuffer(obj, dtype=default_float() if dtype is None else dtype)
    if shared is None:
        if copy is False:
            raise _not_shared_error(f"a {type(obj).__name__}")
        made = tensor(obj, dtype=dtype, device=device)
        return made.requires_grad_() if requires_grad else made
    stays = device is None and (shared is obj or shared.is_cuda)
    place = shared.device if stays else as_device(device)
    result = shared.to(place, shared.dtype if dtype is None else dtype)
    if result is not shared and copy is False:
        raise _not_shared_error(f"{shared.dtype} on {shared.device}")
    if copy and result is shared:
        result = shared.clone()
    if requires_grad is False and result.requires_grad:
        result = result.detach()
    return result.requires_grad_() if requires_grad and not result.requires_grad else result


def _not_shared_error(got: str) -> Exception:
    expected = "what shares memory, as copy=False asks"
    return arg_error("asarray", "obj", expected, got, "leave copy= out", ArgumentError)


@guarded
def frombuffer(
    buffer: Any, *, dtype: DTypeLike, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """Return the bytes of a buffer as a tensor of one dimension that shares its memory.

    buffer: an object with Python's buffer protocol, as a bytearray; of one that cannot be written
    the tensor cannot be written either.
    count: the number of elements; -1 takes all bytes.
    offset: the bytes to leave out at the start.

    Raises `ArgumentError` when the bytes are too few, or no whole number of elements.

    >>> import oneflow_lite as flow
    >>> flow.frombuffer(bytearray([1, 0, 2, 0]), dtype=flow.int16)
    tensor([1, 2], dtype=int16)
    """
    dtype = as_dtype("frombuffer", dtype)
    try:
        length = memoryview(buffer).nbytes
    except TypeError:
        expected, got = "an object with the buffer protocol", type(buffer).__name__
        hint = "use flow.tensor(...)"
        raise arg_error("frombuffer", "buffer", expected, got, hint, ArgumentError) from None
    size, left = dtype.itemsize, length - offset
    wrong: tuple[str, str, Any] | None = None
    if not length or not count:
        wrong = "buffer", "bytes, and a count that is not 0", f"{length} bytes, count {count}"
    elif not 0 <= offset < length:
        wrong = "offset", f"0 to {length - 1}, as the buffer has {length} bytes", offset
    elif count < 0 and left % size:
        wrong = "buffer", f"a multiple of {size} bytes after the offset", left
    elif count > 0 and count * size > left:
        wrong = "count", f"at most {left // size} elements of {size} bytes", count
    if wrong is not None:
        hint = "change count or offset"
        raise arg_error("frombuffer", wrong[0], wrong[1], wrong[2], hint, ArgumentError)
    array = np.frombuffer(buffer, dtype, -1 if count < 0 else count, offset)
    return from_numpy(array).requires_grad_(requires_grad)


def from_file(
    filename: Any,
    shared: bool | None = False,
    size: int = 0,
    *,
    dtype: DTypeLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the first elements of a file as a tensor of one dimension whose memory is the file.

    shared: whether writes go to the file, which is made, or made longer, where it is too short;
    else they stay in memory.
    size: the number of elements.
    dtype: by default the default dtype.

    Raises `ArgumentError` when the file is too short, and what `open` raises.

    >>> import tempfile
    >>> import oneflow_lite as flow
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     x = flow.from_file(f"{folder}/numbers", shared=True, size=2)
    ...     x[1] = 2.5
    ...     flow.from_file(f"{folder}/numbers", size=2)
    tensor([0.0000, 2.5000])
    """
    chosen = default_float() if dtype is None else as_dtype("from_file", dtype)
    count = check_int("from_file", "size", size, 0)
    length = count * chosen.itemsize
    with open(filename, "a+b" if shared else "rb") as file:
        there = os.fstat(file.fileno()).st_size
        if there < length and not shared:
            expected = f"a file of at least {length} bytes for {count} elements"
            hint = "take fewer elements"
            raise arg_error("from_file", "size", expected, f"{there} bytes", hint, ArgumentError)
        if there < length:
            file.truncate(length)
        import mmap  # absent in a browser

        access = mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY
        memory = mmap.mmap(file.fileno(), length, access=access) if length else bytearray()
    return from_numpy(adopted(np.frombuffer(memory, chosen))).requires_grad_(requires_grad)


@guarded
def empty_strided(
    size: Sequence[int],
    stride: Sequence[int],
    *,
    dtype: DTypeLike | None = None,
    layout: layout | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return an uninitialised tensor of a size whose elements lie in memory at these strides.

    Raises `ShapeError` when a stride is missing or negative.

    >>> import oneflow_lite as flow
    >>> flow.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    if layout is not None:
        check_layout("empty_strided", layout)
    check_not_pinned("empty_strided", pin_memory)
    size, strides = Size(size), Size(stride)
    if len(size) != len(strides) or min(strides, default=0) < 0 or min(size, default=0) < 0:
        expected, got = "one stride of at least 0 for each size", f"{strides} for sizes {size}"
        hint = "give as many strides as sizes"
        raise arg_error("empty_strided", "stride", expected, got, hint, ShapeError)
    last = sum((n - 1) * step for n, step in zip(size, strides, strict=True))
    memory = empty(last + 1 if size.numel() else 0, dtype=dtype, device=device)
    made: Tensor = FUNCTORS.get("as_strided")(memory, size, strides).detach()
    if 0 in strides and size.numel() and isinstance(made._data, np.ndarray):  # read-only, as a view
        made._data.setflags(write=True)
    return made.requires_grad_(requires_grad)


_LAYOUT = Domain(
    "Only `flow.strided`.",
    "check_layout(NAME, {x})",
    "{x} is None",
    {"ArgumentError": "When a sparse layout is asked for."},
    (check_layout,),
    dropped=True,
)
_PINNED = Domain(
    "Only False: memory is pinned for transfers.",
    "check_not_pinned(NAME, {x})",
    "not {x}",
    {"ArgumentError": "When pinned memory is asked for."},
    (check_not_pinned,),
    dropped=True,
)
LAID_OUT = (keyword("layout", domain=_LAYOUT), keyword("pin_memory", "bool", _PINNED))


def _options(dtype: str, device: str) -> Options:
    """Return the options of functions that make tensors, with the words for two defaults."""
    return (
        keyword("dtype", domain=Domain(f"By default {dtype}.", type="dtype, optional")),
        keyword("device", domain=Domain(f"By default {device}.", type="device, optional")),
        keyword("requires_grad", "bool", flag("Record the ops on the result, for gradients.")),
        *LAID_OUT,
        keyword("placement", domain=Domain(_PLACEMENT, type="placement, optional")),
        keyword("sbp", domain=Domain(_SBP, type="sbp or sequence of sbp, optional")),
    )


_PLACEMENT = "Make a global tensor on these ranks; see `oneflow_lite.placement`."
_SBP = "The part of the global tensor that each rank has; with `placement`."
_FORMAT = Domain("Checked, without effect.", type="memory_format, optional")
_OUT = Domain("Receives the result, and gives the dtype and the device.")
_DTYPE = "that of `out`, int64 for whole numbers, or the default dtype"
NEW = _options("that of `input`", "that of `input`")
LIKE = (*NEW, keyword("memory_format", domain=_FORMAT))
MADE = (
    *_options(_DTYPE, "that of `out`, or the default device"),
    keyword("out", "Tensor | None", _OUT),
)
_WORDS = f"""

dtype, device: by default that of `input`.
requires_grad: record the ops on the result, for gradients.
memory_format: checked, without effect.
placement: {_PLACEMENT}
sbp: {_SBP}"""
_SIZES = Domain("The sizes, one by one or as one sequence.", type="int or sequence of int")
_SIZE = Domain(
    "The sizes as one sequence, in the place of `sizes`.", type="sequence of int, optional"
)


def target_dtype(op: str, options: dict[str, Any], inferred: DType | None = None) -> DType:
    """Return the dtype that options ask for; the inferred or default one where they do not."""
    dtype, out = options["dtype"], options.get("out")
    if out is not None:
        return out_dtype(op, out, dtype)
    if dtype is None:
        return default_float() if inferred is None else inferred
    return as_dtype(op, dtype)


def made(name: str, options: dict[str, Any], op: str = "") -> Tensor:
    """Dispatch an op that creates; its attributes are among the options.

    The dtype is the given one, that of `out`, or the default dtype.
    """
    placement, sbp = options.pop("placement", None), options.pop("sbp", None)
    if placement is not None:
        parts = {**options, "device": None}
        return _on_ranks(
            name, placement, sbp, lambda more: made(name, {**parts, **more}, op), options
        )
    dtype, device = options["dtype"], options["device"]
    requires_grad, out = options.pop("requires_grad"), options.pop("out", None)
    if out is not None:
        dtype, device = out_options(name, out, dtype, device)
    dtype = default_float() if dtype is None else as_dtype(name, dtype)
    if op in ("random_uniform", "random_normal") and dtype.kind not in "fc":
        hint = "use randint for integers"
        raise arg_error(name, "dtype", "a floating point dtype", dtype, hint, DTypeError)
    options["dtype"], options["device"] = dtype, as_device(device)
    result: Tensor = dispatch(op_expr(op or name), (), options)
    if requires_grad:
        result.requires_grad = True
    return result if out is None else fill_out(name, out, result)


def _on_ranks(op: str, placement: Any, sbp: Any, make: Any, options: Any = None) -> Tensor:
    """Return a global tensor of what `make` makes; see `oneflow_lite.placement`."""
    if not hasattr(placement, "ranks"):  # an array has `fill`, too
        got, hint = type(placement).__name__, 'as flow.placement("cpu", ranks=[0, 1])'
        raise arg_error(op, "placement", "a placement", got, hint, ArgumentTypeError)
    result: Tensor = placement.fill(op, sbp, make, options)
    return result


def from_host(op: str, values: Any, options: dict[str, Any], kinds: str = "f") -> Tensor:
    """Return `values`, computed on the host, as a tensor of the options' dtype and device.

    `DTypeError` when the dtype is not of one of these kinds.
    """
    dtype, device, out = options["dtype"], options["device"], options.get("out")
    if out is not None:
        dtype, device = out_options(op, out, dtype, device)
    chosen = default_float() if dtype is None else as_dtype(op, dtype)
    if chosen.kind not in kinds:
        expected = "an integer dtype" if "i" in kinds else "a floating point dtype"
        raise arg_error(op, "dtype", expected, chosen, "leave it out", DTypeError)
    result = make_constant(values.astype(chosen)).to(device=as_device(device))
    result.requires_grad_(options.get("requires_grad", False))
    return result if out is None else fill_out(op, out, result)


def as_input(op: str, input: Tensor, options: dict[str, Any]) -> dict[str, Any]:
    """Return options with the dtype and device of a tensor where these are not given."""
    check_memory_format(op, options.pop("memory_format", None))
    if options["dtype"] is None:
        options["dtype"] = input._data.dtype
    if options["device"] is None:
        options["device"] = input.device
    home = getattr(input._data, "home", None)
    if home is not None and options.get("placement") is None:
        options["placement"], options["sbp"] = home
    return options


def check_sizes(op: str, sizes: tuple[Any, ...], size: Any = None) -> tuple[int, ...]:
    """Return sizes given as ints, as one sequence, or by keyword; raise where one is negative."""
    shape = check_shape(op, sizes if size is None else (size,))
    if shape and min(shape) < 0:
        at_least = "sizes of at least 0"
        raise arg_error(op, "size", at_least, shape, f"pass {at_least}", ArgumentError)
    return shape


def check_real(op: str, argument: str, value: Any) -> Any:
    """Return a finite real number as a Python number; a 0-d tensor counts as its element."""
    if isinstance(value, np.generic) or (isinstance(value, Tensor) and value.numel() == 1):
        value = value.item()
    if isinstance(value, (int, float)) and math.isfinite(value):
        return value
    kind = ArgumentError if isinstance(value, float) else ArgumentTypeError
    raise arg_error(op, argument, "a finite real number", repr(value), "pass a Python number", kind)


_IS_INFINITE = {"ArgumentError": "When {x} is not finite."}
_FINITE = attribute(check_real, says="A finite number.", raises=_IS_INFINITE)
Finite = Annotated[float, _FINITE]
Bound = Annotated[Any, _FINITE._replace(type="number")]


def check_end(op: str, argument: str, value: Any) -> Any:
    """Return a finite number, also a complex one; of a tensor, one without a dimension."""
    value = as_number(value)
    if isinstance(value, complex) and math.isfinite(abs(value)):
        return value
    if isinstance(value, Tensor) and value.ndim:
        raise arg_error(op, argument, "a number, or a 0-d tensor", value, "call item()")
    return check_real(op, argument, value)


_SAYS = "A finite number, or a tensor of one without a dimension."
_ENDS = attribute(check_end, says=_SAYS, raises=_IS_INFINITE, type="Tensor or number")
End = Annotated[Any, _ENDS]


def sized(name: str, summary: str, op: str, more: Options = (), **attrs: Any) -> Any:
    """Declare a function of sizes, given as ints or as one sequence."""
    samples = "" if name == "empty" else "2, 3; size=(2,), dtype=float64"

    @with_options("flow", (*more, *MADE), name, summary, samples=samples)
    def author(
        *sizes: Annotated[Any, _SIZES], size: Annotated[Any, _SIZE] = None, **options: Any
    ) -> Tensor:
        check_memory_format(name, options.pop("memory_format", None))
        options.update(attrs, shape=check_sizes(name, sizes, size))
        return made(name, options, op)

    return author


def like(name: str, summary: str, make: Any, op: str = "") -> Any:
    """Declare a function that makes a tensor in the shape, dtype and device of `input`.

    With neither dtype nor device given it dispatches `op`: gradient rules call it often.
    """
    quick = op_expr(op) if op else None
    samples = "" if name == "empty_like" else "fixed(x(2, 3)); fixed(i(2, 3)), dtype=float32"

    @with_options("flow", LAID_OUT, name, f"{summary}{_WORDS}", samples=samples)
    def author(
        input: GivenTensor,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        memory_format: Any = None,
        placement: Any = None,
        sbp: Any = None,
    ) -> Tensor:
        check_tensor(name, "input", input)
        if memory_format is not None:
            check_memory_format(name, memory_format)
        if placement is None:
            placement, sbp = getattr(input._data, "home", (None, None))
        elif quick is not None:
            input = make(input.shape, dtype=input.dtype, placement=placement, sbp=sbp)
        if dtype is None and device is None and quick is not None:
            result: Tensor = dispatch1(quick, input.detach())
            return result.requires_grad_(requires_grad)
        dtype = input._data.dtype if dtype is None else dtype
        device = input.device if device is None else device
        where = {} if placement is None else {"placement": placement, "sbp": sbp}
        options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
        return beside(input, make(input.shape, **options, **where))

    return author


def beside(input: Tensor, new: Tensor) -> Tensor:
    """Return a new tensor that can be written as `input` can: inside vmap, one for each entry."""
    if type(input._data) is np.ndarray or not getattr(input._data, "levels", None):
        return new
    covered: Tensor = input._data.covered(new._cut())
    return covered.requires_grad_(new.requires_grad)


def _new(name: str, summary: str, op: str, **attrs: Any) -> None:
    """Declare a method that makes a tensor of a size, in the dtype and on the device of `input`."""
    samples = "" if name == "new_empty" else "fixed(x(2)), 2, 3"

    @with_options("Tensor", NEW, name, summary, samples=samples)
    def author(
        input: GivenTensor,
        *sizes: Annotated[Any, _SIZES],
        size: Annotated[Any, _SIZE] = None,
        **options: Any,
    ) -> Tensor:
        options = as_input(name, check_tensor(name, "input", input), options)
        options.update(attrs, shape=check_sizes(name, sizes, size))
        return beside(input, made(name, options, op))


_ZEROS = "\n\n>>> flow.zeros(1, 2), flow.zeros((0,))\n(tensor([[0., 0.]]), tensor([]))"
_OF, _AS = "of a size, given as ints or one sequence", "in the shape, dtype and device of `input`"
_NEW = "of a size, in the dtype and on the device of `input`"
zeros = sized("zeros", f"Return zeros {_OF}.{_ZEROS}", "full", value=0)
ones = sized("ones", f"Return ones {_OF}.", "full", value=1)
empty = sized("empty", f"Return an uninitialised tensor {_OF}.", "empty", LIKE[-1:])
zeros_like = like("zeros_like", f"Return zeros {_AS}.", zeros, "zeros_like")
ones_like = like("ones_like", f"Return ones {_AS}.", ones, "ones_like")
empty_like = like("empty_like", f"Return an uninitialised tensor {_AS}.", empty)
_new("new_zeros", f"Return zeros {_NEW}.", "full", value=0)
_new("new_ones", f"Return ones {_NEW}.", "full", value=1)
_new("new_empty", f"Return an uninitialised tensor {_NEW}.", "empty")


@with_options("flow", MADE, samples="(2, 3), 7; (2,), 0.5, dtype=float64")
def full(size: IntOrInts, fill_value: TensorOrNumber, **options: Any) -> Tensor:
    """Return a tensor filled with a number.

    dtype: by default that of `out`, or of the kind of the number: int64, bool, or a default dtype.

    >>> flow.full((2,), 7)
    tensor([7, 7])
    """
    if isinstance(fill_value, Tensor) and fill_value.ndim == 0:
        fill_value = fill_value.item()
    fill_value_of("full", "fill_value", fill_value, complex128)  # is it a number?
    chosen = target_dtype("full", options, scalar_dtype(fill_value))
    given = fill_value_of("full", "fill_value", fill_value, chosen)
    options.update(dtype=chosen, shape=check_sizes("full", (size,)), value=given)
    return made("full", options)


@with_options(options=LIKE, samples="fixed(x(2, 3)), 7; fixed(i(2, 3)), 0.5, dtype=float32")
def full_like(input: AnyTensor, fill_value: TensorOrNumber, **options: Any) -> Tensor:
    """Return a tensor filled with a number, in the shape, dtype and device of `input`."""
    return _filled("full_like", input, input.shape, fill_value, options)


@with_options("Tensor", NEW, samples="fixed(x(2)), (2, 3), 7")
def new_full(
    input: AnyTensor, size: IntOrInts, fill_value: TensorOrNumber, **options: Any
) -> Tensor:
    """Return a tensor of a size filled with a number, in the dtype and on the device of `input`."""
    return _filled("new_full", input, (size,), fill_value, options)


def _filled(op: str, input: Tensor, size: Any, value: Any, options: dict[str, Any]) -> Tensor:
    chosen = input._data.dtype if options["dtype"] is None else as_dtype(op, options["dtype"])
    given = fill_value_of(op, "fill_value", value, chosen)
    options = as_input(op, input, options)
    options.update(shape=check_shape(op, size), value=given)
    return beside(input, made(op, options, "full"))


@with_options("Tensor", NEW, samples="fixed(x(2)), [1.5, 2.0]")
def new_tensor(input: AnyTensor, data: Any, **options: Any) -> Tensor:
    """Make a tensor by copying data, in the dtype and on the device of `input`."""
    return tensor(data, **as_input("new_tensor", input, options))


@with_options("Tensor", tuple(each for each in NEW if each.name not in ("placement", "sbp")))
def new_empty_strided(
    input: AnyTensor, size: IntOrInts, stride: IntOrInts, **options: Any
) -> Tensor:
    """Return `empty_strided` with the dtype and device of `input`."""
    return empty_strided(size, stride, **as_input("new_empty_strided", input, options))


@with_options("flow", MADE, samples="4; 1, 2, 0.25; 5, 0, -2, dtype=float64")
def arange(
    start: TensorOrNumber = 0, end: TensorOrNumber = None, step: TensorOrNumber = 1, **options: Any
) -> Tensor:
    """Return numbers from `start` (0 when only one bound is given) to before `end`, `step` apart.

    ArgumentError: when `step` is 0 or leads away from `end`.

    >>> flow.arange(4), flow.arange(1, 2, 0.25)
    (tensor([0, 1, 2, 3]), tensor([1.0000, 1.2500, 1.5000, 1.7500]))
    """
    if end is None:
        start, end = 0, start
    given = {"start": start, "end": end, "step": step}
    start, end, step = bounds = [check_real("arange", n, v) for n, v in given.items()]
    if step == 0 or (end - start) * step < 0:
        got = f"start {start}, end {end}, step {step}"
        expected, hint = "a step that leads from start to end", "change its sign or size"
        raise arg_error("arange", "step", expected, got, hint, ArgumentError)
    whole = all(isinstance(v, int) for v in bounds)
    dtype = target_dtype("arange", options, int64 if whole else None)
    count = _steps("arange", start, end, step, whole)
    if dtype.kind in "iu" and not whole and (int(step) or dtype == int64):
        # As in PyTorch, which counts whole steps for int64 alone.
        end = end if dtype == int64 else int(start) + count * int(step)
        return arange(int(start), int(end), int(step), **options)
    if not whole:  # an end half a step behind the last number: rounding adds no number
        end = start + count * step - step / 2 if count else start
    options.update(dtype=dtype, start=start, end=end, step=step)
    return made("arange", options)


@with_options("flow", MADE, samples="0, 1, 3; -2.5, 4, steps=5, dtype=float64; 0, 1, 0")
def linspace(start: End, end: End, steps: Count, **options: Any) -> Tensor:
    """Return `steps` numbers at equal distances from `start` to `end`, both included.

    DTypeError: when the dtype is bool, or real for a complex end.

    >>> flow.linspace(0, 1, 3)
    tensor([0.0000, 0.5000, 1.0000])
    """
    return _spaced("linspace", start, end, steps, options)


@with_options("flow", MADE, samples="0, 2, 3; -1.5, 1, 4, 2.0, dtype=float64")
def logspace(start: End, end: End, steps: Count, base: Bound = 10.0, **options: Any) -> Tensor:
    """Return `steps` powers of `base`, with exponents at equal distances from `start` to `end`.

    DTypeError: when the dtype is bool, or real for a complex end.
    """
    return _spaced("logspace", start, end, steps, options, base=float(base))


def _steps(op: str, start: Any, end: Any, step: Any, whole: bool) -> int:
    with contextlib.suppress(OverflowError):  # NumPy's count of whole numbers overflows unnoticed
        count = -((start - end) // step) if whole else math.ceil((end - start) / step)
        if count < 2**60:
            return count
    expected, hint = "a step that leads from start to end in fewer than 2**60 numbers", "enlarge it"
    raise arg_error(op, "step", expected, step, hint, ArgumentError)


def _spaced(op: str, start: Any, end: Any, steps: int, options: Any, **more: float) -> Tensor:
    inner = complex if isinstance(start, complex) or isinstance(end, complex) else float
    inferred = to_complex(default_float()) if inner is complex else default_float()
    dtype = target_dtype(op, options, inferred)
    if dtype.kind not in ("c" if inner is complex else "iufc"):
        expected = "a complex dtype, as an end is" if inner is complex else "a dtype of numbers"
        raise arg_error(op, "dtype", expected, dtype, "leave it out", DTypeError)
    options.update(dtype=dtype, start=inner(start), end=inner(end), steps=steps, **more)
    return made(op, options)


@with_options("flow", MADE, samples="2; 2, 3, dtype=float64")
def eye(n: Count, m: Count | None = None, **options: Any) -> Tensor:
    """Return the identity matrix of n rows and m (or n) columns."""
    return made("eye", {**options, "n": n, "m": n if m is None else m})


@with_options("flow", MADE[:-1], samples="3; 2.5, dtype=float64")
def scalar_tensor(s: AnyNumber, **options: Any) -> Tensor:
    """Return a number as a 0-d tensor, of the default dtype unless one is given.

    >>> flow.scalar_tensor(3)
    tensor(3.)
    """
    options["dtype"] = default_float() if options["dtype"] is None else options["dtype"]
    return full((), s, **options)


@with_options("flow", MADE, samples="1, 3; 1, 2, 0.25; 3, 1, -1, dtype=float64")
def range(start: Bound, end: Bound, step: Bound = 1, **options: Any) -> Tensor:
    """Return numbers from `start` to `end`, which is included, in the default dtype.

    A UserWarning says that PyTorch will drop it for `arange`, which leaves the end out.

    ArgumentError: when `step` is 0 or leads away from `end`.

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     flow.range(1, 3)
    tensor([1., 2., 3.])
    """
    warn_caller("range() is deprecated; use arange(), which leaves the end out")
    if not step or (end - start) * step < 0:
        expected, got = "a step that leads from start to end", step
        raise arg_error("range", "step", expected, got, "change its sign", ArgumentError)
    dtype, out = options.pop("dtype"), options.pop("out")
    if dtype is None:
        dtype = default_float() if out is None else out.dtype
    count = math.floor((end - start) / step) + 1
    result = (arange(count, dtype=np.float64, **options) * step + start).to(dtype)
    return result if out is None else fill_out("range", out, result)
