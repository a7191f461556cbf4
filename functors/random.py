"""Random tensors and the generators they are drawn from."""

from __future__ import annotations

import os
from typing import Annotated, Any

import numpy as np

from oneflow_lite.device import Device, as_device
from oneflow_lite.errors import ArgumentError, ArgumentTypeError
from oneflow_lite.functors.checks import (
    cast,
    check_int,
    check_number,
    real,
    require_floating,
    wrong,
)
from oneflow_lite.functors.creation import check_real, check_sizes, declared, full, like, made
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.domains import (
    AnyTensor,
    Count,
    Flag,
    FloatingOrComplex,
    Number,
    Positive,
    RealFloating,
    RealFloatingPair,
    RealNumber,
    attribute,
)
from oneflow_lite.interpreter import dispatch
from oneflow_lite.memory_format import check_memory_format
from oneflow_lite.op_expr import op_expr
from oneflow_lite.tensor import Tensor

_UNIFORM = op_expr("random_uniform")
_NORMAL = op_expr("random_normal")
_INTEGERS = op_expr("random_integers")
_PERMUTATION = op_expr("random_permutation")
_UNIFORM_ = op_expr("uniform_")
_RANDOM_ = op_expr("random_")
_NORMAL_OF = op_expr("normal")
_MULTINOMIAL = op_expr("multinomial")
_DROPOUT_MASK = op_expr("dropout_mask")
_GEOMETRIC_ = op_expr("geometric_")


class Generator:
    """A stream of random numbers, one per array module, both begun from the same seed.

    The streams are NumPy's PCG64 and CuPy's XORWOW: a seed gives the same numbers on every run on
    one device, other numbers on the other.

    >>> import oneflow_lite as flow
    >>> g = flow.Generator().manual_seed(7)
    >>> a = flow.rand(3, generator=g)
    >>> g = g.manual_seed(7)
    >>> flow.equal(a, flow.rand(3, generator=g))
    True
    """

    def __init__(self, device: Any = None) -> None:
        self.device: Device = as_device(device)
        self._streams: dict[str, Any] = {}
        self._seed = 0
        self.seed()

    def manual_seed(self, seed: int) -> Generator:
        """Begin the stream again from `seed`; a negative one counts down from 2**64."""
        number = check_int("manual_seed", "seed", seed)
        if not -(2**63) <= number < 2**64:
            expected, mend = "-2**63 to 2**64 - 1", "take it modulo 2**64"
            raise wrong("manual_seed", "seed", expected, number, mend, ArgumentError)
        self._seed = number % 2**64
        self._streams = {}
        return self

    def seed(self) -> int:
        """Begin from a seed drawn from the system, and return it."""
        self.manual_seed(int.from_bytes(os.urandom(7)))
        return self._seed

    def initial_seed(self) -> int:
        """Return the seed that the stream was begun from."""
        return self._seed

    def stream(self, xp: Any) -> Any:
        """Return the NumPy or CuPy generator; for kernels."""
        found = self._streams.get(xp.__name__)
        if found is None:
            found = xp.random.default_rng(self._seed % 2**64)
            self._streams[xp.__name__] = found
        return found

    def get_state(self) -> Any:
        """Return the state of the CPU stream."""
        return self.stream(np).bit_generator.state

    def set_state(self, state: Any) -> None:
        """Set the state of the CPU stream, as `get_state` returned it."""
        self.stream(np).bit_generator.state = state


default_generator = Generator()


def manual_seed(seed: int) -> Generator:
    """Seed the default generator and return it."""
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Seed the default generator from the system and return the seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """Return the seed of the default generator."""
    return default_generator.initial_seed()


def get_rng_state() -> Any:
    """Return the state of the default generator's CPU stream."""
    return default_generator.get_state()


def set_rng_state(state: Any) -> None:
    """Set the state of the default generator's CPU stream."""
    default_generator.set_state(state)


