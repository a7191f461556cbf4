"""`flow.onnx.export`: captures a model as a Program, and translates the Program's ops in order."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any

import attrs
import numpy as np

from oneflow_lite.arrays.bfloat16_arrays import as_plain
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, OnnxError, arg_error
from oneflow_lite.nn.module import Module
from oneflow_lite.onnx.graph import Graph, Value, require_onnx
from oneflow_lite.onnx.ops.elementwise import from_scalar
from oneflow_lite.onnx.registry import TRANSLATIONS, NotTranslated
from oneflow_lite.onnx.sizes import Points, SymbolicSize, varies
from oneflow_lite.static.ir.memory import memory_roots
from oneflow_lite.static.ir.program import OpDesc, Program
from oneflow_lite.static.ir.scope import Scope, global_scope
from oneflow_lite.static.ir.tree import flatten, unflatten
from oneflow_lite.static.lazy.data import data
from oneflow_lite.static.lazy.default_programs import program_guard
from oneflow_lite.static.runtime.executor import Executor
from oneflow_lite.tensors.caller_warnings import warn_caller
from oneflow_lite.tensors.mode import no_grad
from oneflow_lite.tensors.tensor import Tensor

_OPSETS = (18, 20)  # the first version that has all ops, and the default
_ONE_FILE = 2**31 - 2**20  # bytes; above that a protobuf message cannot hold the arrays
_exporting = 0


def is_in_onnx_export() -> bool:
    """Return whether a module is being called for `export`."""
    return _exporting > 0


@attrs.define
class _Source:
    """The Program that is translated.

    Attributes
    ----------
    programs : list of Program
        The same ops, for each of the sizes in `points`.
    points : Points
    inputs : dict of str to str
        The name in the model of each variable that is fed.
    symbols : dict of str to dict of int to str
        The dynamic axes of each input, and the symbols of their sizes.
    outputs : list of str
        Variables.
    scope : Scope
        Values of persistable variables.
    names : dict of str to str
        The names of persistable variables in the model.
    """

    programs: list[Program]
    points: Points
    inputs: dict[str, str]
    symbols: dict[str, dict[int, str]]
    outputs: list[str]
    scope: Scope
    names: dict[str, str]
    title: str


def export(
    model: Module,
    args: Any = (),
    f: str | os.PathLike[str] | IO[bytes] | None = None,
    *,
    kwargs: Mapping[str, Any] | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    dynamic_axes: Mapping[str, Any] | None = None,
    opset_version: int | None = None,
    fetch_list: Sequence[Any] | None = None,
    scope: Scope | None = None,
) -> Any:
    """Write a module, a function or a Program as an ONNX model.

    A module is captured in evaluation mode, as it would be under `static.program_guard`; its mode
    is put back. Parameters, buffers and constants are initializers, with the names of the module's
    state dict. The model is checked with `onnx.checker` before it is written.

    Parameters
    ----------
    model : Module, callable or Program
    args : Tensor, or tuple
        The arguments to call a module or function with; only their shapes and dtypes matter.
        Nothing for a Program, whose feeds are its inputs.
    f : path or file, optional
        The file to write; none by default.
    kwargs : mapping, optional
        Keyword arguments.
    input_names, output_names : sequence of str, optional
        By default the names of the parameters of `forward`, and output, or output_0, ...; of a
        Program the names of its variables.
    dynamic_axes : dict, optional
        By name of an input, the axes whose size may change when the model runs: `{0: "batch"}`, or
        `[0]`. Axes of one name have the same size. Axes without names share a name when they have
        the same place and the same size in the example. Sizes of outputs follow from the inputs; a
        name for an axis of an output is kept.
    opset_version : int, optional
        The version of ONNX's operators, from 18 on; 20 by default.
    fetch_list : sequence of Tensor or str, optional
        The outputs of a Program.
    scope : Scope, optional
        Has the values of the Program's persistable variables; `global_scope()` by default.

    Returns
    -------
    onnx.ModelProto

    Raises
    ------
    OnnxError
        When ops have no translation (the text names all of them), or the ops themselves depend on
        the size of a dynamic axis.
    CaptureError
        When the module asks for values of tensors while it runs.
    OnnxMissingError
        When the package onnx is not installed: it is the extra `onnx`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> net = flow.nn.Sequential(flow.nn.Linear(4, 8), flow.nn.ReLU())
    >>> model = flow.onnx.export(net, flow.ones(2, 4), dynamic_axes={"input": {0: "batch"}})
    >>> [node.op_type for node in model.graph.node], [x.name for x in model.graph.initializer]
    (['Gemm', 'Add', 'Relu', 'Identity'], ['0.weight', '0.bias'])
    """
    onnx = require_onnx()
    opset = _check_opset(opset_version, onnx.defs.onnx_opset_version())
    if isinstance(model, Program):
        source = _of_program(model, args, kwargs, dynamic_axes, fetch_list, scope, input_names)
        default_names = source.outputs
    else:
        if not callable(model):
            expected, hint = "a Module, a function or a Program", "pass what is to be called"
            got = type(model).__name__
            raise arg_error("onnx.export", "model", expected, got, hint, ArgumentTypeError)
        source = _of_call(model, args, dict(kwargs or {}), input_names, dynamic_axes or {})
        several = len(source.outputs) > 1
        default_names = [f"output_{i}" if several else "output" for i in range(len(source.outputs))]
    names = _check_names("output_names", output_names, default_names, source.inputs.values())
    _check_axes(dynamic_axes or {}, [*source.inputs.values(), *names])
    made = _Translator(source, opset, names).model(dynamic_axes or {})
    onnx.checker.check_model(made, full_check=True)
    if f is not None:
        _write(onnx, made, f)
    return made


def _check_opset(given: Any, newest: int) -> int:
    if given is None:
        return min(_OPSETS[1], newest)
    if type(given) is not int or not _OPSETS[0] <= given <= newest:
        expected = f"an int from {_OPSETS[0]} to {newest}, the newest that the package onnx knows"
        hint = "leave it out"
        raise arg_error("onnx.export", "opset_version", expected, given, hint, ArgumentError)
    return given


def _check_names(
    argument: str, given: Sequence[str] | None, default: Sequence[str], taken: Any = ()
) -> list[str]:
    """Return the given names after a check, or distinct names made of the defaults."""
    if given is None:
        fresh_names: list[str] = []
        for name in default:
            number, fresh = 1, name
            while fresh in fresh_names or fresh in taken:
                number, fresh = number + 1, f"{name}_{number}"
            fresh_names.append(fresh)
        return fresh_names
    names = list(given)
    distinct = len({*names, *taken}) == len(names) + len(taken)
    if len(names) != len(default) or not distinct or not all(type(n) is str and n for n in names):
        expected = f"{len(default)} different names, that no input has"
        hint = "name each tensor, those in containers in order"
        raise arg_error("onnx.export", argument, expected, names, hint, ArgumentError)
    return names


def _check_axes(dynamic_axes: Mapping[str, Any], known: Sequence[str]) -> None:
    for name in dynamic_axes:
        if name not in known:
            expected = "names of inputs and outputs: " + ", ".join(map(repr, known))
            hint = "see input_names"
            raise arg_error("onnx.export", "dynamic_axes", expected, name, hint, ArgumentError)


def _write(onnx: Any, model: Any, f: Any) -> None:
    if hasattr(f, "write"):
        f.write(model.SerializeToString())
        return
    size = sum(len(each.raw_data) for each in model.graph.initializer)
    path = os.fspath(f)
    external = {"save_as_external_data": True, "location": f"{os.path.basename(path)}.data"}
    onnx.save_model(model, path, **(external if size > _ONE_FILE else {}))


# --- The Program to translate ---------------------------------------------------------------------


def _of_program(
    program: Program,
    args: Any,
    kwargs: Any,
    dynamic_axes: Any,
    fetch_list: Sequence[Any] | None,
    scope: Scope | None,
    input_names: Sequence[str] | None,
) -> _Source:
    for name, value, hint in (
        ("args", args, "a Program's inputs are its feeds"),
        ("kwargs", kwargs, "a Program's inputs are its feeds"),
        ("dynamic_axes", dynamic_axes, "a Program has one size for each shape: export the module"),
    ):
        if value:
            got = type(value).__name__
            raise arg_error("onnx.export", name, "nothing for a Program", got, hint, ArgumentError)
    if not fetch_list:
        hint = "pass fetch_list=[y]"
        expected = "the outputs of the Program"
        raise arg_error("onnx.export", "fetch_list", expected, fetch_list, hint, ArgumentError)
    program = program.clone(for_test=True)
    variables = program.global_block().vars
    outputs = [str(x.name) if isinstance(x, Tensor) else str(x) for x in fetch_list]
    for name in outputs:
        if name not in variables:
            hint = "see the names with print(program)"
            raise arg_error(
                "onnx.export", "fetch_list", "variables of the Program", name, hint, ArgumentError
            )
    needed = _needed(program.global_block().ops, outputs)
    read = {name for op in needed for name in op.reads} | set(outputs)
    feeds = [name for name, desc in variables.items() if desc.need_check_feed and name in read]
    names = _check_names("input_names", input_names, feeds)
    inputs = dict(zip(feeds, names, strict=True))
    where = global_scope() if scope is None else scope
    return _Source([program], Points({}), inputs, {}, outputs, where, {}, "program")


def _of_call(
    model: Callable[..., Any],
    args: Any,
    kwargs: dict[str, Any],
    input_names: Sequence[str] | None,
    dynamic_axes: Mapping[str, Any],
) -> _Source:
    args = args if isinstance(args, tuple) else (args,)
    leaves: list[Tensor] = []
    spec = flatten((args, kwargs), leaves)
    default = _input_names(model, args, kwargs, leaves)
    names = _check_names("input_names", input_names, default)
    symbols = {
        name: _symbols(name, dynamic_axes[name], x)
        for name, x in zip(names, leaves, strict=True)
        if name in dynamic_axes
    }
    sizes: dict[str, int] = {}
    for name, x in zip(names, leaves, strict=True):
        for axis, symbol in symbols.get(name, {}).items():
            # A size of 1 is special to broadcasting, and must not be taken for the rule.
            sizes[symbol] = max(x.shape[axis], sizes.get(symbol, 2))
    points = Points(sizes)
    captured = []
    for at in points:
        shapes = []
        for name, x in zip(names, leaves, strict=True):
            axes = symbols.get(name, {})
            shape = [at[axes[i]] if i in axes else size for i, size in enumerate(x.shape)]
            shapes.append(shape)
        captured.append(_captured(model, spec, leaves, shapes))
    main, startup, feeds, outputs = captured[0]
    scope = Scope()
    Executor().run(startup, scope=scope)
    return _Source(
        [each[0] for each in captured],
        points,
        dict(zip(feeds, names, strict=True)),
        symbols,
        outputs,
        scope,
        _state_names(model, main),
        getattr(model, "__name__", type(model).__name__),
    )


def _input_names(
    model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], leaves: list[Tensor]
) -> list[str]:
    """Return the names of the parameters that take the tensors."""
    by_tensor: dict[int, str] = {}
    try:
        signature = inspect.signature(model.forward if isinstance(model, Module) else model)
        given = signature.bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        given = {}
    for name, value in given.items():
        inside: list[Tensor] = []
        kind = signature.parameters[name].kind
        flatten(dict(value) if kind is inspect.Parameter.VAR_KEYWORD else value, inside)
        for i, x in enumerate(inside):
            by_tensor.setdefault(id(x), name if len(inside) == 1 else f"{name}_{i}")
    return [by_tensor.get(id(x), f"input_{i}") for i, x in enumerate(leaves)]


def _symbols(name: str, axes: Any, x: Tensor) -> dict[int, str]:
    """Return the symbols of an input's dynamic axes."""
    named = dict(axes) if isinstance(axes, Mapping) else dict.fromkeys(axes)
    symbols = {}
    for axis, symbol in named.items():
        if type(axis) is not int or not -x.ndim <= axis < x.ndim:
            expected, hint = f"axes of {name!r}, from 0 to {x.ndim - 1}", "count from 0"
            raise arg_error("onnx.export", "dynamic_axes", expected, axis, hint, ArgumentError)
        axis %= x.ndim
        symbols[axis] = symbol or f"axis{axis}_{x.shape[axis]}"
    return symbols


