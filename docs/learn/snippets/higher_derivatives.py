"""A second derivative: the first backward pass leaves a graph behind, the second one runs it."""

import oneflow_lite as flow

x = flow.tensor([0.5, 1.5], requires_grad=True)
y = (flow.sin(x) * x**2).sum()
(first,) = flow.autograd.grad(y, x, create_graph=True)
(second,) = flow.autograd.grad(first.sum(), x)
print(first.detach(), second)
