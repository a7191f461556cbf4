"""A small network, trained for one step."""

import oneflow_lite as flow
from oneflow_lite import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(4, 8)
        self.out = nn.Linear(8, 3)

    def forward(self, x):
        h = self.hidden(x).tanh()
        return self.out(h)


net = Net()


def step():
    x = flow.randn(16, 4)
    target = flow.randint(0, 3, (16,))

    scores = net(x)
    loss = nn.functional.cross_entropy(scores, target)
    loss.backward()

    with flow.no_grad():
        for parameter in net.parameters():
            parameter -= 0.1 * parameter.grad
