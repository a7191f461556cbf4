"""Random tensors and the generators they are drawn from."""

from __future__ import annotations

import os
import weakref
from typing import Annotated, Any

import numpy as np

from oneflow_lite.arrays.device import Device, as_device
from oneflow_lite.arrays.dtype import DType, as_dtype, finfo, int64
from oneflow_lite.arrays.locks import free_all
from oneflow_lite.arrays.refusals import guarded
from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F as F
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, DTypeError, arg_error
from oneflow_lite.functors import creation
from oneflow_lite.functors.creation import LIKE, MADE, NEW, Finite, as_input, check_real, made
from oneflow_lite.functors.declaring import domains as D
from oneflow_lite.functors.declaring.checks import (
    check_int,
    check_number,
    real,
    real_floating,
    require_floating,
)
from oneflow_lite.functors.declaring.declare import functor, keyword, with_options
from oneflow_lite.functors.declaring.domains import (
    AnyNumber,
    IntOrInts,
    RealFloating,
    RealFloatingPair,
    TensorOrNumber,
)
from oneflow_lite.interpreter.dispatch import dispatch, dispatch1
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.tensors.shown import Shown
from oneflow_lite.tensors.tensor import Tensor

_generators: weakref.WeakSet[Generator] = weakref.WeakSet()


class Generator(Shown):
    """A stream of random numbers: NumPy's PCG64, and CuPy's XORWOW, begun from the same seed.

    A seed gives the same numbers on every run, but different numbers on CPU and CUDA.

    >>> import oneflow_lite as flow
    >>> one, other = flow.Generator().manual_seed(7), flow.Generator().manual_seed(7)
    >>> flow.equal(flow.rand(3, generator=one), flow.rand(3, generator=other))
    True
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Generator:
        """Make a generator, be it a copy or one from a file, and note it for `_free_streams`."""
        _generators.add(made := super().__new__(cls))
        return made

    def __init__(self, device: Any = None) -> None:
        self.device: Device = as_device(device)
        self.seed()

    def _facts(self) -> dict[str, Any]:
        return {"device": str(self.device), "seed": self._seed}

    def manual_seed(self, seed: int) -> Generator:
        """Begin the stream again from `seed`; a negative one counts down from 2**64."""
        number = check_int("manual_seed", "seed", seed)
        if not -(2**63) <= number < 2**64:
            expected, hint = "-2**63 to 2**64 - 1", "take it modulo 2**64"
            raise arg_error("manual_seed", "seed", expected, number, hint, ArgumentError)
        self._seed = number % 2**64
        self._streams: dict[str, Any] = {}
        return self

    def seed(self) -> int:
        """Begin from a seed drawn from the system, and return it."""
        return self.manual_seed(int.from_bytes(os.urandom(7)))._seed

    def initial_seed(self) -> int:
        """Return the seed that the stream was begun from."""
        return self._seed

    @guarded
    def stream(self, xp: Any) -> Any:
        """Return the NumPy or CuPy generator; for kernels."""
        if xp.__name__ not in self._streams:  # one stream, also where two threads make it
            self._streams.setdefault(xp.__name__, xp.random.default_rng(self._seed))
        return self._streams[xp.__name__]

    def get_state(self) -> Any:
        """Return the state of the CPU stream."""
        return self.stream(np).bit_generator.state

    @guarded
    def set_state(self, state: Tensor) -> None:
        """Set the state of the CPU stream, as `get_state` returned it."""
        self.stream(np).bit_generator.state = state


default_generator = Generator()
manual_seed, seed = default_generator.manual_seed, default_generator.seed
initial_seed, get_rng_state = default_generator.initial_seed, default_generator.get_state


def _free_streams() -> None:
    """Free the locks of NumPy's streams in a forked child, and of its global one for scripts."""
    streams = [s for g in list(_generators) for s in list(g._streams.values())]
    of_scripts: Any = np.random.get_bit_generator()  # type: ignore[attr-defined]
    used = [s.bit_generator for s in streams] + [of_scripts]
    free_all([s.lock for s in used if hasattr(s, "lock")])


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_streams)


@guarded
def set_rng_state(new_state: Tensor) -> None:
    """Set the state of the default generator's CPU stream."""
    default_generator.set_state(new_state)


