"""opt_einsum: a contraction of many tensors, in a planned order, is trained."""

import opt_einsum
import torch

cores = [torch.randn(4, 5, 4) / 3 for _ in range(5)]
for core in cores:
    core.requires_grad_()
left, right, aim = torch.randn(4), torch.randn(4), torch.randn(5, 5, 5, 5, 5)
formula = "a,aib,bjc,ckd,dle,emf,f->ijklm"
shapes = [(4,), *[(4, 5, 4)] * 5, (4,)]
contract = opt_einsum.contract_expression(formula, *shapes, optimize="dp")
optimizer = torch.optim.Adam(cores, 0.02)
for _ in range(8):
    loss = (contract(left, *cores, right) - aim).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
print("again", opt_einsum.contract(formula, left, *cores, right, backend="torch").norm())
