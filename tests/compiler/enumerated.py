"""Every attribute of the library's objects as expressions, and the objects that they are read of.

Nothing is listed by hand but how to call what needs arguments. Each call is looked at eagerly
first: changes of an object that it does not notice need not be tried on a replay.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import linecache
import types
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import oneflow_lite as flow
from oneflow_lite.arrays.device import Device
from oneflow_lite.errors import GradientError
from tests.judge import World, judge
from tests.optim.walk import SCHEDULERS

Scope = dict[str, Any]
nn = flow.nn


class Kind(NamedTuple):
    """A kind of objects: what they may be made of, and how."""

    of: Callable[[], Any]
    make: Callable[[Any], Scope]

    def world(self, a: Any = None) -> Scope:
        """Return the names that expressions may use."""
        a = self.of() if a is None else a
        return {**COMMON, "y": square(0.5), "a": a, **self.make(a), "kind": self}


def square(shift: float = 0.0) -> flow.Tensor:
    return flow.tensor((np.arange(4.0).reshape(2, 2) + 1 + shift) / 5)


def rows(shift: float = 0.0) -> flow.Tensor:
    return flow.tensor((np.arange(6.0).reshape(3, 2) + 1 + shift) / 5)


def leaf(shift: float = 0.0) -> flow.Tensor:
    return square(shift).requires_grad_()


def double(gradient: flow.Tensor) -> flow.Tensor:
    return gradient * 2


def _note(*arguments: Any) -> None:
    """A hook that does nothing."""


# What the expressions name beside `x`, and `a`, what it was made of.
COMMON: Scope = {
    "__name__": "enumerated", "flow": flow, "np": np, "nn": nn, "double": double, "note": _note,
    "i": flow.tensor([[1, 0], [0, 1]]), "v": flow.tensor([0, 1]),
    "m": flow.tensor([[True, False], [True, True]]), "line": flow.tensor([0.5, 1.5]).double(),
    "edge": flow.autograd.graph.get_gradient_edge,
}  # fmt: skip


# --- Tensors -------------------------------------------------------------------------------------


def _graded(_: Any) -> Scope:
    x = leaf()
    x.grad = square(1)
    return {"x": x}


def _hooked(_: Any) -> Scope:
    x = leaf()
    x.register_hook(double)
    return {"x": x}


def _retaining(a: Any) -> Scope:
    x = a * 2
    x.retain_grad()
    return {"x": x}


TENSORS = {
    "plain": Kind(square, lambda a: {"x": square()}),
    "leaf": Kind(square, lambda a: {"x": leaf()}),
    "parameter": Kind(square, lambda a: {"x": nn.Parameter(square())}),
    "written": Kind(square, lambda a: {"x": square().add_(1)}),
    "view": Kind(rows, lambda a: {"x": a[1:]}),
    "nested": Kind(rows, lambda a: {"x": a[1:].t()}),
    "graded": Kind(square, _graded),
    "hooked": Kind(square, _hooked),
    "inner": Kind(leaf, lambda a: {"x": a * 2}),
    "retaining": Kind(leaf, _retaining),
    "second": Kind(leaf, lambda a: {"x": flow.linalg.qr(a)[1]}),
    "twin": Kind(square, lambda a: {"x": a.detach()}),
    "integer": Kind(square, lambda a: {"x": (square() * 5).long()}),
    "scalar": Kind(square, lambda a: {"x": square().sum()}),
    "turned": Kind(square, lambda a: {"x": square().t()}),
}
RELATED = ("plain", "leaf", "view", "nested", "graded", "retaining", "second", "twin")
CAPTURED = ("leaf", "view", "retaining", "twin")  # the kinds that are captured as well


def _with_grad(s: Scope) -> None:
    s["x"].grad = None if s["x"].grad is not None else flow.ones_like(s["x"])


def _of_another(s: Scope) -> None:
    s["x"] = s["kind"].world()["x"]


def _itself(s: Scope) -> None:
    s["x"] = s["a"]


CHANGES: dict[str, Callable[[Scope], Any]] = {
    "written": lambda s: s["x"].detach().mul_(2),
    "its gradient": _with_grad,
    "hooked": lambda s: s["x"].register_hook(double),
    "requiring": lambda s: s["x"].requires_grad_(not s["x"].requires_grad),
    "retaining": lambda s: s["x"].retain_grad(),
    "noted": lambda s: setattr(s["x"], "note", 1),
    "moved": lambda s: setattr(s["x"], "data", square(3)),
    "turned": lambda s: s["x"].t_(),
    "of another": _of_another,
    "itself": _itself,
}

# --- Modules, optimizers, schedulers --------------------------------------------------------------


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Dropout(0.5)
        self.scale = 2.0

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        return self.last(self.norm(self.first(x))) * self.scale


def _module(_: Any) -> Scope:
    flow.manual_seed(0)
    net = Net().double()
    return {"x": net, "other": nn.Linear(2, 2).double(), "state": net.state_dict()}


def _replaced(s: Scope) -> None:
    s["x"].first.weight = nn.Parameter(square(2))


OF_MODULES: dict[str, Callable[[Scope], Any]] = {
    "in evaluation": lambda s: s["x"].eval(),
    "frozen": lambda s: s["x"].requires_grad_(False),
    "hooked": lambda s: s["x"].register_forward_hook(_note),
    "replaced": _replaced,
    "written": lambda s: s["x"].norm.running_mean.add_(1),
    "set": lambda s: setattr(s["x"], "scale", 3.0),
    "longer": lambda s: s["x"].add_module("more", nn.Tanh()),
    "renamed": lambda s: s["x"].register_buffer("more", square()),
    "graded": lambda s: setattr(s["x"].first.weight, "grad", square()),
}


def _optimizer(name: str) -> Callable[[Any], Scope]:
    def make(_: Any) -> Scope:
        w = leaf()
        w.grad = square(1)
        given: Any = [{"lr": 0.1}] if name == "Optimizer" else [0.1]
        optimizer = getattr(flow.optim, name)([w], *given)
        with contextlib.suppress(Exception):  # LBFGS wants a closure
            optimizer.step()

        def closure() -> flow.Tensor:
            optimizer.zero_grad()
            loss = (w * w).sum()
            loss.backward()
            return loss

        state = optimizer.state_dict()
        return {"x": optimizer, "w": w, "state": state, "other": leaf(1), "closure": closure}

    return make


OF_OPTIMIZERS: dict[str, Callable[[Scope], Any]] = {
    "slower": lambda s: s["x"].param_groups[0].update(lr=0.01),
    "graded": lambda s: setattr(s["w"], "grad", None),
    "longer": lambda s: s["x"].add_param_group({"params": [leaf(2)]}),
    "hooked": lambda s: s["x"].register_step_post_hook(_note),
    "loaded": lambda s: s["x"].load_state_dict(s["state"]),
    "forgotten": lambda s: s["x"].state.clear(),
}


def _scheduler(name: str) -> Callable[[Any], Scope]:
    def make(_: Any) -> Scope:
        w = leaf()
        optimizer = flow.optim.SGD([w], lr=0.1, momentum=0.1)
        cls = getattr(flow.optim.lr_scheduler, name)
        inner = flow.optim.lr_scheduler.StepLR(optimizer, 1)
        given: dict[str, tuple[Any, ...]] = {
            "ChainedScheduler": ([inner],),
            "ReduceLROnPlateau": (optimizer,),
            "SequentialLR": (optimizer, [inner, inner], [1]),
        }
        x = cls(*given[name]) if name in given else cls(optimizer, **SCHEDULERS[name][0])
        return {"x": x, "optimizer": optimizer, "state": x.state_dict()}

    return make


OF_SCHEDULERS: dict[str, Callable[[Scope], Any]] = {
    "stepped": lambda s: (s["optimizer"].step(), s["x"].step()),
    "measured": lambda s: s["x"].step(1.0),
    "set back": lambda s: setattr(s["x"], "last_epoch", 3),
    "slower": lambda s: s["optimizer"].param_groups[0].update(lr=0.01),
}


def _names(module: types.ModuleType, base: type) -> list[str]:
    found = {n: c for n, c in vars(module).items() if isinstance(c, type) and issubclass(c, base)}
    abstract = flow.optim.lr_scheduler.LRScheduler
    return sorted(n for n, cls in found.items() if n[0] != "_" and cls is not abstract)


def _kinds(make: Callable[[str], Any], names: Sequence[str]) -> dict[str, Kind]:
    return {name: Kind(_nothing, make(name)) for name in names}


def _nothing() -> None:
    """Make the parts of modules and optimizers: there are none."""


MODULES = {"module": Kind(_nothing, _module)}
OPTIMIZERS = _kinds(_optimizer, _names(flow.optim, flow.optim.Optimizer))
SCHEDULES = _kinds(_scheduler, _names(flow.optim.lr_scheduler, flow.optim.lr_scheduler.LRScheduler))

# --- Expressions ----------------------------------------------------------------------------------

# Tried in turn for a method that no entry of CALLS says how to call.
GUESSES = (
    "", "y", "0", "1", "y, y", "0, i", "0, i, y", "i", "2, 2", "0, 1", "(2, 2)", "0, v, y",
    "0, 0", "0, 0, 1", "m, y", "m", "0, v", "0, v, 0.5", "m, 0.5", "line", "line, line", "[1, 1]",
    "line, 0", "0.5", "note", "'cpu'", "state", "True", "closure",
)  # fmt: skip
# How other methods are called: their arguments, or whole expressions.
_ELSEWHERE = "callable({x})"  # what needs another device, or a method of a subclass
CALLS: dict[str, str] = {
    "LBFGS.add_param_group": _ELSEWHERE,
    "Optimizer.step": _ELSEWHERE,
    **dict.fromkeys("global_to_global local_to_global to_global to_local".split(), _ELSEWHERE),
    **dict.fromkeys(("placement", "sbp"), "x.is_global"),  # a local tensor has none
    "add_module": "'more', other",
    "add_param_group": "{'params': [other]}",
    "addbmm": "y[None], y[None]",
    "addmv": "y, line",
    "addmv_": "x[0].addmv_(y, line)",
    "addr": "line, line",
    "as_strided_scatter": "line, (2,), (1,)",
    "as_subclass": "type(x)",
    "baddbmm": "y[None], y[None]",
    "baddbmm_": "x[None].baddbmm_(y[None], y[None])",
    "bincount": "x.flatten().bincount()",
    "bmm": "x[None].bmm(y[None])",
    "compile": _ELSEWHERE,
    "cross": "x.repeat(1, 2)[:, :3].cross(y.repeat(1, 2)[:, :3], dim=1)",
    "dot": "x[0].dot(line)",
    "dsplit": "x.reshape(1, 1, 4).dsplit(2)",
    "get_buffer": "'norm.running_mean'",
    "get_extra_state": _ELSEWHERE,
    "get_parameter": "'first.weight'",
    "ger": "x[0].ger(line)",
    "imag": "(x * 1j).imag",
    "index_put": "(v, v), line",
    "index_reduce": "0, v, y, 'mean'",
    "ipu": _ELSEWHERE,
    "istft": "x.repeat(2, 2).cfloat()[:3].istft(4)",
    "lu_solve": "x.lu_solve(*flow.linalg.lu_factor(y))",
    "map_": "y, max",
    "new_empty_strided": "x.new_empty_strided((2, 2), (1, 2)).zero_()",
    "minimize": _ELSEWHERE,
    "mtia": _ELSEWHERE,
    "new_empty": "0",
    "nonzero_static": "size=2",
    "outer": "x[0].outer(line)",
    "put": "v, line",
    "register_buffer": "'more', y",
    "register_module": "'more', other",
    "register_parameter": "'more', None",
    "renorm": "2, 0, 1.0",
    "scatter_reduce": "0, i, y, 'sum'",
    "select_scatter": "line, 0, 0",
    "set_extra_state": _ELSEWHERE,
    "set_submodule": "'first', other",
    "stft": "x.repeat(4, 4)[0].stft(4, return_complex=True)",
    "to_empty": _ELSEWHERE,
    "type": "flow.float32",
    "unflatten": "1, (2, 1)",
    "vdot": "x[0].vdot(line)",
    "xpu": _ELSEWHERE,
}
_LOOKED_AT = ("_version", "_base")  # not public, but read all the same


def expressions(path: str, kinds: dict[str, Kind], known: type = object) -> Iterator[str]:
    """Go through the bodies of functions that read, call or set each attribute of `path`.

    Those that are inherited from the class `known` are left out, but for `step`.

    Raises
    ------
    LookupError
        For one that nobody knows how to call.
    """
    worlds = (kind.world() for kind in kinds.values())
    owner = next(found for world in worlds if (found := eval(path, world)) is not None)
    for name in dir(owner):
        if name.startswith("_") and not (name in _LOOKED_AT or name.startswith("_saved")):
            continue
        if not name.isidentifier():
            continue
        static = inspect.getattr_static(type(owner), name, None)
        if (
            name != "step"
            and static is not None
            and static is inspect.getattr_static(known, name, None)
        ):
            continue
        read = f"{path}.{name}"
        if isinstance(static, property) and static.fset is not None:
            yield from (f"{read} = {value}; return x" for value in ("y", "None", "True"))
        if isinstance(static, property) and static.fdel is not None:
            yield f"del {read}; return x"
        called = (f"{type(owner).__name__}.{name}", name, name.removesuffix("_"))
        call = next((CALLS[key] for key in called if key in CALLS), None)
        if call is not None:
            whole = call.startswith(("x", "callable", "("))
            texts = [call.format(x=read) if whole else f"{read}({call})"]
        elif callable(static) or isinstance(static, (staticmethod, classmethod)):
            texts = [f"{read}({arguments})" for arguments in GUESSES]
        else:
            texts = [read]
        shown = (_shown(text, kind) for text in texts for kind in kinds.values())
        found = next(filter(None, shown), None)
        if found is None:
            raise LookupError(f"{type(owner).__name__}.{name}: CALLS does not say how to call it")
        yield found


def _shown(text: str, kind: Kind) -> str | None:
    """Return the body of a function that gives what an expression gives; None if it raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = eval(text, kind.world())
    except Exception:
        return None
    if _is_plain(value):
        return f"return {text}"
    if isinstance(value, types.GeneratorType):
        listed = list(value)
        return f"return list({text})" if _is_plain(listed) else f"return len(list({text}))"
    return f"value = {text}; return type(value).__name__, value is None"


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return _is_plain(list(value.items()))
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    scalars = (bool, int, float, complex, str, type(None), Device, np.dtype, np.ndarray)
    return isinstance(value, (*scalars, flow.Tensor))


