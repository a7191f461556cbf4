"""torchmetrics: metrics of a training, gathered over batches; one is a loss itself."""

import torch
from torch import nn
from torchmetrics import MeanMetric, MetricCollection, R2Score
from torchmetrics.classification import BinaryAUROC, MulticlassAccuracy, MulticlassF1Score
from torchmetrics.functional.image import structural_similarity_index_measure as likeness

x = torch.randn(40, 6)
y = x[:, :4].argmax(1)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.Adam(model.parameters(), 0.02)
scores = MetricCollection([MulticlassAccuracy(4), MulticlassF1Score(4)])
mean = MeanMetric()
for step in range(8):
    inputs, labels = x[step % 4 :: 4], y[step % 4 :: 4]
    logits = model(inputs)
    loss = nn.functional.cross_entropy(logits, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scores.update(logits, labels)
    mean.update(loss)
    print(loss.item())
print("scores", *scores.compute().values(), mean.compute())
print("regression", R2Score()(model(x)[:, 0], x[:, 0]), BinaryAUROC()(model(x)[:, 0], y == 0))
image = torch.rand(1, 3, 24, 24, requires_grad=True)
value = likeness(image, torch.rand(1, 3, 24, 24), data_range=1.0)
value.backward()
print("likeness", value, image.grad.norm())
