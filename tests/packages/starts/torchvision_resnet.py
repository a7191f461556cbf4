"""torchvision: a ResNet-18 learns, is saved, and answers the same when it is loaded."""

import torch
from torch import nn
from torchvision import models

images, labels = torch.randn(8, 3, 32, 32), torch.randint(0, 10, (8,))
model = models.resnet18(weights=None, num_classes=10)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
for _ in range(4):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    print(loss.item())

torch.save(model.state_dict(), "resnet.pt")
again = models.resnet18(weights=None, num_classes=10)
again.load_state_dict(torch.load("resnet.pt", weights_only=True))
model.eval(), again.eval()
with torch.no_grad():
    print("again", (model(images) - again(images)).abs().max())
    print("features", model(images))
