"""`check_op`: all promises of an op, checked from sample inputs alone; and `assert_close`.

Values, first and second derivatives against central differences, dtypes, memory layouts, 0-d and
empty inputs, undeclared writes and aliases. The rules of an op are checked in both of their modes:
on raw arrays and recorded, and so are its ways through batches, tangents and series.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from oneflow_lite.arrays.array_spec import ArraySpec
from oneflow_lite.arrays.device import DeviceLike, as_device, to_device
from oneflow_lite.arrays.dtype import SCALAR_TYPES, DTypeLike, finfo, iinfo
from oneflow_lite.arrays.memory_format import memory_format
from oneflow_lite.autograd import gradcheck, gradgradcheck
from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F
from oneflow_lite.autograd.engine.run import grad
from oneflow_lite.autograd.rules.forward_rules import FORWARD_RULES
from oneflow_lite.autograd.tools.finite_differences import reals
from oneflow_lite.errors import (
    ArgumentError,
    FlowError,
    GradcheckError,
    LinAlgError,
    NotDifferentiableError,
    TransformError,
    arg_error,
    type_error,
)
from oneflow_lite.functors import creation
from oneflow_lite.functors.declaring.samples import Fixed as Fixed, Sample as Sample
from oneflow_lite.interpreter.stack import AutogradInterpreter, EagerInterpreter, Interpreter
from oneflow_lite.ops.array_places import evaluated
from oneflow_lite.ops.exposure import expose
from oneflow_lite.ops.kernel_watch import refusing_aliases
from oneflow_lite.ops.op_expr import OpExpr
from oneflow_lite.ops.registry import FUNCTORS, KERNELS
from oneflow_lite.ops.scalar_expression import Scalar, scalar_of
from oneflow_lite.sparse import SparseTensor
from oneflow_lite.tensors.caller_warnings import warn_caller
from oneflow_lite.tensors.mode import StateChange, no_grad
from oneflow_lite.tensors.tensor import Tensor, make_tensor as wrap
from oneflow_lite.transforms.batching import (
    BatchLevel,
    enter_batch,
    leave_batch,
    loops_without_warning,
)
from oneflow_lite.transforms.forward import JetLevel, enter_jet, leave_jet

expose(globals())

Array = np.ndarray[Any, Any]


class _SampleCall:
    """A sample split into the arrays to differentiate and a function of them."""

    def __init__(
        self, function: Callable[..., Any], sample: Sample, device: Any, single: bool = False
    ) -> None:
        self.function = function
        self.sample = sample
        self.single = single  # floating arrays in half the precision
        self.device = as_device(device)
        self.arrays: list[Array] = []
        self.constants: list[Tensor] = []
        self.args = [self._take(value) for value in sample.args]
        self.kwargs = {name: self._take(value) for name, value in sample.kwargs.items()}

    def _take(self, value: Any) -> Any:
        """Replace each array to differentiate by its number."""
        if isinstance(value, Tensor):
            value = value.numpy()
        if isinstance(value, Fixed):
            inner = value.array.numpy() if isinstance(value.array, Tensor) else value.array
            return self._constant(self._precise(np.asarray(inner)))
        if isinstance(value, np.ndarray):
            if value.dtype.kind not in "fc":
                return self._constant(value)
            self.arrays.append(self._precise(value))
            return _Slot(len(self.arrays) - 1)
        if isinstance(value, (list, tuple)) and any(
            isinstance(v, (np.ndarray, Tensor, Fixed)) for v in value
        ):
            return type(value)(self._take(v) for v in value)
        return value

    def _constant(self, array: Array) -> _Slot:
        self.constants.append(self._tensor(array))
        return _Slot(len(self.constants) - 1, constant=True)

    def _precise(self, array: Array) -> Array:
        return array.astype(_SINGLE.get(array.dtype, array.dtype)) if self.single else array

    def _tensor(self, array: Array) -> Tensor:
        return wrap(array if self.device.type == "cpu" else to_device(array, self.device))

    def tensors(self, arrays: Sequence[Array], requires_grad: Sequence[bool]) -> list[Tensor]:
        """Make leaves of the arrays."""
        made = [self._tensor(array) for array in arrays]
        for tensor, wanted in zip(made, requires_grad, strict=True):
            tensor.requires_grad = wanted
        return made

    def __call__(
        self, tensors: Sequence[Tensor], constants: Sequence[Tensor] | None = None
    ) -> list[Tensor]:
        """Run the op; return a list of all its outputs."""
        fixed = self.constants if constants is None else constants

        def fill(value: Any) -> Any:
            if isinstance(value, _Slot):
                return (fixed if value.constant else tensors)[value.index]
            if isinstance(value, (list, tuple)):
                return type(value)(fill(v) for v in value)
            return value

        args = [fill(value) for value in self.args]
        result = self.function(*args, **{n: fill(v) for n, v in self.kwargs.items()})
        return list(result) if isinstance(result, (tuple, list)) else [result]

    def differentiable(self, *tensors: Tensor) -> list[Tensor]:
        """Run the op; return the outputs that gradients flow through."""
        return [y for y in self(tensors) if y.requires_grad]

    def constant(self, *tensors: Tensor) -> list[Tensor]:
        """Run the op; return the floating outputs that no gradients flow through."""
        return [y for y in self(tensors) if y.dtype.kind in "fc" and not y.requires_grad]


_SINGLE = {
    np.dtype(np.float64): np.dtype(np.float32),
    np.dtype(np.complex128): np.dtype(np.complex64),
}


class _Slot:
    def __init__(self, index: int, constant: bool = False) -> None:
        self.index, self.constant = index, constant


class OpCheckError(AssertionError):
    """An op breaks a promise; the text lists the failed checks with their samples."""


class _Checker:
    def __init__(
        self, call: _SampleCall, atol: float, rtol: float, step: float, name: str = ""
    ) -> None:
        self.call, self.name = call, name
        self.atol, self.rtol, self.step = atol, rtol, step
        self.failures: list[str] = []
        self.arrays = [np.array(a) for a in call.arrays]
        self.all = [True] * len(self.arrays)
        self.none = [False] * len(self.arrays)

    def fail(self, what: str) -> None:
        self.failures.append(f"{self.call.sample}: {what}")

    def close(self, what: str, got: Array, expected: Array, scale: float = 1.0) -> None:
        """Compare, and report the largest difference."""
        if got.shape != expected.shape:
            self.fail(f"{what}: shape {got.shape}, expected {expected.shape}")
            return
        same = np.isclose(got, expected, self.rtol * scale, self.atol * scale, equal_nan=True)
        if not same.all():
            where = np.argmax(~same.reshape(-1))
            self.fail(
                f"{what}: {got.reshape(-1)[where]:.10g}, expected "
                f"{expected.reshape(-1)[where]:.10g} (at {where}; {int((~same).sum())} differ)"
            )

    def holds(
        self,
        what: str,
        check: Callable[..., bool],
        function: Callable[..., Any],
        tensors: Sequence[Tensor],
        *grad_outputs: Sequence[Tensor],
        scale: float = 1.0,
    ) -> None:
        """Run gradcheck or gradgradcheck on a function of the arrays."""
        if not tensors:
            return
        tolerances = {"atol": self.atol * scale, "rtol": self.rtol * scale}
        try:
            check(
                function, tensors, *grad_outputs, eps=self.step, nondet_tol=self.atol, **tolerances
            )
        except GradcheckError as error:
            self.fail(f"{what}: {error}")

    def values(self, arrays: list[Array]) -> Array:
        with no_grad():
            tensors = self.call.tensors(arrays, [False] * len(arrays))
            return reals(y.numpy() for y in self.call(tensors) if y.dtype.kind in "fc")

    def gradients(
        self,
        arrays: Sequence[Array],
        out_grads: Sequence[Array],
        wanted: Sequence[bool] | None = None,
        create_graph: bool = False,
    ) -> list[Array]:
        """Return the gradients of the wanted inputs, zeros where no gradient flows."""
        wanted = self.all if wanted is None else wanted
        tensors = self.call.tensors(arrays, wanted)
        outputs = [y for y in self.call(tensors) if y.dtype.kind in "fc"]
        if len(outputs) != len(out_grads):  # some outputs have no gradient
            outputs = [y for y in outputs if y.requires_grad]
        inputs = [t for t, w in zip(tensors, wanted, strict=True) if w]
        taking_part = [
            (y, self.call._tensor(np.asarray(g, y.dtype)))
            for y, g in zip(outputs, out_grads, strict=True)
            if y.requires_grad
        ]
        if not taking_part:
            return [np.zeros(t.shape, t.dtype) for t in inputs]
        outputs, given = map(list, zip(*taking_part, strict=True))
        in_grads = grad(outputs, inputs, given, create_graph=create_graph, materialize_grads=True)
        for g, x in zip(in_grads, inputs, strict=True):
            if g.dtype != x.dtype or g.shape != x.shape or g.device != x.device:
                self.fail(f"gradient is {g.dtype}{list(g.shape)}, input {x.dtype}{list(x.shape)}")
        return [g.numpy() for g in in_grads]

    def outputs(self) -> list[Tensor]:
        return self.call.differentiable(*self.call.tensors(self.arrays, self.all))

    def random_out_grads(self, outputs: Sequence[Tensor]) -> list[Array]:
        rng = np.random.default_rng(0)  # the same numbers for the two gradients of a comparison
        made = []
        for y in outputs:
            g = rng.uniform(0.5, 1.5, y.shape)
            imaginary = 1j * rng.uniform(0.5, 1.5, y.shape) if y.dtype.kind == "c" else 0
            made.append(np.asarray(g + imaginary))
        return made

    def check_memory(self) -> None:
        """Arrays always, inputs unwritten, and no alias that the schema does not declare."""
        tensors = self.call.tensors([a.copy() for a in self.arrays], self.all)
        for y in self.call(tensors):
            if isinstance(y._data, np.generic) or not hasattr(y._data, "ndim"):
                self.fail(f"an output is a {type(y._data).__name__}, not an array")
            elif isinstance(y._data, np.ndarray) and not y.is_view():
                for k, x in enumerate(tensors):
                    if y is not x and np.shares_memory(y._data, x._data):
                        self.fail(f"an output shares memory with input {k}; declare view_of")
        outputs = self.call(tensors)
        for y, again in zip(outputs, self.call(tensors), strict=True):
            kept = isinstance(y._data, np.ndarray) and not (y.is_view() or y is again)
            if kept and not again.is_view() and np.shares_memory(y._data, again._data):
                self.fail("two calls return the same memory; return a new array each time")
        for k, (x, before) in enumerate(zip(tensors, self.arrays, strict=True)):
            if not np.array_equal(x.numpy(), before, equal_nan=True):
                self.fail(f"input {k} was written; declare mutates")

    def check_first(self) -> None:
        """The full Jacobian, on raw arrays and recorded."""
        tensors = self.call.tensors(self.arrays, self.all)
        floating = [y for y in self.call(tensors) if y.dtype.kind in "fc"]
        batched = functools.partial(gradcheck, check_batched_grad=True)
        self.holds("first derivative", batched, self.call.differentiable, tensors)
        if not all(y.requires_grad for y in floating):
            self.holds("first derivative", gradcheck, self.call.constant, tensors)
        out_grads = self.random_out_grads(self.outputs())
        raw = self.gradients(self.arrays, out_grads)
        recorded = self.gradients(self.arrays, out_grads, create_graph=True)
        self.close("first derivative, recorded against raw", reals(recorded), reals(raw))
        if len(self.arrays) > 1:
            for k in range(len(self.arrays)):
                wanted = [i == k for i in range(len(self.arrays))]
                alone = self.gradients(self.arrays, out_grads, wanted)
                self.close(f"first derivative by input {k} alone", reals(alone), reals([raw[k]]))

    def check_second(self) -> None:
        """The derivative of the gradient, by inputs and by output gradients."""
        outputs = self.outputs()
        if not outputs:
            return
        tensors = self.call.tensors(self.arrays, self.all)
        given = [self.call._tensor(g).requires_grad_() for g in self.random_out_grads(outputs)]
        self.holds(
            "second derivative", gradgradcheck, self.call.differentiable, tensors, given, scale=10
        )

    def check_layouts(self) -> None:
        """Values and gradients do not depend on how the inputs lie in memory."""
        out_grads = self.random_out_grads(self.outputs())
        values, gradients = self.values(self.arrays), self.gradients(self.arrays, out_grads)
        for name, layout in _LAYOUTS.items():
            arrays = [layout(a) for a in self.arrays]
            self.close(f"values, {name} inputs", self.values(arrays), values)
            laid_out = self.gradients(arrays, [layout(np.asarray(g)) for g in out_grads])
            self.close(f"gradients, {name} inputs", reals(laid_out), reals(gradients))

    def check_broadcast_gradient(self) -> None:
        """An output gradient that is a broadcast view works like a dense one."""
        outputs = self.outputs()
        ones = [np.ones((), y.dtype) for y in outputs]
        views = [np.broadcast_to(o, y.shape) for o, y in zip(ones, outputs, strict=True)]
        dense = [np.array(v) for v in views]
        got, expected = self.gradients(self.arrays, views), self.gradients(self.arrays, dense)
        self.close("gradients, broadcast output gradient", reals(got), reals(expected))

    def check_declarations(self) -> None:
        """The infer rules and scalar expressions of all ops that run agree with their kernels."""
        watch = _DeclarationWatch()
        with StateChange(interpreter=AutogradInterpreter(watch)), np.errstate(all="ignore"):
            outputs = self.outputs()
            if outputs:
                self.gradients(self.arrays, self.random_out_grads(outputs), create_graph=True)
        self.failures += [f"{self.call.sample}: {text}" for text in watch.failures]

    # Transforms

    def _rule(self, kind: str) -> str:
        """Return in words by which rule of the op a transform went."""
        kernel = KERNELS.find(self.name, known_only=True)
        forward = FORWARD_RULES.get(self.name)
        own = {
            "batch": kernel is not None and callable(kernel.schema.batch),
            "jvp": forward is not None and forward.push is not None,
        }[kind]
        return f", by the {kind} rule of {self.name!r}" if own else ""

    def check_batches(self) -> None:
        """A batch of each input alone, and of all together, gives what a loop gives."""
        inputs = [*self.arrays, *[x.numpy() for x in self.call.constants]]
        count = len(self.arrays)
        places = list(range(len(inputs)))
        choices = [[k] for k in places] + ([places] if len(places) > 1 else [])
        for chosen in choices:

            def run(*given: Tensor) -> tuple[Tensor, ...]:
                return tuple(self.call(given[:count], given[count:]))

            rows = [[_entry(x, k) if i in chosen else x for i, x in enumerate(inputs)] for k in _3]
            if not _all_accepted(run, rows, self.call._tensor):  # as offsets in another order
                rows = [inputs] * len(rows)
            try:
                with no_grad():
                    singly = [run(*map(self.call._tensor, row)) for row in rows]
                    expected = [np.stack([y.numpy() for y in c]) for c in zip(*singly, strict=True)]
                    columns = [
                        np.stack(c) if i in chosen else c[0]
                        for i, c in enumerate(zip(*rows, strict=True))
                    ]
                    dims = [0 if i in chosen else None for i in places]
                    got = _over_batch(run, [self.call._tensor(c) for c in columns], dims)
            except (TransformError, ValueError) as error:
                if isinstance(error, ValueError) and "same shape" not in str(error):
                    raise
                continue  # it says itself that no batch goes through, or shapes differ by entry
            which = "all inputs" if len(chosen) > 1 else f"input {chosen[0]}"
            for n, (y, wanted) in enumerate(zip(got, expected, strict=True)):
                what = f"output {n} of a batch of {which} against a loop{self._rule('batch')}"
                self.close(what, y.numpy(), wanted)

    def check_forward(self) -> None:
        """Tangents are those of central differences."""
        tensors = self.call.tensors(self.arrays, self.all)
        check = functools.partial(
            gradcheck, check_forward_ad=True, check_backward_ad=False, fast_mode=True
        )
        try:
            self.holds(f"tangent{self._rule('jvp')}", check, self.call.differentiable, tensors)
        except (NotDifferentiableError, TransformError):
            return  # it says itself that it has no tangent

    def check_series(self) -> None:
        """The derivatives of a series are those of differences of lower derivatives."""
        if not self.arrays:
            return
        tensors = self.call.tensors(self.arrays, self.none)
        smooth = [n for n, y in enumerate(self.outputs_of(tensors)) if y.dtype.kind in "fc"]
        directions = self.random_out_grads(tensors)

        def derivatives(t: float, order: int) -> list[list[Array]]:
            """Return the derivatives of each output by t along x + t v."""
            moved = [np.asarray(x + t * v) for x, v in zip(self.arrays, directions, strict=True)]
            with JetLevel(order, "jet") as level:
                pairs = zip(self.call.tensors(moved, self.none), directions, strict=True)
                given = [(x, self.call._tensor(np.asarray(v, x.dtype))) for x, v in pairs]
                duals = [enter_jet((x, v, *(None,) * (order - 1)), level) for x, v in given]
                outputs = self.outputs_of(duals)
                return [
                    [leave_jet(outputs[n], level, k).numpy() * math.factorial(k) for n in smooth]
                    for k in range(1, order + 1)
                ]

        try:
            _, *found = derivatives(0.0, 3)
            before, after = (derivatives(t, 2) for t in (-self.step, self.step))
        except (LinAlgError, NotDifferentiableError, TransformError):
            return  # it says itself that it has no series, or none here
        for k, (ours, low, high) in enumerate(zip(found, before, after, strict=True), 2):
            for n, got, a, b in zip(smooth, ours, low, high, strict=True):
                expected = (b - a) / (2 * self.step)
                size = max(
                    1.0, *[float(np.abs(x[np.isfinite(x)]).max(initial=0)) for x in (a, got)]
                )
                what = f"derivative {k} of output {n} along a line{self._rule('jvp')}"
                self.close(what, got / size, expected / size, 10)

    def outputs_of(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Run the op without recording."""
        with no_grad():
            return self.call(tensors)

    def check_single_precision(self) -> None:
        """float32 in, float32 out, close to the float64 result."""
        call = _SampleCall(self.call.function, self.call.sample, self.call.device, single=True)
        low = _Checker(call, self.atol, self.rtol, self.step)
        outputs = low.outputs()
        wide = [y.dtype for y in outputs if y.dtype in _SINGLE]
        if wide:
            self.fail(f"float32 inputs gave {wide[0]}")
            return
        out_grads = self.random_out_grads(outputs)
        got = low.gradients(low.arrays, out_grads)
        self.failures += low.failures
        expected = reals(self.gradients(self.arrays, out_grads))
        # Relative to the largest gradient: small ones are differences of large numbers.
        size = float(np.abs(expected[np.isfinite(expected)]).max(initial=1.0))
        difference = np.abs(reals(got) - expected)
        if np.nanmax(difference, initial=0.0) > 2e-3 * size:
            self.fail(f"float32 gradients differ by {np.nanmax(difference):.3g}")


