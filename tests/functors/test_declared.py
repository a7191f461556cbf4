"""Every declared functor, on every sample of its declaration.

A declaration is found because it was made: no list here names an op, but for what PyTorch does
otherwise.
"""

from __future__ import annotations

import contextlib
import warnings
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.functors.declaring.declare import DECLARATIONS
from oneflow_lite.ops.registry import FUNCTORS
from oneflow_lite.testing import check_op
from tests.conftest import quick_differences
from tests.functors.agreement import compare
from tests.functors.declared import Call, calls, counterpart
from tests.functors.meant import meant

NAMES = list(DECLARATIONS)
CALLS = list(calls())
FIRST = {call.declaration.name: call for call in reversed(CALLS)}
EACH = pytest.mark.parametrize("call", CALLS, ids=str)
EXPOSED = Counter(
    entry for name in NAMES for d in [DECLARATIONS.get(name)] for entry in d.places + d.twin_places
)

# Functors without a sample: they have no tensor result, or PyTorch has nothing like them.
UNSAMPLED: set[str] = {
    "allclose",
    "empty",
    "empty_like",
    "equal",
    "histogramdd",
    "is_complex",
    "is_floating_point",
    "is_tensor",
    "new_empty",
    "new_empty_strided",
    "numel",
    "result_type",
}
# Where our result is not PyTorch's, and why.
DIFFERENT: dict[str, str] = {
    "hardsigmoid": "PyTorch divides by a float32 six, and has no second derivative",
    "as_strided_scatter": "PyTorch's gradient by input fails PyTorch's own gradcheck",
    "view_as_complex_copy": "PyTorch does not differentiate it",
    "ctc_loss": "PyTorch's gradient is that by scores before a log_softmax",
    "native_layer_norm": "PyTorch does not differentiate the statistics",
    "native_group_norm": "PyTorch does not differentiate the statistics",
    "native_batch_norm": "PyTorch does not differentiate the statistics",
}
# What is NaN of nothing, or of a single element, so that there is no derivative to compare.
_MASKED = {"masked_mean", "masked_var", "masked_std"}
NAN_OF_NOTHING = {"nanmean", "var", "std", "var_mean", "std_mean", "cov", "corrcoef", *_MASKED}
# What works on complex numbers in PyTorch and raises here, and why.
NOT_COMPLEX: dict[str, str] = {
    "cholesky_inverse": "LAPACK takes the diagonal of the factor to be real",
    "mse_loss": "PyTorch takes them with a weight alone",
    "masked_median": "PyTorch drops the imaginary parts",
}
# What is certified for inputs in C order alone, as they are, and why.
AS_THEY_LIE: dict[str, str] = {
    "view": "refuses what would need a copy",
    "view_as": "refuses what would need a copy",
    "as_strided": "reads memory, whatever lies there",
    "as_strided_copy": "reads memory, whatever lies there",
    "as_strided_scatter": "reads memory, whatever lies there",
    "view_copy": "refuses what would need a copy",
    "view_as_complex_copy": "refuses what would need a copy",
    "view_as_complex": "refuses pairs that do not lie side by side",
}
# What has another dtype than its inputs, and why.
WIDENS: dict[str, str] = {"float_power": "it is there to compute in float64"}
# What `flow.compile` runs eagerly, and why.
FALLS_BACK: dict[str, str] = {
    "repeat_interleave": "the shape depends on the counts, which are values",
    "tensor_split": "a tensor of indices is read",
    "linalg_lstsq": "the rank decides whether there are residuals",
    **dict.fromkeys(
        "masked_select nonzero nonzero_static argwhere unique unique_consecutive bincount".split(),
        "the shape of the result depends on values",
    ),
    "ctc_loss": "labellings in a row: how long the longest is, is a value",
    "svd_lowrank": "returns some outputs of svd, and others changed",
    "pca_lowrank": "returns some outputs of svd, and others changed",
}
# Where PyTorch has another function of that name.
ANOTHER: dict[str, str] = {
    "flow.embedding_bag": "it takes the weight first, and returns its bookkeeping",
    "functional.unfold": "it cuts images into columns",
    "linalg.diagonal": "it has other dimensions by default",
    "linalg.vander": "it knows batches, and no order",
}
# What does not run on CUDA, and why.
NOT_ON_CUDA: dict[str, str] = {}


def test_every_functor_has_a_sample():
    sampled = {call.declaration.name for call in CALLS}
    assert set(NAMES) - sampled - UNSAMPLED == set()
    assert sampled & UNSAMPLED == set()


def is_compared(call: Call) -> bool:
    """Return whether `test_agrees_with_pytorch` compares both derivatives."""
    name = call.declaration.name
    if find_spec("torch") is None or name in DIFFERENT:
        return False
    import torch

    theirs = counterpart(torch, call.declaration)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return theirs is not None and order_of(torch, call, meant(name, theirs)) == 2


