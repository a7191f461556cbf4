"""Tensor: an array, its storage, and its place in the graph.

No op is written here. `attach_methods` (`ops/exposure.py`) puts operators and methods on the class,
and each is looked up at its first use.
"""

from __future__ import annotations

import copy
import functools
import itertools
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, overload

import numpy as np

from oneflow_lite.arrays.array_spec import address, owner
from oneflow_lite.arrays.bfloat16_arrays import BFloat16Array, adopted, as_plain
from oneflow_lite.arrays.device import CPU, Device, DeviceLike, as_device, device_of, to_device
from oneflow_lite.arrays.dtype import (
    SCALAR_TYPES,
    DType,
    as_dtype,
    common_dtype,
    default_float,
    scalar_dtype,
    to_complex,
)
from oneflow_lite.arrays.dtype_object import DTYPES, dtype as DTypeObject
from oneflow_lite.arrays.locks import FREE_THREADED, make_lock
from oneflow_lite.arrays.memory_format import check_memory_format, lies_in, memory_format
from oneflow_lite.arrays.meta_arrays import MetaArray
from oneflow_lite.arrays.refusals import guarded
from oneflow_lite.arrays.size import SIZES, Size
from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    CaptureError,
    DimError,
    DTypeError,
    ExportError,
    GradientError,
    InplaceError,
    ShapeError,
    arg_error,
    nesting_error,
    too_large_error,
)
from oneflow_lite.ops import upward
from oneflow_lite.tensors.autograd_meta import AutogradMeta
from oneflow_lite.tensors.caller_warnings import warn_caller
from oneflow_lite.tensors.hooks import (
    RemovableHandle,
    leaf_hook_changes,
    register_post_accumulate_hook,
    register_tensor_hook,
)
from oneflow_lite.tensors.mode import local
from oneflow_lite.tensors.node import (
    AccumulateGrad,
    Edge,
    FunctionNode,
    make_accumulate_grad,
)
from oneflow_lite.tensors.storage import Layout, Storage, ViewInfo, copied_together
from oneflow_lite.tensors.tensor_repr import tensor_text

if TYPE_CHECKING:
    from oneflow_lite.tensors.methods import Methods  # written from the declarations
else:
    Methods = object

_storage_lock = make_lock()


