"""PyTorch's operator database on both libraries: every entry that autograd supports.

`python -m tests.functors.operator_database` prints what passes and what fails; arguments are parts
of names, `--all` takes every sample instead of a choice.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
import operator
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import attrs
import numpy as np

import oneflow_lite as flow
from tests.functors.agreement import compare

# Why an entry does not pass: by its name, or its name and variant.
REASONS: dict[str, str] = {
    "_softmax_backward_data": "private",
    "torch.ops.aten._safe_softmax.default": "private",
    "_native_batch_norm_legit": "private",
    "_batch_norm_with_update": "private",
    "_unsafe_masked_index": "private",
    "_unsafe_masked_index_put_accumulate": "private",
    "_upsample_bilinear2d_aa": "private",
    "_segment_reduce": "private",
    "max_pool2d_with_indices_backward": "private",
    "native_dropout_backward": "private",
    "linalg.norm subgradients_at_zero": "the second derivative is 0, in PyTorch NaN",
    "slice": "x[start:end:step]; PyTorch has the name in C++ alone",
    "sparse.sampled_addmm": "no sparse tensors",
    "bfloat16": "NumPy has no such dtype",
    "chalf": "NumPy has no such dtype",
    "masked.logaddexp": "PyTorch's second derivative is NaN beside an element that is masked out",
    "as_strided_scatter": "PyTorch's gradient by input fails PyTorch's own gradcheck",
    "native_layer_norm": "PyTorch does not differentiate the statistics",
    "native_batch_norm": "PyTorch does not differentiate the statistics",
    "nn.functional.batch_norm": "PyTorch takes an empty batch without a dimension of channels",
}
# What PyTorch differentiates once, whatever its database says.
_CHUNKED = "nn.functional.linear_cross_entropy chunked"
ONCE = {"nn.functional.ctc_loss", _CHUNKED, f"{_CHUNKED}_none"}

DTYPES = ("float64", "complex128")
DRAWN = 100  # samples, from which the choice is made; to make them takes most of the time
SAMPLES = 6  # of each entry and dtype
LARGE = 400  # elements; samples with more are left out where there are smaller ones


@attrs.frozen
class Entry:
    """An operator of the database, and what it is called here."""

    info: Any

    @property
    def name(self) -> str:
        """The entry's name, and its variant's."""
        return f"{self.info.name} {self.info.variant_test_name}".strip()

    def is_called(self, part: str) -> bool:
        """Return whether a word of the command line means this entry."""
        return part[1:] == self.info.name if part.startswith("=") else part in self.name

    @property
    def reason(self) -> str | None:
        """The reason why it is not expected to pass."""
        return REASONS.get(self.name) or REASONS.get(self.info.name)

    @property
    def dtypes(self) -> list[str]:
        """The dtypes that PyTorch differentiates."""
        supported = {
            str(d).removeprefix("torch.") for d in self.info.supported_backward_dtypes("cpu")
        }
        return [d for d in DTYPES if d in supported]

    @property
    def random(self) -> bool:
        """Whether the values are drawn by chance."""
        names = getattr(getattr(self.info.op, "__code__", None), "co_names", ())
        return "wrapper_set_seed" in names or self.info.name == "nn.functional.rrelu"

    def samples(self, dtype: str, every: bool = False) -> Iterator[Any]:
        """Yield samples: small ones, and no two with arguments of the same kinds."""
        torch = _torch()
        with _drawing_quickly():
            torch.manual_seed(0)
            drawn = self.info.sample_inputs("cpu", getattr(torch, dtype), requires_grad=True)
            drawn = itertools.islice(drawn, None if every else DRAWN)
            made = [sample for sample in drawn if not _is_sparse(sample)]
        if every:
            yield from made
            return
        made.sort(key=lambda sample: max(0, _size(sample) - LARGE))
        kinds: dict[str, Any] = {}
        for number, sample in enumerate(made):
            if _size(sample) <= LARGE or not number:
                kinds.setdefault(_kind(sample), sample)
        yield from list(kinds.values())[:SAMPLES]

    def functions(self) -> Iterator[tuple[Callable[..., Any], Callable[..., Any], Any]]:
        """Yield for each sample our function and PyTorch's, of the arrays that are differentiated.

        Their results are flat tuples.
        """
        ours, theirs = _our(self.info.name, self.info.op), self.info.op
        ours = _wrapped(self.info, ours, _port)
        theirs = _wrapped(self.info, theirs, lambda f: f)
        for dtype in self.dtypes:
            for call in map(_Call, self.samples(dtype)):
                yield call.function(ours, flow), call.function(theirs, _torch()), call.arrays

    def failure(self, every: bool = False) -> str:
        """Return what differs from PyTorch; an empty text where nothing does."""
        try:
            self.check(every)
        except Exception as error:  # everything that can go wrong is a line of the list
            return "\n".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])
        return ""

    def check(self, every: bool = False) -> None:
        """Assert that values and derivatives agree with PyTorch's."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ours = _our(self.info.name, self.info.op)
            calls = [
                (f"{self.name}, {dtype}, sample {number}: {sample.summary()}", _Call(sample))
                for dtype in self.dtypes
                for number, sample in enumerate(self.samples(dtype, every))
            ]
            for check, among in ((self._check, calls), (self._check_variants, calls[:2])):
                for text, call in among:
                    try:
                        check(ours, call)
                    except Exception as error:
                        error.add_note(text)
                        raise

    def _check(self, ours: Callable[..., Any], call: _Call) -> None:
        """Check the function itself."""
        info = self.info
        if self.random:
            call.same_shapes(ours, info.op)
            return
        orders = 2 if info.supports_gradgrad and self.name not in ONCE else 1
        call.compare(_wrapped(info, ours, _port), _wrapped(info, info.op, lambda f: f), orders)

    def _check_variants(self, ours: Callable[..., Any], call: _Call) -> None:
        """Check other names, the method, and the method that writes."""
        info, sample = self.info, call.sample
        orders = 2 if info.supports_gradgrad else 1
        if self.random:
            return
        for alias in info.aliases:
            call.compare(_our(alias.name, None), info.op, 0)
        if info.method_variant is not None and hasattr(sample.input, "shape"):
            call.compare(_method(info.method_variant), info.method_variant, 0)
        if info.inplace_variant is not None and not sample.broadcasts_input:
            call.compare_in_place(_method(info.inplace_variant), info.inplace_variant, orders)


