"""ema-pytorch: a moving average of the weights follows a training."""

import torch
from ema_pytorch import EMA
from torch import nn

model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1))
average = EMA(model, beta=0.9, update_after_step=2, update_every=2)
x = torch.randn(32, 8)
optimizer = torch.optim.SGD(model.parameters(), 0.05)
for _ in range(10):
    loss = nn.functional.mse_loss(model(x), x.prod(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average.update()
    print(loss.item())
average.eval()
print("average", average(x).mean(), average.get_current_decay())
