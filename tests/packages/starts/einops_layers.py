"""einops: a mixer made of rearrangements, reductions and products of axes."""

import torch
from einops import einsum, pack, rearrange, reduce, repeat
from einops.layers.torch import Rearrange, Reduce
from torch import nn

images, labels = torch.randn(6, 3, 16, 16), torch.randint(0, 4, (6,))
model = nn.Sequential(
    Rearrange("b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4),
    nn.Linear(48, 32),
    nn.GELU(),
    Rearrange("b n d -> b d n"),
    nn.Linear(16, 16),
    Reduce("b d n -> b d", "mean"),
    nn.Linear(32, 4),
)
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for _ in range(6):
    loss = nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
heads = rearrange(model[:3](images), "b n (h d) -> b h n d", h=4)
scores = einsum(heads, heads, "b h i d, b h j d -> b h i j").softmax(-1)
packed, shapes = pack([scores, repeat(images.mean(1), "b h w -> b k h w", k=2)], "b * n m")
print("packed", reduce(packed, "b k n m -> k", "max"))
