"""A network that solves Burgers' equation, knowing nothing but the equation.

    python docs/examples/pinn.py

    u_t + u u_x = ν u_xx,    u(x, 0) = -sin πx,    u(±1, t) = 0

describes a wave that steepens as it travels, and is smoothed by the viscosity ν. The network
u(x, t) is punished for what is left of the equation at random points inside, and for missing the
start and the ends (Raissi, Perdikaris and Karniadakis, Physics-informed neural networks, 2019). One
run of the network on Taylor series gives u, u_x and u_xx (`func.jet`), another one u_t
(`func.jvp`); `backward` differentiates all of them by the weights. The network is trained by
L-BFGS, which estimates the curvature and needs the loss several times a step, hence the closure.

The exact solution is known: the substitution of Cole and Hopf turns the equation into the heat
equation, and its solution, an integral with the weight exp(-z²), is summed by Gauss and Hermite.

A whole run takes about 15 seconds on one core. The loss falls to 4e-5, and the relative error is
5.7e-4 at t = 0.1, 6.2e-4 at 0.3, 7.1e-4 at 0.6 and 1.4e-3 at 1.
"""

import math
import sys
from typing import Any

from showing import judge, progress, read_options, save_picture

# isort: split
import numpy as np

import oneflow_lite as flow
from oneflow_lite import nn

VISCOSITY = 0.05
POINTS, EDGE_POINTS = 1000, 64
EDGE_WEIGHT = 10.0
DEFAULT_STEPS = 60  # of at most 20 iterations each
ALLOWED_ERROR = 0.01


def exact(x: np.ndarray, t: float) -> np.ndarray:
    """The solution at places x, (n,), and a time t > 0 (Cole, 1951)."""
    z, weights = np.polynomial.hermite.hermgauss(100)
    y = x[:, None] - 2 * math.sqrt(VISCOSITY * t) * z
    heat = weights * np.exp(-np.cos(math.pi * y) / (2 * math.pi * VISCOSITY))
    return -(np.sin(math.pi * y) * heat).sum(1) / heat.sum(1)


class Solution(nn.Module):
    """Four layers; gives u at places x and times t, all of shape (n, 1)."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.Linear(2, 20), nn.Tanh(), nn.Linear(20, 20), nn.Tanh()),
            *(nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 1)),
        )

    def forward(self, x: flow.Tensor, t: flow.Tensor) -> flow.Tensor:
        return self.layers(flow.cat([x, t], dim=1))


def loss_of(net: Solution, inside: list[flow.Tensor], edge: list[flow.Tensor]) -> flow.Tensor:
    """Return what is left of the equation inside, and how far the edge is missed."""
    x, t = inside
    # Each point is on its own way x + s: point i of u depends on point i of x alone.
    u, (u_x, u_xx) = flow.func.jet(lambda x: net(x, t), (x,), ((1.0, 0.0),))
    _, u_t = flow.func.jvp(lambda t: net(x, t), (t,), (flow.ones_like(t),))
    left = u_t + u * u_x - VISCOSITY * u_xx
    edge_x, edge_t, wanted = edge
    missed = net(edge_x, edge_t) - wanted
    return left.square().mean() + EDGE_WEIGHT * missed.square().mean()


def choose_points() -> tuple[list[flow.Tensor], list[flow.Tensor]]:
    """Random x and t inside; and x, t and u at the start and at both ends."""
    x, t = flow.rand(2, POINTS, 1, dtype=flow.float64)
    inside = [2 * x - 1, t]
    t = flow.linspace(0, 1, EDGE_POINTS, dtype=flow.float64)[:, None]
    x, zero, one = 2 * t - 1, flow.zeros_like(t), flow.ones_like(t)
    edge = [
        flow.cat([x, -one, one]),
        flow.cat([zero, t, t]),
        flow.cat([-flow.sin(math.pi * x), zero, zero]),
    ]
    return inside, edge


def solve(net: Solution, steps: int) -> list[float]:
    """Train; return the loss after every step."""
    inside, edge = choose_points()
    optimizer = flow.optim.LBFGS(net.parameters(), max_iter=20, line_search_fn="strong_wolfe")

    def closure() -> flow.Tensor:
        optimizer.zero_grad()
        loss = loss_of(net, inside, edge)
        loss.backward()
        return loss

    losses = []
    bar = progress(steps)
    for _ in bar:
        losses.append(float(optimizer.step(closure)))
        bar.set_postfix({"loss": f"{losses[-1]:.2e}"}, refresh=False)
    return losses


@flow.no_grad()
def solution_at(net: Solution, x: np.ndarray, t: float) -> np.ndarray:
    """The network's solution at places x, (n,), and one time."""
    column = flow.tensor(x)[:, None]
    return net(column, flow.full_like(column, t)).flatten().numpy()


def draw(axes: Any, net: Solution, x: np.ndarray) -> None:
    """The wave at four times."""
    for i, t in enumerate((0.1, 0.3, 0.6, 1.0)):
        axes.plot(x, exact(x, t), color=f"C{i}", lw=4, alpha=0.3)
        axes.plot(x, solution_at(net, x, t), color=f"C{i}", lw=1, label=f"t = {t}")
    axes.set(title="Burgers' equation: exact (broad) and learned (thin)", xlabel="x", ylabel="u")
    axes.legend(frameon=False)


def main(argv: list[str] | None = None) -> int:
    """Solve, compare with the exact solution, and return 1 when a full run is too far from it."""
    args = read_options(argv, "solve Burgers' equation with a network", DEFAULT_STEPS)
    flow.manual_seed(args.seed)
    net = Solution().double()  # L-BFGS takes differences of gradients
    losses = solve(net, args.steps)
    print(f"loss {losses[0]:.2e} -> {losses[-1]:.2e}")

    x = np.linspace(-1, 1, 201)
    worst = 0.0
    for t in (0.1, 0.3, 0.6, 1.0):
        wanted, found = exact(x, t), solution_at(net, x, t)
        error = np.linalg.norm(found - wanted) / np.linalg.norm(wanted)
        worst = max(worst, error)
        print(f"t = {t}: relative error {error:.1e}, largest {np.abs(found - wanted).max():.1e}")
    save_picture(args.out / "pinn.png", draw, net, x)
    return judge(args, worst < ALLOWED_ERROR, f"a relative error below {ALLOWED_ERROR:g}")


if __name__ == "__main__":
    sys.exit(main())
