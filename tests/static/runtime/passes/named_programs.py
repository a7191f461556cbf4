"""The programs on which the passes report what they save; `docs/passes.md` shows the figures."""

from __future__ import annotations

import math
from collections.abc import Callable

import oneflow_lite as flow
from oneflow_lite import nn, static
from oneflow_lite.static.ir.program import Program

F = nn.functional


def mlp_step() -> list[flow.Tensor]:
    """A training step: three layers, 64 rows, cross-entropy, SGD with momentum."""
    x = static.data("x", [64, 32])
    target = static.data("target", [64], "int64")
    model = nn.Sequential(
        nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)
    )
    loss = F.cross_entropy(model(x), target)
    flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9).minimize(loss)
    return [loss]


def gelu() -> list[flow.Tensor]:
    """GELU by its tanh formula, written in elementary ops, with its gradient."""
    x = static.data("x", [256, 256]).requires_grad_()
    y = 0.5 * x * (1 + flow.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return [y, *static.gradients([y], [x])]


def transformer_block() -> list[flow.Tensor]:
    """A training step of one block: attention with four heads, GELU, dropout, Adam."""
    model = Block()
    x = static.data("x", [2, 16, 32])
    loss = F.mse_loss(model(x), static.data("target", [2, 16, 32]))
    flow.optim.Adam(model.parameters(), lr=0.001).minimize(loss)
    return [loss]


def third_order() -> list[flow.Tensor]:
    """The third derivative of a small net by its input."""
    x = static.data("x", [64, 1]).requires_grad_()
    model = nn.Sequential(
        nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1)
    )
    y = model(x)
    for _ in range(3):
        (y,) = static.gradients([y], [x])
    return [y]


def recurrent_step() -> list[flow.Tensor]:
    """A training step of an LSTM cell, written out for six steps in time."""
    x, target = static.data("x", [6, 8, 16]), static.data("target", [8, 16])
    cell, h, c = nn.Linear(32, 64), flow.zeros(8, 16), flow.zeros(8, 16)
    for t in range(6):
        i, f, g, o = cell(flow.cat([x[t], h], 1)).chunk(4, 1)
        c = flow.sigmoid(f) * c + flow.sigmoid(i) * flow.tanh(g)
        h = flow.sigmoid(o) * flow.tanh(c)
    loss = F.mse_loss(h, target)
    flow.optim.SGD(cell.parameters(), lr=0.1).minimize(loss)
    return [loss]


def prediction() -> list[flow.Tensor]:
    """A Program with loss and accuracy, of which a run wants the prediction."""
    x = static.data("x", [64, 32])
    target = static.data("target", [64], "int64")
    scores = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))(x)
    F.cross_entropy(scores, target)
    found = scores.argmax(1)
    (found == target).float().mean()
    return [found]


class Block(nn.Module):
    """Attention and a perceptron, each with layer normalization before and dropout after it."""

    def __init__(self, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.queries, self.keys, self.values = (nn.Linear(width, width) for _ in range(3))
        self.join = nn.Linear(width, width)
        self.grow, self.shrink = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        y = self.norm1(x)
        q, k, v = (self.split(layer(y)) for layer in (self.queries, self.keys, self.values))
        weights = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
        y = (weights @ v).transpose(1, 2).reshape(x.shape)
        x = x + F.dropout(self.join(y), 0.1)
        return x + F.dropout(self.shrink(F.gelu(self.grow(self.norm2(x)))), 0.1)

    def split(self, x: flow.Tensor) -> flow.Tensor:
        return x.reshape(*x.shape[:2], self.heads, -1).transpose(1, 2)


NAMED: dict[str, Callable[[], list[flow.Tensor]]] = {
    "MLP step": mlp_step,
    "GELU and gradient": gelu,
    "third-order net": third_order,
    "LSTM step": recurrent_step,
    "prediction alone": prediction,
    "transformer block step": transformer_block,
}


def capture(name: str) -> tuple[Program, tuple[str, ...], tuple[str, ...]]:
    """Return a named program with the names of its feeds and its fetched variables."""
    main, startup = Program(), Program()
    with static.program_guard(main, startup):
        fetches = tuple([t.name for t in NAMED[name]()])
    feeds = [d.name for d in main.global_block().vars.values() if d.need_check_feed]
    return main, tuple(feeds), fetches
