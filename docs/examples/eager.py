"""An eager script: a classifier of two half-moons, from nothing but tensors and autograd.

No modules and no optimizer: `backward` fills the `.grad` of the parameters, and the update is
written out. Run it with `python docs/examples/eager.py`.
"""

import argparse
import math
import sys

import oneflow_lite as flow

DEFAULT_STEPS = 400


def half_moons(count: int) -> tuple[flow.Tensor, flow.Tensor]:
    """Noisy points on two interlocked arcs, (2 * count, 2), and their labels, +1 or -1."""
    angle = flow.rand(count, 1) * math.pi
    upper = flow.cat([flow.cos(angle), flow.sin(angle)], dim=1)
    lower = flow.cat([1 - flow.cos(angle), 0.5 - flow.sin(angle)], dim=1)
    points = flow.cat([upper, lower])
    return points + 0.1 * flow.randn(2 * count, 2), flow.cat([flow.ones(count), -flow.ones(count)])


def train_step(
    points: flow.Tensor, labels: flow.Tensor, parameters: list[flow.Tensor]
) -> tuple[flow.Tensor, flow.Tensor]:
    """Improve the parameters once; return the loss and the scores that the points had."""
    w1, b1, w2, b2 = parameters
    score = (flow.tanh(points @ w1 + b1) @ w2 + b2).squeeze(1)
    loss = flow.nn.functional.softplus(-labels * score).mean()  # the logistic loss
    loss.backward()
    with flow.no_grad():  # an update is no part of the function that is differentiated
        for parameter in parameters:
            parameter -= 1.0 * parameter.grad
            parameter.grad = None
    return loss, score


def main(argv: list[str] | None = None) -> int:
    """Fit, print how it goes, and return 1 when a full run fits badly."""
    parser = argparse.ArgumentParser(description="fit two half-moons with a hand-made network")
    parser.add_argument("--steps", type=int, default=DEFAULT_STEPS)
    steps = parser.parse_args(argv).steps
    if steps < 1:
        parser.error(f"--steps: expected at least 1, got {steps}")
    flow.manual_seed(0)
    points, labels = half_moons(200)

    w1 = flow.randn(2, 16, requires_grad=True)
    b1 = flow.zeros(16, requires_grad=True)
    w2 = (flow.randn(16, 1) / 4).requires_grad_()
    b2 = flow.zeros(1, requires_grad=True)

    for step in range(1, steps + 1):
        loss, score = train_step(points, labels, [w1, b1, w2, b2])
        if step == 1 or step % 100 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    accuracy = (flow.sign(score) == labels).float().mean().item()
    print(f"{accuracy:.1%} of {len(labels)} points on the right side")
    if steps >= DEFAULT_STEPS and accuracy < 0.98:
        print("that is too few: 98 % was expected")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
