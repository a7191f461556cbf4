"""Writes into every dtype, by `out=` and in place: what runs, and its values, are PyTorch's."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.functors.declaring.declare import DECLARATIONS
from oneflow_lite.functors.declaring.samples import samples
from oneflow_lite.ops.exposure import load_all
from oneflow_lite.testing import Fixed, Sample
from tests.functors.declared import counterpart

torch = pytest.importorskip("torch")

DTYPES = "float32 float64 int64 bool complex64 complex128".split()
# Where PyTorch refuses a dtype of out to which the result could be cast, and here it is cast.
_OF_A_KIND = "by its overload, or by the size of the input"
_REAL = "a complex out for a real result"
CAST_HERE = {
    **dict.fromkeys(
        "clamp clamp_min clamp_max max min inner matrix_power lerp abs normal".split(), _OF_A_KIND
    ),
    **{f"fft_{kind}{n}": _REAL for kind in ("irfft", "hfft") for n in ("", "2", "n")},
    **dict.fromkeys(("var", "std", "bernoulli"), _REAL),
    **dict.fromkeys(
        ("split_copy", "split_with_sizes_copy", "unbind_copy"), "outs that have to grow first"
    ),
    **dict.fromkeys(("fft_ihfft", "fft_ihfftn"), "a result of another precision"),
    "fft_ifft": "a result of a real input of another precision",
    "ldexp": "PyTorch fails by an assertion of its own",
    "mean": "the imaginary part is dropped with a warning, as in sum",
    "nansum": "the imaginary part is dropped with a warning, as in sum",
    "nanmean": "complex numbers",
    "randint": "bounds that are no integers",
}
# What PyTorch runs, and here raises.
_BOOL = "a sum of truth values is a number; use any() or all()"
REFUSED = {
    **dict.fromkeys("sum prod cumsum cumprod nansum".split(), _BOOL),
    **dict.fromkeys(("any", "all"), "uint8, into which PyTorch casts the input first"),
    "logsumexp": "a real out would drop the imaginary part",
    "addmm": "a factor that integers cannot be multiplied by",
    "addcmul": "a factor that integers cannot be multiplied by",
}
# Where the values are not determined, or PyTorch's are wrong.
NOT_COMPARED = set("topk kthvalue linalg_svd multinomial bernoulli normal randint".split())
NOT_COMPARED |= {"polygamma", "fft_ihfftn"}  # next to a pole; empty
NOT_COMPARED |= {"cholesky_inverse"}  # of a complex diagonal, which no such factor has


def functors() -> Iterator[str]:
    """Yield the functors that take `out=`, and have a counterpart and a sample with a tensor."""
    load_all("functors")
    for name in sorted(DECLARATIONS):
        declaration = DECLARATIONS.get(name)
        given = samples(name)[:1] if declaration.out else []
        if given and given[0].args and counterpart(torch, declaration) is not None:
            yield name


def _cast(array: np.ndarray, dtype: str) -> np.ndarray:
    if array.dtype.kind not in "fc":
        return array
    if dtype.startswith("complex"):
        return (array if array.dtype.kind == "c" else array + 0.5j * array).astype(dtype)
    return array.real.astype(dtype)


def _made(lib: Any, value: Any, dtype: str) -> Any:
    if isinstance(value, Fixed):
        return lib.tensor(np.asarray(value.array))
    if isinstance(value, np.ndarray):
        return lib.tensor(_cast(value, dtype))
    if isinstance(value, (list, tuple)):
        return type(value)(_made(lib, each, dtype) for each in value)
    return getattr(lib, str(value)) if isinstance(value, np.dtype) else value


def _run(
    lib: Any, function: Callable[..., Any], sample: Sample, dtype: str, outs: list[str] | None
) -> Any:
    """Return the results as arrays, or the error; given dtypes, results are written into outs."""
    args = [_made(lib, value, dtype) for value in sample.args]
    kwargs = {name: _made(lib, value, dtype) for name, value in sample.kwargs.items()}
    given = [lib.empty(0, dtype=getattr(lib, each)) for each in outs or ()]
    if outs is not None:
        kwargs["out"] = given[0] if len(given) == 1 else tuple(given)
    try:
        result = function(*args, **kwargs)
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        return error
    results = given or (result if isinstance(result, tuple) else (result,))
    return [np.array(y.detach().resolve_conj().numpy()) for y in results]


@pytest.mark.parametrize("name", functors())
def test_dtypes_of_out(name: str) -> None:
    declaration = DECLARATIONS.get(name)
    ours, theirs = declaration.function, counterpart(torch, declaration)
    sample, wrong = samples(name)[0], []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for dtype in DTYPES:
            mine, other = (
                _run(*each, sample, dtype, None) for each in ((flow, ours), (torch, theirs))
            )
            if isinstance(mine, Exception) or isinstance(other, Exception):
                continue  # whether it runs at all, other tests ask
            plain = [y.dtype.name for y in other]
            for place, target in ((i, d) for i in range(len(plain)) for d in DTYPES):
                outs = [*plain[:place], target, *plain[place + 1 :]]
                mine, other = (
                    _run(*each, sample, dtype, outs) for each in ((flow, ours), (torch, theirs))
                )
                what = f"{dtype}, out {target} at {place}"
                if isinstance(other, TypeError):  # it has no out
                    continue
                if isinstance(other, Exception):
                    if not isinstance(mine, Exception) and name not in CAST_HERE:
                        wrong.append(f"{what}: runs, PyTorch raises {other}")
                elif isinstance(mine, Exception):
                    if name not in REFUSED:
                        wrong.append(f"{what}: {mine}")
                elif name not in NOT_COMPARED and not all(map(_close, mine, other)):
                    wrong.append(f"{what}: {mine}, PyTorch {other}")
    assert not wrong, "\n".join(wrong)


def _close(mine: np.ndarray, other: np.ndarray) -> bool:
    alike = mine.shape == other.shape and mine.dtype == other.dtype
    return alike and np.allclose(mine, other, rtol=1e-4, atol=1e-5, equal_nan=True)


# --- In place -------------------------------------------------------------------------------------

_MORE = "more dtypes than in PyTorch"
TAKEN_HERE = {
    **dict.fromkeys(
        "lerp_ heaviside_ true_divide_ divide_ bernoulli_ round_ ldexp_".split(), _MORE
    ),
    **dict.fromkeys("scatter_ scatter_add_ scatter_reduce_ index_fill_".split(), _MORE),
    **dict.fromkeys("index_add_ index_copy_ index_reduce_ put_".split(), _MORE),
    **dict.fromkeys("abs_ absolute_ ceil_ floor_ trunc_ fix_ clip_ clamp_ pow_".split(), "bools"),
    **dict.fromkeys("addcmul_ addmm_ addmv_ addbmm_ baddbmm_".split(), "bools"),
}
REFUSED_IN_PLACE = {
    "addcmul_": "a factor that integers cannot be multiplied by",
    **dict.fromkeys(("cumsum_", "cumprod_"), _BOOL),
    **dict.fromkeys(("bitwise_left_shift_", "bitwise_right_shift_"), "bools as distances"),
}
DRAWN = set("random_ uniform_ normal_ bernoulli_ exponential_ geometric_ log_normal_".split())
DRAWN |= {"cauchy_", "rrelu_", "dropout_"}


def twins() -> Iterator[tuple[str, str]]:
    """Yield the methods that write, and the functors whose samples are theirs."""
    load_all("functors")
    for functor in sorted(DECLARATIONS):
        declaration = DECLARATIONS.get(functor)
        for place, name in (*declaration.places, *declaration.twin_places):
            written = place == "Tensor" and name.endswith("_") and not name.endswith("__")
            if written and hasattr(torch.Tensor, name) and samples(functor):
                yield name, functor


def _pairs(sample: Sample) -> list[tuple[str, str]]:
    others = [*sample.args[1:], *sample.kwargs.values()]
    several = any(isinstance(value, np.ndarray) for value in others)
    return [(one, other) for one in DTYPES for other in (DTYPES if several else DTYPES[:1])]


@pytest.mark.parametrize(("name", "functor"), twins())
def test_dtypes_in_place(name: str, functor: str) -> None:
    sample, wrong = samples(functor)[0], []
    if not isinstance(sample.args[0], (np.ndarray, Fixed)):
        pytest.skip("the sample begins with no tensor")

    def run(lib: Any, one: str, other: str) -> Any:
        first = sample.args[0]
        target = lib.tensor(np.asarray(getattr(first, "array", first)).astype(one))
        args = [_made(lib, value, other) for value in sample.args[1:]]
        kwargs = {word: _made(lib, value, other) for word, value in sample.kwargs.items()}
        try:
            getattr(target, name)(*args, **kwargs)
        except (RuntimeError, ValueError, TypeError, IndexError) as error:
            return error
        return np.array(target.resolve_conj().numpy())

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for one, other in _pairs(sample):
            mine, theirs = run(flow, one, other), run(torch, one, other)
            if isinstance(theirs, Exception):
                if not isinstance(mine, Exception) and name not in TAKEN_HERE:
                    wrong.append(f"{one} and {other}: runs, PyTorch raises {theirs}")
            elif isinstance(mine, Exception):
                if name not in REFUSED_IN_PLACE:
                    wrong.append(f"{one} and {other}: {mine}")
            elif name not in DRAWN and not _close(mine, theirs):
                wrong.append(f"{one} and {other}: {mine}, PyTorch {theirs}")
    assert not wrong, "\n".join(wrong)
