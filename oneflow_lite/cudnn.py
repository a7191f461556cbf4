"""cuDNN on CUDA devices, through NVIDIA's Python frontend (the extras `cudnn12` and `cudnn13`).

`OpExpr.kernel` asks `with_cudnn` for CuPy's kernels. An op that `kernels/cudnn.py` has a function
for asks that first. The function returns None where cuDNN is missing or does not take the call, and
the kernel runs. A call is a graph of one node. Its plan is built once for each kind of call and
kept, and so is the answer that cuDNN has none.
"""

from __future__ import annotations

import functools
import importlib
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from oneflow_lite.device import require_cupy
from oneflow_lite.errors import DeviceError
from oneflow_lite.registry import KERNELS

PLANS = 1024  # that a thread keeps for a device
_TYPES = {"e": "HALF", "f": "FLOAT", "d": "DOUBLE"}
_TRIALS = 3  # runs of a plan that `benchmark` times

# What PyTorch calls torch.backends.cudnn. The module of that name takes the place of this object.
switches: Any = SimpleNamespace(
    enabled=True, benchmark=False, benchmark_limit=10, deterministic=False, allow_tf32=True
)
deterministic_algorithms = False  # what flow.use_deterministic_algorithms() was given


class NotPrepared(NotImplementedError):
    """A stream captures a call that has no plan yet; after the capture, `prepare()` builds it."""

    def __init__(self, prepare: Callable[[], Any]) -> None:
        super().__init__("cuDNN has no plan yet for a call that is captured")
        self.prepare = prepare


@functools.cache
def frontend() -> Any:
    """Return NVIDIA's module; None where it, or the library behind it, is not installed."""
    try:
        module = importlib.import_module("cudnn")
        return module if module.backend_version() and module.pygraph else None
    except Exception:  # an ImportError, or the frontend's own where the library cannot be loaded
        return None


def is_available() -> bool:
    """Return whether the frontend, the library and a CUDA device are there."""
    try:
        return frontend() is not None and bool(require_cupy().cuda.is_available())
    except DeviceError:
        return False


def version() -> int | None:
    """Return the version of the library, such as 91002 for 9.10.2; None where there is none."""
    return int(frontend().backend_version()) if is_available() else None


def is_acceptable(tensor: Any) -> bool:
    """Return whether cuDNN may be asked to compute with a tensor."""
    on_device = tensor.device.type == "cuda" and tensor._data.dtype.char in _TYPES
    return bool(on_device and switches.enabled and is_available())


def with_cudnn(op_type_name: str, kernel: functools.partial[Any]) -> Callable[..., Any]:
    """Return CuPy's kernel with cuDNN in front of it; the kernel itself for ops that it has not."""
    function = importlib.import_module(f"{__package__}.kernels.cudnn").FUNCTIONS.get(op_type_name)
    if function is None or not KERNELS.get(op_type_name).is_library:
        return kernel
    (xp,) = kernel.args

    def first(*arrays: Any, **attrs: Any) -> Any:
        if switches.enabled and frontend() is not None and "line" not in attrs:
            made = function(xp, *arrays, **attrs)
            if made is not None:
                return made
        return kernel(*arrays, **attrs)

    return first


def run(
    node: str,
    inputs: Mapping[str, Any],
    outputs: Sequence[Any],
    scalars: Mapping[str, float] | None = None,
    **attrs: Any,
) -> bool:
    """Run a node of cuDNN's on arrays in C order; return False where cuDNN does not take it.

    Parameters
    ----------
    node : str
        A method of `cudnn.pygraph`.
    inputs : mapping
        Its tensors by name, as arrays of the node's dimensions.
    outputs : sequence
        Arrays for its results, in order; None for a result that nobody needs.
    scalars : mapping, optional
        Its tensors that are numbers of the host.
    **attrs
        Its attributes; a str names a member of `cudnn.norm_forward_phase`.

    Raises
    ------
    NotPrepared
        When the stream captures and the plan is not built yet.
    """
    arrays = [*inputs.values(), *[y for y in outputs if y is not None]]
    if not all([x.size and x.dtype.char in _TYPES for x in arrays]):
        return False
    place = _place(arrays[0].device.id)
    if place is None:
        return False
    barred: tuple[str, ...] = ()
    if switches.deterministic or deterministic_algorithms:
        barred += ("NONDETERMINISTIC",)
    if arrays[0].dtype.char == "f" and not switches.allow_tf32:
        barred += ("TENSOR_CORE", "DOWN_CONVERT_INPUTS")
    specs = tuple([x is not None and (x.shape, x.dtype.char) for x in (*inputs.values(), *outputs)])
    numbers = tuple((scalars or {}).items())
    key = (node, tuple(inputs), specs, numbers, tuple(attrs.items()), barred, switches.benchmark)
    stream = require_cupy().cuda.get_current_stream()
    captures = stream.is_capturing()
    if key not in place.plans:
        if captures:
            raise NotPrepared(functools.partial(place.add, key))
        place.add(key, arrays)
    place.plans.move_to_end(key)
    plan = place.plans[key]
    if plan is None:
        return False
    if captures:
        _captured.add(plan)
    frontend().set_stream(handle=place.handle, stream=stream.ptr)
    plan.run(arrays)
    return True


