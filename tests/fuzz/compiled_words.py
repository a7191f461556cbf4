"""The lines that random programs for `flow.compile` are written in.

`{x}`, `{y}` and `{z}` stand for tensors, `{d}` for a dimension, `{s}` for a number. A line that
does not fit the tensors it gets is not used.
"""

from __future__ import annotations

# What follows `name =`.
OPS = """
{x} + {y}; {x} - {y}; {x} * {y}; {x} / ({y} * {y} + 0.5); -{x}; {x} * {s}; {s} - {x}; {x} ** 2
{x}.exp(); {x}.tanh(); {x}.sigmoid(); {x}.relu(); {x}.sin(); {x}.abs(); {x}.square(); {x}.clone()
({x} * {x} + 0.5).sqrt(); ({x} * {x} + 0.5).log(); {x}.clamp(-0.4, 0.8); {x} * 1
flow.maximum({x}, {y}); flow.where({x} > {y}, {x}, {y}); flow.where({x} > {s}, {y}, {z})
{x}.lerp({y}, 0.3); flow.add({x}, {y}, alpha=0.5); {x}.addcmul({y}, {z}, value=0.5)
{x}.sum({d}); {x}.mean({d}, keepdim=True); {x}.sum(); {x}.mean(); {x}.prod({d}); {x}.max({d})[0]
{x}.amax({d}, keepdim=True); {x}.cumsum({d}); {x}.softmax({d}); {x}.log_softmax({d})
{x}.logsumexp({d}); {x}.flip({d}); {x}.roll(1, {d}); {x}.var({d}, correction=0, keepdim=True)
{x} @ {y}; {x}.matmul({y}); F.gelu({x}); F.softplus({x}); F.layer_norm({x}, (3,)); {x}.sort({d})[0]
flow.cat([{x}, {y}], {d}); flow.stack([{x}, {y}], {d}); flow.cat([{x}, {x} * 0.5], {d})
{x}.masked_fill({y} > {s}, 0.5); {x}.index_select(0, flow.tensor([1, 0])); {x}[flow.tensor([0, 1])]
{x}.gather(0, ({y} > {s}).long()); {x}.argmax({d}); ({x} > {y}).float(); {x}.to(flow.float32)
{x}.contiguous(); flow.zeros_like({x}); flow.ones_like({x}) * {y}; flow.full((2, 3), {s})
flow.arange(3) * {x}; {x}.new_zeros(3) + {y}; flow.tensor([1.0, {s}, 3.0]) * {x}; {x}.double()
{x} * rate; {x} + scale; {x} * SCALE; {x} * box.rate; {x} * n; {x}.reshape(-1).tril() + {y}
{x}.tril(); {x}.detach(); {x}.detach() * {y}; {x} * {x}.shape[0]; {x} + len(items); {x}.real
"""

RANDOM = """
flow.rand(2, 3); flow.randn(3) * {x}; flow.rand_like({x}); F.dropout({x}, 0.5)
flow.bernoulli({x}.sigmoid()); {x}[flow.randperm(2)]; flow.randn(2, 3).sum() * {x}
{x} * flow.randint(0, 3, (3,)); {x}.clone().uniform_(0, 1); flow.zeros(3).normal_()
"""

# Whole lines.
WRITES = """
{x}.add_({y}); {x}.mul_({y}); {x}.sub_({y}); {x}.copy_({y}); {x} += {y}; {x} *= {y}; {x}.add_({s})
{x}.mul_({s}); {x}.zero_(); {x}.fill_({s}); {x}.tanh_(); {x}.exp_(); {x}.neg_(); {x}.relu_()
{x}.clamp_(-0.4, 0.8); {x}.lerp_({y}, 0.3); {x}.addcmul_({y}, {y}, value=0.5); {x}.square_()
{x}.masked_fill_({y} > {s}, 0.6); {x}.add_({y}, alpha=0.5); {x}.sigmoid_(); {x}.sqrt_()
{x}[{x} > {s}] = 0.5; {x}[flow.tensor([1, 0])] = {y}; {x}.cumsum_({d}); {x}.t_(); {x}.uniform_(0, 1)
{x}.index_fill_(0, flow.tensor([1]), 0.9); {x}[0] += {y}; {x}.T.add_({y}); {x}.detach().mul_(2)
{x}.unsqueeze_({d}); {x}[0].zero_(); {x}.view(-1)[1:].mul_({s}); {x}.normal_(); {x} -= {s}
"""

NETS = """
nn.Linear(3, 3); nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)); nn.LayerNorm(3)
nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.5), nn.Linear(2, 3)); nn.Sequential(nn.Tanh())
"""

# What may happen between two calls.
CHANGES = """
SCALE = 3.0; box.rate = 0.25; box.flag = not box.flag; w0.grad = None; b0.add_(1.0); net.eval()
b0.copy_(data((3,), 30)); b0.data = data((3,), 31); net.train(); opt.zero_grad()
opt.param_groups[0]["lr"] = 0.01; flow.manual_seed(3); items.append(b0); box.w = box.w * 2
box.w.detach().mul_(0.5); w0.grad = data((2, 3), 32); scale = 1.5; w0.detach().mul_(1.25)
net.requires_grad_(False); w0.requires_grad_(False); items[0] = data((2, 3), 33); w0.data[0] = 0.5
box.w = data((2, 3), 34, "F"); out = None; scale = 2
"""

CONDITIONS = """
flag; not flag; n > 1; SCALE > 2.5; box.flag; {x}.shape[0] > 2; {x}.requires_grad; net.training
flow.is_grad_enabled(); {x}.dtype == flow.float64; len(items) > 1; {x} is {y}; {x}.ndim == 2
{x}.is_contiguous(); x.grad is None; w0.grad is not None; isinstance({x}, flow.Tensor)
"""


def lines(table: str) -> list[str]:
    """Return the entries of one of the tables."""
    return [entry.strip() for entry in table.replace("\n", ";").split(";") if entry.strip()]