def check_generator(op: str, argument: str, value: Any) -> Generator:
    """Return a generator; the library's own for None."""
    if value is None:
        return default_generator
    if isinstance(value, Generator):
        return value
    got, hint = type(value).__name__, "make one with flow.Generator()"
    raise arg_error(op, argument, "a flow.Generator or None", got, hint, ArgumentTypeError)


def check_probability(op: str, argument: str, value: Any) -> float:
    """Return a number from 0 to 1."""
    if 0 <= (p := check_number(op, argument, value)) <= 1:
        return p
    raise arg_error(op, argument, "a probability from 0 to 1", value, "give a share", ArgumentError)


def check_spread(op: str, argument: str, value: Any, positive: bool = False) -> float:
    """Return a finite number of at least 0, or above 0."""
    number = check_real(op, argument, value)
    if number > 0 or (number == 0 and not positive):
        return float(number)
    expected, hint = "a number of at least 0", "pass the standard deviation"
    if positive:
        expected, hint = "a number above 0", "pass a scale"
    raise arg_error(op, argument, expected, number, hint, ArgumentError)


def _when(what: str) -> dict[str, str]:
    return {"ArgumentError": f"When {{x}} is {what}."}


_FROM = "The generator that draws the numbers; by default the library's own."
_SOURCE = D.attribute(check_generator, says=_FROM, type="Generator, optional")
_SHARE = D.attribute(check_probability, says="A probability.", raises=_when("not between 0 and 1"))
Inexact = D.FloatingOrComplex
Source = Annotated[Any, _SOURCE]
Probability = Annotated[float, _SHARE]
Spread = Annotated[float, D.attribute(check_spread, raises=_when("negative"))]
Scale = Annotated[float, D.attribute(check_spread, ", True", raises=_when("not positive"))]

SOURCE = (keyword("generator", domain=_SOURCE),)
_EXAMPLE = "\n\n>>> flow.rand(2, 3).shape\n(2, 3)"
_OF_UNIFORM = f"Return numbers drawn uniformly from [0, 1).{_EXAMPLE}"
_OF_NORMAL = "Return numbers drawn from the normal distribution with mean 0, variance 1."
rand = creation.sized("rand", _OF_UNIFORM, "random_uniform", SOURCE)
randn = creation.sized("randn", _OF_NORMAL, "random_normal", SOURCE)


def _drawn_like(name: str, summary: str, op: str) -> Any:
    summary += " of the shape and dtype of `input`."
    samples = "fixed(x(2, 3)); fixed(i(2, 3)), dtype=float32"

    @with_options("flow", SOURCE + LIKE, name, summary, samples=samples)
    def author(input: D.AnyTensor, **options: Any) -> Tensor:
        options = {**as_input(name, input, options), "shape": input.shape}
        return creation.beside(input, made(name, options, op))

    return author


rand_like = _drawn_like("rand_like", "Return uniform numbers", "random_uniform")
randn_like = _drawn_like("randn_like", "Return normal numbers", "random_normal")


def _interval(op: str, low: Any, high: Any) -> tuple[int, int]:
    """Return the bounds of integers; 0 and `low` where there is no `high`."""
    low, high = (0, low) if high is None else (low, high)
    low, high = check_int(op, "low", low), check_int(op, "high", high)
    if low < high:
        return low, high
    hint = "pass an interval that is not empty"
    raise arg_error(op, "high", f"more than low = {low}", high, hint, ArgumentError)


def whole_range(dtype: DType, every: bool = False) -> tuple[int, int]:
    """Return the least and the largest integer of a dtype; of a float, with `every` one between."""
    if dtype.kind == "b":
        return 0, 1
    if dtype.kind != "f":
        limits = np.iinfo(dtype)
        return int(limits.min), int(limits.max)
    info = finfo(dtype)
    return (0, int(2 / info.eps)) if every else (int(info.min), int(info.max))


def check_held(op: str, low: int, last: int, dtype: DType, every: bool = False) -> None:
    """Raise when a dtype cannot hold integers from `low` to `last`, with `every` one of them."""
    if dtype.kind == "c":
        raise arg_error(op, "dtype", "a real dtype", dtype, "leave it out", DTypeError)
    least, most = whole_range(dtype, every)
    if low < least or last > most:
        expected, got = f"numbers that {dtype} can hold, {least} to {most}", f"{low} to {last}"
        raise arg_error(op, "dtype", expected, got, "take another dtype or interval", ArgumentError)