class _Plan:
    """A node of cuDNN's, and the engine that runs it."""

    def __init__(self, key: tuple[Any, ...], handle: Any) -> None:
        node, names, specs, numbers, attrs, barred, _ = key
        library = frontend()
        types, phases = library.data_type, library.norm_forward_phase
        real = types.DOUBLE if any([spec and spec[1] == "d" for spec in specs]) else types.FLOAT
        kinds = {f"{part}_data_type": real for part in ("io", "intermediate", "compute")}
        graph = library.pygraph(handle=handle, **kinds)
        layouts: list[Any] = []
        for spec in specs:
            shape, char = spec or ((), "f")
            layouts.append((list(shape), _c_order(shape), getattr(types, _TYPES[char])))
        tensors = {}
        for uid, (name, (shape, strides, dtype)) in enumerate(zip(names, layouts, strict=False)):
            layout = {"dim": shape, "stride": strides, "data_type": dtype}
            tensors[name] = graph.tensor(name=name, uid=uid + 1, **layout)
        self.numbers = [np.array([number], np.float32) for _, number in numbers]
        self.pack = {len(specs) + 1 + i: x.ctypes.data for i, x in enumerate(self.numbers)}
        one = [1] * len(specs[0][0])
        for uid, (name, _) in zip(self.pack, numbers, strict=True):
            layout = {"dim": one, "stride": one, "data_type": types.FLOAT, "is_pass_by_value": True}
            tensors[name] = graph.tensor(name=name, uid=uid, **layout)
        given = {name: getattr(phases, x) if isinstance(x, str) else x for name, x in attrs}
        made = getattr(graph, node)(**tensors, **given)
        made = made if isinstance(made, list) else [made]
        self.uids = [i + 1 for i, spec in enumerate(specs) if spec]
        for uid in self.uids[len(names) :]:
            shape, strides, dtype = layouts[uid - 1]
            result = made[uid - 1 - len(names)].set_output(True).set_uid(uid)
            result.set_dim(shape).set_stride(strides).set_data_type(dtype)
        graph.validate()
        graph.build_operation_graph()
        graph.create_execution_plans([library.heur_mode.A, library.heur_mode.FALLBACK])
        if barred:
            graph.deselect_numeric_notes([getattr(library.numerical_note, note) for note in barred])
        graph.check_support()
        graph.build_plans()
        self.graph, self.handle = graph, handle
        self.index: int | None = None  # of the engine; None for the first one that cuDNN names
        self.workspace = int(graph.get_workspace_size())

    def run(self, arrays: Sequence[Any]) -> None:
        """Launch it on the stream of the handle."""
        workspace = require_cupy().empty(max(1, self.workspace), np.uint8)
        pointers = [x.data.ptr for x in arrays]
        pack = self.pack | dict(zip(self.uids, pointers, strict=True))
        rest = (pack, workspace.data.ptr)
        if self.index is None:
            self.graph.execute(*rest, handle=self.handle)
        else:
            self.graph.execute_plan_at_index(*rest, index=self.index, handle=self.handle)

    def tune(self, arrays: Sequence[Any]) -> None:
        """Keep the quickest of the engines, as `switches.benchmark` asks for."""
        cuda = require_cupy().cuda
        best, times, first = None, [], self.workspace
        count = self.graph.get_execution_plan_count()
        for index in range(min(count, switches.benchmark_limit or count)):
            try:
                self.graph.build_plan_at_index(index)
                self.workspace = int(self.graph.get_workspace_size_plan_at_index(index))
                self.index = index
                self.run(arrays)
            except (*_refusals(), ValueError):  # the latter for one that is barred
                continue
            start, end = cuda.Event(), cuda.Event()
            start.record()
            for _ in range(_TRIALS):
                self.run(arrays)
            end.record()
            end.synchronize()
            times.append((cuda.get_elapsed_time(start, end), index, self.workspace))
        _, self.index, self.workspace = min(times, default=(0, best, first))


def _c_order(shape: Sequence[int]) -> list[int]:
    """Return the strides of C order, counted in elements."""
    strides = [1]
    for n in reversed(shape[1:]):
        strides.append(strides[-1] * n)
    return strides[::-1]


def _refusals() -> tuple[type[Exception], ...]:
    """Return what the frontend raises for a graph that no engine takes."""
    return (frontend().cudnnGraphNotSupportedError, RuntimeError)


class _Place:
    """What a thread has on a device: a handle, and the plans of its calls, oldest first."""

    def __init__(self) -> None:
        self.handle = frontend().create_handle()
        self.plans: OrderedDict[Any, _Plan | None] = OrderedDict()

    def add(self, key: tuple[Any, ...], arrays: Sequence[Any] = ()) -> None:
        """Build the plan of a call; on arrays, choose its engine by trial if that is asked for."""
        try:
            plan = _Plan(key, self.handle)
        except _refusals():
            plan = None
        self.plans[key] = plan
        if len(self.plans) > PLANS:
            self.plans.popitem(last=False)
        if plan is not None and arrays and switches.benchmark:
            frontend().set_stream(
                handle=self.handle, stream=require_cupy().cuda.get_current_stream().ptr
            )
            plan.tune(arrays)


class _Lease:
    """A thread's hold of a place. The next thread takes it over; a handle serves one at a time."""

    def __init__(self, device: int) -> None:
        self.device = device
        self.place: _Place | None = None
        try:
            self.place = _idle[device].pop()
        except IndexError:
            if device not in _without:
                try:
                    self.place = _Place()
                except RuntimeError:  # no driver, or one that is too old for the library
                    _without.add(device)

    def __del__(self) -> None:
        if self.place is not None:
            _idle[self.device].append(self.place)


class _Leases(threading.local):
    def __init__(self) -> None:
        self.by_device: dict[int, _Lease] = {}


_idle: defaultdict[int, list[_Place]] = defaultdict(list)
_without: set[int] = set()  # devices on which there can be no handle
_leases = _Leases()
_captured: set[_Plan] = set()  # a graph of the device may run their kernels at any time


def _place(device: int) -> _Place | None:
    lease = _leases.by_device.get(device)
    if lease is None:
        lease = _leases.by_device[device] = _Lease(device)
    return lease.place
