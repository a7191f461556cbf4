"""Networks whose graphs the page has to show at first sight."""

from __future__ import annotations

import oneflow_lite as flow

nn = flow.nn
F = nn.functional


def lstm_cells() -> None:
    """A cell over 20 steps, with a loss at each."""
    net, out = nn.LSTMCell(8, 16), nn.Linear(16, 4)
    h = c = flow.zeros(2, 16)
    loss = flow.zeros(())
    for _ in range(20):
        h, c = net(flow.randn(2, 8), (h, c))
        loss = loss + out(h).square().mean()
    loss.backward()


def products() -> None:
    """A chain of functions, without modules."""
    weights = [flow.randn(8, 8, requires_grad=True) for _ in range(24)]
    x = flow.randn(4, 8)
    for w in weights:
        x = (x @ w).tanh()
    x.sum().backward()


def many_leaves() -> None:
    """A penalty on many tensors."""
    weights = [flow.randn(8, requires_grad=True) for _ in range(60)]
    sum((w * w).sum() for w in weights).backward()  # type: ignore[union-attr]


def transformer() -> None:
    """Six layers of an encoder."""
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    nn.TransformerEncoder(layer, 6)(flow.randn(2, 5, 16)).sum().backward()


def lstm_and_transformer() -> None:
    """A layer of attention at each of 20 steps of an LSTM."""
    lstm, layer = nn.LSTM(8, 16, 2), nn.TransformerEncoderLayer(16, 2, 32)
    x, _ = lstm(flow.randn(20, 2, 8))
    loss = flow.zeros(())
    for t in range(20):
        loss = loss + layer(x[t : t + 1]).mean()
    loss.backward()


class UNet(nn.Module):
    """Two steps down and two up, with skips."""

    def __init__(self) -> None:
        super().__init__()
        sizes = [(1, 4), (4, 8), (8, 8), (16, 4), (8, 1)]
        self.convolutions = nn.ModuleList([nn.Conv2d(*size, 3, padding=1) for size in sizes])

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        """Return an image of the same size."""
        first, second, middle, third, last = self.convolutions
        skips = []
        for down in (first, second):
            x = down(x).relu()
            skips.append(x)
            x = F.max_pool2d(x, 2)
        x = middle(x).relu()
        for up in (third, last):
            x = F.interpolate(x, scale_factor=2.0)
            x = up(flow.cat([x, skips.pop()], 1)).relu()
        return x


def unet() -> None:
    """A U-Net."""
    UNet()(flow.randn(1, 1, 16, 16)).sum().backward()


class Block(nn.Module):
    """A residual block."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        """Return what is added to x, and x."""
        return (x + self.b(self.norm(self.a(x)).relu())).relu()


def resnet() -> None:
    """Eight residual blocks."""
    ends = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 10)
    net = nn.Sequential(nn.Conv2d(3, 4, 3), *[Block() for _ in range(8)], *ends)
    F.cross_entropy(net(flow.randn(2, 3, 8, 8)), flow.tensor([1, 2])).backward()


def perceptron() -> None:
    """Two layers."""
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    net(flow.randn(3, 4)).mean().backward()


def second_derivative() -> None:
    """A gradient of a gradient."""
    x = flow.randn(3, requires_grad=True)
    (slope,) = flow.autograd.grad((x.sin() * x**2).sum(), x, create_graph=True)
    slope.sum().backward()


def maml() -> None:
    """Gradients through three training steps of five tasks."""
    w = flow.randn(8, 1, requires_grad=True)
    total = flow.zeros(())
    for _ in range(5):
        x, fast = flow.randn(6, 8), w
        for _ in range(3):
            loss = ((x @ fast).tanh() - 1).square().mean()
            (slope,) = flow.autograd.grad(loss, fast, create_graph=True)
            fast = fast - 0.1 * slope
        total = total + ((x @ fast) - 1).square().mean()
    total.backward()


def gan() -> None:
    """A generator under its critic."""
    generator = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    critic = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(), nn.Linear(8, 1))
    score = critic(generator(flow.randn(5, 4)))
    F.binary_cross_entropy_with_logits(score, flow.ones(5, 1)).backward()


def vision_transformer() -> None:
    """Patches, and twelve layers."""
    patches = nn.Sequential(nn.Conv2d(3, 16, 4, 4), nn.Flatten(2))
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 12)
    encoder(patches(flow.randn(1, 3, 16, 16)).transpose(1, 2)).mean().backward()


NETWORKS = (
    lstm_cells, products, many_leaves, transformer, lstm_and_transformer, unet, resnet, perceptron,
    second_derivative, maml, gan, vision_transformer,
)  # fmt: skip
