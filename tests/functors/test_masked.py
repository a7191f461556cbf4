"""flow.masked: fully masked lines, dtypes, and what PyTorch's second derivatives leave open."""

import numpy as np
import pytest

import oneflow_lite as flow
from tests.functors.agreement import compare

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4))
MASK = np.array([[True, False, True, True], [False, False, False, False], [True, True, True, True]])
REDUCTIONS = ["sum", "prod", "amax", "amin", "mean", "median", "logsumexp", "norm", "var", "std"]
ALONG = ["cumsum", "cumprod", "softmax", "log_softmax", "softmin"]


@pytest.mark.parametrize("name", [*REDUCTIONS, *ALONG])
def test_lines_of_which_nothing_is_kept(name):
    torch = pytest.importorskip("torch")
    ours, theirs = getattr(flow.masked, name), getattr(torch.masked, name)
    with np.errstate(all="ignore"):
        compare(
            lambda x: ours(x, dim=1, mask=flow.tensor(MASK)),
            lambda x: theirs(x, dim=1, mask=torch.tensor(MASK)),
            X,
            orders=0,
        )
        kept = np.where(MASK.any(1, keepdims=True), MASK, True)
        compare(
            lambda x: ours(x, dim=1, mask=flow.tensor(kept)),
            lambda x: theirs(x, dim=1, mask=torch.tensor(kept)),
            X,
            orders=1,
        )


@pytest.mark.parametrize(
    "name", ["sum", "prod", "amax", "amin", "argmax", "argmin", "median", "var"]
)
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_integers(name, dtype):
    torch = pytest.importorskip("torch")
    x = RNG.integers(0, 5, (3, 4)).astype(dtype)
    mask = MASK | (np.arange(3) == 1)[:, None]
    ours = getattr(flow.masked, name)(flow.tensor(x), 1, mask=flow.tensor(mask))
    theirs = getattr(torch.masked, name)(torch.tensor(x), 1, mask=torch.tensor(mask))
    assert str(theirs.dtype) == f"torch.{ours.dtype}"
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6)


def test_logaddexp_beside_masked_elements():
    torch = pytest.importorskip("torch")
    masks = MASK, ~MASK
    compare(
        lambda x, y: flow.masked.logaddexp(
            x, y, input_mask=flow.tensor(masks[0]), other_mask=flow.tensor(masks[1])
        ),
        lambda x, y: torch.masked.logaddexp(
            x, y, input_mask=torch.tensor(masks[0]), other_mask=torch.tensor(masks[1])
        ),
        X,
        X[::-1].copy(),
        orders=1,
    )


def test_errors_name_the_function():
    with pytest.raises(flow.errors.DimError, match=r"^masked\.cumsum\(\): argument 'dim'"):
        flow.masked.cumsum(flow.ones(2), 3)
    with pytest.raises(flow.errors.ArgumentTypeError, match=r"^masked\.mean\(\): argument 'input'"):
        flow.masked.mean([1.0])
