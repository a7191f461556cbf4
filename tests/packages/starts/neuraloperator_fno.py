"""neuraloperator: a Fourier neural operator learns to smooth fields."""

import torch
from neuralop.losses import H1Loss, LpLoss
from neuralop.models import FNO

model = FNO(n_modes=(6, 6), in_channels=1, out_channels=1, hidden_channels=16, n_layers=2)
x = torch.randn(4, 1, 16, 16)
y = torch.fft.irfft2(torch.fft.rfft2(x)[..., :4], s=(16, 16))
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
lossy, smooth = LpLoss(d=2, p=2), H1Loss(d=2)
for _ in range(6):
    optimizer.zero_grad()
    loss = lossy(model(x), y)
    loss.backward()
    optimizer.step()
    print(loss.item())
with torch.no_grad():
    print("smooth", smooth(model(x), y))
