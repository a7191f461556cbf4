"""Gradients for each sample: one forward and one backward pass over the whole batch."""

import oneflow_lite as flow


def error(w, x, y):
    """The loss of one sample."""
    return (flow.tanh((x * w).sum()) - y) ** 2


w = flow.tensor([0.1, -0.2])
samples = flow.tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
targets = flow.tensor([0.5, 0.0, -0.5])
print(flow.vmap(flow.func.grad(error), in_dims=(None, 0, 0))(w, samples, targets))