@contextmanager
def _evaluating(model: Any) -> Iterator[None]:
    """Put a module into evaluation mode, and back."""
    global _exporting
    modules = list(model.modules()) if isinstance(model, Module) else []
    modes = [module.training for module in modules]
    _exporting += 1
    try:
        for module in modules:
            module.training = False
        yield
    finally:
        _exporting -= 1
        for module, mode in zip(modules, modes, strict=True):
            module.training = mode


def _captured(
    model: Any, spec: Any, leaves: Sequence[Tensor], shapes: Sequence[Sequence[int]]
) -> tuple[Program, Program, list[str], list[str]]:
    """Return the main and the startup Program of a call, its feeds and its results."""
    main, startup = Program(), Program()
    with program_guard(main, startup), no_grad(), _evaluating(model):
        fed = [
            data(f"onnx_input_{i}", shape, x.dtype)
            for i, (x, shape) in enumerate(zip(leaves, shapes, strict=True))
        ]
        args, kwargs = unflatten(spec, fed.__getitem__)
        results: list[Tensor] = []
        flatten(model(*args, **kwargs), results)
        if not results:
            raise OnnxError("onnx.export(): the call returned no tensor, so there is no output")
        results = [x if getattr(x._data, "is_symbolic", False) else x.clone() for x in results]
    return main, startup, [str(x.name) for x in fed], [str(x.name) for x in results]


