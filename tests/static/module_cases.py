"""Every module of `flow.nn` with inputs for it, the optimizers, and a net around a module."""

from __future__ import annotations

import re
from typing import Any

import attrs
import numpy as np

import oneflow_lite as flow
from tests.nn.layer_cases import CASES as LAYER_CASES

nn = flow.nn
STEPS = 4


@attrs.frozen
class ModuleCase:
    """A module, as the text that builds it, and the inputs of its first call."""

    text: str
    inputs: tuple[np.ndarray, ...]

    def make(self) -> nn.Module:
        """Return the module, with the same numbers at each call."""
        flow.manual_seed(3)
        module: nn.Module = eval(
            self.text,
            {"nn": nn, "flow": flow, **{c.__name__: c for c in (Numbered, Named, Rated, First)}},
        )
        return module

    def arrays(self, step: int) -> list[np.ndarray]:
        """Return the inputs of a call: other numbers at each."""
        moved = [np.roll(x, step, -1) for x in self.inputs]
        return [x * np.float32(1 + step / 8) if x.dtype == np.float32 else x for x in moved]

    def tensors(self, step: int) -> list[flow.Tensor]:
        """Return them as tensors."""
        return [flow.tensor(x) for x in self.arrays(step)]


class Numbered(nn.Module):
    """Layers and parameters in lists."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4)])
        self.scales = nn.ParameterList([flow.ones(4), flow.full((4,), 0.5)])

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        """Return what the layers make of an input, each result scaled."""
        for i, layer in enumerate(self.layers):
            x = layer(x) * self.scales[i % 2]
        return x


class Named(nn.Module):
    """Layers in a dict, one of them used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleDict({"first": nn.Linear(4, 4), "second": nn.LayerNorm((4,))})
        self.register_buffer("count", flow.zeros(()))

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        """Return a result of all layers; count the calls."""
        self.count.add_(1)
        for layer in self.layers.values():
            x = layer(x) + x
        return self.layers["first"](x)


class Rated(nn.Module):
    """The loss alone of a module that returns more."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: flow.Tensor, target: flow.Tensor) -> flow.Tensor:
        """Return the loss."""
        loss: flow.Tensor = self.inner(x, target).loss
        return loss


class First(nn.Module):
    """The first result of a module that returns several."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, *inputs: flow.Tensor) -> flow.Tensor:
        """Return it."""
        first: flow.Tensor = self.inner(*inputs)[0]
        return first