@EACH
def test_certified(call: Call):
    """Derivatives to second order, dtypes, layouts, 0-d and empty inputs.

    Transforms are checked at one call of each; tests/transforms goes through all samples.
    """
    if not is_random(call):
        name = call.declaration.name
        free = name not in AS_THEY_LIE
        degenerate = free and name not in NAN_OF_NOTHING
        function = meant(name, FUNCTORS.get(name))
        single = name not in WIDENS
        with quick_differences() if is_compared(call) else contextlib.nullcontext():
            check_op(
                function,
                [call.sample],
                layouts=free,
                degenerate=degenerate,
                single_precision=single,
                transforms=call is FIRST[name],
            )


@EACH
def test_agrees_with_pytorch(call: Call):
    torch = pytest.importorskip("torch")
    theirs = counterpart(torch, call.declaration)
    if theirs is None:
        pytest.skip("PyTorch has no such function")
    if call.declaration.name in DIFFERENT:
        pytest.skip(DIFFERENT[call.declaration.name])
    agree(torch, call, theirs)


@EACH
def test_complex_agrees_with_pytorch(call: Call):
    """We compute of complex numbers all that PyTorch does."""
    torch = pytest.importorskip("torch")
    theirs = counterpart(torch, call.declaration)
    real = [a for a in call.arrays if a.dtype.kind == "f"]
    name = call.declaration.name
    if theirs is None or not real or name in DIFFERENT or name in NOT_COMPLEX:
        pytest.skip("no such call")
    turned = call.with_arrays(
        lambda a: a + 0.37j * a[..., ::-1] if a.ndim else np.asarray(a + 0.37j)
    )
    if order_of(torch, turned, theirs) is None:
        pytest.skip("PyTorch refuses complex numbers here")
    agree(torch, turned, theirs)


@EACH
def test_compiled(call: Call):
    """A replay gives the bits of the call that was recorded; the judge holds it against eager."""
    name = call.declaration.name
    function = meant(name, FUNCTORS.get(name))
    compiled = flow.compile(call.written_out(function))
    found = []
    for _ in range(3):
        flow.manual_seed(3)
        found.append([y.numpy() for y in tensors(compiled(*leaves_of(call)))])
    for recorded, *replayed in zip(*found, strict=True):
        for y in replayed:
            np.testing.assert_array_equal(y, recorded)
    assert name in FALLS_BACK or not compiled.explain().fallbacks, compiled.explain().reasons