_WHOLE = "fixed(x(2, 30)), 500; fixed(i(20)), -200, 500, dtype=float32"
_BOUNDS = "fixed(x(2, 3)); fixed(i(20)), 500; fixed(x(20)), -200, 500"
_DRAWN = "fixed(pos(2, 30)), 20; fixed(pos(30)), 50, True"
_OF_MEANS = "fixed(x(2, 3)), fixed(pos(3)); fixed(x(3)), 0.5; 1.0, fixed(pos(2)); 1.0, 2.0, (2, 3)"


@with_options("flow", SOURCE + MADE, samples="999, (2, 30); -200, 500, (40,), dtype=float32")
def randint(
    low: AnyNumber = 0, high: AnyNumber = None, size: IntOrInts = None, **options: Any
) -> Tensor:
    """Return integers drawn uniformly from [low, high); `randint(high, size)` begins at 0.

    >>> flow.randint(3, 4, (2,))
    tensor([3, 3])
    """
    if size is None:
        high, size = None, high
    low, high = _interval("randint", low, high)
    dtype = creation.target_dtype("randint", options, int64)
    check_held("randint", low, high - 1, dtype)
    shape = creation.check_sizes("randint", (size,))
    options.update(dtype=dtype, low=low, high=high, shape=shape)
    return made("randint", options, "random_integers")


@with_options(options=SOURCE + LIKE, samples=_WHOLE)
def randint_like(
    input: D.AnyTensor, low: AnyNumber = 0, high: AnyNumber = None, **options: Any
) -> Tensor:
    """Return integers from [low, high), or [0, low), in shape, dtype and device of `input`."""
    options = as_input("randint_like", input, options)
    low, high = _interval("randint_like", low, high)
    check_held("randint_like", low, high - 1, as_dtype("randint_like", options["dtype"]))
    options.update(low=low, high=high, shape=input.shape)
    return made("randint_like", options, "random_integers")


@with_options("flow", SOURCE + MADE, samples="40")
def randperm(n: D.Count, **options: Any) -> Tensor:
    """Return the integers from 0 to n - 1 in random order."""
    dtype = creation.target_dtype("randperm", options, int64)
    check_held("randperm", 0, n - 1, dtype, every=True)
    return made("randperm", {**options, "dtype": dtype, "n": n}, "random_permutation")


@functor("", samples="x(60), 0.5")
def dropout_mask(input: Inexact, p: D.Number, generator: Source = None) -> Tensor:
    """Return 0 with probability `p` and 1 / (1 - p) otherwise, per element; no gradient."""
    return dispatch1(op_expr("dropout_mask"), input.detach(), {"p": p, "generator": generator})


@functor("flow Tensor", out="any", samples="share(60); fixed(x(60)), 0.5")
def bernoulli(input: D.Real, p: Probability | None = None, *, generator: Source = None) -> Tensor:
    """Return 1 with the probability that `input` gives per element, else 0.

    p: one probability for all elements, whatever `input` holds.
    ArgumentError: when a value is no probability (checked on the CPU only).
    """
    if p is not None:
        return bernoulli_(F.zeros_like(input), p, generator=generator)
    real_floating("bernoulli", input)
    return dispatch1(op_expr("bernoulli"), input, {"generator": generator})


@functor("flow", samples="pos(60)")
def poisson(input: RealFloating, generator: Source = None) -> Tensor:
    """Return counts drawn from Poisson distributions, whose rates `input` gives; no gradient.

    ArgumentError: when a rate is negative or nan (checked on the CPU only).
    """


@functor("flow", samples="fixed(i(20, 3, n=99) * 1.0), fixed(share(3))")
def binomial(count: RealFloatingPair, prob: RealFloatingPair, generator: Source = None) -> Tensor:
    """Return how many of `count` trials succeed, each with the probability `prob`."""


