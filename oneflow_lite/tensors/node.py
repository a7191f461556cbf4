"""FunctionNode: one recorded op in the graph, and AccumulateGrad, where a leaf's gradient ends.

The AutogradInterpreter makes nodes, the GraphTask runs them; a node knows shapes and edges, and its
gradient function knows the mathematics.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable
from typing import Any

import attrs
from numpy import ndarray

from oneflow_lite.arrays.device import CPU, Device, current_stream
from oneflow_lite.arrays.locks import make_lock
from oneflow_lite.arrays.refusals import guarded
from oneflow_lite.arrays.size import SIZES, Size
from oneflow_lite.errors import GradientError
from oneflow_lite.tensors.autograd_meta import AutogradMeta
from oneflow_lite.tensors.hooks import LeafHooks, NodeHooks, RemovableHandle, add_hook

_sequence = itertools.count()
_node_lock = make_lock()
Edge = tuple[Any, int]  # (FunctionNode, output index); (None, 0) where no gradient flows
NO_EDGE: Edge = (None, 0)


def next_sequence_nr() -> int:
    """Return a number above the numbers of all nodes so far, and below all later numbers."""
    return next(_sequence)


def _size(shape: tuple[int, ...]) -> Size:
    return SIZES[shape]


@attrs.frozen
class TensorInfo:
    """Shape, dtype and device of a node's output, and the stream on which it was made."""

    shape: Size = attrs.field(converter=_size)
    dtype: Any = attrs.field(repr=str)
    device: Device = attrs.field(repr=lambda device: repr(str(device)))
    stream: Any = attrs.field(default=None, repr=False, eq=False)
    home: Any = attrs.field(default=None, repr=False, eq=False)  # of a global tensor's gradient
    levels: Any = attrs.field(default=frozenset(), repr=False, eq=False)  # of transforms


def tensor_info(tensor: Any) -> TensorInfo:
    """Describe a tensor that an op has just made."""
    array = tensor._data
    if type(array) is ndarray:  # nodes of equal outputs share one description
        return _info_on_host(array.shape, array.dtype)
    levels = getattr(array, "levels", None)
    if levels and array.device_of_parts is CPU:
        return _info_in_levels(array.shape, array.dtype, levels)
    device = tensor.device
    home = array.home if tensor.is_global else None
    levels = levels or frozenset()
    return TensorInfo(array.shape, array.dtype, device, current_stream(device), home, levels)


@functools.lru_cache(1024)
def _info_on_host(shape: tuple[int, ...], dtype: Any) -> TensorInfo:
    return TensorInfo(shape, dtype, CPU)


@functools.lru_cache(256)
def _info_in_levels(shape: tuple[int, ...], dtype: Any, levels: Any) -> TensorInfo:
    return TensorInfo(shape, dtype, CPU, None, None, levels)


