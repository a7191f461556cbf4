"""torchopt: a learning rate is learnt through differentiable and functional optimizers."""

import torch
import torchopt
from torch import nn

x = torch.randn(32, 4)
y = (x.sum(1, keepdim=True)).tanh()
model, rate = nn.Linear(4, 1), nn.Parameter(torch.tensor(1.0))
inner = torchopt.MetaSGD(model, lr=0.1)
outer = torch.optim.Adam([rate], lr=0.1)
for _ in range(6):
    state = torchopt.extract_state_dict(model), torchopt.extract_state_dict(inner)
    for _ in range(2):
        inner.step(nn.functional.mse_loss(model(x), y) * rate)
    loss = nn.functional.mse_loss(model(x), y)
    outer.zero_grad()
    loss.backward()
    outer.step()
    torchopt.recover_state_dict(model, state[0])
    torchopt.recover_state_dict(inner, state[1])
    torchopt.stop_gradient(model)
    print(loss.item(), rate.item())
weights = (torch.zeros(4, 1, requires_grad=True),)
optimizer = torchopt.adam(lr=0.05)
state = optimizer.init(weights)
for _ in range(4):
    loss = (x @ weights[0] - y).square().mean()
    updates, state = optimizer.update(torch.autograd.grad(loss, weights), state, inplace=False)
    weights = torchopt.apply_updates(weights, updates, inplace=False)
    print(loss.item())
