"""The same random numbers for both libraries, whatever order they draw in.

A draw is known by what was drawn, its shape, and how many of the same came before it. On our side
the stream of every generator becomes a `Draws`; on PyTorch's the public random functions do, by
the formulas of our kernels.
"""

from __future__ import annotations

import collections
import functools
import math
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special


class Draws:
    """Stands in for `numpy.random.Generator`."""

    def __init__(self) -> None:
        self.counts: collections.Counter[str] = collections.Counter()
        self.bit_generator = np.random.PCG64(0)  # whose state may be kept and given back

    def _fresh(self, what: str, shape: Any) -> np.random.Generator:
        key = f"{what} {shape}"
        self.counts[key] += 1
        return np.random.default_rng(zlib.crc32(f"{key} {self.counts[key]}".encode()))

    def _plain(self, what: str, shape: Any, dtype: Any, out: Any) -> Any:
        shape = () if shape is None else tuple(np.atleast_1d(shape).tolist())
        values = getattr(self._fresh(what, shape), what)(shape)
        if out is None:
            return np.asarray(values, dtype)
        out[...] = values
        return out

    def random(self, size: Any = None, dtype: Any = float, out: Any = None) -> Any:
        return np.minimum(
            self._plain("random", size, dtype, out), np.nextafter(np.asarray(1, dtype), 0)
        )

    def standard_normal(self, size: Any = None, dtype: Any = float, out: Any = None) -> Any:
        return self._plain("standard_normal", size, dtype, out)

    def standard_exponential(self, size: Any = None, dtype: Any = float, out: Any = None) -> Any:
        return self._plain("standard_exponential", size, dtype, out)

    def __getattr__(self, what: str) -> Callable[..., Any]:
        def draw(*args: Any, **kwargs: Any) -> Any:
            shape = kwargs.get("size", args[-1])
            return getattr(self._fresh(what, shape), what)(*args, **kwargs)

        return draw


def of_ours(flow: Any) -> None:
    """Let every generator of oneflow_lite draw from one `Draws`."""
    draws = Draws()
    flow.Generator.stream = lambda self, xp: draws