# --- Domains --------------------------------------------------------------------------------------


def check_generator(op: str, argument: str, value: Any) -> Generator:
    """Return a generator; the default one for None."""
    if value is None:
        return default_generator
    if isinstance(value, Generator):
        return value
    got, mend = type(value).__name__, "make one with flow.Generator()"
    raise wrong(op, argument, "a flow.Generator or None", got, mend, ArgumentTypeError)


def check_probability(op: str, argument: str, value: Any) -> float:
    """Return a number from 0 to 1."""
    if 0 <= (p := check_number(op, argument, value)) <= 1:
        return p
    raise wrong(op, argument, "a probability from 0 to 1", value, "give a share", ArgumentError)


def check_positive(op: str, argument: str, value: Any) -> float:
    """Return a finite number above 0."""
    if (number := check_real(op, argument, value)) > 0:
        return float(number)
    raise wrong(op, argument, "a number above 0", number, "pass a scale", ArgumentError)


def check_spread(op: str, argument: str, value: Any) -> float:
    """Return a finite number of at least 0."""
    if (number := check_real(op, argument, value)) >= 0:
        return float(number)
    mend = "pass the standard deviation"
    raise wrong(op, argument, "a number of at least 0", number, mend, ArgumentError)


RandomSource = Annotated[
    Any,
    attribute(
        check_generator,
        says="Where the numbers are drawn from; by default the library's own.",
        type="Generator, optional",
    ),
]
Probability = Annotated[
    float,
    attribute(
        check_probability,
        says="A probability, from 0 to 1.",
        raises={"ArgumentError": "When {x} is not between 0 and 1."},
    ),
]
Finite = Annotated[
    float,
    attribute(check_real, says="A finite number.", raises={"ArgumentError": "When it is not."}),
]
Spread = Annotated[
    float, attribute(check_spread, raises={"ArgumentError": "When {x} is negative."})
]
Scale = Annotated[
    float, attribute(check_positive, raises={"ArgumentError": "When {x} is not positive."})
]

# --- New tensors ----------------------------------------------------------------------------------


def _drawn(name: str, summary: str, op: Any) -> Any:
    """Declare a function of sizes that draws floating numbers."""

    def author(
        *sizes: Any,
        size: Any = None,
        generator: RandomSource = None,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        out: Tensor | None = None,
    ) -> Tensor:
        attrs = {"shape": check_sizes(name, sizes, size), "generator": generator}
        return made(op, name, (dtype, device, requires_grad, out), floats=True, **attrs)

    return declared(name, summary, author, samples="2, 3; size=(2,), dtype=float64")


rand = _drawn(
    "rand",
    """Return numbers drawn uniformly from [0, 1).

    >>> flow.rand(2, 3).shape
    (2, 3)
    """,
    _UNIFORM,
)
randn = _drawn(
    "randn", "Return numbers drawn from the normal distribution with mean 0, variance 1.", _NORMAL
)
rand_like = like("rand_like", "Return uniform numbers of the shape and dtype of `input`.", rand)
randn_like = like("randn_like", "Return normal numbers of the shape and dtype of `input`.", randn)


