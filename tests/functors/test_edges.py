"""Tensors without elements or dimensions, and other edges, beside PyTorch."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow

torch = pytest.importorskip("torch")

# `t` is the library. What raises there has to raise here.
SHAPES = """
    t.zeros(5)[None].stride()
    t.empty(0, 3).stride()
    t.empty(2, 0, 3).stride()
    t.zeros(4, 5)[:, None].stride()
    t.zeros(4, 5)[..., None].stride()
    t.zeros(6)[1::2][None].stride()
    t.zeros(2, 3)[:, :0].stride()
    t.zeros(1, 3).expand(4, 3).stride()
    t.cat([t.empty(0)] * 2, dim=1)
    t.cat([t.empty(0)] * 2, dim=2)
    t.cat([t.empty(0), t.ones(2, 2)], dim=2)
    t.block_diag()
    t.combinations(t.tensor([1, 2, 3]), r=0)
    t.combinations(t.tensor([1, 2, 3]), r=0, with_replacement=True)
    t.tensor([1., 2.]).flip()
    t.tensor([1., 2.]).tile()
    t.tensor([1., 2.]).flip(())
    t.tensor(1.).to_sparse().to_dense()
    t.tensor(0.).to_sparse().values()
    t.tensor(1.).to_sparse().indices()
    t.tensor(1.).index_copy(0, t.tensor([0]), t.tensor([3.]))
    t.tensor([1.]).index_copy(0, t.tensor([0]), t.tensor(3.))
    t.tensor([1., 2.]).index_copy(0, t.tensor([0, 1]), t.tensor(3.))
    t.permute_copy(t.tensor(1.), ())
    t.tensor(1.).mT
    t.fft.fftfreq(0)
    t.fft.rfftfreq(0)
    t.zeros(0, 3).new_empty_strided((2, 0), (5, 1)).shape
    t.nn.functional.fractional_max_pool2d(P, 2, 2, _random_samples=t.full((2, 3, 2), 0.6))
    t.nn.functional.fractional_max_pool2d(P[None], 2, 2, _random_samples=t.full((2, 3, 2), 0.6))
    t.nn.functional.fractional_max_pool2d(P[None], 2, 2, _random_samples=t.full((1, 2, 2), 0.6))
    t.nn.functional.batch_norm(t.ones(2, 3), t.zeros(3), t.ones(3), eps=-0.5)
    t.conv1d(t.ones(1, 4, 5), t.ones(1, 4, 0))
    t.cov(t.tensor(1.), fweights=t.tensor(2))
    t.nn.functional.margin_ranking_loss(t.tensor(1), t.tensor(3), t.tensor(1))
    t.nn.functional.cosine_embedding_loss(t.tensor([1, 2]), t.tensor([3, 1]), t.tensor(1))
    t.nn.functional.poisson_nll_loss(t.tensor([1, 2]), t.tensor([3, 1]))
    t.zeros(3, 4).scatter(0, t.zeros((0, 4), dtype=t.int64), 1.0)
    t.tensor(1.).scatter(0, t.tensor([0]), t.tensor([5.0]))
