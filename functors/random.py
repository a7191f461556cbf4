"""Random tensors and the generators they are drawn from."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from oneflow_lite.device import Device, as_device
from oneflow_lite.dtype import as_dtype, default_float
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, DTypeError, bad_argument
from oneflow_lite.functors.checks import check_int, check_tensor, require_floating
from oneflow_lite.functors.creation import check_real, check_sizes
from oneflow_lite.functors.elementwise_checks import real_floating
from oneflow_lite.functors.out import fill_out, out_options, write_out
from oneflow_lite.interpreter import dispatch
from oneflow_lite.op_expr import op_expr
from oneflow_lite.registry import register_functor
from oneflow_lite.tensor import Tensor

_UNIFORM = op_expr("random_uniform")
_NORMAL = op_expr("random_normal")
_INTEGERS = op_expr("random_integers")
_PERMUTATION = op_expr("random_permutation")
_DROPOUT_MASK = op_expr("dropout_mask")
_BERNOULLI = op_expr("bernoulli")
_UNIFORM_ = op_expr("uniform_")
_NORMAL_ = op_expr("normal_")
_BERNOULLI_ = op_expr("bernoulli_")
_TRUNC_NORMAL_ = op_expr("trunc_normal_")
_ORTHOGONAL_ = op_expr("orthogonal_")


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
            raise bad_argument(
                ArgumentError,
                "manual_seed",
                "seed",
                expected="-2**63 to 2**64 - 1",
                got=number,
                mend="take it modulo 2**64",
            )
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


def _generator(op: str, generator: Any) -> Generator:
    if generator is None:
        return default_generator
    if isinstance(generator, Generator):
        return generator
    raise bad_argument(
        ArgumentTypeError,
        op,
        "generator",
        expected="a flow.Generator or None",
        got=type(generator).__name__,
        mend="make one with flow.Generator()",
    )


def _draw(
    op: Any,
    name: str,
    size: tuple[Any, Any],
    dtype: Any,
    device: Any,
    generator: Any,
    requires_grad: bool,
    out: Tensor | None = None,
) -> Tensor:
    if out is not None:
        dtype, device = out_options(name, out, dtype, device)
    chosen = default_float() if dtype is None else as_dtype(name, dtype)
    if chosen.kind not in "fc":
        raise bad_argument(
            DTypeError,
            name,
            "dtype",
            expected="a floating point dtype",
            got=chosen,
            mend="use randint for integers",
        )
    attrs = {
        "shape": check_sizes(name, *size),
        "dtype": chosen,
        "generator": _generator(name, generator),
        "device": as_device(device),
    }
    made: Tensor = dispatch(op, (), attrs).requires_grad_(requires_grad)
    return made if out is None else fill_out(name, out, made)


@register_functor("rand")
def rand(
    *sizes: Any,
    size: Any = None,
    generator: Generator | None = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return numbers drawn uniformly from [0, 1).

    >>> import oneflow_lite as flow
    >>> flow.rand(2, 3).shape
    (2, 3)
    """
    return _draw(_UNIFORM, "rand", (sizes, size), dtype, device, generator, requires_grad, out)


