"""torchvision: images in folders, augmented and loaded in batches, for a small network."""

from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms
from torchvision.utils import make_grid, save_image

rng = np.random.default_rng(0)
for number in range(16):
    folder = Path("images", ("cats", "dogs")[number % 2])
    folder.mkdir(parents=True, exist_ok=True)
    pixels = rng.integers(0, 100 + 155 * (number % 2), (40, 48, 3), np.uint8)
    Image.fromarray(pixels).save(folder / f"{number}.png")

steps = [transforms.Resize(36), transforms.RandomCrop(32), transforms.RandomHorizontalFlip()]
steps += [transforms.ToTensor(), transforms.Normalize((0.4, 0.4, 0.4), (0.3, 0.3, 0.3))]
data = datasets.ImageFolder("images", transforms.Compose(steps))
model = nn.Sequential(
    nn.Conv2d(3, 8, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(128, 2)
)
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
for _ in range(2):
    for images, labels in DataLoader(data, batch_size=4, shuffle=True):
        loss = nn.functional.cross_entropy(model(images).to(torch.get_default_dtype()), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
save_image(make_grid(images, normalize=True), "grid.png")
print("grid", np.asarray(Image.open("grid.png")).astype(float).mean())