"""
MATRICES = """
    t.linalg.matrix_norm(t.zeros(0, 2), inf)
    t.linalg.matrix_norm(t.zeros(2, 0), inf)
    t.linalg.matrix_norm(t.zeros(0, 2), -inf)
    t.linalg.matrix_norm(t.zeros(2, 0), 1, keepdim=True)
    t.linalg.matrix_norm(t.zeros(0, 2), 1)
    t.linalg.matrix_norm(t.zeros(3, 0, 2), 2)
    t.linalg.matrix_norm(t.zeros(0, 2), -2)
    t.linalg.norm(t.zeros(0, 2), inf)
    t.linalg.cond(t.zeros(0, 0), 1)
    t.linalg.cond(t.ones(2, 2), "nuc")
    t.linalg.vector_norm(t.tensor([1 + 2j]), dtype=t.float32)
    t.linalg.vector_norm(t.tensor([1 + 2j]), dtype=t.complex128)
    t.linalg.vector_norm(t.ones(2), dtype=t.complex64)
    t.linalg.matrix_norm(t.ones(2, 2).double(), dtype=t.float32)
    t.norm(t.ones(2).half(), dtype=t.float64)
    t.norm(t.tensor([1, 2]), dtype=t.float64)
    t.linalg.pinv(A, rcond=0.1, rtol=0.1)
    t.linalg.matrix_rank(A, tol=t.tensor(1 + 1j))
    t.cov(t.tensor([[1, 2, 3], [4, 5, 7]]))
    t.cov(t.tensor([1, 2, 4]), correction=0)
    t.cov(t.tensor([[True, False]]))
    t.cov(t.ones(2, 3), fweights=t.tensor([3, -1, 1]))
    t.cov(t.ones(2, 3), aweights=t.tensor([3., -1., 1.]))
    t.corrcoef(t.tensor([[1, 2, 3], [4, 5, 7]]))
    t.linalg.multi_dot([t.eye(2)])
    t.chain_matmul()
    t.linalg.eigh(A, UPLO="u")[0]
    t.linalg.eigvalsh(A, UPLO="l")
    t.linalg.eigvalsh(A, UPLO="x")
    t.cholesky_inverse(A)
    t.cholesky_inverse(A, upper=True)
    t.cholesky_inverse(t.tensor([[2., 1.], [5., 0.]]))
    t.lu_solve(t.ones(3, 2, 1), *t.linalg.lu_factor(A))
    t.linalg.lu_solve(*t.linalg.lu_factor(t.stack([A, A.T])), t.ones(2, 1))
    t.linalg.lu_solve(*t.linalg.lu_factor(t.stack([A, A.T])), t.ones(4, 1, 1, 2), left=False)
    t.linalg.lu_solve(*t.linalg.lu_factor(t.stack([A, A.T])), t.ones(2, 1), adjoint=True)
    t.linalg.lu_solve(t.stack([A, A]), t.tensor([1, 2], dtype=t.int32), t.ones(2, 1))
    t.linalg.ldl_solve(A, t.tensor(1, dtype=t.int32), t.ones(2, 1))
    t.linalg.lstsq(W, t.ones(4, 2), rcond=0.7, driver="gelsd")
    t.linalg.lstsq(W, t.ones(4, 2), rcond=5.0, driver="gelss")
    t.linalg.lstsq(W, t.ones(4, 2), rcond=5.0, driver="gels")
    t.linalg.lstsq(W.T, t.ones(2))
    t.linalg.lstsq(t.ones(2, 2), t.ones(2, 1), driver="gels")
"""
CALLS = [line.strip() for line in (SHAPES + MATRICES).splitlines() if line.strip()]


def evaluated(t: ModuleType, call: str) -> Any:
    names = {"t": t, "inf": float("inf"), "A": t.tensor([[2.0, 1.0], [5.0, 3.0]])}
    names["W"] = t.tensor([[1.0, 2.0], [1.0, 1.0], [2.0, -1.0], [0.0, 1.0]])
    names["P"] = t.arange(48.0).reshape(3, 4, 4)
    result = eval(call, names)
    several = isinstance(result, tuple) and not isinstance(result[0], int)
    return [
        (str(y.numpy().dtype), tuple(y.shape), y.numpy()) if isinstance(y, t.Tensor) else y
        for y in (result if several else [result])
    ]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", CALLS)
def test_edges(call: str) -> None:
    try:
        expected = evaluated(torch, call)
    except (RuntimeError, TypeError, ValueError, IndexError):
        with pytest.raises(flow.errors.FlowError):
            evaluated(flow, call)
        return
    for mine, theirs in zip(evaluated(flow, call), expected, strict=True):
        if isinstance(mine[-1], np.ndarray):
            assert mine[:2] == theirs[:2]
            np.testing.assert_allclose(mine[2], theirs[2], rtol=1e-5, atol=1e-6)
        else:
            assert mine == theirs


def test_the_gradient_of_eigenvectors_is_symmetric() -> None:
    """Whichever triangle is read, as in PyTorch: a step of an optimizer stays symmetric."""
    for uplo in "LU":
        x = flow.tensor([[2.0, 1.0], [0.5, 3.0]], dtype=flow.float64, requires_grad=True)
        (flow.linalg.eigh(x, uplo)[1].abs() ** 3)[0].sum().backward()
        y = torch.tensor(x.detach().numpy(), requires_grad=True)
        (torch.linalg.eigh(y, uplo)[1].abs() ** 3)[0].sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), atol=1e-12)