_3 = range(3)  # the entries of a batch


def _entry(array: Array, k: int) -> Array:
    """Return entry k of a batch of arrays like one array, inside of the same domain."""
    if array.dtype.kind in "fc":
        return np.asarray(array * (1 - k / 128), array.dtype)
    return np.flip(array, -1).copy() if array.ndim and k == 1 else array


def _all_accepted(
    function: Callable[..., Any], rows: Sequence[Sequence[Array]], tensor: Callable[..., Tensor]
) -> bool:
    """Return whether the function takes the inputs of all entries."""
    try:
        with no_grad():
            for row in rows:
                function(*map(tensor, row))
    except FlowError:
        return False
    return True


def _over_batch(
    function: Callable[..., Any], inputs: Sequence[Tensor], dims: Sequence[int | None]
) -> list[Tensor]:
    """Return the outputs of a function of inputs, some of which are batches."""
    with BatchLevel(len(_3), "error") as level:
        given = [
            x if d is None else enter_batch(x, level, d) for x, d in zip(inputs, dims, strict=True)
        ]
        return [leave_batch(y, level, 0) for y in function(*given)]


# The values for which an expression and a kernel are most likely to differ.
_SPECIAL = (0.0, -0.0, 1.0, -1.0, 2.5, -3.0, 1e-3, -1e3, np.inf, -np.inf, np.nan)


