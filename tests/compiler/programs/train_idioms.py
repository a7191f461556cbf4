"""Ways of writing: kinds of batches and configurations, caches, counters, hooks, decorators."""

import enum
import functools
import math
import time
import warnings
from collections import OrderedDict
from dataclasses import asdict, dataclass, field, replace

import numpy as np

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.nn import functional as F
from oneflow_lite.utils.checkpoint import checkpoint
from oneflow_lite.utils.data import DataLoader, Dataset
from tests.compiler.programs.kit import STEPS, blobs, curve, images, program


@dataclass
class Batch:
    inputs: flow.Tensor
    targets: flow.Tensor
    weights: flow.Tensor | None = None
    meta: dict = field(default_factory=dict)

    def to(self, device):
        return replace(self, inputs=self.inputs.to(device), targets=self.targets.to(device))

    def __len__(self):
        return self.inputs.shape[0]


@dataclass(frozen=True)
class StepOutput:
    loss: flow.Tensor
    logits: flow.Tensor
    correct: int
    seen: int = 0


@dataclass
class ModelConfig:
    hidden: int = 8
    act: str = "gelu"


@dataclass
class TrainConfig:
    model: ModelConfig = field(default_factory=ModelConfig)
    lr: float = 0.02
    betas: tuple[float, float] = (0.9, 0.99)
    device: str = "cpu"


@program
def dataclasses_everywhere(compiled):
    """batches, results and nested configurations that are dataclasses"""
    cfg = TrainConfig()
    net = nn.Sequential(nn.Linear(4, cfg.model.hidden), nn.Linear(cfg.model.hidden, 3))
    optimizer = flow.optim.Adam(net.parameters(), lr=cfg.lr, betas=cfg.betas)

    @compiled
    def step(batch):
        batch = batch.to(cfg.device)
        h = getattr(F, cfg.model.act)(net[0](batch.inputs))
        logits = net[1](h)
        loss = F.cross_entropy(logits, batch.targets, weight=batch.weights)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        correct = (logits.argmax(-1) == batch.targets).sum()
        return StepOutput(loss.detach(), logits.detach(), correct.item(), seen=len(batch))

    for i, (x, y) in enumerate(blobs()):
        out = step(Batch(x, y, weights=flow.ones(3), meta={"index": i}))
        yield out, asdict(cfg), net, optimizer


