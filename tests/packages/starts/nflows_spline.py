"""nflows: autoregressive splines and affine maps learn the density of two moons."""

import torch
from nflows.distributions import StandardNormal
from nflows.flows import Flow
from nflows.transforms import (
    CompositeTransform,
    MaskedAffineAutoregressiveTransform,
    MaskedPiecewiseRationalQuadraticAutoregressiveTransform,
    ReversePermutation,
)

angle = torch.rand(64) * 3.14
moons = torch.stack([angle.cos(), angle.sin()], 1) + 0.1 * torch.randn(64, 2)
steps = [
    MaskedAffineAutoregressiveTransform(2, hidden_features=16),
    ReversePermutation(2),
    MaskedPiecewiseRationalQuadraticAutoregressiveTransform(
        2, hidden_features=16, num_bins=6, tails="linear", tail_bound=3.0
    ),
]
flow = Flow(CompositeTransform(steps), StandardNormal([2]))
optimizer = torch.optim.Adam(flow.parameters(), 5e-3)
for _ in range(6):
    loss = -flow.log_prob(moons).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
with torch.no_grad():
    print("sampled", flow.sample(6))