@pytest.mark.slow(but=400)
@pytest.mark.parametrize("device", ["cuda"], indirect=True)
@EACH
def test_on_cuda(call: Call, device: str):
    """Values and both derivatives, with no array of the host among them."""
    if call.declaration.name in NOT_ON_CUDA:
        pytest.skip(NOT_ON_CUDA[call.declaration.name])
    function = FUNCTORS.get(call.declaration.name)
    found: list[list[Any]] = []
    for place in ("cpu", device):
        flow.manual_seed(3)
        leaves = [flow.tensor(a, device=place, requires_grad=True) for a in call.arrays]
        arrays = []
        for order in derivatives(call.run(flow, function, *leaves, device=place), leaves):
            arrays += [y.detach().cpu().numpy() for y in order]
        found.append(arrays)
    if not is_random(call):
        for x, y in zip(*found, strict=True):
            np.testing.assert_allclose(y, x, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", [n for n in NAMES if DECLARATIONS.get(n).out])
def test_out(name):
    call = next(call for call in CALLS if call.declaration.name == name)
    with flow.no_grad():
        flow.manual_seed(3)
        expected = call.run(flow, FUNCTORS.get(name), *leaves_of(call))
        several = isinstance(expected, tuple)
        outs = tuple(flow.empty(0, dtype=y.dtype) for y in tensors(expected))
        call.sample.kwargs["out"] = outs if several else outs[0]
        try:
            flow.manual_seed(3)
            result = call.run(flow, FUNCTORS.get(name), *leaves_of(call))
        finally:
            del call.sample.kwargs["out"]
    given = tuple(result) if several else (result,)
    for x, y, z in zip(given, outs, tensors(expected), strict=True):
        assert x is y
        np.testing.assert_array_equal(y.numpy(), z.numpy())


@pytest.mark.parametrize("name", [n for n in NAMES if DECLARATIONS.get(n).has_twin])
def test_twin(name):
    """The in-place twin leaves what the functor returns, with the same gradients."""
    call = next(call for call in CALLS if call.declaration.name == name)
    results = []
    floats = call.run(flow, FUNCTORS.get(name), *leaves_of(call)).requires_grad
    for function in (FUNCTORS.get(name), FUNCTORS.get(f"{name}_")):
        leaves = leaves_of(call)
        given = [x * 1 for x in leaves]
        y = call.run(flow, function, *given)
        if not floats:  # nothing to differentiate
            results.append([y.double()])
            continue
        gradients = flow.autograd.grad(
            flow.view_as_real(y).sum() if y.is_complex() else y.square().sum(),
            leaves,
            allow_unused=True,
        )
        results.append([y, *[g for g in gradients if g is not None]])
    for x, y in zip(*results, strict=True):
        np.testing.assert_allclose(x.detach().numpy(), y.detach().numpy(), rtol=1e-12)


def test_every_name_is_taken_once():
    assert [entry for entry, times in EXPOSED.items() if times > 1] == []


@pytest.mark.parametrize("name", NAMES)
def test_is_exposed_where_it_says(name):
    roots = {"flow": flow, "Tensor": flow.Tensor, "functional": flow.nn.functional}
    declaration = DECLARATIONS.get(name)
    for place, alias in (*declaration.places, *declaration.twin_places):
        assert callable(getattr(roots.get(place) or getattr(flow, place), alias))


@pytest.mark.parametrize("name", NAMES)
def test_is_where_pytorch_has_it(name):
    torch = pytest.importorskip("torch")
    declaration = DECLARATIONS.get(name)
    public = {alias for place, alias in declaration.places}
    roots = {"flow": torch, "Tensor": torch.Tensor, "functional": torch.nn.functional}
    roots.update({each: getattr(torch, each) for each in ("linalg", "special", "fft")})
    for alias in public:
        if alias != declaration.name and not declaration.name.endswith(f"_{alias}"):
            continue
        if declaration.name != alias:  # linalg.norm is not torch.norm
            continue
        for place, root in roots.items():
            if callable(getattr(root, alias, None)) and f"{place}.{alias}" not in ANOTHER:
                declared = (place, alias) in EXPOSED or f"{place}_{alias}" in NAMES
                assert declared, f"{place}.{alias} is missing"


def leaves_of(call: Call) -> list[Any]:
    return [flow.tensor(a).requires_grad_() for a in call.arrays]


def tensors(result: Any) -> list[Any]:
    """Return the tensors of a result; other numbers as tensors."""
    parts = result if isinstance(result, (tuple, list)) else [result]
    found = [y if isinstance(y, flow.Tensor) else flow.tensor(y) for y in parts if y is not None]
    return [y.detach() for y in found] if not isinstance(result, flow.Tensor) else [result.detach()]


def derivatives(result: Any, leaves: list[Any]) -> Iterator[list[Any]]:
    """Yield the tensors of a result, then those of the first and second derivatives."""
    parts = result if isinstance(result, (tuple, list)) else [result]
    current = [y for y in parts if isinstance(y, flow.Tensor)]
    yield current
    for _ in range(2):
        wanted = [y for y in current if y.requires_grad]
        if not wanted:
            return
        real = [flow.view_as_real(y) if y.is_complex() else y for y in wanted]
        total = sum((y * y).sum() for y in real)
        found = flow.autograd.grad(total, leaves, create_graph=True, allow_unused=True)
        current = [g for g in found if g is not None]
        yield current


def is_random(call: Call) -> bool:
    """Return whether two runs of the call differ."""
    function = FUNCTORS.get(call.declaration.name)
    runs = [tensors(call.run(flow, function, *leaves_of(call))) for _ in range(2)]
    return any(not np.array_equal(x.numpy(), y.numpy(), True) for x, y in zip(*runs, strict=True))


def order_of(torch: Any, call: Call, theirs: Any) -> int | None:
    """Return how often PyTorch differentiates a call, at most twice; None if it refuses it."""
    try:
        leaves = [torch.tensor(a).requires_grad_() for a in call.arrays]
        result = call.run(torch, theirs, *leaves)
    except (RuntimeError, TypeError, ValueError, IndexError):
        return None
    outputs = result if isinstance(result, (tuple, list)) else [result]
    outputs = [y for y in outputs if isinstance(y, torch.Tensor) and y.requires_grad]
    for order in range(2):
        try:
            total = sum(torch.view_as_real(y.resolve_conj()).square().sum() if y.is_complex()
                        else y.square().sum() for y in outputs)  # fmt: skip
            if not outputs:
                return 2 if order else 0
            found = torch.autograd.grad(total, leaves, create_graph=True, allow_unused=True)
        except (RuntimeError, NotImplementedError):
            return order
        outputs = [g for g in found if g is not None and g.requires_grad]
    return 2


def agree(torch: Any, call: Call, theirs: Any) -> None:
    name = call.declaration.name
    function, theirs = meant(name, FUNCTORS.get(name)), meant(name, theirs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if is_random(call):
            ours = tensors(call.run(flow, function, *leaves_of(call)))
            result = call.run(torch, theirs, *[torch.tensor(a) for a in call.arrays])
            parts = result if isinstance(result, (tuple, list)) else [result]
            assert [(tuple(y.shape), str(y.dtype)) for y in parts] == [
                (y.shape, f"torch.{y.dtype}") for y in ours
            ]
            return
        order = order_of(torch, call, theirs)
        assert order is not None, "PyTorch refuses the sample"
        compare(
            lambda *leaves: call.run(flow, function, *leaves),
            lambda *leaves: call.run(torch, theirs, *leaves),
            *call.arrays,
            orders=order,
            rtol=1e-7,
            atol=1e-9,
        )
