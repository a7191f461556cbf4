"""Typed tensors, `Variable`, and methods of Tensor, as scripts of older PyTorch use them."""

from __future__ import annotations

from typing import Any

from oneflow_lite.arrays.device import DeviceLike, as_device
from oneflow_lite.arrays.dtype import DType, Number, as_dtype
from oneflow_lite.arrays.dtype_object import DTYPES, dtype as DTypeObject
from oneflow_lite.arrays.refusals import guarded
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, arg_error
from oneflow_lite.interop.storages import TypedStorage, construct
from oneflow_lite.tensors.caller_warnings import warn_caller
from oneflow_lite.tensors.tensor import Tensor
from oneflow_lite.tensors.tensor_methods import TYPE_NAMES, type_


class TensorType(type):
    """The type of the typed tensors: a tensor is an instance by its dtype and device."""

    dtype: DType
    is_cuda: bool

    def __instancecheck__(cls, value: Any) -> bool:
        return (
            isinstance(value, Tensor) and value.dtype == cls.dtype and value.is_cuda == cls.is_cuda
        )

    def __call__(cls, *data: Any, device: DeviceLike | None = None) -> Tensor:
        place = as_device("cuda" if cls.is_cuda else "cpu")
        if device is not None and as_device(device).type != place.type:
            raise arg_error(
                cls.__name__,
                "device",
                expected=f"a {place.type} device",
                got=device,
                hint=f"use flow.tensor(..., device={str(device)!r})",
                kind=ArgumentError,
            )
        place = place if device is None else as_device(device)
        return construct(cls.__name__, cls.dtype, place, data)

    def __repr__(cls) -> str:
        return f"<class {cls.type_name!r}>"

    @property
    def type_name(cls) -> str:
        """The name that `Tensor.type()` returns."""
        return f"torch.{'cuda.' if cls.is_cuda else ''}{cls.__name__}"


def typed(name: str, on_cuda: bool) -> TensorType:
    """Return the class of the tensors of a dtype on a kind of device."""
    dtype = DTYPES[as_dtype(name, TYPE_NAMES[name])]
    body = {"dtype": dtype, "is_cuda": on_cuda, "__doc__": f"Tensors of dtype {dtype.name}."}
    return TensorType(name, (), body)


def __getattr__(name: str) -> Any:
    if name == "bfloat16":  # it raises where ml_dtypes is not installed
        return DTypeObject(name)
    if name in TYPE_NAMES:
        globals()[name] = typed(name, False)
        return globals()[name]
    if name.endswith("Storage") and f"{name.removesuffix('Storage')}Tensor" in TYPE_NAMES:
        globals()[name] = typed_storage(name)
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _VariableType(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, Tensor)


class Variable(metaclass=_VariableType):
    """`Variable(tensor, requires_grad)` is the tensor itself, cut off from its history.

    >>> import oneflow_lite as flow
    >>> flow.autograd.Variable(flow.ones(2), requires_grad=True)
    tensor([1., 1.], requires_grad=True)
    """

    def __new__(  # type: ignore[misc]
        cls, data: Tensor | None = None, requires_grad: bool = False, volatile: bool | None = None
    ) -> Tensor:
        if volatile is not None:
            warn_caller("Variable(): volatile has no effect; use `with flow.no_grad():`")
        if volatile and requires_grad:
            raise ArgumentError(
                "Variable(): expected volatile or requires_grad, got both; leave volatile out"
            )
        if data is None:
            data = Tensor()
        if not isinstance(data, Tensor):
            raise arg_error(
                "Variable",
                "data",
                expected="a Tensor",
                got=type(data).__name__,
                hint="wrap the value with flow.tensor(...)",
                kind=ArgumentTypeError,
            )
        return data.detach().requires_grad_(requires_grad)


# --- Methods --------------------------------------------------------------------------------------


