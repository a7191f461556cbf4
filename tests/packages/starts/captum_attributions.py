"""captum: integrated gradients, occlusion, GradCAM and SHAP explain a trained network."""

import torch
from captum.attr import GradientShap, IntegratedGradients, LayerGradCam, Occlusion, Saliency
from torch import nn

x = torch.randn(8, 1, 8, 8)
y = (x[:, 0, :4].mean((1, 2)) > 0).long()
model = nn.Sequential(
    nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 2)
)
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for _ in range(6):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
gradients, gap = IntegratedGradients(model).attribute(
    x, target=y, n_steps=20, return_convergence_delta=True
)
print("integrated", gradients.mean((1, 2, 3)), gap)
print("saliency", Saliency(model).attribute(x, target=y).mean((1, 2, 3)))
windows = Occlusion(model).attribute(x[:2], (1, 2, 2), target=0)
print("occlusion", windows.mean((1, 2, 3)))
print("camera", LayerGradCam(model, model[0]).attribute(x, target=1).mean((1, 2, 3)))
print("shap", GradientShap(model).attribute(x, torch.zeros_like(x), target=0).mean((1, 2, 3)))
