"""Parameter and Buffer, which a Module registers by itself, and both with a shape to come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

from oneflow_lite.arrays.device import Device, DeviceLike
from oneflow_lite.arrays.dtype import DTypeLike
from oneflow_lite.arrays.dtype_object import dtype as DTypeObject
from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, arg_error
from oneflow_lite.functors.declaring.checks import check_int
from oneflow_lite.ops.exposure import expose
from oneflow_lite.tensors.mode import no_grad
from oneflow_lite.tensors.tensor import OWN_FIELDS, Tensor, make_tensor

expose(globals())


def _adopt(tensor: Tensor, data: Any, requires_grad: bool | None) -> None:
    """Give a new tensor the memory of `data`, but not its place in a graph."""
    if not isinstance(data, Tensor):
        raise arg_error(
            type(tensor).__name__,
            "data",
            expected="a Tensor",
            got=type(data).__name__,
            hint="wrap the values with flow.tensor(...)",
            kind=ArgumentTypeError,
        )
    tensor._data = data._data
    tensor._storage = data.memory
    tensor.requires_grad = data.requires_grad if requires_grad is None else requires_grad


class Parameter(Tensor):
    """A tensor that a `Module` registers as a parameter when it is assigned as an attribute.

    Parameters
    ----------
    data : Tensor, optional
        Shares memory with the parameter, but not its place in a graph. Empty when None.
    requires_grad : bool
        Whether gradients are computed for it.

    Raises
    ------
    ArgumentTypeError
        When `data` is not a tensor.
    DTypeError
        When a gradient is required of a tensor that is neither floating point nor complex.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.Parameter(flow.tensor([1.0, 2.0]))
    Parameter containing:
    tensor([1., 2.], requires_grad=True)
    """

    def __new__(cls, *args: Any, **fields: Any) -> Self:
        made = super().__new__(cls)
        if cls.__new__ is not Parameter.__new__:  # a class whose own `__new__` makes a parameter
            Parameter.__init__(made, *args, **fields)
        return made

    def __init__(
        self, data: Tensor | None = None, requires_grad: bool = True, **fields: Any
    ) -> None:
        if "_data" in vars(self):
            return  # made in the `__new__` of a subclass, which takes arguments of its own
        # Scripts hand `vars(parameter)` on, in which a tensor's own fields stand, too.
        for name in fields.keys() - OWN_FIELDS:
            raise ArgumentTypeError(f"Parameter() got an unexpected keyword argument {name!r}")
        _adopt(self, Tensor(0) if data is None else data, requires_grad)

    def _deep_copy(self, memo: dict[int, Any]) -> Tensor:
        """Return a copy in memory of its own, without the gradient, as PyTorch does."""
        twin = make_tensor(self._data.copy(), type(self))
        twin.requires_grad = self.requires_grad
        return twin

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()


class Buffer(Tensor):
    """A tensor that a `Module` registers as a buffer when it is assigned as an attribute.

    Parameters
    ----------
    data : Tensor, optional
        Shares memory with the buffer, but not its place in a graph. Empty when None.
    persistent : bool
        Whether it is part of the module's state dict.

    Raises
    ------
    ArgumentTypeError
        When `data` is not a tensor.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> module = flow.nn.Module()
    >>> module.scale = flow.nn.Buffer(flow.tensor([2.0]))
    >>> module.state_dict()["scale"]
    tensor([2.])
    """

    persistent: bool

    def __init__(self, data: Tensor | None = None, *, persistent: bool = True) -> None:
        _adopt(self, Tensor(0) if data is None else data, None)
        self.persistent = persistent


class UninitializedTensorMixin(Tensor):
    """A tensor whose shape is not known yet; before `materialize` it can be moved and converted.

    Reading its shape or values raises an `ArgumentError`, a ValueError and RuntimeError.
    """

    cls_to_become: ClassVar[type[Tensor]] = Tensor
    _stub: Parameter  # without elements; it knows device and dtype, and whether it is trained

    def __init__(
        self, requires_grad: bool, device: DeviceLike | None, dtype: DTypeLike | None
    ) -> None:
        stub: Tensor = Tensor(0, device=device)
        self._stub = Parameter(stub if dtype is None else stub.to(dtype=dtype), requires_grad)

    def materialize(
        self,
        shape: int | Sequence[int],
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        """Become an ordinary parameter or buffer of this shape, filled with zeros.

        Device and dtype stay by default.
        """
        given = shape if isinstance(shape, (tuple, list)) else (shape,)
        sizes = tuple(check_int("materialize", "shape", size, 0) for size in given)
        self._stub.data = self._stub.data.new_zeros(sizes, device=device, dtype=dtype)
        # In place: the module and the optimizer hold this object.
        stub = vars(self).pop("_stub")
        self.__class__ = self.cls_to_become
        vars(self).update({name: stub.__dict__[name] for name in OWN_FIELDS & vars(stub).keys()})

    def _unknown(self) -> Any:
        raise ArgumentError(
            f"{type(self).__name__}: its shape and values are not known yet; call the lazy module "
            "once with a batch, load its state dict, or call materialize(shape)"
        )

    _data = shape = property(_unknown)

    @property
    def dtype(self) -> DTypeObject:
        """The element type that it will have."""
        return self._stub.dtype

    @property
    def device(self) -> Device:
        """The device that it will be on."""
        return self._stub.device

    @property
    def data(self) -> Tensor:
        """A tensor without elements, of this device and dtype; assign a tensor to convert."""
        return self._stub.data

    @data.setter
    def data(self, value: Tensor) -> None:
        self._stub.data = value

    @property
    def requires_grad(self) -> bool:
        """Whether gradients will be computed for it."""
        return self._stub.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._stub.requires_grad = value

    def is_floating_point(self) -> bool:
        """Return whether the dtype is a floating point dtype."""
        return self._stub.is_floating_point()

    def is_complex(self) -> bool:
        """Return whether the dtype is complex."""
        return self._stub.is_complex()

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Set the device and the dtype that it will have, in place."""
        self._stub.data = self._stub.data.to(*args, **kwargs)
        return self

    def detach(self) -> Self:
        """Return itself: there is no graph and no memory yet."""
        return self

    def copy_(self, src: Any, non_blocking: bool = False) -> Tensor:
        """Take the shape of `src`, and its elements if they are known."""
        if is_lazy(src):
            return self
        self.materialize(src.shape)
        return self.copy_(src)  # the method of its new class

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        fields = {name: value for name, value in vars(self).items() if name != "_stub"}
        return type(self), (self.requires_grad, str(self.device), self.dtype), fields or None

    def __copy__(self) -> Self:
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        make, given, fields = self.__reduce_ex__(4)
        memo[id(self)] = made = make(*given)
        vars(made).update(fields or {})
        return made  # type: ignore[no-any-return]


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is not known yet: a lazy module makes it at its first call.

    >>> import oneflow_lite as flow
    >>> weight = flow.nn.UninitializedParameter()
    >>> weight
    <UninitializedParameter>
    >>> weight.materialize((2,))
    >>> weight
    Parameter containing:
    tensor([0., 0.], requires_grad=True)
    """

    cls_to_become = Parameter

    def __init__(
        self,
        requires_grad: bool = True,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(requires_grad, device, dtype)


class UninitializedBuffer(UninitializedTensorMixin, Buffer):
    """A buffer whose shape is not known yet; see `UninitializedParameter`."""

    def __init__(
        self,
        requires_grad: bool = False,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
        persistent: bool = True,
    ) -> None:
        super().__init__(requires_grad, device, dtype)
        self.persistent = persistent


def is_lazy(param: Any) -> bool:
    """Return whether a value is a tensor whose shape is not known yet."""
    return isinstance(param, UninitializedTensorMixin)


def clear_grad(parameter: Tensor, set_to_none: bool) -> None:
    """Drop a gradient, or fill it with zeros in place and detach it from any graph."""
    grad = parameter.grad
    if grad is None:
        return
    if set_to_none:
        parameter.grad = None
        return
    if grad.requires_grad:  # made with create_graph=True: the graph keeps the old values
        grad = grad.detach().clone()
        parameter.grad = grad
    with no_grad():
        grad.zero_()


guard_all(globals())
