"""backpack-for-pytorch: variances, single gradients and curvature beside the gradient."""

import torch
from backpack import backpack, extend
from backpack.extensions import KFAC, BatchGrad, DiagGGNExact, Variance
from torch import nn

x, y = torch.randn(16, 1, 8, 8), torch.randint(0, 3, (16,))
model = extend(nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3)))
lossy = extend(nn.CrossEntropyLoss())
for _ in range(6):
    loss = lossy(model(x), y)
    model.zero_grad()
    with backpack(BatchGrad(), Variance(), DiagGGNExact()):
        loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.05 * p.grad / (p.diag_ggn_exact + 0.1)
    print(loss.item())
print("variances", *[p.variance.sum() for p in model.parameters()])
print("single", *[p.grad_batch.square().sum() for p in model.parameters()])
with backpack(KFAC()):
    lossy(model(x), y).backward()
print("factors", *[factor.shape for factor in model[3].weight.kfac])
