"""`flow.summary`: shapes, parameters and work of a module on sample inputs, by submodule.

It stands above modules: it calls one, watches through hooks on all modules and a pushed
interpreter, and puts everything back.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import attrs

from oneflow_lite.arrays.device import DeviceLike
from oneflow_lite.arrays.dtype import DType, DTypeLike, as_dtype, default_float
from oneflow_lite.arrays.refusals import guarded
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, arg_error
from oneflow_lite.functors.creation import ones
from oneflow_lite.functors.random import default_generator
from oneflow_lite.interpreter.stack import Interpreter, push_interpreter
from oneflow_lite.nn.hooks import register_module_forward_hook, register_module_forward_pre_hook
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.parameter import is_lazy
from oneflow_lite.ops.op_expr import OpExpr
from oneflow_lite.tensors.html_text import block, facts, table
from oneflow_lite.tensors.mode import no_grad
from oneflow_lite.tensors.tensor import Tensor

Shape = tuple[int, ...]
_MODES = ("eval", "train", "same")
_HEADERS = ("module", "output shape", "parameters", "multiply-adds", "activations")


def _product(x: Any, y: Any, z: Any, **attrs: Any) -> int:
    return int(z.numel() * x.shape[-1])


def _product_tn(x: Any, y: Any, z: Any, *, merge: bool) -> int:
    return int(z.numel() * (math.prod(x.shape[:-1]) if merge else x.shape[-2]))


def _contracted(x: Any, y: Any, z: Any, *, xs: Any, ys: Any, zs: Any) -> int:
    sizes = {**dict(zip(xs, x.shape, strict=True)), **dict(zip(ys, y.shape, strict=True))}
    return math.prod(sizes.values())


def _recurrent(x: Any, *others: Any, **attrs: Any) -> int:
    """Each row of x, (rows, gates) or (steps, batch, gates), is added to a product with weights."""
    weights = [w for w in others[1:] if isinstance(w, Tensor) and w.ndim == 2]
    return int(math.prod(x.shape[:-1]) * sum(w.numel() for w in weights))


def _attended(q: Any, k: Any, v: Any) -> int:
    """Each query meets each key and each value, masked ones too."""
    return int(math.prod(q.shape[:3]) * k.shape[2] * (q.shape[3] + v.shape[3]))


# The multiply-adds of a call of an op, from its inputs, its (first) output and its attributes.
MULTIPLY_ADDS: dict[str, Callable[..., int]] = {
    "matmul": _product,
    "matmul_nt": _product,
    "matmul_tn": _product_tn,
    "attention": lambda q, k, v, mask, seed, y, **a: _attended(q, k, v),
    "dot": lambda x, y, z: int(x.numel()),
    "contract": _contracted,
    "conv": lambda x, w, b, z, **geometry: int(z.numel() * math.prod(w.shape[1:])),
    # A transposed convolution: each element of the input meets the filters of its channel.
    "conv_input_grad": lambda x, w, z, **geometry: int(x.numel() * math.prod(w.shape[1:])),
    "lstm_layer": lambda x, h, c, w, p, sizes, z, **a: _recurrent(x, h, w, p),
    "gru_layer": lambda x, h, w, b, sizes, z, **a: _recurrent(x, h, w),
    "rnn_layer": lambda x, h, w, sizes, z, **a: _recurrent(x, h, w),
}


@attrs.frozen
class Row:
    """A submodule in a `Summary`; all numbers include the modules below it.

    Attributes
    ----------
    path : str
        As in `named_modules()`; empty for the module itself.
    type : str
        Name of the class.
    depth : int
        The number of modules that it is inside of.
    calls : int
        The number of its calls.
    output_shapes : tuple of tuple of int
        Of the tensors that its first call returned.
    parameters, trainable, frozen : int
        Elements of its parameters, except parameters that stand in an earlier row, too.
    shared : int
        Elements of parameters that were counted in an earlier row.
    multiply_adds : int
        In products of matrices, convolutions and recurrent layers.
    activation_bytes : int
        Of the tensors that its calls returned.
    same_as : str or None
        The path of the row that is the same module.
    is_leaf : bool
        Whether it has no submodules.
    """

    path: str
    type: str
    depth: int
    calls: int
    output_shapes: tuple[Shape, ...]
    parameters: int
    trainable: int
    shared: int
    multiply_adds: int
    activation_bytes: int
    same_as: str | None
    is_leaf: bool

    @property
    def frozen(self) -> int:
        """Parameters that require no gradient."""
        return self.parameters - self.trainable

    def cells(self) -> tuple[str, ...]:
        """Return the texts of the columns, without indentation."""
        name = self.path.rpartition(".")[2]
        title = f"{name}: {self.type}" if name else self.type
        if self.same_as is not None:
            return (f"{title} ({self.same_as or 'the root'} again)", "", "", "", "")
        if self.calls > 1:
            title += f" ({self.calls} calls)"
        count = f"{self.parameters:,}"
        count += f" + {self.shared:,} shared" if self.shared else ""
        if not self.calls:
            return (title, "not called", count, "", "")
        shapes = ", ".join(map(str, self.output_shapes)) or "no tensor"
        return (title, shapes, count, f"{self.multiply_adds:,}", size_text(self.activation_bytes))


@attrs.frozen
class Summary:
    """The findings of `flow.summary`: rows as data, printed as text, shown in notebooks as HTML.

    Attributes
    ----------
    rows : tuple of Row
        In the order of `named_modules()`; the first is the module itself.
    parameters, trainable, frozen, parameter_bytes : int
        Of all parameters, each counted once.
    multiply_adds : int
    input_bytes : int
    activation_bytes : int
        Of the tensors that modules without submodules returned, all calls together.
    depth : int or None
        The number of levels that are printed.
    """

    rows: tuple[Row, ...]
    parameter_bytes: int
    input_bytes: int
    activation_bytes: int
    depth: int | None

    @property
    def parameters(self) -> int:
        """Elements of all parameters."""
        return self.rows[0].parameters

    @property
    def trainable(self) -> int:
        """Elements of the parameters that require a gradient."""
        return self.rows[0].trainable

    @property
    def frozen(self) -> int:
        """Elements of the parameters that require no gradient."""
        return self.rows[0].frozen

    @property
    def multiply_adds(self) -> int:
        """Multiply-adds of the whole call."""
        return self.rows[0].multiply_adds

    def _shown(self) -> Iterator[Row]:
        return (row for row in self.rows if self.depth is None or row.depth <= self.depth)

    def _totals(self) -> list[tuple[str, str]]:
        parts = f"{self.trainable:,} trainable, {self.frozen:,} frozen"
        return [
            ("parameters", f"{self.parameters:,} ({parts}), {size_text(self.parameter_bytes)}"),
            ("multiply-adds", f"{self.multiply_adds:,}"),
            ("input", size_text(self.input_bytes)),
            ("activations", f"{size_text(self.activation_bytes)} of modules without submodules"),
        ]

    def __str__(self) -> str:
        lines = [_HEADERS]
        for row in self._shown():
            first, *others = row.cells()
            lines.append(("  " * row.depth + first, *others))  # type: ignore[arg-type]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = []
        for line in lines:
            left = [cell.ljust(width) for cell, width in zip(line[:2], widths, strict=False)]
            right = [cell.rjust(width) for cell, width in zip(line[2:], widths[2:], strict=True)]
            text.append("  ".join(left + right).rstrip())
        rule = "-" * max(map(len, text))
        totals = [f"{name}: {value}" for name, value in self._totals()]
        return "\n".join([text[0], rule, *text[1:], rule, *totals])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = []
        for row in self._shown():
            first, *others = row.cells()
            rows.append(("\N{NO-BREAK SPACE}" * 3 * row.depth + first, *others))
        return block(
            table(_HEADERS, rows, numbers=range(2, len(_HEADERS))),
            facts(self._totals()),
            label="summary of a module",
        )


def size_text(count: int) -> str:
    """Return a number of bytes in words, with prefixes of 1024.

    >>> size_text(12), size_text(5000)
    ('12 B', '4.88 KiB')
    """
    if count < 1024:
        return f"{count} B"
    power = min((count.bit_length() - 1) // 10, 4)
    return f"{count / 1024**power:.2f} {' KMGT'[power]}iB"


@guarded
def summary(
    module: Module,
    *inputs: Any,
    kwargs: Mapping[str, Any] | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    mode: str = "eval",
    depth: int | None = None,
) -> Summary:
    """Call a module once, without gradients, and return the results and sizes of each submodule.

    The module is left as it was: its mode, buffers, attributes and lazy parameters, and the state
    of the default random generator, are put back. Only writes of `forward` into parameters, or
    into objects outside of the module, stay.

    Parameters
    ----------
    module : Module
    *inputs
        The arguments of `forward`. A tuple of ints is a shape: a tensor of ones of that shape is
        made for it.
    kwargs : mapping, optional
        Keyword arguments of `forward`; no shapes.
    dtype : dtype or sequence of dtype, optional
        Of the tensors made for shapes, the same for all or one for each input. By default the dtype
        of the module's first floating point parameter.
    device : optional
        Of the tensors made for shapes; by default the device of the module's first parameter.
    mode : {"eval", "train", "same"}
        The mode in which the module is called; "same" leaves it.
    depth : int, optional
        The number of levels of submodules that are printed; all by default.

    Returns
    -------
    Summary
        Prints as a table; `rows` has the numbers.

    Raises
    ------
    ArgumentTypeError
        When `module` is no Module.
    ArgumentError
        For an unknown `mode`, a `depth` that is no int of at least 0, or another number of dtypes
        than of inputs.

    Notes
    -----
    An addition of a bias is no multiply-add here, and neither is an op that works element by
    element. A parameter that several modules share is counted in the first of them.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> net = flow.nn.Sequential(flow.nn.Linear(4, 8), flow.nn.ReLU(), flow.nn.Linear(8, 2))
    >>> found = flow.summary(net, (16, 4))
    >>> found
    module       output shape  parameters  multiply-adds  activations
    -----------------------------------------------------------------
    Sequential   (16, 2)               58            768        128 B
      0: Linear  (16, 8)               40            512        512 B
      1: ReLU    (16, 8)                0              0        512 B
      2: Linear  (16, 2)               18            256        128 B
    -----------------------------------------------------------------
    parameters: 58 (58 trainable, 0 frozen), 232 B
    multiply-adds: 768
    input: 256 B
    activations: 1.12 KiB of modules without submodules
    >>> found.rows[1].path, found.rows[1].output_shapes, found.multiply_adds
    ('0', ((16, 8),), 768)
    """
    if not isinstance(module, Module):
        expected, hint = "a Module", "pass the module, then its inputs"
        got = type(module).__name__
        raise arg_error("summary", "module", expected, got, hint, ArgumentTypeError)
    if mode not in _MODES:
        expected, hint = "one of " + ", ".join(map(repr, _MODES)), "name one of these"
        raise arg_error("summary", "mode", expected, repr(mode), hint, ArgumentError)
    if depth is not None and (type(depth) is not int or depth < 0):
        expected, hint = "an int of at least 0, or None", "leave it out to print all levels"
        raise arg_error("summary", "depth", expected, repr(depth), hint, ArgumentError)
    args = _samples(module, inputs, dtype, device)
    watch = _Watch()
    with ExitStack() as stack:
        stack.enter_context(_left_as_it_was(module))
        stack.enter_context(no_grad())
        stack.enter_context(push_interpreter(_Counter(watch)))
        stack.enter_context(register_module_forward_pre_hook(watch.enter))
        stack.enter_context(register_module_forward_hook(watch.leave, always_call=True))
        if mode != "same":
            module.train(mode == "train")
        try:
            module(*args, **(kwargs or {}))
        except Exception as error:
            given = ", ".join(_input_text(x) for x in (*args, *(kwargs or {}).values()))
            error.add_note(f"summary(): while {type(module).__name__} was called with {given}")
            raise
        rows = tuple(_rows(module, watch))  # before lazy parameters lose their shapes again
        known = {id(p): p for p in module.parameters() if not is_lazy(p)}
    return Summary(
        rows,
        parameter_bytes=sum(p.nbytes for p in known.values()),
        input_bytes=sum(x.nbytes for x in _tensors((args, kwargs or {}))),
        activation_bytes=sum(
            row.activation_bytes for row in rows if row.is_leaf and row.same_as is None
        ),
        depth=depth,
    )


def _input_text(x: Any) -> str:
    return f"a tensor of shape {x.shape}" if isinstance(x, Tensor) else type(x).__name__


def _is_shape(value: Any) -> bool:
    """Return whether an input is a shape: a tuple of ints."""
    return isinstance(value, tuple) and all(type(size) is int for size in value)


def _samples(module: Module, inputs: tuple[Any, ...], dtype: Any, device: Any) -> tuple[Any, ...]:
    """Return the inputs, with tensors of ones in the place of shapes."""
    several = isinstance(dtype, (tuple, list))
    if several and len(dtype) != len(inputs):
        expected, hint = f"{len(inputs)} dtypes, one for each input", "or give one for all"
        raise arg_error("summary", "dtype", expected, len(dtype), hint, ArgumentError)
    default: DType = default_float()
    for parameter in module.parameters():
        if device is None:
            device = parameter.device
        if parameter.is_floating_point():
            default = parameter._data.dtype
            break
    wanted = dtype if several else [dtype] * len(inputs)
    made = []
    for x, each in zip(inputs, wanted, strict=True):
        if _is_shape(x):
            if any(size < 0 for size in x):
                expected, hint = "sizes of at least 0", "give a shape with its batch dimension"
                raise arg_error("summary", "inputs", expected, x, hint, ArgumentError)
            kind = default if each is None else as_dtype("summary", each)
            x = ones(x, dtype=kind, device=device)
        made.append(x)
    return tuple(made)


def _tensors(value: Any) -> Iterator[Tensor]:
    """Yield the tensors in nested containers."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        yield from _tensors(tuple(value.values()))
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _tensors(part)


