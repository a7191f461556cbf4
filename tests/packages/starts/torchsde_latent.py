"""torchsde: a stochastic differential equation learns a mean, with a diagonal noise."""

import torch
from torch import nn
from torchsde import BrownianInterval, sdeint, sdeint_adjoint


class Equation(nn.Module):
    noise_type, sde_type = "diagonal", "ito"

    def __init__(self):
        super().__init__()
        self.drift, self.spread = nn.Linear(3, 3), nn.Linear(3, 3)

    def f(self, t, y):
        return self.drift(y)

    def g(self, t, y):
        return torch.sigmoid(self.spread(y))


equation, start, t = Equation(), torch.full((16, 3), 0.1), torch.linspace(0, 1, 5)
noise = BrownianInterval(t0=0.0, t1=1.0, size=(16, 3), entropy=7, dtype=start.dtype)
optimizer = torch.optim.Adam(equation.parameters(), lr=0.02)
for step in range(6):
    solve = sdeint_adjoint if step % 2 else sdeint
    path = solve(equation, start, t, bm=noise, method="euler", dt=0.1)
    loss = (path[-1].mean(0) - 1).square().sum() + path.var() / 10
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
