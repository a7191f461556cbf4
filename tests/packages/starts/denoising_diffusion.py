"""denoising-diffusion-pytorch: a small U-Net learns to take noise away, and samples."""

import torch
from denoising_diffusion_pytorch import GaussianDiffusion, Unet

net = Unet(dim=8, dim_mults=(1, 2), flash_attn=False)
model = GaussianDiffusion(net, image_size=16, timesteps=20, sampling_timesteps=4)
images = torch.rand(4, 3, 16, 16)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
for _ in range(4):
    loss = model(images)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
print("sampled", model.sample(batch_size=2).mean((2, 3)))
