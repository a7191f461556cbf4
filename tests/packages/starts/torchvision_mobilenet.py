"""torchvision: a MobileNetV3 with squeezing and hard swishes learns."""

import torch
from torch import nn
from torchvision.models import mobilenet_v3_small

images, labels = torch.randn(8, 3, 64, 64), torch.randint(0, 10, (8,))
model = mobilenet_v3_small(num_classes=10, dropout=0.0)
optimizer = torch.optim.RMSprop(model.parameters(), lr=0.02, alpha=0.9, eps=0.0316, momentum=0.9)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
for _ in range(5):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(images), labels, label_smoothing=0.1)
    loss.backward()
    optimizer.step()
    schedule.step()
    print(loss.item())