class Sentences(Dataset):
    """Sequences of four lengths, bucketed."""

    def __init__(self, count, lengths=(3, 5, 4, 6)):
        self.items = []
        for i in range(count):
            length = lengths[i // 4 % len(lengths)]
            self.items.append((np.random.randint(1, 9, length).astype(np.int64), i % 2))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        tokens, label = self.items[index]
        return OrderedDict(tokens=tokens, length=len(tokens), label=label)


def collate(items):
    """Stack what a bucket holds."""
    batch = OrderedDict()
    for key in items[0]:
        batch[key] = flow.tensor(np.stack([item[key] for item in items]))
    return batch


class AverageMeter:
    def __init__(self, name, fmt=":.2f"):
        self.name, self.fmt = name, fmt
        self.val = self.sum = self.count = self.avg = 0

    def update(self, val, n=1):
        self.val, self.sum, self.count = val, self.sum + val * n, self.count + n
        self.avg = self.sum / self.count

    def __str__(self):
        return ("{name} {val" + self.fmt + "} ({avg" + self.fmt + "})").format(**self.__dict__)


@program(kinds=4)
def buckets_and_meters(compiled):
    """a DataLoader of OrderedDicts in buckets of four lengths; meters and timers outside"""
    embed, gru = nn.Embedding(9, 5, padding_idx=0), nn.GRU(5, 6, batch_first=True)
    net = nn.ModuleDict({"embed": embed, "gru": gru, "head": nn.Linear(6, 2)})
    optimizer = flow.optim.Adam(net.parameters(), lr=0.02)
    losses, batch_time = AverageMeter("Loss", ":.4e"), AverageMeter("Time", ":6.3f")

    @compiled
    def train_batch(batch):
        output, _ = net["gru"](net["embed"](batch["tokens"]))
        mean = output.sum(1) / batch["length"].unsqueeze(-1)
        loss = F.cross_entropy(net["head"](mean), batch["label"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(2):
        end = time.perf_counter()
        for batch in DataLoader(Sentences(80), batch_size=4, collate_fn=collate):
            loss = train_batch(batch)
            losses.update(loss.item(), batch["label"].size(0))
            batch_time.update(time.perf_counter() - end)
            end = time.perf_counter()
            yield loss.detach(), str(losses), batch_time.count, net, optimizer


class Instances:
    """Fields of one length that are read as attributes or sliced together."""

    def __init__(self, image_size, **fields):
        self._image_size = image_size
        self._fields = {}
        for name, value in fields.items():
            self.set(name, value)

    def __setattr__(self, name, value):
        if name.startswith("_"):
            super().__setattr__(name, value)
        else:
            self.set(name, value)

    def __getattr__(self, name):
        if name == "_fields" or name not in self._fields:
            raise AttributeError(f"Cannot find field '{name}' in the given Instances!")
        return self._fields[name]

    def set(self, name, value):
        if len(self._fields):
            assert len(self) == len(value), f"Adding a field of length {len(value)}"
        self._fields[name] = value

    def has(self, name):
        return name in self._fields

    def __len__(self):
        for value in self._fields.values():
            return len(value)
        raise NotImplementedError("Empty Instances does not support __len__!")

    def __getitem__(self, item):
        return Instances(self._image_size, **{k: v[item] for k, v in self._fields.items()})


@program
def custom_batch_class(compiled):
    """detection targets as objects with __getattr__ and __setattr__, new ones made in the step"""
    net = nn.Sequential(nn.Flatten(), nn.Linear(192, 8), nn.ReLU(), nn.Linear(8, 4))
    optimizer = flow.optim.SGD(net.parameters(), lr=0.05)

    def losses(pred, targets):
        proposals = Instances(targets._image_size, deltas=pred)
        proposals.gt_boxes = targets.gt_boxes
        if targets.has("scores"):
            proposals.weights = targets.scores
        kept = proposals[:3]
        box = F.smooth_l1_loss(kept.deltas, kept.gt_boxes, reduction="none", beta=0.5).sum(1)
        return {"loss_box": (box * kept.weights if kept.has("weights") else box).mean()}

    @compiled
    def step(x, targets):
        loss_dict = losses(net(x), targets)
        optimizer.zero_grad()
        sum(loss_dict.values()).backward()
        optimizer.step()
        return {k: v.detach() for k, v in loss_dict.items()}

    for x, _ in images():
        boxes = flow.stack([x.mean((1, 2, 3)) * k for k in range(4)], dim=1)
        yield step(x, Instances((8, 8), gt_boxes=boxes, scores=flow.rand(4))), net, optimizer


class Norm(enum.Enum):
    NONE = "none"
    LAYER = "layer"
    RMS = "rms"

    def build(self, dim):
        return {Norm.LAYER: nn.LayerNorm, Norm.RMS: nn.RMSNorm}.get(self, nn.Identity)(dim)


class Task(enum.StrEnum):
    CLASSES = "classes"
    VALUE = "value"


@program(kinds=2)
def tasks_by_enum(compiled):
    """two tasks in turn, chosen by an enum: ModuleDict heads, dicts of losses and options"""
    cfg = {"model": {"dim": 8, "norm": Norm.RMS}, "weights": {Task.CLASSES: 1.0, Task.VALUE: 0.5}}
    dim = cfg["model"]["dim"]
    trunk = nn.Sequential(nn.Linear(4, dim), nn.ReLU(), cfg["model"]["norm"].build(dim))
    heads = nn.ModuleDict(
        {Task.CLASSES.value: nn.Linear(dim, 3), Task.VALUE.value: nn.Linear(dim, 1)}
    )
    net = nn.ModuleList([trunk, heads])
    optimizer = flow.optim.Adam(net.parameters(), lr=0.02)
    criteria = {
        Task.CLASSES: F.cross_entropy,
        Task.VALUE: lambda p, y: F.mse_loss(p, y.unsqueeze(1)),
    }

    @compiled
    def step(task, x, y):
        pred = heads[task.value](trunk(x))
        if task is Task.VALUE:
            y = y.to(pred.dtype)
        loss = criteria[task](pred, y) * cfg["weights"][task]
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.detach()

    for i, (x, y) in enumerate(blobs()):
        yield step((Task.CLASSES, Task.VALUE)[i % 2], x, y), net, optimizer


@functools.lru_cache(maxsize=32)
def sinusoids(length, channels, max_timescale=10000):
    assert channels % 2 == 0, f"channels ({channels}) must be even"
    increment = np.log(max_timescale) / (channels // 2 - 1)
    inv_timescales = np.exp(-increment * np.arange(channels // 2))
    scaled = np.arange(length)[:, None] * inv_timescales[None]
    table = np.concatenate([np.sin(scaled), np.cos(scaled)], axis=1)
    return flow.from_numpy(table.astype(np.float32))


@functools.cache
def window(name, size):
    return getattr(np, name)(size).astype("float32").tolist()


class Attend(nn.Module):
    def __init__(self, dim, heads=2):
        super().__init__()
        self.heads, self.to_qkv = heads, nn.Linear(dim, dim * 3, bias=False)
        self.masks = {}

    def mask(self, x):
        key = f"{x.shape[1]}x{x.shape[1]}-{x.dtype}"
        if key not in self.masks:
            ones = flow.ones(x.shape[1], x.shape[1], dtype=flow.bool)
            self.masks[key] = ones.tril()
        return self.masks[key]

    def forward(self, x):
        (b, n, c), h = x.shape, self.heads
        q, k, v = (t.reshape(b, n, h, -1).transpose(1, 2) for t in self.to_qkv(x).chunk(3, dim=-1))
        assert q.shape == (b, h, n, c // h), f"got {tuple(q.shape)} {q.dtype}"
        sim = q @ k.transpose(-1, -2) / np.sqrt(q.shape[-1])
        sim = sim.masked_fill(~self.mask(x), -flow.finfo(sim.dtype).max)
        if math.prod(sim.shape[-2:]) > 1_000:
            warnings.warn(f"long sequences: {n}", stacklevel=1)
        return (sim.softmax(dim=-1) @ v).transpose(1, 2).reshape(b, n, c)


@program(kinds=2)
def shapes_and_caches(compiled):
    """lru_cached tables, masks by f-strings of shapes, np.sqrt and np.prod of shapes, asserts"""
    attend, head = Attend(4), nn.Linear(4, 1)
    net = nn.ModuleList([attend, head])
    optimizer = flow.optim.Adam(net.parameters(), lr=0.02)

    @compiled
    def step(x):
        n, c = x.shape[1:]
        y = attend(x + sinusoids(n, c))
        weights = flow.tensor(window("hanning", n + 2)[1:-1])
        error = (head(y).squeeze(-1) - x.sum(-1)).square() * weights
        loss = error.sum() / np.prod(error.shape)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    for i in range(STEPS):
        yield step(flow.randn(3, 5 + i % 2, 4)), list(attend.masks), net, optimizer


class RecurrentHead(nn.Module):
    """Keeps its last state, counts its calls, and holds a running mean in a plain attribute."""

    calls = 0
    mean = None

    def __init__(self, dim):
        super().__init__()
        self.cell, self.h, self.last_shape = nn.RNNCell(dim, dim), None, None

    def forward(self, x):
        self.calls += 1
        h = self.h if self.h is not None else x.new_zeros(x.shape)
        h = self.cell(x, h)
        self.h = h.detach()
        self.last_shape = tuple(x.shape)
        mean = h.detach().mean(0)
        self.mean = mean if self.mean is None else self.mean * 0.9 + mean * 0.1
        return h


@program
def counters_and_kept_states(compiled):
    """a module that counts its calls and keeps its state, a mean and a shape as attributes"""
    head, out = RecurrentHead(4), nn.Linear(4, 3)
    net = nn.Sequential(head, out)
    optimizer = flow.optim.SGD(net.parameters(), lr=0.1)
    state = {"step": 0, "best": None}

    @compiled
    def step(x, y):
        state["step"] += 1
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    for x, y in blobs():
        loss = step(x, y).item()
        if state["best"] is None or loss < state["best"]:
            state["best"] = loss
        yield loss, head.h, head.mean, head.calls, state, net, optimizer


class CkptBlock(nn.Module):
    def __init__(self, dim, use_checkpoint=True):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)
        self.norm, self.use_checkpoint = nn.LayerNorm(dim), use_checkpoint

    def _forward(self, x):
        return x + self.fc2(F.gelu(self.fc1(self.norm(x))))

    def forward(self, x):
        if self.use_checkpoint and x.requires_grad:
            return checkpoint(self._forward, x, use_reentrant=False)
        return self._forward(x)


@program
def checkpointed_blocks(compiled):
    """blocks that are computed again in the backward pass, by utils.checkpoint"""
    net = nn.Sequential(nn.Linear(4, 4), *(CkptBlock(4) for _ in range(2)), nn.Linear(4, 3))
    optimizer = flow.optim.AdamW(net.parameters(), lr=0.01)

    @compiled
    def step(x, y):
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    for x, y in blobs():
        yield step(x, y), net, optimizer


class CheckpointFunction(flow.autograd.Function):
    """Runs a function without a graph, and again with one when gradients are asked for."""

    @staticmethod
    def forward(ctx, run_function, length, *args):
        ctx.run_function = run_function
        ctx.input_tensors, ctx.input_params = list(args[:length]), list(args[length:])
        with flow.no_grad():
            return run_function(*ctx.input_tensors)

    @staticmethod
    def backward(ctx, *output_grads):
        ctx.input_tensors = [x.detach().requires_grad_(True) for x in ctx.input_tensors]
        with flow.enable_grad():
            shallow_copies = [x.view_as(x) for x in ctx.input_tensors]
            output = ctx.run_function(*shallow_copies)
        grads = flow.autograd.grad(
            output, ctx.input_tensors + ctx.input_params, output_grads, allow_unused=True
        )
        del ctx.input_tensors, ctx.input_params, output
        return (None, None, *grads)


class StraightThrough(flow.autograd.Function):
    """The nearest code of each row; gradients pass as if nothing had happened."""

    @staticmethod
    def forward(ctx, z, codes):
        indices = flow.cdist(z, codes).argmin(dim=1)
        ctx.save_for_backward(indices)
        ctx.size = codes.size(0)
        ctx.mark_non_differentiable(indices)
        return codes[indices], indices

    @staticmethod
    def backward(ctx, grad_output, _):
        (indices,) = ctx.saved_tensors
        grad_codes = grad_output.new_zeros(ctx.size, grad_output.size(1))
        return grad_output, grad_codes.index_add_(0, indices, grad_output)


@program
def functions_of_ones_own(compiled):
    """a VQ-VAE: a straight-through Function, and an encoder checkpointed by a Function"""
    encoder = nn.Sequential(nn.Linear(4, 6), nn.SiLU(), nn.Linear(6, 2))
    decoder, codebook = nn.Linear(2, 4), nn.Embedding(5, 2)
    net = nn.ModuleList([encoder, decoder, codebook])
    optimizer = flow.optim.Adam(net.parameters(), lr=0.01)

    @compiled
    def step(x):
        z = CheckpointFunction.apply(encoder, 1, x, *encoder.parameters())
        q, indices = StraightThrough.apply(z, codebook.weight)
        commit = F.mse_loss(z, codebook(indices).detach())
        loss = F.mse_loss(decoder(q), x) + 0.25 * commit
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        usage = F.one_hot(indices, 5).float().mean(0)
        perplexity = flow.exp(-(usage * (usage + 1e-10).log()).sum())
        return loss.detach(), perplexity.numpy()

    for x, _ in blobs():
        yield step(x), net, optimizer


class FeatureExtractor:
    """Stores the outputs and gradients of named layers, by hooks, as long as it is open."""

    def __init__(self, model, layers):
        self.features, self.gradients = {}, {}
        self.handles = []
        for name, module in model.named_modules():
            if name in layers:
                forward = functools.partial(self.save, name)
                self.handles.append(module.register_forward_hook(forward))

    def save(self, name, module, args, output):
        self.features[name] = output.detach()
        if output.requires_grad:
            output.register_hook(lambda grad: self.gradients.__setitem__(name, grad.norm()))

    def remove(self):
        while self.handles:
            self.handles.pop().remove()


@program
def hooks_that_store(compiled):
    """forward hooks and hooks on gradients that keep activations in dictionaries"""
    net = nn.Sequential(OrderedDict(a=nn.Linear(4, 8), act=nn.ReLU(), b=nn.Linear(8, 3)))
    optimizer = flow.optim.SGD(net.parameters(), lr=0.1)
    extractor = FeatureExtractor(net, ["a", "act"])

    @compiled
    def step(x, y):
        loss = F.cross_entropy(net(x), y)
        sparsity = extractor.features["act"].abs().mean()
        optimizer.zero_grad()
        (loss + 0.1 * sparsity).backward()
        optimizer.step()
        return loss.detach(), sparsity

    for x, y in blobs():
        yield step(x, y), extractor.features, extractor.gradients, net, optimizer
    extractor.remove()


def auto_move(method):
    """Turn arrays among the arguments into tensors."""

    @functools.wraps(method)
    def wrapper(self, *args, **kwargs):
        args = [flow.as_tensor(a) if isinstance(a, np.ndarray) else a for a in args]
        return method(self, *args, **kwargs)

    return wrapper


def retry(times):
    """Call a method again when it raises a TimeoutError."""

    def decorate(method):
        @functools.wraps(method)
        def wrapper(*args, **kwargs):
            for attempt in range(times):
                try:
                    return method(*args, **kwargs)
                except TimeoutError:
                    if attempt + 1 == times:
                        raise
            return None

        return wrapper

    return decorate


@functools.singledispatch
def to_loss(pred, target):
    raise TypeError(f"no loss for {type(pred).__name__}")


@to_loss.register
def _(pred: dict, target):
    return sum(to_loss(each, target) for each in pred.values()) / len(pred)


@to_loss.register
def _(pred: flow.Tensor, target):
    return F.huber_loss(pred, target)


@program
def decorators_and_dispatch(compiled):
    """decorated methods, singledispatch, isinstance, closures in a list, properties, partial"""

    def make_head(scale):
        return lambda h: h * scale

    class Regressor(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
            self.heads = [make_head(0.5 + k) for k in range(3)]
            self.make_optimizer = functools.partial(flow.optim.Adam, lr=0.01)

        @property
        def weight_norm(self):
            return sum(m.weight.norm() for m in self.body if isinstance(m, nn.Linear))

        @retry(times=2)
        @auto_move
        def forward(self, x):
            h = self.body(x)
            return {f"head{k}": head(h) for k, head in enumerate(self.heads)}

    net = Regressor()
    optimizer = net.make_optimizer(net.parameters())

    @compiled
    def step(x, y):
        loss = to_loss(net(x), y) + 1e-3 * net.weight_norm
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    for x, y in curve():
        yield step(x, y), net.body, optimizer