class FunctionNode:
    """A node of the backward graph, made by `make_node`.

    Attributes
    ----------
    grad_function : OpExprGradFunction
        Takes the gradient; shared by all nodes of the op.
    edges : tuple of (node, output index)
        One per input of the op, `(None, 0)` for an input that needs no gradient.
    saved : tuple of SavedTensor or None
        Tensors that the gradient needs; None once released.
    attrs : dict
        Plain values that the gradient needs.
    shape, dtype
        Of output 0.
    infos : list of TensorInfo or None
        Of every output, for a node of several outputs or on a CUDA device.
    sequence_nr : int
        Order of creation; edges point to smaller numbers.
    topological_nr : int
        Longest distance to a leaf.
    """

    __slots__ = (
        "__weakref__",
        "_metadata",
        "attrs",
        "dtype",
        "edges",
        "grad_function",
        "infos",
        "metas",
        "saved",
        "sequence_nr",
        "shape",
        "topological_nr",
    )

    grad_function: Any
    edges: tuple[Edge, ...]
    topological_nr: int
    saved: tuple[Any, ...] | None
    attrs: dict[str, Any]
    shape: tuple[int, ...]
    dtype: Any
    sequence_nr: int
    infos: list[TensorInfo | None] | None
    metas: list[AutogradMeta | None] | None

    def name(self) -> str:
        """Return the node's name, as `relu_backward`."""
        return str(self.grad_function.node_name)

    @property
    def next_functions(self) -> tuple[Edge, ...]:
        """The (node, output index) to which the gradient of each differentiable input goes."""
        takes = self.grad_function.takes_gradient
        return tuple(e for i, e in enumerate(self.edges) if e[0] is not None or takes(i))

    @property
    def output_tensor_infos(self) -> tuple[TensorInfo | None, ...]:
        """Shape, dtype and device of each output (None for an output without a gradient)."""
        if self.infos is not None:
            return tuple(self.infos)
        return (TensorInfo(self.shape, self.dtype, CPU),)

    @property
    def device(self) -> Device:
        """The device of the outputs."""
        infos = self.infos or ()
        return next((info.device for info in infos if info is not None), CPU)

    @property
    def stream(self) -> Any:
        """The CUDA stream that the op ran on, and on which its gradient is taken."""
        infos = self.infos or ()
        return next((info.stream for info in infos if info is not None), None)

    @property
    def output_meta_data(self) -> list[AutogradMeta]:
        """The AutogradMeta of each output."""
        return [self.output_meta(i) for i in range(1 if self.infos is None else len(self.infos))]

    @property
    def input_meta_data(self) -> list[AutogradMeta]:
        """The AutogradMeta of each input that requires a gradient."""
        return [node.output_meta(nr) for node, nr in self.edges if node is not None]

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The saved tensors, detached; () once released."""
        return self.grad_function.detached(self.saved) if self.saved else ()

    @property
    def backward_fn(self) -> Any:
        """The function from gradients of outputs to gradients of inputs; None once released."""
        return None if self.saved is None else self.grad_function.closure(self)

    @property
    def metadata(self) -> dict[str, Any]:
        """A dict for users' own notes."""
        try:
            return self._metadata
        except AttributeError:
            self._metadata: dict[str, Any] = {}
            return self._metadata

    @guarded
    def output_meta(self, index: int) -> AutogradMeta:
        """Return the AutogradMeta of an output, made on first use."""
        metas = self.metas
        if metas is not None and metas[index] is not None:
            return metas[index]  # type: ignore[return-value]
        with _node_lock:  # two threads may look at once, and must get the same object
            if self.metas is None:
                self.metas = [None] * (1 if self.infos is None else len(self.infos))
            meta = self.metas[index]
            if meta is None:
                meta = self.metas[index] = AutogradMeta(requires_grad=True, is_leaf=False)
            return meta

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(in_grads, out_grads)` after the node's gradients were taken.

        Parameters
        ----------
        hook : callable
            Gets two tuples of Tensor or None: the gradients of the op's inputs, which the node
            sends to its `next_functions`, and the gradients of the op's outputs, which it received.
            Returns None, or a tuple to send instead.

        Returns
        -------
        RemovableHandle
            Its `remove()` unregisters the hook.

        Examples
        --------
        >>> import oneflow_lite as flow
        >>> x = flow.ones(2, requires_grad=True)
        >>> y = x * 3
        >>> handle = y.grad_fn.register_hook(lambda in_grads, out_grads: (in_grads[0] * 10, None))
        >>> y.sum().backward()
        >>> x.grad
        tensor([30., 30.])
        """
        return add_hook("register_hook", self._node_hooks().post, hook)

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(out_grads)` before the node's gradients are taken.

        Parameters
        ----------
        hook : callable
            Gets a tuple of Tensor or None, one per output of the op, after the tensor hooks have
            run. Returns None, or a tuple to go on with.

        Returns
        -------
        RemovableHandle
            Its `remove()` unregisters the hook.
        """
        return add_hook("register_prehook", self._node_hooks().pre, hook)

    def _node_hooks(self) -> NodeHooks:
        with _node_lock:  # all nodes of the op share the gradient function: this node gets its own
            self.grad_function = self.grad_function.hooked()
            return self.grad_function.hooks  # type: ignore[no-any-return]

    def release(self) -> None:
        """Let go of the saved tensors. A node that saved nothing stays usable, as in PyTorch."""
        if self.saved:
            self.saved = None

    def __repr__(self) -> str:
        return f"<{self.name()}>"

    # From node_access.py, which stands on the engine: `ops/homes.py`.
    __call__: Callable[..., Any]
    _look_up: Callable[[str], Any]


class _SavedAttribute:
    """`node._saved_<name>`, for every name that an op saves.

    A `__getattr__` would serve all names, and make each access to a node slower.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, node: FunctionNode | None, owner: type) -> Any:
        return self if node is None else node._look_up(self._name)