@register_functor("randn")
def randn(
    *sizes: Any,
    size: Any = None,
    generator: Generator | None = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return numbers drawn from the normal distribution with mean 0 and variance 1."""
    return _draw(_NORMAL, "randn", (sizes, size), dtype, device, generator, requires_grad, out)


@register_functor("randint")
def randint(
    low: int,
    high: Any = None,
    size: Any = None,
    *,
    generator: Generator | None = None,
    dtype: Any = None,
    device: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return integers drawn uniformly from [low, high); `randint(high, size)` begins at 0.

    >>> import oneflow_lite as flow
    >>> flow.randint(3, 4, (2,))
    tensor([3, 3])
    """
    if out is not None:
        dtype, device = out_options("randint", out, dtype, device)
    if size is None:
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    low, high = check_int("randint", "low", low), check_int("randint", "high", high)
    if low >= high:
        raise bad_argument(
            ArgumentError,
            "randint",
            "high",
            expected=f"more than low = {low}",
            got=high,
            mend="pass an interval that is not empty",
        )
    attrs = {
        "low": low,
        "high": high,
        "shape": check_sizes("randint", (size,)),
        "dtype": as_dtype("randint", np.int64 if dtype is None else dtype),
        "generator": _generator("randint", generator),
        "device": as_device(device),
    }
    made: Tensor = dispatch(_INTEGERS, (), attrs)
    return made if out is None else fill_out("randint", out, made)


@register_functor("randperm")
def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    dtype: Any = None,
    device: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the integers from 0 to n - 1 in random order."""
    if out is not None:
        dtype, device = out_options("randperm", out, dtype, device)
    attrs = {
        "n": check_int("randperm", "n", n, 0),
        "dtype": as_dtype("randperm", np.int64 if dtype is None else dtype),
        "generator": _generator("randperm", generator),
        "device": as_device(device),
    }
    made: Tensor = dispatch(_PERMUTATION, (), attrs)
    return made if out is None else fill_out("randperm", out, made)


@register_functor("rand_like")
def rand_like(input: Tensor, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Return uniform numbers in the shape, dtype and device of `input`."""
    check_tensor("rand_like", "input", input)
    dtype = input.dtype if dtype is None else dtype
    return rand(input.shape, dtype=dtype, device=input.device, requires_grad=requires_grad)


@register_functor("randn_like")
def randn_like(input: Tensor, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Return normal numbers in the shape, dtype and device of `input`."""
    check_tensor("randn_like", "input", input)
    dtype = input.dtype if dtype is None else dtype
    return randn(input.shape, dtype=dtype, device=input.device, requires_grad=requires_grad)


@register_functor("dropout_mask")
def dropout_mask(input: Tensor, p: float, generator: Generator | None = None) -> Tensor:
    """Return 0 with probability `p` and 1 / (1 - p) otherwise, per element; no gradient."""
    attrs = {"p": p, "generator": _generator("dropout", generator)}
    return dispatch(_DROPOUT_MASK, (require_floating("dropout", input).detach(),), attrs)


@register_functor("bernoulli")
def bernoulli(
    input: Tensor, *, generator: Generator | None = None, out: Tensor | None = None
) -> Tensor:
    """Return 1 with the probability that `input` gives per element, else 0.

    Raises
    ------
    ArgumentError
        When a value is no probability (checked on the CPU only).
    DTypeError
        When the input is not real and floating.
    """
    if out is not None:
        return write_out("bernoulli", out, bernoulli, input, generator=generator)
    attrs = {"generator": _generator("bernoulli", generator)}
    return dispatch(_BERNOULLI, (real_floating("bernoulli", input),), attrs)


@register_functor("uniform_")
def uniform_(
    input: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill a tensor, in place, with numbers drawn uniformly from [from_, to)."""
    from_, to = check_real("uniform_", "from_", from_), check_real("uniform_", "to", to)
    if from_ > to:
        raise bad_argument(
            ArgumentError,
            "uniform_",
            "to",
            expected=f"at least from_ = {from_}",
            got=to,
            mend="swap the bounds",
        )
    attrs = {"low": from_, "high": to, "generator": _generator("uniform_", generator)}
    return dispatch(_UNIFORM_, (require_floating("uniform_", input),), attrs)


@register_functor("normal_")
def normal_(
    input: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill a tensor, in place, with normal numbers."""
    mean, std = check_real("normal_", "mean", mean), check_real("normal_", "std", std)
    if std < 0:
        raise bad_argument(
            ArgumentError,
            "normal_",
            "std",
            expected="a number of at least 0",
            got=std,
            mend="pass the standard deviation",
        )
    attrs = {"mean": mean, "std": std, "generator": _generator("normal_", generator)}
    return dispatch(_NORMAL_, (require_floating("normal_", input),), attrs)


@register_functor("bernoulli_")
def bernoulli_(input: Tensor, p: float = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill a tensor, in place, with 1 with probability `p`, else 0."""
    if not 0 <= check_real("bernoulli_", "p", p) <= 1:
        raise bad_argument(
            ArgumentError,
            "bernoulli_",
            "p",
            expected="a probability, 0 to 1",
            got=p,
            mend="pass the probability of a 1",
        )
    attrs = {"p": p, "generator": _generator("bernoulli_", generator)}
    return dispatch(_BERNOULLI_, (check_tensor("bernoulli_", "input", input),), attrs)


@register_functor("trunc_normal_")
def trunc_normal_(
    input: Tensor,
    mean: float,
    std: float,
    low: float,
    high: float,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Fill a tensor, in place, with normal numbers cut off outside [low, high]."""
    bounds = {"mean": mean, "std": std, "low": low, "high": high}
    attrs = {name: check_real("trunc_normal_", name, value) for name, value in bounds.items()}
    attrs["generator"] = _generator("trunc_normal_", generator)
    return dispatch(_TRUNC_NORMAL_, (require_floating("trunc_normal_", input),), attrs)


@register_functor("orthogonal_")
def orthogonal_(input: Tensor, gain: float, *, generator: Generator | None = None) -> Tensor:
    """Fill a tensor, in place, with a (semi-)orthogonal matrix times `gain`."""
    attrs = {
        "gain": check_real("orthogonal_", "gain", gain),
        "generator": _generator("orthogonal_", generator),
    }
    return dispatch(_ORTHOGONAL_, (require_floating("orthogonal_", input),), attrs)
