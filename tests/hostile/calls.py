"""Good calls of the public callables, as texts, so that each argument can be another one.

The calls of functors are the samples of their declarations. Those of all else are read from the
examples of docstrings, or made from a signature: of the class `OBJECTS` has an object, and
`GUESSES` has a value for each parameter.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import doctest
import functools
import inspect
import io
import math
import warnings
from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np

import oneflow_lite as flow
import oneflow_lite.distributions as dist
from docs.site import public_names
from oneflow_lite import nn, optim
from oneflow_lite.functors.declaring.declare import DECLARATIONS
from oneflow_lite.ops.registry import FUNCTORS
from oneflow_lite.tensors.mode import local
from tests import declared_samples
from tests.distributions.cases import CASES

# Whole modules and single names that are not called with hostile values, and why.
APART = {
    "flow.distributed": "needs a world of processes",
    "flow.nn.parallel": "needs a world of processes",
    "flow.errors": "exceptions take anything",
    "flow.mock_torch": "replaces modules of the process",
    "flow.profiler": "measures, and takes no values",
    "flow.array_api": "has the errors of the standard's test suite",
    "flow.testing": "asserts",
    "flow.onnx": "writes files",
    "flow.info": "prints",
    "flow.save": "writes files",
    "flow.load": "reads files",
    "flow.from_file": "maps files",
    "flow.static.load": "reads files",
    "flow.static.save": "writes files",
    "flow.compile": "takes functions",
    "flow.explore": "writes files",
    **dict.fromkeys(
        "flow.Interpreter flow.AutogradInterpreter flow.EagerInterpreter flow.OpExprGradFunction "
        "flow.AutoGradCaptureState flow.current_interpreter flow.Tensor.set_history "
        "flow.Tensor.refresh_view flow.Tensor.replay_view flow.autograd.graph.GradientEdge "
        "flow.static.OpDesc flow.static.VarDesc flow.static.InterpreterCore flow.static.plan "
        "flow.static.passes flow.ScriptModule "
        "flow.nn.parameter.UninitializedTensorMixin flow.nn.UninitializedBuffer".split(),
        "is called by the library itself",
    ),
    "flow.utils.data.DataLoader": "starts processes",
    "flow.register_functor": "changes the library",
    "flow.register_kernel": "changes the library",
    "flow.register_grad_func": "changes the library",
    "flow.nn.Module.share_memory": "needs processes",
}
# Arguments that say how often something is done: a call does what it is asked for.
ROUNDS = {
    ("flow.pca_lowrank", "niter"),
    ("flow.svd_lowrank", "niter"),
    ("flow.nn.utils.parametrizations.spectral_norm", "n_power_iterations"),
    ("flow.quasirandom.SobolEngine.draw_base2", 0),
    ("flow.quasirandom.SobolEngine.fast_forward", 0),
}
SCOPE: dict[str, Any] = {
    "flow": flow,
    "np": np,
    "nn": nn,
    "optim": optim,
    "dist": dist,
    "F": nn.functional,
    "public_names": public_names,
    "FUNCTORS": FUNCTORS,
    "inf": math.inf,
    "nan": math.nan,
}


@attrs.frozen
class Call:
    """A good call: what runs before it, the function, and its arguments."""

    name: str
    setup: str
    function: str
    args: tuple[str, ...]
    kwargs: dict[str, str]

    def spelled(self, place: int | str | None = None, value: str = "") -> str:
        """Return the text of the call, with another value in one place."""
        args = [value if i == place else text for i, text in enumerate(self.args)]
        kwargs = {**self.kwargs, **({place: value} if isinstance(place, str) else {})}
        given = [*args, *(f"{name}={text}" for name, text in kwargs.items())]
        return f"{self.function}({', '.join(given)})"

    def places(self, function: Any) -> list[int | str]:
        """Return the places and names of all arguments, also of those that are not given."""
        found: list[int | str] = [*range(len(self.args)), *self.kwargs]
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):
            return found
        named = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        given = {p.name for p in parameters[: len(self.args)]}
        return found + [p.name for p in named if p.name not in given and p.name not in self.kwargs]


def reset() -> None:
    """Undo what a call may have changed for all later ones."""
    local.state = _STATE
    flow.set_default_dtype(flow.float32)
    flow.set_default_device("cpu")
    flow.set_printoptions(profile="default")


_STATE = local.state


def is_apart(full: str) -> bool:
    """Return whether a name is not walked."""
    return any(full == name or full.startswith(f"{name}.") for name in APART)


# --- Functors -------------------------------------------------------------------------------------


def of_functors() -> Iterator[Call]:
    """Yield the first sample of each functor and of its in-place twin."""
    for name in sorted(DECLARATIONS):
        d = DECLARATIONS.get(name)
        if not (d.places or d.twin_places) or is_apart(f"flow.{name}"):
            continue
        for expression in declared_samples.expressions(name)[:1]:
            node = ast.parse(expression, mode="eval").body
            assert isinstance(node, ast.Call)
            call = _of_node(_place(d.places, name), "", node)
            setup = "".join(map(_given, sorted({n.id for n in ast.walk(node) if _is_name(n)})))
            yield attrs.evolve(call, function=f"FUNCTORS.get({name!r})", setup=setup)
            if d.has_twin:
                args = (f"({call.args[0]}) * 1", *call.args[1:])
                yield attrs.evolve(
                    call,
                    name=f"{call.name}_",
                    function=f"FUNCTORS.get('{name}_')",
                    setup=setup,
                    args=args,
                )


def _is_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Name)


def _given(name: str) -> str:
    """Return the text that gives a name of a sample its value."""
    array = declared_samples.ARRAYS.get(name)
    if array is not None:
        return f"{name} = flow.tensor({array.tolist()!r}, dtype={array.dtype.name!r})\n"
    return f"{name} = {name}\n" if name in SCOPE else ""


def _place(places: Any, name: str) -> str:
    place, own = next(iter(places), ("Tensor", name))
    return f"flow.{own}" if place == "flow" else f"flow.{place}.{own}"


def _of_node(name: str, setup: str, node: ast.Call) -> Call:
    kwargs = {k.arg: ast.unparse(k.value) for k in node.keywords if k.arg}
    return Call(name, setup, ast.unparse(node.func), tuple(map(ast.unparse, node.args)), kwargs)


# --- Examples -------------------------------------------------------------------------------------


def targets() -> dict[int, str]:
    """Return the names of all public callables that are no functors, by id."""
    functors = {id(FUNCTORS.get(name)) for name in FUNCTORS}
    found: dict[int, str] = {}
    for each in sorted(public_names.public_names().values(), key=public_names.rank):
        value = each.value
        if callable(value) and id(value) not in functors and not is_apart(each.full):
            found.setdefault(id(value), each.full)
    return found


def of_examples(wanted: dict[int, str]) -> Iterator[Call]:
    """Yield the first call of each of these callables in the examples of docstrings."""
    done: set[str] = set()
    seen: set[int] = set()
    for each in sorted(public_names.public_names().values(), key=public_names.rank):
        doc = getattr(each.value, "__doc__", None) or ""
        if id(each.value) not in wanted or id(each.value) in seen or ">>>" not in doc:
            continue
        seen.add(id(each.value))
        reset()
        setup, scope = "", dict(SCOPE)
        for example in doctest.DocTestParser().get_examples(doc):
            try:
                tree = ast.parse(example.source)
            except SyntaxError:
                break
            for node in ast.walk(tree):
                if isinstance(node, ast.Call) and _is_whole(node, scope):
                    name = _name_of(node, scope, wanted)
                    if name and name not in done:
                        done.add(name)
                        yield _of_node(name, setup, node)
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    exec(compile(tree, "<example>", "exec"), scope)
            except Exception:  # an example of an error
                continue
            setup += example.source


def _is_whole(node: ast.Call, scope: dict[str, Any]) -> bool:
    """Return whether the arguments can be told apart, and all names are known."""
    inner = list(ast.walk(node))
    bound = {n.arg for n in inner if isinstance(n, ast.arg)}
    bound |= {n.id for n in inner if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    names = {n.id for n in inner if isinstance(n, ast.Name)} - bound
    listed = any(isinstance(a, ast.Starred) for a in node.args)
    return not listed and all(n in scope or hasattr(builtins, n) for n in names)


def _name_of(node: ast.Call, scope: dict[str, Any], wanted: dict[int, str]) -> str | None:
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            function = eval(compile(ast.Expression(node.func), "<example>", "eval"), dict(scope))
    except Exception:  # inside a function
        return None
    name = wanted.get(id(getattr(function, "__func__", function)))
    if name is None and not isinstance(function, type):
        name = wanted.get(id(type(function)))
        return name and f"{name}.__call__"
    return name


# --- Signatures -----------------------------------------------------------------------------------

# An object of each class whose methods are called.
OBJECTS = {
    "Tensor": "flow.ones(2, 3)",
    "Generator": "flow.Generator()",
    "Size": "flow.Size([2, 3])",
    "device": "flow.device('cpu')",
    "dtype": "flow.float32",
    "sparse.SparseTensor": "flow.eye(2).to_sparse()",
    "nn.Module": "nn.Linear(3, 3)",
    "nn.ModuleList": "nn.ModuleList([nn.Linear(3, 3)])",
    "nn.ModuleDict": "nn.ModuleDict({'abc': nn.Linear(3, 3)})",
    "nn.ParameterList": "nn.ParameterList([flow.ones(2)])",
    "nn.ParameterDict": "nn.ParameterDict({'abc': flow.ones(2)})",
    "nn.Sequential": "nn.Sequential(nn.Linear(3, 3))",
    "optim.Optimizer": "optim.SGD([flow.ones(2, requires_grad=True)], lr=0.1)",
    "optim.LBFGS": "optim.LBFGS([flow.ones(2, requires_grad=True)])",
    "static.Program": "flow.static.Program()",
    "static.Block": "flow.static.Program().global_block()",
    "static.Scope": "flow.static.Scope()",
    "static.Executor": "flow.static.Executor()",
    "quasirandom.SobolEngine": "flow.quasirandom.SobolEngine(2)",
    "autograd.graph.Node": "(flow.ones(2, requires_grad=True) * 2).grad_fn",
    "nn.utils.rnn.PackedSequence": "nn.utils.rnn.pack_sequence([flow.ones(2, 3)])",
}

# Values by the name of a parameter, then by words of its annotation.
GUESSES = {
    "module": "nn.Linear(3, 3)",
    "model": "nn.Linear(3, 3)",
    "optimizer": "optim.SGD([flow.ones(2, requires_grad=True)], lr=0.1)",
    "params": "[flow.ones(2, requires_grad=True)]",
    "parameters": "[flow.ones(2)]",
    "func": "flow.sin",
    "function": "flow.sin",
    "hook": "print",
    "closure": "None",
    "dataset": "[1, 2, 3]",
    "data_source": "[1, 2, 3]",
    "datasets": "[[1], [2]]",
    "schedulers": "[]",
    "indices": "[0, 1]",
    "milestones": "[1, 2]",
    "weight_size": "(4, 3, 2)",
    "input_size": "(2, 3, 5)",
    "sizes": "(2, 3)",
    "dtype": "flow.float32",
    "name": "'weight'",
}
BY_TYPE = {
    "Tensor": "flow.ones(2, 3)", "Module": "nn.Linear(3, 3)", "Callable": "flow.sin", "str": "'a'",
    "bool": "True", "float": "0.5", "Sequence": "[1, 2]", "Iterable": "[1, 2]", "int": "2",
    "dict": "{}", "Mapping": "{}", "tuple": "(1, 2)", "list": "[1, 2]",
}  # fmt: skip


def of_signatures(names: dict[int, str], done: set[str]) -> Iterator[Call]:
    """Yield calls of the callables that are not done yet."""
    for full in sorted(set(names.values()) - done):
        path = full.removeprefix("flow.")
        owner, _, method = path.rpartition(".")
        is_member = "." in public_names.public_names()[full].name
        if is_member and owner not in OBJECTS:
            continue
        target = f"({OBJECTS[owner]}).{method}" if is_member else _reached(path)
        try:
            function = eval(target, dict(SCOPE))
            parameters = inspect.signature(function).parameters.values()
        except Exception:
            continue
        given = [p for p in parameters if p.default is p.empty]
        places = [p for p in given if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        args = [_guess(p) for p in places]
        args += [_guess(p) for p in given if p.kind is p.VAR_POSITIONAL]
        kwargs = {p.name: _guess(p) for p in given if p.kind is p.KEYWORD_ONLY}
        yield Call(full, "", target, tuple(args), kwargs)


def _reached(path: str) -> str:
    home, _, name = path.rpartition(".")
    return f"public_names.module_at({home!r}).{name}"


def _guess(parameter: inspect.Parameter) -> str:
    if parameter.name in GUESSES:
        return GUESSES[parameter.name]
    hint = str(parameter.annotation)
    return next((text for word, text in BY_TYPE.items() if word in hint), "flow.ones(2, 3)")


def of_distributions() -> Iterator[Call]:
    """Yield a constructor call of each distribution, and of the methods of one object of it."""
    for name, cases in CASES.items():
        kwargs = {k: _written(v) for k, v in cases[0].items()}
        if None in kwargs.values():
            continue
        made = Call(f"flow.distributions.{name}", "", f"dist.{name}", (), kwargs)
        yield made
        setup = f"d = {made.spelled()}\n"
        methods = {
            "log_prob": "d.sample()",
            "cdf": "d.sample()",
            "icdf": "flow.tensor(0.5)",
            "sample": "(2,)",
            "rsample": "(2,)",
            "expand": "(2, *d.batch_shape)",
            "enumerate_support": "True",
        }
        for method, value in methods.items():
            yield Call(f"{made.name}.{method}", setup, f"d.{method}", (value,), {})


def _written(value: Any) -> str | None:
    if isinstance(value, np.ndarray):
        return f"flow.tensor({value.tolist()})"
    return repr(value) if isinstance(value, (int, float, tuple)) else None


@functools.cache
def calls() -> tuple[Call, ...]:
    """Return the good calls of all public callables."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [*of_functors(), *of_distributions()]
        rest = targets()
        found += of_examples(rest)
        done = {call.name for call in found}
        found += of_signatures(rest, done)
        reset()
    return tuple(found)