@with_options("flow Tensor", SOURCE, out="same", samples=_DRAWN)
def multinomial(
    input: RealFloating, num_samples: D.Positive, replacement: D.Flag = False, **options: Any
) -> Tensor:
    """Return places along the last dimension, drawn with the probabilities input / sum(input).

    input: (C,) or (N, C): weights of at least 0, with a weight above 0 in each row.
    ShapeError: when the input has another number of dimensions.
    ArgumentError: when a row has fewer places than are drawn without replacement, or (on the CPU)
    a weight is negative or not finite, or all of a row are 0.

    >>> flow.multinomial(flow.tensor([0.0, 3.0, 0.0]), 2, replacement=True)
    tensor([1, 1])
    """
    op = "multinomial"
    if input.ndim not in (1, 2):
        raise arg_error(op, "input", "1 or 2 dimensions", input, "flatten the batch")
    if num_samples > input.shape[-1] and not replacement:
        expected = f"at most {input.shape[-1]}, the number of places"
        hint = "draw fewer, or with replacement"
        raise arg_error(op, "num_samples", expected, num_samples, hint, ArgumentError)
    attrs = {"num_samples": num_samples, "replacement": replacement, **options}
    return dispatch1(op_expr(op), input, attrs)


@with_options("flow", SOURCE + NEW, out=True, samples=_OF_MEANS)
def normal(
    mean: TensorOrNumber, std: TensorOrNumber = 1.0, size: IntOrInts = None, **options: Any
) -> Tensor:
    """Return a normal number for each element of `mean` and `std`, or a tensor of a `size`.

    The gradients of `mean` and `std` are 0, as in PyTorch.

    mean: a floating tensor, or a number.
    std: a tensor that broadcasts with the mean, or a number; at least 0.
    size, dtype, device, requires_grad: of the result, when both are numbers.
    ArgumentError: when the standard deviation is negative (of a tensor checked on the CPU only).
    ShapeError: when the shapes do not broadcast.
    """
    op = "normal"
    if not isinstance(std, Tensor):
        std = check_spread(op, "std", std)
    if not isinstance(mean, Tensor):
        mean = check_real(op, "mean", mean)
        if not isinstance(std, Tensor):
            return _normal_numbers(mean, std, size, options)
    name, given = ("mean", mean) if isinstance(mean, Tensor) else ("std", std)
    kind = require_floating(op, given, name).real.dtype
    if not isinstance(mean, Tensor):
        mean = given.new_full((), mean, dtype=kind)
    if not isinstance(std, Tensor):
        std = given.new_full((), std, dtype=kind)
    inputs = (mean, real(op, std, "std").to(kind))
    return dispatch(op_expr(op), inputs, {"generator": options["generator"]})


def _normal_numbers(mean: Any, std: float, size: Any, options: dict[str, Any]) -> Tensor:
    if size is None:
        got, hint = "two numbers", "pass size=(...)"
        raise arg_error("normal", "size", "a size for numbers", got, hint, ArgumentTypeError)
    requires_grad = options.pop("requires_grad")
    numbers = randn(size, **options)
    result = numbers * std + (mean * (1 + 1j) if numbers.is_complex() else mean)
    return result.requires_grad_(requires_grad)


@functor("flow", samples="pos(60)")
def _standard_gamma(input: RealFloating, generator: Source = None) -> Tensor:
    """Return gamma numbers of rate 1, whose concentrations `input` gives.

    Their gradient is implicit: of a draw at a fixed value of its distribution function.
    """


@functor("flow", samples="pos(20, 3)")
def _sample_dirichlet(input: RealFloating, generator: Source = None) -> Tensor:
    """Return shares along the last dimension, drawn from Dirichlet distributions.

    Their gradient is implicit, as that of `_standard_gamma`.
    """


@with_options("Tensor", SOURCE, samples="fixed(x(2, 3)); fixed(x(2, 3)), -2, 3")
def uniform_(input: Inexact, from_: Finite = 0.0, to: Finite = 1.0, **source: Any) -> Tensor:
    """Fill a tensor, in place, with numbers drawn uniformly from [from_, to).

    ArgumentError: when `from_` is above `to`.
    """
    if from_ > to:
        expected = f"at least from_ = {from_}"
        raise arg_error("uniform_", "to", expected, to, "swap the bounds", ArgumentError)
    return dispatch1(op_expr("uniform_"), input, {"low": from_, "high": to, **source})


