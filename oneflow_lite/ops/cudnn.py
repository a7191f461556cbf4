"""cuDNN on CUDA devices, through NVIDIA's Python frontend (the extras `cudnn12` and `cudnn13`).

`OpExpr.kernel` asks `with_cudnn` for CuPy's kernels. Where `kernels/cudnn.py` has a function for
the op, that function is asked first. It returns None where cuDNN does not take the call, and the
kernel runs. A call is a graph of one node. Its plan is built once for each kind of call and kept,
and so is the answer that cuDNN has no plan.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from oneflow_lite.arrays.array_spec import c_strides
from oneflow_lite.arrays.device import require_cupy
from oneflow_lite.errors import DeviceError
from oneflow_lite.ops import upward
from oneflow_lite.ops.registry import KERNELS

PLANS = 1024  # the most plans that a handle keeps: each holds memory of cuDNN's
_TYPES = {"e": "HALF", "f": "FLOAT", "d": "DOUBLE"}
_TRIALS = 3  # runs of a plan that `benchmark` times

# The switches of torch.backends.cudnn, until the module of that name is asked for.
switches: Any = SimpleNamespace(
    enabled=True, benchmark=False, benchmark_limit=10, deterministic=False, allow_tf32=True
)
deterministic_algorithms = False  # set by flow.use_deterministic_algorithms()


def use_switches(new: Any) -> None:
    """Read the switches from another object from now on."""
    global switches
    switches = new


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
    """Return the version of the library, such as 91002 for 9.10.2; None without cuDNN."""
    return int(frontend().backend_version()) if is_available() else None


def is_acceptable(tensor: Any) -> bool:
    """Return whether cuDNN may be asked to compute with a tensor."""
    on_device = tensor.device.type == "cuda" and tensor._data.dtype.char in _TYPES
    return bool(on_device and switches.enabled and is_available())


def with_cudnn(op_type_name: str, kernel: functools.partial[Any]) -> Callable[..., Any]:
    """Return CuPy's kernel with cuDNN in front of it, or the kernel where cuDNN has no such op."""
    function = upward.module("cudnn kernels").FUNCTIONS.get(op_type_name)
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
        Arrays for its results, in order; None for a result that is not needed.
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
    barred: tuple[str, ...] = ()
    if switches.deterministic or deterministic_algorithms:
        barred += ("NONDETERMINISTIC",)
    # An engine that rounds float32 to TF32 or to half says so by one of these notes.
    if arrays[0].dtype.char == "f" and not switches.allow_tf32:
        barred += ("TENSOR_CORE", "DOWN_CONVERT_INPUTS")
    specs = tuple([x is not None and (x.shape, x.dtype.char) for x in (*inputs.values(), *outputs)])
    numbers = tuple((scalars or {}).items())
    key = (node, tuple(inputs), specs, numbers, tuple(attrs.items()), barred, switches.benchmark)
    cuda = require_cupy().cuda
    device, stream = cuda.get_device_id(), cuda.get_current_stream()
    if arrays[0].device.id != device:
        return False
    captures = stream.is_capturing()
    if captures and _idle.get(device, []) == []:  # to make a handle would break the capture
        raise NotPrepared(functools.partial(_prepare, device, key))
    with _lent(device) as place:
        if place is None:
            return False
        if captures and key not in place.plans:
            raise NotPrepared(functools.partial(_prepare, device, key))
        frontend().set_stream(handle=place.handle, stream=stream.ptr)
        plan = place.plan(key, arrays)
        if plan is None:
            return False
        if captures:  # kept for ever, as a graph of the device may run it at any time
            _captured.add(plan)
        plan.run(arrays)
        return True


def _prepare(device: int, key: tuple[Any, ...]) -> None:
    with _lent(device) as place:
        if place is not None:
            place.plan(key)