@attrs.define
class _Seen:
    """The facts seen of a module. It keeps the module alive, so that its id stays its own."""

    module: Any
    calls: int = 0
    output_shapes: tuple[Shape, ...] = ()
    multiply_adds: int = 0
    activation_bytes: int = 0


class _Watch:
    """Takes note of the calls of modules; `stack` has the calls that have not returned."""

    def __init__(self) -> None:
        self._seen: dict[int, _Seen] = {}
        self.stack: list[int] = []

    def of(self, module: Any) -> _Seen:
        """Return the facts seen of a module."""
        return self._seen.setdefault(id(module), _Seen(module))

    def enter(self, module: Any, args: Any) -> None:
        """Take note of a call."""
        self.of(module)
        self.stack.append(id(module))

    def leave(self, module: Any, args: Any, output: Any) -> None:
        """Take note of the output."""
        self.stack.pop()
        seen, tensors = self.of(module), list(_tensors(output))
        if not seen.calls:
            seen.output_shapes = tuple([tuple(x.shape) for x in tensors])
        seen.calls += 1
        seen.activation_bytes += sum(x.nbytes for x in tensors)

    def count(self, number: int) -> None:
        """Add multiply-adds to all modules that are being called."""
        for key in set(self.stack):  # a module that calls itself counts once
            self._seen[key].multiply_adds += number