class _DeclarationWatch(Interpreter):
    """Runs ops, and holds each op against its infer rule and its scalar expression, if any.

    It compares the results of the call, and of the kernel with zeros, infinities and NaN.
    """

    def __init__(self) -> None:
        self.inner: Interpreter = EagerInterpreter()
        self.failures: list[str] = []

    def apply(self, op_expr: OpExpr, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        """Run one op."""
        arrays = [None if x is None else x._data for x in inputs]
        result = self.inner.apply(op_expr, inputs, attrs)
        schema = op_expr.schema
        dynamic = schema.dynamic_shape
        if callable(dynamic):
            dynamic = dynamic(*arrays, **attrs)
        if schema.infer is not None and not (schema.written or dynamic) and arrays:
            self._compare_description(op_expr, arrays, attrs, result)
        given = [a for a in arrays if a is not None]
        real = all([isinstance(a, np.ndarray) and a.dtype.char in "fd?" for a in arrays])
        scalar = scalar_of(op_expr.op_type_name, attrs)
        if scalar is not None and scalar.reduces:
            if all([isinstance(a, np.ndarray) and a.dtype.kind in "fiu" and a.size for a in given]):
                self._compare_lines(op_expr, scalar, arrays, attrs)
        elif scalar is not None and real:
            self._compare(op_expr, scalar, arrays, attrs, result._data)
            values = [np.array(_SPECIAL).astype(a.dtype) for a in arrays if a is not None]
            grid = [np.array(g) for g in np.meshgrid(*values, indexing="ij")]
            special = op_expr.kernel(np)(*grid, **attrs)
            self._compare(op_expr, scalar, grid, attrs, special)
        return result

    def _compare_description(
        self, op_expr: OpExpr, arrays: Any, attrs: dict[str, Any], result: Any
    ) -> None:
        """Hold what the infer rule says of the results against the results."""
        specs = [None if a is None else ArraySpec.of(a) for a in arrays]
        described = op_expr.schema.infer(*specs, **attrs)  # type: ignore[misc]
        if described is None:  # the kernel says it
            return
        outputs = result if isinstance(result, tuple) else (result,)
        said = [ArraySpec.of(d) for d in (described if type(described) is tuple else (described,))]
        wanted = [(tuple(d.shape), d.dtype) for d in said]
        got = [(y.shape, y.dtype) for y in outputs]
        if got != wanted:
            texts = [
                ", ".join(f"{dtype}{list(shape)}" for shape, dtype in x) for x in (wanted, got)
            ]
            self.failures.append(
                f"{op_expr.op_type_name}: its infer rule says {texts[0]}, the kernel gives "
                f"{texts[1]}"
            )

    def _compare_lines(
        self, op_expr: OpExpr, scalar: Scalar, arrays: Any, attrs: dict[str, Any]
    ) -> None:
        """Hold an op with lines against its kernel, with few and with many special values."""
        random = np.random.default_rng(0)
        for share in (0.0, 0.05, 0.3, 1.0):
            given = [
                a
                if a is None or a.dtype.kind != "f"
                else np.where(
                    random.random(a.shape) < share, random.choice(_SPECIAL, a.shape), a
                ).astype(a.dtype)
                for a in arrays
            ]
            value = op_expr.kernel(np)(*given, **attrs)
            results = [np.asarray(y) for y in (value if isinstance(value, tuple) else (value,))]
            if any([y.dtype.char not in "fd" or not y.size for y in results]):
                return
            inputs = dict(zip(op_expr.schema.inputs, given, strict=True))
            expected = evaluated(scalar, inputs, [y.shape for y in results], attrs)
            for i, (y, wanted) in enumerate(zip(results, expected, strict=True)):
                tolerance = 1e-12 if y.dtype.char == "d" else 1e-4
                with np.errstate(all="ignore"):
                    same = np.isclose(y, wanted, tolerance, tolerance, equal_nan=True)
                if not same.all():
                    where = np.unravel_index(np.argmin(same), same.shape)
                    self.failures.append(
                        f"{op_expr.op_type_name}: the scalar expression {scalar.text!r} gives "
                        f"{wanted[where]} where the kernel gives {y[where]} (result {i}, for "
                        f"{', '.join(map(str, given))})"
                    )
                    return

    def _compare(
        self, op_expr: OpExpr, scalar: Scalar, arrays: Any, attrs: dict[str, Any], found: Any
    ) -> None:
        name = op_expr.op_type_name
        inputs = dict(zip(op_expr.schema.inputs, arrays, strict=True))
        expected = np.broadcast_to(scalar.evaluate(inputs, attrs), found.shape)
        tolerance = 0 if found.dtype.kind == "b" else 64 * np.finfo(found.dtype).eps
        same = np.isclose(found, expected, tolerance, tolerance, equal_nan=True)
        if not same.all():
            where = np.unravel_index(np.argmin(same), same.shape)
            self.failures.append(
                f"{name}: the scalar expression {scalar.text!r} gives {expected[where]} where the "
                f"kernel gives {found[where]}"
                f" (for {', '.join(str(np.broadcast_to(a, found.shape)[where]) for a in arrays)})"
            )


def _reverse(a: Array) -> Array:
    """Return equal content with negative strides."""
    where: Any = (..., *(slice(None, None, -1),) * a.ndim)
    reversed_copy: Array = np.array(a[where], order="C")
    turned: Array = reversed_copy[where]
    return turned


def _gapped(a: Array) -> Array:
    """Return equal content with gaps between the elements."""
    wide = np.zeros((*a.shape, 2), a.dtype)
    wide[..., 0] = a
    return wide[..., 0]


_LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "transposed": lambda a: np.array(a.T, order="C").T,
    "negative-stride": _reverse,
    "gapped": _gapped,
}