def of_pytorch(torch: Any) -> None:
    """Replace PyTorch's public random functions."""
    draws = Draws()
    F = torch.nn.functional

    def made(array: Any, like: Any = None, **options: Any) -> Any:
        requires_grad = options.pop("requires_grad", False)
        dtype = options.pop("dtype", None) or (like.dtype if like is not None else None)
        options = {k: v for k, v in options.items() if k == "device" and v is not None}
        y = torch.from_numpy(np.array(array)).to(dtype=dtype, **options)
        return y.requires_grad_() if requires_grad else y

    def sizes(given: Any, options: dict[str, Any]) -> tuple[int, ...]:
        if "size" in options:
            given = (options.pop("size"),)
        if len(given) == 1 and isinstance(given[0], (tuple, list)):
            given = given[0]
        return tuple(int(n) for n in given)

    def floats(what: str, shape: Any, dtype: Any = None) -> Any:
        dtype = torch.get_default_dtype() if dtype is None else dtype
        if dtype.is_complex:
            parts = getattr(draws, what)((2, *shape)) * 0.5**0.5
            return parts[0] + 1j * parts[1]
        wide = np.float64 if dtype == torch.float64 else np.float32
        return getattr(draws, what)(shape, wide)

    def factory(what: str) -> Callable[..., Any]:
        def draw(*shape: Any, generator: Any = None, out: Any = None, **options: Any) -> Any:
            dtype = options.pop("dtype", None) or torch.get_default_dtype()
            return made(floats(what, sizes(shape, options), dtype), dtype=dtype, **options)

        return draw

    def factory_like(what: str) -> Callable[..., Any]:
        def draw(input: Any, generator: Any = None, memory_format: Any = None, **o: Any) -> Any:
            dtype = o.pop("dtype", None) or input.dtype
            return made(floats(what, tuple(input.shape), dtype), dtype=dtype, **o)

        return draw

    def randint(*args: Any, generator: Any = None, **options: Any) -> Any:
        given = list(args)
        low = options.pop("low", None)
        high = options.pop("high", None)
        shape = options.pop("size", None)
        shape = given.pop() if shape is None else shape
        if given:
            low, high = given if len(given) == 2 else (low, given[0])
        shape = tuple(int(n) for n in ([shape] if isinstance(shape, int) else shape))
        dtype = options.pop("dtype", None) or torch.int64
        return made(draws.integers(int(low or 0), int(high), shape), dtype=dtype, **options)

    def randint_like(input: Any, low: Any, high: Any = None, **options: Any) -> Any:
        low, high = (0, low) if high is None else (low, high)
        options.setdefault("dtype", input.dtype)
        return randint(low, high, tuple(input.shape), **options)

    def randperm(n: int, generator: Any = None, **options: Any) -> Any:
        options.setdefault("dtype", torch.int64)
        return made(np.argsort(draws.random(n)), **options)

    def normal(mean: Any, std: Any = 1.0, size: Any = None, generator: Any = None, **o: Any) -> Any:
        if size is not None:
            return made(floats("standard_normal", tuple(size)) * std + mean, None, **{
                "dtype": torch.get_default_dtype(), **o})  # fmt: skip
        tensors = [x for x in (mean, std) if isinstance(x, torch.Tensor)]
        shape = np.broadcast_shapes(*[tuple(x.shape) for x in tensors])
        noise = made(floats("standard_normal", shape, tensors[0].dtype), tensors[0])
        return (noise * std + mean).detach()

    def chances(x: Any) -> Any:
        return made(floats("random", tuple(x.shape), x.dtype), x)

    def bernoulli(input: Any, p: Any = None, generator: Any = None, **options: Any) -> Any:
        chance = input.detach() if p is None else p
        return (chances(input) < chance).to(input.dtype)

    def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
        if not training or not p:
            return input
        return input * ((chances(input) >= p).to(input.dtype) * (0.0 if p == 1 else 1 / (1 - p)))

    def channels(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
        if not training or not p:
            return input
        ones = input.new_empty((*input.shape[:2], *(1,) * (input.dim() - 2)))
        return input * dropout(torch.ones_like(ones), p)

    def multinomial(x: Any, num_samples: int, replacement: bool = False, **options: Any) -> Any:
        x = x.detach().numpy()
        if not replacement:
            with np.errstate(divide="ignore", invalid="ignore"):
                arrivals = draws.standard_exponential(x.shape) / x
            if num_samples == 1:
                return made(arrivals.argmin(-1)[..., None])
            return made(arrivals.argsort(-1)[..., :num_samples])
        lines = np.arange(x[..., 0].size, dtype=np.float64).reshape(*x.shape[:-1], 1)
        bounds = x.cumsum(-1, np.float64)
        bounds = bounds / bounds[..., -1:] + lines
        places = lines + draws.random((*x.shape[:-1], num_samples))
        places = np.minimum(places, np.nextafter(lines + 1, lines))
        found = np.searchsorted(bounds.reshape(-1), places, side="right")
        return made(found - lines.astype(np.int64) * x.shape[-1])

    def in_place(values: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(values)
        def write(self: Any, *args: Any, generator: Any = None, **kwargs: Any) -> Any:
            with torch.no_grad():
                return self.copy_(made(values(self, *args, **kwargs)))

        return write

    @in_place
    def uniform_(self: Any, a: float = 0.0, b: float = 1.0, **named: Any) -> Any:
        a, b = float(named.get("from", a)), float(named.get("to", b))
        return floats("random", tuple(self.shape), self.dtype) * (b - a) + a

    @in_place
    def normal_(self: Any, mean: float = 0.0, std: float = 1.0) -> Any:
        mean = mean * (1 + 1j) if self.is_complex() else mean
        return floats("standard_normal", tuple(self.shape), self.dtype) * std + mean

    @in_place
    def bernoulli_(self: Any, p: Any = 0.5) -> Any:
        if isinstance(p, torch.Tensor):
            return (chances(self) < p).to(self.dtype).numpy()
        return (draws.random(tuple(self.shape)) < p).astype(np.float64)

    @in_place
    def exponential_(self: Any, lambd: float = 1.0) -> Any:
        y = np.log1p(-floats("random", tuple(self.shape), self.dtype)) / -lambd
        return np.maximum(y, np.finfo(y.dtype).tiny)

    @in_place
    def random_(self: Any, low: Any = None, high: Any = None) -> Any:
        if high is None:
            low, high = 0, low
        if high is None:
            floating = self.dtype.is_floating_point
            high = 2**24 if floating else min(torch.iinfo(self.dtype).max, 2**62) + 1
        return draws.integers(low, high - 1, tuple(self.shape), endpoint=True)

    @in_place
    def log_normal_(self: Any, mean: float = 1.0, std: float = 2.0) -> Any:
        return np.exp(floats("standard_normal", tuple(self.shape), self.dtype) * std + mean)

    @in_place
    def truncated(self: Any, mean: float, std: float, low: float, high: float) -> Any:
        wide = std * math.sqrt(2.0)
        first, last = (math.erf((bound - mean) / wide) for bound in (low, high))
        y = floats("random", tuple(self.shape), self.dtype) * (last - first) + first
        return np.clip(scipy.special.erfinv(y) * wide + mean, low, high)

    @in_place
    def cauchy_(self: Any, median: float = 0.0, sigma: float = 1.0) -> Any:
        y = floats("random", tuple(self.shape), self.dtype) - 0.5
        return np.tan(y * math.pi) * sigma + median

    for name, what in (("rand", "random"), ("randn", "standard_normal")):
        setattr(torch, name, factory(what))
        setattr(torch, f"{name}_like", factory_like(what))
    for function in (randint, randint_like, randperm, normal, bernoulli, multinomial):
        setattr(torch, function.__name__, function)
    torch.dropout = lambda x, p, train: dropout(x, p, train)
    for function in (uniform_, normal_, bernoulli_, exponential_, random_, log_normal_, cauchy_):
        setattr(torch.Tensor, function.__name__, function)
    torch.Tensor.bernoulli, torch.Tensor.multinomial = bernoulli, multinomial
    torch.nn.init._no_grad_trunc_normal_ = truncated
    F.dropout = dropout
    F.dropout1d = F.dropout2d = F.dropout3d = channels
