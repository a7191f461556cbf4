"""An op of one's own in ten lines, certified, used in a network, and seen by a profiler.

The op is the inverse square root unit, y = x / sqrt(1 + x^2): a sigmoid-shaped activation that
needs no exponential. Run it with `python docs/examples/own_op.py`.
"""

import argparse
import sys
import time
from collections import Counter
from typing import Any

import oneflow_lite as flow
from oneflow_lite import nn

DEFAULT_STEPS = 300
ALLOWED_LOSS = 1e-3

# --- The op: a kernel, and how its gradient is taken ------------------------------------------


@flow.register_op("isru")
def isru(xp: Any, x: Any) -> Any:
    """x / sqrt(1 + x^2); `xp` is numpy, or cupy for tensors on a GPU."""
    return x / xp.sqrt(1 + x * x)


@isru.grad(saves="x")
def isru_grad(F: Any, ctx: Any, dy: Any) -> Any:
    """dx = dy / sqrt(1 + x^2)^3, written over `F`, so that it can be differentiated again."""
    return dy / F.pow(F.sqrt(1 + ctx.x * ctx.x), 3)


# --- An interpreter that counts and times the ops that pass through it -------------------------


class Profiler(flow.Interpreter):
    """Adds up calls and seconds by op; `self.inner` is the interpreter that was on top before."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.seconds: Counter[str] = Counter()

    def apply(self, op_expr: Any, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        start = time.perf_counter()
        try:
            return self.inner.apply(op_expr, inputs, attrs)
        finally:
            self.calls[op_expr.op_type_name] += 1
            self.seconds[op_expr.op_type_name] += time.perf_counter() - start


# --- Using both ---------------------------------------------------------------------------------


class Isru(nn.Module):
    """The op as a module; the functor is all it needs."""

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        return isru(x)


def derivatives(x: flow.Tensor) -> tuple[flow.Tensor, flow.Tensor]:
    """The first and the second derivative at every element of `x`."""
    (first,) = flow.autograd.grad(isru(x).sum(), x, create_graph=True)
    (second,) = flow.autograd.grad(first.sum(), x)
    return first.detach(), second


def show_derivatives() -> None:
    """Print the first and second derivative beside the formulas."""
    x = flow.tensor([-1.0, 0.0, 0.5, 2.0], dtype=flow.float64, requires_grad=True)
    first, second = derivatives(x)
    print(f"first derivative  {first}")
    print(f"second derivative {second}")
    root = flow.sqrt(1 + x * x)
    error = (second + 3 * x / root**5).abs().max().item()
    print(f"largest distance from -3 x / sqrt(1 + x^2)^5: {error:.1e}")


def train_step(
    net: nn.Module, optimizer: flow.optim.Optimizer, x: flow.Tensor, y: flow.Tensor
) -> flow.Tensor:
    """Improve the network once; return the loss that it had."""
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(net(x), y)
    loss.backward()
    optimizer.step()
    return loss


def fit(steps: int) -> tuple[float, float]:
    """Fit sin(3 x) with a network of the op; return the first loss and the last."""
    flow.manual_seed(0)
    x = flow.linspace(-1, 1, 64).reshape(-1, 1)
    y = flow.sin(3 * x)
    net = nn.Sequential(nn.Linear(1, 32), Isru(), nn.Linear(32, 1))
    optimizer = flow.optim.Adam(net.parameters(), lr=0.05)
    losses = [train_step(net, optimizer, x, y).item() for _ in range(steps)]
    return losses[0], losses[-1]


def main(argv: list[str] | None = None) -> int:
    """Check, differentiate, fit and profile; return 1 when a full fit is bad."""
    parser = argparse.ArgumentParser(description="register an op, check it, train with it")
    parser.add_argument("--steps", type=int, default=DEFAULT_STEPS)
    steps = parser.parse_args(argv).steps
    if steps < 1:
        parser.error(f"--steps: expected at least 1, got {steps}")

    # Values, first and second derivatives against differences, layouts, dtypes, hidden writes.
    flow.testing.check_op(isru, [flow.testing.Sample(flow.randn(3, 4, dtype=flow.float64))])
    print("check_op: isru passed")
    show_derivatives()

    with flow.push_interpreter(Profiler()) as profiler:
        before, after = fit(steps)
    print(f"\nloss {before:.4f} -> {after:.6f} in {steps} steps")
    print(f"{'op':<16}{'calls':>8}{'ms':>10}")
    for name, seconds in profiler.seconds.most_common():
        print(f"{name:<16}{profiler.calls[name]:>8}{1e3 * seconds:>10.2f}")
    if steps >= DEFAULT_STEPS and after > ALLOWED_LOSS:
        print(f"the loss is too large: at most {ALLOWED_LOSS:g} was expected")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
