"""A training step that is recorded twice and replayed from then on."""

import oneflow_lite as flow

flow.manual_seed(0)
net = flow.nn.Sequential(flow.nn.Linear(2, 8), flow.nn.Tanh(), flow.nn.Linear(8, 1))
optimizer = flow.optim.Adam(net.parameters(), lr=0.05)


@flow.compile
def step(x: flow.Tensor, y: flow.Tensor) -> flow.Tensor:
    """One update; the loss before it."""
    optimizer.zero_grad()
    loss = (net(x) - y).square().mean()
    loss.backward()
    optimizer.step()
    return loss.detach()


x = flow.randn(32, 2)
for _ in range(5):
    print(step(x, x[:, :1] * x[:, 1:]).item())
print(step.explain())