# What is asked of several objects at once, or in other words than an attribute.
RELATIONS = """
    x is a; x is y; x is not a; [x].count(a); any(x is p for p in (a, y)); x in {a: 1}
    {a: 1, y: 2}.get(x); x in {a}; id(x) == id(a); hash(x) == hash(a); {x: 1}[x]; x._base is a
    x._base is None; x._base._version; x._base.requires_grad; a._version; a.grad is None
    x.memory is a.memory; x.memory is y.memory; a.memory.version
    x.memory.version == a.memory.version; x.data_ptr() == a.data_ptr(); x.is_set_to(a)
    x.storage().data_ptr() == a.storage().data_ptr()
    x.untyped_storage().data_ptr() == a.untyped_storage().data_ptr()
    np.shares_memory(x.numpy(), a.numpy()); x.grad is None; x.grad is a.grad; x.grad._version
    x.grad.shape; x.grad.requires_grad; bool(x.grad is y); x.grad_fn is None; x.grad_fn is a.grad_fn
    x.grad_fn_node is a.grad_fn_node; x.grad_fn == a.grad_fn; edge(x).node is x.grad_fn
    edge(x).node is None; edge(x).output_nr; edge(x).node.name(); edge(x).node is edge(a).node
    x.grad_fn.next_functions[0][0] is a.grad_fn_node; x.grad_fn.next_functions[0][0].name()
    x.autograd_meta is a.autograd_meta; x.autograd_meta.hooks is None
    len(x.autograd_meta.hooks or ()); isinstance(x, nn.Parameter); type(x) is flow.Tensor
    type(x).__name__; x.__class__ is type(a); isinstance(x, flow.Tensor) and x.is_leaf
    callable(getattr(x, 'backward', None)); hasattr(x, 'note'); getattr(x, 'note', 0)
    'note' in vars(x); 'note' in x.__dict__; vars(x).get('note'); 'note' in dir(x); len(x)
    len(x.shape); list(x.shape); tuple(x.stride()); x.shape == a.shape; x.shape[0] + 1
    f'{x.shape} {x.dtype} {x.requires_grad}'; str(x.shape); repr(x.dtype); x.dtype is a.dtype
    bool(x.ndim); flow.is_tensor(x); flow.is_floating_point(x); flow.numel(x)
    x.numel() == a.numel(); flow.get_default_dtype(); flow.is_grad_enabled()
    flow.is_inference_mode_enabled(); flow.result_type(x, a); flow.can_cast(x.dtype, a.dtype)
    flow.equal(x, a); x == a; bool((x == y).any()); x.requires_grad and x.is_leaf
    x.requires_grad or a.requires_grad; x.is_leaf is a.is_leaf; x._version == a._version
    x._version > 0; x.numpy().flags.owndata; float(x.sum()); x.sum().item(); next(iter(x))
    x[0] is x[0]; x.detach() is x; x.data is x; x.detach().memory is x.memory
    x.view_as(x)._base is x; x.T is x; x.t()._base is a; x[:]._base is x; x[:]._base is a
    x.contiguous() is x; x.to(x.dtype) is x; x.double() is x; x.cpu() is x; x.real is x
    x.requires_grad_(x.requires_grad) is x; x.detach().requires_grad; x.clone()._version
    x.detach()._version; x.data._version; (x * 1)._version; (x * 1).requires_grad; (x * 1).is_leaf
    (x + a).requires_grad; (x * 1)._base is None; (x * 1).grad_fn is None
    nn.Parameter(x.detach()).memory is x.memory; flow.tensor(x.tolist()); flow.as_tensor(x) is x
    flow.from_numpy(x.detach().numpy()).data_ptr() == x.data_ptr()
"""