class _Counter(Interpreter):
    """Sees every op."""

    def __init__(self, watch: _Watch) -> None:
        self.watch = watch

    def apply(self, op_expr: OpExpr, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        """Run an op, and count its multiply-adds."""
        assert self.inner is not None
        result = self.inner.apply(op_expr, inputs, attrs)
        count = MULTIPLY_ADDS.get(op_expr.op_type_name)
        if count is not None:
            first = result[0] if isinstance(result, tuple) else result
            self.watch.count(count(*inputs, first, **attrs))
        return result


def _rows(module: Module, watch: _Watch) -> Iterator[Row]:
    """Yield the rows, in the order of `named_modules()`."""
    counted: dict[int, str] = {}  # where a parameter stands first
    paths: dict[int, str] = {}
    for path, each in module.named_modules(remove_duplicate=False):
        for name, parameter in each._parameters.items():
            if parameter is not None:
                counted.setdefault(id(parameter), f"{path}.{name}" if path else name)
    again = "\0"  # the path of a module that stood in an earlier row, with all below it
    for path, each in module.named_modules(remove_duplicate=False):
        if path.startswith(f"{again}."):
            continue
        first = paths.setdefault(id(each), path)
        again = again if first == path else path
        inside = f"{path}." if path else ""
        own: list[Tensor] = []
        shared: list[Tensor] = []
        for parameter in {id(p): p for p in each.parameters() if not is_lazy(p)}.values():
            here = counted[id(parameter)].startswith(inside)
            (own if here and first == path else shared).append(parameter)
        seen = watch.of(each)
        yield Row(
            path=path,
            type=each._get_name(),
            depth=path.count(".") + 1 if path else 0,
            calls=seen.calls,
            output_shapes=seen.output_shapes,
            parameters=sum(p.numel() for p in own),
            trainable=sum(p.numel() for p in own if p.requires_grad),
            shared=sum(p.numel() for p in shared),
            multiply_adds=seen.multiply_adds,
            activation_bytes=seen.activation_bytes,
            same_as=None if first == path else first,
            is_leaf=not any(True for _ in each.children()),
        )


@contextmanager
def _left_as_it_was(module: Module) -> Iterator[None]:
    """Put back the attributes of a module after a call, and the random generator.

    Buffers and tensors among the attributes are replaced by copies, so that the originals are not
    written at all; lists, dicts and sets among them get their content back.
    """
    copies: dict[int, Any] = {}

    def copied(value: Any) -> Any:
        if id(value) not in copies:
            with no_grad():
                copies[id(value)] = copy.deepcopy(value) if is_lazy(value) else value.clone()
        return copies[id(value)]

    saved = []
    for each in module.modules():
        fields = vars(each)
        contents = {
            name: value.copy()
            for name, value in fields.items()
            if isinstance(value, (list, dict, set))
        }
        saved.append((each, type(each), dict(fields), contents))
    streams = default_generator._streams
    try:
        default_generator._streams = {}  # begun from the seed: only shapes matter
        for each, _, before, _ in saved:
            for name, buffer in before["_buffers"].items():
                if buffer is not None:
                    each._buffers[name] = copied(buffer)
            for name, parameter in before["_parameters"].items():
                if is_lazy(parameter):
                    each._parameters[name] = copied(parameter)
            for name, value in before.items():
                if isinstance(value, Tensor):
                    vars(each)[name] = copied(value)
        yield
    finally:
        default_generator._streams = streams
        for each, kind, before, contents in saved:
            each.__class__ = kind
            vars(each).clear()
            vars(each).update(before)
            for name, content in contents.items():
                value = before[name]
                value.clear()
                (value.extend if isinstance(value, list) else value.update)(content)
