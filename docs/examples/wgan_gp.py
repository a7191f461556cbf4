"""A Wasserstein GAN with a gradient penalty that draws handwritten digits.

    python docs/examples/wgan_gp.py

A critic gives every picture a score; the mean score of real pictures minus that of drawn ones,
made as large as it gets, is the Wasserstein distance between the two, as long as the critic is
nowhere steeper than 1. The penalty sees to that: λ (‖∂critic/∂picture‖ - 1)², at random points
between real and drawn pictures (Gulrajani and others, Improved Training of Wasserstein GANs, 2017,
algorithm 1). A gradient stands in the loss, so training takes derivatives of second order.

The digits are the 1797 scans of 8 by 8 pixels that come with scikit-learn. The nearest real digit
shows how good a drawn one is: how far away it is, and which digit it stands for.

A whole run takes about 20 seconds on one core. The critic's distance, 2.15 at its height, falls to
0.32. Drawn digits are 1.36 times as far from the next real one as real ones are from each other,
and of 500 every digit gets between 28 and 63.
"""

import sys
from typing import Any

from showing import judge, progress, read_options, save_picture

import oneflow_lite as flow
from oneflow_lite import nn

DEFAULT_STEPS = 3000
NOISE, WIDTH, BATCH = 16, 128, 64
CRITIC_STEPS, PENALTY = 3, 10.0


def load_digits() -> tuple[flow.Tensor, flow.Tensor]:
    """Pictures, (1797, 64), from 0 (paper) to 1 (ink), and which digits they show."""
    from sklearn import datasets

    digits = datasets.load_digits()
    return flow.tensor(digits.data / 16, dtype=flow.float32), flow.tensor(digits.target)


def new_generator() -> nn.Module:
    """Make a picture, (n, 64), of noise, (n, NOISE)."""
    return nn.Sequential(
        *(nn.Linear(NOISE, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU()),
        *(nn.Linear(WIDTH, 64), nn.Sigmoid()),
    )


def new_critic() -> nn.Module:
    """Give every picture a score, (n, 1)."""
    return nn.Sequential(
        *(nn.Linear(64, WIDTH), nn.LeakyReLU(0.2), nn.Linear(WIDTH, WIDTH), nn.LeakyReLU(0.2)),
        nn.Linear(WIDTH, 1),
    )


def penalty_of(critic: nn.Module, real: flow.Tensor, drawn: flow.Tensor) -> flow.Tensor:
    """Return how far the critic's slope is from 1 between real and drawn pictures."""
    share = flow.rand(len(real), 1)
    between = (share * real + (1 - share) * drawn).requires_grad_()
    (slope,) = flow.autograd.grad(critic(between).sum(), between, create_graph=True)
    return (slope.norm(dim=1) - 1).square().mean()


def critic_step(
    critic: nn.Module, optimizer: flow.optim.Optimizer, real: flow.Tensor, drawn: flow.Tensor
) -> flow.Tensor:
    """Improve the critic once; return the distance that it saw."""
    optimizer.zero_grad()
    distance = critic(real).mean() - critic(drawn).mean()
    loss = PENALTY * penalty_of(critic, real, drawn) - distance
    loss.backward()
    optimizer.step()
    return distance.detach()


def generator_step(
    generator: nn.Module, critic: nn.Module, optimizer: flow.optim.Optimizer
) -> flow.Tensor:
    """Improve the generator once, by the critic's scores; return their mean."""
    optimizer.zero_grad()
    score = critic(generator(flow.randn(BATCH, NOISE))).mean()
    (-score).backward()
    optimizer.step()
    return score.detach()


def train(generator: nn.Module, pictures: flow.Tensor, steps: int) -> list[float]:
    """Let the critic take three steps for each of the generator's; return the distances."""
    critic = new_critic()
    optimizers = [
        flow.optim.Adam(net.parameters(), lr=5e-4, betas=(0.5, 0.9)) for net in (generator, critic)
    ]
    distances = []
    bar = progress(steps)
    for _ in bar:
        for _ in range(CRITIC_STEPS):
            real = pictures[flow.randint(len(pictures), (BATCH,))]
            with flow.no_grad():
                drawn = generator(flow.randn(BATCH, NOISE))
            distance = critic_step(critic, optimizers[1], real, drawn)
        generator_step(generator, critic, optimizers[0])
        distances.append(distance.item())
        bar.set_postfix({"distance": f"{distances[-1]:.3f}"}, refresh=False)
    return distances


def draw(axes: Any, pictures: flow.Tensor) -> None:
    """Six rows of twelve pictures, each in a margin of one pixel."""
    framed = nn.functional.pad(pictures.reshape(6, 12, 8, 8), (1, 1, 1, 1))
    sheet = framed.permute(0, 2, 1, 3).reshape(60, 120)
    axes.imshow(sheet.numpy(), cmap="gray_r", vmin=0, vmax=1)
    axes.set(title="Digits that nobody wrote")
    axes.set_axis_off()


def main(argv: list[str] | None = None) -> int:
    """Train, measure, draw, and return 1 when a full run draws badly, or too few of the digits."""
    args = read_options(argv, "draw digits with a Wasserstein GAN", DEFAULT_STEPS)
    flow.manual_seed(args.seed)
    pictures, labels = load_digits()
    generator = new_generator()
    distances = train(generator, pictures, args.steps)
    print(f"the critic's distance: at most {max(distances):.3f}, in the end {distances[-1]:.3f}")

    with flow.no_grad():
        drawn = generator(flow.randn(500, NOISE))
    away, nearest = flow.cdist(drawn, pictures).min(1)
    among_real = flow.cdist(pictures[:500], pictures).topk(2, largest=False).values[:, 1]
    ratio = (away.mean() / among_real.mean()).item()
    counts = flow.bincount(labels[nearest], minlength=10).tolist()
    print(f"a drawn digit is {ratio:.2f} times as far from the next real one as real ones are")
    print(
        "of 500: " + ", ".join(f"{count} look like {digit}" for digit, count in enumerate(counts))
    )
    save_picture(args.out / "wgan_gp.png", draw, drawn[:72])
    return judge(args, ratio < 1.5 and min(counts) >= 10, "a ratio below 1.5, and every digit")


if __name__ == "__main__":
    sys.exit(main())