def _degenerate(sample: Sample) -> Iterator[Sample]:
    """Yield 0-d and empty variants of a sample."""
    # The first element alone, then no element along the first dimension.
    for change in (lambda a: a.reshape(-1)[:1].reshape(()), lambda a: a[:0] if a.ndim else a):

        def walk(value: Any, change: Callable[[Array], Array] = change) -> Any:
            if isinstance(value, Tensor):
                value = value.numpy()
            if isinstance(value, np.ndarray) and value.size:
                return change(value)
            if isinstance(value, Fixed):
                return Fixed(walk(np.asarray(value.array)))
            if isinstance(value, (list, tuple)):
                return type(value)(walk(v) for v in value)
            return value

        yield Sample(
            *[walk(a) for a in sample.args], **{n: walk(a) for n, a in sample.kwargs.items()}
        )


def _accepts(function: Callable[..., Any], sample: Sample, device: Any) -> bool:
    call = _SampleCall(function, sample, device)
    try:
        with no_grad():
            call(call.tensors(call.arrays, [False] * len(call.arrays)))
    except (FlowError, ValueError, TypeError, IndexError):
        return False
    return True


@refusing_aliases()
def check_op(
    op: str | Callable[..., Any],
    samples: Iterable[Any],
    *,
    second_order: bool = True,
    layouts: bool = True,
    degenerate: bool = True,
    single_precision: bool = True,
    transforms: bool = True,
    atol: float = 1e-6,
    rtol: float = 1e-5,
    step: float = 1e-6,
    device: DeviceLike | None = None,
) -> None:
    """Certify an op.

    Parameters
    ----------
    op : str or callable
        Name of a functor (or of an op with a kernel), or a function of tensors.
    samples : iterable of Sample
        Calls away from kinks (a bare array stands for a call with it alone); floating arrays are
        differentiated and should be float64 and small: the full Jacobian is taken.
    second_order : bool
        Check second derivatives too.
    layouts, degenerate, single_precision : bool
        Also try other memory layouts; 0-d and empty inputs (where the op accepts them); float32.
    transforms : bool
        Also compare `vmap` with a loop, tangents with differences, and series with tangents of
        tangents. An op that raises `TransformError` there passes.
    atol, rtol, step : float
        Tolerances of the derivatives and the step of the differences.
    device : optional
        Where to run.

    Raises
    ------
    OpCheckError
        With the list of the failed checks.
    """
    name = op if isinstance(op, str) else getattr(op, "__name__", "")
    function = _apart(name, op if callable(op) else _find(op))
    failures: list[str] = []
    cause: Exception | None = None
    count = 0
    for given in samples:
        sample = given if isinstance(given, Sample) else Sample(given)
        count += 1
        variants = [sample]
        if degenerate:
            variants += [s for s in _degenerate(sample) if _accepts(function, s, device)]
        for variant in variants:
            checker = _Checker(_SampleCall(function, variant, device), atol, rtol, step, name)
            checks = [checker.check_memory, checker.check_first, checker.check_declarations]
            if second_order:
                checks.append(checker.check_second)
            if layouts and variant is sample:
                checks += [checker.check_layouts, checker.check_broadcast_gradient]
            if single_precision and variant is sample:
                checks.append(checker.check_single_precision)
            if transforms:
                checks += [checker.check_batches, checker.check_forward]
            if transforms and second_order and variant is sample:
                checks.append(checker.check_series)
            # A loop over the entries of a batch is right, too.
            with np.errstate(all="ignore"), loops_without_warning():
                try:
                    for check in checks:
                        check()
                except Exception as error:
                    checker.fail(f"{type(error).__name__}: {error}")
                    cause = cause or error
            failures += checker.failures
    if not count:
        raise OpCheckError(f"check_op({name or op!r}): no sample was given")
    if failures:
        shown = "\n  ".join(itertools.islice(failures, 20))
        said = f"{len(failures)} failure(s)\n  {shown}"
        raise OpCheckError(f"check_op({name or op!r}): {said}") from cause


