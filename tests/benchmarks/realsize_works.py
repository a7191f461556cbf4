"""Works of the size that people run, written once: the same text runs on oneflow_lite and PyTorch.

Each function takes the library and returns a step: the forward pass and the gradients, or a whole
training step. The step returns its loss and some gradients, by which two sides are compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

Step = Callable[[], list[Any]]
WORKS: dict[str, tuple[str, Callable[[Any], Step]]] = {}
KINDS = {
    "attention and transformer layers": "attention_ vit_ checkpointed",
    "convolution of images, sound and volumes": "conv stem unet",
    "losses over 32,000 classes": "vocabulary classes",
    "pointwise ops and softmax on half a million numbers": "silu gelu relu softmax add",
    "small products in batches, einsum": "small_products bilinear_einsum",
    "linear algebra: a Gaussian process": "gaussian_process",
    "graphs and tables": "gnn_ tables",
    "sequences: LSTM, GRU, CTC": "long_lstm gru ctc",
    "steps of hundreds of small ops: ODE, PINN, MAML": "ode pinn maml",
    "optimizers: AdamW on 10M parameters": "adamw",
    "a DataLoader that augments": "loader",
}  # each with the beginnings of its works' names


def work(title: str) -> Callable[[Callable[[Any], Step]], Callable[[Any], Step]]:
    """Register a work under its function's name."""

    def register(make: Callable[[Any], Step]) -> Callable[[Any], Step]:
        WORKS[make.__name__] = (title, make)
        return make

    return register


def _normal(lib: Any, *shape: int, seed: int = 0, scale: float = 1.0, grad: bool = True) -> Any:
    array = np.random.default_rng(seed).standard_normal(shape, np.float32) * np.float32(scale)
    return lib.tensor(array, requires_grad=grad)


def _integers(lib: Any, high: int, *shape: int, seed: int = 0) -> Any:
    return lib.tensor(np.random.default_rng(seed).integers(0, high, shape))


def _filled(lib: Any, module: Any) -> Any:
    """Give a module parameters that both sides share: matrices by what goes in, scales near 1."""
    rng = np.random.default_rng(1)
    with lib.no_grad():
        for name, p in module.named_parameters():
            drawn = rng.standard_normal(tuple(p.shape), np.float32)
            if p.ndim > 1:
                drawn /= np.float32(math.sqrt(drawn[0].size))
            else:
                drawn = np.float32("norm" in name and "weight" in name) + 0.1 * drawn
            p.copy_(lib.tensor(drawn))
    return module


def _derived(loss: Any, leaves: Iterable[Any], kept: int = 3) -> list[Any]:
    """Run the backward pass anew, and return the loss and the first gradients."""
    leaves = list(leaves)
    for leaf in leaves:
        leaf.grad = None
    loss.backward()
    return [loss.detach(), *(leaf.grad for leaf in leaves[:kept])]


def _of_module(lib: Any, module: Any, *inputs: Any) -> Step:
    """Return a step that squares what a module makes of some inputs."""
    _filled(lib, module)
    leaves = [*(x for x in inputs if x.requires_grad), *module.parameters()]
    return lambda: _derived(module(*inputs).square().mean(), leaves)