@functools.cache
def entries() -> list[Entry]:
    """Return the entries that autograd supports on the CPU, in double precision."""
    from torch.testing._internal.common_methods_invocations import op_db

    found = [Entry(info) for info in op_db if info.supports_autograd]
    return [entry for entry in found if entry.dtypes]


def _torch() -> Any:
    import torch

    return torch


# --- Samples -----------------------------------------------------------------------------------


@contextlib.contextmanager
def _drawing_quickly() -> Iterator[None]:
    """Keep PyTorch from walking the stack at each sample: pytest's is deep.

    It looks there for a unittest around the database, and writes it down with each seed for the
    devices that are not in use.
    """
    torch = _torch()
    from torch.testing._internal import common_utils
    from torch.testing._internal.opinfo import core

    with (
        mock.patch.object(common_utils, "extract_test_fn", lambda: None),
        mock.patch.object(core, "extract_test_fn", lambda: None),  # a name of its own
        mock.patch.object(torch, "manual_seed", torch.default_generator.manual_seed),
    ):
        yield


def _walk(value: Any, change: Callable[[Any], Any]) -> Any:
    """Rebuild nested arguments with their tensors and other leaves changed."""
    if isinstance(value, dict):
        return {name: _walk(each, change) for name, each in value.items()}
    if isinstance(value, _torch().Size):
        return tuple(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_walk(each, change) for each in value)
    if isinstance(value, slice):
        return slice(*(_walk(each, change) for each in (value.start, value.stop, value.step)))
    return change(value)


def _tensors(value: Any) -> list[Any]:
    found: list[Any] = []
    _walk(value, lambda leaf: found.append(leaf) if hasattr(leaf, "requires_grad_") else None)
    return [leaf for leaf in found if not isinstance(leaf, _torch().nn.Module)]


def _is_sparse(sample: Any) -> bool:
    return any(x.layout != _torch().strided for x in _tensors([sample.input, sample.args]))


def _size(sample: Any) -> int:
    return sum(x.numel() for x in _tensors([sample.input, sample.args, sample.kwargs]))