@functor("flow", samples="999, (2, 30); -200, 500, (40,), dtype=float32")
def randint(
    low: Any,
    high: Any = None,
    size: Any = None,
    *,
    generator: RandomSource = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return integers drawn uniformly from [low, high); `randint(high, size)` begins at 0.

    >>> flow.randint(3, 4, (2,))
    tensor([3, 3])
    """
    if size is None:
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    low, high = _interval("randint", low, high)
    shape = check_sizes("randint", (size,))
    options = (dtype, device, requires_grad, out)
    attrs = {"low": low, "high": high, "shape": shape, "generator": generator}
    return made(_INTEGERS, "randint", options, np.dtype(np.int64), **attrs)


def _interval(op: str, low: Any, high: Any) -> tuple[int, int]:
    low, high = check_int(op, "low", low), check_int(op, "high", high)
    if low < high:
        return low, high
    mend = "pass an interval that is not empty"
    raise wrong(op, "high", f"more than low = {low}", high, mend, ArgumentError)


@functor("flow", samples="fixed(x(2, 30)), 500; fixed(i(20)), -200, 500, dtype=float32")
def randint_like(
    input: AnyTensor,
    low: Any,
    high: Any = None,
    *,
    generator: RandomSource = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Return integers from [low, high), or [0, low), in shape, dtype and device of `input`."""
    check_memory_format("randint_like", memory_format)
    low, high = _interval("randint_like", *((0, low) if high is None else (low, high)))
    options = (
        input.dtype if dtype is None else dtype,
        input.device if device is None else device,
        requires_grad,
        None,
    )
    attrs = {"low": low, "high": high, "shape": input.shape, "generator": generator}
    return made(_INTEGERS, "randint_like", options, **attrs)


@functor("flow", samples="40")
def randperm(
    n: Count,
    *,
    generator: RandomSource = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return the integers from 0 to n - 1 in random order."""
    options = (dtype, device, requires_grad, out)
    attrs = {"n": n, "generator": generator}
    return made(_PERMUTATION, "randperm", options, np.dtype(np.int64), **attrs)


# --- Drawn from distributions that tensors give ---------------------------------------------------


@functor("", samples="x(60), 0.5")
def dropout_mask(input: FloatingOrComplex, p: Number, generator: RandomSource = None) -> Tensor:
    """Return 0 with probability `p` and 1 / (1 - p) otherwise, per element; no gradient."""
    return dispatch(_DROPOUT_MASK, (input.detach(),), {"p": p, "generator": generator})


@functor("flow Tensor", out=True, samples="share(60)")
def bernoulli(input: RealFloating, *, generator: RandomSource = None) -> Tensor:
    """Return 1 with the probability that `input` gives per element, else 0.

    ArgumentError: when a value is no probability (checked on the CPU only).
    """


@functor("flow", samples="pos(60)")
def poisson(input: RealFloating, generator: RandomSource = None) -> Tensor:
    """Return counts drawn from Poisson distributions, whose rates `input` gives; no gradient.

    ArgumentError: when a rate is negative or nan (checked on the CPU only).
    """


@functor("flow", samples="fixed(i(20, 3, n=99) * 1.0), fixed(share(3))")
def binomial(
    count: RealFloatingPair, prob: RealFloatingPair, generator: RandomSource = None
) -> Tensor:
    """Return how many of `count` trials succeed, each with the probability `prob`.

    count, prob: floating, of shapes that broadcast together.
    """


@functor(
    "flow Tensor",
    out=True,
    samples="fixed(pos(2, 30)), 20; fixed(pos(30)), 50, True",
)
def multinomial(
    input: RealFloating,
    num_samples: Positive,
    replacement: Flag = False,
    *,
    generator: RandomSource = None,
) -> Tensor:
    """Return places along the last dimension, drawn with the probabilities input / sum(input).

    input: (C,) or (N, C): weights of at least 0, of which one in each row is above.
    num_samples: how many places to draw from each row.
    replacement: whether a place can be drawn again.
    ShapeError: when the input has another number of dimensions.
    ArgumentError: when a row has fewer places than are drawn without replacement, or (on the CPU)
    a weight is negative or not finite, or all of a row are 0.

    >>> flow.multinomial(flow.tensor([0.0, 3.0, 0.0]), 2, replacement=True)
    tensor([1, 1])
    """
    op = "multinomial"
    if input.ndim not in (1, 2):
        raise wrong(op, "input", "1 or 2 dimensions", input, "flatten the batch")
    if num_samples > input.shape[-1] and not replacement:
        expected = f"at most {input.shape[-1]}, the number of places"
        mend = "draw fewer, or with replacement"
        raise wrong(op, "num_samples", expected, num_samples, mend, ArgumentError)
    attrs = {"num_samples": num_samples, "replacement": replacement, "generator": generator}
    return dispatch(_MULTINOMIAL, (input,), attrs)


@functor(
    "flow",
    out=True,
    samples="""
    fixed(x(2, 3)), fixed(pos(3)); fixed(x(3)), 0.5; 1.0, fixed(pos(2)); 1.0, 2.0, (2, 3)
    fixed(x(3))
    """,
)
def normal(
    mean: Any,
    std: Any = 1.0,
    size: Any = None,
    *,
    generator: RandomSource = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return normal numbers: one for each element of `mean` and `std`, or a `size` of them.

    The gradients of `mean` and `std` are 0, as in PyTorch.

    mean: a floating tensor, or a number.
    std: a tensor that broadcasts with the mean, or a number; at least 0.
    size: of the result, when both are numbers.
    dtype, device, requires_grad: of the result, when both are numbers.
    ArgumentError: when the standard deviation is negative (of a tensor checked on the CPU only).
    ShapeError: when the shapes do not broadcast.
    """
    if not isinstance(std, Tensor):
        std = check_spread("normal", "std", std)
    if not isinstance(mean, Tensor) and not isinstance(std, Tensor):
        mean = check_real("normal", "mean", mean)
        if size is None:
            got, mend = "two numbers", "pass size=(...)"
            raise wrong("normal", "size", "a size for numbers", got, mend, ArgumentTypeError)
        numbers = randn(size, generator=generator, dtype=dtype, device=device)
        result = numbers * std + (mean * (1 + 1j) if numbers.is_complex() else mean)
        return result.requires_grad_(requires_grad)
    given = mean if isinstance(mean, Tensor) else std
    kind = require_floating("normal", given, "mean" if given is mean else "std").real.dtype
    if not isinstance(mean, Tensor):
        mean = full((), check_real("normal", "mean", mean), dtype=kind, device=given.device)
    if not isinstance(std, Tensor):
        std = full((), std, dtype=kind, device=given.device)
    std = cast(real("normal", std, "std"), kind)
    return dispatch(_NORMAL_OF, (mean, std), {"generator": generator})


# --- Filled in place ------------------------------------------------------------------------------


@functor("Tensor", samples="fixed(x(2, 3)); fixed(x(2, 3)), -2, 3")
def uniform_(
    input: FloatingOrComplex,
    from_: Finite = 0.0,
    to: Finite = 1.0,
    *,
    generator: RandomSource = None,
) -> Tensor:
    """Fill a tensor, in place, with numbers drawn uniformly from [from_, to).

    from_, to: the bounds.
    ArgumentError: when `from_` is above `to`.
    """
    if from_ > to:
        raise wrong(
            "uniform_", "to", f"at least from_ = {from_}", to, "swap the bounds", ArgumentError
        )
    return dispatch(_UNIFORM_, (input,), {"low": from_, "high": to, "generator": generator})


@functor("Tensor", samples="fixed(x(2, 3)); fixed(x(2, 3)), 1.0, 2")
def normal_(
    input: FloatingOrComplex,
    mean: Finite = 0.0,
    std: Spread = 1.0,
    *,
    generator: RandomSource = None,
) -> Tensor:
    """Fill a tensor, in place, with normal numbers."""


@functor("Tensor", samples="fixed(x(60)); fixed(i(60)), 0.2")
def bernoulli_(input: AnyTensor, p: Probability = 0.5, *, generator: RandomSource = None) -> Tensor:
    """Fill a tensor, in place, with 1 with probability `p`, else 0."""


@functor("Tensor", samples="fixed(x(2, 3)); fixed(i(20)), 500; fixed(x(20)), -200, 500")
def random_(
    input: AnyTensor,
    from_: Any = 0,
    to: Any = None,
    *,
    generator: RandomSource = None,
) -> Tensor:
    """Fill a tensor, in place, with integers from [from_, to); `random_(to)` begins at 0.

    from_, to: the bounds. By default from 0 to the largest integer of the dtype; of a floating
    one, as far as it holds all integers.
    DTypeError: when the tensor is complex.
    ArgumentError: when the interval is empty, or the dtype cannot hold it.
    """
    op, dtype = "random_", real("random_", input).dtype
    if dtype.kind == "f":
        low, high = -(2 ** (np.finfo(dtype).nmant + 1)), 2 ** (np.finfo(dtype).nmant + 1)
        least, most = int(np.finfo(dtype).min), int(np.finfo(dtype).max)
    else:
        whole = np.iinfo(np.uint8 if dtype.kind == "b" else dtype)
        low, high = int(whole.min), 1 if dtype.kind == "b" else int(whole.max)
        least, most = low, high
    if to is None and from_ != 0:
        from_, to = 0, from_
    begin, end = (0, high + 1) if to is None else _interval(op, from_, to)
    if begin < least or end - 1 > most:
        expected = f"numbers that {dtype} can hold, {least} to {most}"
        mend = "pass a smaller interval"
        raise wrong(op, "to", expected, f"{begin} to {end - 1}", mend, ArgumentError)
    return dispatch(_RANDOM_, (input,), {"low": begin, "high": end, "generator": generator})


@functor("Tensor", samples="fixed(x(2, 3)); fixed(x(2, 3)), 2")
def exponential_(
    input: RealFloating, lambd: Scale = 1.0, *, generator: RandomSource = None
) -> Tensor:
    """Fill a tensor, in place, with numbers of the density lambd exp(-lambd x), x > 0.

    lambd: the rate, above 0.
    """


@functor("Tensor", samples="fixed(x(60)), 0.3; fixed(i(60)), 0.5")
def geometric_(input: RealNumber, p: Any, *, generator: RandomSource = None) -> Tensor:
    """Fill a tensor, in place, with how many trials the first success of probability `p` takes.

    p: between 0 and 1.
    ArgumentError: when `p` is not between 0 and 1.
    """
    if not 0 < (chance := check_real("geometric_", "p", p)) < 1:
        raise wrong("geometric_", "p", "between 0 and 1", p, "pass a probability", ArgumentError)
    return dispatch(_GEOMETRIC_, (input,), {"p": chance, "generator": generator})


@functor("Tensor", samples="fixed(x(2, 3)); fixed(x(2, 3)), 0.0, 0.5")
def log_normal_(
    input: RealFloating, mean: Finite = 1.0, std: Scale = 2.0, *, generator: RandomSource = None
) -> Tensor:
    """Fill a tensor, in place, with exp of normal numbers.

    mean, std: of the normal numbers.
    """


@functor("Tensor", samples="fixed(x(2, 3)); fixed(x(2, 3)), 0.0, 0.5")
def cauchy_(
    input: RealFloating, median: Finite = 0.0, sigma: Scale = 1.0, *, generator: RandomSource = None
) -> Tensor:
    """Fill a tensor, in place, with numbers of the density σ / (π ((x - median)² + σ²)).

    sigma: half the width at half the height.
    """


@functor("", samples="fixed(x(2, 3)), 0.0, 1.0, -1.0, 2.0")
def trunc_normal_(
    input: FloatingOrComplex,
    mean: Finite,
    std: Finite,
    low: Finite,
    high: Finite,
    *,
    generator: RandomSource = None,
) -> Tensor:
    """Fill a tensor, in place, with normal numbers cut off outside [low, high]."""


@functor("", samples="fixed(x(2, 3)), 1.0")
def orthogonal_(
    input: FloatingOrComplex, gain: Finite, *, generator: RandomSource = None
) -> Tensor:
    """Fill a tensor, in place, with a (semi-)orthogonal matrix times `gain`."""
