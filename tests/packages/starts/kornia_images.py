"""kornia: differentiable filters, warps and augmentations recover a blur and a turn."""

import kornia
import kornia.augmentation as K
import torch

image = torch.rand(2, 3, 24, 24)
aim = kornia.geometry.rotate(
    kornia.filters.gaussian_blur2d(image, (5, 5), (1.2, 1.2)), torch.tensor(9.0)
)
width, angle = torch.tensor(0.8, requires_grad=True), torch.tensor(2.0, requires_grad=True)
optimizer = torch.optim.Adam([width, angle], 0.3)
for _ in range(6):
    blurred = kornia.filters.gaussian_blur2d(image, (5, 5), width.expand(1, 2))
    loss = (kornia.geometry.rotate(blurred, angle) - aim).abs().mean()
    loss = loss + 0.1 * kornia.losses.ssim_loss(blurred, aim, 5)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
print("edges", kornia.filters.sobel(image).mean(), kornia.filters.canny(image)[1].sum())
print("colours", kornia.color.rgb_to_lab(image).mean((0, 2, 3)))
change = K.AugmentationSequential(K.RandomHorizontalFlip(p=0.5), K.RandomAffine(15.0, p=1.0))
print("augmented", change(image).shape)