def _kind(sample: Any) -> str:
    """Return what tells samples apart: how tensors differ in ndim, and all other arguments."""

    def kind(leaf: Any) -> Any:
        if isinstance(leaf, _torch().Tensor):
            return (leaf.ndim, leaf.numel() == 0, str(leaf.dtype))
        return type(leaf).__name__ if isinstance(leaf, (int, float, complex)) else repr(leaf)

    return repr(_walk([sample.input, sample.args, sample.kwargs], kind))


class _Call:
    """A sample split into the arrays to differentiate and calls with them in either library."""

    def __init__(self, sample: Any) -> None:
        self.sample = sample
        self.given = [sample.input, list(sample.args), dict(sample.kwargs)]
        self.arrays = [_array(x) for x in _tensors(self.given) if x.requires_grad]

    def run(
        self, function: Callable[..., Any], lib: Any, leaves: Any, in_place: bool = False
    ) -> Any:
        """Call a function of a library with its leaves."""
        waiting = iter(leaves)

        def change(leaf: Any) -> Any:
            if isinstance(leaf, _torch().Tensor):
                if leaf.requires_grad:
                    return next(waiting)
                return leaf if lib is not flow else flow.tensor(_array(leaf))
            return leaf if lib is not flow else _port(leaf)

        input, args, kwargs = _walk(self.given, change)
        if lib is flow:
            kwargs.pop("memory_format", None)
            kwargs.pop("layout", None)
        if not in_place:
            return function(input, *args, **kwargs)
        copy = input * 1
        result = function(copy, *args, **kwargs)
        assert result is copy
        return result

    def function(
        self, function: Callable[..., Any], lib: Any, in_place: bool = False
    ) -> Callable[..., Any]:
        """Return the call as a function of its leaves, the results as a flat tuple."""
        process = self.sample.output_process_fn_grad
        process = _port(process) if lib is flow else process

        def call(*leaves: Any) -> tuple[Any, ...]:
            return _flat(process(self.run(function, lib, leaves, in_place)), lib)

        return call

    def compare(self, ours: Any, theirs: Any, orders: int, in_place: bool = False) -> None:
        """Compare values and derivatives up to an order."""
        mine, other = (
            self.function(ours, flow, in_place),
            self.function(theirs, _torch(), in_place),
        )
        compare(mine, other, *self.arrays, orders=orders, rtol=1e-6, atol=1e-8)

    def compare_in_place(self, ours: Any, theirs: Any, orders: int) -> None:
        """Compare what a write leaves; nothing where PyTorch refuses to write."""
        torch = _torch()
        try:
            leaves = [torch.tensor(a, requires_grad=True) for a in self.arrays]
            result = self.run(theirs, torch, leaves, in_place=True)
            torch.autograd.grad(result, leaves, torch.ones_like(result), allow_unused=True)
        except RuntimeError:
            return
        self.compare(ours, theirs, orders, in_place=True)

    def same_shapes(self, ours: Any, theirs: Any) -> None:
        """Compare shapes and dtypes alone."""
        torch = _torch()
        mine = self.run(ours, flow, [flow.tensor(a) for a in self.arrays])
        other = self.run(theirs, torch, [torch.tensor(a) for a in self.arrays])
        mine, other = _flat(mine, flow), _flat(other, torch)
        assert [(tuple(y.shape), f"torch.{y.dtype}") for y in mine] == [
            (tuple(y.shape), str(y.dtype)) for y in other
        ]


def _array(tensor: Any) -> np.ndarray:
    return np.array(tensor.detach().resolve_conj().resolve_neg().numpy())


def _flat(result: Any, lib: Any) -> tuple[Any, ...]:
    """Return the tensors of a result, other numbers among them as tensors."""
    if isinstance(result, (tuple, list)):
        return tuple(y for part in result for y in _flat(part, lib))
    if result is None:
        return ()
    return (result if isinstance(result, lib.Tensor) else lib.tensor(result),)


# --- Names -------------------------------------------------------------------------------------