def relations() -> Iterator[str]:
    """Go through the bodies of functions that ask these."""
    for entry in RELATIONS.replace("\n", ";").split(";"):
        if entry.strip():
            yield f"return {entry.strip()}"


# --- Runs ----------------------------------------------------------------------------------------


class Run:
    """A function around one expression, compiled, and called with one kind of object."""

    def __init__(
        self, body: str, name: str, kind: Kind, changes: dict[str, Any], argument: bool = True
    ) -> None:
        self.body, self.name, self.kind = body, name if argument else f"{name}*", kind
        self.changes, self.argument = changes, argument
        self.number = zlib.crc32(f"{body}{name}".encode())
        self.told: Any = None  # what the compiled function tells of its calls
        self.ops = 0  # that the last plain call dispatched

    def __str__(self) -> str:
        return f"{self.body} [{self.name}]"

    def function(self, scope: Scope) -> Callable[..., Any]:
        source = f"def f({'x' if self.argument else ''}): {self.body}"
        exec(_code(source), scope)
        return scope.pop("f")

    def shown(self, change: str | None = None) -> Any:
        """Return what a plain call shows, after a change; None for one of other kinds."""
        scope = self.kind.world()
        if change is not None and not self.apply(change, scope):
            return None
        function = self.function(scope)
        try:
            with flow.push_interpreter(_Counter()) as counter:
                value = function(*[scope["x"]] * self.argument)
        except Exception as error:
            return type(error)
        self.ops = counter.count
        scalar = isinstance(value, (bool, int, str, type(None)))
        return (value,) if scalar else World({"value": value}, _NOTHING_BEFORE).facts

    def apply(self, change: str, scope: Scope) -> bool:
        """Change an object; return whether that can be done to its kind."""
        try:
            self.changes[change](scope)
        except Exception:
            return False
        return True

    def looks(self) -> dict[str | None, Any]:
        """Return what calls show after each change that can be made."""
        found = {change: self.shown(change) for change in (None, *self.changes)}
        return {change: shown for change, shown in found.items() if shown is not None}

    def verdicts(self, looks: dict[str | None, Any], count: int) -> list[str]:
        """Return what the judge says of record, replay, and `count` calls after changes.

        Of the changes that a plain call notices, each kind tries others.
        """
        usual = looks[None]
        noticed = [change for change in looks if change is not None and looks[change] != usual]
        tried = noticed or [change for change in looks if change is not None]
        start = self.number % max(1, len(tried))
        tried = [*tried[start:], *tried[:start]][: count if noticed else 1]
        world = self.kind.world()
        compiled = flow.compile(self.function(world))
        with judge(raises=False, recordings=True) as judged:
            for change in (None, None, *tried):
                scope = world
                if self.argument:
                    with contextlib.suppress(GradientError):  # `a` may have been cut off
                        scope = self.kind.world(world["a"])
                if change is not None:
                    self.apply(change, scope)
                with contextlib.suppress(Exception):
                    compiled(*[scope["x"]] * self.argument)
        self.told = compiled.explain()
        return judged.verdicts