def _apart(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that hands an op which writes its inputs copies of them."""
    kernel = KERNELS.find(name, known_only=True)
    if kernel is None or not kernel.schema.mutates:
        return function

    def call(*args: Any, **kwargs: Any) -> Any:
        copied = [a.clone() if isinstance(a, Tensor) else a for a in args]
        return function(*copied, **kwargs)

    return call


def _find(name: str) -> Callable[..., Any]:
    functor = FUNCTORS.find(name)
    if functor is not None:
        return functor
    KERNELS.get(name)  # raises for an unknown name
    return getattr(FUNCTORS_F, name)  # type: ignore[no-any-return]


# --- assert_close ---------------------------------------------------------------------------------

# Relative and absolute tolerance by dtype, the figures of torch.testing.assert_close.
_TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raise unless `|actual - expected| <= atol + rtol * |expected|` for all elements.

    Parameters
    ----------
    actual, expected : Tensor, sparse tensor, array, number, or a sequence or mapping of them
        Of one type, shape, dtype and device.
    allow_subclasses : bool
        Whether a subclass may meet its base.
    rtol, atol : float, optional
        Given together. By default those of the dtype, as float32 1.3e-6 and 1e-5, float64 1e-7
        and 1e-7; 0 for integers and bools. Of two dtypes the larger counts.
    equal_nan : bool
        Whether NaN equals NaN.
    check_device, check_dtype, check_stride : bool
        Whether devices, dtypes and strides have to agree.
    check_layout : bool
        Whether a sparse tensor has to meet a sparse one; they are compared as dense ones.
    msg : str or callable, optional
        The error's text, or a function of the generated text.

    Raises
    ------
    AssertionError
        With the number of elements that differ, and the largest differences and their places.
    ArgumentTypeError
        For values that cannot be compared.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.testing.assert_close(flow.tensor([1.0, 2.0]), flow.tensor([1.0, 2.0 + 1e-7]))
    >>> flow.testing.assert_close(flow.tensor([1.0, 2.0]), flow.tensor([1.0, 3.0]))
    Traceback (most recent call last):
    AssertionError: 1 of 2 elements are not close; ...
    """
    if (rtol is None) != (atol is None):
        given = "rtol" if atol is None else "atol"
        raise arg_error(
            "assert_close",
            given,
            "rtol and atol together",
            "one of them",
            "give both",
            ArgumentError,
        )
    wanted = {"dtype": check_dtype, "device": check_device, "stride": check_stride}
    attributes = ["shape", *[name for name, checked in wanted.items() if checked]]
    for where, a, b in _pairs("", actual, expected, allow_subclasses, check_layout):
        text = _difference(a, b, rtol, atol, equal_nan, attributes)
        if text:
            text += f" (at {where})" if where else ""
            raise AssertionError(msg(text) if callable(msg) else msg or text)


# The figures of torch.testing.assert_allclose.
_LOOSE = {"float16": (1e-3, 1e-3), "float32": (1e-4, 1e-5), "float64": (1e-5, 1e-8)}


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """Do what `assert_close` does, with older tolerances, for any dtypes; deprecated."""
    warn_caller("testing.assert_allclose() is deprecated; use testing.assert_close()")
    actual = creation.as_tensor(actual)
    expected = (
        expected if isinstance(expected, Tensor) else creation.tensor(expected, dtype=actual.dtype)
    )
    if rtol is None and atol is None:
        known = [_LOOSE.get(str(x._data.dtype), (0.0, 0.0)) for x in (actual, expected)]
        rtol, atol = (max(pair) for pair in zip(*known, strict=True))
    assert_close(
        actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False,
        msg=msg or None,
    )  # fmt: skip


def _pairs(
    where: str, a: Any, b: Any, related: bool, layouts: bool
) -> Iterator[tuple[str, Any, Any]]:
    """Yield the leaves of two nested values, and the path to each."""
    tensors = isinstance(a, (Tensor, SparseTensor)) and isinstance(b, (Tensor, SparseTensor))
    if tensors and layouts and a.layout is not b.layout:
        raise AssertionError(
            f"the layout is {a.layout}, expected {b.layout}{where and ' at ' + where}"
        )
    if tensors:
        a, b = (x.to_dense() if isinstance(x, SparseTensor) else x for x in (a, b))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        if a.keys() != b.keys():
            raise AssertionError(
                f"the keys of the mappings differ{where and ' at ' + where}: only actual has "
                f"{sorted(map(repr, a.keys() - b.keys()))}, only expected "
                f"{sorted(map(repr, b.keys() - a.keys()))}"
            )
        for key in a:
            yield from _pairs(f"{where}[{key!r}]", a[key], b[key], related, layouts)
    elif isinstance(a, Sequence) and isinstance(b, Sequence) and not isinstance(a, str):
        if len(a) != len(b):
            raise AssertionError(
                f"the lengths of the sequences differ{where and ' at ' + where}: "
                f"{len(a)}, expected {len(b)}"
            )
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            yield from _pairs(f"{where}[{i}]", x, y, related, layouts)
    else:
        if (a is None) != (b is None):
            raise AssertionError(f"{a!r} is not {b!r}{where and ' at ' + where}")
        numbers = isinstance(a, SCALAR_TYPES) and isinstance(b, SCALAR_TYPES)
        alike = isinstance(a, type(b)) or isinstance(b, type(a)) if related else type(a) is type(b)
        known = numbers or isinstance(a, (Tensor, np.ndarray)) or (a is None and b is None)
        if not known or not (alike or numbers):
            raise type_error(
                "assert_close", f"actual{where}", f"a value like expected's {type(b).__name__}",
                a, "compare tensors with tensors, arrays with arrays, numbers with numbers",
            )  # fmt: skip
        if a is not None:
            yield where, a, b


def _difference(
    a: Any, b: Any, rtol: Any, atol: Any, equal_nan: bool, attributes: Sequence[str]
) -> str:
    """Return in words how two leaves differ; an empty text where they are close."""
    if not isinstance(a, (Tensor, np.ndarray)):
        if "dtype" in attributes and type(a) is not type(b):
            return f"{a!r} is of type {type(a).__name__}, expected {type(b).__name__}"
    else:
        for name in attributes:
            values = [getattr(x, name, None) for x in (a, b)]
            values = [v() if callable(v) else v for v in values]
            if values[0] != values[1]:
                return f"the {name} is {values[0]}, expected {values[1]}"
    arrays = [x.detach().cpu().numpy() if isinstance(x, Tensor) else np.asarray(x) for x in (a, b)]
    if rtol is None:
        known = [_TOLERANCES.get(str(x.dtype), (0.0, 0.0)) for x in arrays]
        rtol, atol = (max(pair) for pair in zip(*known, strict=True))
    x, y = [v.astype(np.float32) if str(v.dtype) == "bfloat16" else v for v in arrays]
    if (rtol, atol) == (0.0, 0.0):  # in floats large integers would be rounded
        close = (x == y) | ((x != x) & (y != y) & equal_nan)
    else:
        close = np.isclose(x, y, rtol, atol, equal_nan)
    if np.all(close):
        return ""
    apart: Array
    with np.errstate(all="ignore"):
        if x.dtype.kind in "iu" and y.dtype == x.dtype:  # no digit is lost
            apart = np.maximum(x, y) - np.minimum(x, y)
        else:
            wide = np.promote_types(np.result_type(x, y), np.float64)
            apart = np.abs(x.astype(wide) - y.astype(wide))
        apart = np.where(close, 0, apart)
        relative: Array = np.where(close, 0, apart / np.abs(y))
    texts = [f"{int(np.sum(~close))} of {close.size} elements are not close"]
    for kind, gaps, allowed in (("absolute", apart, atol), ("relative", relative, rtol)):
        worst = np.unravel_index(np.argmax(np.where(gaps != gaps, np.inf, gaps)), close.shape)
        place = f" at index {tuple(map(int, worst))}" if gaps.ndim else ""
        texts.append(f"largest {kind} difference {gaps[worst]:.6g}{place} ({allowed:g} allowed)")
    if not close.ndim:
        texts[0] = f"{x} is not close to {y}"
    return "; ".join(texts)


# --- Tensors for tests ---------------------------------------------------------------------------


def make_tensor(
    *shape: Any,
    dtype: DTypeLike,
    device: DeviceLike,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: memory_format | None = None,
) -> Tensor:
    """Return a tensor of numbers drawn evenly between low and high, for tests.

    low, high: by default -9 and 9, for integers up to 9, for bools either; both are clamped to what
        the dtype holds.
    noncontiguous: leave a gap after each element.
    exclude_zero: put 1 for 0, or the smallest normal floating number.

    Raises `ArgumentError` for bounds that enclose nothing, and arguments that exclude each other.

    >>> import oneflow_lite as flow
    >>> flow.testing.make_tensor(2, 3, dtype=flow.int64, device="cpu", low=4, high=5)
    tensor([[4, 4, 4],
            [4, 4, 4]])
    """

    def error(argument: str, expected: str, got: Any, hint: str) -> FlowError:
        return arg_error("make_tensor", argument, expected, got, hint, ArgumentError)

    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        (shape,) = shape
    size = [2 * n if noncontiguous else n for n in shape[-1:]]
    made: Tensor = FUNCTORS_F.empty(*shape[:-1], *size, dtype=dtype, device=device)
    floating = made.is_floating_point() or made.is_complex()
    if noncontiguous and memory_format is not None:
        raise error("memory_format", "None beside noncontiguous", memory_format, "drop one")
    if requires_grad and not floating:
        raise error("requires_grad", f"False for {dtype}", True, "take a floating dtype")
    whole = made.dtype == "bool"
    limits = finfo(dtype) if floating else None if whole else iinfo(dtype)
    least, most = (0, 1) if limits is None else (limits.min, limits.max)
    end = most if floating or made.dtype == "int64" else most + 1
    first = (0 if whole else -9) if low is None else low
    last = (2 if whole else 9 if floating else 10) if high is None else high
    if not (first < last or (first == last and floating)) or last < least or first >= end:
        raise error("low", f"a number below high={last}, within {least} to {most}", first,
                    "leave both out")  # fmt: skip
    first, last = max(first, least), min(last, end)
    if floating:
        (FUNCTORS_F.view_as_real(made) if made.is_complex() else made).uniform_(first, last)
    else:
        made = FUNCTORS_F.randint(math.ceil(first), math.ceil(last), made.shape, device=device).to(
            dtype
        )
    if noncontiguous and made.ndim:
        made = made[..., 1::2]
    elif memory_format is not None:
        made = made.clone(memory_format=memory_format)
    if exclude_zero:
        made[made == 0] = finfo(dtype).tiny if floating else 1
    made.requires_grad_(requires_grad)
    return made
