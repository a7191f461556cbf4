"""vit-pytorch: a ViT and a SimpleViT learn to classify images."""

import torch
from torch import nn
from vit_pytorch import SimpleViT, ViT

images, labels = torch.randn(4, 3, 32, 32), torch.randint(0, 10, (4,))
sizes = {"image_size": 32, "patch_size": 8, "num_classes": 10, "dim": 64, "depth": 2, "heads": 4}
for model in (ViT(**sizes, mlp_dim=128, dropout=0.1), SimpleViT(**sizes, mlp_dim=128)):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(4):
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