class Tensor(Methods):
    """An array on a device that autograd can follow.

    `flow.Tensor([1, 2, 3])` is of the default dtype float32, as in OneFlow, and
    `flow.Tensor(2, 3)` is uninitialised of that shape; `flow.tensor` infers the dtype.

    >>> import oneflow_lite as flow
    >>> flow.Tensor([1, 2, 3])
    tensor([1., 2., 3.])
    """

    # Class attributes are the defaults; an instance stores only what differs.
    _data: Any
    _edge: Edge | None = None  # (node, output index) exactly when the tensor requires a gradient
    _storage: Storage | None = None  # made when the memory is saved, viewed or written
    _view: ViewInfo | None = None
    _layout: Layout | None = None  # of a base whose shape was changed in place
    _leaf: AutogradMeta | None = None  # of a leaf, once someone looked
    _old_edge: Edge | None = None  # of a leaf that ceased to require a gradient
    _inference: bool = False  # whether it was made in inference_mode
    _name: str | None = None  # of the variable of a Program that a tensor with values became

    _asked: ClassVar[bool] = False  # whether functors ask the class, by __torch_function__

    # CuPy leaves `array + tensor` to the tensor's reflected operator; NumPy asks __array_ufunc__.
    __array_priority__: ClassVar[int] = 1000

    def _set_class(self, cls: Any) -> None:
        object.__dict__["__class__"].__set__(self, cls)
        leaf_hook_changes[0] = object()

    __class__ = property(type, _set_class)

    @guarded
    def __init__(self, *data: Any, device: DeviceLike | None = None) -> None:
        target = as_device(device)
        if len(data) == 1 and type(data[0]) is Size:
            array = np.empty(data[0], default_float())
        elif len(data) == 1 and not isinstance(data[0], (int, np.integer)):
            array = to_array("Tensor", data[0], default_float())
        else:
            array = np.empty(data or (0,), default_float())
        self._data = array if target is CPU else to_device(array, target)
        as_constant(self)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if Tensor in cls.__bases__ and not cls.__module__.startswith("oneflow_lite."):
            upward.module("subclasses").adopt(cls)

    # The array

    @property
    def shape(self) -> Size:
        """The sizes of the dimensions."""
        return SIZES[self._data.shape]

    @property
    def dtype(self) -> DTypeObject:
        """The element type, which NumPy takes for its own."""
        return DTYPES[self._data.dtype]

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._data.ndim  # type: ignore[no-any-return]

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return int(self._data.itemsize)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return int(self._data.nbytes)

    @property
    def device(self) -> Device:
        """The device on which the array lives."""
        return device_of(self._data)

    @property
    def name(self) -> str | None:
        """The name of the Program's variable that this tensor stands for, or None."""
        return self._name or getattr(self._data, "name", None)

    @property
    def is_cuda(self) -> bool:
        """Whether the tensor is on a CUDA device."""
        return not isinstance(self._data, np.ndarray) and self.device.type == "cuda"

    @property
    def is_meta(self) -> bool:
        """Whether the tensor is on the device "meta", and has no values."""
        return self.device.type == "meta"

    def dim(self) -> int:
        """Return the number of dimensions."""
        return int(self._data.ndim)

    @overload
    def size(self, dim: None = None) -> Size: ...
    @overload
    def size(self, dim: int) -> int: ...
    def size(self, dim: int | None = None) -> Any:
        """Return the shape, or the size of one dimension."""
        return self.shape if dim is None else _entry("size", self._data.shape, dim)

    def numel(self) -> int:
        """Return the number of elements."""
        return int(self._data.size)

    nelement = numel

    def element_size(self) -> int:
        """Return the bytes of one element."""
        return int(self._data.itemsize)

    @overload
    def stride(self, dim: None = None) -> tuple[int, ...]: ...
    @overload
    def stride(self, dim: int) -> int: ...
    def stride(self, dim: int | None = None) -> Any:
        """Return the strides, counted in elements."""
        shape, size = self._data.shape, self._data.itemsize
        strides: Any = [s // size for s in self._data.strides]
        if 0 in strides:  # NumPy forgets those of new dimensions and of empty arrays
            empty, step = 0 in shape and not any(strides), 1
            for i in range(len(shape) - 1, -1, -1):
                if strides[i] == 0 and (empty or shape[i] == 1):
                    strides[i] = step
                step = strides[i] * max(shape[i], 1)
        strides = tuple(strides)
        return strides if dim is None else _entry("stride", strides, dim)

    def storage_offset(self) -> int:
        """Return the number of elements in memory before the tensor's first element."""
        array = self._data
        whole = owner(as_plain(array) if type(array) is BFloat16Array else array)
        return (address(array) - address(whole)) // int(array.itemsize)

    def is_contiguous(self, memory_format: memory_format | None = None) -> bool:
        """Return whether the elements lie in C order, or in a memory format, without gaps."""
        if memory_format is None:
            return bool(self._data.flags.c_contiguous)
        return lies_in(self._data, check_memory_format("is_contiguous", memory_format))

    def is_floating_point(self) -> bool:
        """Return whether the dtype is float16, float32, float64 or bfloat16."""
        return bool(self._data.dtype.kind == "f")

    @property
    def is_global(self) -> bool:
        """Whether the tensor spans several ranks, each of which holds a part."""
        return getattr(self._data, "is_global", False)

    def is_complex(self) -> bool:
        """Return whether the dtype is complex."""
        return bool(self._data.dtype.kind == "c")

    def numpy(self, *, force: bool = False) -> np.ndarray[Any, Any]:
        """Return the NumPy array, sharing memory (on CUDA: a copy made by CuPy's `get`).

        Works on tensors that require a gradient too, as in OneFlow, so `force` changes nothing. A
        write into the array is not seen by version counters.
        """
        self._leave("numpy")
        array: np.ndarray[Any, Any]
        if self.is_global or getattr(self._data, "levels", None):  # a batch of a transform raises
            return self._data.get()  # type: ignore[no-any-return]
        array = as_plain(self._data) if isinstance(self._data, np.ndarray) else self._data.get()
        return array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if not isinstance(self._data, np.ndarray):
            raise ArgumentTypeError(
                f"a tensor on {self.device} is not converted to a NumPy array implicitly; "
                "call .cpu() or .numpy() first"
            )
        if self.requires_grad:
            raise GradientError(
                "__array__(): a tensor that requires a gradient is not converted to a NumPy array "
                "implicitly, since the gradient would be lost; call detach() first, or .numpy(); "
                "to join tensors, use flow.stack(), or np.array(..., like=x)"
            )
        self._leave("__array__")
        if self.is_global or getattr(self._data, "levels", None):
            return np.array(self.numpy(), dtype=dtype)
        return np.array(as_plain(self._data), dtype=dtype, copy=copy)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Export the memory to another library, without a copy.

        A tensor that requires a gradient has to be detached first: `ExportError`.
        """
        if self.requires_grad:
            raise ExportError(
                "__dlpack__(): a tensor that requires a gradient is not exported; detach() it first"
            )
        self._leave("__dlpack__")
        options = {"max_version": max_version, "dl_device": dl_device, "copy": copy}
        given = {name: value for name, value in options.items() if value is not None}
        return self._data.__dlpack__(stream=stream, **given)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._data.__dlpack_device__()  # type: ignore[no-any-return]

    def item(self) -> bool | int | float:
        """Return the only element as a Python number.

        Type checkers are told of real numbers, as by PyTorch; a complex element is a `complex`.
        """
        if self._data.size != 1:
            raise arg_error(
                "item",
                "self",
                expected="one element",
                got=f"shape {self.shape}",
                hint="index the tensor, or use tolist()",
                kind=ShapeError,
            )
        self._leave("item")
        return self._data.item()  # type: ignore[no-any-return]

    def tolist(self) -> Any:
        """Return nested lists of Python numbers."""
        self._leave("tolist")
        return self._data.tolist()

    def __bool__(self) -> bool:
        if self._data.size != 1:
            raise arg_error(
                "bool",
                "self",
                expected="one element",
                got=f"shape {self.shape}",
                hint="use .any() or .all()",
                kind=ShapeError,
            )
        self._leave("bool")
        return bool(self._data.item())

    def __float__(self) -> float:
        return float(self._number("float"))

    def __int__(self) -> int:
        return int(self._number("int"))

    def __complex__(self) -> complex:
        return complex(self._number("complex"))

    def _number(self, op: str) -> Any:
        """Return the only element, for a conversion; refuse an imaginary part except to complex."""
        if self._data.size != 1:
            raise arg_error(
                op,
                "self",
                expected="one element",
                got=f"shape {self.shape}",
                hint="index the tensor, or use tolist()",
                kind=ArgumentError,
            )
        value = self.item()
        if op == "complex" or not isinstance(value, complex):
            return value
        if value.imag:
            raise arg_error(
                op,
                "self",
                expected="a real number",
                got=value,
                hint="take its .real or .abs()",
                kind=DTypeError,
            )
        return value.real

    def __index__(self) -> int:
        if self._data.dtype.kind not in "iub":
            raise arg_error(
                "index",
                "self",
                expected="a tensor of integers with one element",
                got=self.dtype,
                hint="convert it with int()",
                kind=ArgumentTypeError,
            )
        return int(self.item())

    def __len__(self) -> int:
        if not self._data.ndim:
            raise ArgumentTypeError("len() of a 0-d tensor; it has no first dimension")
        return int(self._data.shape[0])

    def __iter__(self) -> Iterator[Tensor]:
        if not self._data.ndim:
            raise ArgumentTypeError("iteration over a 0-d tensor; use item()")
        return iter(self.unbind(0))

    def __reversed__(self) -> Tensor:
        return self.flip(0) if self._data.ndim else self

    def __contains__(self, value: Any) -> bool:
        if not isinstance(value, (Tensor, *SCALAR_TYPES)):
            raise arg_error(
                "in",
                "value",
                expected="a number or a Tensor",
                got=type(value).__name__,
                hint="ask tolist()",
                kind=ArgumentError,
            )
        return bool((self == value).any())

    def __format__(self, spec: str) -> str:
        if self._data.ndim == 0 and (spec or not hasattr(self._data, "told")):
            return format(self.item(), spec)  # of a transform only what has one value
        if spec:
            raise arg_error(
                "format",
                "spec",
                expected="no format for a tensor with dimensions",
                got=repr(spec),
                hint="format its elements, or flow.set_printoptions",
                kind=ArgumentTypeError,
            )
        return repr(self)

    def __repr__(self) -> str:
        name = getattr(self._data, "name", None)
        if name is not None:  # a variable of a Program has no values to show
            return f"tensor(name={name!r}, shape={self.shape}, dtype={self.dtype})"
        if self.is_global:  # one rank alone cannot show all values
            where = f"placement={self._data.placement}, sbp={self._data.sbp}"
            return f"tensor(shape={tuple(self.shape)}, dtype={self.dtype}, {where})"
        in_transform = getattr(self._data, "text", None)
        if in_transform is not None:
            return in_transform(self._history_facts())  # type: ignore[no-any-return]
        facts = []
        if not isinstance(self._data, np.ndarray):
            facts.append(f"device='{self.device}'")
        if self.is_meta or (not self.numel() and self.ndim != 1):
            facts.append(f"size={tuple(self.shape)}")
        default = default_float()
        inferred = (default, to_complex(default), _INT64, _BOOL) if self.numel() else (default,)
        if self.dtype not in inferred:
            facts.append(f"dtype={self.dtype}")
        facts += self._history_facts()
        self._leave("numpy")
        return tensor_text(self._data, facts)

    def _history_facts(self) -> list[str]:
        """Return the part of a text that tells where the tensor came from."""
        try:
            node = self.grad_fn
        except InplaceError:  # a view that is out of date still has values to show
            return ["grad_fn=Invalid"]
        if node is not None:
            return [f"grad_fn={node!r}"]
        return [] if self._edge is None else ["requires_grad=True"]

    __hash__ = object.__hash__

    def _leave(self, op: str) -> None:
        """Tell a pushed interpreter that the values leave for Python."""
        interpreter = local.state.interpreter
        if interpreter is not None:
            interpreter.read(op, self)
        elif type(self._data) is not np.ndarray and getattr(self._data, "is_symbolic", False):
            raise CaptureError(
                f"{op}(): {self.name!r} is a variable of a Program and has no value of its own; "
                "fetch it with Executor.run, or look it up in the scope"
            )

    # The place in the graph

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow to this tensor; assign it on leaves only."""
        view = self._view
        if view is not None and view.origin is None:
            self.refresh_view()
        return self._edge is not None

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if value == self.requires_grad:
            return
        _tell_observer(self)
        if value:
            if self._data.dtype.kind not in "fc":
                raise arg_error(
                    "requires_grad",
                    "self",
                    expected="a floating point or complex dtype",
                    got=self.dtype,
                    hint="convert it with .float()",
                    kind=DTypeError,
                )
            meta = self.autograd_meta
            meta.requires_grad = True
            self._edge = self._leaf_edge(meta, self._old_edge)
            return
        if not self.is_leaf:
            raise GradientError(
                "requires_grad: only a leaf can stop requiring a gradient; "
                "use detach() to get a tensor without history"
            )
        self._leaf = self.autograd_meta
        self._leaf.requires_grad = False
        self._old_edge, self._edge = self._edge, None

    def _leaf_edge(self, meta: AutogradMeta, old: Edge | None) -> Edge:
        """Return a leaf's place in the graph: the old place where it still fits, else a new one.

        Graphs that were recorded before send their gradients to the old place.
        """
        home, levels = None, _NO_LEVELS
        if type(self._data) is not np.ndarray:
            home = self._data.home if self.is_global else None
            levels = getattr(self._data, "levels", _NO_LEVELS)
        if old is not None and old[0].meta is meta and old[0].home == home:
            (info,) = old[0].output_tensor_infos
            now = (self.shape, self._data.dtype, self.device, levels)
            if (info.shape, info.dtype, info.device, info.levels) == now:
                return old
        shape, dtype, leaf = self._data.shape, self._data.dtype, weakref.ref(self)
        return (make_accumulate_grad(meta, shape, dtype, self.device, leaf, home, levels), 0)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set `requires_grad` and return the tensor."""
        self.requires_grad = requires_grad
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded op made this tensor."""
        self.refresh_view()
        return self._edge is None or isinstance(self._edge[0], AccumulateGrad)

    @property
    def grad_fn(self) -> FunctionNode | None:
        """The node that made this tensor; None for a leaf."""
        self.refresh_view()
        edge = self._edge
        return None if edge is None or isinstance(edge[0], AccumulateGrad) else edge[0]

    @property
    def grad_fn_node(self) -> FunctionNode | None:
        """The tensor's node, for a leaf its accumulate node; None when no gradient is required."""
        self.refresh_view()
        return None if self._edge is None else self._edge[0]

    @property
    def output_nr(self) -> int:
        """The number of this tensor among the outputs of its node."""
        self.refresh_view()
        return 0 if self._edge is None else self._edge[1]

    @property
    def autograd_meta(self) -> AutogradMeta:
        """The AutogradMeta of this tensor's value."""
        if self._edge is not None:
            return self._edge[0].output_meta(self._edge[1])  # type: ignore[no-any-return]
        if self._leaf is None:
            self._leaf = AutogradMeta(requires_grad=False, is_leaf=True)
        return self._leaf

    @property
    def grad(self) -> Tensor | None:
        """The accumulated gradient; None for a non-leaf that does not retain it."""
        if self._edge is None:
            return None if self._leaf is None else self._leaf.acc_grad
        metas = self._edge[0].metas
        meta = None if metas is None else metas[self._edge[1]]
        return None if meta is None else meta.acc_grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            if not isinstance(value, Tensor):
                raise arg_error(
                    "grad",
                    "value",
                    expected="a Tensor or None",
                    got=type(value).__name__,
                    hint="wrap the value with flow.tensor(...)",
                    kind=ArgumentTypeError,
                )
            if value is self:
                raise GradientError("grad: a tensor cannot be its own gradient; pass a clone()")
            for what in ("shape", "dtype", "device"):
                if getattr(value, what) != getattr(self, what):
                    raise arg_error(
                        "grad",
                        "value",
                        expected=f"{what} {getattr(self, what)}, that of the tensor",
                        got=getattr(value, what),
                        hint="convert the gradient first",
                        kind=GradientError,
                    )
        self.autograd_meta.acc_grad = value

    @grad.deleter
    def grad(self) -> None:
        self.autograd_meta.acc_grad = None

    def retain_grad(self) -> None:
        """Keep the gradient of a non-leaf in `.grad`."""
        self.refresh_view()
        if self._edge is None:
            raise GradientError(
                "retain_grad(): the tensor does not require a gradient; call requires_grad_() first"
            )
        if not self.is_leaf:
            self.autograd_meta.retain_grad = True

    @property
    def retains_grad(self) -> bool:
        """Whether this is a non-leaf that keeps its gradient."""
        return self._edge is not None and self.autograd_meta.retain_grad

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
        """Run `hook` on this tensor's gradient when it is complete; the hook may return another.

        >>> import oneflow_lite as flow
        >>> x = flow.ones(2, requires_grad=True)
        >>> handle = x.register_hook(lambda grad: grad * 10)
        >>> x.sum().backward()
        >>> x.grad
        tensor([10., 10.])
        """
        self.refresh_view()
        if self._edge is None:
            raise GradientError(
                "register_hook(): the tensor does not require a gradient; call requires_grad_() "
                "first"
            )
        return register_tensor_hook(self.autograd_meta, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> RemovableHandle:
        """Run `hook` on this leaf each time after a gradient was added to its `.grad`.

        It runs in `backward` only, as `autograd.grad` adds to no `.grad`.

        >>> import oneflow_lite as flow
        >>> x = flow.ones(2, requires_grad=True)
        >>> handle = x.register_post_accumulate_grad_hook(lambda leaf: print(leaf.grad))
        >>> (x * 3).sum().backward()
        tensor([3., 3.])
        """
        op = "register_post_accumulate_grad_hook"
        if self._edge is None or not self.is_leaf:
            what = "no leaf" if self._edge is not None else "a tensor that requires no gradient"
            raise GradientError(
                f"{op}(): expected a leaf that requires a gradient, got {what}; for other tensors "
                "there is register_hook()"
            )
        return register_post_accumulate_hook(self, hook)

    def detach(self) -> Tensor:
        """Return a tensor without history that shares storage and version; it is no view."""
        alias = Tensor.__new__(Tensor)
        data = self._data
        # Inside of a transform it has no tangents.
        alias._data = data if type(data) is np.ndarray else getattr(data, "constant", data)
        alias._storage = self.memory
        if self._inference:
            alias._inference = True
        return alias

    def _cut(self) -> Tensor:
        """Return a tensor without history that keeps the tangents of forward mode."""
        alias = self.detach()
        alias._data = self._data
        return alias

    def detach_(self) -> Tensor:
        """Cut this tensor off its history, in place; it becomes a leaf."""
        if self._view is not None:
            raise GradientError("detach_(): a view cannot be cut off in place; use detach()")
        if self._edge is not None:
            self._leaf = self.autograd_meta if self.is_leaf else None  # a leaf keeps its gradient
            self._edge = None
        return self

    @property
    def data(self) -> Tensor:
        """The tensor without history, sharing memory but no version; assigning replaces the array.

        A backward pass that needs the old values does not notice a write through `.data`, but
        notices a write through `detach()`.
        """
        alias = self.detach()
        alias._storage = Storage()
        return alias

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise arg_error(
                "data",
                "value",
                expected="a Tensor",
                got=type(value).__name__,
                hint="wrap the value with flow.tensor(...)",
                kind=ArgumentTypeError,
            )
        if self._edge is not None and value.dtype.kind not in "fc":
            raise arg_error(
                "data",
                "value",
                expected="a floating point or complex dtype, as the tensor requires a gradient",
                got=value.dtype,
                hint="convert the value with .float()",
                kind=DTypeError,
            )
        _tell_observer(self)
        self._data = value._data
        self._storage = value.memory
        self._view = None
        if self._edge is not None and self.is_leaf:
            self._edge = self._leaf_edge(self._edge[0].meta, self._edge)

    # Storage and views

    @property
    def memory(self) -> Storage:
        """The Storage, made on first use; PyTorch's method `storage()` is among the old names."""
        if self._storage is None:
            made = Storage()  # all threads must share it, or a thread would miss the writes
            if FREE_THREADED:
                with _storage_lock:
                    if self._storage is None:
                        self._storage = made
            elif self._storage is None:  # with the GIL nothing comes between this and the next line
                self._storage = made
        return self._storage

    @property
    def _version(self) -> int:
        """The number of writes in place to the storage."""
        return 0 if self._storage is None else self._storage.version

    @property
    def _base(self) -> Tensor | None:
        """The tensor of which this tensor is a view, or None."""
        return None if self._view is None else self._view.base

    def is_view(self) -> bool:
        """Return whether this tensor is a view of another tensor."""
        return self._view is not None

    def refresh_view(self) -> None:
        """Bring the history of a view up to date after its memory was written.

        Raises
        ------
        InplaceError
            When autograd does not follow writes to the memory of this view, as for a view that was
            made under no_grad().
        """
        view = self._view
        if view is None:
            return
        storage = self._storage
        base = view.base
        if base._storage is not storage:  # `base.data = ...` gave the base other memory
            self._view = None
        elif view.version != storage.version and not (
            base._edge is None and (self._edge is None or isinstance(self._edge[0], AccumulateGrad))
        ):
            self.replay_view()

    def replay_view(self) -> None:
        """Take this view from its base once more, for the history that this gives."""
        upward.module("replay of views").replay_view(self)

    def set_history(self, edge: Edge | None) -> None:
        """Give the tensor a new place in the graph; `retain_grad` moves with it, hooks stay."""
        before = self._edge
        self._edge = edge
        if before is not None and edge is not None and before[0].metas is not None:
            meta = before[0].metas[before[1]]
            if meta is not None and meta.retain_grad:
                after = edge[0].output_meta(edge[1])
                after.retain_grad, after.acc_grad = True, meta.acc_grad
                meta.retain_grad, meta.acc_grad = False, None

    # Copies of leaves

    def __reduce_ex__(self, protocol: Any) -> Any:
        # A view is another object each time. Of one array, pickle would make one array again, whose
        # memory the tensors would share without sharing the version counter.
        device = None if not self.is_cuda else str(self.device)
        array = self._data if self.is_meta else self.numpy().view()
        parts = (type(self), array, self.requires_grad, device, attributes_of(self))
        return _rebuild, parts

    def __copy__(self) -> Tensor:
        if not self.is_leaf:  # a copy that shares memory and history is a view
            return self.view_as(self)
        self._leave("copy.copy")
        twin = make_tensor(self._data, type(self))
        twin._storage = self.memory
        vars(twin).update(attributes_of(self))
        twin.requires_grad = self.requires_grad
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if id(self) in memo:
            return memo[id(self)]  # type: ignore[no-any-return]
        if not self.is_leaf:
            raise GradientError(
                "copy.deepcopy(): only leaves are copied this way, and this tensor has history "
                f"({self.grad_fn!r}); use detach() or clone()"
            )
        self._leave("copy.deepcopy")
        twin = memo[id(self)] = self._deep_copy(memo)
        vars(twin).update(copy.deepcopy(attributes_of(self), memo))
        return twin

    def _deep_copy(self, memo: dict[int, Any]) -> Tensor:
        """Return a copy with its gradient; copies of views share memory as the views do."""
        data = as_plain(self._data)
        own_copy = isinstance(data, np.ndarray) and type(data) is not np.ndarray
        if own_copy or self._storage is None:  # an array of a Program or of several ranks copies
            twin = make_tensor(self._data.copy(), type(self))
        else:
            twin = make_tensor(adopted(copied_together(data, memo)), type(self))
            twin._storage = copy.deepcopy(self._storage, memo)
        twin.requires_grad = self.requires_grad
        if self.grad is not None:
            twin.grad = copy.deepcopy(self.grad, memo)
        return twin


_NO_LEVELS: frozenset[Any] = frozenset()  # of transforms
OWN_FIELDS = frozenset(
    {
        "_data",
        "_edge",
        "_storage",
        "_view",
        "_layout",
        "_leaf",
        "_old_edge",
        "_inference",
        "_name",
    }
)


def attributes_of(tensor: Tensor) -> dict[str, Any]:
    """Return the attributes that users have set on a tensor."""
    return {k: v for k, v in vars(tensor).items() if k not in OWN_FIELDS}


_INT64, _BOOL = np.dtype(np.int64), np.dtype(np.bool_)


def _tell_observer(tensor: Tensor) -> None:
    """Say that a tensor is about to change otherwise than by an op."""
    if local.observer is not None:
        local.observer.recorder.note_switch(tensor)


def _entry(op: str, entries: tuple[int, ...], dim: Any) -> int:
    """Return the entry of a dimension; raise `DimError` when the tensor lacks the dimension."""
    if isinstance(dim, Tensor) and not dim.ndim and dim.dtype.kind in "iu":
        dim = int(dim)
    if isinstance(dim, (int, np.integer)) and -len(entries) <= dim < len(entries):
        return entries[dim]
    raise arg_error(
        op,
        "dim",
        expected=f"a dimension of a tensor of {len(entries)} dimensions",
        got=repr(dim),
        hint="name a dimension that the tensor has",
        kind=DimError,
    )


def make_tensor(array: Any, cls: type[Tensor] = Tensor) -> Tensor:
    """Wrap an array, without copying, as a leaf that requires no gradient."""
    tensor = object.__new__(cls)  # a __new__ of a subclass asks for more
    tensor._data = array
    return tensor


def make_marked(array: Any) -> Tensor:
    """Wrap an array that comes from outside, and mark the tensor in `inference_mode`."""
    made = make_tensor(array)
    if local.state.inference:
        made._inference = True
    return made


def make_constant(array: Any) -> Tensor:
    """Wrap an array that was made from Python numbers, and tell a pushed interpreter of it."""
    return as_constant(make_marked(array))


def as_constant(tensor: Tensor) -> Tensor:
    """Tell a pushed interpreter of a tensor that was made from Python numbers."""
    interpreter = local.state.interpreter
    if interpreter is not None:
        interpreter.constant(tensor)
    return tensor


def _rebuild(
    cls: type[Tensor], array: Any, requires_grad: bool, device: str | None, extra: dict[str, Any]
) -> Tensor:
    """Make a tensor again from its pickled parts."""
    target = as_device(device or "cpu")
    # A dtype that was pickled is an equal object, not the same one; dispatch compares by identity.
    if not isinstance(array, MetaArray):
        array = adopted(array.view(as_dtype("pickle", array.dtype)))
    tensor = make_tensor(array if target is CPU else to_device(array, target), cls)
    vars(tensor).update(extra)
    tensor.requires_grad = requires_grad
    return tensor


def to_array(op: str, data: Any, dtype: DType | None = None) -> np.ndarray[Any, Any]:
    """Copy data into a NumPy array; Python floats take the default dtype unless one is given."""
    if isinstance(data, Tensor):
        return adopted(np.array(data.numpy(), dtype=dtype))
    if isinstance(data, (bytearray, memoryview)):  # a sequence of numbers, as for PyTorch
        data = list(data)
    keep = isinstance(data, (np.ndarray, np.generic)) or hasattr(data, "__array__")
    first = first_of(op, "data", data)
    if isinstance(first, Tensor):
        data, dtype = _without_tensors(data, dtype)
    try:
        try:
            array = np.array(data)
        except GradientError:  # one of the tensors further on requires a gradient
            data, dtype = _without_tensors(data, dtype)
            array = np.array(data)
        if array.dtype.kind not in "biufcV" and not keep:
            raise TypeError("not a number")
        if dtype is not None:  # from the data once more: a number that overflows raises
            array = array.astype(dtype) if keep else np.array(data, dtype=dtype)
    except MemoryError as error:
        raise too_large_error(op, f"data, a {type(data).__name__}", error) from None
    except (ValueError, TypeError, OverflowError) as error:
        raise arg_error(
            op,
            "data",
            expected="a number, or nested sequences of numbers of equal lengths",
            got=f"{type(data).__name__} ({error})",
            hint="make all rows equally long and all elements numbers",
            kind=ArgumentTypeError if isinstance(error, TypeError) else ArgumentError,
        ) from None
    if dtype is None and not keep and array.dtype.kind in "fc":
        common = default_float() if array.dtype.kind == "f" else to_complex(default_float())
        elements = data if array.ndim else (data,)
        for _ in range(array.ndim - 1):
            elements = list(itertools.chain.from_iterable(elements))
        kinds = set(map(type, elements))
        if any(issubclass(kind, (np.generic, np.ndarray, Tensor)) for kind in kinds):
            dtypes = {x.dtype if hasattr(x, "dtype") else scalar_dtype(x) for x in elements}
            common = functools.reduce(common_dtype, dtypes)
        array = array.astype(common)
    return adopted(array.astype(as_dtype(op, array.dtype), copy=False))


def _without_tensors(data: Any, dtype: DType | None) -> tuple[Any, DType | None]:
    """Return nested sequences with their tensors as numbers, and the dtype common to all elements.

    A tensor of one element counts as a number whatever its shape, as in PyTorch.
    """
    elements: list[Any] = []
    listed = _listed(data, elements)
    if any(isinstance(x, Tensor) and x.requires_grad for x in elements):
        warn_caller(
            "tensor(): the data holds tensors that require a gradient, which will not flow there; "
            "use flow.stack(), or detach() them"
        )
    if dtype is None:
        for x in elements:
            own = x.dtype if hasattr(x, "dtype") else scalar_dtype(x)
            dtype = own if dtype is None else common_dtype(dtype, own)
    return listed, dtype


def _listed(value: Any, elements: list[Any]) -> Any:
    if isinstance(value, (list, tuple)):
        return [_listed(each, elements) for each in value]
    elements.append(value)
    if not isinstance(value, Tensor):
        return value
    return value.item() if value.numel() == 1 else value.detach().tolist()


def first_of(op: str, argument: str, data: Any) -> Any:
    """Return the first element of nested sequences, which arrays can have 64 levels of."""
    first = data
    for _ in range(65):
        if not isinstance(first, (list, tuple)) or not first:
            return first
        first = first[0]
    raise nesting_error(op, argument, data)