def _state_names(model: Any, program: Program) -> dict[str, str]:
    """Return the names in the module's state dict by variable."""
    if not isinstance(model, Module):
        return {}
    known = {id(x): name for name, x in [*model.named_buffers(), *model.named_parameters()]}
    return {name: known[id(x)] for name, x in program.parameters.items() if id(x) in known}


def _needed(ops: Sequence[OpDesc], outputs: Sequence[str]) -> list[OpDesc]:
    """Return the ops that the outputs depend on, also ops that write to memory they read."""
    roots = memory_roots(ops)
    wanted, memory = set(outputs), {roots.get(name) for name in outputs}
    needed = []
    for op in reversed(ops):
        if wanted & set(op.outputs) or any(roots[name] in memory for name in op.written):
            needed.append(op)
            wanted |= set(op.reads)
            memory |= {roots[name] for name in op.reads}
    return needed[::-1]


# --- Translation ----------------------------------------------------------------------------------


class _Translator:
    """Adds the nodes of all ops to a graph, and collects the ops without a translation."""

    def __init__(self, source: _Source, opset: int, output_names: list[str]) -> None:
        self.source, self.output_names = source, output_names
        self.block = source.programs[0].global_block()
        self.g = Graph(opset, [*source.inputs.values(), *output_names, *source.names.values()])
        self.values: dict[str, Value] = {}
        self.stale: set[str] = set()  # variables whose memory was written under another name
        self.failed: dict[tuple[str, str], list[str]] = {}  # lines, by op and reason
        self.changed: set[str] = set()

    def model(self, dynamic_axes: Mapping[str, Any]) -> Any:
        """Return the model."""
        onnx, source = self.g.onnx, self.source
        numbered = self._same_ops()
        inputs = [self._input(name, given) for name, given in source.inputs.items()]
        needed = set(map(id, _needed(self.block.ops, source.outputs)))
        roots = memory_roots(self.block.ops)
        for op, attributes in numbered:
            self.changed |= {n for n in op.written if self.block.vars[n].persistable}
            if id(op) in needed:
                self._translate(op, attributes, roots)
        self._raise_failures()
        try:
            results = [self._value(name) for name in source.outputs]
        except NotTranslated as error:
            raise OnnxError(f"onnx.export(): an output cannot be exported: {error}") from error
        # Identities give the outputs their names, also where an output is an input or a constant.
        for name, x in zip(self.output_names, results, strict=True):
            self.g.nodes.append(onnx.helper.make_node("Identity", [x], [name]))
        self._warn_of_state()
        nodes, used = self._reachable()
        graph = onnx.helper.make_graph(
            nodes,
            source.title,
            inputs,
            [
                self._info(name, x, dynamic_axes.get(name))
                for name, x in zip(self.output_names, results, strict=True)
            ],
            [tensor for name, tensor in self.g.initializers.items() if name in used],
        )
        opsets = [onnx.helper.make_opsetid("", self.g.opset)]
        return onnx.helper.make_model(
            graph,
            producer_name="oneflow_lite",
            opset_imports=opsets,
            ir_version=onnx.helper.find_min_ir_version_for(opsets),
        )

    def _same_ops(self) -> list[tuple[OpDesc, dict[str, Any]]]:
        """Return the ops, with attributes merged over all points; raise where the ops differ."""
        source = self.source
        listed = [program.global_block().ops for program in source.programs]
        for ops in listed[1:]:
            for i, op in enumerate(listed[0]):
                other = ops[i] if i < len(ops) else None
                kind = (op.type, op.inputs, op.outputs)
                if other is None or (other.type, other.inputs, other.outputs) != kind:
                    raise self._differs(op)
            if len(ops) > len(listed[0]):
                raise self._differs(ops[len(listed[0])])
        merged = []
        for same in zip(*listed, strict=True):
            attributes = {
                name: source.points.merged([op.attrs[name] for op in same])
                for name in same[0].attrs
            }
            merged.append((same[0], attributes))
        return merged

    def _differs(self, op: OpDesc) -> OnnxError:
        names = ", ".join(self.source.points.base)
        where = "" if op.location is None else f" at {op.location}"
        return OnnxError(
            f"onnx.export(): which ops run depends on the size of {names}: from {op.type}{where} "
            "on they differ; make that axis a fixed one, or write the code without a loop or "
            "branch on the size"
        )

    def _input(self, variable: str, name: str) -> Any:
        desc, value = self.block.vars[variable], Value(name)
        value.dtype, value.shape = desc.dtype, desc.shape
        axes = self.source.symbols.get(name, {})
        if axes:
            sizes: list[Any] = list(desc.shape)
            for axis, symbol in axes.items():
                sizes[axis] = SymbolicSize(((frozenset([symbol]), 1),), sizes[axis])
                self.g.axes.setdefault(symbol, (value, axis))
            value.shape = tuple(sizes)
        self.values[variable] = value
        return self._info(name, value)

    def _info(self, name: str, x: Value, labels: Any = None) -> Any:
        """Describe an input or output."""
        named = dict(labels) if isinstance(labels, Mapping) else {}
        shape = []
        for axis, size in enumerate(x.shape):
            if not isinstance(size, SymbolicSize):
                shape.append(size)
                continue
            terms = size.terms or ()
            own = len(terms) == 1 and terms[0][1] == 1 and len(terms[0][0]) == 1
            symbol = next(iter(terms[0][0])) if own else f"{name}_axis{axis}"
            shape.append(named.get(axis) or named.get(axis - x.ndim) or symbol)
        return self.g.onnx.helper.make_tensor_value_info(name, self.g.type(x.dtype), shape)

    def _value(self, name: str) -> Value:
        """Return the present value of a variable."""
        if name in self.stale:
            raise NotTranslated(f"{name!r} shares memory with a tensor that was written in place")
        if name not in self.values:
            self.values[name] = self._from_outside(name)
        value = self.values[name]
        if value.shape is None:
            raise NotTranslated("it takes a result that only a backward pass needs")
        return value

    def _from_outside(self, name: str) -> Value:
        """Return a parameter, a buffer or a constant."""
        desc = self.block.vars[name]
        if desc.value is None:
            array = self.source.scope.find_var(name)
            if array is None:
                hint = "run the startup program first, in the same scope"
                expected = f"a value for the persistable variable {name!r}"
                raise arg_error("onnx.export", "scope", expected, "none", hint, ArgumentError)
            known = self.source.names.get(name)
            named = self.g.fresh(name) if known is None else Value(known)
            return self.g.initializer(named, _on_host(array))
        programs = [program.global_block().vars[name].value for program in self.source.programs]
        array = self.source.points.merged([_on_host(value) for value in programs])
        if not isinstance(array, SymbolicSize):
            return self.g.constant(array)
        made = Value()
        made.dtype = desc.dtype
        made = Value(self.g.number(array, made))
        made.dtype, made.shape = desc.dtype, desc.shape
        return made

    def _translate(self, op: OpDesc, attributes: dict[str, Any], roots: dict[str, str]) -> None:
        inputs: list[Any] = []
        try:
            inputs = [None if name is None else self._value(name) for name in op.inputs]
            made_values = self._call(op, inputs, attributes)
            results = made_values if isinstance(made_values, tuple) else (made_values,)
        except NotTranslated as error:
            results = self._fail(op, str(error))
        except TypeError:  # a translation may calculate with a size that varies
            if not varies((*attributes.values(), *[x.shape for x in inputs if x is not None])):
                raise
            results = self._fail(op, "its sizes depend on the dynamic axes")
        for name, made in zip(op.outputs, results, strict=False):
            self._define(name, made, op.type, inputs)
        for written in op.written:
            if written not in op.outputs:
                self._define(written, results[0], op.type, inputs)
            self.stale |= {n for n in self.values if roots.get(n) == roots.get(written)}
            self.stale.discard(written)

    def _fail(self, op: OpDesc, why: str) -> tuple[str, ...]:
        """Note an op that cannot be translated; the error names all such ops at once."""
        where = "" if op.location is None else f"{os.path.basename(op.location.filename)}:"
        line = "" if op.location is None else str(op.location.line)
        self.failed.setdefault((op.type, why), []).append(where + line)
        return ("failed",) * len(op.outputs)

    def _define(self, name: str, made: Any, kind: str, inputs: list[Any]) -> None:
        """Let a variable stand for a value from now on; None if only a backward pass needs it."""
        value = Value(made)
        value.dtype = self.block.vars[name].dtype
        if made is not None:
            descs = [program.global_block().vars[name] for program in self.source.programs]
            value.shape = self.source.points.merged([tuple(desc.shape) for desc in descs])
            value.made_by = (kind, tuple(inputs))
        self.values[name] = value
        self.stale.discard(name)

    def _call(self, op: OpDesc, inputs: list[Any], attributes: dict[str, Any]) -> Any:
        function = TRANSLATIONS.find(op.type)
        if function is not None:
            return function(self.g, *inputs, **attributes)
        made = from_scalar(op.type, self.g, inputs, attributes)
        if made is None:
            raise NotTranslated("")
        return made

    def _raise_failures(self) -> None:
        if not self.failed:
            return
        lines = []
        for (op, why), places in sorted(self.failed.items()):
            known = ", ".join(dict.fromkeys(filter(None, places)))
            lines.append(f"  {op}{f': {why}' if why else ''}{f' (at {known})' if known else ''}")
        raise OnnxError(
            f"onnx.export(): there is no translation to ONNX of {len(lines)} "
            f"op{'s' if len(lines) > 1 else ''}:\n" + "\n".join(lines) + "\n"
            "register one with flow.onnx.register_onnx, or compute it otherwise"
        )

    def _warn_of_state(self) -> None:
        if self.changed:
            names = sorted(self.source.names.get(name, name) for name in self.changed)
            warn_caller(
                f"onnx.export(): {', '.join(names)} changes with every call; an ONNX model has no "
                "state, and computes with what it is now"
            )

    def _reachable(self) -> tuple[list[Any], set[str]]:
        """Return the nodes that the outputs need, and all names that they use."""
        used = set(self.output_names)
        kept = []
        for node in reversed(self.g.nodes):
            if used & set(node.output):
                kept.append(node)
                used |= set(node.input)
        return kept[::-1], used


def _on_host(array: Any) -> np.ndarray[Any, Any]:
    """Return an array for the file: of NumPy, with plain dtypes."""
    return as_plain(array) if isinstance(array, np.ndarray) else array.get()  # type: ignore[no-any-return]
