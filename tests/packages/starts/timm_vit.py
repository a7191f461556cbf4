"""timm: a tiny ViT learns, with timm's optimizer and schedule."""

import timm
import torch
from timm.loss import LabelSmoothingCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler

model = timm.create_model("vit_tiny_patch16_224", num_classes=10, img_size=64)
images, labels = torch.randn(4, 3, 64, 64), torch.randint(0, 10, (4,))
optimizer = create_optimizer_v2(model, "adamw", lr=1e-3, weight_decay=0.05)
schedule = CosineLRScheduler(optimizer, t_initial=6, warmup_t=2, warmup_lr_init=1e-4)
lossy = LabelSmoothingCrossEntropy(0.1)
for epoch in range(5):
    loss = lossy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step(epoch + 1)
    print(loss.item())
