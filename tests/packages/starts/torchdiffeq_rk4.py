"""torchdiffeq: a small field learns through fixed steps of Runge and Kutta, and an event."""

import torch
from torch import nn
from torchdiffeq import odeint, odeint_event

t, start = torch.linspace(0, 1, 11), torch.randn(16, 2)
turn = torch.linalg.matrix_exp(torch.tensor([[0.0, 1.0], [-1.0, 0.0]]))
field = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 2))
optimizer = torch.optim.Adam(field.parameters(), lr=1e-2)
for _ in range(6):
    end = odeint(lambda t, y: field(y), start, t, method="rk4")[-1]
    loss = nn.functional.mse_loss(end, start @ turn)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
gravity = torch.nn.Parameter(torch.tensor(9.8))


def fall(t, state):
    return state[1], -gravity


state = torch.tensor(10.0), torch.tensor(0.0)
when, _ = odeint_event(fall, state, torch.tensor(0.0), event_fn=lambda t, s: s[0], method="dopri5")
when.backward()
print("falls", when, gravity.grad)
