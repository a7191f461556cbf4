"""A strict stand-in for cuDNN's Python frontend: graphs of one node, run on the stand-in's memory.

It takes the keywords that NVIDIA's `cudnn.pygraph` takes, in the order of steps that it asks for;
`tests/cudnn/test_frontend.py` gives the same graphs to that one. Dimensions, strides, dtypes and
uids are checked to the letter, and a tensor is read where its pointer and strides say. The
arithmetic is written down in float64 from the definitions. Refused are the kinds of calls that
cuDNN 9.28 has no engine for on an H100.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from oneflow_lite.ops import cudnn as ours
from tests.strict_cupy import devices
from tests.strict_cupy.array import _launch, _run
from tests.strict_cupy.graphs import no_sync

data_type = Enum("data_type", "NOT_SET HALF FLOAT DOUBLE BFLOAT16")
heur_mode = Enum("heur_mode", "A B FALLBACK")
norm_forward_phase = Enum("norm_forward_phase", "NOT_SET TRAINING INFERENCE")
numerical_note = Enum("numerical_note", "TENSOR_CORE DOWN_CONVERT_INPUTS NONDETERMINISTIC")
_NUMPY = {
    data_type.HALF: np.dtype(np.float16),
    data_type.FLOAT: np.dtype(np.float32),
    data_type.DOUBLE: np.dtype(np.float64),
}
_NOTE = numerical_note
ENGINES = {  # names, with what is noted of them, as the heuristics rank them
    "adds in any order": {_NOTE.NONDETERMINISTIC},
    "tensor cores": {_NOTE.TENSOR_CORE},
    "rounds": {_NOTE.DOWN_CONVERT_INPUTS},
    "plain": set(),
    "quick": set(),
}
WORKSPACE = 48

built: list[str] = []  # the node of each plan that was built
ran: list[tuple[str, str]] = []  # node and engine of each run
graphs: list[pygraph] = []  # all graphs, to look at


class cudnnGraphNotSupportedError(Exception):
    """No engine takes the graph."""


class Handle:
    """A handle of the device that is current when it is made."""

    def __init__(self) -> None:
        self.device, self.stream = devices.current_device(), 0


def create_handle() -> Handle:
    no_sync(devices.get_current_stream().graph)  # it allocates memory
    return Handle()


def set_stream(handle: Handle, stream: int) -> None:
    assert type(handle) is Handle and type(stream) is int
    assert handle.device == devices.current_device()
    handle.stream = stream


class Tensor:
    """A tensor of a graph."""

    def __init__(self, graph: pygraph, name: str) -> None:
        self.graph, self.name = graph, name
        self.dim: list[int] = []
        self.stride: list[int] = []
        self.type: data_type | None = None
        self.uid = 0
        self.by_value = self.virtual = False

    def set_output(self, output: bool) -> Tensor:
        self.virtual = not output
        return self

    def set_uid(self, uid: int) -> Tensor:
        assert type(uid) is int and uid > 0
        assert uid not in [t.uid for t in self.graph.tensors], f"two tensors have uid {uid}"
        self.uid = uid
        return self

    def set_dim(self, dim: Sequence[int]) -> Tensor:
        assert dim and all(type(n) is int and n > 0 for n in dim)
        self.dim = list(dim)
        return self

    def set_stride(self, stride: Sequence[int]) -> Tensor:
        assert len(stride) == len(self.dim) and all(type(n) is int and n > 0 for n in stride)
        self.stride = list(stride)
        return self

    def set_data_type(self, type: data_type) -> Tensor:
        assert type in _NUMPY
        self.type = type
        return self

    @property
    def dtype(self) -> np.dtype[Any]:
        return _NUMPY[self.type]

    def at(self, pointer: int) -> Any:
        """Return the elements that lie there, a host array."""
        span = 1 + sum((n - 1) * s for n, s in zip(self.dim, self.stride, strict=True))
        if self.by_value:
            memory = (ctypes.c_char * self.dtype.itemsize).from_address(pointer)
            return np.frombuffer(memory, self.dtype)[0]
        assert devices.pointers is not None
        host = devices.pointers[pointer]  # a KeyError: no array begins there
        assert host.flags.c_contiguous and host.dtype == self.dtype, self.name
        assert host.size >= span, f"{self.name} has {host.size} elements, and {span} are touched"
        strides = [s * self.dtype.itemsize for s in self.stride]
        return np.lib.stride_tricks.as_strided(host.reshape(-1), self.dim, strides)


class pygraph:
    """A graph of one node."""

    def __init__(
        self,
        *,
        handle: Handle,
        io_data_type: data_type,
        intermediate_data_type: data_type,
        compute_data_type: data_type,
    ) -> None:
        assert type(handle) is Handle
        self.handle, self.real = handle, compute_data_type
        assert {io_data_type, intermediate_data_type} == {compute_data_type}
        self.tensors: list[Tensor] = []
        self.step = 0
        self.barred: set[numerical_note] = set()
        self.plans: set[int] = set()  # indices of those that are built
        self.selected = -1
        self.node: Any = None
        graphs.append(self)

    def tensor(
        self,
        *,
        name: str,
        uid: int,
        dim: Sequence[int],
        stride: Sequence[int],
        data_type: data_type,
        is_pass_by_value: bool = False,
    ) -> Tensor:
        made = Tensor(self, name).set_uid(uid).set_dim(dim).set_stride(stride)
        made.set_data_type(data_type).by_value = is_pass_by_value
        self.tensors.append(made)
        return made

    def _add(self, name: str, inputs: dict[str, Tensor], results: str, compute: Any) -> Any:
        assert self.node is None
        made = [Tensor(self, result) for result in results.split()]
        for tensor in made:
            tensor.virtual = True
        self.tensors += made
        self.node = SimpleNamespace(name=name, inputs=inputs, results=made, compute=compute)
        return made if len(made) > 1 else made[0]

    # Convolution

    def conv_fprop(self, *, image: Tensor, weight: Tensor, **geometry: Any) -> Tensor:
        self._channels(image.dim[1], weight.dim[1], weight.dim[0])
        size = _windows(image.dim, weight.dim, **geometry)

        def compute(x: Any, w: Any) -> list[Any]:
            y = np.zeros((len(x), len(w), *size))
            for group, inner, outer in _groups(x.shape[1], *w.shape[:2]):
                for tap, x_there, _ in _taps(x, w.shape[2:], size, **geometry):
                    part = x_there[:, inner]
                    y[:, outer] += np.einsum("nc...,oc->no...", part, w[(group, ..., *tap)])
            return [y]

        inputs = {"x": image, "w": weight}
        return self._add(
            "conv_fprop", inputs, "Y", (compute, lambda: [(image.dim[0], weight.dim[0], *size)])
        )

    def conv_dgrad(self, *, loss: Tensor, filter: Tensor, **geometry: Any) -> Tensor:
        def shape() -> list[tuple[int, ...]]:
            dim = self.node.results[0].dim  # the user's: several sizes have as many windows
            assert dim[0] == loss.dim[0] and loss.dim[1] == filter.dim[0]
            assert _windows(dim, filter.dim, **geometry) == tuple(loss.dim[2:])
            self._channels(dim[1], filter.dim[1], filter.dim[0])
            return [tuple(dim)]

        def compute(dy: Any, w: Any) -> list[Any]:
            dx = np.zeros(self.node.results[0].dim)
            for group, inner, outer in _groups(dx.shape[1], *w.shape[:2]):
                for tap, _, put in _taps(dx, w.shape[2:], dy.shape[2:], **geometry):
                    part = np.einsum("no...,oc->nc...", dy[:, outer], w[(group, ..., *tap)])
                    put(part, inner)
            return [dx]

        return self._add("conv_dgrad", {"dy": loss, "w": filter}, "DX", (compute, shape))

    def conv_wgrad(self, *, image: Tensor, loss: Tensor, **geometry: Any) -> Tensor:
        def shape() -> list[tuple[int, ...]]:
            dim = self.node.results[0].dim
            assert dim[0] == loss.dim[1] and image.dim[0] == loss.dim[0]
            assert _windows(image.dim, dim, **geometry) == tuple(loss.dim[2:])
            self._channels(image.dim[1], dim[1], dim[0])
            return [tuple(dim)]

        def compute(x: Any, dy: Any) -> list[Any]:
            dw = np.zeros(self.node.results[0].dim)
            for group, inner, outer in _groups(x.shape[1], *dw.shape[:2]):
                for tap, x_there, _ in _taps(x, dw.shape[2:], dy.shape[2:], **geometry):
                    flat = [a.reshape(*a.shape[:2], -1) for a in (dy[:, outer], x_there[:, inner])]
                    dw[(group, ..., *tap)] = np.einsum("nos,ncs->oc", *flat)
            return [dw]

        return self._add("conv_wgrad", {"x": image, "dy": loss}, "DW", (compute, shape))

    def _channels(self, channels: int, of_filter: int, filters: int) -> None:
        assert channels % of_filter == 0 and filters % (channels // of_filter) == 0

    # Normalization

    def layernorm(
        self, *, norm_forward_phase: norm_forward_phase, input: Tensor, epsilon: Tensor
    ) -> Any:
        return self._row_norm("layernorm", "Y mean inv_var", norm_forward_phase, input, epsilon)

    def rmsnorm(
        self, *, norm_forward_phase: norm_forward_phase, input: Tensor, epsilon: Tensor
    ) -> Any:
        return self._row_norm("rmsnorm", "Y inv_var", norm_forward_phase, input, epsilon)

    def _row_norm(self, name: str, results: str, phase: Any, x: Tensor, epsilon: Tensor) -> Any:
        assert phase is norm_forward_phase.TRAINING and epsilon.by_value
        centred = name == "layernorm"

        def compute(x: Any, eps: Any) -> list[Any]:
            mean = x.mean(axis=(1, 2, 3), keepdims=True) * centred
            inverse = 1 / np.sqrt(((x - mean) ** 2).mean(axis=(1, 2, 3), keepdims=True) + eps)
            return [(x - mean) * inverse, *[mean] * centred, inverse]

        one = (x.dim[0], 1, 1, 1)
        shapes = [tuple(x.dim), *[one] * (1 + centred)]
        return self._add(name, {"x": x, "eps": epsilon}, results, (compute, lambda: shapes))

    def batchnorm(
        self,
        *,
        input: Tensor,
        scale: Tensor,
        bias: Tensor,
        in_running_mean: Tensor,
        in_running_var: Tensor,
        epsilon: Tensor,
        momentum: Tensor,
    ) -> Any:
        given = [scale, bias, in_running_mean, in_running_var]
        shape = (1, input.dim[1], 1, 1)
        assert all(tuple(t.dim) == shape for t in given) and epsilon.by_value and momentum.by_value

        def compute(*arrays: Any) -> list[Any]:
            x, w, b, running_mean, running_var, eps, new = arrays
            mean, var = (f(x, axis=(0, 2, 3), keepdims=True) for f in (np.mean, np.var))
            inverse = 1 / np.sqrt(var + eps)
            running_mean = (1 - new) * running_mean + new * mean
            running_var = (1 - new) * running_var + new * var  # or that of a sample: not relied on
            return [(x - mean) * inverse * w + b, mean, inverse, running_mean, running_var]

        names = ("x", "w", "b", "running_mean", "running_var", "eps", "momentum")
        inputs = dict(zip(names, (input, *given, epsilon, momentum), strict=True))
        results = "Y mean inv_var next_running_mean next_running_var"
        shapes = [tuple(input.dim), *[shape] * 4]
        return self._add("batchnorm", inputs, results, (compute, lambda: shapes))

    def layernorm_backward(self, *, mean: Tensor, **tensors: Tensor) -> Any:
        return self._gradient("layernorm_backward", (1, 2, 3), mean=mean, **tensors)

    def rmsnorm_backward(self, *, has_dbias: bool, **tensors: Tensor) -> Any:
        assert has_dbias is False
        return self._gradient("rmsnorm_backward", (1, 2, 3), **tensors)

    def batchnorm_backward(self, *, mean: Tensor, scale: Tensor, **tensors: Tensor) -> Any:
        return self._gradient("batchnorm_backward", (0, 2, 3), mean=mean, scale=scale, **tensors)

    def _gradient(
        self,
        name: str,
        axes: tuple[int, ...],
        *,
        grad: Tensor,
        input: Tensor,
        inv_variance: Tensor,
        mean: Tensor | None = None,
        scale: Tensor | None = None,
    ) -> Any:
        whole = tuple(input.dim)
        of_row = tuple(1 if i in axes else n for i, n in enumerate(whole))
        of_weight = of_row if 0 in axes else (1, *whole[1:])
        assert tuple(grad.dim) == whole and tuple(inv_variance.dim) == of_row
        assert mean is None or tuple(mean.dim) == of_row
        assert scale is None or tuple(scale.dim) == of_weight
        over = tuple(i for i, n in enumerate(of_weight) if n == 1)

        def compute(dy: Any, x: Any, inverse: Any, **given: Any) -> list[Any]:
            z = (x - given.get("mean", 0)) * inverse
            dz = dy * given.get("scale", 1)
            product = (dz * z).mean(axis=axes, keepdims=True)
            total = dz.mean(axis=axes, keepdims=True) * (mean is not None)
            dx = inverse * (dz - total - z * product)
            return [dx, (dy * z).sum(axis=over, keepdims=True), dy.sum(axis=over, keepdims=True)]

        inputs = {"dy": grad, "x": input, "inverse": inv_variance}
        inputs |= {k: v for k, v in (("mean", mean), ("scale", scale)) if v is not None}
        kept = 1 if scale is None else 3 - (name == "rmsnorm_backward")
        results = "DX DScale DBias".split()[:kept]
        shapes = [whole, of_weight, of_weight][:kept]
        made = self._add(name, inputs, " ".join(results), (compute, lambda: shapes))
        return [*(made if kept > 1 else [made]), *[None] * (3 - kept)]

    # Attention

    def sdpa(
        self,
        *,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        attn_scale: float,
        use_causal_mask: bool,
        is_inference: bool,
    ) -> Any:
        assert is_inference is False and q.dim[1] % k.dim[1] == 0 and k.dim[:3] == v.dim[:3]

        def compute(q: Any, k: Any, v: Any) -> list[Any]:
            weights, sums = _weights(q, k, attn_scale, use_causal_mask)
            return [weights @ _for_each(v, q), sums]

        shapes = [(*q.dim[:3], v.dim[3]), (*q.dim[:3], 1)]
        return self._add("sdpa", {"q": q, "k": k, "v": v}, "O Stats", (compute, lambda: shapes))

    def sdpa_backward(self, *, attn_scale: float, use_causal_mask: bool, **tensors: Tensor) -> Any:
        assert list(tensors) == ["q", "k", "v", "o", "dO", "stats"]

        def compute(q: Any, k: Any, v: Any, o: Any, dO: Any, stats: Any) -> list[Any]:
            weights, sums = _weights(q, k, attn_scale, use_causal_mask)
            assert np.allclose(stats, sums, 1e-3, 1e-3)
            ds = dO @ _for_each(v, q).swapaxes(2, 3) - (dO * o).sum(-1, keepdims=True)
            ds *= weights * attn_scale
            dk, dv = ds.swapaxes(2, 3) @ q, weights.swapaxes(2, 3) @ dO
            shared = (*k.shape[:2], -1, k.shape[2])
            return [
                ds @ _for_each(k, q),
                *[x.reshape(*shared, x.shape[3]).sum(2) for x in (dk, dv)],
            ]

        shapes = [tuple(tensors[name].dim) for name in "qkv"]
        return self._add("sdpa_backward", tensors, "dQ dK dV", (compute, lambda: shapes))

    # Steps

    def _at(self, step: int) -> None:
        assert self.step == step - 1, "the steps of a graph have an order"
        self.step = step

    def validate(self) -> None:
        self._at(1)
        for tensor, shape in zip(self.node.results, self.node.compute[1](), strict=True):
            assert not tensor.virtual, f"{tensor.name} of {self.node.name} is lacking"
            assert tuple(tensor.dim) == shape, f"{tensor.name} is {tensor.dim}, not {shape}"
            assert tensor.uid and tensor.type is not None and tensor.stride
        assert all(4 <= len(t.dim) <= 5 for t in self.tensors)
        double = data_type.DOUBLE in [t.type for t in self.tensors]
        assert self.real is (data_type.DOUBLE if double else data_type.FLOAT)

    def build_operation_graph(self) -> None:
        self._at(2)

    def create_execution_plans(self, modes: Sequence[heur_mode]) -> None:
        self._at(3)
        assert list(modes) == [heur_mode.A, heur_mode.FALLBACK]

    def deselect_numeric_notes(self, notes: Sequence[numerical_note]) -> None:
        assert self.step == 3 and all(type(note) is numerical_note for note in notes)
        self.barred |= set(notes)

    def check_support(self) -> None:
        self._at(4)
        first = next(iter(self.node.inputs.values()))
        if "norm" in self.node.name and data_type.DOUBLE in [t.type for t in self.tensors]:
            raise cudnnGraphNotSupportedError("norms in float64")
        if "batchnorm" in self.node.name and first.dim[1] % 4:
            raise cudnnGraphNotSupportedError("channels that are no multiple of 4")
        if "sdpa" in self.node.name and first.dim[3] % 8:
            raise cudnnGraphNotSupportedError("features that are no multiple of 8")

    def build_plans(self) -> None:
        self._at(5)
        no_sync(devices.get_current_stream().graph)  # it may load, or compile, kernels
        self.selected = min(i for i in range(len(ENGINES)) if not self._notes(i) & self.barred)
        self.plans.add(self.selected)
        built.append(self.node.name)

    def _notes(self, index: int) -> set[numerical_note]:
        return list(ENGINES.values())[index]

    def get_execution_plan_count(self) -> int:
        return len(ENGINES)

    def build_plan_at_index(self, index: int) -> None:
        if self._notes(index) & self.barred:
            raise ValueError("the plan is deselected")
        self.plans.add(index)

    def get_workspace_size(self) -> int:
        return WORKSPACE

    def get_workspace_size_plan_at_index(self, index: int) -> int:
        return WORKSPACE * (1 + index)

    def execute(self, pack: dict[int, int], workspace: int, *, handle: Handle) -> None:
        self.execute_plan_at_index(pack, workspace, index=self.selected, handle=handle)

    def execute_plan_at_index(
        self, pack: dict[int, int], workspace: int, *, index: int, handle: Handle
    ) -> None:
        assert self.step == 5 and index in self.plans and handle is self.handle
        stream = devices.get_current_stream()
        assert (handle.device, handle.stream) == (devices.current_device(), stream.ptr)
        assert pack.keys() == {tensor.uid for tensor in self.tensors}
        assert devices.pointers is not None
        size = self.get_workspace_size_plan_at_index(index) if index != self.selected else WORKSPACE
        assert devices.pointers[workspace].nbytes >= size
        inputs = {name: t.at(pack[t.uid]) for name, t in self.node.inputs.items()}
        results = [t.at(pack[t.uid]) for t in self.node.results]
        names = [name for name, t in self.node.inputs.items() if not t.by_value]

        def compute(results: list[Any], *arrays: Any) -> None:
            given = inputs | dict(zip(names, arrays, strict=True))
            wide = {name: np.asarray(x, np.float64) for name, x in given.items()}
            positional = self.node.name in ("conv_fprop", "batchnorm")
            made = (
                self.node.compute[0](*wide.values()) if positional else self.node.compute[0](**wide)
            )
            for result, value in zip(results, made, strict=False):
                result[...] = value

        name = self.node.name
        engine = list(ENGINES)[index]
        _run(name, compute, (results, *[inputs[n] for n in names]))
        reads, writes = [inputs[n] for n in names], results
        hosts = [[SimpleNamespace(_host=x) for x in each] for each in (reads, writes)]
        _launch(name, *hosts)
        ran.append((name, engine))
        devices.pointers.clear()


def _for_each(x: Any, q: Any) -> Any:
    """Return keys or values with as many heads as the queries have."""
    return np.repeat(x, q.shape[1] // x.shape[1], axis=1)


def _weights(q: Any, k: Any, scale: float, causal: bool) -> tuple[Any, Any]:
    """Return softmax(q kᵀ scale) and the logarithms of its sums."""
    scores = q @ _for_each(k, q).swapaxes(2, 3) * scale
    if causal:
        scores = np.where(np.tri(*scores.shape[2:], dtype=bool), scores, -np.inf)
    sums = np.logaddexp.reduce(scores, axis=-1, keepdims=True)
    return np.exp(scores - sums), sums


def _windows(
    image: Sequence[int],
    weight: Sequence[int],
    *,
    pre_padding: Any,
    post_padding: Any,
    stride: Any,
    dilation: Any,
) -> tuple[int, ...]:
    each = (image[2:], weight[2:], pre_padding, post_padding, stride, dilation)
    return tuple(
        (n + before + after - d * (k - 1) - 1) // s + 1
        for n, k, before, after, s, d in zip(*each, strict=True)
    )


def _groups(channels: int, filters: int, of_filter: int) -> Iterator[tuple[slice, slice, slice]]:
    """Yield for each group its filters, its channels of the input, and those of the result."""
    count = channels // of_filter
    each = filters // count
    for g in range(count):
        outer = slice(g * each, (g + 1) * each)
        yield outer, slice(g * of_filter, (g + 1) * of_filter), outer


def _taps(
    x: Any,
    kernel: Sequence[int],
    size: Sequence[int],
    *,
    pre_padding: Any,
    post_padding: Any,
    stride: Any,
    dilation: Any,
) -> Iterator[tuple[tuple[int, ...], Any, Callable[[Any, slice], None]]]:
    """Yield each tap, what all windows have of x there, and a function that adds to x there."""
    around = list(zip(pre_padding, post_padding, strict=True))
    wide = np.pad(x, [(0, 0), (0, 0), *around])
    inside = tuple(slice(b, b + n) for b, n in zip(pre_padding, x.shape[2:], strict=True))
    for tap in np.ndindex(*kernel):
        each = zip(tap, dilation, stride, size, strict=True)
        there = tuple(slice(k * d, k * d + s * (n - 1) + 1, s) for k, d, s, n in each)

        def put(part: Any, channels: slice, there: Any = there) -> None:
            padded = np.zeros(wide.shape)
            padded[(slice(None), channels, *there)] = part
            x[...] += padded[(..., *inside)]

        yield tap, wide[(..., *there)], put


@contextlib.contextmanager
def installed() -> Iterator[ModuleType]:
    """Let `import cudnn` find this module, for a `with` block; no plan outlives it."""
    module = sys.modules[__name__]
    before = sys.modules.get("cudnn")
    sys.modules["cudnn"] = module
    devices.pointers = {}
    forget()
    try:
        yield module
    finally:
        devices.pointers = None
        if before is None:
            del sys.modules["cudnn"]
        else:
            sys.modules["cudnn"] = before
        forget()


def forget() -> None:
    """Forget all plans, and what ran."""
    ours.frontend.cache_clear()
    for each in (ours._idle, ours._captured, built, ran, graphs):
        each.clear()


def backend_version() -> int:
    return 92800
