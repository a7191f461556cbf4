"""An op of one's own, and its second derivative."""

from typing import Any

import oneflow_lite as flow


@flow.register_op("my_huber")
def my_huber(xp: Any, x: Any, *, d: float = 1.0) -> Any:
    """x²/2 near 0, a line of slope d further out."""
    size = xp.abs(x)
    return xp.where(size <= d, x * x / 2, d * (size - d / 2))


@my_huber.grad(saves="x")
def my_huber_grad(F: Any, ctx: Any, dy: Any) -> Any:
    """The derivative is x, kept between -d and d."""
    return dy * F.clamp(ctx.x, -ctx.d, ctx.d)


x = flow.tensor([-3.0, -0.5, 0.0, 2.0], requires_grad=True)
(slope,) = flow.autograd.grad(my_huber(x, d=1.0).sum(), x, create_graph=True)
(curvature,) = flow.autograd.grad(slope.sum(), x)
print(slope.detach(), curvature)
