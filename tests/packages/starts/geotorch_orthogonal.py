"""geotorch: weights that stay orthogonal, of low rank, or positive definite while they learn."""

import geotorch
import torch
from torch import nn

x = torch.randn(24, 8)
rotated = x @ torch.linalg.qr(torch.randn(8, 8))[0]
model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8))
geotorch.orthogonal(model[0], "weight")
geotorch.low_rank(model[1], "weight", rank=4)
geotorch.positive_definite(model[2], "weight")
optimizer = torch.optim.SGD(model.parameters(), 0.05)
for _ in range(6):
    loss = nn.functional.mse_loss(model(x), rotated)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
weight = model[0].weight
print("orthogonal", weight @ weight.T)
print("definite", torch.linalg.eigvalsh(model[2].weight))
