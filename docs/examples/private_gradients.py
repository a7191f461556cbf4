"""A training that keeps its samples private: each sample's gradient is clipped, and noise is added.

    python docs/examples/private_gradients.py

A trained network can betray that a certain sample was in its training data. Under differentially
private descent it cannot, up to a bound ε: one sample more or less changes the probability of any
outcome by a factor of at most exp(ε), but for a probability δ (Abadi and others, Deep Learning with
Differential Privacy, 2016). Three things make it so.

1. A step takes each sample with probability q.
2. The gradient of each sample is clipped to a norm of at most C. This needs the gradients one by
   one, and `vmap(grad(loss))` gives all of them in one pass.
3. Their sum gets normal noise of deviation σ C.

The bound follows from q, σ and the number of steps (Mironov, Talwar and Zhang, Rényi Differential
Privacy of the Sampled Gaussian Mechanism, 2019). The rival is the same training without 2 and 3.

The data are scikit-learn's 1797 digits, one in five held out. A whole run takes about 4 seconds on
one core:

    clipped to norm 1, noise of deviation 2.0: 95.5 % of the held-out digits, ε = 5.18 at δ = 1e-05
    neither clipped nor noisy:                 97.5 % of the held-out digits
"""

import math
import sys
from typing import Any, NamedTuple

from showing import judge, progress, read_options, save_picture

# isort: split
import numpy as np

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.func import functional_call, grad, vmap
from oneflow_lite.nn import functional as F

DEFAULT_STEPS = 300
SHARE = 0.1  # q, the probability with which a step takes a sample
CLIP, NOISE = 1.0, 2.0  # C and σ
RATE = 1.0
DELTA = 1e-5
EXPECTED = 0.9  # of the held-out digits

Weights = dict[str, flow.Tensor]


class Digits(NamedTuple):
    """Images, (n, 64), from 0 to 1, and labels, (n,)."""

    images: flow.Tensor
    labels: flow.Tensor


def load(seed: int) -> tuple[Digits, Digits]:
    """Return scikit-learn's digits as a training and a held-out part."""
    from sklearn.datasets import load_digits

    scans = load_digits()
    order = np.random.default_rng(seed).permutation(len(scans.target))
    held_out, train = np.split(order, [len(order) // 5])
    images, labels = np.float32(scans.data / 16), np.int64(scans.target)
    return tuple(Digits(flow.tensor(images[i]), flow.tensor(labels[i])) for i in (train, held_out))


net = nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10))


def loss_of(weights: Weights, image: flow.Tensor, label: flow.Tensor) -> flow.Tensor:
    """The loss of one sample."""
    scores = functional_call(net, weights, (image,))
    return F.cross_entropy(scores[None], label[None])


gradients_of = vmap(grad(loss_of), in_dims=(None, 0, 0))  # (samples, …) for each weight


def clipped_sum(gradients: Weights, norm: float) -> Weights:
    """Sum over the samples, each scaled down to a norm of at most `norm` over all weights."""
    squares = [g.flatten(1).square().sum(1) for g in gradients.values()]
    norms = flow.stack(squares).sum(0).sqrt()
    factors = (norm / norms.clamp(min=1e-12)).clamp(max=1)
    return {name: flow.tensordot(factors, g, dims=1) for name, g in gradients.items()}


def step(weights: Weights, data: Digits, private: bool) -> Weights:
    """Draw samples and return the weights after one step."""
    chosen = flow.rand(len(data.labels)) < SHARE
    found = gradients_of(weights, data.images[chosen], data.labels[chosen])
    if private:
        total = clipped_sum(found, CLIP)
        total = {name: g + NOISE * CLIP * flow.randn_like(g) for name, g in total.items()}
    else:
        total = {name: g.sum(0) for name, g in found.items()}
    scale = RATE / (SHARE * len(data.labels))  # the mean size: the true one is a secret
    return {name: w - scale * total[name] for name, w in weights.items()}


def epsilon(steps: int, share: float = SHARE, noise: float = NOISE, delta: float = DELTA) -> float:
    """Return the bound ε after so many steps."""
    bounds = []
    for order in range(2, 129):
        # The Rényi divergence of this order for one step; its terms are summed as logarithms.
        terms = [
            math.log(math.comb(order, k))
            + (order - k) * math.log1p(-share)
            + k * math.log(share)
            + (k * k - k) / (2 * noise**2)
            for k in range(order + 1)
        ]
        divergence = float(np.logaddexp.reduce(terms)) / (order - 1)
        bounds.append(steps * divergence + math.log(1 / delta) / (order - 1))
    return min(bounds)


def accuracy(weights: Weights, data: Digits) -> float:
    """Return the share of digits that are read correctly."""
    scores = functional_call(net, weights, (data.images,))
    return (scores.argmax(1) == data.labels).float().mean().item()


def train(train_on: Digits, held_out: Digits, steps: int, private: bool) -> list[float]:
    """Return the accuracy on the held-out digits after each step."""
    weights = {name: w.detach().clone() for name, w in net.named_parameters()}
    history = []
    bar = progress(steps)
    for _ in bar:
        weights = step(weights, train_on, private)
        history.append(accuracy(weights, held_out))
        bar.set_postfix({"accuracy": f"{history[-1]:.3f}"}, refresh=False)
    return history


def draw(axes: Any, private: list[float], plain: list[float]) -> None:
    """Draw both accuracies, step by step."""
    axes.plot(range(1, len(plain) + 1), plain, label="without clipping and noise")
    axes.plot(range(1, len(private) + 1), private, label=f"norm ≤ {CLIP:g}, noise {NOISE:g}")
    axes.set(title="Digits read correctly", xlabel="step", ylabel="share", ylim=(0, 1))
    axes.legend(frameon=False, loc="lower right")


def main(argv: list[str] | None = None) -> int:
    """Train privately and plainly; return 1 when a full private run reads too few digits."""
    args = read_options(argv, "train with private gradients", DEFAULT_STEPS)
    flow.manual_seed(args.seed)
    for layer in (net[0], net[2]):
        layer.reset_parameters()
    train_on, held_out = load(args.seed)
    private = train(train_on, held_out, args.steps, private=True)
    plain = train(train_on, held_out, args.steps, private=False)

    bound = f"ε = {epsilon(args.steps):.2f} at δ = {DELTA:g}"
    read = "of the held-out digits"
    print(f"clipped to norm {CLIP:g}, noise of deviation {NOISE * CLIP:.1f}:", end=" ")
    print(f"{100 * private[-1]:.1f} % {read}, {bound}")
    print(f"neither clipped nor noisy:                 {100 * plain[-1]:.1f} % {read}")
    save_picture(args.out / "private_gradients.png", draw, private, plain)
    return judge(args, private[-1] > EXPECTED, f"more than {100 * EXPECTED:g} %")


if __name__ == "__main__":
    sys.exit(main())