@guarded
def new(self: Tensor, *data: Any, device: DeviceLike | None = None) -> Tensor:
    """Return a tensor of the dtype and device of this one, of sizes or of data."""
    return construct(
        "new", self._data.dtype, self.device if device is None else as_device(device), data
    )


@guarded
def as_subclass(self: Tensor, cls: type[Tensor]) -> Tensor:
    """Return the tensor as an instance of a subclass, with its memory and its place in the graph.

    Its methods and operators return the class, by its `__torch_function__`; functions return plain
    tensors.
    """
    made = self.view_as(self)
    made.__class__ = cls
    return made


def _is_view(self: Tensor) -> bool:
    """Return whether the tensor is a view of another."""
    return self._base is not None


def _make_subclass(cls: type[Tensor], data: Tensor, require_grad: bool = False) -> Tensor:
    """Return an instance of a subclass with the memory of a tensor, as a leaf."""
    return as_subclass(data.detach(), cls).requires_grad_(require_grad)


make_subclass = staticmethod(_make_subclass)


def share_memory_(self: Tensor) -> Tensor:
    """Return the tensor: threads share memory, and processes do not."""
    return self


def pin_memory(self: Tensor, device: DeviceLike | None = None) -> Tensor:
    """Return the tensor: memory is pinned for transfers only."""
    return self


def typed_storage(name: str) -> Any:
    """Return the class of the storages of a dtype."""
    dtype = as_dtype(name, TYPE_NAMES[name.replace("Storage", "Tensor")])
    return type(name, (TypedStorage,), {"_default": dtype, "__doc__": f"Storages of {dtype}."})


volatile = property(lambda self: False, doc="Whether nothing is recorded: never.")

# --- Functions ------------------------------------------------------------------------------------


def typename(obj: Any, /) -> str:
    """Return PyTorch's name of the type of a tensor, or the dotted name of a type or object."""
    if isinstance(obj, Tensor):
        return str(type_(obj))
    if isinstance(obj, TensorType):
        return obj.type_name
    kind = obj if hasattr(obj, "__qualname__") else type(obj)
    home = getattr(kind, "__module__", "builtins")
    return kind.__qualname__ if home == "builtins" else f"{home}.{kind.__qualname__}"


@guarded
def detach(input: Tensor) -> Tensor:
    """Return `input.detach()`."""
    return input.detach()


@guarded
def detach_(input: Tensor) -> Tensor:
    """Return `input.detach_()`."""
    return input.detach_()


def addmv_(
    input: Tensor, mat: Tensor, vec: Tensor, *, beta: Number = 1, alpha: Number = 1
) -> Tensor:
    """Return `input.addmv_(mat, vec)`."""
    return input.addmv_(mat, vec, beta=beta, alpha=alpha)


_MODES = ("sum", "mean", "max")


@guarded
def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return `nn.functional.embedding_bag`, then the bag of each index, sizes and offsets of bags.

    mode: 0 is the sum, 1 the mean, 2 the maximum.
    """
    import oneflow_lite as flow

    bags = flow.nn.functional.embedding_bag(
        indices,
        weight,
        offsets,
        scale_grad_by_freq=scale_grad_by_freq,
        mode=_MODES[mode],
        sparse=sparse,
        per_sample_weights=per_sample_weights,
        include_last_offset=include_last_offset,
        padding_idx=padding_idx,
    )
    starts = offsets[:-1] if include_last_offset else offsets
    ends = flow.cat([starts[1:], offsets.new_tensor([len(indices)])])
    sizes = ends - starts
    bag_of = flow.repeat_interleave(flow.arange(len(sizes)), sizes)
    return bags, bag_of, sizes, starts


def check_dtype(op: str, dtype: DType) -> None:
    """Raise where a dtype cannot be the default dtype."""
    if dtype.kind != "f":
        raise arg_error(
            op,
            "t",
            expected="a type of floating point tensors",
            got=dtype,
            hint="pass 'torch.FloatTensor' or 'torch.DoubleTensor'",
            kind=ArgumentTypeError,
        )