def expose_saved(names: Iterable[str]) -> None:
    """Give nodes the attributes `_saved_<name>`."""
    for name in names:
        if f"_saved_{name}" not in vars(FunctionNode):
            setattr(FunctionNode, f"_saved_{name}", _SavedAttribute(f"_saved_{name}"))


expose_saved(["self", "other", "self_sym_sizes", "other_sym_sizes", "result", "y", "out"])
expose_saved(f"{kind}{i}" for kind in ("result", "y") for i in range(8))
_new_node = FunctionNode.__new__


def make_node(
    grad_function: Any,
    edges: tuple[Edge, ...],
    topological_nr: int,
    saved: tuple[Any, ...],
    attrs: dict[str, Any],
    shape: tuple[int, ...],
    dtype: Any,
    cls: type[FunctionNode] = FunctionNode,
) -> Any:
    """Make a node; calling the class instead would cost a third more, for every op."""
    node = _new_node(cls)
    node.grad_function = grad_function
    node.edges = edges
    node.topological_nr = topological_nr
    node.saved = saved
    node.attrs = attrs
    node.shape = shape
    node.dtype = dtype
    node.sequence_nr = next(_sequence)
    node.infos = None
    node.metas = None
    return node


def _no_backward(*out_grads: Any) -> tuple[()]:
    """Do nothing: a gradient that reaches a leaf goes no further."""
    return ()


class AccumulateGrad(FunctionNode):
    """The node of a leaf: the GraphTask adds the gradient that arrives to the meta's `acc_grad`."""

    __slots__ = ("home", "hooks", "leaf")
    hooks: NodeHooks | None
    leaf: Callable[[], Any]  # a weak reference: the tensor has the node
    home: Any  # placement and signatures of the gradient, where the leaf is a global tensor

    def name(self) -> str:
        """Return "accumulate_grad"."""
        return "accumulate_grad"

    @property
    def next_functions(self) -> tuple[Edge, ...]:
        """Empty: the walk ends at a leaf."""
        return ()

    @property
    def backward_fn(self) -> Any:
        """A function that does nothing."""
        return _no_backward

    @property
    def meta(self) -> AutogradMeta:
        """The leaf's AutogradMeta."""
        assert self.metas is not None and self.metas[0] is not None
        return self.metas[0]

    @property
    def variable(self) -> Any:
        """The leaf, as PyTorch calls it; raises `GradientError` where nobody holds it any more."""
        found = self.leaf()
        if found is None:
            raise GradientError("accumulate_grad: the leaf is gone; keep a reference to the tensor")
        return found

    def _node_hooks(self) -> NodeHooks:
        with _node_lock:
            if self.hooks is None:
                self.hooks = NodeHooks(LeafHooks)
            return self.hooks


def make_accumulate_grad(
    meta: AutogradMeta,
    shape: tuple[int, ...],
    dtype: Any,
    device: Device,
    leaf: Callable[[], Any],
    home: Any = None,
    levels: Any = frozenset(),
) -> AccumulateGrad:
    """Make the node of a leaf, of which `leaf` is a weak reference."""
    node: AccumulateGrad = make_node(None, (), 0, (), {}, shape, dtype, AccumulateGrad)
    node.metas = [meta]
    node.hooks = None
    node.leaf = leaf
    node.home = home
    if device is not CPU or levels:
        node.infos = [TensorInfo(shape, dtype, device, current_stream(device), None, levels)]
    return node


class GraphRoot(FunctionNode):
    """The node above the roots of a backward call of several tensors; sends each its gradient."""

    __slots__ = ()

    def name(self) -> str:
        """Return "graph_root"."""
        return "graph_root"

    @property
    def next_functions(self) -> tuple[Edge, ...]:
        """The roots."""
        return self.edges


def make_graph_root(grad_function: Any, edges: tuple[Edge, ...]) -> GraphRoot:
    """Make the node above several roots; its gradient function has their gradients."""
    number = 1 + max([node.topological_nr for node, _ in edges], default=0)
    node: GraphRoot = make_node(grad_function, edges, number, (), {}, (), None, GraphRoot)
    node.infos = []
    return node