class Net(nn.Module):
    """A module behind a learnable scale, so that there is something to train."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.scale = nn.Parameter(flow.tensor(0.75))
        self.inner = inner

    def forward(self, x: flow.Tensor, *targets: flow.Tensor) -> flow.Tensor:
        """Return the mean square of what the module makes of the scaled input."""
        x = x * self.scale if x.is_floating_point() else x
        y = self.inner(x, *targets)
        return (y * self.scale).square().mean()


def _numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(5).normal(size=shape).astype(np.float32)


FLAT, IMAGES, LINES = _numbers(6, 4), _numbers(2, 4, 4, 4), _numbers(2, 4, 6)
SHARES = (np.arange(24, dtype=np.float32).reshape(6, 4) % 7 + 1) / 12
CLASSES = np.array([0, 3, 1, 2, 2, 0])
INDICES = np.array([[0, 2, 1], [3, 3, 0]])

MODULES: list[ModuleCase] = []


def _add(*inputs: np.ndarray, texts: str) -> None:
    for text in filter(None, map(str.strip, texts.split("|"))):
        MODULES.append(ModuleCase(text, inputs))


_add(
    FLAT,
    texts="""
    nn.CELU(0.5) | nn.ELU() | nn.GELU() | nn.GELU("tanh") | nn.Hardsigmoid() | nn.Hardswish()
    | nn.Hardtanh(-0.5, 0.75) | nn.LeakyReLU(0.1) | nn.LogSigmoid() | nn.LogSoftmax(1) | nn.Mish()
    | nn.ReLU() | nn.ReLU(inplace=True) | nn.ReLU6() | nn.SELU() | nn.SiLU(inplace=True)
    | nn.Sigmoid() | nn.Softmax(1) | nn.Softplus(2.0) | nn.Softsign() | nn.Tanh() | nn.Tanhshrink()
    | nn.Identity() | nn.Dropout(0.4) | nn.Dropout(0.4, inplace=True) | nn.Unflatten(1, (2, 2))
    | nn.Linear(4, 3) | nn.Linear(4, 3, bias=False) | nn.BatchNorm1d(4) | nn.LayerNorm((4,))
    | nn.BatchNorm1d(4, momentum=None) | nn.BatchNorm1d(4, affine=False)
    | nn.BatchNorm1d(4, track_running_stats=False) | nn.GroupNorm(2, 4) | nn.RMSNorm((4,))
    | nn.LayerNorm((4,), bias=False) | nn.RMSNorm((4,), elementwise_affine=False)
    | nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Dropout(0.3), nn.Linear(5, 2))
    | Numbered() | Named()
    """,
)
_add(
    IMAGES,
    texts="""
    nn.AdaptiveAvgPool2d(2) | nn.AvgPool2d(2) | nn.AvgPool2d(3, 2, 1, True) | nn.BatchNorm2d(4)
    | nn.Conv2d(4, 3, 2) | nn.Conv2d(4, 4, 3, padding=1, groups=2, bias=False) | nn.Flatten()
    | nn.Conv2d(4, 2, 3, padding="same", padding_mode="reflect") | nn.MaxPool2d(2)
    | nn.MaxPool2d(3, 2, 1) | nn.GroupNorm(4, 4, affine=False) | nn.LayerNorm((4, 4))
    | nn.Sequential(nn.Conv2d(4, 3, 3), nn.BatchNorm2d(3), nn.SiLU(), nn.MaxPool2d(2), nn.Flatten())
    """,
)
_add(
    LINES,
    texts="""
    nn.AvgPool1d(2, 1, 1) | nn.Conv1d(4, 3, 3, stride=2, padding=1) | nn.MaxPool1d(2)
    | nn.BatchNorm1d(4) | nn.Conv1d(4, 4, 2, dilation=2, groups=4)
    """,
)
_add(
    INDICES,
    texts="""
    nn.Embedding(4, 3) | nn.Embedding(4, 3, padding_idx=2, scale_grad_by_freq=True)
    | nn.Sequential(nn.Embedding(4, 3), nn.Flatten(), nn.Linear(9, 2))
    """,
)
_add(
    FLAT, SHARES,
    texts="""
    nn.MSELoss() | nn.L1Loss(reduction="sum") | nn.SmoothL1Loss(beta=0.5) | nn.HuberLoss(delta=0.5)
    | nn.KLDivLoss(reduction="batchmean") | nn.KLDivLoss(reduction="sum", log_target=True)
    | nn.CosineSimilarity()
    | nn.BCEWithLogitsLoss(reduction="none") | nn.MSELoss(reduction="none")
    | nn.BCEWithLogitsLoss(flow.full((4,), 0.5), pos_weight=flow.full((4,), 2.0))
    | nn.CrossEntropyLoss()
    """,
)  # fmt: skip
_add(SHARES, np.flip(SHARES).copy() / 2, texts="nn.BCELoss()")
_add(
    FLAT, CLASSES,
    texts="""
    nn.CrossEntropyLoss(label_smoothing=0.1) | nn.NLLLoss()
    | nn.CrossEntropyLoss(flow.tensor([0.5, 1.0, 2.0, 1.0]), ignore_index=2, reduction="sum")
    | nn.NLLLoss(flow.tensor([0.5, 1.0, 2.0, 1.0]), reduction="none")
    """,
)  # fmt: skip
_add(FLAT, texts="nn.SyncBatchNorm(4)")
_add(FLAT, SHARES, texts="nn.Bilinear(4, 4, 3)")
_add(LINES, texts="nn.ConvTranspose1d(4, 2, 3, 2) | nn.InstanceNorm1d(4, track_running_stats=True)")
_add(
    IMAGES,
    texts="nn.ConvTranspose2d(4, 2, 2, 2, groups=2) | nn.InstanceNorm2d(4, affine=True)",
)
_add(
    _numbers(2, 2, 2, 3, 2),
    texts="""
    nn.Conv3d(2, 2, (1, 2, 2)) | nn.ConvTranspose3d(2, 2, 2) | nn.BatchNorm3d(2)
    | nn.InstanceNorm3d(2)
    """,
)
_add(INDICES, texts='nn.EmbeddingBag(4, 3) | nn.EmbeddingBag(4, 3, mode="max")')
_add(FLAT, CLASSES, texts="Rated(nn.AdaptiveLogSoftmaxWithLoss(4, 5, [1, 3], div_value=2))")
_add(FLAT, texts="nn.RNNCell(4, 3) | nn.GRUCell(4, 3) | First(nn.LSTMCell(4, 3))")
_add(
    LINES,
    texts="""
    First(nn.RNN(6, 3)) | First(nn.GRU(6, 3, 2, bidirectional=True))
    | First(nn.LSTM(6, 4, proj_size=3, batch_first=True)) | nn.TransformerEncoderLayer(6, 2, 8)
    | nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8, norm_first=True), 2)
    """,
)
_add(
    LINES,
    LINES,
    texts="""
    nn.TransformerDecoderLayer(6, 2, 8, 0.0) | nn.Transformer(6, 2, 1, 1, 8)
    | nn.TransformerDecoder(nn.TransformerDecoderLayer(6, 2, 8), 1)
    """,
)
_add(LINES, LINES, LINES, texts="First(nn.MultiheadAttention(6, 2))")
_listed = set(re.findall(r"nn\.(\w+)\(", " ".join(case.text for case in MODULES)))
for _text, _inputs in LAYER_CASES:  # one of each class that is not there yet
    if (_name := _text[3 : _text.index("(")]) not in _listed:
        _listed.add(_name)
        MODULES.append(ModuleCase(_text, _inputs))
# Bases of the others, and what holds parameters without a forward.
NO_FORWARD = {"Module", "Parameter", "ModuleList", "ModuleDict", "ParameterList"}
NO_FORWARD |= {
    "RNNBase",
    "RNNCellBase",
    "Buffer",
    "Graph",
    "ParameterDict",
    "UninitializedBuffer",
    "UninitializedParameter",
}
NO_FORWARD |= {name for name in nn.__all__ if name.startswith("Lazy")}  # tests/nn/test_lazy.py

OPTIMIZERS: dict[str, Any] = {
    "sgd": lambda p: flow.optim.SGD(p, lr=0.1),
    "decay": lambda p: flow.optim.SGD(p, lr=0.1, weight_decay=0.1, maximize=True),
    "momentum": lambda p: flow.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.25),
    "nesterov": lambda p: flow.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "adam": lambda p: flow.optim.Adam(p, lr=0.05),
    "amsgrad": lambda p: flow.optim.Adam(p, lr=0.05, amsgrad=True, weight_decay=0.1),
    "adamw": lambda p: flow.optim.AdamW(p, lr=0.05),
    "adamw, amsgrad": lambda p: flow.optim.AdamW(p, lr=0.05, amsgrad=True, maximize=True),
}
SCHEDULERS: dict[str, Any] = {
    "lambda": lambda o: flow.optim.lr_scheduler.LambdaLR(o, lambda i: 1 / (i + 1)),
    "step": lambda o: flow.optim.lr_scheduler.StepLR(o, 2, 0.5),
    "milestones": lambda o: flow.optim.lr_scheduler.MultiStepLR(o, [1, 3]),
    "exponential": lambda o: flow.optim.lr_scheduler.ExponentialLR(o, 0.75),
    "linear": lambda o: flow.optim.lr_scheduler.LinearLR(o, 0.25, total_iters=3),
    "cosine": lambda o: flow.optim.lr_scheduler.CosineAnnealingLR(o, 5),
}
CLIPS: dict[str, Any] = {
    "no clipping": lambda parameters: None,
    "norm": lambda parameters: nn.utils.clip_grad_norm_(parameters, 0.05),
    "value": lambda parameters: nn.utils.clip_grad_value_(parameters, 0.01),
}