def _pointwise(name: str, elements: int = 1 << 19) -> None:
    def make(lib: Any) -> Step:
        x = _normal(lib, 512, elements // 512)
        function = getattr(lib.nn.functional, name)
        given = {"dim": -1} if name == "softmax" else {}

        def step() -> list[Any]:
            x.grad = None
            y = function(x, **given)
            y.backward(y.detach())
            return [y.detach(), x.grad]

        return step

    make.__name__ = name
    work(f"{name} of 512 x 1,024, there and back")(make)


# Attention


def _attention(lib: Any, shape: tuple[int, ...], **given: Any) -> Step:
    q, k, v = (_normal(lib, *shape, seed=seed) for seed in range(3))
    attend = lib.nn.functional.scaled_dot_product_attention
    return lambda: _derived(attend(q, k, v, **given).square().mean(), (q, k, v))


@work("causal attention, 8 heads x 1,024 x 64")
def attention_causal(lib: Any) -> Step:
    return _attention(lib, (1, 8, 1024, 64), is_causal=True)


@work("attention, 4 heads x 4,096 x 64")
def attention_long(lib: Any) -> Step:
    return _attention(lib, (1, 4, 4096, 64))


@work("attention with a bool mask, 8 x 8 x 512 x 64")
def attention_masked(lib: Any) -> Step:
    mask = lib.tensor(np.random.default_rng(9).random((8, 1, 512, 512)) < 0.8)
    return _attention(lib, (8, 8, 512, 64), attn_mask=mask)


@work("ViT-B/16 block, 4 x 197 tokens")
def vit_block(lib: Any) -> Step:
    nn = lib.nn
    block = nn.TransformerEncoderLayer(
        768, 12, 3072, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
    )
    return _of_module(lib, block, _normal(lib, 4, 197, 768))


@work("transformer of 4 layers, checkpointed, 4 x 256 x 256")
def checkpointed(lib: Any) -> Step:
    nn = lib.nn
    layers = nn.ModuleList(
        nn.TransformerEncoderLayer(256, 8, 1024, dropout=0.0, batch_first=True) for _ in range(4)
    )
    _filled(lib, layers)
    x, parameters = _normal(lib, 4, 256, 256), [*layers.parameters()]
    again = lib.utils.checkpoint.checkpoint

    def step() -> list[Any]:
        y = x
        for layer in layers:
            y = again(layer, y, use_reentrant=False)
        return _derived(y.square().mean(), (x, *parameters))

    return step


# Convolution


@work("conv net on 8 x 3 x 112², 64 channels")
def conv_net(lib: Any) -> Step:
    nn = lib.nn
    net = nn.Sequential(
        nn.Conv2d(3, 64, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(64, 64, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(64, 64, 3, stride=2, padding=1),
    )
    return _of_module(lib, net, _normal(lib, 8, 3, 112, 112, grad=False))


@work("stem 7x7/2 on 4 x 3 x 224², batch norm, max pool")
def stem(lib: Any) -> Step:
    nn = lib.nn
    net = nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
    )
    return _of_module(lib, net, _normal(lib, 4, 3, 224, 224, grad=False))


@work("U-Net block of 16 to 32 channels, 4 x 64² to 128²")
def unet_block(lib: Any) -> Step:
    nn = lib.nn
    net = nn.Sequential(
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False),
        nn.Conv2d(32, 16, 3, padding=1),
    )
    return _of_module(lib, net, _normal(lib, 4, 16, 64, 64))


@work("ConvNeXt block, 4 x 96 x 56²")
def convnext_block(lib: Any) -> Step:
    nn = lib.nn

    class Block(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.apart = nn.Conv2d(96, 96, 7, padding=3, groups=96)
            self.norm = nn.LayerNorm(96)
            self.up, self.down = nn.Linear(96, 384), nn.Linear(384, 96)

        def forward(self, x: Any) -> Any:
            y = self.norm(self.apart(x).permute(0, 2, 3, 1))
            y = self.down(lib.nn.functional.gelu(self.up(y)))
            return x + y.permute(0, 3, 1, 2)

    return _of_module(lib, Block(), _normal(lib, 4, 96, 56, 56))


@work("1-d conv over 16k samples, 4 x 1 to 64 channels")
def conv_audio(lib: Any) -> Step:
    nn = lib.nn
    net = nn.Sequential(
        nn.Conv1d(1, 32, 9, 2, 4), nn.ReLU(), nn.Conv1d(32, 64, 9, 2, 4), nn.ReLU(),
        nn.Conv1d(64, 64, 9, 2, 4),
    )  # fmt: skip
    return _of_module(lib, net, _normal(lib, 4, 1, 16_384, grad=False))


@work("3-d conv, 2 x 4 to 16 channels, 32³")
def conv_volume(lib: Any) -> Step:
    nn = lib.nn
    net = nn.Sequential(nn.Conv3d(4, 16, 3, padding=1), nn.ReLU(), nn.Conv3d(16, 16, 3, padding=1))
    return _of_module(lib, net, _normal(lib, 2, 4, 32, 32, 32))


# Losses, pointwise ops, linear algebra


@work("linear and cross entropy, 512 x 256 to 32,000")
def vocabulary(lib: Any) -> Step:
    F = lib.nn.functional
    h, w = _normal(lib, 512, 256), _normal(lib, 32_000, 256, seed=1, scale=0.06)
    target = _integers(lib, 32_000, 512)
    return lambda: _derived(F.cross_entropy(F.linear(h, w), target), (h, w))


@work("log_softmax and nll_loss, 512 x 32,000")
def classes(lib: Any) -> Step:
    F = lib.nn.functional
    x, target = _normal(lib, 512, 32_000), _integers(lib, 32_000, 512)
    return lambda: _derived(F.nll_loss(F.log_softmax(x, -1), target), (x,))


for _name in ("silu", "gelu", "relu", "softmax"):
    _pointwise(_name)


@work("add of two 512 x 1,024, there and back")
def add(lib: Any) -> Step:
    x, y = _normal(lib, 512, 1024), _normal(lib, 512, 1024, seed=1)

    def step() -> list[Any]:
        x.grad = y.grad = None
        z = x + y
        z.backward(z.detach())
        return [z.detach(), x.grad, y.grad]

    return step


@work("Gaussian process, 400 points")
def gaussian_process(lib: Any) -> Step:
    x, y = _normal(lib, 400, 3, grad=False), _normal(lib, 400, 1, seed=1, grad=False)
    log_length, log_noise = _normal(lib, 3, seed=2, scale=0.1), _normal(lib, 1, seed=3, scale=0.1)

    def step() -> list[Any]:
        z = x / log_length.exp()
        squares = (z[:, None] - z[None]).square().sum(-1)
        k = (-0.5 * squares).exp() + lib.eye(400) * (log_noise - 2).exp()
        half = lib.linalg.cholesky(k)
        fit = (y * lib.cholesky_solve(y, half)).sum()
        return _derived(0.5 * fit + 0.5 * lib.logdet(k), (log_length, log_noise))

    return step


@work("batched products, 512 of 32 x 32")
def small_products(lib: Any) -> Step:
    a, b = _normal(lib, 512, 32, 32), _normal(lib, 512, 32, 32, seed=1)
    return lambda: _derived(lib.matmul(a, b).square().mean(), (a, b))


@work("einsum of a bilinear layer, 256 x 64 x 64")
def bilinear_einsum(lib: Any) -> Step:
    x, y = _normal(lib, 256, 64), _normal(lib, 256, 64, seed=1)
    w = _normal(lib, 64, 64, 64, seed=2, scale=0.02)
    return lambda: _derived(lib.einsum("bi,kij,bj->bk", x, w, y).square().mean(), (x, y, w))


# Graphs, tables, sequences


@work("GNN, sum of 200k messages of 32")
def gnn_sum(lib: Any) -> Step:
    x, w = _normal(lib, 20_000, 32), _normal(lib, 32, 32, seed=1, scale=0.2)
    source, target = (_integers(lib, 20_000, 200_000, seed=seed) for seed in (2, 3))

    def step() -> list[Any]:
        messages = lib.relu(x @ w)[source]
        nodes = lib.zeros(20_000, 32).index_add(0, target, messages)
        return _derived(nodes.square().mean(), (x, w))

    return step


@work("GNN with segment softmax, 200k edges, 4 heads of 8")
def gnn_attention(lib: Any) -> Step:
    x, w, a = _normal(lib, 20_000, 32), _normal(lib, 32, 32, seed=1, scale=0.2), _normal(lib, 4, 8)
    source, target = (_integers(lib, 20_000, 200_000, seed=seed) for seed in (2, 3))
    at = target[:, None].expand(-1, 4)

    def step() -> list[Any]:
        h = (x @ w).reshape(20_000, 4, 8)
        own = (h * a).sum(-1)
        scores = lib.nn.functional.leaky_relu(own[source] + own[target], 0.2)
        top = lib.zeros(20_000, 4).scatter_reduce(0, at, scores.detach(), "amax")
        shares = (scores - top[target]).exp()
        total = lib.zeros(20_000, 4).index_add(0, target, shares)
        messages = h[source] * (shares / total[target])[..., None]
        nodes = lib.zeros(20_000, 4, 8).index_add(0, target, messages)
        return _derived(nodes.square().mean(), (x, w, a))

    return step


@work("DLRM-like, 26 tables of 10,000 x 16, batch 512")
def tables(lib: Any) -> Step:
    nn = lib.nn
    bags = nn.ModuleList(nn.EmbeddingBag(10_000, 16, mode="sum") for _ in range(26))
    top = nn.Sequential(nn.Linear(27 * 16, 256), nn.ReLU(), nn.Linear(256, 1))
    _filled(lib, bags), _filled(lib, top)
    dense = _normal(lib, 512, 16)
    picks = [_integers(lib, 10_000, 512, 4, seed=seed) for seed in range(26)]
    parameters = [*top.parameters(), *bags.parameters()]

    def step() -> list[Any]:
        made = [bag(pick) for bag, pick in zip(bags, picks, strict=True)]
        loss = top(lib.cat([dense, *made], 1)).square().mean()
        return _derived(loss, (dense, *parameters))

    return step


@work("LSTM of 1,000 steps, batch 16, 64 units")
def long_lstm(lib: Any) -> Step:
    net = _filled(lib, lib.nn.LSTM(32, 64))
    x = _normal(lib, 1000, 16, 32)
    return lambda: _derived(net(x)[0].square().mean(), (x, *net.parameters()))


@work("GRU of 200 steps, batch 32, 128 units")
def gru(lib: Any) -> Step:
    net = _filled(lib, lib.nn.GRU(64, 128))
    x = _normal(lib, 200, 32, 64)
    return lambda: _derived(net(x)[0].square().mean(), (x, *net.parameters()))


@work("speech CTC, 400 frames, batch 8, 64 signs")
def ctc(lib: Any) -> Step:
    F = lib.nn.functional
    x, target = _normal(lib, 400, 8, 64), _integers(lib, 63, 8, 60) + 1
    frames, signs = lib.full((8,), 400), lib.full((8,), 60)
    return lambda: _derived(F.ctc_loss(F.log_softmax(x, -1), target, frames, signs), (x,))


# Whole training steps


@work("AdamW on 10M parameters")
def adamw(lib: Any) -> Step:
    shapes = [(2000, 2000), (2000, 2000), (1000, 2000)]
    parameters = [_normal(lib, *s, seed=i, scale=0.02) for i, s in enumerate(shapes)]
    for p in parameters:
        p.grad = _normal(lib, *p.shape, seed=7, scale=0.1, grad=False)
    optimizer = lib.optim.AdamW(parameters, 1e-3)

    def step() -> list[Any]:
        optimizer.step()
        return [parameters[2].detach()[:8]]

    return step


@work("neural ODE, RK4 of 40 steps, 64 x 64")
def ode(lib: Any) -> Step:
    w, v = _normal(lib, 64, 64, scale=0.1), _normal(lib, 64, 64, seed=1, scale=0.1)
    x = _normal(lib, 64, 64, seed=2)

    def slope(y: Any) -> Any:
        return lib.tanh(y @ w) @ v

    def step() -> list[Any]:
        y, h = x, 0.05
        for _ in range(40):
            a = slope(y)
            b = slope(y + h / 2 * a)
            c = slope(y + h / 2 * b)
            d = slope(y + h * c)
            y = y + h / 6 * (a + 2 * b + 2 * c + d)
        return _derived(y.square().mean(), (x, w, v))

    return step


@work("PINN of Burgers' equation, 1,000 points")
def pinn(lib: Any) -> Step:
    nn, grad = lib.nn, lib.autograd.grad
    net = _filled(lib, nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(),
                                     nn.Linear(64, 1)))  # fmt: skip
    x, t = _normal(lib, 1000, 1), _normal(lib, 1000, 1, seed=1)
    optimizer = lib.optim.SGD(net.parameters(), 1e-3)

    def step() -> list[Any]:
        optimizer.zero_grad()
        u = net(lib.cat([x, t], 1))
        ux, ut = grad(u.sum(), (x, t), create_graph=True)
        uxx = grad(ux.sum(), x, create_graph=True)[0]
        loss = (ut + u * ux - 0.01 * uxx).square().mean()
        loss.backward()
        optimizer.step()
        return [loss.detach()]

    return step


@work("MAML, 4 tasks, 2 inner steps")
def maml(lib: Any) -> Step:
    F, grad = lib.nn.functional, lib.autograd.grad
    weights = [_normal(lib, n, m, seed=n, scale=0.2) for n, m in ((40, 1), (40, 40), (1, 40))]
    tasks = [[_normal(lib, 20, 1, seed=4 * i + j, grad=False) for j in range(4)] for i in range(4)]

    def predicted(x: Any, u: Any, v: Any, w: Any) -> Any:
        return F.linear(lib.tanh(F.linear(lib.tanh(F.linear(x, u)), v)), w)

    def step() -> list[Any]:
        loss = lib.zeros(())
        for x, y, x_later, y_later in tasks:
            own = weights
            for _ in range(2):
                inner = (predicted(x, *own) - y).square().mean()
                steps = grad(inner, own, create_graph=True)
                own = [p - 0.01 * s for p, s in zip(own, steps, strict=True)]
            loss = loss + (predicted(x_later, *own) - y_later).square().mean()
        return _derived(loss, weights)

    return step


@work("DataLoader with augmentation, 512 images of 3 x 32²")
def loader(lib: Any) -> Step:
    data = lib.utils.data
    images = np.random.default_rng(0).standard_normal((512, 3, 32, 32), np.float32)
    labels = np.arange(512) % 10

    class Augmented(data.Dataset):  # type: ignore[name-defined, misc]
        def __len__(self) -> int:
            return len(images)

        def __getitem__(self, i: int) -> Any:
            x = lib.nn.functional.pad(lib.from_numpy(images[i]), (2, 2, 2, 2))
            top, left = i % 5, i // 5 % 5
            x = x[:, top : top + 32, left : left + 32]
            return (x.flip(-1) if i % 2 else x), int(labels[i])

    batches = data.DataLoader(Augmented(), 64)
    net = _filled(lib, lib.nn.Sequential(lib.nn.Flatten(), lib.nn.Linear(3072, 10)))
    optimizer = lib.optim.SGD(net.parameters(), 1e-4)

    def step() -> list[Any]:
        for x, y in batches:
            optimizer.zero_grad()
            loss = lib.nn.functional.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
        return [loss.detach()]

    return step