def _our(name: str, theirs: Any) -> Callable[..., Any]:
    """Return our function of an entry's name."""
    if _is_of_tests(theirs):
        return _port(theirs)
    short = name.removeprefix("torch.ops.aten.").removesuffix(".default")
    if short.startswith("__r"):  # answers NotImplemented to what the other operand can do
        return _reversed(getattr(operator, _OPERATORS.get(short, f"__{short[3:]}")))
    for root in (flow, flow.Tensor):
        found = _path(root, short)
        if callable(found):
            return found
    raise AttributeError(f"there is no flow.{short}")


def _is_of_tests(function: Any) -> bool:
    """Return whether PyTorch's tests wrote a function, instead of the library."""
    return str(getattr(function, "__module__", "")).startswith("torch.testing")


_OPERATORS = {"__rdiv__": "__truediv__"}


def _reversed(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda input, other: function(other, input)


def _method(variant: Any) -> Callable[..., Any]:
    """Return our method for PyTorch's."""
    if isinstance(variant, functools.partial) or _is_of_tests(variant):
        return _port(variant)
    if variant.__name__.startswith("__r"):
        return _our(variant.__name__, None)
    return getattr(flow.Tensor, variant.__name__)


def _path(root: Any, dotted: str) -> Any:
    for name in dotted.split("."):
        root = getattr(root, name, None)
    return root


def _wrapped(info: Any, function: Callable[..., Any], port: Any) -> Callable[..., Any]:
    """Return the function as PyTorch's own tests differentiate it, on triangles for example."""
    wrapper = info.gradcheck_wrapper
    names = (*getattr(wrapper, "__code__", (lambda: 0).__code__).co_names, wrapper.__name__)
    if any("hermitian" in n or "triangular" in n or "ctc" in n for n in names):
        return functools.partial(port(wrapper), function)
    return function


def _set_seed(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return function(*args, **kwargs)


def _port(value: Any) -> Any:
    """Turn what belongs to PyTorch into what is ours: dtypes, modules, functions of its tests."""
    torch = _torch()
    if isinstance(value, torch.dtype):
        return getattr(flow, str(value).removeprefix("torch."))
    if isinstance(value, torch.device):
        return str(value)
    if isinstance(value, torch.nn.Module):
        return _path(flow, f"nn.{type(value).__name__}")()
    if isinstance(value, functools.partial):
        return functools.partial(_port(value.func), *value.args, **value.keywords)
    if isinstance(value, types.ModuleType) and value.__name__.startswith("torch"):
        return _path(flow, value.__name__[6:]) if "." in value.__name__ else flow
    if not isinstance(value, types.FunctionType):
        return value
    if value.__module__.startswith("torch.nn.functional"):
        return getattr(flow.nn.functional, value.__name__)
    if value.__name__ == "wrapper_set_seed":
        return _set_seed
    if not _is_of_tests(value):
        return value
    scope = {
        name: _port(value.__globals__[name]) for name in _names(value) & set(value.__globals__)
    }
    cells = tuple(types.CellType(_port(cell.cell_contents)) for cell in value.__closure__ or ())
    made = types.FunctionType(value.__code__, scope, value.__name__, value.__defaults__, cells)
    made.__kwdefaults__ = value.__kwdefaults__
    return made


def _names(function: types.FunctionType) -> set[str]:
    """Return the global names that a function uses, or a function inside it."""
    codes, found = [function.__code__], set()
    for code in codes:
        found |= set(code.co_names)
        codes += [const for const in code.co_consts if isinstance(const, types.CodeType)]
    return found


# --- As a script -------------------------------------------------------------------------------


def main() -> None:
    """Check the entries that the command line names, and print how each fared."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of names; = before a whole name")
    parser.add_argument("--all", action="store_true", help="take every sample")
    parser.add_argument("--long", action="store_true", help="print whole messages")
    options = parser.parse_args()
    good = 0
    chosen = [e for e in entries() if not options.names or any(map(e.is_called, options.names))]
    for entry in chosen:
        text = entry.failure(options.all)
        good += not text
        lines = [line[:240] for line in text.splitlines() if line.strip()]
        text = text if options.long else " | ".join([*lines[:4], *lines[4:][-1:]])
        why = f"[reason: {entry.reason}]" if entry.reason else ""
        print(f"FAIL  {entry.name}: {text}" if text else f"pass  {entry.name}", why, flush=True)
    print(f"{good} of {len(chosen)} pass")


if __name__ == "__main__":
    main()
