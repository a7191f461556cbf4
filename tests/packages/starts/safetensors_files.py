"""safetensors: weights of several dtypes and shared ones go to a file and come back."""

import torch
from safetensors import safe_open
from safetensors.torch import load, load_file, load_model, save, save_file, save_model
from torch import nn

x = torch.randn(16, 6)
model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 6))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(30):
    loss = nn.functional.mse_loss(model(x), x.flip(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
save_file(model.state_dict(), "model.safetensors", {"steps": "30"})
again = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 6))
again.load_state_dict(load_file("model.safetensors"))
print("again", (again(x) - model(x)).abs().max())
with safe_open("model.safetensors", framework="pt") as file:
    print("part", file.get_slice("0.weight")[2:4].sum(), int(file.metadata()["steps"]))
kinds = {str(i): x.to(d) for i, d in enumerate((torch.float16, torch.bfloat16, torch.int8))}
loaded = load(save(kinds))
print("kinds", *[loaded[name].double().sum() for name in kinds])
again[2].weight = again[0].weight = nn.Parameter(torch.eye(12)[:, :6].contiguous())
save_model(again, "tied.safetensors")
load_model(again, "tied.safetensors")
print("tied", again[2].weight.sum())
