"""Networks as people write them for PyTorch, for the works that train whole ones."""

from __future__ import annotations

import math
from typing import Any


def resnet18(lib: Any) -> Any:
    """Return the ResNet of 18 layers (He et al., 2015), for 10 classes."""
    nn, F = lib.nn, lib.nn.functional

    class Block(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self, inputs: int, width: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(inputs, width, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(width)
            self.relu = nn.ReLU(inplace=True)
            self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(width)
            self.downsample = None
            if stride != 1 or inputs != width:
                self.downsample = nn.Sequential(
                    nn.Conv2d(inputs, width, 1, stride, bias=False), nn.BatchNorm2d(width)
                )

        def forward(self, x: Any) -> Any:
            y = self.relu(self.bn1(self.conv1(x)))
            y = self.bn2(self.conv2(y))
            y += x if self.downsample is None else self.downsample(x)
            return self.relu(y)

    class ResNet(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
            self.bn1 = nn.BatchNorm2d(64)
            self.relu = nn.ReLU(inplace=True)
            self.maxpool = nn.MaxPool2d(3, 2, 1)
            layers, inputs = [], 64
            for width in (64, 128, 256, 512):
                for _ in range(2):
                    layers.append(Block(inputs, width, 2 if inputs != width else 1))
                    inputs = width
            self.layers = nn.Sequential(*layers)
            self.fc = nn.Linear(512, 10)

        def forward(self, x: Any) -> Any:
            x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
            x = F.adaptive_avg_pool2d(self.layers(x), 1)
            return self.fc(x.flatten(1))

    return ResNet()


def dcgan(lib: Any) -> tuple[Any, Any]:
    """Return generator and discriminator (Radford et al., 2015) of 32 x 32 images."""
    nn, width = lib.nn, 64
    generator = nn.Sequential(
        nn.ConvTranspose2d(100, 4 * width, 4, 1, 0, bias=False),
        nn.BatchNorm2d(4 * width),
        nn.ReLU(True),
        nn.ConvTranspose2d(4 * width, 2 * width, 4, 2, 1, bias=False),
        nn.BatchNorm2d(2 * width),
        nn.ReLU(True),
        nn.ConvTranspose2d(2 * width, width, 4, 2, 1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(True),
        nn.ConvTranspose2d(width, 3, 4, 2, 1, bias=False),
        nn.Tanh(),
    )
    discriminator = nn.Sequential(
        nn.Conv2d(3, width, 4, 2, 1, bias=False),
        nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(width, 2 * width, 4, 2, 1, bias=False),
        nn.BatchNorm2d(2 * width),
        nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(2 * width, 4 * width, 4, 2, 1, bias=False),
        nn.BatchNorm2d(4 * width),
        nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(4 * width, 1, 4, 1, 0, bias=False),
        nn.Sigmoid(),
    )
    return generator, discriminator


def gpt(lib: Any, width: int = 192, heads: int = 6, dropout: float = 0.1) -> Any:
    """Return a small GPT over 65 characters, attention and GELU written out."""
    nn, F = lib.nn, lib.nn.functional
    tokens = 64

    class GELU(nn.Module):  # type: ignore[name-defined, misc]
        def forward(self, x: Any) -> Any:
            inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * lib.pow(x, 3.0))
            return 0.5 * x * (1.0 + lib.tanh(inner))

    class Attention(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.qkv = nn.Linear(width, 3 * width)
            self.proj = nn.Linear(width, width)
            self.of_scores, self.of_result = nn.Dropout(dropout), nn.Dropout(dropout)
            causal = lib.tril(lib.ones(tokens, tokens)).view(1, 1, tokens, tokens)
            self.register_buffer("causal", causal)

        def forward(self, x: Any) -> Any:
            b, t, c = x.size()
            q, k, v = self.qkv(x).split(c, dim=2)
            k = k.view(b, t, heads, c // heads).transpose(1, 2)
            q = q.view(b, t, heads, c // heads).transpose(1, 2)
            v = v.view(b, t, heads, c // heads).transpose(1, 2)
            scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            scores = scores.masked_fill(self.causal[:, :, :t, :t] == 0, float("-inf"))
            y = self.of_scores(F.softmax(scores, dim=-1)) @ v
            y = y.transpose(1, 2).contiguous().view(b, t, c)
            return self.of_result(self.proj(y))

    class Block(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.attention = nn.LayerNorm(width), Attention()
            self.norm2 = nn.LayerNorm(width)
            self.mlp = nn.Sequential(
                nn.Linear(width, 4 * width),
                GELU(),
                nn.Linear(4 * width, width),
                nn.Dropout(dropout),
            )

        def forward(self, x: Any) -> Any:
            x = x + self.attention(self.norm1(x))
            return x + self.mlp(self.norm2(x))

    class GPT(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(65, width), nn.Embedding(tokens, width)
            self.dropout = nn.Dropout(dropout)
            self.blocks = nn.ModuleList([Block() for _ in range(6)])
            self.norm = nn.LayerNorm(width)
            self.head = nn.Linear(width, 65, bias=False)

        def forward(self, x: Any) -> Any:
            place = lib.arange(0, x.size(1), dtype=lib.long).unsqueeze(0)
            x = self.dropout(self.tokens(x) + self.places(place))
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    return GPT()
