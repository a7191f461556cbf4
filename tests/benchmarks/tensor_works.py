"""The works as a user of PyTorch or oneflow_lite writes them: one script, ``lib`` is either.

Each function prepares its work and returns one iteration of it; calling that returns the tensors by
which the sides are compared (results and gradients, all computed anyway). Those that take `forward`
hand it the part that comes before `backward()`: it may compile that alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tests.benchmarks import data, networks

Step = Callable[[], list[Any]]
Forward = Callable[[Callable[..., Any]], Callable[..., Any]]


def _as_it_is(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


def _leaf(lib: Any, array: Any) -> Any:
    return lib.from_numpy(array.copy()).requires_grad_()


def _load(lib: Any, module: Any, arrays: data.Arrays) -> list[Any]:
    """Give ``module`` the shared starting parameters and return them as a list."""
    state = {name: lib.from_numpy(array) for name, array in data.parameters(arrays).items()}
    module.load_state_dict(state)
    return list(module.parameters())


def relu2(lib: Any, forward: Forward = _as_it_is) -> Step:
    arrays = data.relu2()
    x, dy = _leaf(lib, arrays["x"]), lib.from_numpy(arrays["dy"])
    relu = forward(lambda x: lib.relu(x))

    def step() -> list[Any]:
        x.grad = None
        y = relu(x)
        y.backward(dy)
        return [y, x.grad]

    return step


def chain300(lib: Any, forward: Forward = _as_it_is) -> Step:
    arrays = data.chain300()
    x, w, dy = _leaf(lib, arrays["x"]), _leaf(lib, arrays["w"]), lib.from_numpy(arrays["dy"])

    @forward
    def chain(x: Any, w: Any) -> Any:
        y = x
        for _ in range(30):
            y = y * w
            y = y + x
            y = lib.tanh(y)
            y = y - 0.2
            y = lib.sin(y)
            y = y * y
            y = -y
            y = lib.exp(y)
            y = y * 1.5
            y = y - x
        return y

    def step() -> list[Any]:
        x.grad = w.grad = None
        y = chain(x, w)
        y.backward(dy)
        return [y, x.grad, w.grad]

    return step


def _mlp(lib: Any, arrays: data.Arrays, forward: Forward) -> Step:
    nn, width = lib.nn, len(arrays["0.bias"])
    model = nn.Sequential(
        nn.Linear(784, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10)
    )
    parameters = _load(lib, model, arrays)
    optimizer = lib.optim.SGD(parameters, lr=0.01, momentum=0.9)
    x, target = lib.from_numpy(arrays["x"]), lib.from_numpy(arrays["target"])
    loss_of = forward(lambda x, target: nn.functional.cross_entropy(model(x), target))

    def step() -> list[Any]:
        optimizer.zero_grad()
        loss = loss_of(x, target)
        loss.backward()
        optimizer.step()
        return [loss, *[p.grad for p in parameters]]

    return step


def mlp(lib: Any, forward: Forward = _as_it_is) -> Step:
    return _mlp(lib, data.mlp(), forward)


def mlp256(lib: Any, forward: Forward = _as_it_is) -> Step:
    return _mlp(lib, data.mlp256(), forward)


def lstm50(lib: Any, forward: Forward = _as_it_is) -> Step:
    F, arrays = lib.nn.functional, data.lstm50()
    w, u, b = (_leaf(lib, arrays[name]) for name in ("w", "u", "b"))
    x, zeros, dy = (lib.from_numpy(arrays[name]) for name in ("x", "zeros", "dy"))

    @forward
    def unrolled(x: Any, w: Any, u: Any, b: Any) -> Any:
        h = c = zeros
        for t in range(50):
            gates = F.linear(x[t], w, b) + F.linear(h, u)
            i, f, g, o = gates.chunk(4, 1)
            c = lib.sigmoid(f) * c + lib.sigmoid(i) * lib.tanh(g)
            h = lib.sigmoid(o) * lib.tanh(c)
        return h, c

    def step() -> list[Any]:
        w.grad = u.grad = b.grad = None
        h, c = unrolled(x, w, u, b)
        h.backward(dy)
        return [h, c, w.grad, u.grad, b.grad]

    return step


def third_order(lib: Any) -> Step:
    nn, arrays = lib.nn, data.third_order()
    model = nn.Sequential(
        nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1)
    )
    # The last bias drops out of every derivative by x and so has no gradient.
    parameters = _load(lib, model, arrays)[:-1]
    x = _leaf(lib, arrays["x"])

    def step() -> list[Any]:
        for p in parameters:
            p.grad = None
        x.grad = None
        u = model(x)
        for _ in range(3):
            (u,) = lib.autograd.grad(u.sum(), x, create_graph=True)
        loss = (u * u).mean()
        loss.backward()
        return [loss, *[p.grad for p in parameters]]

    return step


def chain20000(lib: Any) -> Step:
    arrays = data.chain20000()
    x, dy = _leaf(lib, arrays["x"]), lib.from_numpy(arrays["dy"])

    def step() -> list[Any]:
        x.grad = None
        y = x
        for _ in range(20_000):
            y = y + 1.0
        y.backward(dy)
        return [y, x.grad]

    return step


def demo_step(lib: Any, forward: Forward = _as_it_is) -> Step:
    nn, F, arrays = lib.nn, lib.nn.functional, data.demo_step()

    class LeNet(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(1, 20, 5)
            self.conv2 = nn.Conv2d(20, 50, 5)
            self.fc1 = nn.Linear(800, 500)
            self.fc2 = nn.Linear(500, 10)

        def forward(self, x: Any) -> Any:
            x = F.relu(F.max_pool2d(self.conv1(x), 2))
            x = F.relu(F.max_pool2d(self.conv2(x), 2))
            x = F.relu(self.fc1(x.flatten(1)))
            return F.log_softmax(self.fc2(x), dim=1)

    model = LeNet()
    parameters = _load(lib, model, arrays)
    optimizer = lib.optim.SGD(parameters, lr=0.01, momentum=0.5)
    x, target = lib.from_numpy(arrays["x"]), lib.from_numpy(arrays["target"])
    loss_of = forward(lambda x, target: F.nll_loss(model(x), target))

    def step() -> list[Any]:
        optimizer.zero_grad()
        loss = loss_of(x, target)
        loss.backward()
        optimizer.step()
        return [loss, *[p.grad for p in parameters]]

    return step


def gelu(lib: Any, forward: Forward = _as_it_is) -> Step:
    arrays = data.gelu()
    x, dy = _leaf(lib, arrays["x"]), lib.from_numpy(arrays["dy"])
    scale = math.sqrt(2.0 / math.pi)

    @forward
    def gelu_of(x: Any) -> Any:
        inner = scale * (x + 0.044715 * (x * x * x))
        return 0.5 * x * (1.0 + lib.tanh(inner))

    def step() -> list[Any]:
        x.grad = None
        y = gelu_of(x)
        y.backward(dy)
        return [y, x.grad]

    return step


def transformer(lib: Any, forward: Forward = _as_it_is) -> Step:
    nn, F, arrays = lib.nn, lib.nn.functional, data.transformer()
    width, heads = 128, 4

    class Block(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.norm1 = nn.LayerNorm(width)
            self.qkv = nn.Linear(width, 3 * width)
            self.proj = nn.Linear(width, width)
            self.norm2 = nn.LayerNorm(width)
            self.fc1 = nn.Linear(width, 4 * width)
            self.fc2 = nn.Linear(4 * width, width)

        def attention(self, x: Any) -> Any:
            batch, tokens, _ = x.shape
            qkv = self.qkv(x).reshape(batch, tokens, 3, heads, width // heads)
            q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
            scores = q @ k.transpose(-2, -1) * (width // heads) ** -0.5
            mixed = F.softmax(scores, dim=-1) @ v
            return self.proj(mixed.transpose(1, 2).reshape(batch, tokens, width))

        def forward(self, x: Any) -> Any:
            x = x + self.attention(self.norm1(x))
            return x + self.fc2(F.gelu(self.fc1(self.norm2(x))))

    block = Block()
    parameters = _load(lib, block, arrays)
    x, dy = _leaf(lib, arrays["x"]), lib.from_numpy(arrays["dy"])
    run = forward(lambda x: block(x))

    def step() -> list[Any]:
        x.grad = None
        for p in parameters:
            p.grad = None
        y = run(x)
        y.backward(dy)
        return [y, x.grad, *[p.grad for p in parameters]]

    return step


def _training(lib: Any, arrays: data.Arrays, model: Any, run: Callable[[Any], Any]) -> Step:
    """Return a training step of a model; `run` computes what it gives for the input."""
    parameters = _load(lib, model, arrays)
    optimizer = lib.optim.SGD(parameters, lr=0.01)
    x, dy = lib.from_numpy(arrays["x"]), lib.from_numpy(arrays["dy"])

    def step() -> list[Any]:
        optimizer.zero_grad()
        y = run(x)
        y.backward(dy)
        optimizer.step()
        return [y, *[p.grad for p in parameters]]

    return step


def lstm_layers(lib: Any) -> Step:
    model = lib.nn.Sequential(lib.nn.LSTM(128, 128, num_layers=2))
    return _training(lib, data.lstm_layers(), model, lambda x: model(x)[0])


def gru_layers(lib: Any) -> Step:
    model = lib.nn.Sequential(lib.nn.GRU(128, 128, num_layers=2))
    return _training(lib, data.gru_layers(), model, lambda x: model(x)[0])


def encoder(lib: Any) -> Step:
    layer = lib.nn.TransformerEncoderLayer(128, 4, dim_feedforward=512, dropout=0.0)
    model = lib.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
    return _training(lib, data.encoder(), model, model)


def _drawn(lib: Any, module: Any, seed: int) -> Any:
    """Give ``module`` starting parameters that do not depend on the library, and return it."""
    shapes = {name: tuple(p.shape) for name, p in module.named_parameters()}
    state = {name: lib.from_numpy(p) for name, p in data.drawn(shapes, seed).items()}
    module.load_state_dict(state, strict=False)  # running statistics stay as they start
    return module


def resnet18(lib: Any, forward: Forward = _as_it_is) -> Step:
    F, arrays = lib.nn.functional, data.resnet18()
    model = _drawn(lib, networks.resnet18(lib), 11)
    parameters = list(model.parameters())
    optimizer = lib.optim.SGD(parameters, lr=0.01, momentum=0.9, weight_decay=5e-4)
    x, target = lib.from_numpy(arrays["x"]), lib.from_numpy(arrays["target"])

    # Digests of the largest would take longer than the steps; they show in the next loss.
    compared = [p for p in parameters if p.numel() < 200_000]
    loss_of = forward(lambda x, target: F.cross_entropy(model(x), target))

    def step() -> list[Any]:
        optimizer.zero_grad()
        loss = loss_of(x, target)
        loss.backward()
        optimizer.step()
        return [loss, *[p.grad for p in compared]]

    return step


def dcgan(lib: Any) -> Step:
    arrays = data.dcgan()
    generator, discriminator = networks.dcgan(lib)
    # Rounding must not decide anything, or sides cannot be compared: of these draws no activation
    # lies that near to 0, and without eps Adam's first step would be the sign of each gradient.
    _drawn(lib, generator, 22), _drawn(lib, discriminator, 14)
    criterion = lib.nn.BCELoss()
    of_d, of_g = (
        lib.optim.Adam(net.parameters(), lr=2e-4, betas=(0.5, 0.999), eps=1e-3)
        for net in (discriminator, generator)
    )
    real, noise = lib.from_numpy(arrays["x"]), lib.from_numpy(arrays["noise"])
    ones, zeros = lib.ones(16), lib.zeros(16)

    def step() -> list[Any]:
        discriminator.zero_grad()
        loss_real = criterion(discriminator(real).view(-1), ones)
        loss_real.backward()
        fake = generator(noise)
        loss_fake = criterion(discriminator(fake.detach()).view(-1), zeros)
        loss_fake.backward()
        of_d.step()
        generator.zero_grad()
        loss = criterion(discriminator(fake).view(-1), ones)
        loss.backward()
        of_g.step()
        return [loss_real, loss_fake, loss, fake, *[p.grad for p in generator.parameters()]]

    return step


def gpt(lib: Any) -> Step:
    F, arrays = lib.nn.functional, data.gpt()
    model = _drawn(lib, networks.gpt(lib), 14)
    parameters = list(model.parameters())
    x, target = lib.from_numpy(arrays["x"]), lib.from_numpy(arrays["target"]).view(-1)
    decayed = [p for name, p in model.named_parameters() if p.dim() > 1 and "blocks" in name]
    chosen = {id(p) for p in decayed}
    groups = [
        {"params": decayed, "weight_decay": 0.1},
        {"params": [p for p in parameters if id(p) not in chosen], "weight_decay": 0.0},
    ]
    optimizer = lib.optim.AdamW(groups, lr=5e-4, betas=(0.9, 0.95))
    # Each library draws its own elements to drop: what is compared is computed without, once.
    model.eval()
    loss = F.cross_entropy(model(x).view(-1, 65), target)
    loss.backward()
    compared = [loss.detach(), *[p.grad.clone() for p in parameters]]
    model.train()

    def step() -> list[Any]:
        loss = F.cross_entropy(model(x).view(-1, 65), target)
        model.zero_grad(set_to_none=True)
        loss.backward()
        lib.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        return [*compared]

    return step


def char(lib: Any, forward: Forward = _as_it_is) -> Step:
    F, arrays = lib.nn.functional, data.gpt()
    model = _drawn(lib, networks.gpt(lib, width=256, heads=8, dropout=0.0), 15)
    parameters = list(model.parameters())
    x, target = lib.from_numpy(arrays["x"]), lib.from_numpy(arrays["target"]).view(-1)
    optimizer = lib.optim.SGD(parameters, lr=0.01, momentum=0.9)
    compared = [p for p in parameters if p.numel() < 50_000]
    loss_of = forward(lambda x, target: F.cross_entropy(model(x).view(-1, 65), target))

    def step() -> list[Any]:
        optimizer.zero_grad()
        loss = loss_of(x, target)
        loss.backward()
        optimizer.step()
        return [loss, *[p.grad for p in compared]]

    return step
