"""One training step of a small network on sixteen handwritten digits."""

from sklearn.datasets import load_digits

import oneflow_lite as flow
from oneflow_lite import nn

scans = load_digits()
images = flow.tensor(scans.images[:16] / 16, dtype=flow.float32)
labels = flow.tensor(scans.target[:16], dtype=flow.int64)

flow.manual_seed(0)
network = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
optimizer = flow.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)

optimizer.zero_grad()
loss = nn.functional.cross_entropy(network(images), labels)
loss.backward()
optimizer.step()
print(loss.item())
