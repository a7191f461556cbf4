"""Common use, with exact types: mypy --strict and pyright find nothing wrong here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_type

import numpy as np

import oneflow_lite as flow
from oneflow_lite import Size, Tensor, nn
from oneflow_lite.functors.reduce import MaxResult
from oneflow_lite.functors.sorting import SortResult
from oneflow_lite.nn import functional as F


class Net(nn.Module):
    """Two layers."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Linear(4, width)
        self.second = nn.Linear(width, 3)

    def forward(self, x: Tensor) -> Tensor:
        hidden = F.relu(self.first(x))
        return F.dropout(assert_type(hidden, Tensor), 0.1) @ self.second.weight.T + self.second.bias


def as_real(d: flow.dtype) -> flow.dtype:
    return assert_type(d.to_real(), flow.dtype)


def batches(count: int) -> Iterator[tuple[Tensor, Tensor]]:
    for _ in range(count):
        yield flow.randn(8, 4), flow.randint(0, 3, (8,))


@flow.compile
def loss_of(net: Net, x: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(net.forward(x), y)


def main() -> float:
    net = flow.compile(Net(16))
    assert_type(net, Net)
    optimizer = flow.optim.Adam(net.parameters(), lr=1e-2)
    total = 0.0
    for x, y in batches(3):
        optimizer.zero_grad()
        loss = assert_type(loss_of(net, x, y), Tensor)
        loss.backward()
        optimizer.step()
        total += assert_type(loss.item(), bool | int | float)
    x = flow.zeros(3, 4, requires_grad=True)
    _ = (
        assert_type(x.T + 1, Tensor),
        assert_type(2 * x - x / 3, Tensor),
        assert_type(x @ x.t(), Tensor),
        assert_type(x == -x, Tensor),
        assert_type(x[0, :2], Tensor),
        assert_type(x.shape, Size),
        assert_type(x.dtype, flow.dtype),
        assert_type(x.dtype.is_floating_point, bool),
        assert_type(np.zeros(2, x.dtype).ndim, int),
        assert_type(x.to(as_real(flow.complex64)), Tensor),
        assert_type(x.size(0), int),
        assert_type(x.max(), Tensor),
        assert_type(x.max(0), MaxResult),
        assert_type(x.max(0).values, Tensor),
        assert_type(flow.sort(x), SortResult),
        assert_type(x.float().mean(dim=1), Tensor),
        assert_type(flow.nonzero(x), Tensor),
        assert_type(flow.nonzero(x, as_tuple=True), tuple[Tensor, ...]),
        assert_type(flow.autograd.grad((x * x).sum(), x), tuple[Tensor, ...]),
        assert_type(x.grad, Tensor | None),
        assert_type(F.max_pool2d(x[None], 2), Tensor),
    )
    with flow.no_grad():
        values, order = flow.topk(assert_type(x.exp().clamp(min=0.5), Tensor), 2)
    return total + float(values.sum()) + float(order.to(flow.float32).std())
