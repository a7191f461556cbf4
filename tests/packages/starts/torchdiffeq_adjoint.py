"""torchdiffeq: a neural differential equation learns by the adjoint method."""

import torch
from torch import nn
from torchdiffeq import odeint_adjoint

torch.set_default_dtype(torch.float64)


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))

    def forward(self, t, y):
        return self.net(y**3)


t = torch.linspace(0, 2, 12)
truth = torch.stack([(2 * t).cos() * (-t / 4).exp(), (2 * t).sin() * (-t / 4).exp()], 1)
field = Field()
optimizer = torch.optim.RMSprop(field.parameters(), lr=1e-3)
for _ in range(4):
    optimizer.zero_grad()
    found = odeint_adjoint(field, truth[0], t, rtol=1e-6, atol=1e-8)
    loss = (found - truth).abs().mean()
    loss.backward()
    optimizer.step()
    print(loss.item())
