"""timm: a small MobileNetV3 learns, and gives its features."""

import timm.optim
import torch
from timm.utils import ModelEmaV2, accuracy

model = timm.create_model("mobilenetv3_small_050", num_classes=10)
average = ModelEmaV2(model, decay=0.9)
images, labels = torch.randn(8, 3, 64, 64), torch.randint(0, 10, (8,))
optimizer = timm.optim.create_optimizer_v2(model, "sgd", lr=0.02, momentum=0.9)
for _ in range(5):
    logits = model(images)
    loss = torch.nn.functional.cross_entropy(logits, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average.update(model)
    print(loss.item())
print("accuracy", *accuracy(logits, labels, topk=(1, 5)))
features = timm.create_model("resnet10t", features_only=True).eval()
with torch.no_grad():
    print("features", *[y.mean() for y in features(images)])
    print("average", average.module.eval()(images).std())
