"""torchvision: its second transforms change images, boxes and masks together."""

import torch
from torch import nn
from torchvision import tv_tensors
from torchvision.transforms import v2

change = v2.Compose(
    [
        v2.RandomResizedCrop(32, antialias=True),
        v2.RandomHorizontalFlip(0.5),
        v2.ColorJitter(0.2, 0.2),
        v2.ToDtype(torch.get_default_dtype(), scale=True),
    ]
)
images = tv_tensors.Image(torch.randint(0, 256, (6, 3, 40, 40), dtype=torch.uint8))
boxes = tv_tensors.BoundingBoxes([[2, 3, 20, 30]], format="XYXY", canvas_size=(40, 40))
model = nn.Sequential(nn.Conv2d(3, 4, 5), nn.GELU(), nn.Flatten(), nn.LazyLinear(4))
model(torch.zeros(1, 3, 32, 32))
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
for _ in range(6):
    changed, moved = change(images, boxes)
    aim = moved.to(changed.dtype) / 32
    loss = nn.functional.smooth_l1_loss(model(changed), aim.expand(6, 4))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
