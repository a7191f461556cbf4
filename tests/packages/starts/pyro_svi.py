"""pyro-ppl: stochastic variational inference of a regression, with an automatic guide."""

import pyro
import pyro.distributions as dist
import torch
from pyro.infer import SVI, Predictive, Trace_ELBO
from pyro.infer.autoguide import AutoDiagonalNormal
from pyro.optim import ClippedAdam

x = torch.randn(40, 3)
y = x @ torch.tensor([1.0, -2.0, 0.5]) + 0.3 + 0.1 * torch.randn(40)


def model(x, y=None):
    weight = pyro.sample("weight", dist.Normal(torch.zeros(3), 1.0).to_event(1))
    bias = pyro.sample("bias", dist.Normal(0.0, 1.0))
    scale = pyro.sample("scale", dist.LogNormal(-1.0, 0.5))
    with pyro.plate("data", len(x)):
        return pyro.sample("y", dist.Normal(x @ weight + bias, scale), obs=y)


guide = AutoDiagonalNormal(model)
svi = SVI(model, guide, ClippedAdam({"lr": 0.05}), Trace_ELBO(num_particles=2))
for _ in range(10):
    print(svi.step(x, y))
print("weights", guide.median()["weight"])
drawn = Predictive(model, guide=guide, num_samples=4)(x[:3])
print("predicted", drawn["y"].mean(0))
