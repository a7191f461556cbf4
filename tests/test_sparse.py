"""Sparse tensors in coordinates: against PyTorch's, and their gradients to any order."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.autograd import gradcheck, gradgradcheck

torch = pytest.importorskip("torch")

INDICES = [[0, 1, 1, 0], [2, 0, 2, 2]]  # one place twice
VALUES = [3.0, 4.0, 5.0, 6.0]


def names(lib: Any) -> dict[str, Any]:
    i, v = lib.tensor(INDICES), lib.tensor(VALUES, dtype=lib.float64)
    s = lib.sparse_coo_tensor(i, v, (2, 3))
    dense = lib.arange(6.0, dtype=lib.float64).reshape(3, 2) + 1
    return {"t": lib, "i": i, "v": v, "s": s, "d": dense, "np": np}


def plain(value: Any) -> Any:
    if getattr(value, "is_sparse", False):
        parts = [plain(x) for x in (value._indices(), value._values())]
        return [*parts, tuple(value.shape), value.is_coalesced()]
    if isinstance(value, (flow.Tensor, torch.Tensor)):
        return value.detach().tolist(), tuple(value.shape), str(value.dtype).split(".")[-1]
    if isinstance(value, (tuple, list)):
        return [plain(each) for each in value]
    return value if isinstance(value, (int, bool, float, type(None))) else str(value)


def outcome(lib: Any, text: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return plain(eval(text, names(lib)))
        except Exception as error:
            return error


@pytest.mark.parametrize(
    "text",
    [
        line.strip()
        for line in """
        s
        s.coalesce()
        s.coalesce().coalesce()
        s.indices()
        s.values()
        s.coalesce().indices()
        s.coalesce().values()
        s._indices()
        s._values()
        s._nnz()
        s.coalesce()._nnz()
        s.is_coalesced()
        s.is_sparse
        t.ones(1).is_sparse
        s.shape
        s.size()
        s.size(-1)
        s.size(2)
        s.dim()
        s.ndim
        len(s)
        s.numel()
        s.sparse_dim()
        s.dense_dim()
        s.device.type
        s.is_cuda
        s.requires_grad
        s.type()
        s.to_dense()
        s.float().to_dense()
        s.float().double().dtype == t.float64
        s.half().dtype == t.float16
        s.to(t.float32)
        s.to("cpu").dtype == t.float64
        s.t()
        s.t().to_dense()
        s.T.shape
        s.transpose(0, 1).to_dense()
        s.clone()
        s.detach().requires_grad
        -s
        s * 2
        2 * s
        s / 2
        (s + s).to_dense()
        s @ d
        s @ d[:, 0]
        s.mm(d)
        s.matmul(d)
        s.mv(d[:, 0])
        t.mm(s, d)
        t.mv(s, d[:, 0])
        t.matmul(s, d)
        t.spmm(s, d)
        t.sparse.mm(s, d)
        t.sparse.addmm(t.ones(2, 2, dtype=t.float64), s, d, beta=2, alpha=0.5)
        d.t() @ s.t()
        s.t() @ s.to_dense()
        t.sparse.mm(s, d[:2])
        t.sparse.mm(s, d.float())
        s.sum()
        t.sparse.sum(s)
        t.sparse.sum(s, 0)
        t.sparse.sum(s, 1)
        t.sparse.sum(s, (0, 1))
        t.sparse_coo_tensor(i, v)
        t.sparse_coo_tensor(i, v, (2, 3), dtype=t.float32)
        t.sparse_coo_tensor(INDICES, VALUES, (4, 4)).shape
        t.sparse_coo_tensor(i, v[:2], (2, 3))
        t.sparse_coo_tensor((2, 3))
        t.sparse_coo_tensor((2, 3)).to_dense()
        t.sparse_coo_tensor(i[:1], t.ones(4, 2), (2, 2))
        t.sparse_coo_tensor(i[:1], t.ones(4, 2), (2, 2)).coalesce()
        t.sparse_coo_tensor(i[:1], t.ones(4, 2), (2, 2)).to_dense()
        t.sparse_coo_tensor(i[:1], t.ones(4, 2), (2, 2)).dense_dim()
        t.sparse_coo_tensor(i[:1], t.ones(4, 2), (2, 3))
        t.sparse.sum(t.sparse_coo_tensor(i[:1], t.ones(4, 2), (2, 2)), 1)
        t.sparse.FloatTensor(i, v.float(), t.Size([2, 3]))
        t.sparse.FloatTensor(2, 3)
        t.sparse.DoubleTensor(i, v).dtype == t.float64
        t.eye(3).to_sparse()
        (t.eye(3) * 2).to_sparse() @ t.ones(3, 1)
        d.to_sparse()
        t.zeros(2, 2).to_sparse()
        t.ones(2, 2, 2).to_sparse(1)
        t.ones(2, 2).to_sparse(3)
        s.to_sparse()._nnz()
        s.relu_of_nothing()
        """.strip().splitlines()
    ],
)
def test_agrees_with_pytorch(text: str) -> None:
    text = text.replace("INDICES", repr(INDICES)).replace("VALUES", repr(VALUES))
    ours, theirs = outcome(flow, text), outcome(torch, text)
    if isinstance(theirs, Exception):
        assert isinstance(ours, Exception), text
        kinds = (flow.errors.FlowError, AttributeError)
        assert isinstance(ours, kinds), f"{text}: {ours!r}"
    elif isinstance(ours, Exception):
        raise ours
    else:
        assert ours == theirs, text


def product(i: Any, lib: Any) -> Callable[..., Any]:
    return lambda v, d: lib.sparse.mm(lib.sparse_coo_tensor(i, v, (2, 3)), d)


def test_gradients_of_any_order() -> None:
    i = flow.tensor(INDICES)
    v = flow.tensor(VALUES, dtype=flow.float64, requires_grad=True)
    d = flow.rand(3, 2, dtype=flow.float64, requires_grad=True)
    for function in (
        product(i, flow),
        lambda v, d: flow.sparse_coo_tensor(i, v, (2, 3)).coalesce() @ (d * d)[:, 0],
        lambda v, d: (flow.sparse_coo_tensor(i, v * v, (2, 3)).to_dense() @ d).sin(),
        lambda v, d: d.t() @ flow.sparse_coo_tensor(i, v * v, (2, 3)).t(),
        lambda v, d: flow.sparse.sum(flow.sparse_coo_tensor(i, v**3, (2, 3)), 0).to_dense() @ d,
    ):
        assert gradcheck(function, (v, d)) and gradgradcheck(function, (v, d))
    assert gradcheck(lambda d: (d.to_sparse() @ d.t()).sum(), (d,))


def test_gradients_agree_with_pytorch() -> None:
    def run(lib: Any) -> list[Any]:
        x = names(lib)
        v, d = x["v"].requires_grad_(), x["d"].requires_grad_()
        (product(x["i"], lib)(v, d) ** 2).sum().backward()
        leaf = lib.sparse_coo_tensor(x["i"], x["v"].detach(), (2, 3), requires_grad=True)
        lib.sparse.mm(leaf, d.detach()).sum().backward()
        return [v.grad.tolist(), d.grad.tolist(), plain(leaf.grad.to_dense())]

    assert run(flow) == run(torch)


def test_a_layer_on_a_graph_compiles_and_trains() -> None:
    i = flow.tensor([[0, 1, 2, 0], [1, 2, 0, 0]])
    net = flow.nn.Linear(2, 1)

    def step(v: flow.Tensor, x: flow.Tensor) -> flow.Tensor:
        return flow.sparse.mm(flow.sparse_coo_tensor(i, v, (3, 3)), net(x)).square().sum()

    v, x = flow.rand(4, requires_grad=True), flow.rand(3, 2)
    (wanted,) = flow.autograd.grad(step(v, x), v)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = flow.compile(step)
        for _ in range(3):
            (found,) = flow.autograd.grad(compiled(v, x), v)
            np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-6)


def test_on_devices(device: str) -> None:
    s = flow.sparse_coo_tensor(INDICES, VALUES, (2, 3), device=device)
    assert s.device.type == s.t().device.type == device
    y = s @ flow.ones(3, 2, device=device)
    assert y.cpu().tolist() == [[9.0, 9.0], [9.0, 9.0]]
    assert s.cpu().device.type == "cpu" and s.cpu().coalesce()._nnz() == 3


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (lambda: flow.sparse_coo_tensor([[0, 5]], [1.0, 2.0], (3,)), ValueError, "indices"),
        (lambda: flow.sparse_coo_tensor([[0, -1]], [1.0, 2.0], (3,)), ValueError, "indices"),
        (lambda: flow.sparse_coo_tensor([0, 1], [1.0, 2.0], (3,)), RuntimeError, "values"),
        (lambda: flow.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3, 3)), RuntimeError, "size"),
        (lambda: flow.sparse.mm(flow.ones(2, 2), flow.ones(2, 2)), TypeError, "to_sparse"),
        (lambda: names(flow)["s"].relu(), AttributeError, "to_dense"),
        (lambda: names(flow)["s"] * names(flow)["s"], TypeError, "to_dense"),
        (lambda: names(flow)["s"] @ names(flow)["s"], TypeError, "to_dense"),
        (lambda: flow.mm(names(flow)["s"], flow.ones(2, 2)), RuntimeError, "rows"),
        (lambda: flow.matmul(names(flow)["s"], 3), TypeError, "dense"),
    ],
)
def test_errors(call: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call()


def test_how_it_prints() -> None:
    s = flow.sparse_coo_tensor(INDICES, VALUES, (2, 3))
    theirs = repr(torch.sparse_coo_tensor(torch.tensor(INDICES), torch.tensor(VALUES), (2, 3)))
    assert repr(s) == theirs.replace("torch.sparse_coo", "oneflow_lite.sparse_coo")
    assert s.layout is flow.sparse_coo and repr(s.requires_grad_())[-20:] == " requires_grad=True)"