@with_options("Tensor", SOURCE, samples="fixed(x(2, 3)); fixed(x(2, 3)), 1.0, 2")
def normal_(input: Inexact, mean: Finite = 0.0, std: Spread = 1.0, **source: Any) -> Tensor:
    """Fill a tensor, in place, with normal numbers."""


@with_options("Tensor", SOURCE, samples="fixed(x(60)); fixed(i(60)), 0.2; fixed(i(2, 9)), share(9)")
def bernoulli_(input: D.AnyTensor, p: TensorOrNumber = 0.5, **source: Any) -> Tensor:
    """Fill a tensor, in place, with 1 with probability `p`, else 0.

    p: a number, or a floating tensor that expands to the shape of `input`; no gradient goes to it.
    ArgumentError: when a probability is not between 0 and 1.
    """
    if isinstance(p, Tensor) and p.ndim:
        shares = F.expand(real_floating("bernoulli_", p.detach(), "p"), input.shape)
        return F.copy_(input, bernoulli(shares, **source))
    attrs = {"p": check_probability("bernoulli_", "p", p), **source}
    return dispatch1(op_expr("bernoulli_"), input, attrs)


@with_options("Tensor", SOURCE, samples=_BOUNDS)
def random_(input: D.Real, from_: AnyNumber = 0, to: AnyNumber = None, **source: Any) -> Tensor:
    """Fill a tensor, in place, with integers from [from_, to); `random_(to)` begins at 0.

    from_, to: the bounds. By default from 0 to the largest integer of the dtype; of a floating
    dtype, as far as it holds all integers.
    ArgumentError: when the interval is empty, or the dtype cannot hold it.
    """
    dtype = input._data.dtype
    last = whole_range(dtype, every=True)[1]
    low, high = (0, last + 1) if to is None and from_ == 0 else _interval("random_", from_, to)
    check_held("random_", low, high - 1, dtype)
    return dispatch1(op_expr("random_"), input, {"low": low, "high": high, **source})


@with_options("Tensor", SOURCE, samples="fixed(x(2, 3)); fixed(x(2, 3)), 2")
def exponential_(input: RealFloating, lambd: Scale = 1.0, **source: Any) -> Tensor:
    """Fill a tensor, in place, with numbers of the density lambd exp(-lambd x), x > 0."""


@with_options("Tensor", SOURCE, samples="fixed(x(60)), 0.3; fixed(i(60)), 0.5")
def geometric_(input: D.RealNumber, p: Finite, **source: Any) -> Tensor:
    """Fill a tensor, in place, with numbers of trials up to the first success of probability `p`.

    ArgumentError: when `p` is not between 0 and 1.
    """
    if not 0 < p < 1:
        raise arg_error(
            "geometric_", "p", "between 0 and 1", p, "pass a probability", ArgumentError
        )
    return dispatch1(op_expr("geometric_"), input, {"p": p, **source})


@with_options("Tensor", SOURCE, samples="fixed(x(2, 3)); fixed(x(2, 3)), 0.0, 0.5")
def log_normal_(input: RealFloating, mean: Finite = 1.0, std: Scale = 2.0, **source: Any) -> Tensor:
    """Fill a tensor, in place, with exp of normal numbers of this mean and deviation."""


@with_options("Tensor", SOURCE, samples="fixed(x(2, 3)); fixed(x(2, 3)), 0.0, 0.5")
def cauchy_(input: RealFloating, median: Finite = 0.0, sigma: Scale = 1.0, **source: Any) -> Tensor:
    """Fill a tensor, in place, with numbers of the density σ / (π ((x - median)² + σ²)).

    sigma: half the width at half the height.
    """


@with_options("", SOURCE, samples="fixed(x(2, 3)), 0.0, 1.0, -1.0, 2.0")
def trunc_normal_(
    input: Inexact, mean: Finite, std: Finite, low: Finite, high: Finite, **source: Any
) -> Tensor:
    """Fill a tensor, in place, with normal numbers cut off outside [low, high]."""


@with_options("", SOURCE, samples="fixed(x(2, 3)), 1.0")
def orthogonal_(input: Inexact, gain: Finite, **source: Any) -> Tensor:
    """Fill a tensor, in place, with a (semi-)orthogonal matrix times `gain`."""