class _Plan:
    """A node of cuDNN's, with the engine that was chosen for it."""

    def __init__(self, key: tuple[Any, ...], handle: Any) -> None:
        node, names, specs, numbers, attrs, barred, _ = key
        library = frontend()
        types, phases = library.data_type, library.norm_forward_phase
        real = types.DOUBLE if any([spec and spec[1] == "d" for spec in specs]) else types.FLOAT
        kinds = {f"{part}_data_type": real for part in ("io", "intermediate", "compute")}
        graph = library.pygraph(handle=handle, **kinds)
        layouts = [_layout(types, *spec) if spec else {} for spec in specs]
        self.uids = [uid for uid, spec in enumerate(specs, 1) if spec]
        given = {name: getattr(phases, x) if isinstance(x, str) else x for name, x in attrs}
        for uid, name in enumerate(names, 1):
            given[name] = graph.tensor(name=name, uid=uid, **layouts[uid - 1])
        self.numbers = [np.array([number], np.float32) for _, number in numbers]
        self.pack = {uid: x.ctypes.data for uid, x in enumerate(self.numbers, len(specs) + 1)}
        layout = _layout(types, (1,) * len(specs[0][0]), "f")
        for uid, (name, _) in zip(self.pack, numbers, strict=True):
            given[name] = graph.tensor(name=name, uid=uid, is_pass_by_value=True, **layout)
        made = getattr(graph, node)(**given)
        made = made if isinstance(made, list) else [made]
        for uid in self.uids[len(names) :]:
            result = made[uid - 1 - len(names)].set_output(True).set_uid(uid)
            layout = layouts[uid - 1]
            result.set_dim(layout["dim"]).set_stride(layout["stride"])
            result.set_data_type(layout["data_type"])
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
        timed: list[Any] = []
        first = (None, self.workspace)
        count = self.graph.get_execution_plan_count()
        for index in range(min(count, switches.benchmark_limit or count)):
            try:
                self.graph.build_plan_at_index(index)
                self.index = index
                self.workspace = int(self.graph.get_workspace_size_plan_at_index(index))
                self.run(arrays)
            except _refusals(ValueError):  # a barred engine raises ValueError
                continue
            start, end = cuda.Event(), cuda.Event()
            start.record()
            for _ in range(_TRIALS):
                self.run(arrays)
            end.record()
            end.synchronize()
            timed.append((cuda.get_elapsed_time(start, end), index, self.workspace))
        self.index, self.workspace = min(timed)[1:] if timed else first


def _layout(types: Any, shape: Sequence[int], char: str) -> dict[str, Any]:
    strides = list(c_strides(tuple(shape), 1))
    return {"dim": list(shape), "stride": strides, "data_type": getattr(types, _TYPES[char])}


def _refusals(*more: type[Exception]) -> tuple[type[Exception], ...]:
    """Return the errors that the frontend raises for a graph that no engine takes."""
    return (frontend().cudnnGraphNotSupportedError, RuntimeError, *more)


class _Place:
    """A handle, and the plans that were built with it, the latest used at the end."""

    def __init__(self) -> None:
        self.handle = frontend().create_handle()
        self.plans: OrderedDict[Any, _Plan | None] = OrderedDict()

    def plan(self, key: tuple[Any, ...], arrays: Sequence[Any] = ()) -> _Plan | None:
        """Return the plan of a call, built at the first one; None where cuDNN has no engine."""
        if key not in self.plans:
            try:
                plan = self.plans[key] = _Plan(key, self.handle)
                if switches.benchmark and arrays:
                    plan.tune(arrays)
            except _refusals():
                self.plans[key] = None
            if len(self.plans) > PLANS:
                self.plans.popitem(last=False)
        self.plans.move_to_end(key)
        return self.plans[key]


_idle: dict[int, list[_Place] | None] = {}  # by device; None where no handle can be made
_captured: set[_Plan] = set()


@contextlib.contextmanager
def _lent(device: int) -> Iterator[_Place | None]:
    """Lend a place on a device to one call: a handle serves one thread at a time."""
    idle = _idle.setdefault(device, [])
    if idle is None:
        yield None
        return
    try:
        place = idle.pop()
    except IndexError:
        try:
            place = _Place()
        except RuntimeError:  # no driver, or one that is too old for the library
            _idle[device] = None
            yield None
            return
    try:
        yield place
    finally:
        idle.append(place)