@functools.cache
def _code(source: str) -> types.CodeType:
    """Compile the text of a function, which can be found again."""
    linecache.cache[f"<{source}>"] = len(source), None, [source], f"<{source}>"
    return compile(source, f"<{source}>", "exec")


_NOTHING_BEFORE = World({})


class _Counter(flow.Interpreter):
    """Counts the ops that pass."""

    count = 0

    def apply(self, op_expr: Any, inputs: Any, attrs: Any) -> Any:
        self.count += 1
        assert self.inner is not None
        return self.inner.apply(op_expr, inputs, attrs)


def runs(
    bodies: Iterable[str],
    kinds: dict[str, Kind],
    changes: dict[str, Any],
    captured: Sequence[str] = (),
) -> Iterator[tuple[Run, list[str]]]:
    """Run expressions with objects of all kinds; give the judge's verdicts.

    An expression that shows the same for all objects is tried with two kinds, and ops with one, as
    their values are looked at by other tests. Where there is one kind, a third of the expressions
    is tried with it as an argument. A call that raises makes no recording.
    """
    for body in bodies:
        found = []
        for name, kind in kinds.items():
            run = Run(body, name, kind, changes)
            if not isinstance(usual := run.shown(), type):
                found.append((run, usual))
        if not found:
            continue
        start = zlib.crc32(body.encode()) % len(found)
        turned = [run for run, _ in (*found[start:], *found[:start])]
        if any(run.ops for run in turned):
            run = turned[0]
            change = list(changes)[run.number % len(changes)]
            yield run, run.verdicts({None: 0, change: 1}, 1)
            continue
        looks = {run: run.looks() for run in turned}
        shown = [look for each in looks.values() for look in each.values()]
        if all(look == shown[0] for look in shown):
            turned = turned[:2]
        for run in turned:
            if run.name not in captured or len(kinds) > 1 or not run.number % 3:
                yield run, run.verdicts(looks[run], 2)
            if run.name in captured:
                other = Run(body, run.name, run.kind, changes, False)
                yield other, other.verdicts(looks[run], 2)
