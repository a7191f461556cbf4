"""Gradients of third order: a network that learns a solitary wave from its equation alone.

The Korteweg-de Vries equation u_t + 6 u u_x + u_xxx = 0 describes waves in shallow water. A wave
u(x, t) = u(s) that travels at speed c, s = x - c t, turns it into an ordinary equation,

    u''' + 6 u u' - c u' = 0,

whose solitary solution is known: u(s) = c/2 sech^2(sqrt(c)/2 s) (Korteweg and de Vries, 1895).
The network never sees it. It is told the height, slope and curvature of the crest, and is punished
for what is left of the equation elsewhere; that takes `autograd.grad` three times with
`create_graph=True`, and then a fourth derivative, by the network's parameters, in `backward`.

Run it with `python docs/examples/higher_order.py`. It takes a few seconds.
"""

import argparse
import sys

import oneflow_lite as flow
from oneflow_lite import nn

SPEED = 2.0
HALF_WIDTH = 3.0
POINTS = 65  # odd, so that one point lies on the crest
CREST = POINTS // 2
DEFAULT_STEPS = 1000
ALLOWED_ERROR = 1e-2


def soliton(s: flow.Tensor) -> flow.Tensor:
    """The exact wave, for comparison only."""
    return SPEED / 2 / flow.cosh(SPEED**0.5 / 2 * s) ** 2


def derivative(u: flow.Tensor, s: flow.Tensor) -> flow.Tensor:
    """du/ds at every point, itself differentiable.

    Point i of `u` depends on point i of `s` alone, so the gradient of the sum holds every
    point's own derivative.
    """
    return flow.autograd.grad(u.sum(), s, create_graph=True)[0]


def loss_of(net: nn.Module, s: flow.Tensor) -> flow.Tensor:
    """Return by how much the network misses the equation, and the crest."""
    u = net(s)
    du = derivative(u, s)
    d2u = derivative(du, s)
    d3u = derivative(d2u, s)
    equation = d3u + 6 * u * du - SPEED * du
    height = u[CREST] - SPEED / 2
    slope = du[CREST]
    curvature = d2u[CREST] + SPEED**2 / 4
    return equation.square().mean() + (height**2 + slope**2 + curvature**2).sum()


def train_step(net: nn.Module, s: flow.Tensor, optimizer: flow.optim.Optimizer) -> flow.Tensor:
    """Improve the network once; return the loss that it had."""
    optimizer.zero_grad()
    loss = loss_of(net, s)
    loss.backward()
    optimizer.step()
    return loss


def train(net: nn.Module, s: flow.Tensor, steps: int) -> None:
    """Fit with Adam, the learning rate falling linearly to zero."""
    optimizer = flow.optim.Adam(net.parameters(), lr=0.01)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = 0.01 * (1 - step / steps)
        loss = train_step(net, s, optimizer)
        if step % 100 == 0 or step == steps - 1:
            print(f"step {step:5d}  loss {loss.item():.2e}  error {error_of(net, s).item():.2e}")


def error_of(net: nn.Module, s: flow.Tensor) -> flow.Tensor:
    """The largest distance from the exact wave."""
    with flow.no_grad():
        return (net(s) - soliton(s)).abs().max()


def draw(net: nn.Module, s: flow.Tensor) -> None:
    """The fitted wave and the exact one as text, every fourth point."""
    with flow.no_grad():
        fitted = net(s)
    print("\n     s   fitted    exact")
    for at, value, exact in zip(s[::4], fitted[::4], soliton(s)[::4], strict=True):
        bar = "#" * max(0, round(40 * value.item()))
        print(f"{at.item():6.2f}  {value.item():7.4f}  {exact.item():7.4f}  {bar}")


def main(argv: list[str] | None = None) -> int:
    """Fit, compare with the exact wave, and return 1 when a full run is too far from it."""
    parser = argparse.ArgumentParser(description="learn a solitary wave from its equation")
    parser.add_argument("--steps", type=int, default=DEFAULT_STEPS)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    if args.steps < 1:
        parser.error(f"--steps: expected at least 1, got {args.steps}")

    flow.manual_seed(args.seed)
    net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
    s = flow.linspace(-HALF_WIDTH, HALF_WIDTH, POINTS).reshape(-1, 1).requires_grad_()
    train(net, s, args.steps)
    draw(net, s)

    error = error_of(net, s).item()
    print(f"\nlargest error {error:.2e}, where the wave is {SPEED / 2:g} high")
    if args.steps >= DEFAULT_STEPS and error > ALLOWED_ERROR:
        print(f"that is too much: at most {ALLOWED_ERROR:g} was expected")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
