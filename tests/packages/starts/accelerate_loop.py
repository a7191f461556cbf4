"""accelerate: the Accelerator prepares, clips, accumulates, and saves what was trained."""

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
x = torch.randn(48, 12)
data = DataLoader(TensorDataset(x, x.sin().sum(1, keepdim=True)), batch_size=6, shuffle=True)
model = nn.Sequential(nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=4)
model, optimizer, data, schedule = accelerator.prepare(model, optimizer, data, schedule)
for inputs, targets in data:
    with accelerator.accumulate(model):
        loss = nn.functional.mse_loss(model(inputs), targets)
        accelerator.backward(loss)
        if accelerator.sync_gradients:
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    print(loss.item())
accelerator.save_state("state")
before = accelerator.unwrap_model(model)(x).detach()
with torch.no_grad():
    model[0].weight.zero_()
accelerator.load_state("state")
print("again", (model(x) - before).abs().max(), accelerator.gather(before).sum())
