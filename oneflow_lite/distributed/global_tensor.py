"""Global tensors: the functions that users call, from `flow.distributed` or as methods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from oneflow_lite.distributed import process_group as groups
from oneflow_lite.distributed.boxing import agree_on_generator, on_placement
from oneflow_lite.distributed.global_array import GlobalArray
from oneflow_lite.distributed.global_interpreter import GlobalInterpreter, as_global
from oneflow_lite.distributed.objects import all_gather_object
from oneflow_lite.distributed.placement import (
    B,
    NdSbp,
    P,
    Sbp,
    as_nd_sbp,
    placement,
    placement as Placement,
)
from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    DistributedError,
    arg_error,
)
from oneflow_lite.interpreter.dispatch import dispatch
from oneflow_lite.interpreter.explain import global_tensor_error
from oneflow_lite.interpreter.stack import add_layer
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.tensors.mode import local as thread
from oneflow_lite.tensors.tensor import Tensor, make_tensor

_FROM_LOCAL = op_expr("local_to_global")
_FROM_GLOBAL = op_expr("global_to_global")
_TO_LOCAL = op_expr("global_to_local")


def check_placement(op: str, value: Any) -> Placement:
    """Return a placement."""
    if not isinstance(value, Placement):
        got, hint = type(value).__name__, 'as flow.placement("cpu", ranks=[0, 1])'
        raise arg_error(op, "placement", "a placement", got, hint, ArgumentTypeError)
    return value


def refuse_capture(op: str) -> None:
    """Raise where ops are recorded: by `flow.compile`, or for a Program."""
    if thread.observer is not None or type(thread.state.interpreter).__name__ == "LazyInterpreter":
        raise global_tensor_error(op)


def to_global(
    self: Tensor,
    placement: placement | None = None,
    sbp: Sbp | Sequence[Sbp] | None = None,
    *,
    grad_sbp: Any = None,
    check_meta: bool = True,
    copy: bool = False,
) -> Tensor:
    """Return a global tensor on a placement, with a signature. All ranks call it.

    A tensor of this rank becomes this rank's part: `split` joins the parts, `partial_sum` sums
    them, and `broadcast` gives all ranks the first rank's tensor. The parts of a split differ by
    one row at most, larger parts first. A global tensor keeps its elements and gets another
    signature or placement.

    Parameters
    ----------
    placement : placement
        May be left out for a global tensor, which then stays where it is.
    sbp : Sbp or sequence of Sbp
        One for each axis of the placement.
    grad_sbp : Sbp or sequence of Sbp, optional
        The signature of the gradient that goes back to a global tensor; by default its own, or
        `broadcast` for a partial sum.
    check_meta : bool
        Without effect: shapes are compared.
    copy : bool
        Whether a global tensor is copied where nothing changes.

    Raises
    ------
    ArgumentError
        When the shapes of the ranks' parts do not fit together.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> here = flow.placement("cpu", ranks=[0])
    >>> x = flow.ones(2, 3).to_global(here, flow.sbp.split(0))
    >>> x.is_global, x.shape, x.sbp
    (True, (2, 3), (oneflow_lite.sbp.split(dim=0),))
    >>> x.sum(0).to_local()
    tensor([2., 2., 2.])
    """
    op = "to_global"
    refuse_capture(op)
    add_layer(GlobalInterpreter)
    data = self._data
    if self.is_global:
        where = data.placement if placement is None else check_placement(op, placement)
        nd_sbp = data.sbp if sbp is None else as_nd_sbp(op, where, sbp, self.ndim)
        back = None if grad_sbp is None else as_nd_sbp(op, data.placement, grad_sbp, self.ndim)
        if where == data.placement and nd_sbp == data.sbp and back is None:
            return self.clone() if copy else self
        attrs = {"placement": where, "sbp": nd_sbp, "grad_sbp": back}
        return dispatch(_FROM_GLOBAL, (self,), attrs)
    where = check_placement(op, placement)
    if sbp is None:
        hint = "as flow.sbp.split(0)"
        raise arg_error(op, "sbp", "a signature for each axis", None, hint, ArgumentTypeError)
    nd_sbp = as_nd_sbp(op, where, sbp, self.ndim)
    shape = _whole_shape(self, where, nd_sbp)
    attrs = {"placement": where, "sbp": nd_sbp, "shape": shape}
    return dispatch(_FROM_LOCAL, (self,), attrs)


def _whole_shape(x: Tensor, where: Placement, nd_sbp: NdSbp) -> tuple[int, ...]:
    """Compare the parts of all ranks; return the shape of the whole."""
    given = (tuple(x.shape), str(x.dtype))
    world = groups.group_of(None)
    parts: list[Any] = [given]
    if world.size() > 1:
        parts = [None] * world.size()
        all_gather_object(parts, given, world)
    members = where.members
    known = {rank: parts[world.ranks.index(rank)] for rank in members}
    first = known[members[0]]
    shape = list(first[0])
    grid = len(where.shape) == 2
    places: dict[int, tuple[int, ...]] = {
        rank: divmod(i, where.shape[-1]) if grid else (i,) for i, rank in enumerate(members)
    }
    for dim in {each.dim for each in nd_sbp if each.dim is not None}:
        # A line of parts along the axes that split `dim`, at place 0 of every other axis.
        line = [
            known[rank][0]
            for rank, at in places.items()
            if all(i == 0 or each.dim == dim for i, each in zip(at, nd_sbp, strict=True))
        ]
        shape[dim] = sum(part[dim] for part in line if len(part) == len(shape))
    for rank in members:
        wanted = where.local_shape(tuple(shape), nd_sbp, places[rank])
        if known[rank] != (wanted, first[1]):
            raise arg_error(
                "to_global",
                "self",
                expected=f"shape {wanted} and dtype {first[1]} on rank {rank}, its part of "
                f"{tuple(shape)}",
                got=f"shape {known[rank][0]} and dtype {known[rank][1]}",
                hint="give the first ranks one row more where the parts are uneven",
                kind=ArgumentError,
            )
    return tuple(shape)


def to_local(self: Tensor, copy: bool = False) -> Tensor:
    """Return this rank's part of a global tensor, as a tensor of its own.

    The gradient that comes back is taken to be this rank's part of a gradient with the signature
    of the tensor. A rank outside of the placement gets an empty tensor.

    copy: without effect: a copy is made in any case.
    """
    if not self.is_global:
        expected, hint = "a global tensor", "make one with to_global(placement, sbp)"
        raise arg_error("to_local", "self", expected, self, hint, ArgumentError)
    return dispatch(_TO_LOCAL, (self,))


def local_to_global(
    self: Tensor,
    placement: placement | None = None,
    sbp: Sbp | Sequence[Sbp] | None = None,
    **options: Any,
) -> Tensor:
    """Return `to_global` of a tensor of this rank."""
    _check_kind("local_to_global", self, False)
    return to_global(self, placement, sbp, **options)


def global_to_global(
    self: Tensor,
    placement: placement | None = None,
    sbp: Sbp | Sequence[Sbp] | None = None,
    **options: Any,
) -> Tensor:
    """Return `to_global` of a global tensor."""
    _check_kind("global_to_global", self, True)
    return to_global(self, placement, sbp, **options)


def _check_kind(op: str, x: Tensor, wanted: bool) -> None:
    if x.is_global is not wanted:
        kinds = ("a tensor of this rank", "a global tensor")
        hint = "call to_global()"
        raise arg_error(op, "self", kinds[wanted], kinds[not wanted], hint, ArgumentError)


def _placement_of(self: Tensor) -> Placement:
    """The ranks on which a global tensor lies."""
    return _data_of("placement", self).placement


def _sbp_of(self: Tensor) -> NdSbp:
    """The signature of a global tensor, one for each axis of its placement."""
    return _data_of("sbp", self).sbp


def _data_of(name: str, x: Tensor) -> GlobalArray:
    if not x.is_global:
        raise DistributedError(
            f"{name}: a tensor of one rank has none; make a global tensor with "
            "to_global(placement, sbp)"
        )
    return x._data


def module_to_global(
    self: Any,
    placement: placement,
    sbp: Sbp | Sequence[Sbp] | Callable[[str, Tensor], Any] | None = None,
) -> Any:
    """Make all parameters and buffers global, in place, and return the module.

    Parameters
    ----------
    placement : placement
    sbp : Sbp, sequence of Sbp, or callable
        A signature for all, or a function `sbp(name, tensor)`; `broadcast` by default. All ranks
        begin with the first rank's values.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> here = flow.placement("cpu", ranks=[0])
    >>> net = flow.nn.Linear(2, 3).to_global(here, flow.sbp.broadcast)
    >>> net.weight.is_global, net(flow.ones(1, 2).to_global(here, flow.sbp.split(0))).shape
    (True, (1, 3))
    """
    where = check_placement("to_global", placement)
    named = {id(x): name for name, x in self.named_buffers()}
    named |= {id(x): name for name, x in self.named_parameters()}

    def convert(tensor: Tensor) -> Tensor:
        chosen = sbp
        if callable(sbp) and not isinstance(sbp, Sbp):
            chosen = sbp(named.get(id(tensor), ""), tensor)
        nd_sbp = as_nd_sbp("to_global", where, B if chosen is None else chosen, tensor.ndim)
        if tensor.is_global:
            return to_global(tensor, where, nd_sbp)
        whole = to_global(tensor.detach(), where, B)  # takes the first rank's values
        return to_global(whole, where, nd_sbp)

    self._apply(convert)
    return self


def made_global(where: Placement, op: str, sbp: Any, make: Any, options: Any = None) -> Tensor:
    """Return a creation function's result as a global tensor.

    A constant is made part by part. Of all else each rank makes the whole and keeps its part, so
    that the values do not depend on the placement. Random numbers are those of the first rank's
    generator.
    """
    refuse_capture(op)
    options = options or {}
    if options.get("out") is not None:
        hint = "leave it out"
        raise arg_error(op, "out", "None for a global tensor", "a tensor", hint, ArgumentError)
    add_layer(GlobalInterpreter)
    shape = options.get("shape")
    if sbp is None:
        hint = "as flow.sbp.split(0)"
        raise arg_error(op, "sbp", "a signature for each axis", None, hint, ArgumentTypeError)
    if shape is not None and "generator" not in options:
        nd_sbp = as_nd_sbp(op, where, sbp, len(shape))
        if P not in nd_sbp:
            part: Tensor = make({"shape": where.local_shape(tuple(shape), nd_sbp)})
            array = on_placement(part._data, where)
            result = make_tensor(where.hold(array, nd_sbp, tuple(shape), array.dtype))
            result.requires_grad = part.requires_grad
            return result
    if "generator" in options:
        agree_on_generator(where, options["generator"])
    made: Tensor = make({})
    nd_sbp = as_nd_sbp(op, where, sbp, made.ndim)
    result = make_tensor(as_global(where, nd_sbp, made._data))
    result.requires_grad = made.requires_grad
    return result


METHODS = {
    "to_global": to_global,
    "to_local": to_local,
    "local_to_global": local_to_global,
    "global_to_global": global_to_global,
    "is_local": property(lambda x: not x.is_global, doc="Whether it is one rank's."),
    "placement": property(_placement_of),
    "sbp": property(_sbp_of),
    "module_to_global": module_to_global,  # a method of Module
}
